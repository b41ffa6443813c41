"""Limits of ddl-cluster's checker and audit: tolerances to the last digit, and their parts against plain ones."""

from __future__ import annotations

import copy
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.checks import ddl_cluster as check

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster import audit_links, check_schedule
from schedgap.formulations.ddl_cluster.audit import audit
from schedgap.formulations.ddl_cluster.given_placement import given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import Log, simulate_plain
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.heuristics.ddl_cluster.guarantees import GUARANTEES, message_speed

S = 10**10
"""Ticks of a second."""
JOB: dict[str, Any] = {"arrival": 1.0, "gpus": 2, "iterations": 2, "forward": 1.0, "backward": 2.0, "message": 4.0}


def cluster(*jobs: dict[str, Any], latency: float = 0.5, memory: float = 10.0) -> DdlClusterInstance:
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "gpu_memory": memory,
            "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}, {"id": "s2", "gpus": 2}],
            "link": {"latency": latency, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
            "jobs": [JOB | {"id": f"j{k}", "memory": 1.0} | job for k, job in enumerate(jobs)],
        }
    )


ALONE = cluster({"placement": [["s0", 0], ["s1", 0]]})
"""One job: its first iteration is 1 to 4 and its all-reduce 4 to 8.5, the second 8.5 to 16."""


def log_of(instance: DdlClusterInstance, policy: str = "srsf-1") -> Log:
    log = simulate_plain(instance, given_placement(instance, "test"), policy, record=True, digits=10).log
    assert log is not None
    return log


def audited(instance: DdlClusterInstance, log: Log, policy: str = "srsf-1") -> list[str]:
    return [v.constraint for v in audit(instance, given_placement(instance, "test"), policy, log, 10)]


@pytest.mark.parametrize(
    ("ticks", "found"), [(0, []), (30, []), (60, ["message"]), (-30, []), (-60, ["message", "message", "link", "link"])]
)
def test_bytes_are_kept_to_a_billionth(ticks: int, found: list[str]) -> None:
    log = log_of(ALONE)
    log.done[-1] += ticks
    assert sorted(audited(ALONE, log)) == sorted(found)


def test_an_all_reduce_is_slower_by_a_percent_of_its_bytes() -> None:
    log = log_of(ALONE)
    log.done[-1] += S // 100
    assert audited(ALONE, log) == ["message"]


@pytest.mark.parametrize(("off", "broken"), [(0.0, False), (3e-9, False), (5e-9, True), (1e-3, True)])
def test_a_busy_period_is_as_long_as_its_messages(off: float, broken: bool) -> None:
    ends = np.array([4 * S - round(off * S), 9 * S])
    firsts = np.array([0, 5 * S])
    found = audit_links._busy_periods("s0", (firsts, ends), firsts, np.array([2.0, 2.0]), 2.0, 1 / S)
    assert [v.constraint for v in found] == (["link"] if broken else [])
    for violation in found:
        assert violation.amount == pytest.approx(off, rel=1e-3)
        assert "in 1 busy periods" in violation.message


def test_periods_that_touch_are_two() -> None:
    # 0 to 4 with 5 of work, 4 to 10 with 3: the second has room that the first may not use
    firsts, ends = np.array([0, 4 * S]), np.array([4 * S, 10 * S])
    found = audit_links._busy_periods("s0", (firsts, ends), np.array([4 * S, 0]), np.array([3.0, 5.0]), 1.0, 1 / S)
    assert [v.amount for v in found] == [pytest.approx(1.0)]
    joined = np.array([0, 4 * S - 1])
    assert not audit_links._busy_periods("s0", (joined, ends), joined[::-1], np.array([3.0, 5.0]), 1.0, 1 / S)


def test_counts_and_sums_are_the_plain_ones() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        servers = []
        for _ in range(int(rng.integers(1, 4))):
            begins = np.sort(rng.integers(0, 30, int(rng.integers(1, 6))))
            servers.append((begins, np.sort(begins + rng.integers(1, 9, len(begins)))))
        steps = [audit_links._steps(part) for part in servers]
        own = np.sort(rng.choice(40, 4, replace=False))
        begin, end = own[::2], own[1::2]
        moments, most = audit_links._most(steps, np.concatenate([begin, end]))
        assert list(moments) == sorted(set(moments)) and moments[0] == own[0] and moments[-1] == own[-1]
        for at, told in zip(moments, most, strict=True):
            assert told == max(np.searchsorted(b, at, "right") - np.searchsorted(e, at, "right") for b, e in servers)
        piece = np.append(np.diff(moments) * (most[:-1] + 1.0), 0.0)
        wanted = [
            sum(
                max(int(np.searchsorted(b, t, "right") - np.searchsorted(e, t, "right")) for b, e in servers) + 1.0
                for t in range(first, last)
            )
            for first, last in zip(begin, end, strict=True)
        ]
        assert audit_links._sums(piece, moments, begin, end) == pytest.approx(wanted)


