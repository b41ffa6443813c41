"""What several answers to one instance say together: the optimum, the best bound, and who contradicts whom."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE, agrees, ratio
from schedgap.solvers.incumbent import contradicts, optimal
from schedgap.solvers.result import Proof, Result, Status

Check: TypeAlias = Callable[[Solution], CheckReport]

DISAGREEMENTS = Path("disagreements")
"""Where the instance of a disagreement is written unless the caller says otherwise."""
REJECTED = "rejected"
"""The folder that keeps solutions which the checker rejects."""


@dataclass(frozen=True)
class Answer:
    """One method's answer to an instance, as far as it concerns the others."""

    label: str  # who answered, for messages
    # status, objective, bound: as in :class:`~schedgap.solvers.result.Result`
    status: Status
    objective: float | None
    bound: float | None
    exact: bool = False  # an exact method; only its "infeasible" or "unbounded" counts as a proof
    outside_model: bool = False  # its schedule is not a schedule of the problem; it takes no part in any comparison


@dataclass(frozen=True)
class Agreement:
    """What is proven about one instance."""

    optimum: float | None  # the proven optimum, or None
    bound: float | None  # the best proven bound on the optimum (the optimum itself where it is known), or None
    infeasible: bool  # somebody proved that there is no solution
    contradictions: tuple[str, ...]  # one line for each pair of answers that cannot both be true

    @property
    def reference(self) -> tuple[float | None, str]:
        """What ratios are to, and its name: "optimum", "bound", or "" where nothing is known."""
        if self.optimum is not None:
            return self.optimum, "optimum"
        return self.bound, "" if self.bound is None else "bound"

    def ratio(self, objective: float | None, sense: int) -> tuple[float | None, str]:
        """The ratio of `objective` and what it is to."""
        value, to = self.reference
        return ratio(objective, value, sense), to


def agree(answers: Iterable[Answer], sense: int, certified: float | None = None) -> Agreement:
    """Put the answers to one instance together.

    Parameters
    ----------
    answers : answers of any methods; those outside the model are ignored
    sense : +1 minimise, -1 maximise
    certified : the problem's own certified bound, or None

    Returns
    -------
    Agreement
        An objective that meets the best bound is a proven optimum, whoever found either. Contradictions
        are: two different optima, a solution of an instance proven infeasible, an unbounded instance with
        an optimum, and an objective better than a proven bound.
    """
    inside = [answer for answer in answers if not answer.outside_model]
    contradictions: list[str] = []
    solved = [(a.objective, a.label) for a in inside if a.objective is not None]
    proven = [(a.objective, a.label) for a in inside if a.objective is not None and a.status is Status.OPTIMAL]
    limits = [(a.bound, a.label) for a in inside if a.bound is not None and a.status is not Status.INFEASIBLE]
    infeasible = [a for a in inside if a.status is Status.INFEASIBLE and a.exact]
    unbounded = [a for a in inside if a.status is Status.UNBOUNDED and a.exact]
    for value, who in proven[1:]:
        if not agrees(value, proven[0][0]):
            contradictions.append(f"{proven[0][1]} proves the optimum {proven[0][0]:.12g}, {who} proves {value:.12g}")
    if infeasible and solved:
        contradictions.append(
            f"{infeasible[0].label} proves that there is no solution, "
            f"{solved[0][1]} has one with objective {solved[0][0]:.12g}"
        )
    if infeasible and unbounded:
        contradictions.append(f"{infeasible[0].label} says infeasible, {unbounded[0].label} says unbounded")
    if unbounded and proven:
        contradictions.append(f"{unbounded[0].label} says unbounded, {proven[0][1]} proves an optimum")

    if certified is not None:
        limits.append((certified, "the certified bound"))
    tightest = max(limits, key=lambda pair: sense * pair[0]) if limits else None
    optimum = proven[0][0] if proven else None
    side = "below" if sense == MINIMISE else "above"
    for value, who in solved:
        if optimum is not None and contradicts(value, optimum, sense):
            contradictions.append(
                f"{who} has {value:.12g}, better than the optimum {optimum:.12g} that {proven[0][1]} proves"
            )
        elif not contradictions and tightest is not None and contradicts(value, tightest[0], sense):
            contradictions.append(f"{who} has {value:.12g}, {side} the bound {tightest[0]:.12g} of {tightest[1]}")
    if optimum is None and tightest is not None:
        optimum = next((value for value, _ in solved if optimal(value, tightest[0], sense)), None)
    bound = optimum if optimum is not None else (tightest[0] if tightest else None)
    unique = tuple(dict.fromkeys(contradictions))
    return Agreement(optimum, bound, bool(infeasible), unique)


