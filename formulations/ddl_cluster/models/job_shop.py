"""The declarative model of ddl-cluster: the job shop without contention, a restriction (methods `cbc`, `highs`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.formulations.common.numbers import common_divisor, exact
from schedgap.formulations.ddl_cluster.bounds import alone_times, lower_bound
from schedgap.formulations.ddl_cluster.clock import clock_of, misfits
from schedgap.formulations.ddl_cluster.given_placement import Sharing, given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import INTERPRETED_TASKS, simulate_plain, solution_of, task_count
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Compute, Plan, timetable

VARIABLES = {
    "first": VariableFamily("job", "when it starts, in seconds"),
    "forward": VariableFamily("job, iteration, worker", "when the forward task of its workers on such GPUs starts"),
    "backward": VariableFamily("job, iteration, worker", "when their backward task starts"),
    "barrier": VariableFamily("job, iteration", "when all its workers are done"),
    "admit": VariableFamily("job, iteration", "when its all-reduce is admitted"),
    "end": VariableFamily("job, iteration", "when its all-reduce has ended"),
    "order": VariableFamily("pair of tasks", "1 where the first ends before the second starts"),
    "apart": VariableFamily("job, job, number", "1 where the first finishes before the second starts"),
}
ROWS = {
    "follows": RowFamily("", "a task starts after what it waits for in its own job"),
    "disjoint": RowFamily("", "tasks on one GPU, and all-reduces on one server, do not overlap"),
    "memory": RowFamily("", "of jobs that do not fit one GPU together, two are apart"),
    "apart": RowFamily("", "the second starts after the first has finished, where apart = 1"),
}
_POLICY = "srsf-1"


def build_model(instance: DdlClusterInstance) -> DeclarativeModel:
    """The mixed-integer program of the schedules in which at most one all-reduce is active on a server.

    Start times in seconds of the compute tasks (one GPU of each set of jobs that share GPUs) and of the
    all-reduces, whose durations are then a + b message. For two tasks of different jobs on one GPU or one server,
    a binary y that orders them::

        start_v >= start_u + d_u - H (1 - y),   start_u >= start_v + d_v - H' y

    with H, H' from windows: every job ends no later than in a schedule as good as that of srsf-1. A set of jobs
    that do not fit one GPU's memory together, and would without any one of them, has two of which one finishes
    before the other starts. Minimise the mean of finish - arrival.

    Every row is a difference of two times, so for each order of the tasks the best times are whole multiples of the
    common divisor of all arrivals and durations (``solvers/engines/integers.py``): CP-SAT solves it in those.

    It is a restriction of the problem (``restriction=True``): its optimum is an upper bound, and its solutions
    are schedules. The bound that goes with it is that of :func:`~.bounds.lower_bound`. Raises ModelRefused: a job has
    no placement, or more sets do not fit than LARGEST_SETS.

    Notes
    -----
    O(P) rows and binaries for P pairs of tasks of different jobs on one GPU or server.
    """
    return _JobShop(instance).build()


def model_nonzeros(instance: DdlClusterInstance) -> int:
    """Nonzeros of the model, about: three for each row.

    Raises ModelRefused: a job has no placement.
    """
    placement = given_placement(instance, "declarative model")
    jobs = instance.jobs
    servers = [{server for server, _ in gpus} for gpus in placement]
    pairs = 0
    for here in Sharing.of(placement).jobs:
        pairs += sum(4 * jobs[j].iterations * jobs[k].iterations for j, k in combinations(here, 2))
    for j, k in combinations(range(len(jobs)), 2):
        if min(len(servers[j]), len(servers[k])) > 1 and servers[j] & servers[k]:
            pairs += jobs[j].iterations * jobs[k].iterations
    return 6 * pairs + sum(8 * job.iterations * job.gpus for job in jobs)


def quick(instance: DdlClusterInstance) -> Solution | None:
    """The run of srsf-1 on the given placement; None where one is not given, or simulating it would not be quick."""
    if None in instance.given or task_count(instance) > INTERPRETED_TASKS:
        return None
    return _run(instance, given_placement(instance, "declarative model"))


def _run(instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]]) -> Solution:
    return solution_of(instance, placement, _POLICY, simulate_plain(instance, placement, _POLICY))


class _JobShop:
    """The model while it is built."""

    def __init__(self, instance: DdlClusterInstance) -> None:
        self.instance = instance
        self.placement = given_placement(instance, "declarative model")
        self.sharing = Sharing.of(self.placement)
        self.servers = [{server for server, _ in gpus} for gpus in self.placement]
        self.ids = [job.id for job in instance.jobs]
        self.layout = Layout(
            pulp.LpProblem("ddl_cluster_job_shop", pulp.LpMinimize),
            VARIABLES,
            ROWS,
            "the mean of finish - arrival",
            {"job": self.ids, "server": [server.id for server in instance.servers]},
        )
        self.quick = _run(instance, self.placement)
        jobs = instance.jobs
        link = instance.link
        sent = [
            exact(link.latency) + exact(link.seconds_per_unit) * exact(job.message) if len(servers) > 1 else Fraction(0)
            for job, servers in zip(jobs, self.servers, strict=True)
        ]
        self.message = [float(seconds) for seconds in sent]
        given = [exact(seconds) for job in jobs for seconds in (job.arrival, job.forward, job.backward)]
        tick = common_divisor([*given, *sent])  # windows end at its multiples, so that all times can (engines/ticks.py)
        alone = alone_times(instance)
        flow = sum(self.quick["finish"][job.id] - job.arrival for job in jobs)
        slack = max(0.0, flow - sum(alone)) + 1e-6 * flow
        self.least = [job.forward + job.backward + m for job, m in zip(jobs, self.message, strict=True)]
        latest = [job.arrival + time + slack for job, time in zip(jobs, alone, strict=True)]
        self.last = [float(tick * math.ceil(exact(moment) / tick)) for moment in latest]
        self.start: dict[Compute, pulp.LpVariable] = {}
        self.admit: dict[AllReduce, pulp.LpVariable] = {}
        self.first: list[pulp.LpVariable] = []
        self.finish: list[pulp.LpVariable] = []

    def build(self) -> DeclarativeModel:
        instance = self.instance
        for j in range(len(instance.jobs)):
            self._add_job(j)
        for here in self.sharing.jobs:
            for j, k in combinations(here, 2):
                u, v = self.sharing.workers[j][here][0], self.sharing.workers[k][here][0]
                for i, r in product(range(instance.jobs[j].iterations), range(instance.jobs[k].iterations)):
                    for kind, other in product((0, 1), (0, 1)):
                        self._disjoint(
                            (self.start[j, i, kind, u], self._duration(j, kind)),
                            (self.start[k, r, other, v], self._duration(k, other)),
                        )
            self._add_memory(here)
        for (j, i), (k, r) in combinations(sorted(self.admit), 2):
            if j != k and self.servers[j] & self.servers[k]:
                self._disjoint((self.admit[j, i], self.message[j]), (self.admit[k, r], self.message[k]))
        count = len(instance.jobs)
        mean = sum(job.arrival for job in instance.jobs) / count
        self.layout.objective([(end, 1.0 / count) for end in self.finish], -mean)
        return DeclarativeModel(
            problem=self.layout.problem,
            extract=self._extract,
            sense=1,
            start=self.quick,
            bound=lower_bound(instance),
            restriction=True,
            layout=self.layout,
        )

    def _duration(self, j: int, kind: int) -> float:
        job = self.instance.jobs[j]
        return job.backward if kind else job.forward

    def _variable(self, family: str, *key: str | int, low: float, high: float) -> pulp.LpVariable:
        return self.layout.variable(family, *key, low=low, high=max(low, high), integer=False)

    def _follows(self, after: pulp.LpVariable, before: pulp.LpVariable, seconds: float) -> None:
        self.layout.numbered("follows", [(after, 1.0), (before, -1.0)], ">=", seconds)

    def _add_job(self, j: int) -> None:
        """Its tasks in order, within the windows of its iterations."""
        job = self.instance.jobs[j]
        compute, message = job.forward + job.backward, self.message[j]
        ready = self._variable("first", job.id, low=job.arrival, high=self.last[j])
        self.first.append(ready)
        for i in range(job.iterations):
            low = job.arrival + i * self.least[j]
            high = self.last[j] - (job.iterations - 1 - i) * self.least[j]
            barrier = self._variable("barrier", job.id, i, low=low + compute, high=high)
            if self.sharing.alone[j]:
                self._follows(barrier, ready, compute)
            for group in self.sharing.workers[j].values():
                forward = self._variable("forward", job.id, i, group[0], low=low, high=high)
                backward = self._variable("backward", job.id, i, group[0], low=low + job.forward, high=high)
                self.start[j, i, 0, group[0]], self.start[j, i, 1, group[0]] = forward, backward
                self._follows(forward, ready, 0.0)
                self._follows(backward, forward, job.forward)
                self._follows(barrier, backward, job.backward)
            ready = barrier
            if message:
                admit = self._variable("admit", job.id, i, low=low + compute, high=high)
                ready = self._variable("end", job.id, i, low=low + compute + message, high=high)
                self._follows(admit, barrier, 0.0)
                self._follows(ready, admit, message)
                self.admit[j, i] = admit
        self.finish.append(ready)

    def _disjoint(self, one: tuple[pulp.LpVariable, float], other: tuple[pulp.LpVariable, float]) -> None:
        """One task ends before the other starts."""
        (u, u_time), (v, v_time) = one, other
        to_v = max(0.0, u.upBound + u_time - v.lowBound)
        to_u = max(0.0, v.upBound + v_time - u.lowBound)
        if u.upBound + u_time <= v.lowBound or v.upBound + v_time <= u.lowBound:
            return  # their windows do not meet
        order = self.layout.variable("order", len(self.layout.variables.get("order", ())) + 1)
        self.layout.numbered("disjoint", [(v, 1.0), (u, -1.0), (order, -to_v)], ">=", u_time - to_v)
        self.layout.numbered("disjoint", [(u, 1.0), (v, -1.0), (order, to_u)], ">=", v_time)

    def _add_memory(self, here: tuple[int, ...]) -> None:
        """Rows that keep two jobs of every smallest set that does not fit one GPU apart."""
        for chosen in misfits(here, clock_of(self.instance).memory):
            apart = [(self._before(j, k), 1.0) for j, k in permutations(chosen, 2)]
            self.layout.numbered("memory", apart, ">=", 1)

    def _before(self, j: int, k: int) -> pulp.LpVariable:
        """A new binary: job j finishes before job k starts where it is 1."""
        number = len(self.layout.variables.get("apart", ())) + 1
        apart = self.layout.variable("apart", self.ids[j], self.ids[k], number)
        most = max(0.0, self.last[j] - self.instance.jobs[k].arrival)
        self.layout.numbered("apart", [(self.first[k], 1.0), (self.finish[j], -1.0), (apart, -most)], ">=", -most)
        return apart

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        """The order of the tasks, each as early as it allows."""
        moments = sorted({value(variable) for variable in self.start.values()})
        rank = {moment: float(k - len(moments)) for k, moment in enumerate(moments)}  # below 0: the order is all
        start: dict[Compute, float] = {}
        for (j, i, kind, w), variable in self.start.items():
            group = next(workers for workers in self.sharing.workers[j].values() if workers[0] == w)
            start.update({(j, i, kind, worker): rank[value(variable)] for worker in group})
        admitted = {key: value(variable) for key, variable in self.admit.items()}
        after: dict[AllReduce, list[AllReduce]] = {key: [] for key in admitted}
        for (j, i), (k, r) in combinations(sorted(admitted), 2):
            if j != k and self.servers[j] & self.servers[k]:
                first, second = ((j, i), (k, r)) if admitted[j, i] <= admitted[k, r] else ((k, r), (j, i))
                after[second].append(first)
        begun = [value(variable) for variable in self.first]
        ended = [value(variable) for variable in self.finish]
        waits: dict[int, list[int]] = {}
        for here in self.sharing.jobs:
            for j, k in combinations(here, 2):
                for one, other in ((j, k), (k, j)):
                    if ended[one] <= begun[other] + 1e-6 * ended[one]:
                        waits.setdefault(other, []).append(one)
        return timetable(self.instance, self.placement, Plan(start, {}, after, waits))
