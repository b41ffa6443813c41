"""The preemptive policies of gpu-sharing count when GPUs change; the plain forms look at all jobs at every event."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import gpu_sharing_preemptive as plain

from schedgap.benchmarks.instances.gpu_sharing.paper import simulated
from schedgap.benchmarks.instances.gpu_sharing.random import contended, small, tiny
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.gpu_sharing.preemptive import pollux, tiresias


def drawn(seed: int) -> GpuSharingInstance:
    if seed % 4 == 3:
        return simulated(seed, jobs=40, servers=4, hours=2.0)
    return [tiny, small, contended][seed % 4](seed)


@pytest.mark.parametrize("seed", range(60))
def test_every_segment_is_that_of_the_plain_form(seed: int) -> None:
    instance = drawn(seed)
    rng = np.random.default_rng(seed)
    length = instance.slot_length
    threshold = float(rng.choice([0.3, 2.0, 7.7, 40.0, 3600.0])) * length
    restart = float(rng.choice([0.0, 1.0, 3.0])) * length
    noise, most = float(rng.choice([0.0, 1.0, 5.0])), float(rng.choice([1.0, 2.0, 4.0]))
    run = tiresias(instance, threshold=threshold, restart=restart)
    assert run.solution == plain.tiresias(instance, threshold, restart)
    run = pollux(instance, noise=noise, most=most, restart=restart)
    assert run.solution == plain.pollux(instance, noise, most, restart)
