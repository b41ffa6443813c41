"""What paper 001 states about clusters: how the time of a decision grows. It claims no ratio.

Its theorems are about a pair of transfers (comm-contention). A row of ours is about the simulation: the invariant that
the published simulator breaks under AdaDUAL.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from schedgap.heuristics.common.growth import Steps, growth_exponent
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, Measured, at_most, not_applicable

SERVERS = (32, 64, 128, 256, 512, 1024)
PER_SERVER = (2, 4, 8, 16, 32)
"""GPUs of a server."""


def place_literally(
    wanted: int,
    kappa: int,
    loads: list[list[float]],  # remaining workload by server and GPU; every GPU has the memory
    steps: Steps,
) -> list[tuple[int, int]]:
    """Algorithm 1 of paper 001, line by line: the GPUs that a job gets; the servers' total loads are given to it."""
    every = [(s, g) for s, row in enumerate(loads) for g in range(len(row))]
    if wanted <= kappa:
        available = list(steps.scan(every))
        return steps.sort(available, key=lambda gpu: loads[gpu[0]][gpu[1]])[:wanted]
    total = [sum(row) for row in loads]
    queue: list[tuple[int, int]] = []
    for s in steps.sort(range(len(loads)), key=total.__getitem__):
        row = list(steps.scan((s, g) for g in range(len(loads[s]))))
        queue += steps.sort(row, key=lambda gpu: loads[gpu[0]][gpu[1]])
    return queue[:wanted]


def placement_growth(seed: int) -> Measured:
    """Steps of Algorithm 1 on random loads: over the servers, and over a server's GPUs, for small and large jobs.

    Printed: N log N with N = servers times GPUs of one for a job of at most kappa GPUs; else S log S with S the
    number of servers, since a server's GPUs are few.
    """

    def counted(servers: int, gpus: int, wanted: int) -> int:
        steps = Steps()
        rng = np.random.default_rng([seed, servers, gpus])
        place_literally(wanted, 1, rng.uniform(0, 1, (servers, gpus)).tolist(), steps)
        return steps.count

    small = [counted(s, 4, 1) for s in SERVERS]
    large = [counted(s, 4, 8) for s in SERVERS]
    deep = [counted(128, g, 64) for g in PER_SERVER]
    values = {
        "exponent_small": growth_exponent([4 * s * math.log2(4 * s) for s in SERVERS], small),
        "exponent_large": growth_exponent([s * math.log2(s) for s in SERVERS], large),
        "exponent_gpus": growth_exponent(PER_SERVER, deep),
    }
    return Measured(
        values,
        f"steps grow with exponent {values['exponent_small']:.2f} in N log N (at most kappa GPUs), "
        f"{values['exponent_large']:.2f} in S log S (more), {values['exponent_gpus']:.2f} in a server's GPUs, which "
        "are left out as few: the loop of lines 15 to 17 goes over every server and sorts its GPUs",
    )


def start_literally(on_servers: list[list[float]], new: float, factor: float, steps: Steps) -> bool:
    """Algorithm 2 of paper 001, line by line: whether a message starts; `factor` is 2 (b + eta) / b."""
    busiest, older = 0, list[float]()
    for tasks in steps.scan(on_servers):
        if len(tasks) > busiest:
            busiest = len(tasks)
            older += steps.scan(tasks)
    return busiest == 0 or (busiest == 1 and new * factor < older[0])


def decision_growth(seed: int) -> Measured:
    """Steps of Algorithm 2 over the servers of a message, each with at most two tasks on it."""
    counts = []
    for servers in SERVERS:
        steps = Steps()
        rng = np.random.default_rng([seed, servers])
        start_literally([rng.uniform(0, 1, rng.integers(0, 3)).tolist() for _ in range(servers)], 0.1, 2.6, steps)
        counts.append(steps.count)
    exponent = growth_exponent(SERVERS, counts)
    return Measured({"exponent_servers": exponent}, f"steps grow with exponent {exponent:.2f} in the servers used")


def message_speed(case: Case) -> Evaluation:
    """No all-reduce is faster than latency + size b, whatever meets it."""
    if not case.info.get("all-reduces"):
        return not_applicable("no job spans servers, so there is no all-reduce")
    speed = case.info["message speed"]
    return at_most(
        speed, 1.0, f"{case.info['all-reduces']} all-reduces, {case.info['contended']:.1%} of them contended"
    )


def _row(method: str) -> Guarantee:
    return Guarantee(
        id=f"001-message-time-{method}",
        problem="ddl-cluster",
        source="ours",
        statement="(a + b M) / (end - admission) <= 1 for every all-reduce",
        assumptions="none",
        evaluate=message_speed,
        method=method,
        kind="repaired",
        hint={"families": ("tiny",)},  # placed, as the exact reference needs
    )


_growth = partial(
    Guarantee,
    problem="ddl-cluster",
    evaluate=lambda _: not_applicable("about growth: measured on states of its own"),
)

GUARANTEES: tuple[Guarantee, ...] = (
    _growth(
        id="001-lwf-time",
        source="paper 001, section IV-A: time complexity of LWF-kappa",
        statement="a job is placed in O(N log N) for at most kappa GPUs, else in O(S log S); S servers, N GPUs",
        assumptions="every GPU has the memory; GPUs of a server are few beside the servers",
        measure=placement_growth,
    ),
    _growth(
        id="001-adadual-time",
        source="paper 001, section IV-B: time complexity of AdaDUAL",
        statement="AdaDUAL decides about a message in O(servers that it uses)",
        assumptions="what is running on each server is given",
        measure=decision_growth,
    ),
    *(_row(method) for method in ("srsf-1", "srsf-2", "srsf-3", "ada-srsf")),
)
"""Its rows of the ledger; no ratio is claimed for LWF-kappa, SRSF(n) or Ada-SRSF."""
