"""Three further generators, written from what the problems mean alone.

``planted``: a schedule that leaves nothing idle is cut into jobs, and then one number is one step too large, or none.
``alike``: jobs, servers and types are equal but for one; what breaks symmetry must not break the optimum.
``apart``: numbers of one instance lie twelve decades apart.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from gate.disguise import Data, Draw
from gate.instances import (
    FAMILIES,
    Families,
    cluster,
    hadar_abilities,
    near,
    rar_ddls,
    rings,
    rings_over_time,
    transfers,
)

# -- planted --------------------------------------------------------------------------------------------------------


def cut(draw: Draw, width: int, height: int, most: int) -> list[tuple[int, int]]:
    """A rectangle of GPUs and slots, cut into (GPUs, slots) again and again."""
    pieces = [(width, height)]
    while len(pieces) < most:
        pieces.sort(key=lambda piece: piece[0] * piece[1])
        w, h = pieces.pop()
        if w * h == 1:
            return [*pieces, (w, h)]
        if h == 1 or (w > 1 and draw.random() < 0.5):
            at = draw.randint(1, w - 1)
            pieces += [(at, h), (w - at, h)]
        else:
            at = draw.randint(1, h - 1)
            pieces += [(w, at), (w, h - at)]
    return pieces


def planted_rar(draw: Draw) -> Data:
    """Servers without an idle slot up to the horizon; some gangs are cut so that they have to cross."""
    sizes, height = draw.choice(([2, 2], [3], [4], [2, 2, 2], [3, 2], [4, 2])), draw.randint(2, 4)
    pieces = [piece for size in sizes for piece in cut(draw, size, height, draw.randint(1, 3))]
    if len(sizes) > 1 and draw.random() < 0.5:
        pieces = cut(draw, sum(sizes), height, draw.randint(2, 4))
    pieces = draw.sample(pieces, min(len(pieces), 4))
    rate, penalty = draw.choice((1, 2, 3)), draw.choice((0.0, 0.05))
    slots = {(w, h): rate * h for w, h in pieces}
    rows = iter(pieces)

    def ring(_: int) -> Data:
        piece = next(rows)
        over = draw.choice((0, 0, 0, 0, 1))
        return {"iterations": slots[piece] + over, "backward_time": 1 / rate - penalty * draw.choice((1, 1, 2))}

    data = rar_ddls(draw, sizes, [w for w, _ in pieces], height + draw.choice((-1, 0, 0, 0, 1, 2)), ring)
    data["network"]["server_overhead"] = penalty
    return data


def planted_sharing(draw: Draw) -> Data:
    """GPUs that are full to the last slot, some of them twice, with memory for exactly that pair."""
    gpus, height = draw.randint(1, 3), draw.randint(2, 4)
    pieces = cut(draw, gpus, height, draw.randint(2, 3))
    slowdown = draw.choice((1.0, 1.25, 1.5, 2.0))
    jobs: list[Data] = []
    for width, slots in [*pieces, draw.choice(pieces)]:
        work = slots / draw.choice((1.0, 1.0, slowdown))
        jobs.append(
            {
                "id": f"j{len(jobs)}",
                "arrival": 1 if draw.random() < 0.7 else draw.randint(1, height),
                "gpus": width,
                "iterations": draw.choice((1, 3, 7)),
                "batch_size": draw.choice((1, 2)),
                "compute": {"fixed": 0.0, "per_sample": 0.0},
                "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
                "overlap": draw.choice((1.0, 1.5, 100.0)),
                "memory": {"fixed": draw.choice((0.1, 0.2)), "per_sample": draw.choice((0.0, 0.1, 0.7))},
            }
        )
        # the last accumulation that fits beside another one takes as long as the first
        step = work * (1 + draw.choice((0, 0, 0, 1e-9, 1.02e-9, 0.98e-9, -1e-9))) / jobs[-1]["iterations"]
        jobs[-1]["compute"] = {"fixed": step, "per_sample": 0.0}
        if draw.random() < 0.3:
            jobs[-1]["compute"] = {"fixed": 0.0, "per_sample": step / jobs[-1]["batch_size"]}
    loads = [job["memory"]["fixed"] + job["memory"]["per_sample"] * draw.choice((1, job["batch_size"])) for job in jobs]
    names = [job["id"] for job in jobs]
    return {
        "problem": "gpu-sharing",
        "horizon": height + draw.choice((0, 1, 2, 4)),
        "slot_length": 1.0,
        "servers": [{"id": "s0", "gpus": gpus}],
        "gpu_memory": max(*loads, loads[0] + loads[-1], 0.1),
        "max_jobs_per_gpu": 2,
        "jobs": jobs,
        "interference": {a: {b: draw.choice((slowdown, slowdown, 1.0)) for b in names if b != a} for a in names},
    }


def planted_hadar(draw: Draw) -> Data:
    """Devices that are busy in every slot; each job's deadline and work are what its piece needs."""
    kinds, horizon = ["A", "B"][: draw.randint(1, 2)], draw.randint(2, 4)
    counts = {kind: draw.randint(1, 3) for kind in kinds}
    rates = {kind: draw.choice((1.0, 2.0, 0.3, 0.1)) for kind in kinds}
    jobs: list[Data] = []
    for kind in kinds:
        for width, slots in cut(draw, counts[kind], horizon, draw.randint(1, 2)):
            per_slot = width * rates[kind] * 10
            utility: Data = {
                "kind": draw.choice(("constant", "effective-throughput")),
                "weight": draw.choice((1.0, 1 / 3)),
            }
            if draw.random() < 0.3:
                utility = {"kind": "linear", "weight": 1.0, "deadline": 10.0 * draw.randint(slots, horizon + 1)}
            jobs.append(
                {
                    "id": f"j{len(jobs)}",
                    "arrival": draw.choice((1, 1, horizon - slots + 1)),
                    "workers": width,
                    "epochs": max(1, round(per_slot * slots) + draw.choice((0, 0, 0, 1))),
                    "iterations_per_epoch": 1,
                    "throughput": {other: rates[other] for other in kinds if other == kind or draw.random() < 0.5},
                    "utility": utility,
                }
            )
    return {
        "problem": "hadar",
        "horizon": horizon,
        "slot_length": 10.0,
        "all_jobs_must_finish": draw.random() < 0.4,
        "machines": [{"id": f"h{k}", "gpus": {kind: counts[kind]}} for k, kind in enumerate(kinds)],
        "jobs": draw.sample(jobs, len(jobs)),
    }


