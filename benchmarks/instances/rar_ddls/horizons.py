"""Horizons of rar-ddls: one that is certainly feasible, and one that cuts off no schedule a heuristic makes."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
import numpy.typing as npt

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table


def certified_horizon(instance: RarDdlsInstance) -> int | None:
    """The makespan of a feasible schedule in which no server is crossed by two rings at once.

    Then nobody contends (p = 1), so every job runs at a rate known beforehand and the schedule is feasible
    whatever xi_1 and alpha are: the makespan is an upper bound on the optimum, and a horizon at least as
    long makes the instance feasible. The instance's own horizon is not looked at. Returns slots, or None where no
    schedule of any length exists (a job larger than the cluster, or one that makes no progress even alone).

    Notes
    -----
    Event-driven: at slot 1 and after every completion, jobs are taken by GPUs, then by duration, both
    falling. A job that fits some server goes to the one with the fewest idle GPUs that holds it; otherwise
    it takes the servers with the most idle GPUs among those that no other ring crosses now. O(J K S) operations on
    arrays of S servers, with K distinct numbers of GPUs.
    """
    table = rate_table(instance)
    if (table.best_rate == 0).any():
        return None
    jobs = np.arange(len(instance.jobs))
    gpus = table.gpus
    colocated = table.rates(jobs, 1, 1)
    waiting: dict[int, deque[int]] = {}
    for j in sorted(jobs.tolist(), key=lambda j: (-int(gpus[j]), -int(table.best_duration[j]), j)):
        waiting.setdefault(int(gpus[j]), deque()).append(j)

    idle = np.array([server.gpus for server in instance.servers], dtype=np.int64)
    running: list[tuple[int, int]] = []  # (last slot, job)
    held: dict[int, tuple[Integers, Integers]] = {}
    crossed = np.zeros(idle.size, dtype=bool)
    now = 0  # the last slot that is over
    while waiting:
        for size in list(waiting):
            queue = waiting[size]
            while queue:
                job = queue[0]
                servers, amounts = _place(idle, crossed, size, int(colocated[job]) > 0)
                if servers.size == 0:
                    break
                rate = int(table.rates(job, servers.size, 1))
                if rate == 0:
                    break
                queue.popleft()
                idle[servers] -= amounts
                held[job] = servers, amounts
                crossed[servers] |= servers.size > 1
                heapq.heappush(running, (now - (-int(table.iterations[job]) // rate), job))
            if not queue:
                del waiting[size]
        now = running[0][0]
        while running and running[0][0] == now:
            _, job = heapq.heappop(running)
            servers, amounts = held.pop(job)
            idle[servers] += amounts
            if servers.size > 1:
                crossed[servers] = False
    return max((end for end, _ in running), default=now)


def ample_horizon(instance: RarDdlsInstance) -> int | None:
    """A horizon within which every schedule ends that never leaves the cluster idle while jobs wait.

    The sum over the jobs of the slots each takes at its lowest positive rate. In every slot of such a schedule at
    least one job makes progress (where all that run stall, they stall for ever), and a job makes progress in at most
    so many slots. No GPU's load of estimates exceeds it either, so that no limit theta = T keeps a job waiting. Returns
    slots, or None where some job makes no progress even alone.

    Notes
    -----
    O(J + K S p_max) for K different jobs, S servers and contention up to p_max.
    """
    table = rate_table(instance)
    if (table.best_rate == 0).any():
        return None
    contention = np.arange(table.p_max + 1)
    lowest: dict[object, int] = {}
    total = 0
    for j, job in enumerate(instance.jobs):
        alike = tuple(value for name, value in job if name not in ("id", "iterations"))
        if alike not in lowest:
            most = min(int(table.gpus[j]), len(instance.servers))
            rates = table.rates(j, np.arange(1, most + 1)[:, None], contention)
            lowest[alike] = int(rates[rates > 0].min())
        total += -(-int(table.iterations[j]) // lowest[alike])
    return total


def _place(idle: Integers, crossed: npt.NDArray[np.bool_], size: int, may_colocate: bool) -> tuple[Integers, Integers]:
    """Servers and GPUs on each for a job of `size` GPUs; empty where it has to wait."""
    if may_colocate:
        spare = np.where(idle >= size, idle, np.iinfo(np.int64).max)
        best = int(spare.argmin())
        if idle[best] >= size:
            return np.array([best]), np.array([size])
    free = np.where(crossed, 0, idle)
    if size < 2 or free.sum() < size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.argsort(-free, kind="stable")
    taken = np.cumsum(free[order])
    count = int(np.searchsorted(taken, size)) + 1
    chosen = order[:count]
    amounts = free[chosen]
    amounts[-1] -= taken[count - 1] - size
    return chosen, amounts
