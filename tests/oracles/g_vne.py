"""A plain search for the optimum of tiny g-vne instances: every order of hosts, every simple route of every ring edge.

For the tests and the suite ``cross``. It assumes neither contiguous workers nor shortest routes, knows nothing of
duals, models or the checker, and counts in whole numbers (all sizes over their common denominator).
"""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Literal

from oracles import TooManyError
from schedgap.benchmarks.instances.g_vne.random import tiny
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.g_vne.instance import GVneInstance, Job
from schedgap.formulations.g_vne.substrate import SubstrateInstance
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Load = tuple[int, ...]
Ring = dict[str, object]

ALLOWANCE = Fraction(1, 10**9)


class _Counts:
    """Sizes of an instance as whole numbers: server and resource first, then links."""

    def __init__(self, instance: GVneInstance) -> None:
        self.instance = instance
        self.places = {
            (server.id, name): n
            for n, (server, name) in enumerate(itertools.product(instance.servers, _all_resources(instance)))
        }
        base = len(self.places)
        self.links = {(link.source, link.target): base + n for n, link in enumerate(instance.links)}
        numbers = [exact(v) for job in instance.jobs for v in (*job.demand.values(), job.bandwidth)]
        self.scale = math.lcm(*(number.denominator for number in numbers))
        room = [
            exact(server.resources.get(name, 0)) for server in instance.servers for name in _all_resources(instance)
        ]
        room += [exact(link.bandwidth) for link in instance.links]
        self.room = tuple(math.floor(value * (1 + ALLOWANCE) * self.scale) for value in room)

    def whole(self, number: float) -> int:
        """A demand or bandwidth."""
        return int(exact(number) * self.scale)


def _all_resources(instance: GVneInstance) -> list[str]:
    return sorted(
        {name for server in instance.servers for name in server.resources}
        | {name for job in instance.jobs for name in job.demand}
    )


def simple_routes(instance: SubstrateInstance) -> dict[tuple[str, str], list[tuple[str, ...]]]:
    """All simple node paths between all pairs of nodes."""
    after: dict[str, list[str]] = {}
    for source, target in ((link.source, link.target) for link in instance.links):
        after.setdefault(source, []).append(target)
    found: dict[tuple[str, str], list[tuple[str, ...]]] = {}

    def extend(path: tuple[str, ...]) -> None:
        found.setdefault((path[0], path[-1]), []).append(path)
        for node in after.get(path[-1], ()):
            if node not in path:
                extend((*path, node))

    for server in instance.servers:
        extend((server.id,))
    return found


def _rings(
    counts: _Counts, job: Job, routes: dict[tuple[str, str], list[tuple[str, ...]]], limit: int
) -> list[tuple[Fraction, Load, Ring]]:
    """Every ring of a job that fits alone, one for each load; rings that another one beats are left out."""
    best: dict[Load, tuple[Fraction, Ring]] = {}
    width = counts.whole(job.bandwidth)
    hosts = [server.id for server in counts.instance.servers if server.resources]
    for size in range(1, len(job.utility) + 1):
        worth = exact(job.utility[size - 1])
        if worth <= 0:
            continue
        for workers in itertools.product(hosts, repeat=size):
            if workers != min(workers[a:] + workers[:a] for a in range(size)):
                continue  # the same ring, turned
            start = [0] * len(counts.room)
            for host in workers:
                for name, amount in job.demand.items():
                    start[counts.places[host, name]] += counts.whole(amount)
            if any(used > there for used, there in zip(start, counts.room, strict=True)):
                continue
            partial: dict[Load, tuple[tuple[str, ...], ...]] = {tuple(start): ()}
            edges = [(workers[a], workers[(a + 1) % size]) for a in range(size)] if size > 1 else []
            for pair in edges:
                grown: dict[Load, tuple[tuple[str, ...], ...]] = {}
                for (load, chosen), path in itertools.product(partial.items(), routes.get(pair, ())):
                    more = list(load)
                    for hop in itertools.pairwise(path):
                        more[counts.links[hop]] += width
                    if all(used <= there for used, there in zip(more, counts.room, strict=True)):
                        grown.setdefault(tuple(more), (*chosen, path))
                partial = grown
                if len(partial) > limit:
                    raise TooManyError(f"more than {limit} routings of one ring")
            for load, chosen in partial.items():
                if load not in best or worth > best[load][0]:
                    best[load] = (worth, {"workers": list(workers), "routes": [list(path) for path in chosen]})
    found = [(worth, load, ring) for load, (worth, ring) in best.items()]
    found.sort(key=lambda item: (-item[0], sum(item[1])))
    kept: list[tuple[Fraction, Load, Ring]] = []
    for item in found:
        if not any(all(a <= b for a, b in zip(other[1], item[1], strict=True)) for other in kept):
            kept.append(item)
        if len(kept) > limit:
            raise TooManyError(f"more than {limit} rings of one job")
    return kept


