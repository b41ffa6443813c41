"""Cycles in the compiled simulator: a component whose state recurs repeats what it did, so repetitions are skipped.

Two jobs are of one component where they have workers on one GPU, or where both are across servers and share one,
directly or through other jobs. A job that waits for a GPU, behind others all the time, is of none: it changes nothing
as long as no task of it begins. Between placements and finishes what happens in a component depends on nothing outside.
Its state consists of whole ticks, which count relative to now, of `left`, a function of differences of ticks, and of
remaining services, which are only compared with one another. So where everything but the services is, at two moments,
the same bit by bit, the second period is the first one over again if no comparison of services comes out otherwise.

A state is kept when an iteration of some job, the leader, ends, and compared whenever one of the leader's ends; another
is kept after twice as many iterations (Brent 1980), so every cycle of up to LAST_LIMIT of them is found. Then as many
cycles are skipped as leave an iteration of every job and keep the order of every two services that fall at different
rates.

A skip can be taken back: before an arrival, a finish, or the end of a job's standstill, components that are ahead
return to the last end of a cycle before it, and are simulated from there. Where no state recurs nothing is skipped.
"""

from __future__ import annotations

from schedgap.formulations.common.compiled import njit_inline
from schedgap.heuristics.ddl_cluster.state import (
    ASLEEP,
    AT_BARRIER,
    ENDED,
    HELD,
    IN_BACKWARD,
    IN_FORWARD,
    IN_LATENCY,
    JUMPS,
    NEVER,
    NO_MESSAGE,
    RELEASED,
    SCRATCH,
    SKIPPED,
    TRANSFERRING,
    State,
    append,
    put,
)
from schedgap.heuristics.ddl_cluster.strides import service_now

FIRST_LIMIT, LAST_LIMIT = 4, 16_384
"""Iterations of a component after which a state that was kept is given up: the first one, and any."""


@njit_inline
def _root(state: State, job: int) -> int:
    cycles = state.cycles
    while cycles[job].parent != job:
        cycles[job].parent = cycles[cycles[job].parent].parent
        job = cycles[job].parent
    return job


@njit_inline
def _join(state: State, one: int, other: int) -> None:
    one, other = _root(state, one), _root(state, other)
    state.cycles[max(one, other)].parent = min(one, other)


@njit_inline
def find_components(state: State) -> None:
    """Find the components of all jobs that are placed; see _partition. O(w) for w workers on all GPUs and servers."""
    jobs, workers, gpus = state.jobs, state.workers, state.gpus
    count = 0
    for gpu in range(len(gpus)):
        worker = gpus[gpu].head
        while worker >= 0:
            if worker == jobs[workers[worker].job].first_worker:
                count += 1
                state.lists[SCRATCH, count] = workers[worker].job
            worker = workers[worker].after
    _partition(state, count)


@njit_inline
def _refine(state: State, root: int) -> None:
    """Let jobs of a component stand still that have none of its events since its state was kept, and part the rest.

    A job that had to be let go on before is let stand still only after twice as many iterations of the others.
    """
    jobs, cycles, workers = state.jobs, state.cycles, state.workers
    count, job = 0, cycles[root].first
    since, patience = cycles[root].kept_at, cycles[root].patience
    while job >= 0:
        count += 1
        state.lists[SCRATCH, count] = job
        idle = jobs[job].message_state == NO_MESSAGE and jobs[job].stride == 0 and jobs[job].dispatched < since
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            idle = idle and workers[worker].state != IN_FORWARD and workers[worker].state != IN_BACKWARD
        cycles[job].still = 1 if idle and patience >> min(cycles[job].releases, 60) > 0 else 0
        job = cycles[job].next
    _partition(state, count)


@njit_inline
def release(state: State, now: int) -> None:
    """Let jobs that stood still go on: tasks of them begin now. What others skipped is taken back beyond now."""
    state.counts[RELEASED] = 0
    _take_back(state, now + 1)
    find_components(state)


