"""What is hunted: a heuristic's ratio to the optimum, or a guarantee's left/right; one instance evaluated."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from schedgap.benchmarks.judging.judge import evaluate
from schedgap.benchmarks.judging.users_claims import claims_of
from schedgap.catalogue.agreement import Answer, agree, write_disagreement
from schedgap.catalogue.method import Kind, Method, full_settings, one_line, own_method
from schedgap.catalogue.problem import Problem, ProblemOf
from schedgap.catalogue.registry import all_problems, find_method, find_problem
from schedgap.catalogue.run import run_heuristic, run_method
from schedgap.formulations.common.errors import Disagreement, InputError, near
from schedgap.formulations.common.instance import Instance, Json
from schedgap.heuristics.common.guarantee import OWN, Case, Evaluation, Guarantee, Verdict
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions, Status, Termination, clock

Judged = TypeVar("Judged")


MOST_KEPT = 3
"""Instances on which a user's heuristic raised that one stretch of a hunt writes to files."""


SEED = 0
"""The seed every heuristic runs with, that of ``compare`` where none is given."""


@dataclass(frozen=True)
class Target:
    """What is hunted."""

    problem: Problem  # whose instances are tried
    method: Method | None  # the heuristic; None for a claim about the problem itself
    guarantee: Guarantee | None = None  # the claim, or None where the ratio is hunted
    # what a line about an unfinished hunt ends with; empty where the command has no ``--resume``
    goes_on: str = "; --resume goes on"

    @property
    def id(self) -> str:
        """The name that the user gave: "000-theorem-5", "rar-ddls/sjf-bco"."""
        if self.guarantee is not None:
            return self.guarantee.id
        return f"{self.problem.id}/{self.method.id if self.method else ''}"


