"""The arrays taken out of PuLP, and the files and log of CBC."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pulp
import pytest

from schedgap.solvers.engines import cbc_run
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.cbc_run import CbcRun
from schedgap.solvers.engines.lp import mps_text
from schedgap.solvers.engines.whole import whole_model
from schedgap.solvers.result import SolveOptions
from schedgap.tools.testing.small_models import ModelMaker, knapsacks, random_model, rows_by_name


def test_arrays_equal_what_pulp_holds() -> None:
    for seed in range(20):
        model = random_model(np.random.default_rng(seed), integer=False, bounded=False)
        arrays = model_arrays(model)
        place = {id(v): i for i, v in enumerate(arrays.variables)}
        problem = model.problem
        rows = {k: r for k, r in rows_by_name(model).items() if any(r.values())}
        assert arrays.names == tuple(rows)
        for i, row in enumerate(rows.values()):
            span = slice(arrays.starts[i], arrays.starts[i + 1])
            found = dict(zip(arrays.indices[span].tolist(), arrays.coefficients[span].tolist(), strict=True))
            assert found == {place[id(v)]: c for v, c in row.items() if c}
            low, high = row.getLb(), row.getUb()
            assert arrays.row_lower[i] == (-np.inf if low is None else low)
            assert arrays.row_upper[i] == (np.inf if high is None else high)
        for v in problem.variables():
            i = place[id(v)]
            assert arrays.cost[i] == problem.objective.get(v, 0)
            assert bool(arrays.integral[i]) == (v.cat == pulp.LpInteger)
            if not arrays.integral[i]:
                assert arrays.lower[i] == (-np.inf if v.lowBound is None else v.lowBound)
        assert arrays.constant == problem.objective.constant


def test_a_constant_inside_a_row_moves_to_its_right_hand_side() -> None:
    maker = ModelMaker()
    x = maker.var(0, 9)
    maker.minimise([(x, 1.0)])
    maker.problem += (pulp.LpAffineExpression([(x, 2.0)], 3.0) >= 10, "shifted")
    arrays = model_arrays(maker.model())
    assert (arrays.row_lower[0], arrays.row_upper[0]) == (7.0, np.inf)


def test_tidy_rounds_clips_and_keeps_what_is_not_close() -> None:
    maker = ModelMaker()
    x, y, z = maker.var(0, 3), maker.var(0, 3), maker.var(0, 3, integer=False)
    maker.minimise([(x, 1.0), (y, 1.0), (z, 1.0)])
    maker.row([(x, 1.0), (y, 1.0), (z, 1.0)], "<=", 9)
    tidy = model_arrays(maker.model()).tidy(np.array([-1e-9, 2.4, 3.0000001]))
    assert tidy.tolist() == [0.0, 2.4, 3.0]
    assert not np.signbit(tidy[0])


def test_the_mps_file_means_the_model(tmp_path: Path) -> None:
    """Read back by HiGHS, whose reader is independent of our writer."""
    import highspy

    for seed in range(25):
        model = random_model(np.random.default_rng(seed), integer=False, bounded=False)
        arrays = model_arrays(model)
        if arrays.contradiction or not arrays.names:
            continue
        goal = whole_model(arrays).objective
        (tmp_path / "m.mps").write_text(mps_text(arrays, goal.cost))
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        assert solver.readModel(str(tmp_path / "m.mps")) != highspy.HighsStatus.kError
        lp = solver.getLp()
        assert list(lp.col_cost_) == goal.cost.tolist()
        assert list(lp.col_lower_) == arrays.lower.tolist()
        assert list(lp.col_upper_) == arrays.upper.tolist()
        assert list(lp.row_lower_) == arrays.row_lower.tolist()
        assert list(lp.row_upper_) == arrays.row_upper.tolist()
        kinds = [highspy.HighsVarType.kInteger if i else highspy.HighsVarType.kContinuous for i in arrays.integral]
        assert (list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * len(kinds)) == kinds
        dense = np.zeros((len(arrays.names), len(arrays.variables)))
        for i in range(len(arrays.names)):
            span = slice(arrays.starts[i], arrays.starts[i + 1])
            dense[i, arrays.indices[span]] = arrays.coefficients[span]
        back = np.zeros_like(dense)
        matrix = lp.a_matrix_
        for j in range(len(arrays.variables)):
            for k in range(matrix.start_[j], matrix.start_[j + 1]):
                back[matrix.index_[k], j] = matrix.value_[k]
        assert (dense == back).all()


@pytest.mark.parametrize(
    ("text", "least"),
    [("-1004.417", -1004.4175), ("0.000", -0.0005), ("12", 11.5), ("-2680.2056", -2680.20565), ("1.5e+06", 1450000.0)],
)
def test_a_printed_bound_gives_way_by_half_a_place(text: str, least: float) -> None:
    assert cbc_run.safe_lower(text) == pytest.approx(least, rel=1e-12)


def test_lines_of_the_log() -> None:
    assert cbc_run.bound_in("Lower bound:                    -1016.977") == pytest.approx(-1016.9775)
    line = "Cbc0010I After 1000 nodes, 8 on tree, -3051 best solution, best possible -3077.8557 (1.11 seconds)"
    assert cbc_run.bound_in(line) == pytest.approx(-3077.85575)
    assert cbc_run.objective_in(line) == -3051
    line = "Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible -2680.2056 (1.64 seconds)"
    assert cbc_run.objective_in(line) is None
    line = "Cbc0005I Partial search - best objective 1e+50 (best possible -2680.2056), took 3496 iterations"
    assert cbc_run.bound_in(line) == pytest.approx(-2680.20565)
    line = "Cbc0012I Integer solution of -977 found by feasibility pump after 0 iterations and 0 nodes (0.02 seconds)"
    assert cbc_run.objective_in(line) == -977
    assert cbc_run.bound_in(line) is None
    assert cbc_run.bound_in("Cbc0003I Exiting (best possible 1e+50)") is None


def test_the_binary_solution_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.bin"
    assert cbc_run.read_values(path, 3) is None
    rows, columns = 2, 3
    numbers = [9.5, 1.0, 2.0, 0.1, 0.2, 0.125, 1 / 3, 7.0, 0.0, 0.0, 0.0]
    path.write_bytes(struct.pack(f"=ii{len(numbers)}d", rows, columns, *numbers))
    found = cbc_run.read_values(path, 3)
    assert found is not None
    assert found.tolist() == [0.125, 1 / 3, 7.0]
    with pytest.raises(RuntimeError, match="a solution of 3 columns for a model of 4"):
        cbc_run.read_values(path, 4)


def test_bounds_of_cbc_never_exceed_the_optimum() -> None:
    """Cut short at several points, its printed bounds (moved outwards) stay on their side of the optimum."""
    from schedgap.solvers.engines import engine
    from schedgap.solvers.result import SolveOptions

    for seed in (1, 2):
        model = knapsacks(8, 25, seed, sense=-1, constant=0.125)
        best = engine("cpsat").solve(model, SolveOptions(threads=1)).objective
        assert best is not None
        for nodes in (0.001, 0.01):
            answer = engine("cbc").solve(model, SolveOptions(threads=1, work_limit=nodes))
            assert answer.bound is not None
            assert answer.bound >= best - 1e-9


def test_a_point_far_from_feasible_is_an_engine_error_not_an_answer() -> None:
    from schedgap.solvers.engines.answer import EngineProgress, conclude
    from schedgap.solvers.result import SolveOptions, Status, Termination

    maker = ModelMaker()
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 2.0)], ">=", 7)
    model = maker.model()
    arrays = model_arrays(model)
    for point, status in (
        ([1.0, 3.0], Status.OPTIMAL),
        ([1.0 - 1e-7, 3.0 - 1e-7], Status.OPTIMAL),
        ([0.0, 3.0], Status.ERROR),
        ([1.0, 2.9], Status.ERROR),
    ):
        answer = conclude(
            model,
            arrays,
            values=np.array(point),
            bound=4.0,
            termination=Termination.GAP_LIMIT,
            version="1",
            seconds=0.0,
        )
        assert answer.status is status
        assert (answer.values is None) == (status is Status.ERROR)
    seen: list[object] = []
    progress = EngineProgress(model, arrays, SolveOptions(report=lambda *what: seen.append(what)))
    progress.incumbent(np.array([0.0, 0.0]), 3.0)
    assert (progress.values, progress.objective, progress.bound, seen) == (None, None, 3.0, [])
    progress.incumbent(np.array([5.0, 1.0]), 3.0)
    progress.incumbent(np.array([5.0, 5.0]), 3.5)
    assert (progress.objective, progress.bound) == (6.0, 3.5)
    assert seen == [({"x0": 5.0, "x1": 1.0}, 6.0, 3.0)]


def test_cbc_must_return_the_point_that_it_proved() -> None:
    from schedgap.solvers.engines.cbc import _confirmed

    maker = ModelMaker(-1)
    x = maker.var(0, 9)
    maker.minimise([(x, 1.0)], 0.5)
    maker.row([(x, 1.0)], "<=", 7)
    whole = whole_model(model_arrays(maker.model()))
    heading = "Optimal - objective value -7.00000000"
    assert _confirmed(whole, np.array([7.0]), heading) == 7.5
    assert _confirmed(whole, np.array([6.0]), heading) == 7.5  # a bound that 6.5 does not meet
    assert _confirmed(whole, np.array([6.0]), "Optimal") is None


def test_the_end_of_a_log_arrives(tmp_path: Path) -> None:
    """Of a program that ends at once, too, and whose last line has no end."""
    program = tmp_path / "cbc"
    lines = [f"line {i}" for i in range(200)]
    program.write_text("#!/bin/sh\ncat <<'end'\n" + "\n".join(lines) + "\nend\nprintf 'Enumerated nodes: 20'\n")
    program.chmod(0o755)
    model = ModelMaker(1)
    model.var(0, 1)
    for _ in range(20):
        run = CbcRun(str(program), whole_model(model_arrays(model.model())), SolveOptions(), None)
        run.go({})
        assert list(run.lines) == [*lines, "Enumerated nodes: 20"]
