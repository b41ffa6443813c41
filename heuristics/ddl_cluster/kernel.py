"""The compiled simulator of ddl-cluster: what the plain one means, with work only where something changes.

The meaning is that of ``formulations.ddl_cluster.simulate_plain``, tick by tick; placements are chosen on the way.
Differences are only in what is looked at:

- A job has one next event (the end of its first running task, or of its all-reduce), kept in a heap.
- After an event only GPUs that became idle or got a new ready task, all-reduces on a server where one ended, and
  transfers on a server where another began or ended are looked at. A refused all-reduce cannot be admitted
  before one ends on one of its servers: what is active there only grows, and what is left of it only shrinks.
- Iterations that nothing can part are one event (see state.py).
- Cycles of jobs that share links or GPUs are skipped where their state recurs (see cycles.py).
"""

from __future__ import annotations

import math

from schedgap.formulations.common.compiled import njit_inline, njit_kernel
from schedgap.heuristics.ddl_cluster.cycles import follow, wake_before
from schedgap.heuristics.ddl_cluster.state import (
    ASKED,
    AT_BARRIER,
    BACKWARD_READY,
    BEGINNING,
    CANDIDATES,
    CHANGED,
    DIRTY,
    ENDED,
    FORWARD_READY,
    IN_BACKWARD,
    IN_LATENCY,
    JUMPS,
    MESSAGES,
    NEVER,
    NO_MESSAGE,
    QUEUED,
    RELEASED,
    TRANSFERRING,
    WAITING,
    Ints,
    State,
    append,
    begin_stride,
    comes_before,
    cut_stride,
    drop,
    in_the_way,
    log_stride,
    look_at,
    next_moment,
    put,
    service_now,
)

# All-reduces in the compiled simulator: admission, transfers, ends.


@njit_inline
def end_transfer(state: State, job: int, now: int) -> None:
    """The all-reduce of `job` has ended: its servers have room, and others there may move faster."""
    jobs, workers, servers, links = state.jobs, state.workers, state.servers, state.links
    first = jobs[job].first_worker
    for index in range(first, first + jobs[job].spread):
        s = workers[index].server
        for slot in range(servers[s].active):
            if links[s, slot] == job:
                links[s, slot] = links[s, servers[s].active - 1]
                break
        servers[s].active -= 1
        servers[s].transfers -= 1
        slot = servers[s].wait_head
        while slot >= 0:
            other = workers[slot].job
            if jobs[other].asked_at != now:
                jobs[other].asked_at = now
                append(state, ASKED, other)
            slot = workers[slot].wait_after
        if servers[s].changed_on != now:
            servers[s].changed_on = now
            append(state, CHANGED, s)
    jobs[job].service -= jobs[job].width * jobs[job].solo
    jobs[job].message_state = NO_MESSAGE


@njit_inline
def begin_waiting(state: State, job: int, now: int) -> None:
    """The workers of `job` are at the barrier: its all-reduce waits, and is asked at this tick."""
    jobs, workers, servers = state.jobs, state.workers, state.servers
    jobs[job].message_state = WAITING
    jobs[job].asked_at = now
    append(state, ASKED, job)
    for index in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].spread):
        s = workers[index].server
        workers[index].wait_before = -1
        workers[index].wait_after = servers[s].wait_head
        if servers[s].wait_head >= 0:
            workers[servers[s].wait_head].wait_before = index
        servers[s].wait_head = index


@njit_inline
def _busiest(state: State, job: int, limit: int) -> int:
    """The most all-reduces active on a server of `job`; any number of `limit` or more where it is that many."""
    most = 0
    first = state.jobs[job].first_worker
    for index in range(first, first + state.jobs[job].spread):
        most = max(most, state.servers[state.workers[index].server].active)
        if most >= limit:
            break
    return most


