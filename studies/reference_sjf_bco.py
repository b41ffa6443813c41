"""SJF-BCO and its rivals of paper 000 written out line by line: slow, obvious, and sharing no code with the fast ones.

The tests compare the fast algorithms with these; ``speed_rar_ddls`` measures how much faster they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

Load = int | Fraction
INFINITE = math.inf


@dataclass(frozen=True)
class PlainPass:
    """One pass over all jobs that was not broken off.

    Attributes
    ----------
    theta, kappa : its limits
    makespan : slots, from the dynamics
    start, completion : slot of each job, by position
    gpus : GPU indices of each job
    largest_load : W_max = max_g U_g, exact
    """

    theta: float
    kappa: int
    makespan: int
    start: list[int]
    completion: list[int]
    gpus: list[list[int]]
    largest_load: Load


@dataclass
class PlainRun:
    """What a search over theta and kappa returns.

    Attributes
    ----------
    makespan : makespan of the returned pass, T + 1 where nothing was feasible
    returned : the pass itself, or None
    probes : (theta, best makespan over kappa at this theta) in the order they were tried; T + 1 for none
    probe : the pass with theta = infinity and kappa = n_g, or None where it breaks off
    attempts : placements that Algorithms 2 and 3 tried, waiting included
    """

    makespan: int
    returned: PlainPass | None = None
    probes: list[tuple[int, int]] = field(default_factory=list)
    probe: PlainPass | None = None
    attempts: tuple[int, int] = (0, 0)


class PlainCluster:
    """The cluster in one slot: which jobs run where, how far they are, and how loaded every GPU is."""

    def __init__(self, instance: RarDdlsInstance) -> None:
        table = rate_table(instance)
        self.rates = table.phi.tolist()
        self.gangs = [job.gpus for job in instance.jobs]
        self.iterations = [job.iterations for job in instance.jobs]
        self.best_duration = table.best_duration.tolist()
        self.sizes = [server.gpus for server in instance.servers]
        self.common = math.lcm(*self.sizes)
        self.server_of = [s for s, size in enumerate(self.sizes) for _ in range(size)]
        first = [sum(self.sizes[:s]) for s in range(len(self.sizes))]
        self.gpus_of = [range(low, low + size) for low, size in zip(first, self.sizes, strict=True)]
        self.attempts = [0, 0]
        self.reset()

    def reset(self) -> None:
        """Empty the cluster and go back to slot 1."""
        self.now = 1
        self.load: list[Load] = [0] * len(self.server_of)
        self.busy = [False] * len(self.server_of)
        self.left: dict[int, int] = {}
        self.gpus: dict[int, list[int]] = {}
        self.start: dict[int, int] = {}
        self.completion: dict[int, int] = {}

    def begin(self, job: int, gpus: list[int], weight: Load) -> None:
        """Start a job now on these GPUs."""
        for g in gpus:
            self.busy[g] = True
            self.load[g] += weight
        self.gpus[job] = gpus
        self.left[job] = self.iterations[job]
        self.start[job] = self.now

    def exit_some(self) -> bool:
        """Advance the clock to the slot after the next completion; False where nothing that runs ever completes."""
        used = {job: {self.server_of[g] for g in self.gpus[job]} for job in self.left}
        rings = [0] * len(self.sizes)
        for servers in used.values():
            if len(servers) > 1:
                for s in servers:
                    rings[s] += 1
        rate = {job: self.rates[job][len(servers)][max(rings[s] for s in servers)] for job, servers in used.items()}
        slots = [-(-self.left[job] // rate[job]) for job in self.left if rate[job] > 0]
        if not slots:
            return False
        passed = min(slots)
        self.now += passed
        for job in list(self.left):
            self.left[job] -= rate[job] * passed
            if self.left[job] <= 0:
                del self.left[job]
                self.completion[job] = self.now - 1
                for g in self.gpus[job]:
                    self.busy[g] = False
        return True

    def available(self, gpus: Iterable[int], weight: Load, theta: float) -> list[int]:
        """The GPUs of `gpus` that are idle and whose load would not exceed theta, by load, then by index."""
        some = [g for g in gpus if not self.busy[g] and self.load[g] + weight <= theta]
        return sorted(some, key=lambda g: (self.load[g], g))

    def algorithm_2(self, job: int, weight: Load, theta: float) -> list[int] | None:
        """Fragment-aware first fit packing: the least loaded available GPUs of the whole cluster."""
        self.attempts[0] += 1
        some = self.available(range(len(self.busy)), weight, theta)
        return some[: self.gangs[job]] if len(some) >= self.gangs[job] else None

    def algorithm_3(self, job: int, weight: Load, theta: float, scale: Fraction) -> list[int] | None:
        """Least busy server-GPU first: available GPUs of the servers with the least average load."""
        self.attempts[1] += 1
        # Multiplied by the least common multiple of all sizes, averages are compared exactly.
        average = [
            sum(self.load[g] for g in gpus) * (self.common // size)
            for gpus, size in zip(self.gpus_of, self.sizes, strict=True)
        ]
        selected: list[int] = []
        capacity = 0
        for s in sorted(range(len(self.sizes)), key=lambda s: (average[s], s)):
            if capacity >= scale * self.gangs[job]:
                break
            selected.append(s)
            capacity += self.sizes[s]
        some = self.available((g for s in selected for g in self.gpus_of[s]), weight, theta)
        return some[: self.gangs[job]] if len(some) >= self.gangs[job] else None

    def first_fit(self, job: int, weight: Load, theta: float) -> list[int] | None:
        """The available GPUs with the lowest indices, from server to server."""
        some = sorted(self.available(range(len(self.busy)), weight, theta))
        return some[: self.gangs[job]] if len(some) >= self.gangs[job] else None

    def random_fit(self, job: int, weight: Load, theta: float, draws: Sequence[float]) -> list[int] | None:
        """Each GPU in turn: a random server that still has available GPUs, then a random one of these."""
        some = self.available(range(len(self.busy)), weight, theta)
        if len(some) < self.gangs[job]:
            return None
        by_server: dict[int, list[int]] = {}
        for g in sorted(some):
            by_server.setdefault(self.server_of[g], []).append(g)
        chosen = []
        for k in range(self.gangs[job]):
            servers = list(by_server)
            server = servers[int(draws[2 * k] * len(servers))]
            gpus = by_server[server]
            chosen.append(gpus.pop(int(draws[2 * k + 1] * len(gpus))))
            if not gpus:
                del by_server[server]
        return chosen

    def run(
        self,
        order: Sequence[int],
        pick: Callable[[int], list[int] | None],
        weights: Sequence[Load],
        theta: float,
        kappa: int,
    ) -> PlainPass | None:
        """One pass: every job of `order` in turn, each waiting until ``pick(job)`` finds GPUs; None: broken off."""
        self.reset()
        for job in order:
            gpus = pick(job)
            while gpus is None:
                if not self.left or not self.exit_some():
                    return None
                gpus = pick(job)
            self.begin(job, gpus, weights[job])
        while self.left:
            if not self.exit_some():
                return None
        jobs = range(len(self.gangs))
        return PlainPass(
            theta=theta,
            kappa=kappa,
            makespan=max(self.completion.values()),
            start=[self.start[j] for j in jobs],
            completion=[self.completion[j] for j in jobs],
            gpus=[sorted(self.gpus[j]) for j in jobs],
            largest_load=max(self.load),
        )


def _weights(cluster: PlainCluster, rho_hat: Sequence[float] | None, u: float) -> list[Load]:
    """rho_hat / u of every job, an int where it is whole."""
    values = cluster.best_duration if rho_hat is None else rho_hat
    parts = [exact(value) / exact(u) for value in values]
    return [part.numerator if part.denominator == 1 else part for part in parts]


def _bisect(largest: int, bisection: str, kappas: Sequence[int], run: Any) -> PlainRun:
    """Algorithm 1 from line 4 on, with T + 1 for what is infeasible; ``run(theta, kappa)`` is one pass."""
    found = PlainRun(makespan=largest + 1)
    left, right = 1, largest
    while left <= right:
        theta = (left + right) // 2
        makespan, best = largest + 1, None
        for kappa in kappas:
            one = run(theta, kappa)
            if one is not None and one.makespan < makespan:
                makespan, best = one.makespan, one
        found.probes.append((theta, makespan))
        improved = makespan < found.makespan
        if improved:
            found.makespan, found.returned = makespan, best
        if improved if bisection == "improved" else best is not None:
            right = theta - 1
        else:
            left = theta + 1
    return found


def plain_sjf_bco(
    instance: RarDdlsInstance,
    *,
    T: int | None = None,
    u: float = 1.0,
    rho_hat: Sequence[float] | None = None,
    bisection: str = "improved",
    kappa: int | None = None,
    **options: Json,
) -> PlainRun:
    """Algorithms 1 to 3 of paper 000 as printed, with the readings that docs/rar-ddls.md lists.

    Parameters
    ----------
    instance : every job fits the cluster and makes progress alone
    T : largest theta; the horizon where not given
    u : rho_hat / u is added to a GPU's load
    rho_hat : one estimate per job, in input order; best contention-free durations where not given
    bisection : "improved" as printed, or "feasible"
    kappa : only this one instead of 1..n_g
    options : ``lambda`` of Algorithm 3
    """
    cluster = PlainCluster(instance)
    scale = exact(options.get("lambda", 1.0))
    weights = _weights(cluster, rho_hat, u)
    order = sorted(range(len(cluster.gangs)), key=lambda j: cluster.gangs[j])

    def run(theta: float, kappa: int) -> PlainPass | None:
        def pick(job: int) -> list[int] | None:
            if cluster.gangs[job] <= kappa:
                return cluster.algorithm_2(job, weights[job], theta)
            return cluster.algorithm_3(job, weights[job], theta, scale)

        return cluster.run(order, pick, weights, theta, kappa)

    kappas = range(1, max(cluster.gangs) + 1) if kappa is None else [kappa]
    found = _bisect(instance.horizon if T is None else T, bisection, kappas, run)
    found.attempts = (cluster.attempts[0], cluster.attempts[1])
    found.probe = run(INFINITE, kappas[-1])
    if found.probe is not None and found.probe.makespan < found.makespan:
        found.makespan, found.returned = found.probe.makespan, found.probe
    return found


def plain_ff(instance: RarDdlsInstance, *, T: int | None = None, u: float = 1.0) -> PlainRun:
    """First fit in input order, within its own bisected theta."""
    cluster = PlainCluster(instance)
    weights = _weights(cluster, None, u)

    def run(theta: float, kappa: int) -> PlainPass | None:
        return cluster.run(
            range(len(weights)), lambda j: cluster.first_fit(j, weights[j], theta), weights, theta, kappa
        )

    return _bisect(instance.horizon if T is None else T, "improved", [0], run)


def plain_ls(instance: RarDdlsInstance, *, T: int | None = None, u: float = 1.0) -> PlainRun:
    """The least loaded GPUs, in input order, within its own bisected theta."""
    cluster = PlainCluster(instance)
    weights = _weights(cluster, None, u)

    def run(theta: float, kappa: int) -> PlainPass | None:
        return cluster.run(
            range(len(weights)), lambda j: cluster.algorithm_2(j, weights[j], theta), weights, theta, kappa
        )

    return _bisect(instance.horizon if T is None else T, "improved", [0], run)


def plain_rand(instance: RarDdlsInstance, *, seed: int = 0, T: int | None = None, u: float = 1.0) -> PlainRun:
    """Random servers and GPUs in input order, theta = T."""
    cluster = PlainCluster(instance)
    weights = _weights(cluster, None, u)
    largest = instance.horizon if T is None else T
    draws = np.random.default_rng(seed).random(2 * sum(cluster.gangs)).tolist()
    first = [2 * sum(cluster.gangs[:j]) for j in range(len(weights))]
    one = cluster.run(
        range(len(weights)),
        lambda j: cluster.random_fit(j, weights[j], largest, draws[first[j] :]),
        weights,
        largest,
        0,
    )
    if one is None or one.makespan > largest:
        return PlainRun(makespan=largest + 1, probes=[(largest, largest + 1)])
    return PlainRun(makespan=one.makespan, returned=one, probes=[(largest, one.makespan)])


def placement_of(instance: RarDdlsInstance, one: PlainPass) -> Mapping[str, Json]:
    """The pass as a bare solution object."""
    server_of = [server.id for server in instance.servers for _ in range(server.gpus)]
    placement: dict[str, dict[str, int]] = {}
    for job, gpus in zip(instance.jobs, one.gpus, strict=True):
        counts: dict[str, int] = {}
        for g in gpus:
            counts[server_of[g]] = counts.get(server_of[g], 0) + 1
        placement[job.id] = counts
    return {"start": {job.id: slot for job, slot in zip(instance.jobs, one.start, strict=True)}, "placement": placement}
