"""A plain exhaustive search for the optimum of tiny rar-ddls instances, and a maker of such instances.

For the tests and the suite ``cross``. It knows nothing of the models, the dynamics or the checker: slot by slot it
tries every set of jobs to start on every placement that fits, runs all active jobs for one slot, and stops when
some branch has no job left.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from oracles import TooManyError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Placement = tuple[int, ...]
JobState = tuple[int, Placement] | None  # (iterations left, GPUs by server); None before the start
State = tuple[JobState, ...]


def brute_force(instance: RarDdlsInstance, limit: int = 2_000_000) -> tuple[int, dict[str, Json]] | None:
    """(optimal makespan, a solution that has it), or None when the instance is infeasible.

    Breadth first over slots; a state is each job's iterations left and placement, so two ways to the same state
    count once. States that differ by a permutation of servers of equal size are the same state.
    Raises TooManyError beyond `limit` states.
    """
    sizes = [server.gpus for server in instance.servers]
    choices = [placements(job.gpus, sizes) for job in instance.jobs]
    rate_of: dict[tuple[int, int, int], int] = {}
    beginning: State = (None,) * len(instance.jobs)
    layers: list[dict[State, tuple[State, tuple[tuple[int, Placement], ...], Permutation]]] = []
    frontier: set[State] = {beginning}
    seen = 0
    for slot in range(1, instance.horizon + 1):
        layer: dict[State, tuple[State, tuple[tuple[int, Placement], ...], Permutation]] = {}
        for state in frontier:
            for started, running in _starts(state, choices, sizes):
                following, order = _canonical(_one_slot(instance, running, rate_of), sizes)
                if following not in layer:
                    layer[following] = (state, started, order)
        layers.append(layer)
        for state in layer:
            if all(job is not None and job[0] == 0 for job in state):
                return slot, _trace(instance, layers, state)
        seen += len(layer)
        if seen > limit:
            raise TooManyError(f"more than {limit} states")
        frontier = set(layer)
    return None


def placements(gpus: int, sizes: list[int]) -> list[Placement]:
    """Every way to put `gpus` GPUs on servers of these sizes."""
    return [p for p in itertools.product(*(range(min(gpus, size) + 1) for size in sizes)) if sum(p) == gpus]


def rate(instance: RarDdlsInstance, job: int, servers_used: int, p: int) -> int:
    """Iterations per slot, straight from equations (7) and (8)."""

    def number(value: float) -> Fraction:
        return Fraction(str(value))

    net, data = instance.network, instance.jobs[job]
    w = data.gpus
    k = max(Fraction(1), number(net.contention_scale) * p)
    f = k + number(net.contention_penalty) * (k - 1)
    bandwidth = number(net.inter_bandwidth) / f if servers_used > 1 else number(net.intra_bandwidth)
    m = number(data.gradient_size)
    tau = m / w * 2 * (w - 1) / bandwidth + m / w * (w - 1) / number(instance.reduce_speed)
    tau += number(net.server_overhead) * servers_used
    tau += number(data.forward_time) * data.batch_size + number(data.backward_time)
    return (1 / tau + Fraction(1, 10**9)).__floor__()


Permutation = tuple[int, ...]


def _starts(
    state: State, choices: list[list[Placement]], sizes: list[int]
) -> Iterator[tuple[tuple[tuple[int, Placement], ...], list[JobState]]]:
    free = list(sizes)
    for job in state:
        if job is not None and job[0] > 0:
            free = [a - b for a, b in zip(free, job[1], strict=True)]

    def extend(position: int, free: list[int], started: tuple[tuple[int, Placement], ...]) -> Iterator[Any]:
        if position == len(state):
            yield started
            return
        yield from extend(position + 1, free, started)
        if state[position] is None:
            for choice in choices[position]:
                left = [a - b for a, b in zip(free, choice, strict=True)]
                if min(left) >= 0:
                    yield from extend(position + 1, left, (*started, (position, choice)))

    for started in extend(0, free, ()):
        running = list(state)
        for job, choice in started:
            running[job] = (-1, choice)  # all iterations left
        yield started, running


def _one_slot(instance: RarDdlsInstance, running: list[JobState], rate_of: dict[tuple[int, int, int], int]) -> State:
    crossing = [0] * len(instance.servers)
    for j, job in enumerate(running):
        if job is not None and job[0] != 0:
            for s, gpus in enumerate(job[1]):
                crossing[s] += 0 < gpus < instance.jobs[j].gpus
    after: list[JobState] = []
    for j, job in enumerate(running):
        if job is None or job[0] == 0:
            after.append(job)
            continue
        left, placed = job
        left = instance.jobs[j].iterations if left < 0 else left
        p = max(crossing[s] * (0 < gpus < instance.jobs[j].gpus) for s, gpus in enumerate(placed))
        key = (j, sum(gpus > 0 for gpus in placed), p)
        if key not in rate_of:
            rate_of[key] = rate(instance, *key)
        left = max(0, left - rate_of[key])
        after.append((left, placed if left else ()))
    return tuple(after)


def _canonical(state: State, sizes: list[int]) -> tuple[State, Permutation]:
    columns = [tuple(job[1][s] if job is not None and job[0] else -1 for job in state) for s in range(len(sizes))]
    order = tuple(sorted(range(len(sizes)), key=lambda s: (sizes[s], columns[s])))
    # Servers keep their size: sorting by size first, then undoing the sort of sizes.
    place = sorted(range(len(sizes)), key=lambda s: sizes[s])
    take = [0] * len(sizes)
    for target, source in zip(place, order, strict=True):
        take[target] = source
    moved = tuple((job[0], tuple(job[1][s] for s in take)) if job is not None and job[0] else job for job in state)
    return moved, tuple(take)


def _trace(
    instance: RarDdlsInstance,
    layers: list[dict[State, tuple[State, tuple[tuple[int, Placement], ...], Permutation]]],
    state: State,
) -> dict[str, Any]:
    start: dict[str, int] = {}
    placement: dict[str, dict[str, int]] = {}
    # names[s]: which server of the last layer the position s of this layer is
    names = list(range(len(instance.servers)))
    for slot in range(len(layers), 0, -1):
        state, started, take = layers[slot - 1][state]
        before = [0] * len(take)
        for s, source in enumerate(take):
            before[source] = names[s]
        names = before
        for job, choice in started:
            start[instance.jobs[job].id] = slot
            placement[instance.jobs[job].id] = {
                instance.servers[names[s]].id: gpus for s, gpus in enumerate(choice) if gpus
            }
    return {"start": start, "placement": placement}


def random_tiny(rng: np.random.Generator, contended: bool) -> RarDdlsInstance:
    """A random instance that brute force solves in well under a second; a few are infeasible.

    Decimals are short and rates small, so that rounding down matters. `contended`: at least two gangs one GPU larger
    than the largest of three servers, so that every such ring crosses and any two at once meet on a server.
    """
    if contended:
        sizes = [[2, 2, 2], [2, 2, 2], [3, 3, 2], [3, 3, 3]][int(rng.integers(4))]
        ring = max(sizes) + 1
        gangs = [ring, ring, *(int(rng.integers(1, ring + 1)) for _ in range(int(rng.integers(5 - max(sizes)))))]
    else:
        sizes = [int(size) for size in rng.integers(1, 4, size=int(rng.integers(1, 4)))]
        gangs = [int(gang) for gang in rng.integers(1, min(5, sum(sizes) + 1), size=int(rng.integers(1, 5)))]
    times = [0.05, 0.08, 0.1, 0.125] if contended else [0.08, 0.1, 0.125, 0.2, 0.25, 0.3, 0.333]
    gradients = [0.0625, 0.1, 0.1125, 0.2] if contended else [0.0, 0.03, 0.1, 0.2]
    data: dict[str, Any] = {
        "problem": "rar-ddls",
        "name": "tiny",
        "horizon": int(rng.integers(6, 11)),
        "network": {
            "inter_bandwidth": float(rng.choice([1.0, 1.5] if contended else [1.0, 2.0])),
            "intra_bandwidth": 50.0,
            "contention_scale": float(rng.choice([0.75, 1.0] if contended else [0.5, 0.75, 1.0])),
            "contention_penalty": float(rng.choice([0.0, 0.2, 1.0])),
            "server_overhead": float(rng.choice([0.0, 0.001, 0.02])),
        },
        "reduce_speed": float(rng.choice([20.0, 1000.0])),
        "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
        "jobs": [
            {
                "id": f"j{j}",
                "gpus": gang,
                "iterations": 1,
                "gradient_size": float(rng.choice(gradients)),
                "batch_size": 10,
                "forward_time": float(rng.choice([0.0, 0.001, 0.002])),
                "backward_time": float(rng.choice(times)),
            }
            for j, gang in enumerate(gangs)
        ],
    }
    alone = RarDdlsInstance.parse(data)
    for j, job in enumerate(data["jobs"]):
        slots = rng.uniform(0.7, 2.7) if contended else rng.uniform(0.0, 3.0)
        job["iterations"] = max(1, int(slots * rate(alone, j, min(2, job["gpus"]), 1)))
        if rng.random() < 0.02:
            job["backward_time"] = 1.5
    return RarDdlsInstance.parse(data)


def random_case(seed: int, *, contended: bool) -> RarDdlsInstance:
    """A random tiny instance by its seed, named after it."""
    made = random_tiny(np.random.default_rng(seed), contended)
    return made.model_copy(update={"name": f"{'forced' if contended else 'random'}-{seed}"})


def solve_brute_force(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """Brute force as an exact method; "unknown" beyond its limit of states. Takes no notice of `options`."""
    began = time.monotonic()
    try:
        found = brute_force(instance)
    except TooManyError:
        return Result(Status.UNKNOWN, termination=Termination.WORK_LIMIT, solve_seconds=time.monotonic() - began)
    seconds = time.monotonic() - began
    if found is None:
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=seconds)
    makespan, solution = found
    value = float(makespan)
    return Result(Status.OPTIMAL, value, value, solution, Termination.PROVEN, solve_seconds=seconds)
