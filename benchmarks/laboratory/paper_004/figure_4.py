"""Figure 4 of paper 004: total utility over the number of jobs."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Series
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_004.common import (
    ALGORITHM,
    BASELINES,
    EMBEDDED,
    FILLED,
    GADGET,
    KEPT,
    LOAD,
    REPAIRED,
    UTILITY,
)
from schedgap.benchmarks.laboratory.rules import LeadGrows, Less, More, Value

_JOBS = (100, 200)
_OTHERS = ("FIFO", "DRF", "LAS")


def _utility(series: str, jobs: int) -> Value:
    return Value("objective", series, jobs)


def _above(series: str) -> tuple[Less, ...]:
    return tuple(
        More(
            _utility(series, n),
            _utility(other, n),
            ratios=tuple(Value("ratio", one, n) for one in (series, *_OTHERS)),
        )
        for other in _OTHERS
        for n in _JOBS
    )


def _grows(series: str) -> tuple[LeadGrows, ...]:
    return tuple(
        LeadGrows(
            (_utility(series, _JOBS[0]), _utility(other, _JOBS[0])),
            (_utility(series, _JOBS[-1]), _utility(other, _JOBS[-1])),
            gain=True,
        )
        for other in _OTHERS
    )


ITEM = Item(
    id="figure-4",
    title="Figure 4: total utility",
    plots="Total utility of GADGET, FIFO, DRF and LAS over the number of jobs (section VI).",
    left_open="The printed 50 servers and 200 slots. Open: the numbers of jobs, here 100 and 200; second choice: "
    "2.5 times as many jobs a server (20 servers). lambda_2 is uniform on the printed (0, 1), where a sigmoid is "
    "nearly a step; second choice: on (0, 0.01), with 20 servers. F as a limit on worker-slots never binds; second "
    "choice: it counts iterations. A comparison in which every method reaches the bound in every draw is left out. "
    + " ".join(ALGORITHM.split()),
    problem="ddljs",
    preset="paper",
    series=(
        GADGET,
        *REPAIRED,
        Series("exact slots, filled", "gadget", {"inner": "colgen"}, ours=True, beside=True),
        *BASELINES,
    ),
    axis=Axis("jobs", "jobs", _JOBS),
    metrics=(UTILITY, EMBEDDED, LOAD, RATIO),
    choices=(
        KEPT,
        Choice("20 servers", {"servers": 20}),
        Choice("20 servers, lambda_2 up to 0.01", {"servers": 20, "steepness": 0.01}),
        Choice("F counts iterations", {"budget": "iterations"}),
    ),
    claims=(
        Claim(
            "GADGET has a larger utility than FIFO, DRF and LAS.",
            "section VI, Figure 4",
            _above("GADGET"),
        ),
        Claim(
            "GADGET's lead grows with the number of jobs.",
            "section VI, Figure 4",
            _grows("GADGET"),
        ),
        Claim(
            "Repaired and filled, it has a larger utility than FIFO, DRF and LAS.",
            "beside Figure 4",
            _above(FILLED),
            choices=(),
            ours=True,
        ),
        Claim(
            "Repaired and filled, its lead grows with the number of jobs.",
            "beside Figure 4",
            _grows(FILLED),
            choices=(),
            ours=True,
        ),
    ),
    panels=(lines(UTILITY), lines(EMBEDDED), lines(RATIO)),
    most=10,
)
