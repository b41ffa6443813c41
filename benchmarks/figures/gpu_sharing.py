"""GPUs over time: who runs where, and in which slots two jobs share a GPU."""

from __future__ import annotations

import itertools
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.style import (
    FAINT,
    INK,
    MARK,
    ink_on,
    job_colour,
    new_figure,
    plain_axes,
    whole_numbers,
)
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import simulate

_WIDTH = 10.0
_HATCH = (0.0, 0.0, 0.0, 0.35)


def gantt(instance: GpuSharingInstance, solution: Solution) -> Figure:
    """Draw a schedule, or the GPUs of each job over time where it is preemptive or elastic.

    One row per GPU, grouped by server; a job keeps its colour. Where two jobs share a GPU, its row is split
    between them and hatched, from the slot in which the second starts to the one in which the first ends.
    Accumulation steps above 1 stand behind the job's name. The dotted line is the horizon where a schedule
    goes beyond it.

    Parameters
    ----------
    solution : a solution (need not be feasible), or a schedule outside the model

    Returns
    -------
    Figure of its own (no pyplot state), 10 inches wide; its height grows with the GPUs.

    Raises
    ------
    InputError
        A job accumulates over less than one step, so that nothing says how long it takes.
    """
    if "segments" in solution:
        return _stacked(instance, solution)
    for job, steps in solution["accumulation"].items():
        if steps < 1:
            raise InputError(f"accumulation.{job}: cannot be drawn, must be at least 1, got {steps}")
    schedule = simulate(instance, solution)
    row = min(0.42, max(0.05, 14.0 / instance.total_gpus))
    height = 1.3 + row * instance.total_gpus
    figure = new_figure(_WIDTH, height)
    axes = figure.add_axes((0.1, 0.75 / height, 0.87, row * instance.total_gpus / height))
    latest = max(schedule.completion.values())
    place: dict[tuple[str, int], int] = {}
    for server in instance.servers:
        for index in range(server.gpus):
            place[server.id, index] = len(place)
    holders: dict[int, list[int]] = {}
    spans = [(solution["start"][job.id], schedule.completion[job.id]) for job in instance.jobs]
    for j, job in enumerate(instance.jobs):
        for server_id, index in solution["gpus"][job.id]:
            holders.setdefault(place[server_id, index], []).append(j)
    for gpu, jobs in sorted(holders.items()):
        for j in sorted(jobs, key=lambda k: spans[k]):
            _draw_job(axes, instance, solution, gpu, j, jobs, spans, row, latest)
    _finish(axes, instance, latest, row)
    handles = [
        Patch(facecolor="#cccccc", edgecolor="#444444", label="alone on the GPU"),
        Patch(facecolor="#cccccc", edgecolor="#444444", hatch="//", label="shared: both are slowed down"),
    ]
    if any(steps > 1 for steps in solution["accumulation"].values()):
        handles.append(Patch(facecolor="none", edgecolor="none", label="/2: accumulates gradients over 2 steps"))
    figure.legend(handles=handles, loc="upper right", ncols=3, frameon=False, fontsize=8)
    return figure


def _draw_job(
    axes: Axes,
    instance: GpuSharingInstance,
    solution: Solution,
    gpu: int,
    job: int,
    jobs: list[int],
    spans: list[tuple[int, int]],
    row: float,
    latest: int,
) -> None:
    """One job on one GPU, cut where others join or leave."""
    first, last = spans[job]
    colour = job_colour(job)
    cuts = {first, last + 1}
    for other in jobs:
        if other != job:
            cuts |= {t for t in (spans[other][0], spans[other][1] + 1) if first < t <= last}
    edges = sorted(cuts)
    for begin, end in itertools.pairwise(edges):
        here = sorted((k for k in jobs if spans[k][0] <= begin <= spans[k][1]), key=lambda k: (spans[k], k))
        part, count = here.index(job), len(here)
        low, size = gpu + 0.04 + 0.92 * part / count, 0.92 / count
        hatch: dict[str, Any] = {"hatch": "//", "edgecolor": _HATCH} if count > 1 else {"edgecolor": "none"}
        axes.add_patch(Rectangle((begin - 0.5, low), end - begin, size, facecolor=colour, linewidth=0, **hatch))
        frame = Rectangle((begin - 0.5, low), end - begin, size, facecolor="none", edgecolor="#444444")
        frame.set_linewidth(0.5 if row > 0.09 else 0.2)
        axes.add_patch(frame)
        _label(axes, instance, solution, job, (begin, end), (low, size), row, latest, count > 1)


