"""The named parts of the model of ddl-cluster with contention: sets, families, and what builders share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import pulp

from schedgap.formulations.common.errors import ModelTooLarge
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, DdlClusterSolution, Gpu, clock_of
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Compute, Plan, timetable

Terms = list[Term]

VARIABLES = {
    "place": VariableFamily("job, server, GPU", "1 where a worker of the job is on the GPU"),
    "uses": VariableFamily("job, server", "1 where a worker of the job is on the server"),
    "spans": VariableFamily("job", "1 where it is on several servers, so that it has all-reduces"),
    "forward": VariableFamily("job, iteration, server, GPU", "when the forward task there starts; 0 without a worker"),
    "backward": VariableFamily("job, iteration, server, GPU", "when the backward task there starts"),
    "admit": VariableFamily("job, iteration", "when its all-reduce is admitted; its end on one server"),
    "end": VariableFamily("job, iteration", "when the iteration has ended"),
    "last": VariableFamily("job, iteration, server, GPU", "1 on a GPU where it computes last", free=True),
    "before": VariableFamily("server, GPU, two tasks", "1 where the first ends before the second starts", free=True),
    "apart": VariableFamily("job, job", "1 where the first finishes before the second starts", free=True),
    "begun": VariableFamily("job, iteration, position", "S: 1 where its transfer begins there", free=True),
    "ended": VariableFamily("job, iteration, position", "E: 1 where its transfer ends there", free=True),
    "crosses": VariableFamily("job, server, position", "1 where it transfers through the server", free=True),
    "busiest": VariableFamily("job, server, position", "1 on a server of its with the most transfers", free=True),
    "level": VariableFamily("job, position, k", "L: 1 where it transfers, with k on its busiest server", free=True),
    "moment": VariableFamily("job, iteration, begin or end, position", "its moment at its position, else 0", free=True),
    "gap": VariableFamily("position", "d: seconds from the position before", free=True),
    "sharing": VariableFamily("job, position, k", "g: d where L = 1, else 0", free=True),
    "moved": VariableFamily("job, iteration, position", "y: what it moves, in seconds that it takes alone", free=True),
}
ROWS = {
    "gang": RowFamily("", "a job has its number of workers"),
    "server": RowFamily("", "uses = 1 where place = 1 for a GPU of the server"),
    "several": RowFamily("", "spans = 1 where it uses two servers or more"),
    "there": RowFamily("", "tasks are where the worker is"),
    "follows": RowFamily("", "a task starts after what it waits for in its own job"),
    "barrier": RowFamily("", "on one server an iteration ends with the last of its backward tasks"),
    "length": RowFamily("", "implied: an iteration takes no less than alone"),
    "disjoint": RowFamily("", "two tasks on one GPU do not overlap"),
    "chain": RowFamily("", "implied: what is before a task is before what follows it"),
    "memory": RowFamily("", "of jobs that do not fit one GPU together, two are apart"),
    "apart": RowFamily("", "the second starts after the first has finished, where apart = 1"),
    "placed": RowFamily("", "each begin and each end has one position, each position one of them"),
    "order": RowFamily("", "a transfer begins before it ends, and after the one before it has ended"),
    "time": RowFamily("", "a begin is a latency after the admission, at the sum of the gaps up to its position"),
    "crosses": RowFamily("", "it transfers, and uses the server"),
    "level": RowFamily("(5)", "k is the largest number of transfers on one of its servers"),
    "sharing": RowFamily("(5)", "g = d for the k that there is"),
    "moved": RowFamily("(5)", "the sum of the moved is the sum of g b / (k b + (k - 1) eta)"),
    "link": RowFamily("(5)", "implied: a link moves no more than one transfer alone does, and a transfer needs two"),
    "whole": RowFamily("", "all of a message is moved, while it transfers"),
}

CONTINUOUS = 1e-7
"""Of the horizon: what starts that an engine took from floats may be off by."""
LARGEST_PAIRS = 2000
"""Pairs of tasks on one GPU, and pairs of all-reduces, that a model may have."""
WIDEST = 1e4
"""Where the horizon is longer than the shortest task by more than this, only solutions count, not an engine's bound."""


def horizon(instance: DdlClusterInstance) -> float:
    """The last second of the model: twice as long as all tasks one after another take."""
    return 2 * instance.longest_run


