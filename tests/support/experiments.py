"""A paper of the laboratory that takes milliseconds a draw, for the tests of running and resuming."""

from __future__ import annotations

import sys
from pathlib import Path

from schedgap.tools.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Paper, Series
from schedgap.tools.laboratory.draw import bars, distribution, grouped, lines
from schedgap.tools.laboratory.rules import Less, Trend, Value
from schedgap.tools.laboratory.running import Reproduction, reproduce

MAKESPAN = Metric("objective", "makespan", "slots")
JCT = Metric("mean_jct", "average JCT", "slots")
_TWO = (Series("FF", "ff"), Series("LPT", "lpt-colocate", ours=True))

PAPER = Paper(
    "999",
    "toy",
    "A toy paper",
    "Tiny instances.",
    (
        Item(
            "bars",
            "Bars",
            "Two policies.",
            problem="rar-ddls",
            preset="tiny",
            workload={"ample": True},
            series=_TWO,
            metrics=(MAKESPAN, JCT, RATIO),
            choices=(Choice("contended", preset="contended"),),
            claims=(Claim("LPT is not worse.", "I", (Less(Value("objective", "LPT"), Value("objective", "FF")),)),),
            panels=(
                bars(MAKESPAN),
                distribution(MAKESPAN, "makespan"),
                grouped({"ms": MAKESPAN}, "slots"),
                bars(RATIO),
            ),
            printed={("FF", "objective"): 4.0},
            seeds=3,
            max_seeds=4,
        ),
        Item(
            "lines",
            "Lines",
            "Over the number of jobs.",
            instead="Their\ncluster is not here.",
            problem="rar-ddls",
            preset="small",
            workload={"ample": True},
            series=_TWO,
            axis=Axis("jobs", "jobs", (4, 16)),
            metrics=(MAKESPAN, RATIO),
            claims=(
                Claim("It rises.", "II", (Trend(tuple(Value("objective", "FF", x) for x in (4, 16)), falling=False),)),
                Claim("It is red.", "II", cannot="No colour is measured."),
            ),
            panels=(lines(MAKESPAN), lines(RATIO)),
        ),
    ),
    {"Figure 9": "a drawing"},
)


def run(folder: Path, seeds: int | None = None, resume: bool = False) -> Reproduction:
    """Reproduce the toy paper with one worker."""
    return reproduce(PAPER, seeds=seeds, resume=resume, out=folder, workers=1)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
