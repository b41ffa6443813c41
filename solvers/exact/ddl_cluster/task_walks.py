"""Simulated annealing over placements, an order of jobs and when they begin, each laid out task by task (compiled).

Wherever a GPU or the links of a job are idle, the first job of the order that is ready gets them: short jobs fill the
GPUs while others send. A patient job does not begin a task, or a message, that would be in the way of a job before
it in the order. Messages never share a link.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Bools, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner, njit_part
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.ddl_cluster.block_orders import draw
from schedgap.solvers.incumbent import Incumbent

MOST_TASKS = 20_000
"""Compute tasks of an instance that is walked."""
NEVER = 2**61
TOO_MUCH = 2**60
_WALK = 2_000
"""Moves of the first walk; each one after it has 1.5 times as many."""
_GROWTH = 1.5
_LONGEST = 6.0
"""Work of a walk at most."""
_EVENT_WORK = 5e-9
"""Work of a compute task or message in one move, for every job and GPU; about its seconds."""
_HEAT = (0.01, 1e-4)
_AWAY, _COMPUTES, _WAITS, _SENDS, _GONE = range(5)
FORWARD, BACKWARD, MESSAGE = range(3)


class Cluster(NamedTuple):
    """An instance in ticks, by job but for GPUs and servers."""

    arrival: Ints
    width: Ints
    iterations: Ints
    length: Ints  # (3, J) of a forward and a backward task, and of a message with its latency
    memory: Ints
    capacity: int  # memory of a GPU
    server: Ints  # server of each GPU
    size: Ints  # number of GPUs of each server


class Plan(NamedTuple):
    """What is walked through."""

    rank: Ints  # (J,) place in the order
    place: Ints  # (J, widest) GPUs
    patient: Bools  # (2, J) with tasks, and with messages
    release: Ints  # (J,) it does not begin before


class Now(NamedTuple):
    """What a simulation keeps."""

    order: Ints  # (J,) the jobs by rank
    loads: Bools  # (J, S) servers that it is on
    spans: Bools  # (J,) whether these are several
    phase: Ints  # (J,)
    done: Ints  # (J,) iterations
    missing: Ints  # (J,) workers that have not done the iteration
    arrives: Ints  # (J,) end of its message
    stage: Ints  # (J, widest) tasks begun and ended by a worker in the iteration
    until: Ints  # (G,) end of the task on a GPU, NEVER where it is idle
    job: Ints  # (G,) whose it is
    worker: Ints  # (G,)
    free: Ints  # (G,) memory
    busy: Bools  # (S,) links
    finish: Ints  # (J,)
    noted: Ints  # (1,) rows


@njit_inner
def _reset(cluster: Cluster, plan: Plan, now: Now) -> None:
    """The state before the first event."""
    now.loads[:] = False
    for j in range(len(cluster.width)):
        now.order[plan.rank[j]] = j
        servers = 0
        for w in range(cluster.width[j]):
            s = cluster.server[plan.place[j, w]]
            servers += 0 if now.loads[j, s] else 1
            now.loads[j, s] = True
        now.spans[j] = servers > 1
    now.phase[:] = _AWAY
    now.done[:] = 0
    now.until[:] = NEVER
    now.free[:] = cluster.capacity
    now.busy[:] = False
    now.noted[0] = 0


@njit_inner
def _next_event(cluster: Cluster, plan: Plan, now: Now, tick: int) -> int:
    """The next end of a task or message, or moment at which a job may begin."""
    following = NEVER
    for g in range(len(now.until)):
        following = min(following, now.until[g])
    for j in range(len(now.phase)):
        if now.phase[j] == _SENDS:
            following = min(following, now.arrives[j])
        elif now.phase[j] == _AWAY:
            begins = max(cluster.arrival[j], plan.release[j])
            if begins > tick:
                following = min(following, begins)
    return following


@njit_inner
def _next_iteration(cluster: Cluster, now: Now, j: int) -> None:
    """The tasks of a job's next iteration are ready."""
    now.phase[j] = _COMPUTES
    now.missing[j] = cluster.width[j]
    now.stage[j] = 0


