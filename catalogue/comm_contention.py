"""comm-contention at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.solution import CommContentionSolution
from schedgap.formulations.common.declarative import Form
from schedgap.formulations.common.numbers import MINIMISE

_heuristic = methods_of("schedgap.heuristics.comm_contention", Kind.HEURISTIC)
_exact = methods_of("schedgap.solvers.exact.comm_contention", Kind.EXACT, f"{__name__}:PROBLEM.started")


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
    forms = (
        Form(
            "events",
            "starts and completions in positions",
            "ours, with (5) of paper 001",
            "schedgap.formulations.comm_contention.models:build_ilp",
        ),
    )
    methods = (
        _exact("bb", "branch_and_bound:solve_bb", "branch and bound over sequences of starts and completions"),
        *ENGINES,
        _heuristic("adadual-k", "policies:adadual_k", "AdaDUAL's decision beside any number of transfers"),
        _heuristic(
            "adadual", "policies:adadual", "share with one other when Theorem 2 says so", "paper 001, Algorithm 2"
        ),
        _heuristic("srsf-1", "policies:srsf_1", "shortest remaining first, one at a time", "paper 001, section V"),
        _heuristic("srsf-2", "policies:srsf_2", "shortest remaining first, two at a time", "paper 001, section V"),
        _heuristic("srsf-3", "policies:srsf_3", "shortest remaining first, three at a time", "paper 001, section V"),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.comm_contention.check:check",
        "model_size": "schedgap.formulations.comm_contention.models:ilp_nonzeros",
        "bound": "schedgap.formulations.comm_contention.bounds:lower_bound",
        "quick": "schedgap.formulations.comm_contention.one_at_a_time:one_at_a_time",
        "guarantees": "schedgap.heuristics.comm_contention.guarantees:GUARANTEES",
    }


PROBLEM = CommContention()
