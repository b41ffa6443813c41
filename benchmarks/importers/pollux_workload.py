"""A workload of the Pollux artifact as an instance of gpu-sharing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.pollux import read_workload
from schedgap.benchmarks.instances.gpu_sharing.paper import PER_SERVER, task_instance, task_job
from schedgap.benchmarks.instances.profiles.pollux_tasks import TASKS
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

_HOURS = ((0.05, 2.0), (0.3, 4.5))


def import_gpu_sharing(
    files: Sequence[str | Path],
    *,
    jobs: Annotated[
        int | None, Field(ge=1, description="how many jobs to keep, the first ones; all where not given")
    ] = None,
    servers: Annotated[int, Field(ge=1, le=10000, description="servers of 4 GPUs")] = 16,
    seed: Annotated[int, Field(ge=0, le=10**9, description="of the durations, which the file does not have")] = 0,
    xi: Annotated[
        float | None,
        Field(ge=1, le=1000, description="interference of every pair; a random table over the tasks where not given"),
    ] = None,
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 10.0,
) -> tuple[GpuSharingInstance, list[str]]:
    """The jobs of a ``workload-*.csv`` on servers of 4 GPUs.

    Arrivals, applications, GPUs and batch sizes are the file's; iteration times are those of the fitted
    tasks. The file has no durations: they are drawn as for the preset ``table-iii`` (by `seed`), and so is
    interference where `xi` is not given.

    Parameters
    ----------
    files : exactly one workload
    jobs : how many jobs to keep, the first ones
    servers, seed, xi, slot_length : see above

    Returns
    -------
    (instance, messages) : what was left out or assumed, a line each

    Raises
    ------
    InputError
        Not one file, an application that is not one of the six, or a file that is not a workload.
    """
    if len(files) != 1:
        raise InputError(f"import pollux: takes one workload file, got {len(files)}")
    path = files[0]
    rows = read_workload(path)[:jobs]
    rng = np.random.default_rng(seed)
    parts: list[dict[str, Any]] = []
    kinds: list[str] = []
    dropped = 0
    for row in rows:
        name = row["application"]
        if name not in TASKS:
            raise InputError(f"{path}: job {row['name']}: unknown application {name!r}, one of: {', '.join(TASKS)}")
        low, high = _HOURS[row["gpus"] > PER_SERVER]
        seconds = 3600.0 * math.exp(rng.uniform(math.log(low), math.log(high)))
        if row["gpus"] > servers * PER_SERVER:
            dropped += 1
            continue
        batch = max(1, row["batch"] // row["gpus"])
        kinds.append(name)
        parts.append(task_job(row["name"], name, row["gpus"], row["seconds"], slot_length, seconds, batch))
    if not parts:
        raise InputError(f"{path}: no job fits {servers} servers of {PER_SERVER} GPUs")
    messages = [
        f"{len(parts)} jobs; durations are drawn (seed {seed}), the file has none",
        "interference is " + (f"{xi:g} for every pair" if xi is not None else "drawn by pairs of tasks from 1 to 2"),
        "memory is assumed (benchmarks/instances/profiles/pollux_tasks.py), on GPUs of 11 GB",
    ]
    if dropped:
        messages.append(f"{dropped} jobs left out: they need more GPUs than there are")
    return task_instance(rng, Path(path).stem, parts, kinds, servers, xi, slot_length), messages
