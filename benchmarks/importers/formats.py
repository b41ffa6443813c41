"""Public traces by their columns, as their repositories publish them, and tables of servers.

To add one: describe its columns in a :class:`~schedgap.benchmarks.importers.rows.Format` and add that to
:data:`TRACES`; every problem that takes traces then has an importer of its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from schedgap.benchmarks.importers.cells import (
    MISSING,
    LeftOut,
    between,
    count,
    duration,
    host_names,
    lasted,
    moment,
    name,
    number,
    positive,
    seconds,
    whole,
)
from schedgap.benchmarks.importers.kubernetes import KUBERNETES
from schedgap.benchmarks.importers.others import OTHERS
from schedgap.benchmarks.importers.rows import Format
from schedgap.benchmarks.importers.slurm import SLURM


def _argument(cell: str) -> None:
    if not cell.startswith("-"):
        raise ValueError("must begin with '-'")


def _flag(cell: str) -> None:
    if cell.strip() not in ("0", "1"):
        raise ValueError("must be 0 or 1")


def _job_type(cell: str) -> str:
    if not cell.strip():
        raise ValueError("is empty")
    return cell.strip()


def _each(total: str, workers: str) -> int:
    """Samples of one worker."""
    return max(1, positive(total) // positive(workers))


def _percent(cell: str) -> float:
    """GPUs of one instance."""
    return 0.0 if cell.strip().lower() in MISSING else number(cell, "percent of a GPU") / 100


def _of_instances(percent: str, instances: str) -> int:
    """Whole GPUs of all instances of a task."""
    return 0 if _percent(percent) <= 0 else whole(instances) * math.ceil(_percent(percent))


def _milli(cell: str) -> float:
    return count(cell) / 1000


def _own_nodes(cells: Any) -> tuple[tuple[str, int], ...]:
    return tuple(cells)


def _minutes(cell: str) -> float:
    return 60 * duration(cell)


def _minute(cell: str) -> float:
    return 60 * moment(cell)


def _philly(job: Any) -> Sequence[Any]:
    """jobid, submitted_time, seconds of all attempts, GPUs of the last attempt that had some, then the record.

    Only a job of one attempt has a start and an end: what ran in between others is not one interval.
    """
    if not isinstance(job, Mapping) or not isinstance(job.get("attempts"), list):
        raise LeftOut("is not a job with a list of attempts")
    total, gpus = 0.0, 0
    for attempt in job["attempts"]:
        if not isinstance(attempt, Mapping):
            raise LeftOut("has an attempt that is not an object")
        parts = attempt.get("detail") or ()
        if not isinstance(parts, list | tuple) or not all(
            isinstance(part, Mapping) and isinstance(part.get("gpus"), list) for part in parts
        ):
            raise LeftOut("has an attempt whose detail is not a list of GPUs")
        gpus = sum(len(part["gpus"]) for part in parts) or gpus
        total += between(str(attempt.get("start_time")), str(attempt.get("end_time")))
    if not job["attempts"]:
        raise LeftOut("was never started")
    single = job["attempts"][0] if len(job["attempts"]) == 1 else {}
    nodes = [(str(part.get("ip")), len(part["gpus"])) for part in single.get("detail") or ()]
    record = (str(single.get("start_time")), str(single.get("end_time")), str(job.get("status")), nodes)
    named = (str(job.get("vc")), str(job.get("user")))
    return str(job.get("jobid", "")), str(job.get("submitted_time")), str(total), str(gpus), *record, *named


GAVEL = Format(
    "gavel",
    "a job trace of stanford-futuredata/gavel with its measured rates",
    {
        "model": (_job_type, "job type"),
        "argument": (_argument, "steps argument"),
        "data": (_flag, "needs data"),
        "iterations": (positive, "total steps"),
        "gpus": (positive, "scale factor"),
        "arrival": (seconds, "arrival"),
    },
    names=(
        (
            *("job type", "command", "directory", "steps argument", "needs data"),
            *("total steps", "scale factor", "priority", "SLO", "arrival"),
        ),
        ("job type", "command", "steps argument", "needs data", "total steps", "arrival", "scale factor"),
        (  # uw-mad-dash/shockwave
            *("job type", "command", "directory", "steps argument", "needs data", "total steps"),
            *("scale factor", "mode", "priority", "SLO", "duration", "arrival"),
        ),
    ),
    separator="\t",
    strict=True,
    relative=True,
)
_PHILLY_TITLE = "the Microsoft Philly trace (msr-fiddle/philly-traces: cluster_job_log), or its flat table"
PHILLY = Format(
    "philly",
    _PHILLY_TITLE,
    {
        "arrival": (moment, "timestamp"),
        "duration": (duration, "duration"),
        "gpus": (count, "num_gpus"),
    },
    {"tenant": (name, "cluster")},
    json=Format(
        "philly",
        _PHILLY_TITLE,
        {
            "id": (name, "jobid"),
            "arrival": (moment, "submitted_time"),
            "duration": (duration, "attempts"),
            "gpus": (count, "gpus"),
        },
        {
            "start": (moment, "start_time"),
            "end": (moment, "end_time"),
            "state": (name, "status"),
            "nodes": (_own_nodes, "detail"),
            "tenant": (name, "vc"),
            "user": (name, "user"),
        },
        objects=_philly,
        notes=("a job's duration is that of all its attempts together, its GPUs are those of the last",),
    ),
)
HELIOS = Format(
    "helios",
    "a cluster_log.csv of SenseTime's Helios (S-Lab-System-Group/HeliosData)",
    {
        "id": (name, "job_id"),
        "gpus": (count, "gpu_num"),
        "arrival": (moment, "submit_time"),
        "duration": (duration, "duration"),
    },
    {
        "start": (moment, "start_time"),
        "end": (moment, "end_time"),
        "state": (name, "state"),
        "tenant": (name, "vc"),
        "user": (name, "user"),
    },
)
PAI = Format(
    "pai",
    "pai_task_table.csv of alibaba/clusterdata, cluster-trace-gpu-v2020",
    {
        "id": (name, "job_name", "task_name"),
        "gpus": (_of_instances, "plan_gpu", "inst_num"),
        "share": (_percent, "plan_gpu"),
        "arrival": (moment, "start_time"),
        "duration": (between, "start_time", "end_time"),
    },
    names=(
        (
            *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
            *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
        ),
    ),
    notes=("every task is a job of its own, which arrives when the task was launched",),
)
OPENB = Format(
    "openb",
    "openb_pod_list_*.csv of alibaba/clusterdata, cluster-trace-gpu-v2023",
    {
        "id": (name, "name"),
        "gpus": (count, "num_gpu"),
        "share": (_milli, "gpu_milli"),
        "arrival": (moment, "creation_time"),
        "duration": (between, "scheduled_time", "deletion_time"),
    },
    {
        "start": (moment, "scheduled_time"),
        "end": (moment, "deletion_time"),
        "state": (name, "pod_phase"),
        "tenant": (name, "qos"),
        "asked": (name, "gpu_spec"),
    },
)
POLLUX = Format(
    "pollux",
    "a workload of the Pollux artifact (petuum/adaptdl, osdi21-artifact) with its measured iteration times",
    {
        "id": (name, "name"),
        "arrival": (moment, "time"),
        "model": (_job_type, "application"),
        "gpus": (positive, "num_replicas"),
        "batch": (_each, "batch_size", "num_replicas"),
    },
    relative=True,
)
SIA = Format("sia", "a workload of siasosp23/artifacts, in the form of Pollux", POLLUX.fields, relative=True)
TIRESIAS = Format(
    "tiresias",
    "a trace of SymbioticLab/Tiresias (60_job.csv or tf_job.csv)",
    {
        "id": (name, "job_id"),
        "gpus": (count, "num_gpu"),
        "arrival": (moment, "submit_time"),
        "duration": (duration, "duration"),
        "model": (name, "model_name"),
    },
    relative=True,
)
CHRONUS = Format(
    "chronus",
    "Philly jobs with models, of S-Lab-System-Group/ChronusArtifact (trace_job_Philly_MIX1.csv), in minutes",
    {
        "id": (name, "job_id"),
        "gpus": (count, "num_gpu"),
        "arrival": (_minute, "submit_time"),
        "duration": (_minutes, "duration"),
        "model": (name, "model_name"),
    },
    {"tenant": (name, "user")},
)
TRACES = (GAVEL, PHILLY, HELIOS, PAI, OPENB, POLLUX, SIA, TIRESIAS, CHRONUS, SLURM, KUBERNETES, *OTHERS)
"""Formats of job traces, in the order of ``schedgap list``."""


_RECORD = ("start", "end", "nodes", "tenant", "user", "kind")
COLUMNS = ("id", "gpus", "duration", "arrival", *_RECORD, "model", "iterations", "batch")
"""What the columns of a user's table may hold."""


