"""Three generators of tiny instances, written from the problems' pages alone: problems of GPUs.

`brink`: every quantity that meets a limit meets it but for a part of 1e-12 to 1e-7, around the tolerance of 1e-9.
`knots`: what does not pack, what slows down in circles, networks whose two directions differ, tight horizons.
`extremes`: each field has the least, the largest or the plainest value of its range as often as an ordinary one.
"""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

EDGES = (0.0, 0.0, 0.0, 1e-12, 5e-10, 9e-10, 1e-9, 1.1e-9, 2e-9, 1e-7)


def near(rng: Random, value: float) -> float:
    """The value itself, or a hair beside it, above or below."""
    return value * (1 + rng.choice((-1, 1)) * rng.choice(EDGES))


# rar-ddls


def rar_brink(rng: Random) -> Json:
    """Iterations of a slot, 1 / tau, are whole numbers but for a hair, alone, spread and beside others."""
    alpha, xi = rng.choice(((0.0, 0.5), (1.0, 0.5), (0.5, 1.0), (0.3, 0.7)))
    inter = rng.choice((1.0, 0.1, 3.0))
    overhead = rng.choice((0.0, 0.001, 0.01))
    servers = [{"id": f"s{i}", "gpus": rng.choice((1, 2, 2, 3))} for i in range(rng.choice((2, 3)))]
    jobs = []
    for j in range(rng.randint(2, 4)):
        gpus = rng.randint(1, min(4, sum(s["gpus"] for s in servers)))
        fast, slow = rng.choice(((2, 1), (3, 2), (5, 1), (10, 7), (1, 0)))
        wire = 2 * (gpus - 1) / gpus
        gradient, backward = 0.0, near(rng, 1 / fast) - overhead
        if gpus > 1:  # slow: beside one other, with two servers
            k = max(1.0, 2 * xi)
            goal = near(rng, 1 / slow) if slow else 1.5
            gradient = (goal - 1 / fast) * inter / (wire * ((k + alpha * (k - 1)) - 0.01))
            backward = near(rng, 1 / fast - wire * gradient * 0.01 / inter) - overhead
        if backward <= 0:
            gradient, backward = 0.0, 1 / fast
        jobs.append(
            {
                "id": f"j{j}",
                "gpus": gpus,
                "iterations": max(1, rng.choice((fast, slow)) * rng.randint(1, 3) + rng.choice((0, 0, 1))),
                "gradient_size": gradient,
                "batch_size": 1,
                "forward_time": 0.0,
                "backward_time": backward,
            }
        )
    return {
        "problem": "rar-ddls",
        "name": "brink",
        "horizon": rng.randint(3, 8),
        "network": {
            "inter_bandwidth": inter,
            "intra_bandwidth": 100 * inter,
            "contention_scale": xi,
            "contention_penalty": alpha,
            "server_overhead": overhead,
        },
        "reduce_speed": 1e12,
        "servers": servers,
        "jobs": jobs,
    }


def rar_knots(rng: Random) -> Json:
    """Gangs of three on servers of two; contention that stalls, alone or from three on; lengths that leave no slot."""
    sizes = rng.choice(((2, 2, 2), (2, 2), (3, 2, 1), (1, 1, 1, 1), (2, 1, 1), (4, 2), (3, 3)))
    servers = [{"id": f"s{i}", "gpus": size} for i, size in enumerate(sizes)]
    total = sum(sizes)
    tenth = rng.choice((0.02, 0.1, 0.25))
    jobs = []
    for j in range(rng.randint(3, 4)):
        gpus = min(total, rng.choice((1, 2, 3, 3, total)))
        jobs.append(
            {
                "id": f"j{j}",
                "gpus": gpus,
                "iterations": rng.choice((1, 2, 3, 4, 6, 8)),
                "gradient_size": rng.choice((tenth, tenth, 2 * tenth, 0.0)),
                "batch_size": rng.choice((1, 4)),
                "forward_time": rng.choice((0.0, 0.01)),
                "backward_time": rng.choice((0.2, 0.3, 0.45, 0.9)),
            }
        )
    return {
        "problem": "rar-ddls",
        "name": "knots",
        "horizon": rng.randint(4, 9),
        "network": {
            "inter_bandwidth": 1.0,
            "intra_bandwidth": rng.choice((1.0, 50.0)),
            "contention_scale": rng.choice((0.34, 0.5, 1.0)),
            "contention_penalty": rng.choice((0.2, 1.0, 5.0, 40.0)),
            "server_overhead": rng.choice((0.0, 0.05, 0.2)),
        },
        "reduce_speed": rng.choice((1.0, 100.0)),
        "servers": servers,
        "jobs": jobs,
    }


