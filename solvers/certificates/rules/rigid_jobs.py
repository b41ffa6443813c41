"""rigid-jobs: jobs that hold so many GPUs for so many slots without a pause, on pools of GPUs that they may use.

The instance of a log's limit: ``pools`` with their GPUs, ``jobs`` with arrival, length and GPUs in whole slots, and the
pools that each may use (all where it says none), in any split over them. ``objective`` is ``jct``, the mean time from
arrival to end, or ``area``, the same with each job weighted by GPUs times length.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import GRID, reject
    from schedgap.solvers.certificates.rules.pausing import held
except ImportError:  # run as a file
    from linear import GRID, reject  # type: ignore[import-not-found, no-redef]
    from rules.pausing import held  # type: ignore[import-not-found, no-redef]


def _pools(instance: Mapping[str, Any]) -> list[list[int]]:
    """Numbers of the pools that each job may use."""
    number = {pool["id"]: k for k, pool in enumerate(instance["pools"])}
    every = list(range(len(number)))
    return [sorted({number[name] for name in job["pools"]}) if job.get("pools") else every for job in instance["jobs"]]


def prices(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``prices``, of the mean JCT; a leaf is ``{"edges": [...], "prices": [[...], ...]}``.

    Bucket k has the slots from edges[k] to edges[k + 1] - 1. There a GPU of pool q costs prices[q][k] a slot, in
    2^-40, and beyond the buckets nothing. In a slot the jobs together pay at most N_q times the price of each pool q.
    A job pays for each of its GPUs at least the least price of the pools that it may use. So the sum of JCT is at least
    the sum over jobs of the least of JCT and those payments, less the sum over pools and slots of N_q times the price.
    """
    jobs, pools = instance["jobs"], instance["pools"]
    if instance["objective"] != "jct":
        reject("form prices is about objective jct")
    model.step = Fraction(1, len(jobs))
    usable = _pools(instance)

    def bound(given: Mapping[str, Any], box: Any) -> Fraction:
        edges, price = given["edges"], given["prices"]
        if set(given) != {"edges", "prices"} or len(price) != len(pools):
            raise ValueError("edges, and prices of every pool")
        numbers = [*edges, *(p for row in price for p in row)]
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
            raise ValueError("edges and prices must be whole numbers from 0")
        if any(a >= b for a, b in itertools.pairwise(edges)) or any(len(row) != len(edges) - 1 for row in price):
            raise ValueError("edges must rise, and every pool needs a price for each bucket")
        width = [end - begin for begin, end in itertools.pairwise(edges)]
        least: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        for pool_set in {tuple(row) for row in usable}:
            row = [min(column) for column in zip(*(price[q] for q in pool_set), strict=True)]
            least[pool_set] = row, [0, *itertools.accumulate(map(operator.mul, row, width))]
        total = -sum(
            pool["gpus"] * GRID * sum(map(operator.mul, row, width)) for pool, row in zip(pools, price, strict=True)
        )
        for job, own in zip(jobs, usable, strict=True):
            row, before = least[tuple(own)]
            total += held(job["arrival"], job["length"], job["gpus"] * GRID, edges, row, before)
        return Fraction(total, GRID**2 * len(jobs))

    model.price = bound


def drain(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``drain``, of the mean weighted by GPUs times length; a leaf is ``{}``.

    A job that ends at C has done its work at time C - length / 2 on average, so GPUs x length x C is what its work adds
    to the integral of t x busy(t), and GPUs x length^2 / 2. That integral is least where the most work is done by every
    moment. No schedule does more by any moment than pools that work on all that has arrived: on the jobs of theirs
    alone first, since those of several pools can still be done elsewhere.
    """
    jobs, pools = instance["jobs"], instance["pools"]
    if instance["objective"] != "area":
        reject("form drain is about objective area")
    usable, sizes = _pools(instance), [pool["gpus"] for pool in pools]

    def bound(given: Mapping[str, Any], box: Any) -> Fraction:
        if given:
            raise ValueError("a leaf of form drain is empty")
        arriving: dict[int, list[int]] = {}
        for job, own in zip(jobs, usable, strict=True):
            at = arriving.setdefault(job["arrival"], [0] * (len(pools) + 1))
            at[own[0] if len(own) == 1 else len(pools)] += job["gpus"] * job["length"]
        total = Fraction(0)
        backlog = [0] * (len(pools) + 1)
        moments = sorted(arriving)
        for moment, following in zip(moments, [*moments[1:], None], strict=True):
            backlog = list(map(operator.add, backlog, arriving[moment]))
            end = None if following is None else following - moment
            part, backlog = _drained(backlog, sizes, end)
            total += part[0] + moment * part[1]
        area = sum(job["gpus"] * job["length"] for job in jobs)
        rest = sum(job["gpus"] * job["length"] * (job["length"] - 2 * job["arrival"]) for job in jobs)
        value: Fraction = (total + Fraction(rest, 2)) / area
        return value

    model.price = bound


def _drained(backlog: list[int], sizes: list[int], end: int | None) -> tuple[tuple[Fraction, int], list[int]]:
    """What pools do from moment 0 to `end` (None: until all is done): the integral of t x busy(t), the work, the rest.

    The last entry of the backlog is work that any pool may do.
    """
    integral, work, rest = Fraction(0), 0, []
    free: list[tuple[Fraction, int]] = []  # when a pool has nothing of its own to do
    for amount, size in zip(backlog, sizes, strict=False):
        done = amount if end is None else min(amount, size * end)
        until = Fraction(done, size)
        integral += size * until * until / 2
        work += done
        rest.append(amount - done)
        if amount == done:
            free.append((until, size))
    shared, rate = Fraction(backlog[-1]), 0
    free.sort()
    for place, (begin, size) in enumerate(free):
        rate += size
        follows = free[place + 1][0] if place + 1 < len(free) else end
        if follows is not None and end is not None:
            follows = min(follows, end)
        until = begin + shared / rate
        until = until if follows is None else min(until, Fraction(follows))
        integral += rate * (until * until - begin * begin) / 2
        shared -= rate * (until - begin)
    done_shared = Fraction(backlog[-1]) - shared
    return (integral, work + done_shared), [*rest, shared]  # type: ignore[return-value, list-item]


FORMS = {"prices": prices, "drain": drain}
