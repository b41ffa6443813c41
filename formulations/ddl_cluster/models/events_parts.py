"""The named parts of the model of ddl-cluster with contention: sets, families, and what builders share."""

from __future__ import annotations

from itertools import combinations, product

import pulp

from schedgap.formulations.common.errors import ModelTooLarge
from schedgap.formulations.common.layout import Layout, Role, RowFamily, VariableFamily
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.timetable import AllReduce

VARIABLES = {
    "place": VariableFamily("job, server, GPU", "1 where a worker of the job is on the GPU", decision=True),
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
    "length": RowFamily(
        "",
        "an iteration takes no less than alone",
        Role.VALID,
        "contention and waiting only ever add to the chain of its tasks",
    ),
    "disjoint": RowFamily("", "two tasks on one GPU do not overlap"),
    "chain": RowFamily(
        "",
        "what is before a task is before what follows it",
        Role.VALID,
        "orders on a GPU are transitive along the tasks of a job",
    ),
    "memory": RowFamily("", "of jobs that do not fit one GPU together, two are apart"),
    "apart": RowFamily("", "the second starts after the first has finished, where apart = 1"),
    "placed": RowFamily("", "each begin and each end has one position, each position one of them"),
    "order": RowFamily("", "a transfer begins before it ends, and after the one before it has ended"),
    "time": RowFamily("", "a begin is a latency after the admission, at the sum of the gaps up to its position"),
    "crosses": RowFamily("", "it transfers, and uses the server"),
    "level": RowFamily("(5)", "k is the largest number of transfers on one of its servers"),
    "sharing": RowFamily("(5)", "g = d for the k that there is"),
    "moved": RowFamily("(5)", "the sum of the moved is the sum of g b / (k b + (k - 1) eta)"),
    "link": RowFamily(
        "(5)",
        "a link moves no more than one transfer alone does, and a transfer needs two",
        Role.VALID,
        "k transfers share at most the rate of one, at the ends of each of them",
    ),
    "whole": RowFamily("", "all of a message is moved, while it transfers"),
}


CONTINUOUS = 1e-7
"""Share of the horizon by which starts that an engine took from floats may be off."""


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
    open : GPUs that each job may have
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
