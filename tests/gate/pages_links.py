"""The generators of ``pages_gpus`` for problems of links, iterations and nodes, and their table."""

from __future__ import annotations

import itertools
from random import Random

from gate.instances import Families
from gate.pages_gpus import (
    Json,
    hadar_brink,
    hadar_extremes,
    hadar_knots,
    near,
    rar_brink,
    rar_extremes,
    rar_knots,
    sharing_brink,
    sharing_extremes,
    sharing_knots,
)


def _links(rng: Random, pairs: list[tuple[str, str]], wide: float, narrow: float) -> list[Json]:
    """Both directions, of which one may be narrow or not there."""
    links = []
    for a, b in pairs:
        there, back = rng.choice(((wide, wide), (wide, narrow), (narrow, wide), (narrow, narrow), (wide, None)))
        links += [{"from": x, "to": y, "bandwidth": w} for x, y, w in ((a, b, there), (b, a, back)) if w is not None]
    return links


def _pairs(rng: Random, ids: list[str]) -> list[tuple[str, str]]:
    shape = rng.choice(("ring", "path", "star", "full", "none"))
    if shape == "none":
        return []
    if shape == "star":
        return [(ids[0], other) for other in ids[1:]]
    if shape == "full":
        return [(a, b) for i, a in enumerate(ids) for b in ids[i + 1 :]]
    around = list(itertools.pairwise(ids))
    return around + ([(ids[-1], ids[0])] if shape == "ring" and len(ids) > 2 else [])


def vne_brink(rng: Random) -> Json:
    """Servers and links hold a whole number of workers and uses, but for a hair; utilities are near ties."""
    unit, wire = rng.choice((1.0, 0.1, 1 / 3)), rng.choice((1.0, 0.1, 0.7))
    ids = ["a", "b", "c"][: rng.choice((2, 3))]
    servers = [
        {"id": s, "resources": {"gpu": near(rng, unit * rng.choice((1, 2, 3))), "memory": near(rng, 4 * unit)}}
        for s in ids
    ]
    links = [
        dict(link, bandwidth=near(rng, link["bandwidth"])) for link in _links(rng, _pairs(rng, ids), 2 * wire, wire)
    ]
    jobs = []
    for j in range(rng.randint(2, 3)):
        gain = near(rng, rng.choice((1.0, 1.0, 2.0)))
        jobs.append(
            {
                "id": f"j{j}",
                "demand": {
                    "gpu": near(rng, unit),
                    **({"memory": near(rng, unit * rng.choice((1, 4 / 3, 2)))} if rng.random() < 0.5 else {}),
                },
                "bandwidth": near(rng, wire * rng.choice((0.5, 1, 1))),
                "utility": [near(rng, gain * (k + 1)) for k in range(rng.randint(1, 3))],
            }
        )
    return {"problem": "g-vne", "name": "brink", "servers": servers, "links": links, "jobs": jobs}


def vne_knots(rng: Random) -> Json:
    """One direction narrow, switches in the middle, utilities that fall, jump and are below 0."""
    ids = ["a", "b", "c", "d"][: rng.choice((3, 4))]
    servers = [
        {
            "id": s,
            "resources": {} if rng.random() < 0.25 else {"gpu": rng.randint(1, 2), "memory": rng.choice((1, 2, 3))},
        }
        for s in ids
    ]
    jobs = [
        {
            "id": f"j{j}",
            "demand": {"gpu": 1, "memory": rng.choice((0, 1, 2))},
            "bandwidth": rng.choice((0, 1, 2, 3)),
            "utility": [rng.choice((-1, 0, 1, 2, 2.5, 4)) for _ in range(rng.randint(1, 4))],
        }
        for j in range(rng.randint(2, 3))
    ]
    return {
        "problem": "g-vne",
        "name": "knots",
        "servers": servers,
        "links": _links(rng, _pairs(rng, ids), rng.choice((2.0, 4.0)), rng.choice((0.0, 1.0, 3.0))),
        "jobs": jobs,
    }


