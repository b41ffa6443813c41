"""``check_problem``, ``check_method``, ``check_engine``: what the gate asks of our own, asked of anybody's."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError, ModelRefused
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import agrees, exact
from schedgap.solvers.certificates.checker import rules_of
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.engines import engine as find_engine
from schedgap.solvers.engines.answer import Engine
from schedgap.solvers.model import Model
from schedgap.solvers.result import Deadline, SolveOptions, Status
from schedgap.tools.testing.examining import Examination
from schedgap.tools.testing.small_models import (
    enumerate_optimum,
    knapsacks,
    market_split,
    random_model,
    staircase,
    violated,
)

Truth = tuple[Fraction | None, Solution | None]
"""Optimum, None where there is no schedule, and a schedule that has it, where it is known."""
Exact = Callable[[Instance], Truth | None]
"""The truth about an instance; None where it is too large."""
SEEDS = 3
"""Instances of each family of the problem, where none are given."""
NEAR = 1e-9
"""What claims in floats may be off by, relative."""
SHOWN = 4000
"""Characters of an instance that a message shows; a larger one is named by its seed alone."""
MODELS = 60
"""Random models that an engine is asked."""


class Broken(AssertionError):
    """What does not hold, one line each, and the smallest instance on which something does not."""


@dataclass
class Checked:
    """What was asked and held.

    Attributes
    ----------
    instances, infeasible : instances with a known truth, and those of them without a schedule
    unknown : instances whose truth nobody told: schedules and bounds of these are compared with each other alone
    asked : answers by kind
    """

    instances: int = 0
    infeasible: int = 0
    unknown: int = 0
    asked: Counter[str] = field(default_factory=Counter)


def enumeration(problem: str | Problem, schedules: Callable[[Instance], Iterable[Solution]]) -> Exact:
    """The truth by enumeration: the best of all `schedules` that the checker accepts.

    Parameters
    ----------
    schedules : everything that may be a solution; what the checker refuses is left out
    """
    row = find_problem(problem)

    def truth(instance: Instance) -> Truth:
        best: Truth = None, None
        for solution in schedules(instance):
            report = row.check(instance, solution)
            if report.feasible and report.objective is not None:
                value = Fraction(report.objective)
                if best[0] is None or row.sense * value < row.sense * best[0]:
                    best = value, solution
        return best

    return truth


def check_problem(
    problem: str | Problem,
    exact: Exact | None = None,
    instances: Iterable[Instance] | None = None,
    *,
    methods: Sequence[str] | None = None,
    near: float = NEAR,
    gives_way: float = 0.0,
) -> Checked:
    """Try a problem: its checker, bound, models, methods and certificates on small instances.

    Asked on each instance: it is read back from its JSON; the checker accepts the best schedule at its value and no
    tampered one as better; no bound is beyond the optimum; every method's schedule is one, no better than the optimum,
    and what it calls optimal or infeasible is; so do the engines, where there is a model, whose untightened form has
    that schedule as a point; a given start is not lost, and no false claim comes from a limit; certificates of the
    optimum are accepted, tampered ones and false claims are not. A method may refuse an instance (InputError).

    Parameters
    ----------
    exact : the truth, such as :func:`enumeration`; where not given, the optimum that the default exact method proves
    instances : small ones; where not given, three of each family that the problem draws (``trials``)
    methods : ids of the methods that are asked; all where not given
    near : relative, what claims in floats may be off by
    gives_way : relative, how much better than the optimum a schedule may be to the checker; 0 where it is exact

    Raises
    ------
    Broken
        Something does not hold.
    """
    row = find_problem(problem)
    faults = _Faults(f"problem {row.id}")
    for name in ("id", "title", "objective_name"):
        if not getattr(row, name, ""):
            faults.note(None, f"{name}: is empty")
    if row.sense not in (1, -1):
        faults.note(None, f"sense: must be 1 or -1, got {row.sense!r}")
    asked = [method for method in row.methods if methods is None or method.id in methods]
    with tempfile.TemporaryDirectory() as scratch:
        for instance in _instances(row, instances):
            _examine(row, instance, exact, asked, faults, Path(scratch), near, gives_way, whole=True)
    return faults.end()


def check_method(
    method: str | Function | Method,
    problem: str | Problem,
    exact: Exact | None = None,
    instances: Iterable[Instance] | None = None,
    *,
    near: float = NEAR,
    gives_way: float = 0.0,
) -> Checked:
    """Try one method of a problem, or a function of one's own, on small instances.

    Asked on each: it leaves the instance as it is, says the same twice with the same seed, its schedule is one and no
    better than the optimum, its bound is not beyond it, its status is true; a limit of a millisecond brings no false
    claim; a start that it is given is not lost, where it proves optima.

    Parameters
    ----------
    method : id, function ``(instance, *, seed)`` or method
    exact, instances, near, gives_way : see :func:`check_problem`

    Raises
    ------
    Broken
        Something does not hold.
    InputError
        There is no such method.
    """
    row = find_problem(problem)
    chosen = find_method(row, method)
    faults = _Faults(f"method {chosen.id} of {row.id}")
    with tempfile.TemporaryDirectory() as scratch:
        for instance in _instances(row, instances):
            before = instance.content_hash()
            _examine(row, instance, exact, [chosen], faults, Path(scratch), near, gives_way, whole=False)
            if instance.content_hash() != before:
                faults.note(instance, "changes the instance")
    return faults.end()


def check_engine(engine: str | Engine, *, seed: int = 0) -> Checked:
    """Try an engine on small models: sense and constant, statuses, points that keep every row, limits.

    A model that it refuses (:class:`ModelRefused`) is not held against it; at least one in four must be answered.

    Raises
    ------
    Broken
        An answer is false, or nearly everything is refused.
    EngineMissing
        It is not installed.
    """
    solver = find_engine(engine) if isinstance(engine, str) else engine
    faults = _Faults(f"engine {solver.name}")
    rng = np.random.default_rng(seed)
    cases: list[tuple[str, DeclarativeModel, float | None]] = [
        (
            f"staircase {sense:+d}, integer {integer}, constant {constant:g}",
            *staircase(sense, integer=integer, constant=constant),
        )
        for sense in (1, -1)
        for integer in (True, False)
        for constant in (0.0, 7.5, -1000.25)
    ]
    for number in range(MODELS):
        model = random_model(rng, integer=True, bounded=True)
        cases.append((f"random model {number}", model, enumerate_optimum(model)))
    for name, model, truth in cases:
        faults.checked.instances += 1
        faults.checked.infeasible += truth is None
        try:
            answer = solver.solve(model, SolveOptions(threads=1, seed=seed))
        except ModelRefused:
            faults.checked.asked["refused"] += 1
            continue
        faults.checked.asked["answered"] += 1
        where = f"{name}: {str(model.problem)[:SHOWN]}"
        if truth is None and answer.status is not Status.INFEASIBLE:
            faults.note(None, f"{where}\nsays {answer.status}, there is no point")
        if truth is not None and (
            answer.objective is None or abs(answer.objective - truth) > 1e-6 * max(1.0, abs(truth))
        ):
            faults.note(None, f"{where}\nsays {answer.status}, {answer.objective}, the optimum is {truth}")
        if answer.values is not None:
            broken = violated(model, {v.name: answer.value(v) for v in model.problem.variables()})
            if broken:
                faults.note(None, f"{where}\nits point breaks {', '.join(broken)}")
        if (
            truth is not None
            and answer.bound is not None
            and model.sense * (answer.bound - truth) > 1e-6 * max(1.0, abs(truth))
        ):
            faults.note(None, f"{where}\nits bound {answer.bound} is beyond the optimum {truth}")
    if not faults.lines and faults.checked.asked["answered"] * 4 < len(cases):
        faults.note(None, f"refuses {faults.checked.asked['refused']} of {len(cases)} models")
    for name, hard in (("market split", market_split(4, 30, seed, slack=True)), ("knapsacks", knapsacks(8, 60, seed))):
        limited = SolveOptions(threads=1, deadline=Deadline.after(0.5))
        answer = solver.solve(hard, limited)
        faults.checked.asked["limited"] += 1
        if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            faults.note(None, f"{name}, limit 0.5 s: says {answer.status}, there is a point")
        if answer.seconds > 10.0:
            faults.note(None, f"{name}, limit 0.5 s: takes {answer.seconds:.1f} s")
    return faults.end()


class _Faults:
    """What does not hold so far."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.lines: list[tuple[int, str, str]] = []
        self.checked = Checked()

    def note(self, instance: Instance | None, line: str) -> None:
        """Keep one line, with the instance on which it is so."""
        text = "" if instance is None else json.dumps(instance.to_dict())
        self.lines.append((len(text), text, line))

    def end(self) -> Checked:
        """What was asked.

        Raises Broken: something did not hold.
        """
        if not self.lines:
            return self.checked
        ordered = sorted(self.lines, key=lambda row: row[0])
        size, text, first = ordered[0]
        told = [f"{self.who}: {first}", *(f"  on {text}" for _ in range(0 < size <= SHOWN))]
        others = dict.fromkeys(line for _, _, line in ordered[1:] if line != first)
        told += [f"  also: {line}" for line in list(others)[:5]]
        told += [f"  and {len(others) - 5} more"] if len(others) > 5 else []
        raise Broken("\n".join(told))


