"""Rows of fragmentation: what is free on all nodes and of no use to a shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import pulp

from schedgap.formulations.common.layout import Layout, Term
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance, Shape


@dataclass
class Sums:
    """A linear expression."""

    terms: list[Term] = field(default_factory=list)
    constant: Fraction = Fraction(0)

    def add(self, terms: Iterable[Term], factor: float | Fraction = 1) -> None:
        """Add terms, each times a factor."""
        self.terms += [(variable, float(coefficient * factor)) for variable, coefficient in terms]


class Fragments:
    """For each shape what is free on all nodes and of no use to it.

    Parameters
    ----------
    free, left : what the other variables leave free of a device, and of a resource of a node

    Attributes
    ----------
    lost : useless free amount per shape
    """

    def __init__(
        self,
        layout: Layout,
        instance: GangPlacementInstance,
        free: Callable[[int, int], Sums],
        left: Callable[[int, str], Sums],
    ) -> None:
        self.layout = layout
        self.instance = instance
        self.free = free
        self.left = left
        self.lost: list[Sums] = []

    def build(self) -> None:
        """All rows, and ``lost``."""
        for s, (shape, _) in enumerate(self.instance.weighted_shapes):
            self.lost.append(Sums())
            for n, node in enumerate(self.instance.nodes):
                if not shape.gpu or not shape.selector.takes(node):
                    self._all_of(n)
                else:
                    self._node(s, shape, n)

    def _all_of(self, n: int) -> None:
        """The shape cannot run there whatever is free."""
        for d in range(len(self.instance.nodes[n].gpus)):
            free = self.free(n, d)
            self.lost[-1].terms += free.terms
            self.lost[-1].constant += free.constant

    def _node(self, s: int, shape: Shape, n: int) -> None:
        name = self.instance.nodes[n].id
        fits = self.layout.variable("fits", s, name)
        useful = [self._device(s, shape, n, d, fits) for d in range(len(self.instance.nodes[n].gpus))]
        self.layout.row("fits", (s, name), [*((u, 1.0) for u in useful), (fits, -float(shape.pieces))], ">=", 0)
        for resource, amount in shape.request.items():
            left = self.left(n, resource)
            terms = [*left.terms, (fits, -float(amount))]
            self.layout.row("fits", (s, name, resource), terms, ">=", float(-left.constant))

    def _device(self, s: int, shape: Shape, n: int, d: int, fits: pulp.LpVariable) -> pulp.LpVariable:
        key = (s, self.instance.nodes[n].id, d)
        useful = self.layout.variable("useful", *key)
        lost = self.layout.variable("lost", *key, high=WHOLE)
        free = self.free(n, d)
        self.layout.row("useful", (*key, "fits"), [(useful, 1.0), (fits, -1.0)], "<=", 0)
        least = float(min(shape.gpu, WHOLE))
        self.layout.row("useful", key, [*free.terms, (useful, -least)], ">=", float(-free.constant))
        terms = [(lost, 1.0), (useful, float(WHOLE)), *((v, -c) for v, c in free.terms)]
        self.layout.row("lost", key, terms, ">=", float(free.constant))
        self.lost[-1].terms.append((lost, 1.0))
        return useful
