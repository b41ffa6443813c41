"""Figure 5 of paper 001: the placement's parameter kappa under Ada-SRSF."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Claim, Item
from schedgap.benchmarks.laboratory.draw import bars, distribution
from schedgap.benchmarks.laboratory.paper_001.common import (
    COLUMNS,
    CURVE,
    ETA,
    ETAS,
    LEFT_OPEN,
    MEAN,
    eta,
    policy,
    simulated,
)
from schedgap.benchmarks.laboratory.rules import Less, Value

_KAPPAS = (1, 2, 4, 8, 16)

ITEM = Item(
    id="figure-5",
    title="Figure 5: kappa",
    plots="Distributions of JCT and utilisation of LWF-kappa under Ada-SRSF (section V-B).",
    left_open=LEFT_OPEN + " Which kappas are drawn is not in the text; here 1, 2, 4, 8 and 16.",
    problem="ddl-cluster",
    preset="paper",
    workload=eta(ETA),
    series=tuple(policy(f"LWF-{kappa}", "ada-srsf", "lwf", kappa) for kappa in _KAPPAS),
    metrics=COLUMNS,
    choices=ETAS,
    measure=simulated,
    claims=(
        Claim(
            "kappa = 1 is best: LWF-1 has the smallest mean JCT.",
            "section V-B, Figure 5",
            tuple(Less(Value(MEAN.name, "LWF-1"), Value(MEAN.name, f"LWF-{kappa}")) for kappa in _KAPPAS[1:]),
        ),
    ),
    panels=(distribution(CURVE, "JCT (s)", limit=15000), bars(MEAN), bars(RATIO)),
    most=20,
)
