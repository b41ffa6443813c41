"""The order of the levels of a topology that a Kubernetes listing names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.kubernetes.taking import HOST

WIDTHS = ("region", "zone", "block", "rack")
"""Last words of the usual labels of levels, widest first."""


class Levels:
    """Node labels that are levels.

    Parameters
    ----------
    topologies : objects of kind Topology with their places; the first gives the order
    nodes : the labels of each node
    """

    def __init__(
        self, source: str, topologies: Sequence[tuple[str, Mapping[str, Json]]], nodes: Sequence[Mapping[str, str]]
    ) -> None:
        self.source, self.topologies, self.labels = source, topologies, nodes

    def ordered(self, named: Collection[str]) -> list[str]:
        """Labels of levels, widest first: of a Topology object, else those that waiting pods name; not the node's.

        Raises InputError: their order cannot be told.
        """
        result: list[str] = []
        for place, topology in self.topologies[:1]:
            result = [str(level.get("nodeLabel")) for level in (topology.get("spec") or {}).get("levels") or []]
            if len(set(result)) < len(result):
                raise InputError(f"{place}.spec.levels: a label is there twice")
        result = result or self._ordered(sorted({*named} - {HOST}))
        return [name for name in result if name != HOST]

    def _ordered(self, names: Sequence[str]) -> list[str]:
        """Levels that no Topology orders, widest first."""
        inside = {name: sum(self._wider(other, name) for other in names if other != name) for name in names}
        if len(set(inside.values())) < len(names):  # each of three is wider than the next one
            raise self._no_order(names)
        return sorted(names, key=lambda name: inside[name])

    def _wider(self, level: str, other: str) -> bool:
        """Whether a level is wider than another: each of the other lies in one of it; as the usual names say."""
        pairs = {(one[level], one[other]) for one in self.labels if one.get(level) and one.get(other)}
        inward, outward = (len({pair[part] for pair in pairs}) == len(pairs) for part in (1, 0))
        words = [re.split(r"\W|_", name)[-1] for name in (level, other)]
        ranks = [WIDTHS.index(word) for word in words if word in WIDTHS]
        answers = {ranks[0] < ranks[1]} if len(set(ranks)) == 2 else set()
        answers |= {inward} if inward != outward else set()
        if inward and outward:  # the same domains
            answers = answers or {level < other}
        if len(answers) != 1:
            raise self._no_order((level, other))
        return answers.pop()

    def _no_order(self, names: Sequence[str]) -> InputError:
        shown = ", ".join(repr(name[:60]) for name in names)
        how = "list their Topology, too: kubectl get nodes,pods,topologies -A -o json"
        return InputError(f"{self.source}: which of the levels {shown} is wider cannot be told; {how}")
