"""How long a model takes from PuLP into HiGHS: PuLP's own hand-off against our arrays, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Json
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.arrays import model_arrays


@dataclass(frozen=True)
class Handoff:
    """Measured seconds, best of the repetitions.

    Attributes
    ----------
    nonzeros : nonzeros of the model
    build : building it in PuLP
    pulp : PuLP's own hand-off to HiGHS (everything before the solver runs)
    arrays : taking the arrays out of PuLP
    ours : `arrays`, and passing them to HiGHS in one call
    ratio : pulp / ours
    highs_version : version of highspy
    """

    nonzeros: int
    build: float
    pulp: float
    arrays: float
    ours: float
    highs_version: str

    @property
    def ratio(self) -> float:
        """How many times faster our hand-off is."""
        return self.pulp / self.ours


def sparse_model(nonzeros: int, width: int = 5, seed: int = 0) -> DeclarativeModel:
    """A random sparse integer model: `width` nonzeros a row, half as many variables as rows."""
    rng = np.random.default_rng(seed)
    rows = max(1, nonzeros // width)
    columns = max(2 * width, rows // 2)
    problem = pulp.LpProblem("handoff", pulp.LpMinimize)
    create = getattr(problem, "add_variable", pulp.LpVariable)
    xs = [create(f"x{i}", 0, 9, cat=pulp.LpInteger) for i in range(columns)]
    problem.setObjective(pulp.LpAffineExpression([(x, 1.0) for x in xs], 5.0))
    firsts = rng.integers(0, columns, rows)
    steps = rng.integers(1, columns // width, rows)
    chosen = ((firsts[:, None] + steps[:, None] * np.arange(width)) % columns).tolist()
    numbers = rng.integers(1, 99, (rows, width)).astype(float).tolist()
    for places, row in zip(chosen, numbers, strict=True):
        terms = [(xs[place], number) for place, number in zip(places, row, strict=True)]
        problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintGE, None, 20.0))
    return DeclarativeModel(problem, lambda value: {}, sense=pulp.LpMinimize)


def handoff_benchmark(nonzeros: int = 200_000, width: int = 5, repeat: int = 3) -> Handoff:
    """Hand the same model over both ways, `repeat` times each, and keep the best times.

    Nothing is solved. PuLP's way is what its ``HiGHS`` solver does before it calls ``run``.

    Parameters
    ----------
    nonzeros, width : size of the model, and nonzeros per row (5 is usual for time-indexed models)
    repeat : repetitions of each way
    """
    import highspy

    from schedgap.solvers.engines.highs import pass_arrays

    began = time.perf_counter()
    model = sparse_model(nonzeros, width)
    build = time.perf_counter() - began

    def pulps_own() -> None:
        solver = pulp.HiGHS(msg=False)
        solver.createAndConfigureSolver(model.problem)
        solver.buildSolverModel(model.problem)

    def arrays_only() -> None:
        model_arrays(model)

    def ours() -> None:
        solver = highspy._core._Highs()
        solver.setOptionValue("output_flag", False)
        pass_arrays(solver, model_arrays(model))

    count = len(model_arrays(model).indices)
    return Handoff(
        nonzeros=count,
        build=build,
        pulp=_best(pulps_own, repeat),
        arrays=_best(arrays_only, repeat),
        ours=_best(ours, repeat),
        highs_version=engine("highs").version(),
    )


def handoff_rows(*, scale: float = 1.0) -> list[dict[str, Json]]:
    """:func:`handoff_benchmark` at three sizes, as rows of the suite ``scale``."""
    rows = []
    for nonzeros in (20_000, 60_000, 200_000):
        one = handoff_benchmark(max(1000, round(nonzeros * scale)))
        rows.append(
            {
                "nonzeros": one.nonzeros,
                "build_seconds": one.build,
                "pulp_seconds": one.pulp,
                "ours_seconds": one.ours,
                "times_faster": one.ratio,
            }
        )
    return rows


def _best(work: Callable[[], None], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
