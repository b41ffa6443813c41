"""Instances of hadar on which the claims of paper 002 are near their limits, small enough to be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.benchmarks.instances.hadar.random import contended, lowhigh, motivation, nodes, tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.hadar.instance import HadarInstance

Trial = tuple[HadarInstance, dict[str, Json]]
"""An instance, and the options that the heuristic is to run with."""


PRINTED: Mapping[str, Any] = {"eta": "printed", "price": "printed", "umin": "printed"}


def constant(name: str, gpus: int, horizon: int, jobs: Sequence[tuple[int, int, int, float]]) -> HadarInstance:
    """One machine of one type; a job is (arrival, workers, slots, utility)."""
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": name,
            "horizon": horizon,
            "slot_length": 1.0,
            "machines": [{"id": "h0", "gpus": {"V100": gpus}}],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": arrival,
                    "workers": workers,
                    "epochs": workers * slots,
                    "iterations_per_epoch": 1,
                    "throughput": {"V100": 1},
                    "utility": {"kind": "constant", "weight": worth},
                }
                for j, (arrival, workers, slots, worth) in enumerate(jobs)
            ],
        }
    )


NAMED: tuple[HadarInstance, ...] = (
    constant("low-high-7", 1, 1, [(1, 1, 1, 1.0), (1, 1, 1, 7.0)]),
    constant("online-low-high-12", 1, 2, [(1, 1, 2, 1.0), (2, 1, 1, 12.0)]),
    constant("single-4", 1, 4, [(1, 1, 4, 1.0)]),
    constant("D0-T3", 1, 3, [(1, 1, 1, 1.0)]),
    constant("partial-4000", 3, 1, [(1, 2, 1, 1.0), (1, 2, 1, 4000.0)]),
    constant("single-8", 2, 8, [(1, 1, 8, 1.0)]),
)
"""The smallest counterexamples: a late job worth 7 or 12 times as much; the single job that the printed eta prices
out; D_0 above half of the optimum; a gang that what is left cannot hold; the single job with a device to spare, as the
paper assumes."""


ABOVE = 1e-6
"""How much more than the current price a job of `steps` is worth."""


def steps(seed: int) -> HadarInstance:
    """One pool and one slot, where OPT / ALG comes near alpha_step: every job is worth the price it meets.

    c jobs of one device fill the pool, the i-th worth k_i = U_min rho^(i/c) and a little more, or u where that is
    larger; then c jobs worth U_max come and find the pool full. sum k_i = c (U_max - U_min) / alpha_step, so that
    the ratio is alpha_step but for the first jobs' u - k_i, which U_max / u makes small.
    """
    rng = np.random.default_rng(seed)
    gpus, high = int(rng.integers(2, 8)), float(rng.choice([1e3, 1e4, 1e5]))
    low = 1.0 / (4 * gpus)
    worth = [max(1.0, low * (high / low) ** (i / gpus) * (1 + ABOVE)) for i in range(gpus)]
    return constant(f"steps-{seed}", gpus, 1, [(1, 1, 1, value) for value in [*worth, *[high] * gpus]])


def roomy(seed: int) -> HadarInstance:
    """One or two types, every gang smaller than any machine's devices of a type, worths over four orders."""
    rng = np.random.default_rng(seed)
    horizon, kinds = int(rng.integers(1, 5)), ("V100", "K80")[: int(rng.integers(1, 3))]
    least = int(rng.integers(2, 4))
    machines = [{"id": f"h{h}", "gpus": {kind: least + int(rng.integers(0, 2))}} for h, kind in enumerate(kinds)]
    jobs = []
    for j in range(int(rng.integers(1, 6))):
        workers, length = int(rng.integers(1, least)), int(rng.integers(1, horizon + 1))
        worth = round(float(10 ** rng.uniform(0, 4)), 2)
        jobs.append(
            {
                "id": f"j{j}",
                "arrival": int(rng.integers(1, horizon + 1)) if rng.random() < 0.5 else 1,
                "workers": workers,
                "epochs": workers * length,
                "iterations_per_epoch": 1,
                "throughput": {kind: int(rng.integers(1, 3)) for kind in kinds},
                "utility": {"kind": str(rng.choice(["constant", "effective-throughput"])), "weight": worth},
            }
        )
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": f"roomy-{seed}",
            "horizon": horizon,
            "slot_length": 1.0,
            "machines": machines,
            "jobs": jobs,
        }
    )


