"""GPUs over time: who runs where, and in which slots two jobs share a GPU; and the curve of a pair over its start."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.palette import FAINT, GRID, INK, MARK, PALETTE
from schedgap.benchmarks.figures.style import hover, job_colour, new_figure, plain_axes, whole_numbers
from schedgap.benchmarks.figures.timeline import EDGE, WIDTH, Timeline, row_height
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.pair import best_start, completion_times, mean_completion, pair_of
from schedgap.formulations.gpu_sharing.schedule import simulate


def gantt(instance: GpuSharingInstance, solution: Solution) -> Figure:
    """Draw a schedule, or the GPUs of each job over time where it is preemptive or elastic.

    One row per GPU, grouped by server; a job keeps its colour. Where two jobs share a GPU, its row is split between
    them and hatched, from the slot in which the second starts to the one in which the first ends. Accumulation steps
    above 1 stand behind the job's name. The dotted line is the horizon where a schedule goes beyond it.
    Raises InputError: a job accumulates over less than one step, so that nothing says how long it takes.

    Parameters
    ----------
    solution : a solution (need not be feasible), or a schedule outside the model
    """
    if "segments" in solution:
        return _stacked(instance, solution)
    for job, steps in solution["accumulation"].items():
        if steps < 1:
            raise InputError(f"accumulation.{job}: cannot be drawn, must be at least 1, got {steps}")
    schedule = simulate(instance, solution)
    latest = max(schedule.completion.values())
    gpus, names = instance.total_gpus, [job.id for job in instance.jobs]
    chart = Timeline(gpus, row_height(gpus), 0.5, latest + 0.5, unit="slot", names=names)
    holders: dict[tuple[str, int], list[int]] = {}
    spans = [(solution["start"][job.id], schedule.completion[job.id]) for job in instance.jobs]
    for j, job in enumerate(instance.jobs):
        for server_id, index in solution["gpus"][job.id]:
            holders.setdefault((server_id, index), []).append(j)
    row = 0
    for server in instance.servers:
        chart.label(row, row + server.gpus, server.id)
        for index in range(server.gpus):
            _draw_gpu(chart, instance, solution, row + index, holders.get((server.id, index), []), spans)
        row += server.gpus
        chart.axes.axhline(row, color=FAINT, linewidth=0.8, zorder=0)
    if latest > instance.horizon:
        chart.mark(instance.horizon + 0.5, MARK, ":")
    handles = [
        Patch(facecolor="#cccccc", edgecolor=EDGE, label="alone on the GPU"),
        Patch(facecolor="#cccccc", edgecolor=EDGE, hatch="//", label="shared: both are slowed down"),
    ]
    if any(steps > 1 for steps in solution["accumulation"].values()):
        handles.append(Patch(facecolor="none", edgecolor="none", label="/2: accumulates gradients over 2 steps"))
    chart.legend(handles)
    return chart.figure


def _draw_gpu(
    chart: Timeline,
    instance: GpuSharingInstance,
    solution: Solution,
    row: int,
    jobs: Sequence[int],
    spans: Sequence[tuple[int, int]],
) -> None:
    """The jobs on one GPU, each cut where others join or leave, and beside each other while they share it."""
    for job in sorted(jobs, key=lambda k: spans[k]):
        first, last = spans[job]
        others = {moment for k in jobs if k != job for moment in (spans[k][0], spans[k][1] + 1)}
        edges = sorted({first, last + 1, *(moment for moment in others if first < moment <= last)})
        steps = solution["accumulation"][instance.jobs[job].id]
        name = instance.jobs[job].id + (f" /{steps}" if steps > 1 else "")
        for begin, end in itertools.pairwise(edges):
            here = sorted((k for k in jobs if spans[k][0] <= begin <= spans[k][1]), key=lambda k: (spans[k], k))
            low, size = row + 0.04 + 0.92 * here.index(job) / len(here), 0.92 / len(here)
            chart.box(job, (begin - 0.5, end - 0.5, low, low + size), name, hatched=len(here) > 1)


def _stacked(instance: GpuSharingInstance, solution: Solution) -> Figure:
    """How many GPUs each job has over time; for preemptive and elastic schedules, which have no GPU lists."""
    figure = new_figure(WIDTH, 4.2)
    axes = figure.add_axes((0.08, 0.14, 0.89, 0.78))
    segments = solution["segments"]
    edges = sorted({t for rows in segments.values() for first, last, _ in rows for t in (first, last + 1)})
    running = [(j, first, last, gpus) for j, job in enumerate(instance.jobs) for first, last, gpus in segments[job.id]]
    for begin, end in itertools.pairwise(edges):
        low = 0
        for j, first, last, gpus in running:
            if first <= begin <= last:
                band = Rectangle((begin - 0.5, low), end - begin, gpus, facecolor=job_colour(j), edgecolor="none")
                told = f"{instance.jobs[j].id}: slots {first} to {last}, {gpus} GPU{'s' * (gpus > 1)}"
                axes.add_patch(hover(band, [told]))
                low += gpus
    axes.set_xlim(edges[0] - 0.5, edges[-1] - 0.5)
    axes.set_ylim(0, instance.total_gpus)
    whole_numbers(axes.xaxis)
    axes.set_xlabel("slot")
    axes.set_ylabel("GPUs held, one colour a job")
    axes.set_title("outside the model: GPUs of each job over time", loc="left", fontsize=9, color=INK)
    plain_axes(axes)
    return figure


# The curve of Theorem 1: the mean completion time of a job pair over the start of the second job.


def pair_curve(instance: GpuSharingInstance) -> Figure:
    """T_O, T_N and their mean over kappa in [0, a], with the best start marked; seconds.

    Raises InputError: the instance has not two jobs that meet.
    """
    pair = pair_of(instance)
    figure = new_figure(6.0, 3.6)
    axes = figure.add_subplot()
    moments = np.unique(np.append(np.linspace(0.0, pair.left, 200), pair.switch))
    ends = np.array([completion_times(pair, float(k)) for k in moments])
    for column, name, colour in ((0, "running job", PALETTE[0]), (1, "new job", PALETTE[1])):
        axes.plot(moments, ends[:, column], color=colour, linewidth=1.2, label=f"completion of the {name}")
    axes.plot(moments, ends.mean(axis=1), color=INK, linewidth=2.0, label="mean")
    if 0 < pair.switch < pair.left:
        axes.axvline(pair.switch, color=GRID, linewidth=1.0, zorder=0)
    best = best_start(pair)
    axes.plot([best.kappa], [best.mean], marker="o", color=MARK, linestyle="none", label="best: an end point")
    axes.set_xlabel("start of the new job, kappa, in seconds")
    axes.set_ylabel("seconds")
    low = min(float(ends.min()), mean_completion(pair, best.kappa))
    axes.set_ylim(bottom=max(0.0, low - 0.1 * (float(ends.max()) - low)))
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2)
    axes.grid(color=GRID, linewidth=0.6)
    figure.tight_layout()
    return figure
