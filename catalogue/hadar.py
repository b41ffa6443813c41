"""hadar at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from schedgap.solvers.engines.declarative import Check  # it loads engines


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.hadar.models import build_ilp
    from schedgap.formulations.hadar.printed_model import build_equations

    build = build_ilp if tighten else build_equations
    return build(PROBLEM.cast_instance(instance))


def _p2(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.hadar.schedule_models import build_p2

    del tighten
    return build_p2(PROBLEM.cast_instance(instance))


def _p3(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.hadar.schedule_models import build_p3

    del tighten
    return build_p3(PROBLEM.cast_instance(instance))


def _changed(instance: Instance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    from schedgap.solvers.exact.hadar.changed import solve_changed

    return solve_changed(PROBLEM.cast_instance(instance), changes, options, check)


def _check_forked() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.hadar.check_forked import check_forked
    from schedgap.formulations.hadar.solution import ForkedSolution

    return parsed(check_forked, ForkedSolution)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.hadar.baselines import srpt, tiresias, yarn_cs
    from schedgap.heuristics.hadar.gavel import gavel
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


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.hadar.colgen import solve_colgen
    from schedgap.solvers.exact.hadar.duality import solve_p2

    return {"colgen": solve_colgen, "p2": solve_p2}


def _searches() -> Mapping[str, Function]:
    from schedgap.solvers.exact.hadar.lns import solve_lns

    return {"lns": solve_lns}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


def _improved(search: Improve) -> Function:
    return PROBLEM.best_start(search)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_search = methods_of(Kind.SEARCH, _searches, _improved)
_exact = methods_of(Kind.EXACT, _exacts, _started)


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
            _time_indexed,
            changed=_changed,
        ),
        Form("P2", "one of all schedules for every job, tiny instances", "paper 002, (2)-(2c)", _p2, tightens=False),
        Form("P3", "its dual: prices and payoffs", "paper 002, (3), (3a)", _p3, tightens=False),
    )
    methods = (
        _exact(
            "colgen",
            "column generation over whole-horizon schedules, branch and price",
            "paper 002, P2, P3, eqs. (4) and (8)",
        ),
        *ENGINES,
        _exact(
            "p2",
            "one of all schedules for every job, with prices, payoffs and duality; tiny instances",
            "paper 002, (2) to (3a)",
            started=None,
        ),
        _search("lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "hadar-online",
            "primal-dual admission on arrival, exponential prices, as published",
            "paper 002, eqs. (4) to (8), Theorem 2",
        ),
        _heuristic(
            "hadar-online+",
            "hadar-online repaired: prices with which a theorem holds",
            "ours, after paper 002",
            repairs="hadar-online",
        ),
        _heuristic(
            "hadar-rounds",
            "round by round, by payoff per round needed, our reading; payoff=literal as printed",
            "paper 002, Algorithms 1 and 2",
            printed={"payoff": "literal"},
        ),
        _heuristic(
            "hadare",
            "jobs forked into copies on separate nodes",
            "paper 002, section V",
            outside_model=True,
            checker=_check_forked,
            solution_key="rounds",
            printed={"throughput": "estimated"},
        ),
        _heuristic("gavel", "time fractions from a linear program, rounds by priority", "paper 002, section II-A"),
        _heuristic("tiresias", "two-queue least attained service", "paper 002, section IV"),
        _heuristic("yarn-cs", "first in, first out, not preempted", "paper 002, section IV"),
        _heuristic("srpt", "shortest remaining time first on the fastest types with room, preemptive"),
    )

    def parts(self) -> Parts[HadarInstance, HadarSolution]:
        from schedgap.formulations.hadar.check import check
        from schedgap.formulations.hadar.models import ilp_nonzeros
        from schedgap.heuristics.hadar.gavel import warm_up
        from schedgap.solvers.exact.hadar.bound import upper_bound

        return Parts(check, model_size=ilp_nonzeros, bound=upper_bound, warm_up=warm_up)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.hadar.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = Hadar()
