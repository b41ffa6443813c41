"""The independent checker of rings in one time slot, for g-vne and ddljs: exact rationals, no code of any model."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.common.substrate import Ring, RingJob, SubstrateInstance


def check_rings(
    instance: SubstrateInstance, jobs: Sequence[RingJob], rings: Mapping[str, Ring], place: str = ""
) -> tuple[list[Violation], dict[str, Json]]:
    """Violations of routes and capacities by the rings of one time slot, and what was recomputed.

    Parameters
    ----------
    instance : the network
    jobs : the jobs whose rings these are
    rings : by job
    place : put before every message, such as ``"slot 3, "``
    """
    violations: list[Violation] = []
    bandwidth = {(link.source, link.target): exact(link.bandwidth) for link in instance.links}
    on_server: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    on_link: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    switches = {server.id for server in instance.servers if not server.resources}
    for job in jobs:
        ring = rings.get(job.id)
        if ring is None:
            continue
        for host in ring.workers:
            for name, amount in job.demand.items():
                on_server[host, name] += exact(amount)
        for host in sorted(switches.intersection(ring.workers)):
            violations.append(Violation("switch", f"{place}job {job.id}: {host} has no resources, it hosts no worker"))
        violations.extend(_routes(job.id, ring, bandwidth.keys(), place))
        for route in ring.routes:
            for pair in itertools.pairwise(route):
                on_link[pair] += exact(job.bandwidth)
    capacity = {(server.id, name): exact(x) for server in instance.servers for name, x in server.resources.items()}
    there = {key: capacity.get(key, Fraction(0)) for key in on_server}
    known = {pair: used for pair, used in on_link.items() if pair in bandwidth}  # others are reported with the route
    details = {
        "workers": {name: len(ring.workers) for name, ring in rings.items()},
        "server_use": _used("server capacity", f"{place}server {{}}, {{}}", on_server, there, violations),
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
        there = capacity[key]
        if there:
            largest = max(largest, float(used / there))
        if used > there * (1 + CHECK_TOLERANCE):
            text = f"{where.format(*key)}: {float(used):.10g} used, {float(there):.10g} there"
            violations.append(Violation(rule, text, float(used - there)))
    return largest


def _routes(job: str, ring: Ring, links: Any, place: str) -> list[Violation]:
    """What is wrong with the routes of one ring."""
    size = len(ring.workers)
    wanted = size if size > 1 else 0
    if len(ring.routes) != wanted:
        return [
            Violation(
                "routes",
                f"{place}job {job}: {len(ring.routes)} routes, a ring of {size} has {wanted} edges",
                float(abs(len(ring.routes) - wanted)),
            )
        ]
    found: list[Violation] = []
    for number, route in enumerate(ring.routes):
        where = f"{place}job {job}, route {number}"
        start, end = ring.workers[number], ring.workers[(number + 1) % size]
        if (route[0], route[-1]) != (start, end):
            found.append(
                Violation("route ends", f"{where}: goes from {route[0]} to {route[-1]}, not from {start} to {end}")
            )
        for pair in itertools.pairwise(route):
            if pair not in links:
                found.append(Violation("missing link", f"{where}: there is no link {pair[0]} -> {pair[1]}"))
        repeated = sorted({node for node in route if route.count(node) > 1})
        if repeated:
            found.append(Violation("simple route", f"{where}: visits {', '.join(repeated)} more than once"))
    return found


def known_rings(instance: SubstrateInstance, jobs: Collection[str], rings: Mapping[str, Ring], place: str = "") -> None:
    """Refuse a job or a node that the instance does not have.

    Parameters
    ----------
    jobs : ids of the instance's jobs
    place : put before the path, such as ``"slots[3]."``

    Raises
    ------
    InputError
        It names the first such.
    """
    known_only(rings, jobs, f"{place}rings")
    nodes = {server.id for server in instance.servers}
    for job, ring in rings.items():
        if not nodes.issuperset(itertools.chain(ring.workers, *ring.routes)):
            known_only(ring.workers, nodes, f"{place}rings.{job}.workers", "server")
            for number, route in enumerate(ring.routes):
                known_only(route, nodes, f"{place}rings.{job}.routes[{number}]", "server")
