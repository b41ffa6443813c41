"""The instance and the checker of ddljs: bad input, every violation, utilities in decimals against floats."""

import copy
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checks import ddljs as check

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.utility import gain, steepest, utility

DATA = Path(__file__).parents[1] / "data"


def two_servers(**changes: Any) -> dict[str, Any]:
    """Two servers of one GPU, joined both ways, one job; `changes` go into the job."""
    job = {
        "id": "j0",
        "arrival": 2,
        "max_workers": 2,
        "demand": {"gpu": 1},
        "budget": {"gpu": 3},
        "bandwidth": 2.0,
        "efficiency": 2.0,
        "utility": {"kind": "linear", "scale": 0.1},
    }
    return {
        "problem": "ddljs",
        "name": "two",
        "servers": [{"id": "s0", "resources": {"gpu": 1}}, {"id": "s1", "resources": {"gpu": 1}}],
        "links": [{"from": "s0", "to": "s1", "bandwidth": 2.0}, {"from": "s1", "to": "s0", "bandwidth": 2.0}],
        "horizon": 3,
        "jobs": [{**job, **changes}],
    }


PAIR = {"workers": ["s0", "s1"], "routes": [["s0", "s1"], ["s1", "s0"]]}
SINGLE = {"workers": ["s1"], "routes": []}


def slots(*rings: dict[str, Any] | None) -> dict[str, Any]:
    return {"slots": [{"rings": {} if ring is None else {"j0": ring}} for ring in rings]}


def test_a_schedule_is_scored_exactly() -> None:
    instance = DdljsInstance.parse(two_servers())
    report = check(instance, slots(None, PAIR, SINGLE))
    assert report.feasible
    assert report.objective == Fraction(3 * 2, 10)
    assert report.details["worker_slots"] == {"j0": 3}
    assert report.details["link_use"] == 1.0


