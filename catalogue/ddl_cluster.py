"""ddl-cluster at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve


def _improved(improve: Improve) -> Function:
    """Its schedules say when jobs finish; a check takes long."""
    return PROBLEM.best_start(improve, lambda solution: float(sum(solution["finish"].values())))


def _events(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddl_cluster.models.events import build_events

    del tighten
    return build_events(PROBLEM.cast_instance(instance))


def _job_shop(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddl_cluster.models.job_shop import build_model

    del tighten
    return build_model(PROBLEM.cast_instance(instance))


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.ddl_cluster.holding import easy_hold, fifo_hold, list_hold
    from schedgap.heuristics.ddl_cluster.policies import ada_srsf, srsf_1, srsf_2, srsf_3, srsf_4

    return {
        "ada-srsf": ada_srsf,
        "srsf-1": srsf_1,
        "srsf-2": srsf_2,
        "srsf-3": srsf_3,
        "srsf-4": srsf_4,
        "list-hold": list_hold,
        "fifo-hold": fifo_hold,
        "easy-hold": easy_hold,
    }


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddl_cluster.methods import solve_cp, solve_job_shop
    from schedgap.solvers.exact.ddl_cluster.placement import solve_placement

    return {"cp": solve_cp, "job-shop": solve_job_shop, "placement": solve_placement}


def _searches() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddl_cluster.lns import solve_lns

    return {"lns": solve_lns}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_search = methods_of(Kind.SEARCH, _searches, _improved)
_exact = methods_of(Kind.EXACT, _exacts, _started)


class DdlCluster(FamilyProblem[DdlClusterInstance]):
    """Training jobs of forward, backward and all-reduce tasks whose all-reduces share the servers' links."""

    id = "ddl-cluster"
    title = "jobs whose all-reduces share the servers' links, mean JCT"
    source = "paper 001 (LWF-kappa, Ada-SRSF)"
    sense = MINIMISE
    objective_name = "mean JCT"
    unit = "seconds"
    rational = False
    instance_class = DdlClusterInstance
    solution_class = DdlClusterSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "jct median": "median JCT",
        "jct 95th": "95th percentile JCT",
        "makespan": "makespan",
        "utilisation": "GPU utilisation",
    }
    metrics_note = "in seconds; GPU utilisation is the part of the makespan in which a GPU computes, a mean over GPUs"
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "": {"gpu_memory": 1.0},
        "link": {"seconds_per_unit": 1.0},
        "jobs": {"arrival": 0.0, "forward": 1.0, "backward": 1.0, "message": 1.0, "memory": 0.0},
    }
    forms = (
        Form(
            "events", "contention and placement, tiny instances", "ours, with (5) of paper 001", _events, tightens=False
        ),
        Form("job-shop", "at most one all-reduce active on a server; placement given", "ours", _job_shop, opens=False),
    )
    methods = (
        _exact("cp", "CP-SAT on a fine time grid with a certified bound, schedule exact; placement given"),
        _exact(
            "job-shop",
            "CP-SAT on the restriction to one all-reduce per server at a time; placement given",
            started=None,
        ),
        _exact("placement", "every placement of a tiny cluster, each scheduled by cp; drawn placements beyond"),
        *ENGINES,
        _search("lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "ada-srsf", "SRSF, AdaDUAL decides on a second all-reduce per server", "paper 001, Algorithms 1 to 3"
        ),
        _heuristic("srsf-1", "SRSF, up to 1 all-reduce per server", "paper 001, section V-A"),
        _heuristic("srsf-2", "SRSF, up to 2 all-reduces per server", "paper 001, section V-A"),
        _heuristic("srsf-3", "SRSF, up to 3 all-reduces per server", "paper 001, section V-A"),
        _heuristic("srsf-4", "SRSF, up to 4 all-reduces per server", "paper 001, section I"),
        _heuristic("list-hold", "the shortest jobs first, alone or in pairs on GPUs that they hold"),
        _heuristic("fifo-hold", "by arrival, on GPUs that they hold"),
        _heuristic("easy-hold", "the same, short jobs pass as in EASY", "JSSPP 1995"),
    )

    def parts(self) -> Parts[DdlClusterInstance, DdlClusterSolution]:
        from schedgap.formulations.ddl_cluster.check import check
        from schedgap.formulations.ddl_cluster.models.job_shop import model_nonzeros, quick
        from schedgap.solvers.exact.ddl_cluster.bound import lower_bound

        return Parts(check, model_size=model_nonzeros, bound=lower_bound, quick=quick)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.ddl_cluster.guarantees import GUARANTEES

        return tuple(GUARANTEES)

    def default_method(self, instance: Instance | None = None) -> Method:
        if instance is not None and not all(self.cast_instance(instance).given):
            return next(method for method in self.methods if method.id == "placement")
        return super().default_method(instance)


PROBLEM = DdlCluster()
