"""What gangs that ask for the same are told apart by, and how many tasks of an array may start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap


def _pod(name: str, node: str | None = None, **spec: Any) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": "8"}
    box = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    owner = {"kind": "Job", "name": name, "uid": name, "controller": True, "apiVersion": "batch/v1"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "d", "uid": name, "ownerReferences": [owner]},
        "spec": {"containers": [box], **({"nodeName": node} if node else {}), **spec},
        "status": {"phase": "Running" if node else "Pending"},
    }


def test_whom_a_pod_may_end_is_not_told_of_another_that_asks_for_the_same(tmp_path: Path) -> None:
    node = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n1", "labels": {}},
        "spec": {},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}},
    }
    pods = [
        _pod("low", "n1", priority=0),
        _pod("gentle", priority=100, preemptionPolicy="Never"),
        _pod("other", priority=100),
    ]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, *pods]}))
    lines = [lost.line() for lost in schedgap.judge(path, names=True).lost]
    gentle, other = (next(line for line in lines if name in line) for name in ("gentle", "other"))
    assert "preemptionPolicy is Never" in gentle
    assert "admitted by ending" in other and "Never" not in other


@pytest.mark.parametrize(
    ("tasks", "active", "count"), [("0-9%2", 0, 2), ("0-9%2", 1, 1), ("0-9%2", 2, 0), ("0-9", 1, 8)]
)
def test_no_more_tasks_of_an_array_start_than_may_run(tmp_path: Path, tasks: str, active: int, count: int) -> None:
    """A node of ten GPUs, tasks of one."""

    def job(name: int, state: str, gpus: int, **more: Any) -> dict[str, Any]:
        tres = f"cpu=1,node=1,gres/gpu={gpus}"
        told = {"job_id": name, "job_state": [state], "partition": "gpu", "node_count": 1, "cpus": 1, "priority": 1}
        where = {"nodes": "n1", "tres_alloc_str": tres} if state == "RUNNING" else {"nodes": "", "tres_alloc_str": ""}
        return {**told, **where, "tres_req_str": tres, "array_job_id": 5, "array_task_string": "", **more}

    jobs = [job(100 + k, "RUNNING", 1) for k in range(active)]
    jobs += [job(200, "RUNNING", 2 - active, array_job_id=0)] if active < 2 else []
    jobs.append(job(5, "PENDING", 1, array_task_string=tasks))
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    (tmp_path / "nodes").write_text(
        "NodeName=n1 CPUAlloc=0 CPUTot=64\n   Gres=gpu:10\n   RealMemory=1000 AllocMem=0\n   State=MIXED\n"
        "   Partitions=gpu\n   CfgTRES=cpu=64,gres/gpu=10\n   AllocTRES=\n\n"
    )
    found = schedgap.judge(tmp_path / "jobs.json", nodes=tmp_path / "nodes", names=True)
    assert sum(lost.fits for lost in found.lost) == count
