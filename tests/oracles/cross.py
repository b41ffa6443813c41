"""Every exact method against the others and a plain search, on 22,950 random tiny instances, as a suite of ``bench``.

``PYTHONPATH=tests python -m oracles.cross [--problem P] [--scale 0.1] [--workers 2] [--out DIR] [--resume]``: 2,070
ordinary instances, and for each problem 870 of each of three families of hard numbers.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from oracles import g_vne, gang_placement, hadar, hard_numbers, rar_ddls
from oracles.hard_numbers import FAMILIES
from schedgap.benchmarks.instances import find_preset, workload_of
from schedgap.benchmarks.suites.runner import bench
from schedgap.catalogue.method import Given, Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.workload import Batch, Generator, Preset, Workload

COUNT = 870
"""Instances of each family: with eight problems and three families 20,880."""
SUITE = "cross"
_ENGINES = ("cbc", "highs", "cpsat")
_NO_TASK_LIMIT = 1000.0
"""Thousands of nodes: more than any instance of comm-contention takes."""


class Group(NamedTuple):
    """Ordinary instances of a suite: how many, from which generator, and the heuristics beside the exact methods."""

    name: str
    count: int
    generator: Generator | str
    settings: Mapping[str, Any] = {}
    heuristics: tuple[str, ...] | None = ()
    method_settings: Mapping[str, tuple[Mapping[str, Any], ...]] = {}
    first: int = 0
    search: bool = True


class Part(NamedTuple):
    """What a problem brings: its exact methods, the repeatable limit of each, and its ordinary instances."""

    exact: tuple[str, ...]
    work_limit: float
    groups: tuple[Group, ...]


_FREE = {"lp-rs-mde": ({}, {"variant": "mdk", "ring_sizes": "free"})}
_TINY = {"slots": 3, "arrivals": 2}
PARTS: Mapping[str, Part] = {
    "rar-ddls": Part(
        ("schedule-set", "cp", *_ENGINES),
        20.0,
        tuple(
            Group(name, 150, rar_ddls.random_case, {"contended": contended}, None)
            for name, contended in (("random", False), ("forced to contend", True))
        ),
    ),
    "hadar": Part(
        ("colgen", *_ENGINES),
        60.0,
        tuple(
            Group(name, 150, hadar.random_case, {"must_finish": must}, None)
            for name, must in (("P2", False), ("P1", True))
        ),
    ),
    "gpu-sharing": Part(
        ("cp", *_ENGINES),
        60.0,
        (
            Group("three jobs", 150, "tiny", {**_TINY, "jobs": 3}, search=False),
            Group("four jobs", 50, "tiny", {**_TINY, "jobs": 4, "gpus": 2, "slots": 2}, first=1000, search=False),
            Group("contended", 100, "contended", {"jobs": 3, "slots": 3, "horizon": 10}, search=False),
        ),
    ),
    "comm-contention": Part(
        ("bb", "highs", "cbc"),
        _NO_TASK_LIMIT,
        tuple(
            Group(f"{n} tasks", count, "tiny", {"tasks": n}, None if n < 4 else (), first=1000 * n)
            for n, count in ((2, 100), (3, 200), (4, 20))
        ),
    ),
    "ddl-cluster": Part(("cp", "job-shop", "cbc", "highs"), 20.0, (Group("tiny", 60, "tiny", {}, None, search=False),)),
    "g-vne": Part(
        ("colgen", *_ENGINES),
        60.0,
        tuple(
            Group(
                f"{shape}, {'two resources' if memory else 'one resource'}",
                80,
                g_vne.random_case,
                {"shape": shape, "memory": memory},
                None,
                _FREE,
            )
            for shape in ("tree", "general")
            for memory in (False, True)
        ),
    ),
    "gang-placement": Part(
        ("staged",),
        60.0,
        (Group("random", 150, gang_placement.random_instance, {}, None),),
    ),
    "ddljs": Part(
        ("cpsat", "highs", "cbc"),
        60.0,
        tuple(
            Group(f"tiny, {name}", count, "tiny", settings, ("gadget",))
            for name, count, settings in (
                ("any utility", 160, {}),
                ("concave", 80, {"utilities": "concave"}),
                ("sigmoid", 80, {"utilities": "sigmoid"}),
            )
        ),
    ),
}


def with_search(problem: Problem) -> Problem:
    """The problem with a plain search as one of its exact methods, and the suite ``cross``."""
    part, module = PARTS[problem.id], problem.id.replace("-", "_")
    brute_force = importlib.import_module(f"oracles.{module}").solve_brute_force
    search = Method("brute-force", "a plain search", Kind.EXACT, Given("brute-force", brute_force))
    presets, batches = list(workload_of(problem).presets[:1]), []
    hard = tuple(Group(f, COUNT, getattr(hard_numbers, f"hard_{module}"), {"family": f}) for f in FAMILIES)
    for group in (*part.groups, *hard):
        presets.append(Preset(group.name, group.name, _generator(problem, group)))
        exact = (*(["brute-force"] * group.search), *part.exact)
        batches.append(
            Batch(
                SUITE,
                group.name,
                group.count,
                exact=exact,
                heuristics=group.heuristics,
                method_settings=group.method_settings,
                first=group.first,
                work_limit=part.work_limit,
            )
        )
    found = copy.copy(problem)
    found.methods = (*problem.methods, search)
    workload = Workload(presets=tuple(presets), suites=tuple(batches))
    found.workload = lambda: workload  # type: ignore[method-assign]
    return found


def _generator(problem: Problem, group: Group) -> Callable[..., Any]:
    if callable(group.generator):
        return partial(_made, group.generator, dict(group.settings))
    preset = find_preset(problem, group.generator)
    return partial(_made, preset.generator, {**preset.settings, **group.settings})


def _made(generator: Generator, settings: Mapping[str, Any], seed: int) -> Any:
    return generator(seed, **settings)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m oracles.cross", description=__doc__)
    parser.add_argument("--problem", choices=PARTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of instances")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results-cross"))
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    asked = parser.parse_args()
    problems = [with_search(all_problems()[name]) for name in asked.problem or PARTS]
    given = {"seed": asked.seed, "scale": asked.scale, "workers": asked.workers, "resume": asked.resume}
    run = bench([SUITE], out=asked.out, problems=problems, progress=sys.stderr, **given)
    print(run.text)
    return run.exit_status


if __name__ == "__main__":
    sys.exit(main())
