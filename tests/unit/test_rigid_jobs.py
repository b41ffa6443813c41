"""Limits of a log: every certificate of a tiny class against every instance of a tiny class and brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from schedgap.solvers.certificates import checker, content
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.tools.audit.limit import backlog_integral

Instance = Mapping[str, Any]
POOLS = [{"id": "a", "gpus": 1}, {"id": "b", "gpus": 1}]


def instance(jobs: list[dict[str, Any]], objective: str, pools: list[dict[str, Any]] = POOLS) -> Instance:
    rows = [{"id": f"j{k}", **job} for k, job in enumerate(jobs)]
    return {"problem": "rigid-jobs", "objective": objective, "pools": pools, "jobs": rows}


def every_job() -> Iterator[dict[str, Any]]:
    for arrival, length, usable in itertools.product((0, 1), (1, 2), (["a"], ["b"], None)):
        yield {"arrival": arrival, "length": length, "gpus": 1, **({"pools": usable} if usable else {})}
    for arrival, length in itertools.product((0, 1), (1, 2)):
        yield {"arrival": arrival, "length": length, "gpus": 2}


def fits(running: list[Mapping[str, Any]], pools: list[dict[str, Any]]) -> bool:
    """Hall's condition: what may use only some pools is no more than they have, for any set of pools."""
    for size in range(1, len(pools) + 1):
        for some in itertools.combinations(pools, size):
            names = {pool["id"] for pool in some}
            inside = sum(job["gpus"] for job in running if set(job.get("pools") or [p["id"] for p in pools]) <= names)
            if inside > sum(pool["gpus"] for pool in some):
                return False
    return True


def optimum(given: Instance) -> Fraction:
    """The best mean over all starts up to a horizon that holds the jobs one after another."""
    jobs, pools = given["jobs"], given["pools"]
    last = max(job["arrival"] for job in jobs) + sum(job["length"] for job in jobs)
    weight = [1 if given["objective"] == "jct" else job["gpus"] * job["length"] for job in jobs]
    best: list[int] = []

    def place(k: int, starts: list[int], value: int) -> None:
        if best and value >= best[0]:
            return
        if k == len(jobs):
            best[:] = [value]
            return
        job = jobs[k]
        for start in range(job["arrival"], last - job["length"] + 1):
            placed = [*starts, start]
            slots = range(start, start + job["length"])
            if all(
                fits([one for one, s in zip(jobs, placed, strict=False) if s <= t < s + one["length"]], pools)
                for t in slots
            ):
                place(k + 1, placed, value + weight[k] * (start + job["length"] - job["arrival"]))

    place(0, [], 0)
    return Fraction(best[0], sum(weight))


