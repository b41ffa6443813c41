"""Tiny instances of every problem whose numbers are hard on exact methods: near ties, magnitudes, odd decimals.

For the suite ``cross`` (:mod:`oracles.cross`). Each begins as a tiny instance whose optimum a plain search finds, and
its numbers are then drawn anew: optima that differ by a billionth, sums that miss a capacity by as little, coefficients
over nine orders of magnitude, values that have no short decimal, rates of zero, jobs that are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from oracles.gang_placement import random_case as random_gangs
from schedgap.benchmarks.instances.comm_contention import random as comm_contention_random
from schedgap.benchmarks.instances.ddl_cluster import random as ddl_cluster_random
from schedgap.benchmarks.instances.ddljs import random as ddljs_random
from schedgap.benchmarks.instances.g_vne import random as g_vne_random
from schedgap.benchmarks.instances.gpu_sharing import random as gpu_sharing_random
from schedgap.benchmarks.instances.hadar import random as hadar
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST, Instance, Json
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

Kind = TypeVar("Kind", bound=Instance)
FAMILIES = ("near-ties", "magnitudes", "decimals")
Fields = dict[str, Json]
_LONGEST = 1e12
"""Seconds: what a transfer alone may take, so that every sensible moment of a start is one that files may hold."""


class Numbers:
    """Draws numbers of one family, near to those given.

    Attributes
    ----------
    rng : of all randomness
    family : one of ``FAMILIES``
    """

    def __init__(self, seed: int, family: str) -> None:
        if family not in FAMILIES:
            raise InputError(f"family: must be one of {', '.join(FAMILIES)}, got {family!r}")
        self.rng = np.random.default_rng([seed, FAMILIES.index(family)])
        self.family = family
        self._span = [(-9, 0), (6, 12), (-6, 3), (-3, 6)][int(self.rng.integers(4))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence[Json]) -> Json:
        """One of them."""
        return choices[int(self.rng.integers(len(choices)))]

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def near(self, value: float) -> float:
        """`value`, or one that differs from it by 1e-6 to 1e-9 of it."""
        return value * (1 + self.whole(-4, 4) * 10.0 ** -self.whole(6, 9))

    def odd(self, value: float) -> float:
        """A number about as large as `value` whose shortest decimal is long, or one ulp beside a short one."""
        third = value / 3
        return float(
            self.pick(
                [
                    value * 0.1 + value * 0.2,
                    third * 10 / 7,
                    math.nextafter(value, math.inf),
                    math.nextafter(value, 0.0),
                    third + third + third,
                    value * 0.7 + value * 0.1,
                    value,
                ]
            )
        )

    def worth(self, value: float) -> float:
        """A number of the objective."""
        if self.family == "magnitudes":
            return min(LARGEST, float(f"{value * 10.0 ** self.whole(*self._span):.{self.whole(1, 6)}g}"))
        if self.family == "near-ties":
            return float(f"{self.near(value * self.pick([0.01, 0.1, 1, 1000])):.12g}")
        return self.odd(value)

    def size(self, value: float) -> float:
        """A number of the constraints: it stays as large as it was, except in one of many magnitudes."""
        if self.family == "magnitudes":
            return value * 10.0 ** self.whole(-4, 4) if self.chance(0.15) else value
        if self.chance(0.4):
            return value
        return float(f"{self.near(value):.12g}") if self.family == "near-ties" else self.odd(value)

    def equal(self, jobs: list[Fields]) -> None:
        """Now and then makes a job the twin of another."""
        if len(jobs) > 1 and self.chance(0.25):
            one, other = self.rng.permutation(len(jobs))[:2].tolist()
            jobs[other] = {**jobs[one], "id": jobs[other]["id"]}


def _of(numbers: Numbers, fields: Fields, names: Sequence[str], draw: Callable[[float], float]) -> None:
    """Draws the named fields anew, those that are 0 or missing excepted."""
    for name in names:
        if fields.get(name):
            fields[name] = draw(fields[name])


def _made(kind: type[Kind], data: Fields, numbers: Numbers, seed: int) -> Kind:
    name = f"{numbers.family}-{seed}"
    return kind.parse({**data, "name": name}, name)


def hard_hadar(seed: int, *, family: str) -> HadarInstance:
    """2 or 3 jobs on 2 or 3 devices, 2 to 4 slots; rates of zero among them, P1 and P2."""
    numbers = Numbers(seed, family)
    jobs, gpus, slots = numbers.whole(2, 3), numbers.whole(1, 3), numbers.whole(2, 4)
    data = hadar.tiny(seed, jobs=jobs, gpus=gpus, horizon=slots).to_dict()
    # Half of the lengths are of an hour's order, with rates to match: what measured instances look like.
    length = numbers.pick([1.0, 0.1, 60.0, 360.0])
    data["slot_length"] = numbers.size(length)
    data["all_jobs_must_finish"] = numbers.chance(0.25)
    numbers.equal(data["jobs"])
    base = numbers.pick([1.0, 3.0, 0.3])
    for job in data["jobs"]:
        rates = {kind: numbers.size(rate / length) for kind, rate in job["throughput"].items()}
        if numbers.chance(0.15):
            rates[numbers.pick(sorted(rates))] = 0.0
        job["throughput"] = rates
        utility = dict(job["utility"])
        if numbers.chance(0.6):
            utility["weight"] = base  # so that near ties are near something
        if utility["kind"] == "effective-throughput":
            utility["weight"] = utility["weight"] * numbers.pick([length, 1.0]) / numbers.pick([1, job["epochs"]])
        utility["weight"] = numbers.worth(utility["weight"])
        if utility.get("deadline"):
            utility["deadline"] = numbers.odd(numbers.pick([0.3, 1.0])) if numbers.chance(0.1) else 0.0
            utility["deadline"] = utility["deadline"] or numbers.size(length * numbers.whole(1, slots + 1))
        job["utility"] = utility
    return _made(HadarInstance, data, numbers, seed)


def _network(numbers: Numbers, data: Fields) -> None:
    for server in data["servers"]:
        server["resources"] = {name: numbers.size(amount) for name, amount in server.get("resources", {}).items()}
    for link in data["links"]:
        link["bandwidth"] = numbers.size(link["bandwidth"])
    for job in data["jobs"]:
        job["demand"] = {name: numbers.size(amount) for name, amount in job["demand"].items()}
        job["bandwidth"] = 0.0 if numbers.chance(0.05) else numbers.size(job["bandwidth"])


def hard_g_vne(seed: int, *, family: str) -> GVneInstance:
    """2 or 3 servers, 2 to 4 jobs of at most 2 or 3 workers, links that hold few rings."""
    numbers = Numbers(seed, family)
    made = g_vne_random.tiny(seed, servers=numbers.whole(2, 3), jobs=numbers.whole(2, 4), workers=numbers.whole(2, 3))
    data = made.to_dict()
    numbers.equal(data["jobs"])
    _network(numbers, data)
    base = numbers.pick([1.0, 2.0, 0.3, 10.0])
    for job in data["jobs"]:
        whole = numbers.chance(0.6)  # worth its workers, nearly: what fits one way fits another for the same
        job["utility"] = [numbers.worth(base * (k + 1) if whole else value) for k, value in enumerate(job["utility"])]
    return _made(GVneInstance, data, numbers, seed)


def hard_ddljs(seed: int, *, family: str) -> DdljsInstance:
    """1 or 2 servers, 2 or 3 jobs of at most 2 workers, 2 or 3 slots; every kind of utility."""
    numbers = Numbers(seed, family)
    made = ddljs_random.tiny(seed, servers=numbers.whole(1, 2), jobs=numbers.whole(2, 3), horizon=numbers.whole(2, 3))
    data = made.to_dict()
    numbers.equal(data["jobs"])
    _network(numbers, data)
    base = numbers.pick([1.0, 2.0, 0.3])
    for job in data["jobs"]:
        job["max_workers"] = min(2, job["max_workers"])
        job["budget"] = {name: numbers.size(amount) for name, amount in job.get("budget", {}).items()}
        job["efficiency"] = 0.0 if numbers.chance(0.05) else numbers.size(job["efficiency"])
        utility = dict(job["utility"])
        if numbers.chance(0.5):
            utility["scale"] = base
        utility["scale"] = numbers.worth(utility["scale"])
        _of(numbers, utility, ("steepness", "midpoint"), numbers.size)
        job["utility"] = utility
    return _made(DdljsInstance, data, numbers, seed)


def hard_comm_contention(seed: int, *, family: str) -> CommContentionInstance:
    """2 or 3 tasks; released at 0, or when others may just be over; with and without latency and penalty."""
    numbers = Numbers(seed, family)
    tasks = 2 if numbers.chance(0.6) else 3
    data = comm_contention_random.tiny(seed, tasks=tasks).to_dict()
    link = data["link"]
    _of(numbers, link, ("latency", "contention_penalty"), numbers.size)
    link["seconds_per_unit"] = numbers.size(link["seconds_per_unit"])
    slowest = link["seconds_per_unit"] + link.get("contention_penalty", 0.0)
    if numbers.chance(0.3):
        data["tasks"][-1]["size"] = data["tasks"][0]["size"]
    for task in data["tasks"]:
        task["size"] = min(numbers.worth(task["size"]), _LONGEST / slowest)
    clock = 0.0
    for task in data["tasks"]:
        there = numbers.pick([0.0, numbers.size(clock) if clock else 0.0, numbers.worth(task["release"] or 1.0)])
        task["release"] = min(there, _LONGEST)
        clock += link["seconds_per_unit"] * task["size"]
    return _made(CommContentionInstance, data, numbers, seed)


def hard_gang_placement(seed: int, *, family: str) -> GangPlacementInstance:
    """Weights and prices that nearly tie, lie decades apart or have nine decimals; devices full to one part."""
    numbers = Numbers(seed, family)
    data = random_gangs(10_000 + seed)
    for gang in data["gangs"]:
        gang["weight"] = _decimals(numbers, gang["weight"])
    for pod in data["running"]:
        for name in {"price", "move_price"} & set(pod):
            pod[name] = _decimals(numbers, pod[name])
    if numbers.chance(0.5):
        group = numbers.pick(numbers.pick(data["gangs"])["pods"])
        if 0 < group["gpu"] < 1000:
            group["gpu"] += int(numbers.pick([-1, 1]))
    return GangPlacementInstance.parse(data)


def _decimals(numbers: Numbers, value: float) -> float:
    """At most nine decimals: components are counted in a common step."""
    if numbers.family == "magnitudes":
        return float(round(value * 10.0 ** numbers.whole(-4, 4), 6))
    step = 10.0 ** -numbers.whole(6, 9) if numbers.family == "near-ties" else 0.123456789
    return float(round(value + numbers.whole(0, 2) * step, 9))


def hard_ddl_cluster(seed: int, *, family: str) -> DdlClusterInstance:
    """2 placed jobs of 1 or 2 GPUs and one or two iterations; tasks over a few orders of magnitude."""
    numbers = Numbers(seed, family)
    data = ddl_cluster_random.tiny(seed, jobs=2, iterations=numbers.whole(1, 2)).to_dict()
    link = data["link"]
    link["latency"] = numbers.pick([0.0, 0.5])
    _of(numbers, link, ("latency", "contention_penalty", "seconds_per_unit"), numbers.size)
    numbers.equal(data["jobs"])
    for job in data["jobs"]:
        # At most three orders: time is one grid for all, and longer tasks only repeat what shorter ones show.
        draw = (lambda x: x * 10.0 ** numbers.whole(-2, 1)) if family == "magnitudes" else numbers.size
        _of(numbers, job, ("arrival", "forward", "backward", "message"), draw)
    return _made(DdlClusterInstance, data, numbers, seed)


def hard_gpu_sharing(seed: int, *, family: str) -> GpuSharingInstance:
    """2 or 3 jobs on 2 GPUs; iterations that end at a slot's end, nearly, and loads that fill the memory, nearly."""
    numbers = Numbers(seed, family)
    jobs = 2 if numbers.chance(0.4) else 3
    data = gpu_sharing_random.tiny(seed, jobs=jobs, gpus=2, slots=3, arrivals=2, horizon=numbers.whole(5, 9)).to_dict()
    numbers.equal(data["jobs"])
    length = data["slot_length"] = numbers.size(data["slot_length"])
    loads = []
    for job in data["jobs"]:
        if numbers.chance(0.5):  # an iteration fills a part of the slot that is whole, nearly
            compute = {"fixed": numbers.size(length / numbers.whole(1, 4)), "per_sample": 0.0}
            job["compute"], job["communication"] = compute, {"latency": 0.0, "per_unit": 0.0, "message": 0.0}
            job["iterations"] = numbers.whole(1, 8)
        else:
            _of(numbers, job["compute"], ("fixed", "per_sample"), numbers.size)
        if family == "magnitudes" and numbers.chance(0.3):
            factor = 10 ** numbers.whole(1, 6)
            job["compute"] = {name: value / factor for name, value in job["compute"].items()}
            job["communication"] = {**job["communication"], "latency": 0.0, "message": 0.0}
            job["iterations"] = min(10**9, job["iterations"] * factor)
        _of(numbers, job["memory"], ("fixed", "per_sample"), numbers.size)
        loads.append(job["memory"]["fixed"] + job["memory"]["per_sample"] * job["batch_size"])
    if numbers.chance(0.5):
        data["gpu_memory"] = numbers.size(max(*loads, loads[0] + loads[1] if numbers.chance(0.5) else 0.0))
    data["interference"] = {
        one: {other: max(1.0, numbers.size(value)) for other, value in row.items()}
        for one, row in data.get("interference", {}).items()
    }
    return _made(GpuSharingInstance, data, numbers, seed)