def vne_extremes(rng: Random) -> Json:
    pick = rng.choice
    ids = ["", "0", "1", "2"][1 : 1 + rng.randint(1, 3)]
    servers = [
        {
            "id": s,
            "resources": pick(
                ({}, {"gpu": 0}, {"gpu": 1}, {"gpu": 2, "": 1} if False else {"gpu": 2}, {"gpu": 1e12}, {"other": 5})
            ),
        }
        for s in ids
    ]
    jobs = [
        {
            "id": f"{j}",
            "demand": {"gpu": pick((1, 1, 1e-9, 1e9, 0.5)), **({"other": 0} if rng.random() < 0.3 else {})},
            "bandwidth": pick((0, 0, 1, 1e-12, 1e12)),
            "utility": [pick((0, 1, 1, -1e9, 1e-12, 1e12, 0.1)) for _ in range(pick((1, 1, 2, 3)))],
        }
        for j in range(rng.randint(1, 3))
    ]
    return {
        "problem": "g-vne",
        "name": "extremes",
        "servers": servers,
        "links": _links(rng, _pairs(rng, ids), pick((1.0, 1e12)), pick((0.0, 1e-12, 1.0))),
        "jobs": jobs,
    }


def _utility(rng: Random, near_ties: bool, scale: float) -> Json:
    kind = rng.choice(("linear", "sqrt", "log1p", "sigmoid"))
    utility: Json = {"kind": kind, "scale": near(rng, scale) if near_ties else scale}
    if kind == "sigmoid":
        utility.update(steepness=rng.choice((0.5, 2.0, 800.0)), midpoint=rng.choice((0.0, 1.0, 3.0)))
    return utility


def ddljs_brink(rng: Random) -> Json:
    base = vne_brink(rng)
    jobs = []
    for job in base["jobs"][:2]:
        demand = job["demand"]
        budget = {r: near(rng, rng.choice((1, 2, 3)) * d) for r, d in demand.items() if rng.random() < 0.7}
        jobs.append(
            {
                "id": job["id"],
                "arrival": rng.choice((1, 1, 2)),
                "max_workers": rng.choice((1, 2, 3)),
                "demand": demand,
                "budget": budget,
                "bandwidth": job["bandwidth"],
                "efficiency": near(rng, 1.0),
                "utility": _utility(rng, True, rng.choice((1.0, 2.0))),
            }
        )
    return {
        "problem": "ddljs",
        "name": "brink",
        "horizon": rng.choice((1, 2, 3)),
        "servers": base["servers"][:2],
        "links": [link for link in base["links"] if {link["from"], link["to"]} <= {"a", "b"}],
        "jobs": jobs,
    }


def ddljs_knots(rng: Random) -> Json:
    base = vne_knots(rng)
    jobs = []
    horizon = rng.choice((1, 2, 2, 3))
    for job in base["jobs"][:2]:
        budget = {r: rng.choice((0, 1, 2, 3, 5)) for r in ("gpu", "memory") if rng.random() < 0.6}
        jobs.append(
            {
                "id": job["id"],
                "arrival": rng.choice((1, 1, 2, horizon, horizon + 1)),
                "max_workers": rng.randint(1, 4),
                "demand": job["demand"],
                "budget": budget,
                "bandwidth": job["bandwidth"],
                "efficiency": rng.choice((0.5, 1.0, 2.0)),
                "utility": _utility(rng, False, rng.choice((1.0, 2.0, 3.0))),
            }
        )
    return {
        "problem": "ddljs",
        "name": "knots",
        "horizon": horizon,
        "servers": base["servers"],
        "links": base["links"],
        "jobs": jobs,
    }


def ddljs_extremes(rng: Random) -> Json:
    pick = rng.choice
    base = vne_extremes(rng)
    jobs = []
    for job in base["jobs"][:2]:
        kind = pick(("linear", "sqrt", "log1p", "sigmoid", "log", "energy"))
        utility: Json = {"kind": kind, "scale": pick((0, 1, 1, 1e-9, 1e9))}
        if kind == "sigmoid":
            utility.update(steepness=pick((0, 1, 1e6)), midpoint=pick((0, 1, 1e3)))
        if kind == "log":
            utility["least"] = pick((1e-9, 1, 10))
        jobs.append(
            {
                "id": job["id"],
                "arrival": pick((1, 1, 2, 5)),
                "max_workers": pick((1, 1, 2, 3)),
                "demand": job["demand"],
                "budget": pick(({}, {"gpu": 0}, {"gpu": 3}, {"gpu": 1e15})),
                "bandwidth": job["bandwidth"],
                "efficiency": pick((0, 1, 1, 1e-6, 1e6)),
                "utility": utility,
            }
        )
    return {
        "problem": "ddljs",
        "name": "extremes",
        "horizon": pick((1, 1, 2)),
        "servers": base["servers"],
        "links": base["links"],
        "jobs": jobs,
    }


# comm-contention and ddl-cluster


