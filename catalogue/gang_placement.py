"""gang-placement at the front desk: its parts and its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from schedgap.catalogue.method import ENGINES, Function, Kind, Method
from schedgap.catalogue.problem import FamilyProblem, Parts, methods_of
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.gang_placement.instance import GangPlacementInstance, GangPlacementSolution
from schedgap.heuristics.common.improving import Improve


def _heuristics() -> Mapping[str, Function]:
    from schedgap.heuristics.gang_placement.rules import RULES

    return RULES


def _exacts() -> Mapping[str, Function]:
    from schedgap.solvers.exact.gang_placement.staged import solve_staged

    return {"staged": solve_staged}


def _nothing(instance: GangPlacementInstance) -> Solution:
    del instance
    return {"placement": {}}


def _started(exact: Improve) -> Function:
    return PROBLEM.started(exact)


def _assignment(instance: Instance, tighten: bool) -> DeclarativeModel:
    from schedgap.formulations.gang_placement.models.assignment import build_assignment

    return build_assignment(PROBLEM.cast_instance(instance), tighten)


QUICK: tuple[str, ...] = (
    "kueue-best-fit",
    "kube-least-allocated",
    "ray-pack",
    "kueue-most-free",
    "first-fit",
    "best-fit",
)
QUICK += ("ray-spread", "kube-most-allocated", "dot-product", "kueue-least-free", "ray-strict-pack", "kai-two-level")
QUICK += ("ray-strict-spread", "random-fit", "fgd")
"""Rules in the order in which a method that starts runs them: those that were often best, or unlike the others, come
early; ``fgd`` takes most."""
MILLISECONDS, MOMENT, SECONDS = 40_000, 2_000_000, 20_000_000
"""Pods times nodes up to which every rule but ``fgd`` takes milliseconds, the first two below a third of a second, and
first fit about two seconds; of ``fgd`` the product has shapes, too."""

_exact = methods_of(Kind.EXACT, _exacts, _started)
_heuristic = partial(Method, kind=Kind.HEURISTIC, load=_heuristics)


class GangPlacement(FamilyProblem[GangPlacementInstance]):
    """Which waiting gangs go where, in one scheduling decision."""

    id = "gang-placement"
    title = "which waiting gangs go where in one decision of a cluster"
    source = "Kueue, KAI-Scheduler, Volcano, kube-scheduler, Ray"
    sense = MAXIMISE
    objective_name = "score"
    unit = ""
    instance_class = GangPlacementInstance
    solution_class = GangPlacementSolution
    forms = (Form("assignment", "pods of a group by node and device", "ours", _assignment),)
    methods = (
        _exact("staged", "the objectives one after another, each an integer program"),
        *ENGINES,
        _heuristic("kueue-best-fit", "largest domains first, the tightest one last", source="Kueue, KEP-2724"),
        _heuristic("kueue-least-free", "the tightest domain, else the smallest first", source="Kueue, KEP-2724"),
        _heuristic("kueue-most-free", "largest domains first", source="Kueue, KEP-2724"),
        _heuristic("kube-most-allocated", "the node with the least left after the pod", source="kube-scheduler"),
        _heuristic("kube-least-allocated", "the node with the most left after the pod", source="kube-scheduler"),
        _heuristic("kube-topology", "the domain that is allocated most after the gang", source="Kubernetes KEP-5732"),
        _heuristic("ray-pack", "as many pods as fit on the node with the largest share left", source="Ray, PACK"),
        _heuristic("ray-strict-pack", "all pods on one node, the largest share left", source="Ray, STRICT_PACK"),
        _heuristic("ray-spread", "each pod on another node where there is one", source="Ray, SPREAD"),
        _heuristic("ray-strict-spread", "each pod on a node of its own", source="Ray, STRICT_SPREAD"),
        _heuristic("fgd", "the node whose fragmentation grows least", source="Weng et al., ATC 2023"),
        _heuristic("dot-product", "the node whose rest is least like the pod", source="Weng et al., ATC 2023"),
        _heuristic(
            "kai-two-level", "the preferred level, else the fewest children of a wider one", source="KAI-Scheduler"
        ),
        _heuristic("random-fit", "a node drawn at random", source="Weng et al., ATC 2023"),
        _heuristic("first-fit", "each pod on the first node that takes it"),
        _heuristic("best-fit", "the node with the least processors and GPUs left", source="Weng et al., ATC 2023"),
    )

    share_of_heuristics = 0.1

    def quick_heuristics(self, instance: Instance) -> Sequence[Function]:
        """The rules that take milliseconds; of larger instances two, then first fit, and none of the largest."""
        cast = self.cast_instance(instance)
        work = sum(gang.size for gang in cast.gangs) * len(cast.nodes)
        many = len(QUICK) if work <= MILLISECONDS else 2 if work <= MOMENT else 0
        if many and work * len(cast.weighted_shapes) > MILLISECONDS:
            many = min(many, len(QUICK) - 1)
        ordered = self._inside()[::-1]
        return [ordered[QUICK.index("first-fit")]] if MOMENT < work <= SECONDS else ordered[:many]

    def _inside(self) -> list[Function]:
        rules = {method.id: method for method in self.heuristics()}
        ordered = [rules.pop(name).call for name in QUICK]
        theirs = [method.call for method in rules.values() if not (method.outside_model or method.is_user_defined)]
        return [*theirs, *reversed(ordered)]

    def parts(self) -> Parts[GangPlacementInstance, GangPlacementSolution]:
        from schedgap.formulations.gang_placement.check import check
        from schedgap.formulations.gang_placement.models.assignment import assignment_nonzeros
        from schedgap.solvers.exact.gang_placement.bound import upper_bound

        return Parts(check, model_size=assignment_nonzeros, bound=upper_bound, quick=_nothing)

    def ratio(self, instance: Instance, value: float | None, reference: float | None) -> float | None:
        """The ratio of the first component of the objective that differs; its other digits are no part of it."""
        from schedgap.solvers.exact.gang_placement.bound import ratio_of

        return ratio_of(self.cast_instance(instance), value, reference)


PROBLEM = GangPlacement()
