import copy
import json
from fractions import Fraction
from pathlib import Path

import pytest
from support.checks import gpu_sharing as check

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.check import overlapped_time
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

DATA = Path(__file__).parents[1] / "data"


def job(name: str, **changes) -> dict:
    """One GPU, one slot of 1 s per iteration, 1 memory."""
    return {
        "id": name,
        "arrival": 1,
        "gpus": 1,
        "iterations": 4,
        "batch_size": 4,
        "compute": {"fixed": 1.0, "per_sample": 0.0},
        "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
        "overlap": 1.0,
        "memory": {"fixed": 1.0, "per_sample": 0.0},
        **changes,
    }


def instance(jobs: list[dict], **changes) -> GpuSharingInstance:
    data = {
        "problem": "gpu-sharing",
        "horizon": 20,
        "slot_length": 1.0,
        "servers": [{"id": "s", "gpus": 2}],
        "gpu_memory": 10.0,
        "max_jobs_per_gpu": 2,
        "jobs": jobs,
        "interference": {},
        **changes,
    }
    return GpuSharingInstance.parse(data)


def solution(**rows) -> dict:
    """name=(start, [gpu index, ...], steps)."""
    return {
        "start": {k: v[0] for k, v in rows.items()},
        "gpus": {k: [["s", g] for g in v[1]] for k, v in rows.items()},
        "accumulation": {k: v[2] for k, v in rows.items()},
    }


def test_gpu_sharing_check_alone_and_shared_by_hand() -> None:
    two = instance([job("a"), job("b")], interference={"a": {"b": 2.0}, "b": {"a": 1.5}})
    apart = check(two, solution(a=(1, [0], 1), b=(1, [1], 1)))
    assert (apart.feasible, apart.objective) == (True, 4)
    together = check(two, solution(a=(1, [0], 1), b=(1, [0], 1)))
    # b does 2/3 a slot and ends in slot 6; by then a has done 3 and needs one more, alone.
    assert together.details["completion"] == {"a": 7, "b": 6}
    assert together.objective == Fraction(13, 2)


def test_gpu_sharing_check_takes_the_worst_partner_of_a_gang() -> None:
    three = instance(
        [job("a", gpus=2), job("b", iterations=1), job("c", iterations=1)],
        interference={"a": {"b": 2.0, "c": 4.0}},
    )
    report = check(three, solution(a=(1, [0, 1], 1), b=(1, [0], 1), c=(1, [1], 1)))
    # In slot 1 a does 1/4, then 3 full slots leave 3/4 for slot 5.
    assert report.details["completion"] == {"a": 5, "b": 1, "c": 1}


def test_gpu_sharing_check_ends_exactly_on_a_slot_with_a_root_and_with_decimals() -> None:
    root = job(
        "a",
        gpus=2,
        iterations=2,
        overlap=2.0,
        compute={"fixed": 0.3, "per_sample": 0.0},
        communication={"latency": 0.4, "per_unit": 0.0, "message": 0.0},
    )
    assert check(instance([root]), solution(a=(1, [0, 1], 1))).objective == 1
    tenths = job("a", iterations=30, compute={"fixed": 0.1, "per_sample": 0.0})
    assert check(instance([tenths]), solution(a=(1, [0], 1))).objective == 3
    # The tolerance of 1e-9 relative: one iteration in 10^10 too many is not missed, one in 10^8 is.
    for extra, slots in ((1e-10, 3), (1e-8, 4)):
        late = job("a", iterations=30, compute={"fixed": 0.1 * (1 + extra), "per_sample": 0.0})
        assert check(instance([late]), solution(a=(1, [0], 1))).objective == slots


def test_gpu_sharing_check_memory_of_decimals() -> None:
    jobs = [job("a", memory={"fixed": 0.1, "per_sample": 0}), job("b", memory={"fixed": 0.2, "per_sample": 0})]
    for have, feasible in ((0.3, True), (0.3 - 2e-10, True), (0.3 - 6e-10, False), (0.29999, False)):
        report = check(instance(jobs, gpu_memory=have), solution(a=(1, [0], 1), b=(1, [0], 1)))
        assert report.feasible is feasible
        assert [v.constraint for v in report.violations] == ([] if feasible else ["memory"])


