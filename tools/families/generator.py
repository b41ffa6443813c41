"""A generator: a form whose numbers are polynomials of n, fitted to forms of several n."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.families.forms import (
    Form,
    forms_of,
    fraction,
    instance_of,
    is_number,
    numbers_of,
    skeleton,
    with_numbers,
)
from schedgap.tools.families.polynomials import Polynomial, fit

MOST_COMBINATIONS = 3000
"""Ways to put one form of every n together that are tried."""
MOST_CONTINUED = 3
"""Forms of one instance that are continued."""
MOST_WAYS = 1200
"""Ways of one kind in which one form is continued."""
MOST_CHANGES = 3
"""Groups of numbers that change at once."""
MOST_STEPS = 30
"""Ways to choose steps that are open."""
MARK = "= "
"""What a polynomial begins with where a generator is written as JSON."""


@dataclass(frozen=True)
class Generator:
    """Instances of every size n."""

    form: Form  # form of :mod:`~schedgap.tools.families.forms`, with a polynomial for every number

    def __call__(self, n: int) -> dict[str, Json]:
        """The instance of size n, as a JSON object without a name.

        Raises InputError: there is none of this size.
        """
        try:
            return instance_of(with_numbers(self.form, iter([one(n) for one in numbers_of(self.form)])))
        except InputError as error:
            raise InputError(f"n: no instance of size {n}: {error}") from None

    @property
    def complexity(self) -> float:
        """0 where nothing depends on n; larger where numbers do in less simple ways, or there are more of them."""
        numbers: list[Polynomial] = list(numbers_of(self.form))
        return sum(one.complexity for one in numbers) + 0.01 * len(numbers)

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form: constants as numbers, the others as texts such as "= n^2 - n"."""
        return dict(with_numbers(self.form, iter([_text(one) for one in numbers_of(self.form)])))

    @classmethod
    def from_dict(cls, data: Json) -> Generator:
        """What :meth:`to_dict` wrote.

        Raises InputError: it is no generator; the line names the place.
        """
        if not isinstance(data, Mapping) or set(data) != {"rest", "lists", "pairs"}:
            raise InputError("generator: must be an object with rest, lists and pairs")
        form = _read(data, "generator")
        for name, runs in form["lists"].items() if isinstance(form["lists"], Mapping) else [("", None)]:
            for k, run in enumerate(runs) if isinstance(runs, list) else [(0, None)]:
                where = f"generator.lists.{name}[{k}]"
                if not isinstance(run, Mapping) or set(run) != {"count", "first", "step"}:
                    raise InputError(f"{where}: must be an object with count, first and step")
                if not isinstance(run["step"], list) or len(run["step"]) != len(list(numbers_of(run["first"]))):
                    raise InputError(f"{where}.step: must have as many numbers as first")
        return cls(form)


def _text(one: Polynomial) -> Json:
    constant = one(0)
    if one.degree:
        return f"{MARK}{one}"
    return int(constant) if constant.denominator == 1 else float(constant)


def _read(node: Any, where: str) -> Any:
    if isinstance(node, Mapping):
        return {key: _read(below, f"{where}.{key}") for key, below in node.items()}
    if isinstance(node, list):
        return [_read(below, f"{where}[{k}]") for k, below in enumerate(node)]
    if isinstance(node, str) and node.startswith(MARK):
        try:
            return Polynomial.read(node.removeprefix(MARK))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if isinstance(node, int | float) and not isinstance(node, bool):
        return Polynomial((fraction(node),)) if node else Polynomial(())
    return node


