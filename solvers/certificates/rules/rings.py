"""g-vne and ddljs: what every embedding of rings satisfies, in one time slot and over a horizon.

A ring is a closed walk through its hosts. Let y_u be its workers on node u, h_u whether there are any, f_e how often it
uses link e. Then at every node as many uses leave as enter; a set of nodes that has hosts inside and outside is left
at least once; and from any host one unit can flow to every other host over links that are used.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import within
except ImportError:  # run as a file
    from linear import within  # type: ignore[import-not-found, no-redef]

TOLERANCE = 1 + Fraction(1, 10**9)
"""Capacities hold to 1e-9 relative: 0.1 + 0.2 fits 0.3."""


def cap(instance: Mapping[str, Any], job: Mapping[str, Any], node: Mapping[str, Any], most: int) -> int:
    """Workers of the job that the node hosts alone, at most `most`; a switch hosts none."""
    if not node["resources"]:
        return 0
    for name, amount in job["demand"].items():
        if amount:
            most = min(most, int(Fraction(node["resources"].get(name, 0)) * TOLERANCE // Fraction(amount)))
    return most


def wide(job: Mapping[str, Any], link: Mapping[str, Any], most: int) -> int:
    """Ring edges of the job that the link carries alone, at most `most`."""
    if not job["bandwidth"]:
        return most
    return min(most, int(Fraction(link["bandwidth"]) * TOLERANCE // Fraction(job["bandwidth"])))


def caps(instance: Mapping[str, Any], job: Mapping[str, Any], most: int) -> list[int]:
    """:func:`cap` of every node."""
    return [cap(instance, job, node, most) for node in instance["servers"]]


def hosted(instance: Mapping[str, Any], job: Mapping[str, Any], most: int) -> list[int]:
    """Workers that each part of the network hosts alone; nodes of a part reach each other over links that are wide
    enough for a ring edge, so a ring lies in one part.
    """
    room = caps(instance, job, most)
    pairs = [pair for pair, link in zip(ends(instance), instance["links"], strict=True) if wide(job, link, 1)]
    found, left = [], set(range(len(room)))
    while left:
        node = min(left)
        part = _reached(pairs, node) & _reached([(head, tail) for tail, head in pairs], node)
        found.append(sum(room[u] for u in part))
        left -= part
    return found


def _reached(pairs: Sequence[tuple[int, int]], start: int) -> set[int]:
    """Nodes that a node reaches, itself included."""
    after: dict[int, list[int]] = {}
    for tail, head in pairs:
        after.setdefault(tail, []).append(head)
    found, todo = {start}, [start]
    while todo:
        for head in after.get(todo.pop(), ()):
            if head not in found:
                found.add(head)
                todo.append(head)
    return found


def ends(instance: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Positions of the nodes that each link joins."""
    where = {node["id"]: u for u, node in enumerate(instance["servers"])}
    return [(where[link["from"]], where[link["to"]]) for link in instance["links"]]


