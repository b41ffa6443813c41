"""g-vne at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance, GVneSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _exact() -> Mapping[str, Function]:
    from schedgap.solvers.exact.g_vne.bound import solve_augmented, solve_columns_lp, solve_mcf
    from schedgap.solvers.exact.g_vne.colgen import solve_colgen

    return {
        "colgen": PROBLEM.started(solve_colgen),
        "mcf": solve_mcf,
        "augmented": solve_augmented,
        "columns-lp": solve_columns_lp,
    }


def _arcs(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.models.arcs import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


def _mcf(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.models.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=False)


def _augmented(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.models.relaxations import build_flows

    del tighten
    return build_flows(PROBLEM.cast_instance(instance), augmented=True)


def _columns(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.g_vne.models.relaxations import build_columns

    del tighten  # only rings whose workers are next to each other, so it cannot be changed
    return build_columns(PROBLEM.cast_instance(instance))


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.g_vne.greedy import greedy
    from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde, lp_rs_mde_printed

    return {"greedy": greedy, "lp-rs-mde-printed": lp_rs_mde_printed, "lp-rs-mde": lp_rs_mde}


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.g_vne.check import check_loads

    return parsed(check_loads, GVneSolution)


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)
_exact_method = partial(Method, kind=Kind.EXACT, load=_exact)


class GVne(ProblemOf[GVneInstance]):
    """Rings of workers embedded into a network, sum of utilities."""

    id = "g-vne"
    title = "rings of workers embedded into a network, sum of utilities"
    source = "paper 004 (GADGET)"
    sense = MAXIMISE
    objective_name = "total utility"
    unit = "utility"
    instance_class = GVneInstance
    solution_class = GVneSolution
    forms = (
        Form("arcs", "one flow for every ring edge", "paper 004, (12)-(19)", _arcs),
        Form("mcf", "its linear relaxation", "paper 004, (12)-(19)", _mcf, tightens=False),
        Form("augmented", "a copy for every root of a ring", "paper 004, Algorithm 2", _augmented, tightens=False),
        Form("columns", "rings enumerated, tiny instances", "paper 004, (12) with (5)", _columns, opens=False),
    )
    methods = (
        _exact_method("colgen", "column generation over rings, integer master, branch and price"),
        *ENGINES,
        _exact_method("mcf", "the LP relaxation, a bound", source="paper 004, (12)-(19)"),
        _exact_method("augmented", "the augmented LP, a bound", source="paper 004, Algorithm 2"),
        _exact_method("columns-lp", "the LP over all capped rings, a bound"),
        _heuristic("greedy", "most valuable rings first, each where a cycle can be closed"),
        _heuristic(
            "lp-rs-mde-printed",
            "ring sizes and weighted rings from linear programs, randomized rounding; may overload",
            source="paper 004, Algorithm 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "lp-rs-mde",
            "repaired: Algorithm 2 over rings that are embeddable, capacities kept",
            source="ours, after paper 004",
            checker=_check_loads,
            repairs="lp-rs-mde-printed",
        ),
    )

    parts = (
        "schedgap.formulations.g_vne.check",
        "schedgap.formulations.g_vne.models.arcs",
        "schedgap.solvers.exact.g_vne.bound",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.g_vne.check import check

        return check(self.cast_instance(instance), GVneSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.g_vne.models.arcs import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.solvers.exact.g_vne.bound import upper_bound

        return upper_bound(self.cast_instance(instance))

    def warm_up(self, instance: Instance) -> None:
        from schedgap.solvers.exact.g_vne import graph_pricing, tree

        graph_pricing.warm_up(self.cast_instance(instance))
        tree.warm_up()

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.g_vne.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = GVne()
