"""Figures 3 and 4 of paper 002: use of the devices and completion, 480 jobs on 60 devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedgap.benchmarks.laboratory.data import Data, Floats
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
    STAYS,
    TIRESIAS,
    TRACE,
    TTD,
    YARN,
)
from schedgap.benchmarks.laboratory.rules import Agrees, All, Less, More, Quantity, Rule, Some, Value, Within

_SERIES = (DENSITY, LITERAL, STAYS, *GAVELS, TIRESIAS, YARN)
_PRINTED = {"Gavel": 1.21, "Tiresias": 1.35, "YARN-CS": 1.67}
_MEDIANS = {"Gavel": 1.2, "Tiresias": 1.4}
_RIVALS = {
    "ttd": ("Gavel", "Gavel, max-sum", "Gavel, makespan", "Tiresias", "YARN-CS"),
    "median": ("Gavel", "Gavel, max-sum", "Gavel, makespan", "Tiresias"),
}


@dataclass(frozen=True)
class _Together:
    """The mean share of devices held in the rounds in which none of the figure's runs has ended."""

    series: str

    def of(self, data: Data) -> Floats:
        """By draw; NaN where a run is missing."""
        runs = [[row.get("held") for row in data.draws(one)] for one in (*READINGS, "Gavel", "Tiresias", "YARN-CS")]
        own = [row.get("held") for row in data.draws(self.series)]
        ends = [min(map(len, rows)) if all(rows) else 0 for rows in zip(*runs, strict=True)]
        return np.array([np.mean(held[:end]) if end else np.nan for held, end in zip(own, ends, strict=True)])  # type: ignore[index]

    def __str__(self) -> str:
        return self.series


def _gru(series: str) -> Quantity:
    return Value("gru", series)


def _use(value: Callable[[str], Quantity], when: str) -> tuple[Claim, ...]:
    """What the figure claims, of whole runs or of the rounds in which all run."""
    highest = tuple(More(value("YARN-CS"), value(other)) for other in ("Gavel", "Tiresias"))
    where = "section IV, Figure 3"
    return (
        Claim(f"YARN-CS has the highest GRU: above Gavel and Tiresias{when}.", where, highest),
        *(
            Claim(
                f"{hadar} uses more than Gavel and Tiresias, about as much as YARN-CS (within 5 points, ours){when}.",
                where,
                (
                    More(value(hadar), value("Gavel")),
                    More(value(hadar), value("Tiresias")),
                    Within(value(hadar), -0.05, 0.05, minus=value("YARN-CS")),
                ),
            )
            for hadar in READINGS
        ),
    )


def _shorter(metric: str, hadar: str) -> tuple[Rule, ...]:
    return tuple(Less(Value(metric, hadar), Value(metric, other)) for other in _RIVALS[metric])


FIGURE_3 = Item(
    id="figure-3",
    title="Figure 3: use of the GPUs",
    plots="The distribution over time of GPU resource utilisation (GRU), the share of devices held in a round "
    "(section IV).",
    left_open=LEFT_OPEN + " Over which rounds is open as well: up to the last one of each run, so that a run's tail "
    "counts, or up to the end of the first run that ends. With *running jobs stay* Hadar looks at waiting jobs only.",
    problem="hadar",
    preset="trace",
    workload=TRACE,
    series=_SERIES,
    metrics=(GRU, CHANGES, RATIO),
    choices=SECONDS,
    claims=(
        *_use(_gru, ""),
        *_use(_Together, "; rounds in which every run goes on"),
        Claim(
            "Only about 30% of the rounds need a change of allocation.",
            "section IV-C",
            tuple(
                Agrees(Value("changes", hadar), None, 0.3, f"{hadar}: share is 0.3")
                for hadar in (*READINGS, STAYS.label)
            ),
            printed="30%",
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
        *(
            Claim(
                f"{hadar} has a smaller TTD than Gavel, Tiresias and YARN-CS.",
                "section IV, Figure 4",
                _shorter("ttd", hadar),
                printed="1.21x, 1.35x, 1.67x",
            )
            for hadar in READINGS
        ),
        *(
            Claim(
                f"{hadar} has a smaller median completion time than Gavel and Tiresias.",
                "section IV, Figure 4",
                _shorter("median", hadar),
                printed="1.20x, 1.40x",
            )
            for hadar in READINGS
        ),
        Claim(
            "One reading of Hadar has both, the smaller TTD and the smaller median.",
            "section IV, Figure 4",
            (
                Some(
                    tuple(All((*_shorter("ttd", hadar), *_shorter("median", hadar)), hadar) for hadar in READINGS),
                    "one reading is ahead of every rival in both",
                ),
            ),
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
    most=20,
)
