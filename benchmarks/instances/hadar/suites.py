"""The part of hadar in every suite."""

from __future__ import annotations

from schedgap.catalogue.problem import Batch, Kind, Measurement, Method

_ENGINES = ("cbc", "highs", "cpsat")
_BRUTE_FORCE = Method(
    "brute-force",
    "every gang of every job, slot by slot",
    Kind.EXACT,
    "schedgap.benchmarks.studies.brute_force.hadar:solve_brute_force",
)

_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""

_QUICK = (
    Batch("quick", "tiny", 10, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch("quick", "contended", 4, exact=("colgen",), settings={"jobs": 5, "horizon": 6}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("colgen",), work_limit=_WORK),
    Batch("quick", "motivation", 1, exact=("colgen", *_ENGINES), work_limit=_WORK),
)

_CROSS = tuple(
    Batch(
        "cross",
        "schedgap.benchmarks.studies.brute_force.hadar:random_case",
        150,
        exact=("brute-force", "colgen", *_ENGINES),
        group=group,
        settings={"must_finish": must},
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for group, must in (("P2", False), ("P1", True))
)

_SPEED = "schedgap.benchmarks.studies.speed.hadar"
_SCALE = (
    Measurement(
        "scale",
        "hadar-reach",
        "hadar: how far each exact method gets in 60 s, and the ratio to the plain time-indexed program",
        f"{_SPEED}:reach",
        timed=("proven", "seconds", "times_faster", "load"),
    ),
    Measurement(
        "scale",
        "hadar-proofs",
        "hadar: colgen on 10 instances of 16 jobs x 20 slots on 6 devices, 60 s each",
        f"{_SPEED}:reach",
        settings={"instances": 10, "sizes": ((16, 20),), "methods": ("colgen",)},
        timed=("proven", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "hadar-rounds-growth",
        "hadar: seconds of one scheduling round, 32 to 2,048 waiting jobs (Figure 5)",
        f"{_SPEED}:round_times",
        timed=("seconds", "exponent", "load"),
        figure="schedgap.benchmarks.studies.hadar_growth_figure:round_time_figure",
    ),
    Measurement(
        "scale",
        "hadar-block-bound",
        "hadar: the block-price bound on the paper's workload, iteration by iteration",
        f"{_SPEED}:bound_history",
        timed=("seconds", "load"),
    ),
)

_PAPER = (
    Batch(
        "paper",
        "trace",
        1,
        heuristics=("hadar-online", "hadar-rounds", "hadare", "gavel", "tiresias", "yarn-cs"),
        group="section IV: 480 jobs, 60 devices, 400 rounds",
        method_settings={
            "gavel": ({"policy": "max-min"}, {"policy": "max-sum"}, {"policy": "makespan"}),
            "hadar-rounds": ({}, {"payoff": "literal"}, {"preempt": False}, {"restart_delay": 10.0}),
            "yarn-cs": ({}, {"backfill": True}),
        },
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_SCALE, *_PAPER)
"""Every batch and measurement."""