@dataclass(frozen=True)
class Probe:
    """An instance that was tried, and what came of it."""

    data: Mapping[str, Any]  # the instance as a JSON object without its name
    options: Mapping[str, Any]  # the heuristic's, beyond its defaults
    value: float  # the ratio to the proven optimum, or left/right of the claim
    # objective, optimum: where known
    objective: float | None = None
    optimum: float | None = None
    # left, right, reason: of the claim
    left: float | None = None
    right: float | None = None
    reason: str = ""
    refuted: bool = False  # the claim fails here

    @property
    def key(self) -> tuple[Json, ...]:
        """Orders what was found, the worst first, whoever found it: value, entries, length, text."""
        text = json.dumps([self.data, self.options], sort_keys=True)
        return -self.value, entries(self.data), len(text), text

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form; :meth:`from_dict` reads it."""
        return {name: finite_value(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Probe:
        """What :meth:`to_dict` wrote."""
        return cls(**{name: _in(value) for name, value in data.items()})


def entries(value: object) -> int:
    """Entries of all lists."""
    if isinstance(value, Mapping):
        return sum(entries(item) for item in value.values())
    return len(value) + sum(entries(item) for item in value) if isinstance(value, list) else 0


def finite_value(value: object) -> Json:
    """Infinity as the text that JSON can hold."""
    return "inf" if value == float("inf") and isinstance(value, float) else value


def _in(value: Any) -> Any:
    return float("inf") if value == "inf" else value


def find_target(name: str | Callable[..., object], problem: str | Problem | None = None) -> Target:
    """What ``schedgap hunt NAME`` means: a guarantee's id, ``PROBLEM/HEURISTIC``, or a callable with its problem.

    Raises InputError: there is no such thing, or nothing in it that a hunt could make worse.
    """
    if callable(name):
        if problem is None:
            raise InputError("hunt: a callable needs the problem whose instances it takes: problem=...")
        row = problem if isinstance(problem, ProblemOf) else find_problem(problem)
        return Target(row, own_method(name))
    rows = [problem] if isinstance(problem, ProblemOf) else list(all_problems().values())
    for row in rows:
        for guarantee in claims_of(row):
            if guarantee.id == name:
                return _claim(row, guarantee)
    first, slash, rest = name.partition("/")
    if not slash or not rest:
        whole = next((row for row in rows if row.id == name), None)
        if whole is not None:
            first_of = next((method.id for method in whole.heuristics()), "HEURISTIC")
            example = f"{name}/{first_of}"
            raise InputError(f"hunt: {name} is a problem: name a heuristic of it, such as {example}, or a guarantee")
        ids = [g.id for row in rows for g in claims_of(row)]
        known = f"one of: {', '.join(ids)}, or PROBLEM/HEURISTIC"
        raise InputError(f"hunt: unknown guarantee {name!r}, {known}{near(name, ids)}")
    row = problem if isinstance(problem, ProblemOf) and problem.id == first else find_problem(first, "hunt")
    method = find_method(row, rest)
    if method.kind is not Kind.HEURISTIC:
        raise InputError(f"hunt: {rest} is an exact method of {row.id}, there is no ratio to hunt")
    if method.outside_model:
        raise InputError(f"hunt: the schedules of {rest} are outside the model of {row.id}: no ratio to the optimum")
    return Target(row, method)


def _claim(problem: Problem, guarantee: Guarantee) -> Target:
    if guarantee.sample is not None:
        raise InputError(
            f"hunt: {guarantee.id} is not about instances of {problem.id}; verify samples what it is about"
        )
    if guarantee.measure is not None:
        raise InputError(f"hunt: {guarantee.id} is about growth or frequency; verify measures it")
    method = None if guarantee.method is None else find_method(problem, guarantee.method)
    return Target(problem, method, guarantee)


@dataclass
class Judge:
    """Evaluates instances for one target; the exact method is asked only where the answer can matter."""

    target: Target  # what is hunted
    work: float  # repeatable limit of an exact solve
    # folder for the instance of a disagreement
    disagreements: Path = field(default_factory=lambda: Path("disagreements"))
    # a line for each instance on which parts disagreed (a heuristic better than a proven optimum, a schedule that the
    # checker rejects) or something of ours raised
    defects: list[str] = field(default_factory=list)
    # a line for each instance on which a user's own heuristic or claim raised, or the solution was refused
    lost: list[str] = field(default_factory=list)
    # a file that holds each instance while it is tried, for when this process does not survive it
    trying: Path | None = None
    # on the clock: what is under way then is cut short and does not count; None where there is none
    deadline: float | None = None
    clock: Callable[[], float] = time.monotonic  # the one of the hunt's processes

    def __call__(self, data: Mapping[str, Json], options: Mapping[str, Json], at_least: float = 0.0) -> Probe | None:
        """What comes of an instance; None where it is not valid, nothing is proven, or the value is too low."""
        target = self.target
        if self.trying is not None:
            try:
                self.trying.write_text(json.dumps(data), encoding="utf-8")
            except OSError as error:
                raise InputError(f"{self.trying}: cannot be written: {error.strerror}") from error
        try:
            instance = target.problem.instance_class.parse(dict(data))
        except InputError:
            return None

        def judged() -> Probe | None:
            run = self._run(instance, options)
            if run is not None and run.cut:
                return None
            return (
                self._ratio(instance, data, options, run, at_least)
                if target.guarantee is None
                else self._claim(target.guarantee, instance, data, options, run, at_least)
            )

        return self.guarded(instance, judged)

    def guarded(self, instance: Instance, judged: Callable[[], Judged | None]) -> Judged | None:
        """What `judged` finds out about an instance; None where that faults, which :attr:`defects` or `lost` tell."""
        target = self.target
        try:
            return judged()
        except Disagreement as error:
            self._defect(instance, str(error), str(error))
        except InputError as error:
            method, claim = target.method, target.guarantee
            if not (method is not None and method.is_user_defined) and not (claim is not None and claim.kind == OWN):
                return None  # the heuristic says that it is not made for this instance
            if self._until().passed:
                return None  # it was not given its time
            kept = ""
            if len(self.lost) < MOST_KEPT:
                path = write_disagreement(instance, self.disagreements, message=str(error))
                kept = f"; the instance is in {path}"
            self.lost.append(f"{error}{kept}")
        except Exception as error:
            self._defect(instance, f"{target.id}: {one_line(error)}", traceback.format_exc())
        return None

    def _defect(self, instance: Instance, message: str, details: str) -> None:
        """Keep the instance that shows a defect of ours; it does not count, and the hunt goes on."""
        if "; the instance is in " not in message:  # run_method wrote it otherwise
            path = write_disagreement(instance, self.disagreements, message=details)
            message = f"{message}; the instance is in {path}"
        self.defects.append(message)

    def _until(self) -> Deadline:
        return NO_DEADLINE if self.deadline is None else Deadline(clock() + self.deadline - self.clock())

    def _run(self, instance: Instance, options: Mapping[str, Any]) -> Result | None:
        method = self.target.method
        if method is None:
            return None
        return run_heuristic(
            self.target.problem, instance, method, SolveOptions(seed=SEED, deadline=self._until()), options
        )

    def _ratio(
        self,
        instance: Instance,
        data: Mapping[str, Any],
        options: Mapping[str, Any],
        run: Result | None,
        at_least: float,
    ) -> Probe | None:
        problem = self.target.problem
        if run is None or run.objective is None:
            return None
        # The ratio to a bound is never below the ratio to the optimum.
        most = problem.ratio(instance, run.objective, run.bound)
        if most is not None and most < at_least * (1 - 1e-9):
            return None
        optimum = self._optimum(instance, run)
        value = problem.ratio(instance, run.objective, optimum)
        if optimum is None or value is None or value < at_least:
            return None
        return Probe(data, options, value, run.objective, optimum)

    def _claim(
        self,
        guarantee: Guarantee,
        instance: Instance,
        data: Mapping[str, Any],
        options: Mapping[str, Any],
        run: Result | None,
        at_least: float,
    ) -> Probe | None:
        method = self.target.method
        full = {} if method is None else full_settings(method, options)
        objective, info = (None, {}) if run is None else (run.objective, run.info)
        optimum: float | None = None

        def judged_with(known: float | None, bound: float | None) -> Evaluation:
            return evaluate(guarantee, Case(instance, objective, info, known, bound, full)).evaluation

        # A claim that needs no optimum is decided at once; a bound can show that it is not tight enough here.
        judged = judged_with(None, None)
        if judged.verdict is Verdict.NOT_APPLICABLE:
            bound = self.target.problem.certified_bound(instance)
            stand_in = next((value for value in (bound, objective) if value is not None), 1.0)
            if judged_with(stand_in, stand_in).verdict is Verdict.NOT_APPLICABLE:
                return None  # whatever the optimum is
            judged = judged_with(None, bound)
            if judged.tightness is not None and judged.tightness < at_least:
                return None
            optimum = self._optimum(instance, run)
            if optimum is None:
                return None
            judged = judged_with(optimum, optimum)
        if judged.verdict is Verdict.NOT_APPLICABLE or judged.left is None or judged.right is None:
            return None
        refuted = judged.verdict is Verdict.REFUTED
        value = judged.tightness or 0.0  # 0 <= 0 is no near miss
        if value < at_least:
            return None
        return Probe(data, options, value, objective, optimum, judged.left, judged.right, judged.reason, refuted)

    def _optimum(self, instance: Instance, run: Result | None) -> float | None:
        """The proven optimum, or None."""
        problem = self.target.problem
        inside = run is not None and not run.info.get("outside_model")
        if run is not None and inside and run.status is Status.OPTIMAL:
            return run.objective
        exact = run_method(
            problem,
            instance,
            problem.default_method(instance),
            SolveOptions(threads=1, work_limit=self.work, seed=SEED, deadline=self._until()),
            disagreements=self.disagreements,
        )
        if exact.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        answers = [Answer("the exact method", exact.status, exact.objective, exact.bound, exact=True)]
        if run is not None and inside:
            answers.append(Answer("the heuristic", run.status, run.objective, run.bound))
        known = agree(answers, problem.sense)
        if known.contradictions:
            raise Disagreement("; ".join(known.contradictions))
        return known.optimum
