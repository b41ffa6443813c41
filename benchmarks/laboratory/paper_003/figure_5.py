"""Figure 5 of paper 003: distribution of JCT and queuing by task, 240 jobs."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import ABSOLUTE, RATIO, Claim, Item, Metric
from schedgap.benchmarks.laboratory.draw import bars, distribution
from schedgap.benchmarks.laboratory.paper_003.common import (
    BELOW_500,
    BY_GPUS,
    BY_TASK,
    CURVE,
    DURATIONS,
    LEFT_OPEN,
    MEASURED,
    SHORTEST,
    SIX,
    STAND_IN,
    TASKS,
    TO_BOUND,
)
from schedgap.benchmarks.laboratory.rules import Less, More, Value

_SHARING = ("SJF-FFS", "SJF-BSBF")


def _queuing(task: str, series: str) -> Value:
    return Value(f"queuing {task}", series)


ITEM = Item(
    id="figure-5",
    title="Figure 5: JCT distribution and queuing by task",
    plots="The distribution of JCT (5(a)) and the average queuing time by task (5(b)) of six policies with 240 jobs "
    "(section VI-C).",
    left_open=LEFT_OPEN
    + """ With the main choice of durations no policy can bring 40% of the jobs below 500 s:
    only about a quarter
    take less even alone.""",
    problem="gpu-sharing",
    preset="table-iii",
    series=SIX,
    metrics=(BELOW_500, SHORTEST, *(Metric(f"queuing {task}", f"queuing {task}", "h") for task in TASKS), RATIO),
    choices=(MEASURED, DURATIONS, BY_GPUS),
    claims=(
        Claim(
            "Nearly 40% of the jobs take less than 500 s under SJF-BSBF.",
            "section VI-C, Figure 5(a)",
            printed="nearly 40%",
            cannot=ABSOLUTE,
        ),
        Claim(
            "The shortest 40% of the jobs have a 37% smaller average JCT under SJF-BSBF than under Pollux.",
            "section VI-C, Figure 5(a)",
            printed="37%",
            cannot=STAND_IN,
        ),
        Claim(
            "The shortest 40% of the jobs have a smaller average JCT under SJF-BSBF than under Tiresias.",
            "section VI-C, Figure 5(a)",
            (Less(Value("shortest", "SJF-BSBF"), Value("shortest", "Tiresias")),),
        ),
        Claim(
            "The sharing policies queue less than FIFO and SJF on every task.",
            "section VI-C, Figure 5(b)",
            tuple(
                Less(_queuing(task, sharing), _queuing(task, other), f"{task}: {sharing} smaller than {other}")
                for sharing in _SHARING
                for other in ("FIFO", "SJF")
                for task in TASKS
            ),
        ),
        Claim(
            "Tiresias (and Pollux, not judged) often queues longer than SJF-BSBF.",
            "section VI-C, Figure 5(b)",
            tuple(
                More(_queuing(task, "Tiresias"), _queuing(task, "SJF-BSBF"), f"{task}: Tiresias larger than SJF-BSBF")
                for task in TASKS
            ),
        ),
    ),
    panels=(
        distribution(CURVE, "JCT (h)", limit=4.0),
        BY_TASK,
        bars(SHORTEST),
        TO_BOUND,
    ),
    most=20,
)
