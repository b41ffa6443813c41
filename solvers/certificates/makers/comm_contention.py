"""Certificates of comm-contention: a tree over sequences of events, grown by the checker's own sets and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import Model
from schedgap.solvers.certificates.make import NEAR, Effort, Way
from schedgap.solvers.certificates.rules.comm_contention import constant, orders_of
from schedgap.solvers.certificates.rules.comm_orders import GRID, KINDS, WAITING, Orders
from schedgap.solvers.certificates.tree import Node, Unproven
from schedgap.solvers.result import Deadline


class OrderTree:
    """Depth first; a set whose bound is below the target is followed by every event.

    Parameters
    ----------
    orders : orders of the instance
    total : the sum of completion times, without latency, that is to be proven
    """

    def __init__(self, orders: Orders, total: Fraction, deadline: Deadline, most: int) -> None:
        self.orders, self.target, self.deadline, self.max_leaves = orders, total * GRID, deadline, most
        self.leaves = 0

    def grow(self, events: tuple[int, ...] = ()) -> Node:
        """The tree below a sequence.

        Raises Unproven: it does not close.
        """
        if self.deadline.passed or self.leaves > self.max_leaves:
            raise Unproven("the limit came first")
        before = self.orders.after(events)
        assert before is not None
        if WAITING not in before.state:
            raise Unproven("there is a better schedule than the one given")
        kept = []
        for event in range(KINDS * self.orders.n):
            found = self.orders.follow(before, *divmod(event, self.orders.n))
            if found is not None and self.orders.bound(found) < self.target:
                kept.append(event)
        return self._split(events, 0, KINDS * self.orders.n - 1, kept)

    def _split(self, events: tuple[int, ...], low: int, high: int, kept: list[int]) -> Node:
        """Splits that leave every event of `kept` alone."""
        if not kept:
            self.leaves += 1
            return {"prices": {}}
        if low == high:
            return self.grow((*events, low))
        at = kept[len(kept) // 2] - (len(kept) > 1 or kept[0] > low)
        parts = {
            "low": self._split(events, low, at, [event for event in kept if event <= at]),
            "high": self._split(events, at + 1, high, [event for event in kept if event > at]),
        }
        return {"split": f"event[{len(events)}]", "at": at, **parts}


def leaves(instance: CommContentionInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del instance, given
    yield "srpt", {}, {}


def way(instance: CommContentionInstance, given: dict[str, Any], value: Fraction | None) -> Way:
    """The way by sequences of events."""
    del instance, value

    def grow(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
        del model
        assert value is not None  # there is always a schedule
        claim = value - NEAR * abs(value)
        total = (claim - constant(given)) * len(given["tasks"])
        return claim, OrderTree(orders_of(given), total, effort.deadline, effort.leaves).grow()

    return "orders", {}, grow
