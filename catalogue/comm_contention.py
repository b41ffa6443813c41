"""comm-contention at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.comm_contention.instance import CommContentionInstance, CommContentionSolution
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.comm_contention.branch_and_bound import solve_bb

    return {"bb": PROBLEM.started(solve_bb)}


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.comm_contention.policies import adadual, adadual_k, srsf_1, srsf_2, srsf_3

    return {"adadual-k": adadual_k, "adadual": adadual, "srsf-1": srsf_1, "srsf-2": srsf_2, "srsf-3": srsf_3}


def _events(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.comm_contention.models.events import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class CommContention(ProblemOf[CommContentionInstance]):
    """Transfers that slow each other down on one link, mean flow time."""

    id = "comm-contention"
    title = "transfers that slow each other down on one link, mean flow time"
    source = "paper 001 (AdaDUAL)"
    sense = MINIMISE
    objective_name = "mean flow time"
    unit = "seconds"
    instance_class = CommContentionInstance
    solution_class = CommContentionSolution
    forms = (Form("events", "starts and completions in positions", "ours, with (5) of paper 001", _events),)
    methods = (
        _exact_method("bb", "branch and bound over sequences of starts and completions"),
        *ENGINES,
        _heuristic("adadual-k", "AdaDUAL's decision beside any number of transfers"),
        _heuristic("adadual", "share with one other when Theorem 2 says so", source="paper 001, Algorithm 2"),
        _heuristic("srsf-1", "shortest remaining first, one at a time", source="paper 001, section V"),
        _heuristic("srsf-2", "shortest remaining first, two at a time", source="paper 001, section V"),
        _heuristic("srsf-3", "shortest remaining first, three at a time", source="paper 001, section V"),
    )

    parts = (
        "schedgap.formulations.comm_contention.check",
        "schedgap.formulations.comm_contention.models.events",
        "schedgap.formulations.comm_contention.bounds",
        "schedgap.formulations.comm_contention.writing",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.comm_contention.check import check

        return check(self.cast_instance(instance), CommContentionSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.comm_contention.models.events import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.formulations.comm_contention.bounds import lower_bound

        return lower_bound(self.cast_instance(instance))

    def quick(self, instance: Instance) -> Solution | None:
        from schedgap.formulations.comm_contention.writing import one_at_a_time

        return one_at_a_time(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.comm_contention.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = CommContention()