@njit_inline
def admit(state: State, now: int) -> None:
    """Ask, in SRSF order, the waiting all-reduces that are new, and those on a server where one ended."""
    jobs, workers, servers = state.jobs, state.workers, state.servers
    lists, rules = state.lists, state.rules
    kept = 0  # while this admits, what is active only grows: those without room now need no place in the order
    for position in range(1, lists[ASKED, 0] + 1):
        if _busiest(state, lists[ASKED, position], rules.limit) < rules.limit:
            kept += 1
            lists[ASKED, kept] = lists[ASKED, position]
    lists[ASKED, 0] = kept
    while lists[ASKED, 0] > 0:
        best = 1
        for position in range(2, lists[ASKED, 0] + 1):
            if comes_before(state, lists[ASKED, position], lists[ASKED, best]):
                best = position
        job = lists[ASKED, best]
        lists[ASKED, best] = lists[ASKED, lists[ASKED, 0]]
        lists[ASKED, 0] -= 1
        first = jobs[job].first_worker
        most = _busiest(state, job, rules.limit)
        admitted = most < rules.limit
        if rules.adaptive and most == 1:
            smallest = math.inf
            for index in range(first, first + jobs[job].spread):
                s = workers[index].server
                if servers[s].active == 1 and not (rules.first_server and smallest < math.inf):
                    other = state.links[s, 0]
                    remaining = jobs[other].left
                    if jobs[other].message_state == TRANSFERRING:
                        remaining -= (now - jobs[other].since) / rules.slowdown[jobs[other].level]
                    smallest = min(smallest, remaining)
            admitted = rules.pair_factor * jobs[job].transfer < smallest
        if not admitted:
            continue
        for index in range(first, first + jobs[job].spread):
            s = workers[index].server
            state.links[s, servers[s].active] = job
            servers[s].active += 1
            before, after = workers[index].wait_before, workers[index].wait_after
            if before >= 0:
                workers[before].wait_after = after
            else:
                servers[s].wait_head = after
            if after >= 0:
                workers[after].wait_before = before
        jobs[job].message_state = IN_LATENCY
        jobs[job].left = jobs[job].transfer
        jobs[job].admitted = now
        if rules.latency > 0:
            put(state, job, now + rules.latency)
        else:
            append(state, BEGINNING, job)


@njit_inline
def transfer(state: State, now: int) -> None:
    """Begin the transfers of this tick; on servers where their number changed, every k and end anew."""
    jobs, servers, lists = state.jobs, state.servers, state.lists
    for position in range(1, lists[BEGINNING, 0] + 1):
        job = lists[BEGINNING, position]
        jobs[job].message_state = TRANSFERRING
        jobs[job].since = now
        jobs[job].level = 0
        first = jobs[job].first_worker
        for index in range(first, first + jobs[job].spread):
            s = state.workers[index].server
            servers[s].transfers += 1
            if servers[s].changed_on != now:
                servers[s].changed_on = now
                append(state, CHANGED, s)
    for position in range(1, lists[CHANGED, 0] + 1):
        s = lists[CHANGED, position]
        for slot in range(servers[s].active):
            job = state.links[s, slot]
            if jobs[job].message_state != TRANSFERRING or jobs[job].shared_at == now:
                continue  # seen at another of its servers
            jobs[job].shared_at = now
            first = jobs[job].first_worker
            most = 0
            for index in range(first, first + jobs[job].spread):
                most = max(most, servers[state.workers[index].server].transfers)
            level = jobs[job].level
            if most != level:
                if level > 0:
                    jobs[job].left -= (now - jobs[job].since) / state.rules.slowdown[level]
                jobs[job].since = now
                jobs[job].level = most
                ticks = max(1, math.ceil(jobs[job].left * state.rules.slowdown[most] - 0.001))
                put(state, job, now + ticks)


@njit_inline
def log_message(state: State, job: int, now: int) -> None:
    """Record the all-reduce of `job` that ends now."""
    row = state.counts[MESSAGES]
    state.counts[MESSAGES] += 1
    state.messages[row, 0], state.messages[row, 1], state.messages[row, 2] = job, state.jobs[job].admitted, now


# The queue in the compiled simulator: arrivals, placement, and which GPUs a job gets.
#
# The rules of placement are `ff`, `ls`, `rand` and LWF-kappa (paper 001, Algorithm 1).

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
    kappa : of LWF-kappa
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


