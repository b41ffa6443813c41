"""hadar at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import Form
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import HadarSolution


def _check_forked() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.hadar.check_forked import check_forked
    from schedgap.formulations.hadar.solution import ForkedSolution

    return parsed(check_forked, ForkedSolution)


_MODELS = "schedgap.formulations.hadar.models"
_heuristic = methods_of("schedgap.heuristics.hadar", Kind.HEURISTIC)
_search = methods_of("schedgap.solvers.exact.hadar", Kind.SEARCH, f"{__name__}:PROBLEM.best_start")
_exact = methods_of("schedgap.solvers.exact.hadar", Kind.EXACT, f"{__name__}:PROBLEM.started")


class Hadar(FamilyProblem[HadarInstance]):
    """Heterogeneous gangs that pause and move between slots, sum of utilities."""

    id = "hadar"
    title = "gangs of mixed GPU types that pause and move, sum of utilities"
    source = "paper 002 (Hadar, HadarE)"
    sense = MAXIMISE
    objective_name = "total utility"
    unit = "utility"
    instance_class = HadarInstance
    solution_class = HadarSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "jobs_finished": "finished",
        "mean_jct": "mean JCT",
        "median_jct": "median JCT",
        "makespan": "makespan",
        "utilisation": "utilisation",
    }
    metrics_note = (
        "times are in the unit of slot_length (seconds, of logs), finished counts jobs;"
        " mean JCT, median JCT and makespan are known where every job finished"
    )
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "": {"slot_length": 1.0},
        "jobs": {"arrival": 1, "epochs": 1, "utility": {"kind": "effective-throughput", "weight": 1.0}},
    }
    forms = (
        Form(
            "time-indexed",
            "devices, rates and completion in every slot",
            "paper 002, (1)-(1e)",
            f"{_MODELS}:build_ilp",
            plain="schedgap.formulations.hadar.printed_model:build_equations",
            changed="schedgap.solvers.exact.hadar.changed:solve_changed",
        ),
        Form(
            "P2",
            "one of all schedules for every job, tiny instances",
            "paper 002, (2)-(2c)",
            "schedgap.formulations.hadar.schedule_models:build_p2",
            tightens=False,
        ),
        Form(
            "P3",
            "its dual: prices and payoffs",
            "paper 002, (3), (3a)",
            "schedgap.formulations.hadar.schedule_models:build_p3",
            tightens=False,
        ),
    )
    methods = (
        _exact(
            "colgen",
            "colgen:solve_colgen",
            "column generation over whole-horizon schedules, branch and price",
            "paper 002, P2, P3, eqs. (4) and (8)",
        ),
        *ENGINES,
        _exact(
            "p2",
            "duality:solve_p2",
            "one of all schedules for every job, with prices, payoffs and duality; tiny instances",
            "paper 002, (2) to (3a)",
            started="",
        ),
        _search("lns", "lns:solve_lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "hadar-online",
            "online:hadar_online",
            "primal-dual admission on arrival, exponential prices, as published",
            "paper 002, eqs. (4) to (8), Theorem 2",
        ),
        _heuristic(
            "hadar-online+",
            "online:hadar_online_plus",
            "hadar-online repaired: prices with which a theorem holds",
            "ours, after paper 002",
            repairs="hadar-online",
        ),
        _heuristic(
            "hadar-rounds",
            "rounds:hadar_rounds",
            "round by round, by payoff per round needed, our reading; payoff=literal as printed",
            "paper 002, Algorithms 1 and 2",
            printed={"payoff": "literal"},
        ),
        _heuristic(
            "hadare",
            "hadare:hadare",
            "jobs forked into copies on separate nodes",
            "paper 002, section V",
            outside_model=True,
            checker=_check_forked,
            solution_key="rounds",
            printed={"throughput": "estimated"},
        ),
        _heuristic(
            "gavel",
            "gavel:gavel",
            "time fractions from a linear program, rounds by priority",
            "paper 002, section II-A",
        ),
        _heuristic("tiresias", "baselines:tiresias", "two-queue least attained service", "paper 002, section IV"),
        _heuristic("yarn-cs", "baselines:yarn_cs", "first in, first out, not preempted", "paper 002, section IV"),
        _heuristic(
            "srpt", "baselines:srpt", "shortest remaining time first on the fastest types with room, preemptive"
        ),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.hadar.check:check",
        "model_size": "schedgap.formulations.hadar.models:ilp_nonzeros",
        "bound": "schedgap.solvers.exact.hadar.bound:upper_bound",
        "warm_up": "schedgap.heuristics.hadar.gavel:warm_up",
        "guarantees": "schedgap.heuristics.hadar.guarantees:GUARANTEES",
    }


PROBLEM = Hadar()
