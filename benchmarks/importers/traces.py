"""Job traces of any format, ready for every problem: which jobs are kept, on which servers, what is assumed."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.formats import COLUMNS, POLLUX, SIA, TRACES, table
from schedgap.benchmarks.importers.kubernetes import KUBERNETES, kubernetes_nodes
from schedgap.benchmarks.importers.rows import Format, Notes, opened, read_rows
from schedgap.benchmarks.importers.server_tables import MOST_HOSTS, TraceServer, read_servers, servers_with_gpus
from schedgap.benchmarks.instances import LARGE_HOURS, PER_SERVER, SMALL_HOURS, log_uniform
from schedgap.catalogue.workload import Importer
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import MOST_GPUS, Instance
from schedgap.formulations.common.options import passes_on_to

ASSUMED = "no table of servers"
"""How the note begins that says what was assumed then."""


_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace; what the file does not say is None."""

    line: int  # line in the file, from 1
    id: str
    gpus: int
    share: float = 1.0  # share of each of its GPUs that it asked for
    arrival: float = 0.0  # seconds
    duration: float | None = None  # seconds that it ran
    iterations: int | None = None  # steps, counted over all workers
    model: str | None = None  # what it trains, as the file says
    batch: int | None = None  # samples of one worker
    # eligible, start, end: seconds, by the clock of the arrivals; of the run that really was
    eligible: float | None = None
    start: float | None = None
    end: float | None = None
    # state, user, tenant: how it ended, whose it was, and its queue, partition or virtual cluster
    state: str | None = None
    user: str | None = None
    tenant: str | None = None
    # where it ran, with the GPUs that it had on each where the log says so
    nodes: tuple[tuple[str, int | None], ...] = ()
    limit: float | None = None  # seconds that it was allowed
    # asked, kind: the type of GPU that it asked for, and that it got
    asked: str | None = None
    kind: str | None = None
    # processors, memory: that it held on all its nodes together; memory in bytes
    processors: int | None = None
    memory: int | None = None
    cluster: str | None = None  # name of the cluster, where one log has several
    gang: str | None = None  # name of the gang with which a pod starts

    def moved(self, zero: float, scale: float) -> TraceJob:
        """With times from `zero` on, and all times and steps `scale` times as long."""
        if zero == 0 and scale == 1:
            return self
        moments: dict[str, Any] = {
            name: round(scale * (value - zero), 6)
            for name in ("arrival", "eligible", "start", "end")
            if (value := getattr(self, name)) is not None
        }
        if scale != 1:
            for name in ("duration", "limit"):
                moments[name] = None if getattr(self, name) is None else scale * getattr(self, name)
            moments["iterations"] = None if self.iterations is None else max(1, round(scale * self.iterations))
        return replace(self, **moments)


@dataclass
class Trace:
    """What is read of a trace."""

    name: str  # for the instance
    path: str  # for messages
    jobs: list[TraceJob]  # kept jobs, in the order of the file
    servers: list[TraceServer]  # servers of their file, or from the options
    notes: Notes  # what was left out or assumed
    listed: bool = False  # the servers are those of a file

    def drop(self, job: TraceJob, reason: str) -> None:
        """Leave a job out, and say so; where the format is strict, an error."""
        if self.notes.strict:
            raise InputError(f"{self.path}: job {job.id} {reason}")
        self.notes.row(f"left out: {reason}", job.line)

    def fitting(self, capacity: int) -> list[TraceJob]:
        """The jobs that fit so many GPUs; at least one.

        Raises InputError: none fits.
        """
        kept = []
        for job in self.jobs:
            if job.gpus <= capacity:
                kept.append(job)
            else:
                self.drop(job, f"needs {job.gpus} GPUs, {self.shape} have {capacity}")
        if not kept:
            raise InputError(f"{self.path}: no job fits the {capacity} GPUs of {self.shape}")
        return kept

    @property
    def shape(self) -> str:
        """``4 servers of 8``."""
        sizes = sorted({server.gpus for server in self.servers})
        return f"{len(self.servers)} servers of {' or '.join(map(str, sizes))}"


