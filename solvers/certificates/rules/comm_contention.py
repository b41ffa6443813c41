"""comm-contention: transfers on one link, in continuous time, by the order of their starts and completions.

With k transfers active each moves 1 / w_k units per second, w_k = k b + (k - 1) eta. The latency only shifts releases.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.rules.comm_orders import GRID, KINDS, Orders
except ImportError:  # the checker runs as a file
    from rules.comm_orders import GRID, KINDS, Orders  # type: ignore[import-not-found, no-redef]


def link(instance: Mapping[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    """(latency, b, eta)."""
    given = instance["link"]
    latency, eta = given.get("latency", 0), given.get("contention_penalty", 0)
    return Fraction(latency), Fraction(given["seconds_per_unit"]), Fraction(eta)


def srpt(instance: Mapping[str, Any]) -> Fraction:
    """The least sum of completion times, from time 0, of a machine that may pause and moves 1 / b units per second.

    k active transfers together move k / w_k <= 1 / b, so it can do whatever the link does; shortest remaining
    processing time first is best for it (Schrage 1968).
    """
    _, b, _ = link(instance)
    coming = sorted((Fraction(task["release"]), b * Fraction(task["size"])) for task in instance["tasks"])
    waiting: list[Fraction] = []
    now = total = Fraction(0)
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            heapq.heappush(waiting, coming.pop(0)[1])
        if not coming or now + waiting[0] <= coming[0][0]:
            now += heapq.heappop(waiting)
            total += now
        else:
            heapq.heapreplace(waiting, waiting[0] - (coming[0][0] - now))
            now = coming[0][0]
    return total


def constant(instance: Mapping[str, Any]) -> Fraction:
    """What the mean flow time has beside the mean of the completion times without latency."""
    latency, _, _ = link(instance)
    tasks = instance["tasks"]
    return latency - sum((Fraction(task["release"]) for task in tasks), Fraction(0)) / len(tasks)


def alone(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``srpt``: no rows; a leaf is ``{}``, its bound :func:`srpt`."""
    value = srpt(instance) / len(instance["tasks"]) + constant(instance)
    model.price = lambda given, box: value