def fitted(found: Mapping[int, Sequence[Mapping[str, Json]]], most: int = 2) -> list[Generator]:
    """The generators through one instance of every n, the simplest first.

    Returns those whose every number is a polynomial of this degree; with as many n as coefficients that is no evidence
    yet, so the caller tries them at other n.

    Parameters
    ----------
    found : instances as JSON objects by n, the best ones first
    most : highest degree in n
    """
    by_n = {n: _by_skeleton(instances) for n, instances in sorted(found.items())}
    if not by_n:
        return []
    common = set.intersection(*(set(forms) for forms in by_n.values()))
    generators: dict[str, Generator] = {}
    for shape in sorted(common):
        lists = [forms[shape] for forms in by_n.values()]
        # Every n has as many forms, the first ones, as keep the number of combinations in bounds.
        width = max(1, math.floor(MOST_COMBINATIONS ** (1 / len(lists))))
        for chosen in itertools.product(*(forms[:width] for forms in lists)):
            one = _through(dict(zip(by_n, chosen, strict=True)), most)
            if one is not None:
                generators.setdefault(str(one.to_dict()), one)
    return sorted(generators.values(), key=lambda one: (one.complexity, str(one.to_dict())))


def lengthened(data: Mapping[str, Json], n: int, name: str) -> list[Generator]:
    """Generators in which one run of the list `name` has as many entries more as n is larger, and nothing else changes.

    A single instance, of size n, is no evidence: what they come to at other sizes is.
    """
    found = []
    for form in forms_of(data)[:MOST_CONTINUED]:
        names = [(path[1], path[-1]) for path, _ in places(form)]
        values = [Polynomial(()) if not value else Polynomial((fraction(value),)) for value in numbers_of(form)]
        for k, place in enumerate(names):
            if place == (name, "count"):
                count = Polynomial((values[k](0) - n, Fraction(1))) if values[k](0) != n else Polynomial.read("n")
                found.append(Generator(with_numbers(form, iter([*values[:k], count, *values[k + 1 :]]))))
    return found


def continued(
    data: Mapping[str, Json], n: int, fixed: Collection[str] = (), counts_only: bool = False
) -> list[dict[str, Json]]:
    """What an instance of size n may look like at n + 1, before there are others to fit it with.

    Runs become longer, each by one or as c n, c (n - 1) or c n (n - 1) do, and so do numbers, those that are equal
    together or each on its own. Where a run of one entry becomes longer its steps are open, and all likely ones are
    tried. Of every kind those with the fewest changes come first.

    Parameters
    ----------
    fixed : what stays: patterns, or lists for the numbers of their entries
    counts_only : only the lengths of runs change, by one
    """
    found: dict[str, dict[str, Json]] = {}
    for form in forms_of(data)[:MOST_CONTINUED]:
        longer = {
            key: [{**run, "count": run["count"] + (key not in fixed)} for run in runs]
            for key, runs in form["lists"].items()
        }
        more = {**form, "lists": longer}
        kinds = [(more, "")] if counts_only else [(form, "count"), (more, "value"), (more, "place")]
        for start, by in kinds:
            for made in itertools.islice(_variants(start, n, fixed, by), MOST_WAYS):
                found.setdefault(str(made), made)
    return list(found.values())


def _variants(start: Form, n: int, fixed: Collection[str], by: str) -> Iterator[dict[str, Json]]:
    kinds = _kinds(start, fixed, by)
    groups = [key for key in dict.fromkeys(kinds) if key is not None]
    # Where every number may change on its own there are many ways, so that it changes by little.
    ways = [_ways(value, n)[: 3 if by == "place" else None] for _, value in groups]
    for chosen in _fewest(ways):
        choice = dict(zip(groups, chosen, strict=True))
        old = zip(kinds, numbers_of(start), strict=True)
        whole = with_numbers(start, iter([value if key is None else choice[key] for key, value in old]))
        for one in _with_steps(whole):
            try:
                yield instance_of(one)
            except InputError:
                continue


