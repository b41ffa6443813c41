"""What a hunt comes to: the worst instance as a file for ``compare``, and what is printed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.hunt.target import SEED, Probe, Target, finite_value
from schedgap.benchmarks.records import plain
from schedgap.benchmarks.text import fixed, nearest, number
from schedgap.formulations.common.files import write_text

WORST = "worst.json"
FOUND = "found.json"


@dataclass(frozen=True)
class Hunted:
    """What a hunt found."""

    target: Target  # what was hunted
    found: Probe | None  # the worst instance as it was found; None where none counted
    smallest: Probe | None  # the same shrunk
    evaluations: int  # instances tried, those of earlier sessions included
    folder: Path  # where everything is
    finished: bool = True  # the hunt ended by its limits; False after Ctrl-C
    defects: tuple[str, ...] = ()  # a line for each instance on which parts of schedgap disagreed; it did not count
    # a line for each instance on which a user's own heuristic raised or its solution was refused; it did not count
    lost: tuple[str, ...] = ()

    @property
    def worst(self) -> Probe | None:
        """The shrunk instance; the one that was found where it is not shrunk."""
        return self.smallest or self.found

    @property
    def value(self) -> float | None:
        """The largest ratio, or left/right, that was found; shrinking may find a larger one."""
        return None if self.largest is None else self.largest.value

    @property
    def largest(self) -> Probe | None:
        """The instance that shows it."""
        both = [found for found in (self.found, self.smallest) if found is not None]
        return max(both, key=lambda found: found.value, default=None)

    @property
    def path(self) -> Path | None:
        """The file of :attr:`worst`."""
        if self.found is None:
            return None
        return self.folder / (FOUND if self.smallest is None else WORST)

    def __repr__(self) -> str:
        """One line."""
        return f"<hunt for {self.to_text().splitlines()[0]}>"

    def to_text(self) -> str:
        """A few lines for a person."""
        tried = f"{self.evaluations} instances tried" + ("" if self.finished else ", interrupted")
        if self.found is None or self.largest is None:
            return f"{self.target.id}: nothing found that counts; {tried}"
        lines = [f"{self.target.id}: {summary(self.target, self.largest)}; {tried}"]
        shown = f"{shape(self.found.data)}; {summary(self.target, self.found)}"
        lines.append(f"  as found   {self.folder / FOUND} ({shown})")
        if self.smallest is not None:
            small = f"{shape(self.smallest.data)}; {summary(self.target, self.smallest)}"
            lines.append(f"  shrunk to  {self.folder / WORST} ({small})")
        if self.path is not None and self.worst is not None:
            lines.append(f"  repeat     {command(self.target, self.worst, self.path)}")
        return "\n".join([*lines, *lost_line(self.lost)])


def lost_line(lost: Sequence[str]) -> list[str]:
    """A line on what a user's heuristic lost; none where it lost nothing."""
    if not lost:
        return []
    return [f"  lost       {len(lost)} instances without a feasible solution, the first: {lost[0]}"]


def summary(target: Target, found: Probe) -> str:
    """What was found, in a few words."""
    problem = target.problem
    if target.guarantee is None:
        objective, optimum = number(found.objective), number(found.optimum)
        return f"ratio {amount(found.value)} ({problem.objective_name} {objective}, optimum {optimum})"
    verdict = "refuted" if found.refuted else "held"
    quotient = nearest(found.value, found.refuted, amount)
    return f"{verdict}, left/right {quotient} ({number(found.left)} against {number(found.right)})"


def amount(value: float | None) -> str:
    """A ratio: three decimals, or six digits where it is large."""
    return fixed(value) if value is None or value < 1e6 or math.isinf(value) else f"{value:.6g}"


def shape(data: Mapping[str, object]) -> str:
    """How many of what: ``4 jobs, 2 servers``."""
    lists = {key: len(value) for key, value in data.items() if isinstance(value, list)}
    parts = [f"{count} {key if count != 1 else key.removesuffix('s')}" for key, count in lists.items()]
    return ", ".join(reversed(parts))


def command(target: Target, found: Probe, path: Path) -> str:
    """The command line that repeats it."""
    exact = target.problem.default_method(target.problem.instance_class.parse(dict(found.data)))
    methods = [exact.id, *([target.method.id] if target.method is not None else [])]
    settings = "".join(f" {key}={value}" for key, value in sorted(found.options.items()))
    return f"schedgap compare {path} --methods {','.join(methods)}" + (f" --set{settings}" if settings else "")


def write_found(path: Path, target: Target, found: Probe, note: str = "found by schedgap hunt") -> None:
    """The instance as ``solve`` and ``compare`` read it; what it shows stands in keys that they ignore."""
    data = dict(found.data)
    claim = target.guarantee
    data["name"] = f"hunt-{target.id}".replace("/", "-")
    data["note"] = f"{note}: {target.id}, {summary(target, found)}"
    data["reference_hunt"] = plain(
        {
            "target": target.id,
            "problem": target.problem.id,
            "method": None if target.method is None else target.method.id,
            "options": dict(found.options),
            "seed": SEED,
            **({"ratio": finite_value(found.value)} if claim is None else {}),
            "objective": found.objective,
            "optimum": found.optimum,
            **({} if claim is None else {"statement": claim.statement, "left": found.left, "right": found.right}),
            **({} if claim is None else {"verdict": "refuted" if found.refuted else "held", "reason": found.reason}),
            "repeat": command(target, found, Path(path.name)),
        }
    )
    if found.optimum is not None:
        data["reference"] = {"status": "optimal", "optimum": found.optimum}
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
