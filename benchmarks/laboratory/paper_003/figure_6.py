"""Figure 6 of paper 003: average JCT over the load and over the interference."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Series
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.paper_003.common import (
    BSBF,
    BY_GPUS,
    DURATIONS,
    FFS,
    JCT,
    LEFT_OPEN,
    MEASURED,
    OTHERS,
    SIX,
    STAND_IN,
)
from schedgap.benchmarks.laboratory.rules import Agrees, Less, Value, Within

_JOBS = (120, 180, 240, 360, 480)
_XI = (1.0, 1.25, 1.5, 1.75, 2.0)


def _jct(series: str, at: float) -> Value:
    return Value("jct all", series, at)


LOAD = Item(
    id="figure-6a",
    title="Figure 6(a): load",
    plots="Average JCT of six policies over 120 to 480 jobs (section VI-C).",
    left_open=LEFT_OPEN + " The load factors between are lost in our text; here 120, 180, 240, 360 and 480 jobs.",
    problem="gpu-sharing",
    preset="table-iii",
    series=SIX,
    axis=Axis("jobs", "jobs", _JOBS),
    metrics=(JCT, RATIO),
    choices=(MEASURED, DURATIONS, BY_GPUS),
    claims=(
        Claim(
            "At the lowest load Pollux has the smallest average JCT.",
            "section VI-C, Figure 6(a)",
            cannot=STAND_IN,
        ),
        Claim(
            "SJF-BSBF improves on every other baseline at every load.",
            "section VI-C, Figure 6(a)",
            tuple(Less(_jct("SJF-BSBF", n), _jct(other, n)) for n in _JOBS for other in OTHERS),
        ),
    ),
    panels=(lines(JCT, logarithmic=True), lines(RATIO)),
    most=10,
)
INTERFERENCE = Item(
    id="figure-6b",
    title="Figure 6(b): injected interference",
    plots="Average JCT of SJF-FFS and SJF-BSBF over the interference ratio of every pair, 240 jobs (section VI-C).",
    left_open="The ratio is the same for all pairs; the jobs of a draw are the same for every ratio. SJF, which "
    "never shares, stands beside. Second choices: small jobs of 0.01 to 3 hours; short is few GPUs, as in Table III; "
    "arrivals within 4.6 hours, where SJF queues about as long as is printed.",
    problem="gpu-sharing",
    preset="table-iii",
    series=(FFS, BSBF, Series("SJF", "sjf", ours=True)),
    axis=Axis("interference ratio", "xi", _XI),
    metrics=(JCT, RATIO),
    choices=(DURATIONS, BY_GPUS, Choice("hours of arrivals 4.6", {"hours": 4.6})),
    claims=(
        Claim(
            "From 1.5 on SJF-BSBF saves 8 to 13% of SJF-FFS' average JCT.",
            "section VI-C, Figure 6(b)",
            tuple(
                Agrees(_jct("SJF-BSBF", xi), _jct("SJF-FFS", xi), 0.87, f"ratio at {xi:g} from 0.87 to 0.92", to=0.92)
                for xi in (1.5, 1.75, 2.0)
            ),
            printed="8% to 13%",
        ),
        Claim(
            "From 1.5 on SJF-BSBF has a smaller average JCT than SJF-FFS.",
            "section VI-C, Figure 6(b)",
            tuple(Less(_jct("SJF-BSBF", xi), _jct("SJF-FFS", xi)) for xi in (1.5, 1.75, 2.0)),
        ),
        Claim(
            "Without interference the two are equal (within 1%; the limit is ours).",
            "section VI-C, Figure 6(b)",
            (Within(_jct("SJF-BSBF", 1.0), 0.99, 1.01, over=_jct("SJF-FFS", 1.0)),),
        ),
    ),
    panels=(lines(JCT), lines(RATIO)),
    most=16,
)
