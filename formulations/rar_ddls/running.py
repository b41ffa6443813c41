"""Jobs running under contention, event by event, in compiled code (paper 000, equations (6) to (9)).

Whoever builds a schedule starts jobs and asks for the next exits; rates are brought up to date only where a ring
came or went. Compiled functions are cached on disk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.compiled import njit_inline, njit_inner
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table

FAR = 2**62
"""A slot that does not come, and a load that no limit excludes."""

NOW, RUNNING, DIRTY, DONE = 0, 1, 2, 3
"""What the clock holds: the current slot, and how many jobs run, have to be looked at, have completed."""

HEAP, LOOK = 0, 1
"""Lists of jobs: those that run, as a binary heap by their last slot; those whose contention may have changed."""

Records = npt.NDArray[np.void]

_JOB = (
    "gang",
    "iterations",
    "best",
    "row",
    "left",
    "rate",
    "since",
    "finish",
    "place",
    "dirty",
    "used",
    "start",
    "end",
)
_ENTRY = ("owner", "server", "gpus", "position")
_SERVER = ("gpus", "first", "ring", "rings", "idle")

_LARGEST_ARRAY = 10**8
_CHUNK = 4 * 10**6


class Workload(NamedTuple):
    """An instance in arrays for compiled code, and the schedule that is being built; all int64."""

    # (J + 1,) records. ``gang``, ``iterations``, ``best``: G_j, F_j and the best duration in slots; the entries
    # ``row``.. up to that of the next job belong to the job. ``left``: iterations left at the start of slot ``since``,
    # at ``rate`` from then on; ``finish``: the last slot if nothing changes, FAR at rate 0; ``place`` in the heap, -1
    # for none; ``dirty``: whether it is to be looked at; ``used``: servers that it uses; ``start``, ``end``: first and
    # last slot, where they are known
    jobs: Records
    # (E,) records, one for each server that a job may use: ``owner``, the job; of those in use ``server`` and the
    # ``gpus`` there; ``position`` in `crossing`
    entries: Records
    # (S + 1,) records. ``gpus``: O_s; ``first``: its first GPU, where all are numbered; ``ring``: where its part of
    # `crossing` begins; ``rings``: running jobs that cross it; ``idle`` GPUs, where the builder counts
    servers: Records
    rates: Integers  # (E, p + 1) rates[row + n - 1, p] = iterations per slot on n servers under contention p
    crossing: Integers  # entries of the rings that cross each server
    lists: Integers  # (2, J) the HEAP, and the jobs to LOOK at
    clock: Integers  # (4,) NOW, RUNNING, DIRTY, DONE

    def another(self) -> Workload:
        """The same instance with room for another schedule."""
        return self._replace(
            jobs=self.jobs.copy(),
            entries=self.entries.copy(),
            servers=self.servers.copy(),
            crossing=self.crossing.copy(),
            lists=self.lists.copy(),
            clock=self.clock.copy(),
        )


def build_workload(instance: RarDdlsInstance, most_servers: int = FAR, most_rings: int = FAR) -> Workload:
    """The arrays of an instance in which every job makes progress alone.

    Raises InputError: the rates would take more than 10^8 numbers.

    Parameters
    ----------
    most_servers : a job uses at most so many
    most_rings : contention beyond so many rings is taken for that of so many

    Notes
    -----
    O(sum_j min(G_j, S) p_max) time and memory: unlike the dense table of the dynamics, a job has only the rows
    that it can use.
    """
    table = rate_table(instance)
    sizes = np.array([server.gpus for server in instance.servers], dtype=np.int64)
    most = np.minimum(np.minimum(table.gpus, sizes.size), most_servers)
    row = _starts(most)
    width = min(table.p_max, most_rings) + 1
    if int(row[-1]) * width > _LARGEST_ARRAY:
        raise InputError(
            f"rates of {len(instance.jobs)} jobs on up to {int(most.max())} servers under contention up to "
            f"{table.p_max}: more than {_LARGEST_ARRAY} numbers"
        )
    owner = np.repeat(np.arange(most.size, dtype=np.int64), most)
    used = np.arange(int(row[-1]), dtype=np.int64) - row[owner] + 1
    rates = np.empty((used.size, width), dtype=np.int64)
    contention = np.arange(width, dtype=np.int64)
    step = max(1, _CHUNK // width)
    for low in range(0, used.size, step):
        part = slice(low, low + step)
        rates[part] = table.rates(owner[part, None], used[part, None], contention)
    count = most.size
    jobs = np.zeros(count + 1, dtype=[(name, np.int64) for name in _JOB])
    jobs["gang"][:count] = table.gpus
    jobs["iterations"][:count] = table.iterations
    jobs["best"][:count] = table.best_duration
    jobs["row"] = row
    entries = np.zeros(owner.size, dtype=[(name, np.int64) for name in _ENTRY])
    entries["owner"] = owner
    servers = np.zeros(sizes.size + 1, dtype=[(name, np.int64) for name in _SERVER])
    servers["gpus"][:-1] = sizes
    servers["first"] = _starts(sizes)
    servers["ring"] = _starts(np.minimum(sizes, count))
    return Workload(
        jobs=jobs,
        entries=entries,
        servers=servers,
        rates=rates,
        crossing=np.zeros(int(servers["ring"][-1]), dtype=np.int64),
        lists=np.zeros((2, count), dtype=np.int64),
        clock=np.zeros(4, dtype=np.int64),
    )


def _starts(lengths: Integers) -> Integers:
    result = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


@njit_inner
def clear(work: Workload) -> None:
    """Empty the cluster; it is slot 1."""
    clock, jobs, servers = work.clock, work.jobs, work.servers
    clock[NOW], clock[RUNNING], clock[DIRTY], clock[DONE] = 1, 0, 0, 0
    for j in range(jobs.size - 1):
        job = jobs[j]
        job.left = job.iterations
        job.rate = -1
        job.place = -1
        job.dirty = 0
    for s in range(servers.size - 1):
        servers[s].rings = 0
        servers[s].idle = servers[s].gpus


@njit_inline
def _sift_up(work: Workload, at: int) -> None:
    jobs, lists = work.jobs, work.lists
    moving = lists[HEAP, at]
    key = jobs[moving].finish
    while at > 0:
        parent = (at - 1) >> 1
        other = lists[HEAP, parent]
        if jobs[other].finish <= key:
            break
        lists[HEAP, at] = other
        jobs[other].place = at
        at = parent
    lists[HEAP, at] = moving
    jobs[moving].place = at


@njit_inline
def _sift_down(work: Workload, at: int, size: int) -> None:
    jobs, lists = work.jobs, work.lists
    moving = lists[HEAP, at]
    key = jobs[moving].finish
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and jobs[lists[HEAP, child + 1]].finish < jobs[lists[HEAP, child]].finish:
            child += 1
        other = lists[HEAP, child]
        if jobs[other].finish >= key:
            break
        lists[HEAP, at] = other
        jobs[other].place = at
        at = child
    lists[HEAP, at] = moving
    jobs[moving].place = at


@njit_inline
def _mark_server(work: Workload, low: int, rings: int) -> None:
    """Note the jobs of `rings` entries of `crossing` as such whose contention may have changed."""
    clock, jobs, lists = work.clock, work.jobs, work.lists
    count = clock[DIRTY]
    for k in range(low, low + rings):
        j = work.entries[work.crossing[k]].owner
        if jobs[j].dirty == 0:
            jobs[j].dirty = 1
            lists[LOOK, count] = j
            count += 1
    clock[DIRTY] = count


@njit_inline
def begin(work: Workload, j: int) -> None:
    """Start job `j` now; `used` and its entries are filled in already."""
    clock, entries, lists = work.clock, work.entries, work.lists
    job = work.jobs[j]
    job.start = clock[NOW]
    job.since = clock[NOW]
    job.finish = FAR
    job.place = clock[RUNNING]
    lists[HEAP, clock[RUNNING]] = j
    clock[RUNNING] += 1
    job.dirty = 1
    lists[LOOK, clock[DIRTY]] = j
    clock[DIRTY] += 1
    if job.used > 1:
        for e in range(job.row, job.row + job.used):
            server = work.servers[entries[e].server]
            _mark_server(work, server.ring, server.rings)
            at = server.ring + server.rings
            work.crossing[at] = e
            entries[e].position = at
            server.rings += 1


@njit_inline
def _settle(work: Workload) -> None:
    """Bring every job whose contention may have changed up to the start of the current slot."""
    jobs, entries, rates = work.jobs, work.entries, work.rates
    now = work.clock[NOW]
    deepest = rates.shape[1] - 1
    for k in range(work.clock[DIRTY]):
        job = jobs[work.lists[LOOK, k]]
        job.dirty = 0
        if job.place < 0:
            continue
        row, used = job.row, job.used
        most = 0  # p_j of eq. (6); 0 for a ring inside one server
        if used > 1:
            for e in range(row, row + used):
                most = max(most, work.servers[entries[e].server].rings)
        rate = rates[row + used - 1, min(most, deepest)]
        if rate == job.rate:
            continue
        if job.rate > 0:
            job.left -= job.rate * (now - job.since)
        job.since = now
        job.rate = rate
        before = job.finish
        job.finish = now + (job.left + rate - 1) // rate - 1 if rate > 0 else FAR
        if job.finish < before:
            _sift_up(work, job.place)
        elif job.finish > before:
            _sift_down(work, job.place, work.clock[RUNNING])
    work.clock[DIRTY] = 0


@njit_inline
def _leave(work: Workload, j: int) -> None:
    jobs, entries, crossing = work.jobs, work.entries, work.crossing
    for e in range(jobs[j].row, jobs[j].row + jobs[j].used):
        server = work.servers[entries[e].server]
        server.rings -= 1
        last = crossing[server.ring + server.rings]
        crossing[entries[e].position] = last
        entries[last].position = entries[e].position
        _mark_server(work, server.ring, server.rings)


@njit_inline
def exit_some(work: Workload) -> int:
    """Advance the clock to the slot after the next completion.

    Returns how many jobs complete, and leaves them in the heap's list behind the jobs that run; 0 where nothing
    runs or nothing that runs ever completes.
    """
    clock, jobs, lists = work.clock, work.jobs, work.lists
    _settle(work)
    if clock[RUNNING] == 0 or jobs[lists[HEAP, 0]].finish == FAR:
        return 0
    slot = jobs[lists[HEAP, 0]].finish
    before = size = clock[RUNNING]
    while size > 0 and jobs[lists[HEAP, 0]].finish == slot:
        size -= 1
        gone, last = lists[HEAP, 0], lists[HEAP, size]
        jobs[gone].place = -1
        jobs[gone].end = slot
        lists[HEAP, size] = gone
        if size > 0:
            lists[HEAP, 0] = last
            _sift_down(work, 0, size)
    clock[RUNNING] = size
    for k in range(size, before):
        if jobs[lists[HEAP, k]].used > 1:
            _leave(work, lists[HEAP, k])
    clock[NOW] = slot + 1
    clock[DONE] += before - size
    return int(before - size)


def placements(work: Workload) -> list[dict[int, int]]:
    """The placement of each job position: GPUs by server position, in the schedule that was built."""
    servers, gpus = work.entries["server"].tolist(), work.entries["gpus"].tolist()
    rows = zip(work.jobs["row"][:-1].tolist(), work.jobs["used"].tolist(), strict=False)
    return [dict(zip(servers[low : low + used], gpus[low : low + used], strict=True)) for low, used in rows]


def solution_of(instance: RarDdlsInstance, work: Workload) -> Solution:
    """The schedule that was built, as a bare solution object."""
    ids = [job.id for job in instance.jobs]
    names = [server.id for server in instance.servers]
    placed = ({names[s]: gpus for s, gpus in one.items()} for one in placements(work))
    start = work.jobs["start"].tolist()
    return {"start": dict(zip(ids, start, strict=False)), "placement": dict(zip(ids, placed, strict=True))}