@pytest.mark.parametrize(
    ("rows", "constraint", "words"),
    [
        ({"a": (2, [0], 1)}, "arrival", "starts in slot 2, arrives in slot 3"),
        ({"a": (3, [0, 1], 1)}, "gang", "2 GPUs given, needs 1"),
        ({"c": (1, [0, 0], 1)}, "distinct", "listed more than once"),
        ({"a": (3, [0], 3)}, "accumulation", "3 accumulation steps"),
        ({"a": (3, [0], 8)}, "accumulation", "8 accumulation steps"),
        ({"a": (18, [0], 1)}, "horizon", "completes in slot 21, the horizon is 20"),
        ({"b": (3, [0], 1), "a": (3, [0], 1)}, "cap", "server s, GPU 0, slot 3: 3 jobs (c, a, b), at most 2"),
    ],
)
def test_gpu_sharing_check_names_what_is_broken(rows: dict, constraint: str, words: str) -> None:
    three = instance([job("a", arrival=3), job("b"), job("c", gpus=2, iterations=4)])
    plan = {"a": (9, [0], 1), "b": (15, [1], 1), "c": (1, [0, 1], 1), **rows}
    report = check(three, solution(**plan))
    assert [v.constraint for v in report.violations] == [constraint]
    assert words in report.violations[0].message
    assert (report.objective is None) == (constraint == "accumulation")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("gpus"), "solution: gpus: is missing"),
        (lambda s: s["start"].pop("a"), 'job "a" is missing'),
        (lambda s: s["start"].update(zz=1), 'no job "zz"'),
        (lambda s: s["start"].update(a=1.5), "whole number"),
        (lambda s: s["start"].update(a=True), "whole number"),
        (lambda s: s["gpus"].update(a=[["s", 2]]), "has GPUs 0 to 1, got 2"),
        (lambda s: s["gpus"].update(a=[["t", 0]]), 'no server "t"'),
        (lambda s: s["gpus"].update(a=[0]), "solution: gpus.a[0]: must be a list, got 0"),
        (lambda s: s["gpus"].update(a=3), "must be a list"),
        (lambda s: s.update(more=1), "solution: more: unknown key"),
    ],
)
def test_gpu_sharing_check_refuses_malformed_solutions(change, words: str) -> None:
    plan = copy.deepcopy(solution(a=(1, [0], 1)))
    change(plan)
    with pytest.raises(InputError) as error:
        check(instance([job("a")]), plan)
    assert words in str(error.value)


def test_gpu_sharing_checker_imports_nothing_of_the_dynamics() -> None:
    text = (Path(__file__).parents[2] / "formulations" / "gpu_sharing" / "check.py").read_text()
    imports = [line for line in text.splitlines() if line.startswith("from schedgap")]
    allowed = ("formulations.common", "formulations.gpu_sharing.instance", "formulations.gpu_sharing.solution")
    assert imports and all(any(part in line for part in allowed) for line in imports)


def test_gpu_sharing_check_reads_a_case() -> None:
    data = json.loads((DATA / "gpu-sharing-share_09_accumulate.json").read_text())
    assert GpuSharingInstance.parse(data).total_gpus == 2


def test_gpu_sharing_check_accumulation_divides_the_memory_of_a_batch() -> None:
    """Four samples of 0.25 need 1 unit; in two steps half of it, so two such jobs share a GPU of 1 unit."""
    jobs = [job(name, memory={"fixed": 0.0, "per_sample": 0.25}) for name in "ab"]
    one = instance(jobs, gpu_memory=1.0)
    assert check(one, solution(a=(1, [0], 2), b=(1, [0], 2))).feasible
    report = check(one, solution(a=(1, [0], 1), b=(1, [0], 2)))
    assert [(v.constraint, v.amount) for v in report.violations] == [("memory", 0.5)]


def test_gpu_sharing_check_says_how_many_jobs_are_too_many() -> None:
    three = instance([job("a"), job("b"), job("c")])
    report = check(three, solution(a=(1, [0], 1), b=(1, [0], 1), c=(2, [0], 1)))
    assert [(v.constraint, v.amount) for v in report.violations] == [("cap", 1)]


def test_gpu_sharing_check_horizon_itself_is_in_time() -> None:
    for start, late in ((17, []), (18, [("horizon", 1)])):
        report = check(instance([job("a")]), solution(a=(start, [0], 1)))
        assert [(v.constraint, v.amount) for v in report.violations] == late


def test_gpu_sharing_check_amounts_of_what_does_not_depend_on_time() -> None:
    one = instance([job("a", arrival=5), job("b", gpus=2)])
    report = check(one, solution(a=(2, [0], 1), b=(5, [1], 1)))
    assert [(v.constraint, v.amount) for v in report.violations] == [("arrival", 3), ("gang", 1)]
    thrice = check(instance([job("a", gpus=3)]), solution(a=(1, [1, 1, 1], 1)))
    assert [(v.constraint, v.amount) for v in thrice.violations] == [("distinct", 2)]


