"""Certificates of gpu-sharing's bounds: prices of GPUs by buckets of slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.certificates.make import Leaf
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.gpu_sharing.bound import priced


def leaves(instance: GpuSharingInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    reason = impossible(instance)
    if reason is not None:
        raise Unproven(f"there is no schedule: {reason}")
    yield "prices", {}, {"edges": [0], "prices": [[]], "classes": [], "weights": []}  # every job alone
    yield "prices", {}, _buckets(instance)


def _buckets(instance: GpuSharingInstance) -> dict[str, Any]:
    """Prices of gpu-sharing by buckets of slots."""
    found = priced(instance)
    return {
        "edges": found.edges.tolist(),
        "prices": np.rint(found.prices * GRID).astype(np.int64).tolist(),
        "classes": found.classes.tolist(),
        "weights": np.floor(found.weights * (1 - 1e-12) * GRID).astype(np.int64).tolist(),
    }
