"""The optimum of tiny ddl-cluster instances by enumeration: every order of events, a linear program for each.

Independent of the grid model: time is continuous, levels of contention follow from the order of the begins and ends
of the transfers. Memory is not modelled: instances must have plenty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance


def merges(lengths: list[int]) -> Iterator[tuple[int, ...]]:
    """Every interleaving of sequences of these lengths, as the sequence to take the next element from."""
    if not any(lengths):
        yield ()
        return
    for k, length in enumerate(lengths):
        if length:
            rest = lengths.copy()
            rest[k] -= 1
            for tail in merges(rest):
                yield (k, *tail)


def _count(lengths: list[int]) -> int:
    return math.factorial(sum(lengths)) // math.prod(math.factorial(length) for length in lengths)


def _parts(instance: DdlClusterInstance) -> tuple[list[int], list[tuple[Any, list[int]]], list[set[int]]]:
    servers = [{server for server, _ in given or ()} for given in instance.given]
    spanning = [j for j, there in enumerate(servers) if len(there) > 1]
    on_gpu: dict[Any, list[int]] = {}
    for j, given in enumerate(instance.given):
        for gpu in given or ():
            on_gpu.setdefault(gpu, []).append(j)
    return spanning, [(gpu, here) for gpu, here in on_gpu.items() if len(here) > 1], servers


def orders(instance: DdlClusterInstance) -> int:
    """How many linear programs `optimum` solves."""
    spanning, shared, _ = _parts(instance)
    jobs = instance.jobs
    total = _count([2 * jobs[j].iterations for j in spanning])
    for _, here in shared:
        total *= _count([2 * jobs[j].iterations for j in here])
    return total


def optimum(instance: DdlClusterInstance, *, exclusive: bool = False) -> float:
    """The least mean of finish - arrival; with `exclusive`, of schedules that obey srsf-1's limit."""
    spanning, shared, servers = _parts(instance)
    jobs = instance.jobs
    best = math.inf
    gpu_orders = [list(merges([2 * jobs[j].iterations for j in here])) for _, here in shared]
    for events in merges([2 * jobs[j].iterations for j in spanning]):
        levels = _levels(instance, events, spanning, servers)
        if exclusive and any(k > 1 for active in levels for k in active.values()):
            continue
        for chosen in product(*gpu_orders):
            value = _program(instance, events, levels, list(zip(shared, chosen, strict=True)), spanning, exclusive)
            best = min(best, value)
    return best - sum(job.arrival for job in jobs) / len(jobs)


def _levels(
    instance: DdlClusterInstance, events: tuple[int, ...], spanning: list[int], servers: list[set[int]]
) -> list[dict[int, int]]:
    """After each event, k of every job that transfers then."""
    seen = dict.fromkeys(spanning, 0)
    levels = []
    for event in events:
        seen[spanning[event]] += 1
        active = [j for j in spanning if seen[j] % 2]
        levels.append({j: max(sum(s in servers[other] for other in active) for s in servers[j]) for j in active})
    return levels


def _program(
    instance: DdlClusterInstance,
    events: tuple[int, ...],
    levels: list[dict[int, int]],
    gpu_orders: list[tuple[tuple[Any, list[int]], tuple[int, ...]]],
    spanning: list[int],
    exclusive: bool,
) -> float:
    """The best schedule with this order of begins and ends of transfers, and these orders on the GPUs."""
    jobs, link = instance.jobs, instance.link
    names: dict[Any, int] = {}
    rows: list[tuple[dict[Any, float], float]] = []  # sum of coefficients times variables <= right side

    def column(name: Any) -> int:
        return names.setdefault(name, len(names))

    def after(late: Any, early: Any, seconds: float) -> None:
        rows.append(({early: 1.0, late: -1.0}, -seconds))

    for j, job in enumerate(jobs):
        ready: Any = None
        for i in range(job.iterations):
            for gpu in instance.given[j] or ():
                forward, backward = ("c", j, i, 0, gpu), ("c", j, i, 1, gpu)
                if ready is None:
                    rows.append(({forward: -1.0}, -job.arrival))
                else:
                    after(forward, ready, 0.0)
                after(backward, forward, job.forward)
                after(("barrier", j, i), backward, job.backward)
            ready = ("barrier", j, i)
            if j in spanning:
                after(("begin", j, i), ready, link.latency)
                ready = ("end", j, i)
        rows.append(({ready: 1.0, ("finish", j): -1.0}, 0.0))
    seen = dict.fromkeys(spanning, 0)
    line = []
    for event in events:
        j = spanning[event]
        line.append((("begin", "end")[seen[j] % 2], j, seen[j] // 2))
        seen[j] += 1
    moved: dict[Any, dict[Any, float]] = {}
    seen = dict.fromkeys(spanning, 0)
    for position, (here, active) in enumerate(zip(line, levels, strict=True)):
        if position + 1 < len(line):
            after(line[position + 1], here, 0.0)
            for j, k in active.items():
                i = sum(1 for kind, other, _ in line[: position + 1] if other == j and kind == "begin") - 1
                rate = 1.0 / (k * link.seconds_per_unit + (k - 1) * link.contention_penalty)
                terms = moved.setdefault((j, i), {})
                terms[here] = terms.get(here, 0.0) + rate
                terms[line[position + 1]] = terms.get(line[position + 1], 0.0) - rate
    for (j, _), terms in moved.items():
        rows.append((terms, -jobs[j].message))
    if exclusive:  # active from its admission, a latency before it begins
        for before, (kind, j, i) in enumerate(line):
            if kind == "begin":
                for ended, k, r in line[:before]:
                    if ended == "end" and k != j and instance_shares(instance, j, k):
                        after(("begin", j, i), ("end", k, r), link.latency)
    for (gpu, here), order in gpu_orders:
        step = dict.fromkeys(here, 0)
        previous: Any = None
        for which in order:
            j = here[which]
            task = ("c", j, step[j] // 2, step[j] % 2, gpu)
            step[j] += 1
            if previous is not None:
                after(task, previous, jobs[previous[1]].backward if previous[3] else jobs[previous[1]].forward)
            previous = task
    for terms, _ in rows:
        for name in terms:
            column(name)
    matrix = np.zeros((len(rows), len(names)))
    right = np.zeros(len(rows))
    for row, (terms, limit) in enumerate(rows):
        for name, coefficient in terms.items():
            matrix[row, names[name]] += coefficient
        right[row] = limit
    cost = np.zeros(len(names))
    for j in range(len(jobs)):
        cost[names["finish", j]] = 1.0 / len(jobs)
    result = linprog(cost, A_ub=matrix, b_ub=right, bounds=(0, None), method="highs")
    return float(result.fun) if result.status == 0 else math.inf


def instance_shares(instance: DdlClusterInstance, j: int, k: int) -> bool:
    """Whether two jobs have a server in common."""
    one, other = instance.given[j] or (), instance.given[k] or ()
    return bool({server for server, _ in one} & {server for server, _ in other})