@pytest.mark.parametrize(
    ("constraint", "amount", "schedule", "changes"),
    [
        ("arrival", 1, slots(SINGLE, None, None), {}),
        ("budget", 1, slots(None, PAIR, PAIR), {}),
        ("ring size", 1, slots(None, PAIR, None), {"max_workers": 1}),
        ("server capacity", 1, slots(None, {"workers": ["s0", "s0"], "routes": [["s0"], ["s0"]]}, None), {}),
        ("link capacity", 0.5, slots(None, PAIR, None), {"bandwidth": 2.5}),
        ("routes", 2, slots(None, {"workers": ["s0", "s1"], "routes": []}, None), {}),
    ],
)
def test_violations(constraint: str, amount: float, schedule: dict[str, Any], changes: dict[str, Any]) -> None:
    report = check(DdljsInstance.parse(two_servers(**changes)), schedule)
    assert {(violation.constraint, violation.amount) for violation in report.violations} == {(constraint, amount)}
    assert "slot" in report.violations[0].message or constraint == "budget"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({}, "slots: is missing"),
        ({"slots": []}, "has 0 entries, the horizon is 3"),
        ({"slots": [{"rings": {}}] * 3, "more": 1}, "more: unknown key"),
        ({"slots": {}}, "must be a list"),
        ([], "must be a JSON object, got []"),
        ({"slots": [{"rings": {}}, {}, {"rings": {}}]}, "slots[1].rings: is missing"),
        (
            slots(None, None, {"workers": ["s9"], "routes": []}),
            'solution: slots[2].rings.j0.workers: the instance has no server "s9"',
        ),
        (
            {"slots": [{"rings": {"j7": SINGLE}}, {"rings": {}}, {"rings": {}}]},
            'solution: slots[0].rings: the instance has no job "j7"',
        ),
    ],
)
def test_malformed_solutions(schedule: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        check(DdljsInstance.parse(two_servers()), schedule)
    assert words in str(error.value)


def without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    made = copy.deepcopy(data)
    for key in keys:
        del made["jobs"][0][key]
    return made


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (two_servers(arrival=4), "jobs[0].arrival: must be at most the horizon (3), got 4"),
        (two_servers(arrival=0), "jobs[0].arrival"),
        (two_servers(max_workers=0), "jobs[0].max_workers"),
        (two_servers(budget={"gpu": -1}), "jobs[0].budget.gpu"),
        (two_servers(demand={"gpu": 0}), "at least one resource must be positive"),
        (two_servers(utility={"kind": "cube", "scale": 1.0}), "jobs[0].utility.kind"),
        (two_servers(utility={"kind": "sqrt", "scale": -1.0}), "jobs[0].utility.scale"),
        (two_servers(utility={"kind": "sigmoid", "scale": 1.0, "midpoint": 2.0}), "steepness: is missing"),
        (two_servers(utility={"kind": "sqrt", "scale": 1.0, "midpoint": 2.0}), 'only kind "sigmoid" has one'),
        (two_servers(utility={"kind": "log", "scale": 1.0}), 'least: is missing (kind "log")'),
        (two_servers(utility={"kind": "log", "scale": 1.0, "least": 0}), "jobs[0].utility.least"),
        (two_servers(utility={"kind": "energy", "scale": 1.0, "least": 1}), 'least: only kind "log" has one'),
        (two_servers(gpus=3), "jobs[0].gpus: unknown key"),
        (without(two_servers(), "efficiency"), "jobs[0].efficiency: is missing"),
        ({**two_servers(), "horizon": 0}, "horizon"),
        ({**two_servers(), "horizon": 10**7}, "horizon"),
        ({**two_servers(), "jobs": []}, "jobs"),
    ],
)
def test_bad_instances(data: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        DdljsInstance.parse(data, "file.json")
    assert str(error.value).startswith("file.json: ") and words in str(error.value)


def test_what_never_ran_counts_with_its_utility_at_zero() -> None:
    shape = {"kind": "sigmoid", "scale": 10.0, "steepness": 1.0, "midpoint": 1.0}
    report = check(DdljsInstance.parse(two_servers(utility=shape)), slots(None, None, None))
    assert float(report.objective or 0) == pytest.approx(10 / (1 + math.e), rel=1e-15)


def test_budgets_are_floored_robustly() -> None:
    made = two_servers(demand={"gpu": 0.1}, budget={"gpu": 0.3})
    job = DdljsInstance.parse(made).jobs[0]
    assert job.slot_limit == 3
    assert DdljsInstance.parse(two_servers(budget={})).jobs[0].slot_limit is None
    assert DdljsInstance.parse(two_servers(budget={"disk": 1})).jobs[0].slot_limit is None
    assert DdljsInstance.parse(two_servers(budget={"gpu": 0.5})).jobs[0].slot_limit == 0
    both = DdljsInstance.parse(two_servers(demand={"gpu": 1, "mem": 4}, budget={"gpu": 9, "mem": 21}))
    assert both.jobs[0].slot_limit == 5


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "linear", "scale": 0.7},
        {"kind": "sqrt", "scale": 3.3},
        {"kind": "log1p", "scale": 1e-3},
        {"kind": "log", "scale": 2.5, "least": 1e-9},
        {"kind": "log", "scale": 2.5, "least": 1.7},
        {"kind": "energy", "scale": 0.3},
        {"kind": "sigmoid", "scale": 7.0, "steepness": 0.8, "midpoint": 3.1},
        {"kind": "sigmoid", "scale": 7.0, "steepness": 900.0, "midpoint": 2.0},
        {"kind": "sigmoid", "scale": 7.0, "steepness": 1e9, "midpoint": 1e9},
        {"kind": "sigmoid", "scale": 7.0, "steepness": 0.5, "midpoint": -4.0},
        {"kind": "sigmoid", "scale": 7.0, "steepness": 0.0, "midpoint": 5.0},
    ],
)
def test_utilities_in_floats_are_those_of_the_checker(shape: dict[str, Any]) -> None:
    """Also where exp overflows: steepness * midpoint far beyond 709."""
    made = two_servers(utility=shape, efficiency=0.5, budget={}, max_workers=1, arrival=1)
    made["horizon"] = 12
    instance = DdljsInstance.parse(made)
    job = instance.jobs[0]
    exact = []
    for count in range(13):
        report = check(instance, slots(*([SINGLE] * count + [None] * (12 - count))))
        assert report.feasible and report.objective is not None
        exact.append(report.objective)
        assert float(utility(job, count)) == pytest.approx(float(report.objective), rel=1e-13, abs=1e-100)
    for done in range(12):
        told = gain(job, done, np.arange(1, 13 - done))
        for more, value in enumerate(told.tolist(), start=1):
            assert value == pytest.approx(float(exact[done + more] - exact[done]), rel=1e-12, abs=1e-100)
    slope, k = steepest(job, 2, 10)
    best = max((exact[2 + n] - exact[2]) / n for n in range(1, 11))
    assert slope == pytest.approx(float(best), rel=1e-12, abs=1e-100) and 1 <= k <= 10


def test_concavity_is_told() -> None:
    def job(**shape: Any) -> Any:
        return DdljsInstance.parse(two_servers(utility=shape)).jobs[0]

    assert job(kind="sqrt", scale=1.0).concave
    assert not job(kind="sigmoid", scale=1.0, steepness=1.0, midpoint=2.0).concave
    assert job(kind="sigmoid", scale=1.0, steepness=1.0, midpoint=-2.0).concave
    assert job(kind="sigmoid", scale=0.0, steepness=1.0, midpoint=2.0).concave
    assert job(kind="energy", scale=1.0).concave and not job(kind="energy", scale=1.0).rising
    assert job(kind="log", scale=1.0, least=1.0).concave  # the first of its worker-slots is 2 units of work
    assert not job(kind="log", scale=1.0, least=1.5).concave


def test_json_round_trip() -> None:
    for case in DATA.glob("ddljs-*.json"):
        instance = DdljsInstance.parse(json.loads(case.read_text()))
        again = DdljsInstance.parse(json.loads(instance.to_json()))
        assert again == instance and again.content_hash() == instance.content_hash()


