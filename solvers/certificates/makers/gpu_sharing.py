"""Certificates of gpu-sharing's bounds: prices of GPUs by buckets of slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.gpu_sharing.bound import Priced, priced, priced_together


def leaves(instance: GpuSharingInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    reason = impossible(instance)
    if reason is not None:
        raise Unproven(f"there is no schedule: {reason}")
    yield "prices", {}, {"edges": [0], "prices": [[]], "classes": [], "weights": []}  # every job alone
    yield "prices", {}, _buckets(priced(instance))
    together = priced_together(instance)
    if together is not None:
        yield "prices", {}, {**_buckets(together), "together": True}


def _buckets(prices: Priced) -> dict[str, Any]:
    """Prices of gpu-sharing by buckets of slots."""
    return {
        "edges": prices.edges.tolist(),
        "prices": np.rint(prices.prices * GRID).astype(np.int64).tolist(),
        "classes": prices.classes.tolist(),
        "weights": np.floor(prices.weights * (1 - 1e-12) * GRID).astype(np.int64).tolist(),
    }
