"""rar-ddls at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance, RarDdlsSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.rar_ddls.cp import solve_cp
    from schedgap.solvers.exact.rar_ddls.reformulated import solve_schedule_set, solve_theta

    return {
        "cp": PROBLEM.started(solve_cp),
        **{
            name: PROBLEM.started_within_limits(model)
            for name, model in (("schedule-set", solve_schedule_set), ("theta", solve_theta))
        },
    }


def _search() -> Mapping[str, Function]:
    from schedgap.solvers.exact.rar_ddls.lns import solve_lns

    return {"lns": PROBLEM.best_start(solve_lns)}


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    if tighten:
        from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp

        return build_ilp(PROBLEM.cast_instance(instance))
    from schedgap.formulations.rar_ddls.models.equations import build_equations

    return build_equations(PROBLEM.cast_instance(instance))


def _schedule_set(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.rar_ddls.models.reformulation import build_reformulation

    return build_reformulation(PROBLEM.cast_instance(instance), tighten=tighten)


def _theta(
    instance: Instance,
    tighten: bool,
    *,
    theta: Annotated[float | None, Field(gt=0, description="limit of (16), slots; the horizon if not given")] = None,
    rho_hat: Annotated[
        str | Sequence[float] | Mapping[str, float],
        Field(description="durations: realised, best, worst, or slots of each job, 3,4.5"),
    ] = "realised",
    u: Annotated[float, Field(ge=1, description="overestimation: durations count by 1/u in (16)")] = 1.0,
) -> DeclarativeModel:
    from schedgap.formulations.rar_ddls.models.reformulation import build_theta

    del tighten  # the program has no objective that could rule a schedule out
    own = PROBLEM.cast_instance(instance)
    estimates = None if rho_hat == "realised" else rho_hat
    return build_theta(own, exact(own.horizon if theta is None else theta), rho_hat=estimates, u=u)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.rar_ddls.baselines import ff, ls, rand
    from schedgap.heuristics.rar_ddls.lpt_colocate import lpt_colocate
    from schedgap.heuristics.rar_ddls.sjf_bco import sjf_bco, sjf_bco_plus

    return {
        "sjf-bco": sjf_bco,
        "sjf-bco+": sjf_bco_plus,
        "ff": ff,
        "ls": ls,
        "rand": rand,
        "lpt-colocate": lpt_colocate,
    }


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class RarDdls(ProblemOf[RarDdlsInstance]):
    """Ring-all-reduce jobs under link contention, makespan."""

    id = "rar-ddls"
    title = "ring-all-reduce jobs under link contention, makespan"
    source = "paper 000 (SJF-BCO)"
    sense = MINIMISE
    objective_name = "makespan"
    unit = "slots"
    instance_class = RarDdlsInstance
    solution_class = RarDdlsSolution
    metrics: ClassVar[Mapping[str, str]] = {"mean_jct": "average JCT"}
    forms = (
        Form("time-indexed", "GPUs, rings and rates in every slot", "paper 000, (1)-(9)", _time_indexed),
        Form("schedule-set", "one of all joint schedules, tiny instances", "paper 000, (10)-(13)", _schedule_set),
        Form(
            "theta",
            "no GPU busy for more than theta; bisection: method theta",
            "paper 000, (14)-(16)",
            _theta,
            tightens=False,
        ),
    )
    methods = (
        _exact_method("cp", "staged CP-SAT: relaxation, avoidance, time-indexed"),
        *ENGINES,
        _exact_method("schedule-set", "one of all joint schedules, tiny instances", source="paper 000, (10) to (13)"),
        _exact_method(
            "theta", "least execution time of a GPU by bisection, tiny instances", source="paper 000, (14) to (16)"
        ),
        Method("lns", "large neighbourhood search from the best heuristic, until a limit", Kind.SEARCH, _search),
        _heuristic(
            "sjf-bco",
            "smallest job first with balanced contention and overhead, as published",
            source="paper 000, Algorithms 1 to 3",
        ),
        _heuristic(
            "sjf-bco+",
            "sjf-bco repaired: the pass without a limit on loads is compared too",
            source="ours, after paper 000",
            repairs="sjf-bco",
        ),
        _heuristic("ff", "first fit within theta", source="paper 000, section 7"),
        _heuristic("ls", "list scheduling, least loaded GPUs", source="paper 000, section 7"),
        _heuristic("rand", "random servers and GPUs, theta = T", source="paper 000, section 7"),
        _heuristic("lpt-colocate", "longest first, backfilling, best-fit colocation"),
    )

    parts = (
        "schedgap.formulations.rar_ddls.check",
        "schedgap.formulations.rar_ddls.models.time_indexed",
        "schedgap.formulations.rar_ddls.bounds",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.rar_ddls.check import check

        return check(self.cast_instance(instance), RarDdlsSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.rar_ddls.models.time_indexed import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.formulations.rar_ddls.bounds import lower_bound

        return lower_bound(self.cast_instance(instance))

    def quick(self, instance: Instance) -> Solution | None:
        from schedgap.formulations.rar_ddls.models.time_indexed import quick_solution

        return quick_solution(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.rar_ddls.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = RarDdls()
