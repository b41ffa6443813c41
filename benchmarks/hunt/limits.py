"""What bounds a hunt: the ``--set limit=value`` of the command line, and the ranges that numbers stay in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field as Allowed

from schedgap.benchmarks.hunt.fields import Field, fields_of, patterns_of, value_at
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import Option, options_of

Range = tuple[float, float]


def _search(
    *,
    evaluations: Annotated[
        int | None, Allowed(ge=1, le=10**9, description="instances tried; 4000, or no limit with --budget")
    ] = None,
    at_least: Annotated[
        float | None, Allowed(ge=1, le=1e12, description="stop at this ratio or left/right, and shrink down to it")
    ] = None,
    span: Annotated[
        float, Allowed(ge=1, description="numbers stay within those of the starts, divided and multiplied by this")
    ] = 4.0,
    work: Annotated[float, Allowed(gt=0, le=1e6, description="repeatable limit of each exact solve")] = 0.5,
    keep: Annotated[float, Allowed(gt=0, le=1, description="share of the ratio that shrinking keeps")] = 0.99,
    start: Annotated[
        str, Allowed(description="presets, families (those that verify tries), or names joined by +")
    ] = "presets",
) -> None:
    """The signature of a search: what its limits are."""


SEARCH = options_of(_search)
"""Limits of the search itself, for every problem."""


EVALUATIONS = 4000


LONGEST = 6
"""Most entries of a list of jobs, servers and so on where the starts have no more and no limit says otherwise."""


MOST = 12
"""The same where the starts have more."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a hunt."""

    search: Mapping[str, Any]  # the values of :data:`SEARCH`
    lengths: Mapping[str, int] = field(default_factory=dict)  # most entries of lists by pattern: {"jobs": 4}
    numbers: Mapping[str, Range] = field(default_factory=dict)  # ranges of numbers by pattern: {"jobs.gpus": (1, 1)}
    # allowed words by pattern: {"jobs.utility.kind": ("linear", "sqrt")}
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the heuristic
    given: Mapping[str, Any] = field(default_factory=dict)  # limits in the user's words, for the record


def parse_limits(problem: Problem, method: Method | None, given: Mapping[str, Json]) -> Limits:
    """The limits that ``--set`` names.

    A name is one of :data:`SEARCH`, a list of the instance (``jobs=4``: at most 4), a number of it
    (``jobs.gpus=2``: at most 2; ``horizon=5..20``: a range), a word of it (``jobs.utility.kind=linear+sqrt``: one of
    these), or an option of the heuristic. Raises InputError: an unknown name (the line lists those there are), or a
    value that does not fit.
    """
    ranges: dict[str, Range] = {}
    choices: dict[str, tuple[str, ...]] = {}
    known = patterns_of(problem.instance_class.model_json_schema(), ranges, choices)
    own = method.options if method is not None else {}
    search = {name: option.default for name, option in SEARCH.items()}
    lengths: dict[str, int] = {}
    numbers: dict[str, Range] = {}
    words: dict[str, tuple[str, ...]] = {}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in SEARCH:
            search[name] = SEARCH[name].parse(value)
        elif known.get(name) in ("list", "map"):
            lengths[name] = Option(name, Annotated[int, Allowed(ge=1, le=10**6)], None, "").parse(value)
        elif known.get(name) == "number":
            numbers[name] = _range(name, value)
            low, high = ranges.get(name, (-math.inf, math.inf))
            if numbers[name][1] < low or numbers[name][0] > high:
                raise InputError(f"limit {name}: no instance has {value}; its range is {low:g} to {high:g}")
        elif known.get(name) == "choice" and choices.get(name):
            words[name] = tuple(str(value).split("+"))
            for word in words[name]:
                if word not in choices[name]:
                    known_words = ", ".join(choices[name])
                    close = near(word, choices[name])
                    raise InputError(f"limit {name}: unknown word {word!r}, one of: {known_words}{close}")
        elif name in own:
            options[name] = own[name].parse(value)
        else:
            there = [*SEARCH, *(n for n, kind in known.items() if kind != "choice" or choices.get(n)), *own]
            raise InputError(f"limit: unknown limit {name!r}, one of: {', '.join(there)}{near(name, there)}")
    return Limits(search, lengths, numbers, words, options, dict(given))


