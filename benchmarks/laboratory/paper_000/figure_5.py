"""Figure 5 of paper 000: the makespan over kappa, up to which gangs are placed on the whole cluster."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_000.common import MAKESPAN, OPEN, WORKLOAD
from schedgap.benchmarks.laboratory.rules import Turns, Value

_KAPPAS = (1, 2, 4, 8, 16, 32)
_BISECTED = Metric("bisected", "makespan of the bisected pass", "slots")


def _turns(metric: str, name: str) -> Turns:
    return Turns(tuple(Value(metric, "SJF-BCO", kappa) for kappa in _KAPPAS), what=name)


ITEM = Item(
    id="figure-5",
    title="Figure 5: kappa",
    plots="The makespan of SJF-BCO for kappa from 1 to 32 (section 7); two turning points are marked.",
    left_open="Only kappa = 1, 2, 4, 8, 16 and 32 can differ, since gangs have these sizes. Where the turning "
    "points lie is not in the text. The bisected pass is the algorithm as printed; the pass that is returned was "
    "also compared with the one whose theta is infinite. T = 1200.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=(Series("SJF-BCO", "sjf-bco+", {"T": 1200}),),
    axis=Axis("kappa", "kappa", _KAPPAS, of="method", log=True),
    metrics=(MAKESPAN, _BISECTED, RATIO),
    choices=OPEN,
    claims=(
        Claim(
            "With growing kappa the makespan falls, then rises, then falls again.",
            "section 7, Figure 5",
            (_turns("bisected", "bisected pass"), _turns("objective", "returned pass")),
        ),
    ),
    panels=(lines(_BISECTED), lines(MAKESPAN), lines(RATIO)),
    seeds=40,
)
