"""The checker of ddl-cluster: replays, explicit schedules, every violation, bad solutions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.checks import ddl_cluster as check
from support.ddl_cluster_random import placed_instance

from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster import check as checker
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.given_placement import given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain, solution_of

DATA: dict[str, Any] = {
    "problem": "ddl-cluster",
    "gpu_memory": 10.0,
    "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}],
    "link": {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
    "jobs": [
        {
            "id": "a",
            "arrival": 0.0,
            "gpus": 2,
            "iterations": 2,
            "forward": 1.0,
            "backward": 2.0,
            "message": 4.0,
            "memory": 1.0,
        },
        {
            "id": "b",
            "arrival": 0.0,
            "gpus": 2,
            "iterations": 2,
            "forward": 1.0,
            "backward": 3.0,
            "message": 2.0,
            "memory": 1.0,
        },
    ],
}
INSTANCE = DdlClusterInstance.parse(DATA)
PLACEMENT = {"a": [["s0", 0], ["s1", 0]], "b": [["s0", 1], ["s1", 1]]}
SCHEDULE: dict[str, Any] = {
    "placement": PLACEMENT,
    "schedule": {
        "a": {"forward": [[0, 0], [10, 10]], "backward": [[1, 1], [11, 11]], "allreduce": [3, 13]},
        "b": {"forward": [[0, 0], [9, 9]], "backward": [[1, 1], [10, 10]], "allreduce": [4, 13]},
    },
    "finish": {"a": 20, "b": 18},
}


@pytest.mark.parametrize(
    ("policy", "finish"),
    [("srsf-1", (14.0, 16.0)), ("srsf-2", (20.0, 18.0)), ("srsf-3", (20.0, 18.0)), ("ada-srsf", (14.0, 16.0))],
)
def test_policies_by_hand(policy: str, finish: tuple[float, float]) -> None:
    solution = {"placement": PLACEMENT, "policy": policy, "finish": dict(zip("ab", finish, strict=True))}
    report = check(INSTANCE, solution)
    assert report.feasible
    assert report.objective == Fraction(sum(map(int, finish)), 2)
    assert report.details == {"finish": solution["finish"], "audited": True, "cycles": 0}


def test_what_the_audit_of_a_policys_run_finds_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "audit", lambda *_: [Violation("link", "found by the audit", 1.0)])
    solution = {"placement": PLACEMENT, "policy": "srsf-1", "finish": {"a": 14.0, "b": 16.0}}
    assert [violation.constraint for violation in check(INSTANCE, solution).violations] == ["link"]


def test_the_schedule_that_srsf_2_makes() -> None:
    report = check(INSTANCE, SCHEDULE)
    assert report.feasible
    assert report.objective == 19


def test_a_finish_that_is_off_by_more_than_a_millionth() -> None:
    for factor, right in ((1 + 5e-7, True), (1 + 2e-6, False), (1 - 2e-6, False)):
        solution = {"placement": PLACEMENT, "policy": "srsf-1", "finish": {"a": 14.0 * factor, "b": 16.0}}
        report = check(INSTANCE, solution)
        assert report.feasible is right
        assert [violation.constraint for violation in report.violations] == ([] if right else ["finish"])
        assert report.objective == 15


@pytest.mark.parametrize(
    ("path", "value", "constraints", "text"),
    [
        (("a", "forward", 1, 0), 9.9, {"order"}, "job a, iteration 1, forward of worker 0: starts at 9.9"),
        (("a", "backward", 0, 1), 0.5, {"order", "gpu"}, "its forward ends at 1"),
        (("b", "allreduce", 1), 12.5, {"order", "finish"}, "the barrier ends at 13"),
        (("a", "forward", 0, 0), -1.0, {"arrival"}, "starts at -1, it arrives at 0"),
    ],
)
def test_schedules_that_break_an_order(path: tuple[Any, ...], value: float, constraints: set[str], text: str) -> None:
    solution = copy.deepcopy(SCHEDULE)
    place: Any = solution["schedule"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    report = check(INSTANCE, solution)
    assert {violation.constraint for violation in report.violations} == constraints
    assert any(text in violation.message for violation in report.violations)


def test_two_tasks_on_one_gpu() -> None:
    solution = copy.deepcopy(SCHEDULE)
    solution["placement"] = {"a": PLACEMENT["a"], "b": PLACEMENT["a"]}
    report = check(INSTANCE, solution)
    assert {violation.constraint for violation in report.violations} == {"gpu"}
    assert any("server s0, GPU 0" in violation.message for violation in report.violations)


def test_memory_from_the_first_task_to_the_finish() -> None:
    data = copy.deepcopy(DATA)
    data["jobs"][0]["memory"] = data["jobs"][1]["memory"] = 6.0
    instance = DdlClusterInstance.parse(data)
    apart = copy.deepcopy(SCHEDULE)
    apart["placement"] = {"a": PLACEMENT["a"], "b": PLACEMENT["a"]}
    apart["schedule"]["a"] = {"forward": [[0, 0], [7, 7]], "backward": [[1, 1], [8, 8]], "allreduce": [3, 10]}
    apart["schedule"]["b"] = {"forward": [[14, 14], [20, 20]], "backward": [[15, 15], [21, 21]], "allreduce": [18, 24]}
    apart["finish"] = {"a": 14, "b": 26}
    assert check(instance, apart).feasible
    apart["schedule"]["b"]["forward"][0][1] = 10.5  # a's last all-reduce still runs
    report = check(instance, apart)
    assert {violation.constraint for violation in report.violations} == {"memory"}
    assert "12 MB used (a, b), 10 there" in report.violations[0].message


def test_a_given_placement_is_kept() -> None:
    data = copy.deepcopy(DATA)
    data["jobs"][0]["placement"] = [["s1", 0], ["s0", 0]]
    instance = DdlClusterInstance.parse(data)
    assert check(instance, SCHEDULE).feasible  # the order of the workers does not matter
    data["jobs"][0]["placement"] = [["s0", 0], ["s0", 1]]
    report = check(DdlClusterInstance.parse(data), SCHEDULE)
    assert [violation.constraint for violation in report.violations] == ["placement"]


def _drop(*path: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def _put(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_put("srsf-1", "policy"), "needs either a policy or a schedule"),
        (_drop("schedule"), "needs either a policy or a schedule"),
        (_put(1, "makespan"), "makespan: unknown key"),
        (_drop("finish"), "finish: is missing"),
        (_drop("finish", "b"), 'finish: job "b" is missing'),
        (_put(1, "finish", "z"), 'finish: the instance has no job "z"'),
        (_put(float("nan"), "finish", "a"), "finish.a: must be a finite number, got NaN"),
        (_put("5", "finish", "a"), 'finish.a: must be a number, got "5"'),
        (_put(True, "finish", "a"), "finish.a: must be a number, got true"),
        (_put([["s0", 0]], "placement", "a"), "placement.a: 1 GPUs given, needs 2"),
        (_put([["s0", 0], ["s9", 0]], "placement", "a"), 'placement.a[1]: there is no server "s9"'),
        (_put([["s0", 0], ["s1", 2]], "placement", "a"), "placement.a[1]: server s1 has GPUs 0 to 1, got 2"),
        (
            _put([["s0", 0], ["s1", -1]], "placement", "a"),
            "solution: placement.a[1][1]: must be greater than or equal to 0, got -1",
        ),
        (
            _put([["s0", 0], ["s0", 0]], "placement", "a"),
            "solution: placement.a[1]: GPU 0 of s0 is already at placement.a[0]",
        ),
        (_put("s0", "placement", "a"), 'placement.a: must be a list, got "s0"'),
        (_drop("schedule", "a", "allreduce"), "schedule.a.allreduce: is missing, the job spans servers"),
        (_put([3], "schedule", "a", "allreduce"), "schedule.a.allreduce: must be a list of 2, got 1"),
        (_put([0], "schedule", "a", "forward", 0), "schedule.a.forward[0]: must be a list of 2, got 1"),
        (
            _put(None, "schedule", "a", "forward", 0, 1),
            "solution: schedule.a.forward[0][1]: must be a number, got null",
        ),
        (_put([], "schedule"), "schedule: must be an object, got []"),
    ],
)
def test_a_bad_solution_is_one_line(change: Callable[[Any], None], message: str) -> None:
    solution = copy.deepcopy(SCHEDULE)
    change(solution)
    with pytest.raises(InputError) as error:
        check(INSTANCE, solution)
    assert message in str(error.value)


def test_an_unknown_policy_or_no_object() -> None:
    with pytest.raises(InputError, match=r"solution: policy: must be 'srsf-1', .* or 'ada-srsf', got \"fifo\""):
        check(INSTANCE, {"placement": PLACEMENT, "policy": "fifo", "finish": {"a": 1, "b": 1}})
    bad: Any = [1]
    with pytest.raises(InputError, match="must be a JSON object"):
        check(INSTANCE, bad)


def test_a_policys_run_written_as_a_schedule_scores_the_same() -> None:
    for seed in range(12):
        instance = placed_instance(seed, jobs=3, servers=3)
        placement = given_placement(instance, "test")
        for policy in POLICIES:
            run = simulate_plain(instance, placement, policy, record=True, digits=10)
            assert run.log is not None
            log, schedule = run.log, {}
            for j, job in enumerate(instance.jobs):
                shape = (job.iterations, job.gpus, 2)
                starts = log.start[log.task_base[j] : log.task_base[j + 1]].reshape(shape) / 1e10
                schedule[job.id] = {"forward": starts[:, :, 0].tolist(), "backward": starts[:, :, 1].tolist()}
                if len({server for server, _ in placement[j]}) > 1:
                    times = log.admitted[log.message_base[j] : log.message_base[j + 1]] / 1e10
                    schedule[job.id]["allreduce"] = times.tolist()
            told = solution_of(instance, placement, policy, run)
            explicit = {"placement": told["placement"], "schedule": schedule, "finish": told["finish"]}
            one, other = check(instance, told), check(instance, explicit)
            assert one.feasible, one.violations
            assert other.feasible, other.violations
            assert one.objective is not None
            assert other.objective is not None
            assert float(one.objective) == pytest.approx(float(other.objective), rel=1e-9)
            assert lower_bound(instance) <= float(one.objective) * (1 + 1e-12)


def test_interpreted_and_compiled_are_the_same_ticks() -> None:
    for seed in range(5):
        instance = placed_instance(seed, jobs=6, servers=3, iterations=20, tight=seed % 2 == 0)
        placement = given_placement(instance, "test")
        for policy in POLICIES:
            one = simulate_plain(instance, placement, policy, record=True, interpreted=True)
            other = simulate_plain(instance, placement, policy, record=True, interpreted=False)
            assert one.finish_ticks == other.finish_ticks
            assert one.log is not None
            assert other.log is not None
            for name in ("start", "end", "admitted", "done", "placed"):
                assert np.array_equal(getattr(one.log, name), getattr(other.log, name))
