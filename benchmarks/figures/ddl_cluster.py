"""Clusters over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from schedgap.benchmarks.figures.palette import FAINT, PALETTE
from schedgap.benchmarks.figures.style import Colour, job_colour
from schedgap.benchmarks.figures.timeline import Box, Timeline, row_height, short
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import Log, simulate_plain, task_count

DETAILED_TASKS = 4000
"""Up to so many compute tasks, every task is drawn; beyond, one bar per job on each of its GPUs."""
LABELLED_GPUS = 32
"""Beyond so many GPUs a large run is drawn by job, not by GPU."""


def gantt(instance: DdlClusterInstance, solution: Solution) -> Figure:
    """Draw a run or a schedule.

    Few tasks: a row per GPU with every forward (light) and backward task (full colour), and below the GPUs of a
    server its link, with the all-reduces of jobs that span servers from admission to end, beside each other
    where they share it. Many tasks: a row per GPU, split among the jobs that hold it from placement to finish.
    Many GPUs: a row per job by arrival, light while it waits for its placement.

    Parameters
    ----------
    solution : a policy's placement, which is replayed, or a schedule
    """
    placement = [instance.located([(s, g) for s, g in solution["placement"][job.id]], job.id) for job in instance.jobs]
    finish = [float(solution["finish"][job.id]) for job in instance.jobs]
    if "policy" not in solution:
        return _tasks(instance, placement, *_scheduled(instance, placement, solution["schedule"]))
    detailed = task_count(instance) <= DETAILED_TASKS
    held = solution.get("release")
    run = simulate_plain(instance, placement, solution["policy"], release=held, record=detailed)
    clock = clock_of(instance)
    if run.log is not None:
        return _tasks(instance, placement, *_recorded(instance, placement, run.log, 10.0**clock.digits))
    placed = [clock.seconds(tick) for tick in run.placed_ticks]
    if instance.total_gpus <= LABELLED_GPUS:
        return _holders(instance, placement, placed, finish)
    return _jobs(instance, placed, finish)


Placement = Sequence[Sequence[Gpu]]
Bar = tuple[Gpu, float, float, int, int]
"""A compute task: its GPU, begin and end in seconds, its job, and 0 for forward, 1 for backward."""
KINDS = {-1: (0.75, "holds the GPU"), 0: (0.35, "forward"), 1: (0.0, "backward"), 2: (0.0, "all-reduce")}
"""Kinds of blocks: share of white in the colour, and the name in the legend."""
Message = tuple[int, float, float]
"""An all-reduce: its job, admission and end in seconds."""


def _recorded(
    instance: DdlClusterInstance, placement: Placement, log: Log, scale: float
) -> tuple[list[Bar], list[Message]]:
    """Tasks and all-reduces of a replayed run."""
    bars: list[Bar] = []
    messages: list[Message] = []
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        part = slice(log.task_base[j], log.task_base[j + 1])
        for place, (begin, end) in enumerate(zip(log.start[part] / scale, log.end[part] / scale, strict=True)):
            bars.append((gpus[place // 2 % job.gpus], float(begin), float(end), j, place % 2))
        for i in range(log.message_base[j], log.message_base[j + 1]):
            if log.done[i] >= 0:
                messages.append((j, log.admitted[i] / scale, log.done[i] / scale))
    return bars, messages


def _scheduled(
    instance: DdlClusterInstance, placement: Placement, schedule: Mapping[str, Any]
) -> tuple[list[Bar], list[Message]]:
    """Tasks and all-reduces of a schedule; the ends of all-reduces follow from the admissions by eq. (5)."""
    bars: list[Bar] = []
    coming: list[tuple[float, int, float]] = []
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        times = schedule[job.id]
        for kind, (name, length) in enumerate((("forward", job.forward), ("backward", job.backward))):
            for row in times[name]:
                bars += [(gpu, begin, begin + length, j, kind) for gpu, begin in zip(gpus, row, strict=True)]
        coming += [(begin + instance.link.latency, j, begin) for begin in times.get("allreduce") or ()]
    coming.sort(reverse=True)
    servers = [{server for server, _ in gpus} for gpus in placement]
    messages: list[Message] = []
    active: dict[int, tuple[float, float]] = {}  # admission and MB still to move, per job
    now = 0.0
    while coming or active:
        cost = {
            j: instance.link.seconds_per_unit_among(max(sum(s in servers[i] for i in active) for s in servers[j]))
            for j in active
        }
        then = min([now + left * cost[j] for j, (_, left) in active.items()] + [row[0] for row in coming[-1:]])
        active = {j: (begin, left - (then - now) / cost[j]) for j, (begin, left) in active.items()}
        for j in [j for j, (_, left) in active.items() if left <= 1e-9 * instance.jobs[j].message]:
            messages.append((j, active.pop(j)[0], then))
        while coming and coming[-1][0] <= then:
            _, j, begin = coming.pop()
            active[j] = (begin, instance.jobs[j].message)
        now = then
    return bars, messages


def _tasks(
    instance: DdlClusterInstance, placement: Placement, bars: Sequence[Bar], messages: Sequence[Message]
) -> Figure:
    """Every task and every all-reduce."""
    row_of: dict[tuple[int, int], int] = {}
    names: list[str] = []
    for s, server in enumerate(instance.servers):
        for index in (*range(server.gpus), -1):
            row_of[s, index] = len(names)
            names.append(f"{short(server.id, 14)} {'link' if index < 0 else index}")
    latest = max([*(bar[2] for bar in bars), *(message[2] for message in messages)])
    chart = _chart(len(names), latest, names)
    shapes: dict[tuple[int, int], list[Box]] = {}
    held: dict[tuple[int, Gpu], list[float]] = {}
    for gpu, begin, end, j, _ in bars:
        held.setdefault((j, gpu), []).extend((begin, end))
    for (j, gpu), moments in held.items():
        box = (min(moments), max(moments), row_of[gpu] + 0.06, row_of[gpu] + 0.94)
        shapes.setdefault((j, -1), []).append(box)
    for gpu, begin, end, j, kind in bars:
        shapes.setdefault((j, kind), []).append((begin, end, row_of[gpu] + 0.06, row_of[gpu] + 0.94))
    by_server: dict[int, list[Message]] = {}
    for message in messages:
        for s in {server for server, _ in placement[message[0]]}:
            by_server.setdefault(s, []).append(message)
    for s, here in by_server.items():
        top = row_of[s, -1]
        for (j, begin, end), lane, count in _lanes(here):
            low = top + 0.06 + 0.88 * lane / count
            shapes.setdefault((j, 2), []).append((begin, end, low, low + 0.88 / count))
    for (j, kind), boxes in sorted(shapes.items(), key=lambda item: (item[0][1], item[0][0])):
        line = 0.4 if len(bars) < 600 and kind >= 0 else 0.0
        part, work = KINDS[kind]
        chart.boxes(boxes, _lighter(job_colour(j), part), line, f"{instance.jobs[j].id}, {work}")
    for s in range(len(instance.servers)):
        chart.axes.axhline(row_of[s, -1] + 1, color="#888888", linewidth=0.8)
    grey = (0.35, 0.35, 0.35)
    shades = (("forward", 0.35), ("backward; on a link row: all-reduce", 0.0), ("GPU held, idle", 0.75))
    handles = [Patch(facecolor=_lighter(grey, part), label=text) for text, part in shades]
    if len(instance.jobs) <= 16:  # few enough to be told apart
        handles += [Patch(facecolor=job_colour(j), label=short(job.id, 14)) for j, job in enumerate(instance.jobs)]
    chart.legend(handles, columns=7)
    return chart.figure


def _lighter(colour: Colour, part: float) -> Colour:
    """The colour with so much white mixed in."""
    red, green, blue = (part + (1 - part) * c for c in colour)
    return red, green, blue


def _lanes(messages: Sequence[Message]) -> list[tuple[Message, int, int]]:
    """Each all-reduce with its lane and the number of lanes: those that overlap get different ones."""
    ends: list[float] = []
    lanes: list[tuple[Message, int]] = []
    for message in sorted(messages, key=lambda row: (row[1], row[0])):
        free = [lane for lane, end in enumerate(ends) if end <= message[1] + 1e-9]
        lane = free[0] if free else len(ends)
        ends[lane : lane + 1] = [message[2]]
        lanes.append((message, lane))
    return [(message, lane, len(ends)) for message, lane in lanes]


def _holders(instance: DdlClusterInstance, placement: Placement, placed: list[float], finish: list[float]) -> Figure:
    """The jobs that hold each GPU; those that hold it together lie in lanes."""
    names = [f"{short(server.id, 14)} {index}" for server in instance.servers for index in range(server.gpus)]
    chart = _chart(len(names), max(finish), names)
    held: dict[int, list[Message]] = {}
    for j, gpus in enumerate(placement):
        for server, index in gpus:
            held.setdefault(instance.first_gpu[server] + index, []).append((j, placed[j], finish[j]))
    for gpu, here in held.items():
        for (j, begin, end), lane, count in _lanes(here):
            low = gpu + 0.05 + 0.9 * lane / count
            chart.boxes([(begin, end, low, low + 0.9 / count)], job_colour(j), 0.3, instance.jobs[j].id)
    for first in instance.first_gpu[1:]:
        chart.axes.axhline(first, color=FAINT, linewidth=0.8)
    return chart.figure


def _jobs(instance: DdlClusterInstance, placed: list[float], finish: list[float]) -> Figure:
    """A line for each job, in order of arrival: waiting for its GPUs, then running; thicker for wider jobs."""
    order = sorted(range(len(placed)), key=lambda j: (instance.jobs[j].arrival, j))
    chart = _chart(len(order), max(finish))
    widest = max(job.gpus for job in instance.jobs)
    for place, j in enumerate(order):
        job = instance.jobs[j]
        half = 0.2 + 0.3 * job.gpus / widest
        shade = PALETTE[5] if job.gpus > 4 else PALETTE[0]
        if placed[j] > job.arrival:
            chart.boxes([(job.arrival, placed[j], place + 0.3, place + 0.7)], FAINT, name=f"{job.id} waits")
        chart.boxes([(placed[j], finish[j], place + 0.5 - half, place + 0.5 + half)], shade, name=job.id)
    chart.axes.set_ylabel(f"{len(order)} jobs by arrival", fontsize=9)
    handles = [
        Patch(facecolor=PALETTE[5], label="more than 4 GPUs"),
        Patch(facecolor=PALETTE[0], label="up to 4 GPUs"),
        Patch(facecolor=FAINT, label="waits for its GPUs"),
    ]
    chart.legend(handles)
    return chart.figure


def _chart(rows: int, latest: float, names: Sequence[str] = ()) -> Timeline:
    """So many rows over seconds, each with its name where there are any."""
    chart = Timeline(rows, row_height(rows, 8.0, 0.34, 0.012), 0.0, latest * 1.005, unit="seconds", below=1.1)
    for place, name in enumerate(names):
        chart.label(place, place + 1, name)
    return chart
