"""ddl-cluster at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.heuristics.common.improving import Improve


def best_start(improve: Improve) -> Function:
    """Its schedules say when jobs finish; a check takes long."""
    return PROBLEM.best_start(improve, lambda solution: float(sum(solution["finish"].values())))


_MODELS = "schedgap.formulations.ddl_cluster.models"
_heuristic = methods_of("schedgap.heuristics.ddl_cluster", Kind.HEURISTIC)
_search = methods_of("schedgap.solvers.exact.ddl_cluster", Kind.SEARCH, f"{__name__}:best_start")
_exact = methods_of("schedgap.solvers.exact.ddl_cluster", Kind.EXACT, f"{__name__}:PROBLEM.started")


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
            "events",
            "contention and placement, tiny instances",
            "ours, with (5) of paper 001",
            f"{_MODELS}.events:build_events",
            tightens=False,
        ),
        Form(
            "job-shop",
            "at most one all-reduce active on a server; placement given",
            "ours",
            f"{_MODELS}.job_shop:build_model",
            opens=False,
        ),
    )
    methods = (
        _exact(
            "cp",
            "methods:solve_cp",
            "CP-SAT on a fine time grid with a certified bound, schedule exact; placement given",
        ),
        _exact(
            "job-shop",
            "methods:solve_job_shop",
            "CP-SAT on the restriction to one all-reduce per server at a time; placement given",
            started="",
        ),
        _exact(
            "placement",
            "placement:solve_placement",
            "every placement of a tiny cluster, each scheduled by cp; drawn placements beyond",
        ),
        *ENGINES,
        _search("lns", "lns:solve_lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "ada-srsf",
            "policies:ada_srsf",
            "SRSF, AdaDUAL decides on a second all-reduce per server",
            "paper 001, Algorithms 1 to 3",
        ),
        _heuristic("srsf-1", "policies:srsf_1", "SRSF, up to 1 all-reduce per server", "paper 001, section V-A"),
        _heuristic("srsf-2", "policies:srsf_2", "SRSF, up to 2 all-reduces per server", "paper 001, section V-A"),
        _heuristic("srsf-3", "policies:srsf_3", "SRSF, up to 3 all-reduces per server", "paper 001, section V-A"),
        _heuristic("srsf-4", "policies:srsf_4", "SRSF, up to 4 all-reduces per server", "paper 001, section I"),
        _heuristic(
            "list-hold", "holding:list_hold", "the shortest jobs first, alone or in pairs on GPUs that they hold"
        ),
        _heuristic("fifo-hold", "holding:fifo_hold", "by arrival, on GPUs that they hold"),
        _heuristic("easy-hold", "holding:easy_hold", "the same, short jobs pass as in EASY", "JSSPP 1995"),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.ddl_cluster.check:check",
        "model_size": "schedgap.formulations.ddl_cluster.models.job_shop:model_nonzeros",
        "bound": "schedgap.solvers.exact.ddl_cluster.bound:lower_bound",
        "quick": "schedgap.formulations.ddl_cluster.models.job_shop:quick",
        "guarantees": "schedgap.heuristics.ddl_cluster.guarantees:GUARANTEES",
    }

    def default_method(self, instance: Instance | None = None) -> Method:
        if instance is not None and not all(self.cast_instance(instance).given):
            return next(method for method in self.methods if method.id == "placement")
        return super().default_method(instance)


PROBLEM = DdlCluster()
