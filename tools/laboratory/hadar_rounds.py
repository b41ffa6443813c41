"""Schedules of hadar by round: when jobs end inside their last slot, how many devices are held and how many work."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schedgap.formulations.common.instance import Json
from schedgap.formulations.hadar.forked import node_speeds
from schedgap.formulations.hadar.instance import HadarInstance, Job
from schedgap.formulations.hadar.solution import by_slot

LEFT = 1e-9
"""Part of a job's work that counts as done."""


@dataclass(frozen=True)
class _Piece:
    """What a job does in a slot: devices held, steps made, and the part of the slot that it makes them in."""

    # slot, job: when and who
    slot: int
    job: str
    devices: int  # how many it holds
    steps: float
    end: float  # the part of the slot after which it stops: time lost at the beginning, then steps
    busy: float  # device-slots in which steps are made
    where: Any  # what it holds, to tell whether that changed


def rounds_of(
    instance: HadarInstance, solution: Mapping[str, Json], delay: float = 0.0, overhead: float = 0.0
) -> dict[str, Json]:
    """Times and use of a schedule, forked or not.

    Parameters
    ----------
    instance, solution : a solution of hadar, or a forked one with the key ``rounds``
    delay : time that is lost in a round in which devices are new to a job
    overhead : time that a job, or a node of a forked schedule, loses in every round

    Returns
    -------
    dict
        ``finished`` jobs; ``ttd``, the end of the last job (None where one is unfinished), ``mean``, ``median``,
        ``least`` and ``largest`` JCT, all in the unit of ``slot_length``, the last slot of a job counted up to the
        moment it ends; ``cru``, device-time in which steps are made over devices times rounds up to the last one
        used; ``gru``, the mean over those rounds of devices held over all, and ``held``, by round; ``changes``, the
        share of those rounds in which what some job holds differs from the round before; ``jct`` by job.
    """
    length = instance.slot_length
    jobs = {job.id: job for job in instance.jobs}
    pieces = list(
        _forked(instance, jobs, solution["rounds"], delay, overhead)
        if "rounds" in solution
        else _whole(instance, jobs, solution["allocation"], delay, overhead)
    )
    last = max((piece.slot for piece in pieces), default=0)
    held = [0] * (last + 1)
    holds: list[dict[tuple[str, Any], None]] = [{} for _ in range(last + 1)]
    busy = 0.0
    made = dict.fromkeys(jobs, 0.0)
    ends: dict[str, float] = {}
    for piece in sorted(pieces, key=lambda one: one.slot):
        held[piece.slot] += piece.devices
        holds[piece.slot][piece.job, piece.where] = None
        busy += piece.busy
        made[piece.job] += piece.steps
        ends[piece.job] = max(ends.get(piece.job, 0.0), (piece.slot - 1 + piece.end) * length)
    done = [name for name, job in jobs.items() if made[name] >= job.work * (1 - LEFT)]
    times = [ends[name] - (jobs[name].arrival - 1) * length for name in done]
    total = instance.total_gpus
    share = [count / total for count in held[1:]]
    changed = [holds[k] != holds[k - 1] for k in range(1, last + 1)]
    return {
        "finished": len(done),
        "ttd": max((ends[name] for name in done), default=None) if len(done) == len(jobs) else None,
        "mean": statistics.fmean(times) if times else None,
        "median": statistics.median(times) if times else None,
        "least": min(times, default=None),
        "largest": max(times, default=None),
        "range": max(times) - min(times) if times else None,
        "cru": busy / (total * last) if last else None,
        "gru": statistics.fmean(share) if share else None,
        "held": [round(value, 4) for value in share],
        "changes": sum(changed) / len(changed) if changed else None,
        "jct": [round(value, 2) for value in times],
    }


def _whole(
    instance: HadarInstance, jobs: Mapping[str, Job], allocation: Mapping[str, Any], delay: float, overhead: float
) -> Iterator[_Piece]:
    """A gang makes W_j times the slowest held type's rate, after what every round and new devices lose."""
    length = instance.slot_length
    for name, held in allocation.items():
        job, left, before, previous = jobs[name], float(jobs[name].work), None, 0
        for slot, entries in by_slot(held).items():
            where = tuple(sorted((e["machine"], e["type"], e["gpus"]) for e in entries))
            speed = job.workers * min(job.throughput.get(kind, 0.0) for _, kind, _ in where)
            fresh = previous != slot - 1 or where != before
            lost = min(length, overhead + (delay if fresh else 0.0))
            steps = min(left, speed * (length - lost))
            working = steps / speed if speed > 0 else 0.0
            left -= steps
            before, previous = where, slot
            devices = sum(count for _, _, count in where)
            end = (lost + working) / length
            yield _Piece(slot, name, devices, steps, end, devices * working / length, where)


def _forked(
    instance: HadarInstance, jobs: Mapping[str, Job], rounds: Mapping[str, Any], delay: float, overhead: float
) -> Iterator[_Piece]:
    """A copy makes its steps at its node's speed, after what the node loses."""
    length = instance.slot_length
    machines = {machine.id: machine for machine in instance.machines}
    speeds = node_speeds(instance)
    before: dict[str, str] = {}
    for slot in sorted(map(int, rounds)):
        now: dict[str, str] = {}
        for node, entry in rounds[str(slot)].items():
            job = jobs[entry["job"]]
            speed = float(speeds[instance.job_index[job.id], instance.machine_index[node]])
            lost = overhead + (delay if before.get(node) != job.id else 0.0)
            working = float(entry["steps"]) / speed
            now[node] = job.id
            devices = sum(machines[node].gpus.values())
            end = (lost + working) / length
            yield _Piece(slot, job.id, devices, float(entry["steps"]), end, devices * working / length, node)
        before = now