@njit_inner
def _end_iteration(cluster: Cluster, plan: Plan, now: Now, j: int, tick: int) -> int:
    """The next iteration of a job is ready, or it leaves: 1 then."""
    now.done[j] += 1
    if now.done[j] < cluster.iterations[j]:
        _next_iteration(cluster, now, j)
        return 0
    now.phase[j] = _GONE
    now.finish[j] = tick
    for w in range(cluster.width[j]):
        now.free[plan.place[j, w]] += cluster.memory[j]
    return 1


@njit_inner
def _end(cluster: Cluster, plan: Plan, now: Now, tick: int) -> int:
    """What ends at a moment; how many jobs leave."""
    gone = 0
    for g in range(len(now.until)):
        if now.until[g] == tick:
            j = now.job[g]
            now.until[g] = NEVER
            now.stage[j, now.worker[g]] += 1
            if now.stage[j, now.worker[g]] == 4:
                now.missing[j] -= 1
                if now.missing[j] == 0 and now.spans[j]:
                    now.phase[j] = _WAITS
                elif now.missing[j] == 0:
                    gone += _end_iteration(cluster, plan, now, j, tick)
    for j in range(len(now.phase)):
        if now.phase[j] == _SENDS and now.arrives[j] == tick:
            for s in range(len(now.busy)):
                if now.loads[j, s]:
                    now.busy[s] = False
            gone += _end_iteration(cluster, plan, now, j, tick)
    return gone


@njit_inner
def _begin_jobs(cluster: Cluster, plan: Plan, now: Now, tick: int) -> None:
    """Jobs that may begin and have memory on all their GPUs take it."""
    for j in now.order:
        if now.phase[j] == _AWAY and max(cluster.arrival[j], plan.release[j]) <= tick:
            fits = True
            for w in range(cluster.width[j]):
                fits = fits and now.free[plan.place[j, w]] >= cluster.memory[j]
            if fits:
                _next_iteration(cluster, now, j)
                for w in range(cluster.width[j]):
                    now.free[plan.place[j, w]] -= cluster.memory[j]


@njit_inner
def _barrier(cluster: Cluster, plan: Plan, now: Now, j: int, tick: int) -> int:
    """When a job has computed its iteration, if its GPUs serve it at once."""
    ready = tick
    for w in range(cluster.width[j]):
        stage, g = now.stage[j, w], plan.place[j, w]
        moment = tick if now.until[g] == NEVER else now.until[g]
        if stage == 0:
            moment += cluster.length[FORWARD, j]
        if stage < 3:
            moment += cluster.length[BACKWARD, j]
        if stage < 4:
            ready = max(ready, moment)
    return ready


@njit_inner
def _note(now: Now, rows: Ints, j: int, worker: int, kind: int, tick: int) -> None:
    """A row of the record, where there is one."""
    if len(rows):
        row = now.noted[0]
        rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4] = j, now.done[j], worker, kind, tick
        now.noted[0] = row + 1


@njit_inner
def _send(cluster: Cluster, plan: Plan, now: Now, tick: int, rows: Ints) -> None:
    """Messages begin where all links of their job are idle."""
    for r in range(len(now.order)):
        j = now.order[r]
        if now.phase[j] != _WAITS:
            continue
        end = tick + cluster.length[MESSAGE, j]
        begins = True
        for s in range(len(now.busy)):
            begins = begins and not (now.loads[j, s] and now.busy[s])
        for before in range(r if begins and plan.patient[1, j] else 0):
            h = now.order[before]
            if now.phase[h] == _COMPUTES and now.spans[h]:
                meets = False
                for s in range(len(now.busy)):
                    meets = meets or (now.loads[j, s] and now.loads[h, s])
                begins = begins and not (meets and _barrier(cluster, plan, now, h, tick) < end)
        if begins:
            now.phase[j] = _SENDS
            now.arrives[j] = end
            _note(now, rows, j, 0, MESSAGE, tick)
            for s in range(len(now.busy)):
                now.busy[s] = now.busy[s] or now.loads[j, s]