def add_ring(instance: Mapping[str, Any], job: Mapping[str, Any], key: str, most: int, model: Any) -> list[str]:
    """Variables and rows of one job's ring in one slot, named by `key`; the worker variables.

    ``run[key]``, ``y[key,u]``, ``h[key,u]``, ``f[key,e]``, root ``r[key,u]``, flow ``s[key,u]`` and ``g[key,e]``.
    """
    links = ends(instance)
    run = model.var(f"run[{key}]")
    room = [(u, c) for u, c in enumerate(caps(instance, job, most)) if c]
    hosts = [u for u, _ in room]
    y = {u: model.var(f"y[{key},{u}]", 0, c) for u, c in room}
    h = {u: model.var(f"h[{key},{u}]") for u in hosts}
    for u, c in room:
        model.row(f"some[{key},{u}]", [(y[u], 1), (h[u], -1)], ">=", 0)
        model.row(f"most[{key},{u}]", [(y[u], 1), (h[u], -c)], "<=", 0)
        model.row(f"host[{key},{u}]", [(h[u], 1), (run, -1)], "<=", 0)
    model.row(f"ring[{key}]", [*((v, 1) for v in y.values()), (run, -most)], "<=", 0)
    model.row(f"any[{key}]", [*((v, 1) for v in h.values()), (run, -1)], ">=", 0)
    if len(hosts) < 2:
        return list(y.values())
    f = {
        e: model.var(f"f[{key},{e}]", 0, c) for e, link in enumerate(instance["links"]) if (c := wide(job, link, most))
    }
    outgoing: dict[int, list[int]] = {u: [] for u in range(len(instance["servers"]))}
    incoming: dict[int, list[int]] = {u: [] for u in range(len(instance["servers"]))}
    for e in f:
        outgoing[links[e][0]].append(e)
        incoming[links[e][1]].append(e)
    many = len(hosts)
    r = {u: model.var(f"r[{key},{u}]") for u in hosts}
    s = {u: model.var(f"s[{key},{u}]", 0, many, whole=False) for u in hosts}
    g = {e: model.var(f"g[{key},{e}]", 0, many, whole=False) for e in f}
    model.row(f"root[{key}]", [*((v, 1) for v in r.values()), (run, -1)], "=", 0)
    for u in hosts:
        model.row(f"rooted[{key},{u}]", [(r[u], 1), (h[u], -1)], "<=", 0)
        model.row(f"sent[{key},{u}]", [(s[u], 1), (r[u], -many)], "<=", 0)
    for e in f:
        model.row(f"used[{key},{e}]", [(g[e], 1), (f[e], 1 - many)], "<=", 0)
    for u in range(len(instance["servers"])):
        away, here = outgoing[u], incoming[u]
        model.row(f"walk[{key},{u}]", [*((f[e], 1) for e in away), *((f[e], -1) for e in here)], "=", 0)
        net = [*((g[e], 1) for e in away), *((g[e], -1) for e in here)]
        model.row(f"flow[{key},{u}]", net + ([(s[u], -1), (h[u], 1)] if u in s else []), "=", 0)
    for u in hosts:
        for v in hosts:
            if u != v:
                terms = [*((f[e], 1) for e in outgoing[u]), (h[u], -1), (h[v], -1), (run, 1)]
                model.row(f"leave[{key},{u},{v}]", terms, ">=", 0)
    _across(links, f, h, run, key, model)
    return list(y.values())


def _across(links: list[tuple[int, int]], f: dict[int, str], h: dict[int, str], run: str, key: str, model: Any) -> None:
    """A link that alone leads from one part of the network to the other is used if both parts have hosts."""
    for e, (tail, head) in enumerate(links):
        others = [pair for k, pair in enumerate(links) if k != e and (pair[1], pair[0]) != (tail, head)]
        side = _reached([*others, *((b, a) for a, b in others)], tail)
        if head in side or (e in f and len(side & set(h)) == 1):
            continue
        for u in h:
            for v in h:
                if u in side and v not in side:
                    use = [(f[e], 1)] if e in f else []
                    model.row(f"across[{key},{e},{u},{v}]", [*use, (h[u], -1), (h[v], -1), (run, 1)], ">=", 0)


def add_capacities(
    instance: Mapping[str, Any], keys: list[tuple[str, Mapping[str, Any]]], slot: str, model: Any
) -> None:
    """Capacities of nodes and links over all rings of one slot."""
    for u, node in enumerate(instance["servers"]):
        for name in dict.fromkeys(n for _, job in keys for n in job["demand"]):
            terms = [
                (f"y[{key},{u}]", job["demand"].get(name, 0)) for key, job in keys if f"y[{key},{u}]" in model.index
            ]
            if any(amount for _, amount in terms):
                model.row(f"node[{slot}{u},{name}]", terms, "<=", reachable(node["resources"].get(name, 0), terms))
    for e, link in enumerate(instance["links"]):
        terms = [(f"f[{key},{e}]", job["bandwidth"]) for key, job in keys if f"f[{key},{e}]" in model.index]
        if any(amount for _, amount in terms):
            model.row(f"link[{slot}{e}]", terms, "<=", reachable(link["bandwidth"], terms))