def _instances(problem: Problem, given: Iterable[Instance] | None) -> Iterator[Instance]:
    if given is not None:
        yield from given
        return
    trials = workload_of(problem).trials()
    if not trials:
        raise InputError(f"{problem.id}: draws no instances (`trials` of its workload); give some")
    for draw in trials.values():
        for seed in range(SEEDS):
            yield draw(seed)[0]


def _truth(problem: Problem, instance: Instance, exact_value: Exact | None, scratch: Path) -> Truth | None:
    if exact_value is not None:
        return exact_value(instance)
    try:
        method = problem.default_method(instance)
    except InputError:
        return None
    result = run_method(
        problem, instance, method, SolveOptions(threads=1, deadline=Deadline.after(10.0)), disagreements=scratch
    )
    if result.status is Status.INFEASIBLE:
        return None, None
    if result.status is not Status.OPTIMAL or result.solution is None:
        return None
    objective = problem.check(instance, result.solution).objective
    return None if objective is None else (Fraction(objective), result.solution)


def _examine(
    problem: Problem,
    instance: Instance,
    exact_value: Exact | None,
    methods: Sequence[Method],
    faults: _Faults,
    scratch: Path,
    near: float,
    gives_way: float,
    *,
    whole: bool,
) -> None:
    """All questions about one instance; those about the problem itself with `whole`."""
    try:
        truth = _truth(problem, instance, exact_value, scratch)
    except Exception as error:
        faults.note(instance, f"exact value: {type(error).__name__}: {error}")
        return
    checked = faults.checked
    if truth is None:
        checked.unknown += 1
        return
    optimum, solution = truth
    checked.instances += 1
    checked.infeasible += optimum is None
    exam = Examination(problem, instance, optimum, solution, near=near, gives_way=gives_way, scratch=scratch)
    exam.ask(dict(_questions(exam, methods, whole=whole)))
    checked.asked.update(exam.record.answers)
    for _, line in exam.record.faults:
        faults.note(instance, line)