@njit_inner
def _in_the_way(cluster: Cluster, plan: Plan, now: Now, r: int, gpu: int, tick: int, end: int) -> bool:
    """Whether a job before the r-th wants this GPU again before `end`."""
    for before in range(r):
        h = now.order[before]
        if now.done[h] + 1 == cluster.iterations[h]:
            continue
        sends = now.phase[h] == _SENDS and now.arrives[h] < end
        if sends or (now.phase[h] == _COMPUTES and not now.spans[h] and cluster.width[h] > 1):
            uses = False
            for w in range(cluster.width[h]):
                uses = uses or plan.place[h, w] == gpu
            if uses and (sends or _barrier(cluster, plan, now, h, tick) < end):
                return True
    return False


@njit_inner
def _compute(cluster: Cluster, plan: Plan, now: Now, tick: int, rows: Ints) -> None:
    """Tasks begin on idle GPUs."""
    for r in range(len(now.order)):
        j = now.order[r]
        if now.phase[j] != _COMPUTES:
            continue
        for w in range(cluster.width[j]):
            stage, g = now.stage[j, w], plan.place[j, w]
            if stage % 2 or stage == 4 or now.until[g] != NEVER:
                continue
            end = tick + cluster.length[stage // 2, j]
            if not plan.patient[0, j] or not _in_the_way(cluster, plan, now, r, g, tick, end):
                now.job[g], now.worker[g], now.until[g] = j, w, end
                now.stage[j, w] = stage + 1
                _note(now, rows, j, w, stage // 2, tick)


@njit_cached
def laid_out(cluster: Cluster, plan: Plan, now: Now, limit: int, rows: Ints) -> int:
    """The sum of finishes, or TOO_MUCH where it is more than `limit`, or jobs wait for ever.

    Parameters
    ----------
    rows : (compute tasks and messages, 5) becomes (job, iteration, worker, kind, tick) of each; or (0, 5)
    """
    _reset(cluster, plan, now)
    total, staying, tick = 0, len(cluster.width), -1
    while staying:
        tick = _next_event(cluster, plan, now, tick)
        if tick == NEVER or total + staying * tick > limit:
            return TOO_MUCH
        gone = _end(cluster, plan, now, tick)
        total += gone * tick
        staying -= gone
        _begin_jobs(cluster, plan, now, tick)
        _send(cluster, plan, now, tick, rows)
        _compute(cluster, plan, now, tick, rows)
    return total


@njit_inner
def _draw_place(cluster: Cluster, plan: Plan, j: int, room: Ints, state: Ints) -> None:
    """A random place on as few servers as hold the job; now and then on any GPUs."""
    width, servers = cluster.width[j], len(cluster.size)
    for g in range(len(room)):
        room[g] = g
    if draw(state) < 0.1:
        for g in range(width):
            k = g + int(draw(state) * (len(room) - g))
            room[g], room[k] = room[k], room[g]
            plan.place[j, g] = room[g]
        return
    filled = 0
    for s in range(servers):
        k = s + int(draw(state) * (servers - s))
        room[s], room[k] = room[k], room[s]
        size, first = cluster.size[room[s]], 0
        for before in range(room[s]):
            first += cluster.size[before]
        turn = int(draw(state) * size)
        for g in range(min(size, width - filled)):
            plan.place[j, filled] = first + (g + turn) % size
            filled += 1


@njit_inner
def _move(cluster: Cluster, plan: Plan, latest: int, room: Ints, state: Ints) -> None:
    """One random change."""
    jobs, kind = len(cluster.width), draw(state)
    j, k = int(draw(state) * jobs), int(draw(state) * jobs)
    if kind < 0.25:
        plan.rank[j], plan.rank[k] = plan.rank[k], plan.rank[j]
    elif kind < 0.4:
        old, new = plan.rank[j], plan.rank[k]
        for i in range(jobs):
            if old < plan.rank[i] <= new:
                plan.rank[i] -= 1
            elif new <= plan.rank[i] < old:
                plan.rank[i] += 1
        plan.rank[j] = new
    elif kind < 0.72:
        _draw_place(cluster, plan, j, room, state)
    elif kind < 0.8:
        if cluster.width[j] == cluster.width[k]:
            for w in range(cluster.width[j]):
                plan.place[j, w], plan.place[k, w] = plan.place[k, w], plan.place[j, w]
    elif kind < 0.93:
        which = 0 if kind < 0.87 else 1
        plan.patient[which, j] = not plan.patient[which, j]
    elif kind < 0.965:
        plan.release[j] = 0
    else:
        share = draw(state)
        plan.release[j] = cluster.arrival[j] + int(share * share * max(0, latest - cluster.arrival[j]))


@njit_part
def _copy(source: Plan, target: Plan) -> None:
    target.rank[:] = source.rank
    target.place[:] = source.place
    target.patient[:] = source.patient
    target.release[:] = source.release


@njit_cached
def walk(
    cluster: Cluster, plans: tuple[Plan, Plan, Plan], now: Now, moves: int, heat: tuple[float, float], state: Ints
) -> int:
    """Anneal from the first plan, which becomes the best found; the others are room. The sum of its finishes.

    Parameters
    ----------
    state : state of the random numbers, changed: one entry, a seed below 2^48 to begin with
    """
    best, present, trial = plans
    rows, room = np.empty((0, 5), np.int64), np.empty(len(cluster.server), np.int64)
    least = value = laid_out(cluster, best, now, TOO_MUCH, rows)
    _copy(best, present)
    base = float(value - cluster.arrival.sum())
    for move in range(moves):
        warm = heat[0] * (heat[1] / heat[0]) ** (move / moves) * base
        _copy(present, trial)
        latest = 2 * (value // len(cluster.width))
        _move(cluster, trial, latest, room, state)
        if draw(state) < 0.3:
            _move(cluster, trial, latest, room, state)
        limit = value + int(min(base, -warm * math.log(draw(state) + 1e-300)))
        total = laid_out(cluster, trial, now, limit, rows)
        if total <= limit:
            value = total
            _copy(trial, present)
            if value < least:
                least = value
                _copy(present, best)
    return least


class TaskWalks:
    """Walks of one instance, none of whose placements is given."""

    def __init__(self, instance: DdlClusterInstance) -> None:
        self.instance, self.clock = instance, clock_of(instance)
        jobs, clock = instance.jobs, self.clock
        sizes = np.array([server.gpus for server in instance.servers], dtype=np.int64)
        width = np.array([job.gpus for job in jobs], dtype=np.int64)
        self.cluster = Cluster(
            np.array(clock.arrival, dtype=np.int64),
            width,
            np.array([job.iterations for job in jobs], dtype=np.int64),
            np.array([clock.forward, clock.backward, clock.solo], dtype=np.int64),
            np.array(clock.memory, dtype=np.int64),
            MEMORY_CAPACITY,
            np.repeat(np.arange(len(sizes)), sizes),
            sizes,
        )
        n, gpus, shape = len(jobs), int(sizes.sum()), (len(jobs), int(width.max()))
        by_job = np.zeros((6, n), dtype=np.int64)
        by_gpu = np.zeros((4, gpus), dtype=np.int64)
        self.now = Now(
            order=by_job[0],
            loads=np.zeros((n, len(sizes)), dtype=np.bool_),
            spans=np.zeros(n, dtype=np.bool_),
            phase=by_job[1],
            done=by_job[2],
            missing=by_job[3],
            arrives=by_job[4],
            stage=np.zeros(shape, dtype=np.int64),
            until=by_gpu[0],
            job=by_gpu[1],
            worker=by_gpu[2],
            free=by_gpu[3],
            busy=np.zeros(len(sizes), dtype=np.bool_),
            finish=by_job[5],
            noted=np.zeros(1, dtype=np.int64),
        )
        first, second, third = (
            Plan(
                np.zeros(n, dtype=np.int64),
                np.zeros(shape, dtype=np.int64),
                np.zeros((2, n), dtype=np.bool_),
                np.zeros(n, dtype=np.int64),
            )
            for _ in range(3)
        )
        self.plans = first, second, third

    @property
    def work(self) -> float:
        """Work of a move."""
        return self.events * (len(self.cluster.width) + len(self.cluster.server)) * _EVENT_WORK

    @property
    def events(self) -> int:
        """Compute tasks and messages, at most."""
        return int((self.cluster.iterations * (2 * self.cluster.width + 1)).sum())

    def begin(self, rng: np.random.Generator) -> None:
        """Make the first plan a random one, with short jobs first about."""
        plan, cluster = self.plans[0], self.cluster
        length = cluster.iterations * cluster.length.sum(axis=0) * rng.uniform(0.7, 1.4, len(cluster.width))
        plan.rank[np.argsort(length, kind="stable")] = np.arange(len(length))
        first = np.cumsum(cluster.size) - cluster.size
        for j, width in enumerate(cluster.width):
            gpus = [first[s] + g for s in rng.permutation(len(first)) for g in range(cluster.size[s])]
            plan.place[j, :width] = gpus[:width]
        plan.patient[0], plan.patient[1], plan.release[:] = True, False, 0

    def walk(self, moves: int, state: Ints) -> int:
        """Anneal from the first plan on; the sum of finishes of the best, which it becomes."""
        return walk(self.cluster, self.plans, self.now, moves, _HEAT, state)

    def solution(self) -> Solution:
        """The first plan as a schedule of task times."""
        plan, jobs, seconds = self.plans[0], self.instance.jobs, self.clock.seconds
        rows = np.zeros((self.events, 5), dtype=np.int64)
        laid_out(self.cluster, plan, self.now, TOO_MUCH, rows)
        gpus = [[server.id, g] for server in self.instance.servers for g in range(server.gpus)]
        times: list[dict[str, Any]] = []
        for job, spans in zip(jobs, self.now.spans, strict=True):
            tasks = {kind: [[0.0] * job.gpus for _ in range(job.iterations)] for kind in ("forward", "backward")}
            times.append({**tasks, "allreduce": [0.0] * job.iterations} if spans else dict(tasks))
        for j, iteration, worker, kind, tick in rows[: self.now.noted[0]].tolist():
            if kind == MESSAGE:
                times[j]["allreduce"][iteration] = seconds(tick)
            else:
                times[j]["backward" if kind == BACKWARD else "forward"][iteration][worker] = seconds(tick)
        return {
            "placement": {job.id: [gpus[g] for g in plan.place[j, : job.gpus]] for j, job in enumerate(jobs)},
            "schedule": {job.id: tasks for job, tasks in zip(jobs, times, strict=True)},
            "finish": {job.id: seconds(tick) for job, tick in zip(jobs, self.now.finish.tolist(), strict=True)},
        }


def improve_by_walks(instance: DdlClusterInstance, best: Incumbent, share: float) -> None:
    """Walks from random plans, each longer than the one before, for a share of what is left of the limits.

    Nothing where a placement is given, or there are more than MOST_TASKS compute tasks.
    """
    tasks = sum(2 * job.iterations * job.gpus for job in instance.jobs)
    if any(instance.given) or tasks > MOST_TASKS:
        return
    walks, rng = TaskWalks(instance), np.random.default_rng(best.options.seed)
    seconds, work = best.seconds_left(share), best.work_left(share)
    until = best.options.deadline if seconds is None else best.options.deadline.capped(seconds)
    worked, moves, pace = 0.0, _WALK, 0.0
    while not (best.finished() or until.passed or (work is not None and worked >= work)):
        began, remaining = time.monotonic(), until.remaining()
        if pace and remaining is not None:
            moves = min(moves, max(1, int(remaining / pace)))
        if work is not None:
            moves = min(moves, max(1, int((work - worked) / walks.work)))
        walks.begin(rng)
        total = walks.walk(moves, rng.integers(0, 2**48, 1))
        pace = (time.monotonic() - began) / moves
        worked += moves * walks.work
        if total < TOO_MUCH:
            best.propose(walks.solution(), "walks")
        moves = min(int(moves * _GROWTH), max(1, int(_LONGEST / walks.work)))
    best.work += worked
