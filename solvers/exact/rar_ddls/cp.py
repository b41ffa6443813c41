"""Method ``cp`` of rar-ddls: bounds, local search and an interval model on CP-SAT, in stages, until they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.solvers.exact.rar_ddls.incumbent import BestSchedule
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel
from schedgap.solvers.exact.rar_ddls.one_server import pack
from schedgap.solvers.exact.rar_ddls.overlaps import Overlaps
from schedgap.solvers.exact.rar_ddls.packing import SlotPacking
from schedgap.solvers.exact.rar_ddls.search import LocalSearch
from schedgap.solvers.result import Result, SolveOptions, Termination, package_version
from schedgap.solvers.size import too_large

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.session import CpAnswer


_FIRST_EFFORT = 2.0
_SECOND_EFFORT = 20.0
_PACKING_SHARE = 0.25
_NONZEROS_OF_PART = 8
"""What a job on a server costs in the interval model, in nonzeros of PuLP's; 10 to 16 measured."""


def solve_cp(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """Solve rar-ddls exactly; status OPTIMAL or INFEASIBLE unless a limit comes first.

    Stages, each ended as soon as bound and schedule meet:

    1. certified bounds (:mod:`bounds`); the given start, and annealed greedy schedules;
    2. slot packing: a bound by what can run at once, contention included, by column generation; more annealing;
    3. the interval model with the cost of overlaps, minimised by CP-SAT between bound and best schedule. It has no
       time index, so the number of slots hardly matters. Each solution is simulated. Where the model's optimum
       claims too much, inequalities that it violates are added, and it is solved again.

    Parameters
    ----------
    options : with ``threads=1`` and a ``work_limit`` (CP-SAT's deterministic time) a run repeats itself

    Returns
    -------
    Result; its bound is valid whatever ended the run, its solution is accepted by the checker.

    Raises
    ------
    Disagreement
        Models and dynamics contradict each other, which would be an error in one of them.
    """
    incumbent = BestSchedule(instance, options)
    ended: Termination | None = None
    if incumbent.begin():
        try:
            ended = _Stages(incumbent).run()
        except KeyboardInterrupt:
            incumbent.interrupted = True
    return incumbent.result(ended, engine="cpsat", version=package_version("ortools"))


class _Stages:
    """The stages, and what they leave for later ones."""

    def __init__(self, incumbent: BestSchedule) -> None:
        self.incumbent = incumbent
        self.options: list[JobOptions] = []

    def run(self) -> Termination | None:
        """All stages; too large where the last one was left out."""
        incumbent = self.incumbent
        if incumbent.options.start is not None:
            incumbent.propose(incumbent.options.start)
        search = LocalSearch(incumbent.instance, incumbent.options.seed)
        search.run(incumbent, _FIRST_EFFORT)
        incumbent.log("local search")
        if incumbent.finished():
            return None
        self.options = job_options(incumbent.instance)
        packing = SlotPacking(incumbent, self.options)
        packing.raise_bound(incumbent, _PACKING_SHARE)
        incumbent.log("slot packing")
        if incumbent.finished():
            return None
        pack(incumbent, self.options)
        incumbent.log("packing without crossing")
        if incumbent.finished():
            return None
        search.run(incumbent, _SECOND_EFFORT)
        incumbent.log("local search")
        if incumbent.finished():
            return None
        parts = sum(len(option.local) + int(np.count_nonzero(option.share)) for option in self.options)
        asked = incumbent.options
        reason = too_large(_NONZEROS_OF_PART * parts, asked.deadline, memory_limit=asked.memory_limit)
        if reason is not None:
            incumbent.info["reason"] = f"interval model: {reason}"
            return Termination.TOO_LARGE
        self.overlaps(packing)
        return None

    def overlaps(self, packing: SlotPacking) -> None:
        """The interval model with contention, refined until it is exact."""
        incumbent = self.incumbent
        intervals = IntervalModel(incumbent.instance, self.options, incumbent.lower, incumbent.ceiling, contention=True)
        overlaps = Overlaps(intervals, packing.grades)
        overlaps.add_needs(packing.needs, packing.grades)
        for cut in packing.cuts:
            overlaps.add_cut(cut, packing.grades)
        incumbent.log("interval model built")
        rounds = 0
        while not incumbent.finished():
            rounds += 1
            answer = self._minimise(intervals)
            if answer.infeasible:
                incumbent.exhausted()
            incumbent.tighten(answer.bound)
            if answer.value is None:
                break
            makespan = incumbent.propose_schedule(*intervals.schedule(answer.value))
            incumbent.log("interval model solved")
            if incumbent.finished():
                break
            if makespan is None and overlaps.refine(answer.value) == 0:
                raise Disagreement("interval model and dynamics disagree", details={"engine": "cpsat"})
            intervals.model.add(intervals.makespan <= incumbent.ceiling)
            intervals.model.add(intervals.makespan >= incumbent.lower)
        incumbent.info["rounds"] = rounds

    def _minimise(self, intervals: IntervalModel) -> CpAnswer:
        incumbent = self.incumbent

        def seen(value: Callable[[Any], int]) -> bool:
            incumbent.propose_schedule(*intervals.schedule(value))
            return incumbent.proven or incumbent.gap_reached

        def bounded(bound: int) -> bool:
            incumbent.tighten(bound)
            return incumbent.proven or incumbent.gap_reached

        from schedgap.solvers.cp_sat.session import search_cp

        return search_cp(intervals.model, incumbent, seen=seen, bounded=bounded)
