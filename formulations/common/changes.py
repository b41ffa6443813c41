"""What a user changed in a declarative model: rows and an objective, as exact sums over named variables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

Place: TypeAlias = tuple[str, tuple[str | int, ...]]
"""A variable: its family and its key."""
Sum: TypeAlias = Mapping[Place, Fraction]


def whole_terms(terms: Sum, level: Fraction, largest: int) -> tuple[Mapping[Place, int], int, int] | None:
    """(whole coefficients, whole level, the factor that both were multiplied by); None where a number is too large."""
    factor = math.lcm(level.denominator, *(c.denominator for c in terms.values()))
    whole = {place: int(c * factor) for place, c in terms.items()}
    if max([abs(int(level * factor)), *map(abs, whole.values())]) > largest:
        return None
    return whole, int(level * factor), factor


@dataclass(frozen=True)
class OwnRow:
    """One row of a user's."""

    name: str
    terms: Sum
    sense: int  # -1: at most, 0: equal, 1: at least
    level: Fraction  # right side

    def signature(self) -> tuple[frozenset[tuple[Place, Fraction]], int, Fraction]:
        """What two rows that say the same have in common."""
        return frozenset((place, c) for place, c in self.terms.items() if c), self.sense, self.level


@dataclass(frozen=True)
class Changes:
    """All that a user changed.

    Attributes
    ----------
    rows : rows that were added
    objective, constant, sense : the objective in place of the problem's own; None where that stands
    indices : names of the indices of each family's keys, such as ("job", "slot")
    """

    rows: tuple[OwnRow, ...] = ()
    objective: Sum | None = None
    constant: Fraction = Fraction(0)
    sense: int = 1
    indices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing was changed."""
        return not self.rows and self.objective is None

    def at_most(self, largest: int) -> list[tuple[Mapping[Place, int], int]] | None:
        """The rows as sums that are at most a level, in whole numbers; None where one of them is above `largest`."""
        limited: list[tuple[Mapping[Place, int], int]] = []
        for row in self.rows:
            whole = whole_terms(row.terms, row.level, largest)
            if whole is None:
                return None
            terms, level, _ = whole
            if row.sense <= 0:
                limited.append((terms, level))
            if row.sense >= 0:
                limited.append(({place: -c for place, c in terms.items()}, -level))
        return limited

    def families(self) -> frozenset[str]:
        """The families of all variables that a row or the objective is about."""
        return frozenset(family for terms in self._sums() for family, _ in terms)

    def mentioned(self, kind: str) -> frozenset[str | int]:
        """The members of an index that a row or the objective is about."""
        return frozenset(
            part
            for terms in self._sums()
            for family, key in terms
            for name, part in zip(self.indices[family], key, strict=False)
            if name == kind
        )

    def tell_apart(self, kind: str, first: str | int, second: str | int) -> bool:
        """Whether two members of an index can no longer change places: some row, or the objective, is another then.

        They can where the rows as a set and the objective stay what they are. So of any schedule that keeps the rows,
        the one with the two in each other's place keeps them too, and has the same objective, where the instance
        itself does not tell the two apart.
        """
        if not {first, second} & self.mentioned(kind):
            return False
        before = Counter(row.signature() for row in self.rows)
        after = Counter(
            OwnRow(row.name, self._swapped(row.terms, kind, first, second), row.sense, row.level).signature()
            for row in self.rows
        )
        goal = {} if self.objective is None else {place: c for place, c in self.objective.items() if c}
        return before != after or self._swapped(goal, kind, first, second) != goal

    def _sums(self) -> Iterator[Sum]:
        yield from (row.terms for row in self.rows)
        if self.objective is not None:
            yield self.objective

    def _swapped(self, terms: Sum, kind: str, first: str | int, second: str | int) -> Sum:
        exchange = {first: second, second: first}
        return {
            (
                family,
                tuple(
                    exchange.get(part, part) if name == kind else part
                    for name, part in zip(self.indices[family], key, strict=True)
                ),
            ): coefficient
            for (family, key), coefficient in terms.items()
        }
