"""A schedule without sharing, made at once: how late a job can end in anything better."""

from __future__ import annotations

from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance


def quick_total(instance: GpuSharingInstance) -> int | None:
    """The sum of JCT of shortest-first list scheduling on whole GPUs; None where it misses the horizon.

    Every job must fit the cluster and the memory alone.

    Notes
    -----
    O(J^2).
    """
    data = tables(instance)
    slots = data.solo_slots.tolist()
    order = sorted(range(len(slots)), key=lambda j: (slots[j], j))
    running: list[tuple[int, int]] = []
    free, slot, total = instance.total_gpus, min(job.arrival for job in instance.jobs), 0
    while order:
        for end, gpus in running:
            free += gpus if end < slot else 0
        running = [(end, gpus) for end, gpus in running if end >= slot]
        for j in list(order):
            job = instance.jobs[j]
            if job.arrival <= slot and job.gpus <= free:
                end = slot + slots[j] - 1
                if end > instance.horizon:
                    return None
                order.remove(j)
                free -= job.gpus
                total += end - job.arrival + 1
                running.append((end, job.gpus))
        coming = [instance.jobs[j].arrival for j in order if instance.jobs[j].arrival > slot]
        slot = min([*coming, *(end + 1 for end, _ in running)], default=slot + 1)
    return total


def latest_ends(instance: GpuSharingInstance) -> list[int]:
    """By job, the last slot in which it can end in a schedule no worse than the quick one.

    Every job takes at least its solo slots, so one job can exceed its own by at most what the quick schedule
    exceeds them by in total.
    """
    data = tables(instance)
    total = quick_total(instance)
    ends = []
    for job, slots in zip(instance.jobs, data.solo_slots.tolist(), strict=True):
        spare = instance.horizon if total is None else total - int(data.solo_slots.sum())
        ends.append(min(instance.horizon, job.arrival + slots - 1 + spare))
    return ends