@njit_kernel
def run_fast(
    state: State,  # the cluster; changed
    by_arrival: Ints,  # jobs in order of arrival, ties by position
    # jobs that have arrived, jobs that have finished, ticks at which something happened, whether it pauses, and at
    # which tick; zeros to begin with, changed
    progress: Ints,
    most: int,  # how many such ticks to simulate in this call at most
    until: int,  # pause at this tick at the latest, and whenever a job has finished; never where it is NEVER
) -> bool:
    """Simulate the next moments, from the first arrival to the last finish; whether every job has finished.

    Called again it goes on. It may pause within a tick, when what ends there has ended, so that jobs can still join
    `by_arrival`; and where there may be no room for another moment's rows in `messages` or `jumps`.
    """
    jobs, lists = state.jobs, state.lists
    arrived, unfinished, moments = progress[0], len(jobs) - progress[1], 0
    room_messages, room_jumps = len(state.messages) - len(jobs), len(state.jumps) - len(jobs)
    while unfinished > 0 and moments < most:
        if state.counts[MESSAGES] > room_messages or state.counts[JUMPS] > room_jumps:
            break
        queue_changed = progress[3] != 0
        now = progress[4]
        if not queue_changed:
            now, arrives = next_moment(state, by_arrival, arrived, until)
            if state.rules.cycles and wake_before(state, now, arrives):
                continue  # there are earlier events now
            moments += 1
            for kind in (DIRTY, ASKED, BEGINNING, CHANGED, CANDIDATES, ENDED):
                lists[kind, 0] = 0
            # 1. ends; a call that goes on within a tick has them behind it
            finished = _end_all(state, now)
            unfinished -= finished
            queue_changed = finished > 0
            if until < NEVER and (queue_changed or now == until):
                progress[3], progress[4] = 1, now
                break
        progress[3] = 0
        # 2. arrivals
        while arrived < len(by_arrival) and jobs[by_arrival[arrived]].arrival == now:
            enqueue(state, by_arrival[arrived])
            arrived += 1
            queue_changed = True
        # 3. placement, 4. admission, 5. transfers
        if queue_changed and lists[QUEUED, 0] > 0:
            place_queue(state, now)
        if lists[ASKED, 0] > 0:
            admit(state, now)
        if lists[BEGINNING, 0] > 0 or lists[CHANGED, 0] > 0:
            transfer(state, now)
        _dispatch_all(state, now)
        if state.rules.cycles:
            follow(state, now, queue_changed)
    progress[0], progress[1] = arrived, len(jobs) - unfinished
    progress[2] += moments
    return bool(unfinished == 0)


@njit_inline
def _end_all(state: State, now: int) -> int:
    """1. ends: of latencies, transfers, strides and tasks, and of iterations with them; how many jobs finish."""
    jobs, events, rules = state.jobs, state.events, state.rules
    finished = 0
    while events[0] > 0 and jobs[events[1]].key == now:
        job = events[1]
        drop(state, job)
        if jobs[job].message_state == IN_LATENCY:
            append(state, BEGINNING, job)
            continue
        if jobs[job].message_state == TRANSFERRING:
            log_message(state, job, now)
            end_transfer(state, job, now)
        else:
            if jobs[job].stride > 0:
                if rules.record:
                    log_stride(state, job, now)
                _end_stride(state, job, now)
            elif not _end_tasks(state, job, now):
                continue
            if jobs[job].spread > 1:
                begin_waiting(state, job, now)
                continue
        if _end_iteration(state, job, now):
            finished += 1
        elif rules.cycles:
            append(state, ENDED, job)
    return finished


@njit_inline
def _dispatch_all(state: State, now: int) -> None:
    """6. dispatch on the GPUs where something changed; strides that are cut add to the list."""
    jobs, gpus, lists = state.jobs, state.gpus, state.lists
    position = 1
    while position <= lists[DIRTY, 0]:
        gpu = lists[DIRTY, position]
        position += 1
        gpus[gpu].dirty = 0
        if gpus[gpu].task >= 0:
            job = state.workers[gpus[gpu].task].job
            if jobs[job].stride == 0:
                continue
            if not in_the_way(state, job, gpu, service_now(state, job, now)):
                continue
            if state.rules.record:
                log_stride(state, job, now)
            cut_stride(state, job, now)
        if gpus[gpu].task < 0:
            _dispatch(state, gpu, now)
    if state.rules.strides:
        for position in range(1, lists[CANDIDATES, 0] + 1):
            begin_stride(state, lists[CANDIDATES, position], now)


