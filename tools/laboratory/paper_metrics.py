"""What the papers plot of a schedule beside its objective, by problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from schedgap.catalogue.agreement import Check
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.solvers.result import Result
from schedgap.tools.laboratory.hadar_rounds import rounds_of

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
