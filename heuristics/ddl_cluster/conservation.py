"""What every simulated run must conserve, from its finish times and the times of its all-reduces alone.

It is cheap enough for every run. It shares no code with the simulator; the complete audit, which also needs the
times of every compute task, is ``formulations.ddl_cluster.audit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.heuristics.ddl_cluster.simulation import FastLog
from schedgap.heuristics.ddl_cluster.state import (
    Ints,
)


def broken_conservation(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],  # GPUs of each job as (server position, index)
    finish: Ints,  # ticks of 10^-digits seconds, per job
    log: FastLog,  # log of the run; the times of compute tasks are not looked at
    digits: int,
    limit: int,  # how many all-reduces may be active on a server
) -> list[str]:
    """Every way in which a run breaks conservation; empty where it does not.

    Returns
    -------
    One line for each of

    - iterations: a job on one server takes less than iterations (forward + backward) from its placement; one on
      several does not have exactly one all-reduce per iteration, each at least forward + backward after the one
      before, the last at its finish; or a cycle that is said to repeat does not have the iterations that it counts
    - message: an all-reduce takes less than latency + size b
    - link: on a server, in some maximal period in which all-reduces are active, their sizes times b are more
      than its length; or more than `limit` are active at a time
    - GPU: in some maximal period in which jobs are placed on a GPU, their compute tasks are more than its length

    Notes
    -----
    What skipped cycles repeat is conserved if one of them is: the run is looked at without them, the time that they
    take taken out on every server concerned (see _without). O(sum over servers of A log A) for A recorded all-reduces,
    vectorised.
    """
    scale = 10**digits
    a, b, _ = instance.link.exact_parameters()
    found: list[str] = []
    on_server: dict[int, list[int]] = {}
    on_gpu: dict[Gpu, list[int]] = {}
    least: list[tuple[int, int]] = []
    first_jump = np.searchsorted(log.jumps[:, 0], np.arange(len(instance.jobs) + 1))
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        where = f"job {job.id}"
        compute, solo = exact(job.forward) + exact(job.backward), a + b * exact(job.message)
        least.append((_whole(compute * scale), _whole(solo * scale)))
        shortest, message = least[-1]
        servers = {server for server, _ in gpus}
        for gpu in gpus:
            on_gpu.setdefault(gpu, []).append(j)
        jumps = log.jumps[first_jump[j] : first_jump[j + 1]]
        admitted = _without(jumps, log.admitted[log.message_base[j] : log.message_base[j + 1]])
        end = log.done[log.message_base[j] : log.message_base[j + 1]]
        done = _without(jumps, end)
        if log.placed[j] < exact(job.arrival) * scale:
            found.append(f"{where}: placed before its arrival")
        if len(servers) == 1:
            if len(done) or finish[j] - log.placed[j] < job.iterations * shortest:
                found.append(f"{where}: an iteration is missing, or there is an all-reduce on one server")
            continue
        for server in servers:
            on_server.setdefault(server, []).append(j)
        before = np.concatenate([log.placed[j : j + 1], done[:-1]])
        counted = [np.searchsorted(end, jumps[:, 1] - part, "right") for part in (jumps[:, 2], 0)]
        if (
            len(done) + int((jumps[:, 3] * jumps[:, 4]).sum()) != job.iterations
            or (counted[1] - counted[0] != jumps[:, 4]).any()
            or (admitted - before < shortest).any()
            or end[-1] != finish[j]
        ):
            found.append(f"{where}: an iteration is missing or took less than its compute tasks")
        short = int((done - admitted < message).sum())
        if short:
            found.append(f"{where}: {short} all-reduces take less than latency + size b = {float(solo):.9g} s")
    for server, jobs in sorted(on_server.items()):
        parts = [slice(log.message_base[j], log.message_base[j + 1]) for j in jobs]
        skips = np.concatenate([log.jumps[first_jump[j] : first_jump[j + 1]] for j in jobs])
        skips = skips[np.unique(skips[:, 1], return_index=True)[1]]  # jobs of a server skip together
        begin = _without(skips, np.concatenate([log.admitted[part] for part in parts]))
        end = _without(skips, np.concatenate([log.done[part] for part in parts]))
        size = np.concatenate(
            [np.full(part.stop - part.start, instance.jobs[j].message) for j, part in zip(jobs, parts, strict=True)]
        )
        where = f"server {instance.servers[server].id}"
        order = np.argsort(begin, kind="stable")
        begin, size, ends = begin[order], size[order], np.sort(end)
        most = int((np.arange(1, len(begin) + 1) - np.searchsorted(ends, begin, "right")).max())
        if most > limit:
            found.append(f"{where}: {most} all-reduces are active at a time, {limit} may be")
        over = _overload(begin, ends, size * float(b) * scale)
        if over > 1e-9 * float(ends[-1]) + len(begin):
            found.append(f"{where}: messages take {over / scale:.3g} s more of the link than there is")
    for (server, index), jobs in sorted(on_gpu.items()):
        order = np.argsort(log.placed[jobs], kind="stable")
        work = np.array([instance.jobs[j].iterations * least[j][0] for j in jobs], dtype=float)
        over = _overload(log.placed[jobs][order], np.sort(finish[jobs]), work[order])
        if over > 1e-9 * float(finish.max()):
            where = f"server {instance.servers[server].id}, GPU {index}"
            found.append(f"{where}: tasks take {over / scale:.3g} s more than there is")
    return found


def _without(jumps: Ints, ticks: Ints) -> Ints:
    """Moments of a job or a server when the time of its skipped cycles, jumps in order, is taken out before them."""
    gone = np.concatenate([[0], np.cumsum(jumps[:, 2] * jumps[:, 3])])
    result: Ints = ticks - gone[np.searchsorted(jumps[:, 1], ticks)]
    return result


def _overload(begin: Ints, end: Ints, load: NDArray[np.float64]) -> float:
    """The largest excess of load over length among the maximal periods that the intervals cover.

    `begin` and `end` are sorted each for itself, `load` belongs to `begin`. The i-th interval opens a period when
    the i before it have ended by then.
    """
    first = np.concatenate([[0], np.flatnonzero(end[:-1] <= begin[1:]) + 1])
    last = np.concatenate([first[1:] - 1, [len(end) - 1]])
    excess = np.add.reduceat(load, first) - (end[last] - begin[first])
    return float(excess.max())


def _whole(ticks: Fraction) -> int:
    """The whole ticks in a duration: what it takes at least."""
    return ticks.numerator // ticks.denominator
