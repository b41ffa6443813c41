"""Certificates of ddljs's bounds: prices by blocks of slots and classes of servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.exact.ddljs.bound import block_prices


def leaves(instance: DdljsInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    yield "prices", {}, {"ends": [instance.horizon], "classes": [-1] * len(instance.servers), "prices": [[]]}
    yield from _slots(instance)


def _slots(instance: DdljsInstance) -> Iterator[Leaf]:
    """Prices of ddljs by blocks of slots and classes of servers."""
    blocks, _, prices = block_prices(instance)
    if prices is not None:
        lines = [
            [{name: int(p) for name, p in zip(blocks.resources, own, strict=True) if p} for own in line]
            for line in np.rint(prices * GRID)
        ]
        yield "prices", {}, {"ends": blocks.ends.tolist(), "classes": blocks.classes.tolist(), "prices": lines}
