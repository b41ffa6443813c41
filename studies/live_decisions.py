"""Live decisions at production size: the default method beside HiGHS and CP-SAT on our declarative model, in one run.

``python -m studies.live_decisions [--work NAME ...] [--seeds N] [--patience P] [--openb PODS NODES]`` prints a table. A
line is a kind of work with its limit in seconds of processor; a cell says how many were proven within it, how far the
others are from the method's bound at most, and the mean seconds of processor. Limits are kept by the clock, P times as
long on a machine that gives a process one P-th of a core. All methods begin with the best of the quick rules.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.instances.gang_placement.random import cluster
from schedgap.benchmarks.text import markdown_table
from schedgap.catalogue.gang_placement import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import decode
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status
from schedgap.tools.judge.openb import openb
from studies.engines import processor_seconds
from studies.library.openb_allocation import instance_of
from studies.placement_rules import racks

Data = dict[str, Json]
METHODS = ("staged", "highs", "cpsat")
Draw = Callable[[int, float], GangPlacementInstance]
"""An instance by its seed and scale."""


def _parsed(name: str, nodes: Sequence[Data], gangs: Sequence[Data]) -> GangPlacementInstance:
    waiting = [{"id": f"g{g}", "arrival": g} | gang for g, gang in enumerate(gangs)]
    data = {"problem": "gang-placement", "name": name, "nodes": [*nodes], "gangs": waiting, "objectives": ["weight"]}
    return GangPlacementInstance.parse(data)


def rack_gangs(seed: int, scale: float) -> GangPlacementInstance:
    """1,000 whole nodes in 50 racks, gangs of 1 to 16 nodes, each in one rack."""
    return GangPlacementInstance.parse(racks(random.Random(f"racks {seed}"), scale))


CELLS = tuple(itertools.product((4, 8, 16, 32), (4, 8), (1, 2, 4), (0.9, 0.95, 1.0, 1.05)))
"""Nodes, pods a node, priorities and load of arXiv 2511.08373: 96 cells."""


def grid(seed: int, scale: float) -> GangPlacementInstance:
    """A cell and seed of the grid of arXiv 2511.08373, drawn: single pods of processors and memory with priorities."""
    del scale
    rng = random.Random(f"grid {seed}")
    nodes, per, priorities, load = rng.choice(CELLS)
    return cell(nodes, per, priorities, load, rng.randrange(5))


def cell(nodes: int, per: int, priorities: int, load: float, seed: int) -> GangPlacementInstance:
    """One instance of the grid: pods in groups of 1 to 4, as much as `load` of the equal nodes asked for."""
    rng = random.Random(seed)
    pods: list[tuple[int, int, int]] = []
    while len(pods) < nodes * per:
        alike = min(rng.randint(1, 4), nodes * per - len(pods))
        pods += [(rng.randint(100, 1000), rng.randint(100, 1000), rng.randint(1, priorities))] * alike
    free = {name: int(sum(pod[place] for pod in pods) / nodes / load) for place, name in enumerate(("cpu", "memory"))}
    gangs = [{"priority": p, "pods": [{"count": 1, "request": {"cpu": c, "memory": m}}]} for c, m, p in pods]
    name = f"grid-{nodes}-{per}-{priorities}-{load}-{seed}"
    return _parsed(name, [{"id": f"n{n}", "free": free} for n in range(nodes)], gangs)


def triplets(items: int) -> Draw:
    """Parts of devices that fill them three by three without rest, as Falkenauer's t sets."""

    def draw(seed: int, scale: float) -> GangPlacementInstance:
        del scale
        rng = random.Random(seed)
        sizes: list[int] = []
        while len(sizes) < items:
            first = rng.randint(380, 490)
            second = rng.randint(250, (1000 - first) // 2)
            sizes += [first, second, 1000 - first - second]
        rng.shuffle(sizes)
        return _devices(f"t{items}-{seed}", sizes, items // 3)

    return draw


def uniform(seed: int, scale: float) -> GangPlacementInstance:
    """120 parts of 20 to 100 of 150, on as many devices as they fill, as Falkenauer's u120."""
    del scale
    rng = random.Random(seed)
    sizes = [rng.randint(20, 100) for _ in range(120)]
    return _devices(f"u120-{seed}", [size * 1000 // 150 for size in sizes], math.ceil(sum(sizes) / 150))


def _devices(name: str, sizes: Sequence[int], devices: int) -> GangPlacementInstance:
    nodes: list[Data] = [{"id": f"n{n}", "gpus": [1000]} for n in range(devices)]
    return _parsed(name, nodes, [{"pods": [{"count": 1, "gpu": size}]} for size in sizes])


def compact(seed: int, scale: float) -> GangPlacementInstance:
    """64 nodes in racks and blocks, 20 gangs: weight, gangs that are split, then domains."""
    return cluster(seed, nodes=round(64 * scale), gangs=round(20 * scale))


def mixed(seed: int, scale: float) -> GangPlacementInstance:
    """1,000 nodes of two models, gangs with whole GPUs and parts, a third of them bound to a model; weight alone."""
    drawn = cluster(seed, nodes=round(1000 * scale), gangs=round(700 * scale), busy=0.1, load=1.2, parts=0.6)
    data = drawn.to_dict()
    rng = random.Random(seed)
    for node in data["nodes"]:
        node["gpu_model"] = rng.choice(("A100", "H100"))
    for gang in data["gangs"]:
        if rng.random() < 1 / 3:
            gang["pods"][0]["selector"] = {"models": [rng.choice(("A100", "H100"))]}
    return GangPlacementInstance.parse(data | {"objectives": ["weight"]})


@dataclass(frozen=True)
class Work:
    """A line of the table.

    Attributes
    ----------
    text : what it is
    draw : instance by seed and scale
    seconds : limit, of processor
    seeds : instances
    first : seed of the first
    """

    text: str
    draw: Draw
    seconds: float
    seeds: int
    first: int = 0


WORK: Mapping[str, Work] = {
    "racks": Work("1,000 nodes in 50 racks, gangs in one rack each", rack_gangs, 10, 30, 1),
    "grid": Work("single pods with priorities, arXiv 2511.08373", grid, 10, 100),
    "grid-1": Work("the same in 1 s", grid, 1, 100),
    "t60": Work("60 parts of 20 devices, three by three", triplets(60), 30, 3),
    "t120": Work("120 parts of 40 devices, three by three", triplets(120), 30, 3),
    "t249": Work("249 parts of 83 devices, three by three", triplets(249), 30, 3),
    "u120": Work("120 parts of 20 to 100 of 150", uniform, 30, 5),
    "domains": Work("64 nodes, 20 gangs, three levels, with `domains`", compact, 10, 20),
    "mixed": Work("1,000 nodes of two models, 700 gangs, parts and selectors", mixed, 60, 3),
}


@dataclass(frozen=True)
class Outcome:
    """What one method said of one instance.

    Attributes
    ----------
    proven : whether its optimum is proven within the limit
    apart : relative difference of bound and value in the first component where they differ; None where one is missing
    processor : seconds
    value : its score
    """

    proven: bool
    apart: float | None
    processor: float
    value: float | None


def outcome(instance: GangPlacementInstance, method: str, seconds: float, patience: float = 1.0) -> Outcome:
    """One method on one instance within a limit."""
    began = processor_seconds()
    try:
        result = run_method(
            PROBLEM, instance, method, SolveOptions(deadline=Deadline.after(patience * seconds), threads=1)
        )
    except ModelRefused:
        return Outcome(False, None, processor_seconds() - began, None)
    used = processor_seconds() - began
    return Outcome(result.status is Status.OPTIMAL and used <= seconds, apart(instance, result), used, result.objective)


def apart(instance: GangPlacementInstance, result: Result) -> float | None:
    """Relative difference of bound and value in the first component where they differ."""
    if result.objective is None or result.bound is None:
        return None
    for value, most in zip(*(decode(instance, int(one)) for one in (result.objective, result.bound)), strict=True):
        if value != most:
            return float(abs(most - value) / abs(most)) if most else math.inf
    return 0.0


def cell_of(found: Sequence[Outcome]) -> str:
    """Proven, the largest difference of the others, mean seconds of processor."""
    proven = sum(one.proven for one in found)
    text = f"{proven} of {len(found)}"
    open_ones = [one.apart for one in found if not one.proven]
    if open_ones:
        known = [one for one in open_ones if one is not None]
        text += f", others {100 * max(known):.3g}% at most" if len(known) == len(open_ones) else ", others unknown"
    return f"{text}; {sum(one.processor for one in found) / len(found):.2g} s"


def line(work: Work, seeds: int, scale: float, methods: Sequence[str], patience: float) -> Iterator[str]:
    """Cells of a line, and after them how often `staged` was below kube-scheduler's rule."""
    found: dict[str, list[Outcome]] = {method: [] for method in methods}
    below = 0
    for seed in range(work.first, work.first + seeds):
        instance = work.draw(seed, scale)
        rule = run_method(PROBLEM, instance, "kube-least-allocated", SolveOptions()).objective
        for method in methods:
            one = outcome(instance, method, work.seconds, patience)
            found[method].append(one)
            below += method == "staged" and (one.value is None or rule is None or one.value < rule)
            print(f"{instance.name} {seed} {method}: {one}", flush=True)
    yield f"{work.text}, {work.seconds:g} s"
    yield from (cell_of(found[method]) for method in methods)
    yield f"{below} of {seeds}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", nargs="+", choices=[*WORK, "openb"], default=list(WORK))
    parser.add_argument("--seeds", type=int, help="instances of each; the line's own number where not given")
    parser.add_argument("--scale", type=float, default=1.0, help="size of clusters")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--patience", type=float, default=1.0, help="seconds by the clock for one of processor")
    parser.add_argument("--openb", nargs=2, type=Path, metavar=("PODS", "NODES"), help="lists of openb, as published")
    given = parser.parse_args(argv)
    known = dict(WORK)
    if given.openb:
        draft = openb(*given.openb)
        known["openb"] = Work("openb, 1,213 nodes", lambda seed, scale: instance_of(draft, seed, gpus_only=True), 60, 2)
    rows = []
    for name in given.work:
        work = known[name]
        rows.append([*line(work, given.seeds or work.seeds, given.scale, given.methods, given.patience)])
    print(markdown_table(("work, limit", *given.methods, "`staged` below `kube-least-allocated`"), rows))


if __name__ == "__main__":
    main()