def comm_brink(rng: Random) -> Json:
    """Releases at ends of others and sizes at AdaDUAL's threshold b / 2 (b + eta), each but for a hair."""
    b = rng.choice((1.0, 0.1, 8.53e-4))
    eta = b * rng.choice((0.0, 0.1, 0.3, 1.0))
    base, clock, tasks = rng.choice((1.0, 10.0, 526.4)), 0.0, []
    for i in range(rng.randint(2, 4)):
        size = near(rng, base * rng.choice((1.0, 1.0, 0.5, b / (2 * (b + eta)))))
        tasks.append({"id": f"c{i}", "release": clock, "size": size})
        clock = max(0.0, near(rng, rng.choice((clock, clock + b * size, clock + b * size / 2))))
    return {
        "problem": "comm-contention",
        "name": "brink",
        "link": {"latency": 0.0, "seconds_per_unit": b, "contention_penalty": eta},
        "tasks": tasks,
    }


def comm_knots(rng: Random) -> Json:
    """A large task, released first, and small ones in bursts that end together; starts off every event may pay."""
    large = rng.choice((20.0, 60.0, 160.0))
    tasks = [{"id": "c0", "release": 0.0, "size": large}]
    for i in range(1, rng.randint(3, 4)):
        burst = rng.choice((0.0, large / 3, large / 2, large - 1))
        tasks.append(
            {"id": f"c{i}", "release": burst + rng.choice((0, 0, 1.5, 3)), "size": rng.choice((1, 2, 2.5, 3, 7))}
        )
    return {
        "problem": "comm-contention",
        "name": "knots",
        "link": {
            "latency": rng.choice((0.0, 0.5)),
            "seconds_per_unit": 1.0,
            "contention_penalty": rng.choice((0.01, 0.1, 0.3, 2.0)),
        },
        "tasks": tasks,
    }


def comm_extremes(rng: Random) -> Json:
    pick = rng.choice
    b = pick((1e-9, 1, 1e6))
    tasks = [
        {
            "id": f"{i}",
            "release": pick((0, 0, 1, 1e6)) * (b if rng.random() < 0.7 else 1),
            "size": pick((1, 1, 1e-6, 1e6, 3)),
        }
        for i in range(rng.randint(1, 4))
    ]
    return {
        "problem": "comm-contention",
        "name": "extremes",
        "link": {
            "latency": pick((0, 0, b, 1e6 * b)),
            "seconds_per_unit": b,
            "contention_penalty": b * pick((0, 0, 1e-9, 1, 1e6)),
        },
        "tasks": tasks,
    }


def ddl_brink(rng: Random) -> Json:
    """Computation as long as a message, arrivals at ends, memory that is full, each but for a hair."""
    b = rng.choice((1.0, 0.25))
    servers = [{"id": "s0", "gpus": 1}, {"id": "s1", "gpus": rng.choice((1, 1, 2))}]
    jobs = []
    for j in range(2):
        step = rng.choice((1.0, 0.1))
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": near(rng, rng.choice((0.0, step, 2 * step))) if j else 0.0,
                "gpus": rng.choice((1, 2)),
                "iterations": rng.choice((1, 2)),
                "forward": near(rng, step),
                "backward": near(rng, step * rng.choice((1, 2))),
                "message": near(rng, step * rng.choice((1, 2)) / b),
                "memory": near(rng, rng.choice((5.0, 5.0, 10.0))),
            }
        )
    return {
        "problem": "ddl-cluster",
        "name": "brink",
        "gpu_memory": 10.0,
        "servers": servers,
        "link": {
            "latency": rng.choice((0.0, 0.0, 0.1)),
            "seconds_per_unit": b,
            "contention_penalty": b * rng.choice((0.0, 0.3)),
        },
        "jobs": jobs,
    }


def ddl_knots(rng: Random) -> Json:
    """Jobs that meet on one server of two each, given placements or not; short ones come while long ones talk."""
    servers = [{"id": f"s{i}", "gpus": rng.choice((1, 1, 2))} for i in range(rng.choice((2, 3)))]
    places = [[s["id"], g] for s in servers for g in range(s["gpus"])]
    jobs = []
    for j in range(rng.choice((2, 2, 3))):
        gpus = rng.choice((1, 2, 2)) if len(places) > 1 else 1
        job: Json = {
            "id": f"j{j}",
            "arrival": rng.choice((0.0, 0.0, 0.5, 1.5)),
            "gpus": gpus,
            "iterations": 1 if j else rng.choice((1, 2)),
            "forward": rng.choice((0.5, 1.0, 2.0)),
            "backward": rng.choice((0.5, 1.0)),
            "message": rng.choice((0.5, 1.0, 3.0, 10.0)),
            "memory": rng.choice((2.0, 6.0)),
        }
        if rng.random() < 0.5:
            job["placement"] = sorted(rng.sample(places, gpus))
        jobs.append(job)
    return {
        "problem": "ddl-cluster",
        "name": "knots",
        "gpu_memory": 10.0,
        "servers": servers,
        "link": {
            "latency": rng.choice((0.0, 0.0, 0.2)),
            "seconds_per_unit": 1.0,
            "contention_penalty": rng.choice((0.0, 0.2, 1.0, 3.0)),
        },
        "jobs": jobs,
    }


