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

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.compiled import njit_inline, njit_kernel
from schedgap.heuristics.ddl_cluster.cycles import follow, wake_before
from schedgap.heuristics.ddl_cluster.kernel_placement import enqueue, leave, place_queue
from schedgap.heuristics.ddl_cluster.kernel_transfers import admit, begin_waiting, end_transfer, log_message, transfer
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
    QUEUED,
    RELEASED,
    TRANSFERRING,
    State,
    append,
    comes_before,
    drop,
    look_at,
    put,
)
from schedgap.heuristics.ddl_cluster.strides import (
    begin_stride,
    cut_stride,
    in_the_way,
    log_stride,
    next_moment,
    service_now,
)


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
