"""rar-ddls at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from schedgap.catalogue.method import ENGINES, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution


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


_WITHIN = f"{__name__}:PROBLEM.started_within_limits"
_MODELS = "schedgap.formulations.rar_ddls.models"
_heuristic = methods_of("schedgap.heuristics.rar_ddls", Kind.HEURISTIC)
_search = methods_of("schedgap.solvers.exact.rar_ddls", Kind.SEARCH, f"{__name__}:PROBLEM.best_start")
_exact = methods_of("schedgap.solvers.exact.rar_ddls", Kind.EXACT, f"{__name__}:PROBLEM.started")


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
            "time-indexed",
            "GPUs, rings and rates in every slot",
            "paper 000, (1)-(9)",
            f"{_MODELS}.time_indexed:build_ilp",
            plain=f"{_MODELS}.equations:build_equations",
            changed="schedgap.solvers.exact.rar_ddls.changed:solve_changed",
        ),
        Form(
            "schedule-set",
            "one of all joint schedules, tiny instances",
            "paper 000, (10)-(13)",
            f"{_MODELS}.reformulation:build_reformulation",
        ),
        Form(
            "theta",
            "no GPU busy for more than theta; bisection: method theta",
            "paper 000, (14)-(16)",
            _theta,
            tightens=False,
        ),
    )
    methods = (
        _exact("cp", "cp:solve_cp", "staged CP-SAT: relaxation, avoidance, time-indexed"),
        *ENGINES,
        _exact(
            "schedule-set",
            "reformulated:solve_schedule_set",
            "one of all joint schedules, tiny instances",
            "paper 000, (10) to (13)",
            started=_WITHIN,
        ),
        _exact(
            "theta",
            "reformulated:solve_theta",
            "least execution time of a GPU by bisection, tiny instances",
            "paper 000, (14) to (16)",
            started=_WITHIN,
        ),
        _search("lns", "lns:solve_lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "sjf-bco",
            "sjf_bco:sjf_bco",
            "smallest job first with balanced contention and overhead, as published",
            "paper 000, Algorithms 1 to 3",
        ),
        _heuristic(
            "sjf-bco+",
            "sjf_bco:sjf_bco_plus",
            "sjf-bco repaired: the pass without a limit on loads is compared too",
            "ours, after paper 000",
            repairs="sjf-bco",
        ),
        _heuristic("ff", "baselines:ff", "first fit within theta", "paper 000, section 7"),
        _heuristic("ls", "baselines:ls", "list scheduling, least loaded GPUs", "paper 000, section 7"),
        _heuristic("rand", "baselines:rand", "random servers and GPUs, theta = T", "paper 000, section 7"),
        _heuristic("lpt-colocate", "lpt_colocate:lpt_colocate", "longest first, backfilling, best-fit colocation"),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.rar_ddls.check:check",
        "model_size": "schedgap.formulations.rar_ddls.models.time_indexed:ilp_nonzeros",
        "bound": "schedgap.formulations.rar_ddls.bounds:lower_bound",
        "quick": "schedgap.formulations.rar_ddls.models.time_indexed:quick_solution",
        "guarantees": "schedgap.heuristics.rar_ddls.guarantees:GUARANTEES",
    }

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
