"""Fast-forward in the compiled simulator: iterations that nothing can part, as one event.

When all workers of a job begin an iteration together, and on each of its GPUs every other ready task belongs to
a job that is behind it for as long as it is ready, only a newly ready task on one of its GPUs can come between
them. A job on one server then strides to its finish, one on several to its barrier. When a task becomes ready
on one of its GPUs whose job might come before it, the stride is cut there: what was done until now follows from
the time that has passed, exactly, since ticks are whole numbers. Why a job that is behind stays behind: while a
task of it is ready and does not run, its iteration cannot end, so its service falls by no more than the compute
tasks of one iteration; the striding job's service only falls.
"""

from __future__ import annotations

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.compiled import njit_inline
from schedgap.heuristics.ddl_cluster.state import (
    BACKWARD_READY,
    FORWARD_READY,
    IN_BACKWARD,
    IN_FORWARD,
    NEVER,
    State,
    drop,
    look_at,
    put,
)


@njit_inline
def service_now(state: State, job: int, now: int) -> int:
    """Remaining service of a job, those tasks counted that ended during its present stride."""
    jobs = state.jobs
    service: int = jobs[job].service
    if jobs[job].stride > 0:
        passed, rest = divmod(now - jobs[job].stride_start, jobs[job].forward + jobs[job].backward)
        work = passed * (jobs[job].forward + jobs[job].backward)
        if rest >= jobs[job].forward:
            work += jobs[job].forward
        service -= jobs[job].width * work
    return service


@njit_inline
def in_the_way(state: State, job: int, gpu: int, service: int) -> bool:
    """Whether another job with a ready task on `gpu` might come before `job`, which has this service."""
    jobs, workers = state.jobs, state.workers
    worker = state.gpus[gpu].head
    while worker >= 0:
        if workers[worker].state == FORWARD_READY or workers[worker].state == BACKWARD_READY:
            other = workers[worker].job
            width = jobs[other].width
            most = width * (jobs[other].forward + jobs[other].backward)
            if other != job and jobs[other].service - most <= service:
                return True
        worker = workers[worker].after
    return False


@njit_inline
def begin_stride(state: State, job: int, now: int) -> None:
    """Let a job all of whose workers begin an iteration now stride, where nothing is in its way."""
    jobs = state.jobs
    first, end = jobs[job].first_worker, jobs[job].first_worker + jobs[job].width
    if jobs[job].alone < jobs[job].width:
        for worker in range(first, end):
            if in_the_way(state, job, state.workers[worker].gpu, jobs[job].service):
                return
    length = 1 if jobs[job].spread > 1 else jobs[job].iterations - jobs[job].iteration
    jobs[job].stride = length
    jobs[job].stride_start = now
    for worker in range(first, end):
        state.workers[worker].end = NEVER
    period = jobs[job].forward + jobs[job].backward
    put(state, job, now + length * period)


@njit_inline
def log_stride(state: State, job: int, now: int) -> None:
    """Record the tasks of a stride that began up to `now`, and those of their ends that have come."""
    jobs = state.jobs
    first, end = jobs[job].first_worker, jobs[job].first_worker + jobs[job].width
    forward, period = jobs[job].forward, jobs[job].forward + jobs[job].backward
    begin = jobs[job].stride_start
    at = jobs[job].task_base + 2 * (end - first) * jobs[job].iteration
    while begin < now:
        for _ in range(end - first):
            state.started[at] = begin
            if begin + forward <= now:
                state.ended[at] = begin + forward
            if begin + forward < now:
                state.started[at + 1] = begin + forward
            if begin + period <= now:
                state.ended[at + 1] = begin + period
            at += 2
        begin += period


@njit_inline
def cut_stride(state: State, job: int, now: int) -> None:
    """End a stride at `now`: the present tasks of its workers run on by themselves, or have just ended."""
    jobs, workers = state.jobs, state.workers
    forward, period = jobs[job].forward, jobs[job].forward + jobs[job].backward
    passed, rest = divmod(now - jobs[job].stride_start, period)
    jobs[job].service = service_now(state, job, now)
    jobs[job].iteration += passed
    jobs[job].stride = 0
    ends = now - rest + (forward if rest < forward else period)
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        if rest == 0 or rest == forward:
            workers[worker].state = FORWARD_READY if rest == 0 else BACKWARD_READY
            gpu = workers[worker].gpu
            state.gpus[gpu].task = -1
            look_at(state, gpu)
        else:
            workers[worker].state = IN_FORWARD if rest < forward else IN_BACKWARD
            workers[worker].end = ends
    if rest == 0 or rest == forward:
        drop(state, job)
    else:
        put(state, job, ends)


@njit_inline
def next_moment(state: State, by_arrival: Ints, arrived: int, until: int) -> tuple[int, bool]:
    """The tick of the next event, `until` at the latest, and whether a job arrives then."""
    jobs, events = state.jobs, state.events
    now, arrives = until, False
    if arrived < len(by_arrival) and jobs[by_arrival[arrived]].arrival <= now:
        now, arrives = jobs[by_arrival[arrived]].arrival, True
    if events[0] > 0 and jobs[events[1]].key <= now:
        arrives = arrives and jobs[events[1]].key == now
        now = jobs[events[1]].key
    return now, arrives
