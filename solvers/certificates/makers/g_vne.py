"""Certificates of g-vne's bounds: prices of nodes and links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.exact.g_vne.bound import priced_bound


def leaves(instance: GVneInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    yield "prices", {}, _rings(instance)


def _rings(instance: GVneInstance) -> dict[str, Any]:
    """Prices of g-vne on nodes and links; that of a tree link on its narrower direction."""
    _, subproblem, prices = priced_bound(instance)
    data, whole = subproblem.data, np.rint(prices * GRID)
    nodes: dict[str, dict[str, int]] = {}
    for v, r in np.argwhere(subproblem.node_row >= 0).tolist():
        if price := int(whole[subproblem.node_row[v, r]]):
            nodes.setdefault(str(v), {})[data.resources[r]] = price
    links: dict[str, int] = {}
    for place in np.flatnonzero(subproblem.link_row >= 0).tolist():
        e = place
        if subproblem.forest is not None:
            up, down = int(subproblem.forest.up[place]), int(subproblem.forest.down[place])
            e = up if data.bandwidth[up] <= data.bandwidth[down] else down
        if price := int(whole[subproblem.link_row[place]]):
            links[str(e)] = price
    return {"nodes": nodes, "links": links, "linked": subproblem.linked}
