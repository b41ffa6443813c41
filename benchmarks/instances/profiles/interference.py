"""How much two jobs slow each other down on one GPU: measured, as quantiles over ordered pairs of job types.

Source: ``simulation_throughputs.json`` of the repository stanford-futuredata/gavel (MIT licence), published
with D. Narayanan, K. Santhanam, F. Kazhamiaka, A. Phanishayee, M. Zaharia, "Heterogeneity-aware cluster
scheduling policies for deep learning workloads", OSDI 2020. The ratio of a pair is the job's rate alone over
its rate beside the other, at least 1, for jobs of one GPU; pairs that were not run together (rate 0) are left
out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

COUNT: Mapping[str, int] = {"v100": 636, "p100": 656, "k80": 589}
"""Ordered pairs of job types behind each row."""


# fmt: off
QUANTILES: Mapping[str, tuple[float, ...]] = {
    "v100": (
        1.0, 1.0, 1.0, 1.0, 1.0, 1.002, 1.073, 1.108, 1.141, 1.162, 1.188, 1.213, 1.23, 1.251, 1.273, 1.297, 1.334,
        1.37, 1.409, 1.437, 1.474, 1.528, 1.572, 1.603, 1.65, 1.684, 1.732, 1.815, 1.898, 1.982, 2.066, 2.188, 2.303,
        2.395, 2.714, 2.952, 3.251, 3.653, 4.84, 5.787, 10.973,
    ),
    "p100": (
        1.009, 1.128, 1.207, 1.243, 1.268, 1.3, 1.328, 1.36, 1.378, 1.415, 1.429, 1.444, 1.47, 1.489, 1.528, 1.549,
        1.574, 1.609, 1.638, 1.677, 1.702, 1.738, 1.761, 1.789, 1.815, 1.85, 1.883, 1.93, 1.959, 2.006, 2.03, 2.072,
        2.112, 2.15, 2.226, 2.318, 2.399, 2.506, 2.711, 2.941, 3.564,
    ),
    "k80": (
        1.157, 1.305, 1.361, 1.412, 1.46, 1.491, 1.52, 1.552, 1.582, 1.606, 1.638, 1.658, 1.684, 1.707, 1.732, 1.761,
        1.779, 1.796, 1.829, 1.847, 1.867, 1.901, 1.938, 1.959, 1.991, 2.013, 2.052, 2.089, 2.115, 2.161, 2.209,
        2.252, 2.31, 2.354, 2.42, 2.473, 2.53, 2.632, 2.736, 2.911, 4.254,
    ),
}
# fmt: on
"""Quantiles 0, 0.025, ..., 1 of the ratio, per type of worker."""


def drawn_ratio(rng: np.random.Generator, worker: str) -> float:
    """A ratio from the measured distribution, linear between the quantiles."""
    known = QUANTILES[worker]
    return float(np.interp(rng.uniform(), np.linspace(0, 1, len(known)), known))