def planted_rings(draw: Draw) -> Data:
    """Links that hold exactly the rings that were laid, in thirds and tenths; then a job more."""
    data = rings(draw)
    names = [server["id"] for server in data["servers"]]
    links = {(link["from"], link["to"]): 0.0 for link in data["links"]}
    for server in data["servers"]:
        server["resources"] = {"gpu": 0.0}
    width = draw.choice((0.1, 1 / 3, 0.7))
    for job in data["jobs"]:
        job["bandwidth"], job["demand"] = width, {"gpu": draw.choice((0.1, 0.1, 0.2, 0.3))}
        hosts = draw.sample(names, min(len(names), draw.randint(1, len(job["utility"]))))
        if draw.random() < 0.8:
            for at, host in enumerate(hosts):
                server = data["servers"][names.index(host)]
                server["resources"]["gpu"] = server["resources"]["gpu"] + job["demand"]["gpu"]
                hop = (host, hosts[(at + 1) % len(hosts)])
                if hop in links and len(hosts) > 1:
                    links[hop] += width
    data["links"] = [{"from": a, "to": b, "bandwidth": width_} for (a, b), width_ in links.items()]
    return data


def planted_ddljs(draw: Draw) -> Data:
    """The same over slots; a budget is exactly so many worker-slots, in tenths."""
    data, horizon = planted_rings(draw), draw.randint(1, 3)
    for job in data["jobs"]:
        del job["utility"]
        job |= {
            "arrival": draw.randint(1, horizon),
            "max_workers": draw.randint(1, 2),
            "budget": {"gpu": round(job["demand"]["gpu"] * draw.randint(1, 4), 10)},
            "efficiency": draw.choice((1.0, 0.1, 1 / 3)),
            "utility": {"kind": draw.choice(("linear", "sqrt", "log1p")), "scale": draw.choice((1.0, 0.1, 1 / 3))},
        }
    del data["jobs"][3:]
    return data | {"problem": "ddljs", "horizon": horizon}


