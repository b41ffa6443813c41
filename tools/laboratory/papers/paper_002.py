"""Paper 002 (Hadar, HadarE): Figures 1, 3 to 6 and 8 to 12."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from schedgap.benchmarks.figures.palette import LINES as PALETTE
from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Json
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.hadar.gavel import time_fractions
from schedgap.heuristics.hadar.rounds import Market
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import RATIO, Choice, Claim, Item, Metric, Paper, Series
from schedgap.tools.laboratory.draw import bars, distribution
from schedgap.tools.laboratory.measure import Run
from schedgap.tools.laboratory.papers.paper_002_mixes import (
    AWS,
    BESIDE,
    CHANGES,
    CRU,
    CURVE,
    FIGURE_6,
    GAVEL,
    GRU,
    HADAR,
    HELD,
    LEFT_OPEN,
    MEDIAN,
    PAYOFF,
    SECONDS,
    SLOT_TIMES,
    TESTBED,
    TIRESIAS,
    TRACE,
    TTD,
    YARN,
)
from schedgap.tools.laboratory.rules import Agrees, Fact, Less, More, Value, Within

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Figures 1 and 5 of paper 002: the example of section II-A, and the time of one decision.

_TTD = Metric("ttd", "rounds")


def _fewer(data: Data) -> tuple[bool, str]:
    ends = {label: data.draws(label)[0]["ttd"] for label in ("Gavel", "Hadar (density)", "Hadar (literal)")}
    shown = ", ".join(f"{label} {value}" for label, value in ends.items())
    best = min(value for label, value in ends.items() if label != "Gavel" and value is not None)
    return best <= ends["Gavel"] - 1, f"rounds: {shown}"


def _half(data: Data) -> tuple[bool, str]:
    run = data.draws("Gavel")[0]
    held = [round(100 * share) for share in run["held"]]
    text = f"{len(held)} rounds, {100 * run['gru']:.1f}% of the GPUs held, by round {', '.join(map(str, held))}"
    return len(held) == 6 and round(100 * run["gru"]) == 78 and held[:2] == [83, 67], text


FIGURE_1 = Item(
    id="figure-1",
    title="Figure 1: the example of section II-A",
    plots="Three jobs on 2 V100, 3 P100 and 1 K80, round by round: under Gavel 6 rounds, under Hadar one fewer, "
    "with CRU of about 78 and 87% (section II-A).",
    left_open="Printed in full (preset `motivation`). Gavel's time fractions are computed here by its max-min "
    "policy. That Hadar's half is impossible is settled in [hadar](hadar.md): six rounds are the proven minimum.",
    problem="hadar",
    preset="motivation",
    workload={"horizon": 12},
    series=(
        Series("Gavel", "gavel"),
        Series("Hadar (density)", "hadar-rounds"),
        Series("Hadar (literal)", "hadar-rounds", {"payoff": "literal"}),
    ),
    metrics=(_TTD, GRU, CRU),
    printed={("Gavel", "ttd"): 6.0, ("Gavel", "gru"): 78.0},
    seeds=1,
    max_seeds=1,
    claims=(
        Claim(
            "Gavel needs 6 rounds and holds 78% of the GPUs, 83 and 67% in the first two rounds.",
            "section II-A, Figure 1",
            (Fact("Gavel: rounds, share, first two rounds", _half),),
            printed="6 rounds, about 78%, 83%, 67%",
        ),
        Claim(
            "Hadar ends one round before Gavel.",
            "section II-A, Figure 1",
            (Fact("some reading of Hadar ends a round earlier", _fewer),),
            printed="5 and 6 rounds",
        ),
    ),
)

_SIZES = (32, 64, 128, 256, 512, 1024, 2048)


def decision_times(run: Run, seed: int) -> dict[str, Json]:
    """Processor seconds of one decision with 32 to 2,048 waiting jobs, the least of three, and the exponent of growth.

    Processor time, since a busy machine would otherwise stretch a curve at single points.
    """
    seconds = []
    for jobs in _SIZES:
        instance = cast(HadarInstance, make_instance(find_problem("hadar"), "rounds", seed, {"jobs": jobs}))
        data = tables(instance)
        left = np.array([job.target for job in data.jobs], dtype=np.int64)
        waiting = np.arange(len(data.jobs), dtype=np.int64)
        market = Market.of(data, True, 0.0)
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            if run.method == "gavel":
                time_fractions(data, waiting, left.astype(float), "max-min")
            else:
                market.take(waiting, data.machine_capacity, left, 1)
            best = min(best, time.process_time() - began)
        seconds.append(best)
    slope = float(np.polyfit(np.log(_SIZES), np.log(seconds), 1)[0])
    return {"exponent": slope, "largest": seconds[-1], "seconds": seconds}


def _curves(axes: Axes, data: Data, item: Item) -> None:
    from schedgap.benchmarks.figures.style import log_scale

    for place, series in enumerate(item.series):
        rows = np.array([row["seconds"] for row in data.draws(series.label) if row.get("seconds")])
        if len(rows):
            axes.plot(_SIZES, rows.mean(axis=0), "o-", color=PALETTE[place], markersize=4, label=series.label)
    log_scale(axes, 2, y=True)
    axes.set_xlabel("waiting jobs")
    axes.set_ylabel("processor seconds of a decision")


FIGURE_5 = Item(
    id="figure-5",
    title="Figure 5: time of a decision",
    plots="Seconds to decide over 32 to 2,048 jobs under Hadar and Gavel, the cluster growing with the jobs "
    "(section IV-C).",
    left_open="Open: how the cluster grows (one node of 4 devices per 32 jobs), the machine, Gavel's solver (HiGHS, "
    "its linear program alone). Times are processor seconds of the machine that wrote the page, one thread; another "
    "run gives others.",
    series=(Series("Hadar", "hadar-rounds"), Series("Gavel", "gavel")),
    measure=decision_times,
    metrics=(
        Metric("exponent", "exponent of log seconds over log jobs", digits=2),
        Metric("largest", "seconds at 2,048 jobs", digits=2),
    ),
    claims=(
        Claim(
            "Hadar and Gavel scale similarly (exponents within 0.3; the limit is ours).",
            "section IV-C, Figure 5",
            (Within(Value("exponent", "Hadar"), -0.3, 0.3, minus=Value("exponent", "Gavel")),),
        ),
        Claim(
            "A decision with some 2,000 jobs takes less than 7 minutes.",
            "section IV-C, Figure 5",
            tuple(Within(Value("largest", name), high=420.0) for name in ("Hadar", "Gavel")),
            printed="7 minutes",
        ),
    ),
    panels=(_curves,),
    max_seeds=10,
)


# Beside paper 002's figures: HadarE on the simulated cluster, with nodes of four devices or of one.

_ONE = {"nodes": 60, "per_node": 1}
_HADAR_4, _HADARE_4 = "Hadar, 15 nodes of 4", "HadarE, 15 nodes of 4"
_HADAR_1, _HADARE_1, _ALONE = "Hadar, 60 nodes of 1", "HadarE, 60 nodes of 1", "HadarE, one copy, 60 nodes of 1"
_UTILITY = Metric("objective", "total utility")
_WHERE = "beside section VI"


def _utility(series: str) -> Value:
    return Value("objective", series)


NODES = Item(
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
    max_seeds=10,
)


# Figures 3 and 4 of paper 002: use of the devices and completion, 480 jobs on 60 devices.

_JUDGED = (HADAR, GAVEL, TIRESIAS, YARN)
_SERIES = (*_JUDGED, *BESIDE)
_PRINTED = {"ttd": {"Gavel": 1.21, "Tiresias": 1.35, "YARN-CS": 1.67}, "median": {"Gavel": 1.2, "Tiresias": 1.4}}
_TOGETHER = Choice("rounds in which every run goes on")
_STAYING = Series("Hadar, running jobs stay", "hadar-rounds", {**HADAR.settings, "preempt": False}, main_only=True)
"""Section IV-C tells of rounds in which running jobs keep their allocation, in the paragraph that counts changes."""
_OF_USE = tuple(choice.label for choice in (*SECONDS, _TOGETHER))


@dataclass(frozen=True)
class _Use:
    """The mean share of devices held: over a run's own rounds, or in those in which none of the runs has ended."""

    series: str

    def of(self, data: Data) -> Floats:
        """Values of the draws; NaN where a run is missing."""
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
    "counts; second choice: up to the end of the first run that ends. Section IV-C counts rounds with "
    "a change where running jobs keep their allocation, so that Hadar looks at waiting ones only: that is the series "
    "*running jobs stay*. The share where Algorithm 1 reconsiders all jobs stands beside it, as ours.",
    problem="hadar",
    preset="trace",
    workload=TRACE,
    series=(*_SERIES, _STAYING),
    metrics=(GRU, CHANGES, RATIO),
    choices=(*SECONDS, _TOGETHER),
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
            (Agrees(Value("changes", _STAYING.label), None, 0.3, "running jobs stay: the share is 0.3"),),
            printed="30%",
            choices=(),
        ),
        Claim(
            "So it is where every round reconsiders all jobs.",
            "beside section IV-C",
            (Agrees(Value("changes", "Hadar"), None, 0.3, "Hadar: the share is 0.3"),),
            choices=(PAYOFF.label,),
            ours=True,
        ),
    ),
    panels=(distribution(HELD, "GPUs held (%)"), bars(GRU), bars(RATIO)),
    max_seeds=20,
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
    max_seeds=20,
)


