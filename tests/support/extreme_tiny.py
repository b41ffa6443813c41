"""Random tiny instances at the edges of what is valid: zero rates, near ties, odd decimals, numbers far apart.

Each maker takes a generator and returns an instance that its brute force solves in well under a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

ODD = (0.1, 0.3, 1 / 3, 0.30000000000000004, 0.7, 2 / 3, 0.9999999999, 1.0, 1.1, 3.3)
"""Decimals whose sums and quotients are where floats go wrong."""


def _pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def worth(rng: np.random.Generator) -> float:
    """A utility: ordinary, tiny, huge, or next to an ordinary one."""
    base = float(_pick(rng, (1.0, 2.0, 3.0, 5.0, 0.1, 0.3, 1 / 3)))
    kind = int(rng.integers(4))
    if kind == 0:
        return base
    if kind == 1:
        return base * 10.0 ** int(rng.integers(-6, 13))
    return base * (1 + int(rng.integers(-3, 4)) * 10.0 ** -int(rng.integers(4, 13)))


def rar_ddls(rng: np.random.Generator) -> RarDdlsInstance:
    """Up to 3 jobs of few iterations; server overheads and traffic that stop a ring that is spread or met."""
    sizes = [int(size) for size in rng.integers(1, 4, size=int(rng.integers(1, 5)))]
    gangs = [int(gang) for gang in rng.integers(1, min(5, sum(sizes) + 2), size=int(rng.integers(1, 4)))]
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": int(rng.integers(1, 6)),
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": float(_pick(rng, (1.0, 100.0))),
                "contention_scale": float(_pick(rng, (1 / 3, 0.5, 1.0))),
                "contention_penalty": float(_pick(rng, (0.0, 0.3, 2.0))),
                "server_overhead": float(_pick(rng, (0.0, 1e-10, 0.05, 0.1, 0.25, 0.3, 0.5, 1.0))),
            },
            "reduce_speed": float(_pick(rng, (1.0, 100.0, 1e12))),
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "gpus": gang,
                    "iterations": int(_pick(rng, (1, 1, 2, 3))),
                    "gradient_size": float(_pick(rng, (0.0, 0.1, 0.15, 0.3, 1 / 3, 0.6, 5.0))),
                    "batch_size": int(_pick(rng, (1, 3))),
                    "forward_time": float(_pick(rng, (0.0, 0.0, 0.1, 1 / 3))),
                    "backward_time": float(_pick(rng, (1e-3, 0.1, 0.25, 0.33, 1 / 3, 0.5, 1.0, 1.5))),
                }
                for j, gang in enumerate(gangs)
            ],
        }
    )


def rar_ddls_stopped(rng: np.random.Generator) -> RarDdlsInstance:
    """Rings that run one iteration a slot on n servers and none on n + 1, on servers that invite them to spread."""
    sizes = [int(size) for size in rng.integers(1, 3, size=int(rng.integers(3, 6)))]
    overhead = float(_pick(rng, (0.05, 0.1, 0.25)))
    jobs = []
    for j in range(int(rng.integers(2, 4))):
        gang, servers = int(rng.integers(2, 4)), int(rng.integers(1, 3))
        jobs.append(
            {
                "id": f"j{j}",
                "gpus": gang,
                "iterations": 1,
                "gradient_size": 0.0,
                "batch_size": 1,
                "forward_time": 0.0,
                "backward_time": round(1 - overhead * servers, 10),
            }
        )
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": int(rng.integers(1, 4)),
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 1.0,
                "contention_scale": 1.0,
                "contention_penalty": 0.0,
                "server_overhead": overhead,
            },
            "reduce_speed": 1.0,
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "jobs": jobs,
        }
    )


def hadar(rng: np.random.Generator) -> HadarInstance:
    """Up to 4 jobs on 1 to 3 types; deadlines at or next to a whole number of slots; rates of 0."""
    slots = int(rng.integers(1, 5))
    length = float(_pick(rng, (1.0, 0.1, 1 / 3, 7.7)))
    kinds = ["A", "B", "C"][: int(rng.integers(1, 4))]
    jobs = []
    for j in range(int(rng.integers(1, 5))):
        kind = str(_pick(rng, ("effective-throughput", "linear", "constant")))
        utility: dict[str, Any] = {"kind": kind, "weight": worth(rng) if rng.random() < 0.95 else 0.0}
        if kind == "linear":
            factor = float(_pick(rng, (1.0, 1 + 3e-16, 1 - 3e-16, 1 + 1e-9, 1.5, 1e3)))
            utility["deadline"] = int(rng.integers(1, slots + 1)) * length * factor
        workers = int(rng.integers(1, 4))
        rates = {name: float(_pick(rng, (0.0, *ODD))) for name in kinds if rng.random() < 0.9}
        best = max(rates.values(), default=0.0) or 1.0
        wanted = workers * length * best * float(_pick(rng, (0.3, 1.0, 1.0, 2.0, 2.5)))
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": int(rng.integers(1, slots + 1)) if rng.random() < 0.5 else 1,
                "workers": workers,
                "epochs": max(1, round(wanted)),
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": utility,
            }
        )
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "horizon": slots,
            "slot_length": length,
            "all_jobs_must_finish": bool(rng.random() < 0.15),
            "machines": [{"id": f"h{k}", "gpus": {name: int(rng.integers(1, 3))}} for k, name in enumerate(kinds)],
            "jobs": jobs,
        }
    )


def _network(rng: np.random.Generator, unit: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    n = int(rng.integers(1, 4))
    servers: list[dict[str, Any]] = []
    for s in range(n):
        resources = {"gpu": unit * int(rng.integers(0, 4))}
        if rng.random() < 0.3:
            resources["memory"] = float(_pick(rng, ODD))
        servers.append({"id": f"s{s}", "resources": {} if rng.random() < 0.1 else resources})
    links = [
        {"from": f"s{a}", "to": f"s{b}", "bandwidth": float(_pick(rng, (0.0, 0.3, 0.6, 1.0, 2.0, 1e12)))}
        for a in range(n)
        for b in range(n)
        if a != b and rng.random() < 0.75
    ]
    return servers, links


def _demand(rng: np.random.Generator, unit: float) -> dict[str, float]:
    demand = {"gpu": unit * float(_pick(rng, (1, 1, 2)))}
    if rng.random() < 0.3:
        demand["memory"] = float(_pick(rng, (0.0, 0.1, 1 / 3, 0.3)))
    return demand


def g_vne(rng: np.random.Generator) -> GVneInstance:
    """Up to 4 jobs on up to 3 servers; capacities of 0, utilities of either sign."""
    unit = float(_pick(rng, (1.0, 0.1, 1 / 3)))
    servers, links = _network(rng, unit)
    jobs = []
    for j in range(int(rng.integers(1, 5))):
        utility = [worth(rng) for _ in range(int(rng.integers(1, 4)))]
        if rng.random() < 0.2:
            utility[0] = -utility[0]
        if rng.random() < 0.1:
            utility[-1] = 0.0
        width = float(_pick(rng, (0.0, 0.1, 0.3, 0.3, 0.6, 1.0)))
        jobs.append({"id": f"j{j}", "demand": _demand(rng, unit), "bandwidth": width, "utility": utility})
    return GVneInstance.parse({"problem": "g-vne", "servers": servers, "links": links, "jobs": jobs})


def ddljs(rng: np.random.Generator) -> DdljsInstance:
    """Up to 3 jobs over up to 3 slots; budgets that bind at a decimal, efficiencies and scales far apart."""
    unit = float(_pick(rng, (1.0, 0.1, 1 / 3)))
    servers, links = _network(rng, unit)
    slots = int(rng.integers(1, 4))
    jobs = []
    for j in range(int(rng.integers(1, 4))):
        demand = _demand(rng, unit)
        kind = str(_pick(rng, ("linear", "sqrt", "log1p", "sigmoid")))
        utility: dict[str, Any] = {"kind": kind, "scale": worth(rng)}
        if kind == "sigmoid":
            utility |= {
                "steepness": float(_pick(rng, (0.0, 0.3, 1.0, 20.0))),
                "midpoint": float(_pick(rng, (-1.0, 0.0, 2.0, 3.3))),
            }
        budget = {"gpu": demand["gpu"] * int(rng.integers(0, 6))} if rng.random() < 0.6 else {}
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": int(rng.integers(1, slots + 1)) if rng.random() < 0.4 else 1,
                "max_workers": int(rng.integers(1, 4)),
                "demand": demand,
                "budget": budget,
                "bandwidth": float(_pick(rng, (0.0, 0.1, 0.3, 0.6, 1.0))),
                "efficiency": float(_pick(rng, (0.0, 0.1, 1 / 3, 1.0, 1.0, 2.0, 1e6))),
                "utility": utility,
            }
        )
    data = {"problem": "ddljs", "horizon": slots, "servers": servers, "links": links, "jobs": jobs}
    return DdljsInstance.parse(data)


def gpu_sharing(rng: np.random.Generator) -> GpuSharingInstance:
    """Up to 3 jobs on up to 3 GPUs; iterations without computation, memory that just fits, slowdowns far apart."""
    gpus = int(rng.integers(1, 4))
    jobs: list[dict[str, Any]] = []
    length = float(_pick(rng, (1.0, 0.1, 1 / 3)))
    for j in range(int(rng.integers(1, 4))):
        fixed = length * float(_pick(rng, (0.0, 0.1, 0.3, 1 / 3, 0.5, 1.0)))
        per_sample = length * float(_pick(rng, (0.0, 0.1, 1 / 3)))
        gang = int(rng.integers(1, 4))
        latency = length * float(_pick(rng, (0.0, 0.1, 0.3, 1.0)))
        if fixed + per_sample == 0 and (gang == 1 or latency == 0):
            fixed = length
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": int(rng.integers(1, 4)),
                "gpus": gang,
                "iterations": int(_pick(rng, (1, 1, 2, 3))),
                "batch_size": int(_pick(rng, (1, 2, 4))),
                "compute": {"fixed": fixed, "per_sample": per_sample},
                "communication": {"latency": latency, "per_unit": 0.0, "message": 1.0},
                "overlap": float(_pick(rng, (1.0, 1.0, 2.0, 100.0))),
                "memory": {
                    "fixed": float(_pick(rng, (0.0, 0.1, 0.3))),
                    "per_sample": float(_pick(rng, (0.0, 0.1, 0.2))),
                },
            }
        )
    names = [job["id"] for job in jobs]
    interference = {
        a: {b: float(_pick(rng, (1.0, 1 + 1e-6, 1.1, 4 / 3, 1.5, 2.0, 3.0, 1e6))) for b in names if b != a}
        for a in names
        if rng.random() < 0.8
    }
    return GpuSharingInstance.parse(
        {
            "problem": "gpu-sharing",
            "horizon": int(rng.integers(2, 9)),
            "slot_length": length,
            "servers": [{"id": "s0", "gpus": gpus}],
            "gpu_memory": float(_pick(rng, (0.3, 0.6, 0.8, 1.0))),
            "max_jobs_per_gpu": int(rng.integers(1, 3)),
            "jobs": jobs,
            "interference": interference,
        }
    )


MAKERS = {
    "rar-ddls": rar_ddls,
    "rar-ddls-stopped": rar_ddls_stopped,
    "hadar": hadar,
    "g-vne": g_vne,
    "ddljs": ddljs,
    "gpu-sharing": gpu_sharing,
}
