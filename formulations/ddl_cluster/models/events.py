"""The mixed-integer program of ddl-cluster with contention and placement as decisions (form `events`)."""

from __future__ import annotations

from functools import partial
from itertools import combinations, permutations, product

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.layout import Terms
from schedgap.formulations.ddl_cluster.clock import clock_of, misfits
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.models.event_values import schedule_of, values_of
from schedgap.formulations.ddl_cluster.models.events_parts import CONTINUOUS, WIDEST, Parts
from schedgap.formulations.ddl_cluster.models.transfers import add_transfers


def build_events(instance: DdlClusterInstance) -> DeclarativeModel:
    """The mixed-integer program of all schedules that end by the horizon: minimise the mean of finish - arrival.

    The horizon is that of :mod:`~schedgap.formulations.ddl_cluster.models.events_parts`.

    GPUs are chosen by binaries (fixed where a placement is given), tasks are start times with a binary for the order
    of every two on one GPU. The begins and ends of the transfers take positions 1, ..., 2 M in the order of time, as in
    comm-contention: S[j, i, p] and E[j, i, p] say which has which, d[p] is the time from the position before. In that
    gap job j transfers where more of its S than of its E are before p; with z[j, s, p] = 1 where it does so through
    server s, k is the largest sum of z over its servers, L[j, p, k] says which, and with w_k = k b + (k - 1) eta::

        g[j, p, k] = d[p] L[j, p, k]
        sum_i y[j, i, p] = sum_k g[j, p, k] b / w_k
        y[j, i, p] <= b m_j (S - E before p),  sum_p y[j, i, p] = b m_j spans[j]

    Here m_j is the message of job j and M the number of all-reduces. The all-reduce of a job on one server is empty: it
    begins and ends where its last task does. Raises ModelRefused: more tasks, all-reduces or sets that do not fit than
    a tiny instance has.

    Returns
    -------
    DeclarativeModel
        Untightened. Continuous: `cpsat` takes it where no job can be on several servers, so that every row is a
        difference of two times, and refuses it elsewhere. Extracts the GPUs and the starts of all tasks.

    Notes
    -----
    O(G T^2 + (S + J) M J) binaries for G GPUs, T tasks on one and M all-reduces. Source: ours, with paper 001, eq. (5).
    """
    parts = Parts(instance)
    for j in parts.all:
        _add_placement(parts, j)
    for j in parts.all:
        _add_tasks(parts, j)
    _add_gpus(parts)
    _add_memory(parts)
    add_transfers(parts)
    n = len(parts.jobs)
    cost = [(parts.end[j, job.iterations - 1], 1 / n) for j, job in enumerate(parts.jobs)]
    parts.layout.objective(cost, -sum(job.arrival for job in parts.jobs) / n)
    shortest = min(min(job.forward, job.backward, parts.alone[j]) for j, job in enumerate(parts.jobs))
    return DeclarativeModel(
        parts.layout.problem,
        partial(schedule_of, parts),
        1,
        assign=partial(values_of, parts),
        layout=parts.layout,
        tightened=False,
        restriction=parts.last > WIDEST * shortest,
        resolution=CONTINUOUS * parts.last,
        until=parts.last,
        later=(parts.last - max(job.arrival for job in parts.jobs)) / len(parts.jobs),
    )


def _add_placement(parts: Parts, j: int) -> None:
    """Which GPUs and servers a job has."""
    layout, job = parts.layout, parts.ids[j]
    given = int(parts.instance.given[j] is not None)
    for s, g in parts.open[j]:
        parts.place[j, (s, g)] = layout.variable("place", job, parts.servers[s], g, low=given)
    layout.row("gang", (job,), [(parts.place[j, gpu], 1.0) for gpu in parts.open[j]], "==", parts.jobs[j].gpus)
    servers = sorted({s for s, _ in parts.open[j]})
    for s in servers:
        uses = parts.uses[j, s] = layout.variable("uses", job, parts.servers[s])
        here = [parts.place[j, gpu] for gpu in parts.open[j] if gpu[0] == s]
        for place in here:
            layout.numbered("server", [(uses, 1.0), (place, -1.0)], ">=", 0)
        layout.numbered("server", [(uses, 1.0), *((place, -1.0) for place in here)], "<=", 0)
    spans = layout.variable("spans", job)
    count = [(parts.uses[j, s], 1.0) for s in servers]
    layout.row("several", (job, "least"), [*count, (spans, -1.0)], ">=", 1)
    layout.row("several", (job, "most"), [*count, *([(spans, 1.0 - len(servers))] if servers[1:] else [])], "<=", 1)