def _with_steps(form: Form) -> Iterator[Form]:
    """Where a run has become longer than one entry, its steps are open: 0, or up or down as much as another run's."""
    names = {key: [run["step"] for run in runs] for key, runs in form["lists"].items()}
    longer = [
        (key, k)
        for key, runs in form["lists"].items()
        for k, run in enumerate(runs)
        if run["count"] > 1 and None in run["step"]
    ]
    if not longer:
        yield form
        return
    ways = []
    for key, k in longer:
        alike = [step for step in names[key] if len(step) == len(names[key][k])]
        known = [{abs(step[i]) for step in alike if step[i]} for i in range(len(names[key][k]))]
        ways.append(
            list(
                itertools.islice(
                    itertools.product(
                        *[[Fraction(0), *(sign * x for x in sorted(some) for sign in (1, -1))] for some in known]
                    ),
                    MOST_STEPS,
                )
            )
        )
    for chosen in itertools.islice(itertools.product(*ways), MOST_STEPS):
        changed = {key: list(runs) for key, runs in form["lists"].items()}
        for (key, k), step in zip(longer, chosen, strict=True):
            changed[key][k] = {**changed[key][k], "step": list(step)}
        yield {**form, "lists": changed}


def _kinds(form: Form, fixed: Collection[str], by: str) -> list[tuple[str, int] | None]:
    """For every number the group that it changes with, and its value; None where it stays, as 0 and 1 do.

    Parameters
    ----------
    by : "count" for counts, and numbers that are equal; "value" for these numbers alone; "place" for every number on
        its own
    """
    result: list[tuple[str, int] | None] = []
    for k, (path, value) in enumerate(places(form)):
        # lists.jobs.first.gpus is jobs.gpus, rest.horizon is horizon, lists.jobs.count is jobs.
        name = ".".join(part for part in path[1:] if part not in ("first", "count") and not part.isdecimal())
        count = path[0] == "lists" and path[-1] == "count"
        whole = value is not None and value == int(value) and (value >= 1 if count else value > 1)
        moves = whole and name not in fixed and "step" not in path and (by == "count" if count else by != "")
        group = f"{k}" if by == "place" else name if count else ""
        result.append((group, int(value)) if moves else None)
    return result


def places(node: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The numbers of :func:`~schedgap.tools.families.forms.numbers_of`, each with its place."""
    if isinstance(node, Mapping):
        for key in sorted(node):
            yield from places(node[key], (*path, key))
    elif isinstance(node, list):
        for k, below in enumerate(node):
            yield from places(below, (*path, str(k)))
    elif node is None or is_number(node):
        yield path, node


def _ways(value: int, n: int) -> list[int]:
    ways = [value, value + 1, value + 2]
    for above, below in ((n + 1, n), (n, n - 1), (n + 1, n - 1)):
        if below and value * above % below == 0:
            ways.append(value * above // below)
    return list(dict.fromkeys(ways))


def _fewest(ways: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Choices of one of each, those that change the fewest first."""
    found: list[tuple[int, ...]] = []
    for changes in range(min(MOST_CHANGES, len(ways)) + 1):
        for places in itertools.combinations(range(len(ways)), changes):
            every = [way[1:] if k in places else way[:1] for k, way in enumerate(ways)]
            found += itertools.islice(itertools.product(*every), MOST_WAYS - len(found))
            if len(found) >= MOST_WAYS:
                return found
    return found


def _by_skeleton(instances: Sequence[Mapping[str, Json]]) -> dict[str, list[Form]]:
    found: dict[str, list[Form]] = {}
    for data in instances:
        for form in forms_of(data):
            found.setdefault(skeleton(form), []).append(form)
    return found


def _through(forms: Mapping[int, Form], most: int) -> Generator | None:
    rows = {n: list(numbers_of(form)) for n, form in forms.items()}
    found = []
    for column in zip(*rows.values(), strict=True):
        # Numbers that a form leaves open, as the step of a run of one entry, are no evidence against anything.
        known = {n: fraction(value) for n, value in zip(rows, column, strict=True) if value is not None}
        one = fit(known, most) if known else Polynomial(())
        if one is None:
            return None
        found.append(one)
    return Generator(with_numbers(next(iter(forms.values())), iter(found)))