def leaf_of(edges: tuple[int, ...], halves: tuple[int, ...]) -> dict[str, Any]:
    """Prices of both pools in halves."""
    prices = [GRID * half // 2 for half in halves]
    buckets = len(edges) - 1
    return {"edges": list(edges), "prices": [prices[:buckets], prices[buckets:]]}


CERTIFICATES = [
    leaf_of(edges, halves)
    for edges in ((0, 2), (0, 1, 3), (1, 2, 4))
    for halves in itertools.product((0, 1, 2), repeat=2 * (len(edges) - 1))
]


def test_no_certificate_of_a_tiny_class_proves_more_than_the_optimum() -> None:
    """All pairs of jobs, and of three jobs every seventh set: 171 prices each, and draining."""
    jobs = list(every_job())
    sets = [*itertools.combinations_with_replacement(jobs, 2)]
    sets += list(itertools.combinations_with_replacement(jobs, 3))[::7]
    tight = 0
    for chosen in sets:
        given = instance(list(chosen), "jct")
        best = optimum(given)
        model = checker.model_of(given, "prices", {})
        assert model.price is not None
        values = [model.price(leaf, {}) or Fraction(0) for leaf in CERTIFICATES]
        assert max(values) <= best, (chosen, max(values), best)
        tight += max(values) == best
        by_area = instance(list(chosen), "area")
        drain = checker.model_of(by_area, "drain", {})
        assert drain.price is not None
        value = drain.price({}, {})
        assert value is not None and value <= optimum(by_area), (chosen, value)
    assert tight > len(sets) // 2


def by_floats(given: Instance) -> float:
    """The same bound by the compiled sums that large logs are limited by."""
    jobs, pools = given["jobs"], [pool["id"] for pool in given["pools"]]
    events = []
    for job in jobs:
        queue = pools.index(job["pools"][0]) if job.get("pools") else len(pools)
        events += [(job["arrival"], job["gpus"], queue), (job["arrival"] + job["length"], -job["gpus"], queue)]
    moment, change, queue = (np.array(column) for column in zip(*sorted(events), strict=True))
    sizes = np.array([pool["gpus"] for pool in given["pools"]])
    waited = backlog_integral(moment, change, queue, sizes)
    area = sum(job["gpus"] * job["length"] for job in jobs)
    return (sum(job["gpus"] * job["length"] ** 2 for job in jobs) + waited) / area


def test_draining_is_never_above_the_optimum_of_several_hundred_drawn_instances() -> None:
    drawn = random.Random(7)
    ratios, floats = [], []
    for _ in range(400):
        pools = [{"id": "a", "gpus": drawn.choice([1, 2])}, {"id": "b", "gpus": drawn.choice([1, 2, 3])}]
        jobs = []
        for _ in range(4):
            usable = drawn.choice([None, ["a"], ["b"]])
            room = sum(pool["gpus"] for pool in pools if usable is None or pool["id"] in usable)
            job = {"arrival": drawn.randrange(4), "length": drawn.choice([1, 1, 2, 3])}
            job["gpus"] = drawn.randint(1, room)
            jobs.append({**job, **({"pools": usable} if usable else {})})
        given = instance(jobs, "area", pools)
        model = checker.model_of(given, "drain", {})
        assert model.price is not None
        value, best = model.price({}, {}), optimum(given)
        assert value is not None and value <= best, (jobs, pools, value, best)
        ratios.append(float(best / value))
        floats.append((by_floats(given), float(value)))
    assert sum(ratios) / len(ratios) < 1.05 and ratios.count(1.0) > 150
    assert all(one == pytest.approx(other, rel=1e-12) for one, other in floats)


TYPED = [{"arrival": k, "length": 4, "gpus": 1, "pools": ["a"]} for k in range(4)]
ROOMY = [{"id": "a", "gpus": 1}, {"id": "b", "gpus": 4}]


def certificate(given: Instance, form: str, claim: Fraction, leaf: Any) -> dict[str, Any]:
    return content.certificate_of(given, form, {}, claim, {"prices": leaf})


def test_prices_by_type_decide_what_one_price_cannot() -> None:
    """One GPU of type a for four jobs of it, four of type b that nobody asks for: nothing is avoidable."""
    given = instance(TYPED, "jct", ROOMY)
    best = optimum(given)
    assert best == Fraction(4 + 7 + 10 + 13, 4)
    model = checker.model_of(given, "prices", {})
    assert model.price is not None
    edges = [0, 4, 8, 12, 16]
    falling = [GRID * p for p in (3, 2, 1, 0)]
    typed = max(model.price({"edges": edges, "prices": [[p * f for p in falling], [0] * 4]}, {}) or 0 for f in range(2))
    alike = max(model.price({"edges": edges, "prices": [[p * f // 4 for p in falling]] * 2}, {}) or 0 for f in range(9))
    assert typed == best > alike
    held = certificate(given, "prices", typed, {"edges": edges, "prices": [falling, [0] * 4]})
    assert checker.check(given, held).bound == best
    with pytest.raises(Rejected, match="proves"):
        checker.check(given, {**held, "claim": str(best + Fraction(1, 4))})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gpus": 3, "pools": ["a"]}, "more than its pools have"),
        ({"pools": ["c"]}, "must be pools that there are"),
        ({"length": 0}, "out of range"),
        ({"arrival": -1}, "out of range"),
    ],
)
def test_an_instance_that_is_none_is_rejected(changed: dict[str, Any], said: str) -> None:
    given = instance([{**TYPED[0], **changed}], "area", ROOMY)
    with pytest.raises(Rejected, match=said):
        checker.check(given, certificate(given, "drain", Fraction(0), {}))


@pytest.mark.parametrize(
    "leaf",
    [
        {"edges": [0, 4], "prices": [[1]]},
        {"edges": [4, 0], "prices": [[1], [1]]},
        {"edges": [0, 4], "prices": [[-1], [1]]},
        {"edges": [0, 4], "prices": [[1.5], [1]]},
        {"edges": [0, 4], "prices": [[1], [1]], "more": 1},
        {"edges": [0, 4], "prices": [[1, 1], [1]]},
        {},
    ],
)
def test_prices_that_are_none_are_rejected(leaf: dict[str, Any]) -> None:
    given = instance(TYPED, "jct", ROOMY)
    with pytest.raises(Rejected, match="malformed"):
        checker.check(given, certificate(given, "prices", Fraction(4), leaf))


def test_a_form_is_about_its_objective_alone() -> None:
    for form, objective in (("prices", "area"), ("drain", "jct")):
        given = instance(TYPED, objective, ROOMY)
        with pytest.raises(Rejected, match=f"form {form} is about objective"):
            checker.check(given, certificate(given, form, Fraction(0), {"edges": [0], "prices": [[], []]}))
