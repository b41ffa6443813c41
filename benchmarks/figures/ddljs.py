"""The chart of a ddljs schedule: workers over slots, one band per job, and how much of each job's worth is reached."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from schedgap.benchmarks.figures.palette import GRID, INK, MARK
from schedgap.benchmarks.figures.style import hover, ink_on, job_colour, new_figure, plain_axes, whole_numbers
from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.utility import utility

MOST_NAMES = 40
"""Jobs that are named in the lower panel."""


def workers_by_slot(instance: DdljsInstance, solution: Solution) -> Ints:
    """(J, T) size of each job's ring in each slot."""
    grid = np.zeros((len(instance.jobs), instance.horizon), dtype=np.int64)
    for slot, entry in enumerate(solution["slots"]):
        for name, ring in entry["rings"].items():
            grid[instance.job_index[name], slot] = len(ring["workers"])
    return grid


def worker_slots(instance: DdljsInstance, solution: Solution) -> Figure:
    """Draw a schedule.

    Above: workers over slots, stacked, one colour per job, in input order; the line is what the servers could host if
    all workers were of the least demanding job. Below: the utility of each job as a part of what it could have alone.

    Parameters
    ----------
    solution : need not be feasible
    """
    grid = workers_by_slot(instance, solution)
    figure = new_figure(10.0, 6.0)
    room = _bands(figure.add_axes((0.08, 0.42, 0.89, 0.5)), instance, grid)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=job_colour(0), label="a job's workers, one colour a job"),
        Patch(facecolor=GRID, label="below: utility not reached, of what the job has alone"),
    ]
    if room:
        handles.append(
            Line2D([], [], color=MARK, linestyle="--", label="room: workers that fit if all are the smallest")
        )
    figure.legend(handles=handles, loc="upper right", ncols=3, frameon=False, fontsize=8)
    _reached(figure.add_axes((0.08, 0.11, 0.89, 0.20)), instance, grid.sum(axis=1))
    return figure


def _bands(axes: Axes, instance: DdljsInstance, grid: Ints) -> bool:
    """The upper panel; whether the line of what fits is in the picture."""
    slots = grid.shape[1]
    edges = np.arange(0.5, slots + 1)
    below = np.zeros(slots)
    for i in np.flatnonzero(grid.any(axis=1)).tolist():
        above = below + grid[i]
        colour = job_colour(i)
        band = axes.stairs(above, edges, baseline=below, fill=True, color=colour, linewidth=0)
        held = np.flatnonzero(grid[i]) + 1
        hover(band, [f"{instance.jobs[i].id}: {grid[i].sum()} worker-slots in slots {held[0]} to {held[-1]}"])
        if slots <= 60:
            axes.stairs(above, edges, baseline=below, color="white", linewidth=0.5)
            for slot in np.flatnonzero(grid[i]).tolist():
                if slot == 0 or not grid[i, slot - 1]:
                    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "clip_on": True}
                    middle = (below[slot] + above[slot]) / 2
                    axes.text(slot + 1, middle, instance.jobs[i].id, color=ink_on(colour), **style)
        below = above
    room = max((sum(caps) for caps in _room(instance)), default=0)
    shown = bool(room) and room <= 3 * max(1.0, float(below.max()))
    if shown:
        axes.axhline(room, color=MARK, linewidth=1.2, linestyle="--")
    axes.set_xlim(0.5, slots + 0.5)
    axes.set_ylim(0, max(1.0, 1.06 * float(below.max()), 1.06 * room if shown else 0.0))
    axes.set_ylabel("workers", color=INK, fontsize=10)
    axes.set_xlabel("slot", color=INK, fontsize=10)
    whole_numbers(axes.xaxis)
    plain_axes(axes)
    return shown


def _room(instance: DdljsInstance) -> list[list[int]]:
    """Workers that each server hosts of each job alone, not limited by N_i."""
    rows = []
    for job in instance.jobs:
        amounts = [(name, amount) for name, amount in job.demand.items() if amount]
        rows.append(
            [
                int(min(server.resources.get(name, 0.0) / amount for name, amount in amounts) + 1e-9)
                for server in instance.servers
            ]
        )
    return rows


def _reached(axes: Axes, instance: DdljsInstance, done: Ints) -> None:
    parts = []
    for i, (job, reach) in enumerate(zip(instance.jobs, reaches(instance), strict=True)):
        nothing, everything, reached = utility(job, [0, reach.max_work, int(done[i])]).tolist()
        worst = 0.0 if job.rising else min(nothing, everything)
        best = max(nothing, everything) - worst
        parts.append((reached - worst) / best if best else 1.0)
    place = np.arange(len(parts))
    axes.bar(place, [1.0] * len(parts), width=0.8, color=GRID)
    for i, part in enumerate(parts):
        (bar,) = axes.bar(i, part, width=0.8, color=job_colour(i))
        hover(bar, [f"{instance.jobs[i].id}: {part:.0%} of the utility it has alone"])
    axes.set_xlim(-0.6, len(parts) - 0.4)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of\nutility", color=INK, fontsize=9)
    whole_numbers(axes.xaxis)
    plain_axes(axes)
    if len(parts) <= MOST_NAMES:
        axes.set_xticks(place, [job.id for job in instance.jobs], fontsize=7, rotation=90 if len(parts) > 15 else 0)
    else:
        axes.set_xlabel("job, in input order", color=INK, fontsize=10)
