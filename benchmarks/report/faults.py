"""What exact methods got wrong in a run: claimed optima that are none, wrong bounds, clashes, exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pandas as pd

from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.analysis import Analysis, load
from schedgap.catalogue.agreement import write_disagreement
from schedgap.catalogue.problem import Problem
from schedgap.solvers.incumbent import contradicts
from schedgap.solvers.result import Status


@dataclass(frozen=True)
class Faults:
    """Counts over instances that several methods have answered."""

    # instances, answers: how many, and how many answers of exact methods to them
    instances: int = 0
    answers: int = 0
    false_optima: int = 0  # answers "optimal" although a better solution is known
    false_infeasible: int = 0  # answers "infeasible" although a solution is known
    wrong_bounds: int = 0  # bounds, of any status, that a known solution is better than
    exits: int = 0  # engine and checker, or an answer and its own bound, contradicted each other (exit status 5)
    exceptions: int = 0  # methods that ended in an unexpected exception
    refusals: int = 0  # no fault: answers that say in one line why there is none (numbers out of an engine's range)

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
            f"{self.false_infeasible} false infeasible, {self.wrong_bounds} wrong bounds, {self.exits} clashes, "
            f"{self.exceptions} exceptions; {self.refusals} refusals"
        )


def faults_of(one: pd.DataFrame, sense: int) -> Faults:
    """What is wrong with the answers to one instance; the best solution that the checker confirmed judges all."""
    inside = one[~one.outside_model]
    found = [r.result.objective for r in inside.record if r.result.objective is not None]
    best = min(found, key=lambda value: sense * value, default=None)
    exact: list[Record] = list(inside[~inside.heuristic].record)
    results = [record.result for record in exact]
    return Faults(
        instances=1,
        answers=len(exact),
        false_optima=sum(r.status is Status.OPTIMAL and contradicts(best, r.objective, sense) for r in results),
        false_infeasible=sum(r.status is Status.INFEASIBLE and best is not None for r in results),
        wrong_bounds=sum(r.status is not Status.INFEASIBLE and contradicts(best, r.bound, sense) for r in results),
        exits=sum(record.disagreement for record in exact),
        exceptions=sum(_exception(record) for record in exact),
        refusals=sum(_refusal(record) for record in exact),
    )


def faults_in(analysis: Analysis) -> Faults:
    """The sum over instances."""
    return sum((faults for _, _, faults in _by_instance(analysis)), Faults())


def write_faulty(analysis: Analysis, folder: Path) -> int:
    """Write every instance with a fault into ``folder/disagreements``, with all answers to it; how many there are."""
    count = 0
    for problem, one, faults in _by_instance(analysis):
        if faults.none:
            continue
        count += 1
        answers = {
            r.label: [str(r.result.status), r.result.objective, r.result.bound, r.error.partition("\n")[0]]
            for r in one.record
        }
        instance = load(folder, problem, one.instance_hash.iloc[0])
        write_disagreement(instance, folder / "disagreements", message=faults.to_text(), details={"answers": answers})
    return count


def _by_instance(analysis: Analysis) -> Iterator[tuple[Problem, pd.DataFrame, Faults]]:
    problems = {problem.id: problem for problem in analysis.problems}
    for _, one in analysis.runs.groupby("one"):
        problem = problems[one.problem.iloc[0]]
        yield problem, one, faults_of(one, problem.sense)


def _exception(record: Record) -> bool:
    return "Traceback (most recent call last)" in record.error or "worker process died" in record.error


def _refusal(record: Record) -> bool:
    return record.result.status is Status.ERROR and not record.disagreement and not _exception(record)
