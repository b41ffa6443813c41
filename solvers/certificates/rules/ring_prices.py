"""g-vne and ddljs at any size: prices on nodes and links; and the rules of ``rings.py``.

With prices p >= 0 on what is scarce, no solution is worth more than the prices of all that there is, and for every job
the most that its utility can exceed the prices of what it takes. Every price is valid, whoever found it. Prices are
whole numbers n for n / 2^40.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.rules.rings import caps, ends, most_slots, point, reachable, rows, wide, worth
except ImportError:  # the checker runs as a file
    from rules.rings import (  # type: ignore[import-not-found, no-redef]
        caps,
        ends,
        most_slots,
        point,
        reachable,
        rows,
        wide,
        worth,
    )

GRID = 2**40
INFINITE = float("inf")


def prices(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``prices``: a leaf is what :func:`slot_prices` (g-vne) or :func:`block_prices` (ddljs) takes."""
    bound = slot_prices if instance["problem"] == "g-vne" else block_prices
    model.sense = -1
    model.price = lambda given, box: -bound(instance, given)
    if bound is slot_prices:  # what a schedule is worth is a sum of such utilities, so a bound between two sums falls
        model.in_steps(value for job in instance["jobs"] for value in job["utility"])


def _whole(values: Any) -> None:
    if not all(isinstance(p, int) and not isinstance(p, bool) and p >= 0 for p in values):
        raise ValueError("prices and slots must be whole numbers from 0")


def slot_prices(instance: Mapping[str, Any], given: Mapping[str, Any]) -> Fraction:
    """``{"nodes": {position: {resource: price}}, "links": {position: price}, "linked": true}``: capacities at their
    prices, and for every job the utility of its best ring less what it takes. On networks with cycles that are not
    ``linked``, rings are sets of workers wherever they are: faster, and at least as much.
    """
    linked = given["linked"]
    servers, jobs = instance["servers"], instance["jobs"]
    node = [given["nodes"].get(str(u), {}) for u in range(len(servers))]
    link = [given["links"].get(str(e), 0) for e in range(len(instance["links"]))]
    _whole([*link, *(p for line in node for p in line.values())])
    total = Fraction(0)
    for server, line in zip(servers, node, strict=True):
        for name, price in line.items():
            amounts = [("", job["demand"].get(name, 0)) for job in jobs]
            if any(amount for _, amount in amounts):
                total += price * reachable(server["resources"].get(name, 0), amounts)
    for place, price in zip(instance["links"], link, strict=True):
        amounts = [("", job["bandwidth"]) for job in jobs]
        if price and any(amount for _, amount in amounts):
            total += price * reachable(place["bandwidth"], amounts)
    tree = forest(instance)
    for job in jobs:
        most = len(job["utility"])
        room = caps(instance, job, most)
        width = Fraction(job["bandwidth"])
        demand = {name: Fraction(amount) for name, amount in job["demand"].items()}
        unit = math.lcm(width.denominator, *(amount.denominator for amount in demand.values()))
        each = [int(unit * sum(d * line.get(name, 0) for name, d in demand.items())) for line in node]
        open_ = [wide(job, place, 1) > 0 for place in instance["links"]]
        worths = [Fraction(value) * GRID * unit for value in job["utility"]]
        if tree is None and linked:
            over = [int(width * unit) * p if o else INFINITE for p, o in zip(link, open_, strict=True)]
            best = _best_walk(instance, room, each, over, worths)
        else:
            if tree is None:
                workers = sorted(cost for cost, n in zip(each, room, strict=True) for _ in range(n))[:most]
                costs: list[Any] = list(itertools.accumulate(workers, initial=0))
            else:
                between = [
                    int(width * unit) * (link[up] + link[down])
                    if up >= 0 and down >= 0 and open_[up] and open_[down] else INFINITE for _, up, down in tree[1]
                ]  # fmt: skip
                costs = _on_tree(tree, room, each, between, most)
            best = max(w - cost for w, cost in zip([Fraction(0), *worths], costs, strict=False) if cost != INFINITE)
        total += max(Fraction(0), best) / unit
    return total / GRID


Tree = tuple[list[int], list[tuple[int, int, int]]]


def forest(instance: Mapping[str, Any]) -> Tree | None:
    """(nodes, parents first; by node its parent, the link up and the link down, -1 for none); None where the links,
    directions aside, form a cycle.
    """
    near: list[dict[int, list[int]]] = [{} for _ in instance["servers"]]
    for e, (tail, head) in enumerate(ends(instance)):
        near[tail].setdefault(head, [-1, -1])[0] = e
        near[head].setdefault(tail, [-1, -1])[1] = e
    order: list[int] = []
    above = [(-1, -1, -1)] * len(near)
    seen: set[int] = set()
    for root in range(len(near)):
        todo = [] if root in seen else [root]
        seen.add(root)
        while todo:
            v = todo.pop()
            order.append(v)
            for u, (out, back) in near[v].items():
                if u == above[v][0]:
                    continue
                if u in seen:
                    return None
                seen.add(u)
                above[u] = (v, back, out)
                todo.append(u)
    return order, above


