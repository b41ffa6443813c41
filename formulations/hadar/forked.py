"""HadarE's forked model: a job's copies run at once, one copy at most on a node, steps split among them.

Outside the model of :mod:`schedgap.formulations.hadar.instance`, where a gang is one. A node runs a copy with a
gang of W_j of its own devices; how fast that is follows (1a) and (1b) on the node's devices alone.
"""

from __future__ import annotations

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.hadar.instance import HadarInstance


def node_speeds(instance: HadarInstance) -> Floats:
    """(J, H) iterations per unit of time of a copy of a job on a node; 0 where the node cannot hold its gang.

    The W_j fastest devices of the node: the slowest of them sets the rate. O(J H R log R).
    """
    speeds = np.zeros((len(instance.jobs), len(instance.machines)))
    for j, job in enumerate(instance.jobs):
        for h, machine in enumerate(instance.machines):
            need = job.workers
            for rate, count in sorted(
                ((job.throughput.get(kind, 0.0), count) for kind, count in machine.gpus.items()), reverse=True
            ):
                if rate <= 0:
                    break
                need -= count
                if need <= 0:
                    speeds[j, h] = job.workers * rate
                    break
    return speeds