@pytest.mark.parametrize(("need", "free"), [(1, 1), (2, 2), (3, 2)])
def test_waiting_with_room(need: int, free: int) -> None:
    # active on the server: one from 0 to 4, two from 4 to 6, none after; the first waits 2 to 4, the second 5 to 9
    active = (np.array([0, 4, 6]), np.array([1, 2, 0]))
    message = audit_links.Message(np.array([2, 5, 9]), np.array([4, 9, 9]), np.array([5, 9, 10]))
    assert audit_links._free_while_waiting(message, [active], need) == free
    still = audit_links.Message(np.array([2, 5]), np.array([2, 5]), np.array([5, 9]))
    assert audit_links._free_while_waiting(still, [active], need) == 0


def test_bytes_of_eq_5_under_two_links() -> None:
    # alone to 2, then two on the first link, three on the second from 4 on, alone again from 6
    one = (np.array([0, 2, 6]), np.array([1, 2, 1]))
    other = (np.array([0, 4, 5]), np.array([1, 3, 1]))
    message = audit_links.Message(np.array([0]), np.array([0]), np.array([8]))
    moved = audit_links._moved(message, [one, other], 1, (1.0, 0.5), 1.0)
    assert moved == pytest.approx([1 / 1 + 2 / 2.5 + 1 / 4 + 1 / 2.5 + 2 / 1])


@pytest.mark.parametrize(("place", "ticks", "found"), [(1, -1, "duration"), (1, 1, None), (1, 2, "duration")])
def test_compute_tasks_take_their_time(place: int, ticks: int, found: str | None) -> None:
    instance = cluster({"gpus": 1, "iterations": 1, "message": 1.0, "placement": [["s0", 0]]})
    log = log_of(instance)
    log.end[place] += ticks
    assert audited(instance, log) == ([] if found is None else [found])


@pytest.mark.parametrize(("ticks", "found"), [(0, ["duration"]), (1, []), (2, ["duration"])])
def test_durations_between_ticks_are_rounded_up(ticks: int, found: list[str]) -> None:
    instance = cluster({"gpus": 1, "iterations": 1, "message": 1.0, "backward": 2e-10 / 3, "placement": [["s0", 0]]})
    log = log_of(instance)
    assert log.end[1] - log.start[1] == 1
    log.end[1] = log.start[1] + ticks
    assert audited(instance, log) == found


def test_tasks_may_touch_but_not_meet() -> None:
    job = {"gpus": 1, "iterations": 1, "message": 1.0, "placement": [["s0", 0]]}
    instance = cluster(job, job)
    log = log_of(instance)
    assert audited(instance, log) == []
    last = int(np.argmax(log.start))
    log.start[last] -= 1
    log.end[last] -= 1
    assert "gpu" in audited(instance, log)
    log.start[last] += 2
    log.end[last] += 2
    assert audited(instance, log) == ["idle"]


@pytest.mark.parametrize(
    ("memory", "found"), [(5.0, []), (5.0 + 4e-9, []), (5.0 + 6e-9, ["memory", "memory"]), (5.02, ["memory", "memory"])]
)
def test_memory_is_kept_to_a_billionth(memory: float, found: list[str]) -> None:
    job = {"gpus": 1, "iterations": 1, "message": 1.0, "placement": [["s0", 0]]}
    loose, tight = cluster(job, job, memory=100.0), cluster(job | {"memory": memory}, job | {"memory": memory})
    assert audited(tight, log_of(loose)) == found


def test_a_job_gives_its_memory_back_when_it_finishes() -> None:
    job = {"gpus": 1, "iterations": 1, "message": 1.0, "placement": [["s0", 0]], "memory": 6.0}
    instance = cluster(job, job | {"arrival": 4.0})
    log = log_of(instance)
    assert audited(instance, log) == []
    log.placed[1] -= 1  # before its arrival too
    assert sorted(audited(instance, log)) == ["iterations", "memory"]