def joint_proof(results: Iterable[Result]) -> Proof | None:
    """How far several answers to one instance together prove it; None where none of them says so."""
    settled = [result for result in results if result.status in (Status.OPTIMAL, Status.INFEASIBLE)]
    levels = {result.proof for result in settled}
    if len({result.engine for result in settled if result.engine is not None}) > 1:
        levels.add(Proof.AGREED)
    return next((level for level in Proof if level in levels), None)


def write_disagreement(
    instance: Instance,
    directory: Path = DISAGREEMENTS,
    *,
    message: str = "",
    solution: Solution | None = None,
    details: Mapping[str, object] | None = None,
) -> Path:
    """Write the instance of a disagreement where ``solve`` and ``compare`` can read it.

    What helps to reproduce it stands beside the instance under keys that reading ignores:
    ``reference_disagreement`` and ``reference_solution``. Returns ``directory/<problem>-<first 12 digits of its
    hash>.json``, in the system's temporary folder where `directory` cannot be written.
    """
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", instance.problem_id)
    name = f"{stem}-{instance.content_hash()[:12]}.json"
    data = instance.to_dict()
    if message or details:
        data["reference_disagreement"] = {"message": message, **(details or {})}
    if solution is not None:
        data["reference_solution"] = solution
    text = json.dumps(data, indent=1, default=str) + "\n"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return write_text(directory / name, text)
    except (OSError, InputError):
        return write_text(Path(tempfile.mkdtemp(prefix="schedgap-")) / name, text)


def kept(solution: Solution, instance: Instance, who: str, directory: Path = Path(REJECTED)) -> str:
    """Keep a solution that the checker rejects, and its instance; the command that shows every violation."""
    path = write_disagreement(instance, directory)
    slug = re.sub(r"[^A-Za-z0-9_.+-]+", "-", who.rpartition("/")[2])
    rejected = write_text(path.with_suffix(f".{slug}.json"), json.dumps(solution, indent=1) + "\n")
    return f"schedgap check {path} {rejected}"


def written(
    error: Disagreement,
    instance: Instance,
    candidates: Sequence[Solution | None],
    check: Check,
    sense: int,
    directory: Path = DISAGREEMENTS,
) -> Disagreement:
    """The error once its instance is in a file, and beside it the best of `candidates` that the checker accepts."""
    path = write_disagreement(instance, directory, message=str(error), solution=error.solution, details=error.details)
    text = f"{error}; the instance is in {path}"
    accepted = best_accepted(candidates, check, sense)
    if accepted is not None:
        kept = write_text(path.with_suffix(".solution.json"), json.dumps(accepted[0], indent=1) + "\n")
        text += f", a solution of {accepted[1]:.12g} that the checker accepts in {kept}"
    known = None if accepted is None else accepted[0]
    return Disagreement(text, solution=error.solution, details=error.details, accepted=known)


def closed_by(problem: Problem, value: Fraction, bound: Fraction) -> bool:
    """Whether a bound meets a solution's value: exactly, or to 1e-9 where objectives are not rational."""
    if value == bound:
        return True
    return not problem.rational and agrees(float(value), float(bound))  # not where it is better than what is proven


def with_certificate(problem: Problem, instance: Instance, result: Result) -> Result:
    """The result, its proof ``certified`` where a small certificate of its optimum is found and accepted.

    Small is :data:`~schedgap.solvers.certificates.make.FEW`: counted, not timed, so the same on every run.
    """
    from schedgap.solvers.certificates.make import FEW, prove
    from schedgap.solvers.certificates.tree import Unproven

    if result.status is Status.OPTIMAL and result.solution is not None:
        value = problem.check(instance, result.solution).objective
    elif result.status is Status.INFEASIBLE:
        value = None
    else:
        return result
    try:
        best = None if value is None else Fraction(value)
        claim = prove(instance, best, result.solution, FEW, sense=problem.sense)["claim"]
    except Unproven:
        return result
    if value is not None and not closed_by(problem, Fraction(value), Fraction(claim)):
        return result  # a claim of less than the value leaves its optimality open
    return result.proven(Proof.CERTIFIED)


def tighter(a: float | None, b: float | None, sense: int) -> float | None:
    """The better of two bounds on the optimum, either of which may be unknown."""
    if a is None or b is None:
        return b if a is None else a
    return max(a, b) if sense > 0 else min(a, b)


def best_accepted(solutions: Sequence[Solution | None], check: Check, sense: int) -> tuple[Solution, float] | None:
    """The best of them that the checker accepts, with its objective."""
    best: tuple[Solution, float] | None = None
    for solution in solutions:
        try:
            report = None if solution is None else check(solution)
        except InputError:  # one that it cannot read
            continue
        if solution is not None and report is not None and report.feasible and report.objective is not None:
            objective = report.value
            if best is None or sense * objective < sense * best[1]:
                best = solution, objective
    return best
