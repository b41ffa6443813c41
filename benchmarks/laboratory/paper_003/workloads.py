"""Tables III and IV of paper 003 on the workloads of the Pollux artifact, which name tasks, GPUs and arrivals."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Claim, Item
from schedgap.benchmarks.laboratory.draw import lines
from schedgap.benchmarks.laboratory.measure import Run, outcome
from schedgap.benchmarks.laboratory.paper_003.common import JCT, QUEUING, SIX
from schedgap.benchmarks.laboratory.rules import Less, Value
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Instance, Json

FILES = Path(__file__).parents[1] / "measured"
"""pollux-workload-1, -2 and -6.csv, from petuum/adaptdl, branch osdi21-artifact, Apache-2.0."""
_WORKLOADS = (1, 2, 6)


@lru_cache(maxsize=2)
def _instance(workload: int, seed: int) -> Instance:
    problem = find_problem("gpu-sharing")
    return import_instance(
        problem, "pollux", [FILES / f"pollux-workload-{workload}.csv"], settings={"seed": seed, "xi_seed": seed}
    )[0]


def imported(run: Run, seed: int) -> dict[str, Json]:
    """A method's metrics on a workload of the artifact; the seed draws durations and interference."""
    return outcome(run, _instance(run.workload["workload"], seed), seed)


ITEM = Item(
    id="pollux-workloads",
    title="Tables III and IV on published workloads",
    plots="Not in the paper: the six policies on workloads 1, 2 and 6 of the Pollux artifact, 160 jobs each.",
    left_open="Their tasks, GPUs, batch sizes and arrivals are published, their durations are not: a draw is durations "
    "and a table of interference (uniform from 1 to 2).",
    problem="gpu-sharing",
    preset="pollux",
    series=SIX,
    axis=Axis("workload", "workload", _WORKLOADS),
    metrics=(JCT, QUEUING, RATIO),
    measure=imported,
    claims=tuple(
        Claim(
            f"SJF-BSBF has a smaller average JCT than {' and '.join(others)} on workloads 1, 2 and 6.",
            "beside Tables III and IV",
            tuple(Less(Value("jct all", "SJF-BSBF", k), Value("jct all", o, k)) for o in others for k in _WORKLOADS),
            ours=True,
        )
        for others in (("Tiresias",), ("FIFO", "SJF"), ("SJF-FFS",))
    ),
    panels=(lines(JCT), lines(QUEUING), lines(RATIO)),
    most=10,
)
