"""Every feasible schedule of very small instances, by enumeration and the checker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.benchmarks.studies.brute_force import g_vne, rar_ddls
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

MOST = 2000
"""Combinations that are tried for one instance."""
TRIES = 100

Made = tuple[Instance, list[Solution]]


@dataclass(frozen=True)
class Case:
    """A form, and instances of its problem with all their schedules.

    Attributes
    ----------
    problem, form : ids
    make : (instance, its feasible schedules) of a seed
    exact : the way from a schedule to its point and back leads to the same schedule
    engines : those that can solve it
    """

    problem: str
    form: str
    make: Callable[[int], Made]
    exact: bool = True
    engines: tuple[str, ...] = ("highs", "cbc", "cpsat")


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


def _g_vne(seed: int) -> Made:
    def rings(instance: GVneInstance) -> list[list[dict[str, Any] | None]]:
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
                            return [mine]
            found.append(mine)
        return found

    def count(instance: GVneInstance) -> int:
        return int(np.prod([len(mine) for mine in rings(instance)]))

    def draw(number: int) -> GVneInstance:
        data = g_vne.random_case(number).to_dict()
        rng = np.random.default_rng(number)
        jobs = data["jobs"][: int(rng.integers(1, 4))]
        for job in jobs:
            job["utility"] = [u - 3.0 * (rng.random() < 0.1) for u in job["utility"][: int(rng.integers(1, 4))]]
        return GVneInstance.parse({**data, "jobs": jobs})

    instance: GVneInstance = _small(seed, draw, count)

    def solutions() -> Iterator[Solution]:
        for chosen in itertools.product(*rings(instance)):
            yield {"rings": {job.id: ring for job, ring in zip(instance.jobs, chosen, strict=True) if ring is not None}}

    return instance, _feasible(instance, solutions())


CASES = {
    "rar-ddls": Case("rar-ddls", "time-indexed", _rar_ddls),
    "g-vne": Case("g-vne", "arcs", _g_vne),
}
"""By name."""
