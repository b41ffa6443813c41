"""comm-contention at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.solution import CommContentionSolution
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve


def _events(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.comm_contention.models import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.comm_contention.policies import adadual, adadual_k, srsf_1, srsf_2, srsf_3

    return {"adadual-k": adadual_k, "adadual": adadual, "srsf-1": srsf_1, "srsf-2": srsf_2, "srsf-3": srsf_3}


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.comm_contention.branch_and_bound import solve_bb

    return {"bb": solve_bb}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_exact = methods_of(Kind.EXACT, _exacts, _started)


class CommContention(FamilyProblem[CommContentionInstance]):
    """Transfers that slow each other down on one link, mean flow time."""

    id = "comm-contention"
    title = "transfers that slow each other on one link, mean flow time"
    source = "paper 001 (AdaDUAL)"
    sense = MINIMISE
    objective_name = "mean flow time"
    unit = "seconds"
    rational = False
    instance_class = CommContentionInstance
    solution_class = CommContentionSolution
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "link": {"seconds_per_unit": 1.0},
        "tasks": {"release": 0.0},
    }
    forms = (Form("events", "starts and completions in positions", "ours, with (5) of paper 001", _events),)
    methods = (
        _exact("bb", "branch and bound over sequences of starts and completions"),
        *ENGINES,
        _heuristic("adadual-k", "AdaDUAL's decision beside any number of transfers"),
        _heuristic("adadual", "share with one other when Theorem 2 says so", "paper 001, Algorithm 2"),
        _heuristic("srsf-1", "shortest remaining first, one at a time", "paper 001, section V"),
        _heuristic("srsf-2", "shortest remaining first, two at a time", "paper 001, section V"),
        _heuristic("srsf-3", "shortest remaining first, three at a time", "paper 001, section V"),
    )

    def parts(self) -> Parts[CommContentionInstance, CommContentionSolution]:
        from schedgap.formulations.comm_contention.bounds import lower_bound
        from schedgap.formulations.comm_contention.check import check
        from schedgap.formulations.comm_contention.models import ilp_nonzeros
        from schedgap.formulations.comm_contention.one_at_a_time import one_at_a_time

        return Parts(check, model_size=ilp_nonzeros, bound=lower_bound, quick=one_at_a_time)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.comm_contention.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = CommContention()
