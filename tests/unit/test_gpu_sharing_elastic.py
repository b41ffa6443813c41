"""The checker of preemptive and elastic schedules: every violation at its edge, work counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from support.checks import gpu_sharing_elastic as check_elastic

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

# a: two GPUs, 1 s of computation and 1 s of communication an iteration, 4 iterations, slots of 1 s, from slot 2 on
JOB: dict[str, Any] = {
    "id": "a",
    "arrival": 2,
    "gpus": 2,
    "iterations": 4,
    "batch_size": 1,
    "compute": {"fixed": 1.0, "per_sample": 0.0},
    "communication": {"latency": 1.0, "per_unit": 0.0, "message": 0.0},
    "overlap": 1.0,
    "memory": {"fixed": 1.0, "per_sample": 0.0},
}


def instance(**changes: Any) -> GpuSharingInstance:
    """The job, changed, on one server of four GPUs."""
    data = {
        "problem": "gpu-sharing",
        "horizon": 50,
        "slot_length": 1.0,
        "servers": [{"id": "s0", "gpus": 4}],
        "gpu_memory": 1.0,
        "max_jobs_per_gpu": 1,
        "jobs": [{**JOB, **changes}],
    }
    return GpuSharingInstance.parse(data)


def check(*rows: list[int], noise: float = 1.0, restart: int = 1, **changes: Any) -> Any:
    return check_elastic(instance(**changes), {"segments": {"a": list(rows)}, "noise": noise, "restart": restart})


def constraints(report: Any) -> list[str]:
    return [violation.constraint for violation in report.violations]


def test_eight_slots_on_two_gpus_do_the_work() -> None:
    report = check([2, 9, 2])
    assert constraints(report) == [] and report.objective == 8 and report.details["completion"] == {"a": 9}
    short = check([2, 8, 2])
    assert constraints(short) == ["work"] and short.violations[0].amount == pytest.approx(0.5)


def test_one_gpu_does_two_rounds_and_communicates_with_nobody() -> None:
    assert constraints(check([2, 9, 1])) == [] and constraints(check([2, 8, 1])) == ["work"]


def test_three_gpus_enlarge_the_batch_of_which_a_part_counts() -> None:
    """Half an iteration a slot, times 1.5, times (nu + 1) / (nu + 1.5) = 0.8 for nu = 1: 0.6; 7 slots for 4."""
    assert constraints(check([2, 8, 3])) == [] and constraints(check([2, 7, 3])) == ["work"]
    # nu = 0: a larger batch is worth nothing
    assert constraints(check([2, 9, 3], noise=0.0)) == [] and constraints(check([2, 8, 3], noise=0.0)) == ["work"]


def test_a_later_segment_loses_its_first_slots() -> None:
    assert constraints(check([2, 5, 2], [6, 10, 2])) == []
    assert constraints(check([2, 5, 2], [6, 9, 2])) == ["work"]
    assert constraints(check([2, 5, 2], [6, 9, 2], restart=0)) == []
    assert constraints(check([2, 5, 2], [6, 6, 2], [7, 11, 2], restart=3)) == ["work"]


def test_segments_follow_each_other_from_the_arrival_on() -> None:
    late = check([1, 9, 2])
    assert constraints(late) == ["arrival"] and late.violations[0].amount == 1
    assert constraints(check([2, 9, 2], [9, 12, 2]))[0] == "order"
    assert "order" not in constraints(check([2, 9, 2], [10, 12, 2]))
    assert "order" in constraints(check([2, 9, 2], [11, 10, 2]))
    assert "order" not in constraints(check([2, 9, 2], [11, 11, 2]))


def test_capacity_and_memory_at_their_edges() -> None:
    assert constraints(check([2, 9, 4], noise=0.0)) == []
    over = check([2, 9, 5], noise=0.0)
    assert constraints(over) == ["capacity"] and over.violations[0].amount == 1
    assert constraints(check([2, 9, 2], memory={"fixed": 1.0000000005, "per_sample": 0.0})) == []
    assert constraints(check([2, 9, 2], memory={"fixed": 1.000000002, "per_sample": 0.0})) == ["memory"]


def test_the_fewest_accumulation_steps_that_fit_are_taken() -> None:
    """Four samples need 1.6 of memory, two 0.8: two steps, 1 + 1 s of computation and 1 s of communication."""
    changes = {"batch_size": 4, "memory": {"fixed": 0.0, "per_sample": 0.4}}
    assert constraints(check([2, 13, 2], **changes)) == []
    assert constraints(check([2, 12, 2], **changes)) == ["work"]


def test_work_has_a_tolerance_of_one_in_10_to_the_9() -> None:
    slow = {"fixed": 1.0000000005, "per_sample": 0.0}
    link = {"latency": 1.0, "per_unit": 0.0, "message": 0.0}
    assert constraints(check([2, 9, 2], compute=slow, communication=link)) == []
    slow = {"fixed": 1.00000002, "per_sample": 0.0}
    assert constraints(check([2, 9, 2], compute=slow, communication=link)) == ["work"]


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        ([], "must be a JSON object, got []"),
        ({"segments": {"a": [[2, 9, 2]]}, "noise": 1.0}, "restart: is missing"),
        ({"segments": [], "noise": 1.0, "restart": 1}, "segments: must be an object, got []"),
        (
            {"segments": {"b": [[2, 9, 2]]}, "noise": 1.0, "restart": 1},
            'solution: segments: the instance has no job "b"',
        ),
        ({"segments": {"a": 7}, "noise": 1.0, "restart": 1}, "segments.a: must be a list, got 7"),
        (
            {"segments": {"a": []}, "noise": 1.0, "restart": 1},
            "solution: segments.a: must have at least 1 item, got []",
        ),
        ({"segments": {"a": [[2, 9]]}, "noise": 1.0, "restart": 1}, "segments.a[0][2]: is missing"),
        (
            {"segments": {"a": [[2, 9, 0]]}, "noise": 1.0, "restart": 1},
            "solution: segments.a[0][2]: must be greater than or equal to 1, got 0",
        ),
        (
            {"segments": {"a": [[2, 9.0, 1]]}, "noise": 1.0, "restart": 1},
            "solution: segments.a[0][1]: must be a whole number, got 9.0",
        ),
        (
            {"segments": {"a": [[2, 9, 2], 5]}, "noise": 1.0, "restart": 1},
            "solution: segments.a[1]: must be a list, got 5",
        ),
        (
            {"segments": {"a": [[2, 9, 2]]}, "noise": -1, "restart": 1},
            "solution: noise: must be greater than or equal to 0, got -1",
        ),
        ({"segments": {"a": [[2, 9, 2]]}, "noise": True, "restart": 1}, "noise: must be a number, got true"),
        ({"segments": {"a": [[2, 9, 2]]}, "noise": "1", "restart": 1}, 'noise: must be a number, got "1"'),
        (
            {"segments": {"a": [[2, 9, 2]]}, "noise": 2e15, "restart": 1},
            "solution: noise: must be less than or equal to 1000000000000000, got 2000000000000000.0",
        ),
        (
            {"segments": {"a": [[2, 9, 2]]}, "noise": 1.0, "restart": -1},
            "solution: restart: must be greater than or equal to 0, got -1",
        ),
        ({"segments": {"a": [[2, 9, 2]]}, "noise": 1.0, "restart": 0.5}, "restart: must be a whole number"),
        ({"segments": {"a": [[2, 9, 2]]}, "noise": 1.0, "restart": True}, "restart: must be a whole number"),
    ],
)
def test_malformed_schedules(solution: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        check_elastic(instance(), solution)
    assert words in str(error.value)
