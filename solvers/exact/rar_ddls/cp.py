"""Method ``cp`` of rar-ddls: bounds, local search and an interval model on CP-SAT, in stages, until they meet.

Idea: cheap bounds and greedy schedules often meet; where not, an interval model is minimised, or, within 4 slots of the
bound, asked for a schedule of exactly so many slots. Source: paper 000's problem, eqs. (1) to (9); a model without a
time index is ours. Guarantee: models are relaxations, made exact by what simulation refutes; a proven optimum is one of
the problem as the checker counts it (`formulations/rar_ddls/rates.py` says where that completes the paper).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.solvers.budget import too_large
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel
from schedgap.solvers.exact.rar_ddls.overlaps import Overlaps
from schedgap.solvers.exact.rar_ddls.search import LocalSearch
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotPacking
from schedgap.solvers.result import Deadline, Result, SolveOptions, Termination, package_version

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.search import CpAnswer
from schedgap.solvers.exact.rar_ddls.packing import pack

_FIRST_EFFORT = 2.0


_SECOND_EFFORT = 20.0


_PACKING_SHARE = 0.25


_NARROW = 4
"""Gaps up to so many slots are closed from below, one makespan after another."""


_ENERGY = {
    "use_overload_checker_in_cumulative": True,
    "use_timetable_edge_finding_in_cumulative": True,
    "use_dual_scheduling_heuristics": True,
}
"""Propagation by energy, without which CP-SAT sees little of GPUs that are short."""


_REFUTE = _ENERGY | {"use_feasibility_jump": False, "use_rins_lns": False, "use_feasibility_pump": False}
"""What else a search for a contradiction does without: on two threads one would only guess schedules."""


_NONZEROS_OF_PART = 8
"""What a job on a server costs in the interval model, in nonzeros of PuLP's; 10 to 16 measured."""


def solve_cp(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """Solve rar-ddls exactly; status OPTIMAL or INFEASIBLE unless a limit comes first.

    Stages, each ended as soon as bound and schedule meet:

    1. certified bounds (:mod:`~schedgap.formulations.rar_ddls.bounds`); the given start, and annealed greedy schedules;
    2. slot packing: a bound by what can run at once, contention included, by column generation; more annealing;
    3. the interval model with the cost of overlaps on CP-SAT: a schedule of as many slots as the bound is asked for and
       refuted, again and again, where few slots are open, and the makespan minimised where that does not end in its
       share of the limit. It has no time index, so the number of slots hardly matters. Each solution is simulated.
       Where the model claims too much, inequalities that it violates are added, and it is solved again.

    Raises Disagreement: models and dynamics contradict each other, which would be an error in one of them.

    Parameters
    ----------
    options : with ``threads=1`` and a ``work_limit`` (CP-SAT's deterministic time) a run repeats itself

    Returns
    -------
    Result; its bound is valid whatever ended the run, its solution is accepted by the checker.
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

    @cached_property
    def options(self) -> list[JobOptions]:
        """Where each job may run, and how fast."""
        return job_options(self.incumbent.instance)

    @cached_property
    def packing(self) -> SlotPacking:
        """What can run at once."""
        return SlotPacking(self.incumbent, self.options)

    def run(self) -> Termination | None:
        """All stages; too large where the last one would not fit into the whole limit, time limit where it would."""
        incumbent = self.incumbent
        if incumbent.options.start is not None:
            incumbent.propose(incumbent.options.start)
        search = LocalSearch(incumbent.instance, incumbent.options.seed)
        stages: tuple[tuple[str, Callable[[], object]], ...] = (
            ("local search", lambda: search.run(incumbent, _FIRST_EFFORT)),
            ("slot packing", lambda: self.packing.raise_bound(incumbent, _PACKING_SHARE)),
            ("packing without crossing", lambda: pack(incumbent, self.options)),
            ("local search", lambda: search.run(incumbent, _SECOND_EFFORT)),
        )
        for name, work in stages:
            if incumbent.stage(name):
                work()
            incumbent.log(name)
            if incumbent.finished():
                return None
        parts = sum(len(option.local) + int(np.count_nonzero(option.share)) for option in self.options)
        asked = incumbent.options
        reason = too_large(_NONZEROS_OF_PART * parts, asked.deadline, memory_limit=asked.memory_limit)
        if reason is not None:
            whole = None if asked.deadline.moment is None else asked.deadline.moment - incumbent.began
            if too_large(_NONZEROS_OF_PART * parts, Deadline.after(whole), memory_limit=asked.memory_limit) is None:
                return Termination.TIME_LIMIT  # the earlier stages took the time; the model is not large
            incumbent.info["reason"] = f"interval model: {reason}"
            return Termination.TOO_LARGE
        if incumbent.stage("interval model"):
            self.overlaps()
        return None

    def overlaps(self) -> None:
        """The interval model with contention: is there a schedule that meets the bound, then what is the shortest."""
        incumbent = self.incumbent
        while not incumbent.finished() and (gap := incumbent.ceiling - incumbent.lower + 1) <= _NARROW:
            if not self._search(incumbent.lower, 1 / gap):
                break
        if not incumbent.finished():
            self._search(incumbent.ceiling, 1.0)

    def _search(self, high: int, share: float) -> bool:
        """Schedules of at most `high` slots, refined until the model is exact; whether it came to its end.

        With `high` at the bound there is nothing to minimise, and CP-SAT refutes it sooner.
        """
        incumbent, packing = self.incumbent, self.packing
        intervals = IntervalModel(incumbent.instance, self.options, incumbent.lower, high, contention=True)
        overlaps = Overlaps(intervals, packing.grades)
        overlaps.add_needs(packing.needs, packing.grades)
        for cut in packing.cuts:
            overlaps.add_cut(cut, packing.grades)
        incumbent.log(f"interval model built, at most {high} slots")
        while not incumbent.finished():
            incumbent.info["rounds"] = incumbent.info.get("rounds", 0) + 1
            answer = self._answer(intervals, share)
            if answer.infeasible:
                incumbent.tighten(min(high, incumbent.ceiling) + 1)
                return True
            incumbent.tighten(answer.bound)
            if answer.value is None:
                return False
            makespan = incumbent.propose_schedule(*intervals.schedule(answer.value))
            incumbent.log("interval model solved")
            if incumbent.finished():
                break
            if makespan is None and overlaps.refine(answer.value) == 0:
                raise Disagreement("interval model and dynamics disagree", details={"engine": "cpsat"})
            intervals.model.add(intervals.makespan <= incumbent.ceiling)
            intervals.model.add(intervals.makespan >= incumbent.lower)
        return True

    def _answer(self, intervals: IntervalModel, share: float) -> CpAnswer:
        incumbent = self.incumbent

        def seen(value: Callable[[Any], int]) -> bool:
            incumbent.propose_schedule(*intervals.schedule(value))
            return incumbent.proven or incumbent.gap_reached

        def bounded(bound: int) -> bool:
            incumbent.tighten(bound)
            return incumbent.proven or incumbent.gap_reached

        from schedgap.solvers.cp_sat.search import search_cp

        parameters = _ENERGY if intervals.model.has_objective() else _REFUTE
        return search_cp(intervals.model, incumbent, seen=seen, bounded=bounded, parameters=parameters, share=share)