SCHEDULE: dict[str, Any] = {
    "placement": {"j0": [["s0", 0], ["s1", 0]], "j1": [["s1", 1], ["s2", 0]], "j2": [["s0", 1], ["s1", 1]]},
    "schedule": {
        "j0": {"forward": [[1, 1]], "backward": [[2, 2]], "allreduce": [4]},
        "j1": {"forward": [[1, 1]], "backward": [[2, 2]], "allreduce": [5]},
        "j2": {"forward": [[1, 4]], "backward": [[2, 5]], "allreduce": [7]},
    },
}
ONCE = {"iterations": 1}
THREE = cluster(ONCE, ONCE | {"message": 2.0}, ONCE | {"message": 1.0}, latency=0.0)


def test_transfers_over_two_links_by_hand() -> None:
    # 4 to 5 j0 alone (1 unit). 5 to 7 two on s1: 0.8 each. From 7 three on s1, j2 and j0 also on s0: 4 s a unit;
    # j2 ends after 4 s with its 1 unit, at 11; j0 has 1.2 left, j1 0.2: two at 2.5, j1 at 11.5, then j0 at 12.5
    solution = SCHEDULE | {"finish": {"j0": 12.5, "j1": 11.5, "j2": 11.0}}
    report = check(THREE, solution)
    assert report.feasible, report.violations
    assert report.objective == Fraction(125 + 115 + 110 - 30, 30)


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (("j2", "backward", 0, 1), 5 - 4e-9, None),
        (("j2", "backward", 0, 1), 5 - 6e-9, "order gpu"),
        (("j0", "allreduce", 0), 4 - 3e-9, None),
        (("j0", "allreduce", 0), 4 - 5e-9, "order"),
        (("j0", "forward", 0, 0), 1 - 9e-10, None),
        (("j0", "forward", 0, 0), 1 - 2e-9, "arrival"),
        (("j2", "forward", 0, 1), 4 - 3e-9, None),
        (("j2", "forward", 0, 1), 4 - 5e-9, "gpu"),
    ],
)
def test_starts_may_be_a_billionth_early(path: tuple[Any, ...], value: float, rule: str | None) -> None:
    solution = copy.deepcopy(SCHEDULE) | {"finish": {"j0": 12.5, "j1": 11.5, "j2": 11.0}}
    place: Any = solution["schedule"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    found = [v for v in check(THREE, solution).violations if v.constraint != "finish"]
    assert [v.constraint for v in found] == ([] if rule is None else rule.split())
    for violation in found:
        assert violation.amount == pytest.approx(round(value) - value, rel=1e-3)


@pytest.mark.parametrize(("memory", "feasible"), [(5.0, True), (5.0 + 4e-9, True), (5.0 + 6e-9, False), (5.01, False)])
def test_memory_of_schedules_is_kept_to_a_billionth(memory: float, feasible: bool) -> None:
    job = {"gpus": 1, "iterations": 1, "message": 1.0, "memory": memory}
    instance = cluster(job, job)
    both = {name: [["s0", 0]] for name in ("j0", "j1")}
    rows = {"j0": {"forward": [[1]], "backward": [[2]]}, "j1": {"forward": [[4]], "backward": [[5]]}}
    after = {"placement": both, "schedule": rows, "finish": {"j0": 4.0, "j1": 7.0}}
    assert check(instance, after).feasible
    rows["j0"]["backward"] = [[5.0]]
    rows["j1"] = {"forward": [[2]], "backward": [[3]]}
    report = check(instance, {"placement": both, "schedule": rows, "finish": {"j0": 7.0, "j1": 5.0}})
    assert report.feasible is feasible
    assert {v.constraint for v in report.violations} <= {"memory"}


def test_schedules_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    solution = SCHEDULE | {"finish": {"j0": 12.5, "j1": 11.5, "j2": 11.0}}
    monkeypatch.setattr(check_schedule, "LARGEST_SCHEDULE", 15)
    assert check(THREE, solution).feasible
    monkeypatch.setattr(check_schedule, "LARGEST_SCHEDULE", 14)
    with pytest.raises(InputError, match="at most 14 start times, these jobs have 15"):
        check(THREE, solution)


@pytest.mark.parametrize("value", [1e15, -1e15, 0, 3])
def test_moments_in_range(value: float) -> None:
    report = check(THREE, SCHEDULE | {"finish": {"j0": value, "j1": 11.5, "j2": 11.0}})
    assert [v.constraint for v in report.violations] == ["finish"]


@pytest.mark.parametrize("value", [1.01e15, -1.01e15, "1", None, True, float("nan"), float("inf")])
def test_moments_out_of_range(value: Any) -> None:
    with pytest.raises(InputError, match=r"^solution: finish\.j0: must be "):
        check(THREE, SCHEDULE | {"finish": {"j0": value, "j1": 11.5, "j2": 11.0}})


def test_gpus_are_pairs() -> None:
    rest = {"finish": {"j0": 1.0}, "policy": "srsf-1"}
    for value, place in (
        ([5, ["s1", 0]], r"\[0\]: must be a list"),
        ([["s0", 0, 1], ["s1", 0]], r"\[0\]: must have at most 2 items"),
        ([["s0"], ["s1", 0]], r"\[0\]\[1\]: is missing"),
        ([[0, 0], ["s1", 0]], r"\[0\]\[0\]: must be text"),
        ([["s0", True], ["s1", 0]], r"\[0\]\[1\]: must be a whole number"),
        ([["s0", -1], ["s1", 0]], r"\[0\]\[1\]: must be greater than or equal to 0"),
        ({"s0", "s1"}, ": must be a list"),
    ):
        with pytest.raises(InputError, match=rf"^solution: placement\.j0{place}"):
            check(ALONE, {"placement": {"j0": value}, **rest})
    assert DdlClusterSolution.parse({"placement": {"j0": (("s0", 1), ["s2", 0])}, **rest}).placement == {
        "j0": (("s0", 1), ("s2", 0))
    }


@pytest.mark.parametrize(("off", "right"), [(0.0, True), (8e-7, True), (1.2e-6, False), (-1.2e-6, False)])
def test_stated_finishes_of_schedules(off: float, right: bool) -> None:
    finish = {"j0": 12.5 * (1 + off), "j1": 11.5, "j2": 11.0}
    assert check(THREE, SCHEDULE | {"finish": finish}).feasible is right


def test_a_short_run_is_stated_as_precisely() -> None:
    job = {"gpus": 1, "iterations": 1, "arrival": 0.0, "forward": 1e-4, "backward": 1e-4, "placement": [["s0", 0]]}
    instance = cluster(job)
    for off, right in ((1e-10, True), (5e-10, False)):
        solution = {"placement": {"j0": [["s0", 0]]}, "policy": "srsf-1", "finish": {"j0": 2e-4 + off}}
        assert check(instance, solution).feasible is right


def test_lists_have_their_length() -> None:
    for key in ("forward", "backward"):
        for cut in (lambda rows: rows[:-1], lambda rows: [*rows[:-1], rows[-1][:-1]], lambda rows: [*rows, rows[-1]]):
            times = SCHEDULE["schedule"]["j0"]
            shorter = {**SCHEDULE["schedule"], "j0": {**times, key: cut(times[key])}}
            with pytest.raises(InputError, match=rf"^solution: schedule\.j0\.{key}.*: must be a list of [0-9]+, got"):
                check(THREE, {**SCHEDULE, "schedule": shorter, "finish": {"j0": 12.5, "j1": 11.5, "j2": 11.0}})


@pytest.mark.parametrize(("speed", "verdict"), [(1.0, Verdict.HELD), (1 + 1e-6, Verdict.REFUTED), (0.5, Verdict.HELD)])
def test_no_all_reduce_is_faster_than_alone(speed: float, verdict: Verdict) -> None:
    told = SimpleNamespace(info={"all-reduces": 3, "message speed": speed, "contended": 0.5})
    case: Case = told  # type: ignore[assignment]
    found = message_speed(case)
    assert (found.verdict, found.left, found.right) == (verdict, speed, 1.0)
    told.info = {"all-reduces": 0, "message speed": 2.0, "contended": 0.0}
    assert message_speed(case).verdict is Verdict.NOT_APPLICABLE
    assert [g.method for g in GUARANTEES if g.method is not None] == ["srsf-1", "srsf-2", "srsf-3", "ada-srsf"]
