"""The part of g-vne in every suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Generator, Measurement, Study


def _oracles() -> Mapping[str, Function]:
    from schedgap.benchmarks.studies.brute_force.g_vne import solve_brute_force

    return {"brute-force": solve_brute_force}


def _bounds() -> Study:
    from schedgap.benchmarks.studies.speed.g_vne import bounds

    return bounds


def _augmented() -> Study:
    from schedgap.benchmarks.studies.speed.g_vne import augmented

    return augmented


def _trees() -> Study:
    from schedgap.benchmarks.studies.speed.g_vne import trees

    return trees


def _graphs() -> Study:
    from schedgap.benchmarks.studies.speed.g_vne import graphs

    return graphs


def _random_case() -> Generator:
    from schedgap.benchmarks.studies.brute_force.g_vne import random_case

    return random_case


_ENGINES = ("cbc", "highs", "cpsat")
_BRUTE_FORCE = Method(
    "brute-force",
    "every order of hosts, every simple route, every choice of rings",
    Kind.EXACT,
    _oracles,
)

_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""

_VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "lp-rs-mde": (
        {},
        {"lp": "augmented"},
        {"variant": "mdk"},
        {"variant": "mdk", "ring_sizes": "free"},
    )
}
"""Algorithm 2 repaired, with the printed program, and what is left out of it; as published it is another method."""

_QUICK = (
    Batch("quick", "tiny", 5, exact=("colgen", *_ENGINES), method_settings=_VARIANTS, work_limit=_WORK),
    Batch(
        "quick",
        "small",
        3,
        exact=("colgen",),
        method_settings=_VARIANTS,
        settings={"servers": 5, "jobs": 4},
        work_limit=_WORK,
    ),
)

_CROSS = tuple(
    Batch(
        "cross",
        _random_case,
        80,
        exact=("brute-force", "colgen", *_ENGINES),
        group=f"{shape}, {'two resources' if memory else 'one resource'}",
        method_settings={"lp-rs-mde": ({}, {"variant": "mdk", "ring_sizes": "free"})},
        settings={"shape": shape, "memory": memory},
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for shape in ("tree", "general")
    for memory in (False, True)
)
_HARD = hard_numbers("g-vne", ("colgen", *_ENGINES), _WORK)

_BOUNDS = (
    Measurement(
        "cross",
        "g-vne-bounds",
        "g-vne: ratio of plain, augmented and capped LP to the optimum",
        _bounds,
    ),
)
_SCALE = (
    Measurement(
        "scale",
        "g-vne-augmented",
        "g-vne: the augmented LP by columns and as arc flows, 20 nodes and 10 jobs",
        _augmented,
        settings={"instances": 3},
        timed=("seconds_columns", "seconds_flows", "times_faster", "load"),
    ),
    Measurement(
        "scale",
        "g-vne-trees",
        "g-vne: colgen on rack trees of 400 servers and 200 jobs, to a gap of 1e-4",
        _trees,
        timed=("status", "objective", "bound", "gap", "columns", "nodes", "lp_seconds", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "g-vne-graphs",
        "g-vne: colgen on random graphs of 50 servers and 20 jobs",
        _graphs,
        timed=("status", "objective", "bound", "gap", "columns", "nodes", "lp_seconds", "seconds", "load"),
    ),
)

_PAPER = tuple(
    Batch(
        "paper",
        "racks",
        3,
        exact=("colgen",),
        group=f"figure 7, {jobs} jobs, links / {tightness:g}",
        settings={"jobs": jobs, "tightness": tightness},
        method_settings={**_VARIANTS, "greedy": ({},)},
        series=f"Figure 7: one slot, links / {tightness:g}",
        axis="jobs",
        work_limit=1.0,
    )
    for tightness in (1.0, 20.0)
    for jobs in (50, 100, 150, 200)
)
"""Figure 7 compares one slot with its optimum; the paper's links hardly ever bind, so narrower ones are beside them."""

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_BOUNDS, *_SCALE, *_PAPER)
"""Every batch and measurement."""
