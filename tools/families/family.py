"""A family: a generator, the ratio on its instances as a function of n, and the points it was fitted and tried on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.hunt.target import SEED, Judge, Target
from schedgap.benchmarks.proving import exact_value
from schedgap.benchmarks.text import fixed
from schedgap.catalogue.agreement import closed_by
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_heuristic, run_method
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.solvers.result import Proof, SolveOptions, Status, Termination
from schedgap.tools.families.forms import Polynomial, Quotient, fit, numbers_of, quotient, with_numbers
from schedgap.tools.families.generator import Generator, places

# Points of a family: runs by size, and how they are stretched to further sizes.

# What a heuristic and the optimum come to on the instances of a generator, exactly; the ratio as a function of n.

MOST_DEGREE = 3
"""Of the values as functions of n."""
EVIDENCE = 2
"""Values beyond those that determine a polynomial that have to lie on it."""


@dataclass(frozen=True)
class Point:
    """One size."""

    n: int  # the size
    # objective, optimum: of the heuristic, and the proven optimum, by the problem's checker
    objective: Fraction
    optimum: Fraction
    proof: Proof  # how far the optimum is proven
    weight: int  # jobs (or tasks) of the instance: a mean times this is a sum

    def ratio(self, sense: int) -> Fraction:
        """At least 1."""
        return self.objective / self.optimum if sense > 0 else self.optimum / self.objective

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {"n": self.n, "objective": str(self.objective), "optimum": str(self.optimum), "proof": self.proof}


def point(judge: Judge, n: int, data: Mapping[str, Json], options: Mapping[str, Json]) -> Point | None:
    """The values at one size; None where the instance is not valid, the heuristic finds nothing, the optimum is not
    proven within the judge's work, one of them is 0, or something faults, which the judge tells."""
    try:
        instance = judge.target.problem.instance_class.parse({**data, "name": f"n-{n}"})
    except InputError:
        return None
    return judge.guarded(instance, lambda: _point(judge, n, instance, options))


def _point(judge: Judge, n: int, instance: Instance, options: Mapping[str, Json]) -> Point | None:
    problem, method = judge.target.problem, judge.target.method
    assert method is not None
    run = run_heuristic(problem, instance, method, SolveOptions(seed=SEED), options)
    if run.solution is None or run.info.get("outside_model"):
        return None
    objective = exact_value(problem, instance, run.solution)
    best = run
    if run.status is not Status.OPTIMAL:
        limits = SolveOptions(threads=1, work_limit=judge.work, seed=SEED)
        exact = problem.default_method(instance)
        best = run_method(problem, instance, exact, limits, disagreements=judge.disagreements)
    if best.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if best.status is not Status.OPTIMAL or best.solution is None:
        return None
    optimum = exact_value(problem, instance, best.solution)
    if problem.sense * (objective - optimum) < 0:
        if not closed_by(problem, objective, optimum):
            better = f"{float(objective):.12g} is better than the optimum {float(optimum):.12g}"
            raise Disagreement(f"{judge.target.id}: {better}")
        optimum = objective
    if not objective or not optimum:
        return None
    proof = (
        Proof.CERTIFIED if _certified(judge.target, instance, optimum, best.solution) else best.proof or Proof.CLAIMED
    )
    return Point(n, objective, optimum, proof, weight_of(instance.to_dict()))


def weight_of(data: Mapping[str, Json]) -> int:
    """How many jobs, or tasks, an instance has."""
    return len(data.get("jobs", data.get("tasks", ())))


def _certified(target: Target, instance: Any, value: Fraction, solution: Any) -> bool:
    """Whether a short certificate of this optimum is accepted by the checker of certificates."""
    from schedgap.solvers.certificates.linear import Rejected
    from schedgap.solvers.certificates.make import FEW, check, prove
    from schedgap.solvers.certificates.tree import Unproven

    try:
        verdict = check(instance, prove(instance, value, solution, FEW, sense=target.problem.sense))
    except (Rejected, Unproven):
        return False
    return verdict.bound is not None and closed_by(target.problem, value, verdict.bound)


@dataclass(frozen=True)
class Closed:
    """A ratio as a function of n that holds exactly at every point."""

    ratio: Quotient  # at least 1
    # objective, optimum: polynomials as text, each times the number of jobs where `summed`
    objective: str
    optimum: str
    summed: bool  # the values are means, and these are sums
    degree: int  # the larger of both degrees


def closed(points: Sequence[Point], sense: int) -> Closed | None:
    """The ratio in closed form; None where the values are no polynomials of n for which there is enough evidence."""
    most = min(MOST_DEGREE, len(points) - 1 - EVIDENCE)
    if most < 0:
        return None
    for summed in (False, True):
        weight = {p.n: p.weight if summed else 1 for p in points}
        objective = fit({p.n: p.objective * weight[p.n] for p in points}, most)
        optimum = fit({p.n: p.optimum * weight[p.n] for p in points}, most)
        if objective is not None and optimum is not None:
            ratio = quotient(*((objective, optimum) if sense > 0 else (optimum, objective)))
            return Closed(ratio, str(objective), str(optimum), summed, max(objective.degree, optimum.degree))
    return None