def planted_transfers(draw: Draw) -> Data:
    """Releases at the completions of a schedule that shares the link, in binary fractions and in decimals."""
    penalty, unit = draw.choice((0.0, 0.125, 0.25, 0.1)), draw.choice((1.0, 0.5, 0.3))
    sizes = [draw.choice((1.0, 2.0, 3.0, 0.5)) for _ in range(draw.choice((2, 3, 3, 4)))]
    clock, releases = 0.0, [0.0]
    for position, size in enumerate(sizes[1:]):
        clock += draw.choice((0.0, unit * sizes[position], (2 * unit + penalty) * min(size, sizes[position])))
        releases.append(round(clock, 10))
    return {
        "problem": "comm-contention",
        "link": {"latency": draw.choice((0.0, unit)), "seconds_per_unit": unit, "contention_penalty": penalty},
        "tasks": [{"id": f"c{k}", "release": releases[k], "size": size} for k, size in enumerate(sizes)],
    }


def planted_cluster(draw: Draw) -> Data:
    """Arrivals at ends of tasks and transfers of the job before; all-reduces that end together."""
    data = cluster(draw)
    clock, link = 0.0, data["link"]
    for job in data["jobs"]:
        job["forward"], job["backward"] = draw.choice(((1.0, 2.0), (0.5, 0.5), (1.0, 1.0)))
        job["message"] = draw.choice((1.0, 0.5, 2.0, 1e-9))
        job["arrival"] = round(clock, 10)
        transfer = link["latency"] + link["seconds_per_unit"] * job["message"]
        clock += draw.choice((0.0, job["forward"], job["forward"] + job["backward"], job["forward"] + transfer))
    return data


# -- alike ----------------------------------------------------------------------------------------------------------


def alike(parts: str, make: Callable[[Draw], Data], changes: Callable[[Draw, Data], None]) -> Callable[[Draw], Data]:
    """All parts are copies of the first, but for ids and one change in one of them; in any order."""

    def made(draw: Draw) -> Data:
        data = make(draw)
        count, first = min(len(data[parts]), 3), data[parts][0]
        copies = [copy.deepcopy(first) | {"id": one["id"]} for one in data[parts][:count]]
        if "placement" in first:  # theirs is what differs
            copies = [
                one | {"placement": old["placement"], "gpus": old["gpus"]}
                for one, old in zip(copies, data[parts], strict=False)
            ]
        if draw.random() < 0.7:
            changes(draw, draw.choice(copies))
        data[parts] = copies
        if "interference" in data:
            slowdown = draw.choice((1.0, 1.5, 2.0))
            names = [one["id"] for one in copies]
            data["interference"] = {a: {b: slowdown for b in names if b != a} for a in names}
        return data

    return made


def _changed(*keys: str) -> Callable[[Draw, Data], None]:
    """One of these numbers, at a path, is a little or much larger."""

    def change(draw: Draw, part: Data) -> None:
        *path, last = draw.choice(keys).split(".")
        place: Any = part
        for key in path:
            place = place[key]
        if isinstance(place.get(last), bool | int):
            place[last] += 1
        elif last in place and isinstance(place[last], float):
            place[last] *= draw.choice((1 + 1e-12, 1 + 1e-9, 1 + 1e-7, 1.1, 2.0))
        elif last in place and isinstance(place[last], list):
            place[last][-1] *= draw.choice((1 + 1e-12, 1 + 1e-9, 1.1))

    return change


# -- apart ----------------------------------------------------------------------------------------------------------


def apart(problem: str, *paths: str) -> Callable[[Draw], Data]:
    """Some of these numbers times 10^-6 to 10^6, each on its own."""

    def made(draw: Draw) -> Data:
        data = draw.choice(FAMILIES[problem])(draw)
        for path in paths:
            _spread(draw, data, path.split("."))
        return data

    return made


def _spread(draw: Draw, data: Any, path: list[str]) -> None:
    first, *rest = path
    for key in (list(data) if isinstance(data, dict) else range(len(data))) if first == "*" else [first]:
        if isinstance(data, dict) and data.get(key) is None:
            continue
        if rest:
            _spread(draw, data[key], rest)
        elif draw.random() < 0.3:
            factor = 10.0 ** draw.randint(-6, 6)
            data[key] = (
                max(1, round(data[key] * min(factor, 3.0)))
                if isinstance(data[key], int)
                else near(draw, data[key] * factor)
            )


