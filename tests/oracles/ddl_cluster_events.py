"""The plain simulator of ddl-cluster: every job looked at at every moment, no cycle passed over.

What it means is at the head of simulate_plain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES


def run_events(
    arrival: Json,
    iterations: Json,
    forward: Json,
    backward: Json,
    solo: Json,
    transfer: Json,
    memory: Json,
    first_worker: Json,
    worker_job: Json,
    worker_gpu: Json,
    first_on_gpu: Json,
    on_gpu: Json,
    first_server: Json,
    job_server: Json,
    slowdown: Json,
    task_base: Json,
    message_base: Json,
    latency: int,
    servers: int,
    limit: int,
    adaptive: bool,
    pair_factor: float,
    finish: Json,
    placed: Json,
    log_start: Json,
    log_end: Json,
    log_admitted: Json,
    log_done: Json,
    record: bool,
) -> None:
    """The simulation itself, on arrays or lists; fills `finish`, `placed` and, if asked, the log.

    A job is before its arrival (0), in the queue (1), running (2) or finished (3). A worker is ready for its
    forward task (0), in it (1), ready for its backward task (2), in it (3), or at the barrier (4), as before
    its job is placed. An all-reduce is none (0), waiting (1), in its latency (2) or transferring (3).
    """
    jobs = len(arrival)
    gpus = len(first_on_gpu) - 1
    never = 2**62
    job_state = [0] * jobs
    done = [0] * jobs
    at_barrier = [0] * jobs
    service = [0] * jobs
    worker_state = [4] * len(worker_job)
    free = [MEMORY_CAPACITY] * gpus
    task = [-1] * gpus
    task_end = [never] * gpus
    link_state = [0] * jobs
    link_event = [never] * jobs
    left = [0.0] * jobs
    since = [0] * jobs
    level = [0] * jobs
    active = [0] * servers
    transfers = [0] * servers
    asked = [False] * jobs
    for j in range(jobs):
        width = first_worker[j + 1] - first_worker[j]
        service[j] = width * iterations[j] * (forward[j] + backward[j])
    unfinished = jobs
    while unfinished > 0:
        now = never
        for j in range(jobs):
            if job_state[j] == 0 and arrival[j] < now:
                now = arrival[j]
            if link_event[j] < now:
                now = link_event[j]
        for g in range(gpus):
            if task_end[g] < now:
                now = task_end[g]

        # 1. ends
        queue_changed = False
        for g in range(gpus):
            if task_end[g] == now:
                w = task[g]
                j = worker_job[w]
                backward_task = worker_state[w] == 3
                if record:
                    place = task_base[j] + 2 * (done[j] * (first_worker[j + 1] - first_worker[j]) + w - first_worker[j])
                    log_end[place + (1 if backward_task else 0)] = now
                if backward_task:
                    service[j] -= backward[j]
                    worker_state[w] = 4
                    at_barrier[j] += 1
                else:
                    service[j] -= forward[j]
                    worker_state[w] = 2
                task[g] = -1
                task_end[g] = never
        for j in range(jobs):
            if job_state[j] != 2:
                continue
            width = first_worker[j + 1] - first_worker[j]
            spans = first_server[j + 1] - first_server[j] > 1
            complete = False
            if link_state[j] == 3 and link_event[j] == now:
                for s in range(first_server[j], first_server[j + 1]):
                    active[job_server[s]] -= 1
                    transfers[job_server[s]] -= 1
                service[j] -= width * solo[j]
                link_state[j] = 0
                link_event[j] = never
                complete = True
                if record:
                    log_done[message_base[j] + done[j]] = now
            elif at_barrier[j] == width and link_state[j] == 0:
                if spans:
                    link_state[j] = 1
                else:
                    complete = True
            if complete:
                done[j] += 1
                at_barrier[j] = 0
                if done[j] < iterations[j]:
                    for w in range(first_worker[j], first_worker[j + 1]):
                        worker_state[w] = 0
                else:
                    job_state[j] = 3
                    finish[j] = now
                    unfinished -= 1
                    queue_changed = True
                    for w in range(first_worker[j], first_worker[j + 1]):
                        free[worker_gpu[w]] += memory[j]

        # 2. arrivals
        for j in range(jobs):
            if job_state[j] == 0 and arrival[j] == now:
                job_state[j] = 1
                queue_changed = True

        # 3. placement; nothing can have become possible unless a job came or went
        if queue_changed:
            for j in range(jobs):
                asked[j] = job_state[j] != 1
            while True:
                first = -1
                for j in range(jobs):
                    if not asked[j] and (first < 0 or service[j] < service[first]):
                        first = j
                if first < 0:
                    break
                asked[first] = True
                fits = True
                for w in range(first_worker[first], first_worker[first + 1]):
                    if free[worker_gpu[w]] < memory[first]:
                        fits = False
                if fits:
                    job_state[first] = 2
                    placed[first] = now
                    width = first_worker[first + 1] - first_worker[first]
                    if first_server[first + 1] - first_server[first] > 1:
                        service[first] += width * iterations[first] * solo[first]
                    for w in range(first_worker[first], first_worker[first + 1]):
                        free[worker_gpu[w]] -= memory[first]
                        worker_state[w] = 0

        # 4. admission
        for j in range(jobs):
            asked[j] = link_state[j] != 1
        while True:
            first = -1
            for j in range(jobs):
                if not asked[j] and (first < 0 or service[j] < service[first]):
                    first = j
            if first < 0:
                break
            asked[first] = True
            most = 0
            for s in range(first_server[first], first_server[first + 1]):
                most = max(most, active[job_server[s]])
            admitted = most < limit
            if adaptive and most == 1:
                smallest = math.inf
                for j in range(jobs):
                    if link_state[j] >= 2:
                        meets = False
                        for s in range(first_server[j], first_server[j + 1]):
                            for r in range(first_server[first], first_server[first + 1]):
                                if job_server[s] == job_server[r]:
                                    meets = True
                        if meets:
                            remaining = left[j]
                            if link_state[j] == 3:
                                remaining -= (now - since[j]) / slowdown[level[j]]
                            smallest = min(smallest, remaining)
                admitted = pair_factor * transfer[first] < smallest
            if admitted:
                for s in range(first_server[first], first_server[first + 1]):
                    active[job_server[s]] += 1
                link_state[first] = 2
                link_event[first] = now + latency
                left[first] = transfer[first]
                if record:
                    log_admitted[message_base[first] + done[first]] = now

        # 5. transfers
        for j in range(jobs):
            if link_state[j] == 2 and link_event[j] == now:
                link_state[j] = 3
                since[j] = now
                level[j] = 0
                for s in range(first_server[j], first_server[j + 1]):
                    transfers[job_server[s]] += 1
        for j in range(jobs):
            if link_state[j] == 3:
                most = 0
                for s in range(first_server[j], first_server[j + 1]):
                    most = max(most, transfers[job_server[s]])
                if most != level[j]:
                    if level[j] > 0:
                        left[j] -= (now - since[j]) / slowdown[level[j]]
                    since[j] = now
                    level[j] = most
                    link_event[j] = now + max(1, math.ceil(left[j] * slowdown[most] - 0.001))

        # 6. dispatch
        for g in range(gpus):
            if task[g] >= 0:
                continue
            best = -1
            for position in range(first_on_gpu[g], first_on_gpu[g + 1]):
                w = on_gpu[position]
                if worker_state[w] == 0 or worker_state[w] == 2:
                    j = worker_job[w]
                    if best < 0 or service[j] < service[worker_job[best]]:
                        best = w
            if best >= 0:
                j = worker_job[best]
                forward_task = worker_state[best] == 0
                task[g] = best
                task_end[g] = now + (forward[j] if forward_task else backward[j])
                worker_state[best] += 1
                if record:
                    width = first_worker[j + 1] - first_worker[j]
                    place = task_base[j] + 2 * (done[j] * width + best - first_worker[j])
                    log_start[place + (0 if forward_task else 1)] = now


def plain_run(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    release: Mapping[str, float] | None = None,
) -> dict[str, list[int]]:
    """Every event of every iteration, one after another: finishes, placements and the times of all tasks, in ticks."""
    clock, jobs = clock_of(instance), instance.jobs
    workers = [(j, instance.first_gpu[s] + g) for j, gpus in enumerate(placement) for s, g in gpus]
    on_gpu: list[list[int]] = [[] for _ in range(instance.total_gpus)]
    for worker, (_, gpu) in enumerate(workers):
        on_gpu[gpu].append(worker)
    servers = [sorted({s for s, _ in gpus}) for gpus in placement]
    task_base = _bases(2 * job.gpus * job.iterations for job in jobs)
    message_base = _bases(job.iterations for job in jobs)
    held = [math.ceil(exact((release or {}).get(job.id, 0.0)) * 10**clock.digits) for job in jobs]
    out = {
        "finish": [-1] * len(jobs),
        "placed": [-1] * len(jobs),
        "start": [-1] * task_base[-1],
        "end": [-1] * task_base[-1],
        "admitted": [-1] * message_base[-1],
        "done": [-1] * message_base[-1],
    }
    run_events(
        [max(pair) for pair in zip(clock.arrival, held, strict=True)],
        [job.iterations for job in jobs],
        clock.forward,
        clock.backward,
        clock.solo,
        clock.transfer,
        clock.memory,
        _bases(job.gpus for job in jobs),
        [j for j, _ in workers],
        [gpu for _, gpu in workers],
        _bases(len(row) for row in on_gpu),
        [worker for row in on_gpu for worker in row],
        _bases(len(row) for row in servers),
        [s for row in servers for s in row],
        clock.slowdown,
        task_base,
        message_base,
        clock.latency,
        len(instance.servers),
        *POLICIES[policy],
        clock.pair_factor,
        *out.values(),
        True,
    )
    return out


def _bases(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]
