"""What the tables and figures of paper 003 share: policies, metrics, second choices."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import RATIO, Choice, Metric, Series
from schedgap.benchmarks.laboratory.draw import bars, grouped

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
BY_GPUS = Choice(
    "short is few GPUs",
    methods={name: {"order": "gpus"} for name in ("SJF", "SJF-FFS", "SJF-BSBF", "SJF-BSBF+")},
)
"""One sentence of section V-B orders jobs by their GPUs; all others mean the duration (docs/gpu-sharing.md)."""

LEFT_OPEN = """Open: task shares (as in the Pollux workloads), durations (small jobs log-uniform from 0.05 to 2
hours, large ones
from 0.3 to 4.5), arrivals (uniform), interference (uniform from 1 to 2 for every ordered pair of tasks). Second
choices:
interference drawn from pairs measured on V100; small jobs of 0.01 to 3 hours; shortest job first by the number of
GPUs, as one sentence of section V-B has it, instead of by solo time. Tiresias and a simplified Pollux
preempt or
resize jobs, which is outside the model: no ratio to the bound. Pollux is a system of other authors that a simplified
form of ours stands in for: it is drawn, and no verdict is about it."""
