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


MOST_STEPS = 12_000_000
"""Jobs times edges of prices; a log that is certified has at most 20,000 jobs and some 460 edges."""
MOST_QUEUES = 5_000_000
"""Jobs times pools: a microsecond each for the backlog."""


def _pools(instance: Mapping[str, Any]) -> list[list[int]]:
    """Numbers of the pools that each job may use.

    Raises Rejected: jobs times pools are more than MOST_QUEUES.
    """
    if len(instance["jobs"]) * len(instance["pools"]) > MOST_QUEUES:
        reject(f"the instance has more than {MOST_QUEUES:,} jobs times pools")
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
        if len(jobs) * len(edges) > MOST_STEPS:
            raise ValueError(f"there are more than {MOST_STEPS:,} jobs times edges")
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

    Let every job ask for its GPUs from its arrival on, for as long as it is long, whether it gets them or not.
    What was asked for and not yet given is the backlog.
    A schedule gives no job more than it has asked for by any moment.
    So a job that ends at C leaves at least GPUs x length x (C - arrival - length) to the integral of the backlog, and
    the weighted mean is at least that of the lengths and that integral over all the work.

    No schedule has a smaller backlog at any moment than pools that give all they have, first to jobs that only they may
    serve.
    Each such pool's own backlog is least so.
    While jobs of several pools have a backlog, all pools are busy, and when they last had none the sum was least.
    """
    jobs, pools = instance["jobs"], instance["pools"]
    if instance["objective"] != "area":
        reject("form drain is about objective area")
    usable, sizes = _pools(instance), [pool["gpus"] for pool in pools]

    def bound(given: Mapping[str, Any], box: Any) -> Fraction:
        if given:
            raise ValueError("a leaf of form drain is empty")
        changes: dict[int, list[int]] = {}
        for job, own in zip(jobs, usable, strict=True):
            queue = own[0] if len(own) == 1 else len(pools)
            for moment, change in ((job["arrival"], job["gpus"]), (job["arrival"] + job["length"], -job["gpus"])):
                changes.setdefault(moment, [0] * (len(pools) + 1))[queue] += change
        waited = Fraction(0)
        backlog, asked = [Fraction(0)] * (len(pools) + 1), [0] * (len(pools) + 1)
        moments = sorted(changes)
        for moment, following in zip(moments, [*moments[1:], None], strict=True):
            asked = list(map(operator.add, asked, changes[moment]))
            more, backlog = _drained(backlog, asked, sizes, None if following is None else following - moment)
            waited += more
        area = sum(job["gpus"] * job["length"] for job in jobs)
        alone = sum(job["gpus"] * job["length"] ** 2 for job in jobs)
        return Fraction(alone + waited, area)

    model.price = bound


def _drained(
    backlog: list[Fraction], asked: list[int], sizes: list[int], end: int | None
) -> tuple[Fraction, list[Fraction]]:
    """The integral of the backlog until `end` (None: until there is none), and what is left of it.

    The last entries are those of jobs that any pool may serve; they get what the pools do not need themselves.
    """
    integral, rest = Fraction(0), list[Fraction]()
    spare, frees = 0, list[tuple[Fraction, int]]()
    for amount, rate, size in zip(backlog, asked, sizes, strict=False):
        surplus = size - rate
        if not amount and surplus >= 0:
            spare += surplus
            rest.append(Fraction(0))
        elif surplus > 0 and (end is None or amount <= surplus * end):
            until = amount / surplus
            integral += amount * until / 2
            frees.append((until, surplus))
            rest.append(Fraction(0))
        else:
            assert end is not None  # nothing is asked for at last
            later = amount - surplus * end
            integral += (amount + later) * end / 2
            rest.append(later)
    shared, begin = backlog[-1], Fraction(0)
    pieces: list[tuple[Fraction | int | None, int]] = [*sorted(frees), (end, 0)]
    for stop, more in pieces:
        growth = asked[-1] - spare
        if stop is None or (growth < 0 and shared + growth * (stop - begin) < 0):
            integral += shared * shared / (2 * -growth) if shared else Fraction(0)
            shared = Fraction(0)
        else:
            later = shared + max(growth, 0 if not shared else growth) * (stop - begin)
            integral += (shared + later) * (stop - begin) / 2
            shared = later
        begin, spare = (begin if stop is None else Fraction(stop)), spare + more
    return integral, [*rest, shared]


FORMS = {"prices": prices, "drain": drain}