def _on_tree(tree: Tree, room: Sequence[int], each: Sequence[int], between: Sequence[Any], most: int) -> list[Any]:
    """Least cost of a ring by number of workers: it uses a link of a tree both ways if it has workers on both
    sides, and no more is needed.

    ``table[v][m]``: m workers below v, its own included, the others elsewhere; links above v are not counted.
    """
    order, above = tree
    table = [[m * each[v] for m in range(min(room[v], most) + 1)] for v in range(len(order))]
    costs: list[Any] = [0, *[INFINITE] * most]
    for v in reversed(order):
        mine, (parent, _, _) = table[v], above[v]
        for m in range(1, len(mine)):
            costs[m] = min(costs[m], mine[m])
        if parent < 0 or between[v] == INFINITE or len(mine) == 1:
            continue
        theirs = table[parent]
        merged: list[Any] = theirs + [INFINITE] * min(len(mine) - 1, most + 1 - len(theirs))
        for n in range(1, len(mine)):
            extra = mine[n] + between[v]
            for m in range(min(len(theirs), len(merged) - n)):
                merged[m + n] = min(merged[m + n], theirs[m] + extra)
        table[parent] = merged
    return costs


def _best_walk(
    instance: Mapping[str, Any], room: Sequence[int], each: Sequence[int], over: Sequence[Any], worths: list[Fraction]
) -> Fraction:
    """At least the most that a ring is worth above its cost, on any network.

    A ring is a closed walk over hosts by shortest paths from its first host. It may come back to a host, so that it
    has more workers than there is room for; hosts that the best walk overfills are remembered from then on, up to
    `MOST` of a root.
    """
    hosts = [u for u, n in enumerate(room) if n]
    out: list[list[tuple[int, Any]]] = [[] for _ in room]
    for (tail, head), cost in zip(ends(instance), over, strict=True):
        if cost != INFINITE:
            out[tail].append((head, cost))
    apart = [[distance.get(v, INFINITE) for v in hosts] for distance in (_distances(out, u) for u in hosts)]
    places, prices_ = [room[u] for u in hosts], [each[u] for u in hosts]

    def solve(root: int) -> tuple[Fraction, int, Any]:
        found = _closed(root, apart, places, prices_, len(worths), critical[root])
        values = [(worth_ - cost, trail) for worth_, (cost, trail) in zip(worths, found, strict=True) if trail]
        value, trail = max(values, key=lambda pair: pair[0], default=(Fraction(0), ()))
        return -value, root, trail

    critical: list[list[int]] = [[] for _ in hosts]
    heap = [solve(root) for root in range(len(hosts))]
    heapq.heapify(heap)
    while heap:
        value, root, trail = heap[0]
        held: dict[int, int] = {}
        while trail:
            s, n, trail = trail
            held[s] = held.get(s, 0) + n
        full = [s for s, n in held.items() if n > places[s]]
        if value >= 0 or not full or len(critical[root]) + len(full) > MOST:
            return -value
        critical[root] += full
        heapq.heapreplace(heap, solve(root))
    return Fraction(0)


MOST = 12


def _closed(
    root: int, apart: list[list[Any]], room: list[int], each: list[int], most: int, critical: list[int]
) -> list[tuple[Any, Any]]:
    """Least costs, for 1 worker and more, of a walk from `root` over later hosts and back, and the walk as
    (last host, workers, walk before); `critical` hosts are visited once. () where there is none.
    """
    bit = {s: 1 << k for k, s in enumerate(critical)}
    layers: list[dict[tuple[int, int], tuple[Any, Any]]] = [{} for _ in range(most + 1)]
    for n in range(1, min(room[root], most) + 1):
        layers[n][root, bit.get(root, 0)] = (n * each[root], (root, n, ()))
    found: list[tuple[Any, Any]] = []
    for m in range(1, most + 1):
        best: tuple[Any, Any] = (INFINITE, ())
        arrive: dict[tuple[int, int], tuple[Any, Any]] = {}
        for (s, mask), (cost, trail) in layers[m].items():
            if cost + apart[s][root] < best[0]:
                best = cost + apart[s][root], trail
            for t in range(root + 1, len(room)):
                seen = bit.get(t, 0)
                if t == s or mask & seen:
                    continue
                step, key = cost + apart[s][t], (t, mask | seen)
                if step != INFINITE and (key not in arrive or step < arrive[key][0]):
                    arrive[key] = step, trail
        found.append(best)
        for (t, mask), (cost, trail) in arrive.items():
            for n in range(1, min(room[t], most - m) + 1):
                known = layers[m + n].get((t, mask))
                if known is None or cost + n * each[t] < known[0]:
                    layers[m + n][t, mask] = cost + n * each[t], (t, n, trail)
    return found


