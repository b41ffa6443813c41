"""Questions about one gang, each an instance of its own that is solved exactly in its part of the time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import Gang, GangPlacementInstance, Group
from schedgap.heuristics.gang_placement.cluster import prefix
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status

NOTHING: Solution = {"placement": {}}
"""The decision that places no gang."""
ROUND = 6
"""Times the making of an instance that a gang has at least, for its few questions."""
PART = 0.3
"""Part of a gang's time that one question about it may take of what is left."""


class Asking:
    """Who asks, with a clock: every gang has an equal part of the time that is left, each question a part of that.

    Attributes
    ----------
    whole : the end of all
    deadline : the end of the questions about the gang at hand
    """

    def __init__(self, problem: Problem, whole: Deadline, seed: int) -> None:
        self.problem, self.whole, self.seed = problem, whole, seed
        self.deadline = whole
        self.cost = 0.0  # seconds that the instance of the last question took to make

    def turn_to(self, gangs_left: int) -> None:
        """The next gang's time begins: its equal part, but enough for a few questions as long as there is any."""
        share = (self.whole.remaining() or 0.0) / max(1, gangs_left)
        self.deadline = self.whole.capped(max(share, ROUND * self.cost))

    @property
    def ready(self) -> bool:
        """Whether there is time for another question."""
        return not self.deadline.passed and (self.whole.remaining() or 1.0) > self.cost

    def build(self, instance: GangPlacementInstance, *given: Json, **more: Json) -> GangPlacementInstance:
        """An instance of :func:`with_gangs`, its time measured."""
        began = time.monotonic()
        made = with_gangs(instance, *given, **more)
        self.cost = time.monotonic() - began
        return made

    def options(self, part: float = PART) -> SolveOptions:
        """With so much of the time of the gang at hand."""
        return SolveOptions(deadline=self.deadline.capped(part * (self.deadline.remaining() or 0.0)), seed=self.seed)

    def solved(self, instance: GangPlacementInstance, start: Solution | None = None) -> Result | None:
        """The best decision; None where there is no time for it."""
        options = replace(self.options(), start=start)
        if self.deadline.passed:
            return None
        return run_method(self.problem, instance, "staged", options)

    def placed_alone(self, instance: GangPlacementInstance, gang: Gang) -> tuple[bool | None, Solution]:
        """Whether a gang could be placed if nothing else waited, and how; None where the time is over."""
        result = self.solved(self.build(instance, [gang], ["weight"])) if self.ready else None
        if result is None:
            return None, NOTHING
        if result.solution is not None and result.solution["placement"]:
            return True, result.solution
        return (False if result.status is Status.OPTIMAL else None), NOTHING

    def values(self, instance: GangPlacementInstance, solution: Solution) -> dict[str, Fraction]:
        """The vector of a decision by name."""
        found: Mapping[str, str] = self.problem.check(instance, solution).details["components"]
        return {name: Fraction(text) for name, text in found.items()}


def with_gangs(
    instance: GangPlacementInstance,
    gangs: Sequence[Gang],
    objectives: Sequence[str],
    nodes: frozenset[str] | None = None,  # ids of the nodes that are kept; None: all
    nodes_as: Sequence[Json] | None = None,  # other nodes in place of these
    **more: Json,
) -> GangPlacementInstance:
    """The instance with other gangs and objectives."""
    data = instance.to_dict() | more
    kept: dict[str, Any] = {"objectives": list(objectives), "gangs": [_plain(gang) for gang in gangs]}
    if nodes_as is not None:
        kept["nodes"] = list(nodes_as)
    if nodes is not None:
        kept["nodes"] = [node for node in data["nodes"] if node["id"] in nodes]
        kept["running"] = [pod for pod in data.get("running", ()) if pod["node"] in nodes]
    return GangPlacementInstance.parse({**data, **kept}, "snapshot")


def _plain(gang: Gang) -> dict[str, Json]:
    made: dict[str, Json] = gang.model_dump(mode="json", exclude_none=True)
    return made


def first_pods(gang: Gang, number: int) -> Gang:
    """The gang with its first pods alone."""
    pods = tuple(gang.pods[k].model_copy(update={"count": count}) for k, count in prefix(gang, number))
    named = {name for group in pods for name in group.subgroups or ()}
    kept = tuple(subgroup for subgroup in gang.subgroups or () if subgroup.id in named)
    return gang.model_copy(update={"pods": pods, "least": None, "subgroups": kept or None})


def without_subgroups(gang: Gang) -> Gang:
    """The gang whose groups have no levels of their own."""
    pods = tuple(group.model_copy(update={"subgroups": None}) for group in gang.pods)
    return gang.model_copy(update={"pods": pods, "subgroups": None})


def without_request(group: Group, names: frozenset[str]) -> Group:
    """The pods without what they ask of some resources."""
    request = {key: amount for key, amount in group.request.items() if key not in names}
    return group.model_copy(update={"request": request})


def without_labels(group: Group, *words: str) -> Group:
    """The pods without the labels of nodes that begin with one of these words; without any, no selector at all."""
    selector = group.selector
    if not words:
        return group.model_copy(update={"selector": type(selector)()})
    kept = {name: value for name, value in selector.labels.items() if name.partition("-")[0] not in words}
    return group.model_copy(update={"selector": selector.model_copy(update={"labels": kept})})