def table(columns: Mapping[str, str], scale: float) -> Format:
    """A plain table whose columns a user names; a number of seconds is `scale` times the cell."""

    def scaled(read: Any) -> Any:
        return lambda cell: scale * read(cell)

    def when(cell: str) -> float:
        return moment(cell) * (1 if "-" in cell else scale)

    readers = {
        "id": name,
        "gpus": whole,
        "duration": scaled(duration),
        "arrival": when,
        "start": when,
        "end": when,
        "nodes": lambda cell: tuple((host, None) for host in host_names(cell)),
        "tenant": name,
        "user": name,
        "kind": name,
        "model": name,
        "iterations": whole,
        "batch": whole,
    }
    fields: dict[str, tuple[Any, ...]] = {field: (readers[field], column) for field, column in columns.items()}
    if "duration" not in fields and {"start", "end"} <= set(columns):
        fields["duration"] = (lasted(when), columns["start"], columns["end"])
    # A job that does not say what it trains is one like those of a table without the column.
    unneeded = (*_RECORD, "model", "batch", *(["iterations"] if "duration" in fields else []))
    optional = {field: fields.pop(field) for field in unneeded if field in fields}
    return Format("csv", "", fields, optional, separator=None)


CLUSTERS = (
    Format(
        "openb", "openb_node_list_*.csv", {"id": (name, "sn"), "gpus": (count, "gpu"), "kind": (str.strip, "model")}
    ),
    Format(
        "tiresias",
        "a cluster of equal servers",
        {
            "switches": (positive, "num_switch"),
            "copies": (positive, "num_node_p_switch"),
            "gpus": (count, "num_gpu_p_node"),
        },
    ),
    Format(
        "pai",
        "pai_machine_spec.csv",
        {"id": (name, "machine"), "kind": (str.strip, "gpu_type"), "gpus": (whole, "cap_gpu")},
        names=(("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),),
    ),
    Format("nodes", "node,gpus[,type]", {"id": (name, "node"), "gpus": (count, "gpus")}, {"kind": (name, "type")}),
    Format("philly", "cluster_machine_list", {"id": (name, "machineId"), "gpus": (count, "number of GPUs")}),
    Format("lingjun", "topo.csv", {"id": (name, "ip")}, notes=("the table has no GPUs: 8 in every host assumed",)),
)
"""Tables of servers, told apart by their columns."""
