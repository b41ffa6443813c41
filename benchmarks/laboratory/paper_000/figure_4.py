"""Figure 4 of paper 000: SJF-BCO against first fit, list scheduling and random placement."""

from __future__ import annotations

from dataclasses import replace

from schedgap.benchmarks.laboratory.declare import RATIO, Choice, Claim, Item, Series
from schedgap.benchmarks.laboratory.draw import bars
from schedgap.benchmarks.laboratory.paper_000.common import (
    BASELINES,
    JCT,
    MAKESPAN,
    OPEN,
    ORDER,
    REPAIRED,
    SJF_BCO,
    WORKLOAD,
)
from schedgap.benchmarks.laboratory.rules import LeadGrows, Less, Value

_T = {"T": 1200}
_ALL = (SJF_BCO, *BASELINES)
_SMALL = {"servers": 10}
_FEW = tuple(replace(one, label=f"{one.label}, 10 servers", workload=_SMALL, settings=_T) for one in _ALL)
_ORDER = Choice(
    ORDER.label, methods={**ORDER.methods, **{f"{k}, 10 servers": dict(v) for k, v in ORDER.methods.items()}}
)


def _leads(metric: str, name: str) -> tuple[LeadGrows, ...]:
    return tuple(
        LeadGrows(
            (Value(metric, "SJF-BCO"), Value(metric, one.label)),
            (Value(metric, "SJF-BCO, 10 servers"), Value(metric, f"{one.label}, 10 servers")),
            what=f"{name}: lead of SJF-BCO over {one.label} larger on 10 servers than on 20",
        )
        for one in BASELINES
    )


ITEM = Item(
    id="figure-4",
    title="Figure 4: policies",
    plots="Bars of the makespan of FF, LS, RAND and SJF-BCO (section 7). The text reads average completion times "
    "off the same figure, so both are drawn.",
    left_open="Open: one draw or several, and the order in which FF, LS and RAND take jobs. Here they take them in "
    "the input order; as a second choice in that of SJF-BCO, fewest GPUs first. T = 1200. Ten servers are the first "
    "ten of the twenty, with the same jobs.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=(
        *(replace(one, settings=_T) for one in (*_ALL, REPAIRED)),
        Series("LPT-colocate", "lpt-colocate", ours=True, beside=True),
        *_FEW,
    ),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=(_ORDER, *OPEN),
    claims=(
        Claim(
            "SJF-BCO has a smaller makespan than FF, LS and RAND.",
            "section 7, Figure 4",
            tuple(Less(Value("objective", "SJF-BCO"), Value("objective", one.label)) for one in BASELINES),
        ),
        Claim(
            "SJF-BCO has a smaller average JCT than FF, LS and RAND.",
            "section 7, Figure 4",
            tuple(Less(Value("mean_jct", "SJF-BCO"), Value("mean_jct", one.label)) for one in BASELINES),
        ),
        Claim(
            "SJF-BCO's advantage is larger where GPUs are scarce.",
            "section 7, Figure 4",
            (*_leads("objective", "makespan"), *_leads("mean_jct", "average JCT")),
        ),
    ),
    panels=tuple(
        bars(metric, ("SJF-BCO", "FF", "LS", "RAND", "SJF-BCO+", "LPT-colocate")) for metric in (MAKESPAN, JCT, RATIO)
    ),
    seeds=40,
)
