"""The checker of rar-ddls: every constraint by its name and numbers, every malformed solution one clear line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checks import rar_ddls as check
from support.rar_random_schedules import random_edgy, random_schedule

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

CASE = json.loads((Path(__file__).parents[1] / "data" / "rar-14-mixed.json").read_text())
MIXED = RarDdlsInstance.parse(CASE)


def solution() -> dict[str, Any]:
    return copy.deepcopy(CASE["reference_solution"])


def messages(given: Solution, instance: RarDdlsInstance = MIXED) -> list[tuple[str, str]]:
    return [(violation.constraint, violation.message) for violation in check(instance, given).violations]


def test_reference_solution() -> None:
    report = check(MIXED, solution())
    assert report.feasible and report.objective == 12
    assert report.details == {"completion": {"j0": 6, "j1": 7, "j2": 2, "j3": 9, "j4": 3, "j5": 12}}


def test_a_start_before_the_first_slot() -> None:
    given = solution()
    given["start"]["j0"] = 0
    assert ("start", "job j0: starts in slot 0, the first slot is 1") in messages(given)


def test_a_gpu_taken_away_and_one_too_many() -> None:
    given = solution()
    given["placement"]["j5"]["s1"] = 2
    assert messages(given)[0] == ("placement", "job j5: placed on 5 GPUs, needs 6")
    given["placement"]["j5"]["s1"] = 4
    found = check(MIXED, given).violations
    assert [(v.constraint, v.amount) for v in found] == [("placement", 1), ("capacity", 1)]
    assert found[1].message == "server s1, slots 8 to 12: 4 GPUs used, 3 there"


def test_an_overfilled_server_in_each_interval() -> None:
    given = solution()
    given["placement"]["j3"] = {"s0": 2}
    given["start"]["j3"] = 1
    assert messages(given) == [("capacity", "server s0, slots 1 to 3: 4 GPUs used, 2 there")]
    given["start"]["j3"] = 7
    assert ("capacity", "server s0, slot 7: 4 GPUs used, 2 there") in messages(given)


def test_the_horizon() -> None:
    tight = MIXED.model_copy(update={"horizon": 11})
    report = check(tight, solution())
    assert [v.message for v in report.violations] == ["job j5: completes in slot 12, the horizon is 11"]
    assert report.objective == 12 and not report.feasible


NETWORK = {
    "inter_bandwidth": 1,
    "intra_bandwidth": 50,
    "contention_scale": 1,
    "contention_penalty": 1,
    "server_overhead": 0,
}


def stuck() -> RarDdlsInstance:
    """Two rings whose rate is 0 where they share a link."""
    ring = {"gpus": 2, "iterations": 4, "gradient_size": 0.4, "batch_size": 1, "forward_time": 0, "backward_time": 0.1}
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": 9,
            "network": NETWORK,
            "reduce_speed": 1000,
            "servers": [{"id": f"s{s}", "gpus": 1} for s in range(3)],
            "jobs": [{"id": f"j{j}"} | ring for j in range(2)],
        }
    )


def test_a_job_that_never_completes() -> None:
    instance = stuck()
    placement = {"j0": {"s0": 1, "s1": 1}, "j1": {"s1": 1, "s2": 1}}
    report = check(instance, {"start": {"j0": 1, "j1": 3}, "placement": placement})
    assert [v.message for v in report.violations] == [
        "server s1, from slot 3 on: 2 GPUs used, 1 there",
        "job j0: never completes, its rate stays 0 from slot 3 with 2 of 4 iterations done",
        "job j1: never completes, its rate stays 0 from slot 3 with 0 of 4 iterations done",
    ]
    assert report.objective is None and report.details["completion"] == {"j0": None, "j1": None}


def broken(change: str, value: Any) -> Any:
    given = solution()
    parts = change.split(".")
    place = given
    for part in parts[:-1]:
        place = place[part]
    if value is ...:
        del place[parts[-1]]
    else:
        place[parts[-1]] = value
    return given


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([], "must be a JSON object, got []"),
        (None, "must be a JSON object, got null"),
        ({}, "start: is missing"),
        (broken("extra", 1), "extra: unknown key"),
        (broken("placement", ...), "placement: is missing"),
        (broken("start", [1]), "start: must be an object, got [1]"),
        (broken("start.j0", ...), 'start: job "j0" is missing'),
        (broken("start.j9", 1), 'start: the instance has no job "j9"'),
        (broken("start.j0", 1.0), "start.j0: must be a whole number, got 1.0"),
        (broken("start.j0", True), "start.j0: must be a whole number, got true"),
        (broken("start.j0", "1"), 'start.j0: must be a whole number, got "1"'),
        (broken("start.j0", {}), "start.j0: must be a whole number, got {}"),
        (broken("start.j0", 10**10), "start.j0: must be less than or equal to 1000000000, got 10000000000"),
        (
            broken("start.j0", 10**5000),
            "solution: start.j0: must be less than or equal to 1000000000, got a value of type int",
        ),
        (broken("placement.j0", ...), 'placement: job "j0" is missing'),
        (broken("placement.j0", {}), "placement.j0: must have at least 1 item, got {}"),
        (broken("placement.j0", 4), "placement.j0: must be an object, got 4"),
        (broken("placement.j0.s9", 1), 'placement.j0: the instance has no server "s9"'),
        (broken("placement.j0.s2", 0), "placement.j0.s2: must be greater than or equal to 1, got 0"),
        (broken("placement.j0.s2", -3), "placement.j0.s2: must be greater than or equal to 1, got -3"),
    ],
)
def test_malformed_solutions(given: Any, line: str) -> None:
    with pytest.raises(InputError) as raised:
        check(MIXED, given)
    assert line in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("seed", range(40))
def test_capacity_slot_by_slot(seed: int) -> None:
    """The intervals of the report are exactly the slots that a plain count finds."""
    rng = np.random.default_rng(seed)
    instance = random_edgy(rng)
    start, placement = random_schedule(rng, instance)
    report = check(instance, {"start": start, "placement": placement})
    completion = report.details["completion"]
    reported: set[tuple[str, int, int]] = set()
    for violation in report.violations:
        if violation.constraint != "capacity":
            continue
        server, rest = violation.message.removeprefix("server ").split(", ", 1)
        when, numbers = rest.split(": ")
        words = when.split()
        first = int(words[2]) if words[0] == "from" else int(words[1])
        last = 300 if words[0] == "from" else int(words[-1])
        reported |= {(server, slot, int(numbers.split()[0])) for slot in range(first, min(last, 300) + 1)}
    counted = set()
    for server in instance.servers:
        for slot in range(1, 301):
            used = sum(
                placed.get(server.id, 0)
                for name, placed in placement.items()
                if start[name] <= slot and (completion[name] is None or slot <= completion[name])
            )
            if used > server.gpus:
                counted.add((server.id, slot, used))
    assert reported == counted


def test_ten_thousand_jobs() -> None:
    rng = np.random.default_rng(0)
    data = MIXED.to_dict()
    data["servers"] = [{"id": f"s{s}", "gpus": 32} for s in range(300)]
    data["jobs"] = [
        data["jobs"][j % 6] | {"id": f"j{j}", "gpus": int(rng.integers(1, 9)), "gradient_size": 0.001, "iterations": 99}
        for j in range(10_000)
    ]
    instance = RarDdlsInstance.parse(data)
    start, placement = random_schedule(rng, instance, latest=20_000)
    report = check(instance, {"start": start, "placement": placement})
    assert report.details["completion"] == simulate(instance, start, placement).completion


@pytest.mark.parametrize(
    ("tau", "slots"), [(0.1, 1), (0.100000000005, 1), (0.10000000002, 2), (1 / 3, 4), (0.3333333336, 5), (1.0, 10)]
)
def test_rates_are_rounded_down_with_a_tolerance_of_one_in_10_to_the_9(tau: float, slots: int) -> None:
    """10 iterations of 0.1 slots fit one slot exactly; where 1/tau misses a whole number by more, one is lost."""
    data = {
        "problem": "rar-ddls",
        "horizon": 20,
        "network": {
            "inter_bandwidth": 1.0,
            "intra_bandwidth": 1.0,
            "contention_scale": 1.0,
            "contention_penalty": 0.0,
            "server_overhead": 0.0,
        },
        "reduce_speed": 1.0,
        "servers": [{"id": "s", "gpus": 1}],
        "jobs": [
            {
                "id": "j",
                "gpus": 1,
                "iterations": 10,
                "gradient_size": 0.0,
                "batch_size": 1,
                "forward_time": 0.0,
                "backward_time": tau,
            }
        ],
    }
    report = check(RarDdlsInstance.parse(data), {"start": {"j": 1}, "placement": {"j": {"s": 1}}})
    assert report.feasible and report.objective == slots


def test_the_largest_start() -> None:
    given = solution()
    given["start"]["j0"] = 10**9
    assert "horizon" in [constraint for constraint, _ in messages(given)]
    given["start"]["j0"] = 10**9 + 1
    with pytest.raises(InputError, match="got 1000000001"):
        check(MIXED, given)


def two_slots_each(starts: dict[str, int], horizon: int, iterations: int = 20) -> CheckReport:
    """Jobs of 20 iterations on one GPU of their own, 10 a slot."""
    still = {"inter_bandwidth": 1.0, "intra_bandwidth": 1.0, "contention_scale": 1.0, "contention_penalty": 0.0}
    plain = {"gpus": 1, "gradient_size": 0.0, "batch_size": 1, "forward_time": 0.0, "backward_time": 0.1}
    data = {
        "problem": "rar-ddls",
        "horizon": horizon,
        "network": {**still, "server_overhead": 0.0},
        "reduce_speed": 1.0,
        "servers": [{"id": "s", "gpus": len(starts)}],
        "jobs": [{"id": name, "iterations": iterations, **plain} for name in starts],
    }
    return check(RarDdlsInstance.parse(data), {"start": starts, "placement": {name: {"s": 1} for name in starts}})


def test_the_horizon_itself_is_in_time_and_one_slot_more_is_late_by_one() -> None:
    assert two_slots_each({"a": 1, "b": 2}, 3).violations == ()
    late = two_slots_each({"a": 1, "b": 4}, 3).violations
    assert [(v.constraint, v.amount) for v in late] == [("horizon", 2)]


def test_a_start_before_the_first_slot_by_how_much() -> None:
    early = two_slots_each({"a": -3, "b": 0}, 9, iterations=10)
    assert [(v.constraint, v.amount) for v in early.violations] == [("start", 4), ("start", 1)]
    assert early.objective == 0  # b completes in its slot 0


def test_what_a_job_lacks_that_never_completes() -> None:
    instance = stuck()
    placement = {"j0": {"s0": 1, "s1": 1}, "j1": {"s1": 1, "s2": 1}}
    report = check(instance, {"start": {"j0": 1, "j1": 3}, "placement": placement})
    lacking = [(v.constraint, v.amount) for v in report.violations if v.constraint == "completion"]
    assert lacking == [("completion", 2), ("completion", 4)]


def test_a_ring_speeds_up_when_the_one_beside_it_is_done() -> None:
    """Alone 1/20 of a slot an iteration: 0.005 to reduce, 2 0.005 for servers and samples each, 0.015, 0.01 to send.

    With two rings on the middle server sending takes three times as long, which leaves 14 iterations a slot.
    """
    sizes = {"gpus": 2, "gradient_size": 0.01, "batch_size": 2, "forward_time": 0.005, "backward_time": 0.015}
    data = {
        "problem": "rar-ddls",
        "horizon": 9,
        "network": {**NETWORK, "server_overhead": 0.005},
        "reduce_speed": 1,
        "servers": [{"id": "s0", "gpus": 1}, {"id": "s1", "gpus": 2}, {"id": "s2", "gpus": 1}],
        "jobs": [{"id": "j0", "iterations": 29, **sizes}, {"id": "j1", "iterations": 82, **sizes}],
    }
    placement = {"j0": {"s0": 1, "s1": 1}, "j1": {"s1": 1, "s2": 1}}
    report = check(RarDdlsInstance.parse(data), {"start": {"j0": 1, "j1": 1}, "placement": placement})
    assert report.feasible and report.details["completion"] == {"j0": 3, "j1": 5}  # 14 + 14 + 14 + 20 + 20
