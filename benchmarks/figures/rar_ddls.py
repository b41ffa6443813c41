"""The Gantt chart of a rar-ddls schedule: GPUs by server, rings that cross, contention over time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.style import FAINT, INK, MARK, ink_on, job_colour, new_figure, row_label, whole_numbers
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

LEVELS = ("#ffffff", "#cfd8e3", "#8fa3bd", "#4d6a92", "#1b2f52")
"""Shades of a server's strip: 0, 1, 2, 3 and at least 4 rings that cross it."""
EDGE = "#444444"
HATCH = (0.0, 0.0, 0.0, 0.38)


@dataclass(frozen=True)
class Layout:
    """Heights: of a GPU's row in inches, of a server's strip and of the space between servers in GPU rows.

    Few GPUs get tall rows that hold labels; hundreds share 13 inches, and strips stay thick enough to be seen.
    """

    row: float
    strip: float
    gap: float
    units: float

    @classmethod
    def of(cls, gpus: int, servers: int) -> Layout:
        """For so many GPUs and servers."""
        row = min(0.42, max(0.035, 13.0 / (gpus + 1.2 * servers)))
        strip, gap = max(0.62, 0.13 / row), max(0.55, 0.07 / row)
        return cls(row, strip, gap, gpus + servers * (strip + gap))


@dataclass(frozen=True)
class Block:
    """A job on neighbouring GPUs of one server, slots `first` to `last`."""

    job: int
    first: int
    last: int
    lowest: int
    gpus: int
    crossing: bool


def gantt(instance: RarDdlsInstance, solution: Solution) -> Figure:
    """Draw a schedule.

    Rows are GPUs grouped by server; each job keeps its colour and its GPUs (interval colouring within each
    server) from its start to the completion that the dynamics give it. Hatched: the ring crosses servers.
    The strip below a server shows how many rings cross it in each slot, which is what slows them down. The
    dashed line is the makespan; a dotted one the horizon where a schedule goes beyond it.

    Parameters
    ----------
    solution : starts and placements; need not be feasible, a job that never completes is drawn to the end

    Returns
    -------
    Figure of its own (no pyplot state), 10 inches wide; its height grows with the GPUs.
    """
    schedule = simulate(instance, solution["start"], solution["placement"])
    placed = [job for job in instance.jobs if job.id in solution["start"]]
    known = [slot for slot in schedule.completion.values() if slot is not None]
    starts = [int(solution["start"][job.id]) for job in placed]
    latest = max([*known, *starts, 1])
    blocks = _blocks(instance, solution, schedule.completion, latest)

    layout = Layout.of(instance.total_gpus, len(instance.servers))
    tall = layout.units * layout.row
    height = tall + 1.2
    figure = new_figure(10.0, height)
    left = 0.9
    axes = figure.add_axes((left / 10.0, 0.95 / height, (10.0 - left - 0.35) / 10.0, tall / height))
    _draw(axes, instance, blocks, latest, layout)
    makespan = max(known) if len(known) == len(placed) and known else None
    _finish(axes, instance, makespan, latest, layout)
    _legend(figure, height, makespan is not None and makespan > instance.horizon)
    return figure


def _draw(
    axes: Axes, instance: RarDdlsInstance, blocks: Sequence[Sequence[Block]], latest: int, layout: Layout
) -> None:
    y, row = 0.0, layout.row
    label_size = max(4.5, min(9.0, row * 72 * 0.55))
    slot_width = 8.75 * 72 / (latest + 1)
    for server, here in zip(instance.servers, blocks, strict=True):
        axes.add_patch(Rectangle((0.5, y), latest, server.gpus, facecolor="#f7f7f7", edgecolor="none", zorder=0))
        for k in range(1, server.gpus):
            if row > 0.09:
                axes.plot([0.5, latest + 0.5], [y + k, y + k], color="white", linewidth=0.8, zorder=0.5)
        for block in here:
            _draw_block(axes, instance, block, y, row, label_size, slot_width)
        _draw_strip(axes, here, y + server.gpus + 0.08, latest, layout, slot_width)
        size = max(5.0, min(9.0, (server.gpus + layout.strip) * row * 72 * 0.45))
        unit = "GPU" if server.gpus == 1 else "GPUs"
        text = f"{_short(server.id, 12)}\n{server.gpus} {unit}" if server.gpus * row > 0.3 else _short(server.id, 12)
        row_label(axes, y + server.gpus / 2, text, size)
        y += server.gpus + layout.strip + layout.gap


def _draw_block(
    axes: Axes, instance: RarDdlsInstance, block: Block, y: float, row: float, size: float, slot_width: float
) -> None:
    colour = job_colour(block.job)
    width = block.last - block.first + 1
    corner, size_of = (block.first - 0.5, y + block.lowest + 0.04), (width, block.gpus - 0.08)
    if block.crossing:
        hatched = Rectangle(corner, *size_of, facecolor=colour, edgecolor=HATCH, hatch="//", linewidth=0, zorder=2)
        axes.add_patch(hatched)
    else:
        axes.add_patch(Rectangle(corner, *size_of, facecolor=colour, edgecolor="none", zorder=2))
    line = (1.0 if block.crossing else 0.6) if row > 0.09 else 0.3
    axes.add_patch(Rectangle(corner, *size_of, facecolor="none", edgecolor=EDGE, linewidth=line, zorder=2.1))
    name = _short(instance.jobs[block.job].id, 14)
    room = width * slot_width
    high = block.gpus * row * 72
    fits = min(size * 1.25, high * 0.8, room / (0.62 * len(name)) if name else size)
    if fits >= 4.5:
        background = {"facecolor": colour, "edgecolor": "none", "pad": 0.6} if block.crossing else None
        axes.text(
            block.first - 0.5 + width / 2,
            y + block.lowest + block.gpus / 2,
            name,
            ha="center",
            va="center",
            fontsize=fits,
            color=ink_on(colour),
            bbox=background,
            zorder=3,
            clip_on=True,
        )


