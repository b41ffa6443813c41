"""One instance, all answers: an exhaustive search decides, and nobody may claim anything else.

Every answer is compared: status, objective and bound of the default exact method and of the same method with some of
its stages only, the certified bound, an engine on the declarative model, a heuristic, and certificates, true ones and
false ones that are asked for.
"""

from __future__ import annotations

import contextlib
import math
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from gate.gates import GATES
from oracles import TooManyError

from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.content import Certificate
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import Effort, check, prove
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Result, SolveOptions, Status

EFFORT = Effort(leaves=40, size=800)
"""Of a certificate."""


EVERY = {"engine": 6, "certificate": 3, "heuristic": 2}
"""One in so many instances is asked these."""


def _doctored(certificate: Certificate, claim: Fraction | None, sense: int) -> Iterator[Certificate]:
    """The same certificate with another claim; and with options that leave room for the claim."""
    false = certificate | {"claim": "infeasible" if claim is None else str(claim)}
    yield false
    if claim is not None and isinstance(certificate.get("options"), dict):
        room = {"horizon": math.floor(claim) - 1, "cutoff": str(claim + sense * abs(claim))}
        changed = {name: room[name] for name in certificate["options"] if name in room}
        if changed:
            yield false | {"options": certificate["options"] | changed}


@dataclass
class Record:
    """What one instance, or many, came to.

    Attributes
    ----------
    instances, infeasible, skipped : how many there were, had no schedule, were too large for the search
    answers : by kind
    decided : proofs by stage
    owed, let_off : answers that owe a proof and certificates that are asked; those that end with a reason instead
    open : what has no proof, by its kind and reason
    faults : (file or name of the instance, what is wrong)
    """

    instances: int = 0
    infeasible: int = 0
    skipped: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    owed: Counter[str] = field(default_factory=Counter)
    let_off: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Record) -> None:
        """Count another one in."""
        for name in ("instances", "infeasible", "skipped", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("answers", "owed", "let_off", "decided", "open"):
            getattr(self, name).update(getattr(other, name))
        self.faults.extend(other.faults)


class Examination:
    """All answers to one instance.

    Parameters
    ----------
    instance, numbers : a number chooses what is asked beside the default method; the same question is asked once
    """

    def __init__(self, instance: Instance, numbers: Iterable[int], scratch: Path) -> None:
        self.problem: Problem = find_problem(instance.problem)
        self.gate = GATES[instance.problem]
        self.instance = instance
        self.numbers = numbers
        self.scratch = scratch
        self.record = Record()
        self.optimum: Fraction | None = None
        self.solution: Solution | None = None

    def run(self) -> Record:
        """Ask everybody."""
        try:
            self.optimum, self.solution = self.gate.truth(self.instance)
        except TooManyError:
            self.record.skipped = 1
            return self.record
        self.record.instances, self.record.infeasible = 1, int(self.optimum is None)
        asked = {label: ask for number in self.numbers for label, ask in self._questions(number)}
        for label, ask in asked.items():
            try:
                ask()
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(last.filename).name}:{last.lineno}"
                self._fault(f"{label}: {type(error).__name__} at {place}: {error}"[:400])
        return self.record

    def _questions(self, turn: int) -> Iterator[tuple[str, Callable[[], None]]]:
        methods = self.problem.methods
        engines = [method.id for method in methods if method.kind is Kind.ENGINE]
        heuristics = [method.id for method in methods if method.kind is Kind.HEURISTIC and not method.outside_model]
        if self.solution is not None or self.optimum is None:
            yield "checker", self._checker
        default = self.problem.default_method(self.instance).id
        yield default, lambda: self._exact(default, self._method(default, SolveOptions(threads=1)))
        turns = [self.gate.stages[place % len(self.gate.stages)] for place in range(turn, turn + self.gate.sets)]
        for stages in dict.fromkeys([*turns, *self.gate.always(self.instance)]):
            yield " + ".join(sorted(stages)), partial(self._staged, stages)
        yield "bound", self._bound
        if turn % EVERY["engine"] == 0:
            name = engines[turn // EVERY["engine"] % len(engines)]
            yield f"engine {name}", partial(self._engine, name)
        if turn % EVERY["heuristic"] == 0:
            chosen = heuristics[turn // EVERY["heuristic"] % len(heuristics)]
            yield chosen, partial(self._heuristic, chosen)
        yield "certified bound", self._certified_bound
        if turn % EVERY["certificate"] == 0:
            yield "certificate", self._certificate
            yield "false certificate", self._false_certificates

    def _method(self, name: str, options: SolveOptions) -> Result:
        return run_method(self.problem, self.instance, name, options, disagreements=self.scratch)

    def _heuristic(self, name: str) -> None:
        self._feasible(name, self._method(name, SolveOptions()))

    def _staged(self, stages: frozenset[str]) -> None:
        """The exact method with some of its stages, from a poor schedule where it needs one."""
        options = SolveOptions(threads=1, stages=stages, start=self._poor(stages))
        label = " + ".join(sorted(stages))
        try:
            solve = self.gate.solve
            result = self._method("highs", options) if solve is None else solve(self.instance, options)
        except ModelRefused:
            self.record.open[f"{label} refuses"] += 1
            return
        decided = result.info.get("decided by", "")
        known = stages | {"placements"} | ({"root node"} if "branch and price" in stages else set())
        if decided and decided not in known:
            self._fault(f"{label}: decided by {decided}, which was not asked")
        self._exact(label, result, owed=bool(stages & self.gate.complete))

    def _first(self) -> Solution | None:
        """A first schedule for an engine of gang-placement, as every solve with a limit gives it one.

        Its objective goes up to 1e12: without a schedule CP-SAT was seen to walk there in single steps, without end.
        """
        if self.problem.id != "gang-placement":
            return None
        return self._method("kueue-best-fit", SolveOptions()).solution

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
        report, way = self.problem.check(self.instance, self.solution), self.gate.gives_way
        if not report.feasible or report.objective is None:
            self._fault(f"checker: refuses the schedule of the exhaustive search: {report.violations[:1]}")
        elif self._beyond(report.objective, self.optimum, way) or self._beyond(self.optimum, report.objective, way):
            self._fault(f"checker: {float(report.objective)!r} for a schedule of {float(self.optimum)!r}")

    def _exact(self, label: str, result: Result, *, owed: bool = True) -> None:
        """An answer without any limit: `owed`, a proof, or the reason why there is none."""
        self.record.answers["exact"] += 1
        reason = str(result.info.get("reason") or result.info.get("doubt") or "")
        self.record.owed["proofs"] += owed
        if result.status is Status.ERROR:
            self._fault(f"{label}: ends with an error: {reason}")
        elif result.status.needs_proof:
            self.record.decided[str(result.info.get("decided by", "before any stage"))] += 1
        elif owed and not reason:
            self._fault(f"{label}: ends with {result.status.value} ({result.termination}) and no reason")
        else:
            self.record.let_off["proofs"] += owed
            self.record.open[f"{label} ({re.sub(r'[0-9].*', '...', reason)})" if reason else label] += 1
        if result.status is Status.OPTIMAL and self.optimum is not None and result.objective is not None:
            if self._beyond(self.optimum, result.objective, self._near):
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
            elif self.optimum is None or self._beyond(report.objective, self.optimum, self.gate.gives_way):
                self._fault(f"{label}: finds {float(report.objective)!r}, the optimum is {self._shown()}")
        self._not_beyond(label, result.bound)

    def _not_beyond(self, label: str, bound: float | Fraction | None, near: float | None = None) -> None:
        near = self._near if near is None else near
        if bound is not None and self.optimum is not None and self._beyond(self.optimum, bound, near):
            self._fault(f"{label}: the bound {float(bound)!r} is beyond the optimum {self._shown()}")

    def _bound(self) -> None:
        self.record.answers["bound"] += 1
        self._not_beyond("bound", self.problem.bound(self.instance))

    def _engine(self, name: str) -> None:
        try:
            model = self.problem.model(self.instance)
            result = self._method(name, SolveOptions(threads=1, start=self._first()))
            self._exact(name, result, owed=model is None or not model.restriction)
        except ModelRefused:
            self.record.open[f"{name} refuses"] += 1

    def _certified_bound(self) -> None:
        try:
            certificate = prove_bound(self.instance)
        except Unproven:
            return
        self._accepted("certified bound", certificate)

    def _certificate(self) -> None:
        """Of the optimum, or that there is none."""
        self.record.owed["certificates"] += 1
        try:
            certificate = prove(self.instance, self.optimum, self.solution, EFFORT)
        except Unproven:
            self.record.let_off["certificates"] += 1
            return
        self._accepted("certificate", certificate)

    def _accepted(self, label: str, certificate: Certificate) -> None:
        """What the checker accepts is true, and not accepted any more where something false is claimed by it."""
        self.record.answers[label] += 1
        self._true(label, check(self.instance, certificate))
        for claim in self._false_claims():
            for doctored in _doctored(certificate, claim, self.problem.sense):
                self.record.answers["doctored certificate"] += 1
                with contextlib.suppress(Rejected):
                    self._true(f"doctored {label}", check(self.instance, doctored))

    def _true(self, label: str, verdict: Verdict) -> None:
        if verdict.bound is not None:
            self._not_beyond(label, verdict.bound, self.gate.gives_way)
        elif self.optimum is not None:
            self._fault(f"{label}: proves that there is no schedule, the optimum is {self._shown()}")

    def _false_claims(self) -> list[Fraction | None]:
        """A value better than the optimum by one step; None, no schedule, where there is one."""
        if not self.optimum:
            return []
        whole = {"rar-ddls": Fraction(1), "gpu-sharing": Fraction(1, len(getattr(self.instance, "jobs", "1")))}
        step = whole.get(self.problem.id, abs(self.optimum) / 10**6)
        return [self.optimum + self.problem.sense * step, None]

    def _false_certificates(self) -> None:
        """Our own maker is asked for what is false."""
        # that there is no schedule can be claimed only where there might be none
        perhaps = self.problem.id in ("rar-ddls", "gpu-sharing") or getattr(
            self.instance, "all_jobs_must_finish", False
        )
        for claim in self._false_claims():
            if claim is not None or perhaps:
                self.record.answers["false certificate"] += 1
                with contextlib.suppress(Unproven):
                    self._true("false certificate", check(self.instance, prove(self.instance, claim, None, EFFORT)))

    @property
    def _near(self) -> float:
        """What a claim in floats may be off by: a little more than its problem's, for the floats themselves."""
        return self.gate.near * (1 + 1e-6) + 1e-15

    def _beyond(self, better: float | Fraction, than: float | Fraction, near: float) -> bool:
        """Whether the first number is better than the second by more than `near`, relative."""
        gain = self.problem.sense * (Fraction(than) - Fraction(better))
        return gain > Fraction(near) * max(abs(Fraction(better)), abs(Fraction(than)))

    def _shown(self) -> str:
        return "none" if self.optimum is None else repr(float(self.optimum))

    def _fault(self, text: str) -> None:
        self.record.faults.append((self.instance.name, text))
