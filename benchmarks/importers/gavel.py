"""Gavel traces as instances of rar-ddls: sizes and steps from the trace, times from measured rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from schedgap.benchmarks.importers.gavel_files import TraceJob, read_throughputs, read_trace
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN, Throughputs
from schedgap.benchmarks.instances.rar_ddls.horizon import certified_horizon
from schedgap.benchmarks.instances.rar_ddls.measured import Setup, measured_job
from schedgap.benchmarks.instances.rar_ddls.options import (
    ContentionPenalty,
    ContentionScale,
    Horizon,
    InterBandwidth,
    IntraBandwidth,
    OverheadSeconds,
    ReduceSpeed,
    Slack,
    SlotLength,
    Worker,
)
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table


def import_rar_ddls(
    files: Sequence[str | Path],
    throughputs: str | Path | None = None,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=10**6, description="how many jobs to keep; all where not given")] = None,
    first: Annotated[
        Literal["rings", "trace"], Field(description="kept first: jobs of more than one GPU, or by line")
    ] = "rings",
    steps_scale: Annotated[float, Field(gt=0, le=1, description="factor on the steps, rounded up")] = 1.0,
    servers: Annotated[
        int | None, Field(ge=1, le=10**6, description="where not given: enough for half of the GPUs asked for")
    ] = None,
    gpus: Annotated[int, Field(ge=1, le=10**6, description="GPUs of a server")] = 4,
    worker: Worker = "v100",
    slot_length: SlotLength = 60.0,
    inter_bandwidth: InterBandwidth = 1.25,
    intra_bandwidth: IntraBandwidth = 62.5,
    reduce_speed: ReduceSpeed = 500.0,
    xi_1: ContentionScale = 1.0,
    alpha: ContentionPenalty = 0.2,
    xi_2: OverheadSeconds = 0.0,
    slack: Slack = 1.25,
    horizon: Horizon = None,
) -> tuple[RarDdlsInstance, list[str]]:
    """The jobs of a Gavel trace on a cluster of equal servers.

    GPUs are the scale factor, iterations the total steps (times `steps_scale`, rounded up), computation time
    and gradient size follow from the measured rates as ``measured_job`` says. All jobs are there from slot 1:
    rar-ddls has no arrivals.

    Parameters
    ----------
    files : exactly one trace
    throughputs : a file of measured rates; the built-in table where not given
    jobs : how many jobs to keep; all where not given. They stay in the order of the trace
    first : which jobs are kept first: "rings" those of more than one GPU, "trace" those that come first
    steps_scale : in (0, 1], scales the steps down
    servers : how many; where not given the fewest that hold the largest job and half of all the GPUs asked for
    gpus : of each server
    worker, slot_length, inter_bandwidth, intra_bandwidth, reduce_speed, xi_1, alpha, xi_2 : what the
        measurement does not tell, see ``benchmarks.instances.rar_ddls.options``
    slack : the horizon is this factor times a certified feasible makespan, rounded up
    horizon : the horizon itself; the instance may then be infeasible

    Returns
    -------
    The instance, and messages: cells of the table that could not be used as they are with the rule that was
    applied, jobs left out, arrivals ignored.

    Raises
    ------
    InputError
        A file that does not fit, a worker type without rates, a slot in which a job makes no iteration, a job
        larger than the cluster.
    """
    if len(files) != 1:
        raise InputError(f"import gavel: takes one trace, got {len(files)} files")
    trace = files[0]
    setup = Setup(slot_length, inter_bandwidth, intra_bandwidth, reduce_speed, xi_1, alpha, xi_2)
    table = BUILT_IN if throughputs is None else read_throughputs(throughputs)
    table.require_worker(worker)
    every = read_trace(trace)
    chosen = _select(every, jobs, first)
    rows, messages = _rows(chosen, table, worker, setup, steps_scale, str(trace))

    arrivals = sum(job.arrival > 0 for job in chosen)
    if arrivals:
        messages.append(f"{arrivals} of {len(chosen)} jobs arrive later than 0 s: rar-ddls starts all from slot 1")
    asked = [int(row["gpus"]) for row in rows]
    count = max(math.ceil(max(asked) / gpus), math.ceil(sum(asked) / 2 / gpus)) if servers is None else servers
    too_large = next((row for row in rows if row["gpus"] > count * gpus), None)
    if too_large is not None:
        raise InputError(
            f"{trace}: job {too_large['id']} needs {too_large['gpus']} GPUs, "
            f"{count} servers of {gpus} have {count * gpus}"
        )
    stem = Path(trace).stem
    instance = RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": f"gavel-{stem}" if len(rows) == len(every) else f"gavel-{stem}-{len(rows)}",
            "horizon": LARGEST_COUNT if horizon is None else horizon,
            "network": setup.network(),
            "reduce_speed": reduce_speed * slot_length,
            "servers": [{"id": f"s{position}", "gpus": gpus} for position in range(count)],
            "jobs": rows,
        },
        str(trace),
    )
    _progress(instance, chosen, slot_length, str(trace), messages)
    if horizon is None:
        certified = certified_horizon(instance)
        assert certified is not None  # every job fits and makes progress alone
        instance = instance.model_copy(update={"horizon": math.ceil(slack * certified)})
    return instance, messages


def _select(every: Sequence[TraceJob], limit: int | None, first: str) -> list[TraceJob]:
    """At most `limit` jobs, in the order of the trace."""
    if limit is None:
        return list(every)
    ranked = sorted(every, key=lambda job: job.scale == 1) if first == "rings" else list(every)
    return sorted(ranked[:limit], key=lambda job: job.line)


def _rows(
    chosen: list[TraceJob], table: Throughputs, worker: str, setup: Setup, steps_scale: float, trace: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """The jobs of the instance, and each message once with the number of jobs it is about.

    Jobs without any usable rate are removed from `chosen`.
    """
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    usable: list[TraceJob] = []
    for job in chosen:
        found = measured_job(table, worker, job.job_type, job.scale, setup)
        if found is None:
            text = f"{job.job_type}: no rate on {worker} at any scale, left out"
            counts[text] = counts.get(text, 0) + 1
            continue
        fields, notes = found
        for note in notes:
            counts[note] = counts.get(note, 0) + 1
        rows.append({"id": f"j{job.line - 1}", "iterations": math.ceil(job.steps * exact(steps_scale)), **fields})
        usable.append(job)
    if not rows:
        raise InputError(f"{trace}: no job has a rate on {worker} in {table.source}")
    chosen[:] = usable
    return rows, [text if count == 1 else f"{text} ({count} jobs)" for text, count in counts.items()]


def _progress(
    instance: RarDdlsInstance, chosen: Sequence[TraceJob], slot_length: float, trace: str, messages: list[str]
) -> None:
    """Refuse slots too short for a job on one server; report rings that stand still when they cross alone."""
    table = rate_table(instance)
    positions = list(range(len(instance.jobs)))
    alone = table.rates(positions, 1, 1)
    spread = table.rates(positions, table.gpus.clip(max=len(instance.servers)), 1)
    for position, job in enumerate(chosen):
        if alone[position] == 0:
            raise InputError(
                f"{trace}: line {job.line}: {job.job_type} on {job.scale} GPUs makes no whole iteration in a slot of "
                f"{slot_length:g} s; raise slot_length"
            )
        if spread[position] == 0:
            messages.append(
                f"line {job.line}: {job.job_type} on {job.scale} GPUs makes no whole iteration in a slot when spread "
                "over as many servers as it can use"
            )
