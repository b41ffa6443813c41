"""The chart of a hadar schedule: devices by type over slots, jobs coloured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from schedgap.benchmarks.figures.palette import FAINT, MARK
from schedgap.benchmarks.figures.style import job_colour
from schedgap.benchmarks.figures.timeline import EDGE, NARROW, Timeline, row_height
from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.check_forked import check_forked
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import ForkedSolution, HadarSolution, by_slot

IDLE = (0.968, 0.968, 0.968)
GAP = 1
"""Rows left free between two types."""


def device_rows(instance: HadarInstance, solution: Solution) -> tuple[dict[str, Ints], int]:
    """Which job holds which device of a type in which slot, as (devices, slots) of job numbers, -1 idle.

    A job keeps its rows where it can. The devices of a type are interchangeable in the
    picture: the rows of a machine are not told apart. A forked schedule (HadarE) is drawn too: a copy holds its
    gang on its node. Returns the arrays by type, and the number of slots drawn.
    """
    taken = _by_slot(instance, solution)
    slots = max(taken, default=1)
    rows: dict[str, Ints] = {}
    for kind, count in instance.capacity.items():
        grid = np.full((count, slots), -1, dtype=np.int64)
        for slot in range(1, slots + 1):
            wanted = dict(sorted(taken.get(slot, {}).get(kind, {}).items()))
            if slot > 1:  # stay where it was
                for row in range(count):
                    job = int(grid[row, slot - 2])
                    if wanted.get(job, 0) > 0:
                        grid[row, slot - 1] = job
                        wanted[job] -= 1
            free = [row for row in range(count) if grid[row, slot - 1] < 0]
            for job, left in wanted.items():
                for _ in range(min(left, len(free))):
                    grid[free.pop(0), slot - 1] = job
        rows[kind] = grid
    return rows, slots


def _by_slot(instance: HadarInstance, solution: Solution) -> dict[int, dict[str, dict[int, int]]]:
    """Devices by slot, type, job."""
    taken: dict[int, dict[str, dict[int, int]]] = {}

    def add(slot: int, kind: str, job: int, count: int) -> None:
        jobs = taken.setdefault(slot, {}).setdefault(kind, {})
        jobs[job] = jobs.get(job, 0) + count

    for name, held in solution.get("allocation", {}).items():
        for slot, entries in by_slot(held).items():
            for entry in entries:
                add(slot, entry["type"], instance.job_index[name], entry["gpus"])
    for slot, nodes in solution.get("rounds", {}).items():
        for node, entry in nodes.items():
            job = instance.job_index[entry["job"]]
            need = instance.jobs[job].workers
            throughput: Mapping[str, float] = instance.jobs[job].throughput
            gpus = instance.machines[instance.machine_index[node]].gpus
            for kind in sorted(gpus, key=lambda kind: -throughput.get(kind, 0.0)):
                used = min(need, gpus[kind])
                if used:
                    add(int(slot), kind, job, used)
                need -= used
    return taken


def devices(instance: HadarInstance, solution: Solution) -> Figure:
    """Draw a schedule: one row per device, grouped by type, one column per slot, one colour per job.

    The number in a type's margin is its share of device-slots in use up to the last slot drawn. A triangle at the
    end of a slot marks jobs that finish in it, with their names where there is room.

    Parameters
    ----------
    solution : an allocation; need not be feasible, what does not fit on the devices is left out
    """
    rows, slots = device_rows(instance, solution)
    total = sum(len(grid) for grid in rows.values()) + GAP * (len(rows) - 1)
    names = [job.id for job in instance.jobs]
    chart = Timeline(total, row_height(total, 12.0), 0.5, slots + 0.5, unit="slot", left=1.2, above=0.5, names=names)
    image = np.ones((total, slots, 3))
    start = 0
    for kind, grid in rows.items():
        for job in np.unique(grid):
            image[start : start + len(grid)][grid == job] = IDLE if job < 0 else job_colour(int(job))
        used = float((grid >= 0).mean()) if grid.size else 0.0
        chart.label(start, start + len(grid), kind, f"{used:.0%}")
        _names(chart, instance, grid, start)
        _lines(chart, grid, start)
        start += len(grid) + GAP
    extent = (0.5, slots + 0.5, float(total), 0.0)
    chart.axes.imshow(image, aspect="auto", interpolation="nearest", extent=extent, zorder=0)
    _finishes(chart, instance, solution)
    chart.legend(
        [
            Patch(facecolor=job_colour(0), label="held by a job, one colour a job"),
            Patch(facecolor=IDLE, edgecolor=FAINT, label="idle"),
            Line2D([], [], linestyle="", marker="v", color=MARK, label="at the end of this slot these jobs finish"),
            Patch(facecolor="none", edgecolor="none", label="%: share of the type's device-slots in use"),
        ]
    )
    return chart.figure


def _names(chart: Timeline, instance: HadarInstance, grid: Ints, start: int) -> None:
    """The job's id at the head of every stretch that has room for it."""
    for line in range(len(grid)):
        first = 0
        for slot in range(1, grid.shape[1] + 1):
            if slot < grid.shape[1] and grid[line, slot] == grid[line, first]:
                continue
            job = int(grid[line, first])
            above = line > 0 and grid[line - 1, first] == job and (first == 0 or grid[line - 1, first - 1] != job)
            if job >= 0 and not above:
                name, tall = instance.jobs[job].id, 1
                while line + tall < len(grid) and (grid[line + tall, first:slot] == job).all():
                    tall += 1
                chart.told(name, (first + 0.5, slot + 0.5, start + line, start + line + tall))
                chart.name(
                    name, (first + 0.5, slot + 0.5, start + line, start + line + 1), job_colour(job), largest=8.0
                )
            first = slot


def _lines(chart: Timeline, grid: Ints, start: int) -> None:
    """Thin lines where one job ends and another begins."""
    slots = grid.shape[1]
    if chart.row > NARROW:
        for line in range(1, len(grid)):
            chart.axes.plot([0.5, slots + 0.5], [start + line] * 2, color="white", linewidth=0.7, zorder=1)
    for line, slot in zip(*np.nonzero(grid[:, 1:] != grid[:, :-1]), strict=True) if slots <= 60 else ():
        ends = [start + line, start + line + 1]
        chart.axes.plot([slot + 1.5] * 2, ends, color=EDGE, linewidth=0.5, zorder=2)


def _finishes(chart: Timeline, instance: HadarInstance, solution: Solution) -> None:
    """A triangle at the right edge of every slot in which jobs finish, and their names."""
    ends: dict[int, list[str]] = {}
    if "allocation" in solution:
        report = check(instance, HadarSolution.parse(solution))
    else:
        report = check_forked(instance, ForkedSolution.parse(solution))
    for name, done in report.details["completion"].items():
        if done is not None:
            ends.setdefault(done, []).append(name)
    level = -0.13 / chart.row
    for slot, names in ends.items():
        chart.axes.plot([slot + 0.5], [level], marker="v", markersize=4, color=MARK, zorder=3, clip_on=False)
        text = ", ".join(names)
        if 7 * 0.62 * len(text) < chart.points - 6:
            place = (slot + 0.5 - 4 / chart.points, level)
            chart.axes.text(*place, text, ha="right", va="center", fontsize=7, color=MARK, clip_on=False)
