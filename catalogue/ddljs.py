"""ddljs at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import Form
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.solution import DdljsSolution


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.ddljs.check_loads import check_loads

    return parsed(check_loads, DdljsSolution)


_heuristic = methods_of("schedgap.heuristics.ddljs", Kind.HEURISTIC)
_search = methods_of("schedgap.solvers.exact.ddljs", Kind.SEARCH, f"{__name__}:PROBLEM.best_start")


class Ddljs(FamilyProblem[DdljsInstance]):
    """Rings of workers over a horizon, sum of utilities of accumulated work."""

    id = "ddljs"
    title = "rings of workers over slots, sum of utilities of their work"
    source = "paper 004 (GADGET)"
    sense = MAXIMISE
    objective_name = "total utility"
    unit = "utility"
    rational = False
    instance_class = DdljsInstance
    solution_class = DdljsSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "worker_slots": "worker-slots",
        "embedded_ratio": "embedded",
    }
    metrics_note = (
        "worker-slots: workers times slots; embedded: the part of the active jobs, a mean over slots with any"
    )
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "servers": {"resources": {"gpu": 1.0}},
        "jobs": {
            "demand": {"gpu": 1.0},
            "bandwidth": 1.0,
            "arrival": 1,
            "budget": {},
            "efficiency": 1.0,
            "utility": {"kind": "sqrt", "scale": 1.0},
        },
    }
    forms = (
        Form(
            "slots",
            "workers and a circulation in every slot",
            "paper 004, (2)-(6), (10), (11)",
            "schedgap.formulations.ddljs.models:build_ilp",
        ),
    )
    methods = (
        ENGINES[2],
        ENGINES[1],
        ENGINES[0],
        _search("lns", "lns:solve_lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "gadget-printed",
            "gadget:gadget_printed",
            "greedy over slots, each slot by lp-rs-mde-printed; may overload",
            "paper 004, Algorithms 1 and 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "gadget",
            "gadget:gadget",
            "repaired: greedy over slots, each slot solved exactly, free servers filled",
            "ours, after paper 004",
            checker=_check_loads,
            repairs="gadget-printed",
        ),
        _heuristic(
            "fifo",
            "baselines:fifo",
            "first in, first out, a fixed number of workers, not preempted",
            "paper 004, section VI",
        ),
        _heuristic("drf", "baselines:drf", "dominant resource fairness, worker by worker", "paper 004, section VI"),
        _heuristic(
            "las", "baselines:las", "least attained service, a fixed number of workers", "paper 004, section VI"
        ),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.ddljs.check:check",
        "model_size": "schedgap.formulations.ddljs.models:ilp_nonzeros",
        "bound": "schedgap.solvers.exact.ddljs.bound:upper_bound",
        "guarantees": "schedgap.heuristics.ddljs.guarantees:GUARANTEES",
    }


PROBLEM = Ddljs()
