"""Cycles: states that recur, and how often what happened is sure to happen again."""

from __future__ import annotations

from schedgap.formulations.ddl_cluster.replay_components import (
    COUNT,
    CYCLE_DONE,
    CYCLE_SERVICE,
    DONE,
    FIRST,
    FIRST_LIMIT,
    FIRST_PLACE,
    FIRST_WORKER,
    FOLLOWING,
    GPU,
    ITERATIONS,
    JOB,
    KEPT_AT,
    KEPT_DONE,
    KEPT_END,
    KEPT_EVENT,
    KEPT_LEFT,
    KEPT_LEVEL,
    KEPT_LINK,
    KEPT_SERVICE,
    KEPT_SINCE,
    KEPT_STATE,
    LAST_EVENT,
    LAST_LIMIT,
    LEADER,
    LEFT,
    LEVEL,
    LIMIT,
    LINK_EVENT,
    LINK_STATE,
    LOOSE,
    NEVER,
    PASSED,
    PERIOD,
    PLACE,
    RELEASED,
    ROOT,
    ROW,
    SERVICE,
    SINCE,
    STATE,
    STILL,
    TASK_END,
    TOUCHED,
    WORKER,
    Replay,
    regroup,
    set_due,
)


def watch(r: Replay, job: int, now: int) -> None:
    """See whether the component of a job whose iteration has just ended may sleep; in time keep another state."""
    component = r.job[ROOT][job]
    if r.job[KEPT_AT][component] >= 0 and r.job[LEADER][component] == job and recurs(r, component, now):
        cycles = most_cycles(r, component)
        if cycles > 1:
            sleep(r, component, now, cycles)
            return
        r.job[PASSED][component] = 0
        r.job[LIMIT][component] = FIRST_LIMIT
        keep(r, job, now)
        return
    r.job[PASSED][component] += 1
    if r.job[KEPT_AT][component] < 0 or r.job[PASSED][component] > r.job[LIMIT][component]:
        limit = min(2 * r.job[LIMIT][component], LAST_LIMIT)
        stand_still(r, component)
        if r.job[STILL][job] == 0:
            r.job[PASSED][r.job[ROOT][job]] = 0
            r.job[LIMIT][r.job[ROOT][job]] = limit
            keep(r, job, now)


def stand_still(r: Replay, component: int) -> None:
    """Let jobs of a component stand still of which nothing has happened since its state was kept.

    One that had to go on before does so only after twice as many iterations of the others.
    """
    count = stopped = 0
    job = r.job[FIRST][component]
    while job >= 0:
        idle = r.job[LINK_STATE][job] == 0 and r.job[LAST_EVENT][job] < r.job[KEPT_AT][component]
        idle = idle and r.job[PASSED][component] >> min(r.job[RELEASED][job], 60) > 0
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            idle = idle and r.worker[STATE][w] != 1 and r.worker[STATE][w] != 3
        if idle:
            r.job[STILL][job] = 1
            stopped += 1
        else:
            r.lists[LOOSE][count] = job
            count += 1
        job = r.job[FOLLOWING][job]
    if stopped == 0:
        return
    job = r.job[FIRST][component]
    while job >= 0:
        if r.job[STILL][job] == 1:
            r.job[ROOT][job] = -1
        job = r.job[FOLLOWING][job]
    regroup(r, count)
    r.counts[TOUCHED] = 0


def keep(r: Replay, job: int, now: int) -> None:
    """Keep the state of the component of a job, its leader."""
    component = r.job[ROOT][job]
    r.job[LEADER][component] = job
    r.job[KEPT_AT][component] = now
    job = r.job[FIRST][component]
    while job >= 0:
        r.job[KEPT_DONE][job] = r.job[DONE][job]
        r.job[KEPT_SERVICE][job] = r.job[SERVICE][job]
        r.job[KEPT_LINK][job] = r.job[LINK_STATE][job]
        r.job[KEPT_EVENT][job] = r.job[LINK_EVENT][job] - now
        r.left[KEPT_LEFT][job] = r.left[LEFT][job]
        r.job[KEPT_SINCE][job] = r.job[SINCE][job] - now
        r.job[KEPT_LEVEL][job] = r.job[LEVEL][job]
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            r.worker[KEPT_STATE][w] = r.worker[STATE][w]
            r.worker[KEPT_END][w] = r.place[TASK_END][r.worker[GPU][w]] - now
        job = r.job[FOLLOWING][job]


