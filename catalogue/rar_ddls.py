"""rar-ddls at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from schedgap.catalogue.method import ENGINES, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from schedgap.solvers.engines.declarative import Check  # it loads engines


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.rar_ddls.models.equations import build_equations
    from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp

    build = build_ilp if tighten else build_equations
    return build(PROBLEM.cast_instance(instance))


def _schedule_set(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.rar_ddls.models.reformulation import build_reformulation

    return build_reformulation(PROBLEM.cast_instance(instance), tighten=tighten)


def _changed(instance: Instance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    from schedgap.solvers.exact.rar_ddls.changed import solve_changed

    return solve_changed(PROBLEM.cast_instance(instance), changes, options, check)


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


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.rar_ddls.cp import solve_cp
    from schedgap.solvers.exact.rar_ddls.reformulated import solve_schedule_set, solve_theta

    return {"cp": solve_cp, "schedule-set": solve_schedule_set, "theta": solve_theta}


def _searches() -> Mapping[str, Function]:
    from schedgap.solvers.exact.rar_ddls.lns import solve_lns

    return {"lns": solve_lns}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


def _started_within(exact: Improve) -> Function:
    return PROBLEM.started_within_limits(exact)


def _improved(search: Improve) -> Function:
    return PROBLEM.best_start(search)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_search = methods_of(Kind.SEARCH, _searches, _improved)
_exact = methods_of(Kind.EXACT, _exacts, _started)


class RarDdls(FamilyProblem[RarDdlsInstance]):
    """Ring-all-reduce jobs under link contention, makespan."""

    id = "rar-ddls"
    title = "ring-all-reduce jobs under link contention, makespan"
    source = "paper 000 (SJF-BCO)"
    sense = MINIMISE
    objective_name = "makespan"
    unit = "slots"
    instance_class = RarDdlsInstance
    solution_class = RarDdlsSolution
    horizon_is_size: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {"mean_jct": "average JCT"}
    metrics_note = "in slots, every job being there in slot 1"
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "": {"reduce_speed": 1000.0},
        "network": {
            "inter_bandwidth": 1.0,
            "intra_bandwidth": 50.0,
            "contention_scale": 0.75,
            "contention_penalty": 0.2,
            "server_overhead": 0.0,
        },
        "jobs": {"gradient_size": 0.0, "batch_size": 1, "forward_time": 0.0, "backward_time": 0.1},
    }
    forms = (
        Form(
            "time-indexed", "GPUs, rings and rates in every slot", "paper 000, (1)-(9)", _time_indexed, changed=_changed
        ),
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
        _exact("cp", "staged CP-SAT: relaxation, avoidance, time-indexed"),
        *ENGINES,
        _exact(
            "schedule-set",
            "one of all joint schedules, tiny instances",
            "paper 000, (10) to (13)",
            started=_started_within,
        ),
        _exact(
            "theta",
            "least execution time of a GPU by bisection, tiny instances",
            "paper 000, (14) to (16)",
            started=_started_within,
        ),
        _search("lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "sjf-bco",
            "smallest job first with balanced contention and overhead, as published",
            "paper 000, Algorithms 1 to 3",
        ),
        _heuristic(
            "sjf-bco+",
            "sjf-bco repaired: the pass without a limit on loads is compared too",
            "ours, after paper 000",
            repairs="sjf-bco",
        ),
        _heuristic("ff", "first fit within theta", "paper 000, section 7"),
        _heuristic("ls", "list scheduling, least loaded GPUs", "paper 000, section 7"),
        _heuristic("rand", "random servers and GPUs, theta = T", "paper 000, section 7"),
        _heuristic("lpt-colocate", "longest first, backfilling, best-fit colocation"),
    )

    def parts(self) -> Parts[RarDdlsInstance, RarDdlsSolution]:
        from schedgap.formulations.rar_ddls.bounds import lower_bound
        from schedgap.formulations.rar_ddls.check import check
        from schedgap.formulations.rar_ddls.models.time_indexed import ilp_nonzeros, quick_solution

        return Parts(check, model_size=ilp_nonzeros, bound=lower_bound, quick=quick_solution)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.rar_ddls.guarantees import GUARANTEES

        return tuple(GUARANTEES)

    def bound_of_any_length(self, instance: Instance, proven: float | None) -> float | None:
        """Also from what is proven within the horizon, since the objective is the makespan.

        A schedule that ends by the horizon T has a makespan of at least `proven`, any other of at least T + 1: the
        smaller of both bounds all. Where nothing ends by T, T + 1 does, and the smaller of both is no more.
        """
        certified = super().bound_of_any_length(instance, proven)
        if proven is None:
            return certified
        within = min(proven, self.cast_instance(instance).horizon + 1.0)
        return within if certified is None else max(certified, within)


PROBLEM = RarDdls()