def small_demands(seed: int) -> HadarInstance:
    """A machine's GPUs asked for two to four times over, by jobs of at most a tenth of them; three of four seeds have
    the cheap jobs first, worths over up to four orders."""
    rng = np.random.default_rng(seed)
    horizon, gpus, decades = int(rng.integers(1, 3)), 10 * int(rng.integers(1, 3)), float(rng.uniform(0, 4))
    jobs, asked, most = [], 0, gpus * horizon * float(rng.uniform(2, 4))
    while asked < most:
        length, workers = int(rng.integers(1, horizon + 1)), int(rng.integers(1, gpus // 10 + 1))
        asked += length * workers
        jobs.append((1, workers, length, round(float(10 ** rng.uniform(0, decades)), 2)))
    if seed % 4:
        jobs.sort(key=lambda job: job[3] / (job[1] * job[2]))
    return constant(f"small-demands-{seed}", gpus, horizon, jobs)


def one_against_many(seed: int) -> HadarInstance:
    """A job that needs all slots, and one of one slot that is worth a little more than a slot of the first.

    Worth by rounds needed, the short one goes first; then the long one cannot finish any more: ratio T / 1.01.
    """
    horizon = 12 + seed % 6
    return constant(f"one-against-many-{seed}", 3, horizon, [(1, 2, horizon, float(horizon)), (1, 2, 1, 1.01)])


def many_against_one(seed: int) -> HadarInstance:
    """A job that needs all slots, and in every slot one of one slot that is worth almost as much as all of the first.

    Worth as a whole, the long one goes first in every slot: ratio 0.99 T.
    """
    horizon = 12 + seed % 6
    short = [(t, 2, 1, 9.9) for t in range(1, horizon + 1)]
    return constant(f"many-against-one-{seed}", 3, horizon, [(1, 2, horizon, 10.0), *short])


def _steady(seed: int) -> HadarInstance:
    """A tiny instance whose utilities are positive at the horizon, as the printed U_min needs."""
    data = tiny(seed).to_dict()
    for job in data["jobs"]:
        if job["utility"]["kind"] == "linear":
            job["utility"] = {"kind": "constant", "weight": job["utility"]["weight"]}
    return HadarInstance.parse(data, data["name"])


def _forked(name: str, work: Sequence[int], speed: Sequence[Sequence[int]], horizon: int) -> HadarInstance:
    count = len(speed[0])
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": name,
            "horizon": horizon,
            "slot_length": 1.0,
            "machines": [{"id": f"n{h}", "gpus": {f"T{h}": 1}} for h in range(count)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": 1,
                    "workers": 1,
                    "epochs": steps,
                    "iterations_per_epoch": 1,
                    "throughput": {f"T{h}": rate for h, rate in enumerate(row)},
                    "utility": {"kind": "effective-throughput", "weight": 1.0},
                }
                for j, (steps, row) in enumerate(zip(work, speed, strict=True))
            ],
        }
    )


FORKED: tuple[HadarInstance, ...] = (
    _forked("equal-nodes", [4], [[3, 3, 3]], 4),
    _forked("two-jobs-7-4", [7, 4], [[4, 1, 4], [3, 2, 2]], 6),
)
"""One job on three equal nodes is busy as much with two copies as with three; two jobs on three nodes are busy less
with three copies than with one. Every job needs more than a slot, as the paper assumes."""


def _long(instance: HadarInstance) -> HadarInstance:
    """The same with jobs that need more than one slot on their fastest node."""
    data = instance.to_dict()
    for job in data["jobs"]:
        job["epochs"] += int(max(job["throughput"].values()))
    return HadarInstance.parse({**data, "horizon": 2 * data["horizon"]}, data["name"])


def _small_contended(seed: int) -> HadarInstance:
    rng = np.random.default_rng(seed)
    return contended(seed, jobs=int(rng.integers(2, 5)), horizon=int(rng.integers(3, 6)))


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "tiny": lambda seed: (tiny(seed), {}),
    "contended": lambda seed: (_small_contended(seed), {}),
    "lowhigh": lambda seed: (lowhigh(seed), {}),
    "horizon_tiny": lambda seed: (_steady(seed), {"umin": "printed", "eta": "horizon"}),
    "named": lambda seed: (NAMED[seed % len(NAMED)], {}),
    "printed_tiny": lambda seed: (_steady(seed), dict(PRINTED)),
    "printed_lowhigh": lambda seed: (lowhigh(seed), dict(PRINTED)),
    "printed_named": lambda seed: (NAMED[seed % len(NAMED)], dict(PRINTED)),
    "printed_roomy": lambda seed: (roomy(seed), dict(PRINTED)),
    "printed_small": lambda seed: (small_demands(seed), dict(PRINTED)),
    "steps": lambda seed: (steps(seed), {}),
    "roomy": lambda seed: (roomy(seed), {}),
    "roomy_literal": lambda seed: (roomy(seed), {"payoff": "literal"}),
    "one_against_many": lambda seed: (one_against_many(seed), {}),
    "many_against_one": lambda seed: (many_against_one(seed), {"payoff": "literal"}),
    "equivalence_named": lambda seed: (motivation(seed, horizon=6), {}),
    "nodes": lambda seed: (nodes(seed), {}),
    "long_nodes": lambda seed: (_long(nodes(seed, rate=5)), {}),
    "one_job": lambda seed: (nodes(seed, jobs=1), {}),
    "forked_named": lambda seed: (FORKED[seed % len(FORKED)], {}),
}
"""Where the guarantees of paper 002 are tried."""
