"""Figures 3 and 4 of paper 002: use of the devices and completion, 480 jobs on 60 devices."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Claim, Item
from schedgap.benchmarks.laboratory.draw import bars, distribution
from schedgap.benchmarks.laboratory.paper_002.common import (
    CHANGES,
    CURVE,
    DENSITY,
    GAVELS,
    GRU,
    HELD,
    LEFT_OPEN,
    LITERAL,
    MEDIAN,
    READINGS,
    SECONDS,
    TIRESIAS,
    TRACE,
    TTD,
    YARN,
)
from schedgap.benchmarks.laboratory.rules import Agrees, Less, More, Value, Within

_SERIES = (DENSITY, LITERAL, *GAVELS, TIRESIAS, YARN)
_PRINTED = {"Gavel": 1.21, "Tiresias": 1.35, "YARN-CS": 1.67}
_MEDIANS = {"Gavel": 1.2, "Tiresias": 1.4}


def _shorter(metric: str, hadar: str, others: tuple[str, ...]) -> tuple[Less, ...]:
    return tuple(Less(Value(metric, hadar), Value(metric, other)) for other in others)


FIGURE_3 = Item(
    id="figure-3",
    title="Figure 3: use of the GPUs",
    plots="The distribution over time of GPU resource utilisation (GRU), the share of devices held in a round "
    "(section IV).",
    left_open=LEFT_OPEN + " Rounds up to the last one of each run; the tail of a run counts.",
    problem="hadar",
    preset="trace",
    workload=TRACE,
    series=_SERIES,
    metrics=(GRU, CHANGES, RATIO),
    choices=SECONDS,
    claims=(
        Claim(
            "YARN-CS has the highest GRU: above Gavel and Tiresias.",
            "section IV, Figure 3",
            tuple(More(Value("gru", "YARN-CS"), Value("gru", other)) for other in ("Gavel", "Tiresias")),
        ),
        *(
            Claim(
                f"{hadar} uses more than Gavel and Tiresias, and about as much as YARN-CS (within 5 points, ours).",
                "section IV, Figure 3",
                (
                    More(Value("gru", hadar), Value("gru", "Gavel")),
                    More(Value("gru", hadar), Value("gru", "Tiresias")),
                    Within(Value("gru", hadar), -0.05, 0.05, minus=Value("gru", "YARN-CS")),
                ),
            )
            for hadar in READINGS
        ),
        Claim(
            "Only about 30% of the rounds need a change of allocation.",
            "section IV-C",
            tuple(Agrees(Value("changes", hadar), None, 0.3, f"{hadar}: share is 0.3") for hadar in READINGS),
            printed="30%",
        ),
    ),
    panels=(distribution(HELD, "GPUs held (%)"), bars(GRU), bars(RATIO)),
    most=10,
)
FIGURE_4 = Item(
    id="figure-4",
    title="Figure 4: completion over time",
    plots="The share of jobs completed over time under four schedulers; total time duration (TTD) and median "
    "(section IV).",
    left_open=LEFT_OPEN + " The print contradicts itself: one total of 68 hours for all rivals fits YARN-CS only.",
    problem="hadar",
    preset="trace",
    workload=TRACE,
    series=_SERIES,
    metrics=(TTD, MEDIAN, RATIO),
    choices=SECONDS,
    claims=(
        *(
            Claim(
                f"{hadar} has a smaller TTD than Gavel, Tiresias and YARN-CS.",
                "section IV, Figure 4",
                _shorter("ttd", hadar, ("Gavel", "Gavel, max-sum", "Gavel, makespan", "Tiresias", "YARN-CS")),
                printed="1.21x, 1.35x, 1.67x",
            )
            for hadar in READINGS
        ),
        *(
            Claim(
                f"{hadar} has a smaller median completion time than Gavel and Tiresias.",
                "section IV, Figure 4",
                _shorter("median", hadar, ("Gavel", "Gavel, max-sum", "Gavel, makespan", "Tiresias")),
                printed="1.20x, 1.40x",
            )
            for hadar in READINGS
        ),
        Claim(
            "The printed sizes of the leads in TTD and median.",
            "section IV, Figure 4",
            tuple(
                Agrees(Value(metric, other), Value(metric, hadar), printed, f"{metric}, {other}/{hadar}: {printed}")
                for hadar in READINGS
                for metric, sizes in (("ttd", _PRINTED), ("median", _MEDIANS))
                for other, printed in sizes.items()
            ),
            printed="TTD 1.21, 1.35, 1.67; median 1.20, 1.40",
        ),
    ),
    panels=(distribution(CURVE, "hours"), bars(TTD), bars(RATIO)),
    most=10,
)