class Parts:
    """The variables of one model, by positions in the instance.

    Attributes
    ----------
    last : the horizon, seconds
    open : by job, the GPUs that it may have
    spanning : jobs that may be on several servers
    messages : their all-reduces; each has a begin and an end among the positions
    alone, penalty : seconds of an all-reduce that is alone, by job; eta / b
    """

    def __init__(self, instance: DdlClusterInstance) -> None:
        self.instance = instance
        self.jobs = instance.jobs
        self.all = range(len(self.jobs))
        self.ids = [job.id for job in self.jobs]
        self.servers = [server.id for server in instance.servers]
        self.last = horizon(instance)
        gpus = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
        self.open = [sorted(given) if given is not None else gpus for given in instance.given]
        self.spanning = [j for j in self.all if self._may_span(j)]
        self.messages = [(j, i) for j in self.spanning for i in range(self.jobs[j].iterations)]
        self.positions = range(2 * len(self.messages))
        self._refuse_large()
        link = instance.link
        self.latency = link.latency
        self.alone = [link.seconds_per_unit * job.message for job in self.jobs]
        self.penalty = link.contention_penalty / link.seconds_per_unit
        self.layout = Layout(
            pulp.LpProblem("ddl_cluster", pulp.LpMinimize),
            VARIABLES,
            ROWS,
            "the mean of end - arrival, of each job's last iteration",
            {"job": self.ids, "server": self.servers, "position": self.positions},
        )
        self.place: dict[tuple[int, Gpu], pulp.LpVariable] = {}
        self.uses: dict[tuple[int, int], pulp.LpVariable] = {}
        self.task: dict[tuple[int, int, int, Gpu], pulp.LpVariable] = {}
        self.end: dict[AllReduce, pulp.LpVariable] = {}
        self.admit: dict[AllReduce, pulp.LpVariable] = {}
        self.begun: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.ended: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.crosses: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.apart: dict[tuple[int, int], pulp.LpVariable] = {}

    def _may_span(self, j: int) -> bool:
        return self.jobs[j].gpus > 1 and len({s for s, _ in self.open[j]}) > 1

    def _refuse_large(self) -> None:
        here: dict[Gpu, list[int]] = {}
        for j in self.all:
            for gpu in self.open[j]:
                here.setdefault(gpu, []).append(self.jobs[j].iterations)
        pairs = sum(4 * a * b for counts in here.values() for a, b in combinations(counts, 2))
        for what, size in (("pairs of tasks on a GPU", pairs), ("pairs of all-reduces", len(self.messages) ** 2)):
            if size > LARGEST_PAIRS:
                raise ModelTooLarge(f"events: {size} {what}, at most {LARGEST_PAIRS}: the form is for tiny instances")

    def real(self, family: str, *key: str | int, high: float | None = None) -> pulp.LpVariable:
        """A continuous variable from 0 to `high`, the horizon where not given."""
        return self.layout.variable(family, *key, high=self.last if high is None else high, integer=False)

    def steps(self, j: int) -> list[tuple[int, int]]:
        """(iteration, kind) of the tasks of a worker of job j, in order."""
        return list(product(range(self.jobs[j].iterations), (0, 1)))

    def pace(self, k: int) -> float:
        """w_k / b: how many times as long a transfer takes with k on its busiest server."""
        return k + (k - 1) * self.penalty


# What happens in a schedule of ddl-cluster, event by event, for the point that it is in a model.


@dataclass(frozen=True)
class Point:
    """A schedule."""

    placement: tuple[tuple[Gpu, ...], ...]  # by job, its GPUs
    start: dict[Compute, float]  # of the compute tasks, seconds
    admit: dict[AllReduce, float]  # of the all-reduces, seconds; where a job is on one server, the end of its iteration
    end: dict[AllReduce, float]  # of the iterations, seconds
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


# From a schedule of ddl-cluster to its point in the model with contention, and back.


