"""The throughput estimate of paper 002, eq. (10), and how observations refine it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.hadar.instance import HadarInstance


@dataclass(frozen=True)
class Device:
    """Public data-sheet numbers of a device: peak tensor (or half precision) teraflops, GB of memory, PCIe version."""

    teraflops: float
    memory: float
    pcie: int

    @property
    def index(self) -> float:
        """PMI, the performance-memory index: the root of teraflops over memory."""
        return math.sqrt(self.teraflops / self.memory)


DEVICES: Mapping[str, Device] = {
    "V100": Device(125.0, 16.0, 3),
    "P100": Device(18.7, 16.0, 3),
    "K80": Device(4.1, 12.0, 3),
    "T4": Device(65.0, 16.0, 3),
    "T400": Device(2.2, 4.0, 3),
    "RTX3090": Device(142.0, 24.0, 4),
    "TitanRTX": Device(130.0, 24.0, 3),
    "A2000": Device(63.9, 6.0, 4),
}
"""NVIDIA data sheets; a type that is not here counts like a K80."""


def estimate(device: Device, batch_size: float, model_weight: float, dataset_size: float) -> float:
    """Eq. (10): PMI batch_size pcie_scaling / (model_weight dataset_size), pcie_scaling = version / 3."""
    return device.index * batch_size * (device.pcie / 3.0) / (model_weight * dataset_size)


class Beliefs:
    """What HadarE believes of a job's speed on each node, refined by every round.

    Factors of a job (batch size, model weight, dataset size) are the same on all nodes: they cancel in the split of
    steps and where nodes are only ranked, so the estimate uses 1 for each. With ``scheduler="hadar"`` they do not:
    its payoffs are made of the rounds that the believed steps take, which are far too many before a job has run. A
    node that ran the job is known; the others are scaled by the mean ratio of known to estimated speeds.

    Parameters
    ----------
    speed : (J, H) the true speeds, revealed one by one
    """

    def __init__(self, instance: HadarInstance, speed: Floats) -> None:
        fallback = DEVICES["K80"]
        per_node = [
            max(estimate(DEVICES.get(kind, fallback), 1.0, 1.0, 1.0) for kind in machine.gpus)
            for machine in instance.machines
        ]
        self.speed = speed
        self.initial = np.where(speed > 0, np.array(per_node)[None, :], 0.0)
        self.known = np.zeros(speed.shape, dtype=bool)

    def observe(self, job: int, node: int) -> None:
        """The actual throughput of the node was observed."""
        self.known[job, node] = True

    def current(self) -> Floats:
        """(J, H) the speeds believed in now."""
        believed = self.initial.copy()
        for j in np.flatnonzero(self.known.any(axis=1)):
            seen = self.known[j]
            believed[j] *= float(np.mean(self.speed[j, seen] / self.initial[j, seen]))
            believed[j, seen] = self.speed[j, seen]
        return believed
