"""Job traces as instances of hadar: gangs from the trace, rates by device type as they were measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.throughputs import measured_type, read_throughputs
from schedgap.benchmarks.importers.traces import Trace, TraceJob, list_horizon
from schedgap.benchmarks.instances.profiles.pollux_tasks import MEASURED
from schedgap.benchmarks.instances.profiles.throughputs import Throughputs
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.formulations.hadar.instance import HadarInstance


def to_hadar(
    trace: Trace,
    throughputs: str | Path | None = None,
    *,
    types: Annotated[
        str, Field(description="device types with commas; servers get them in turn unless their table names them")
    ] = "v100,p100,k80",
    profile: Annotated[
        str, Field(description="measured model of jobs whose own is not named or not measured")
    ] = "Transformer (batch size 64)",
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 360.0,
    steps_scale: Annotated[float, Field(gt=0, le=1, description="factor on the work, rounded up")] = 1.0,
    utility: Annotated[
        Literal["effective-throughput", "constant"], Field(description="kind of utility, weight 1")
    ] = "effective-throughput",
    horizon: Annotated[
        int | None, Field(ge=1, le=10**9, description="slots; enough for a list schedule where not given")
    ] = None,
) -> HadarInstance:
    """The jobs of a trace on servers of several device types.

    A job's throughput on a type is the consolidated rate measured there at its scale, per worker. Its work is the
    steps of the file, or as many as take its duration on the first of `types`. Raises InputError: a type without rates,
    no server with a measured type, no job that fits.

    Parameters
    ----------
    horizon : slots; where not given, a list schedule on the slowest types ends in it
    """
    table = MEASURED if throughputs is None else read_throughputs(throughputs)
    kinds = tuple(kind.strip() for kind in types.split(","))
    for kind in kinds:
        table.require_worker(kind)
    machines = _machines(trace, kinds, table)
    by_kind = Counter[str]()
    for _, here in machines:
        by_kind.update(here)
    capacity = by_kind.total()
    present = tuple(kind for kind in kinds if kind in by_kind) or tuple(by_kind)
    known = table.job_types(present[0])
    slowest: list[tuple[int, int]] = []
    rows: list[dict[str, Any]] = []
    everywhere = True
    for job in trace.fitting(capacity):
        job_type = measured_type(trace, job, known, profile)
        rates = _rates(table, present, job_type, job.gpus)
        if not rates:
            trace.notes.add(f"{job_type}: no rate on {', '.join(present)}, left out")
            continue
        if len(rates) < len(present):
            trace.notes.add(f"{job_type}: no rate on {', '.join(kind for kind in present if kind not in rates)}")
            everywhere = False
        usable = sum(by_kind[kind] for kind in rates)
        if usable < job.gpus:
            trace.drop(job, f"needs {job.gpus} GPUs of a type with a rate, there are {usable}")
            continue
        work = _work(job, rates, steps_scale)
        if work > LARGEST_COUNT:
            trace.drop(job, f"has {work} steps, at most {LARGEST_COUNT} are supported; lower steps_scale")
            continue
        slots = math.ceil(work / (job.gpus * min(rates.values()) * slot_length))
        slowest.append((job.gpus, slots))
        rows.append(
            {
                "id": job.id,
                "arrival": 1 + int(job.arrival / slot_length),
                "workers": job.gpus,
                "epochs": work,
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": {"kind": utility, "weight": 1.0},
            }
        )
    if not rows:
        raise InputError(f"{trace.path}: no job fits the devices it can use")
    last = max(int(row["arrival"]) for row in rows)
    serial = last + sum(slots for _, slots in slowest)
    enough = list_horizon(last, slowest, capacity) if everywhere else serial
    trace.notes.add("utilities are ours: the file says nothing of what a job is worth")
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": trace.name,
            "horizon": min(enough, serial) if horizon is None else horizon,
            "slot_length": slot_length,
            "machines": [{"id": name, "gpus": here} for name, here in machines],
            "jobs": rows,
        },
        trace.path,
    )


def _machines(trace: Trace, kinds: Sequence[str], table: Throughputs) -> list[tuple[str, dict[str, int]]]:
    """Servers with their types: of their table, as far as measured, or in turn."""
    made = []
    for position, server in enumerate(trace.servers):
        kind = kinds[position % len(kinds)] if server.kind is None else _measured_kind(server, table)
        if kind is None:
            trace.notes.add(f"servers of {server.kind} left out: no measured rates")
        else:
            made.append((server.id, {kind: server.gpus}))
    if not made:
        raise InputError(f"{trace.path}: no server has a type with rates (types: {', '.join(table.worker_types)})")
    if all(server.kind is None for server in trace.servers):
        trace.notes.add(f"device types are assumed: servers of {', '.join(kinds)} in turn")
    return made


def _measured_kind(server: TraceServer, table: Throughputs) -> str | None:
    """``v100`` of ``V100M32``."""
    bare = (server.kind or "").lower()
    return next((kind for kind in table.worker_types if bare.startswith(kind.lower())), None)


def _rates(table: Throughputs, kinds: Sequence[str], job_type: str, scale: int) -> dict[str, float]:
    """Steps per second and worker, by type; a type without a rate is left out."""
    found = {}
    for kind in kinds:
        step = table.seconds_per_step(kind, job_type, scale)
        if step is not None:
            found[kind] = float(f"{1 / (step[0] * scale):.6g}")
    return found


def _work(job: TraceJob, rates: Mapping[str, float], steps_scale: float) -> int:
    """Steps: the file's, or those of its duration on the first type it has a rate on."""
    rate = next(iter(rates.values()))
    steps = job.iterations if job.iterations is not None else (job.duration or 0.0) * rate * job.gpus
    return max(1, math.ceil(steps * steps_scale))
