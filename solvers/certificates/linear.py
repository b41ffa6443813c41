"""Rows over bounded variables, and what multiples of them add up to, in exact numbers: a part of the checker.

The standard library and nothing else, as everything that the checker uses.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

GRID = 2**40
"""A multiplier that is a whole number n in the file means n / 2^40."""
_LONGEST = 10_000
"""Characters of a fraction in a file."""
_MOST_BITS = 20_000
"""In the common denominator of all fractions of a leaf: adding up costs the square of its digits."""

_MOST_TERMS = 20_000_000
"""Terms of rows that are looked at before narrowing is given up; 131,436 for all nodes of one tree of the library."""

MOST_PARTS = 2_000_000
"""Variables, rows and terms of a model; a short instance may ask for more than any memory holds."""

Box = dict[str, tuple[int, int]]
"""Bounds of the variables that splits have narrowed."""


class Rejected(Exception):
    """The certificate proves nothing; the message says where it fails."""


def reject(text: str) -> NoReturn:
    """Stop here."""
    raise Rejected(text)


@dataclass
class Row:
    """A row ``sum terms (>= or =) right``; "<=" is stored as ">=" with all signs turned."""

    terms: dict[int, Fraction]
    right: Fraction
    equal: bool


@dataclass
class Model:
    """What every schedule satisfies: rows over variables with bounds; or a price function in place of rows."""

    sense: int = 1  # 1 minimise, -1 maximise; costs are stored for minimisation
    names: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    low: list[Fraction] = field(default_factory=list)
    high: list[Fraction] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    cost: list[Fraction] = field(default_factory=list)
    constant: Fraction = Fraction(0)
    rows: dict[str, Row] = field(default_factory=dict)
    step: Fraction | None = None  # every value of the objective is a constant plus a multiple of it, where not None
    # only schedules up to this value are points, so no claim may be above it; None: all are
    cutoff: Fraction | None = None
    spare: tuple[str, ...] = ()  # families of variables that a model leaves out where they say nothing
    senses: set[int] = field(default_factory=set)  # senses of the stored costs
    # a bound from what a leaf carries and from the box, for minimisation; None where the box is empty
    price: Callable[[Any, Box], Fraction | None] | None = None
    parts: int = 0  # variables, rows and terms so far

    def var(self, name: str, low: Any = 0, high: Any = 1, cost: Any = 0, whole: bool = True) -> str:
        """A variable with finite bounds, not in the wrong order: an empty domain would prove whatever is claimed."""
        if name in self.index:
            raise ValueError(f"variable {name} is declared twice")
        least, most = Fraction(low), Fraction(high)
        if least > most or (whole and math.ceil(least) > math.floor(most)):
            reject(f"variable {name} has no value from {least} to {most}")
        self.parts = within(self.parts + 1)
        self.index[name] = len(self.names)
        self.names.append(name)
        self.low.append(least)
        self.high.append(most)
        self.whole.append(whole)
        self.senses.add(self.sense)
        self.cost.append(self.sense * Fraction(cost))
        return name

    def row(self, name: str, terms: Sequence[tuple[str, Any]], sense: str, right: Any) -> None:
        """A row with ``<=``, ``>=`` or ``=``; terms of the same variable add up."""
        if name in self.rows:
            raise ValueError(f"row {name} is declared twice")
        self.parts = within(self.parts + 1 + len(terms))
        turn = -1 if sense == "<=" else 1
        added: dict[int, Fraction] = {}
        for variable, coefficient in terms:
            j, value = self.index[variable], Fraction(turn * coefficient)
            added[j] = added[j] + value if j in added else value
        self.rows[name] = Row({j: a for j, a in added.items() if a}, turn * Fraction(right), sense == "=")

    def in_steps(self, values: Iterable[Any]) -> None:
        """The step of an objective that sums multiples of `values` up, zeros aside; none where all are zero."""
        if parts := [Fraction(value) for value in values if value]:
            below = math.lcm(*(part.denominator for part in parts))
            self.step = Fraction(math.gcd(*(int(part * below) for part in parts)), below)

    def finished(self) -> Model:
        """The step of the objective, where only whole variables have costs."""
        if self.senses - {self.sense}:
            reject("the sense changed after a variable")
        priced = (j for j, c in enumerate(self.cost) if c)
        if self.step is None and self.price is None and all(self.whole[j] for j in priced):
            self.in_steps(self.cost)
        return self


class Adder:
    """Adds rows of a model up, in whole numbers: everything is multiplied by one common denominator."""

    def __init__(self, model: Model) -> None:
        self.model = model
        parts = [*model.cost, *(a for row in model.rows.values() for a in row.terms.values())]
        parts += [row.right for row in model.rows.values()]
        self.scale = math.lcm(*{part.denominator for part in parts}) if parts else 1
        self.cost = [int(c * self.scale) for c in model.cost]
        # most bounds are whole, and whole numbers add up several times faster than fractions
        self.bounds: list[tuple[Any, Any]] = [
            (_as_int(low), _as_int(high)) for low, high in zip(model.low, model.high, strict=True)
        ]
        self._rows: dict[str, tuple[list[tuple[int, int]], int]] = {}

    def combined(self, multipliers: Mapping[str, Any], use_cost: bool) -> tuple[dict[int, int], int, int]:
        """(what is left of the costs, what the right sides add up to, denominator) of these multiples of rows.

        Raises Rejected: there is no such row, or an inequality has a negative multiplier.
        """
        if not isinstance(multipliers, dict):
            reject("multipliers must be an object by row")
        for name in multipliers:
            if name not in self.model.rows:
                reject(f"there is no row {name}")
        numbers = {name: number(value, f"multiplier of {name}") for name, value in multipliers.items()}
        below = denominator(numbers.values())
        left = {j: c * below for j, c in enumerate(self.cost) if c} if use_cost else {}
        right = 0
        for name, value in numbers.items():
            row = self.model.rows[name]
            if value < 0 and not row.equal:
                reject(f"row {name} is an inequality, its multiplier is negative")
            y = value.numerator * (below // value.denominator)
            terms, whole_right = self._whole(name, row)
            right += y * whole_right
            for j, a in terms:
                left[j] = left.get(j, 0) - y * a
        return left, right, below * self.scale

    def _whole(self, name: str, row: Row) -> tuple[list[tuple[int, int]], int]:
        if name not in self._rows:
            terms = [(j, int(a * self.scale)) for j, a in row.terms.items()]
            self._rows[name] = (terms, int(row.right * self.scale))
        return self._rows[name]

    def bound(self, multipliers: Mapping[str, Any], box: Box, use_cost: bool) -> Fraction:
        """The least value of the objective (of 0 without costs) that the rows so weighted allow in the box.

        With multipliers y (>= 0 on inequalities) and any point x of the model, c x >= y b + (c - y A) x, and the last
        term is at least its least value over the bounds (Neumaier and Shcherbina 2004). So every y is valid.
        """
        left, right, below = self.combined(multipliers, use_cost)
        model, total = self.model, right
        for j, reduced in left.items():
            if reduced:
                low, high = box.get(model.names[j]) or self.bounds[j]
                total += reduced * (low if reduced > 0 else high)
        return Fraction(total) / below + (model.constant if use_cost else 0)


class Narrower:
    """Narrows the bounds of whole variables by the rows of a model, one row at a time, until no row narrows any.

    A row a x >= b leaves a whole variable x_j with a_j > 0 only values from (b - what the other terms are at most)
    / a_j on, rounded up; with a_j < 0 the same from above. What is left does not depend on the order of rows.

    Parameters
    ----------
    in_all : all narrowings together have a limit, not each
    """

    def __init__(self, model: Model, *, in_all: bool = False) -> None:
        self.model, self.in_all, self.looked = model, in_all, 0
        self.bounds: list[tuple[Any, Any]] = [
            (math.ceil(low), math.floor(high)) if whole else (low, high)
            for low, high, whole in zip(model.low, model.high, model.whole, strict=True)
        ]
        self.rows: list[tuple[list[tuple[int, int]], int]] = []
        self.rows_of: list[list[int]] = [[] for _ in model.names]
        for row in model.rows.values():
            scale = math.lcm(row.right.denominator, *(a.denominator for a in row.terms.values()))
            for turn in (scale, -scale) if row.equal else (scale,):
                for j in row.terms:
                    self.rows_of[j].append(len(self.rows))
                terms = [(j, a.numerator * (turn // a.denominator)) for j, a in row.terms.items()]
                self.rows.append((terms, row.right.numerator * (turn // row.right.denominator)))

    def narrow(self, box: Box, changed: Iterable[str] | None = None) -> Box | None:
        """What is left of the box; None where a row shows that nothing is.

        Raises Rejected: it does not come to an end.

        Parameters
        ----------
        changed : variables whose bounds are new since the rows were gone through; None: go through all
        """
        names, whole, found = self.model.names, self.model.whole, dict(box)
        if changed is None:
            todo = deque(range(len(self.rows)))
        else:
            todo = deque(dict.fromkeys(i for name in changed for i in self.rows_of[self.model.index[name]]))
        waiting = set(todo)
        self.looked = self.looked if self.in_all else 0
        while todo:
            i = todo.popleft()
            waiting.remove(i)
            terms, right = self.rows[i]
            self.looked += len(terms)
            if self.looked > _MOST_TERMS:
                reject("narrowing by rows does not come to an end")
            ranges: list[tuple[Any, Any]] = [found.get(names[j]) or self.bounds[j] for j, _ in terms]
            slack = sum(a * (high if a > 0 else low) for (_, a), (low, high) in zip(terms, ranges, strict=True)) - right
            if slack < 0:
                return None
            for (j, a), (low, high) in zip(terms, ranges, strict=True):
                if whole[j] and abs(a) * (high - low) > slack:
                    room = math.floor(slack / abs(a)) if isinstance(slack, Fraction) else slack // abs(a)
                    found[names[j]] = (high - room, high) if a > 0 else (low, low + room)
                    again = [k for k in self.rows_of[j] if k not in waiting]
                    todo.extend(again)
                    waiting.update(again)
        return found


def _as_int(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def within(parts: int) -> int:
    """Parts of a model, which are no more than MOST_PARTS.

    Raises Rejected: they are.
    """
    if parts > MOST_PARTS:
        reject(f"the model has more than {MOST_PARTS:,} variables, rows and terms")
    return parts


def denominator(numbers: Iterable[Fraction]) -> int:
    """A common denominator of numbers of a certificate, a multiple of 2^40.

    Raises Rejected: it is so long that adding them up would take as long as a stranger likes.
    """
    found = GRID
    for below in {number.denominator for number in numbers}:
        found = math.lcm(found, below)
        if found.bit_length() > _MOST_BITS:
            reject(f"the fractions have a common denominator of more than {_MOST_BITS:,} binary digits")
    return found


def decimal(value: Any, digits: int = 9) -> str:
    """A number of a stranger for a message, which may be beyond what a float holds."""
    try:
        return f"{float(value):.{digits}g}"
    except OverflowError:
        return f"{'-' if value < 0 else ''}10^{int((abs(value).__floor__().bit_length() - 1) * math.log10(2))}"


def number(value: Any, what: str) -> Fraction:
    """A number of a certificate: a whole number n is n / 2^40, text is a fraction."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value, GRID)
    return fraction(value, what)


def fraction(value: Any, what: str) -> Fraction:
    """A fraction written as text, such as "-7/3"."""
    parts = value.removeprefix("-").split("/") if isinstance(value, str) and len(value) <= _LONGEST else []
    if not 1 <= len(parts) <= 2 or not all(part.isascii() and part.isdigit() for part in parts):
        reject(f'{what}: must be a whole number or a fraction as text, such as "-7/3"')
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        reject(f"{what}: {value[:40]!r} is no fraction")
