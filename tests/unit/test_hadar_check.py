"""The checker of hadar: amounts of violations, tolerances at their edges, malformed solutions one clear line."""

from __future__ import annotations

from typing import Any

import pytest
from support.checks import hadar as check

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.instance import HadarInstance


def instance(**changes: Any) -> HadarInstance:
    """Two V100 and one K80, slots of 2; one job of two workers and 8 iterations that arrives in slot 2."""
    job = {
        "id": "j",
        "arrival": 2,
        "workers": 2,
        "epochs": 8,
        "iterations_per_epoch": 1,
        "throughput": {"V100": 1.0, "K80": 0.5},
        "utility": {"kind": "linear", "weight": 10.0, "deadline": 8.0},
    }
    machines = [{"id": "h", "gpus": {"V100": 2}}, {"id": "g", "gpus": {"K80": 1}}]
    data = {"problem": "hadar", "horizon": 6, "slot_length": 2.0, "machines": machines, "jobs": [{**job, **changes}]}
    return HadarInstance.parse(data)


def held(v100: int = 2, k80: int = 0) -> list[dict[str, Any]]:
    entries = [{"machine": "h", "type": "V100", "gpus": v100}, {"machine": "g", "type": "K80", "gpus": k80}]
    return [entry for entry in entries if entry["gpus"]]


def report(slots: dict[str, Any], **changes: Any) -> Any:
    return check(instance(**changes), {"allocation": {"j": slots}})


def test_two_fast_slots_finish_and_a_slow_one_halves_the_rate() -> None:
    assert report({"2": held(), "3": held()}).objective == 5  # d = 2 slots of 2, half the deadline
    assert report({"2": held(), "3": held(1, 1)}).objective == 0  # 4 + 2 of 8 iterations
    assert report({"2": held(), "3": held(1, 1), "4": held(1, 1)}).objective == 10 * (1 - 6 / 8)
    assert report({"2": held(), "5": held()}).objective == 0  # at the deadline


def test_violations_of_gang_arrival_and_capacity() -> None:
    assert {v.constraint for v in report({"2": held(1)}).violations} == {"gang"}
    assert {v.constraint for v in report({"1": held(), "2": held()}).violations} == {"arrival"}
    over = report({"2": held(1, 2)}, workers=3)
    assert "capacity" in {v.constraint for v in over.violations}
    assert [v.amount for v in over.violations if v.constraint == "capacity"] == [1]
    assert {v.constraint for v in report({"7": held()}).violations} == {"horizon"}
    unusable = report({"2": held(1, 1)}, throughput={"V100": 1.0})
    assert {v.constraint for v in unusable.violations} == {"type"}


@pytest.mark.parametrize(("rate", "done"), [(1.0, True), (1 - 5e-10, True), (1 - 2e-9, False)])
def test_work_has_a_tolerance_of_one_in_10_to_the_9(rate: float, done: bool) -> None:
    found = report({"2": held(), "3": held()}, throughput={"V100": rate})
    assert found.feasible and (found.objective == 5) is done


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        ({"allocation": []}, "allocation: must be an object"),
        ({"allocation": {"j": {"2": held(), 2: held()}}}, "solution: allocation.j: a slot is given twice"),
        ({"allocation": {"j": {2.5: []}}}, "solution: allocation.j.2.5: must be a whole number, got 2.5"),
        ({"allocation": {"j": {True: []}}}, "solution: allocation.j[1]: must be a whole number, got true"),
        ({"allocation": {"j": {"2": [5]}}}, "allocation.j.2[0]: must be an object"),
    ],
)
def test_malformed_solutions(solution: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        check(instance(), solution)
    assert words in str(error.value) and "\n" not in str(error.value)
