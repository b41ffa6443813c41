"""What no schedule of a log can pass: prices of GPUs by type for the mean JCT, backlog for the weighted one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.instance import Json
from schedgap.solvers.certificates import checker, content, make_bound
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.job_prices import PricedJobs, ascend, event_edges, least
from schedgap.tools.audit.exclusive import exclusive_instance
from schedgap.tools.audit.reading import Reading

_BUCKETS = 300
_EVALUATIONS = 4_000_000
"""Jobs times evaluations of prices."""
_FEWEST, _MOST = 40, 400
_SAFETY = 1e-9
"""Relative: what sums of floats may lose."""
MOST_CHECKED = 20_000
"""Jobs up to which a limit is added up again in whole numbers, by the checker of certificates: a second or two."""

MOST_TOGETHER = 4096
"""Jobs times GPUs up to which gangs count as a whole."""


class Limit(NamedTuple):
    """A bound on a mean time from submission to end."""

    seconds: float
    certificate: Mapping[str, Json] | None  # None where it was not checked in whole numbers
    instance: Mapping[str, Json]


def rigid_instance(reading: Reading, name: str, objective: str) -> dict[str, Json]:
    """The jobs and pools that a certificate is about; see ``solvers/certificates/rules/rigid_jobs.py``."""
    work = reading.arrays[0]
    pools = {kind: kind or "all" for kind in reading.pools}
    rows: list[Json] = []
    for j, (job, types) in enumerate(zip(reading.jobs, reading.types, strict=True)):
        row: dict[str, Json] = {"id": job.id, "arrival": int(work.arrival[j])}
        row |= {"length": int(work.length[j]), "gpus": job.gpus}
        if len(types) < len(pools):
            row["pools"] = sorted(pools[kind] for kind in types)
        rows.append(row)
    return {
        "problem": "rigid-jobs",
        "name": name,
        "objective": objective,
        "pools": [{"id": pools[kind], "gpus": gpus} for kind, gpus in reading.pools.items()],
        "jobs": rows,
    }


def price_limit(reading: Reading, name: str) -> Limit:
    """A bound on the mean JCT by prices of the GPUs of each type.

    A job pays for each of its GPUs the least price of the types that it may use, at every moment; what it costs at
    least, its JCT and payments, is found job by job, and the GPUs earn no more than their prices. Prices are looked for
    by :func:`~schedgap.solvers.exact.job_prices.ascend`; any prices give a bound.

    Notes
    -----
    At most 300 buckets and 400 evaluations of O(J) times the buckets that a job waits.
    """
    work = reading.arrays[0]
    kinds = list(reading.pools)
    sizes = np.array(list(reading.pools.values()), dtype=np.float64)
    rows = [frozenset({kind}) for kind in kinds]
    number = {row: k for k, row in enumerate(rows)}
    for types in reading.types:
        if types not in number:
            number[types] = len(rows)
            rows.append(types)
    members = [[k for k, kind in enumerate(kinds) if kind in row] for row in rows]
    kind = np.array([number[types] for types in reading.types], dtype=np.int64)
    none = np.zeros_like(work.arrival)
    jobs = PricedJobs(
        work.arrival, work.length, work.length.astype(np.float64), reading.gpus.astype(np.float64), kind, none
    )
    area = (reading.gpus * work.length).astype(np.float64)
    edges = _edges(work.arrival, work.length, area, kind, [float(sizes[own].sum()) for own in members])
    width = np.diff(edges).astype(np.float64)
    place = np.arange(len(width))

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        every = np.vstack([prices[own].min(axis=0) for own in members])
        held = np.zeros_like(every)
        value = least(jobs, edges, every, held) - float((sizes[:, None] * prices * width).sum())
        use[:] = held[: len(kinds)]
        for row in range(len(kinds), len(rows)):
            cheapest = np.array(members[row])[prices[members[row]].argmin(axis=0)]
            np.add.at(use, (cheapest, place), held[row])
        return value, np.repeat(sizes[:, None], len(width), axis=1)

    rounds = int(np.clip(_EVALUATIONS // len(work.arrival), _FEWEST, _MOST))
    value, prices = ascend(evaluate, width, len(kinds), rounds)
    count = len(work.arrival)
    instance = rigid_instance(reading, name, "jct")
    mean = max(int(work.length.sum()), math.ceil(value * (1 - _SAFETY) - 1e-6)) / count
    if count > MOST_CHECKED:
        return Limit(reading.slot * mean, None, instance)
    model = checker.model_of(instance, "prices", {})
    assert model.price is not None
    leaf = {"edges": edges.tolist(), "prices": np.rint(prices * GRID).astype(np.int64).tolist()}
    leaves: list[Any] = [leaf, {"edges": [0], "prices": [[] for _ in kinds]}]  # the second: every job alone
    proven = [Fraction(math.ceil((model.price(one, {}) or 0) * count), count) for one in leaves]
    best = proven.index(max(proven))
    found = Limit(
        reading.slot * float(proven[best]), _checked(instance, "prices", proven[best], leaves[best]), instance
    )
    return _together(reading, name, found)


def _edges(arrival: Ints, length: Ints, area: Floats, kind: Ints, capacity: list[float]) -> Ints:
    """Edges of buckets, as many for the jobs of every set of types that some job may use."""
    rows = np.unique(kind).tolist()
    parts = []
    for row in rows:
        mine = kind == row
        parts.append(event_edges(arrival[mine], length[mine], area[mine], capacity[row], _BUCKETS // len(rows)))
    if len(rows) > 1:
        parts.append(event_edges(arrival, length, area, max(capacity), _BUCKETS // 2))
    edges: Ints = np.unique(np.concatenate(parts))
    return edges


def _together(reading: Reading, name: str, limit: Limit) -> Limit:
    """The better of a limit and that of gpu-sharing with a price for every job, where the log is small enough.

    There gangs count as a whole: what runs in a slot is a set of jobs that fit the GPUs together. Types do not count.
    """
    if len(reading.jobs) * sum(reading.pools.values()) > MOST_TOGETHER:
        return limit
    instance = exclusive_instance(name, reading.jobs, reading.servers, reading.slot)
    try:
        certificate = make_bound.prove_bound(instance)
    except Unproven:
        return limit
    bound = checker.check(content.plain(instance), checker.parse(json.dumps(certificate))).bound
    if bound is None or reading.slot * float(bound) <= limit.seconds:
        return limit
    return Limit(reading.slot * float(bound), certificate, instance.to_dict())


def _checked(instance: Mapping[str, Json], form: str, claim: Fraction, leaf: Json) -> Mapping[str, Json]:
    """A certificate of one leaf, which the checker has accepted."""
    found: Mapping[str, Json] = content.certificate_of(instance, form, {}, claim, {"prices": leaf})
    checker.check(instance, checker.parse(json.dumps(found)))
    return found


@njit_cached
def backlog_integral(moment: Ints, change: Ints, queue: Ints, sizes: Ints) -> float:
    """The least integral of what was asked for and not yet given, where jobs ask from their arrival on.

    Pools give all they have, first to jobs that only they may serve.

    Parameters
    ----------
    moment, change : (E,) rising slots at which GPUs begin or cease to be asked for, and how many
    queue : (E,) the only pool of the job, or that after the last
    sizes : (P,) GPUs
    """
    pools = len(sizes)
    backlog, asked = np.zeros(pools + 1), np.zeros(pools + 1)
    total = 0.0
    for e in range(len(moment)):
        asked[queue[e]] += change[e]
        now, end = float(moment[e]), np.inf if e + 1 == len(moment) else float(moment[e + 1])
        while now < end:
            step, spare = end - now, 0.0  # until some backlog is gone rates stay as they are
            for k in range(pools):
                surplus = sizes[k] - asked[k]
                if backlog[k] > 0:
                    if surplus > 0:
                        step = min(step, backlog[k] / surplus)
                elif surplus > 0:
                    spare += surplus
            growth = asked[pools] - spare
            if backlog[pools] > 0 and growth < 0:
                step = min(step, backlog[pools] / -growth)
            if step == np.inf:
                break
            for k in range(pools + 1):
                rate = growth if k == pools else asked[k] - sizes[k]
                if backlog[k] > 0 or rate > 0:
                    later = max(0.0, backlog[k] + rate * step)
                    total += (backlog[k] + later) * step / 2
                    backlog[k] = later if later > 1e-9 * max(1.0, abs(rate)) else 0.0
            now += step
    return total


def drain_limit(reading: Reading, name: str) -> Limit:
    """A bound on the mean JCT weighted by GPUs times length: all GPUs that may serve what was asked for.

    Notes
    -----
    O(J log J).
    """
    work = reading.arrays[0]
    kinds = list(reading.pools)
    pool = np.array([kinds.index(next(iter(t))) if len(t) == 1 else len(kinds) for t in reading.types], dtype=np.int64)
    instance = rigid_instance(reading, name, "area")
    if len(work.arrival) <= MOST_CHECKED:
        model: Any = checker.model_of(instance, "drain", {})
        exact: Fraction = model.price({}, {})
        return Limit(reading.slot * float(exact), _checked(instance, "drain", exact, {}), instance)
    moment = np.concatenate([work.arrival, work.arrival + work.length])
    by = np.argsort(moment, kind="stable")
    change = np.concatenate([reading.gpus, -reading.gpus])
    sizes = np.array(list(reading.pools.values()), dtype=np.int64)
    waited = backlog_integral(moment[by], change[by], np.concatenate([pool, pool])[by], sizes)
    area = reading.gpus * work.length.astype(np.float64)
    value = (float(area @ work.length) + waited) / float(area.sum()) * (1 - _SAFETY)
    return Limit(reading.slot * value, None, instance)
