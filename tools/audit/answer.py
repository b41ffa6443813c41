"""The answer of an audit in words: one sentence, the shares behind it, and a screen of tables in units that fit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from schedgap.benchmarks.report.sheet import Column, Sheet
from schedgap.benchmarks.text import counted

if TYPE_CHECKING:
    from schedgap.tools.audit.result import Audit, Row, Side

_UNITS = (100 * 3600.0, 86400.0, "days"), (100 * 60.0, 3600.0, "h"), (100.0, 60.0, "min"), (0.0, 1.0, "s")
"""From so many seconds on, the seconds of a unit, and its name."""
_WIDE = 118
NOTHING = 0.005
"""A smaller share than this is told as nothing."""
_DUST = 1e-6
"""Percent that rounding outwards forgives: errors of floats."""


def span_of(*seconds: float) -> str:
    """One duration, or a limit and what was reached, rounded outwards, in one unit: ``57 s``, ``3 to 8 s``."""
    _, size, name = next(unit for unit in _UNITS if max(seconds) >= unit[0])
    whole = len(seconds) > 1 and max(seconds) >= 5 * size and min(seconds) >= size
    ways: list[Callable[[float], int]] = [floor, ceil] if len(seconds) > 1 else [round]
    shown = list(dict.fromkeys(_amount(value / size, whole, way) for value, way in zip(seconds, ways, strict=True)))
    return f"{' to '.join(shown)} {name}"


def _amount(value: float, whole: bool = False, way: Callable[[float], int] = round) -> str:
    if whole or value >= 10 or value == round(value):
        return f"{way(value):,}"
    digits = 1 if value >= 1 else 1 - floor(log10(value)) if value > 0 else 0
    return f"{way(value * 10**digits) / 10**digits:.{digits}f}"


def duration(seconds: float | None) -> str:
    """A duration in a unit that fits; "-" where it is unknown."""
    return "-" if seconds is None or math.isnan(seconds) else span_of(seconds)


def outward(least: float, most: float) -> tuple[str, str]:
    """Two shares in whole percent, the lower one rounded down and the upper one up."""
    return f"{floor(100 * max(0.0, least) + _DUST)}%", f"{ceil(100 * most - _DUST)}%"


def between(least: float, most: float) -> str:
    """Two shares in words: ``at least 72%, at most 81%``."""
    return "at least {}, at most {}".format(*outward(least, most))


def share(least: float, most: float) -> str:
    """The words of :func:`between`; less than half a percent is nothing."""
    return "nothing" if most < NOTHING else between(least, most)


def conditions(audit: Audit) -> str:
    """What the answer takes for granted, to stand in its line."""
    same = " and the same on every type" if audit.same_everywhere else ""
    words = [f"had durations been known{same}", audit.condition]
    words.append("had these jobs been alone on the cluster" if audit.chosen else "")
    return ", ".join(word for word in words if word)


def sentence(audit: Audit) -> str:
    """What to tell somebody who has a minute; empty where nothing can be said of what is avoidable."""
    side, load = audit.sides[0], audit.load
    gains = audit.avoidable(side) if load.full_queued and audit.fits else None
    recorded, best = side.recorded, side.best
    if gains is None or recorded is None or best is None or side.bound is None or best.objective is None:
        return ""
    waited = (recorded.objective or 0.0) - audit.work
    reached, least = (max(0.0, value - audit.work) for value in (best.objective, side.bound))
    begin = (
        f"your {counted(load.jobs, 'job')} waited {span_of(waited)} on average; with the same GPUs, one job on each, "
    )
    if gains["jct"][1] < NOTHING:
        given = f", {audit.limit_condition}" if audit.limit_condition else ""
        return f"{begin}no schedule does better: nothing was avoidable{given}"
    if best is recorded:
        return f"{begin}no better schedule was found, and none waits less than {span_of(least)}"
    return f"{begin}{span_of(least, reached)} {'was' if least == reached else 'were'} possible"


def answer_lines(audit: Audit) -> list[str]:
    """The sentence, and the shares with what they take for granted; or why there are none."""
    told = sentence(audit)
    gains = audit.avoidable(audit.sides[0])
    if not told or gains is None:
        return [audit.verdict]
    if gains["jct"][1] < NOTHING:  # only what the limit itself takes for granted, which the sentence names
        return [told, audit.verdict, *_weighted(audit, gains)]
    given = conditions(audit)
    short = audit.verdict.replace(f", {given}", "").replace("avoidable: ", "avoidable, if so: ")
    return [f"{told}, {given}", short, *_weighted(audit, gains)]


def _weighted(audit: Audit, gains: Mapping[str, tuple[float, float]]) -> list[str]:
    """What the mean weighted by GPU time says, in a line."""
    side = audit.sides[0]
    recorded, best, bound = side.recorded, side.best_weighted, side.weighted_bound
    if "weighted" not in gains or recorded is None or best is None or bound is None:
        return []
    assert recorded.weighted is not None and best.weighted is not None
    was, could = span_of(recorded.weighted), span_of(bound, best.weighted)
    least, most = gains["weighted"]
    told = f"nothing ({was})" if most < NOTHING else f"if so, {share(least, most)} ({was}, where {could} was possible)"
    return [
        f"each job weighted by its GPU time, so that many short jobs weigh no more than a large one: avoidable, {told}"
    ]


def short_text(audit: Audit) -> str:
    """At most one screen: the answer, what was logged, the schedules, what if, and what was assumed."""
    lines = answer_lines(audit)
    parts = ["\n".join(_wrap(f"{audit.name}: {lines[0]}", *lines[1:], *audit.clash_lines()[:2]))]
    parts += [_logged(audit)]
    parts += [sheet.text().lstrip("\n") for sheet in (schedules(audit), what_if(audit), *audit.shared()) if sheet.rows]
    notes = [note for note in audit.notes if not note.startswith("arrivals count from")]
    parts.append("\n".join(_wrap(*(f"assumed: {note}" for note in notes))))
    parts.append("every table and jobs that waited: --full; a page: --out DIR; all figures: --json")
    return "\n\n".join(part for part in parts if part)


def _wrap(*lines: str) -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, _WIDE, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    ]


def _logged(audit: Audit) -> str:
    """The log in two lines."""
    load = audit.load
    words = [f"{counted(load.jobs, 'job')} on {counted(load.capacity, 'GPU')}"]
    if load.utilisation is not None and load.busy is not None:
        words.append(f"{load.utilisation:.0%} of the GPU time used, at most {counted(load.busy.peak, 'GPU')} at once")
    if load.queued:
        words.append(
            f"{hours(load.queued)} GPU hour{'s' * (hours(load.queued) != '1')} waited, "
            f"{hours(load.full_queued or 0)} of them while too few were idle"
        )
    lines = ["the log: " + "; ".join(words)]
    if audit.left_out:
        told = ", ".join(f"{count:,} ({why})" for why, count in audit.left_out.items())
        lines.append(f"left out: {told}")
    return "\n".join(_wrap(*lines))


def hours(gpu_seconds: float) -> str:
    """GPU hours of GPU seconds."""
    return _amount(gpu_seconds / 3600)


def schedules(audit: Audit) -> Sheet:
    """The schedules of the cluster as it is: waits in units that fit, rows with the same figures once."""
    side = audit.sides[0]
    columns = (
        Column("schedule", right=False, width=40),
        Column("mean wait"),
        Column("p95 wait"),
        Column("submission to end"),
        Column("weighted", "submission to end, each job weighted by GPUs times length"),
        Column("GPUs busy"),
        Column("", right=False, width=60),
    )
    if not audit.timed:
        return audit.sheets()[1]
    rows: dict[tuple[str, ...], list[Row]] = {}
    for row in side.rows:  # those whose figures are equal, not those that are rounded to equal ones
        rows.setdefault((*_figures(row), f"{row.objective} {row.weighted}"), []).append(row)
    cells = [
        (
            ", ".join(row.name for row in same),
            *figures[:-1],
            "; ".join(dict.fromkeys(row.reason for row in same if row.reason and row.status != "feasible")),
        )
        for figures, same in rows.items()
    ]
    if side.bound is not None:
        limit = (duration(max(0.0, side.bound - audit.work)), "-", duration(side.bound), duration(side.weighted_bound))
        cells.append(("no schedule is below (one job a GPU)", *limit, "-", ""))
    return Sheet(f"{counted(side.capacity, 'GPU')}, {side.what}", columns, cells)


def _figures(row: Row) -> tuple[str, ...]:
    scores = row.scores
    if scores is None:
        return (
            (*(["-"] * 2), duration(row.objective), *(["-"] * 2)) if row.objective else ("-", "-", row.status, "-", "-")
        )
    waits = duration(scores.wait.mean), duration(scores.wait.p95)
    return (*waits, duration(scores.jct.mean), duration(row.weighted), f"{scores.utilisation:.0%}")


def what_if(audit: Audit) -> Sheet:
    """Mean wait by scheduler, as it is and with more or fewer GPUs."""
    base = audit.sides[0]
    others = [side for side in audit.sides[1:] if not side.relaxed]
    if not others or not audit.timed:
        return Sheet("", (), [])
    names = [row.name for row in base.rows if any(_wait(side, row.name) for side in others)]
    cells: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        key = tuple(duration(_wait(side, name)) for side in (base, *others))
        cells.setdefault(key, []).append(name)
    limits = tuple(
        "-" if side.bound is None else duration(max(0.0, side.bound - audit.work)) for side in (base, *others)
    )
    rows = [(", ".join(same), *waits) for waits, same in cells.items()]
    rows.append(("no schedule is below (one job a GPU)", *limits))
    titles = [side.what.removeprefix("what if: ") for side in others]
    columns = (Column("mean wait", right=False, width=40), Column("as it is"), *(Column(title) for title in titles))
    return Sheet("what if there were more or fewer GPUs", columns, rows)


def _wait(side: Side, name: str) -> float | None:
    row = next((row for row in side.rows if row.name == name), None)
    return None if row is None or row.scores is None else row.scores.wait.mean


def meaning(audit: Audit) -> Sequence[str]:
    """What the answer means, for the page."""
    gains = audit.avoidable(audit.sides[0])
    if not sentence(audit) or gains is None:
        return ()
    if gains["jct"][1] < NOTHING:
        given = f" That holds {audit.limit_condition}." if audit.limit_condition else ""
        return (
            "Proven: no schedule, of any scheduler, lets these jobs end more than half a percent sooner on average."
            f"{given}",
        )
    return (
        "The upper end was reached by a schedule of the same jobs that was checked; the lower end is proven: no "
        "schedule, of any scheduler, is below it.",
        "Both know how long each job runs. A scheduler that does not has less to gain; what it could gain at most is "
        "the same.",
        "The mean counts every job alike, so it rewards starting short jobs first. Weighted by GPU time, what costs is "
        "GPUs that stand idle while work waits: an operator pays for that.",
    )
