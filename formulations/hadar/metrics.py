"""Metrics of a schedule beside its utility: completion times, makespan, utilisation, jobs finished (paper 002, IV)."""

from __future__ import annotations

import statistics

from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import HadarSolution, runs_of


def metrics(instance: HadarInstance, solution: Solution) -> dict[str, Json]:
    """What section IV measures, recomputed by the checker.

    Returns
    -------
    dict
        ``jobs_finished``; ``mean_jct``, ``median_jct`` and ``makespan`` (total time duration) in the unit of
        ``slot_length``, None where some job is unfinished: over the finished jobs alone a scheduler that finishes
        only the short ones looks fast; ``last_finish``, the end of the last finished job; ``utilisation``,
        device-slots held over devices times the slots up to the last one used.
    """
    typed = HadarSolution.parse(solution)
    report = check(instance, typed)
    completion = report.details["completion"]
    length = instance.slot_length
    times = [(slot - job.arrival + 1) * length for job in instance.jobs if (slot := completion[job.id]) is not None]
    ends = [slot for slot in completion.values() if slot is not None]
    complete = len(ends) == len(instance.jobs)
    last = max((run[1] for held in typed.allocation.values() for run in runs_of(held)), default=0)
    return {
        "jobs_finished": len(times),
        "mean_jct": statistics.fmean(times) if complete else None,
        "median_jct": statistics.median(times) if complete else None,
        "makespan": max(ends) * length if complete else None,
        "last_finish": max(ends) * length if ends else None,
        "utilisation": report.details["busy"] / (instance.total_gpus * last) if last else 0.0,
    }
