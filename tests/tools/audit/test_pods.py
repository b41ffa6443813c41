"""Pods that start together: no schedule is reached that splits them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgap import audit
from schedgap.tools.audit.reading import read_cluster
from schedgap.tools.audit.result import Audit

BOTH = {"scheduling.x-k8s.io/pod-group": "g"}


def clock(minutes: int) -> str:
    return f"2026-11-30T{minutes // 60:02}:{minutes % 60:02}:00Z"


def pod(name: str, node: str, times: tuple[int, int, int], spec: dict[str, Any] | None = None, **about: Any) -> Any:
    """A pod of eight GPUs: minutes at which it was created, scheduled and done."""
    created, scheduled, done = map(clock, times)
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created, **about},
        "spec": {"nodeName": node, "containers": [container], **(spec or {})},
        "status": {
            "phase": "Succeeded",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled}],
            "containerStatuses": [{"name": "c", "state": {"terminated": {"finishedAt": done}}}],
        },
    }


def log(folder: Path, gang: list[Any]) -> Audit:
    """Two nodes of eight GPUs, a job of 60 and one of 100 minutes on them, and a gang that waits for both."""
    nodes = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}
        for name in ("a", "b")
    ]
    first = [pod("x", "a", (0, 0, 60)), pod("y", "b", (0, 0, 100))]
    (folder / "pods.json").write_text(json.dumps({"items": [*nodes, *first, *gang]}))
    found: Audit = audit(folder / "pods.json", methods=["fifo", "sjf"])
    return found


@pytest.mark.parametrize(
    ("about", "spec"),
    [
        ({"labels": BOTH}, {}),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, {}),
        ({"annotations": {"pod-group-name": "g"}}, {}),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}),
        ({}, {"workloadRef": {"name": "g", "podGroup": "workers"}}),
    ],
)
def test_a_gang_is_not_split(tmp_path: Path, about: dict[str, Any], spec: dict[str, Any]) -> None:
    times = (30, 100, 160)
    found = log(tmp_path, [pod("g-0", "a", times, spec, **about), pod("g-1", "b", times, spec, **about)])
    gains = found.avoidable(found.sides[0])
    assert gains is not None and all(least == 0 for least, _ in gains.values()) and gains["jct"][1] < 0.12
    told = "only schedules that start the pods of 1 gang together count as reached"
    assert told in found.verdict and "at least 0%" in found.verdict
    rows = {row.name: row for row in found.sides[0].rows}
    assert rows["recorded"].status == "recorded" and rows["fifo"].status == "relaxed"
    assert rows["fifo"].reason == "not counted: pods of default/g start apart"
    assert "no better schedule was found" in found.to_text().replace("\n  ", " ")
    assert found.left_out == {} and found.load.capacity == 16


def test_pods_without_a_gang_are_jobs_of_their_own(tmp_path: Path) -> None:
    found = log(tmp_path, [pod("g-0", "a", (30, 100, 160)), pod("g-1", "b", (30, 100, 160), labels=BOTH)])
    gains = found.avoidable(found.sides[0])
    assert gains is not None and gains["jct"][0] > 0.09 and "gang" not in found.verdict
    assert {row.status for row in found.sides[0].rows} == {"recorded", "feasible"}


@pytest.mark.parametrize("second", [150, 155])
def test_a_gang_that_is_kept_together_is_reached(tmp_path: Path, second: int) -> None:
    """The gang waits from 2:00 to 2:30 though both nodes are free from 1:40; q waits for the first node."""
    pods = [pod("g-0", "a", (120, 150, 180), labels=BOTH), pod("g-1", "b", (120, second, 180), labels=BOTH)]
    found = log(tmp_path, [*pods, pod("q", "a", (10, 60, 90))])
    assert found.gangs == 1 and {row.status for row in found.sides[0].rows} == {"recorded", "feasible"}
    gains = found.avoidable(found.sides[0])
    assert gains is not None and gains["jct"][0] > 0.1
    reading = read_cluster(found.jobs, found.sides[0].servers, 1.0, True, True)
    ((_, rows),) = reading.gangs.items()
    start = np.zeros(len(found.jobs), dtype=np.int64)
    start[rows[1]] = 60 * (second - 150)
    assert reading.apart(start) is None
    start[rows[1]] += 1
    assert reading.apart(start) == "default/g"
