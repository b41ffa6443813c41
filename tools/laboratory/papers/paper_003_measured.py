"""Paper 003 (SJF-BSBF): what was measured on GPUs, and what all its experiments share."""

from __future__ import annotations

import csv
import math
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedgap.benchmarks.figures.palette import LINES as PALETTE
from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances.profiles.interference import COUNT, QUANTILES
from schedgap.benchmarks.instances.profiles.pollux_tasks import TASKS as POLLUX_TASKS
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Instance, Json
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Panel, Series
from schedgap.tools.laboratory.draw import bars, grouped, lines
from schedgap.tools.laboratory.measure import Run, outcome
from schedgap.tools.laboratory.rules import Fact, Less, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# What the tables and figures of paper 003 share: policies, metrics, second choices.

BSBF, FFS = Series("SJF-BSBF", "sjf-bsbf"), Series("SJF-FFS", "sjf-ffs")
PLUS = Series("SJF-BSBF+", "sjf-bsbf+", ours=True)
BASELINES = (Series("FIFO", "fifo"), Series("SJF", "sjf"), Series("Tiresias", "tiresias"))
POLLUX = Series("Pollux", "pollux")
SIX = (*BASELINES, POLLUX, FFS, BSBF, PLUS)
"""The policies of the simulations."""
OTHERS = ("FIFO", "SJF", "Tiresias", "SJF-FFS")
STAND_IN = "Pollux stands here for itself in a simplified form of ours; its numbers are in the table."
"""Why a claim about Pollux cannot be decided."""
TO_BOUND = bars(RATIO, ("FIFO", "SJF", "SJF-FFS", "SJF-BSBF", "SJF-BSBF+"))
"""The policies inside the model."""

JCT = Metric("jct all", "average JCT", "h")
QUEUING = Metric("queuing all", "average queuing", "h")
MAKESPAN = Metric("makespan", "makespan", "h")
CURVE = Metric("jct", "JCT", "h")
BELOW_750 = Metric("below 750 s", "JCT up to 750 s", "%", 100.0)
BELOW_500 = Metric("below 500 s", "JCT below 500 s", "%", 100.0)
SHORTEST = Metric("shortest", "average JCT of the shortest 40%", "h")
TASKS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
BY_TASK = grouped({task: Metric(f"queuing {task}", f"queuing {task}", "h") for task in TASKS}, "average queuing (h)")

MEASURED = Choice("measured pairs", {"pairs": "v100"})
DURATIONS = Choice("small jobs of 0.01 to 3 h", {"least": 0.01, "most": 3.0})
HOURS = {240: 4.6, 480: 5.6}
"""Hours of arrivals, by jobs, in which SJF queues about as long as Tables III and IV print: the paper's load."""
LIGHTER = Choice("12 hours of arrivals", {"hours": 12.0})
BY_GPUS = Choice(
    "short is few GPUs",
    methods={name: {"order": "gpus"} for name in ("SJF", "SJF-FFS", "SJF-BSBF", "SJF-BSBF+")},
)
"""One sentence of section V-B orders jobs by their GPUs; all others mean the duration (docs/gpu-sharing.md)."""

LEFT_OPEN = """Open: task shares (as in the Pollux workloads), durations (small jobs log-uniform from 0.05 to 2
hours, large ones from 0.3 to 4.5), arrivals (uniform over 4.6 hours with 240 jobs, over 5.6 with 480, where SJF
queues about as long as is printed), interference (uniform from 1 to 2 for every ordered pair of tasks). Second
choices: interference drawn from pairs measured on V100; small jobs of 0.01 to 3 hours; shortest job first by the
number of GPUs, as one sentence of section V-B has it, instead of by solo time; 12 hours of arrivals, a lighter load.
Tiresias and a simplified Pollux preempt or resize jobs, which is outside the model: no ratio to the bound. Pollux is
a system of other authors that a simplified form of ours stands in for: it is drawn, and no verdict is about it."""


# Figures 2 and 3 of paper 003: throughput and its model, and interference of pairs, on published measurements.

ITERATIONS = Path(__file__).parents[1] / "measured" / "pollux-iterations.csv"
"""Median seconds of an iteration by task, servers, GPUs and batch per GPU, from the Pollux artifact (petuum/adaptdl,
branch osdi21-artifact, Apache-2.0), for 1 to 16 GPUs packed on servers of 4."""
_OTHER_GPUS = "It needs those GPUs and these tasks on them. What stands in is judged beside it, as ours."
_LIMIT = 0.15
_LINEAR = 0.95
_PEAK, _MANY = 16, 12
"""YoloV3's printed batch of the peak, and GPUs beyond which the network is its bottleneck."""


