"""The part of comm-contention in every suite."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Measurement, Study, TableFigure


def _oracles() -> Mapping[str, Function]:
    from schedgap.benchmarks.studies.brute_force.comm_contention import solve_brute_force

    return {"brute-force": solve_brute_force}


def _trap_ratios() -> Study:
    from schedgap.benchmarks.studies.speed.comm_contention import trap_ratios

    return trap_ratios


def _proofs() -> Study:
    from schedgap.benchmarks.studies.speed.comm_contention import proofs

    return proofs


def _growth() -> Study:
    from schedgap.benchmarks.studies.speed.comm_contention import growth

    return growth


def _trap_figure() -> TableFigure:
    from schedgap.benchmarks.figures.comm_contention import trap_figure

    return trap_figure


_BRUTE_FORCE = Method(
    "brute-force",
    "every order of events, a linear program for each",
    Kind.EXACT,
    _oracles,
)
_WORK = 1000.0
"""Thousands of nodes: more than any instance of these suites takes."""

_QUICK = (
    Batch("quick", "tiny", 6, exact=("bb", "highs", "cbc"), settings={"tasks": 3}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("bb",), settings={"tasks": 7}, work_limit=_WORK),
    Batch("quick", "bursts", 2),
)

_CROSS = tuple(
    Batch(
        "cross",
        "tiny",
        count,
        exact=("brute-force", "bb", "highs", "cbc"),
        heuristics=None if n < 4 else (),
        group=f"{n} tasks",
        settings={"tasks": n},
        first=1000 * n,
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for n, count in ((2, 100), (3, 200), (4, 20))
)
_HARD = hard_numbers("comm-contention", ("bb", "highs", "cbc"), _WORK)

_PAPER: tuple[Batch | Measurement, ...] = (
    *(
        Batch(
            "paper",
            "adadual-trap",
            1,
            group=f"AdaDUAL trap, n = {n}",
            series="AdaDUAL without a constant ratio",
            axis="tasks",
            settings={"tasks": n},
        )
        for n in (5, 10, 20, 50, 100)
    ),
    *(
        Batch(
            "paper",
            "small",
            10,
            exact=("bb",),
            group=f"small, eta = {eta:g}",
            series="Policies over the contention penalty",
            axis="eta",
            settings={"eta": eta, "tasks": 7},
            work_limit=_WORK,
        )
        for eta in (0.0, 0.1, 0.3, 0.5, 1.0)
    ),
    Batch("paper", "bursts", 10),
    Measurement(
        "paper",
        "contention-trap",
        "comm-contention: AdaDUAL's ratio on its trap is at least this",
        _trap_ratios,
        figure=_trap_figure,
    ),
)

_SCALE = (
    Measurement(
        "scale",
        "contention-proofs",
        "comm-contention: bb on 8 tasks, 10 seeds, 60 s each",
        _proofs,
        timed=("status", "objective", "bound", "nodes", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "contention-growth",
        "comm-contention: bb and the program over event positions on growing instances",
        _growth,
        timed=("proven", "seconds", "load"),
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_SCALE, *_PAPER)
"""Every batch and measurement."""
