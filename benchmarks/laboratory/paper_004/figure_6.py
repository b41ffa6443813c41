"""Figure 6 of paper 004: embedded ratio over the capacity of the links, with elastic rings and with fixed gangs."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_004.common import EMBEDDED, FILLED, embedded_ratio
from schedgap.benchmarks.laboratory.rules import More, Trend, Value, Within

_FACTORS = (0.005, 0.02, 0.1, 1.0)
_NARROW = (100.0, 50.0, 20.0, 1.0)
_REPAIRED = "Algorithm 2, repaired"
_BIND = Metric("links bind", "slots with a full link", "%", 100.0)


def _embedded(series: str, factor: float) -> Value:
    return Value("embedded", series, factor)


def _rises(series: str) -> Trend:
    return Trend(tuple(_embedded(series, factor) for factor in _FACTORS), falling=False, end=1.0)


ELASTIC = embedded_ratio(
    "Figure 6",
    "edge",
    plots="Embedded ratio by edge resources in units of 200 Gbit/s (section VI).",
    left_open="As in Figure 5, with the printed GPUs. The model's rings are elastic: a ring of one worker needs no "
    "link, so a job can always shrink, and rings of at most five workers mostly fit one server. Second choice: GPUs "
    "cut to a quarter, so that rings span servers. Factors on the bandwidth of every link from 0.005 to 1.",
    axis=Axis("factor on bandwidths", "bandwidth_factor", _FACTORS, log=True),
    choices=(Choice("a quarter of the GPUs", {"gpu_factor": 0.25}),),
    claims=(
        Claim(
            "Wider links embed more jobs in each slot.",
            "section VI, Figure 6",
            (More(_embedded("GADGET", _FACTORS[-1]), _embedded("GADGET", _FACTORS[0])), _rises("GADGET")),
        ),
        Claim(
            "So they do for GADGET, repaired and filled.",
            "beside Figure 6",
            (_rises(FILLED),),
            choices=(),
            ours=True,
        ),
    ),
)
FIXED = Item(
    id="figure-6-fixed",
    title="Figure 6: with fixed gangs and links that bind",
    plots="Not in the paper: the same question where links can matter, since a job has its N_i workers or none.",
    left_open="One slot (g-vne, preset `racks`): 50 servers of at most 2 GPUs, 35 jobs of N_i workers or none, few "
    "enough for the GPUs not to run out first; links 100, 50, 20 times narrower than printed, and as printed. A draw "
    "stands for a slot. A link counts as full when more than 90% of it is used (the limit is ours).",
    problem="g-vne",
    preset="racks",
    workload={"jobs": 35, "gangs": "fixed", "gpus": 2},
    series=(
        Series(_REPAIRED, "lp-rs-mde", ours=True),
        Series("Algorithm 2, printed program, capacities kept", "lp-rs-mde", {"lp": "augmented"}, ours=True),
        Series("greedy", "greedy", ours=True),
    ),
    axis=Axis("links narrower by", "tightness", _NARROW, log=True),
    metrics=(EMBEDDED, _BIND, RATIO),
    claims=(
        Claim(
            "With fixed gangs and links that bind, wider links embed more jobs.",
            "beside Figure 6",
            tuple(
                Trend(tuple(Value("embedded", series, width) for width in _NARROW), falling=False)
                for series in (_REPAIRED, "greedy")
            ),
            ours=True,
        ),
        Claim(
            "Links bind: at the narrowest a link is full in at least half of the slots (a check of the setting).",
            "beside Figure 6",
            tuple(
                Within(Value("links bind", one, _NARROW[0]), low=0.5, what=f"{one}: a full link in half of the slots")
                for one in (_REPAIRED, "greedy")
            ),
            ours=True,
        ),
    ),
    panels=(lines(EMBEDDED), lines(_BIND), lines(RATIO)),
)
