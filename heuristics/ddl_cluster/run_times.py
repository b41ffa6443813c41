"""How long a run of ddl-cluster and its check take at least, so that a time limit can refuse what cannot fit."""

from __future__ import annotations

from schedgap.formulations.ddl_cluster.audit import AUDITED_TASKS, WHOLE_TASKS
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import INTERPRETED_TASKS, task_count
from schedgap.heuristics.ddl_cluster.simulation import FastRun

PER_MOMENT = 1e-6
"""Seconds of the compiled replay per moment that it goes through."""


PER_TASK = 3e-7
"""Seconds of the compiled replay per compute task, where every task is recorded and no cycle is passed over."""


INTERPRETED = 1e-5
"""Seconds of the interpreted replay per compute task."""


AUDIT = 8e-7
"""Seconds of the audit per compute task; 350 to 500 ns measured."""


LOADING = 0.7
"""Seconds until the compiled replay is loaded from the cache."""


CHOOSING = 1e-9
"""Seconds to look at one GPU while placing."""


def check_seconds(instance: DdlClusterInstance, run: FastRun | None = None) -> float:
    """What the checker takes for a run: its replay and its audit.

    Parameters
    ----------
    run : where not every task is recorded, the replay goes through about as many moments as this run did, and the
        audit through the compute tasks beside its all-reduces
    """
    tasks = task_count(instance)
    if tasks <= INTERPRETED_TASKS:
        return tasks * (INTERPRETED + AUDIT)
    if tasks <= WHOLE_TASKS:
        return LOADING + tasks * (PER_TASK + AUDIT)
    if run is None:
        return LOADING
    gone = task_count(instance, run.messages.tolist())
    return LOADING + run.moments * PER_MOMENT + (gone * AUDIT if gone <= AUDITED_TASKS else 0.0)


def placing_seconds(instance: DdlClusterInstance, placement: str, kappa: int) -> float:
    """What choosing the GPUs of every job takes, each asked once; see placing.py."""
    servers = len(instance.servers)
    total, widest = instance.total_gpus, max(server.gpus for server in instance.servers)
    looked = 0.0
    for job in instance.jobs:
        looked += total
        if job.placement is None and (placement == "ls" or (placement == "lwf" and job.gpus <= kappa)):
            looked += job.gpus * total
        elif job.placement is None and placement == "lwf":
            looked += job.gpus * widest + min(job.gpus, servers) * servers
        looked += job.gpus * min(job.gpus, servers)
    return looked * CHOOSING