def _add_tasks(parts: Parts, j: int) -> None:
    """Forward and backward tasks, the barrier and the end of every iteration."""
    layout, job = parts.layout, parts.jobs[j]
    spans = layout.variables["spans"][job.id]
    for i in range(job.iterations):
        end = parts.end[j, i] = parts.real("end", job.id, i)
        barrier = end
        if j in parts.spanning:
            barrier = parts.admit[j, i] = parts.real("admit", job.id, i)
        latest: Terms = []
        for s, g in parts.open[j]:
            place, key = parts.place[j, (s, g)], (job.id, i, parts.servers[s], g)
            forward = parts.task[j, i, 0, (s, g)] = parts.real("forward", *key)
            backward = parts.task[j, i, 1, (s, g)] = parts.real("backward", *key)
            for task in (forward, backward):
                layout.numbered("there", [(task, 1.0), (place, -parts.last)], "<=", 0)
            if job.arrival:
                layout.numbered("follows", [(forward, 1.0), (place, -job.arrival)], ">=", 0)
            if i:
                before = [(parts.end[j, i - 1], -1.0), (place, -parts.last)]
                layout.numbered("follows", [(forward, 1.0), *before], ">=", -parts.last)
            layout.numbered("follows", [(backward, 1.0), (forward, -1.0), (place, -job.forward)], ">=", 0)
            layout.numbered("follows", [(barrier, 1.0), (backward, -1.0), (place, -job.backward)], ">=", 0)
            last = layout.variable("last", *key)
            latest.append((last, 1.0))
            layout.numbered("barrier", [(last, 1.0), (place, -1.0)], "<=", 0)
            slack = [(last, parts.last), (spans, -parts.last)]
            layout.numbered("barrier", [(barrier, 1.0), (backward, -1.0), *slack], "<=", job.backward + parts.last)
        layout.numbered("barrier", latest, "==", 1)
        least = job.forward + job.backward + (0.0 if i else job.arrival)
        sent = [(spans, -parts.latency - parts.alone[j])] if j in parts.spanning else []
        before = [(parts.end[j, i - 1], -1.0)] if i else []
        layout.numbered("length", [(end, 1.0), *before, *sent], ">=", least)


def _add_gpus(parts: Parts) -> None:
    """One task at a time on a GPU; tasks of one job follow each other anyway."""
    for j, k in combinations(parts.all, 2):
        for gpu in [gpu for gpu in parts.open[j] if gpu in parts.open[k]]:
            order = {}
            for (i, a), (r, c) in product(parts.steps(j), parts.steps(k)):
                key = (parts.servers[gpu[0]], gpu[1], parts.ids[j], i, a, parts.ids[k], r, c)
                first = parts.layout.variable("before", *key)
                _disjoint(parts, (j, i, a, gpu), (k, r, c, gpu), first)
                order[i, a, r, c] = first
            for (i, a, r, c), first in order.items():
                for other in ((i, 0, r, c) if a else (i - 1, 1, r, c), (i, a, r + 1, 0) if c else (i, a, r, 1)):
                    if other in order:
                        parts.layout.numbered("chain", [(order[other], 1.0), (first, -1.0)], ">=", 0)


def _disjoint(
    parts: Parts, one: tuple[int, int, int, Gpu], other: tuple[int, int, int, Gpu], first: pulp.LpVariable
) -> None:
    """Where both are there: `one` ends before `other` starts, or the other way round."""
    placements = [parts.place[one[0], one[3]], parts.place[other[0], one[3]]]
    for early, late, sign in ((one, other, 1.0), (other, one, -1.0)):
        seconds = (parts.jobs[early[0]].forward, parts.jobs[early[0]].backward)[early[2]]
        most = parts.last + seconds
        slack = [(first, -sign * most), *((place, -most) for place in placements)]
        terms = [(parts.task[late], 1.0), (parts.task[early], -1.0), *slack]
        parts.layout.numbered("disjoint", terms, ">=", seconds - (3 if sign > 0 else 2) * most)


def _add_memory(parts: Parts) -> None:
    """Rows that keep two jobs of every smallest set that does not fit one GPU apart."""
    for chosen in misfits(parts.all, clock_of(parts.instance).memory):
        for gpu in sorted(set.intersection(*(set(parts.open[j]) for j in chosen))):
            apart = [(_apart(parts, j, k), 1.0) for j, k in permutations(chosen, 2)]
            placements = [(parts.place[j, gpu], -1.0) for j in chosen]
            parts.layout.numbered("memory", [*apart, *placements], ">=", 1 - len(chosen))


def _apart(parts: Parts, j: int, k: int) -> pulp.LpVariable:
    """Job j finishes before job k starts where it is 1."""
    if (j, k) not in parts.apart:
        apart = parts.apart[j, k] = parts.layout.variable("apart", parts.ids[j], parts.ids[k])
        finish = parts.end[j, parts.jobs[j].iterations - 1]
        for gpu in parts.open[k]:
            slack = [(apart, -parts.last), (parts.place[k, gpu], -parts.last)]
            terms = [(parts.task[k, 0, 0, gpu], 1.0), (finish, -1.0), *slack]
            parts.layout.numbered("apart", terms, ">=", -2 * parts.last)
    return parts.apart[j, k]
