"""comm-contention: transfers on one link, in continuous time.

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

    def bound(given: Any, box: Mapping[str, tuple[int, int]]) -> Fraction:
        if given != {}:
            raise ValueError("a leaf is {}")
        return value

    model.price = bound


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


FORMS = {"srpt": alone, "orders": orders}