@pytest.mark.parametrize(("beyond", "slots"), [(0.0, 2), (1e-8, 3)])
def test_gpu_sharing_check_roots_are_not_rounded_down_by_more_than_the_tolerance(beyond: float, slots: int) -> None:
    """sqrt(0.3^2 + 0.4^2) = 0.5: four iterations fill two slots of 1 s."""
    root = job(
        "a",
        gpus=2,
        overlap=2.0,
        compute={"fixed": 0.3 * (1 + beyond), "per_sample": 0.0},
        communication={"latency": 0.4 * (1 + beyond), "per_unit": 0.0, "message": 0.0},
    )
    assert check(instance([root]), solution(a=(1, [0, 1], 1))).objective == slots


def test_gpu_sharing_check_parts_of_an_iteration() -> None:
    """Two steps of (0.1 + 2 0.2) s and, after the last, 0.25 + 0.5 3 s on the links."""
    parts = {
        "compute": {"fixed": 0.1, "per_sample": 0.2},
        "communication": {"latency": 0.25, "per_unit": 0.5, "message": 3.0},
    }
    both = check(instance([job("a", gpus=2, **parts)]), solution(a=(1, [0, 1], 2)))
    assert both.objective == 11  # 4 (2 0.5 + 1.75) s
    alone = check(instance([job("a", **parts)]), solution(a=(1, [0], 2)))
    assert alone.objective == 4  # nothing is sent from one GPU
    large = check(instance([job("a", iterations=1)], slot_length=2.0), solution(a=(3, [0], 1)))
    assert large.objective == 3  # half a slot, in slots 1 to 3 since its arrival


def test_gpu_sharing_check_partners_come_and_go() -> None:
    """a is slowed down while b is there (slots 3 and 4), and by the worse of b and c never together."""
    jobs = [job("a", iterations=6), job("b", iterations=2), job("c", iterations=1)]
    slow = {"a": {"b": 2.0, "c": 4.0}}
    report = check(instance(jobs, interference=slow), solution(a=(1, [0], 1), b=(3, [0], 1), c=(5, [0], 1)))
    assert report.feasible  # a: 2 alone, 1 beside b, a quarter beside c, then 2.75 more
    assert report.details["completion"] == {"a": 8, "b": 4, "c": 5}
    assert report.objective == Fraction(8 + 4 + 5, 3)


@pytest.mark.parametrize("part", ["start", "gpus", "accumulation"])
def test_gpu_sharing_check_wants_every_job_in_every_part(part: str) -> None:
    whole = solution(a=(1, [0], 1), b=(1, [1], 1))
    for change, words in ((whole[part].pop("b"), 'job "b" is missing'), (None, 'has no job "c"')):
        if change is None:
            whole[part] |= {"b": 1 if part != "gpus" else [["s", 1]], "c": 1 if part != "gpus" else [["s", 1]]}
        with pytest.raises(InputError, match=f"{part}: .*{words}"):
            check(instance([job("a"), job("b")]), whole)


def test_gpu_sharing_check_overlaps_that_are_no_whole_number() -> None:
    """(1^1.5 + 1^1.5)^(2/3) = 1.587 s an iteration: three take 4.76 s."""
    half = {"communication": {"latency": 1.0, "per_unit": 0.0, "message": 0.0}, "overlap": 1.5}
    report = check(instance([job("a", gpus=2, iterations=3, **half)]), solution(a=(1, [0, 1], 1)))
    assert report.objective == 5


def test_gpu_sharing_check_the_last_slot_of_a_job_is_its_own() -> None:
    jobs = [job("a"), job("b")]
    for start, broken in ((4, [("cap", "server s, GPU 0, slot 4: 2 jobs (a, b), at most 1")]), (5, [])):
        report = check(instance(jobs, max_jobs_per_gpu=1), solution(a=(1, [0], 1), b=(start, [0], 1)))
        assert [(v.constraint, v.message) for v in report.violations] == broken
        assert report.details["completion"] == {"a": 4, "b": start + 3}


def test_gpu_sharing_check_a_job_without_gpus_is_a_violation() -> None:
    report = check(instance([job("a")]), solution(a=(1, [], 1)))
    assert [(v.constraint, v.amount) for v in report.violations] == [("gang", 1)]
    assert report.objective == 4


def test_gpu_sharing_check_memory_at_the_tolerance_itself() -> None:
    for load, fits in ((1.000000001, True), (1.0000000011, False)):
        one = instance([job("a", memory={"fixed": load, "per_sample": 0.0})], gpu_memory=1.0)
        assert check(one, solution(a=(1, [0], 1))).feasible is fits


def test_gpu_sharing_check_roots_are_never_rounded_up() -> None:
    five = overlapped_time(Fraction(3), Fraction(4), Fraction(2))
    assert 5 * (1 - Fraction(2, 10**60)) < five < 5