def reachable(capacity: Any, terms: Sequence[tuple[str, Any]]) -> Fraction:
    """The largest sum within the capacity and its tolerance: sums are multiples of the terms' common divisor."""
    amounts = [Fraction(amount) for _, amount in terms if amount]
    below = math.lcm(*(amount.denominator for amount in amounts))
    unit = Fraction(math.gcd(*(int(amount * below) for amount in amounts)), below)
    return Fraction(capacity) * TOLERANCE // unit * unit


def ring_point(
    instance: Mapping[str, Any], job: Mapping[str, Any], key: str, ring: Mapping[str, Any], point: dict[str, Any]
) -> int:
    """Values of the variables of :func:`add_ring` for a ring; how many workers it has."""
    where = {node["id"]: u for u, node in enumerate(instance["servers"])}
    arcs = {pair: e for e, pair in enumerate(ends(instance))}
    hosts = [where[name] for name in ring["workers"]]
    point[f"run[{key}]"] = 1
    for u in hosts:
        point[f"y[{key},{u}]"] = point.get(f"y[{key},{u}]", 0) + 1
        point[f"h[{key},{u}]"] = 1
    if sum(c > 0 for c in caps(instance, job, 1)) < 2:
        return len(hosts)
    reached, left = {hosts[0]}, len(set(hosts))
    point[f"r[{key},{hosts[0]}]"], point[f"s[{key},{hosts[0]}]"] = 1, left
    for position, route in enumerate(ring["routes"]):
        walk = [where[name] for name in route]
        carried = left - len(reached)
        for pair in itertools.pairwise(walk):
            e = arcs[pair]
            point[f"f[{key},{e}]"] = point.get(f"f[{key},{e}]", 0) + 1
            point[f"g[{key},{e}]"] = point.get(f"g[{key},{e}]", 0) + carried
        reached.add(hosts[(position + 1) % len(hosts)])
    return len(hosts)


def slot_rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """``n[i,k]``: job i runs as a ring of k workers; the rest is in ``rings.py``."""
    model.sense = -1
    keys = []
    for i, job in enumerate(instance["jobs"]):
        sizes = [model.var(f"n[{i},{k}]", 0, 1, worth) for k, worth in enumerate(job["utility"], start=1)]
        workers = add_ring(instance, job, str(i), len(sizes), model)
        model.row(f"once[{i}]", [*((n, 1) for n in sizes), (f"run[{i}]", -1)], "=", 0)
        model.row(f"size[{i}]", [*((n, k) for k, n in enumerate(sizes, start=1)), *((y, -1) for y in workers)], "=", 0)
        keys.append((str(i), job))
    add_capacities(instance, keys, "", model)