def rar_extremes(rng: Random) -> Json:
    pick = rng.choice
    inter = pick((1e-6, 1.0, 1.0, 1e9))
    jobs = [
        {
            "id": pick(("", "x")) + f"{j}",
            "gpus": pick((1, 1, 2, 3, 50)) if j else pick((1, 2)),
            "iterations": pick((1, 2, 5, 10**9)) if j else pick((1, 3)),
            "gradient_size": pick((0, 0, 1e-300, 0.1, 1e6)) * (inter if inter < 1 else 1),
            "batch_size": pick((1, 1, 10**6)),
            "forward_time": pick((0, 0, 1e-15, 1e-3)),
            "backward_time": pick((1e-9, 0.25, 1, 1.0, 1.0000000001, 0.9999999999, 1e9)) if j else pick((0.5, 1)),
        }
        for j in range(rng.randint(1, 4))
    ]
    return {
        "problem": "rar-ddls",
        "name": "extremes",
        "horizon": pick((1, 2, 5, 7)),
        "network": {
            "inter_bandwidth": inter,
            "intra_bandwidth": inter * pick((1, 1, 1e6)),
            "contention_scale": pick((1e-12, 0.5, 1)),
            "contention_penalty": pick((0, 0, 0.3, 1e12)),
            "server_overhead": pick((0, 0, 1e-12, 0.1, 2)),
        },
        "reduce_speed": pick((1e-9, 1, 1e15)),
        "servers": [{"id": f"s{i}", "gpus": pick((1, 1, 2, 40))} for i in range(rng.randint(1, 3))],
        "jobs": jobs,
    }


# hadar


def _machines(rng: Random, types: tuple[str, ...]) -> list[Json]:
    return [
        {"id": f"h{h}", "gpus": {r: rng.randint(1, 2) for r in types if rng.random() < 0.7} or {types[0]: 1}}
        for h in range(rng.choice((1, 2)))
    ]


def hadar_brink(rng: Random) -> Json:
    """A job's work is the progress of some slots at some rates, but for a hair; payoffs differ by one."""
    types, length = ("V", "K"), rng.choice((1.0, 0.1, 360.0))
    horizon = rng.randint(2, 5)
    jobs = []
    for j in range(rng.randint(2, 3)):
        workers, epochs, slots = rng.choice((1, 2, 3)), rng.choice((1, 7, 10, 30)), rng.randint(1, 3)
        fast = near(rng, epochs / (slots * workers * length))
        slow = near(rng, fast * rng.choice((1.0, 0.5, slots / (slots + 1))))
        weight = near(rng, rng.choice((1.0, 1.0, 3.0)))
        kind = rng.choice(("effective-throughput", "linear", "constant"))
        utility: Json = {"kind": kind, "weight": weight}
        if kind == "linear":
            utility["deadline"] = near(rng, rng.randint(1, horizon + 1) * length)
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": rng.randint(1, 2),
                "workers": workers,
                "epochs": epochs,
                "iterations_per_epoch": 1,
                "throughput": {"V": fast, "K": slow},
                "utility": utility,
            }
        )
    return {
        "problem": "hadar",
        "name": "brink",
        "horizon": horizon,
        "slot_length": length,
        "all_jobs_must_finish": rng.random() < 0.4,
        "machines": _machines(rng, types),
        "jobs": jobs,
    }


