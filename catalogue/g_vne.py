"""g-vne at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Kind
from schedgap.catalogue.problem import FamilyProblem, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance, GVneSolution


def _mcf(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=False)


def _augmented(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=True)


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.g_vne.check import check_loads

    return parsed(check_loads, GVneSolution)


_MODELS = "schedgap.formulations.g_vne.models"
_heuristic = methods_of("schedgap.heuristics.g_vne", Kind.HEURISTIC)
_exact = methods_of("schedgap.solvers.exact.g_vne", Kind.EXACT, f"{__name__}:PROBLEM.started")


class GVne(FamilyProblem[GVneInstance]):
    """Rings of workers embedded into a network, sum of utilities."""

    id = "g-vne"
    title = "rings of workers embedded into a network, sum of utilities"
    source = "paper 004 (GADGET)"
    sense = MAXIMISE
    objective_name = "total utility"
    unit = "utility"
    instance_class = GVneInstance
    solution_class = GVneSolution
    assumed: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "servers": {"resources": {"gpu": 1.0}},
        "jobs": {"demand": {"gpu": 1.0}, "bandwidth": 1.0},
    }
    forms = (
        Form(
            "arcs",
            "one flow for every ring edge",
            "paper 004, (12)-(19)",
            f"{_MODELS}:build_ilp",
            changed="schedgap.solvers.exact.g_vne.changed:solve_changed",
        ),
        Form("mcf", "its linear relaxation", "paper 004, (12)-(19)", _mcf, tightens=False),
        Form("augmented", "a copy for every root of a ring", "paper 004, Algorithm 2", _augmented, tightens=False),
        Form(
            "columns",
            "rings enumerated, tiny instances",
            "paper 004, (12) with (5)",
            "schedgap.formulations.g_vne.relaxations:build_columns",
            opens=False,
        ),
    )
    methods = (
        _exact("colgen", "colgen:solve_colgen", "column generation over rings, integer master, branch and price"),
        *ENGINES,
        _exact("mcf", "lp_methods:solve_mcf", "the LP relaxation, a bound", "paper 004, (12)-(19)", started=""),
        _exact(
            "augmented", "lp_methods:solve_augmented", "the augmented LP, a bound", "paper 004, Algorithm 2", started=""
        ),
        _exact("columns-lp", "lp_methods:solve_columns_lp", "the LP over all capped rings, a bound", started=""),
        _heuristic("greedy", "greedy:greedy", "most valuable rings first, each where a cycle can be closed"),
        _heuristic(
            "lp-rs-mde-printed",
            "lp_rs_mde:lp_rs_mde_printed",
            "ring sizes and weighted rings from linear programs, randomized rounding; may overload",
            "paper 004, Algorithm 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "lp-rs-mde",
            "lp_rs_mde:lp_rs_mde",
            "repaired: Algorithm 2 over rings that are embeddable, capacities kept",
            "ours, after paper 004",
            checker=_check_loads,
            repairs="lp-rs-mde-printed",
        ),
    )

    functions: ClassVar[Mapping[str, str]] = {
        "check": "schedgap.formulations.g_vne.check:check",
        "model_size": "schedgap.formulations.g_vne.models:ilp_nonzeros",
        "bound": "schedgap.solvers.exact.g_vne.bound:upper_bound",
        "guarantees": "schedgap.heuristics.g_vne.guarantees:GUARANTEES",
    }

    def warm_up(self, instance: Instance) -> None:
        from schedgap.solvers.exact.g_vne.graph_pricing import warm_up
        from schedgap.solvers.exact.g_vne.tree_pricing import warm_up_tree

        warm_up(self.cast_instance(instance))
        warm_up_tree()


PROBLEM = GVne()
