"""Cells of tables, read: each reader says what a cell must be, or why its row is left out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime

from schedgap.formulations.common.instance import LARGEST_COUNT, Json

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "unknown", "-", "none assigned"})
"""What logs write where they have no value."""


_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)")


NOT_ENDED = "has not ended"
"""End of a job that still ran, or waited, when the log was written."""


NO_VALUE = "has no value where one is needed"


class LeftOut(ValueError):
    """A row that can be read, but is no job that a problem can have: why, and details."""


class Unfit(ValueError):
    """A row that cannot be read, or has the id of another: what is wrong, and the value."""


def given(cell: str) -> str:
    """A cell without the blanks around it; a missing value leaves the row out."""
    text = cell.strip()
    if text.lower() in MISSING:
        raise LeftOut(NO_VALUE)
    return text


def name(cell: str, *more: str) -> str:
    """An id, or several cells joined to one."""
    text = "/".join(given(part) for part in (cell, *more))
    if len(text) > 200 or not text.isprintable():
        raise ValueError("must be a name of at most 200 printable characters")
    return text


def count(cell: str) -> int:
    """A whole number from 0 to 10^9, written in digits."""
    text = given(cell)
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > LARGEST_COUNT:
        raise ValueError(f"must be a whole number from 0 to {LARGEST_COUNT}")
    return int(text)


def positive(cell: str) -> int:
    """A whole number from 1 to 10^9, written in digits."""
    try:
        found = count(cell)
    except LeftOut:
        raise
    except ValueError:
        found = 0
    if found < 1:
        raise ValueError(f"must be a whole number from 1 to {LARGEST_COUNT}")
    return found


def whole(cell: str) -> int:
    """A whole number that may be written as 2.0."""
    return count(re.sub(r"[.,]0*$", "", given(cell)))


def number(text: str, what: str) -> float:
    """A number up to 10^12 in size, perhaps with a decimal comma; `what` says what it must be."""
    try:
        found = float(re.sub(r"^([+-]?\d+),(\d+)$", r"\1.\2", text))
    except ValueError:
        found = math.nan
    if not abs(found) <= 1e12:
        raise ValueError(f"must be {what}")
    return found


def duration(cell: str) -> float:
    """Seconds, or a clock ([days-]hours:minutes:seconds); must be more than 0."""
    text = given(cell)
    clock = _CLOCK.fullmatch(text)
    if clock:
        days, hours, minutes, rest = (float(part or 0) for part in clock.groups())
        text = repr(86400 * days + 3600 * hours + 60 * minutes + rest)
    found = number(text, "seconds or a clock such as 1-02:03:04")
    if found <= 0:
        raise LeftOut("lasts no time" if found == 0 else "lasts a negative time")
    return found


def moment(cell: str) -> float:
    """Seconds, not negative, or a date and time (seconds since 1970; UTC where no zone is named)."""
    text = given(cell)
    if dotted := re.fullmatch(r"(\d\d?)\.(\d\d?)\.(\d{4}) (\d\d?:\d\d(?::\d\d)?)", text):
        day, month, year, clock = dotted.groups()
        text = f"{year}-{month:0>2}-{day:0>2} {clock:0>5}"
    text = re.sub(r"^(\d{4})/(\d\d)/(\d\d)(?=[ T])", r"\1-\2-\3", text)
    if re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("must be a date and time such as 2020-06-09 18:41:01") from None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    seconds = number(text, "seconds or a date and time such as 2020-06-09 18:41:01")
    if seconds < 0:
        raise LeftOut("has a negative time")
    return seconds


def seconds(cell: str) -> float:
    """Seconds, at least 0."""
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1e15:
        raise ValueError("must be seconds, at least 0")
    return found


def lasted(when: Callable[[str], float]) -> Callable[[str, str], float]:
    """A reader of seconds from one moment to another, each read by `when`."""

    def read(start: str, end: str) -> float:
        if {start.strip().lower(), end.strip().lower()} & MISSING:
            raise LeftOut("has no start or no end")
        found = when(end) - when(start)
        if found <= 0:
            raise LeftOut("lasts no time" if found == 0 else "ends before it starts")
        return found

    return read


between = lasted(moment)
"""Seconds from one moment to another."""


_TEN_YEARS = 10 * 365 * 86400.0


_SKEW = 60.0
"""Seconds by which the clocks of one cluster may differ."""


def check_order(row: dict[str, Json]) -> bool:
    """Submitted, started, ended: in this order, and by one clock.

    A job that started a little before it was submitted has two clocks that differ a little: it was submitted when it
    started, and the answer is True. Raises Unfit: two of the moments cannot belong to the same job.
    """
    skewed: bool = 0 < row.get("arrival", 0.0) - (row.get("start") or math.inf) <= _SKEW
    if skewed:
        row["arrival"] = row["start"]
    moments = [(name, row[name]) for name in ("arrival", "start", "end") if row.get(name) is not None]
    words = {"arrival": "was submitted", "start": "started", "end": "ended"}
    for (earlier, one), (later, other) in itertools.pairwise(moments):
        if other < one:
            raise Unfit(f"{words[later]} before it {words[earlier]}", f"by {one - other:g} s (two clocks or zones?)")
        if other - one > _TEN_YEARS:
            raise Unfit(f"{words[later]} more than ten years after it {words[earlier]}", "two clocks?")
    return skewed


def host_names(cell: str) -> list[str]:
    """The hosts of a list as Slurm writes it: ``n[1-2,05],m3`` is n1, n2, n05, m3.

    Raises ValueError: not such a list, or more than 100,000 hosts.
    """
    hosts: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", given(cell)):
        made = [""]
        for plain, ranges in re.findall(r"([^\[]+)|\[([^\]]*)\]", part):
            ends = [plain] if plain else _numbers(ranges)
            made = [head + end for head in made for end in ends]
            if len(made) > 100_000:
                raise ValueError("must be a list of at most 100,000 hosts")
        hosts += made
    return hosts


def _numbers(ranges: str) -> list[str]:
    """``1-2,05`` one by one, as wide as written."""
    found: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        plain = all(re.fullmatch(r"[0-9]{1,12}", end) for end in ([first, last] if dash else [first]))
        if not plain or int(last or first) - int(first) > 100_000:
            raise ValueError("must be a list of hosts such as n[1-4],m7")
        found += [f"{k:0{len(first)}d}" for k in range(int(first), int(last or first) + 1)]
    return found
