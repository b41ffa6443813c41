"""The recorded schedule as a solution of hadar: GPUs of several types, a run of slots for every job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.formulations.common.instance import LARGEST_COUNT, Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import runs_of
from schedgap.tools.audit.load import Clash
from schedgap.tools.audit.record import placed_on, rebuild, slots_of
from schedgap.tools.audit.result import Times

TYPED = "hadar"
"""The problem of GPUs of several types."""


_NAMELESS = "gpu"
"""The type of servers that name none."""


def _kinds(servers: Sequence[TraceServer]) -> dict[str, str]:
    return {server.id: server.kind or _NAMELESS for server in servers}


def typed_instance(
    name: str, jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot_length: float = 1.0
) -> HadarInstance:
    """The jobs with their recorded durations, which they take on every type that they may use.

    A job that asked for a type may use that, and what it ran on; another may use any. Its utility is its GPU time
    over the time from submission to end, so the total is largest where nobody waits.
    """
    kinds = _kinds(servers)
    every = list(dict.fromkeys(kinds.values()))
    rows = []
    end = serial = 0
    for job in jobs:
        arrival, length, first = slots_of(job, slot_length)
        end, serial = max(end, (first or arrival) + length), serial + length
        ran_on = {kinds[node] for node, _ in job.nodes if node in kinds}
        usable = sorted({job.asked, *ran_on}) if job.asked in every else every
        rows.append(
            {
                "id": job.id,
                "arrival": arrival,
                "workers": job.gpus,
                "epochs": length,
                "iterations_per_epoch": job.gpus,
                "throughput": dict.fromkeys(usable, 1 / slot_length),
                "utility": {"kind": "effective-throughput", "weight": 1.0},
            }
        )
    return HadarInstance.parse(
        {
            "problem": TYPED,
            "name": name,
            "horizon": min(LARGEST_COUNT, end + serial),
            "slot_length": slot_length,
            "machines": [{"id": server.id, "gpus": {kinds[server.id]: server.gpus}} for server in servers],
            "jobs": rows,
        },
        name,
    )


def typed_record(
    jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot_length: float = 1.0
) -> tuple[Solution, tuple[Clash, ...]] | None:
    """The recorded schedule, a run a job, and its clashes; None where the log does not say on which types jobs ran."""
    if placed_on(jobs, servers) is not None:
        return None
    rebuilt, kinds = rebuild(jobs, servers, slot_length), _kinds(servers)
    allocation = {}
    for job in jobs:
        _, length, first = slots_of(job, slot_length)
        assert first is not None  # only jobs with a record are asked for
        held = rebuilt.held[job.id].items()
        devices = [{"machine": server, "type": kinds[server], "gpus": amount} for server, amount in held]
        allocation[job.id] = [[first, first + length - 1, devices]]
    return {"allocation": allocation}, rebuilt.clashes


def typed_times(instance: HadarInstance, solution: Solution, completion: Mapping[str, int | None]) -> Times | None:
    """Seconds of submission, start and end by job; whoever was interrupted counts as started later by as much.

    None where a job does not finish.
    """
    ends = [completion[job.id] for job in instance.jobs]
    if None in ends:
        return None
    unit = instance.slot_length
    end = unit * np.array(ends, dtype=float)
    submit = unit * np.array([job.arrival - 1.0 for job in instance.jobs])
    ran = [sum(run[1] - run[0] + 1 for run in runs_of(solution["allocation"][job.id])) for job in instance.jobs]
    return submit, end - unit * np.array(ran, dtype=float), end
