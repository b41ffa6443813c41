"""The audit finds every kind of fault in a recorded run, and none in an honest one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.ddl_cluster_clusters import sharing_links
from support.ddl_cluster_random import placed_instance

from schedgap.formulations.ddl_cluster.audit import audit
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.given_placement import given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, Log, simulate_plain

S = 10**10
"""Ticks of a second."""
DATA: dict[str, Any] = {
    "problem": "ddl-cluster",
    "gpu_memory": 10.0,
    "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 1}],
    "link": {"latency": 0.5, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
    "jobs": [
        {
            "id": name,
            "arrival": 1.0,
            "gpus": 2,
            "iterations": 2,
            "forward": 1.0,
            "backward": 2.0,
            "message": 4.0,
            "memory": memory,
            "placement": [["s0", index], ["s1", 0]],
        }
        for name, memory, index in (("a", 6.0, 0), ("b", 4.0, 1))
    ],
}
INSTANCE = DdlClusterInstance.parse(DATA)
PLACEMENT = given_placement(INSTANCE, "test")


def _log(policy: str) -> Log:
    log = simulate_plain(INSTANCE, PLACEMENT, policy, record=True, digits=10).log
    assert log is not None
    return log


def _found(log: Log, policy: str) -> set[str]:
    return {violation.constraint for violation in audit(INSTANCE, PLACEMENT, policy, log, 10)}


def _task(log: Log, j: int, i: int, w: int, kind: int) -> int:
    return int(log.task_base[j]) + 2 * (i * 2 + w) + kind


@pytest.mark.parametrize("policy", POLICIES)
def test_honest_runs_pass(policy: str) -> None:
    assert not _found(_log(policy), policy)
    for seed in range(25):
        instance = placed_instance(seed, jobs=6, servers=3, iterations=6, tight=seed % 2 == 0)
        placement = given_placement(instance, "test")
        log = simulate_plain(instance, placement, policy, record=True, digits=10).log
        assert log is not None
        assert not audit(instance, placement, policy, log, 10)


def _lose_task(log: Log) -> None:
    log.start[_task(log, 0, 1, 0, 0)] = -1


def _lose_message(log: Log) -> None:
    log.done[1] = -1


def _shorten_task(log: Log) -> None:
    log.end[_task(log, 0, 0, 0, 1)] -= 2


def _shift_early(log: Log) -> None:
    place = _task(log, 0, 1, 0, 0)
    log.start[place] -= S
    log.end[place] -= S


def _before_arrival(log: Log) -> None:
    log.placed[0] = 0


def _fast_message(log: Log) -> None:
    log.done[0] -= S


def _slow_message(log: Log) -> None:
    log.done[-1] += S


def _idle_gpu(log: Log) -> None:
    place = _task(log, 1, 1, 0, 1)
    log.start[place] += S // 2
    log.end[place] += S // 2


def _late_admission(log: Log) -> None:
    log.admitted[-1] += S
    log.done[-1] += S


@pytest.mark.parametrize(
    ("change", "constraints"),
    [
        (_lose_task, {"iterations"}),
        (_lose_message, {"iterations"}),
        (_shorten_task, {"duration"}),
        (_shift_early, {"iterations"}),
        (_before_arrival, {"iterations"}),
        (_fast_message, {"message"}),
        (_slow_message, {"message"}),
        (_idle_gpu, {"idle"}),
        (_late_admission, {"waiting"}),
    ],
)
def test_every_fault_is_found(change: Callable[[Log], None], constraints: set[str]) -> None:
    log = _log("srsf-2")
    change(log)
    assert constraints <= _found(log, "srsf-2")


def test_more_active_than_the_policy_admits() -> None:
    assert "limit" in _found(_log("srsf-2"), "srsf-1")


def test_waiting_although_there_is_room() -> None:
    assert "waiting" in _found(_log("srsf-1"), "srsf-2")


def test_two_tasks_on_one_gpu() -> None:
    log = _log("srsf-1")
    place, other = _task(log, 0, 0, 1, 0), _task(log, 1, 0, 1, 0)
    log.start[other], log.end[other] = log.start[place], log.end[place]
    assert "gpu" in _found(log, "srsf-1")


def test_more_memory_than_a_gpu_has() -> None:
    data = DATA | {"gpu_memory": 9.0}
    instance = DdlClusterInstance.parse(data)
    found = audit(instance, PLACEMENT, "srsf-1", _log("srsf-1"), 10)
    assert {(violation.constraint, violation.amount) for violation in found} == {("memory", 1.0)}


@pytest.mark.parametrize("policy", POLICIES)
def test_short_messages_of_an_honest_run_pass(policy: str) -> None:
    """A link that is busy to the last tick with messages far shorter than 10^9 ticks."""
    data = copy.deepcopy(DATA)
    for job in data["jobs"]:
        job["message"] = 0.01
    data["link"] = {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.0}
    instance = DdlClusterInstance.parse(data)
    log = simulate_plain(instance, PLACEMENT, policy, record=True, digits=10).log
    assert log is not None and not audit(instance, PLACEMENT, policy, log, 10)


def test_messages_that_outrun_their_link() -> None:
    """Both messages at once as if neither met the other: the fault of asking how much is left moving it on."""
    log = _log("srsf-2")
    shared = replace(log, admitted=log.admitted.copy(), done=log.done.copy())
    latest = int(max(log.admitted[0], log.admitted[2]))
    for k in (0, 2):
        shared.admitted[k] = latest
        shared.done[k] = latest + 45 * S // 10
    found = audit(INSTANCE, PLACEMENT, "srsf-2", shared, 10)
    assert {"message", "link"} <= {violation.constraint for violation in found}
    assert any("in 1 busy periods" in violation.message for violation in found)


def test_the_summary_says_how_often_and_how_much() -> None:
    log = _log("srsf-2")
    log.end[[_task(log, 0, i, w, 1) for i in (0, 1) for w in (0, 1)]] -= S // 4
    lines = [violation.message for violation in audit(INSTANCE, PLACEMENT, "srsf-2", log, 10)]
    assert "job a: backward task: 4 times, first at entry 0, worst by 0.25 s" in lines


def test_the_log_is_laid_out_as_it_says() -> None:
    log = _log("srsf-1")
    assert np.array_equal(log.task_base, [0, 8, 16])
    assert log.start[_task(log, 0, 0, 0, 0)] == S
    assert log.end[_task(log, 0, 0, 0, 1)] == 4 * S


SHARING = sharing_links(5_000)
"""Three jobs that meet on the links of two servers, again and again in the same way."""


def _by_cycles() -> Log:
    placement = given_placement(SHARING, "test")
    run = simulate_plain(SHARING, placement, "srsf-1")
    log = simulate_plain(SHARING, placement, "srsf-1", record=True, logged=run).log
    assert log is not None and run.skipped is not None and run.skipped > 1_000
    return log


def _changed(change: Callable[[Log], Log | None]) -> list[str]:
    log = _by_cycles()
    log = change(log) or log
    found = audit(SHARING, given_placement(SHARING, "test"), "srsf-1", log, clock_of(SHARING).digits)
    return [violation.constraint for violation in found]


def test_a_log_by_cycles_passes() -> None:
    log = _by_cycles()
    assert len(log.start) < 0.1 * sum(2 * job.gpus * job.iterations for job in SHARING.jobs)
    assert not _changed(lambda log: None)


def _part(log: Log, j: int, column: int, by: int) -> None:
    log.jumps[log.jumps[:, 0] == j, column] += by


def _once_more(log: Log) -> None:
    log.jumps[0, 3] += log.jumps[0, 2]


def _without_one(log: Log) -> Log:
    return replace(log, jumps=log.jumps[log.jumps[:, 0] != 1])


def _without_any(log: Log) -> Log:
    return replace(log, jumps=log.jumps[:0])


def _longer_in_all(log: Log) -> None:
    """A cycle that all jobs have, and that does not end where it began."""
    log.jumps[:, 2] += 1


def _begun_otherwise(log: Log) -> None:
    """A task that goes on at the end of a cycle, begun a tick earlier than at the cycle's begin."""
    for job, at, _, ticks, _ in log.jumps.tolist():
        tasks = slice(log.task_base[job], log.task_base[job + 1])
        on = (log.start[tasks] > at) & (log.start[tasks] <= at + ticks) & (log.end[tasks] > at + ticks)
        if on.any():
            log.start[log.task_base[job] + np.flatnonzero(on)[0]] -= 1
            return
    raise AssertionError("no task goes on")


def _busy_meanwhile(log: Log) -> None:
    """An all-reduce that goes on at the end of a cycle was admitted five ticks earlier, when another one was active."""
    _, at, *_ = log.jumps[0].tolist()
    message = int(np.flatnonzero(log.done[: log.message_base[1]] > at)[0])
    log.admitted[message] -= 5


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        (_once_more, "cycle"),
        (lambda log: _part(log, 0, 1, 1), "cycle"),
        (lambda log: _part(log, 1, 2, -1), "cycle"),
        (lambda log: _part(log, 2, 3, 1), "cycle"),
        (lambda log: _part(log, 0, 4, 1), "cycle"),
        (_without_one, "cycle"),
        (_without_any, "cycle"),
        (_longer_in_all, "cycle"),
        (_begun_otherwise, "cycle"),
        (_busy_meanwhile, "limit"),
    ],
)
def test_a_cycle_that_is_not_repeated_is_found(change: Callable[[Log], Log | None], constraint: str) -> None:
    assert constraint in _changed(change)