@njit_inline
def _end_stride(state: State, job: int, now: int) -> None:
    """End a stride that nothing cut: all workers are at the barrier of its last iteration."""
    jobs, workers = state.jobs, state.workers
    jobs[job].service = service_now(state, job, now)
    jobs[job].iteration += jobs[job].stride - 1
    jobs[job].stride = 0
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        workers[worker].state = AT_BARRIER
        state.gpus[workers[worker].gpu].task = -1
        look_at(state, workers[worker].gpu)


@njit_inline
def _end_tasks(state: State, job: int, now: int) -> bool:
    """End the compute tasks of a job that end now; whether all its workers are at the barrier."""
    jobs, workers = state.jobs, state.workers
    first, end = jobs[job].first_worker, jobs[job].first_worker + jobs[job].width
    earliest = NEVER
    for worker in range(first, end):
        if workers[worker].end > now:
            earliest = min(earliest, workers[worker].end)
            continue
        workers[worker].end = NEVER
        kind = 1 if workers[worker].state == IN_BACKWARD else 0
        if state.rules.record:
            task = jobs[job].iteration * (end - first) + worker - first
            state.ended[jobs[job].task_base + 2 * task + kind] = now
        if kind == 1:
            jobs[job].service -= jobs[job].backward
            workers[worker].state = AT_BARRIER
            jobs[job].at_barrier += 1
        else:
            jobs[job].service -= jobs[job].forward
            workers[worker].state = BACKWARD_READY
        state.gpus[workers[worker].gpu].task = -1
        look_at(state, workers[worker].gpu)
    if earliest < NEVER:
        put(state, job, earliest)
    complete: bool = jobs[job].at_barrier == end - first
    return complete


@njit_inline
def _end_iteration(state: State, job: int, now: int) -> bool:
    """Begin the next iteration of a job, or finish it; whether it has finished."""
    jobs = state.jobs
    jobs[job].iteration += 1
    jobs[job].at_barrier = 0
    if jobs[job].iteration == jobs[job].iterations:
        jobs[job].finish = now
        leave(state, job)
        return True
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        state.workers[worker].state = FORWARD_READY
        look_at(state, state.workers[worker].gpu)
    return False


@njit_inline
def _dispatch(state: State, gpu: int, now: int) -> None:
    """Start the first ready task on an idle GPU, in SRSF order."""
    jobs, workers = state.jobs, state.workers
    best, others = -1, -1
    worker = state.gpus[gpu].head
    while worker >= 0:
        if workers[worker].state == FORWARD_READY or workers[worker].state == BACKWARD_READY:
            others += 1
            if best < 0 or comes_before(state, workers[worker].job, workers[best].job):
                best = worker
        worker = workers[worker].after
    if best < 0:
        return
    job = workers[best].job
    first, width = jobs[job].first_worker, jobs[job].width
    kind = 1 if workers[best].state == BACKWARD_READY else 0
    end = now + (jobs[job].backward if kind == 1 else jobs[job].forward)
    state.gpus[gpu].task = best
    workers[best].end = end
    workers[best].state += 1
    if state.rules.record:
        state.started[jobs[job].task_base + 2 * (jobs[job].iteration * width + best - first) + kind] = now
    if kind == 0:
        if jobs[job].started_at != now:
            jobs[job].started_at = now
            jobs[job].started = 0
            jobs[job].alone = 0
        jobs[job].started += 1
        jobs[job].alone += 1 if others == 0 else 0
        if jobs[job].started == width:
            append(state, CANDIDATES, job)
    jobs[job].dispatched = now
    if state.cycles[job].still == 1:
        state.cycles[job].still = 0
        state.cycles[job].releases += 1
        state.counts[RELEASED] = 1
    if jobs[job].place == 0 or end < jobs[job].key:
        put(state, job, end)