def _distances(out: Sequence[Sequence[tuple[int, Any]]], source: int) -> dict[int, Any]:
    """Least costs from a node to all that it reaches."""
    found: dict[int, Any] = {}
    heap: list[tuple[Any, int]] = [(0, source)]
    while heap:
        far, v = heapq.heappop(heap)
        if v not in found:
            found[v] = far
            for u, cost in out[v]:
                heapq.heappush(heap, (far + cost, u))
    return found


def block_prices(instance: Mapping[str, Any], given: Mapping[str, Any]) -> Fraction:
    """``{"ends": last slots of blocks, "classes": class of every node, "prices": [by block [by class {resource:
    price}]]}``: capacities at their prices, and for every job the most that mu(X) is above the least cost of X
    worker-slots. In a slot it has no more of a class than its nodes host alone, and no more than its largest ring.
    """
    last, classes, price = given["ends"], given["classes"], given["prices"]
    _whole(last)
    lengths = [b - a for a, b in itertools.pairwise([0, *last])]
    if min(lengths) < 1 or last[-1] != instance["horizon"] or len(price) != len(last):
        raise ValueError("blocks must rise to the horizon")
    if len(classes) != len(instance["servers"]) or any(len(line) != len(price[0]) for line in price):
        raise ValueError("every node must have a class, every class prices")
    _whole(p for line in price for group in line for p in group.values())
    total = Fraction(0)
    for name in {name for line in price for group in line for name in group}:
        amounts = [("", job["demand"].get(name, 0)) for job in instance["jobs"]]
        there = [Fraction(0)] * len(price[0])
        for server, c in zip(instance["servers"], classes, strict=True):
            if 0 <= c < len(there) and any(amount for _, amount in amounts):
                there[c] += reachable(server["resources"].get(name, 0), amounts)
        for length, line in zip(lengths, price, strict=True):
            total += length * sum(group.get(name, 0) * n for group, n in zip(line, there, strict=True))
    for job in instance["jobs"]:
        ring, most = most_slots(instance, job)
        workers = [0] * (len(price[0]) + 1)  # the last: nodes without a class, whose prices are 0
        for n, c in zip(caps(instance, job, ring), classes, strict=True):
            workers[c if 0 <= c < len(price[0]) else -1] += n
        demand = {name: Fraction(amount) for name, amount in job["demand"].items() if amount}
        pieces: dict[Fraction, int] = {}
        begin = 0
        for end, line in zip(last, price, strict=True):
            slots, left, begin = end - max(begin, job["arrival"] - 1), ring, end
            unit = [sum((d * group.get(name, 0) for name, d in demand.items()), Fraction(0)) for group in [*line, {}]]
            for cost, n in sorted(zip(unit, workers, strict=True)):
                taken, left = min(n, left), left - min(n, left)
                if slots > 0 and taken:
                    pieces[cost] = pieces.get(cost, 0) + taken * slots
        total += _payoff(job, sorted(pieces.items()), most)
    return total / GRID


def _payoff(job: Mapping[str, Any], pieces: Sequence[tuple[Fraction, int]], most: int) -> Fraction:
    """max over X up to `most` of mu(X) less the cost of the cheapest X worker-slots; halved where it may be more.

    mu and the cost do not fall: over a < X <= b no value is above mu(b) less the cost of a + 1.
    """
    known: dict[int, tuple[Fraction, Fraction]] = {}

    def at(x: int) -> tuple[Fraction, Fraction]:
        if x not in known:
            left, cost = x, Fraction(0)
            for price, amount in pieces:
                taken = min(left, amount)
                left, cost = left - taken, cost + taken * price
                if not left:
                    break
            known[x] = worth(job, x) * GRID, cost
        return known[x]

    def value(x: int) -> Fraction:
        return at(x)[0] - at(x)[1]

    most = min(most, sum(amount for _, amount in pieces))
    best = max(value(0), value(most))
    todo = [(value(0) - at(most)[0], 0, most)] if most else []
    while todo:
        _, a, b = heapq.heappop(todo)
        top = at(b)[0] - at(a + 1)[1]
        if top <= best or b - a == 1:
            continue
        middle = (a + b) // 2
        best = max(best, value(middle))
        for low, high in ((a, middle), (middle, b)):
            heapq.heappush(todo, (at(low + 1)[1] - at(high)[0], low, high))
    return best


FORMS = {"rows": rows, "prices": prices}
__all__ = ["FORMS", "point"]
