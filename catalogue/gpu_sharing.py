"""gpu-sharing at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, GpuSharingSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
    from schedgap.solvers.exact.gpu_sharing.pair import solve_pair

    return {"cp": PROBLEM.started(solve_cp), "job-pair": solve_pair}


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.gpu_sharing.preemptive import pollux, tiresias
    from schedgap.heuristics.gpu_sharing.sharing import easy, fifo, sjf, sjf_bsbf, sjf_bsbf_plus, sjf_ffs, sjf_reserve

    return {
        "sjf-bsbf": sjf_bsbf,
        "sjf-bsbf+": sjf_bsbf_plus,
        "sjf-ffs": sjf_ffs,
        "sjf": sjf,
        "sjf-reserve": sjf_reserve,
        "fifo": fifo,
        "easy": easy,
        "tiresias": tiresias,
        "pollux": pollux,
    }


def _search() -> Mapping[str, Function]:
    from schedgap.solvers.exact.gpu_sharing.lns import solve_lns

    return {"lns": PROBLEM.best_start(solve_lns)}


def _check_elastic() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.gpu_sharing.check import check_elastic
    from schedgap.formulations.gpu_sharing.instance import ElasticSolution

    return parsed(check_elastic, ElasticSolution)


def _time_indexed(instance: Instance, tighten: bool) -> DeclarativeModel:
    if tighten:
        from schedgap.formulations.gpu_sharing.models.time_indexed import build_ilp

        return build_ilp(PROBLEM.cast_instance(instance))
    from schedgap.formulations.gpu_sharing.models.equations import build_equations

    return build_equations(PROBLEM.cast_instance(instance))


def _job_pair(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.gpu_sharing.pair import pair_milp, pair_of

    del tighten
    return replace(pair_milp(pair_of(PROBLEM.cast_instance(instance))), abstract=True)


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class GpuSharing(ProblemOf[GpuSharingInstance]):
    """Jobs that share GPUs in pairs, mean job completion time."""

    id = "gpu-sharing"
    title = "jobs that share GPUs in pairs, mean job completion time"
    source = "paper 003 (SJF-BSBF)"
    sense = MINIMISE
    objective_name = "mean JCT"
    unit = "slots"
    instance_class = GpuSharingInstance
    solution_class = GpuSharingSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "makespan": "makespan",
        "jct large": "JCT large",
        "jct small": "JCT small",
        "queuing all": "queuing",
        "queuing large": "queuing large",
        "queuing small": "queuing small",
    }
    forms = (
        Form("time-indexed", "GPUs, partners and progress in every slot", "paper 003, (8)-(15)", _time_indexed),
        Form("job-pair", "two jobs: when the second starts", "paper 003, (16)-(25)", _job_pair, tightens=False),
    )
    methods = (
        _exact_method(
            "cp",
            "local search, column LPs, bounded dynamic program, CP-SAT with overlap integers",
            engines=("highs",),
        ),
        *ENGINES,
        _exact_method(
            "job-pair",
            "an instance of two jobs: share now or wait, exactly in continuous time",
            source="paper 003, Theorem 1",
        ),
        Method("lns", "large neighbourhood search from the best heuristic, until a limit", Kind.SEARCH, _search),
        _heuristic(
            "sjf-bsbf", "shortest job first with best sharing benefit first", source="paper 003, Algorithms 1 and 2"
        ),
        _heuristic("sjf-bsbf+", "sjf-bsbf whose alternative is the first start on free GPUs"),
        _heuristic("sjf-ffs", "shortest job first with first-fit sharing", source="paper 003, section VI"),
        _heuristic("sjf", "shortest job first, one job per GPU", source="paper 003, section VI"),
        _heuristic("sjf-reserve", "shortest job first, longer jobs leave GPUs free for shorter ones"),
        _heuristic("easy", "first in first out with EASY backfilling, one job per GPU", source="Lifka, JSSPP 1995"),
        _heuristic("fifo", "first in first out, one job per GPU", source="paper 003, section VI"),
        _heuristic(
            "tiresias",
            "two queues by attained service, preemptive",
            source="paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
        _heuristic(
            "pollux",
            "elastic goodput policy after Pollux",
            source="paper 003, section VI",
            outside_model=True,
            checker=_check_elastic,
            solution_key="segments",
        ),
    )

    parts = (
        "schedgap.formulations.gpu_sharing.check",
        "schedgap.formulations.gpu_sharing.models.time_indexed",
        "schedgap.heuristics.gpu_sharing.sharing",
        "schedgap.solvers.exact.gpu_sharing.bound",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.gpu_sharing.check import check

        return check(self.cast_instance(instance), GpuSharingSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.gpu_sharing.models.time_indexed import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def quick(self, instance: Instance) -> Solution | None:
        from schedgap.heuristics.gpu_sharing.sharing import fifo

        return fifo(self.cast_instance(instance)).solution

    def bound(self, instance: Instance) -> float | None:
        from schedgap.solvers.exact.gpu_sharing.bound import lower_bound

        return lower_bound(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.gpu_sharing.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = GpuSharing()