def _questions(
    exam: Examination, methods: Sequence[Method], *, whole: bool
) -> Iterator[tuple[str, Callable[[], None]]]:
    if whole:
        yield "reading", partial(_read_back, exam)
        yield "checker", exam.checker
        yield "tampered schedules", exam.tampered
        yield "bound", exam.bound
        yield "model", partial(_point, exam)
    for method in methods:
        if method.outside_model:
            continue
        if method.kind is Kind.ENGINE:
            yield f"engine {method.id}", partial(exam.engine, method.id)
            continue
        ask = _exact_method if method.proves else _heuristic
        yield method.id, partial(_unless_refused, exam, method, ask)
        yield f"{method.id} within a millisecond", partial(_unless_refused, exam, method, _limited)
    if whole and _has_rules(exam.problem):
        yield "certified bound", exam.certified_bound
        yield "certificate", exam.certificate
        yield "false certificate", exam.false_certificates


def _has_rules(problem: Problem) -> bool:
    try:
        return rules_of(problem.id) is not None
    except Rejected:
        return False


def _read_back(exam: Examination) -> None:
    again = exam.problem.instance_class.parse(exam.instance.to_dict())
    if again != exam.instance or again.content_hash() != exam.instance.content_hash():
        exam.fault("reading: the instance is another one when it is read back from its JSON")


