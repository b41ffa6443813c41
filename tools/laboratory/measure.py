"""What is measured of a run: the metrics of each problem, hadar's rounds among them, and all of one draw."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.agreement import Check
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.catalogue.run import checker_of, run_method
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import ratio
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance, Job, by_slot, node_speeds
from schedgap.solvers.result import Result, SolveOptions

# Schedules of hadar by round: when jobs end inside their last slot, how many devices are held and how many work.

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


# What the papers plot of a schedule beside its objective, by problem.

Metrics = Mapping[str, Json]


def _rar_ddls(instance: Instance, result: Result, _: Metrics, check: Check) -> Metrics:
    """Average JCT in slots: every job is there in slot 1."""
    if result.solution is None:
        return {"mean_jct": None}
    ends = check(result.solution).details["completion"].values()
    return {"mean_jct": sum(ends) / len(ends)}


def _gpu_sharing(instance: Instance, result: Result, _: Metrics, check: Check) -> Metrics:
    """JCT and queuing in hours: means as the policies tell them, of every job, and by task.

    Queuing is the time between arrival and completion without a GPU; a job's task is the first part of its id.
    """
    own = cast(GpuSharingInstance, instance)
    hours = own.slot_length / 3600
    scaled = ("makespan", "jct all", "jct large", "jct small", "queuing all", "queuing large", "queuing small")
    found: dict[str, Any] = {
        name: None if result.info.get(name) is None else result.info[name] * hours for name in scaled
    }
    if result.solution is None:
        return found
    if "segments" in result.solution:
        rows = [result.solution["segments"][job.id] for job in own.jobs]
        ends = [segments[-1][1] for segments in rows]
        held = [sum(last - first + 1 for first, last, _ in segments) for segments in rows]
        waited = [end - job.arrival + 1 - active for end, job, active in zip(ends, own.jobs, held, strict=True)]
    else:
        completion = check(result.solution).details["completion"]
        ends = [completion[job.id] for job in own.jobs]
        waited = [result.solution["start"][job.id] - job.arrival for job in own.jobs]
    jct = [(end - job.arrival + 1) * hours for end, job in zip(ends, own.jobs, strict=True)]
    shortest = sorted(jct)[: round(0.4 * len(jct))]
    found |= {
        "jct": [round(value, 5) for value in jct],
        "below 0.75 h": sum(value <= 0.75 for value in jct) / len(jct),
        "below 750 s": sum(value <= 750 / 3600 for value in jct) / len(jct),
        "below 500 s": sum(value < 500 / 3600 for value in jct) / len(jct),
        "shortest": sum(shortest) / len(shortest),
    }
    for task in sorted({job.id.rpartition("-")[0] for job in own.jobs}):
        times = [slots * hours for slots, job in zip(waited, own.jobs, strict=True) if job.id.startswith(f"{task}-")]
        found[f"queuing {task}"] = sum(times) / len(times)
    return found


def _ddljs(instance: Instance, result: Result, _: Metrics, check: Check) -> Metrics:
    """Embedded ratio; where slots have bounds, each slot's gain over its bound: mean and smallest.

    Of Algorithm 2 also the largest load of a server or link in any slot, over its capacity.
    """
    del instance, check
    pairs = zip(result.info.get("gains") or (), result.info.get("slot_bounds") or (), strict=False)
    shares = [gain / bound for gain, bound in pairs if bound is not None and bound > 0]
    loads = [slot.get(name) for slot in result.info.get("loads") or () for name in ("server", "link")]
    return {
        "embedded": result.info.get("embedded_ratio"),
        "load": max((load for load in loads if load is not None), default=None),
        "slot share": sum(shares) / len(shares) if shares else None,
        "least slot share": min(shares, default=None),
    }


def _g_vne(instance: Instance, result: Result, _: Metrics, check: Check) -> Metrics:
    """Embedded ratio of the one slot (rings over jobs), and the largest load of a link over its capacity."""
    own = cast(GVneInstance, instance)
    if result.solution is None:
        return {"embedded": None, "link use": None}
    details = check(result.solution).details
    rings = len(result.solution["rings"])
    return {
        "embedded": rings / len(own.jobs),
        "link use": float(details["link_use"]),
        "links bind": float(details["link_use"] > 0.9),
    }


def _hadar(instance: Instance, result: Result, settings: Metrics, check: Check) -> Metrics:
    """Times inside the last slot, use of the devices by round: see ``rounds_of``."""
    if result.solution is None:
        return {"finished": 0}
    lost = float(settings.get("restart_delay", 0.0)), float(settings.get("overhead", 0.0))
    return rounds_of(cast(HadarInstance, instance), result.solution, *lost)


_BY_PROBLEM: Mapping[str, Callable[[Instance, Result, Metrics, Check], Metrics]] = {
    "rar-ddls": _rar_ddls,
    "gpu-sharing": _gpu_sharing,
    "hadar": _hadar,
    "ddljs": _ddljs,
    "g-vne": _g_vne,
}


def measured(problem: str, instance: Instance, result: Result, settings: Metrics, check: Check) -> Metrics:
    """The problem's own metrics of an outcome under a method's settings; what is unknown is None."""
    return _BY_PROBLEM[problem](instance, result, settings, check)


# One run of one draw: an instance, a method on it, and everything that is measured of the outcome.

WORK = 0.02
"""Repeatable limit of an exact method beside the heuristics (``SolveOptions.work_limit``): 20 nodes of g-vne's
``colgen``, which leave its bound within about 1% of its value where a proof would take minutes."""


@dataclass(frozen=True)
class Run:
    """What runs: a method with its settings on the instances of a preset with its settings."""

    problem: str
    preset: str
    workload: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The same for all runs on the same instances."""
        return json.dumps([self.problem, self.preset, self.workload], sort_keys=True)


@lru_cache(maxsize=2)
def _instance(group: str, seed: int) -> Instance:
    problem, preset, workload = json.loads(group)
    return make_instance(find_problem(problem), preset, seed, workload)


def instance_of(run: Run, seed: int) -> Instance:
    """The instance of a draw; the last ones are kept, since several methods run on each."""
    return _instance(run.group, seed)


def solved(run: Run, seed: int) -> dict[str, Json]:
    """Run the method on the draw and measure what it found.

    Returns
    -------
    dict
        ``objective`` by the checker, ``bound``, ``ratio`` between them (at least 1; None outside the model or
        without a solution), and the problem's own metrics (``metrics.py``). Unknown is None.
    """
    return outcome(run, instance_of(run, seed), seed)


def outcome(run: Run, instance: Instance, seed: int) -> dict[str, Json]:
    """The same on an instance that is there already."""
    problem = find_problem(run.problem)
    options = SolveOptions(seed=seed, threads=1, work_limit=WORK)
    check = checker_of(problem, instance)
    result = run_method(problem, instance, run.method, options, run.settings, check=check)
    outside = find_method(problem, run.method).outside_model or bool(result.info.get("outside_model"))
    return {
        "objective": result.objective,
        "bound": result.bound,
        "ratio": None if outside else ratio(result.objective, result.bound, problem.sense),
        **measured(problem.id, instance, result, run.settings, check),
    }
