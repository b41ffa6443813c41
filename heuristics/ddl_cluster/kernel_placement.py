"""The queue in the compiled simulator: arrivals, placement, and which GPUs a job gets.

The rules of placement are `ff`, `ls`, `rand` and LWF-kappa (paper 001, Algorithm 1).
"""

from __future__ import annotations

from schedgap.formulations.common.compiled import njit_inline
from schedgap.heuristics.ddl_cluster.state import (
    FORWARD_READY,
    QUEUED,
    State,
    comes_before,
    look_at,
)
from schedgap.heuristics.ddl_cluster.strides import (
    service_now,
)

FIRST_FIT, LIST, RANDOM, LEAST_WORKLOAD = 0, 1, 2, 3


@njit_inline
def enqueue(state: State, job: int) -> None:
    """Put a job into the queue, which stays in SRSF order."""
    lists = state.lists
    lists[QUEUED, 0] += 1
    position = lists[QUEUED, 0]
    while position > 1 and comes_before(state, job, lists[QUEUED, position - 1]):
        lists[QUEUED, position] = lists[QUEUED, position - 1]
        position -= 1
    lists[QUEUED, position] = job


@njit_inline
def place_queue(state: State, now: int) -> None:
    """Ask every job in the queue once, in SRSF order; place those for which there is memory."""
    jobs, workers, gpus, lists = state.jobs, state.workers, state.gpus, state.lists
    kept = 0
    for position in range(1, lists[QUEUED, 0] + 1):
        job = lists[QUEUED, position]
        if not _find_gpus(state, job, now):
            kept += 1
            lists[QUEUED, kept] = job
            continue
        jobs[job].placed = now
        first, end = jobs[job].first_worker, jobs[job].first_worker + jobs[job].width
        for worker in range(first, end):
            gpu = workers[worker].gpu
            gpus[gpu].free -= jobs[job].memory
            workers[worker].state = FORWARD_READY
            workers[worker].before = -1
            workers[worker].after = gpus[gpu].head
            if gpus[gpu].head >= 0:
                workers[gpus[gpu].head].before = worker
            gpus[gpu].head = worker
            look_at(state, gpu)
            known = False
            for index in range(first, first + jobs[job].spread):
                known = known or workers[index].server == gpus[gpu].server
            if not known:
                workers[first + jobs[job].spread].server = gpus[gpu].server
                jobs[job].spread += 1
        if jobs[job].spread > 1:
            jobs[job].service += (end - first) * jobs[job].iterations * jobs[job].solo
    lists[QUEUED, 0] = kept


@njit_inline
def _find_gpus(state: State, job: int, now: int) -> bool:
    """Whether there is memory for a job; its GPUs are chosen then, where they are not given."""
    jobs, workers, gpus, rules = state.jobs, state.workers, state.gpus, state.rules
    first, end = jobs[job].first_worker, jobs[job].first_worker + jobs[job].width
    if workers[first].gpu >= 0:
        fits = True
        for worker in range(first, end):
            fits = fits and gpus[workers[worker].gpu].free >= jobs[job].memory
        return fits
    room = 0
    for gpu in range(len(gpus)):
        if gpus[gpu].free >= jobs[job].memory:
            room += 1
    if room < end - first:
        return False
    if rules.rule == LIST or rules.rule == LEAST_WORKLOAD:
        for gpu in range(len(gpus)):
            total = 0
            worker = gpus[gpu].head
            while worker >= 0:
                total += service_now(state, workers[worker].job, now) >> rules.shift
                worker = workers[worker].after
            gpus[gpu].weight = total
    choose(state, rules.rule, rules.kappa, first, end - first, jobs[job].memory)
    return True


@njit_inline
def leave(state: State, job: int) -> None:
    """Free the memory of a finished job and take its workers off their GPUs."""
    jobs, workers = state.jobs, state.workers
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        gpu = workers[worker].gpu
        state.gpus[gpu].free += jobs[job].memory
        if workers[worker].before >= 0:
            workers[workers[worker].before].after = workers[worker].after
        else:
            state.gpus[gpu].head = workers[worker].after
        if workers[worker].after >= 0:
            workers[workers[worker].after].before = workers[worker].before


@njit_inline
def choose(state: State, rule: int, kappa: int, first: int, need: int, memory: int) -> None:
    """Choose `need` of the GPUs with enough memory for the workers from `first` on; there are that many.

    `ff` takes the first ones. `ls` takes those of least weight. `rand` draws them without replacement. LWF-kappa
    is `ls` for up to `kappa` GPUs; for more it goes through the servers by their total weight (of all their
    GPUs) and takes on each the GPUs of least weight. Ties go to the first GPU or server.

    Parameters
    ----------
    rule : FIRST_FIT, LIST, RANDOM or LEAST_WORKLOAD
    kappa : parameter of LWF-kappa
    first, need, memory : the first worker of the job, how many they are, the memory of each

    Notes
    -----
    O(need (N + S)) for N GPUs on S servers.
    """
    workers, gpus, servers = state.workers, state.gpus, state.servers
    count = len(gpus)
    if rule in (FIRST_FIT, RANDOM):
        number = 0
        for g in range(count):
            if gpus[g].free >= memory:
                gpus[number].room = g
                number += 1
        for k in range(need):
            pick = k
            if rule == RANDOM:
                pick += int(workers[first + k].draws * (number - k))
            chosen = gpus[pick].room
            gpus[pick].room = gpus[k].room
            workers[first + k].gpu = chosen
        return
    for g in range(count):
        gpus[g].taken = 0
    if rule == LIST or need <= kappa:
        _lightest(state, 0, count, first, 0, need, memory)
        return
    for s in range(len(servers)):
        servers[s].total = servers[s].passed = 0
        for g in range(servers[s].first_gpu, servers[s].first_gpu + servers[s].size):
            servers[s].total += gpus[g].weight
    found = 0
    while found < need:
        best = -1
        for s in range(len(servers)):
            if servers[s].passed == 0 and (best < 0 or servers[s].total < servers[best].total):
                best = s
        servers[best].passed = 1
        begin = servers[best].first_gpu
        found = _lightest(state, begin, begin + servers[best].size, first, found, need, memory)


@njit_inline
def _lightest(state: State, begin: int, end: int, first: int, found: int, need: int, memory: int) -> int:
    """Add GPUs from `begin` to `end` to the `found` ones, the lightest first, up to `need`; how many there are."""
    gpus = state.gpus
    while found < need:
        best = -1
        for g in range(begin, end):
            if gpus[g].taken == 0 and gpus[g].free >= memory and (best < 0 or gpus[g].weight < gpus[best].weight):
                best = g
        if best < 0:
            break
        gpus[best].taken = 1
        state.workers[first + found].gpu = best
        found += 1
    return found
