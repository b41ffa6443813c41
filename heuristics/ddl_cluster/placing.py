"""The queue in the compiled simulator: arrivals and placement."""

from __future__ import annotations

import numba

from schedgap.formulations.common.compiled import forget_stale
from schedgap.heuristics.ddl_cluster import choosing, state, strides
from schedgap.heuristics.ddl_cluster.choosing import LEAST_WORKLOAD, LIST, choose
from schedgap.heuristics.ddl_cluster.state import (
    FORWARD_READY,
    QUEUED,
    Ints,
    Rules,
    Table,
    comes_before,
    look_at,
)
from schedgap.heuristics.ddl_cluster.strides import service_now

forget_stale(__file__, choosing.__file__, state.__file__, strides.__file__)


@numba.njit(cache=True)
def enqueue(jobs: Table, lists: Ints, job: int) -> None:
    """Put a job into the queue, which stays in SRSF order."""
    lists[QUEUED, 0] += 1
    position = lists[QUEUED, 0]
    while position > 1 and comes_before(jobs, job, lists[QUEUED, position - 1]):
        lists[QUEUED, position] = lists[QUEUED, position - 1]
        position -= 1
    lists[QUEUED, position] = job


@numba.njit(cache=True)
def place_queue(jobs: Table, workers: Table, gpus: Table, servers: Table, lists: Ints, rules: Rules, now: int) -> None:
    """Ask every job in the queue once, in SRSF order; place those for which there is memory."""
    kept = 0
    for position in range(1, lists[QUEUED, 0] + 1):
        job = lists[QUEUED, position]
        if not _find_gpus(jobs, workers, gpus, servers, rules, job, now):
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
            look_at(gpus, lists, gpu)
            known = False
            for index in range(first, first + jobs[job].spread):
                known = known or workers[index].server == gpus[gpu].server
            if not known:
                workers[first + jobs[job].spread].server = gpus[gpu].server
                jobs[job].spread += 1
        if jobs[job].spread > 1:
            jobs[job].service += (end - first) * jobs[job].iterations * jobs[job].solo
    lists[QUEUED, 0] = kept


@numba.njit(cache=True)
def _find_gpus(jobs: Table, workers: Table, gpus: Table, servers: Table, rules: Rules, job: int, now: int) -> bool:
    """Whether there is memory for a job; its GPUs are chosen then, where they are not given."""
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
                total += service_now(jobs, workers[worker].job, now) >> rules.shift
                worker = workers[worker].after
            gpus[gpu].weight = total
    choose(workers, gpus, servers, rules.rule, rules.kappa, first, end - first, jobs[job].memory)
    return True


@numba.njit(cache=True)
def leave(jobs: Table, workers: Table, gpus: Table, job: int) -> None:
    """Free the memory of a finished job and take its workers off their GPUs."""
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        gpu = workers[worker].gpu
        gpus[gpu].free += jobs[job].memory
        if workers[worker].before >= 0:
            workers[workers[worker].before].after = workers[worker].after
        else:
            gpus[gpu].head = workers[worker].after
        if workers[worker].after >= 0:
            workers[workers[worker].after].before = workers[worker].before
