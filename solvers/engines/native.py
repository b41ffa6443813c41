"""What HiGHS and SCIP have in common: a run ends with a status of its own, a point and a bound; what these mean.

Both are given the model in whole numbers, as far as it has them, and none of a model that needs no engine. What has no
bounded optimum is classified by further runs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.engines.answer import EngineAnswer, EngineProgress, conclude, settled, sizes
from schedgap.solvers.engines.arrays import ModelArrays, model_arrays
from schedgap.solvers.engines.whole import Range, WholeModel, whole_model
from schedgap.solvers.result import SolveOptions, Status, Termination


@dataclass(frozen=True)
class Native:
    """The end of one native run."""

    status: str
    values: Floats | None = None
    bound: float | None = None
    nodes: int | None = None
    interrupted: bool = False


class NativeEngine(ABC):
    """An engine for linear and mixed-integer models whose runs are :class:`Native`.

    Attributes
    ----------
    name : the engine's, in results and messages
    limits : the models on which it is believed
    handover_cost : relative time of handing a model over, as for every engine
    meanings : what each native status says: what is proven (None: look at point and bound), and why the run ended
    optimal, unbounded : the native status of a proof, and of a model without a bounded optimum
    """

    name: str
    limits: Range
    handover_cost: float
    meanings: Mapping[str, tuple[Status | None, Termination]]
    optimal: str
    unbounded: str

    @abstractmethod
    def version(self) -> str:
        """The version of the solver."""

    @abstractmethod
    def refuse_numbers(self, arrays: ModelArrays) -> None:
        """Raise ModelRefused where the solver would drop or misread a number."""

    @abstractmethod
    def run(
        self, model: WholeModel, options: SolveOptions, progress: EngineProgress | None, start: dict[int, float]
    ) -> Native:
        """Solve the model natively, from a (possibly partial) point."""

    def refuse_coefficient(self, arrays: ModelArrays, bad: Bools, why: str) -> None:
        """Raise ModelRefused for the first coefficient that is bad, with its row and variable."""
        if bad.any():
            place = int(np.argmax(bad))
            row = int(np.searchsorted(arrays.starts, place, side="right")) - 1
            raise ModelRefused(
                f"engine {self.name}: row {arrays.names[row]}: coefficient {arrays.coefficients[place]:g} of "
                f"{arrays.variables[arrays.indices[place]].name} is {why}"
            )

    def native_meaning(self, status: str) -> tuple[Status | None, Termination]:
        """What a native status says.

        Raises RuntimeError: one that no run of ours can end with, or of a newer version than this was written for.
        """
        if status not in self.meanings:
            raise RuntimeError(f"engine {self.name}: ended with a status that is not mapped: {status}")
        return self.meanings[status]

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        """Solve `model`; gap limit 0 unless the caller asks for another, so OPTIMAL means a proof.

        An unbounded or infeasible model is classified by solving it without its objective: a mixed-integer
        model with rational data is unbounded exactly when it has a feasible point and its linear relaxation
        is unbounded (Meyer 1974, On the existence of optimal solutions to integer and mixed-integer programming
        problems, Mathematical Programming 7). Raises ModelRefused: a number that the solver would drop or misread.
        """
        started = time.monotonic()
        version = self.version()
        arrays = model_arrays(model)
        if (known := settled(model, arrays, version, time.monotonic() - started)) is not None:
            return known
        whole = whole_model(arrays)
        arrays = whole.arrays
        if (known := settled(model, arrays, version, time.monotonic() - started)) is not None:
            return known
        self.refuse_numbers(arrays)
        doubt = self.limits.exceeded(whole)
        if arrays.is_mip and arrays.endless and self._relaxation_unbounded(arrays, options):
            native = Native(self.unbounded)
        else:
            progress = EngineProgress(model, arrays, options, believed=not doubt)
            native = self.run(whole, options, progress, arrays.start(model, options.start))
        status, termination = self.native_meaning(native.status)
        if status is Status.UNBOUNDED:
            status, termination = self._unbounded_or_infeasible(arrays, options)
        seconds = time.monotonic() - started
        info: dict[str, object] = {"native status": native.status} if termination is Termination.FAILED else {}
        if status is not None:
            info.update(sizes(arrays))
            return EngineAnswer(status, termination, version, seconds, nodes=native.nodes, info=info, doubt=doubt)
        return conclude(
            model,
            arrays,
            values=native.values,
            bound=native.bound,
            termination=Termination.INTERRUPTED if native.interrupted else termination,
            version=version,
            seconds=seconds,
            nodes=native.nodes,
            info=info,
            doubt=doubt,
            claimed=native.status == self.optimal and options.relative_gap == 0,
        )

    def _plainly(self, arrays: ModelArrays, options: SolveOptions) -> Native:
        """A run without a start, a gap, or anybody to report to."""
        plain = SolveOptions(deadline=options.deadline, seed=options.seed, threads=options.threads, log=options.log)
        return self.run(whole_model(arrays), plain, None, {})

    def _relaxation_unbounded(self, arrays: ModelArrays, options: SolveOptions) -> bool:
        """Whether the linear relaxation has no bounded optimum (nor is proven infeasible).

        Asked first where bounds leave the objective open: HiGHS 1.13.1 can call a point of an unbounded mixed-integer
        model optimal, and SCIP 10.0 would add cuts to it without end.
        """
        native = self._plainly(arrays.relaxed(), options)
        return self.native_meaning(native.status)[0] is Status.UNBOUNDED

    def _unbounded_or_infeasible(self, arrays: ModelArrays, options: SolveOptions) -> tuple[Status, Termination]:
        """Which of the two a model is that cannot have a bounded optimum."""
        if options.deadline.passed:
            return Status.UNKNOWN, Termination.TIME_LIMIT
        native = self._plainly(arrays.without_cost(), options)
        status, termination = self.native_meaning(native.status)
        if native.interrupted:
            return Status.UNKNOWN, Termination.INTERRUPTED
        if status is Status.INFEASIBLE:
            return Status.INFEASIBLE, Termination.PROVEN
        if native.values is not None:
            return Status.UNBOUNDED, Termination.PROVEN
        return Status.UNKNOWN, termination