def hard_rar_ddls(seed: int, *, family: str) -> RarDdlsInstance:
    """1 to 3 jobs on 1 to 5 servers; rates that are whole, nearly, or zero beyond some number of servers."""
    numbers = Numbers(seed, family)
    servers: list[Fields] = [{"id": f"s{i}", "gpus": numbers.whole(1, 2)} for i in range(numbers.whole(1, 5))]
    total = sum(server["gpus"] for server in servers)
    count = numbers.whole(1, 3 if len(servers) < 5 else 2)
    inter = numbers.size(numbers.pick([1.0, 2.0]))
    network = {
        "inter_bandwidth": inter,
        "intra_bandwidth": max(inter, numbers.size(numbers.pick([1.0, 50.0]))),
        "contention_scale": min(1.0, numbers.size(numbers.pick([0.5, 0.75, 1.0]))),
        "contention_penalty": numbers.size(numbers.pick([0.2, 0.5, 1.0])) if numbers.chance(0.5) else 0.0,
        "server_overhead": min(0.1, numbers.size(numbers.pick([0.0, 0.01, 0.1]))),
    }
    data: Fields = {
        "problem": "rar-ddls",
        "horizon": numbers.whole(3, 6),
        "network": network,
        "reduce_speed": numbers.size(numbers.pick([20.0, 100.0, 1e9])),
        "servers": servers,
        "jobs": [],
    }
    data["jobs"] = [_rar_job(numbers, f"j{i}", total, data) for i in range(count)]
    numbers.equal(data["jobs"])
    return _made(RarDdlsInstance, data, numbers, seed)