def ddl_extremes(rng: Random) -> Json:
    pick = rng.choice
    jobs = [
        {
            "id": f"{j}",
            "arrival": pick((0, 0, 1, 1000)),
            "gpus": pick((1, 1, 2)),
            "iterations": pick((1, 1, 2)),
            "forward": pick((1, 1e-3, 100)),
            "backward": pick((1, 1e-3)),
            "message": pick((1, 1e-3, 1e3)),
            "memory": pick((0, 1, 1, 8)),
        }
        for j in range(rng.randint(1, 3))
    ]
    return {
        "problem": "ddl-cluster",
        "name": "extremes",
        "gpu_memory": pick((1, 8, 1e9)),
        "servers": [{"id": f"{i}", "gpus": pick((1, 1, 2))} for i in range(rng.randint(1, 2))],
        "link": {
            "latency": pick((0, 0, 5)),
            "seconds_per_unit": pick((1, 1e-3)),
            "contention_penalty": pick((0, 0.1, 10)),
        },
        "jobs": jobs,
    }


# gang-placement


def _cluster(rng: Random, devices: tuple[int, ...]) -> tuple[list[str], list[Json]]:
    levels = rng.choice(([], ["rack"], ["rack"], ["zone", "rack"]))
    nodes = []
    for n in range(rng.randint(2, 3)):
        domain = [rng.choice(("x", "y")) for _ in levels]
        nodes.append(
            {
                "id": f"n{n}",
                "domain": domain,
                "gpus": [rng.choice(devices) for _ in range(rng.randint(1, 2))],
                "gpu_model": rng.choice(("A", "B")),
                "free": {"cpu": rng.randint(1, 4)} if rng.random() < 0.8 else {},
                "labels": {"z": rng.choice(("p", "q"))},
            }
        )
    return levels, nodes


def _gangs(
    rng: Random, levels: list[str], sizes: tuple[int, ...], weights: tuple[float, ...], queues: list[Json]
) -> list[Json]:
    gangs = []
    for g in range(rng.randint(2, 3)):
        pods = []
        for _ in range(rng.choice((1, 1, 2))):
            pod: Json = {
                "count": rng.randint(1, 2),
                "gpu": rng.choice(sizes),
                "request": {"cpu": rng.randint(0, 2)} if rng.random() < 0.7 else {},
            }
            if rng.random() < 0.25:
                pod["selector"] = rng.choice(
                    ({"labels": {"z": "p"}}, {"models": ["A"]}, {"models": ["A", "B"], "labels": {}})
                )
            pods.append(pod)
        gang: Json = {
            "id": f"g{g}",
            "weight": rng.choice(weights),
            "priority": rng.choice((0, 0, 1, -3)),
            "arrival": g,
            "pods": pods,
        }
        count = sum(p["count"] for p in pods)
        for key in ("required", "preferred"):
            if rng.random() < 0.4:
                gang[key] = rng.choice((*levels, "node"))
        if rng.random() < 0.3:
            gang["per_node"] = rng.randint(1, 3)
        if rng.random() < 0.4:
            gang["least"] = rng.randint(1, count)
        if queues and rng.random() < 0.8:
            gang["queue"] = rng.choice(queues)["id"]
        gangs.append(gang)
    return gangs


def _queues(rng: Random, amounts: tuple[int, ...]) -> list[Json]:
    queues = []
    for q in range(rng.choice((0, 1, 2))):
        queue: Json = {
            "id": f"q{q}",
            "quota": {
                r: rng.choice(amounts) if r == "gpu" else rng.randint(0, 3)
                for r in ("gpu", "cpu")
                if rng.random() < 0.7
            },
        }
        if rng.random() < 0.6:
            queue["cohort"] = "c"
            queue["borrow"] = {r: rng.choice(amounts) for r in queue["quota"] if rng.random() < 0.5}
        queues.append(queue)
    return queues


