"""One instance, all answers: an exhaustive search decides, and nobody may claim anything else.

Every answer is compared: status, objective and bound of the default exact method and of the same method with some of
its stages only, the certified bound, an engine on the declarative model, a heuristic, and certificates, true ones and
false ones that are asked for.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from schedgap.benchmarks.studies.brute_force import (
    comm_contention,
    ddl_cluster,
    ddljs,
    g_vne,
    gpu_sharing,
    hadar,
    rar_ddls,
)
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates.bounds import prove_bound
from schedgap.solvers.certificates.make import Effort, check, prove
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.comm_contention.branch_and_bound import solve_bb
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp as solve_cluster
from schedgap.solvers.exact.g_vne.colgen import solve_colgen as solve_rings
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp as solve_sharing
from schedgap.solvers.exact.hadar.colgen import solve_colgen as solve_hadar
from schedgap.solvers.exact.rar_ddls.cp import solve_cp as solve_rar
from schedgap.solvers.result import Result, SolveOptions, Status

Solve = Callable[[Any, SolveOptions], Result]
Truth = tuple[Fraction | None, Solution | None]
"""The optimum, None where there is no schedule; and a schedule that has it, where the search tells."""

EFFORT = Effort(leaves=40, size=800)
"""Of a certificate."""


def _rar_ddls(instance: Any) -> Truth:
    found = rar_ddls.brute_force(instance, 20_000)
    return (None, None) if found is None else (Fraction(found[0]), found[1])


def _gpu_sharing(instance: Any) -> Truth:
    found = gpu_sharing.brute_force(instance)
    jobs = len(instance.jobs)
    return None if found is None else Fraction(round(found * jobs), jobs), None


def _hadar(instance: Any) -> Truth:
    found = hadar.brute_force(instance, 3_000)
    return (None, None) if found is None else found


def _ddljs(instance: Any) -> Truth:
    value, solution = ddljs.brute_force(instance, 20_000)
    return Fraction(value), solution


def _ddl_cluster(instance: Any) -> Truth:
    return Fraction(ddl_cluster.optimum(instance)), None


@dataclass(frozen=True)
class Gate:
    """What is asked of one problem.

    Attributes
    ----------
    truth : the exhaustive search
    solve : the exact method, None for the engines alone
    stages : sets of its stages that are asked beside all of them, in turn
    sets : how many of them an instance is asked
    near : relative, what objectives may differ by: 0 where both are exact
    count : instances of one run
    """

    truth: Callable[[Any], Truth]
    solve: Solve | None
    stages: tuple[frozenset[str], ...]
    sets: int
    near: float
    count: int


def _sets(*texts: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split(" + ")) for text in texts)


GATES: dict[str, Gate] = {
    "rar-ddls": Gate(
        _rar_ddls,
        solve_rar,
        _sets(
            "interval model",
            "local search + slot packing",
            "slot packing + interval model",
            "packing without crossing + slot packing",
            "bound + packing without crossing + interval model",
        ),
        3,
        0.0,
        2_000,
    ),
    "gpu-sharing": Gate(
        _gpu_sharing,
        solve_sharing,
        _sets("cp-sat", "linear programs + cp-sat", "dynamic program", "linear programs + dynamic program"),
        1,
        0.0,
        1_000,
    ),
    "hadar": Gate(
        _hadar,
        solve_hadar,
        _sets(
            "branch and price", "cuts + local search", "cuts + branch and price", "integer master", "compact program"
        ),
        3,
        2e-9,
        2_000,
    ),
    "g-vne": Gate(
        lambda instance: g_vne.brute_force(instance, 300),
        solve_rings,
        _sets("branch and price", "cuts + local search", "cuts + branch and price"),
        3,
        2e-9,
        2_000,
    ),
    "ddljs": Gate(_ddljs, None, _sets("engine", "start + engine"), 1, 2e-9, 600),
    "comm-contention": Gate(
        comm_contention.brute_force, solve_bb, _sets("whole tree", "bound + first nodes"), 2, 2e-9, 500
    ),
    "ddl-cluster": Gate(
        _ddl_cluster,
        solve_cluster,
        _sets("bound + job shop", "bound + policies", "grid model", "policies + grid model"),
        3,
        2e-8,
        400,
    ),
}
EVERY = {"engine": 6, "certificate": 3, "heuristic": 2}
"""One in so many instances is asked these."""


@dataclass
class Record:
    """What one instance, or many, came to.

    Attributes
    ----------
    instances, infeasible, skipped : how many there were, had no schedule, were too large for the search
    answers : by kind
    decided : proofs by stage
    open : exact answers without a proof
    faults : (file or name of the instance, what is wrong)
    """

    instances: int = 0
    infeasible: int = 0
    skipped: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Record) -> None:
        """Count another one in."""
        for name in ("instances", "infeasible", "skipped", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("answers", "decided", "open"):
            getattr(self, name).update(getattr(other, name))
        self.faults.extend(other.faults)


class Examination:
    """All answers to one instance.

    Parameters
    ----------
    instance, number : the number chooses what is asked beside the default method
    """

    def __init__(self, instance: Instance, number: int, scratch: Path) -> None:
        self.problem: Problem = find_problem(instance.problem)
        self.gate = GATES[instance.problem]
        self.instance = instance
        self.number = number
        self.scratch = scratch
        self.record = Record()
        self.optimum: Fraction | None = None
        self.solution: Solution | None = None

    def run(self) -> Record:
        """Ask everybody."""
        try:
            self.optimum, self.solution = self.gate.truth(self.instance)
        except RuntimeError:
            self.record.skipped = 1
            return self.record
        self.record.instances, self.record.infeasible = 1, int(self.optimum is None)
        for label, ask in self._questions():
            try:
                ask()
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(last.filename).name}:{last.lineno}"
                self._fault(f"{label}: {type(error).__name__} at {place}: {error}"[:400])
        return self.record

    def _questions(self) -> Iterator[tuple[str, Callable[[], None]]]:
        methods = self.problem.methods
        engines = [method.id for method in methods if method.kind is Kind.ENGINE]
        heuristics = [method.id for method in methods if method.kind is Kind.HEURISTIC and not method.outside_model]
        turn = self.number
        if self.solution is not None or self.optimum is None:
            yield "checker", self._checker
        default = next(method.id for method in methods)
        yield default, lambda: self._exact(default, self._method(default, SolveOptions(threads=1)))
        for place in range(turn, turn + self.gate.sets):
            stages = self.gate.stages[place % len(self.gate.stages)]
            yield " + ".join(sorted(stages)), partial(self._staged, stages)
        yield "bound", self._bound
        if turn % EVERY["engine"] == 0:
            name = engines[turn // EVERY["engine"] % len(engines)]
            yield name, lambda: self._engine(name)
        if turn % EVERY["heuristic"] == 0:
            chosen = heuristics[turn // EVERY["heuristic"] % len(heuristics)]
            yield chosen, lambda: self._feasible(chosen, self._method(chosen, SolveOptions()))
        yield "certified bound", self._certified_bound
        if turn % EVERY["certificate"] == 0:
            yield "certificate", self._certificate
            yield "false certificate", self._false_certificates

    def _method(self, name: str, options: SolveOptions) -> Result:
        return run_method(self.problem, self.instance, name, options, disagreements=self.scratch)

    def _staged(self, stages: frozenset[str]) -> None:
        """The exact method with some of its stages, from a poor schedule where it needs one."""
        options = SolveOptions(threads=1, stages=stages, start=self._poor(stages))
        label = " + ".join(sorted(stages))
        if self.gate.solve is None:
            self._exact(label, self._method("highs", options))
        else:
            self._exact(label, self.gate.solve(self.instance, options))

    def _poor(self, stages: frozenset[str]) -> Solution | None:
        """Jobs one after the other, the last first."""
        given: Any = self.instance
        if self.problem.id == "comm-contention":
            link = given.link
            clock, start = max(task.release for task in given.tasks), {}
            for task in sorted(given.tasks, key=lambda task: -task.size):
                start[task.id] = clock
                clock += 1.1 * (task.size * link.seconds_per_unit + link.latency)
            return {"start": start}
        if self.problem.id == "gpu-sharing" and "dynamic program" in stages:
            return self._method("fifo", SolveOptions()).solution
        return None

    def _checker(self) -> None:
        if self.solution is None:
            return
        assert self.optimum is not None
        report = self.problem.check(self.instance, self.solution)
        if not report.feasible or report.objective is None:
            self._fault(f"checker: refuses the schedule of the exhaustive search: {report.violations[:1]}")
        elif self._beyond(report.objective, self.optimum) or self._beyond(self.optimum, report.objective):
            self._fault(f"checker: {float(report.objective)!r} for a schedule of {float(self.optimum)!r}")

    def _exact(self, label: str, result: Result) -> None:
        self.record.answers["exact"] += 1
        if result.status.settled:
            self.record.decided[str(result.info.get("decided by", "before any stage"))] += 1
        else:
            self.record.open[label] += 1
        if result.status is Status.OPTIMAL and self.optimum is not None and result.objective is not None:
            if self._beyond(self.optimum, result.objective):
                self._fault(f"{label}: says optimal of {result.objective!r}, the optimum is {float(self.optimum)!r}")
        elif result.status is Status.OPTIMAL:
            self._fault(f"{label}: says optimal of an instance without a schedule")
        if result.status in (Status.INFEASIBLE, Status.UNBOUNDED) and self.optimum is not None:
            self._fault(f"{label}: says {result.status.value}, the optimum is {float(self.optimum)!r}")
        self._feasible(label, result, counted=False)

    def _feasible(self, label: str, result: Result, *, counted: bool = True) -> None:
        """The schedule is one, and not better than the optimum; no bound is beyond the optimum."""
        self.record.answers["heuristic"] += counted
        if result.solution is not None:
            report = self.problem.check(self.instance, result.solution)
            if not report.feasible or report.objective is None:
                self._fault(f"{label}: the checker refuses its schedule: {report.violations[:1]}")
            elif self.optimum is None or self._beyond(report.objective, self.optimum):
                self._fault(f"{label}: finds {float(report.objective)!r}, the optimum is {self._shown()}")
        self._not_beyond(label, result.bound)

    def _not_beyond(self, label: str, bound: float | Fraction | None) -> None:
        if bound is not None and self.optimum is not None and self._beyond(self.optimum, bound):
            self._fault(f"{label}: the bound {float(bound)!r} is beyond the optimum {self._shown()}")

    def _bound(self) -> None:
        self.record.answers["bound"] += 1
        self._not_beyond("bound", self.problem.bound(self.instance))

    def _engine(self, name: str) -> None:
        try:
            self._exact(name, self._method(name, SolveOptions(threads=1)))
        except ModelRefused:
            self.record.open[f"{name} refuses"] += 1

    def _certified_bound(self) -> None:
        try:
            verdict = check(self.instance, prove_bound(self.instance))
        except Unproven:
            return
        self.record.answers["certified bound"] += 1
        if verdict.bound is None:
            self._no_schedule("certified bound")
        self._not_beyond("certified bound", verdict.bound)

    def _certificate(self) -> None:
        """Of the optimum, or that there is none."""
        try:
            verdict = check(self.instance, prove(self.instance, self.optimum, self.solution, EFFORT))
        except Unproven:
            self.record.open["certificate"] += 1
            return
        self.record.answers["certificate"] += 1
        if verdict.bound is None:
            self._no_schedule("certificate")
        self._not_beyond("certificate", verdict.bound)

    def _no_schedule(self, label: str) -> None:
        if self.optimum is not None:
            self._fault(f"{label}: proves that there is no schedule, the optimum is {self._shown()}")

    def _false_certificates(self) -> None:
        """Of better than the optimum, and of no schedule where there is one: none may be accepted."""
        if not self.optimum:
            return
        whole = {"rar-ddls": Fraction(1), "gpu-sharing": Fraction(1, len(getattr(self.instance, "jobs", "1")))}
        step = whole.get(self.problem.id, abs(self.optimum) / 10**6)
        # that there is no schedule can be claimed only where there might be none
        perhaps = self.problem.id in ("rar-ddls", "gpu-sharing") or getattr(
            self.instance, "all_jobs_must_finish", False
        )
        for claim in (self.optimum + self.problem.sense * step, *([None] if perhaps else [])):
            try:
                verdict = check(self.instance, prove(self.instance, claim, None, EFFORT))
            except Unproven:
                continue
            finally:
                self.record.answers["false certificate"] += 1
            if verdict.bound is None:
                self._no_schedule("false certificate")
            self._not_beyond("false certificate", verdict.bound)

    def _beyond(self, better: float | Fraction, than: float | Fraction) -> bool:
        """Whether the first number is better than the second by more than rounding."""
        gain = self.problem.sense * (Fraction(than) - Fraction(better))
        return gain > Fraction(self.gate.near or 1e-12) * max(abs(Fraction(better)), abs(Fraction(than)))

    def _shown(self) -> str:
        return "none" if self.optimum is None else repr(float(self.optimum))

    def _fault(self, text: str) -> None:
        self.record.faults.append((self.instance.name, text))
