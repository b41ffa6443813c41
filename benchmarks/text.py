"""Fixed-width tables and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence


def number(value: float | None, digits: int = 6) -> str:
    """A number with at most `digits` significant digits; "-" where it is unknown, "inf" where infinite."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def counted(amount: float, what: str) -> str:
    """A number with its noun, which has an s but for one: ``1 job``, ``1,200 jobs``."""
    return f"{amount:,.0f} {what}{'s' * (amount != 1)}"


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with `decimals` places; "-" where it is unknown."""
    if value is None or math.isnan(value):
        return "-"
    return "inf" if math.isinf(value) else f"{value:.{decimals}f}"


def beside_one(value: float | None) -> str:
    """The number as :func:`fixed` writes it, with as many places as it takes to tell it from 1, at most 9."""
    places = next((k for k in range(3, 9) if value is None or value == 1 or f"{value:.{k}f}" != f"{1:.{k}f}"), 9)
    return fixed(value, places)


def nearest(tightness: float | None, refuted: bool, shown: Callable[[float | None], str] = beside_one) -> str:
    """left/right of a claim where it is nearest to failing; equal sides refute a claim of less."""
    strict = refuted and tightness is not None and math.isclose(tightness, 1)
    return "1, not < 1" if strict else shown(tightness)


def apart(left: float | None, right: float | None) -> tuple[str, str]:
    """Two numbers with four significant digits, or as many as it takes to tell them apart where they differ."""
    places = range(4, 16) if left is not None and right is not None and not math.isclose(left, right) else range(4, 5)
    shown = [(significant(left, k), significant(right, k)) for k in places]
    return next((pair for pair in shown if pair[0] != pair[1]), shown[-1])


def refuting(left: float | None, right: float | None) -> str:
    """The sides of a claim that they refute."""
    a, b = apart(left, right)
    return f"{a} = {b}, where less is claimed" if a == b else f"{a} > {b}"


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


def percent(share: float) -> str:
    """A share as whole percents; 100% is all and 0% is none, whatever rounding says."""
    return f"{min(max(round(100 * share), share > 0), 99 if share < 1 else 100):d}%"


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


def with_interpreted(value: float | None, interpreted: float) -> str:
    """Seconds, and those that kernels ran as Python for in place of a first compilation, where there are any."""
    return seconds(value) + (f" + {seconds(interpreted)}" if interpreted else "")


def table(
    head: Sequence[str],  # the column titles
    # the cells; a row shorter than the head is padded, a cell of several lines makes a row of several
    rows: Sequence[Sequence[str]],
    right: str = "",  # one letter per column, "r" for right-aligned, anything else left; short strings mean left
    gap: int = 2,  # spaces between columns
    # a table that is wider goes on below, its first column repeated, or its first two where both are names
    width: int | None = None,
    above: Sequence[str] = (),  # for each row a line across that stands above it, unless the row before has the same
) -> str:
    """A fixed-width table.

    Returns lines without trailing spaces: titles, a rule, the rows.
    """
    columns = len(head)
    top = _lines(head, columns)
    tall = [_lines(row, columns) for row in rows]
    cells = [line for lines in tall for line in lines]
    sizes = [max(len(row[i]) for row in [*top, *cells]) for i in range(columns)]

    def line(row: Sequence[str], shown: Sequence[int]) -> str:
        aligned = (row[i].rjust(sizes[i]) if right[i : i + 1] == "r" else row[i].ljust(sizes[i]) for i in shown)
        return (" " * gap).join(aligned).rstrip()

    names = list(range(2 if columns > 1 and right[:2] != "" and "r" not in right[:2] else min(1, columns)))
    parts = [[*names]]
    for i in range(len(names), columns):
        taken = sum(sizes[k] + gap for k in parts[-1]) + sizes[i]
        if width is not None and taken > width and len(parts[-1]) > len(names):
            parts.append([*names])
        parts[-1].append(i)
    rule = ["-" * size for size in sizes]
    blocks = []
    across = ["" if k and words == above[k - 1] else words for k, words in enumerate(above)] or [""] * len(tall)
    for shown in parts:
        drawn = [line(row, shown) for row in [*top, rule] if any(row[i] for i in shown)]
        for words, lines in zip(across, tall, strict=True):
            drawn += ([words] if words else []) + [line(row, shown) for row in lines if any(row[i] for i in shown)]
        blocks.append("\n".join(drawn))
    return "\n\n".join(blocks)


def _lines(row: Sequence[str], width: int) -> list[list[str]]:
    """A row as so many lines as its tallest cell has."""
    parts = [*(cell.split("\n") for cell in row), *([[""]] * (width - len(row)))]
    return [[part[k] if k < len(part) else "" for part in parts] for k in range(max(map(len, parts), default=0))]


def markdown_row(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join([markdown_row(head), "|" + "---|" * len(head), *map(markdown_row, rows)])
