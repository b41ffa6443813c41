"""How long a run of ddl-cluster and its check take at least, so that a time limit can refuse what cannot fit."""

from __future__ import annotations

from schedgap.formulations.ddl_cluster.audit import AUDITED_TASKS
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import INTERPRETED_TASKS, task_count

COMPILED = 8e-9
"""Seconds of the compiled replay per moment and per job or GPU; 4.4 to 6 ns measured where few all-reduces wait."""
WAITING = 1.3e-10
"""What every job across servers adds to it; 0.5 to 1 ns per ten jobs measured."""
INTERPRETED = 5e-7
"""Seconds of the interpreted replay per moment and per job or GPU; 270 to 440 ns measured."""
AUDIT = 8e-7
"""Seconds of the audit per compute task; 350 to 500 ns measured."""
LOADING = 0.7
"""Seconds until the compiled replay is loaded from the cache; 0.4 measured."""
PER_ALL_REDUCE = 4e-7
"""Seconds of the compiled simulation and of the metrics per all-reduce; 0.5 to 0.9 microseconds measured."""
CHOOSING = 1e-9
"""Seconds to look at one GPU while placing."""


def check_seconds(instance: DdlClusterInstance, across: int) -> float:
    """What the checker takes for a run in which so many jobs are across servers: its replay and its audit.

    Notes
    -----
    The replay looks at every job and GPU at every moment. A job has two moments per iteration, two more
    where it has an all-reduce; this is within 5% of what runs of the paper's workload have.
    """
    moments = 2.0 * (sum(job.iterations for job in instance.jobs) + _all_reduces(instance))
    parts = len(instance.jobs) + instance.total_gpus
    tasks = task_count(instance)
    if tasks <= INTERPRETED_TASKS:
        return moments * parts * INTERPRETED + tasks * AUDIT
    audited = tasks * AUDIT if tasks <= AUDITED_TASKS else 0.0
    return LOADING + moments * parts * (COMPILED + WAITING * across) + audited


def run_seconds(instance: DdlClusterInstance, placement: str, kappa: int) -> float:
    """What a run takes at least, before its check: choosing GPUs, and the all-reduces that there will be."""
    return placing_seconds(instance, placement, kappa) + _all_reduces(instance) * PER_ALL_REDUCE


def _all_reduces(instance: DdlClusterInstance) -> int:
    """All-reduces of the jobs that are across servers wherever they are placed, or are given so."""
    widest = max(server.gpus for server in instance.servers)
    return sum(
        job.iterations
        for job, given in zip(instance.jobs, instance.given, strict=True)
        if job.gpus > widest or (given is not None and len({server for server, _ in given}) > 1)
    )


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