# A second parameter m: some numbers of a generator times m, where that makes the ratio larger without end in sight.

FACTORS = (2, 3, 4, 5)
"""Values of m at which the values have to be a polynomial of m."""
SIZES = 6
"""Most sizes that are tried."""


@dataclass(frozen=True)
class Stretch:
    """The numbers that are multiplied, and what the ratio tends to as m grows."""

    numbers: str  # where they are, in words
    limit: str  # of the ratio, as a function of n, as text
    growth: int  # it grows like n to this power
    sizes: tuple[int, ...]  # the n at which the values are polynomials of m, exactly

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "times_m": self.numbers,
            "limit": self.limit,
            "growth": self.growth,
            "exact_for": list(self.sizes),
        }


def times(generator: Generator, chosen: frozenset[int], m: int) -> Generator:
    """The generator with the numbers at these positions m times as large."""
    scaled = [
        Polynomial(tuple(m * c for c in one.coefficients)) if k in chosen else one
        for k, one in enumerate(numbers_of(generator.form))
    ]
    return Generator(with_numbers(generator.form, iter(scaled)))


def stretched(
    judge: Judge, generator: Generator, sizes: tuple[int, ...], options: Mapping[str, Json]
) -> Stretch | None:
    """The numbers of one kind, in some runs, that raise the ratio most when they grow; None where none do.

    The values have to be polynomials of m at every size, and what leads them polynomials of n.

    Parameters
    ----------
    sizes : n at which the generator was tried; the first ones are used
    """
    if len(sizes) < EVIDENCE + 2:
        return None
    sense, best, chosen = judge.target.problem.sense, Fraction(1), None
    for numbers, name in _choices(generator):
        made = [_at(judge, times(generator, numbers, m), sizes[1], options) for m in (1, 2, 4)]
        ratios = [one.ratio(sense) for one in made if one is not None]
        rises = len(ratios) == 3 and all(b > a for a, b in itertools.pairwise(ratios))
        if rises and ratios[-1] > best:
            best, chosen = ratios[-1], (numbers, name)
    if chosen is None:
        return None
    numbers, name = chosen
    leads: tuple[dict[int, Fraction], dict[int, Fraction]] = ({}, {})
    for n in sizes[:SIZES]:
        made = [_at(judge, times(generator, numbers, m), n, options) for m in FACTORS]
        points = [one for one in made if one is not None]
        if len(points) < len(FACTORS):
            break
        weight = points[0].weight
        objective, optimum = (
            fit({m: getattr(one, key) * weight for m, one in zip(FACTORS, points, strict=True)}, 1)
            for key in ("objective", "optimum")
        )
        if objective is None or optimum is None or objective.degree != 1 or optimum.degree != 1:
            return None
        leads[0][n], leads[1][n] = objective.coefficients[-1], optimum.coefficients[-1]
    most = min(MOST_DEGREE, len(leads[0]) - 1 - EVIDENCE)
    above, below = (fit(lead, most) if most >= 0 else None for lead in leads)
    if above is None or below is None:
        return None
    limit = quotient(*((above, below) if sense > 0 else (below, above)))
    return Stretch(name, str(limit), limit.growth, tuple(leads[0]))


def _at(judge: Judge, generator: Generator, n: int, options: Mapping[str, Json]) -> Point | None:
    try:
        return point(judge, n, generator(n), options)
    except InputError:
        return None


def _choices(generator: Generator) -> list[tuple[frozenset[int], str]]:
    """Positions of one kind of number in some runs of a list, with how they go on, and their name."""
    found = []
    at = [path for path, _ in places(generator.form)]
    values = list(numbers_of(generator.form))
    for name, runs in generator.form["lists"].items():
        spots: dict[str, dict[int, list[int]]] = {}
        for k in range(len(runs)):
            first = [i for i, path in enumerate(at) if path[:4] == ("lists", name, str(k), "first")]
            steps = [i for i, path in enumerate(at) if path[:4] == ("lists", name, str(k), "step")]
            for i, step in zip(first, steps, strict=True):
                if values[i].coefficients:
                    spots.setdefault(".".join(at[i][4:]), {})[k] = [i, step]
        for leaf, by_run in spots.items():
            for count in range(1, len(by_run) + 1):
                for some in itertools.combinations(by_run, count):
                    which = " and ".join(f"{name}[{k}].{leaf}" for k in some)
                    found.append((frozenset(i for k in some for i in by_run[k]), which))
    return found


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
