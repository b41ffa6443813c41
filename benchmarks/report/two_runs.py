"""Two runs beside each other: the same instances, what changed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap.benchmarks.harness.analysis import Analysis, Entry, Solved
from schedgap.benchmarks.report.page import grid, page, text, tiles
from schedgap.benchmarks.report.text import number, seconds, significant
from schedgap.catalogue.method import Kind
from schedgap.formulations.common.numbers import agrees, better

Side = tuple[Path, Analysis, Mapping[str, Any]]
Key = tuple[str, str, str, str, str]
SHOWN = 200
"""At most this many changed rows are listed one by one."""


def comparison_page(first: Side, second: Side) -> str:
    """An HTML page about what differs between two runs, on the work that both did."""
    (folder_a, a, meta_a), (folder_b, b, meta_b) = first, second
    entries_a, entries_b = _entries(a), _entries(b)
    shared = [key for key in entries_a if key in entries_b]
    changed = [key for key in shared if _changed(entries_a[key][1], entries_b[key][1])]
    body = [
        "<h1>schedgap: two runs compared</h1>",
        f'<p class="soft">A: {text(folder_a)}, B: {text(folder_b)}. Compared is what both did: the same method with '
        "the same settings on the same instance.</p>",
        *(
            f'<p class="failed">{side} is {text(analysis.unfinished)} items</p>'
            for side, analysis in (("A", a), ("B", b))
            if analysis.unfinished
        ),
        tiles(
            [
                (len(shared), "runs of methods in both"),
                (len(changed), "with another outcome"),
                (len(entries_a) - len(shared), "only in A"),
                (len(entries_b) - len(shared), "only in B"),
            ]
        ),
        "<h2>Methods</h2>",
        _methods(entries_a, entries_b, shared),
        "<h2>Outcomes that changed</h2>",
        _changes(entries_a, entries_b, changed) if changed else "<p>None.</p>",
        "<h2>What ran where</h2>",
        _settings(meta_a, meta_b),
    ]
    return page("schedgap comparison", body)


def _entries(analysis: Analysis) -> dict[Key, tuple[Solved, Entry]]:
    """Every run of a method by what was asked."""
    found: dict[Key, tuple[Solved, Entry]] = {}
    for one in analysis.solved:
        for entry in one.entries:
            found[(one.suite, one.problem.id, one.batch, one.hash, entry.label)] = (one, entry)
    return found


def _changed(a: Entry, b: Entry) -> bool:
    if a.row.status != b.row.status or (a.row.objective is None) != (b.row.objective is None):
        return True
    return a.row.objective is not None and b.row.objective is not None and not agrees(a.row.objective, b.row.objective)


def _methods(a: Mapping[Key, tuple[Solved, Entry]], b: Mapping[Key, tuple[Solved, Entry]], shared: list[Key]) -> str:
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in shared:
        groups.setdefault((key[1], key[4]), []).append(key)
    rows: list[list[object]] = []
    for (problem, method), keys in groups.items():
        heuristic = a[keys[0]][1].method.kind is Kind.HEURISTIC
        cells: list[object] = [problem, method, len(keys)]
        both = [key for key in keys if _finite(a[key][1].ratio) and _finite(b[key][1].ratio)] if heuristic else []
        for side in (a, b):
            ratios = [e.ratio for e in (side[key][1] for key in keys) if e.ratio is not None]
            compared = [e.ratio for e in (side[key][1] for key in both) if e.ratio is not None]
            cells.append(significant(statistics.fmean(compared)) if compared else "-")
            cells.append(significant(max(ratios)) if heuristic and ratios else "-")
            cells.append(sum(1 for key in keys if side[key][1].row.objective is not None))
            cells.append(sum(1 for key in keys if side[key][1].row.status in ("optimal", "infeasible")))
            times = [e.row.seconds for e in (side[key][1] for key in keys) if e.row.seconds is not None]
            cells.append(seconds(statistics.fmean(times)) if times else "-")
        cells += [_count_better(a, b, keys), _count_better(b, a, keys)]
        rows.append(cells)
    sides = [f"{what} {side}" for side in "AB" for what in ("mean ratio", "worst", "solved", "proven", "seconds")]
    note = '<p class="soft">Mean ratios are over the instances on which both have a finite one.</p>'
    return grid(["problem", "method", "runs", *sides, "A better", "B better"], rows, "ll" + "r" * 13) + note


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _count_better(a: Mapping[Key, tuple[Solved, Entry]], b: Mapping[Key, tuple[Solved, Entry]], keys: list[Key]) -> int:
    """On how many of `keys` the first side found a better objective, or one where the other found none."""
    count = 0
    for key in keys:
        mine, theirs, sense = a[key][1].row.objective, b[key][1].row.objective, a[key][0].problem.sense
        count += mine is not None and (theirs is None or better(mine, theirs, sense))
    return count


def _changes(a: Mapping[Key, tuple[Solved, Entry]], b: Mapping[Key, tuple[Solved, Entry]], changed: list[Key]) -> str:
    rows: list[list[object]] = []
    for key in changed[:SHOWN]:
        one, mine = a[key]
        theirs = b[key][1]
        cells: list[object] = [key[1], one.name or key[3][:12], key[4]]
        for entry in (mine, theirs):
            cells += [entry.row.status, number(entry.row.objective)]
        rows.append(cells)
    head = ["problem", "instance", "method", "status A", "objective A", "status B", "objective B"]
    more = f"<p>and {len(changed) - SHOWN} more</p>" if len(changed) > SHOWN else ""
    return grid(head, rows, "llllrlr") + more


def _settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    facts_a, facts_b = _facts(a), _facts(b)
    names = list(dict.fromkeys([*facts_a, *facts_b]))
    return grid(["", "A", "B"], [[name, facts_a.get(name, "-"), facts_b.get(name, "-")] for name in names])


def _facts(meta: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: str(meta.get(name)) for name in ("suites", "seed", "scale", "time_limit")}
    sessions = meta.get("sessions", [])
    if sessions:
        last = sessions[-1]
        facts |= {name: str(last[name]) for name in ("python", "system", "processor", "cores", "workers", "code")}
        facts |= {name: str(version) for name, version in last["packages"].items()}
    return facts
