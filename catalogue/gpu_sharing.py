"""gpu-sharing at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve


def _check_elastic() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.gpu_sharing.check_elastic import check_elastic
    from schedgap.formulations.gpu_sharing.solution import ElasticSolution

    return parsed(check_elastic, ElasticSolution)


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.gpu_sharing.models import build_ilp
    from schedgap.formulations.gpu_sharing.printed_model import build_equations

    build = build_ilp if tighten else build_equations
    return build(PROBLEM.cast_instance(instance))


def _job_pair(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.gpu_sharing.pair import pair_milp, pair_of

    del tighten
    return replace(pair_milp(pair_of(PROBLEM.cast_instance(instance))), abstract=True)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.gpu_sharing.exclusive_policies import easy, fifo, sjf, sjf_priced, sjf_reserve
    from schedgap.heuristics.gpu_sharing.preemptive import pollux, tiresias
    from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf, sjf_bsbf_plus, sjf_ffs

    return {
        "sjf-bsbf": sjf_bsbf,
        "sjf-bsbf+": sjf_bsbf_plus,
        "sjf-ffs": sjf_ffs,
        "sjf": sjf,
        "sjf-reserve": sjf_reserve,
        "sjf-priced": sjf_priced,
        "easy": easy,
        "fifo": fifo,
        "tiresias": tiresias,
        "pollux": pollux,
    }


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
    from schedgap.solvers.exact.gpu_sharing.pair import solve_pair

    return {"cp": solve_cp, "job-pair": solve_pair}


def _searches() -> Mapping[str, Function]:
    from schedgap.solvers.exact.gpu_sharing.lns import solve_lns

    return {"lns": solve_lns}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


def _improved(search: Improve) -> Function:
    return PROBLEM.best_start(search)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_search = methods_of(Kind.SEARCH, _searches, _improved)
_exact = methods_of(Kind.EXACT, _exacts, _started)


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
        Form("time-indexed", "GPUs, partners and progress in every slot", "paper 003, (8)-(15)", _time_indexed),
        Form("job-pair", "two jobs: when the second starts", "paper 003, (16)-(25)", _job_pair, tightens=False),
    )
    methods = (
        _exact(
            "cp", "local search, column LPs, bounded dynamic program, CP-SAT with overlap integers", engines=("highs",)
        ),
        *ENGINES,
        _exact(
            "job-pair",
            "an instance of two jobs: share now or wait, exactly in continuous time",
            "paper 003, Theorem 1",
            started=None,
        ),
        _search("lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic("sjf-bsbf", "shortest job first with best sharing benefit first", "paper 003, Algorithms 1 and 2"),
        _heuristic("sjf-bsbf+", "sjf-bsbf whose alternative is the first start on free GPUs"),
        _heuristic("sjf-ffs", "shortest job first with first-fit sharing", "paper 003, section VI"),
        _heuristic("sjf", "shortest job first, one job per GPU", "paper 003, section VI"),
        _heuristic("sjf-reserve", "shortest job first, longer jobs leave GPUs free for shorter ones"),
        _heuristic("sjf-priced", "shortest job first, held back until the bound's prices would start it"),
        _heuristic("easy", "first in first out with EASY backfilling, one job per GPU", "Lifka, JSSPP 1995"),
        _heuristic("fifo", "first in first out, one job per GPU", "paper 003, section VI"),
        _heuristic(
            "tiresias",
            "two queues by attained service, preemptive",
            "paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
        _heuristic(
            "pollux",
            "elastic goodput policy after Pollux",
            "paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
    )

    def parts(self) -> Parts[GpuSharingInstance, GpuSharingSolution]:
        from schedgap.formulations.gpu_sharing.check import check
        from schedgap.formulations.gpu_sharing.models import ilp_nonzeros
        from schedgap.heuristics.gpu_sharing.exclusive_policies import first_seconds, quick
        from schedgap.solvers.exact.gpu_sharing.bound import lower_bound

        return Parts(check, model_size=ilp_nonzeros, bound=lower_bound, quick=quick, first_seconds=first_seconds)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.gpu_sharing.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = GpuSharing()