def _rar_job(numbers: Numbers, name: str, total: int, data: Mapping[str, Any]) -> Fields:
    """A job whose rate is a whole number, nearly, on one server or on some number of servers, crossing alone."""
    gpus = numbers.whole(1, min(3, total)) + (1 if numbers.chance(0.02) else 0)
    rate = numbers.pick([1, 2, 3, 3, 4, 5]) * (10 ** numbers.whole(0, 6) if numbers.family == "magnitudes" else 1)
    gradient = 0.0 if gpus == 1 else numbers.size(numbers.pick([0.0, 0.05, 0.1, 0.3, 5.0])) / (rate if rate > 9 else 1)
    network, across = data["network"], numbers.whole(1, gpus)
    bandwidth = network["inter_bandwidth" if across > 1 else "intra_bandwidth"]
    share = gradient * (gpus - 1) / gpus
    computing = 1.0 / rate - network["server_overhead"] * across - share * (2 / bandwidth + 1 / data["reduce_speed"])
    if computing <= 0 or numbers.chance(0.3):
        computing = 1.0 / rate
    if rate < 3 and across == 1:  # above the whole number, so that it is not zero on every number of servers
        computing *= 0.9
    samples = numbers.pick([1, 10])
    return {
        "id": name,
        "gpus": gpus,
        "iterations": max(1, int(rate * numbers.rng.uniform(0.3, 2))),
        "gradient_size": gradient,
        "batch_size": samples,
        "forward_time": numbers.pick([0.0, computing / samples / 4]),
        "backward_time": 1.5 if numbers.chance(0.02) else numbers.near(computing),
    }
