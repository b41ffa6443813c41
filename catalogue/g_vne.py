"""g-vne at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance, GVneSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from schedgap.solvers.engines.declarative import Check  # it loads engines


def _arcs(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.models import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


def _mcf(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=False)


def _augmented(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=True)


def _columns(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.relaxations import build_columns

    del tighten
    return build_columns(PROBLEM.cast_instance(instance))


def _changed(instance: Instance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    from schedgap.solvers.exact.g_vne.changed import solve_changed

    return solve_changed(PROBLEM.cast_instance(instance), changes, options, check)


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.g_vne.check import check_loads

    return parsed(check_loads, GVneSolution)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.g_vne.greedy import greedy
    from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde, lp_rs_mde_printed

    return {"greedy": greedy, "lp-rs-mde-printed": lp_rs_mde_printed, "lp-rs-mde": lp_rs_mde}


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.g_vne.colgen import solve_colgen
    from schedgap.solvers.exact.g_vne.lp_methods import solve_augmented, solve_columns_lp, solve_mcf

    return {"colgen": solve_colgen, "mcf": solve_mcf, "augmented": solve_augmented, "columns-lp": solve_columns_lp}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_exact = methods_of(Kind.EXACT, _exacts, _started)


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
        Form("arcs", "one flow for every ring edge", "paper 004, (12)-(19)", _arcs, changed=_changed),
        Form("mcf", "its linear relaxation", "paper 004, (12)-(19)", _mcf, tightens=False),
        Form("augmented", "a copy for every root of a ring", "paper 004, Algorithm 2", _augmented, tightens=False),
        Form("columns", "rings enumerated, tiny instances", "paper 004, (12) with (5)", _columns, opens=False),
    )
    methods = (
        _exact("colgen", "column generation over rings, integer master, branch and price"),
        *ENGINES,
        _exact("mcf", "the LP relaxation, a bound", "paper 004, (12)-(19)", started=None),
        _exact("augmented", "the augmented LP, a bound", "paper 004, Algorithm 2", started=None),
        _exact("columns-lp", "the LP over all capped rings, a bound", started=None),
        _heuristic("greedy", "most valuable rings first, each where a cycle can be closed"),
        _heuristic(
            "lp-rs-mde-printed",
            "ring sizes and weighted rings from linear programs, randomized rounding; may overload",
            "paper 004, Algorithm 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "lp-rs-mde",
            "repaired: Algorithm 2 over rings that are embeddable, capacities kept",
            "ours, after paper 004",
            checker=_check_loads,
            repairs="lp-rs-mde-printed",
        ),
    )

    def parts(self) -> Parts[GVneInstance, GVneSolution]:
        from schedgap.formulations.g_vne.check import check
        from schedgap.formulations.g_vne.models import ilp_nonzeros
        from schedgap.solvers.exact.g_vne.bound import upper_bound

        return Parts(check, model_size=ilp_nonzeros, bound=upper_bound)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.g_vne.guarantees import GUARANTEES

        return tuple(GUARANTEES)

    def warm_up(self, instance: Instance) -> None:
        from schedgap.solvers.exact.g_vne.graph_pricing import warm_up
        from schedgap.solvers.exact.g_vne.tree_pricing import warm_up_tree

        warm_up(self.cast_instance(instance))
        warm_up_tree()


PROBLEM = GVne()
