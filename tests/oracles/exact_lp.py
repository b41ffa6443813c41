"""Tiny linear programs in rational numbers, for the plain searches that other methods are compared with."""

from __future__ import annotations

from fractions import Fraction

Vector = list[Fraction]
ZERO = Fraction(0)


def minimum(cost: Vector, rows: list[Vector], right: Vector) -> tuple[Fraction, Vector] | None:
    """(value, x) of min cost x with rows x <= right and x >= 0, cost >= 0; None where there is no such x.

    The dual simplex method on a dense tableau, from the basis of the slacks, with the smallest index among ties.
    """
    n = len(cost)
    table = [[*row, limit] for row, limit in zip(rows, right, strict=True)]
    reduced = [*cost, ZERO]
    basis = list(range(n, n + len(rows)))  # of each row; what is not basic stands in `outside`
    outside = list(range(n))
    while True:
        leaving = min((r for r in range(len(table)) if table[r][n] < 0), key=lambda r: basis[r], default=None)
        if leaving is None:
            x = [ZERO] * n
            for r, name in enumerate(basis):
                if name < n:
                    x[name] = table[r][n]
            return -reduced[n], x
        pivot_row = table[leaving]
        able = [c for c in range(n) if pivot_row[c] < 0]
        if not able:
            return None
        entering = min(able, key=lambda c: (-reduced[c] / pivot_row[c], outside[c]))
        pivot = pivot_row[entering]
        new = [value / pivot for value in pivot_row]
        new[entering] = 1 / pivot
        for line in (*table[:leaving], *table[leaving + 1 :], reduced):
            factor = line[entering]
            if factor:
                for c in range(n + 1):
                    if c != entering and new[c]:
                        line[c] -= factor * new[c]
                line[entering] = -factor * new[entering]
        table[leaving] = new
        basis[leaving], outside[entering] = outside[entering], basis[leaving]
