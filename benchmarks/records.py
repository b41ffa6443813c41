"""Records: results with what identifies the run that gave them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.report.metrics import metrics_text
from schedgap.benchmarks.report.text import number, seconds
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.instance import Solution
from schedgap.solvers.result import Result, Status, Termination

SHOWN = 400
"""Longest solution that is printed for a person, in characters."""


@dataclass(frozen=True)
class Record:
    """One run of one method on one instance.

    Attributes
    ----------
    problem, instance, method : the problem, the instance's name and the method's id
    seed : of all randomness
    result : what the method returned
    """

    problem: Problem
    instance: str
    method: str
    seed: int
    result: Result

    @property
    def exit_status(self) -> int:
        """0 solution found, 3 proven infeasible or unbounded, 4 nothing found, 5 internal error, 130 interrupted."""
        if self.result.termination is Termination.INTERRUPTED:
            return 130
        known = {Status.INFEASIBLE: 3, Status.UNBOUNDED: 3, Status.ERROR: 5}
        return known.get(self.result.status, 4 if self.result.solution is None else 0)

    @property
    def shortfall(self) -> str | None:
        """Why there is no answer, or one that the engine had no part in; None where there is nothing to say."""
        why = self.result.info.get("reason", self.result.termination)
        if self.result.status is Status.UNKNOWN:
            return f"{self.method} found no solution: {why}"
        large = self.result.termination is Termination.TOO_LARGE
        return f"{self.method} did not solve the model: {why}" if large else None

    def to_dict(self) -> dict[str, str | float | Solution | None]:
        """The object that ``solve --json`` prints."""
        result = self.result
        return {
            "problem": self.problem.id,
            "instance": self.instance,
            "method": self.method,
            "engine": result.engine,
            "status": str(result.status),
            "objective": plain_number(result.objective),
            "bound": plain_number(result.bound),
            "gap": result.gap,
            "seconds": None if result.seconds is None else round(result.seconds, 6),
            "seed": self.seed,
            "solution": result.solution,
        }

    def to_text(self, out: Path | None = None) -> str:
        """The result for a person.

        Parameters
        ----------
        out : the file that the solution was written to
        """
        result, problem = self.result, self.problem
        engine = "" if result.engine is None else f" ({' '.join(filter(None, [result.engine, result.engine_version]))})"
        unit = "" if result.objective is None else f" {problem.unit}".rstrip()
        lines = [
            f"{self.instance}: {problem.title}",
            f"  method     {self.method}{engine}",
            f"  status     {result.status}, {result.termination}",
            f"  {problem.objective_name:<10} {number(result.objective)}{unit}",
            f"  bound      {number(result.bound)}" + ("" if result.gap is None else f", gap {100 * result.gap:.3g}%"),
            f"  seconds    {seconds(result.seconds)}",
        ]
        if metrics := metrics_text(problem, result.info):
            lines.append(f"  metrics    {metrics}")
        if "reason" in result.info:
            lines.append(f"  reason     {result.info['reason']}")
        if result.solution is not None:
            text = json.dumps(result.solution, allow_nan=False, ensure_ascii=False)
            shown = text if len(text) <= SHOWN else "long: --out FILE or --json writes it"
            lines.append(f"  solution   {shown if out is None else f'in {out}'}")
        return "\n".join(lines)


def plain_number(value: float | None) -> float | int | None:
    """A whole number as an int, so that a makespan of 12 is written as 12."""
    if value is None or value != int(value) or abs(value) >= 2**53:
        return value
    return int(value)