def test_an_empty_schedule_uses_nothing() -> None:
    report = check(DdljsInstance.parse(two_servers()), slots(None, None, None))
    assert report.feasible and report.objective == 0
    assert (report.details["server_use"], report.details["link_use"]) == (0.0, 0.0)


def test_the_arrival_slot_itself_and_earlier_ones_by_how_much() -> None:
    instance = DdljsInstance.parse(two_servers(arrival=3))
    assert check(instance, slots(None, None, SINGLE)).violations == ()
    found = [(v.message, v.amount) for v in check(instance, slots(SINGLE, None, None)).violations]
    assert found == [("slot 1, job j0: arrives in slot 3", 2)]


def test_the_largest_shares_of_all_slots() -> None:
    """One worker in the first busy slot, two on one server in the last but one, none after: 2 of 4 GPUs."""
    data = two_servers(arrival=1, bandwidth=1.0, budget={})
    for server in data["servers"]:
        server["resources"] = {"gpu": 4}
    both = {"workers": ["s0", "s0"], "routes": [["s0"], ["s0"]]}
    report = check(DdljsInstance.parse(data), slots(PAIR, both, SINGLE))
    assert report.feasible
    assert report.details["server_use"] == 0.5 and report.details["link_use"] == 0.5


def test_a_budget_of_what_the_job_does_not_need_and_one_that_is_just_kept() -> None:
    spare = DdljsInstance.parse(two_servers(budget={"gpu": 3, "memory": 0.0}))
    assert check(spare, slots(None, PAIR, SINGLE)).feasible
    edge = DdljsInstance.parse(two_servers(budget={"gpu": 3.0}, demand={"gpu": 1.000000001}))
    assert [v.constraint for v in check(edge, slots(None, SINGLE, SINGLE)).violations] == ["server capacity"] * 0
    full = check(edge, slots(None, None, PAIR))
    assert "budget" not in [v.constraint for v in full.violations]


def test_two_jobs_in_one_slot_are_told_apart() -> None:
    data = two_servers(arrival=1, bandwidth=1.0)
    data["jobs"].append({**data["jobs"][0], "id": "j1", "max_workers": 1})
    schedule = {"slots": [{"rings": {"j1": SINGLE}}, {"rings": {"j0": SINGLE, "j1": PAIR}}, {"rings": {}}]}
    report = check(DdljsInstance.parse(data), schedule)
    assert report.details["worker_slots"] == {"j0": 1, "j1": 3}
    assert [(v.message, v.amount) for v in report.violations] == [
        ("slot 2, server s1, gpu: 2 used, 1 there", 1),
        ("slot 2, job j1: a ring of 2 workers, at most 1 allowed", 1),
    ]


@pytest.mark.parametrize(("slots_run", "worth"), [(3, 5), (0, 0)])
def test_a_sigmoid_far_from_its_middle_is_all_or_nothing(slots_run: int, worth: float) -> None:
    """Steepness times distance is 1e6, far beyond what decimals can tell from the ends."""
    shape = {"kind": "sigmoid", "scale": 5.0, "steepness": 1e6, "midpoint": 1.0}
    instance = DdljsInstance.parse(two_servers(arrival=1, efficiency=1.0, utility=shape))
    schedule = slots(*[SINGLE if slot < slots_run else None for slot in range(3)])
    assert check(instance, schedule).objective == worth


def test_a_sigmoid_near_its_ends_is_not_at_them() -> None:
    shape = {"kind": "sigmoid", "scale": 5.0, "steepness": 300.0, "midpoint": 0.0}
    instance = DdljsInstance.parse(two_servers(arrival=1, efficiency=1.0, utility=shape))
    assert 5 - Fraction(1, 10**100) < check(instance, slots(SINGLE, None, None)).objective < 5


@pytest.mark.parametrize("scale", [1.0, 1e9, 1e-9])
@pytest.mark.parametrize("midpoint", [500.0, 599.9, 600.0, 601.0, 602.0, 620.0, 1000.0, 1480.0, 2000.0])
def test_a_sigmoid_far_below_its_middle_is_0_to_everyone(midpoint: float, scale: float) -> None:
    """Where all that can be earned is 1e-130 and less, model and checker still agree: what is cut off is the same."""
    data = json.loads((Path(__file__).parents[1] / "data" / "attack" / "ddljs-tiny-utility.json").read_text())
    data["jobs"][0]["utility"] |= {"midpoint": midpoint, "scale": scale}
    instance = DdljsInstance.parse(data)
    job = instance.jobs[0]
    ring = {"rings": {"a": {"workers": ["s0"], "routes": []}}}
    runs = [[{"rings": {}}] * 2, [ring, {"rings": {}}], [ring, ring]]
    worth = [float(check(instance, {"slots": run}).objective or 0) for run in runs]
    assert utility(job, np.arange(3)).tolist() == pytest.approx(worth, rel=1e-12, abs=0)
    assert (worth[2] == 0) == (midpoint > 602)
