"""Transfer rates over time, stacked; and AdaDUAL's ratio on the family that it fails on."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.palette import INK, MARK
from schedgap.benchmarks.figures.style import hover, ink_on, job_colour, new_figure, plain_axes
from schedgap.formulations.comm_contention.admissions import starts_of
from schedgap.formulations.comm_contention.dynamics import simulate
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution

_WIDTH = 10.0
_LOST = "#f2d7d5"


def rates(instance: CommContentionInstance, solution: Solution) -> Figure:
    """Draw the rate of every transfer over time, one on top of the other, and below it who waits when.

    Above: the stack's height is what the link moves; the pale part up to the dashed line (1 / b, the rate of a
    transfer alone) is what contention costs. Below: a row per task, a thin line while it waits, dotted in its
    latency, a bar while it transfers; darker where several share.

    Parameters
    ----------
    solution : a solution, feasible or not
    """
    schedule = simulate(instance, starts_of(solution))
    n = len(instance.tasks)
    rows = min(6.0, max(1.0, 0.28 * n))
    height = 3.9 + rows
    figure = new_figure(_WIDTH, height)
    top = figure.add_axes((0.08, (rows + 1.15) / height, 0.89, 2.3 / height))
    low = figure.add_axes((0.08, 0.6 / height, 0.89, rows / height), sharex=top)
    alone = 1 / instance.link.seconds_per_unit
    place = instance.task_index
    for gap in schedule.gaps:
        width = gap.end - gap.begin
        height_now = 0.0
        for name in sorted(gap.active, key=lambda active: place[active]):
            colour = job_colour(place[name])
            block = Rectangle((gap.begin, height_now), width, gap.rate, facecolor=colour, edgecolor="none")
            height_now += gap.rate
            strength = 0.55 if len(gap.active) == 1 else 1.0
            bar = Rectangle((gap.begin, place[name] - 0.38), width, 0.76, facecolor=colour, alpha=strength)
            told = f"{name}: {gap.begin:g} to {gap.end:g} seconds, {gap.rate:g} of {alone:g} units per second"
            top.add_patch(hover(block, [told]))
            low.add_patch(hover(bar, [told]))
        if height_now < alone:
            top.add_patch(Rectangle((gap.begin, height_now), width, alone - height_now, facecolor=_LOST))
    top.axhline(alone, color=MARK, linestyle="--", linewidth=1.0)
    first = min(task.release for task in instance.tasks)
    last = max(schedule.completion.values())
    for task in instance.tasks:
        row, begun = place[task.id], float(solution["start"][task.id])
        low.plot([task.release, begun], [row, row], color="#777777", linewidth=1.0, solid_capstyle="butt")
        low.plot([begun, begun + instance.link.latency], [row, row], color="#777777", linewidth=1.0, linestyle=":")
        if n <= 40:
            middle = (begun + instance.link.latency + schedule.completion[task.id]) / 2
            room = schedule.completion[task.id] - begun > 0.05 * (last - first)
            if room:
                ink = ink_on(job_colour(row))
                low.text(middle, row, task.id, ha="center", va="center", fontsize=7, color=ink)
    margin = 0.01 * (last - first) or 0.5
    top.set_xlim(first - margin, last + margin)
    top.set_ylim(0, 1.12 * alone)
    top.set_ylabel("units per second", color=INK, fontsize=10)
    low.set_ylim(n - 0.4, -0.6)
    low.set_xlabel("seconds", color=INK, fontsize=10)
    if n <= 40:
        low.set_yticks(range(n), [task.id[:12] for task in instance.tasks], fontsize=7)
    else:
        low.set_yticks([])
        low.set_ylabel(f"{n} tasks", color=INK, fontsize=10)
    plain_axes(top)
    plain_axes(low)
    handles = [
        Patch(facecolor=_LOST, label="lost to contention"),
        Patch(facecolor="none", edgecolor=MARK, linestyle="--", label="1 / b, the rate of a transfer alone"),
        Line2D([], [], color="#777777", linewidth=1.0, label="waits"),
        Line2D([], [], color="#777777", linewidth=1.0, linestyle=":", label="latency"),
        Patch(facecolor=job_colour(1), alpha=0.55, label="transfers alone"),
        Patch(facecolor=job_colour(1), label="transfers beside others"),
    ]
    figure.legend(handles=handles, loc="upper right", ncols=6, frameon=False, fontsize=8)
    return figure