APART = {
    "rar-ddls": "network.intra_bandwidth network.contention_penalty reduce_speed jobs.*.gradient_size "
    "jobs.*.backward_time jobs.*.forward_time jobs.*.iterations",
    "gpu-sharing": "jobs.*.compute.* jobs.*.communication.* jobs.*.memory.* jobs.*.iterations",
    "hadar": "jobs.*.utility.weight jobs.*.utility.deadline jobs.*.throughput.* jobs.*.epochs",
    "g-vne": "links.*.bandwidth jobs.*.bandwidth jobs.*.utility.* servers.*.resources.* jobs.*.demand.*",
    "ddljs": "links.*.bandwidth jobs.*.bandwidth jobs.*.utility.scale servers.*.resources.* jobs.*.demand.* "
    "jobs.*.efficiency jobs.*.budget.*",
    "comm-contention": "link.* tasks.*.size tasks.*.release",
    "ddl-cluster": "link.* jobs.*.arrival jobs.*.forward jobs.*.backward jobs.*.message",
    "gang-placement": "gangs.*.weight running.*.price",
}
"""Numbers that are drawn far apart."""


def planted_gangs(draw: Draw) -> Data:
    """Nodes that gangs fill to the last thousandth, or to all but one."""
    nodes, gangs = [], []
    for n in range(draw.randint(1, 2)):
        devices = draw.randint(1, 2)
        nodes.append({"id": f"n{n}", "gpus": [1000] * devices})
        for _d in range(devices):
            part = draw.choice((1000, 500, 400, 333, 1))
            for gpu in (part, 1000 - part):
                over = draw.choice((0, 0, 0, 1))
                if gpu:
                    gangs.append({"gpu": min(1000, gpu + over), "count": 1})
    draw.shuffle(gangs)
    waiting = [
        {"id": f"g{g}", "weight": draw.choice((1.0, 2.0, pods["gpu"] / 1000)), "pods": [pods]}
        for g, pods in enumerate(gangs)
    ]
    return {"problem": "gang-placement", "nodes": nodes, "gangs": waiting}


NASTIER: dict[str, Families] = {
    "planted": {
        "rar-ddls": (planted_rar,),
        "gpu-sharing": (planted_sharing,),
        "hadar": (planted_hadar,),
        "g-vne": (planted_rings,),
        "ddljs": (planted_ddljs,),
        "comm-contention": (planted_transfers,),
        "ddl-cluster": (planted_cluster,),
        "gang-placement": (planted_gangs,),
    },
    "alike": {
        "rar-ddls": tuple(
            alike("jobs", make, _changed("iterations", "gpus", "backward_time", "gradient_size"))
            for make in (*FAMILIES["rar-ddls"][:4], planted_rar)
        ),
        "gpu-sharing": tuple(
            alike(
                "jobs", make, _changed("iterations", "arrival", "gpus", "compute.fixed", "memory.fixed", "batch_size")
            )
            for make in (FAMILIES["gpu-sharing"][0], planted_sharing)
        ),
        "hadar": tuple(
            alike("jobs", make, _changed("epochs", "arrival", "workers", "utility.weight", "utility.deadline"))
            for make in (hadar_abilities, planted_hadar)
        ),
        "g-vne": tuple(
            alike("jobs", make, _changed("bandwidth", "utility", "demand.gpu")) for make in (rings, planted_rings)
        ),
        "ddljs": tuple(
            alike("jobs", make, _changed("bandwidth", "utility.scale", "demand.gpu", "efficiency", "max_workers"))
            for make in (rings_over_time, planted_ddljs)
        ),
        "comm-contention": (alike("tasks", transfers, _changed("size", "release")),),
        "ddl-cluster": (alike("jobs", cluster, _changed("forward", "backward", "message", "arrival")),),
        "gang-placement": (alike("gangs", planted_gangs, _changed("weight")),),
    },
    "apart": {problem: (apart(problem, *paths.split()),) for problem, paths in APART.items()},
}
