"""The event loop of the checker's simulator; what it means is at the head of simulate_plain.

It looks only at what an event changes, and passes over whole cycles. Two jobs are of one component where they have
workers on one GPU, or where both are across servers and share one, directly or through others. From one placement
or finish to the next, a component depends on nothing else. All it consists of are whole ticks, which count relative
to now, and the floats `left`, which follow from differences of ticks. Where all of this is, bit for bit, what it was
before, the component does the same once more, and again: as long as no job of it finishes and every two services that
are compared keep their order. It sleeps meanwhile, and is moved on by whole cycles where it ends or is disturbed.

A job whose workers all wait, for GPUs that others always take, stands still: it is of no component until a task of it
begins. That disturbs the components beside it, as a placement does. Where no state recurs every event is gone through.

Written for two readers: the interpreter runs it on lists, numba compiles it as it stands for arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from schedgap.formulations.ddl_cluster.replay_components import (
    ACTIVE,
    ARRIVAL,
    AT_BARRIER,
    BACKWARD,
    BY_ARRIVAL,
    CHANGED,
    COUNT,
    CYCLE_DONE,
    CYCLE_SERVICE,
    DIRTY,
    DONE,
    ENDED,
    FINISH,
    FIRST,
    FIRST_LIMIT,
    FIRST_PLACE,
    FIRST_SERVER,
    FIRST_WORKER,
    FOLLOWING,
    FORWARD,
    FREE,
    GONE,
    GPU,
    GROUPING,
    IDLE,
    ITERATIONS,
    JOB,
    JUMPS,
    KEPT_AT,
    LAST_EVENT,
    LEFT,
    LEVEL,
    LIMIT,
    LINK_EVENT,
    LINK_STATE,
    LOOSE,
    MEMORY,
    MESSAGE_BASE,
    MOMENTS,
    NEVER,
    OVER,
    PASSED,
    PERIOD,
    PLACE,
    PLACED,
    QUEUE,
    RELEASED,
    ROOT,
    ROW,
    SERVICE,
    SINCE,
    SKIPPED,
    SOLO,
    STAMP,
    STATE,
    STILL,
    TASK,
    TASK_BASE,
    TASK_END,
    TOUCHED,
    TRANSFER,
    TRANSFERS,
    WOKEN,
    WORKER,
    Replay,
    before,
    group,
    look_at,
    put,
    regroup,
    set_due,
    spans,
)
from schedgap.formulations.ddl_cluster.replay_cycles import (
    in_order,
    keep,
    most_cycles,
    recurs,
    sleep,
    stand_still,
    watch,
)


def run_events(r: Replay) -> None:
    """Run every job to its finish; fills `finish`, `placed` and, if asked, the log."""
    jobs = len(r.job[ARRIVAL]) - 1
    arrived = queued = 0
    unfinished = jobs
    while unfinished > 0:
        now = r.due[1]
        if arrived < jobs:
            now = min(now, r.job[ARRIVAL][r.job[BY_ARRIVAL][arrived]])
        r.counts[MOMENTS] += 1
        for row in range(GROUPING):
            r.counts[row] = 0

        # 1. ends
        end_events(r, now)
        queue_changed = r.counts[GONE] > 0
        unfinished -= r.counts[GONE]
        part(r)

        # 2. arrivals
        while arrived < jobs and r.job[ARRIVAL][r.job[BY_ARRIVAL][arrived]] == now:
            enqueue(r, r.job[BY_ARRIVAL][arrived], queued)
            queued += 1
            arrived += 1
            queue_changed = True

        # 3. placement; nothing can have become possible unless a job came or went
        if queue_changed:
            queued = place(r, queued, now)

        # 4. admission, 5. transfers, 6. dispatch
        settle(r, 0, 0, now)

        # who stood still and goes on; all beside them are awake before any is grouped: one may lead to another
        for k in range(r.counts[WOKEN]):
            rouse_beside(r, r.lists[WOKEN][k], now + 1)
        for k in range(r.counts[WOKEN]):
            r.counts[GROUPING] += 1
            group(r, r.lists[WOKEN][k])
        if r.skips:
            for k in range(r.counts[ENDED]):
                job = r.lists[ENDED][k]
                if r.job[FINISH][job] < 0 and r.job[PERIOD][r.job[ROOT][job]] == 0:
                    watch(r, job, now)


# -- 1. ends ---------------------------------------------------------------------------------------------------------


def end_events(r: Replay, now: int) -> None:
    """End all that ends at `now`, in components that sleep until then, too."""
    while r.due[1] == now:
        place = 1
        while place < r.leaves:
            place = 2 * place if r.due[2 * place] == now else 2 * place + 1
        job = place - r.leaves
        if r.job[PERIOD][r.job[ROOT][job]] > 0:
            rouse(r, r.job[ROOT][job], now)
        else:
            end_of(r, job, now)


def end_of(r: Replay, job: int, now: int) -> None:
    """End what ends at `now` of a job that has an event then."""
    r.job[LAST_EVENT][job] = now
    put(r, TOUCHED, job)
    complete = False
    coming = NEVER
    if r.job[LINK_STATE][job] >= 2:
        r.job[CHANGED][r.job[ROOT][job]] = 1  # what comes next is found by transfer_on
        if r.job[LINK_STATE][job] == 3:
            for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
                r.place[ACTIVE][r.entry[PLACE][s]] -= 1
                r.place[TRANSFERS][r.entry[PLACE][s]] -= 1
            r.job[SERVICE][job] -= (r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job]) * r.job[SOLO][job]
            r.job[LINK_STATE][job] = 0
            r.job[LINK_EVENT][job] = NEVER
            complete = True
            if r.record:
                r.log_done[r.job[MESSAGE_BASE][job] + row_of(r, job)] = now
    else:
        coming = end_tasks(r, job, now)
        if r.job[AT_BARRIER][job] == r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job]:
            complete = not spans(r, job)
            if not complete:
                r.job[LINK_STATE][job] = 1
                r.job[CHANGED][r.job[ROOT][job]] = 1
    set_due(r, job, coming)
    if complete:
        r.job[DONE][job] += 1
        r.job[AT_BARRIER][job] = 0
        if r.job[DONE][job] == r.job[ITERATIONS][job]:
            leave(r, job, now)
            return
        put(r, ENDED, job)
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            r.worker[STATE][w] = 0
            look_at(r, r.worker[GPU][w])


def end_tasks(r: Replay, job: int, now: int) -> int:
    """End the compute tasks of a job that end at `now`; when the next one does."""
    coming = NEVER
    width = r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job]
    for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
        gpu = r.worker[GPU][w]
        if r.worker[STATE][w] != 1 and r.worker[STATE][w] != 3:
            continue
        if r.place[TASK_END][gpu] > now:
            coming = min(coming, r.place[TASK_END][gpu])
            continue
        if r.record:
            at = r.job[TASK_BASE][job] + 2 * (row_of(r, job) * width + w - r.job[FIRST_WORKER][job])
            r.log_end[at + r.worker[STATE][w] // 2] = now
        if r.worker[STATE][w] == 3:
            r.job[SERVICE][job] -= r.job[BACKWARD][job]
            r.job[AT_BARRIER][job] += 1
        else:
            r.job[SERVICE][job] -= r.job[FORWARD][job]
        r.worker[STATE][w] += 1
        r.place[TASK][gpu] = -1
        look_at(r, gpu)
    return coming


def leave(r: Replay, job: int, now: int) -> None:
    """Free what a job that has finished held."""
    r.job[FINISH][job] = now
    put(r, GONE, job)
    for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
        r.place[FREE][r.worker[GPU][w]] += r.job[MEMORY][job]
    for p in range(r.job[FIRST_PLACE][job], r.job[FIRST_PLACE][job + 1]):
        here = r.entry[PLACE][p]
        at = r.place[ROW][here]
        while r.worker[JOB][r.entry[WORKER][at]] != job:
            at += 1
        r.place[COUNT][here] -= 1
        r.entry[WORKER][at] = r.entry[WORKER][r.place[ROW][here] + r.place[COUNT][here]]


# -- 2. arrivals, 3. placement ---------------------------------------------------------------------------------------


def enqueue(r: Replay, job: int, queued: int) -> None:
    """Put a job into the queue, which is in SRSF order."""
    place = queued
    while place > 0 and before(r, job, r.job[QUEUE][place - 1]):
        r.job[QUEUE][place] = r.job[QUEUE][place - 1]
        place -= 1
    r.job[QUEUE][place] = job


def place(r: Replay, queued: int, now: int) -> int:
    """Ask every job in the queue once, in SRSF order, and place those for which there is memory; who stays."""
    stay = 0
    for k in range(queued):
        job = r.job[QUEUE][k]
        fits = True
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            fits = fits and r.place[FREE][r.worker[GPU][w]] >= r.job[MEMORY][job]
        if not fits:
            r.job[QUEUE][stay] = job
            stay += 1
            continue
        rouse_beside(r, job, now)
        end_events(r, now)
        r.job[PLACED][job] = r.job[LAST_EVENT][job] = now
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            r.place[FREE][r.worker[GPU][w]] -= r.job[MEMORY][job]
            r.worker[STATE][w] = 0
            look_at(r, r.worker[GPU][w])
        for p in range(r.job[FIRST_PLACE][job], r.job[FIRST_PLACE][job + 1]):
            here = r.entry[PLACE][p]
            worker = r.job[FIRST_WORKER][job] + min(p, r.job[FIRST_SERVER][job] - 1) - r.job[FIRST_PLACE][job]
            r.entry[WORKER][r.place[ROW][here] + r.place[COUNT][here]] = worker
            r.place[COUNT][here] += 1
        if spans(r, job):
            r.job[SERVICE][job] += (
                (r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job]) * r.job[ITERATIONS][job] * r.job[SOLO][job]
            )
        r.counts[GROUPING] += 1
        group(r, job)
    return stay


# -- 4. admission, 5. transfers, 6. dispatch -------------------------------------------------------------------------


def settle(r: Replay, touched: int, dirty: int, now: int) -> None:
    """Admit, transfer and dispatch at `now`, from these entries of the lists on, which are taken off them."""
    for k in range(touched, r.counts[TOUCHED]):
        job = r.lists[TOUCHED][k]
        component = r.job[ROOT][job]
        if r.job[FINISH][job] < 0 and r.job[CHANGED][component] == 1:
            r.job[CHANGED][component] = 0
            admit(r, component, now)
            transfer_on(r, component, now)
    for k in range(dirty, r.counts[IDLE]):
        gpu = r.lists[IDLE][k]
        r.place[DIRTY][gpu] = 0
        if r.place[TASK][gpu] < 0:
            dispatch(r, gpu, now)
    r.counts[TOUCHED] = touched
    r.counts[IDLE] = dirty


def admit(r: Replay, component: int, now: int) -> None:
    """Ask every all-reduce of a component that waits, in SRSF order."""
    asked = r.lists[LOOSE]
    count = 0
    job = r.job[FIRST][component]
    while job >= 0:
        if r.job[LINK_STATE][job] == 1:
            asked[count] = job
            count += 1
        job = r.job[FOLLOWING][job]
    while count > 0:
        best = 0
        for k in range(1, count):
            if before(r, asked[k], asked[best]):
                best = k
        job = asked[best]
        count -= 1
        asked[best] = asked[count]
        most = 0
        for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
            most = max(most, r.place[ACTIVE][r.entry[PLACE][s]])
        admitted = most < r.most_active
        if r.adaptive and most == 1:
            admitted = r.pair_factor * r.job[TRANSFER][job] < smallest_left(r, job, now)
        if admitted:
            for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
                r.place[ACTIVE][r.entry[PLACE][s]] += 1
            r.job[LINK_STATE][job] = 2
            r.job[LINK_EVENT][job] = now + r.latency
            r.left[LEFT][job] = r.job[TRANSFER][job]
            set_due(r, job, now + r.latency)
            if r.record:
                r.log_admitted[r.job[MESSAGE_BASE][job] + row_of(r, job)] = now


def smallest_left(r: Replay, job: int, now: int) -> float:
    """The smallest remaining message of the all-reduces that are active on a server of a job."""
    smallest = math.inf
    for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
        server = r.entry[PLACE][s]
        for k in range(r.place[ROW][server], r.place[ROW][server] + r.place[COUNT][server]):
            other = r.worker[JOB][r.entry[WORKER][k]]
            if r.job[LINK_STATE][other] >= 2:
                remaining = r.left[LEFT][other]
                if r.job[LINK_STATE][other] == 3:
                    remaining -= (now - r.job[SINCE][other]) / r.slowdown[r.job[LEVEL][other]]
                smallest = min(smallest, remaining)
    return smallest


def transfer_on(r: Replay, component: int, now: int) -> None:
    """Begin the transfers of a component whose latency has passed, and compute every k and the ends anew."""
    job = r.job[FIRST][component]
    while job >= 0:
        if r.job[LINK_STATE][job] == 2 and r.job[LINK_EVENT][job] == now:
            r.job[LINK_STATE][job] = 3
            r.job[SINCE][job] = now
            r.job[LEVEL][job] = 0
            for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
                r.place[TRANSFERS][r.entry[PLACE][s]] += 1
        job = r.job[FOLLOWING][job]
    job = r.job[FIRST][component]
    while job >= 0:
        if r.job[LINK_STATE][job] == 3:
            most = 0
            for s in range(r.job[FIRST_SERVER][job], r.job[FIRST_PLACE][job + 1]):
                most = max(most, r.place[TRANSFERS][r.entry[PLACE][s]])
            if most != r.job[LEVEL][job]:
                if r.job[LEVEL][job] > 0:
                    r.left[LEFT][job] -= (now - r.job[SINCE][job]) / r.slowdown[r.job[LEVEL][job]]
                r.job[SINCE][job] = now
                r.job[LEVEL][job] = most
                r.job[LINK_EVENT][job] = now + max(1, math.ceil(r.left[LEFT][job] * r.slowdown[most] - 0.001))
                set_due(r, job, r.job[LINK_EVENT][job])
        job = r.job[FOLLOWING][job]


def dispatch(r: Replay, gpu: int, now: int) -> None:
    """Start the first ready task on an idle GPU, in SRSF order."""
    best = -1
    for k in range(r.place[ROW][gpu], r.place[ROW][gpu] + r.place[COUNT][gpu]):
        w = r.entry[WORKER][k]
        ready = r.worker[STATE][w] == 0 or r.worker[STATE][w] == 2
        if ready and (best < 0 or before(r, r.worker[JOB][w], r.worker[JOB][best])):
            best = w
    if best < 0:
        return
    job = r.worker[JOB][best]
    end = now + (r.job[FORWARD][job] if r.worker[STATE][best] == 0 else r.job[BACKWARD][job])
    if r.record:
        width = r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job]
        at = r.job[TASK_BASE][job] + 2 * (row_of(r, job) * width + best - r.job[FIRST_WORKER][job])
        r.log_start[at + r.worker[STATE][best] // 2] = now
    r.place[TASK][gpu] = best
    r.place[TASK_END][gpu] = end
    r.worker[STATE][best] += 1
    r.job[LAST_EVENT][job] = now
    if end < r.due[r.leaves + job]:
        set_due(r, job, end)
    if r.job[STILL][job] == 1:
        r.job[STILL][job] = 0
        r.job[RELEASED][job] += 1
        put(r, WOKEN, job)


# -- components ------------------------------------------------------------------------------------------------------


def part(r: Replay) -> None:
    """Make the components of the jobs anew that were with one that has finished."""
    count = 0
    for k in range(r.counts[GONE]):
        job = r.job[FIRST][r.job[ROOT][r.lists[GONE][k]]]
        r.counts[GROUPING] += 1
        while job >= 0:
            if r.job[FINISH][job] < 0 and r.job[STAMP][job] != r.counts[GROUPING]:
                r.job[STAMP][job] = r.counts[GROUPING]
                r.lists[LOOSE][count] = job
                count += 1
            job = r.job[FOLLOWING][job]
    regroup(r, count)


def rouse_beside(r: Replay, job: int, tick: int) -> None:
    """Rouse the components beside a job that sleep; see rouse."""
    for p in range(r.job[FIRST_PLACE][job], r.job[FIRST_PLACE][job + 1]):
        here = r.entry[PLACE][p]
        for k in range(r.place[ROW][here], r.place[ROW][here] + r.place[COUNT][here]):
            component = r.job[ROOT][r.worker[JOB][r.entry[WORKER][k]]]
            if component >= 0 and r.job[PERIOD][component] > 0:
                rouse(r, component, tick)


def rouse(r: Replay, component: int, tick: int) -> None:
    """Have a component that sleeps stand where it does when all that happens before `tick` has happened."""
    touched = r.counts[TOUCHED]
    dirty = r.counts[IDLE]
    ended = r.counts[ENDED]
    cycles = (tick - 1 - r.job[KEPT_AT][component]) // r.job[PERIOD][component]
    r.counts[SKIPPED] += cycles
    ticks = cycles * r.job[PERIOD][component]
    job = r.job[FIRST][component]
    while job >= 0:
        if cycles > 0:
            jump(r, job, ticks)
        r.job[OVER][job] += cycles * r.job[CYCLE_DONE][job]
        r.job[DONE][job] += cycles * r.job[CYCLE_DONE][job]
        r.job[SERVICE][job] -= cycles * r.job[CYCLE_SERVICE][job]
        r.job[SINCE][job] += ticks
        r.job[LAST_EVENT][job] += ticks
        coming = NEVER
        if r.job[LINK_STATE][job] >= 2:
            r.job[LINK_EVENT][job] += ticks
            coming = r.job[LINK_EVENT][job]
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            if r.worker[STATE][w] == 1 or r.worker[STATE][w] == 3:
                r.place[TASK_END][r.worker[GPU][w]] += ticks
                coming = min(coming, r.place[TASK_END][r.worker[GPU][w]])
        set_due(r, job, coming)
        job = r.job[FOLLOWING][job]
    r.job[KEPT_AT][component] = -1
    r.job[PERIOD][component] = r.job[PASSED][component] = 0
    r.job[LIMIT][component] = FIRST_LIMIT
    while True:
        now = tick
        job = r.job[FIRST][component]
        while job >= 0:
            now = min(now, r.due[r.leaves + job])
            job = r.job[FOLLOWING][job]
        if now == tick:
            break
        job = r.job[FIRST][component]
        while job >= 0:
            if r.due[r.leaves + job] == now:
                end_of(r, job, now)
            job = r.job[FOLLOWING][job]
        settle(r, touched, dirty, now)
        r.counts[ENDED] = ended


# -- the log ---------------------------------------------------------------------------------------------------------


def row_of(r: Replay, job: int) -> int:
    """Where the present iteration of a job stands in the log, which has none of those that were passed over."""
    return int(r.job[DONE][job] - r.job[OVER][job])


def jump(r: Replay, job: int, ticks: int) -> None:
    """Log that the component of a job is moved on: what the job has begun is now what it began so many ticks later."""
    at = r.counts[JUMPS]
    r.counts[JUMPS] += 1
    if not r.record:
        return
    component = r.job[ROOT][job]
    r.log_jumps[at][0] = job
    r.log_jumps[at][1] = r.job[KEPT_AT][component]
    r.log_jumps[at][2] = r.job[PERIOD][component]
    r.log_jumps[at][3] = ticks
    r.log_jumps[at][4] = r.job[CYCLE_DONE][job]
    if r.job[CYCLE_DONE][job] == 0:
        return  # nothing happened of it in the cycle
    row = row_of(r, job)
    width = 2 * (r.job[FIRST_WORKER][job + 1] - r.job[FIRST_WORKER][job])
    for k in range(r.job[TASK_BASE][job] + row * width, r.job[TASK_BASE][job] + (row + 1) * width):
        if r.log_start[k] >= 0:
            r.log_start[k] += ticks
        if r.log_end[k] >= 0:
            r.log_end[k] += ticks
    if r.log_admitted[r.job[MESSAGE_BASE][job] + row] >= 0:
        r.log_admitted[r.job[MESSAGE_BASE][job] + row] += ticks


# -- cycles ----------------------------------------------------------------------------------------------------------


_INLINED = (
    *(put, look_at, set_due, before, spans, end_tasks, leave, enqueue, place, admit, smallest_left, transfer_on),
    *(row_of, jump, dispatch, part, stand_still, recurs, most_cycles, in_order, sleep, rouse_beside, end_events),
)
HELPERS: dict[Callable[..., object], bool] = {
    **dict.fromkeys(_INLINED, True),
    **dict.fromkeys((end_of, settle, group, regroup, rouse, watch, keep), False),
}
"""What run_events calls and is compiled with it, and whether it is written into its callers."""
