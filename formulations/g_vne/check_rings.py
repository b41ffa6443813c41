"""The independent checker of rings in one time slot, for g-vne and ddljs: exact rationals, no code of any model.

Rings that may overload servers and links are measured instead: each load against the factor that Theorem 8 of paper 004
allows.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.g_vne.substrate import Ring, RingJob, SubstrateInstance

CAPACITIES = ("server capacity", "link capacity")

Loads = dict[tuple[str, str], Fraction]
"""Loads per (server, resource), or per link as its two ends."""


def _loads(jobs: Sequence[RingJob], rings: Mapping[str, Ring]) -> tuple[Loads, Loads]:
    """What the rings of these jobs, of which each has one, take of servers and of links."""
    on_server: Loads = defaultdict(Fraction)
    on_link: Loads = defaultdict(Fraction)
    for job in jobs:
        ring = rings[job.id]
        for host in ring.workers:
            for name, amount in job.demand.items():
                on_server[host, name] += exact(amount)
        for route in ring.routes:
            for pair in itertools.pairwise(route):
                on_link[pair] += exact(job.bandwidth)
    return on_server, on_link


def check_rings(
    instance: SubstrateInstance, jobs: Sequence[RingJob], rings: Mapping[str, Ring], place: str = ""
) -> tuple[list[Violation], dict[str, Json]]:
    """Violations of routes and capacities by the rings of one time slot, and what was recomputed.

    Parameters
    ----------
    instance : the network
    jobs : the jobs whose rings these are
    rings : rings of each job
    place : put before every message, such as ``"slot 3, "``
    """
    violations: list[Violation] = []
    bandwidth = {(link.source, link.target): exact(link.bandwidth) for link in instance.links}
    own = [job for job in jobs if job.id in rings]
    on_server, on_link = _loads(own, rings)
    switches = {server.id for server in instance.servers if not server.resources}
    for job in own:
        ring = rings[job.id]
        for host in sorted(switches.intersection(ring.workers)):
            violations.append(Violation("switch", f"{place}job {job.id}: {host} has no resources, it hosts no worker"))
        violations.extend(_routes(job.id, ring, bandwidth.keys(), place))
    capacity = {(server.id, name): exact(x) for server in instance.servers for name, x in server.resources.items()}
    capacities = {key: capacity.get(key, Fraction(0)) for key in on_server}
    known = {pair: used for pair, used in on_link.items() if pair in bandwidth}  # others are reported with the route
    details = {
        "workers": {name: len(ring.workers) for name, ring in rings.items()},
        "server_use": _used("server capacity", f"{place}server {{}}, {{}}", on_server, capacities, violations),
        "link_use": _used("link capacity", f"{place}link {{}} -> {{}}", known, bandwidth, violations),
    }
    return violations, details


def _used(
    rule: str,
    where: str,
    loads: Mapping[tuple[str, str], Fraction],
    capacity: Mapping[tuple[str, str], Fraction],
    violations: list[Violation],
) -> float:
    """Append violations of (18) or (19); the largest share of a capacity that is used."""
    largest = 0.0
    for key, used in loads.items():
        limit = capacity[key]
        if limit:
            largest = max(largest, float(used / limit))
        if used > limit * (1 + CHECK_TOLERANCE):
            text = f"{where.format(*key)}: {float(used):.10g} used, {float(limit):.10g} there"
            violations.append(Violation(rule, text, float(used - limit)))
    return largest


def _routes(job: str, ring: Ring, links: Any, place: str) -> list[Violation]:
    """What is wrong with the routes of one ring."""
    size = len(ring.workers)
    wanted = size if size > 1 else 0
    if len(ring.routes) != wanted:
        text = f"{place}job {job}: {len(ring.routes)} routes, a ring of {size} has {wanted} edges"
        return [Violation("routes", text, float(abs(len(ring.routes) - wanted)))]
    found: list[Violation] = []
    for number, route in enumerate(ring.routes):
        where = f"{place}job {job}, route {number}"
        start, end = ring.workers[number], ring.workers[(number + 1) % size]
        if (route[0], route[-1]) != (start, end):
            text = f"{where}: goes from {route[0]} to {route[-1]}, not from {start} to {end}"
            found.append(Violation("route ends", text))
        for pair in itertools.pairwise(route):
            if pair not in links:
                found.append(Violation("missing link", f"{where}: there is no link {pair[0]} -> {pair[1]}"))
        repeated = sorted(node for node, times in Counter(route).items() if times > 1)
        if repeated:
            found.append(Violation("simple route", f"{where}: visits {', '.join(repeated)} more than once"))
    return found


def known_rings(instance: SubstrateInstance, jobs: Collection[str], rings: Mapping[str, Ring], place: str = "") -> None:
    """Refuse a job or a node that the instance does not have.

    Raises InputError: it names the first such.

    Parameters
    ----------
    jobs : ids of the instance's jobs
    place : put before the path, such as ``"slots[3]."``
    """
    known_only(rings, jobs, f"{place}rings")
    nodes = {server.id for server in instance.servers}
    for job, ring in rings.items():
        if not nodes.issuperset(itertools.chain(ring.workers, *ring.routes)):
            known_only(ring.workers, nodes, f"{place}rings.{job}.workers", "server")
            for number, route in enumerate(ring.routes):
                known_only(route, nodes, f"{place}rings.{job}.routes[{number}]", "server")


@dataclass(frozen=True)
class Overload:
    """One load above a capacity."""

    where: str  # "server s0, gpu" or "link a -> b"
    # used, capacity: the load and the capacity
    used: Fraction
    capacity: Fraction
    # beta or gamma of the rings that are embedded. Algorithm 2 computes it from the sizes of all selected rings, those
    # it did not embed as well, so its own is at least as large
    factor: float

    @property
    def within(self) -> bool:
        """Whether the factor allows the load."""
        return float(self.used) < self.factor * float(self.capacity) * (1 + 1e-9)

    def __str__(self) -> str:
        share = f"{float(self.used / self.capacity):.4g} times" if self.capacity else "infinitely many times"
        beyond = "" if self.within else ", beyond it"
        return f"{self.where}: {float(self.used):.10g} used, {share} what is there, factor {self.factor:.4g}{beyond}"


def overloads(
    instance: SubstrateInstance, jobs: Sequence[RingJob], rings: Mapping[str, Ring], place: str = ""
) -> list[Overload]:
    """Every server's resource and every link that these rings load beyond its capacity.

    Parameters
    ----------
    instance : the network
    jobs : jobs that may be in `rings`
    rings : rings of each job in one time slot
    place : put before every place, such as ``"slot 3, "``

    Notes
    -----
    O(size of the rings + jobs * (servers * resources + links)).
    """
    own = [job for job in jobs if job.id in rings]
    size = {job.id: len(rings[job.id].workers) for job in own}
    on_server, on_link = _loads(own, rings)
    capacity = {(server.id, name): exact(x) for server in instance.servers for name, x in server.resources.items()}
    bandwidth = {(link.source, link.target): exact(link.bandwidth) for link in instance.links}
    found = []
    for (host, name), used in on_server.items():
        limit = capacity.get((host, name), Fraction(0))
        if used > limit * (1 + CHECK_TOLERANCE):
            found.append(Overload(f"{place}server {host}, {name}", used, limit, _beta(instance, own, size, name)))
    for pair, used in on_link.items():
        limit = bandwidth.get(pair, Fraction(0))
        if used > limit * (1 + CHECK_TOLERANCE):
            found.append(Overload(f"{place}link {pair[0]} -> {pair[1]}", used, limit, _gamma(instance, own, size)))
    return found


def _beta(instance: SubstrateInstance, jobs: Sequence[RingJob], size: Mapping[str, int], name: str) -> float:
    """1 + epsilon sqrt(2 Delta log V) of a resource, over servers and the jobs of which a worker fits there."""
    shares = [
        [
            (job.demand[name] / server.resources[name], size[job.id])
            for job in jobs
            if job.demand.get(name, 0.0) > 0
            and all(amount <= server.resources.get(other, 0.0) for other, amount in job.demand.items())
        ]
        for server in instance.servers
    ]
    return _factor(shares)


def _gamma(instance: SubstrateInstance, jobs: Sequence[RingJob], size: Mapping[str, int]) -> float:
    """The same over links and the jobs with rings of two or more workers that they are wide enough for."""
    rings = [(job.bandwidth, size[job.id]) for job in jobs if size[job.id] > 1 and job.bandwidth > 0]
    return _factor(
        [[(one / link.bandwidth, n) for one, n in rings if one <= link.bandwidth] for link in instance.links]
    )


def _factor(shares: Sequence[Sequence[tuple[float, int]]]) -> float:
    """From what each job that fits takes of each place, and the size of its ring."""
    largest = max((share for fits in shares for share, _ in fits), default=0.0)
    spread = max((float(sum(workers**2 for _, workers in fits)) for fits in shares), default=0.0)
    return 1 + largest * math.sqrt(2 * spread * math.log(max(1, len(shares))))


def loads_measured(report: CheckReport, loads: Sequence[Overload]) -> CheckReport:
    """The report without violations of capacities: what is asked of them is in its details instead."""
    kept = tuple(violation for violation in report.violations if violation.constraint not in CAPACITIES)
    measured = {"overloaded": [str(load) for load in loads], "beyond": sum(not load.within for load in loads)}
    return CheckReport(kept, report.objective, {**report.details, **measured})
