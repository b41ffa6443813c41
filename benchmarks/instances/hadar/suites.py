"""The part of hadar in every suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Generator, Measurement, Study, TableFigure


def _oracles() -> Mapping[str, Function]:
    from schedgap.benchmarks.studies.brute_force.hadar import solve_brute_force

    return {"brute-force": solve_brute_force}


def _reach() -> Study:
    from schedgap.benchmarks.studies.speed.hadar import reach

    return reach


def _round_times() -> Study:
    from schedgap.benchmarks.studies.speed.hadar import round_times

    return round_times


def _bound_history() -> Study:
    from schedgap.benchmarks.studies.speed.hadar import bound_history

    return bound_history


def _random_case() -> Generator:
    from schedgap.benchmarks.studies.brute_force.hadar import random_case

    return random_case


def _round_time_figure() -> TableFigure:
    from schedgap.benchmarks.studies.hadar_growth_figure import round_time_figure

    return round_time_figure


_ENGINES = ("cbc", "highs", "cpsat")
_BRUTE_FORCE = Method(
    "brute-force",
    "every gang of every job, slot by slot",
    Kind.EXACT,
    _oracles,
)

_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""

_PRINTED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "hadar-online": ({},),
    "hadar-rounds": ({"payoff": "literal"},),
}
"""What :attr:`~schedgap.catalogue.method.Method.printed` says of them, a test keeps it so."""
_QUICK = (
    Batch("quick", "tiny", 10, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch("quick", "contended", 4, exact=("colgen",), settings={"jobs": 5, "horizon": 6}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("colgen",), work_limit=_WORK),
    Batch("quick", "motivation", 1, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch(  # two of the four are inside the paper's assumptions: Theorem 2 is judged as printed
        "quick",
        "lowhigh",
        4,
        exact=("colgen",),
        heuristics=tuple(_PRINTED),
        group="lowhigh, printed settings",
        settings={"gpus": 8, "horizon": 3},
        method_settings=_PRINTED,
        work_limit=_WORK,
    ),
)

_CROSS = tuple(
    Batch(
        "cross",
        _random_case,
        150,
        exact=("brute-force", "colgen", *_ENGINES),
        group=group,
        settings={"must_finish": must},
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for group, must in (("P2", False), ("P1", True))
)
_HARD = hard_numbers("hadar", ("colgen", *_ENGINES), _WORK)

_SCALE = (
    Measurement(
        "scale",
        "hadar-reach",
        "hadar: how far each exact method gets in 60 s, and the ratio to the plain time-indexed program",
        _reach,
        timed=("proven", "seconds", "times_faster", "load"),
    ),
    Measurement(
        "scale",
        "hadar-proofs",
        "hadar: colgen on 10 instances of 16 jobs x 20 slots on 6 devices, 60 s each",
        _reach,
        settings={"instances": 10, "sizes": ((16, 20),), "methods": ("colgen",)},
        timed=("proven", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "hadar-rounds-growth",
        "hadar: seconds of one scheduling round, 32 to 2,048 waiting jobs (Figure 5)",
        _round_times,
        timed=("seconds", "exponent", "load"),
        figure=_round_time_figure,
    ),
    Measurement(
        "scale",
        "hadar-block-bound",
        "hadar: the block-price bound on the paper's workload, iteration by iteration",
        _bound_history,
        timed=("seconds", "load"),
    ),
)

_PAPER = (
    Batch(
        "paper",
        "trace",
        1,
        heuristics=("hadar-online", "hadar-online+", "hadar-rounds", "hadare", "gavel", "tiresias", "yarn-cs"),
        group="section IV: 480 jobs, 60 devices, 400 rounds",
        method_settings={
            "gavel": ({"policy": "max-min"}, {"policy": "max-sum"}, {"policy": "makespan"}),
            "hadar-rounds": ({}, {"payoff": "literal"}, {"preempt": False}, {"restart_delay": 10.0}),
            "yarn-cs": ({}, {"backfill": True}),
        },
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_SCALE, *_PAPER)
"""Every batch and measurement."""
