"""gpu-sharing at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution


def _check_elastic() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.gpu_sharing.check_elastic import check_elastic
    from schedgap.formulations.gpu_sharing.solution import ElasticSolution

    return parsed(check_elastic, ElasticSolution)


def _job_pair(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.gpu_sharing.pair import pair_milp, pair_of

    del tighten
    return replace(pair_milp(pair_of(PROBLEM.cast_instance(instance))), abstract=True)


_MODELS = "schedgap.formulations.gpu_sharing.models"
_heuristic = methods_of("schedgap.heuristics.gpu_sharing", Kind.HEURISTIC)
_search = methods_of("schedgap.solvers.exact.gpu_sharing", Kind.SEARCH, f"{__name__}:PROBLEM.best_start")
_exact = methods_of("schedgap.solvers.exact.gpu_sharing", Kind.EXACT, f"{__name__}:PROBLEM.started")


class GpuSharing(FamilyProblem[GpuSharingInstance]):
    """Jobs that share GPUs in pairs, mean job completion time."""

    id = "gpu-sharing"
    title = "jobs that share GPUs in pairs, mean job completion time"
    source = "paper 003 (SJF-BSBF)"
    sense = MINIMISE
    objective_name = "mean JCT"
    unit = "slots"
    instance_class = GpuSharingInstance
    solution_class = GpuSharingSolution
    horizon_is_size: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "makespan": "makespan",
        "jct large": "JCT large",
        "jct small": "JCT small",
        "queuing all": "queuing",
        "queuing large": "queuing large",
        "queuing small": "queuing small",
    }
    metrics_note = "in slots, means over jobs: large ones have more than 4 GPUs; queuing is the time without any"
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "": {"slot_length": 1.0, "gpu_memory": 1.0, "max_jobs_per_gpu": 1},
        "jobs": {
            "arrival": 1,
            "batch_size": 1,
            "compute": {"fixed": 1.0, "per_sample": 0.0},
            "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
            "overlap": 1.0,
            "memory": {"fixed": 0.0, "per_sample": 0.0},
        },
    }
    forms = (
        Form(
            "time-indexed",
            "GPUs, partners and progress in every slot",
            "paper 003, (8)-(15)",
            f"{_MODELS}:build_ilp",
            plain="schedgap.formulations.gpu_sharing.printed_model:build_equations",
        ),
        Form("job-pair", "two jobs: when the second starts", "paper 003, (16)-(25)", _job_pair, tightens=False),
    )
    methods = (
        _exact(
            "cp",
            "cp:solve_cp",
            "local search, column LPs, bounded dynamic program, CP-SAT with overlap integers",
            engines=("highs",),
        ),
        *ENGINES,
        _exact(
            "job-pair",
            "pair:solve_pair",
            "an instance of two jobs: share now or wait, exactly in continuous time",
            "paper 003, Theorem 1",
            started="",
        ),
        _search("lns", "lns:solve_lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "sjf-bsbf",
            "sharing:sjf_bsbf",
            "shortest job first with best sharing benefit first",
            "paper 003, Algorithms 1 and 2",
        ),
        _heuristic("sjf-bsbf+", "sharing:sjf_bsbf_plus", "sjf-bsbf whose alternative is the first start on free GPUs"),
        _heuristic("sjf-ffs", "sharing:sjf_ffs", "shortest job first with first-fit sharing", "paper 003, section VI"),
        _heuristic("sjf", "exclusive_policies:sjf", "shortest job first, one job per GPU", "paper 003, section VI"),
        _heuristic(
            "sjf-reserve",
            "exclusive_policies:sjf_reserve",
            "shortest job first, longer jobs leave GPUs free for shorter ones",
        ),
        _heuristic(
            "sjf-priced",
            "exclusive_policies:sjf_priced",
            "shortest job first, held back until the bound's prices would start it",
        ),
        _heuristic(
            "easy",
            "exclusive_policies:easy",
            "first in first out with EASY backfilling, one job per GPU",
            "Lifka, JSSPP 1995",
        ),
        _heuristic("fifo", "exclusive_policies:fifo", "first in first out, one job per GPU", "paper 003, section VI"),
        _heuristic(
            "tiresias",
            "preemptive:tiresias",
            "two queues by attained service, preemptive",
            "paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
        _heuristic(
            "pollux",
            "preemptive:pollux",
            "elastic goodput policy after Pollux",
            "paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.gpu_sharing.check:check",
        "model_size": "schedgap.formulations.gpu_sharing.models:ilp_nonzeros",
        "bound": "schedgap.solvers.exact.gpu_sharing.bound:lower_bound",
        "quick": "schedgap.heuristics.gpu_sharing.exclusive_policies:quick",
        "first_seconds": "schedgap.heuristics.gpu_sharing.exclusive_policies:first_seconds",
        "guarantees": "schedgap.heuristics.gpu_sharing.guarantees:GUARANTEES",
    }


PROBLEM = GpuSharing()
