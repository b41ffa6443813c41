"""The part of ddljs in every suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Generator, Measurement


def _oracles() -> Mapping[str, Function]:
    from schedgap.benchmarks.studies.brute_force.ddljs import solve_brute_force

    return {"brute-force": solve_brute_force}


def _tiny() -> Generator:
    from schedgap.benchmarks.instances.ddljs.random import tiny

    return tiny


_ENGINES = ("cpsat", "highs", "cbc")
_BRUTE_FORCE = Method(
    "brute-force",
    "every ring, every set of rings, every total",
    Kind.EXACT,
    _oracles,
)

_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""

_QUICK = (
    Batch("quick", "tiny", 8, exact=_ENGINES, work_limit=_WORK),
    Batch("quick", "small", 3, exact=("cpsat",), settings={"horizon": 4}, work_limit=_WORK),
)

_CROSS = tuple(
    Batch(
        "cross",
        _tiny,
        count,
        exact=("brute-force", *_ENGINES),
        heuristics=("gadget",),
        group=f"tiny, {group}",
        settings=settings,
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for group, count, settings in (
        ("any utility", 160, {}),
        ("concave", 80, {"utilities": "concave"}),
        ("sigmoid", 80, {"utilities": "sigmoid"}),
    )
)
_HARD = hard_numbers("ddljs", _ENGINES, _WORK)

_NOT_PRINTED = ("gadget", "fifo", "drf", "las")
_FILLING: Mapping[str, tuple[Mapping[str, Any], ...]] = {"gadget": ({}, {"fill": False})}
"""Algorithm 2 inside takes two minutes on each of these: it is compared, as published too, in Figure 7's runs."""

_PAPER = (
    *(
        Batch(
            "paper",
            "paper",
            2,
            group=f"section VI, {jobs} jobs",
            heuristics=_NOT_PRINTED,
            settings={"jobs": jobs},
            method_settings=_FILLING,
            series="ddljs-figure-4",
            axis="jobs",
        )
        for jobs in (100, 200, 400)
    ),
    *(
        Batch(
            "paper",
            "figure-5",
            1,
            group=f"Figure 5, GPUs x {factor:g}",
            heuristics=_NOT_PRINTED,
            settings={"gpu_factor": factor},
            method_settings={"gadget": ({"inner": "greedy"},)},
            series="ddljs-figure-5",
            axis="gpu_factor",
        )
        for factor in (0.25, 0.5, 1.0)
    ),
    *(
        Batch(
            "paper",
            "figure-6",
            1,
            group=f"Figure 6, bandwidth x {factor:g}",
            heuristics=_NOT_PRINTED,
            settings={"bandwidth_factor": factor},
            method_settings={"gadget": ({"inner": "greedy"},)},
            series="ddljs-figure-6",
            axis="bandwidth_factor",
        )
        for factor in (0.02, 0.05, 0.2)
    ),
    Batch(
        "paper",
        "figure-7",
        2,
        heuristics=("gadget-printed", "gadget"),
        group="Figure 7, small cluster",
        method_settings={"gadget": ({}, {"inner": "lp-rs-mde"}, {"inner": "lp-rs-mde-mdk"}, {"inner": "greedy"})},
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_PAPER)
"""Every batch and measurement."""
