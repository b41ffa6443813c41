"""Figure 7 of paper 000: the makespan over lambda, with kappa = 1 as printed."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Claim, Item, Series
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_000.common import JCT, MAKESPAN, OPEN, WORKLOAD
from schedgap.benchmarks.laboratory.rules import Trend, Value

_LAMBDAS = (1.0, 2.0, 4.0, 8.0)

ITEM = Item(
    id="figure-7",
    title="Figure 7: lambda",
    plots="The makespan of SJF-BCO for lambda = 1, 2, 4, 8 with kappa = 1 (section 7): how many times the GPUs that "
    "it needs a gang may choose from.",
    left_open="Open: T (1200 here). With kappa free, which the paper does not draw, the effect nearly vanishes; "
    "that curve stands beside and is not judged.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=(
        Series("kappa = 1", "sjf-bco", {"T": 1200, "kappa": 1}),
        Series("kappa free", "sjf-bco", {"T": 1200}, ours=True, beside=True),
    ),
    axis=Axis("lambda", "lambda", _LAMBDAS, of="method", log=True),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=OPEN,
    claims=(
        Claim(
            "With kappa = 1 the makespan falls with every step of lambda.",
            "section 7, Figure 7",
            (Trend(tuple(Value("objective", "kappa = 1", value) for value in _LAMBDAS)),),
        ),
    ),
    panels=(lines(MAKESPAN), lines(JCT), lines(RATIO)),
)