def recurs(r: Replay, component: int, now: int) -> bool:
    """Whether the state of a component is the one that was kept."""
    job = r.job[FIRST][component]
    while job >= 0:
        if r.job[KEPT_LINK][job] != r.job[LINK_STATE][job]:
            return False
        if r.job[LINK_STATE][job] >= 2 and (
            r.job[KEPT_EVENT][job] != r.job[LINK_EVENT][job] - now or r.left[KEPT_LEFT][job] != r.left[LEFT][job]
        ):
            return False
        if r.job[LINK_STATE][job] == 3 and (
            r.job[KEPT_SINCE][job] != r.job[SINCE][job] - now or r.job[KEPT_LEVEL][job] != r.job[LEVEL][job]
        ):
            return False
        for w in range(r.job[FIRST_WORKER][job], r.job[FIRST_WORKER][job + 1]):
            if r.worker[KEPT_STATE][w] != r.worker[STATE][w]:
                return False
            running = r.worker[STATE][w] == 1 or r.worker[STATE][w] == 3
            if running and r.worker[KEPT_END][w] != r.place[TASK_END][r.worker[GPU][w]] - now:
                return False
        job = r.job[FOLLOWING][job]
    return True


def most_cycles(r: Replay, component: int) -> int:
    """How often the cycle that has just ended is sure to come again; what it takes of every job is noted.

    An iteration of every job must be left, and every two services that are compared keep their order: of two
    jobs on one GPU, or across servers that share one.
    """
    most = NEVER
    job = r.job[FIRST][component]
    while job >= 0:
        r.job[CYCLE_DONE][job] = r.job[DONE][job] - r.job[KEPT_DONE][job]
        r.job[CYCLE_SERVICE][job] = r.job[KEPT_SERVICE][job] - r.job[SERVICE][job]
        if r.job[CYCLE_DONE][job] > 0:
            most = min(most, (r.job[ITERATIONS][job] - 1 - r.job[DONE][job]) // r.job[CYCLE_DONE][job])
        job = r.job[FOLLOWING][job]
    job = r.job[FIRST][component]
    while job >= 0:
        for p in range(r.job[FIRST_PLACE][job], r.job[FIRST_PLACE][job + 1]):
            here = r.entry[PLACE][p]
            for k in range(r.place[ROW][here], r.place[ROW][here] + r.place[COUNT][here]):
                worker = r.entry[WORKER][k]
                waits = r.worker[STATE][worker] == 0 or r.worker[STATE][worker] == 2
                if r.job[STILL][r.worker[JOB][worker]] == 0 or waits:
                    most = min(most, in_order(r, job, r.worker[JOB][worker]))
        job = r.job[FOLLOWING][job]
    return most


def in_order(r: Replay, one: int, other: int) -> int:
    """For how many cycles two services compare as in the last one.

    If a cycle takes the same of both, the comparisons are the same ones. Else the larger is, all through the last cycle
    and the n that follow, no less than what it is at the end of the n-th, the smaller no more than at its begin.
    """
    above = one
    below = other
    if r.job[SERVICE][one] < r.job[SERVICE][other]:
        above = other
        below = one
    falls = 0 if r.job[STILL][below] == 1 else r.job[CYCLE_SERVICE][below]
    closer = (0 if r.job[STILL][above] == 1 else r.job[CYCLE_SERVICE][above]) - falls
    apart = r.job[SERVICE][above] - r.job[SERVICE][below] - falls
    if closer == 0:
        return NEVER
    if apart <= 0:
        return 0
    return NEVER if closer < 0 else (apart - 1) // closer


def sleep(r: Replay, component: int, now: int, cycles: int) -> None:
    """Let a component sleep through so many cycles as the one that has just ended."""
    r.job[PERIOD][component] = now - r.job[KEPT_AT][component]
    r.job[KEPT_AT][component] = now
    job = r.job[FIRST][component]
    while job >= 0:
        set_due(r, job, NEVER)
        job = r.job[FOLLOWING][job]
    set_due(r, component, now + cycles * r.job[PERIOD][component])