def throughput(run: Run, seed: int) -> dict[str, Json]:
    """Samples per second of a task, measured and by eq. (7): rows (GPUs, batch per GPU, measured, modelled)."""
    del seed
    task = POLLUX_TASKS[run.method]
    with ITERATIONS.open(encoding="utf-8", newline="") as file:
        own = [row for row in csv.DictReader(file) if row["task"] == run.method]
    rows = []
    for row in own:
        nodes, gpus, batch, seconds = int(row["nodes"]), int(row["gpus"]), int(row["batch"]), float(row["seconds"])
        rows.append([gpus, batch, gpus * batch / seconds, gpus * batch / task.model.seconds(nodes, gpus, batch)])
    errors = [math.log(modelled / measured) for _, _, measured, modelled in rows]
    return {"rows": rows, "error": math.sqrt(sum(e * e for e in errors) / len(errors))}


def _error(task: str) -> Fact:
    def test(data: Data) -> tuple[bool, str]:
        error = data.draws(task)[0]["error"]
        return error < _LIMIT, f"root mean square error {100 * error:.1f}%"

    return Fact(f"{task}: error below 15%", test)


def _linear(data: Data) -> tuple[bool, str]:
    rows = data.draws("bert")[0]["rows"]
    fits = {}
    for gpus in sorted({row[0] for row in rows}):
        batch, rate = (np.array([row[k] for row in rows if row[0] == gpus]) for k in (1, 2))
        line = np.polyval(np.polyfit(batch, rate, 1), batch)
        fits[gpus] = 1 - float(((rate - line) ** 2).sum() / ((rate - rate.mean()) ** 2).sum())
    return min(fits.values()) > _LINEAR, "R^2 " + ", ".join(f"{gpus} GPUs {fit:.3f}" for gpus, fit in fits.items())


def _yolo(data: Data, at: int) -> dict[int, dict[int, float]]:
    """YoloV3's measured samples per second: column `at` (1 for the batch, 0 for the GPUs) of the other one's rows."""
    found: dict[int, dict[int, float]] = {}
    for row in data.draws("yolov3")[0]["rows"]:
        found.setdefault(row[1 - at], {})[row[at]] = row[2]
    return found


def _peak(data: Data) -> tuple[bool, str]:
    best = {gpus: max(rates, key=lambda batch: rates[batch]) for gpus, rates in sorted(_yolo(data, 1).items())}
    text = "largest rate at batch " + ", ".join(f"{batch} ({gpus} GPUs)" for gpus, batch in best.items())
    return 2 * sum(batch == _PEAK for batch in best.values()) > len(best), text


def _bottleneck(data: Data) -> tuple[bool, str]:
    rates = _yolo(data, 0)[_PEAK]
    gains = {gpus: rates[gpus] / rates[fewer] / (gpus / fewer) for fewer, gpus in pairwise(sorted(rates))}
    text = "rate over the last, by GPU: " + ", ".join(f"{gain:.2f} at {gpus}" for gpus, gain in gains.items())
    beyond = [gain for gpus, gain in gains.items() if gpus > _MANY]
    return bool(beyond) and max(beyond) < min(gain for gpus, gain in gains.items() if gpus <= _MANY), text


def _panel(task: str) -> Panel:
    def draw(axes: Axes, data: Data, item: Item) -> None:
        from schedgap.benchmarks.figures.style import log_scale

        del item
        rows = data.draws(task)[0]["rows"]
        for place, gpus in enumerate(sorted({row[0] for row in rows})):
            own = sorted(row[1:] for row in rows if row[0] == gpus)
            axes.plot([b for b, _, _ in own], [m for _, m, _ in own], "o", color=PALETTE[place], markersize=3)
            axes.plot([b for b, _, _ in own], [m for _, _, m in own], color=PALETTE[place], lw=1, label=f"{gpus} GPUs")
        log_scale(axes, 2, y=True)
        axes.set_xlabel(f"{task}: batch per GPU")
        axes.set_ylabel("samples per second")

    return draw


