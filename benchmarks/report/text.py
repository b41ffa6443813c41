"""Fixed-width tables and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float | None, digits: int = 6) -> str:
    """A number with at most `digits` significant digits; "-" where it is unknown, "inf" where infinite."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with `decimals` places; "-" where it is unknown."""
    if value is None or math.isnan(value):
        return "-"
    return "inf" if math.isinf(value) else f"{value:.{decimals}f}"


def significant(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits, trailing zeros included; "-" where unknown, "inf" where infinite."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    magnitude = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def span(least: float | None, most: float | None, digits: int = 4) -> str:
    """``least to most``, or the one value that both are."""
    return " to ".join(dict.fromkeys((significant(least, digits), significant(most, digits))))


def seconds(value: float | None) -> str:
    """A duration in seconds with three significant digits or so."""
    if value is None or math.isnan(value):
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: str = "", gap: int = 2) -> str:
    """A fixed-width table.

    Parameters
    ----------
    head : the column titles
    rows : the cells; a row shorter than the head is padded, a cell of several lines makes a row of several
    right : one letter per column, "r" for right-aligned, anything else left; short strings mean left
    gap : spaces between columns

    Returns
    -------
    str
        Lines without trailing spaces: titles, a rule, the rows.
    """
    width = len(head)
    top = _lines(head, width)
    cells = [line for row in rows for line in _lines(row, width)]
    sizes = [max(len(row[i]) for row in [*top, *cells]) for i in range(width)]

    def line(row: Sequence[str]) -> str:
        aligned = (
            cell.rjust(size) if i < len(right) and right[i] == "r" else cell.ljust(size)
            for i, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )
        return (" " * gap).join(aligned).rstrip()

    rule = (" " * gap).join("-" * size for size in sizes)
    return "\n".join([*map(line, top), rule, *map(line, cells)])


def _lines(row: Sequence[str], width: int) -> list[list[str]]:
    """A row as so many lines as its tallest cell has."""
    parts = [*(cell.split("\n") for cell in row), *([[""]] * (width - len(row)))]
    return [[part[k] if k < len(part) else "" for part in parts] for k in range(max(map(len, parts), default=0))]