def values_of(parts: Parts, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Values of a schedule that ends by the horizon."""
    point = point_of(parts.instance, solution, parts.spanning)
    if max(point.end.values()) > parts.last * (1 + CONTINUOUS):
        return {}
    values = dict.fromkeys(parts.layout.family_of, 0.0)
    var = parts.layout.variables
    for j, gpus in enumerate(point.placement):
        servers = {s for s, _ in gpus}
        values[var["spans"][parts.ids[j]]] = float(len(servers) > 1)
        for w, (s, g) in enumerate(gpus):
            values[parts.place[j, (s, g)]] = values[parts.uses[j, s]] = 1.0
            for i, kind in parts.steps(j):
                values[parts.task[j, i, kind, (s, g)]] = point.start[j, i, kind, w]
        for i in range(parts.jobs[j].iterations):
            values[parts.end[j, i]] = point.end[j, i]
            s, g = gpus[max(range(len(gpus)), key=lambda w: point.start[j, i, 1, w])]
            values[var["last"][parts.ids[j], i, parts.servers[s], g]] = 1.0
    _order_values(parts, point, values)
    for (j, i), admit in parts.admit.items():
        values[admit] = point.admit[j, i]
    _position_values(parts, point, values)
    return values


def _order_values(parts: Parts, point: Point, values: dict[pulp.LpVariable, float]) -> None:
    """Which of two tasks on a GPU, and of two jobs in a memory, comes first."""
    begin = [min(point.start[j, 0, 0, w] for w in range(job.gpus)) for j, job in enumerate(parts.jobs)]
    for (j, k), apart in parts.apart.items():
        values[apart] = float(point.end[j, parts.jobs[j].iterations - 1] * (1 - CHECK_TOLERANCE) <= begin[k])
    for gpu, (j, k) in product({gpu for _, gpu in parts.place}, combinations(parts.all, 2)):
        if gpu in point.placement[j] and gpu in point.placement[k]:
            v, w = point.placement[j].index(gpu), point.placement[k].index(gpu)
            for (i, a), (r, c) in product(parts.steps(j), parts.steps(k)):
                key = (parts.servers[gpu[0]], gpu[1], parts.ids[j], i, a, parts.ids[k], r, c)
                first = point.start[j, i, a, v] < point.start[k, r, c, w]
                values[parts.layout.variables["before"][key]] = float(first)


def _position_values(parts: Parts, point: Point, values: dict[pulp.LpVariable, float]) -> None:
    """Positions, gaps, and what moves in them."""
    var, clock = parts.layout.variables, Fraction(0)
    servers = [sorted({s for s, _ in gpus}) for gpus in point.placement]
    active: dict[int, int] = {}
    for p, (moment, j, i) in enumerate(point.line):
        gap = float(moment - clock)
        clock = moment
        values[var["gap"][p]] = gap
        count = Counter(s for k in active for s in servers[k])
        for k, r in active.items():
            level = max(count[s] for s in servers[k])
            for s in servers[k]:
                values[parts.crosses[k, s, p]] = 1.0
            busiest = next(s for s in servers[k] if count[s] == level)
            values[var["busiest"][parts.ids[k], parts.servers[busiest], p]] = 1.0
            values[var["level"][parts.ids[k], p, level]] = 1.0
            values[var["sharing"][parts.ids[k], p, level]] = gap
            values[var["moved"][parts.ids[k], r, p]] = gap / parts.pace(level)
        values[(parts.ended if j in active else parts.begun)[j, i, p]] = 1.0
        values[var["moment"][parts.ids[j], i, "end" if j in active else "begin", p]] = float(moment)
        if active.pop(j, None) is None:
            active[j] = i


def schedule_of(parts: Parts, value: Callable[[pulp.LpVariable], float]) -> Solution:
    """The tasks in their order, each when the model has it start, or a rounding later."""
    placement = [[gpu for gpu in parts.open[j] if value(parts.place[j, gpu]) > 0.5] for j in parts.all]
    start: dict[Compute, float] = {}
    for j, gpus in enumerate(placement):
        for w, (i, kind) in product(range(len(gpus)), parts.steps(j)):
            start[j, i, kind, w] = value(parts.task[j, i, kind, gpus[w]])
    servers = [{s for s, _ in gpus} for gpus in placement]
    sent = [(j, i) for j, i in parts.messages if len(servers[j]) > 1]
    begin = {key: value(parts.admit[key]) + parts.latency for key in sent}

    def position(event: Mapping[tuple[int, int, int], pulp.LpVariable], key: AllReduce) -> int:
        return max(parts.positions, key=lambda p: value(event[(*key, p)]))

    after = {
        one: [
            other
            for other in sent
            if servers[one[0]] & servers[other[0]] and position(parts.ended, other) < position(parts.begun, one)
        ]
        for one in sent
    }
    waits: dict[int, list[int]] = {}
    for (j, k), apart in parts.apart.items():
        if value(apart) > 0.5:
            waits.setdefault(k, []).append(j)
    return timetable(parts.instance, placement, Plan(start, begin, after, waits))