def _point(exam: Examination) -> None:
    """The untightened model has the best schedule as a point that keeps its rows."""
    form = exam.problem.default_form(False)
    if form is None or exam.solution is None:
        return
    declarative = exam.problem.model(exam.instance, form.id, False)
    if declarative is None or declarative.layout is None or declarative.assign is None or declarative.abstract:
        return
    model = Model(declarative, partial(exam.problem.check, exam.instance), form.id)
    values = model.point(exam.solution)
    exam.record.answers["point"] += 1
    broken = violated(declarative, {v.name: values[v] for v in declarative.problem.variables()})
    if broken:
        exam.fault(f"model {form.id}: the best schedule breaks {', '.join(broken[:3])}")
    goal = declarative.problem.objective
    value = float(
        sum((exact(float(c)) * exact(float(values[v])) for v, c in goal.items()), exact(float(goal.constant)))
    )
    optimum = float(exam.optimum) if exam.optimum is not None else value
    if not agrees(value, optimum) and abs(value - optimum) > max(declarative.resolution, 1e-9):
        exam.fault(f"model {form.id}: its objective is {value:.12g} at a schedule of {optimum:.12g}")


def _unless_refused(exam: Examination, method: Method, ask: Callable[[Examination, Method], None]) -> None:
    """A method of a package may refuse an instance; of a function of one's own the same error is a fault."""
    try:
        ask(exam, method)
    except InputError:
        if method.is_user_defined:
            raise
        exam.record.answers["refused"] += 1


def _exact_method(exam: Examination, method: Method) -> None:
    """Its answer, and the same from a start of the best value."""
    options = SolveOptions(threads=1, deadline=Deadline.after(20.0))
    result = run_method(exam.problem, exam.instance, method, options, disagreements=exam.scratch)
    exam.judge_answer(method.id, result, owed=False)
    if result.solution is not None:  # what only bounds has no schedule to lose
        _from_start(exam, method)


def _heuristic(exam: Examination, method: Method) -> None:
    first, again = (run_method(exam.problem, exam.instance, method, SolveOptions(seed=7)) for _ in range(2))
    exam.judge_schedule(method.id, first)
    if first.solution != again.solution:
        exam.fault(f"{method.id}: two runs with the same seed differ; all randomness must come from it")


def _from_start(exam: Examination, method: Method) -> None:
    """A start of the best value within a millisecond: no less may come back."""
    if exam.solution is None or exam.optimum is None:
        return
    options = SolveOptions(threads=1, start=exam.solution, deadline=Deadline.after(1e-3))
    result = run_method(exam.problem, exam.instance, method, options, disagreements=exam.scratch)
    exam.record.answers["start"] += 1
    exam.judge_answer(f"{method.id} from a start", result, owed=False)
    if result.solution is None:
        exam.fault(f"{method.id}: loses the schedule that it is given as a start")
    else:
        report = exam.problem.check(exam.instance, result.solution)
        value = report.objective
        if value is None or exam.problem.sense * (Fraction(value) - exam.optimum) > Fraction(NEAR) * abs(exam.optimum):
            exam.fault(f"{method.id}: comes back with {value} from a start of {exam.optimum}")


def _limited(exam: Examination, method: Method) -> None:
    options = SolveOptions(threads=1, deadline=Deadline.after(1e-3))
    result = run_method(exam.problem, exam.instance, method, options, disagreements=exam.scratch)
    exam.record.answers["limited"] += 1
    exam.judge_answer(f"{method.id} within a millisecond", result, owed=False)