@njit_inline
def _partition(state: State, count: int) -> None:
    """Name the components of the jobs in SCRATCH by their first jobs; those with new members have no kept state.

    Jobs that stand still have the root -1.
    """
    cycles, jobs, workers, gpus, servers = state.cycles, state.jobs, state.workers, state.gpus, state.servers
    for position in range(1, count + 1):
        job = state.lists[SCRATCH, position]
        cycles[job].parent = job
        for index in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].spread):
            servers[workers[index].server].user = -1
    for position in range(1, count + 1):
        job = state.lists[SCRATCH, position]
        if cycles[job].still == 1:
            continue
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            other = gpus[workers[worker].gpu].head
            while other >= 0:
                if cycles[workers[other].job].still == 0:
                    _join(state, job, workers[other].job)
                other = workers[other].after
        if jobs[job].spread > 1:
            for index in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].spread):
                s = workers[index].server
                if servers[s].user >= 0:
                    _join(state, job, servers[s].user)
                servers[s].user = job
    for position in range(1, count + 1):
        job = state.lists[SCRATCH, position]
        cycles[job].first = -1
        cycles[job].before = cycles[job].size if cycles[job].root == job else 0
        cycles[job].size = 0
    for position in range(1, count + 1):
        job = state.lists[SCRATCH, position]
        if cycles[job].still == 1:
            cycles[job].root = -1
            continue
        root = _root(state, job)
        if cycles[job].root == root:
            cycles[root].before -= 1
        else:
            cycles[root].before = NEVER
        cycles[job].root = root
        cycles[job].next = cycles[root].first
        cycles[root].first = job
        cycles[root].size += 1
    for position in range(1, count + 1):
        root = state.lists[SCRATCH, position]
        if cycles[root].root == root and cycles[root].before != 0:
            cycles[root].kept_at = cycles[root].until = -1
            cycles[root].patience = 0
            cycles[root].limit = FIRST_LIMIT


@njit_inline
def watch(state: State, job: int, now: int) -> None:
    """Have the end of an iteration of `job` looked at, after all that happens at this tick.

    Where the state of its component is the kept one, cycles are skipped; in time another state is kept.
    """
    cycles = state.cycles
    root = cycles[job].root
    if state.jobs[job].finish >= 0 or root < 0:
        return
    if cycles[root].until > now or (cycles[root].size == 1 and state.jobs[job].spread == 1):
        return  # another of its jobs has just made it skip, or it strides
    if cycles[root].kept_at >= 0 and cycles[root].leader == job and _recurs(state, root, now):
        cycles[root].patience, cycles[root].limit = 0, FIRST_LIMIT  # what comes next may be another cycle
        count = _most_cycles(state, root, now)
        if count > 0:
            _skip(state, root, now, count)
        else:  # a state since which less has happened may allow it
            _keep(state, root, now)
        return
    cycles[root].patience += 1
    if cycles[root].kept_at < 0 or cycles[root].patience > cycles[root].limit:
        if cycles[root].size > 1:
            _refine(state, root)
            root = cycles[job].root
            if root < 0:
                return
        cycles[root].leader = job
        cycles[root].patience = 0
        cycles[root].limit = min(2 * cycles[root].limit, LAST_LIMIT)
        _keep(state, root, now)


@njit_inline
def _iteration(state: State, job: int, now: int) -> int:
    """Iterations that `job` has done, those of its present stride counted."""
    jobs = state.jobs
    done: int = jobs[job].iteration
    if jobs[job].stride > 0:
        done += (now - jobs[job].stride_start) // (jobs[job].forward + jobs[job].backward)
    return done


@njit_inline
def _phase(state: State, job: int, now: int) -> int:
    """Ticks into the present iteration of a stride; -1 where there is none."""
    jobs = state.jobs
    if jobs[job].stride == 0:
        return -1
    ticks: int = (now - jobs[job].stride_start) % (jobs[job].forward + jobs[job].backward)
    return ticks


@njit_inline
def _next_event(state: State, job: int, now: int) -> int:
    """Ticks to the next event of `job`; -1 where there is none, or only the end of a stride to its finish."""
    jobs = state.jobs
    if jobs[job].place == 0 or (jobs[job].stride > 0 and jobs[job].spread == 1):
        return -1
    ticks: int = jobs[job].key - now
    return ticks


@njit_inline
def _keep(state: State, root: int, now: int) -> None:
    """Keep the state of a component."""
    jobs, cycles, workers = state.jobs, state.cycles, state.workers
    cycles[root].kept_at = now
    job = cycles[root].first
    while job >= 0:
        cycles[job].kept_iteration = _iteration(state, job, now)
        cycles[job].kept_service = service_now(state, job, now)
        cycles[job].kept_key = _next_event(state, job, now)
        cycles[job].kept_phase = _phase(state, job, now)
        cycles[job].kept_message = jobs[job].message_state
        cycles[job].kept_since = jobs[job].since - now
        cycles[job].kept_level = jobs[job].level
        cycles[job].kept_left = jobs[job].left
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            workers[worker].kept_state = workers[worker].state
            workers[worker].kept_end = workers[worker].end - (now if workers[worker].end < NEVER else 0)
        job = cycles[job].next


