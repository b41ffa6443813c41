"""Job traces as instances of ddljs: arrivals and budgets of GPU time from the trace, the network assumed."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from schedgap.benchmarks.importers.throughputs import timed
from schedgap.benchmarks.importers.traces import Trace
from schedgap.benchmarks.instances.g_vne.substrates import (
    Substrate,
)
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddljs.instance import LONGEST_HORIZON, DdljsInstance
from schedgap.formulations.g_vne.substrate import MOST_WORKERS


def to_ddljs(
    trace: Trace,
    *,
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 3600.0,
    link: Annotated[float, Field(gt=0, le=1e9, description="Gbit/s between a server and the one switch")] = 100.0,
    bandwidth: Annotated[float, Field(ge=0, le=1e9, description="Gbit/s of a ring of several servers")] = 1.0,
    horizon: Annotated[
        int | None, Field(ge=1, le=10**6, description="slots; where not given, until the last job could have ended")
    ] = None,
) -> DdljsInstance:
    """The jobs of a trace, each with as many workers at once as it had GPUs, and its GPU time as its budget.

    A job is worth one for each GPU-hour that it gets, up to its budget. Raises InputError: no job fits, or one arrives
    beyond the longest horizon.
    """
    jobs = trace.fitting(min(MOST_WORKERS, sum(server.gpus for server in trace.servers)))
    lengths = [max(1, math.ceil(seconds / slot_length)) for seconds in timed(trace, jobs)]
    arrivals = [1 + int(job.arrival / slot_length) for job in jobs]
    last = max(arrival + length for arrival, length in zip(arrivals, lengths, strict=True)) if jobs else 1
    if horizon is None and last > LONGEST_HORIZON:
        raise InputError(f"{trace.path}: {last} slots, at most {LONGEST_HORIZON}; raise slot_length")
    end = last if horizon is None else horizon
    made = Substrate([{"id": server.id, "resources": {"gpu": server.gpus}} for server in trace.servers], [])
    if len(trace.servers) > 1:
        made.servers.append({"id": "switch", "resources": {}})
        for server in trace.servers:
            made.join(server.id, "switch", link)
    rows = []
    for job, arrival, length in zip(jobs, arrivals, lengths, strict=True):
        if arrival > end:
            trace.drop(job, f"arrives after slot {end}")
            continue
        rows.append(
            {
                "id": job.id,
                "arrival": arrival,
                "max_workers": job.gpus,
                "demand": {"gpu": 1},
                "budget": {"gpu": job.gpus * length},
                "bandwidth": bandwidth,
                "efficiency": slot_length / 3600,
                "utility": {"kind": "linear", "scale": 1.0},
            }
        )
    if not rows:
        raise InputError(f"{trace.path}: no job arrives within {end} slots")
    trace.notes.add(
        f"the network is assumed: {link:g} Gbit/s to one switch, {bandwidth:g} for a ring",
        "a job is worth one for each GPU-hour: the file does not say what jobs are worth",
    )
    parts = {"name": trace.name, "servers": made.servers, "links": made.links, "horizon": end, "jobs": rows}
    return DdljsInstance.parse({"problem": "ddljs", **parts}, trace.path)
