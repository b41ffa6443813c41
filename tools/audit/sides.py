"""Schedules of the methods of a problem, and the user's, for the jobs of a log: each made, limited and judged.

What the policies of :mod:`~schedgap.tools.audit.reached` keep these may not: gpu-sharing knows no types.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedgap.benchmarks.importers import find_importer
from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import Trace, TraceJob
from schedgap.benchmarks.service import present
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.benchmarks.text import counted
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.result import Deadline, SolveOptions
from schedgap.tools.audit.exclusive import BASE, exclusive_instance, exclusive_times, shared_instance
from schedgap.tools.audit.load import Clash
from schedgap.tools.audit.result import RECORDED, Row, Side, Times
from schedgap.tools.audit.scores import Scores, scores
from schedgap.tools.audit.typed_record import TYPED, typed_instance, typed_record, typed_times


@dataclass(frozen=True)
class _Form:
    """How the record of a log is a schedule of a problem."""

    instance: Callable[..., Any]  # ``f(name, jobs, servers, slot_length)``
    # ``f(jobs, servers, slot_length)``, the schedule rebuilt and its clashes, None where the log says too little; None
    # where the record is judged elsewhere
    record: Callable[..., tuple[Solution, tuple[Clash, ...]] | None] | None
    times: Callable[..., Times | None]  # ``f(instance, solution, completion)``, seconds of submission, start and end


_FORMS = {
    BASE: _Form(exclusive_instance, None, exclusive_times),
    TYPED: _Form(typed_instance, typed_record, typed_times),
}


class Sides:
    """Makes the schedules of the same jobs on one cluster or another."""

    def __init__(
        self,
        problem: Problem,
        trace: Trace,
        jobs: Sequence[TraceJob],
        recorded: bool,
        time_limit: float,
        memory_limit: float,
        seed: int,
        bar: Progress,
        slot: float,
    ) -> None:
        self.problem, self.trace, self.jobs, self.recorded = problem, trace, list(jobs), recorded
        self.time_limit, self.memory, self.seed, self.bar = time_limit, memory_limit, seed, bar
        self.slot = slot
        self.form = _FORMS.get(problem.id)
        self.clashes: tuple[Clash, ...] = ()
        self.notes: list[str] = []
        self.usual: float | None = None

    def side(
        self,
        servers: Sequence[TraceServer],
        what: str,
        methods: Sequence[str] | None,
        scheduler: str | None,
        what_if: bool = False,
        slowdown: float | None = None,
    ) -> Side:
        """Every schedule on this cluster; where a slowdown is given, of jobs of which two may share a GPU."""
        capacity = sum(server.gpus for server in servers)
        shipped = self.methods(methods)
        too_large = sum(job.gpus > capacity for job in self.jobs)
        if self.problem.id == BASE and too_large:
            return Side(capacity, f"{what} (too few for {counted(too_large, 'job')})", tuple(servers))
        instance = self._instance(servers)
        if slowdown is not None and isinstance(instance, GpuSharingInstance):
            instance = shared_instance(instance, slowdown)
        rows: list[Row] = []
        if not what_if:
            self._tell_assumptions()
            if self.recorded and self.form is not None and self.form.record is not None:
                rows += self._record(instance, servers)
        users = []
        if scheduler is not None:  # before the others, so that one that cannot be imported is told at once
            with self.bar.at_work(scheduler):
                users.append(self._users(instance, scheduler))
        bound = self._bound(instance)
        for method in shipped:
            with self.bar.at_work(method.id):
                rows.append(self._run(instance, method, bound is not None))
        rows += users
        if bound is None and self.problem.id == BASE:
            bound = float(np.mean([job.iterations for job in instance.jobs]))  # type: ignore[attr-defined]
            self.notes.append("the bound is the trivial one, every job alone: a better one took too long")
        certified = None if bound is None else self._unit(instance) * bound
        ids = tuple(job.id for job in self.jobs)
        minimises = self.problem.sense == MINIMISE
        return Side(capacity, what, tuple(servers), tuple(rows), certified, minimises, ids, slowdown)

    def methods(self, names: Sequence[str] | None) -> list[Method]:
        """The schedulers of the problem that go by these names; all where none is given."""
        heuristics = [method for method in self.problem.heuristics() if not method.is_user_defined]
        every = [*heuristics[::-1], *(method for method in self.problem.methods if method.kind is Kind.SEARCH)]
        inside_first = sorted(every, key=lambda method: method.outside_model)
        if names is None:
            return inside_first
        for name in names:
            if name not in {method.id for method in every}:
                ids = ", ".join(method.id for method in every)
                raise InputError(f"--methods: {self.problem.id} has no scheduler {name!r} here (schedulers: {ids})")
        return [method for method in inside_first if method.id in names]

    def _instance(self, servers: Sequence[TraceServer]) -> Instance:
        """The jobs with GPUs of their own, or as another problem's importer makes them with its defaults."""
        if self.form is not None:
            made: Instance = self.form.instance(self.trace.name, self.jobs, servers, self.slot)
            return made
        importer = find_importer(self.problem, "csv")
        target: Callable[[Trace], Instance] = importer.function.passes_on_to[0]  # type: ignore[attr-defined]
        return target(replace(self.trace, jobs=self.jobs, servers=list(servers)))

    def _tell_assumptions(self) -> None:
        if self.problem.id == TYPED:
            self.notes += [
                "a job that asked for a type may use only that, another any; all types are equally fast",
                "utility: GPU time over the time from submission to end, summed over jobs; jobs may be interrupted",
            ]
        elif self.recorded and self.problem.id != BASE:
            self.notes.append(f"the record is no schedule of {self.problem.id}: schedulers and bound only")

    def _unit(self, instance: Instance) -> float:
        """Seconds of a slot where the objective is a time of gpu-sharing; 1 where it is told as it is."""
        return instance.slot_length if self.problem.id == BASE else 1.0  # type: ignore[attr-defined]

    def _record(self, instance: Instance, servers: Sequence[TraceServer]) -> list[Row]:
        """The record's row; none where the log says too little for it."""
        assert self.form is not None and self.form.record is not None
        rebuilt = self.form.record(self.jobs, servers, self.slot)
        if rebuilt is None:
            self.notes.append("the log does not say on which servers jobs ran, and so on which types: no record")
            return []
        solution, self.clashes = rebuilt
        report = self.problem.check(instance, solution)
        if report.violations or report.objective is None:
            first = report.violations[0].message if report.violations else "no objective"
            return [Row(RECORDED, "infeasible", reason=f"{len(report.violations)} violations: {first}")]
        found, times = self._scores(instance, solution, report.details["completion"])
        objective = self._unit(instance) * float(report.objective)
        return [Row(RECORDED, RECORDED, objective, found, solution=solution, times=times)]

    def _scores(
        self, instance: Instance, solution: Solution, completion: Mapping[str, int]
    ) -> tuple[Scores | None, Times | None]:
        """None where the problem has no audit of its own, or a job did not finish."""
        times = None if self.form is None else self.form.times(instance, solution, completion)
        if times is None:
            return None, None
        submit, start, end = times
        if self.usual is None:
            self.usual = present(submit, end)
        capacity = instance.total_gpus  # type: ignore[attr-defined]
        return scores(self.jobs, submit, start, end, capacity, self.usual), times

    def _bound(self, instance: Instance) -> float | None:
        """The certified bound; None where it takes more than the time of three schedulers, or the memory."""
        found = self._limited(lambda: self.problem.certified_bound(instance), 3 * self.time_limit, "the bound")
        return None if isinstance(found, str) else found

    def _limited(self, work: Callable[[], Any], seconds: float, what: str) -> Any:
        """What `work` returns, or why it was ended."""
        budget = Budget(Deadline.after(seconds), memory=round(self.memory * 2**30))
        answer = None
        try:
            with self.bar.at_work(what), budget:
                answer = work()
        except OutOfBudgetError:
            budget.end()
        except MemoryError:
            return f"needs more than the {self.memory:g} GB it may take"
        return (
            answer if budget.over is None else f"cut after {seconds:g} s: {budget.reason}" if budget.reason else "cut"
        )

    def _run(self, instance: Instance, method: Method, bounded: bool) -> Row:
        """A shipped scheduler; a run that is cut has no figure."""
        warm_once(self.problem, method, {})
        began = time.monotonic()
        if method.kind is Kind.SEARCH:
            if bounded:
                return self._search(instance, method)
            return Row(method.id, "not run", reason="there is no bound yet")
        deadline = Deadline.after(self.time_limit)
        limit = {"deadline": deadline} if method.has_keyword("deadline") else {}
        given: dict[str, Any] = {"seed": self.seed, **limit}
        answer = self._limited(lambda: method.call(instance, **given), self.time_limit, method.id)
        seconds = time.monotonic() - began
        if isinstance(answer, str) or answer is None:
            return Row(method.id, "no figure", reason=answer or "found nothing", seconds=seconds)
        run: HeuristicRun = answer
        if run.solution is None or run.info.get("stopped") == "time limit":
            why = str(run.info.get("reason") or f"not finished in {self.time_limit:g} s")
            return Row(method.id, "no figure", reason=why, seconds=seconds)
        return self._judged(instance, method, run.solution, seconds, run)

    def _judged(
        self, instance: Instance, method: Method, solution: Solution, seconds: float, run: HeuristicRun | None = None
    ) -> Row:
        """The checker's word on a schedule, within the time of another scheduler."""
        outside = method.outside_model or bool(run is not None and run.info.get("outside_model"))
        if outside and method.checker is None:
            return Row(method.id, "outside the model", seconds=seconds, reason="no checker: no figure")
        check = method.checker() if outside and method.checker is not None else self.problem.check
        report = self._limited(lambda: check(instance, solution), 2 * self.time_limit, f"checking {method.id}")
        if isinstance(report, str):
            return Row(method.id, "no figure", reason=f"its check: {report}", seconds=seconds)
        if report.violations or report.objective is None:
            why = report.violations[0].message if report.violations else "it has no objective"
            return Row(method.id, "infeasible", reason=why, seconds=seconds)
        objective = self._unit(instance) * float(report.objective)
        if outside:
            why = "jobs may be interrupted or resized: no ratio"
            return Row(method.id, "outside the model", objective, None, why, seconds, solution)
        found, times = self._scores(instance, solution, report.details.get("completion", {}))
        return Row(method.id, "feasible", objective, found, "", seconds, solution, times)

    def _search(self, instance: Instance, method: Method) -> Row:
        options = SolveOptions(
            deadline=Deadline.after(self.time_limit), seed=self.seed, memory_limit=round(self.memory * 2**30)
        )
        result = run_method(self.problem, instance, method, options)
        if result.solution is None:
            why = str(result.info.get("reason", "found nothing"))
            return Row(method.id, "no figure", reason=why, seconds=result.seconds)
        row = self._judged(instance, method, result.solution, result.seconds or 0.0)
        return replace(row, reason=row.reason or f"search of {self.time_limit:g} s")

    def _users(self, instance: Instance, scheduler: str) -> Row:
        """The user's scheduler, in a process of its own."""
        from schedgap.tools.evaluation.contained import Bounds, Contained, Failed  # a tool that may not be here

        bounds = Bounds(self.time_limit, round(self.memory * 2**30))
        with Contained(scheduler, self.problem, bounds) as contained:
            try:
                solution = contained(instance, seed=self.seed)
            except Failed as error:
                return Row(scheduler, "no figure", reason=str(error))
            if solution is None:
                return Row(scheduler, "no figure", reason="found nothing", seconds=contained.seconds)
            try:
                return self._judged(instance, contained.method(), solution, contained.seconds or math.nan)
            except InputError as error:
                return Row(scheduler, "infeasible", reason=f"no solution of {self.problem.id}: {error}")
