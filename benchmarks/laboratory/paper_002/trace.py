"""Figures 3 and 4 of paper 002: use of the devices and completion, 480 jobs on 60 devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.benchmarks.laboratory.data import Data, Floats
from schedgap.benchmarks.laboratory.declare import RATIO, Choice, Claim, Item
from schedgap.benchmarks.laboratory.draw import bars, distribution
from schedgap.benchmarks.laboratory.paper_002.common import (
    BESIDE,
    CHANGES,
    CURVE,
    GAVEL,
    GRU,
    HADAR,
    HELD,
    LEFT_OPEN,
    MEDIAN,
    PAYOFF,
    SECONDS,
    TIRESIAS,
    TRACE,
    TTD,
    YARN,
)
from schedgap.benchmarks.laboratory.rules import Agrees, Less, More, Value, Within

_JUDGED = (HADAR, GAVEL, TIRESIAS, YARN)
_SERIES = (*_JUDGED, *BESIDE)
_PRINTED = {"ttd": {"Gavel": 1.21, "Tiresias": 1.35, "YARN-CS": 1.67}, "median": {"Gavel": 1.2, "Tiresias": 1.4}}
_TOGETHER = Choice("rounds in which every run goes on")
_STAYS = Choice("running jobs stay", methods={"Hadar": {"preempt": False}})
_OF_CHANGES = (PAYOFF.label, _STAYS.label)
_OF_USE = tuple(choice.label for choice in (*SECONDS, _TOGETHER))


@dataclass(frozen=True)
class _Use:
    """The mean share of devices held: over a run's own rounds, or in those in which none of the runs has ended."""

    series: str

    def of(self, data: Data) -> Floats:
        """By draw; NaN where a run is missing."""
        if data.choice != _TOGETHER.label:
            return data.values("gru", self.series)
        runs = [[row.get("held") for row in data.draws(one.label)] for one in _JUDGED]
        own = [row.get("held") for row in data.draws(self.series)]
        ends = [min(map(len, rows)) if all(rows) else 0 for rows in zip(*runs, strict=True)]
        return np.array([np.mean(held[:end]) if end else np.nan for held, end in zip(own, ends, strict=True)])  # type: ignore[index]

    def __str__(self) -> str:
        return self.series


def _shorter(metric: str) -> tuple[Less, ...]:
    return tuple(Less(Value(metric, "Hadar"), Value(metric, other)) for other in _PRINTED[metric])


FIGURE_3 = Item(
    id="figure-3",
    title="Figure 3: use of the GPUs",
    plots="The distribution over time of GPU resource utilisation (GRU), the share of devices held in a round "
    "(section IV).",
    left_open=LEFT_OPEN + " Over which rounds is open as well: up to the last one of each run, so that a run's tail "
    "counts; second choice: up to the end of the first run that ends. The text tells of rounds with and without "
    "preemption: second choice for the share of rounds with a change, running jobs stay and Hadar looks at waiting "
    "ones only.",
    problem="hadar",
    preset="trace",
    workload=TRACE,
    series=_SERIES,
    metrics=(GRU, CHANGES, RATIO),
    choices=(*SECONDS, _TOGETHER, _STAYS),
    claims=(
        Claim(
            "YARN-CS has the highest GRU: above Gavel and Tiresias.",
            "section IV, Figure 3",
            tuple(More(_Use("YARN-CS"), _Use(other)) for other in ("Gavel", "Tiresias")),
            choices=_OF_USE,
        ),
        Claim(
            "Hadar uses more than Gavel and Tiresias, about as much as YARN-CS (within 5 points, ours).",
            "section IV, Figure 3",
            (
                More(_Use("Hadar"), _Use("Gavel")),
                More(_Use("Hadar"), _Use("Tiresias")),
                Within(_Use("Hadar"), -0.05, 0.05, minus=_Use("YARN-CS")),
            ),
            choices=_OF_USE,
        ),
        Claim(
            "Only about 30% of the rounds need a change of allocation.",
            "section IV-C",
            (Agrees(Value("changes", "Hadar"), None, 0.3, "Hadar: the share is 0.3"),),
            printed="30%",
            choices=_OF_CHANGES,
        ),
    ),
    panels=(distribution(HELD, "GPUs held (%)"), bars(GRU), bars(RATIO)),
    most=20,
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
        Claim(
            "Hadar has a smaller TTD than Gavel, Tiresias and YARN-CS.",
            "section IV, Figure 4",
            _shorter("ttd"),
            printed="1.21x, 1.35x, 1.67x",
        ),
        Claim(
            "Hadar has a smaller median completion time than Gavel and Tiresias.",
            "section IV, Figure 4",
            _shorter("median"),
            printed="1.20x, 1.40x",
        ),
        Claim(
            "The printed sizes of the leads in TTD and median.",
            "section IV, Figure 4",
            tuple(
                Agrees(Value(metric, other), Value(metric, "Hadar"), printed, f"{metric}, {other}/Hadar: {printed}")
                for metric, sizes in _PRINTED.items()
                for other, printed in sizes.items()
            ),
            printed="TTD 1.21, 1.35, 1.67; median 1.20, 1.40",
        ),
    ),
    panels=(distribution(CURVE, "hours"), bars(TTD), bars(RATIO)),
    most=20,
)
