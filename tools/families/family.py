"""A family: a generator, and the ratio on its instances as a function of n."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from schedgap.benchmarks.text import fixed
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.solvers.result import Proof
from schedgap.tools.families.generator import Generator
from schedgap.tools.families.points import Closed, Point, closed, weight_of
from schedgap.tools.families.stretch import Stretch

KEY = "family"


FORM = 1
"""The version of the file."""


@dataclass(frozen=True)
class Family:
    """What ``schedgap hunt --family`` writes down."""

    # problem, method, options: whose ratio it is, with options beyond the defaults
    problem: Problem
    method: str
    options: Mapping[str, Json]
    parameter: str  # the list or number whose size n is
    generator: Generator  # the instances
    points: tuple[Point, ...]  # the values at every size that was solved
    fitted: tuple[int, ...]  # the sizes that the generator was fitted on
    hunted: Mapping[int, float]  # the largest ratio that the hunts found, by size
    command: str  # what finds it again
    proof: str = ""  # where the ratio is proven for every n; empty for a conjecture
    stretch: Stretch | None = None  # a second parameter, where one makes the ratio larger

    @property
    def closed(self) -> Closed | None:
        """The ratio as a function of n, where it has a closed form."""
        return closed(self.points, self.problem.sense)

    @property
    def beyond(self) -> tuple[int, ...]:
        """The sizes that it was not fitted on."""
        return tuple(p.n for p in self.points if p.n not in self.fitted)

    def instance(self, n: int) -> Instance:
        """The instance of size n.

        Raises InputError: there is none.
        """
        name = f"family-{self.problem.id}-{self.method}-{n}"
        data = {**self.generator(n), "name": name}
        return self.problem.instance_class.parse(data, f"n={n}")

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        found = self.closed
        values: dict[str, Json] = {"ratio": None}
        if found is not None:
            values = {"ratio": str(found.ratio), "objective": found.objective, "optimum": found.optimum}
            values |= {"summed": True} if found.summed else {}
        return {
            KEY: FORM,
            "problem": self.problem.id,
            "method": self.method,
            "options": dict(self.options),
            "parameter": self.parameter,
            "status": "proven" if self.proof else "conjecture",
            **({"proof": self.proof} if self.proof else {}),
            **values,
            **({"stretch": self.stretch.to_dict()} if self.stretch is not None else {}),
            "fitted_on": list(self.fitted),
            "tried_on": list(self.beyond),
            "hunted": {str(n): value for n, value in self.hunted.items()},
            "points": [p.to_dict() for p in self.points],
            "command": self.command,
            "generator": self.generator.to_dict(),
        }

    def write(self, path: Path) -> None:
        """Write it where ``schedgap generate`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1) + "\n")

    def to_text(self) -> str:
        """A few lines for a person."""
        sense = self.problem.sense
        found = self.closed
        what = f"{self.problem.id}/{self.method}, n = {self.parameter}"
        if found is None:
            table = ", ".join(f"{fixed(float(p.ratio(sense)))} at n = {p.n}" for p in self.points)
            lines = [f"{what}: ratio {table}; no closed form of low degree"]
        else:
            ends = _growth(found.ratio.growth) if found.ratio.growth else f"tends to {found.ratio.limit}"
            lines = [f"{what}: ratio(n) = {found.ratio}, {ends}"]
        proofs = sorted({p.proof for p in self.points if p.n not in self.fitted})
        beyond = (
            f"holds exactly on {_span(self.beyond)} ({' and '.join(proofs)} optima)" if self.beyond else "not tried"
        )
        if found is None:
            beyond = f"tried on {_span(self.beyond)}" if self.beyond else "not tried beyond"
        lines.append(f"  fitted on {_span(self.fitted)}, {beyond}")
        if self.stretch is not None:
            lines.append(
                f"  with {self.stretch.numbers} times m the ratio tends to {self.stretch.limit} as m grows"
                f" (exact for {_span(self.stretch.sizes)}), {_growth(self.stretch.growth)}"
            )
        worse = [
            n
            for n, value in self.hunted.items()
            for p in self.points
            if p.n == n and value > float(p.ratio(sense)) * (1 + 1e-9)
        ]
        if worse:
            lines.append(f"  hunts found worse instances at {_span(worse)}")
        lines.append(
            f"  {'proven: ' + self.proof if self.proof else 'a conjecture: nothing here proves it for every n'}"
        )
        for name, runs in self.generator.to_dict()["lists"].items():
            lines += [f"  {name}: {json.dumps(run)}" for run in runs]
        return "\n".join(lines)


def _growth(power: int) -> str:
    return f"grows like n^{power}" if power > 1 else "grows like n" if power == 1 else "which is bounded"


def _span(sizes: tuple[int, ...] | list[int]) -> str:
    whole = list(sizes) == list(range(sizes[0], sizes[-1] + 1)) if sizes else False
    return "n = " + (f"{sizes[0]}..{sizes[-1]}" if whole and len(sizes) > 2 else ", ".join(map(str, sizes)))


def read_family(path: str | Path) -> Family:
    """The family in a file.

    Raises InputError: it is none; one line that names the file and the place.
    """
    data = read_json(path)
    if not isinstance(data, Mapping) or data.get(KEY) != FORM:
        raise InputError(f"{path}: {KEY}: must be {FORM}: this is no family of schedgap hunt --family")
    try:
        problem = find_problem(data["problem"])
        points = tuple(
            Point(p["n"], Fraction(p["objective"]), Fraction(p["optimum"]), Proof(p["proof"]), 0)
            for p in data["points"]
        )
        generator = Generator.from_dict(data["generator"])
        points = tuple(replace(p, weight=weight_of(generator(p.n))) for p in points)
        hunted = {int(n): float(value) for n, value in data["hunted"].items()}
        fitted = tuple(int(n) for n in data["fitted_on"])
        texts = (data["method"], dict(data["options"]), data["parameter"])
        more = data.get("stretch")
        stretch = None
        if more is not None:
            stretch = Stretch(more["times_m"], more["limit"], int(more["growth"]), tuple(more["exact_for"]))
        proof = str(data.get("proof", ""))
        return Family(problem, *texts, generator, points, fitted, hunted, data["command"], proof, stretch)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError) as error:
        raise InputError(f"{path}: is no family: {type(error).__name__}: {error}") from None


def member(path: str, preset: str | None, settings: Mapping[str, object]) -> Instance:
    """The instance of the family in this file whose size ``settings["n"]`` names.

    Raises InputError: no family, or a size that it has not.
    """
    family = read_family(path)
    size = str(settings.get("n", ""))
    whole = size.isascii() and size.isdecimal() and len(size) <= 5
    if preset is not None or set(settings) != {"n"} or not whole or not 1 <= int(size) <= 10**4:
        raise InputError(f"{path}: a family takes --set n=SIZE, a whole number from 1 to 10000, and nothing else")
    try:
        return family.instance(int(size))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
