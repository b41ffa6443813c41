"""Beside paper 002's figures: HadarE on the simulated cluster, with nodes of four devices or of one."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Choice, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import bars
from schedgap.benchmarks.laboratory.paper_002.common import TRACE, TTD
from schedgap.benchmarks.laboratory.rules import Less, More, Value

_ONE = {"nodes": 60, "per_node": 1}
_HADAR_4, _HADARE_4 = "Hadar, 15 nodes of 4", "HadarE, 15 nodes of 4"
_HADAR_1, _HADARE_1, _ALONE = "Hadar, 60 nodes of 1", "HadarE, 60 nodes of 1", "HadarE, one copy, 60 nodes of 1"
_UTILITY = Metric("objective", "total utility")
_WHERE = "beside section VI"


def _utility(series: str) -> Value:
    return Value("objective", series)


ITEM = Item(
    id="hadare-nodes",
    title="HadarE on the simulated cluster",
    plots="Not in the paper: Hadar and HadarE on the workload of Figures 3 and 4 with one worker a job, on 15 nodes "
    "of 4 devices as printed and on 60 nodes of one, which is the kind of cluster of section VI.",
    left_open="HadarE gives a whole node to a copy, and a copy of a single worker leaves the other three devices of a "
    "node idle. Without delay; copies in turn. Second choice: the printed hours and 400 rounds, in which not all jobs "
    "can finish.",
    problem="hadar",
    preset="trace",
    workload={**TRACE, "gangs": "single"},
    series=(
        Series(_HADAR_4, "hadar-rounds"),
        Series(_HADARE_4, "hadare"),
        Series(_HADAR_1, "hadar-rounds", workload=_ONE),
        Series(_HADARE_1, "hadare", workload=_ONE),
        Series(_ALONE, "hadare", {"copies": 1}, _ONE),
    ),
    metrics=(_UTILITY, TTD),
    choices=(Choice("printed hours", {"hours_scale": 1.0, "horizon": 400}),),
    claims=(
        Claim(
            "On nodes of four devices HadarE earns less than Hadar.",
            _WHERE,
            (Less(_utility(_HADARE_4), _utility(_HADAR_4)),),
            ours=True,
        ),
        Claim(
            "On nodes of one device it does not earn less.",
            _WHERE,
            (More(_utility(_HADARE_1), _utility(_HADAR_1)),),
            ours=True,
        ),
        Claim(
            "There copies shorten the TTD.",
            _WHERE,
            tuple(Less(Value("ttd", _HADARE_1), Value("ttd", other)) for other in (_ALONE, _HADAR_1)),
            choices=(),
            ours=True,
        ),
    ),
    panels=(bars(_UTILITY), bars(TTD)),
    most=10,
)