def ring_options(instance: GVneInstance, limit: int = 20_000) -> list[list[tuple[Fraction, Load, Ring]]]:
    """For each job its rings that fit alone and that no other one beats: worth, load, ring."""
    counts = _Counts(instance)
    routes = simple_routes(instance)
    return [_rings(counts, job, routes, limit) for job in instance.jobs]


def room(instance: GVneInstance) -> Load:
    """What there is of every server's resources and every link, in the units of the loads."""
    return _Counts(instance).room


def brute_force(instance: GVneInstance, limit: int = 20_000) -> tuple[Fraction, Solution]:
    """(optimum, a solution that has it). Raises TooManyError beyond `limit` rings or routings of a job."""
    of_jobs = zip((job.id for job in instance.jobs), ring_options(instance, limit), strict=True)
    options = sorted(((job, rings) for job, rings in of_jobs if rings), key=lambda item: -item[1][0][0])
    ahead = [Fraction(0)]
    for _, rings in reversed(options):
        ahead.append(ahead[-1] + rings[0][0])
    ahead.reverse()
    search = _Search(options, ahead)
    search.place(0, Fraction(0), room(instance), {})
    return search.value, {"rings": search.rings}


class _Search:
    """Every choice of rings, job by job, cut where even the best of the rest is no better."""

    def __init__(self, options: list[tuple[str, list[tuple[Fraction, Load, Ring]]]], ahead: list[Fraction]) -> None:
        self.options = options
        self.ahead = ahead
        self.value = Fraction(0)
        self.rings: dict[str, Ring] = {}

    def place(self, number: int, value: Fraction, left: Load, chosen: dict[str, Ring]) -> None:
        """Choose for the jobs from `number` on."""
        if value > self.value:
            self.value, self.rings = value, dict(chosen)
        if number == len(self.options) or value + self.ahead[number] <= self.value:
            return
        job, rings = self.options[number]
        for worth, load, ring in rings:
            if value + worth + self.ahead[number + 1] <= self.value:
                break
            if all(used <= there for used, there in zip(load, left, strict=True)):
                rest = tuple(there - used for used, there in zip(load, left, strict=True))
                self.place(number + 1, value + worth, rest, {**chosen, job: ring})
        self.place(number + 1, value, left, chosen)


def solve_brute_force(instance: GVneInstance, options: SolveOptions) -> Result:
    """The brute force as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    value, solution = brute_force(instance)
    number = float(value)
    return Result(Status.OPTIMAL, number, number, solution, Termination.PROVEN, solve_seconds=time.monotonic() - began)


def random_case(
    seed: int, *, shape: Literal["tree", "general"] | None = None, memory: bool | None = None
) -> GVneInstance:
    """A tiny instance that the brute force can solve: few workers, links that hold few rings."""
    return tiny(seed, shape=shape, memory=memory)
