"""Tiny instances that are built to hurt, for the differential gate; each is made anew from a seed and a number.

Equal sizes with different abilities, rates of 0, memory that is exactly full, tight horizons, near ties, units over
nine decades and more, ids that look like keywords, arrivals beyond the horizon, networks in pieces.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from gate.disguise import Data, Draw, disguised
from oracles.ddl_cluster import orders, placed, placements
from oracles.gang_placement import (
    alike_case,
    flavoured_case,
    hosted_case,
    parted_case,
    random_case,
    shared_case,
    single_case,
    spread_case,
    subgroup_case,
)
from oracles.hadar import gangs
from support import extreme_tiny

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.hadar.instance import HadarInstance

MOST_ORDERS = 40
"""Of events, of an instance of ddl-cluster: a linear program each."""
MOST_CHOICES = 150
"""Of gangs for all jobs of an instance of hadar, in each of its slots."""


def near(draw: Draw, value: float) -> float:
    """A number next to a value, or itself."""
    return value * (1 + draw.choice((-2, -1, 0, 0, 1, 2)) * 10.0 ** -draw.randint(6, 14))


def above(draw: Draw) -> float:
    """A small number of ten decimals, and a hair more."""
    return draw.randint(10**3, 10**6) * 1e-10 + draw.choice((2e-14, 5e-14, 9e-14))


def edge(problem: str) -> Callable[[Draw], Data]:
    """The edges of what is valid."""

    def made(draw: Draw) -> Data:
        data: Data = extreme_tiny.MAKERS[problem](np.random.default_rng(draw.getrandbits(32))).to_dict()
        if data["problem"] == "rar-ddls":
            data["horizon"] += draw.choice((0, 1, 3, 5))
        return data

    return made


def rar_ddls(draw: Draw, sizes: list[int], gangs: list[int], horizon: int, ring: Callable[[int], Data]) -> Data:
    return {
        "problem": "rar-ddls",
        "horizon": horizon,
        "network": {
            "inter_bandwidth": 1.0,
            "intra_bandwidth": draw.choice((1.0, 50.0)),
            "contention_scale": draw.choice((0.5, 0.75, 1.0)),
            "contention_penalty": draw.choice((0.0, 0.2, 1.0)),
            "server_overhead": 0.0,
        },
        "reduce_speed": draw.choice((20.0, 1000.0)),
        "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
        "jobs": [
            {"id": f"j{j}", "gpus": gang, "iterations": 1, "gradient_size": 0.0, "batch_size": 1, "forward_time": 0.0}
            | ring(gang)
            for j, gang in enumerate(gangs)
        ],
    }


def rar_equal_gangs(draw: Draw) -> Data:
    """Gangs of one size, each of which stands still on more servers than a number of its own."""
    sizes = draw.choice(([2, 1, 1, 1, 1], [1, 1, 1, 1], [2, 1, 1, 1], [2, 2, 1, 1], [3, 1, 1], [2, 2, 2], [1, 1, 1]))
    gang, overhead = draw.choice((2, 3, 3)), draw.choice((0.05, 0.1, 0.2, 0.25))
    gangs = [gang] * draw.choice((2, 3, 3, 4)) if sum(sizes) > gang else [gang] * 2
    if draw.random() < 0.3:
        gangs[-1] = draw.randint(1, gang)
    several = draw.random() < 0.5

    def ring(own: int) -> Data:
        width = draw.randint(1, min(own, len(sizes)))
        rate = draw.choice((1, 1, 2, 3)) if several else 1
        alone = max(1 / rate - overhead * width, 0.01)
        return {
            "iterations": draw.choice((1, 1, rate, 2 * rate, 2)),
            "gradient_size": draw.choice((0.0, 0.0, 0.0, 0.05, 0.1)),
            "backward_time": round(alone * (1 - draw.choice((0.0, 0.0, 0.3))), 10),
        }

    data = rar_ddls(draw, draw.sample(sizes, len(sizes)), gangs, draw.randint(4, 9), ring)
    data["network"]["server_overhead"] = overhead
    return data


def rar_contended(draw: Draw) -> Data:
    """Rings that must cross, and meet; 1 / tau near a whole number."""
    sizes = draw.choice(([2, 2, 2], [2, 2, 2], [3, 3, 2], [2, 2], [1, 1, 1, 1]))
    large = max(sizes) + 1
    gangs = [large, large, *(draw.randint(1, large) for _ in range(draw.randint(0, 4 - max(sizes))))]

    def ring(gang: int) -> Data:
        rate = draw.choice((1, 2, 5, 10))
        gradient = draw.choice((0.0, 0.0625, 0.1, 0.1125, 0.2))
        return {
            "iterations": max(1, round(rate * draw.uniform(0.5, 3))),
            "gradient_size": gradient if gang > 1 else 0.0,
            "backward_time": max(near(draw, 1 / rate) - 2 * gradient * (gang - 1) / gang * draw.choice((0, 1)), 1e-3),
        }

    return rar_ddls(draw, sizes, gangs, draw.randint(6, 11), ring)


def rar_crowded(draw: Draw) -> Data:
    """Three and more rings that all cross the same servers, and that each one more of them slows down."""
    size = draw.choice((3, 3, 4))
    gangs = [size + 1 if draw.random() < 0.8 else draw.randint(1, size) for _ in range(draw.choice((4, 5)))]

    def ring(gang: int) -> Data:
        gradient = draw.choice((0.1, 0.1, 0.05)) if gang > 1 else 0.0
        return {
            "gradient_size": gradient,
            "backward_time": draw.choice((0.05, 0.1, 0.3)),
            "iterations": draw.randint(2, 6),
        }

    data = rar_ddls(draw, [size, size], gangs, draw.randint(3, 7), ring)
    data["network"] |= {"contention_scale": 1.0, "contention_penalty": draw.choice((0.2, 1.0))}
    return data


def rar_packed(draw: Draw) -> Data:
    """Jobs that stay on their servers, in a horizon that they fill or just do not."""
    size, servers, horizon = draw.choice((2, 3, 4)), draw.choice((1, 1, 2)), draw.randint(4, 8)
    gangs = [draw.randint(1, size) for _ in range(draw.randint(3, 5 if servers == 1 else 4))]
    return rar_ddls(
        draw,
        [size] * servers,
        gangs,
        horizon,
        lambda gang: {"iterations": draw.choice((1, 1, 2, 3)), "backward_time": draw.choice((1.0, 1.0, 0.5, 1 / 3))},
    )


def sharing(draw: Draw) -> Data:
    """Jobs that end next to the end of a slot, alone or beside others, on memory that two of them just fill."""
    gpus, jobs, length = draw.randint(1, 3), draw.choice((3, 3, 4)), draw.choice((1.0, 0.1, 1 / 3))
    horizon = draw.randint(jobs + 1, jobs + 6)
    parts: list[Data] = []
    gang = draw.randint(1, gpus)
    for j in range(jobs):
        slots = draw.choice((1, 1, 2, 2, 3)) * draw.choice((1.0, 1.0, 0.75, 2 / 3, 0.5))
        iterations = draw.choice((1, 2, 3, 7))
        parts.append(
            {
                "id": f"j{j}",
                "arrival": draw.choice((1, 1, 2, 3, horizon, horizon + 1) if draw.random() < 0.1 else (1, 1, 2, 3)),
                "gpus": gang if draw.random() < 0.6 else draw.randint(1, gpus),
                "iterations": iterations,
                "batch_size": draw.choice((1, 1, 2, 4)),
                "compute": {"fixed": near(draw, length * slots / iterations), "per_sample": 0.0},
                "communication": {"latency": 0.0, "per_unit": 0.0, "message": 1.0},
                "overlap": draw.choice((1.0, 1.0, 2.0)),
                "memory": {"fixed": draw.choice((0.1, 0.2, 0.3, 0.5)), "per_sample": draw.choice((0.0, 0.0, 0.1))},
            }
        )
        if draw.random() < 0.3:
            half = parts[-1]["compute"]["fixed"] / 2
            parts[-1]["compute"] = {"fixed": half, "per_sample": half / parts[-1]["batch_size"]}
    loads = sorted(part["memory"]["fixed"] + part["memory"]["per_sample"] * part["batch_size"] for part in parts)
    slowdowns = draw.choice(
        (
            (1.0, 1.5),
            (1.0, 2.0, 4 / 3),
            (1 + 1e-6, 2.0, 1.1),
            (1.0, 1 + 1e-9),
            (3.0, 1e6, 1.2),
            (2.0, 4 / 3, 1.25 + 1e-15),  # losses beside halves, quarters and fifths by the last digit
        )
    )
    return {
        "problem": "gpu-sharing",
        "horizon": horizon,
        "slot_length": length,
        "servers": draw.choice(([{"id": f"s{s}", "gpus": 1} for s in range(gpus)], [{"id": "s0", "gpus": gpus}])),
        "gpu_memory": max(near(draw, draw.choice((loads[0] + loads[1], loads[-1] + loads[-2], 1.0))), loads[-1]),
        "max_jobs_per_gpu": draw.choice((1, 2, 2, 2)),
        "jobs": parts,
        "interference": {
            f"j{a}": {f"j{b}": draw.choice(slowdowns) for b in range(jobs) if b != a} for a in range(jobs)
        },
    }  # fmt: skip


def hadar_abilities(draw: Draw) -> Data:
    """Equal gangs that can use different types; deadlines at whole slots, utilities that nearly tie."""
    slots, kinds = draw.randint(1, 4), ["A", "B", "C"][: draw.randint(1, 3)]
    workers, length = draw.randint(1, 3), draw.choice((1.0, 0.1, 7.7))
    rates = draw.choice(((1.0, 0.0), (1.0, 2.0, 0.0), (0.1, 0.3, 0.7), (3.0, 1.0)))
    weight = draw.choice((1.0, 3.0, 0.1))
    jobs: list[Data] = []
    for j in range(draw.randint(2, 4)):
        kind = draw.choice(("effective-throughput", "linear", "constant"))
        utility = {"kind": kind, "weight": near(draw, weight)}
        if kind == "linear":
            utility["deadline"] = near(draw, draw.randint(1, slots + 1) * length)
        own = workers if draw.random() < 0.7 else draw.randint(1, 3)
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": draw.choice((1, 1, slots)),
                "workers": own,
                "epochs": max(1, round(own * length * max(rates) * draw.choice((0.5, 1.0, 1.5, 2.0)))),
                "iterations_per_epoch": 1,
                "throughput": {name: draw.choice(rates) for name in kinds if draw.random() < 0.8},
                "utility": utility,
            }
        )
    return {
        "problem": "hadar",
        "horizon": slots,
        "slot_length": length,
        "all_jobs_must_finish": draw.random() < 0.15,
        "machines": [{"id": f"h{k}", "gpus": {name: draw.randint(1, 2)}} for k, name in enumerate(kinds)],
        "jobs": jobs,
    }


def hadar_pairs(draw: Draw) -> Data:
    """Gangs of two or three on types that hold one and a half of them: linear programs share what is left."""
    data = hadar_abilities(draw)
    workers, slots = draw.choice((2, 2, 3)), draw.choice((1, 1, 2))
    data["machines"] = [
        {"id": f"h{k}", "gpus": {name: draw.choice((2 * workers - 1, 2 * workers - 1, workers, 2))}}
        for k, name in enumerate(("A", "B")[: draw.choice((1, 2))])
    ]
    kinds = [name for machine in data["machines"] for name in machine["gpus"]]
    data |= {"horizon": slots, "slot_length": 1.0, "all_jobs_must_finish": False}
    data["jobs"] = [
        {
            "id": f"j{j}",
            "arrival": 1,
            "workers": workers,
            "epochs": workers * draw.choice((1, 1, slots)),
            "iterations_per_epoch": 1,
            "throughput": {name: draw.choice((1.0, 1.0, 0.5)) for name in kinds},
            "utility": {"kind": "constant", "weight": near(draw, draw.choice((1.0, 1.0, 1.5, 2.0)))},
        }
        for j in range(draw.choice((3, 3, 4)))
    ]
    return data


def hadar_ties(draw: Draw) -> Data:
    """Rates decades apart, with which some slots do the work but for a hair, or by one."""
    data = hadar_abilities(draw)
    for job in data["jobs"]:
        if len(job["throughput"]) < 2:
            continue
        first, second = draw.sample(sorted(job["throughput"]), 2)
        goal = job["epochs"] * (1 - Fraction(1, 10**9)) / job["workers"] / exact(data["slot_length"])
        rate = draw.choice((0.9999, 0.5, 0.999999, 1 / 3)) * float(goal)
        rest = (goal - exact(rate)) / draw.choice((1, 1, 2))
        hair = rest * draw.choice((-1, 0, 1)) / 10 ** draw.choice((9, 14, 16))
        job["throughput"] |= {first: rate, second: max(float(rest + hair), 0.0)}
    return data


def rings(draw: Draw) -> Data:
    """Rings on a network in one or two pieces, links that just hold them one way, utilities that nearly tie."""
    servers = draw.choice((2, 3, 3, 4))
    split = draw.choice((0, 0, 1, 2))
    width = draw.choice((0.1, 0.3, 1.0))
    links = [
        {"from": f"s{a}", "to": f"s{b}", "bandwidth": near(draw, width * draw.choice((0, 1, 1, 2)))}
        for a in range(servers)
        for b in range(servers)
        if a != b and (a < split) == (b < split) and draw.random() < (0.8 if servers < 4 else 0.5)
    ]
    worth = draw.choice((1.0, 3.0, 0.1))
    jobs = [
        {
            "id": f"j{j}",
            "demand": {"gpu": 1.0} if draw.random() < 0.7 else {"gpu": 1.0, "memory": 0.1},
            "bandwidth": draw.choice((width, width, 0.0, 2 * width)),
            "utility": [near(draw, worth * draw.choice((1, k, k, 2 * k))) for k in range(1, draw.choice((2, 3, 4)))],
        }
        for j in range(draw.randint(2, 4))
    ]
    return {
        "problem": "g-vne",
        "servers": [
            {"id": f"s{s}", "resources": draw.choice(({"gpu": 1.0, "memory": 0.3}, {"gpu": 2.0}, {"gpu": 1.0}, {}))}
            for s in range(servers)
        ],
        "links": links,
        "jobs": jobs,
    }


def rings_of_pairs(draw: Draw) -> Data:
    """Jobs worth something with two workers only, on servers of three or five: linear programs share what is left."""
    servers = [{"id": f"s{s}", "resources": {"gpu": draw.choice((3.0, 3.0, 5.0))}} for s in range(draw.choice((1, 2)))]
    jobs = [
        {
            "id": f"j{j}",
            "demand": {"gpu": 1.0},
            "bandwidth": draw.choice((0.0, 1.0)),
            "utility": [0.0, near(draw, draw.choice((1.0, 1.0, 1.5)))],
        }
        for j in range(draw.randint(3, 4))
    ]
    return {"problem": "g-vne", "servers": servers, "links": [], "jobs": jobs}


def rings_over_time(draw: Draw) -> Data:
    """The same over slots, with budgets that are just spent and arrivals in the last slot."""
    data, horizon = rings(draw), draw.randint(1, 3)
    for job in data["jobs"]:
        most = draw.randint(1, 2)
        kind = draw.choice(("linear", "sqrt", "log1p", "sigmoid", "log", "log", "energy"))
        utility = {"kind": kind, "scale": abs(job.pop("utility")[0])}
        if kind == "log":
            utility["least"] = draw.choice((1.0, near(draw, 1.0), 0.5, 1 / 3, 1e-6, 5.0))
        if utility["kind"] == "sigmoid":
            utility |= {"steepness": draw.choice((0.5, 3.0, 20.0)), "midpoint": draw.choice((1.0, 2.5, 10.0, 1000.0))}
        budget = {name: near(draw, amount * draw.randint(1, 4)) for name, amount in job["demand"].items()}
        job |= {
            "arrival": draw.choice((1, 1, horizon)),
            "max_workers": most,
            "budget": budget if draw.random() < 0.5 else {},
            "efficiency": draw.choice((1.0, 1.0, 0.5, 0.0, 1 / 3)),
            "utility": utility,
        }
    del data["jobs"][3:]
    return data | {"problem": "ddljs", "horizon": horizon}


def transfers(draw: Draw) -> Data:
    """Tasks that tie or nearly do, with and without a penalty, released at completions of others."""
    size, tasks = draw.choice((1.0, 5.0, 0.3)), draw.choice((2, 3, 3, 3))
    sizes = [near(draw, size * draw.choice((1, 1, 1, 2, 3, 0.5, 1e-3))) for _ in range(tasks)]
    releases = [near(draw, draw.choice((0.0, 0.0, sizes[0], sizes[0] + sizes[1], 2 * size))) for _ in range(tasks)]
    return {
        "problem": "comm-contention",
        "link": {
            "latency": draw.choice((0.0, 0.0, 0.5)),
            "seconds_per_unit": 1.0,
            "contention_penalty": draw.choice((0.0, 0.1, 0.3, 1.0, 10.0, 1e-9)),
        },
        "tasks": [{"id": f"c{k}", "release": releases[k], "size": sizes[k]} for k in range(tasks)],
    }


def cluster(draw: Draw) -> Data:
    """Given placements that meet on servers and GPUs, short and long messages, memory for all jobs or all but one."""
    jobs, servers = draw.choice((2, 2, 3)), draw.choice((2, 2, 3))
    everywhere = [(f"s{s}", g) for s in range(servers) for g in range(2)]
    parts: list[Data] = []
    length = draw.choice((1.0, 1.5, 0.3))
    for j in range(jobs):
        width = draw.choice((1, 2, 2, 3) if jobs == 2 else (1, 2, 2))
        message = draw.choice((1.0, 2.0, 0.7, 1500e-9, draw.uniform(1e-5, 1e-4), above(draw), above(draw)))
        parts.append(
            {
                "id": f"j{j}",
                "arrival": draw.choice((0.0, 0.0, length, near(draw, 2 * length))),
                "gpus": width,
                "iterations": draw.choice((1, 1, 2)) if jobs == 2 else 1,
                "forward": near(draw, length),
                "backward": draw.choice((length, 2 * length, 0.1)),
                "message": message if message < 1e-3 else near(draw, message),
                "memory": 0.1,
                "placement": [list(gpu) for gpu in draw.sample(everywhere, width)],
            }
        )
    return {
        "problem": "ddl-cluster",
        "gpu_memory": round(0.1 * draw.choice((jobs, jobs, jobs - 1)), 10),
        "servers": [{"id": f"s{s}", "gpus": 2} for s in range(servers)],
        "link": {
            "latency": draw.choice((0.0, 0.0, 0.3)),
            "seconds_per_unit": draw.choice((1.0, 0.8)),
            "contention_penalty": draw.choice((0.0, 0.3, 0.5)),
        },
        "jobs": parts,
    }


def cluster_unplaced(draw: Draw) -> Data:
    """The same on servers of one or two GPUs, where one job or two have no placement."""
    data = cluster(draw)
    del data["jobs"][2:]
    data["servers"] = [{"id": f"s{s}", "gpus": draw.choice((1, 2, 2))} for s in range(2)]
    everywhere = [[server["id"], g] for server in data["servers"] for g in range(server["gpus"])]
    free = draw.choice((1, 2, 2))
    for at, job in enumerate(data["jobs"]):
        job["gpus"] = min(job["gpus"], len(everywhere))
        job["iterations"] = 1
        job["placement"] = draw.sample(everywhere, job["gpus"])
        if at < free:
            del job["placement"]
    return data


def gangs_waiting(draw: Draw) -> Data:
    """Everything that one decision knows, chosen to collide."""
    data: Data = random_case(draw.getrandbits(32))
    return data


def gangs_by_flavour(draw: Draw) -> Data:
    """The same with quotas by flavour of the nodes."""
    data: Data = flavoured_case(draw.getrandbits(32))
    return data


def gangs_in_parts(draw: Draw) -> Data:
    """The same with pods that take parts of several devices."""
    data: Data = parted_case(draw.getrandbits(32))
    return data


def gangs_in_subgroups(draw: Draw) -> Data:
    """The same with groups that have levels of their own."""
    data: Data = subgroup_case(draw.getrandbits(32))
    return data


def gangs_alike(draw: Draw) -> Data:
    """Gangs and nodes that are alike, or in one thing not."""
    data: Data = alike_case(draw.getrandbits(32))
    return data


def pods_alone(draw: Draw) -> Data:
    """Single pods, or gangs on one node each, on nodes that are bins."""
    data: Data = draw.choice((single_case, hosted_case))(draw.getrandbits(32))
    return data


def devices_shared(draw: Draw) -> Data:
    """Single pods with parts of devices, on nodes that have several."""
    return shared_case(draw.getrandbits(32))


def gangs_in_domains(draw: Draw) -> Data:
    """Gangs of equal pods on nodes in domains, whose number counts."""
    return spread_case(draw.getrandbits(32))


Families = Mapping[str, Sequence[Callable[[Draw], Data]]]
FAMILIES: Families = {
    "rar-ddls": (
        *(rar_equal_gangs, rar_equal_gangs, rar_contended, rar_packed, rar_crowded),
        *(edge("rar-ddls"), edge("rar-ddls-stopped")),
    ),
    "gpu-sharing": (sharing, sharing, sharing, edge("gpu-sharing")),
    "hadar": (hadar_abilities, hadar_abilities, edge("hadar"), hadar_pairs, hadar_pairs, hadar_ties),
    "g-vne": (*(rings, rings, edge("g-vne"), edge("g-vne")), rings_of_pairs),
    "ddljs": (rings_over_time, edge("ddljs")),
    "comm-contention": (transfers,),
    "ddl-cluster": (cluster, cluster, cluster_unplaced),
    "gang-placement": (
        *(gangs_waiting, gangs_waiting, gangs_by_flavour, gangs_in_parts, gangs_in_subgroups, gangs_alike),
        *(*[pods_alone] * 6, devices_shared, devices_shared, *[gangs_in_domains] * 5),
    ),
}


def instance_of(problem: str, seed: int, number: int, families: Families = FAMILIES) -> Instance:
    """The instance of a number, the first in its row that is valid and that an exhaustive search is up to."""
    for attempt in itertools.count():
        draw = random.Random(f"{problem}/{seed}/{number}/{attempt}")
        data = disguised(draw, problem, draw.choice(families[problem])(draw))
        with contextlib.suppress(InputError):
            made = find_problem(problem).instance_class.parse(data | {"name": f"{problem}-{seed}-{number}"})
            if small_enough(made):
                return made
    raise AssertionError("attempts have no end")


def small_enough(instance: Instance) -> bool:
    """Whether an exhaustive search has few orders of events, or few choices in a slot, to try."""
    if isinstance(instance, DdlClusterInstance):
        return sum(orders(placed(instance, placement)) for placement in placements(instance)) <= MOST_ORDERS
    if isinstance(instance, HadarInstance):
        return math.prod(1 + len(gangs(instance, job)) for job in instance.jobs) <= MOST_CHOICES
    return True
