"""Fixed-width tables and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float | None, digits: int = 6) -> str:
    """A number with at most `digits` significant digits; "-" where it is unknown, "inf" where infinite."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with `decimals` places; "-" where it is unknown."""
    if value is None:
        return "-"
    return "inf" if math.isinf(value) else f"{value:.{decimals}f}"


def mean_ratio(values: Sequence[float], decimals: int = 3) -> str:
    """The mean of ratios; where some are infinite, also the mean without them and how many they are."""
    finite = [value for value in values if not math.isinf(value)]
    if len(finite) == len(values) or not finite:
        return fixed(math.fsum(values) / len(values) if values else None, decimals)
    return f"inf ({fixed(math.fsum(finite) / len(finite), decimals)} without {len(values) - len(finite)})"


def seconds(value: float | None) -> str:
    """A duration in seconds with three significant digits or so."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: str = "", gap: int = 2) -> str:
    """A fixed-width table.

    Parameters
    ----------
    head : the column titles
    rows : the cells; a row shorter than the head is padded
    right : one letter per column, "r" for right-aligned, anything else left; short strings mean left
    gap : spaces between columns

    Returns
    -------
    str
        Lines without trailing spaces: titles, a rule, the rows.
    """
    width = len(head)
    cells = [[*row, *([""] * (width - len(row)))] for row in rows]
    sizes = [max(len(row[i]) for row in [list(head), *cells]) for i in range(width)]

    def line(row: Sequence[str]) -> str:
        aligned = (
            cell.rjust(size) if i < len(right) and right[i] == "r" else cell.ljust(size)
            for i, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )
        return (" " * gap).join(aligned).rstrip()

    rule = (" " * gap).join("-" * size for size in sizes)
    return "\n".join([line(head), rule, *map(line, cells)])
