"""Algorithm 2 of paper 004, LP-RS-MDE, from its text, for instances so small that every valid mapping can be listed.

A valid mapping puts each of kappa workers on a server that one worker fits and each edge of the ring on a simple
route; it may overload servers and links. Rost and Schmid's augmented program is the one over the convex combinations
of valid mappings, here with a variable for each. Lines are those of the printed algorithm.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from oracles.g_vne import simple_routes
from schedgap.formulations.g_vne.instance import GVneInstance, Job

Row = tuple[str, str]
"""A server and its resource, or the two ends of a link."""
LIMIT = 60_000


@dataclass(frozen=True)
class Omega:
    """omega: a ring of one job, and what it takes of every row."""

    job: int
    size: int
    load: Mapping[Row, float]


def capacities(instance: GVneInstance) -> dict[Row, float]:
    """g_s^(u,r) and e_s^(u,v)."""
    rows = {
        (server.id, name): float(amount) for server in instance.servers for name, amount in server.resources.items()
    }
    return rows | {(link.source, link.target): float(link.bandwidth) for link in instance.links}


def _hosts(instance: GVneInstance, job: Job) -> list[str]:
    return [
        server.id
        for server in instance.servers
        if server.resources and all(server.resources.get(name, 0.0) >= need for name, need in job.demand.items())
    ]


def valid_mappings(instance: GVneInstance, sizes: Sequence[int] | None = None) -> Iterator[Omega]:
    """Every valid mapping of every job, of ring sizes 1 to N_i or of the given ones; one for each load."""
    routes = simple_routes(instance)
    for i, job in enumerate(instance.jobs):
        seen: set[tuple[int, tuple[tuple[Row, float], ...]]] = set()
        for size in range(1, len(job.utility) + 1) if sizes is None else [size for size in [sizes[i]] if size]:
            for workers in itertools.product(_hosts(instance, job), repeat=size):
                edges = [(workers[a], workers[(a + 1) % size]) for a in range(size)] if size > 1 else []
                for paths in itertools.product(*(routes.get(edge, []) for edge in edges)):
                    load: dict[Row, float] = {}
                    for host in workers:
                        for name, need in job.demand.items():
                            load[host, name] = load.get((host, name), 0.0) + need
                    for path in paths:
                        for hop in itertools.pairwise(path):
                            load[hop] = load.get(hop, 0.0) + job.bandwidth
                    key = size, tuple(sorted(load.items()))
                    if key not in seen:
                        seen.add(key)
                        if len(seen) > LIMIT:
                            raise OverflowError(f"more than {LIMIT} mappings of a job")
                        yield Omega(i, size, load)


def program(instance: GVneInstance, mappings: Sequence[Omega]) -> tuple[float, np.ndarray]:
    """Value and weights phi of the program over these mappings: one ring a job at most, capacities in the mean."""
    if not mappings:
        return 0.0, np.zeros(0)
    room = capacities(instance)
    rows = list(room)
    table = np.zeros((len(rows) + len(instance.jobs), len(mappings)))
    for n, mapping in enumerate(mappings):
        for row, amount in mapping.load.items():
            table[rows.index(row), n] += amount
        table[len(rows) + mapping.job, n] = 1.0
    limits = [*room.values(), *([1.0] * len(instance.jobs))]
    worth = [-float(instance.jobs[m.job].utility[m.size - 1]) for m in mappings]
    solved = linprog(worth, A_ub=table, b_ub=limits, bounds=(0, None), method="highs")
    return -float(solved.fun), solved.x


def selected_sizes(instance: GVneInstance, chi: Mapping[tuple[int, int], float]) -> list[int]:
    """Line 3: kappa_i with the largest pi chi, 0 where a job has no weight; the smaller one of equal ones."""
    sizes = []
    for i, job in enumerate(instance.jobs):
        able = [size for size in range(1, len(job.utility) + 1) if chi.get((i, size), 0.0) > 0]
        sizes.append(max(able, key=lambda size: (job.utility[size - 1] * chi[i, size], -size), default=0))
    return sizes


def overload_factors(instance: GVneInstance, sizes: Sequence[int]) -> dict[Row, float]:
    """beta^r of every server and gamma of every link: Theorem 8, with log the natural one.

    epsilon, which the paper does not define, is the largest share of a capacity that one worker, or one edge, asks
    for: the definition of Rost and Schmid, whose theorem this is.
    """
    room, factors = capacities(instance), dict[Row, float]()
    nodes, links = len(instance.servers), len(instance.links)
    for name in {name for server in instance.servers for name in server.resources}:
        epsilon, delta = 0.0, 0.0
        for server in instance.servers:
            total = 0.0
            for job, size in zip(instance.jobs, sizes, strict=True):
                if size and job.demand.get(name, 0.0) > 0 and server.id in _hosts(instance, job):
                    total += float(size) ** 2
                    epsilon = max(epsilon, job.demand[name] / room[server.id, name])
            delta = max(delta, total)
        for server in instance.servers:
            if name in server.resources:
                factors[server.id, name] = 1 + epsilon * math.sqrt(2 * delta * math.log(nodes))
    asking = [(job, size) for job, size in zip(instance.jobs, sizes, strict=True) if size > 1 and job.bandwidth > 0]
    wide = [float(link.bandwidth) for link in instance.links if link.bandwidth > 0]
    epsilon = max((job.bandwidth / width for job, _ in asking for width in wide), default=0.0)
    delta = sum(float(size) ** 2 for _, size in asking) if wide else 0.0
    for link in instance.links:
        factors[link.source, link.target] = 1 + epsilon * math.sqrt(2 * delta * math.log(max(1, links)))
    return factors


def rounded(
    instance: GVneInstance,
    choices: Sequence[Sequence[tuple[float, Omega]]],  # M_i of every job that has one: (phi, omega)
    value: float,  # of the program
    factors: Mapping[Row, float],
    tries: int,
    rng: np.random.Generator,
) -> tuple[list[Omega], int]:
    """Lines 7 to 9: the last rounding made, and how many were."""
    room = capacities(instance)
    drawn: list[Omega] = []
    for count in range(1, tries + 1):
        drawn = []
        for weighted, luck in zip(choices, rng.random(len(choices)), strict=True):
            reached = 0.0
            for phi, omega in weighted:
                reached += phi
                if luck < reached:
                    drawn.append(omega)
                    break
        utility = sum(float(instance.jobs[m.job].utility[m.size - 1]) for m in drawn)
        used: dict[Row, float] = {}
        for mapping in drawn:
            for row, amount in mapping.load.items():
                used[row] = used.get(row, 0.0) + amount
        kept = all(amount <= factors[row] * room[row] * (1 + 1e-9) for row, amount in used.items())
        if kept and utility >= value / 3 - 1e-9:
            return drawn, count
    return drawn, tries
