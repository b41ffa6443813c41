"""What a user changed in a declarative model: rows and an objective, as exact sums over named variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

Place: TypeAlias = tuple[str, tuple[str | int, ...]]
"""A variable: its family and its key."""
Sum: TypeAlias = Mapping[Place, Fraction]


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
