"""A run that breaks one of the four conserved quantities, and no other, is an error of the policy that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.ddl_cluster_clusters import broken_conservation

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.ddl_cluster import policies
from schedgap.heuristics.ddl_cluster.simulation import FastRun, simulate

S = 10**11
"""Ticks of a second of the clusters below: a task of 10 s is the longest."""
"""Ticks of a second."""


def cluster() -> DdlClusterInstance:
    """Two jobs across both servers with messages of 10 and 2 s, and two of 20 s of tasks on a GPU each."""
    across = {"gpus": 2, "iterations": 1, "forward": 1.0, "backward": 1.0, "memory": 1.0}
    local = {"gpus": 1, "iterations": 10, "forward": 1.0, "backward": 1.0, "memory": 1.0, "message": 1.0}
    data: dict[str, Any] = {
        "problem": "ddl-cluster",
        "gpu_memory": 1.0,
        "servers": [{"id": "s0", "gpus": 3}, {"id": "s1", "gpus": 3}],
        "link": {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
        "jobs": [
            {**across, "id": "long", "arrival": 0.0, "message": 10.0, "placement": [["s0", 0], ["s1", 0]]},
            {**across, "id": "short", "arrival": 1.0, "message": 2.0, "placement": [["s0", 1], ["s1", 1]]},
            {**local, "id": "left", "arrival": 0.0, "placement": [["s0", 2]]},
            {**local, "id": "right", "arrival": 0.0, "placement": [["s1", 2]]},
        ],
    }
    return DdlClusterInstance.parse(data)


def times(run: FastRun, **seconds: tuple[float, ...]) -> FastRun:
    """The run with other admissions or ends of the all-reduces of `long` and `short`; they finish at these ends."""
    log, finish = run.log, run.finish.copy()
    for name, values in seconds.items():
        column = getattr(log, name).copy()
        column[log.message_base[:2]] = [int(value * S) for value in values]
        log = replace(log, **{name: column})
    finish[:2] = log.done[log.message_base[:2]]
    return replace(run, log=log, finish=finish)


def outrun_bytes(run: FastRun) -> FastRun:
    """`short` takes 1 s for its 2 MB; `long` takes so long that the link has room for both."""
    return times(run, admitted=(2, 3), done=(14, 4))


def overload_link(run: FastRun) -> FastRun:
    """Both as fast as if alone, at the same time: 12 s of messages in 10 s, one or two at a time."""
    return times(run, admitted=(2, 3), done=(12, 5))


def overload_gpu(run: FastRun) -> FastRun:
    """`right` on the GPU of `left`: 40 s of tasks in 20 s."""
    return replace(run, placement=(*run.placement[:3], run.placement[2]))


def skip_iteration(run: FastRun) -> FastRun:
    """`left` finishes two seconds, an iteration, too early."""
    finish = run.finish.copy()
    finish[2] -= 2 * S
    return replace(run, finish=finish)


@pytest.mark.parametrize(
    ("doctor", "findings", "message"),
    [
        (outrun_bytes, 1, "job short: 1 all-reduces take less than latency + size b = 2 s"),
        (overload_link, 2, "server s0: messages take 2 s more of the link than there is"),
        (overload_gpu, 1, "server s0, GPU 2: tasks take 20 s more than there is"),
        (skip_iteration, 2, "job left: an iteration is missing"),  # the GPU does 20 s of tasks in 18 as well
    ],
)
def test_each_conserved_quantity(
    monkeypatch: pytest.MonkeyPatch, doctor: Callable[[FastRun], FastRun], findings: int, message: str
) -> None:
    def doctored(*args: Any, take: Callable[..., None], **options: Any) -> FastRun:
        run = doctor(simulate(*args, **options))
        take(run.log, run.placement)
        return run

    assert policies.run_policy(cluster(), "srsf-2", 0, "lwf").run.finish[2] == 20 * S
    monkeypatch.setattr(policies, "simulate", doctored)
    with pytest.raises(policies.ConservationError) as error:
        policies.run_policy(cluster(), "srsf-2", 0, "lwf")
    assert message in str(error.value)
    assert f"({findings} findings)" in str(error.value)


def test_a_link_is_judged_by_busy_period() -> None:
    """4 s of messages in 2 s are not excused by 6 idle seconds before: the periods are not averaged."""
    instance = cluster()
    run = times(simulate(instance, "srsf-2", "lwf"), admitted=(2, 14), done=(12, 16))
    found = broken_conservation(instance, run, 2)
    assert found == []
    data = instance.to_dict()
    data["jobs"].append({**data["jobs"][1], "id": "third", "arrival": 1.0, "placement": [["s0", 0], ["s1", 1]]})
    data["gpu_memory"] = 2.0
    three = DdlClusterInstance.parse(data)
    real = simulate(three, "srsf-2", "lwf")
    log = replace(real.log, admitted=real.log.admitted.copy(), done=real.log.done.copy())
    chosen = log.message_base[[0, 1, 4]]
    log.admitted[chosen], log.done[chosen] = np.array([2, 18, 18]) * S, np.array([12, 20, 20]) * S
    finish = real.finish.copy()
    finish[[0, 1, 4]] = np.array([12, 20, 20]) * S
    found = broken_conservation(three, replace(real, finish=finish, log=log), 2)
    assert found == [f"server s{s}: messages take 2 s more of the link than there is" for s in (0, 1)]
