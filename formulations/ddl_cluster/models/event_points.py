"""What happens in a schedule of ddl-cluster, event by event, for the point that it is in a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Compute


@dataclass(frozen=True)
class Point:
    """A schedule."""

    placement: tuple[tuple[Gpu, ...], ...]  # GPUs of each job
    start: dict[Compute, float]  # starts of the compute tasks, seconds
    admit: dict[AllReduce, float]  # seconds of all-reduces' admissions; of iterations' ends for a job on one server
    end: dict[AllReduce, float]  # ends of the iterations, seconds
    # (moment, job, iteration) of the begin and of the end of every transfer, in order of time; at one moment ends come
    # first, then the empty transfers of jobs on one server
    line: list[tuple[Fraction, int, int]]


def point_of(instance: DdlClusterInstance, solution: Solution, sending: Sequence[int]) -> Point:
    """What happens in a feasible schedule, in exact numbers.

    Parameters
    ----------
    sending : the jobs whose transfers have a place in the line, empty or not

    Notes
    -----
    O(A^2 S) for A all-reduces and S servers.
    """
    given = DdlClusterSolution.parse(solution)
    placement = tuple(instance.located(given.placement[job.id], job.id) for job in instance.jobs)
    start, admit = _starts(instance, given, placement)
    end: dict[AllReduce, Fraction] = {}
    for j, job in enumerate(instance.jobs):
        for i in range(job.iterations):
            end[j, i] = max(start[j, i, 1, w] for w in range(job.gpus)) + exact(job.backward)
    line = _transfers(instance, placement, admit, end)
    for j in sending:
        for i in range(instance.jobs[j].iterations):
            if (j, i) not in admit:
                admit[j, i] = end[j, i]
                line += [(end[j, i], 1, j, i), (end[j, i], 1, j, i)]
    return Point(
        placement,
        {task: float(moment) for task, moment in start.items()},
        {key: float(moment) for key, moment in admit.items()},
        {key: float(moment) for key, moment in end.items()},
        [(moment, j, i) for moment, _, j, i in sorted(line)],
    )


def _starts(
    instance: DdlClusterInstance, given: DdlClusterSolution, placement: Sequence[Sequence[Gpu]]
) -> tuple[dict[Compute, Fraction], dict[AllReduce, Fraction]]:
    """The starts of compute tasks and the admissions; those of a policy from its run."""
    start: dict[Compute, Fraction] = {}
    admit: dict[AllReduce, Fraction] = {}
    log = None
    if given.policy is not None:
        log = simulate_plain(instance, placement, given.policy, release=given.release, record=True).log
    second = 10 ** clock_of(instance).digits
    for j, job in enumerate(instance.jobs):
        spans = len({s for s, _ in placement[j]}) > 1
        for i in range(job.iterations):
            for w in range(job.gpus):
                if log is not None:
                    at = log.task_base[j] + 2 * (i * job.gpus + w)
                    start[j, i, 0, w] = Fraction(int(log.start[at]), second)
                    start[j, i, 1, w] = Fraction(int(log.start[at + 1]), second)
                elif given.schedule is not None:
                    times = given.schedule[job.id]
                    start[j, i, 0, w], start[j, i, 1, w] = exact(times.forward[i][w]), exact(times.backward[i][w])
            if spans and log is not None:
                admit[j, i] = Fraction(int(log.admitted[log.message_base[j] + i]), second)
            elif spans and given.schedule is not None:
                admit[j, i] = exact((given.schedule[job.id].allreduce or ())[i])
    return start, admit


def _transfers(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    admit: dict[AllReduce, Fraction],
    end: dict[AllReduce, Fraction],
) -> list[tuple[Fraction, int, int, int]]:
    """(moment, 0 for an end and 2 for a begin, job, iteration) of the transfers; their ends go into `end`."""
    latency, b, eta = instance.link.exact_parameters()
    servers = [{s for s, _ in gpus} for gpus in placement]
    coming = sorted(((moment + latency, key) for key, moment in admit.items()), reverse=True)
    remaining: dict[AllReduce, Fraction] = {}
    line: list[tuple[Fraction, int, int, int]] = []
    now = Fraction(0)
    while coming or remaining:
        pace = {}
        for key in remaining:
            k = max(sum(s in servers[other] for other, _ in remaining) for s in servers[key[0]])
            pace[key] = k * b + (k - 1) * eta
        moments = [now + remaining[key] * pace[key] for key in remaining] + [moment for moment, _ in coming[-1:]]
        passed, now = min(moments) - now, min(moments)
        for key in list(remaining):
            remaining[key] -= passed / pace[key]
            if not remaining[key]:
                del remaining[key]
                end[key] = now
                line.append((now, 0, *key))
        while coming and coming[-1][0] == now:
            key = coming.pop()[1]
            remaining[key] = exact(instance.jobs[key[0]].message)
            line.append((now, 2, *key))
    return line
