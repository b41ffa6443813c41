"""ddljs at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from schedgap.catalogue.method import ENGINES, Checker, Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.ddljs.instance import DdljsInstance, DdljsSolution
from schedgap.heuristics.common.guarantee import Guarantee


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.ddljs.baselines import drf, fifo, las
    from schedgap.heuristics.ddljs.gadget import gadget, gadget_printed

    return {"gadget-printed": gadget_printed, "gadget": gadget, "fifo": fifo, "drf": drf, "las": las}


def _search() -> Mapping[str, Function]:
    from schedgap.solvers.exact.ddljs.lns import solve_lns

    return {"lns": PROBLEM.best_start(solve_lns)}


def _check_loads() -> Checker:
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.ddljs.check import check_loads

    return parsed(check_loads, DdljsSolution)


def _slots(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.ddljs.models.slots import build_ilp

    return build_ilp(PROBLEM.cast_instance(instance), tighten)


_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)


class Ddljs(ProblemOf[DdljsInstance]):
    """Rings of workers over a horizon, sum of utilities of accumulated work."""

    id = "ddljs"
    title = "rings of workers over a horizon, sum of utilities of accumulated work"
    source = "paper 004 (GADGET)"
    sense = MAXIMISE
    objective_name = "total utility"
    unit = "utility"
    instance_class = DdljsInstance
    solution_class = DdljsSolution
    metrics: ClassVar[Mapping[str, str]] = {
        "worker_slots": "worker-slots",
        "embedded_ratio": "embedded",
    }
    forms = (Form("slots", "workers and a circulation in every slot", "paper 004, (2)-(6), (10), (11)", _slots),)
    methods = (
        ENGINES[2],
        ENGINES[1],
        ENGINES[0],
        Method("lns", "large neighbourhood search from the best heuristic, until a limit", Kind.SEARCH, _search),
        _heuristic(
            "gadget-printed",
            "greedy over slots, each slot by lp-rs-mde-printed; may overload",
            source="paper 004, Algorithms 1 and 2",
            outside_model=True,
            checker=_check_loads,
        ),
        _heuristic(
            "gadget",
            "repaired: greedy over slots, each slot solved exactly, free servers filled",
            source="ours, after paper 004",
            checker=_check_loads,
            repairs="gadget-printed",
        ),
        _heuristic(
            "fifo", "first in, first out, a fixed number of workers, not preempted", source="paper 004, section VI"
        ),
        _heuristic("drf", "dominant resource fairness, worker by worker", source="paper 004, section VI"),
        _heuristic("las", "least attained service, a fixed number of workers", source="paper 004, section VI"),
    )

    parts = (
        "schedgap.formulations.ddljs.check",
        "schedgap.formulations.ddljs.models.slots",
        "schedgap.solvers.exact.ddljs.bound",
    )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        from schedgap.formulations.ddljs.check import check

        return check(self.cast_instance(instance), DdljsSolution.parse(solution))

    def model_size(self, instance: Instance) -> int:
        from schedgap.formulations.ddljs.models.slots import ilp_nonzeros

        return ilp_nonzeros(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        from schedgap.solvers.exact.ddljs.bound import upper_bound

        return upper_bound(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        from schedgap.heuristics.ddljs.guarantees import GUARANTEES

        return tuple(GUARANTEES)


PROBLEM = Ddljs()
