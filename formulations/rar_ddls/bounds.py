"""Certified lower bounds on the makespan of rar-ddls, at any size."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.rar_ddls.dynamics import NEVER, Integers, rate_table
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

_LARGEST_FACTOR = 100


def is_infeasible(instance: RarDdlsInstance) -> str | None:
    """Why no schedule can exist, where that can be told at a glance; None says nothing.

    Parameters
    ----------
    instance : the instance

    Returns
    -------
    One line with the numbers: a job larger than the cluster, a job that makes no iteration even alone, or a
    lower bound beyond the horizon.
    """
    duration = rate_table(instance).best_duration
    for job, slots in zip(instance.jobs, duration.tolist(), strict=True):
        if job.gpus > instance.total_gpus:
            return f"job {job.id}: needs {job.gpus} GPUs, the cluster has {instance.total_gpus}"
        if slots >= NEVER:
            return f"job {job.id}: makes no iteration in a slot, even alone"
    least = _makespan_bound(instance, duration)
    if least > instance.horizon:
        return f"no schedule ends before slot {least}, the horizon is {instance.horizon}"
    return None


def lower_bound(instance: RarDdlsInstance) -> float | None:
    """A lower bound on the makespan that holds for every schedule.

    With d_j the best contention-free duration of job j and N GPUs,
    bound = max(max_j d_j, ceil(max_f sum_j f(G_j / N) d_j)) over dual feasible functions f: functions with
    sum f(x_i) <= 1 whenever sum x_i <= 1. Jobs that run together fill at most N GPUs, so in every slot
    their f(G_j / N) sum to at most 1. f(x) = x is the area bound; the others count gangs that cannot run
    beside each other.

    Parameters
    ----------
    instance : the instance

    Returns
    -------
    Slots; None where a job can never complete (the instance is infeasible, no number bounds its makespan).

    Notes
    -----
    O(J + D (D + K)) for D distinct gang sizes and K = 100 functions of the second family. The functions are
    those of Fekete and Schepers (2001, *New classes of fast lower bounds for bin packing problems*).
    """
    duration = rate_table(instance).best_duration
    if int(duration.max()) >= NEVER:
        return None
    return float(_makespan_bound(instance, duration))


def _makespan_bound(instance: RarDdlsInstance, duration: Integers) -> int:
    """The bound in whole slots; every step in integers, so nothing is rounded the wrong way."""
    total = instance.total_gpus
    sizes, kind = np.unique(rate_table(instance).gpus, return_inverse=True)
    work = [0] * sizes.size  # slots by gang size, as Python integers: sums cannot overflow
    for k, slots in zip(kind.tolist(), duration.tolist(), strict=True):
        work[k] += slots
    gangs: list[int] = sizes.tolist()
    best = int(duration.max())

    def raise_to(numerator: int, denominator: int) -> None:
        nonlocal best
        best = max(best, -(-numerator // denominator))

    raise_to(sum(g * w for g, w in zip(gangs, work, strict=True)), total)
    for low in gangs:
        # f = 1 above 1 - eps, 0 below eps, x between, for eps = low / N <= 1/2
        if 2 * low > total:
            break
        weights = [total if g > total - low else (g if g >= low else 0) for g in gangs]
        raise_to(sum(f * w for f, w in zip(weights, work, strict=True)), total)
    for k in range(1, min(total, _LARGEST_FACTOR) + 1):
        # u_k(x) = x where (k + 1) x is whole, floor((k + 1) x) / k elsewhere; scaled by N k
        scaled = [g * k if (k + 1) * g % total == 0 else ((k + 1) * g // total) * total for g in gangs]
        raise_to(sum(f * w for f, w in zip(scaled, work, strict=True)), total * k)
    return best