def _range(name: str, value: Any) -> Range:
    low, dots, high = str(value).partition("..")
    try:
        ends = (float(low), float(high)) if dots else (-math.inf, float(low))
    except ValueError:
        raise InputError(f"limit {name}: must be a number or low..high, got {value!r}") from None
    if not ends[0] <= ends[1] or math.isinf(ends[1]) or any(map(math.isnan, ends)):
        raise InputError(f"limit {name}: must be a number or low..high, got {value!r}")
    return ends


@dataclass(frozen=True)
class Space:
    """The instances a hunt may visit."""

    schema: Mapping[str, Any]  # the problem's JSON Schema
    numbers: Mapping[str, Range]  # range of each pattern
    lengths: Mapping[str, int]  # most entries of each list by pattern
    positive: frozenset[str] = frozenset()  # patterns whose limit leaves 0 out
    # the words that a pattern may have; any where it is not there
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    digits: int | None = None  # significant digits of numbers that need not be whole; None leaves them as they are
    regular: bool = False  # lists are changed many equal or evenly rising entries at a time too

    def range_of(self, leaf: Field) -> Range:
        """The range of a number here: that of its pattern within the schema's."""
        low, high = self.numbers.get(leaf.pattern, (-math.inf, math.inf))
        return max(low, leaf.low), min(high, leaf.high)

    def clamp(self, leaf: Field, value: float) -> float | int | None:
        """The nearest allowed value; None where there is none. 0 is allowed wherever the schema has it."""
        if value == 0 and leaf.low <= 0 and not (leaf.open_low and leaf.low == 0) and leaf.pattern not in self.positive:
            return 0 if leaf.kind is int else 0.0
        low, high = self.range_of(leaf)
        if leaf.kind is int:
            least, most = math.ceil(max(low, -1e15)), math.floor(min(high, 1e15))
            least += leaf.open_low and least == leaf.low
            return None if least > most else min(most, max(least, round(value)))
        value = min(high, max(low, value if self.digits is None else rounded(value, self.digits)))
        return None if low > high or (leaf.open_low and value <= leaf.low) else value


def rounded(value: float, digits: int) -> float:
    """`value` with so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def observed(schema: Mapping[str, Json], samples: Iterable[Json]) -> dict[str, Range]:
    """The smallest and the largest number of each pattern in some instances; where all are 0, 1 stands for them."""
    seen: dict[str, Range] = {}
    zeros: set[str] = set()
    for data in samples:
        for leaf in fields_of(schema, data):
            value = value_at(data, leaf.path)
            if leaf.kind in (int, float) and value == 0:
                zeros.add(leaf.pattern)
            elif leaf.kind in (int, float):
                low, high = seen.get(leaf.pattern, (value, value))
                seen[leaf.pattern] = min(low, value), max(high, value)
    return {**dict.fromkeys(sorted(zeros), (1.0, 1.0)), **seen}


def widened(seen: Mapping[str, Range], span: float, limits: Mapping[str, Range]) -> dict[str, Range]:
    """Ranges widened by `span` at both ends, then cut to the limits; a limit's own ends count beyond that."""
    result = {}
    for pattern, (low, high) in seen.items():
        ends = (low / span if low > 0 else low * span, high * span if high > 0 else high / span)
        result[pattern] = ends
    for pattern, (low, high) in limits.items():
        usual = result.get(pattern, (-math.inf, math.inf))
        result[pattern] = (min(usual[0], high) if math.isinf(low) else low, high)
    return result
