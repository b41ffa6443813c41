"""Figure 6 of paper 000: the makespan over the number of servers."""

from __future__ import annotations

from dataclasses import replace

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Claim, Item
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_000.common import BASELINES, JCT, MAKESPAN, OPEN, ORDER, PRINTED, SJF_BCO
from schedgap.benchmarks.laboratory.rules import LeadGrows, Trend, Value

_SERVERS = (10, 12, 14, 16, 18, 20)


def _at(series: str, servers: int) -> Value:
    return Value("objective", series, servers)


def _falls_more(other: str) -> LeadGrows:
    """FF's fall is the larger one exactly where the other's lead over FF is larger on few servers than on many."""
    return LeadGrows(
        (_at(other, 20), _at("FF", 20)),
        (_at(other, 10), _at("FF", 10)),
        what=f"FF falls by more from 10 to 20 servers than {other}",
    )


ITEM = Item(
    id="figure-6",
    title="Figure 6: number of servers",
    plots="The makespan of FF, LS and SJF-BCO over 10 to 20 servers (section 7).",
    left_open="Open: the steps of x (2 here), and whether RAND is drawn (it is here, and not judged for its fall). "
    "T = 1500. The clusters of one draw are nested and their jobs the same.",
    problem="rar-ddls",
    preset="paper",
    workload={**PRINTED, "horizon": 1500},
    series=tuple(replace(one, settings={"T": 1500}) for one in (SJF_BCO, *BASELINES)),
    axis=Axis("servers", "servers", _SERVERS),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=(ORDER, *OPEN),
    claims=(
        Claim(
            "The makespans of SJF-BCO, FF and LS fall with the number of servers.",
            "section 7, Figure 6",
            tuple(Trend(tuple(_at(one, n) for n in _SERVERS)) for one in ("SJF-BCO", "FF", "LS")),
        ),
        Claim(
            "FF's makespan falls the most.",
            "section 7, Figure 6",
            tuple(_falls_more(other) for other in ("SJF-BCO", "LS")),
        ),
    ),
    panels=(lines(MAKESPAN), lines(JCT), lines(RATIO)),
)
