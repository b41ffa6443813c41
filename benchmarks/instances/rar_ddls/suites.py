"""The part of rar-ddls in every suite."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Generator, Measurement, Study


def _oracles() -> Mapping[str, Function]:
    from schedgap.benchmarks.studies.brute_force.rar_ddls import solve_brute_force

    return {"brute-force": solve_brute_force}


def _cp_reach() -> Study:
    from schedgap.benchmarks.studies.scale_rar_ddls import cp_reach

    return cp_reach


def _method_reach() -> Study:
    from schedgap.benchmarks.studies.scale_rar_ddls import method_reach

    return method_reach


def _literal_speedup() -> Study:
    from schedgap.benchmarks.studies.speed.rar_ddls import literal_speedup

    return literal_speedup


def _large_times() -> Study:
    from schedgap.benchmarks.studies.speed.rar_ddls import large_times

    return large_times


def _large_from_start() -> Study:
    from schedgap.benchmarks.studies.speed.rar_ddls import large_from_start

    return large_from_start


def _running_times() -> Study:
    from schedgap.benchmarks.studies.speed.rar_ddls import running_times

    return running_times


def _handoff_rows() -> Study:
    from schedgap.benchmarks.studies.engine_handoff import handoff_rows

    return handoff_rows


def _random_case() -> Generator:
    from schedgap.benchmarks.studies.brute_force.rar_ddls import random_case

    return random_case


_ENGINES = ("cbc", "highs", "cpsat")
_POLICIES = ("sjf-bco", "sjf-bco+", "ff", "ls", "rand", "lpt-colocate")
_BRUTE_FORCE = Method(
    "brute-force",
    "every schedule, slot by slot",
    Kind.EXACT,
    _oracles,
)

_WORK = 20.0
"""CP-SAT's deterministic time for one solve, far more than any instance of these suites takes."""

_BRIEF = 1.0
"""For `lns` at paper scale: about a minute and at most a hundred neighbourhoods."""

_ROOM = {"ample": True}
"""Horizons that cut off no heuristic: means would be over those that happen to end early."""

_QUICK = (
    Batch("quick", "paper", 2),
    Batch("quick", "paper", 2, group="paper with 10 servers", settings={"servers": 10}),
    Batch(
        "quick",
        "small",
        6,
        exact=("cp",),
        group="small with 12 jobs",
        settings={**_ROOM, "jobs": 12, "servers": 5},
        work_limit=_WORK,
    ),
    Batch("quick", "small", 4, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("cp",), settings=_ROOM, first=4, work_limit=_WORK),
    Batch("quick", "tiny", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "contended", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
)

_CROSS = tuple(
    Batch(
        "cross",
        _random_case,
        150,
        exact=("brute-force", "schedule-set", "cp", *_ENGINES),
        group=group,
        settings={"contended": contended},
        extra=(_BRUTE_FORCE,),
        work_limit=_WORK,
    )
    for group, contended in (("random", False), ("forced to contend", True))
)
_HARD = hard_numbers("rar-ddls", ("cp", *_ENGINES), _WORK)

_PAPER = (
    Batch("paper", "paper", 10, heuristics=_POLICIES, group="figure 4", series="Figure 4: policies"),
    Batch(
        "paper",
        "paper",
        5,
        heuristics=("sjf-bco",),
        group="figure 5",
        series="Figure 5: kappa from 1 to 32",
        axis="kappa",
        method_settings={"sjf-bco": tuple({"kappa": kappa} for kappa in range(1, 33))},
    ),
    *(
        Batch(
            "paper",
            "paper",
            5,
            heuristics=_POLICIES,
            group=f"figure 6, {servers} servers",
            series="Figure 6: 10 to 20 servers, T = 1500",
            axis="servers",
            settings={"servers": servers, "horizon": 1500},
        )
        for servers in range(10, 21, 2)
    ),
    Batch(
        "paper",
        "paper",
        5,
        heuristics=("sjf-bco",),
        group="figure 7",
        series="Figure 7: lambda",
        axis="lambda",
        method_settings={"sjf-bco": tuple({"lambda": value} for value in (1.0, 2.0, 4.0, 8.0))},
    ),
    Batch(
        "paper",
        "paper",
        5,
        exact=("lns",),
        heuristics=("lpt-colocate",),
        group="best known, 10 servers",
        settings={"servers": 10, "horizon": 1500},
        work_limit=_BRIEF,
    ),
)

_PROVEN = ("status", "objective", "bound", "contended_job_slots", "seconds", "load")
_SCALE = (
    Measurement(
        "scale",
        "cp-20x6",
        "rar-ddls: cp on 20 jobs x 6 servers with contention, 60 s on 2 threads",
        _cp_reach,
        timed=_PROVEN,
    ),
    Measurement(
        "scale",
        "cp-30x8",
        "rar-ddls: cp on 30 jobs x 8 servers with contention, 60 s on 2 threads",
        _cp_reach,
        settings={"jobs": 30, "servers": 8, "instances": 6},
        timed=_PROVEN,
    ),
    Measurement(
        "scale",
        "reach",
        "rar-ddls: every exact method on growing contended instances, 10 s each",
        _method_reach,
        timed=("proven", "seconds", "times_cp"),
    ),
    Measurement(
        "scale",
        "literal-speedup",
        "rar-ddls: SJF-BCO against its literal form, paper scale",
        _literal_speedup,
        timed=("fast_seconds", "literal_seconds", "times_faster", "load"),
    ),
    Measurement(
        "scale",
        "large",
        "rar-ddls: heuristics on 10,000 jobs and 10,000 GPUs",
        _large_times,
        timed=("seconds", "load"),
    ),
    Measurement(
        "scale",
        "large-from-start",
        "rar-ddls: SJF-BCO on 10,000 jobs and 10,000 GPUs, start-up included",
        _large_from_start,
        timed=("seconds", "load"),
    ),
    Measurement(
        "scale",
        "growth",
        "rar-ddls: seconds of SJF-BCO as jobs and GPUs grow together",
        _running_times,
        timed=("seconds", "exponent", "load"),
    ),
    Measurement(
        "scale",
        "handoff",
        "engines: a model from PuLP to HiGHS, PuLP's way and ours",
        _handoff_rows,
        timed=("build_seconds", "pulp_seconds", "ours_seconds", "times_faster"),
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_SCALE, *_PAPER)
"""Every batch and measurement."""
