"""The part of comm-contention in every suite."""

from __future__ import annotations

from schedgap.catalogue.problem import Batch, Kind, Measurement, Method

_BRUTE_FORCE = Method(
    "brute-force",
    "every order of events, a linear program for each",
    Kind.EXACT,
    "schedgap.benchmarks.studies.brute_force.comm_contention:solve_brute_force",
)
_SPEED = "schedgap.benchmarks.studies.speed.comm_contention"
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
        f"{_SPEED}:trap_ratios",
        figure="schedgap.benchmarks.figures.comm_contention:trap_figure",
    ),
)

_SCALE = (
    Measurement(
        "scale",
        "contention-proofs",
        "comm-contention: bb on 8 tasks, 10 seeds, 60 s each",
        f"{_SPEED}:proofs",
        timed=("status", "objective", "bound", "nodes", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "contention-growth",
        "comm-contention: bb and the program over event positions on growing instances",
        f"{_SPEED}:growth",
        timed=("proven", "seconds", "load"),
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_SCALE, *_PAPER)
"""Every batch and measurement."""
