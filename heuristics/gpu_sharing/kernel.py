"""The compiled decision of the sharing policies: which waiting jobs start now, beside whom, and how."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner, njit_kernel

FIRST_FIT, BEST_BENEFIT, BEST_BENEFIT_PLUS = 0, 1, 2


@njit_kernel
def share_now(a: float, n: float, xi_o: float, xi_n: float, wait: float, n_wait: float) -> tuple[bool, float]:
    """Whether starting the new job now beats waiting, and the pair's mean completion from now.

    The running job would take `a` more slots at its present pace and xi_o times that beside the new one; the
    new one takes `n` alone, xi_n n beside it. The alternative starts it after `wait` and takes `n_wait`. With
    wait = a and n_wait = n this is the exact rule of Theorem 1.
    """
    if xi_n * n >= xi_o * a:
        both = xi_o * a * (2.0 - 1.0 / xi_n) + n
    else:
        both = a + xi_n * n * (2.0 - 1.0 / xi_o)
    apart = a + wait + n_wait
    return both < apart, 0.5 * min(both, apart)


class Jobs(NamedTuple):
    """The jobs of an instance, J of them with at most E entries (numbers of accumulation steps)."""

    gpus: Ints  # (J,) gang sizes
    entries: Ints  # (J,) how many entries there are
    # work, load: (J, E) slots alone and memory of a GPU, by entry
    work: Floats
    load: Floats
    kind: Ints  # (J,) class of a job
    # slowdown, slowed: (C, C) xi by classes and its transpose
    slowdown: Floats
    slowed: Floats


class Occupants(NamedTuple):
    """Jobs that hold GPUs alone, with room for as many more as wait: one that starts here is one for those after it."""

    job: Ints  # (P,) job numbers, by the first of their lone GPUs
    alone: Ints  # (P,) how many GPUs each holds alone
    # remaining, pace, room: (P,) work left, present slowdown, memory left beside it
    remaining: Floats
    pace: Floats
    room: Floats


class Starts(NamedTuple):
    """Who starts, by place in the list of those that wait."""

    entry: Ints  # (W,) entry of the accumulation steps, or -1 for a job that waits
    # partners, taken: (W, most partners + 1) an occupant's place, and the GPUs taken beside it; the list ends with -1,
    # and what is missing to the gang size comes from the free GPUs
    partners: Ints
    taken: Ints


class Rule(NamedTuple):
    """What a policy is: FIRST_FIT, BEST_BENEFIT or BEST_BENEFIT_PLUS; whether a GPU may hold two jobs; its memory."""

    kind: int
    shares: bool
    memory: float


@njit_cached
def decide(
    rule: Rule,
    waiting: Ints,  # job numbers in order of priority
    free: int,  # GPUs without a job
    release: Floats,  # sorted moments, from now, at which further GPUs become free
    jobs: Jobs,
    # occupants, count: the first `count` are there already; changed. Where GPUs are not shared there are none
    occupants: Occupants,
    count: int,
    starts: Starts,  # is filled
) -> int:
    """Go through the waiting jobs once, in order (Algorithm 1 of paper 003).

    Returns
    -------
    int
        GPUs that stay free.

    Notes
    -----
    O(waiting x occupants), about 10 ns each.
    """
    single = 0
    for p in range(len(occupants.alone)):
        single += occupants.alone[p]
    value = np.empty(len(occupants.job))
    needed = np.empty(len(occupants.job), dtype=np.int64)
    for place in range(len(waiting)):
        starts.entry[place] = -1
        if free == 0 and single == 0:
            continue
        j = waiting[place]
        need = jobs.gpus[j]
        if free >= need:
            # Free GPUs come first: nobody is slowed down.
            starts.entry[place] = 0
            starts.partners[place, 0] = -1
            free -= need
            if rule.shares:
                _add_occupant(occupants, count, jobs, j, 0, need, 1.0, rule.memory)
                single += need
                count += 1
            continue
        if free + single < need:
            continue
        moment = 0.0
        if rule.kind == BEST_BENEFIT_PLUS:
            missing = need - free - 1
            moment = release[missing] if missing < len(release) else np.inf
        if free + _value_partners(rule, j, moment, jobs, occupants, count, value, needed) < need:
            continue
        entry, slowest, missing = _take_partners(place, j, need, jobs, occupants, count, value, needed, starts)
        starts.entry[place] = entry
        single -= need - missing
        free -= missing
        if missing > 0:  # the rest of its gang lies on free GPUs, where others may join it
            _add_occupant(occupants, count, jobs, j, entry, missing, slowest, rule.memory)
            single += missing
            count += 1
    return free


@njit_inner
def _add_occupant(
    occupants: Occupants, place: int, jobs: Jobs, j: int, entry: int, alone: int, pace: float, memory: float
) -> None:
    """A job that starts now holds GPUs alone."""
    occupants.job[place], occupants.alone[place] = j, alone
    occupants.remaining[place], occupants.pace[place] = jobs.work[j, entry], pace
    occupants.room[place] = memory - jobs.load[j, entry]


@njit_inner
def _value_partners(
    rule: Rule, j: int, moment: float, jobs: Jobs, occupants: Occupants, count: int, value: Floats, needed: Ints
) -> int:
    """Which occupants a job may start beside, by how much each pair gains (Algorithm 2); the GPUs they hold alone.

    `value` of each is filled, the least is the best and infinity none; `needed` with the entry that fits beside it.
    """
    usable, kind = 0, jobs.kind[j]
    for p in range(count):
        value[p] = np.inf
        if occupants.alone[p] == 0:
            continue
        # The fewest accumulation steps, that is the largest sub-batch, that fit the memory beside it.
        entry = 0
        while entry < jobs.entries[j] and jobs.load[j, entry] > occupants.room[p]:
            entry += 1
        if entry == jobs.entries[j]:
            continue
        o = jobs.kind[occupants.job[p]]
        needed[p] = entry
        if rule.kind == FIRST_FIT:
            value[p] = p
        else:
            # Slots that the partner takes at its present pace, and by how much that pace would fall.
            a = occupants.remaining[p] * occupants.pace[p]
            xi_o = max(jobs.slowed[kind, o], occupants.pace[p]) / occupants.pace[p]
            n = jobs.work[j, entry]
            if rule.kind == BEST_BENEFIT:
                good, mean = share_now(a, n, xi_o, jobs.slowdown[kind, o], a, n)
            else:
                good, mean = share_now(a, n, xi_o, jobs.slowdown[kind, o], min(a, moment), jobs.work[j, 0])
            if not good:
                continue
            value[p] = mean
        usable += occupants.alone[p]
    return usable


@njit_inner
def _take_partners(
    place: int,
    j: int,
    need: int,
    jobs: Jobs,
    occupants: Occupants,
    count: int,
    value: Floats,
    needed: Ints,
    starts: Starts,
) -> tuple[int, float, int]:
    """Take lone GPUs of the best occupants; (entry that fits beside all, slowdown, GPUs that are still missing)."""
    entry, slot, slowest, kind = 0, 0, 1.0, jobs.kind[j]
    while need > 0:
        best = -1
        for p in range(count):
            if value[p] < np.inf and (best < 0 or value[p] < value[best]):
                best = p
        if best < 0:
            break
        number = min(need, occupants.alone[best])
        starts.partners[place, slot], starts.taken[place, slot] = best, number
        slot += 1
        value[best] = np.inf
        occupants.alone[best] -= number
        need -= number
        entry = max(entry, needed[best])
        o = jobs.kind[occupants.job[best]]
        slowest = max(slowest, jobs.slowdown[kind, o])
        # The partner's pace changes; in slots at full rate it has as much work left as before.
        occupants.pace[best] = max(occupants.pace[best], jobs.slowed[kind, o])
    starts.partners[place, slot] = -1
    return entry, slowest, need


def _compile() -> None:
    """Run once, so that what is kept on disk is loaded: a policy's seconds start after the imports."""
    none, number = np.zeros(0, dtype=np.int64), np.zeros(0)
    row, table = np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1))
    jobs = Jobs(none, none, table, table, none, table, table)
    occupants = Occupants(none, none.copy(), number, number.copy(), number.copy())
    starts = Starts(none.copy(), row, row.copy())
    decide(Rule(0, True, 1.0), none, 0, number, jobs, occupants, 0, starts)


_compile()