FIGURE_2 = Item(
    id="figure-2",
    title="Figure 2: throughput and its model",
    plots="Throughput over the batch size for several numbers of GPUs, six tasks: measured points and the model of "
    "eq. (7) (section IV).",
    instead="The measurements on 2080 Ti are not here. What stands in: the measured iteration times of the Pollux "
    "artifact (other GPUs), medians for 1 to 16 GPUs packed on servers of 4, and the models that the presets use, "
    "fitted to all of that artifact (root mean square errors 8.9 to 13.1%, [gpu-sharing](gpu-sharing.md)). Points "
    "are measured, lines the model.",
    series=tuple(Series(task, task) for task in POLLUX_TASKS),
    measure=throughput,
    seeds=1,
    max_seeds=1,
    claims=(
        *(
            Claim(text, "section IV, Figure 2", cannot=_OTHER_GPUS)
            for text in (
                "The model describes the throughput closely.",
                "BERT's throughput is linear in the batch.",
                "YoloV3's throughput mostly peaks at batch 16.",
                "Beyond 12 GPUs the network is YoloV3's bottleneck.",
            )
        ),
        Claim(
            "On the artifact's GPUs the model's error is below 15% for each task.",
            "beside Figure 2",
            tuple(_error(task) for task in POLLUX_TASKS),
            ours=True,
        ),
        Claim(
            "There BERT's throughput is linear in the batch (R^2 above 0.95 for each number of GPUs).",
            "beside Figure 2",
            (Fact("bert: R^2 of a line above 0.95 for each number of GPUs", _linear),),
            ours=True,
        ),
        Claim(
            "There YoloV3's throughput is largest at batch 16, the largest one measured, for most numbers of GPUs.",
            "beside Figure 2",
            (Fact("yolov3: largest at batch 16 for more than half of them", _peak),),
            ours=True,
        ),
        Claim(
            "There more GPUs bring YoloV3 less beyond 12 than before.",
            "beside Figure 2",
            (Fact("yolov3 at batch 16: the smallest gain of a GPU is beyond 12", _bottleneck),),
            ours=True,
        ),
    ),
    panels=tuple(_panel(task) for task in POLLUX_TASKS),
)


def quantiles(run: Run, seed: int) -> dict[str, Json]:
    """The measured ratios of pairs on one type of GPU, as quantiles."""
    del seed
    known = QUANTILES[run.method]
    return {"ratio": list(known), "largest": known[-1], "median": known[len(known) // 2]}


def _reaches(worker: str) -> Fact:
    def test(data: Data) -> tuple[bool, str]:
        found = data.draws(worker)[0]
        ends = f"from {found['ratio'][0]:.2f} to {found['largest']:.2f}"
        text = f"{ends}, median {found['median']:.2f}, {COUNT[worker]} pairs"
        return found["largest"] >= 6, text

    return Fact(f"{worker}: the largest ratio is at least 6", test)


def _shares(axes: Axes, data: Data, item: Item) -> None:
    for place, series in enumerate(item.series):
        ratio = data.draws(series.label)[0]["ratio"]
        axes.plot(ratio, np.linspace(0, 1, len(ratio)), color=PALETTE[place], lw=1.3, label=series.label)
    axes.axvline(6, color="#B2182B", lw=1)
    axes.set_xlabel("interference ratio")
    axes.set_ylabel("share of pairs")


FIGURE_3 = Item(
    id="figure-3",
    title="Figure 3: interference of pairs",
    plots="Throughput of pairs of jobs that share a GPU, by configuration (section IV).",
    instead="Not reproducible for these six tasks without their GPUs. The closest measured data are the packed "
    "pairs of the Gavel repository (one GPU each, other models, three GPU types): the ratio of a job's rate alone "
    "to its rate beside the other. The presets take them with `--set pairs=v100`.",
    series=tuple(Series(worker, worker) for worker in QUANTILES),
    measure=quantiles,
    seeds=1,
    max_seeds=1,
    claims=(
        Claim(
            "Interference ratios spread over a wide range, up to 6.",
            "section IV, Figure 3",
            printed="up to 6",
            cannot=_OTHER_GPUS,
        ),
        Claim(
            "Between the pairs of the Gavel repository they reach 6.",
            "beside Figure 3",
            tuple(_reaches(worker) for worker in QUANTILES),
            ours=True,
        ),
    ),
    panels=(_shares,),
)


# Tables III and IV of paper 003 on the workloads of the Pollux artifact, which name tasks, GPUs and arrivals.

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


WORKLOADS = Item(
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
    max_seeds=10,
)