def slot_point(instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a solution in :func:`slot_rows`."""
    found: dict[str, Any] = {}
    for i, job in enumerate(instance["jobs"]):
        ring = solution["rings"].get(job["id"])
        if ring is not None:
            found[f"n[{i},{ring_point(instance, job, str(i), ring, found)}]"] = 1
    return found


DIGITS = 60
"""Roots, logarithms and exponentials are taken to so many digits, and rounded up at the 50th."""
SMALL = Fraction(1, 10**20)
"""Below it 1 + x may need more digits than are taken; three terms of the series are more than the logarithm."""
FAR = 300
"""A sigmoid this far from its middle counts as 0 or as its scale, from above."""


def most_slots(instance: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[int, int]:
    """(largest ring, most worker-slots over the horizon) of a job."""
    ring = min(job["max_workers"], max(hosted(instance, job, job["max_workers"])))
    most = ring * (instance["horizon"] - job["arrival"] + 1)
    for name, limit in job["budget"].items():
        amount = job["demand"].get(name, 0)
        if amount:
            most = min(most, int(Fraction(limit) * TOLERANCE // Fraction(amount)))
    return ring, most


def worth(job: Mapping[str, Any], slots: int) -> Fraction:
    """mu of so many worker-slots, exact where it is rational, else above it by less than 1e-45 of its size."""
    shape = job["utility"]
    x = Fraction(job["efficiency"]) * slots
    scale = Fraction(shape["scale"])
    if shape["kind"] == "linear":
        return scale * x
    if shape["kind"] == "energy":
        return -scale * x * x
    with decimal.localcontext(decimal.Context(prec=DIGITS)):
        if shape["kind"] == "sqrt":
            root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
            if root * root == x:
                return scale * root
            value = _decimal(x).sqrt()
        elif shape["kind"] == "log1p":
            if x < SMALL:
                return scale * (x - x * x / 2 + x**3 / 3)
            value = _decimal(1 + x).ln()
        elif shape["kind"] == "log":
            value = _decimal(max(x, Fraction(shape["least"]))).ln()
        else:
            z = Fraction(shape["steepness"]) * (x - Fraction(shape["midpoint"]))
            if abs(z) > FAR:
                return scale if z > 0 else scale * Fraction(1, 10**130)
            value = 1 / (1 + _decimal(-z).exp())
    return scale * _up(Fraction(value))


def _decimal(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def _up(value: Fraction) -> Fraction:
    """A little above `value`, by less than 1e-49 relative, with a short numerator; 0 stays 0."""
    if not value:
        return value
    large = abs(value)
    digits = len(str(int(large))) if large >= 1 else 1 - len(str(int(1 / large)))
    unit = Fraction(10) ** (digits - 50)
    return (value // unit + 2) * unit


def horizon_rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """``m[i,x]``: job i has at least x worker-slots; rings of slot t have the key ``i,t``."""
    model.sense = -1
    within(len(instance["jobs"]) * instance["horizon"])
    keys: dict[int, list[tuple[str, Mapping[str, Any]]]] = {t: [] for t in range(1, instance["horizon"] + 1)}
    for i, job in enumerate(instance["jobs"]):
        ring, most = most_slots(instance, job)
        within(most)
        values = [worth(job, x) for x in range(most + 1)]
        model.constant -= values[0]
        filled = [model.var(f"m[{i},{x}]", 0, 1, values[x] - values[x - 1]) for x in range(1, most + 1)]
        for x in range(1, most):
            model.row(f"order[{i},{x}]", [(filled[x - 1], 1), (filled[x], -1)], ">=", 0)
        workers: list[str] = []
        if ring:
            for t in range(job["arrival"], instance["horizon"] + 1):
                workers += add_ring(instance, job, f"{i},{t}", ring, model)
                keys[t].append((f"{i},{t}", job))
        model.row(f"total[{i}]", [*((m, 1) for m in filled), *((y, -1) for y in workers)], "=", 0)
    for t, rings in keys.items():
        add_capacities(instance, rings, f"{t},", model)


def horizon_point(
    instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The point of a solution in :func:`horizon_rows`."""
    found: dict[str, Any] = {}
    for i, job in enumerate(instance["jobs"]):
        total = 0
        for t, entry in enumerate(solution["slots"], start=1):
            ring = entry["rings"].get(job["id"])
            if ring is not None:
                total += ring_point(instance, job, f"{i},{t}", ring, found)
        found.update({f"m[{i},{x}]": 1 for x in range(1, total + 1)})
    return found


def rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``rows`` of both problems."""
    (slot_rows if instance["problem"] == "g-vne" else horizon_rows)(instance, options, model)


def point(instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a solution in :func:`rows`."""
    return (slot_point if instance["problem"] == "g-vne" else horizon_point)(instance, solution, options)
