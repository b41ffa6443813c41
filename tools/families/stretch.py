"""A second parameter m: some numbers of a generator times m, where that makes the ratio larger without end in sight."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from schedgap.benchmarks.hunt.target import Judge
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.families.forms import numbers_of, with_numbers
from schedgap.tools.families.generator import Generator, places
from schedgap.tools.families.points import EVIDENCE, MOST_DEGREE, Point, point
from schedgap.tools.families.polynomials import Polynomial, fit, quotient

FACTORS = (2, 3, 4, 5)
"""Values of m at which the values have to be a polynomial of m."""


SIZES = 6
"""Most sizes that are tried."""


@dataclass(frozen=True)
class Stretch:
    """The numbers that are multiplied, and what the ratio tends to as m grows."""

    numbers: str  # where they are, in words
    limit: str  # limit of the ratio, as a function of n, as text
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
