"""The compiled decision of the sharing policies: which waiting jobs start now, beside whom, and how."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_FIT, BEST_BENEFIT, BEST_BENEFIT_PLUS = 0, 1, 2


@njit_cached
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


@njit_cached
def decide(
    rule: int,
    shares: bool,
    waiting: Ints,
    free: int,
    memory: float,
    count: int,
    occupants: Ints,
    alone: Ints,
    left: Floats,
    pace: Floats,
    room: Floats,
    release: Floats,
    gpus: Ints,
    work: Floats,
    load: Floats,
    choices: Ints,
    slowdown: Floats,
    slowed: Floats,
    steps_out: Ints,
    partners: Ints,
    taken: Ints,
) -> int:
    """Go through the waiting jobs once, in order (Algorithm 1 of paper 003).

    Parameters
    ----------
    rule : FIRST_FIT, BEST_BENEFIT or BEST_BENEFIT_PLUS
    shares : whether a GPU may hold two jobs; otherwise nobody is an occupant, those who start here neither
    waiting : job numbers in order of priority
    free : GPUs without a job
    memory : of a GPU
    count : how many occupants there are
    occupants : running jobs that hold GPUs alone, by the first of these GPUs, with room for as many more as
        wait: a job that starts here on free GPUs is an occupant for those after it
    alone : how many GPUs each holds alone; changed
    left, pace, room : by occupant: work left, present slowdown, memory left beside it; changed
    release : sorted moments, from now, at which further GPUs become free
    gpus : gang size by job
    work, load, choices : by job and entry: work and memory by accumulation; how many entries there are
    slowdown, slowed : xi[j, k] and its transpose
    steps_out : by place in `waiting`: entry of the accumulation steps, or -1 for a job that waits
    partners, taken : by place in `waiting` and partner: occupant's place and GPUs taken beside it; the list
        ends with -1, and what is missing to the gang size comes from the free GPUs

    Returns
    -------
    int
        GPUs that stay free.

    Notes
    -----
    O(waiting x occupants), about 10 ns each.
    """
    single = alone.sum()
    value = np.empty(len(occupants))
    needed = np.empty(len(occupants), dtype=np.int64)
    for place in range(len(waiting)):
        steps_out[place] = -1
        if free == 0 and single == 0:
            continue
        j = waiting[place]
        need = gpus[j]
        if free >= need:
            steps_out[place] = 0
            partners[place, 0] = -1
            free -= need
            if not shares:
                continue
            occupants[count], alone[count], left[count] = j, need, work[j, 0]
            pace[count], room[count] = 1.0, memory - load[j, 0]
            single += need
            count += 1
            continue
        if free + single < need:
            continue
        moment = 0.0
        if rule == BEST_BENEFIT_PLUS:
            missing = need - free - 1
            moment = release[missing] if missing < len(release) else np.inf
        usable = free
        for p in range(count):
            value[p] = np.inf
            if alone[p] == 0:
                continue
            entry = 0
            while entry < choices[j] and load[j, entry] > room[p]:
                entry += 1
            if entry == choices[j]:
                continue
            o = occupants[p]
            needed[p] = entry
            if rule == FIRST_FIT:
                value[p] = p
            else:
                xi_o = max(slowed[j, o], pace[p]) / pace[p]
                a = left[p] * pace[p]
                n = work[j, entry]
                if rule == BEST_BENEFIT:
                    good, mean = share_now(a, n, xi_o, slowdown[j, o], a, n)
                else:
                    good, mean = share_now(a, n, xi_o, slowdown[j, o], min(a, moment), work[j, 0])
                if not good:
                    continue
                value[p] = mean
            usable += alone[p]
        if usable < need:
            continue
        entry, slot, slowest = 0, 0, 1.0
        while need > 0:
            best = -1
            for p in range(count):
                if value[p] < np.inf and (best < 0 or value[p] < value[best]):
                    best = p
            if best < 0:
                break
            number = min(need, alone[best])
            partners[place, slot], taken[place, slot] = best, number
            slot += 1
            value[best] = np.inf
            alone[best] -= number
            single -= number
            need -= number
            entry = max(entry, needed[best])
            slowest = max(slowest, slowdown[j, occupants[best]])
            # The partner's pace changes; in slots at full rate it has as much work left as before.
            pace[best] = max(pace[best], slowed[j, occupants[best]])
        partners[place, slot] = -1
        steps_out[place] = entry
        free -= need
        if need > 0:
            occupants[count], alone[count], left[count] = j, need, work[j, entry]
            pace[count], room[count] = slowest, memory - load[j, entry]
            single += need
            count += 1
    return free


def _compile() -> None:
    """Compile now, or load what is kept on disk: a policy's seconds start after the imports."""
    none, number = np.zeros(0, dtype=np.int64), np.zeros(0)
    row, table = np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1))
    state = (none, none.copy(), number, number.copy(), number.copy())
    decide(
        0, True, none, 0, 1.0, 0, *state, number, none, table, table, none, table, table, none.copy(), row, row.copy()
    )


_compile()