_TABLE_4 = Item(
    id="table-iv",
    title="Table IV: quality of the trained models",
    plots="Inference quality of five models trained with and without forking (section VI-E).",
    instead="Not reproducible: no model is trained here, and nothing in a simulation of schedules stands in for it.",
    claims=(
        Claim(
            "Forking does not lower the quality of the trained models.",
            "section VI-E, Table IV",
            cannot="No model is trained here.",
        ),
    ),
)

PAPER = Paper(
    "002",
    "hadar",
    "Hadar and HadarE: the evaluation of paper 002, measured again",
    """Printed for the simulations: 15 nodes with 20 V100, 20 P100 and 20 K80, 480 jobs of four size classes, all
    there at the start,
    rounds of 6 minutes, 10 s lost at a change of allocation. For the machines (Figures 6 to 12): five nodes of one
    device on AWS
    and in a laboratory, seven mixes of five models.

    The bound is that of [hadar](hadar.md), for the sum of utilities, which the paper's algorithm maximises; its
    figures show times
    and use instead.""",
    (
        FIGURE_1,
        FIGURE_3,
        FIGURE_4,
        FIGURE_5,
        FIGURE_6,
        AWS,
        TESTBED,
        *SLOT_TIMES,
        NODES,
        _TABLE_4,
    ),
    {
        "Figures 2 and 7, Table I": "drawings, notation",
        "Tables II and III": "input: size classes, models (presets `trace` and `mixes`)",
    },
)
