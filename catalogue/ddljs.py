"""ddljs at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.solution import DdljsSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import Improve


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.ddljs.check_loads import check_loads

    return parsed(check_loads, DdljsSolution)


def _slots(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddljs.models import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.ddljs.baselines import drf, fifo, las
    from schedgap.heuristics.ddljs.gadget import gadget, gadget_printed

    return {"gadget-printed": gadget_printed, "gadget": gadget, "fifo": fifo, "drf": drf, "las": las}


def _searches() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddljs.lns import solve_lns

    return {"lns": solve_lns}


def _improved(search: Improve) -> Function:
    return PROBLEM.best_start(search)


_heuristic = methods_of(Kind.HEURISTIC, _heuristics)
_search = methods_of(Kind.SEARCH, _searches, _improved)


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
    metrics: ClassVar[Mapping[str, str]] = {"worker_slots": "worker-slots", "embedded_ratio": "embedded"}
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
    forms = (Form("slots", "workers and a circulation in every slot", "paper 004, (2)-(6), (10), (11)", _slots),)
    methods = (
        ENGINES[2],
        ENGINES[1],
        ENGINES[0],
        _search("lns", "large neighbourhood search from the best heuristic, until a limit"),
        _heuristic(
            "gadget-printed",
            "greedy over slots, each slot by lp-rs-mde-printed; may overload",
            "paper 004, Algorithms 1 and 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "gadget",
            "repaired: greedy over slots, each slot solved exactly, free servers filled",
            "ours, after paper 004",
            checker=_check_loads,
            repairs="gadget-printed",
        ),
        _heuristic("fifo", "first in, first out, a fixed number of workers, not preempted", "paper 004, section VI"),
        _heuristic("drf", "dominant resource fairness, worker by worker", "paper 004, section VI"),
        _heuristic("las", "least attained service, a fixed number of workers", "paper 004, section VI"),
    )

    def parts(self) -> Parts[DdljsInstance, DdljsSolution]:
        from schedgap.formulations.ddljs.check import check
        from schedgap.formulations.ddljs.models import ilp_nonzeros
        from schedgap.solvers.exact.ddljs.bound import upper_bound

        return Parts(check, model_size=ilp_nonzeros, bound=upper_bound)

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.ddljs.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = Ddljs()