@njit_inline
def _recurs(state: State, root: int, now: int) -> bool:
    """Whether the state of a component is the kept one, but for services and iterations that are done."""
    jobs, cycles, workers = state.jobs, state.cycles, state.workers
    job = cycles[root].first
    while job >= 0:
        if (
            cycles[job].kept_message != jobs[job].message_state
            or cycles[job].kept_key != _next_event(state, job, now)
            or cycles[job].kept_phase != _phase(state, job, now)
        ):
            return False
        if jobs[job].message_state >= IN_LATENCY and cycles[job].kept_left != jobs[job].left:
            return False
        if jobs[job].message_state == TRANSFERRING and (
            cycles[job].kept_since != jobs[job].since - now or cycles[job].kept_level != jobs[job].level
        ):
            return False
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            end = workers[worker].end - (now if workers[worker].end < NEVER else 0)
            if workers[worker].kept_state != workers[worker].state or workers[worker].kept_end != end:
                return False
        job = cycles[job].next
    return True


@njit_inline
def _most_cycles(state: State, root: int, now: int) -> int:
    """How many cycles may be skipped from now on; what a cycle takes of every job is noted.

    A service differs from its value at the ends of the cycle by no more than what the cycle takes of it, and a
    comparison (see in_the_way) by no more than an iteration's tasks. Two services that fall equally compare as before;
    two others do while they differ by more than all that.
    """
    jobs, cycles, workers = state.jobs, state.cycles, state.workers
    period = now - cycles[root].kept_at
    most = NEVER
    if now < state.counts[HELD]:
        most = (state.counts[HELD] - 1 - now) // period
    job = cycles[root].first
    while job >= 0:
        done = _iteration(state, job, now)
        cycles[job].iterations = done - cycles[job].kept_iteration
        cycles[job].service = cycles[job].kept_service - service_now(state, job, now)
        if cycles[job].iterations > 0:
            most = min(most, (jobs[job].iterations - 1 - done) // cycles[job].iterations)
        job = cycles[job].next
    job = cycles[root].first
    while job >= 0:
        other = cycles[job].next
        while other >= 0:
            most = min(most, _in_order(state, job, other, cycles[other].service, now))
            other = cycles[other].next
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            beside = state.gpus[workers[worker].gpu].head
            while beside >= 0:
                if cycles[workers[beside].job].still == 1:
                    most = min(most, _in_order(state, job, workers[beside].job, 0, now))
                beside = workers[beside].after
        job = cycles[job].next
    return most


@njit_inline
def _in_order(state: State, job: int, other: int, falls: int, now: int) -> int:
    """For how many cycles the services of two jobs compare as in the last one, where one `falls` so much in each."""
    jobs, service = state.jobs, state.cycles[job].service
    closer = service - falls
    if closer == 0:
        return NEVER
    apart = service_now(state, job, now) - service_now(state, other, now)
    if apart < 0:
        apart, closer = -apart, -closer
    guard = service + falls
    guard += jobs[job].width * (jobs[job].forward + jobs[job].backward)
    guard += jobs[other].width * (jobs[other].forward + jobs[other].backward)
    if apart <= guard:
        return 0
    return NEVER if closer < 0 else (apart - guard - 1) // closer


@njit_inline
def _skip(state: State, root: int, now: int, count: int) -> None:
    """Move a component on by `count` cycles, and record that."""
    cycles, jumps, counts = state.cycles, state.jumps, state.counts
    period = now - cycles[root].kept_at
    cycles[root].period, cycles[root].row = period, counts[JUMPS]
    job = cycles[root].first
    while job >= 0:
        row = counts[JUMPS]
        counts[JUMPS] += 1
        jumps[row, 0], jumps[row, 1], jumps[row, 2] = job, now, period
        jumps[row, 3], jumps[row, 4] = 0, cycles[job].iterations
        cycles[job].kept_iteration += cycles[job].iterations
        cycles[job].kept_service -= cycles[job].service
        job = cycles[job].next
    cycles[root].kept_at = cycles[root].until = now
    _shift(state, root, count)
    if cycles[root].listed == 0:
        cycles[root].listed = 1
        append(state, ASLEEP, root)


@njit_inline
def _shift(state: State, root: int, count: int) -> None:
    """Move a component by so many of its cycles, onwards or, where that is negative, back."""
    jobs, cycles, workers = state.jobs, state.cycles, state.workers
    ticks = count * cycles[root].period
    cycles[root].kept_at += ticks
    cycles[root].until += ticks
    state.counts[SKIPPED] += count
    row = cycles[root].row
    job = cycles[root].first
    while job >= 0:
        state.jumps[row, 3] += count
        row += 1
        iterations, service = count * cycles[job].iterations, count * cycles[job].service
        cycles[job].kept_iteration += iterations
        cycles[job].kept_service -= service
        jobs[job].iteration += iterations
        jobs[job].service -= service
        jobs[job].since += ticks
        if jobs[job].message_state >= IN_LATENCY:
            jobs[job].admitted += ticks
        for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
            if workers[worker].end < NEVER:
                workers[worker].end += ticks
        if jobs[job].stride > 0:
            jobs[job].stride_start += ticks
        if jobs[job].stride > 0 and jobs[job].spread == 1:  # its finish is where it was, or later
            jobs[job].stride -= iterations
            period = jobs[job].forward + jobs[job].backward
            put(state, job, jobs[job].stride_start + jobs[job].stride * period)
        elif jobs[job].place > 0:
            put(state, job, jobs[job].key + ticks)
        job = cycles[job].next


@njit_inline
def wake_before(state: State, tick: int, arrives: bool) -> bool:
    """Take back what was skipped beyond `tick` where a job arrives or finishes then; whether anything was.

    A component then stands at the last end of a cycle before `tick`, and skips no further before that is over.
    """
    lists = state.lists
    if lists[ASLEEP, 0] == 0 or not (arrives or _finishes(state, tick)):
        return False
    return _take_back(state, tick)


@njit_inline
def _take_back(state: State, tick: int) -> bool:
    """Have every component stand before `tick` that has skipped further, until then; whether there is any."""
    cycles, lists = state.cycles, state.lists
    woken = False
    for position in range(1, lists[ASLEEP, 0] + 1):
        root = lists[ASLEEP, position]
        cycles[root].listed = 0
        if cycles[root].until >= tick:
            _shift(state, root, -((cycles[root].until - tick) // cycles[root].period + 1))
            woken = True
    lists[ASLEEP, 0] = 0
    if woken:
        state.counts[HELD] = tick
    return woken


@njit_inline
def _finishes(state: State, tick: int) -> bool:
    """Whether a job finishes at `tick`, the first at which there is an event."""
    jobs, heap, stack = state.jobs, state.events, state.lists
    stack[SCRATCH, 0], count = 1, 1
    while count > 0:
        count -= 1
        position = stack[SCRATCH, count]
        if position > heap[0] or jobs[heap[position]].key != tick:
            continue
        if _is_last(state, heap[position], tick):
            return True
        stack[SCRATCH, count], stack[SCRATCH, count + 1] = 2 * position, 2 * position + 1
        count += 2
    return False


@njit_inline
def _is_last(state: State, job: int, tick: int) -> bool:
    """Whether the event of `job` at `tick` ends its last iteration."""
    jobs, workers = state.jobs, state.workers
    if jobs[job].spread > 1 or jobs[job].stride > 0:
        last: bool = jobs[job].spread == 1 or (
            jobs[job].message_state == TRANSFERRING and jobs[job].iteration == jobs[job].iterations - 1
        )
        return last
    if jobs[job].iteration < jobs[job].iterations - 1:
        return False
    for worker in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].width):
        ends = workers[worker].state == IN_BACKWARD and workers[worker].end <= tick
        if not ends and workers[worker].state != AT_BARRIER:
            return False
    return True


@njit_inline
def follow(state: State, now: int, queue_changed: bool) -> None:
    """Let go of what was skipped where that ends, else look for jobs that may run in cycles."""
    if state.counts[RELEASED] > 0:
        release(state, now)
    elif queue_changed:
        find_components(state)
    for position in range(1, state.lists[ENDED, 0] + 1):
        watch(state, state.lists[ENDED, position], now)
