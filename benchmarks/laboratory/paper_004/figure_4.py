"""Figure 4 of paper 004: total utility over the number of jobs."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_004.common import (
    ALGORITHM,
    BASELINES,
    EMBEDDED,
    EXACT,
    FILLED,
    PRINTED,
    PRINTED_FILLED,
    SMALL,
    UNFILLED,
    UTILITY,
)
from schedgap.benchmarks.laboratory.rules import LeadGrows, Less, More, Value

_JOBS = (20, 40, 80)
_OTHERS = ("FIFO", "DRF", "LAS")


def _utility(series: str, jobs: int) -> Value:
    return Value("objective", series, jobs)


def _above(series: str) -> tuple[Less, ...]:
    return tuple(More(_utility(series, n), _utility(other, n)) for other in _OTHERS for n in _JOBS)


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
    left_open="Open: the numbers of jobs. Here 20 servers (printed: 50) with 20, 40 and 80 jobs over the printed 200 "
    "slots, so that all of it takes minutes. With lambda_2 as printed a sigmoid is nearly a "
    "step; second choice: steepness 0.01. F as a limit on worker-slots "
    "never binds; second choice: it counts iterations. " + " ".join(ALGORITHM.split()),
    problem="ddljs",
    preset="paper",
    workload=SMALL,
    series=(FILLED, UNFILLED, PRINTED, PRINTED_FILLED, EXACT, *BASELINES),
    axis=Axis("jobs", "jobs", _JOBS),
    metrics=(UTILITY, EMBEDDED, RATIO),
    choices=(Choice("steepness 0.01", {"steepness": 0.01}), Choice("F counts iterations", {"budget": "iterations"})),
    claims=(
        Claim(
            "GADGET as printed (not filled) has a larger utility than FIFO, DRF and LAS.",
            "section VI, Figure 4",
            _above("GADGET"),
        ),
        Claim(
            "GADGET, filled, has a larger utility than FIFO, DRF and LAS.",
            "section VI, Figure 4",
            _above("GADGET, filled"),
        ),
        Claim(
            "GADGET's lead grows with the number of jobs (not filled).",
            "section VI, Figure 4",
            _grows("GADGET"),
        ),
        Claim(
            "GADGET's lead grows with the number of jobs (filled).",
            "section VI, Figure 4",
            _grows("GADGET, filled"),
        ),
    ),
    panels=(lines(UTILITY), lines(EMBEDDED), lines(RATIO)),
    most=10,
)
