"""What exact methods got wrong in a run: claimed optima that are none, wrong bounds, exits 5, exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from schedgap.benchmarks.harness.analysis import Entry, Solved, load
from schedgap.catalogue.agreement import write_disagreement
from schedgap.catalogue.method import Kind
from schedgap.solvers.incumbent import contradicts
from schedgap.solvers.result import Status


@dataclass(frozen=True)
class Faults:
    """Counts over instances that several methods have answered.

    Attributes
    ----------
    instances, answers : how many, and how many answers of exact methods to them
    false_optima : answers "optimal" although a better solution is known
    false_infeasible : answers "infeasible" although a solution is known
    wrong_bounds : bounds, of any status, that a known solution is better than
    exits : engine and checker, or an answer and its own bound, contradicted each other (exit status 5)
    exceptions : methods that ended in an unexpected exception
    """

    instances: int = 0
    answers: int = 0
    false_optima: int = 0
    false_infeasible: int = 0
    wrong_bounds: int = 0
    exits: int = 0
    exceptions: int = 0

    def __add__(self, other: Faults) -> Faults:
        return Faults(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Faults)))

    @property
    def none(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.false_optima or self.false_infeasible or self.wrong_bounds or self.exits or self.exceptions)

    def to_text(self) -> str:
        """One line."""
        return (
            f"{self.answers:,} exact answers to {self.instances:,} instances: {self.false_optima} false optima, "
            f"{self.false_infeasible} false infeasible, {self.wrong_bounds} wrong bounds, {self.exits} exits 5, "
            f"{self.exceptions} exceptions"
        )


def faults_of(one: Solved) -> Faults:
    """What is wrong with the answers to one instance; the best solution that the checker confirmed judges all."""
    sense = one.problem.sense
    inside = [entry for entry in one.entries if not entry.outside]
    found = [entry.row.objective for entry in inside if entry.row.objective is not None]
    best = min(found, key=lambda value: sense * value, default=None)
    exact = [entry for entry in inside if entry.method.kind is not Kind.HEURISTIC]

    return Faults(
        instances=1,
        answers=len(exact),
        false_optima=sum(
            entry.row.status == Status.OPTIMAL and contradicts(best, entry.row.objective, sense) for entry in exact
        ),
        false_infeasible=sum(entry.row.status == Status.INFEASIBLE and best is not None for entry in exact),
        wrong_bounds=sum(
            entry.row.status != Status.INFEASIBLE and contradicts(best, entry.row.bound, sense) for entry in exact
        ),
        exits=sum(entry.row.disagreement for entry in exact),
        exceptions=sum(_exception(entry) for entry in exact),
    )


def faults_in(solved: Iterable[Solved]) -> Faults:
    """The sum over instances."""
    return sum((faults_of(one) for one in solved), Faults())


def write_faulty(solved: Sequence[Solved], folder: Path) -> int:
    """Write every instance with a fault into ``folder/disagreements``, with all answers to it; how many there are."""
    count = 0
    for one in solved:
        faults = faults_of(one)
        if faults.none:
            continue
        count += 1
        answers = {e.label: [e.row.status, e.row.objective, e.row.bound, _first(e.row.error)] for e in one.entries}
        instance = load(folder, one.problem, one.hash)
        write_disagreement(instance, folder / "disagreements", message=faults.to_text(), details={"answers": answers})
    return count


def _exception(entry: Entry) -> bool:
    return "Traceback (most recent call last)" in entry.row.error or "worker process died" in entry.row.error


def _first(error: str) -> str:
    return error.partition("\n")[0]
