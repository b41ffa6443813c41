"""A plain search for the optimum of tiny ddljs instances: every ring, every set of rings, every total.

For the tests and the suite ``cross``. It knows nothing of models, circulations, tables or the checker: a ring is a
host for every worker and a simple path for every ring edge; slot by slot all reachable totals of worker-slots are kept.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from oracles import TooManyError
from schedgap.benchmarks.instances.ddljs.random import tiny
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddljs.instance import DdljsInstance, Job, Utility
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

SLACK = 1 + Fraction(1, 10**9)

Load = tuple[int, ...]
Placed = tuple[list[str], list[list[str]]]


class _Network:
    """Capacities and loads as whole numbers: everything times one common denominator."""

    def __init__(self, instance: DdljsInstance) -> None:
        self.instance = instance
        self.names = [server.id for server in instance.servers]
        self.pairs = [(link.source, link.target) for link in instance.links]
        self.kinds = sorted({name for job in instance.jobs for name in job.demand})
        numbers = [exact(link.bandwidth) * SLACK for link in instance.links]
        numbers += [exact(server.resources.get(k, 0)) * SLACK for server in instance.servers for k in self.kinds]
        sizes = [exact(v) for job in instance.jobs for v in (*job.demand.values(), job.bandwidth)]
        self.scale = math.lcm(*(number.denominator for number in (*numbers, *sizes)))
        self.capacity = tuple(int(number * self.scale) for number in numbers)
        self.next: dict[str, list[str]] = {name: [] for name in self.names}
        for source, target in self.pairs:
            self.next[source].append(target)

    def paths(self, start: str, end: str) -> list[tuple[str, ...]]:
        """Every simple path."""
        found: list[tuple[str, ...]] = []
        stack: list[tuple[str, ...]] = [(start,)]
        while stack:
            path = stack.pop()
            if path[-1] == end:
                found.append(path)
                continue
            stack.extend((*path, node) for node in self.next[path[-1]] if node not in path)
        return found

    def rings(self, job: Job, size: int) -> dict[Load, Placed]:
        """Every load that a ring of this size can put on the network, with one ring that has it."""
        found: dict[Load, Placed] = {}
        hosts = [server.id for server in self.instance.servers if server.resources]
        known = {(u, v): self.paths(u, v) for u in hosts for v in hosts}
        for workers in itertools.product(hosts, repeat=size):
            if workers[0] != min(workers):  # a rotation of this ring is looked at
                continue
            edges = [(workers[k], workers[(k + 1) % size]) for k in range(size)] if size > 1 else []
            for routes in itertools.product(*(known[edge] for edge in edges)):
                load = self.load(job, workers, routes)
                if load not in found and all(a <= b for a, b in zip(load, self.capacity, strict=True)):
                    found[load] = (list(workers), [list(route) for route in routes])
        return _least(found)

    def load(self, job: Job, workers: tuple[str, ...], routes: tuple[tuple[str, ...], ...]) -> Load:
        links = dict.fromkeys(self.pairs, 0)
        amount = int(exact(job.bandwidth) * self.scale)
        for route in routes:
            for pair in itertools.pairwise(route):
                links[pair] += amount
        demand = [int(exact(job.demand.get(kind, 0)) * self.scale) for kind in self.kinds]
        on = [workers.count(name) * amount for name in self.names for amount in demand]
        return (*links.values(), *on)


def _least(found: dict[Load, Placed]) -> dict[Load, Placed]:
    """Without loads that another one nowhere exceeds."""
    kept: dict[Load, Placed] = {}
    for load in sorted(found, key=sum):
        if not any(all(a <= b for a, b in zip(other, load, strict=True)) for other in kept):
            kept[load] = found[load]
    return kept


def together(instance: DdljsInstance) -> dict[tuple[int, ...], dict[str, Placed]]:
    """Every vector of ring sizes that fits one slot, with rings that have it."""
    network = _Network(instance)
    zero = (0,) * len(network.capacity)
    states: dict[tuple[int, ...], dict[Load, dict[str, Placed]]] = {(): {zero: {}}}
    for job in instance.jobs:
        options: list[tuple[int, dict[Load, Placed]]] = [(0, {zero: ([], [])})]
        options += [(k, network.rings(job, k)) for k in range(1, job.max_workers + 1)]
        grown: dict[tuple[int, ...], dict[Load, dict[str, Placed]]] = {}
        for sizes, loads in states.items():
            for size, rings in options:
                into: dict[Load, dict[str, Placed]] = {}
                for load, chosen in loads.items():
                    for own, placed in rings.items():
                        total = tuple(a + b for a, b in zip(load, own, strict=True))
                        if total not in into and all(a <= b for a, b in zip(total, network.capacity, strict=True)):
                            into[total] = {**chosen, job.id: placed} if size else chosen
                if into:
                    grown[(*sizes, size)] = into
        states = grown
    return {sizes: next(iter(loads.values())) for sizes, loads in states.items()}


@functools.cache
def worth(shape: Utility, efficiency: float, slots: int) -> Fraction:
    """mu_i, plainly, in 50 digits: sums of logarithms may nearly be 0."""
    with decimal.localcontext(prec=50):
        x, scale = decimal.Decimal(repr(efficiency)) * slots, decimal.Decimal(repr(shape.scale))
        if shape.kind == "linear":
            return Fraction(scale * x)
        if shape.kind == "sqrt":
            return Fraction(scale * x.sqrt())
        if shape.kind == "log1p":
            return Fraction(scale * (1 + x).ln())
        if shape.kind == "log":
            return Fraction(scale * max(x, decimal.Decimal(repr(shape.least))).ln())
        if shape.kind == "energy":
            return Fraction(-scale * x * x)
        z = decimal.Decimal(repr(shape.steepness)) * (x - decimal.Decimal(repr(shape.midpoint)))
        return Fraction(scale / (1 + (-z).exp()) if abs(z) <= 300 else scale * (z > 0))


def brute_force(instance: DdljsInstance, limit: int = 300_000) -> tuple[Fraction, Solution]:
    """(optimum to 50 digits, a solution that has it). Raises TooManyError beyond `limit` totals in a slot."""
    fits = together(instance)
    limits = [_limit(job) for job in instance.jobs]
    origin = tuple(0 for _ in instance.jobs)
    layers: list[dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]] = [{origin: (origin, origin)}]
    for slot in range(1, instance.horizon + 1):
        here: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        usable = [s for s in fits if all(not k or slot >= job.arrival for k, job in zip(s, instance.jobs, strict=True))]
        for total, sizes in itertools.product(layers[-1], usable):
            after = tuple(a + b for a, b in zip(total, sizes, strict=True))
            if after not in here and all(a <= b for a, b in zip(after, limits, strict=True)):
                here[after] = (total, sizes)
        if len(here) > limit:
            raise TooManyError(f"more than {limit} totals in slot {slot}")
        layers.append(here)

    def total_worth(total: tuple[int, ...]) -> Fraction:
        parts = (worth(j.utility, j.efficiency, n) for j, n in zip(instance.jobs, total, strict=True))
        return sum(parts, Fraction(0))

    best = max(layers[-1], key=total_worth)
    value = total_worth(best)
    slots: list[dict[str, Any]] = []
    for layer in reversed(layers[1:]):
        best, sizes = layer[best]
        placed = [(job.id, fits[sizes][job.id]) for job, k in zip(instance.jobs, sizes, strict=True) if k]
        slots.append({"rings": {name: {"workers": ring[0], "routes": ring[1]} for name, ring in placed}})
    return value, {"slots": slots[::-1]}


def _limit(job: Job) -> float:
    """Worker-slots that the budget allows."""
    found = math.inf
    for name, budget in job.budget.items():
        if job.demand.get(name, 0):
            found = min(found, exact(budget) * SLACK // exact(job.demand[name]))
    return found


def solve_brute_force(instance: DdljsInstance, options: SolveOptions) -> Result:
    """The brute force as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    value, solution = brute_force(instance)
    seconds = time.monotonic() - began
    return Result(Status.OPTIMAL, float(value), float(value), solution, Termination.PROVEN, solve_seconds=seconds)


def random_cases(count: int, first: int = 0) -> Iterator[DdljsInstance]:
    """Tiny instances that the brute force can solve."""
    return (tiny(first + k) for k in range(count))
