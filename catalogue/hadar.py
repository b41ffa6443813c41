"""hadar at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance, HadarSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.hadar.colgen import solve_colgen
    from schedgap.solvers.exact.hadar.duality import solve_p2

    return {"colgen": PROBLEM.started(solve_colgen), "p2": solve_p2}


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.hadar.baselines import gavel, srpt, tiresias, yarn_cs
    from schedgap.heuristics.hadar.hadare import hadare
    from schedgap.heuristics.hadar.online import hadar_online, hadar_online_plus
    from schedgap.heuristics.hadar.rounds import hadar_rounds

    return {
        "hadar-online": hadar_online,
        "hadar-online+": hadar_online_plus,
        "hadar-rounds": hadar_rounds,
        "hadare": hadare,
        "gavel": gavel,
        "tiresias": tiresias,
        "yarn-cs": yarn_cs,
        "srpt": srpt,
    }


def _search() -> Mapping[str, Function]:
    from schedgap.solvers.exact.hadar.lns import solve_lns

    return {"lns": PROBLEM.best_start(solve_lns)}


def _check_forked() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.hadar.check import check_forked
    from schedgap.formulations.hadar.instance import ForkedSolution

    return parsed(check_forked, ForkedSolution)


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    if tighten:
        from schedgap.formulations.hadar.models.time_indexed import build_ilp

        return build_ilp(PROBLEM.cast_instance(instance))
    from schedgap.formulations.hadar.models.equations import build_equations

    return build_equations(PROBLEM.cast_instance(instance))


def _p2(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.hadar.models.schedules import build_p2

    del tighten
    return build_p2(PROBLEM.cast_instance(instance))


def _p3(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.hadar.models.schedules import build_p3

    del tighten
    return build_p3(PROBLEM.cast_instance(instance))


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class Hadar(ProblemOf[HadarInstance]):
    """Heterogeneous gangs that pause and move between slots, sum of utilities."""

    id = "hadar"
    title = "heterogeneous gangs that pause and move between slots, sum of utilities"
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
    metrics_note = "mean JCT, median JCT and makespan are known where every job finished"
    forms = (
        Form("time-indexed", "devices, rates and completion in every slot", "paper 002, (1)-(1e)", _time_indexed),
        Form("P2", "one of all schedules for every job, tiny instances", "paper 002, (2)-(2c)", _p2, tightens=False),
        Form("P3", "its dual: prices and payoffs", "paper 002, (3), (3a)", _p3, tightens=False),
    )
    methods = (
        _exact_method(
            "colgen",
            "column generation over whole-horizon schedules, branch and price",
            source="paper 002, P2, P3, eqs. (4) and (8)",
        ),
        *ENGINES,
        _exact_method(
            "p2",
            "one of all schedules for every job, with prices, payoffs and duality; tiny instances",
            source="paper 002, (2) to (3a)",
        ),
        Method("lns", "large neighbourhood search from the best heuristic, until a limit", Kind.SEARCH, _search),
        _heuristic(
            "hadar-online",
            "primal-dual admission on arrival, exponential prices, as published",
            source="paper 002, eqs. (4) to (8), Theorem 2",
        ),
        _heuristic(
            "hadar-online+",
            "hadar-online repaired: prices with which a theorem holds",
            source="ours, after paper 002",
            repairs="hadar-online",
        ),
        _heuristic(
            "hadar-rounds",
            "round by round, by payoff per round needed, our reading; payoff=literal as printed",
            source="paper 002, Algorithms 1 and 2",
            printed={"payoff": "literal"},
        ),
        _heuristic(
            "hadare",
            "jobs forked into copies on separate nodes",
            source="paper 002, section V",
            outside_model=True,
            checker=_check_forked,
            solution_key="rounds",
            printed={"throughput": "estimated"},
        ),
        _heuristic(
            "gavel", "time fractions from a linear program, rounds by priority", source="paper 002, section II-A"
        ),
        _heuristic("tiresias", "two-queue least attained service", source="paper 002, section IV"),
        _heuristic("yarn-cs", "first in, first out, not preempted", source="paper 002, section IV"),
        _heuristic("srpt", "shortest remaining time first on the fastest types with room, preemptive", source="ours"),
    )

    parts = (
        "schedgap.formulations.hadar.check",
        "schedgap.formulations.hadar.models.time_indexed",
        "schedgap.solvers.exact.hadar.bound",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.hadar.check import check

        return check(self.cast_instance(instance), HadarSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.hadar.models.time_indexed import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.solvers.exact.hadar.bound import upper_bound

        return upper_bound(self.cast_instance(instance))

    def warm_up(self, instance: Instance) -> None:
        from schedgap.solvers.exact.hadar.bound import warm_up

        warm_up(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.hadar.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = Hadar()
