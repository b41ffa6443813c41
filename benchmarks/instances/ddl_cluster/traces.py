"""Job traces as instances of ddl-cluster: arrivals and gangs from the trace, tasks of paper 001's measured models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from schedgap.benchmarks.importers.throughputs import timed
from schedgap.benchmarks.importers.traces import Trace
from schedgap.benchmarks.instances.ddl_cluster.random import GPU_MEMORY, LINK, MODELS
from schedgap.benchmarks.instances.profiles.model_names import match_profile
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance


def to_ddl_cluster(
    trace: Trace,
    *,
    profile: Annotated[
        str, Field(description="model of paper 001's Table III for jobs whose own is not in it")
    ] = "resnet50",
    gpu_memory: Annotated[float, Field(gt=0, le=10**12, description="MB of a GPU")] = GPU_MEMORY,
    steps_scale: Annotated[float, Field(gt=0, le=1, description="factor on the iterations, rounded")] = 1.0,
) -> DdlClusterInstance:
    """The jobs of a trace, each training a model of paper 001's Table III for as many iterations as it ran.

    An iteration takes the model's forward and backward task, and for a job larger than a server an all-reduce that
    is alone on the link. Raises InputError: no job fits.
    """
    largest = max(server.gpus for server in trace.servers)
    rows: list[dict[str, Any]] = []
    jobs = trace.fitting(sum(server.gpus for server in trace.servers))
    for job, duration in zip(jobs, timed(trace, jobs), strict=True):
        model, said = match_profile(job.model, None, list(MODELS), profile)
        if said is not None:
            trace.notes.add(said)
        message, memory, forward, backward = MODELS[model]
        exchange = LINK["latency"] + message * LINK["seconds_per_unit"] if job.gpus > largest else 0.0
        rows.append(
            {
                "id": job.id,
                "arrival": job.arrival,
                "gpus": job.gpus,
                "iterations": max(1, round(steps_scale * duration / (forward + backward + exchange))),
                "forward": forward,
                "backward": backward,
                "message": message,
                "memory": memory,
            }
        )
    trace.notes.add("the link is paper 001's 10 Gbps Ethernet, GPUs are V100: the file has neither")
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "name": trace.name,
            "gpu_memory": gpu_memory,
            "servers": [{"id": server.id, "gpus": server.gpus} for server in trace.servers],
            "link": LINK,
            "jobs": rows,
        },
        trace.path,
    )