def gang_brink(rng: Random) -> Json:
    """Parts that fill a device to the thousandth or lack one, quotas to the thousandth, weights a hair apart."""
    levels, nodes = _cluster(rng, (1000, 999, 667, 666, 500, 334))
    queues = _queues(rng, (0, 333, 334, 667, 999, 1000, 1001, 2000))
    return {
        "problem": "gang-placement",
        "name": "brink",
        "levels": levels,
        "nodes": nodes,
        "queues": queues,
        "gangs": _gangs(rng, levels, (333, 334, 500, 501, 666, 1000), (1, 1.000001, 0.999999, 1.5, 0.1, 0.3), queues),
    }


def gang_knots(rng: Random) -> Json:
    """What runs is in the way, equal labels lie under different parents, and all four objectives in any order."""
    levels, nodes = _cluster(rng, (1000, 1000, 600, 400, 0))
    running = []
    for r in range(rng.choice((0, 1, 2))):
        n = rng.randrange(len(nodes))
        d = rng.randrange(len(nodes[n]["gpus"]))
        room = 1000 - nodes[n]["gpus"][d] - sum(x["devices"].get(str(d), 0) for x in running if x["node"] == f"n{n}")
        if room > 0:
            job: Json = {
                "id": f"r{r}",
                "node": f"n{n}",
                "devices": {str(d): room},
                "request": {"cpu": 1},
                "movable": rng.random() < 0.8,
            }
            job.update(
                {
                    key: rng.choice((1, 2, 3))
                    for key in rng.choice((("price",), ("move_price",), ("price", "move_price")))
                }
            )
            running.append(job)
    queues = _queues(rng, (0, 1000, 2000, 4000))
    objectives = rng.sample(["weight", "topology", "fragmentation", "moves"], rng.randint(1, 4))
    return {
        "problem": "gang-placement",
        "name": "knots",
        "levels": levels,
        "nodes": nodes,
        "running": running,
        "queues": queues,
        "objectives": objectives,
        "flat": rng.random() < 0.3,
        "gangs": _gangs(rng, levels, (0, 400, 600, 1000, 2000), (1, 2, 2.5, 4), queues),
    }


def gang_extremes(rng: Random) -> Json:
    pick = rng.choice
    levels = pick(([], ["r"]))
    nodes = [
        {
            "id": f"{n}",
            "domain": ["d"] * len(levels),
            "gpus": pick(([], [0], [1], [1000], [1000] * 3)),
            "gpu_model": pick(("", "A")),
            "free": pick(({}, {"cpu": 0}, {"cpu": 10**9}, {"cpu": 1})),
        }
        for n in range(rng.randint(1, 3))
    ]
    gangs = [
        {
            "id": f"{g}",
            "weight": pick((1, 1, 1000000, 0.001)),
            "priority": pick((0, 0, 10**9, -(10**9))),
            "arrival": 0,
            "pods": [
                {
                    "count": pick((1, 1, 2, 3)),
                    "gpu": pick((0, 1, 999, 1000, 3000)),
                    "request": pick(({}, {"cpu": 0}, {"cpu": 1}, {"cpu": 10**9}, {"none": 1}, {"none": 0})),
                }
            ],
        }
        for g in range(rng.randint(1, 3))
    ]
    return {"problem": "gang-placement", "name": "extremes", "levels": levels, "nodes": nodes, "gangs": gangs}


PAGES: dict[str, Families] = {
    "brink": {
        "rar-ddls": (rar_brink,),
        "hadar": (hadar_brink,),
        "gpu-sharing": (sharing_brink,),
        "g-vne": (vne_brink,),
        "ddljs": (ddljs_brink,),
        "comm-contention": (comm_brink,),
        "ddl-cluster": (ddl_brink,),
        "gang-placement": (gang_brink,),
    },
    "knots": {
        "rar-ddls": (rar_knots,),
        "hadar": (hadar_knots,),
        "gpu-sharing": (sharing_knots,),
        "g-vne": (vne_knots,),
        "ddljs": (ddljs_knots,),
        "comm-contention": (comm_knots,),
        "ddl-cluster": (ddl_knots,),
        "gang-placement": (gang_knots,),
    },
    "extremes": {
        "rar-ddls": (rar_extremes,),
        "hadar": (hadar_extremes,),
        "gpu-sharing": (sharing_extremes,),
        "g-vne": (vne_extremes,),
        "ddljs": (ddljs_extremes,),
        "comm-contention": (comm_extremes,),
        "ddl-cluster": (ddl_extremes,),
        "gang-placement": (gang_extremes,),
    },
}
