"""Every feasible schedule of very small instances, by enumeration and the checker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from oracles import TooManyError, ddl_cluster_rows, g_vne, gpu_sharing, hadar, rar_ddls
from oracles.gang_placement import Search
from schedgap.benchmarks.instances.comm_contention.random import tiny as tiny_comm
from schedgap.benchmarks.instances.ddljs.random import tiny as tiny_ddljs
from schedgap.benchmarks.instances.gang_placement.random import tiny as tiny_gangs
from schedgap.benchmarks.instances.gpu_sharing.random import tiny as tiny_gpu_sharing
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.models import horizon
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance, Job
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

MOST = 1000
"""Combinations that are tried for one instance."""
TRIES = 100

Made = tuple[Instance, list[Solution]]
Sums = dict[tuple[str, Json], float]
"""Coefficients by family and key of variables."""


@dataclass(frozen=True)
class Case:
    """A form, and instances of its problem with all their schedules.

    Attributes
    ----------
    problem, form : ids
    make : (instance, its feasible schedules) of a seed
    engines : those that can solve it
    optimum : where time is continuous, the schedules are a sample, and this finds the best value under a row by
        enumerating orders: (instance, row, whether it is at most the level, level, cost); the cost None is the
        problem's own objective; None where no schedule keeps the row
    """

    problem: str
    form: str
    make: Callable[[int], Made]
    engines: tuple[str, ...] = ("highs", "cbc", "cpsat")
    optimum: Callable[[Any, Sums, bool, float, Sums | None], float | None] | None = None


def _feasible(instance: Instance, candidates: Iterable[Solution]) -> list[Solution]:
    check = find_problem(instance.problem_id).check
    return [solution for solution in candidates if check(instance, solution).feasible]


def _small(seed: int, draw: Callable[[int], Instance], count: Callable[[Any], int]) -> Any:
    """The first instance drawn from the seed that has few combinations."""
    for turn in range(TRIES):
        instance = draw(seed * TRIES + turn)
        if 1 < count(instance) <= MOST:
            return instance
    raise RuntimeError(f"seed {seed}: no instance with at most {MOST} combinations")


def _rar_ddls(seed: int) -> Made:
    def draw(number: int) -> RarDdlsInstance:
        data = rar_ddls.random_case(number, contended=seed % 2 == 0).to_dict()
        rng = np.random.default_rng(number)
        return RarDdlsInstance.parse(
            {**data, "horizon": int(rng.integers(2, 5)), "jobs": data["jobs"][: int(rng.integers(1, 4))]}
        )

    def ways(instance: RarDdlsInstance) -> list[list[tuple[int, tuple[int, ...]]]]:
        sizes = [server.gpus for server in instance.servers]
        slots = range(1, instance.horizon + 1)
        return [list(itertools.product(slots, rar_ddls.placements(job.gpus, sizes))) for job in instance.jobs]

    instance: RarDdlsInstance = _small(seed, draw, lambda i: int(np.prod([len(w) for w in ways(i)])))
    jobs = [job.id for job in instance.jobs]
    names = [server.id for server in instance.servers]

    def solutions() -> Iterator[Solution]:
        for chosen in itertools.product(*ways(instance)):
            yield {
                "start": {j: t for j, (t, _) in zip(jobs, chosen, strict=True)},
                "placement": {
                    j: {s: n for s, n in zip(names, p, strict=True) if n}
                    for j, (_, p) in zip(jobs, chosen, strict=True)
                },
            }

    return instance, _feasible(instance, solutions())


def _rings(instance: GVneInstance | DdljsInstance) -> list[list[dict[str, Any] | None]]:
    """By job, no ring and all rings; none at all where a job has more than can be tried."""
    paths = g_vne.simple_routes(instance)
    hosts = [server.id for server in instance.servers if server.resources]
    found: list[list[dict[str, Any] | None]] = []
    for job in instance.jobs:
        mine: list[dict[str, Any] | None] = [None]
        for k in range(1, job.max_workers + 1):
            for workers in itertools.product(hosts, repeat=k):
                ends = [(workers[a], workers[(a + 1) % k]) for a in range(k)] if k > 1 else []
                for routes in itertools.product(*(paths.get(pair, []) for pair in ends)):
                    mine.append({"workers": list(workers), "routes": [list(route) for route in routes]})
                    if len(mine) > MOST:
                        return []
        found.append(mine)
    return found


def _g_vne(seed: int) -> Made:
    def count(instance: GVneInstance) -> int:
        return int(np.prod([len(mine) for mine in found])) if (found := _rings(instance)) else MOST + 1

    def draw(number: int) -> GVneInstance:
        data = g_vne.random_case(number).to_dict()
        rng = np.random.default_rng(number)
        jobs = data["jobs"][: int(rng.integers(1, 4))]
        for job in jobs:
            job["utility"] = [u - 3.0 * (rng.random() < 0.1) for u in job["utility"][: int(rng.integers(1, 4))]]
        return GVneInstance.parse({**data, "jobs": jobs})

    instance: GVneInstance = _small(seed, draw, count)

    def solutions() -> Iterator[Solution]:
        for chosen in itertools.product(*_rings(instance)):
            yield {"rings": {job.id: ring for job, ring in zip(instance.jobs, chosen, strict=True) if ring is not None}}

    return instance, _feasible(instance, solutions())


def _hadar(seed: int) -> Made:
    def options(instance: HadarInstance, job: Job) -> list[list[dict[str, Any]]]:
        """What a job can have in a slot: nothing, or a gang, machine by machine."""
        pools = [
            (machine.id, kind, min(count, job.workers))
            for machine in instance.machines
            for kind, count in machine.gpus.items()
            if count and job.throughput.get(kind, 0) > 0
        ]
        counts = itertools.product(*(range(most + 1) for _, _, most in pools))
        return [
            [{"machine": h, "type": r, "gpus": n} for (h, r, _), n in zip(pools, chosen, strict=True) if n]
            for chosen in counts
            if sum(chosen) in (0, job.workers)
        ]

    def count(instance: HadarInstance) -> int:
        slots = [instance.horizon - job.arrival + 1 for job in instance.jobs]
        each = [len(options(instance, job)) ** n for job, n in zip(instance.jobs, slots, strict=True)]
        return int(np.prod(each)) if max(each) <= MOST else MOST + 1

    def draw(number: int) -> HadarInstance:
        data = hadar.random_case(number, must_finish=number % 5 == 0).to_dict()
        rng = np.random.default_rng(number)
        horizon = int(rng.integers(2, 4))
        jobs = data["jobs"][: int(rng.integers(1, 4))]
        for job in jobs:
            job["arrival"] = min(job["arrival"], horizon)
            job["epochs"] = max(1, round(job["epochs"] * rng.uniform(0.3, 1.0)))
        machines = data["machines"][: int(rng.integers(1, 4))]
        return HadarInstance.parse({**data, "horizon": horizon, "jobs": jobs, "machines": machines})

    instance: HadarInstance = _small(seed, draw, count)

    def solutions() -> Iterator[Solution]:
        lives = [
            [
                {str(t): entries for t, entries in enumerate(chosen, start=job.arrival) if entries}
                for chosen in itertools.product(options(instance, job), repeat=instance.horizon - job.arrival + 1)
            ]
            for job in instance.jobs
        ]
        for chosen in itertools.product(*lives):
            yield {"allocation": {job.id: life for job, life in zip(instance.jobs, chosen, strict=True) if life}}

    return instance, _feasible(instance, solutions())


def _gpu_sharing(seed: int) -> Made:
    def ways(instance: GpuSharingInstance) -> list[list[tuple[int, tuple[list[Any], ...], int]]]:
        gpus = [[server.id, index] for server in instance.servers for index in range(server.gpus)]
        return [
            [
                (t, chosen, steps)
                for t in range(job.arrival, instance.horizon + 1)
                for chosen in itertools.combinations(gpus, job.gpus)
                for steps in gpu_sharing.divisors(job.batch_size)
            ]
            for job in instance.jobs
        ]

    def count(instance: GpuSharingInstance) -> int:
        return int(np.prod([len(mine) for mine in ways(instance)]))

    def draw(number: int) -> GpuSharingInstance:
        data = tiny_gpu_sharing(number).to_dict()
        rng = np.random.default_rng(number)
        horizon = int(rng.integers(3, 7))
        jobs = data["jobs"][: int(rng.integers(1, 4))]
        for job in jobs:
            job["arrival"] = min(job["arrival"], horizon)
            job["batch_size"] = int(rng.choice([1, 2, 3, 6]))
            job["iterations"] = max(1, round(job["iterations"] * rng.uniform(0.3, 1.0)))
        names = {job["id"] for job in jobs}
        slower = {
            one: {other: xi for other, xi in row.items() if other in names}
            for one, row in data.get("interference", {}).items()
            if one in names
        }
        return GpuSharingInstance.parse({**data, "horizon": horizon, "jobs": jobs, "interference": slower})

    instance: GpuSharingInstance = _small(seed, draw, count)
    jobs = [job.id for job in instance.jobs]

    def solutions() -> Iterator[Solution]:
        for chosen in itertools.product(*ways(instance)):
            yield {
                "start": {j: t for j, (t, _, _) in zip(jobs, chosen, strict=True)},
                "gpus": {j: list(gpus) for j, (_, gpus, _) in zip(jobs, chosen, strict=True)},
                "accumulation": {j: s for j, (_, _, s) in zip(jobs, chosen, strict=True)},
            }

    return instance, _feasible(instance, solutions())


def _ddljs(seed: int) -> Made:
    def slot_options(instance: DdljsInstance) -> list[list[dict[str, Any]]]:
        """What all jobs can have in each slot."""
        each = _rings(instance)
        if not each or np.prod([len(mine) for mine in each]) > MOST:
            return []
        empty: dict[str, Any] = {"rings": {}}
        check = find_problem("ddljs").check
        found = []
        for t in range(1, instance.horizon + 1):
            here = []
            for chosen in itertools.product(*each):
                rings = {job.id: ring for job, ring in zip(instance.jobs, chosen, strict=True) if ring is not None}
                entry = {"rings": rings}
                slots = [entry if u == t else empty for u in range(1, instance.horizon + 1)]
                if check(instance, {"slots": slots}).feasible:
                    here.append(entry)
            found.append(here)
        return found

    def count(instance: DdljsInstance) -> int:
        return int(np.prod([len(here) for here in options])) if (options := slot_options(instance)) else MOST + 1

    def draw(number: int) -> DdljsInstance:
        data = tiny_ddljs(number).to_dict()
        rng = np.random.default_rng(number)
        horizon = int(rng.integers(1, 4))
        jobs = data["jobs"][: int(rng.integers(1, 4))]
        for job in jobs:
            job["arrival"] = min(job["arrival"], horizon)
            job["max_workers"] = min(job["max_workers"], int(rng.integers(1, 4)))
        return DdljsInstance.parse({**data, "horizon": horizon, "jobs": jobs})

    instance: DdljsInstance = _small(seed, draw, count)
    return instance, _feasible(
        instance, ({"slots": list(slots)} for slots in itertools.product(*slot_options(instance)))
    )


def _comm_contention(seed: int) -> Made:
    rng = np.random.default_rng(seed)
    data = tiny_comm(seed).to_dict()
    n = int(rng.choice([1, 2, 2, 2, 3]))
    instance = CommContentionInstance.parse({**data, "tasks": data["tasks"][:n]})
    work = sum(task.size for task in instance.tasks) * instance.link.seconds_per_unit
    schedules: list[Solution] = []
    for _ in range(20):
        late = rng.integers(0, 3, size=n) * rng.uniform(0, work, size=n)
        starts = {task.id: task.release + float(d) for task, d in zip(instance.tasks, late, strict=True)}
        schedules.append({"start": starts})
    return instance, _feasible(instance, schedules)


def _comm_optimum(
    instance: CommContentionInstance, row: Sums, at_most: bool, level: float, cost: Sums | None
) -> float | None:
    """One linear program over the moments of the events for every order of them."""
    tasks, link, n = instance.tasks, instance.link, len(instance.tasks)
    last = horizon(instance)
    best: float | None = None
    for order in itertools.permutations(range(2 * n)):
        place = {event: p for p, event in enumerate(order)}  # i starts, n + i completes
        if any(place[i] > place[n + i] for i in range(n)):
            continue
        rows, right, equal, values = [], [], [], []
        for p in range(1, 2 * n):
            rows.append(_unit(2 * n, {p - 1: 1.0, p: -1.0}))
            right.append(0.0)
        active: set[int] = set()
        moved = [np.zeros(2 * n) for _ in range(n)]
        for p, event in enumerate(order):
            for i in active:
                pace = len(active) * link.seconds_per_unit + (len(active) - 1) * link.contention_penalty
                moved[i] += _unit(2 * n, {p: 1 / pace, p - 1: -1 / pace})
            active ^= {event % n}
        for i, task in enumerate(tasks):
            equal.append(moved[i])
            values.append(task.size)
            rows.append(_unit(2 * n, {place[i]: -1.0}))
            right.append(-task.release)

        def moments(sums: Sums, place: dict[int, int] = place) -> tuple[Any, float]:
            """A sum of starts and finishes over the moments of events, and its constant."""
            names = {task.id: i for i, task in enumerate(tasks)}
            found: dict[int, float] = {}
            constant = 0.0
            for (family, task), c in sums.items():
                p = place[names[task] + (n if family == "finish" else 0)]
                found[p] = found.get(p, 0.0) + c
                constant += c * link.latency if family == "finish" else 0.0
            return _unit(2 * n, found), constant

        terms, constant = moments(row)
        rows.append(terms if at_most else -terms)
        right.append((level - constant) * (1 if at_most else -1))
        own: Sums = {("finish", task.id): 1 / n for task in tasks}
        goal, constant = moments(own if cost is None else cost)
        constant -= 0.0 if cost is not None else sum(task.release for task in tasks) / n
        found = linprog(goal, np.array(rows), right, np.array(equal), values, bounds=(0, last), method="highs")
        if found.status == 0:
            value = float(found.fun or 0.0) + constant
            best = value if best is None else min(best, value)
    return best


def _ddl_cluster(seed: int) -> Made:
    instance = ddl_cluster_rows.draw(seed)
    return instance, _feasible(instance, ddl_cluster_rows.schedules(instance, seed))


def _unit(width: int, entries: dict[int, float]) -> Any:
    row = np.zeros(width)
    for place, value in entries.items():
        row[place] += value
    return row


def _gangs(seed: int) -> Made:
    """Whole devices alone: decisions that differ only in which of equal devices they take are one to the search."""

    def draw(number: int) -> GangPlacementInstance:
        data = tiny_gangs(number).to_dict()
        rng = np.random.default_rng(number)
        for gang in data["gangs"]:
            for group in gang["pods"]:
                group["gpu"] = int(rng.choice([0, 1000, 1000, 2000]))
        return GangPlacementInstance.parse(data)

    def decisions(instance: GangPlacementInstance) -> list[Solution]:
        try:
            return [solution for _, solution in Search(instance.to_dict(), MOST).decisions()]
        except TooManyError:
            return [{}] * (MOST + 1)

    instance: GangPlacementInstance = _small(seed, draw, lambda made: len(decisions(made)))
    return instance, _feasible(instance, decisions(instance))


CASES = {
    "comm-contention": Case(
        "comm-contention", "events", _comm_contention, engines=("highs", "cbc"), optimum=_comm_optimum
    ),
    "ddl-cluster": Case(
        "ddl-cluster", "events", _ddl_cluster, engines=("highs", "cbc"), optimum=ddl_cluster_rows.optimum_under
    ),
    "ddljs": Case("ddljs", "slots", _ddljs),
    "gpu-sharing": Case("gpu-sharing", "time-indexed", _gpu_sharing),
    "hadar": Case("hadar", "time-indexed", _hadar),
    "rar-ddls": Case("rar-ddls", "time-indexed", _rar_ddls),
    "g-vne": Case("g-vne", "arcs", _g_vne),
    "gang-placement": Case("gang-placement", "assignment", _gangs),
}
"""By name."""