def orders(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``orders``: which event comes next, see ``comm_orders.py``; a leaf is ``{}``."""
    found, n, fixed = orders_of(instance), len(instance["tasks"]), constant(instance)
    names = [model.var(f"event[{p}]", 0, KINDS * n - 1) for p in range(2 * n)]

    def bound(given: Any, box: Mapping[str, tuple[int, int]]) -> Fraction | None:
        if given != {}:
            raise ValueError("a leaf is {}")
        events, low, high = [], 0, KINDS * n - 1
        for name in names:
            low, high = box.get(name, (0, KINDS * n - 1))
            if low < high:
                break
            events.append(low)
        before = found.after(events)
        value = None if before is None else found.least(before, low, high)
        return None if value is None else Fraction(value, GRID * n) + fixed

    model.price = bound


def orders_of(instance: Mapping[str, Any]) -> Orders:
    """The sets of sequences of an instance."""
    tasks, (_, b, eta) = instance["tasks"], link(instance)
    return Orders([Fraction(t["size"]) for t in tasks], [Fraction(t["release"]) for t in tasks], b, eta)


def rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The 2 n starts and completions take positions 0, ..., 2 n - 1; gap p is the time before position p.

    Whole, 0/1: ``S[i,p]``, ``E[i,p]`` start and end of task i at position p; ``K[p,k]`` k are active in gap p. Real:
    ``d[p,k]`` the length of gap p if k are active in it, else 0; ``y[i,p]`` what task i moves in gap p. Before position
    p with k active, (p - k) / 2 have ended, and each of the others pays for the gap. An idle gap need be no longer than
    from the first to the last release: what comes after all releases can be moved forward.
    """
    tasks = instance["tasks"]
    n, (_, b, eta) = len(tasks), link(instance)
    events = range(2 * n)
    size = [Fraction(task["size"]) for task in tasks]
    first = min(Fraction(task["release"]) for task in tasks)
    release = [Fraction(task["release"]) - first for task in tasks]
    largest = max(size)
    model.constant = constant(instance) + first
    for i in range(n):
        for kind in "SE":
            every = [(model.var(f"{kind}[{i},{p}]"), 1) for p in events]
            model.row(f"once{kind}[{i}]", every, "=", 1)

    def active(i: int, p: int, factor: Any = 1) -> list[tuple[str, Any]]:
        return [(f"{kind}[{i},{q}]", sign * factor) for q in range(p) for kind, sign in (("S", 1), ("E", -1))]

    gaps: dict[int, list[tuple[str, int]]] = {}
    for p in events:
        model.row(f"one[{p}]", [(f"{kind}[{i},{p}]", 1) for i in range(n) for kind in "SE"], "=", 1)
        gaps[p] = []
        counts = [k for k in range(min(p, 2 * n - p) + 1) if (p - k) % 2 == 0]
        for k in counts:
            pace = k * b + (k - 1) * eta
            longest = largest * pace if k else max(release)
            model.var(f"K[{p},{k}]")
            d = model.var(f"d[{p},{k}]", 0, longest, Fraction(n - (p - k) // 2, n), whole=False)
            gaps[p].append((d, k))
            model.row(f"gap[{p},{k}]", [(d, 1), (f"K[{p},{k}]", -longest)], "<=", 0)
        model.row(f"count[{p}]", [(f"K[{p},{k}]", 1) for k in counts], "=", 1)
        on = [term for i in range(n) for term in active(i, p)]
        model.row(f"number[{p}]", [*on, *((f"K[{p},{k}]", -k) for k in counts)], "=", 0)
        before = [(d, 1) for q in range(p + 1) for d, _ in gaps[q]]
        for i in range(n):
            model.row(f"ends[{i},{p}]", [*active(i, p), (f"E[{i},{p}]", -1)], ">=", 0)
        starts = [(f"S[{i},{p}]", -release[i]) for i in range(n)]
        model.row(f"released[{p}]", [*before, *starts], ">=", 0)
    for p in events[1:]:
        each = [(d, -1 / (k * b + (k - 1) * eta)) for d, k in gaps[p] if k]
        for i in range(n):
            y = model.var(f"y[{i},{p}]", 0, size[i], whole=False)
            model.row(f"moves[{i},{p}]", [(y, 1), *active(i, p, -size[i])], "<=", 0)
            model.row(f"pace[{i},{p}]", [(y, 1), *each], "<=", 0)
            model.row(f"full[{i},{p}]", [(y, 1), *each, *active(i, p, -largest)], ">=", -largest)
        model.row(
            f"moved[{p}]",
            [
                *((f"y[{i},{p}]", 1) for i in range(n)),
                *((d, k * each_) for (d, each_), k in zip(each, [k for _, k in gaps[p] if k], strict=True)),
            ],
            "=",
            0,
        )
    for i in range(n):
        model.row(f"size[{i}]", [(f"y[{i},{p}]", 1) for p in events[1:]], "=", size[i])
    costs = [(d, n - (p - k) // 2) for p in events for d, k in gaps[p]]
    model.row("srpt", costs, ">=", srpt(instance) - n * first)


def point(instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a schedule in :func:`rows`."""
    tasks = instance["tasks"]
    n, (_, b, eta) = len(tasks), link(instance)
    exact = solution.get("exact", {})
    start = [Fraction(exact.get(task["id"], solution["start"][task["id"]])) for task in tasks]
    left: dict[int, Fraction] = {}
    waiting = sorted(range(n), key=lambda i: (start[i], i))
    found: dict[str, Any] = {}
    now, p = min(Fraction(task["release"]) for task in tasks), 0
    while waiting or left:
        pace = len(left) * b + (len(left) - 1) * eta
        ends = [(now + volume * pace, 0, i) for i, volume in left.items()]
        then, kind, i = min([*ends, *((start[i], 1, i) for i in waiting[:1])])
        found[f"K[{p},{len(left)}]"], found[f"d[{p},{len(left)}]"] = 1, then - now
        for k in left if p else ():
            found[f"y[{k},{p}]"] = (then - now) / pace
            left[k] -= (then - now) / pace
        if kind:
            left[waiting.pop(0)] = Fraction(tasks[i]["size"])
        else:
            del left[i]
        found[f"{'S' if kind else 'E'}[{i},{p}]"] = 1
        now, p = then, p + 1
    return found


FORMS = {"srpt": alone, "orders": orders, "rows": rows}
