"""Which GPUs a job gets: `ff`, `ls`, `rand` and LWF-kappa (paper 001, Algorithm 1); compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Table = Any

FIRST_FIT, LIST, RANDOM, LEAST_WORKLOAD = 0, 1, 2, 3


@numba.njit(cache=True)
def choose(
    workers: Table, gpus: Table, servers: Table, rule: int, kappa: int, first: int, need: int, memory: int
) -> None:
    """Choose `need` of the GPUs with enough memory, of which there are that many.

    `ff` takes the first ones. `ls` takes those of least weight. `rand` draws them without replacement. LWF-kappa
    is `ls` for up to `kappa` GPUs; for more it goes through the servers by their total weight (of all their
    GPUs) and takes on each the GPUs of least weight. Ties go to the first GPU or server.

    Parameters
    ----------
    workers : those from `first` on get their GPUs, in the order of choice
    gpus, servers : with their free memory and weights
    rule : FIRST_FIT, LIST, RANDOM or LEAST_WORKLOAD
    kappa : of LWF-kappa
    first, need, memory : the first worker of the job, how many they are, the memory of each

    Notes
    -----
    O(need (N + S)) for N GPUs on S servers.
    """
    count = len(gpus)
    if rule in (FIRST_FIT, RANDOM):
        room = np.empty(count, dtype=np.int64)
        number = 0
        for g in range(count):
            if gpus[g].free >= memory:
                room[number] = g
                number += 1
        for k in range(need):
            pick = k
            if rule == RANDOM:
                pick += int(workers[first + k].draws * (number - k))
            workers[first + k].gpu = room[pick]
            room[pick] = room[k]
            room[k] = workers[first + k].gpu
        return
    taken = np.zeros(count, dtype=np.bool_)
    if rule == LIST or need <= kappa:
        _lightest(workers, gpus, 0, count, first, 0, need, memory, taken)
        return
    total = np.zeros(len(servers), dtype=np.int64)
    passed = np.zeros(len(servers), dtype=np.bool_)
    for s in range(len(servers)):
        for g in range(servers[s].first_gpu, servers[s].first_gpu + servers[s].size):
            total[s] += gpus[g].weight
    found = 0
    while found < need:
        best = -1
        for s in range(len(servers)):
            if not passed[s] and (best < 0 or total[s] < total[best]):
                best = s
        passed[best] = True
        begin = servers[best].first_gpu
        found = _lightest(workers, gpus, begin, begin + servers[best].size, first, found, need, memory, taken)


@numba.njit(cache=True)
def _lightest(
    workers: Table,
    gpus: Table,
    begin: int,
    end: int,
    first: int,
    found: int,
    need: int,
    memory: int,
    taken: NDArray[np.bool_],
) -> int:
    """Add GPUs from `begin` to `end` to the `found` ones, the lightest first, up to `need`; how many there are."""
    while found < need:
        best = -1
        for g in range(begin, end):
            if not taken[g] and gpus[g].free >= memory and (best < 0 or gpus[g].weight < gpus[best].weight):
                best = g
        if best < 0:
            break
        taken[best] = True
        workers[first + found].gpu = best
        found += 1
    return found