def hadar_knots(rng: Random) -> Json:
    """Gangs that do not pack into what there is, of mixed types; pauses are needed; everybody may have to finish."""
    types = rng.choice((("V", "K"), ("V", "P", "K")))
    machines = [{"id": f"h{h}", "gpus": {r: rng.randint(1, 3)}} for h, r in enumerate(types)]
    total = sum(sum(m["gpus"].values()) for m in machines)
    horizon = rng.randint(3, 6)
    jobs = []
    for j in range(rng.randint(2, 4)):
        workers = rng.randint(1, max(1, total // 2 + 1))
        rates = {r: rng.choice((0, 1, 2, 3, 5)) for r in types}
        top = max(rates.values()) or 1
        work = max(1, workers * top * rng.randint(1, 2) + rng.choice((-1, 0, 0, 1)))
        kind = rng.choice(("effective-throughput", "linear", "constant"))
        utility: Json = {"kind": kind, "weight": rng.choice((1, 2, 2.5))}
        if kind == "linear":
            utility["deadline"] = rng.choice((1.5, 2, 4, 7))
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": rng.choice((1, 1, 2, 3, horizon, horizon + 2)),
                "workers": workers,
                "epochs": work,
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": utility,
            }
        )
    return {
        "problem": "hadar",
        "name": "knots",
        "horizon": horizon,
        "slot_length": 1.0,
        "all_jobs_must_finish": rng.random() < 0.35,
        "machines": machines,
        "jobs": jobs,
    }


def hadar_extremes(rng: Random) -> Json:
    pick = rng.choice
    length = pick((1e-9, 1, 1, 1e7))
    jobs = []
    for j in range(rng.randint(1, 3)):
        kind = pick(("effective-throughput", "linear", "constant"))
        utility: Json = {"kind": kind, "weight": pick((0, 1, 1, 1e-12, 1e12))}
        if kind == "linear":
            utility["deadline"] = pick((1e-9, length, 3 * length, 1e9 * length))
        jobs.append(
            {
                "id": f"{j}",
                "arrival": pick((1, 1, 2, 9)),
                "workers": pick((1, 1, 2, 3, 100)),
                "epochs": pick((1, 2, 2, 10**6)),
                "iterations_per_epoch": pick((1, 1, 1, 1000)),
                "throughput": {
                    r: pick((0, 1, 1, 2, 1e-9, 1e9)) / length for r in pick((("V",), ("V", "K"), ("K",), ()))
                },
                "utility": utility,
            }
        )
    return {
        "problem": "hadar",
        "name": "extremes",
        "horizon": pick((1, 2, 4)),
        "slot_length": length,
        "all_jobs_must_finish": rng.random() < 0.25,
        "machines": [
            {"id": f"h{h}", "gpus": pick(({"V": 1}, {"V": 2, "K": 1}, {"K": 3}, {"V": 50}))}
            for h in range(rng.randint(1, 2))
        ],
        "jobs": jobs,
    }


# gpu-sharing


def sharing_brink(rng: Random) -> Json:
    """Work of a whole number of slots, alone or slowed down, and memory of pairs, each but for a hair."""
    length, memory = rng.choice((1.0, 0.1, 60.0)), rng.choice((10.0, 0.3, 16384.0))
    jobs, xi = [], {}
    count = rng.randint(2, 4)
    for j in range(count):
        slots, iterations = rng.randint(1, 3), rng.choice((1, 3, 10, 100))
        slowdown = rng.choice((1.0, 1.5, 2.0, 1.2))
        batch = rng.choice((1, 2, 4))
        per_sample = near(rng, length * slots / (iterations * batch * rng.choice((1.0, slowdown))))
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": rng.choice((1, 1, 2)),
                "gpus": 1 if rng.random() < 0.7 else 2,
                "iterations": iterations,
                "batch_size": batch,
                "compute": {"fixed": 0.0, "per_sample": per_sample},
                "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
                "overlap": rng.choice((1.0, 2.0)),
                "memory": {
                    "fixed": near(rng, memory * rng.choice((0.1, 0.3, 0.5))),
                    "per_sample": near(rng, memory * rng.choice((0.1, 0.2, 0.3)) / batch),
                },
            }
        )
        xi[f"j{j}"] = {f"j{k}": near(rng, slowdown) for k in range(count) if k != j and rng.random() < 0.8}
    for row in xi.values():
        row.update({k: max(1.0, x) for k, x in row.items()})
    return {
        "problem": "gpu-sharing",
        "name": "brink",
        "horizon": rng.randint(4, 9),
        "slot_length": length,
        "servers": [{"id": "s0", "gpus": rng.randint(1, 2)}],
        "gpu_memory": memory,
        "max_jobs_per_gpu": 2,
        "jobs": jobs,
        "interference": xi,
    }


