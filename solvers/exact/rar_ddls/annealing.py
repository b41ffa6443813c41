"""Annealing over the choices that a greedy schedule of rar-ddls is built from; compiled.

Idea: a greedy schedule is made from job orders and placement rules; annealing changes these until a target makespan
is met. Source: simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983). It proves nothing.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.rar_ddls.rates import Integers
from schedgap.formulations.rar_ddls.running import Workload
from schedgap.formulations.rar_ddls.schedule import (
    ANY_RING,
    RULES,
    Choices,
    Scratch,
    list_schedule,
)

NEAR = 15
"""Places of the order over which half of the exchanges and moves go at most: the rest of the schedule stays alike."""


@njit_part
def _change(choices: Choices, servers: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """One random change; returns what :func:`_undo` needs."""
    jobs = choices.order.size
    a = int(rng.integers(0, jobs))
    b = int(rng.integers(0, jobs))
    if rng.random() < 0.5:
        b = min(jobs - 1, max(0, a + int(rng.integers(-NEAR, NEAR + 1))))
    kind = int(rng.integers(0, 10))
    old = 0
    if kind < 3:
        choices.order[a], choices.order[b] = choices.order[b], choices.order[a]
    elif kind < 6:
        _move(choices.order, a, b)
    elif kind == 6:
        old = choices.cross[a]
        choices.cross[a] = rng.integers(0, 3)
    elif kind == 7:
        old = choices.rule[a]
        choices.rule[a] = rng.integers(0, RULES)
    elif kind == 8:
        old = choices.holds[a]
        choices.holds[a] = 1 - old
    else:
        old = choices.likes[a]
        choices.likes[a] = rng.integers(0, servers) if rng.random() < 0.6 else servers
    return kind, a, b, old


@njit_part
def _move(order: Integers, source: int, target: int) -> None:
    job = order[source]
    step = 1 if source < target else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = job


@njit_part
def _undo(choices: Choices, kind: int, a: int, b: int, old: int) -> None:
    if kind < 3:
        choices.order[a], choices.order[b] = choices.order[b], choices.order[a]
    elif kind < 6:
        _move(choices.order, b, a)
    elif kind == 6:
        choices.cross[a] = old
    elif kind == 7:
        choices.rule[a] = old
    elif kind == 8:
        choices.holds[a] = old
    else:
        choices.likes[a] = old


@njit_part
def _excess(work: Workload, makespan: int, target: int) -> float:
    """GPU slots after `target`, and a little for the makespan itself: 0 once the target is met."""
    total = 0.5 * max(0, makespan - target)
    for j in range(work.jobs.size - 1):
        if work.jobs[j].end > target:
            total += work.jobs[j].gang * (work.jobs[j].end - target)
    return total


@njit_cached
def anneal(
    work: Workload,
    choices: Choices,  # where to begin; changed in place, the last accepted ones at the end
    scratch: Scratch,
    best: Workload,  # receives the schedule of smallest makespan
    target: int,
    limit: int,  # schedules longer than this are refused
    leg: tuple[int, int, int],  # first step, steps of this leg, steps of the whole run; a step builds one schedule
    heat: float,  # temperature of the first step in GPU slots, falling quadratically to 0
    # cost of `choices`; infinity where they were not built yet, and step 0 then leaves them as they are
    current: float,
    rng: np.random.Generator,
) -> tuple[int, int, float]:
    """A leg of annealing towards a makespan of `target` slots; stops as soon as it is met.

    Returns (smallest makespan of this leg or -1, schedules built, cost of `choices`).
    """
    shortest = -1
    first, steps, total = leg
    for step in range(first, first + steps):
        kind, a, b, old = -1, 0, 0, 0
        if step > 0:
            kind, a, b, old = _change(choices, work.servers.size - 1, rng)
        makespan = list_schedule(work, choices, scratch, limit, ANY_RING)
        accepted = False
        if makespan >= 0:
            if shortest < 0 or makespan < shortest:
                shortest = makespan
                best.jobs[:] = work.jobs
                best.entries[:] = work.entries
                if shortest <= target:
                    return shortest, step + 1 - first, current
            cost = _excess(work, makespan, target)
            temperature = heat * (1 - step / total) * (1 - step / total) + 1e-9
            if cost <= current or rng.random() < math.exp((current - cost) / temperature):
                current = cost
                accepted = True
        if not accepted and step > 0:
            _undo(choices, kind, a, b, old)
    return shortest, steps, current
