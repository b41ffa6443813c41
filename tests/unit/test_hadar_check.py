"""The checker of hadar: amounts of violations, tolerances at their edges, malformed solutions one clear line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from support.checks import hadar as check
from support.checks import hadar_forked as check_forked

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.instance import HadarInstance

JOB = {
    "id": "j",
    "arrival": 2,
    "workers": 2,
    "epochs": 8,
    "iterations_per_epoch": 1,
    "throughput": {"V100": 1.0, "K80": 0.5},
    "utility": {"kind": "linear", "weight": 10.0, "deadline": 8.0},
}


def instance(**changes: Any) -> HadarInstance:
    """Two V100 and one K80, slots of 2; one job of two workers and 8 iterations that arrives in slot 2."""
    machines = [{"id": "h", "gpus": {"V100": 2}}, {"id": "g", "gpus": {"K80": 1}}]
    data = {"problem": "hadar", "horizon": 6, "slot_length": 2.0, "machines": machines, "jobs": [{**JOB, **changes}]}
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


@pytest.mark.parametrize(("rate", "done"), [(1.0, True), (0.999999999, True), (1 - 2e-9, False)])
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


def told(slots: dict[str, Any], **changes: Any) -> list[tuple[str, str, float | None]]:
    return [(v.constraint, v.message, v.amount) for v in report(slots, **changes).violations]


def test_amounts_and_numbers_of_every_violation() -> None:
    assert told({"2": held(1)}) == [("gang", "job j, slot 2: holds 1 devices, its gang is 2 or none", 1)]
    assert told({"2": held(2, 1)}) == [("gang", "job j, slot 2: holds 3 devices, its gang is 2 or none", 1)]
    assert told({"2": held()}, arrival=5) == [("arrival", "job j: runs in slot 2, arrives in slot 5", 3)]
    over = [("capacity", "machine g, type K80, slot 2: 2 devices used, 1 there", 1)]
    assert told({"2": held(0, 2)}) == over
    elsewhere = [{"machine": "h", "type": "K80", "gpus": 2}]
    assert told({"2": elsewhere}) == [("capacity", "machine h, type K80, slot 2: 2 devices used, 0 there", 2)]
    assert told({"2": held(1, 1)}, throughput={"V100": 1.0}) == [
        ("type", "job j, slot 2: cannot use devices of type K80", None)
    ]


def test_the_first_and_the_last_slot_are_inside() -> None:
    assert told({"1": held(), "6": held()}, arrival=1) == []
    for slot in (0, 7):
        found = told({str(slot): held()}, arrival=1)
        assert [message for constraint, message, _ in found if constraint == "horizon"] == [
            f"job j: slot {slot} is outside 1..6"
        ]


@pytest.mark.parametrize(
    ("slot", "entries", "changes"),
    [
        ("7", held(), {}),
        ("1", held(), {}),
        ("3", held(1), {}),
        ("3", held(1, 1), {"throughput": {"V100": 1.0}}),
    ],
)
def test_a_slot_that_breaks_a_rule_makes_no_progress(slot: str, entries: Any, changes: dict[str, Any]) -> None:
    """4 of 8 iterations, and 4 more only where the second slot is sound."""
    for work in (8, 5):
        broken = report({"2": held(), slot: entries}, **changes, epochs=work)
        assert broken.details["completion"] == {"j": None} and broken.objective == 0
    assert report({"2": held(), "3": held()}, **changes).details["completion"] == {"j": 3}


def test_a_slot_out_of_order_leaves_nothing_done() -> None:
    """All of the work in slots that break a rule is none of it."""
    short = {"epochs": 4}
    assert report({"2": held()}, **short).details["completion"] == {"j": 2}
    assert report({"1": held()}, **short).details["completion"] == {"j": None}
    early = {"utility": {"kind": "constant", "weight": 10.0}, "arrival": 4, **short}
    assert report({"3": held()}, **early).objective == 0


def test_details_count_devices_and_tell_the_last_slot() -> None:
    found = report({"5": held(), "2": held(1, 1), "3": held()})
    assert found.details == {"completion": {"j": 5}, "utility": {"j": 0.0}, "busy": 6}
    assert report({}).details == {"completion": {"j": None}, "utility": {"j": 0.0}, "busy": 0}
    both = instance().to_dict()
    both["jobs"].append({**both["jobs"][0], "id": "k"})
    shared = check(HadarInstance.parse(both), {"allocation": {"j": {"2": held(1, 1)}, "k": {"2": held(1, 1)}}})
    assert [(v.message, v.amount) for v in shared.violations] == [
        ("machine g, type K80, slot 2: 2 devices used, 1 there", 1)
    ]
    assert shared.details["busy"] == 4


def test_every_kind_of_utility() -> None:
    """Done after slots 2 and 3: a duration of 2 slots of 2."""
    whole = {"2": held(), "3": held()}
    assert report(whole, utility={"kind": "effective-throughput", "weight": 3.0}).objective == 3 * 8 / 4
    assert report(whole, utility={"kind": "constant", "weight": 3.0}).objective == 3
    assert report(whole, utility={"kind": "linear", "weight": 3.0, "deadline": 5.0}).objective == Fraction(3, 5)
    late = report(whole, utility={"kind": "linear", "weight": 3.0, "deadline": 3.0})
    assert late.objective == 0 and late.details["completion"] == {"j": 3}


def all_must(slots: dict[str, Any]) -> Any:
    given = instance().model_copy(update={"all_jobs_must_finish": True})
    return check(given, {"allocation": {"j": slots}})


def test_where_every_job_must_finish_what_is_missing_is_told() -> None:
    assert all_must({"2": held(), "3": held()}).violations == ()
    missing = [(v.constraint, v.message, v.amount) for v in all_must({"2": held(1, 1)}).violations]
    assert missing == [("completion", "job j: 2 of 8 iterations done, every job has to finish", 6)]
    assert [v.amount for v in check(instance(), {"allocation": {}}).violations] == []
    assert [v.amount for v in all_must({}).violations] == [8]


@pytest.mark.parametrize(
    ("job", "entry", "words"),
    [
        ("x", {"machine": "h", "type": "V100", "gpus": 2}, 'allocation: the instance has no job "x"'),
        (
            "j",
            {"machine": "x", "type": "V100", "gpus": 2},
            'allocation.j.2[0].machine: the instance has no machine "x"',
        ),
        ("j", {"machine": "h", "type": "x", "gpus": 2}, 'allocation.j.2[0].type: the instance has no device type "x"'),
    ],
)
def test_names_that_the_instance_does_not_have(job: str, entry: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        check(instance(), {"allocation": {job: {"2": [entry]}}})
    assert words in str(error.value)


def forked_instance(**changes: Any) -> HadarInstance:
    """Slots of 2; node h runs a gang of two at 1, node g (two K80, one V100) at 1/2, nodes n and m at nothing."""
    machines = [
        {"id": "h", "gpus": {"V100": 2, "K80": 2}},
        {"id": "g", "gpus": {"V100": 1, "K80": 2}},
        {"id": "n", "gpus": {"K80": 1, "P100": 1}},
        {"id": "m", "gpus": {"V100": 1}},
    ]
    data = {"problem": "hadar", "horizon": 6, "slot_length": 2.0, "machines": machines}
    return HadarInstance.parse({**data, "jobs": [{**JOB, **changes.pop("job", {})}], **changes})


def forked(*entries: tuple[int, str, float], **changes: Any) -> Any:
    """Of (slot, node, steps), all of job j."""
    rounds: dict[str, Any] = {}
    for slot, node, steps in entries:
        rounds.setdefault(str(slot), {})[node] = {"job": "j", "steps": steps}
    return check_forked(forked_instance(**changes), {"rounds": rounds})


def test_copies_of_a_job_add_up() -> None:
    """A gang of two does 4 steps a slot on h and 2 on g, its slowest device; the job is done in slot 3."""
    done = forked((2, "h", 4.0), (3, "g", 1.0), (3, "h", 3.0))
    assert done.violations == () and done.objective == 5  # d = 2 slots of 2, half the deadline
    assert done.details == {"completion": {"j": 3}, "busy": 1 + 0.5 + 0.75, "rounds": 3}
    unsorted = forked((4, "h", 4.0), (2, "h", 4.0))
    assert unsorted.details["completion"] == {"j": 4} and unsorted.objective == 10 * (1 - Fraction(6, 8))
    part = forked((2, "h", 4.0))
    assert part.violations == () and part.objective == 0
    assert part.details == {"completion": {"j": None}, "busy": 1.0, "rounds": 2}
    assert forked().details == {"completion": {"j": None}, "busy": 0.0, "rounds": 0}


def test_violations_of_copies() -> None:
    def told(*entries: tuple[int, str, float], **changes: Any) -> list[tuple[str, str, float | None]]:
        return [(v.constraint, v.message, v.amount) for v in forked(*entries, **changes).violations]

    assert told((2, "g", 3.0)) == [("speed", "node g, slot 2: 3 steps of job j, at most 2 are possible", 1)]
    assert told((2, "n", 0.5)) == [("speed", "node n, slot 2: 0.5 steps of job j, at most 0 are possible", 0.5)]
    assert told((2, "m", 0.5)) == [("speed", "node m, slot 2: 0.5 steps of job j, at most 0 are possible", 0.5)]
    assert told((1, "h", 1.0)) == [("arrival", "job j: runs in slot 1, arrives in slot 2", None)]
    assert told((6, "h", 1.0)) == []
    assert [constraint for constraint, _, _ in told((0, "h", 1.0))] == ["horizon", "arrival"]
    assert told((7, "h", 1.0)) == [("horizon", "slot 7 is outside 1..6", None)]
    assert told((1, "h", 1.0), job={"arrival": 1}) == []
    over = told((2, "h", 4.0), (3, "h", 4.0), (4, "h", 1.0))
    assert over == [("steps", "job j: 9 steps, its work is 8", None)]
    must = {"all_jobs_must_finish": True}
    assert told((2, "h", 4.0), **must) == [("completion", "job j: 4 of 8 steps done", None)]
    assert told((2, "h", 4.0), (3, "h", 4.0), **must) == []


@pytest.mark.parametrize(("off", "fine"), [(1e-9, True), (2e-9, False)])
def test_tolerances_of_copies(off: float, fine: bool) -> None:
    fast = forked((2, "h", float(f"{4 * (1 + off):.10g}")))
    assert [v.constraint for v in fast.violations] == ([] if fine else ["speed"])
    short = forked((2, "h", 4.0), (3, "h", float(f"{4 * (1 - 2 * off):.10g}")))
    assert (short.details["completion"] == {"j": 3}) is fine
    over = forked((2, "h", 4.0), (3, "h", 3.0), (4, "h", float(f"{1 + 8 * off:.10g}")))
    assert [v.constraint for v in over.violations] == ([] if fine else ["steps"])


def test_utilities_of_copies() -> None:
    whole = ((2, "h", 4.0), (3, "h", 4.0))
    for utility, worth in (
        ({"kind": "effective-throughput", "weight": 3.0}, 6),
        ({"kind": "constant", "weight": 3.0}, 3),
        ({"kind": "linear", "weight": 3.0, "deadline": 5.0}, Fraction(3, 5)),
        ({"kind": "linear", "weight": 3.0, "deadline": 3.0}, 0),
    ):
        assert forked(*whole, job={"utility": utility}).objective == worth
    early = {"arrival": 5, "utility": {"kind": "constant", "weight": 3.0}}
    assert forked(*whole, job=early).objective == 0  # done before it arrived: a violation, and worth nothing
    on_the_eve = {"arrival": 4, "utility": {"kind": "constant", "weight": 3.0}}
    assert forked(*whole, job=on_the_eve).objective == 0
    one_slot = {"arrival": 3, "utility": {"kind": "constant", "weight": 3.0}, "epochs": 4}
    assert forked((3, "h", 2.0), (3, "g", 1.0), job={**one_slot, "epochs": 3}, slot_length=1.0).objective == 3
    in_time = {"arrival": 3, "utility": {"kind": "constant", "weight": 3.0}}
    assert forked(*whole, job=in_time).objective == 3


def test_names_of_copies_that_the_instance_does_not_have() -> None:
    with pytest.raises(InputError, match=r'rounds\.2: the instance has no machine "x"'):
        forked((2, "x", 1.0))
    with pytest.raises(InputError, match=r'rounds\.2\.h\.job: the instance has no job "x"'):
        check_forked(forked_instance(), {"rounds": {"2": {"h": {"job": "x", "steps": 1.0}}}})


# The form by runs.


def test_a_run_counts_as_its_slots_do() -> None:
    runs = check(instance(epochs=20), {"allocation": {"j": [[5, 6, held()], [2, 3, held(1, 1)], [4, 4, []]]}})
    slots = {"2": held(1, 1), "3": held(1, 1), "5": held(), "6": held()}
    assert runs == report(slots, epochs=20)
    assert runs.details["busy"] == 8


def test_violations_of_runs_name_their_slots() -> None:
    def of(runs: list[Any], **changes: Any) -> list[str]:
        return [v.message for v in check(instance(**changes), {"allocation": {"j": runs}}).violations]

    assert of([[1, 8, held()]]) == [
        "job j: slots 1 to 8 reach outside 1..6",
        "job j: runs in slot 1, arrives in slot 2",
    ]
    assert of([[2, 4, held(1)]]) == ["job j, slots 2 to 4: holds 1 devices, its gang is 2 or none"]
    assert of([[2, 3, held(0, 2)], [4, 5, held(0, 2)]]) == [
        "machine g, type K80, slots 2 to 5: 2 devices used, 1 there"
    ]
    # what lies outside does no work: 5 slots of 4 iterations inside
    inside = check(instance(epochs=20), {"allocation": {"j": [[1, 8, held()]]}})
    assert inside.details["completion"] == {"j": 8}
    assert check(instance(epochs=21), {"allocation": {"j": [[1, 8, held()]]}}).details["completion"] == {"j": None}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([[3, 2, held()]], "allocation.j: a run ends before it begins: slots 3 to 2, got"),
        ([[2, 4, held()], [4, 5, held()]], "allocation.j: slot 4 is given twice, got"),
        ([[2, 4]], "allocation.j[0][2]: is missing"),
        ([[2, 4.5, held()]], "allocation.j[0][1]: must be a whole number, got 4.5"),
        ([[2, 4, [{"machine": "h", "type": "V100", "gpus": 0}]]], "allocation.j[0][2][0].gpus: must be"),
        ([[2, 4, [{"machine": "x", "type": "V100", "gpus": 1}]]], "allocation.j[0][2][0].machine: the instance has no"),
    ],
)
def test_malformed_runs(runs: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        check(instance(), {"allocation": {"j": runs}})
    assert words in str(error.value) and "\n" not in str(error.value)
