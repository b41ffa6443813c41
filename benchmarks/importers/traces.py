"""Job traces of any format, ready for every problem: which jobs are kept, on which servers, what is assumed."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.formats import CLUSTERS, PHILLY, PHILLY_LOG, POLLUX, SIA, TRACES, table
from schedgap.benchmarks.importers.rows import Format, Notes, opened, read_rows
from schedgap.benchmarks.instances.gpu_sharing.paper import LARGE_HOURS, PER_SERVER, SMALL_HOURS
from schedgap.benchmarks.instances.profiles.matching import match_profile
from schedgap.benchmarks.instances.profiles.pollux_tasks import MEASURED
from schedgap.catalogue.workload import Importer
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.options import passes_on_to

_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_LINGJUN_GPUS = 8
_MOST_SERVERS = 100_000


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace; what the file does not say is None.

    Attributes
    ----------
    line : of the file, from 1
    arrival : seconds
    duration : seconds that it ran
    iterations : steps, counted over all workers
    model : what it trains, as the file says
    batch : samples of one worker
    """

    line: int
    id: str
    gpus: int
    arrival: float = 0.0
    duration: float | None = None
    iterations: int | None = None
    model: str | None = None
    batch: int | None = None


@dataclass(frozen=True)
class TraceServer:
    """A server, its GPUs, and their kind where it is known."""

    id: str
    gpus: int
    kind: str | None = None


@dataclass
class Trace:
    """What is read of a trace.

    Attributes
    ----------
    name : for the instance
    path : for messages
    jobs : that were kept, in the order of the file
    servers : of the file of servers, or as the options say
    notes : what was left out or assumed
    """

    name: str
    path: str
    jobs: list[TraceJob]
    servers: list[TraceServer]
    notes: Notes

    def drop(self, job: TraceJob, reason: str) -> None:
        """Leave a job out, and say so; where the format is strict, an error."""
        if self.notes.strict:
            raise InputError(f"{self.path}: job {job.id} {reason}")
        self.notes.row(f"left out: {reason}", job.line)

    def fitting(self, capacity: int) -> list[TraceJob]:
        """The jobs that fit so many GPUs; at least one.

        Raises
        ------
        InputError
            None fits.
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
Seed = Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")]


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
        **options: Any,
    ) -> tuple[Instance, list[str]]:
        used = form
        if form is PHILLY:
            with opened(files[0]) as file:
                used = PHILLY_LOG if file.read(64).lstrip().startswith("[") else form
        trace = read_trace(used, files, jobs, first, keep, servers, gpus, seed)
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
        unit: Annotated[Literal["s", "ms", "min", "h"], Field(description="of plain numbers of time")] = "s",
        jobs: Kept = None,
        first: First = usual,
        keep: Rows = None,
        servers: Servers = None,
        server_gpus: PerServer = PER_SERVER,
        seed: Seed = 0,
        **options: Any,
    ) -> tuple[Instance, list[str]]:
        named = {
            **{"id": id, "gpus": gpus, "duration": duration, "arrival": arrival, "model": model},
            **{"iterations": iterations, "batch": batch},
        }
        columns = {field: name for field, name in named.items() if name is not None}
        if gpus is None or (duration is None and iterations is None):
            raise InputError("import csv: --set must name the columns: gpus=..., and duration=... or iterations=...")
        form = table(columns, _UNITS[unit])
        trace = read_trace(form, files, jobs, first, keep, servers, server_gpus, seed)
        if arrival is None:
            trace.notes.add("all jobs arrive at once: no column is named as arrival")
        return target(trace, **options), trace.notes.texts

    return read


def read_trace(
    form: Format,
    files: Sequence[str | Path],
    limit: int | None = None,
    first: str = "arrival",
    keep: str | None = None,
    servers: int | None = None,
    per_server: int = PER_SERVER,
    seed: int = 0,
) -> Trace:
    """The jobs of a trace and the servers they run on, in memory for the jobs that are kept.

    Parameters
    ----------
    files : the trace, and where there is one the table of servers
    limit, first, keep : which jobs are kept
    servers, per_server : where there is no table of servers
    seed : of durations, where the file has neither these nor steps

    Raises
    ------
    InputError
        A file that does not fit: names the file, the line and the value.
    """
    if not 1 <= len(files) <= 2:
        raise InputError(f"import {form.id}: takes one trace and perhaps one table of servers, got {len(files)} files")
    path = files[0]
    notes = Notes(form.strict)
    read = 0

    def each() -> Iterable[TraceJob]:
        nonlocal read
        for row in read_rows(form, path, notes, keep):
            read += 1
            row.pop("argument", None), row.pop("data", None)
            if row.pop("share", 1.0) < 1.0:
                notes.row("ask for a part of a GPU: whole ones taken", row["line"])
            yield TraceJob(**{"id": f"j{row['line'] - 1}", **row})

    order: dict[str, Callable[[TraceJob], Any]] = {
        "rings": lambda job: (job.gpus == 1, job.line),
        "trace": lambda job: job.line,
        "arrival": lambda job: (job.arrival, job.line),
    }
    jobs = list(each()) if limit is None else heapq.nsmallest(limit, each(), key=order[first])
    jobs.sort(key=lambda job: job.line)
    if not jobs:
        raise InputError(f"{path}: no jobs" + "".join(f"; {text}" for text in notes.texts[:2]))
    notes.add(*form.notes)
    if not form.relative:
        start = min(job.arrival for job in jobs)
        if start > 0:
            notes.add(f"arrivals count from that of the first job, {_moment(start)} in the file")
            jobs = [replace(job, arrival=round(job.arrival - start, 6)) for job in jobs]
    if all(job.duration is None and job.iterations is None for job in jobs):
        rng = np.random.default_rng(seed)
        notes.add(f"durations are drawn (seed {seed}), the file has none")
        hours = [LARGE_HOURS if job.gpus > PER_SERVER else SMALL_HOURS for job in jobs]
        jobs = [
            replace(job, duration=3600.0 * math.exp(rng.uniform(math.log(low), math.log(high))))
            for job, (low, high) in zip(jobs, hours, strict=True)
        ]
    stem = f"{form.id}-{Path(path).stem}"[:180]
    name = stem if limit is None or len(jobs) == read else f"{stem}-{len(jobs)}"
    if len(files) == 2:
        return Trace(name, str(path), jobs, read_servers(files[1], notes), notes)
    number = _servers(jobs, per_server) if servers is None else servers
    if servers is None:
        notes.add(f"no table of servers: {number} of {per_server} GPUs assumed")
    return Trace(name, str(path), jobs, [TraceServer(f"s{i}", per_server) for i in range(number)], notes)


def _moment(seconds: float) -> str:
    """Seconds of the file's clock, as a date too where they are as many as since 1970."""
    date = f" ({datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC)" if 1e8 < seconds < 1e10 else ""
    return f"{seconds:.10g} s{date}"