def _label(
    axes: Axes,
    instance: GpuSharingInstance,
    solution: Solution,
    job: int,
    span: tuple[int, int],
    place: tuple[float, float],
    row: float,
    latest: int,
    shared: bool,
) -> None:
    """The job's name, and its accumulation steps, where there is room for them."""
    steps = solution["accumulation"][instance.jobs[job].id]
    name = instance.jobs[job].id + (f" /{steps}" if steps > 1 else "")
    room = (span[1] - span[0]) * 0.87 * _WIDTH * 72 / (latest + 1)
    size = min(9.0, place[1] * row * 72 * 0.75, room / (0.62 * len(name)))
    if size < 4.0:
        return
    colour = job_colour(job)
    background = {"facecolor": colour, "edgecolor": "none", "pad": 0.5} if shared else None
    x, y = (span[0] + span[1]) / 2 - 0.5, place[0] + place[1] / 2
    axes.text(x, y, name, ha="center", va="center", fontsize=size, color=ink_on(colour), bbox=background)


def _finish(axes: Axes, instance: GpuSharingInstance, latest: int, row: float) -> None:
    """Axes, servers and the horizon."""
    axes.set_xlim(0.5, latest + 0.5)
    axes.set_ylim(instance.total_gpus, 0)
    whole_numbers(axes.xaxis)
    axes.set_xlabel("slot")
    plain_axes(axes)
    middle, names, edge = [], [], 0
    for server in instance.servers:
        middle.append(edge + server.gpus / 2)
        names.append(server.id if len(server.id) <= 12 else server.id[:11] + "\u2026")
        edge += server.gpus
        axes.axhline(edge, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_yticks(middle, names, fontsize=max(4.0, min(9.0, row * 72 * 0.9)))
    if latest > instance.horizon:
        axes.axvline(instance.horizon + 0.5, color=MARK, linestyle=":", linewidth=1.2)


def _stacked(instance: GpuSharingInstance, solution: Solution) -> Figure:
    """How many GPUs each job has over time; for preemptive and elastic schedules, which have no GPU lists."""
    figure = new_figure(_WIDTH, 4.2)
    axes = figure.add_axes((0.08, 0.14, 0.89, 0.78))
    segments = solution["segments"]
    edges = sorted({t for rows in segments.values() for first, last, _ in rows for t in (first, last + 1)})
    running = [(j, first, last, gpus) for j, job in enumerate(instance.jobs) for first, last, gpus in segments[job.id]]
    for begin, end in itertools.pairwise(edges):
        low = 0
        for j, first, last, gpus in running:
            if first <= begin <= last:
                colour = job_colour(j)
                axes.add_patch(Rectangle((begin - 0.5, low), end - begin, gpus, facecolor=colour, edgecolor="none"))
                low += gpus
    axes.set_xlim(edges[0] - 0.5, edges[-1] - 0.5)
    axes.set_ylim(0, instance.total_gpus)
    whole_numbers(axes.xaxis)
    axes.set_xlabel("slot")
    axes.set_ylabel("GPUs held, one colour a job")
    axes.set_title("outside the model: GPUs of each job over time", loc="left", fontsize=9, color=INK)
    plain_axes(axes)
    return figure
