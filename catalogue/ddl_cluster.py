"""ddl-cluster at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, DdlClusterSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddl_cluster.methods import solve_cp, solve_job_shop
    from schedgap.solvers.exact.ddl_cluster.placement import solve_placement

    return {"cp": PROBLEM.started(solve_cp), "job-shop": solve_job_shop, "placement": PROBLEM.started(solve_placement)}


def _search() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddl_cluster.lns import solve_lns

    def stated(solution: Solution) -> float:
        return float(sum(solution["finish"].values()))

    return {"lns": PROBLEM.best_start(solve_lns, stated)}


def _job_shop(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddl_cluster.models.job_shop import build_model

    del tighten  # its windows come from a policy's run, so it cannot be changed
    return build_model(PROBLEM.cast_instance(instance))


def _events(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddl_cluster.models.events import build_events

    del tighten
    return build_events(PROBLEM.cast_instance(instance))


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.ddl_cluster.policies import ada_srsf, srsf_1, srsf_2, srsf_3, srsf_4

    return {"ada-srsf": ada_srsf, "srsf-1": srsf_1, "srsf-2": srsf_2, "srsf-3": srsf_3, "srsf-4": srsf_4}


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class DdlCluster(ProblemOf[DdlClusterInstance]):
    """Training jobs of forward, backward and all-reduce tasks whose all-reduces share the servers' links."""

    id = "ddl-cluster"
    title = "training jobs of forward, backward and all-reduce tasks whose all-reduces share the servers' links"
    source = "paper 001 (LWF-kappa, Ada-SRSF)"
    sense = MINIMISE
    objective_name = "mean JCT"
    unit = "seconds"
    instance_class = DdlClusterInstance
    solution_class = DdlClusterSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "jct median": "median JCT",
        "jct 95th": "95th percentile JCT",
        "makespan": "makespan",
        "utilisation": "GPU utilisation",
    }
    forms = (
        Form(
            "events", "contention and placement, tiny instances", "ours, with (5) of paper 001", _events, tightens=False
        ),
        Form("job-shop", "at most one all-reduce active on a server; placement given", "ours", _job_shop, opens=False),
    )
    methods = (
        _exact_method("cp", "CP-SAT on a fine time grid with a certified bound, schedule exact; placement given"),
        _exact_method("job-shop", "CP-SAT on the restriction to one all-reduce per server at a time; placement given"),
        _exact_method("placement", "every placement of a tiny cluster, each scheduled by cp; drawn placements beyond"),
        *ENGINES,
        Method("lns", "large neighbourhood search from the best heuristic, until a limit", Kind.SEARCH, _search),
        _heuristic(
            "ada-srsf", "SRSF, AdaDUAL decides on a second all-reduce per server", source="paper 001, Algorithms 1 to 3"
        ),
        _heuristic("srsf-1", "SRSF, up to 1 all-reduce per server", source="paper 001, section V-A"),
        _heuristic("srsf-2", "SRSF, up to 2 all-reduces per server", source="paper 001, section V-A"),
        _heuristic("srsf-3", "SRSF, up to 3 all-reduces per server", source="paper 001, section V-A"),
        _heuristic("srsf-4", "SRSF, up to 4 all-reduces per server", source="paper 001, section I"),
    )

    parts = (
        "schedgap.formulations.ddl_cluster.check",
        "schedgap.formulations.ddl_cluster.models.job_shop",
        "schedgap.formulations.ddl_cluster.bounds",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.ddl_cluster.check import check

        return check(self.cast_instance(instance), DdlClusterSolution.parse(solution))

    def default_method(self, instance: Instance | None = None) -> Method:
        if instance is not None and not all(self.cast_instance(instance).given):
            return next(method for method in self.methods if method.id == "placement")
        return super().default_method(instance)

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.ddl_cluster.models.job_shop import model_nonzeros

        return model_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.formulations.ddl_cluster.bounds import lower_bound

        return lower_bound(self.cast_instance(instance))

    def quick(self, instance: Instance) -> Solution | None:
        from schedgap.formulations.ddl_cluster.models.job_shop import quick

        return quick(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.ddl_cluster.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = DdlCluster()
