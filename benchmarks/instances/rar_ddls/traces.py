"""Job traces as instances of rar-ddls: sizes from the trace, times and gradient sizes from measured rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from schedgap.benchmarks.importers.throughputs import measured_type, read_throughputs
from schedgap.benchmarks.importers.traces import Trace, TraceJob
from schedgap.benchmarks.instances.profiles.pollux_tasks import MEASURED
from schedgap.benchmarks.instances.rar_ddls.horizons import ample_horizon, certified_horizon
from schedgap.benchmarks.instances.rar_ddls.measured import Setup, measured_job
from schedgap.benchmarks.instances.rar_ddls.options import Horizon, Worker
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table


@passes_on_to(Setup)
def to_rar_ddls(
    trace: Trace,
    throughputs: str | Path | None = None,
    *,
    steps_scale: Annotated[float, Field(gt=0, le=1, description="factor on the steps, rounded up")] = 1.0,
    profile: Annotated[
        str, Field(description="measured model of jobs whose own is not named or not measured")
    ] = "Transformer (batch size 64)",
    worker: Worker = "v100",
    slack: Annotated[
        float | None,
        Field(ge=1, le=100, description="horizon over a certified feasible makespan; one that cuts nobody without"),
    ] = None,
    horizon: Horizon = None,
    **cluster: float,
) -> RarDdlsInstance:
    """The jobs of a trace on its servers, all there from slot 1: rar-ddls has no arrivals.

    Computation time and gradient size follow from measured rates as ``measured_job`` says. Iterations are the steps
    of the file (times `steps_scale`), or as many as take the job's duration on one server. Raises InputError: a worker
    type without rates, a slot in which a job makes no iteration, no job that fits.
    """
    setup = Setup(**cluster)
    table = MEASURED if throughputs is None else read_throughputs(throughputs)
    table.require_worker(worker)
    notes = trace.notes
    known = table.job_types(worker)
    measured: dict[tuple[str, int], tuple[dict[str, Any], list[str]] | None] = {}
    chosen: list[TraceJob] = []
    rows: list[dict[str, Any]] = []
    for job in trace.fitting(sum(server.gpus for server in trace.servers)):
        job_type = measured_type(trace, job, known, profile)
        if (job_type, job.gpus) not in measured:
            measured[job_type, job.gpus] = measured_job(table, worker, job_type, job.gpus, setup)
        found = measured[job_type, job.gpus]
        step = table.seconds_per_step(worker, job_type, job.gpus)
        if found is None or step is None:
            notes.add(f"{job_type}: no rate on {worker} at any scale, left out")
            continue
        fields, texts = found
        notes.add(*texts)
        steps = job.iterations if job.iterations is not None else max(1, round((job.duration or 0.0) / step[0]))
        rows.append({"id": job.id, "iterations": math.ceil(steps * exact(steps_scale)), **fields})
        chosen.append(job)
    if not rows:
        raise InputError(f"{trace.path}: no job has a rate on {worker} in {table.source}")
    late = sum(job.arrival > 0 for job in chosen)
    if late:
        notes.add(f"{late} of {len(chosen)} jobs arrive later than 0 s: rar-ddls starts all from slot 1")
    instance = RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": trace.name,
            "horizon": LARGEST_COUNT if horizon is None else horizon,
            "network": setup.network(),
            "reduce_speed": setup.reduce_speed * setup.slot_length,
            "servers": [{"id": server.id, "gpus": server.gpus} for server in trace.servers],
            "jobs": rows,
        },
        trace.path,
    )
    _progress(instance, chosen, setup.slot_length, trace)
    if horizon is None:
        last = ample_horizon(instance) if slack is None else certified_horizon(instance)
        assert last is not None  # every job fits and makes progress alone
        last = min(LARGEST_COUNT, math.ceil((slack or 1.0) * last))
        instance = instance.model_copy(update={"horizon": last})
    return instance


def _progress(instance: RarDdlsInstance, chosen: Sequence[TraceJob], slot_length: float, trace: Trace) -> None:
    """Refuse slots too short for a job on one server; report rings that stand still when they cross alone."""
    table = rate_table(instance)
    positions = list(range(len(instance.jobs)))
    alone = table.rates(positions, 1, 1)
    spread = table.rates(positions, table.gpus.clip(max=len(instance.servers)), 1)
    for position, job in enumerate(chosen):
        label = f"{job.model or job.id} on {job.gpus} GPUs makes no whole iteration in a slot"
        if alone[position] == 0:
            raise InputError(f"{trace.path}: line {job.line}: {label} of {slot_length:g} s; raise slot_length")
        if spread[position] == 0:
            trace.notes.add(f"line {job.line}: {label} when spread over as many servers as it can use")