def _draw_strip(axes: Axes, here: Sequence[Block], y: float, latest: int, layout: Layout, slot_width: float) -> None:
    """How many rings cross this server, slot by slot, as shades with their number."""
    high = layout.strip - 0.08
    size = min(7.5, high * layout.row * 72 * 0.72)
    change: dict[int, int] = {}
    for job in {block.job for block in here if block.crossing}:
        block = next(b for b in here if b.job == job)
        change[block.first] = change.get(block.first, 0) + 1
        change[block.last + 1] = change.get(block.last + 1, 0) - 1
    moments = sorted({1, latest + 1, *(slot for slot in change if slot <= latest)})
    count = 0
    pieces: list[tuple[int, int, int]] = []
    for first, following in itertools.pairwise(moments):
        count += change.get(first, 0)
        if pieces and pieces[-1][2] == count:
            pieces[-1] = (pieces[-1][0], following, count)
        else:
            pieces.append((first, following, count))
    for first, following, crossing in pieces:
        shade = LEVELS[min(crossing, len(LEVELS) - 1)]
        axes.add_patch(
            Rectangle((first - 0.5, y), following - first, high, facecolor=shade, edgecolor="none", zorder=1)
        )
        if crossing >= 2 and (following - first) * slot_width > 8:
            axes.text(
                (first + following) / 2 - 0.5,
                y + high / 2,
                str(crossing),
                ha="center",
                va="center",
                fontsize=size,
                color="white" if crossing >= 3 else INK,
                zorder=3,
            )
    axes.add_patch(Rectangle((0.5, y), latest, high, facecolor="none", edgecolor=FAINT, linewidth=0.5, zorder=1.5))


def _finish(axes: Axes, instance: RarDdlsInstance, makespan: int | None, latest: int, layout: Layout) -> None:
    axes.set_xlim(0.5, latest + 0.5 + max(0.3, latest * 0.01))
    axes.set_ylim(layout.units - layout.gap, -0.2)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_yticks([])
    axes.tick_params(axis="x", labelsize=9, colors=INK)
    axes.set_xlabel("slot", fontsize=10, color=INK)
    whole_numbers(axes.xaxis)
    if makespan is not None:
        axes.axvline(makespan + 0.5, color=MARK, linewidth=1.4, linestyle=(0, (5, 2)), zorder=4)
        if makespan > instance.horizon:
            axes.axvline(instance.horizon + 0.5, color=INK, linewidth=1.0, linestyle=":", zorder=4)


def _legend(figure: Figure, height: float, late: bool) -> None:
    handles: list[Any] = [
        Patch(facecolor="#dddddd", edgecolor="#555555", label="on one server"),
        Patch(facecolor="#dddddd", edgecolor=HATCH, hatch="////", label="ring crosses servers"),
    ]
    handles += [
        Patch(facecolor=shade, edgecolor=FAINT, label=text)
        for shade, text in zip(LEVELS[1:], ("1 ring", "2", "3", "4 or more rings cross"), strict=True)
    ]
    handles.append(Line2D([], [], color=MARK, linewidth=1.4, linestyle=(0, (5, 2)), label="makespan"))
    if late:
        handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle=":", label="horizon"))
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.08, 0.06 / height),
        ncols=len(handles),
        fontsize=8.5,
        frameon=False,
        handlelength=1.6,
        columnspacing=1.2,
    )


def _blocks(
    instance: RarDdlsInstance, solution: Solution, completion: Mapping[str, int | None], latest: int
) -> list[list[Block]]:
    """By server, every job's GPUs there as blocks of neighbours.

    Jobs take GPUs in the order of their starts: the smallest gap of neighbouring free GPUs that holds all of
    them, otherwise the lowest free ones. Where a schedule overfills a server, rows are added for the rest.
    """
    result: list[list[Block]] = []
    order = sorted(
        (position for position, job in enumerate(instance.jobs) if job.id in solution["start"]),
        key=lambda j: (int(solution["start"][instance.jobs[j].id]), j),
    )
    for server in instance.servers:
        free_from = [1] * server.gpus
        here: list[Block] = []
        for position in order:
            job = instance.jobs[position]
            need = int(_gpus_on(solution, job.id, server.id))
            if need == 0:
                continue
            first = int(solution["start"][job.id])
            ended = completion[job.id]
            last = latest if ended is None else ended
            taken = _choose([k for k, slot in enumerate(free_from) if slot <= first], need)
            for k in taken:
                free_from[k] = last + 1
            for lowest, count in _runs(taken):
                here.append(Block(position, first, last, lowest, count, need < job.gpus))
        result.append(here)
    return result


def _gpus_on(solution: Solution, job: str, server: str) -> Any:
    return solution["placement"].get(job, {}).get(server, 0)


def _choose(free: Sequence[int], need: int) -> list[int]:
    """`need` of the free GPUs: the tightest run of neighbours that holds them, or the lowest ones."""
    fitting = [(count, lowest) for lowest, count in _runs(free) if count >= need]
    if fitting:
        _, lowest = min(fitting)
        return list(range(lowest, lowest + need))
    return list(free[:need])


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """(lowest, length) of each run of neighbouring numbers in an ascending sequence."""
    runs: list[tuple[int, int]] = []
    for k in numbers:
        if runs and runs[-1][0] + runs[-1][1] == k:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((k, 1))
    return runs


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
