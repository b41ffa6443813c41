"""Method ``cp`` of rar-ddls: bounds, local search and an interval model on CP-SAT, in stages, until they meet."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from typing import Any

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.bounds import is_infeasible, lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.solvers.cp_session import CpAnswer, run_cp
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel
from schedgap.solvers.exact.rar_ddls.overlaps import Overlaps
from schedgap.solvers.exact.rar_ddls.packing import SlotPacking
from schedgap.solvers.exact.rar_ddls.search import LocalSearch
from schedgap.solvers.exact.rar_ddls.state import Known
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

_FIRST_EFFORT = 2.0
_SECOND_EFFORT = 20.0
_PACKING_SHARE = 0.25


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
    instance : the instance
    options : with ``threads=1`` and a ``work_limit`` (CP-SAT's deterministic time) a run repeats itself

    Returns
    -------
    Result; its bound is valid whatever ended the run, its solution is accepted by the checker.

    Raises
    ------
    Disagreement
        Models and dynamics contradict each other, which would be an error in one of them.
    """
    began = time.monotonic()
    reason = is_infeasible(instance)
    if reason is not None:
        known = Known(instance, options, 0)
        known.infeasible = True
        return _result(known, {"reason": reason}, time.monotonic() - began)
    known = Known(instance, options, int(lower_bound(instance) or 1))
    stages = _Stages(known)
    try:
        stages.run()
    except KeyboardInterrupt:
        known.interrupted = True
    return _result(known, stages.info, time.monotonic() - began)


class _Stages:
    """The stages, and what they leave for later ones."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.info: dict[str, Any] = {}
        self.options: list[JobOptions] = []

    def run(self) -> None:
        """All stages."""
        known = self.known
        if known.options.start is not None:
            known.offer(known.options.start)
        search = LocalSearch(known.instance, known.options.seed)
        search.run(known, _FIRST_EFFORT)
        known.log("local search")
        if self._done():
            return
        self.options = job_options(known.instance)
        packing = SlotPacking(known, self.options)
        packing.raise_bound(known, _PACKING_SHARE)
        known.log("slot packing")
        if self._done():
            return
        search.run(known, _SECOND_EFFORT)
        known.log("local search")
        if not self._done():
            self.overlaps(packing)

    def _done(self) -> bool:
        return self.known.finished

    def overlaps(self, packing: SlotPacking) -> None:
        """The interval model with contention, refined until it is exact."""
        known = self.known
        intervals = IntervalModel(known.instance, self.options, known.bound, known.ceiling, contention=True)
        overlaps = Overlaps(intervals, packing.grades)
        overlaps.add_needs(packing.needs, packing.grades)
        for cut in packing.cuts:
            overlaps.add_cut(cut, packing.grades)
        known.log("interval model built")
        rounds = 0
        while not self._done():
            rounds += 1
            answer = self._minimise(intervals)
            if answer.infeasible:
                known.refute()
            if answer.bound is not None:
                known.learn(answer.bound)
            if answer.value is None:
                break
            makespan = known.offer_schedule(*intervals.schedule(answer.value))
            known.log("interval model solved")
            if self._done():
                break
            if makespan is None and overlaps.refine(answer.value) == 0:
                raise Disagreement("interval model and dynamics disagree", details={"engine": "cpsat"})
            intervals.model.add(intervals.makespan <= known.ceiling)
            intervals.model.add(intervals.makespan >= known.bound)
        self.info["rounds"] = rounds

    def _minimise(self, intervals: IntervalModel) -> CpAnswer:
        known = self.known

        def seen(value: Callable[[Any], int]) -> bool:
            known.offer_schedule(*intervals.schedule(value))
            return known.proven or known.close_enough

        def bounded(bound: int) -> bool:
            known.learn(bound)
            return known.proven or known.close_enough

        answer = run_cp(
            intervals.model,
            seconds=known.seconds_left(),
            work=known.work_left(),
            workers=known.workers,
            seed=known.options.seed,
            seen=seen,
            bounded=bounded,
            log=known.options.log,
        )
        known.work += answer.work
        known.interrupted = known.interrupted or answer.interrupted
        return answer


def _result(known: Known, info: dict[str, Any], seconds: float) -> Result:
    objective = None if known.makespan is None else float(known.makespan)
    bound: float | None = float(known.bound)
    if known.infeasible:
        status, termination, bound = Status.INFEASIBLE, Termination.PROVEN, None
    elif optimal(known.makespan, known.bound, MINIMISE):
        status, termination = Status.OPTIMAL, Termination.PROVEN
    else:
        status = Status.UNKNOWN if objective is None else Status.FEASIBLE
        if known.interrupted:
            termination = Termination.INTERRUPTED
        elif known.close_enough:
            termination = Termination.GAP_LIMIT
        else:
            termination = Termination.WORK_LIMIT if known.out_of_work else Termination.TIME_LIMIT
    return Result(
        status=status,
        objective=objective,
        bound=bound,
        solution=known.solution,
        termination=termination,
        solve_seconds=seconds,
        engine="cpsat",
        engine_version=importlib.metadata.version("ortools"),
        info=info,
    )
