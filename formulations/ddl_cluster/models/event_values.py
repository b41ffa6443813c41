"""From a schedule of ddl-cluster to its point in the model with contention, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, product

import pulp

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE
from schedgap.formulations.ddl_cluster.models.event_points import Point, point_of
from schedgap.formulations.ddl_cluster.models.events_parts import CONTINUOUS, Parts
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Compute, Plan, timetable


def values_of(parts: Parts, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Values of a schedule that ends by the horizon."""
    point = point_of(parts.instance, solution, parts.spanning)
    if max(point.end.values()) > parts.last * (1 + CONTINUOUS):
        return {}
    values = dict.fromkeys(parts.layout.family_of, 0.0)
    var = parts.layout.variables
    for j, gpus in enumerate(point.placement):
        servers = {s for s, _ in gpus}
        values[var["spans"][parts.ids[j]]] = float(len(servers) > 1)
        for w, (s, g) in enumerate(gpus):
            values[parts.place[j, (s, g)]] = values[parts.uses[j, s]] = 1.0
            for i, kind in parts.steps(j):
                values[parts.task[j, i, kind, (s, g)]] = point.start[j, i, kind, w]
        for i in range(parts.jobs[j].iterations):
            values[parts.end[j, i]] = point.end[j, i]
            s, g = gpus[max(range(len(gpus)), key=lambda w: point.start[j, i, 1, w])]
            values[var["last"][parts.ids[j], i, parts.servers[s], g]] = 1.0
    _order_values(parts, point, values)
    for (j, i), admit in parts.admit.items():
        values[admit] = point.admit[j, i]
    _position_values(parts, point, values)
    return values


def _order_values(parts: Parts, point: Point, values: dict[pulp.LpVariable, float]) -> None:
    """Which of two tasks on a GPU, and of two jobs in a memory, comes first."""
    begin = [min(point.start[j, 0, 0, w] for w in range(job.gpus)) for j, job in enumerate(parts.jobs)]
    for (j, k), apart in parts.apart.items():
        values[apart] = float(point.end[j, parts.jobs[j].iterations - 1] * (1 - CHECK_TOLERANCE) <= begin[k])
    for gpu, (j, k) in product({gpu for _, gpu in parts.place}, combinations(parts.all, 2)):
        if gpu in point.placement[j] and gpu in point.placement[k]:
            v, w = point.placement[j].index(gpu), point.placement[k].index(gpu)
            for (i, a), (r, c) in product(parts.steps(j), parts.steps(k)):
                key = (parts.servers[gpu[0]], gpu[1], parts.ids[j], i, a, parts.ids[k], r, c)
                first = point.start[j, i, a, v] < point.start[k, r, c, w]
                values[parts.layout.variables["before"][key]] = float(first)


def _position_values(parts: Parts, point: Point, values: dict[pulp.LpVariable, float]) -> None:
    """Positions, gaps, and what moves in them."""
    var, clock = parts.layout.variables, Fraction(0)
    servers = [sorted({s for s, _ in gpus}) for gpus in point.placement]
    active: dict[int, int] = {}
    for p, (moment, j, i) in enumerate(point.line):
        gap = float(moment - clock)
        clock = moment
        values[var["gap"][p]] = gap
        count = Counter(s for k in active for s in servers[k])
        for k, r in active.items():
            level = max(count[s] for s in servers[k])
            for s in servers[k]:
                values[parts.crosses[k, s, p]] = 1.0
            busiest = next(s for s in servers[k] if count[s] == level)
            values[var["busiest"][parts.ids[k], parts.servers[busiest], p]] = 1.0
            values[var["level"][parts.ids[k], p, level]] = 1.0
            values[var["sharing"][parts.ids[k], p, level]] = gap
            values[var["moved"][parts.ids[k], r, p]] = gap / parts.pace(level)
        values[(parts.ended if j in active else parts.begun)[j, i, p]] = 1.0
        values[var["moment"][parts.ids[j], i, "end" if j in active else "begin", p]] = float(moment)
        if active.pop(j, None) is None:
            active[j] = i


def schedule_of(parts: Parts, value: Callable[[pulp.LpVariable], float]) -> Solution:
    """The tasks in their order, each when the model has it start, or a rounding later."""
    placement = [[gpu for gpu in parts.open[j] if value(parts.place[j, gpu]) > 0.5] for j in parts.all]
    start: dict[Compute, float] = {}
    for j, gpus in enumerate(placement):
        for w, (i, kind) in product(range(len(gpus)), parts.steps(j)):
            start[j, i, kind, w] = value(parts.task[j, i, kind, gpus[w]])
    servers = [{s for s, _ in gpus} for gpus in placement]
    sent = [(j, i) for j, i in parts.messages if len(servers[j]) > 1]
    begin = {key: value(parts.admit[key]) + parts.latency for key in sent}

    def position(event: Mapping[tuple[int, int, int], pulp.LpVariable], key: AllReduce) -> int:
        return max(parts.positions, key=lambda p: value(event[(*key, p)]))

    after = {
        one: [
            other
            for other in sent
            if servers[one[0]] & servers[other[0]] and position(parts.ended, other) < position(parts.begun, one)
        ]
        for one in sent
    }
    waits: dict[int, list[int]] = {}
    for (j, k), apart in parts.apart.items():
        if value(apart) > 0.5:
            waits.setdefault(k, []).append(j)
    return timetable(parts.instance, placement, Plan(start, begin, after, waits))
