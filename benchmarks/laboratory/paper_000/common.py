"""What the four figures of paper 000 share: workload, methods, metrics, second choices."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Choice, Metric, Series

PRINTED = {"nested": True, "xi_1": 0.0005, "xi_2": 0.0005, "least": 50.0}
"""xi_1 = xi_2, and estimated durations from 50 slots on."""
WORKLOAD = {**PRINTED, "servers": 20, "horizon": 1200}
MAKESPAN = Metric("objective", "makespan", "slots")
JCT = Metric("mean_jct", "average JCT", "slots")

SJF_BCO = Series("SJF-BCO", "sjf-bco")
REPAIRED = Series("SJF-BCO+", "sjf-bco+", ours=True, beside=True)
"""With the pass of infinite theta compared, too."""
BASELINES = (Series("FF", "ff"), Series("LS", "ls"), Series("RAND", "rand"))

ORDER = Choice("same job order", methods={series.label: {"order": "smallest"} for series in BASELINES})
OPEN = (
    Choice("xi_1 = 0.5", {"xi_1": 0.5}),
    Choice("xi_1 = 1", {"xi_1": 1.0}),
    Choice("rho_hat below 50, too", {"least": 0.0}),
)
"""Second choices: rings that contend, and shorter jobs."""
