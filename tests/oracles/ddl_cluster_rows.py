"""Tiny instances of ddl-cluster without placements, schedules of them, and the best value under a row by enumeration.

The best value comes from one linear program for every placement, every order of begins and ends of transfers, every
order on every GPU, every choice of the worker that is last on one server, and of the job that is first in a memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from scipy.optimize import linprog

from oracles.ddl_cluster import (
    Terms,
    levels_of,
    merges,
    orders,
    parts_of,
    placed,
    placements,
    rows_of,
)
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.models.events_parts import horizon
from schedgap.formulations.ddl_cluster.timetable import Compute, Plan, timetable

Sums = dict[tuple[str, Json], float]
MOST = 600
"""Linear programs for one instance."""
TRIES = 1000
ONE = Fraction(1)


def draw(seed: int) -> DdlClusterInstance:
    """The first instance drawn from the seed that has few linear programs; all-reduces can meet where it is even."""
    for turn in range(TRIES):
        instance = _drawn(random.Random(seed * TRIES + turn))
        owns = [placed(instance, placement) for placement in placements(instance)]
        meet = any(len(parts_of(own)[0]) > 1 for own in owns)
        if sum(map(_programs, owns)) <= MOST and (meet or seed % 2):
            return instance
    raise RuntimeError(f"seed {seed}: no instance with at most {MOST} linear programs")


def _drawn(rng: random.Random) -> DdlClusterInstance:
    servers: list[dict[str, Any]] = [
        {"id": f"s{s}", "gpus": rng.choice([1, 1, 2])} for s in range(rng.choice([1, 2, 2, 2, 3]))
    ]
    most = sum(server["gpus"] for server in servers)
    jobs: list[dict[str, Any]] = [
        {
            "id": f"j{j}",
            "arrival": rng.choice([0.0, 0.0, 1.5, 4.0]),
            "gpus": min(most, rng.choice([1, 2, 2])),
            "iterations": rng.choice([1, 1, 2]),
            "forward": rng.choice([0.5, 1.0, 2.0]),
            "backward": rng.choice([0.5, 1.0, 3.0]),
            "message": rng.choice([1.0, 2.5, 4.0]),
            "memory": 2.0,
        }
        for j in range(rng.choice([1, 2, 2, 3]))
    ]
    gpus = [[server["id"], g] for server in servers for g in range(server["gpus"])]
    for job in jobs:
        if rng.random() < 0.3:
            job["placement"] = rng.sample(gpus, job["gpus"])
    link = {
        "latency": rng.choice([0.0, 0.5]),
        "seconds_per_unit": rng.choice([1.0, 0.8]),
        "contention_penalty": rng.choice([0.0, 0.25, 0.5]),
    }
    memory = rng.choice([3.0, 100.0, 100.0])  # one job, or all
    data = {"problem": "ddl-cluster", "gpu_memory": memory, "servers": servers, "link": link, "jobs": jobs}
    return DdlClusterInstance.parse({**data, "name": "tiny"})


def _rivals(instance: DdlClusterInstance) -> list[tuple[int, int]]:
    """Pairs of jobs of a placed instance that share a GPU whose memory holds one of them."""
    jobs, given = instance.jobs, [set(gpus or ()) for gpus in instance.given]
    return [
        (j, k)
        for j, k in combinations(range(len(jobs)), 2)
        if given[j] & given[k] and jobs[j].memory + jobs[k].memory > instance.gpu_memory
    ]


def _programs(own: DdlClusterInstance) -> int:
    """Linear programs of a placed instance."""
    lasts = [job.gpus**job.iterations for j, job in enumerate(own.jobs) if j not in parts_of(own)[0]]
    return int(orders(own) * prod(lasts) * 2 ** len(_rivals(own)))


def schedules(instance: DdlClusterInstance, seed: int, count: int = 20) -> Iterator[Solution]:
    """Schedules of random placements with random delays, every second time job after job; some break the memory."""
    rng = random.Random(seed)
    every = list(placements(instance))
    link = instance.link
    for turn in range(count):
        pause = rng.choice([0.0, 1.0, instance.longest_run / 4]) * (turn % 2)
        start: dict[Compute, float] = {}
        free = 0.0
        for j in rng.sample(range(len(instance.jobs)), len(instance.jobs)):
            job = instance.jobs[j]
            now = max(job.arrival, 0.0 if turn % 2 else free)
            message = link.latency + job.message * link.seconds_per_unit
            free = now + job.iterations * (job.forward + job.backward + message)
            for i, kind in product(range(job.iterations), (0, 1)):
                for w in range(job.gpus):
                    start[j, i, kind, w] = now + rng.random() * pause
                now = max(start[j, i, kind, w] for w in range(job.gpus)) + (job.forward, job.backward)[kind]
        yield timetable(instance, rng.choice(every), Plan(start, {}, {}, {}))


def optimum_under(
    instance: DdlClusterInstance, row: Sums, at_most: bool, level: float, cost: Sums | None
) -> float | None:
    """The least mean of end - arrival, or the least `cost`, of schedules with this sum `at_most`, or at least, `level`.

    None where no schedule keeps it.
    """
    found = (
        _program(instance, own, rows, row, at_most, level, cost)
        for own in (placed(instance, placement) for placement in placements(instance))
        for rows in _all_rows(own)
    )
    return min((value for value in found if value is not None), default=None)


def _all_rows(own: DdlClusterInstance) -> Iterator[list[tuple[Terms, Fraction]]]:
    """Rows for every order and every choice; each sum is at most the right side."""
    spanning, shared, servers = parts_of(own)
    jobs = own.jobs
    queues = [list(merges([2 * jobs[j].iterations for j in here])) for _, here in shared]
    alone = [(j, i) for j in range(len(jobs)) if j not in spanning for i in range(jobs[j].iterations)]
    rivals = _rivals(own)
    for events in merges([2 * jobs[j].iterations for j in spanning]):
        levels = levels_of(own, events, spanning, servers)
        for chosen in product(*queues):
            orders_here = list(zip(shared, chosen, strict=True))
            rows = rows_of(own, events, levels, orders_here, spanning, exclusive=False, whole=True)
            for lasts in product(*(own.given[j] or () for j, _ in alone)):
                last: list[tuple[Terms, Fraction]] = [
                    ({("barrier", j, i): ONE, ("c", j, i, 1, gpu): -ONE}, exact(jobs[j].backward))
                    for (j, i), gpu in zip(alone, lasts, strict=True)
                ]
                for turned in product((False, True), repeat=len(rivals)):
                    apart: list[tuple[Terms, Fraction]] = []
                    for (j, k), turn in zip(rivals, turned, strict=True):
                        first, second = (k, j) if turn else (j, k)
                        finish = _end(first, jobs[first].iterations - 1, spanning)
                        for gpu in own.given[second] or ():
                            terms: Terms = {finish: ONE, ("c", second, 0, 0, gpu): -ONE}
                            apart.append((terms, Fraction(0)))
                    yield [*rows, *last, *apart]


def _end(j: int, i: int, spanning: list[int]) -> Any:
    return ("end" if j in spanning else "barrier", j, i)


def _program(
    instance: DdlClusterInstance,
    own: DdlClusterInstance,
    rows: list[tuple[Terms, Fraction]],
    row: Sums,
    at_most: bool,
    level: float,
    cost: Sums | None,
) -> float | None:
    """The best value of one linear program."""
    spanning = parts_of(own)[0]
    place: dict[Any, int] = {}
    for terms, _ in rows:
        for name in terms:
            place.setdefault(name, len(place))

    def vector(sums: Sums) -> tuple[Any, float]:
        """A sum of the model's variables over those of the program, and its constant."""
        found, constant = np.zeros(len(place)), 0.0
        for (family, key), factor in sums.items():
            name, shift = _meaning(own, spanning, family, key if isinstance(key, tuple) else (key,))
            constant += factor * shift
            if name is not None:
                found[place[name]] += factor
        return found, constant

    matrix = np.zeros((len(rows) + 1, len(place)))
    for number, (terms, _) in enumerate(rows):
        for name, factor in terms.items():
            matrix[number, place[name]] = float(factor)
    found, constant = vector(row)
    sign = 1 if at_most else -1
    matrix[-1] = sign * found
    right = [*(float(limit) for _, limit in rows), sign * (level - constant)]
    jobs = instance.jobs
    own_cost: Sums = {("end", (job.id, job.iterations - 1)): 1 / len(jobs) for job in jobs}
    goal, constant = vector(own_cost if cost is None else cost)
    if cost is None:
        constant -= sum(job.arrival for job in jobs) / len(jobs)
    result = linprog(goal, matrix, right, bounds=(0, horizon(instance)), method="highs")
    return float(result.fun or 0.0) + constant if result.status == 0 else None


def _meaning(own: DdlClusterInstance, spanning: list[int], family: str, key: tuple[Any, ...]) -> tuple[Any, float]:
    """The program's variable that a variable of the model is, None where it is a number; and what is added."""
    j = own.job_index[key[0]]
    given = own.given[j] or ()
    if family == "spans":
        return None, float(j in spanning)
    if family in ("uses", "place"):
        s = own.server_index[key[1]]
        return None, float((s, key[2]) in given if family == "place" else s in {server for server, _ in given})
    if family in ("forward", "backward"):
        gpu = (own.server_index[key[2]], key[3])
        return (("c", j, key[1], int(family == "backward"), gpu), 0.0) if gpu in given else (None, 0.0)
    if family == "admit" and j in spanning:
        return ("begin", j, key[1]), -own.link.latency
    if family in ("admit", "end"):
        return _end(j, key[1], spanning), 0.0
    raise AssertionError(family)