def list_horizon(last: int, gangs: Iterable[tuple[int, int]], capacity: int) -> int:
    """A last slot by which a schedule ends that starts a waiting gang whenever it fits.

    After the last arrival, any two moments of such a schedule that are at least the longest duration apart have
    together more than `capacity` GPUs busy, so it ends within 2 A / C + 2 d slots for the area A of all gangs,
    C GPUs and the longest duration d.

    Parameters
    ----------
    last : the last slot in which a job arrives
    gangs : (GPUs, slots) of each job
    capacity : GPUs, at least those of the largest gang
    """
    sizes = list(gangs)
    area = sum(gpus * slots for gpus, slots in sizes)
    return last + 2 * -(-area // capacity) + 2 * max(slots for _, slots in sizes)


def trace_importers(
    target: Callable[..., Instance], throughputs: bool = False, first: Literal["rings", "arrival"] = "arrival"
) -> tuple[Importer, ...]:
    """An importer of every trace format for one problem.

    Parameters
    ----------
    target : ``f(trace, **options) -> instance``; its annotated keywords are options of every importer
    throughputs : whether it takes a file of measured rates
    first : which jobs are kept first where nothing is said
    """
    made = [Importer(form.id, form.title, _public(form, target, first), throughputs) for form in TRACES]
    return (*made, Importer("csv", "a table of jobs; --set names its columns", _plain(target, first), throughputs))


Kept = Annotated[int | None, Field(ge=1, le=10**6, description="how many jobs to keep; all where not given")]


First = Annotated[
    Literal["rings", "trace", "arrival"],
    Field(description="kept first: jobs of more than one GPU, by line, or by arrival"),
]


Rows = Annotated[str | None, Field(description="column=value: only rows with this value")]


Servers = Annotated[
    int | None,
    Field(ge=1, le=10**6, description="where not given: for half of the GPUs asked for, or the trace's load if less"),
]


PerServer = Annotated[int, Field(ge=1, le=10**6, description="GPUs of a server")]


Seed = Annotated[int, Field(ge=0, le=10**9, description="seed of what is drawn")]


TimeScale = Annotated[
    float, Field(gt=0, le=1e6, description="factor on all times of the log, arrivals and steps included")
]


def _public(form: Format, target: Callable[..., Instance], usual: Any) -> Callable[..., tuple[Instance, list[str]]]:
    own = 16 if form in (POLLUX, SIA) else None

    @passes_on_to(target)
    def read(
        files: Sequence[str | Path],
        *,
        jobs: Kept = None,
        first: First = usual,
        keep: Rows = None,
        servers: Servers = own,
        gpus: PerServer = PER_SERVER,
        seed: Seed = 0,
        time_scale: TimeScale = 1.0,
        **options: Any,
    ) -> tuple[Instance, list[str]]:
        trace = read_trace(form, files, jobs, first, keep, servers, gpus, seed, time_scale)
        return target(trace, **options), trace.notes.texts

    return read


def _plain(target: Callable[..., Instance], usual: Any) -> Callable[..., tuple[Instance, list[str]]]:
    @passes_on_to(target)
    def read(
        files: Sequence[str | Path],
        *,
        gpus: Annotated[str | None, Field(description="column: GPUs of a job (required)")] = None,
        duration: Annotated[
            str | None, Field(description="column: how long a job ran; this or iterations is required")
        ] = None,
        id: Annotated[str | None, Field(description="column: ids; by line where not given")] = None,
        arrival: Annotated[str | None, Field(description="column: when a job was submitted; all at 0 without")] = None,
        model: Annotated[str | None, Field(description="column: what a job trains")] = None,
        iterations: Annotated[str | None, Field(description="column: steps, counted over all workers")] = None,
        batch: Annotated[str | None, Field(description="column: samples of one worker")] = None,
        unit: Annotated[Literal["s", "ms", "min", "h"], Field(description="unit of plain numbers of time")] = "s",
        jobs: Kept = None,
        first: First = usual,
        keep: Rows = None,
        servers: Servers = None,
        server_gpus: PerServer = PER_SERVER,
        seed: Seed = 0,
        time_scale: TimeScale = 1.0,
        start: Annotated[str | None, Field(description="column: when a job started")] = None,
        end: Annotated[str | None, Field(description="column: when it ended; with start instead of duration")] = None,
        nodes: Annotated[str | None, Field(description="column: where it ran, n1 or n[1-2],n7")] = None,
        tenant: Annotated[str | None, Field(description="column: queue, partition or virtual cluster")] = None,
        user: Annotated[str | None, Field(description="column: whose it was")] = None,
        kind: Annotated[str | None, Field(description="column: the type of its GPUs")] = None,
        **options: Any,
    ) -> tuple[Instance, list[str]]:
        named = {
            **{"id": id, "gpus": gpus, "duration": duration, "arrival": arrival, "model": model},
            **{"iterations": iterations, "batch": batch, "start": start, "end": end, "nodes": nodes},
            **{"tenant": tenant, "user": user, "kind": kind},
        }
        form = user_table({field: name for field, name in named.items() if name is not None}, unit, file=files[0])
        trace = read_trace(form, files, jobs, first, keep, servers, server_gpus, seed, time_scale)
        if arrival is None:
            trace.notes.add("all jobs arrive at once: no column is named as arrival")
        return target(trace, **options), trace.notes.texts

    return read


def user_table(
    columns: Mapping[str, str], unit: str = "s", where: str = "import csv: --set", file: str | Path | None = None
) -> Format:
    """The format of a table whose columns a user names.

    Raises InputError: it does not say how many GPUs, or how long; a field or a unit that there is not. `where` begins
    the line, which ends with the first line of the file.
    """
    timed = "duration" in columns or "iterations" in columns or {"start", "end"} <= set(columns)
    if "gpus" not in columns or not timed:
        wanted = "gpus=..., and duration=... or iterations=... (or start=... and end=...)"
        raise InputError(f"{where} must name the columns: {wanted}{_first_line(file)}")
    if unit not in _UNITS:
        raise InputError(f"{where} unit: must be one of {', '.join(_UNITS)}, got {unit!r}")
    for field in columns:
        if field not in COLUMNS:
            raise InputError(f"{where}: no field {field!r} (fields: {', '.join(COLUMNS)}){near(field, COLUMNS)}")
    return table(columns, _UNITS[unit])


def _first_line(file: str | Path | None) -> str:
    """What the file begins with, for the end of a message."""
    if file is None:
        return ""
    with opened(file, lenient=True) as table_file:
        line = table_file.readline(200).strip()
    return f"; {file} begins with {line!r}"


def read_trace(
    form: Format,
    files: Sequence[str | Path],  # the trace, and where there is one the table of servers
    # limit, first, keep: which jobs are kept
    limit: int | None = None,
    first: str = "arrival",
    keep: str | None = None,
    # servers, per_server: where there is no table of servers
    servers: int | None = None,
    per_server: int = PER_SERVER,
    seed: int = 0,  # seed of durations, where the file has neither these nor steps
    time_scale: float = 1.0,  # factor on all times and steps
    columns: Sequence[str] = (),  # names of the columns, where the trace has no line of names
) -> Trace:
    """The jobs of a trace and the servers they run on, in memory for the jobs that are kept.

    Raises InputError: a file that does not fit: names the file, the line and the value.
    """
    if not 1 <= len(files) <= 2:
        raise InputError(f"import {form.id}: takes one trace and perhaps one table of servers, got {len(files)} files")
    path = files[0]
    if form.json is not None:
        with opened(path, lenient=form.lenient) as file:
            form = form.json if file.read(64).lstrip()[:1] in ("[", "{") else form
    notes = Notes(form.strict)
    read, hosts = 0, [0]

    def each() -> Iterable[TraceJob]:
        nonlocal read
        for row in read_rows(form, path, notes, keep, columns):
            read += 1
            row.pop("argument", None), row.pop("data", None)
            if row.get("start") is None or row.get("end") is None:
                row.pop("start", None), row.pop("end", None)
            _check_sizes(path, row, hosts)
            if row.get("share", 1.0) < 1.0:
                notes.row("with a part of a GPU, taken as a whole one", row["line"])
            yield TraceJob(**{"id": f"j{row['line'] - 1}", **row})

    order: dict[str, Callable[[TraceJob], Any]] = {
        "rings": lambda job: (job.gpus == 1, job.line),
        "trace": lambda job: job.line,
        "arrival": lambda job: (job.arrival, job.line),
    }
    jobs = list(each()) if limit is None else heapq.nsmallest(limit, each(), key=order[first])
    jobs.sort(key=lambda job: job.line)
    if not jobs:
        raise InputError(f"{path}: no jobs{_untracked(form, notes)}" + "".join(f"; {text}" for text in notes.texts[:2]))
    jobs = of_clusters(joined_parts(jobs, notes), notes)
    notes.add(*form.notes)
    zero = 0.0 if form.relative else min(job.arrival for job in jobs)
    if zero > 0:
        notes.add(f"arrivals count from that of the first job, {_moment(zero)} in the file")
    if time_scale != 1:
        notes.add(f"all times are {time_scale:g} times those of the log")
    jobs = [job.moved(zero, time_scale) for job in jobs]
    if all(job.duration is None and job.iterations is None for job in jobs):
        rng = np.random.default_rng(seed)
        notes.add(f"durations are drawn (seed {seed}), the file has none")
        hours = [LARGE_HOURS if job.gpus > PER_SERVER else SMALL_HOURS for job in jobs]
        jobs = [
            replace(job, duration=3600.0 * log_uniform(rng, low, high))
            for job, (low, high) in zip(jobs, hours, strict=True)
        ]
    stem = f"{form.id}-{Path(path).stem}"[:180]
    name = stem if limit is None or len(jobs) == read else f"{stem}-{len(jobs)}"
    if len(files) == 2:
        listed = read_servers(files[1], notes)
        if sum(server.gpus for server in listed) > MOST_GPUS:
            raise InputError(f"{files[1]}: more than {MOST_GPUS:,} GPUs")
        return Trace(name, str(path), jobs, listed, notes, listed=True)
    if form is KUBERNETES and (nodes := servers_with_gpus(kubernetes_nodes(path), path, notes)):
        return Trace(name, str(path), jobs, nodes, notes, listed=True)
    number = enough_servers(jobs, per_server) if servers is None else servers
    if number * per_server > MOST_GPUS:
        raise InputError(f"{path}: {number:,} servers of {per_server} GPUs, at most {MOST_GPUS:,} GPUs in all")
    if servers is None:
        notes.add(f"{ASSUMED}: {number} servers of {per_server} GPUs assumed")
    return Trace(name, str(path), jobs, [TraceServer(f"s{i}", per_server) for i in range(number)], notes)


def _check_sizes(path: str | Path, row: Mapping[str, Any], hosts: list[int]) -> None:
    """Refuse a job of more GPUs than any cluster, and a log whose jobs name more hosts than memory holds.

    Raises InputError: names the line and the value.
    """
    if row.get("gpus", 0) > MOST_GPUS:
        raise InputError(f"{path}: line {row['line']}: a job of {row['gpus']:,} GPUs, at most {MOST_GPUS:,}")
    hosts[0] += len(row.get("nodes", ()))
    if hosts[0] > MOST_HOSTS:
        raise InputError(f"{path}: line {row['line']}: more than {MOST_HOSTS:,} hosts in all jobs together")


def _untracked(form: Format, notes: Notes) -> str:
    """Why a log of Slurm may have no GPU in any row."""
    if form.id != "slurm" or set(notes.left_out) != {"no GPU"}:
        return ""
    return (
        ": no row has gres/gpu, so AccountingStorageTRES does not list it "
        "(scontrol show config | grep AccountingStorageTRES)"
    )


def joined_parts(jobs: list[TraceJob], notes: Notes) -> list[TraceJob]:
    """Parts of a heterogeneous job (``100+0``, ``100+1``) as one job, where they started and ended together."""
    groups: dict[str, list[TraceJob]] = {}
    for job in jobs:
        base, plus, part = job.id.rpartition("+")
        if plus and part.isdecimal():
            groups.setdefault(base, []).append(job)
    joined: dict[str, TraceJob] = {}
    for base, parts in groups.items():
        first = parts[0]
        if len(parts) > 1 and len({(job.arrival, job.start, job.end) for job in parts}) == 1:
            kinds = {job.asked for job in parts}
            joined[first.id] = replace(
                first,
                id=base,
                gpus=sum(job.gpus for job in parts),
                nodes=_merged(parts),
                asked=first.asked if len(kinds) == 1 else None,
                processors=_sum([job.processors for job in parts]),
                memory=_sum([job.memory for job in parts]),
            )
            notes.add("parts of a heterogeneous job are one job")
    gone = {job.id for base, parts in groups.items() if parts[0].id in joined for job in parts[1:]}
    return [joined.get(job.id, job) for job in jobs if job.id not in gone]


def _sum(amounts: Sequence[int | None]) -> int | None:
    return None if None in amounts else sum(amount or 0 for amount in amounts)


def _merged(parts: Sequence[TraceJob]) -> tuple[tuple[str, int | None], ...]:
    """Nodes of all parts; of one on one node all its GPUs are there, of others nobody says."""
    amounts: dict[str, int | None] = {}
    for job in parts:
        for node, amount in job.nodes:
            told = job.gpus if len(job.nodes) == 1 else amount
            before = amounts.get(node, 0)
            amounts[node] = None if told is None or before is None else before + told
    return tuple(amounts.items()) if all(job.nodes for job in parts) else ()


def of_clusters(jobs: list[TraceJob], notes: Notes) -> list[TraceJob]:
    """Jobs whose ids and nodes name their cluster where the log has several, and do not where it has one."""
    clusters = {job.cluster for job in jobs}
    if clusters == {None}:
        return jobs
    if len(clusters) == 1:
        return [replace(job, id=job.id.removeprefix(f"{job.cluster}/")) for job in jobs]
    names = ", ".join(sorted(map(str, clusters))[:5])
    notes.add(f"jobs of {len(clusters)} clusters ({names}) count together: keep one log for each")
    return [replace(job, nodes=tuple((f"{job.cluster}/{node}", n) for node, n in job.nodes)) for job in jobs]


def _moment(seconds: float) -> str:
    """Seconds of the file's clock, as a date too where they are as many as since 1970."""
    date = f" ({datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC)" if 1e8 < seconds < 1e10 else ""
    return f"{seconds:.10g} s{date}"


def enough_servers(jobs: Sequence[TraceJob], per_server: int) -> int:
    """The fewest that hold the largest job and half of the GPUs asked for, or the trace's own load where that is less.

    The load is GPU-seconds over the time from the first arrival to the last.
    """
    wanted = sum(job.gpus for job in jobs) / 2
    span = max(job.arrival for job in jobs) - min(job.arrival for job in jobs)
    if span > 0 and all(job.duration is not None for job in jobs):
        wanted = min(wanted, sum(job.gpus * (job.duration or 0.0) for job in jobs) / span)
    return max(math.ceil(max(job.gpus for job in jobs) / per_server), math.ceil(wanted / per_server))
