"""What the replay of ddl-cluster works on: tables of jobs, workers and places, lists, and the components of jobs."""

from __future__ import annotations

from typing import NamedTuple

from schedgap.formulations.common.instance import Json

NEVER = 2**62


IDLE, TOUCHED, ENDED, WOKEN, GONE, LOOSE, STACK = range(LISTS := 7)
"""Rows of `lists`: GPUs to look at, jobs whose components have changed, jobs whose iteration has ended, that go on
after they stood still, or have finished; and working memory."""


GROUPING, SKIPPED, MOMENTS, JUMPS = range(LISTS, COUNTS := 11)
"""Entries of `counts` after the lengths of the lists: the grouping going on, cycles skipped, ticks looked at, and
jumps: of each job, whenever its component was moved on by whole cycles."""


FIRST_LIMIT, LAST_LIMIT = 4, 16_384
"""Iterations of a component after which another state is kept (Brent 1980): at first, and ever."""


# Columns of the table of jobs
ARRIVAL, ITERATIONS, FORWARD, BACKWARD, SOLO, TRANSFER, MEMORY, BY_ARRIVAL, TASK_BASE, MESSAGE_BASE = range(10)


FIRST_WORKER, FIRST_PLACE, FIRST_SERVER = range(10, 13)  # in the tables of workers and of entries, see Replay


FINISH, PLACED, DONE, AT_BARRIER, SERVICE, LINK_STATE, LINK_EVENT, SINCE, LEVEL, LAST_EVENT, QUEUE = range(13, 24)


ROOT, FIRST, FOLLOWING, STAMP, CHANGED = range(24, 29)  # the component of a job, -1 for none; the jobs of a component


STILL, RELEASED = range(29, 31)  # whether a job stands still, and how often it went on


KEPT_AT, LEADER, PASSED, LIMIT = range(31, 35)  # by component: when its state was kept (-1: none), whose iteration


# ended then, how many have ended since, and after how many another is kept
# What a component sleeps through (0: it is awake), what a cycle takes of a job, and its iterations passed over so far
PERIOD, CYCLE_DONE, CYCLE_SERVICE, OVER = range(35, 39)


KEPT_DONE, KEPT_SERVICE, KEPT_LINK, KEPT_EVENT, KEPT_SINCE, KEPT_LEVEL, JOB_COLUMNS = range(39, 46)


LEFT, KEPT_LEFT = range(2)


# of workers, of places (GPUs, then servers) and of entries
JOB, GPU, STATE, KEPT_STATE, KEPT_END, WORKER_COLUMNS = range(6)


ROW, COUNT, TASK, TASK_END, FREE, DIRTY, ACTIVE, TRANSFERS, PLACE_COLUMNS = range(9)


PLACE, WORKER = range(2)


class Replay(NamedTuple):
    """A cluster, its state and its log: tables of lists or of arrays, first by column; ticks throughout.

    A worker is ready for its forward task (0), in it (1), ready for its backward task (2), in it (3), or at the
    barrier (4), as before its job is placed. An all-reduce is none (0), waiting (1), in its latency (2) or
    transferring (3).

    Attributes
    ----------
    most_active, adaptive : what the policy admits
    entry : PLACE: where jobs can meet, by job from FIRST_PLACE on its GPUs, and from FIRST_SERVER on, where it is on
        more than one, its servers. WORKER: who is there, by place from ROW on the COUNT workers whose jobs have been
        placed and have not finished; at a server any worker of a job stands for all
    left : LEFT and KEPT_LEFT by job, floats
    due : a tree of minima over jobs of the tick of the next event, its leaves from `leaves` on. Of a component that
        sleeps only the root has one: when that ends
    counts, lists : see the head of the module
    """

    job: Json
    worker: Json
    place: Json
    entry: Json
    left: Json
    due: Json
    counts: Json
    lists: Json
    log_start: Json
    log_end: Json
    log_admitted: Json
    log_done: Json
    log_jumps: Json
    slowdown: tuple[float, ...]
    pair_factor: float
    latency: int
    most_active: int
    leaves: int
    adaptive: bool
    record: bool
    skips: bool


def put(r: Replay, row: int, entry: int) -> None:
    """Add an entry to a list."""
    r.lists[row][r.counts[row]] = entry
    r.counts[row] += 1


def look_at(r: Replay, gpu: int) -> None:
    """Have a GPU looked at in the dispatch of this tick."""
    if r.place[DIRTY][gpu] == 0:
        r.place[DIRTY][gpu] = 1
        put(r, IDLE, gpu)


def set_due(r: Replay, job: int, tick: int) -> None:
    """Set the next event of a job."""
    place = r.leaves + job
    r.due[place] = tick
    while place > 1:
        place //= 2
        r.due[place] = min(r.due[2 * place], r.due[2 * place + 1])


def before(r: Replay, one: int, other: int) -> bool:
    """SRSF order of jobs, ties by position."""
    return bool(
        r.job[SERVICE][one] < r.job[SERVICE][other] or (r.job[SERVICE][one] == r.job[SERVICE][other] and one < other)
    )


def spans(r: Replay, job: int) -> bool:
    """Whether the GPUs of a job are on more than one server."""
    return bool(r.job[FIRST_SERVER][job] < r.job[FIRST_PLACE][job + 1])


def group(r: Replay, seed: int) -> None:
    """Make the component of a job: all that can be reached from it and does not stand still."""
    current = r.counts[GROUPING]
    stack = r.lists[STACK]
    count = 1
    stack[0] = seed
    r.job[STAMP][seed] = current
    r.job[FIRST][seed] = -1
    while count > 0:
        count -= 1
        job = stack[count]
        r.job[ROOT][job] = seed
        r.job[FOLLOWING][job] = r.job[FIRST][seed]
        r.job[FIRST][seed] = job
        for p in range(r.job[FIRST_PLACE][job], r.job[FIRST_PLACE][job + 1]):
            here = r.entry[PLACE][p]
            for k in range(r.place[ROW][here], r.place[ROW][here] + r.place[COUNT][here]):
                other = r.worker[JOB][r.entry[WORKER][k]]
                if r.job[STILL][other] == 0 and r.job[STAMP][other] != current:
                    r.job[STAMP][other] = current
                    stack[count] = other
                    count += 1
    r.job[KEPT_AT][seed] = -1
    r.job[PASSED][seed] = r.job[PERIOD][seed] = 0
    r.job[LIMIT][seed] = FIRST_LIMIT
    r.job[CHANGED][seed] = 1
    put(r, TOUCHED, seed)


def regroup(r: Replay, count: int) -> None:
    """Make the components of the first jobs in LOOSE anew."""
    r.counts[GROUPING] += 1
    for k in range(count):
        job = r.lists[LOOSE][k]
        if r.job[STAMP][job] != r.counts[GROUPING]:
            group(r, job)
