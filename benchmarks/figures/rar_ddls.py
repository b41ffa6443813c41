"""The Gantt chart of a rar-ddls schedule: GPUs by server, rings that cross, contention over time."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.palette import FAINT, GRID, INK, MARK
from schedgap.benchmarks.figures.timeline import HATCH, NARROW, Timeline, row_height
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

LEVELS = ("#ffffff", "#cfd8e3", "#8fa3bd", "#4d6a92", "#1b2f52")
"""Shades of a server's strip: 0, 1, 2, 3 and at least 4 rings that cross it."""
DASHES = (0, (5, 2))


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
    """
    schedule = simulate(instance, solution["start"], solution["placement"])
    placed = [job for job in instance.jobs if job.id in solution["start"]]
    known = [slot for slot in schedule.completion.values() if slot is not None]
    starts = [int(solution["start"][job.id]) for job in placed]
    latest = max([*known, *starts, 1])
    blocks = _blocks(instance, solution, schedule.completion, latest)

    servers = len(instance.servers)
    row = row_height(instance.total_gpus + 1.2 * servers, least=0.035)
    strip, gap = max(0.62, 0.13 / row), max(0.55, 0.07 / row)  # strips stay thick enough to be seen
    rows = instance.total_gpus + servers * (strip + gap) - gap
    names = [job.id for job in instance.jobs]
    chart = Timeline(rows, row, 0.5, latest + 0.5 + max(0.3, latest * 0.01), unit="slot", names=names)
    most, y = 0, 0.0
    for server, here in zip(instance.servers, blocks, strict=True):
        _draw_server(chart, server.gpus, y, latest)
        for block in here:
            box = (block.first - 0.5, block.last + 0.5, y + block.lowest + 0.04, y + block.lowest + block.gpus - 0.04)
            chart.box(block.job, box, instance.jobs[block.job].id, hatched=block.crossing, largest=11.0)
        low = y + server.gpus + 0.08
        most = max(most, _draw_strip(chart, here, low, low + strip - 0.08, latest))
        chart.label(y, y + server.gpus, server.id, f"{server.gpus} GPU{'s' * (server.gpus > 1)}")
        y += server.gpus + strip + gap
    makespan = max(known) if len(known) == len(placed) and known else None
    if makespan is not None:
        chart.mark(makespan + 0.5, MARK, DASHES, objective=True)
        if makespan > instance.horizon:
            chart.mark(instance.horizon + 0.5, INK, ":")
    _legend(chart, blocks, most, makespan, instance.horizon)
    return chart.figure


def _draw_server(chart: Timeline, gpus: int, y: float, latest: int) -> None:
    """The free GPUs of a server."""
    free = Rectangle((0.5, y), latest, gpus, facecolor="#f7f7f7", edgecolor="none", zorder=0)
    chart.axes.add_patch(free)
    for k in range(1, gpus if chart.row > NARROW else 1):
        chart.axes.plot([0.5, latest + 0.5], [y + k, y + k], color=GRID, linewidth=0.8, zorder=0.5)


def _draw_strip(chart: Timeline, here: Sequence[Block], low: float, high: float, latest: int) -> int:
    """How many rings cross this server, slot by slot, as shades with their number; the most."""
    change = Counter[int]()
    for job in {block.job for block in here if block.crossing}:
        block = next(b for b in here if b.job == job)
        change[block.first] += 1
        change[block.last + 1] -= 1
    moments = sorted({1, latest + 1, *(slot for slot in change if slot <= latest)})
    crossing = 0
    pieces: list[tuple[int, int, int]] = []
    for first, following in itertools.pairwise(moments):
        crossing += change[first]
        if pieces and pieces[-1][2] == crossing:
            pieces[-1] = (pieces[-1][0], following, crossing)
        else:
            pieces.append((first, following, crossing))
    for first, following, crossing in pieces:
        shade = LEVELS[min(crossing, len(LEVELS) - 1)]
        box = (first - 0.5, following - 0.5, low, high)
        chart.boxes([box], shade)
        if crossing >= 2:
            chart.name(str(crossing), box, to_rgb(shade), largest=7.5)
    outline = Rectangle((0.5, low), latest, high - low, facecolor="none", edgecolor=FAINT, linewidth=0.5, zorder=1.5)
    chart.axes.add_patch(outline)
    return max(crossing for _, _, crossing in pieces)


def _legend(chart: Timeline, blocks: list[list[Block]], most: int, makespan: int | None, horizon: int) -> None:
    """What is drawn, and nothing else; `most` rings cross a server at once."""
    kinds = {block.crossing for block in itertools.chain(*blocks)}
    names = ("1 ring crosses the server", "2 rings share its link", "3", "4 or more")
    crossing = Patch(facecolor="#dddddd", edgecolor=HATCH, hatch="////", label="ring crosses servers")
    ends = Line2D([], [], color=MARK, linewidth=1.3, linestyle=DASHES, label="makespan")
    late = Line2D([], [], color=INK, linewidth=1.3, linestyle=":", label="horizon")
    handles: dict[Any, bool] = {
        Patch(facecolor="#dddddd", edgecolor="#555555", label="on one server"): False in kinds,
        crossing: True in kinds,
        **{Patch(facecolor=LEVELS[k], edgecolor=FAINT, label=names[k - 1]): most >= k for k in range(1, len(LEVELS))},
        ends: makespan is not None,
        late: (makespan or 0) > horizon,
    }
    chart.legend([handle for handle, drawn in handles.items() if drawn])


def _blocks(
    instance: RarDdlsInstance, solution: Solution, completion: Mapping[str, int | None], latest: int
) -> list[list[Block]]:
    """Every job's GPUs on each server, as blocks of neighbours.

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
