"""One instance, all answers: an exhaustive search decides, and nobody may claim anything else.

Every answer is compared: status, objective and bound of a method, the certified bound, an engine on the declarative
model, a heuristic, certificates, true ones and false ones that are asked for, and solutions that were tampered with.
"""

from __future__ import annotations

import contextlib
import math
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError, ModelRefused
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.content import Certificate
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import Effort, check, prove
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Result, SolveOptions, Status

EFFORT = Effort(leaves=40, size=800)
"""Effort that a certificate may take."""


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
    answers : answers by kind
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


def _changed(value: Json) -> Iterator[Json]:
    """The same with one number one more or less, one entry left out, or two entries of a list in each other's place."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield from (value + 1, value - 1)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield {name: other for name, other in value.items() if name != key}
            yield from ({**value, key: new} for new in _changed(inner))
    else:
        for place, inner in enumerate(value):
            yield [*value[:place], *value[place + 1 :]]
            yield from ([*value[:place], new, *value[place + 1 :]] for new in _changed(inner))
        if len(value) > 1:
            yield [value[1], value[0], *value[2:]]


class Examination:
    """All answers to one instance.

    Parameters
    ----------
    optimum : exact optimum; None where the instance has no schedule
    solution : a schedule that has it, where it is known
    near : relative, what claims in floats may be off by
    gives_way : relative, how much better than the optimum a schedule may be to the checker
    scratch : folder of the instances on which parts disagree
    """

    def __init__(
        self,
        problem: Problem,
        instance: Instance,
        optimum: Fraction | None,
        solution: Solution | None,
        *,
        near: float,
        gives_way: float,
        scratch: Path,
    ) -> None:
        self.problem, self.instance = problem, instance
        self.optimum, self.solution = optimum, solution
        self.given_near, self.gives_way = near, gives_way
        self.scratch = scratch
        self.record = Record(instances=1, infeasible=int(optimum is None))

    def ask(self, questions: Mapping[str, Callable[[], None]]) -> Record:
        """Ask every question; one that raises is a fault."""
        for label, question in questions.items():
            try:
                question()
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(last.filename).name}:{last.lineno}"
                self.fault(f"{label}: {type(error).__name__} at {place}: {error}"[:400])
        return self.record

    def answer(self, name: str, options: SolveOptions) -> Result:
        """What a method says."""
        return run_method(self.problem, self.instance, name, options, disagreements=self.scratch)

    def heuristic(self, name: str) -> None:
        """A heuristic's schedule."""
        self.judge_schedule(name, self.answer(name, SolveOptions()))

    def first(self) -> Solution | None:
        """A first schedule for an engine that needs one."""
        return None

    def checker(self) -> None:
        if self.solution is None:
            return
        assert self.optimum is not None
        report, way = self.problem.check(self.instance, self.solution), self.gives_way
        if not report.feasible or report.objective is None:
            self.fault(f"checker: refuses the schedule of the exhaustive search: {report.violations[:1]}")
        elif self._beyond(report.objective, self.optimum, way) or self._beyond(self.optimum, report.objective, way):
            self.fault(f"checker: {float(report.objective)!r} for a schedule of {float(self.optimum)!r}")

    def judge_answer(self, label: str, result: Result, *, owed: bool = True) -> None:
        """An answer without any limit: `owed`, a proof, or the reason why there is none."""
        self.record.answers["exact"] += 1
        reason = str(result.info.get("reason") or result.info.get("doubt") or "")
        self.record.owed["proofs"] += owed
        if result.status is Status.ERROR:
            self.fault(f"{label}: ends with an error: {reason}")
        elif result.status.needs_proof:
            self.record.decided[str(result.info.get("decided by", "before any stage"))] += 1
        elif owed and not reason:
            self.fault(f"{label}: ends with {result.status.value} ({result.termination}) and no reason")
        else:
            self.record.let_off["proofs"] += owed
            self.record.open[f"{label} ({re.sub(r'[0-9].*', '...', reason)})" if reason else label] += 1
        if result.status is Status.OPTIMAL and self.optimum is not None and result.objective is not None:
            if self._beyond(self.optimum, result.objective, self._near):
                self.fault(f"{label}: says optimal of {result.objective!r}, the optimum is {float(self.optimum)!r}")
        elif result.status is Status.OPTIMAL:
            self.fault(f"{label}: says optimal of an instance without a schedule")
        if result.status in (Status.INFEASIBLE, Status.UNBOUNDED) and self.optimum is not None:
            self.fault(f"{label}: says {result.status.value}, the optimum is {float(self.optimum)!r}")
        self.judge_schedule(label, result, counted=False)

    def judge_schedule(self, label: str, result: Result, *, counted: bool = True) -> None:
        """The schedule is one, and not better than the optimum; no bound is beyond the optimum."""
        self.record.answers["heuristic"] += counted
        if result.solution is not None:
            report = self.problem.check(self.instance, result.solution)
            if not report.feasible or report.objective is None:
                self.fault(f"{label}: the checker refuses its schedule: {report.violations[:1]}")
            elif self.optimum is None or self._beyond(report.objective, self.optimum, self.gives_way):
                self.fault(f"{label}: finds {float(report.objective)!r}, the optimum is {self._shown()}")
        self.judge_bound(label, result.bound)

    def judge_bound(self, label: str, bound: float | Fraction | None, near: float | None = None) -> None:
        near = self._near if near is None else near
        if bound is not None and self.optimum is not None and self._beyond(self.optimum, bound, near):
            self.fault(f"{label}: the bound {float(bound)!r} is beyond the optimum {self._shown()}")

    def bound(self) -> None:
        self.record.answers["bound"] += 1
        self.judge_bound("bound", self.problem.bound(self.instance))

    def engine(self, name: str) -> None:
        try:
            model = self.problem.model(self.instance)
            result = self.answer(name, SolveOptions(threads=1, start=self.first()))
            self.judge_answer(name, result, owed=model is None or not model.restriction)
        except ModelRefused:
            self.record.open[f"{name} refuses"] += 1

    def tampered(self) -> None:
        """The checker and a schedule with one number or entry changed: refused, or no better than the optimum."""
        if self.solution is None or self.optimum is None:
            return
        for changed in _changed(self.solution):
            self.record.answers["tampered schedule"] += 1
            try:
                report = self.problem.check(self.instance, changed)
            except InputError:
                continue
            if report.feasible and (
                report.objective is None or self._beyond(report.objective, self.optimum, self.gives_way)
            ):
                self.fault(f"checker: accepts {changed} as {report.objective}, the optimum is {self._shown()}")

    def certified_bound(self) -> None:
        try:
            certificate = prove_bound(self.instance)
        except Unproven:
            return
        self.judge_certificate("certified bound", certificate)

    def certificate(self) -> None:
        """A certificate of the optimum, or that there is no schedule."""
        self.record.owed["certificates"] += 1
        try:
            certificate = prove(self.instance, self.optimum, self.solution, EFFORT)
        except Unproven:
            self.record.let_off["certificates"] += 1
            return
        self.judge_certificate("certificate", certificate)

    def judge_certificate(self, label: str, certificate: Certificate) -> None:
        """What the checker accepts is true, and not accepted any more where something false is claimed by it."""
        self.record.answers[label] += 1
        self.judge_verdict(label, check(self.instance, certificate))
        for claim in self.false_claims():
            for doctored in _doctored(certificate, claim, self.problem.sense):
                self.record.answers["doctored certificate"] += 1
                with contextlib.suppress(Rejected):
                    self.judge_verdict(f"doctored {label}", check(self.instance, doctored))

    def judge_verdict(self, label: str, verdict: Verdict) -> None:
        if verdict.bound is not None:
            self.judge_bound(label, verdict.bound, self.gives_way)
        elif self.optimum is not None:
            self.fault(f"{label}: proves that there is no schedule, the optimum is {self._shown()}")

    def false_claims(self) -> list[Fraction | None]:
        """A value better than the optimum by one step; None, no schedule, where there is one."""
        if not self.optimum:
            return []
        return [self.optimum + self.problem.sense * self.step(), None]

    def step(self) -> Fraction:
        """The amount by which a false claim is better than the optimum."""
        assert self.optimum is not None
        return abs(self.optimum) / 10**6

    def may_be_infeasible(self) -> bool:
        """Whether a maker of certificates can be asked for a proof that there is no schedule."""
        return False

    def false_certificates(self) -> None:
        """Our own maker is asked for what is false."""
        for claim in self.false_claims():
            if claim is not None or self.may_be_infeasible():
                self.record.answers["false certificate"] += 1
                with contextlib.suppress(Unproven):
                    self.judge_verdict(
                        "false certificate", check(self.instance, prove(self.instance, claim, None, EFFORT))
                    )

    @property
    def _near(self) -> float:
        """What a claim in floats may be off by: a little more than its problem's, for the floats themselves."""
        return self.given_near * (1 + 1e-6) + 1e-15

    def _beyond(self, better: float | Fraction, than: float | Fraction, near: float) -> bool:
        """Whether the first number is better than the second by more than `near`, relative."""
        gain = self.problem.sense * (Fraction(than) - Fraction(better))
        return gain > Fraction(near) * max(abs(Fraction(better)), abs(Fraction(than)))

    def _shown(self) -> str:
        return "none" if self.optimum is None else repr(float(self.optimum))

    def fault(self, text: str) -> None:
        self.record.faults.append((self.instance.name, text))