def _servers(jobs: Sequence[TraceJob], per_server: int) -> int:
    """The fewest that hold the largest job and half of the GPUs asked for, or the trace's own load where that is less.

    The load is GPU-seconds over the time from the first arrival to the last.
    """
    wanted = sum(job.gpus for job in jobs) / 2
    span = max(job.arrival for job in jobs) - min(job.arrival for job in jobs)
    if span > 0 and all(job.duration is not None for job in jobs):
        wanted = min(wanted, sum(job.gpus * (job.duration or 0.0) for job in jobs) / span)
    return max(math.ceil(max(job.gpus for job in jobs) / per_server), math.ceil(wanted / per_server))


def read_servers(path: str | Path, notes: Notes) -> list[TraceServer]:
    """The servers of a table; its columns say of which format it is.

    Raises
    ------
    InputError
        No known columns, or rows that do not fit.
    """
    with opened(path) as file:
        head = {name.strip() for name in file.readline().split(",")}
    wanted = [{column for _, *columns in form.fields.values() for column in columns} for form in CLUSTERS]
    form = next((form for form, columns in zip(CLUSTERS, wanted, strict=True) if columns <= head), None)
    if form is None:
        kinds = "; ".join(", ".join(sorted(columns)) for columns in wanted)
        raise InputError(f"{path}: line 1: not a known table of servers (one needs the columns {kinds})")
    notes.add(*form.notes)
    servers: list[TraceServer] = []
    left_out = Notes()
    for row in read_rows(form, path, left_out):
        copies = row.get("copies", 1) * row.get("switches", 1)
        if len(servers) + copies > _MOST_SERVERS:
            raise InputError(f"{path}: line {row['line']}: more than {_MOST_SERVERS} servers")
        for copy in range(copies):
            name = row.get("id") or f"s{len(servers)}" + (f"-{copy}" if row["line"] > 2 else "")
            servers.append(TraceServer(name, row.get("gpus", _LINGJUN_GPUS), row.get("kind")))
    if not servers:
        raise InputError(f"{path}: no servers")
    notes.add(*(f"{Path(path).name}: {text}" for text in left_out.texts))
    return servers


def measured_type(trace: Trace, job: TraceJob, known: Sequence[str], profile: str) -> str:
    """The job type whose measured rates a job gets; with a note where the file does not name it.

    A format with job types of its own (Gavel's) names them all.
    """
    if trace.notes.strict:
        return job.model or ""
    chosen, said = match_profile(job.model, job.batch, known, profile)
    if said is not None:
        trace.notes.add(said)
    return chosen


def timed(trace: Trace, jobs: Sequence[TraceJob]) -> list[float]:
    """Seconds that each job ran; where the file has steps only, those they take on a measured V100.

    Raises
    ------
    InputError
        No duration, and no rate of what the job trains.
    """
    found = []
    for job in jobs:
        if job.duration is not None:
            found.append(job.duration)
            continue
        step = MEASURED.seconds_per_step("v100", job.model or "", job.gpus)
        if step is None or job.iterations is None:
            raise InputError(f"{trace.path}: line {job.line}: {job.model!r} has steps, but no rate on v100 is known")
        found.append(job.iterations * step[0])
    if any(job.duration is None for job in jobs):
        trace.notes.add("durations are the steps of the file at the rates measured on v100")
    return found