def sharing_knots(rng: Random) -> Json:
    """Slowdowns in circles; pairs that fit in memory with the sub-batches of one of them only; gangs of 2 and 3."""
    count = rng.randint(3, 4)
    jobs = []
    for j in range(count):
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": rng.choice((1, 1, 2, 3, 4)),
                "gpus": rng.choice((1, 1, 2, 2, 3)),
                "iterations": rng.choice((1, 2, 3, 4, 5)),
                "batch_size": rng.choice((1, 2, 4)),
                "compute": {"fixed": rng.choice((0.0, 0.2, 0.5)), "per_sample": rng.choice((0.1, 0.25))},
                "communication": {"latency": rng.choice((0.0, 0.1)), "per_unit": 0.3, "message": rng.choice((0, 1))},
                "overlap": rng.choice((1, 2, 3.5)),
                "memory": {"fixed": rng.choice((1, 2, 4)), "per_sample": rng.choice((0.5, 1, 2))},
            }
        )
    xi = {
        f"j{j}": {
            f"j{k}": rng.choice((1.9, 2.5, 6.0)) if (j - k) % count == 1 else rng.choice((1.0, 1.1))
            for k in range(count)
            if k != j
        }
        for j in range(count)
    }
    return {
        "problem": "gpu-sharing",
        "name": "knots",
        "horizon": rng.randint(5, 11),
        "slot_length": 1.0,
        "servers": [{"id": f"s{i}", "gpus": rng.choice((1, 2))} for i in range(rng.choice((1, 2)))],
        "gpu_memory": 10.0,
        "max_jobs_per_gpu": rng.choice((1, 2, 2, 2)),
        "jobs": jobs,
        "interference": xi,
    }


def sharing_extremes(rng: Random) -> Json:
    pick = rng.choice
    length = pick((1e-9, 1.0, 1.0, 1e6))
    jobs = []
    for j in range(rng.randint(1, 4)):
        jobs.append(
            {
                "id": f"{j}",
                "arrival": pick((1, 1, 2, 20)) if j else 1,
                "gpus": pick((1, 1, 2, 30)) if j else 1,
                "iterations": pick((1, 1, 2, 10**12)) if j else 2,
                "batch_size": pick((1, 1, 2**20, 7)),
                "compute": {"fixed": pick((0, length, 0.5 * length)), "per_sample": pick((1e-15, 0.5, 1e-3)) * length},
                "communication": {
                    "latency": pick((0, 0, length)),
                    "per_unit": pick((0, 1e6, 1e-9)),
                    "message": pick((0, 0, length)),
                },
                "overlap": pick((1, 1, 2, 50)),
                "memory": {"fixed": pick((0, 0, 1, 1e9)) if j else 0, "per_sample": pick((0, 0, 1e-9, 1))},
            }
        )
    ids = [job["id"] for job in jobs]
    xi = {a: {b: pick((1, 1, 1.5, 1e9)) for b in ids if b != a and rng.random() < 0.6} for a in ids}
    return {
        "problem": "gpu-sharing",
        "name": "extremes",
        "horizon": pick((1, 3, 6, 8)),
        "slot_length": length,
        "servers": [{"id": f"s{i}", "gpus": pick((1, 1, 2, 20))} for i in range(rng.randint(1, 2))],
        "gpu_memory": pick((1e-9, 1, 2, 1e12)),
        "max_jobs_per_gpu": pick((1, 2, 2)),
        "jobs": jobs,
        "interference": {a: row for a, row in xi.items() if row},
    }


# networks of g-vne and ddljs
