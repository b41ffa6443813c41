"""What the four figures of paper 000 share: workload, methods, metrics, second choices."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Choice, Metric, Series

WORKLOAD = {"servers": 20, "horizon": 1200, "nested": True}
MAKESPAN = Metric("objective", "makespan", "slots")
JCT = Metric("mean_jct", "average JCT", "slots")

SJF_BCO = Series("SJF-BCO", "sjf-bco+")
BASELINES = (Series("FF", "ff"), Series("LS", "ls"), Series("RAND", "rand"))

ORDER = Choice("same job order", methods={series.label: {"order": "smallest"} for series in BASELINES})
OPEN = (
    Choice("xi_1 = 0.25", {"xi_1": 0.25}),
    Choice("xi_1 = 1", {"xi_1": 1.0}),
    Choice("rho_hat from 50", {"least": 50.0}),
)
"""Second choices for what the paper leaves open of contention and durations."""
