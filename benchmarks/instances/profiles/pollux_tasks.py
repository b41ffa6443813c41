"""The six tasks of the Pollux traces: iteration-time models fitted to its published measurements.

Times: least squares (studies/pollux_fit.py) on the placements and scalability tables of
petuum/adaptdl, branch osdi21-artifact (Apache-2.0); root mean square errors 9 to 13%. A test repeats the fit
where the tables are there. Memory is not in those tables: the values are assumptions of ours, in GB, such
that every task fits 11 GB alone and the larger pairs only with accumulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schedgap.benchmarks.instances.profiles.iterations import IterationModel
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN, Rate, Throughputs


@dataclass(frozen=True)
class Task:
    """A task: its iteration times, the batch per GPU, assumed memory, how common it is."""

    model: IterationModel  # fitted iteration times
    batch: int  # samples per GPU
    memory: tuple[float, float]  # (fixed, per sample) in GB, assumed
    weight: int  # how many of the 480 jobs of workload-1, -2 and -6 are of this task


def _model(
    fixed: float, per_sample: float, local: tuple[float, float], network: tuple[float, float], overlap: float
) -> IterationModel:
    return IterationModel(fixed, per_sample, local, network, overlap)


TASKS: Mapping[str, Task] = {
    "bert": Task(_model(0.2249, 0.05801, (0.1512, 0.0662), (1.4029, 0.009483), 2.1003), 8, (2.5, 0.6), 30),
    "cifar10": Task(_model(0.01025, 0.00078, (0.04081, 0.004748), (0.13063, 0.002648), 2.845), 256, (1.2, 0.01), 198),
    "deepspeech2": Task(_model(0.01787, 0.03308, (0.4732, 0.08483), (0.8904, 0.009183), 3.1254), 32, (1.8, 0.12), 46),
    "imagenet": Task(_model(0.05704, 0.004549, (0.08513, 0.013635), (0.3099, 0.006622), 2.6822), 128, (1.5, 0.045), 10),
    "ncf": Task(
        _model(0.006919, 8.394e-07, (0.002862, 0.001196), (0.014389, 0.0005485), 1.0),
        8192,
        (1.5, 0.0001),
        181,
    ),
    "yolov3": Task(_model(0.2056, 0.02475, (0.04266, 0.07991), (0.7209, 0.010684), 1.0814), 8, (1.8, 0.6), 15),
}


def _steps(task: Task, nodes: int, gpus: int) -> float:
    """Steps per second, counted over all workers."""
    return gpus / task.model.seconds(nodes, gpus, task.batch)


MEASURED = Throughputs(
    source="built-in rates (stanford-futuredata/gavel; on t4: fits to petuum/adaptdl)",
    rates={
        **BUILT_IN.rates,
        **{
            ("t4", f"{name} (batch size {task.batch})", gpus): Rate(_steps(task, 1, gpus), _steps(task, gpus, gpus))
            for name, task in TASKS.items()
            for gpus in (1, 2, 4)
        },
    },
)
"""The built-in rates and those of the fitted tasks on servers of 4 GPUs (worker type t4), in one table."""
