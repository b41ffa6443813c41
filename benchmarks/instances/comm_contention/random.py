"""Random instances of comm-contention: bursts of transfers on one link, and traps for the paper's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.catalogue.workload import Trial
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.heuristics.comm_contention.guarantees import trap


def tiny(
    seed: int,
    *,
    tasks: Annotated[int | None, Field(ge=1, le=1000, description="number of tasks; 2 to 4 where not given")] = None,
    latency: Annotated[float | None, Field(ge=0, le=10**6, description="seconds; 0 or 0.5 where not given")] = None,
) -> CommContentionInstance:
    """2 to 4 tasks whose event orders can all be tried."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5)) if tasks is None else tasks
    a = float(rng.choice([0.0, 0.5])) if latency is None else latency
    sizes = rng.integers(1, 21, n) / 2
    b = float(rng.choice([0.5, 1.0, 2.0]))
    releases = np.round(rng.uniform(0, 0.6 * b * sizes.sum(), n) * 2) / 2
    return _instance(f"tiny-{seed}", releases, sizes, b, float(rng.integers(0, 11)) / 10 * b, a)


def small(
    seed: int,
    *,
    tasks: Annotated[int, Field(ge=1, le=100000, description="number of tasks")] = 8,
    load: Annotated[float, Field(ge=0, le=1000, description="last release over the time of all, one by one")] = 0.5,
    eta: Annotated[
        float | None, Field(ge=0, le=10**6, description="contention penalty at b = 1; random where not given")
    ] = None,
) -> CommContentionInstance:
    """8 tasks of 1 to 40 units (log-uniform), released while the link works off half of them; for proofs.

    Parameters
    ----------
    load : the last release is at most this part of the time all of them take one after the other
    """
    rng = np.random.default_rng(seed)
    sizes = np.round(np.exp(rng.uniform(0, np.log(40), tasks)), 2)
    releases = np.round(np.sort(rng.uniform(0, load * sizes.sum(), tasks)), 2)
    drawn = round(float(rng.uniform(0, 0.5)), 2)
    return _instance(f"small-{tasks}-{seed}", releases - releases[0], sizes, 1.0, drawn if eta is None else eta)


def bursts(
    seed: int,
    *,
    tasks: Annotated[int, Field(ge=1, le=100000, description="number of messages")] = 60,
    bursts: Annotated[int, Field(ge=1, le=10000, description="number of bursts")] = 6,
    gap: Annotated[float, Field(ge=0, le=1000, description="mean time between bursts over that of a burst")] = 0.8,
) -> CommContentionInstance:
    """Bursts of messages with the sizes of Table III and the link of the paper.

    Parameters
    ----------
    gap : mean time between bursts over the time that a burst takes
    """
    rng = np.random.default_rng(seed)
    b, eta, a = 8.53e-4, 2.6e-4, 6.69e-4
    sizes = rng.choice([526.4, 99.2, 103.0, 251.8], tasks)
    length = b * sizes.sum() / bursts
    begins = np.cumsum(rng.exponential(gap * length, bursts))
    begins -= begins[0]
    releases = begins[rng.integers(0, bursts, tasks)] + rng.uniform(0, 0.2 * length, tasks)
    return _instance(f"bursts-{tasks}-{seed}", np.round(releases, 4), sizes, b, eta, a)


def adadual_trap(
    seed: int, *, tasks: Annotated[int, Field(ge=3, le=10000, description="number of tasks")] = 20
) -> CommContentionInstance:
    """The family on which AdaDUAL has no constant ratio: sizes 1 and 0.38, then tiny tasks that it keeps waiting.

    The second task shares with the first, since 0.38 < b / (2 (b + eta)); a third never starts beside two, so all
    the tiny ones wait for the second, while alone at their releases they would cost almost nothing.
    """
    del seed
    return trap(tasks)


def newcomer(
    seed: int, *, running: Annotated[int, Field(ge=1, le=1000, description="tasks at 0")] = 3
) -> CommContentionInstance:
    """Tasks that are all there at time 0 but one smaller one, which arrives while they could be running."""
    rng = np.random.default_rng(seed)
    sizes = np.round(np.exp(rng.uniform(0, 3, running + 1)), 2)
    sizes[-1] = round(float(sizes[:-1].min() * rng.uniform(0.05, 0.9)), 3)
    releases = np.zeros(running + 1)
    releases[-1] = round(float(rng.uniform(0, 0.5) * sizes[:-1].min()), 3)
    return _instance(f"newcomer-{seed}", releases, sizes, 1.0, round(float(rng.uniform(0, 0.6)), 2))


def _instance(
    name: str, releases: Any, sizes: Any, b: float, eta: float, latency: float = 0.0
) -> CommContentionInstance:
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "name": name,
            "link": {"latency": latency, "seconds_per_unit": b, "contention_penalty": eta},
            "tasks": [
                {"id": f"c{j}", "release": round(float(r), 9), "size": float(m)}
                for j, (r, m) in enumerate(zip(releases, sizes, strict=True))
            ],
        },
        name,
    )


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "tiny": lambda seed: (tiny(seed), {}),
    "small": lambda seed: (small(seed, tasks=5), {}),
    "newcomer": lambda seed: (newcomer(seed), {}),
    "bursts": lambda seed: (bursts(seed, tasks=6, bursts=2), {}),
}
"""Families of instances on which claims are tried."""
