"""Figure 5 of paper 000: the makespan over kappa, up to which gangs are placed on the whole cluster."""

from __future__ import annotations

from dataclasses import replace

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Claim, Item
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_000.common import MAKESPAN, OPEN, REPAIRED, SJF_BCO, WORKLOAD
from schedgap.benchmarks.laboratory.rules import Turns, Value

_KAPPAS = (1, 2, 4, 8, 16, 32)

ITEM = Item(
    id="figure-5",
    title="Figure 5: kappa",
    plots="The makespan of SJF-BCO for kappa from 1 to 32 (section 7); two turning points are marked.",
    left_open="Only kappa = 1, 2, 4, 8, 16 and 32 can differ, since gangs have these sizes. Where the turning "
    "points lie is not in the text. T = 1200.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=tuple(replace(one, settings={"T": 1200}) for one in (SJF_BCO, REPAIRED)),
    axis=Axis("kappa", "kappa", _KAPPAS, of="method", log=True),
    metrics=(MAKESPAN, RATIO),
    choices=OPEN,
    claims=(
        Claim(
            "With growing kappa the makespan falls, then rises, then falls again.",
            "section 7, Figure 5",
            (Turns(tuple(Value("objective", "SJF-BCO", kappa) for kappa in _KAPPAS)),),
        ),
    ),
    panels=(lines(MAKESPAN), lines(RATIO)),
    seeds=40,
)
