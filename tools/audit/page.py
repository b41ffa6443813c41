"""The audit as one self-contained page: verdict, demand against capacity, waits, a Gantt chart of a window, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from schedgap.benchmarks.figures.palette import FAINT, INK, MARK, PALETTE
from schedgap.benchmarks.figures.style import job_colour, new_figure, plain_axes
from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.benchmarks.report.page import Picture, picture, render
from schedgap.tools.audit.answer import answer_lines, meaning, schedules, what_if
from schedgap.tools.audit.load import Load, Steps
from schedgap.tools.audit.record import rebuild
from schedgap.tools.audit.result import Audit, Row, Side

_POINTS = 2000
"""Points of a line; between two the largest value stands."""
_GPUS = 64
"""Rows of a Gantt chart."""
_JOBS = 300
"""Jobs of its window."""
_FINE = 1e-3
"""Seconds: the slot in which intervals are coloured."""
Held = Mapping[str, Sequence[Sequence[object]]]
_UNITS = (2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "hours"), (300.0, 60.0, "minutes"), (0.0, 1.0, "seconds")


def audit_page(audit: Audit) -> str:
    """The page as HTML."""
    pictures = [
        picture(
            _timeline(audit.load),
            "GPUs wanted if every job started when it was submitted, "
            + ("GPUs that were busy, " if audit.load.busy is not None else "")
            + "and GPUs there are",
        )
    ]
    side = audit.sides[0]
    scored = [row for row in side.rows if row.scores is not None and row.status != "relaxed"]
    if any(row.scores.wait.p99 > 0 for row in scored if row.scores is not None):
        pictures.append(picture(_waits(_few(scored)), "share of the jobs that waited at most so long, by schedule"))
    if scored and audit.timed:
        pictures += _gantts(side, scored, audit.jobs)
    lines, first = answer_lines(audit), [what_if(audit), *audit.shared()]
    sheets = [sheet for sheet in (schedules(audit), *first) if sheet.rows]
    every = [sheet for sheet in audit.sheets() if sheet.title not in {one.title for one in audit.shared()}]
    return render(
        *("audit.html", f"Audit of {audit.name}"),
        audit=audit,
        pictures=pictures,
        first=sheets,
        sheets=every,
        answer=lines[0][:1].upper() + lines[0][1:],
        shares=[*lines[1:], *audit.clash_lines()],
        meaning=meaning(audit),
    )


def _few(rows: list[Row]) -> list[Row]:
    """The first schedule and, of those that differ, the best ones, as many as have colours of their own."""
    apart: dict[tuple[float | None, float | None], Row] = {}
    for row in rows[1:]:
        apart.setdefault((row.objective, row.weighted), row)
    best = sorted(apart.values(), key=lambda row: row.objective or np.inf)
    return [rows[0], *best[: len(PALETTE)]]


def _unit(seconds: float) -> tuple[float, str]:
    """Seconds of the unit in which so many are shown, and its name."""
    return next((size, name) for least, size, name in _UNITS if seconds >= least)


def _timeline(load: Load) -> Figure:
    figure = new_figure(10.0, 3.2)
    axes = figure.add_axes((0.08, 0.17, 0.89, 0.7))
    size, name = _unit(float(load.demand.moments[-1] - load.demand.moments[0]))
    _line(axes, load.demand, size, PALETTE[1], "wanted")
    if load.busy is not None:
        _line(axes, load.busy, size, PALETTE[5], "busy")
    axes.axhline(load.capacity, color=MARK, linestyle=":", linewidth=1.2, label=f"there are {load.capacity:,}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{name} since the first submission", fontsize=9)
    axes.set_ylabel("GPUs", fontsize=9)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=8)
    plain_axes(axes)
    return figure


def _line(axes: Axes, steps: Steps, size: float, colour: str, label: str) -> None:
    """A line of steps; where there are too many, the largest value of each stretch."""
    moments, values = steps.moments / size, steps.values
    if len(moments) > _POINTS:
        edges = np.linspace(0, len(moments), _POINTS + 1).astype(int)[:-1]
        moments, values = moments[edges], np.maximum.reduceat(values, edges)
    axes.fill_between(moments, values, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.step(moments, values, where="post", color=colour, linewidth=1.0, label=label)


def _waits(rows: list[Row]) -> Figure:
    figure = new_figure(10.0, 3.2)
    axes = figure.add_axes((0.08, 0.17, 0.89, 0.7))
    waits = {row.name: np.sort(row.times[1] - row.times[0]) for row in rows if row.times is not None}
    size, name = _unit(max(float(values[-1]) for values in waits.values()))
    share = 100 * np.arange(1, len(waits[rows[0].name]) + 1) / len(waits[rows[0].name])
    for k, (label, values) in enumerate(waits.items()):
        chosen = np.unique(np.linspace(0, len(values) - 1, _POINTS // 4).astype(int))
        colour = INK if k == 0 else PALETTE[(k - 1) % len(PALETTE)]
        axes.step(values[chosen] / size, share[chosen], where="post", color=colour, linewidth=1.2, label=label)
    axes.set_xlabel(f"{name} between submission and start", fontsize=9)
    axes.set_ylim(0, 102)
    axes.set_ylabel("% of the jobs", fontsize=9)
    axes.legend(loc="lower right", frameon=False, fontsize=8)
    plain_axes(axes)
    return figure


def _gantts(side: Side, rows: list[Row], jobs: Sequence[TraceJob]) -> list[Picture]:
    """The first schedule and the best one of the jobs around the moment at which the first makes most jobs wait."""
    assert rows[0].times is not None
    arrivals, starts, ends = rows[0].times
    order = np.argsort(arrivals, kind="stable")
    count = min(_JOBS, len(order))
    waited = np.convolve((starts - arrivals)[order], np.ones(count), "valid")
    chosen = order[int(waited.argmax()) :][:count]
    window = float(arrivals[chosen].min()), float(ends[chosen].max())
    best = min(rows, key=lambda row: row.objective or np.inf)
    whose = f"the first {_GPUS} GPUs" if side.capacity > _GPUS else "GPUs"
    shown = [rows[0]] if best is rows[0] else [rows[0], best]
    return [
        picture(_gantt(side, row, jobs, window), f"{row.name}: {whose} over time, a colour a job, grey is idle")
        for row in shown
        if row.places is not None
    ]


def indices(row: Row, servers: Sequence[TraceServer], jobs: Sequence[TraceJob], chosen: Sequence[int]) -> Held:
    """Server and index of each GPU of some jobs of a schedule: within a server intervals are coloured."""
    assert row.times is not None and row.places is not None
    placed = [
        replace(
            jobs[k],
            start=float(row.times[1][k]),
            end=float(row.times[2][k]),
            nodes=tuple(row.places[k].items()),
        )
        for k in chosen
    ]
    return rebuild(placed, servers, _FINE).gpus


def _gantt(side: Side, row: Row, jobs: Sequence[TraceJob], window: tuple[float, float]) -> Figure:
    """A row a GPU; jobs that overlap the window."""
    assert row.times is not None
    place: dict[tuple[str, int], int] = {}
    middle, names = [], []
    for server in side.servers:
        room = min(server.gpus, _GPUS - len(place))
        if room <= 0:
            break
        middle.append(len(place) + room / 2)
        names.append(server.id[:16])
        place |= {(server.id, index): len(place) + index for index in range(room)}
    height = 0.9 + max(1.2, 0.1 * len(place))
    figure = new_figure(10.0, height)
    axes = figure.add_axes((0.1, 0.55 / height, 0.87, 1 - 0.75 / height))
    size, name = _unit(window[1] - window[0])
    _, starts, ends = row.times
    shown = [k for k in range(len(jobs)) if starts[k] < window[1] and ends[k] > window[0]]
    held = indices(row, side.servers, jobs, shown)
    for k in shown:
        for server_id, index in held[jobs[k].id]:
            at = place.get((str(server_id), int(str(index))))
            if at is not None:
                corner = (starts[k] / size, at + 0.04)
                axes.add_patch(
                    Rectangle(corner, (ends[k] - starts[k]) / size, 0.92, facecolor=job_colour(k), linewidth=0)
                )
    axes.set_facecolor("#f0f0f0")
    axes.set_xlim(window[0] / size, window[1] / size)
    axes.set_ylim(len(place), 0)
    axes.set_yticks(middle, names, fontsize=8)
    for server in np.cumsum([min(s.gpus, _GPUS) for s in side.servers])[: len(names)]:
        axes.axhline(float(server), color=FAINT, linewidth=0.8, zorder=3)
    axes.set_xlabel(f"{name} since the first submission", fontsize=9)
    plain_axes(axes)
    return figure
