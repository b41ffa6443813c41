"""The certified bound of gpu-sharing: worked out by hand, against a plain sum over slots, and doctored certificates."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.instances.gpu_sharing.paper import physical
from schedgap.benchmarks.instances.gpu_sharing.random import small
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.dynamics import exact_work, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf, sjf_bsbf_plus, sjf_ffs
from schedgap.solvers.certificates import checker, content, make
from schedgap.solvers.certificates.content import certificate_of
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.makers.gpu_sharing import leaves
from schedgap.solvers.certificates.rules import gpu_sharing as rules
from schedgap.solvers.exact.gpu_sharing import bound
from schedgap.solvers.exact.gpu_sharing.together import worth_together


def instance_of(*jobs: tuple[int, int, float], horizon: int = 40, gpus: int = 2, **changes: Any) -> GpuSharingInstance:
    """Jobs as (arrival, GPUs, slots of work alone)."""
    rows = [
        {
            "id": f"j{k}",
            "arrival": arrival,
            "gpus": wanted,
            "iterations": 10,
            "batch_size": 1,
            "compute": {"fixed": slots / 10, "per_sample": 0.0},
            "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
            "overlap": 1.0,
            "memory": {"fixed": 1.0, "per_sample": 0.0},
        }
        for k, (arrival, wanted, slots) in enumerate(jobs)
    ]
    data = {
        "problem": "gpu-sharing",
        "horizon": horizon,
        "slot_length": 1.0,
        "servers": [{"id": "s", "gpus": gpus}],
        "gpu_memory": 10.0,
        "max_jobs_per_gpu": 1,
        "jobs": rows,
        "interference": {},
        **changes,
    }
    return GpuSharingInstance.parse(data)


def shared(xi: float, other: float) -> dict[str, Any]:
    return {"max_jobs_per_gpu": 2, "interference": {"j0": {"j1": xi}, "j1": {"j0": other}}}


@pytest.mark.parametrize(
    ("instance", "mean"),
    [
        (instance_of((1, 2, 4)), 4.0),
        (instance_of((1, 1, 2.5)), 3.0),  # whole slots
        (instance_of((1, 2, 4), (1, 2, 4)), 6.0),  # 4 and 8
        (instance_of((1, 1, 4), (1, 1, 4)), 4.0),  # side by side
        (instance_of((1, 2, 1), (1, 2, 4)), 3.0),  # the short one first: 1 and 5
        (instance_of((1, 2, 4), (3, 2, 4)), 5.0),  # 4, and 8 - 2
        (instance_of((5, 2, 4), (7, 2, 4)), 5.0),  # the same, later
        (instance_of((1, 2, 1), (1, 2, 2), (1, 2, 3)), 10 / 3),  # 1, 3, 6
        (instance_of((1, 2, 4), (1, 2, 4), horizon=8), 6.0),
        # phi = 2/1.25: both are done in 5 slots at the least
        (instance_of((1, 2, 4), (1, 2, 4), **shared(1.25, 1.25)), 5.0),
        # xi = 3 both ways: sharing does less than one job alone
        (instance_of((1, 2, 4), (1, 2, 4), **shared(3.0, 3.0)), 6.0),
        # gangs as a whole: two of 2 do not fit 3 GPUs together
        (instance_of((1, 2, 4), (1, 2, 4), gpus=3), 6.0),
        # one of the 3 is shared, and slows both down on all of theirs
        (instance_of((1, 2, 4), (1, 2, 4), gpus=3, **shared(1.25, 1.25)), 5.0),
        (instance_of((1, 3, 4), (1, 1, 4), (1, 1, 4), gpus=3, max_jobs_per_gpu=2), 4.0),
    ],
)
def test_the_bound_by_hand(instance: GpuSharingInstance, mean: float) -> None:
    assert bound.lower_bound(instance) == pytest.approx(mean, rel=1e-12)


def test_there_is_no_bound_where_nothing_is_feasible() -> None:
    assert bound.lower_bound(instance_of((1, 3, 4))) is None


def test_phi_and_weights_of_pairs() -> None:
    data = tables(instance_of((1, 2, 4), (1, 1, 4), **shared(1.25, 1.6)))
    assert bound.sharing_factor(data) == pytest.approx(1 / 1.25 + 1 / 1.6)
    weights = bound.capacity_weights(data)
    # the larger job first, as far as 1/phi of the other leaves room
    low = 1 / (1 / 1.25 + 1 / 1.6)
    first = 1.25 * (1 - low / 1.6)
    assert weights == pytest.approx([first, max(low, 1.6 * (1 - first / 1.25))])
    alone = tables(instance_of((1, 2, 4), (1, 1, 4)))
    assert bound.sharing_factor(alone) == 1.0 and bound.capacity_weights(alone).tolist() == [1.0, 1.0]


def leaf_of(instance: GpuSharingInstance) -> dict[str, Any]:
    return dict(prove_bound(instance)["tree"]["prices"])


def leaves_of(instance: GpuSharingInstance) -> list[dict[str, Any]]:
    """Prices of GPUs by class, and of jobs where gangs are a whole."""
    return [dict(leaf) for _, _, leaf in leaves(instance, {})][1:]


def value_of(instance: GpuSharingInstance, leaf: Mapping[str, Any]) -> Fraction:
    model = checker.model_of(content.plain(instance), "prices", {})
    assert model.price is not None
    value = model.price(leaf, {})
    assert value is not None
    return value


def plain_value(instance: GpuSharingInstance, leaf: Mapping[str, Any]) -> Fraction:
    """What a leaf proves, pair by pair and slot by slot, from the meaning of the problem."""
    jobs, count = instance.jobs, len(instance.jobs)
    kinds, weights = leaf["classes"] or [0] * count, leaf["weights"] or [GRID] * count
    edges = leaf["edges"]
    table = tables(instance)

    def price(j: int, slot: int) -> Fraction:
        k = next((k for k, (a, b) in enumerate(pairwise(edges)) if a <= slot < b), None)
        return Fraction(0) if k is None else Fraction(leaf["prices"][kinds[j]][k] * weights[j], GRID**2)

    slowed = [
        any(table.may_share[j, k] and table.slowdown[j, k] > 1 for k in range(count) if k != j) for j in range(count)
    ]
    slots = range(edges[0], edges[-1])
    worth = Fraction(0)
    for slot in slots:
        if leaf.get("together"):
            worth += plain_together(instance, [price(j, slot) for j in range(count)]) / instance.total_gpus
            continue
        alone = [price(j, slot) for j in range(count)]
        both = [
            alone[j] / exact(table.slowdown[j, k]) + alone[k] / exact(table.slowdown[k, j])
            for j in range(count)
            for k in range(j)
            if table.may_share[j, k]
        ]
        worth += max([*alone, *both])
    total = -instance.total_gpus * worth
    for j, job in enumerate(jobs):
        work = exact_work(job, table.steps[j][0], instance.slot_length)
        if slowed[j]:  # in 2^-40, rounded down, as the checker has it
            work = Fraction(math.floor(work * GRID), GRID)
        length, best = math.ceil(work), None
        for end in range(job.arrival + length, max(job.arrival, edges[-1]) + 2 * length + 2):
            if slowed[j]:
                need, cost = work, Fraction(0)
                for p in sorted(price(j, t) for t in range(job.arrival, end)):
                    cost, need = cost + p * min(need, 1), need - min(need, 1)
            else:
                cost = sum((price(j, t) for t in range(end - length, end)), Fraction(0))
            found = end - job.arrival + (1 if leaf.get("together") else job.gpus) * cost
            best = found if best is None else min(best, found)
        assert best is not None
        total += best
    return total / count


def plain_together(instance: GpuSharingInstance, worth: list[Fraction]) -> Fraction:
    """The best of all sets of jobs that are worth something: alone on GPUs, or beside the best of those that share."""
    table, jobs = tables(instance), [j for j, own in enumerate(worth) if own]
    best = Fraction(0)
    for chosen in itertools.product(("out", "alone", "shares"), repeat=len(jobs)):
        kinds = dict(zip(jobs, chosen, strict=True))
        sizes = [instance.jobs[j].gpus for j in jobs if kinds[j] == "shares"]
        held = sum(instance.jobs[j].gpus for j in jobs if kinds[j] != "out")
        if held - min(sum(sizes) // 2, sum(sizes) - max(sizes, default=0)) > instance.total_gpus:
            continue
        value = Fraction(0)
        for j in jobs:
            others = [k for k in jobs if k != j and kinds[k] == "shares" and table.may_share[j, k]]
            if kinds[j] == "alone":
                value += worth[j]
            elif kinds[j] == "shares" and others:
                value += worth[j] / min(exact(table.slowdown[j, k]) for k in others)
        best = max(best, value)
    return best


def on_gpus(instance: GpuSharingInstance, worth: list[Fraction]) -> Fraction:
    """The best that jobs really do on GPUs: who holds which is gone through."""
    table, jobs = tables(instance), range(len(worth))
    options = [
        [(), *itertools.combinations(range(instance.total_gpus), instance.jobs[j].gpus)] for j in jobs
    ]  # none, or these GPUs
    best = Fraction(0)
    for held in itertools.product(*options):
        beside = {(j, k) for j in jobs for k in jobs if j != k and set(held[j]) & set(held[k])}
        crowded = any(sum(g in own for own in held) > instance.max_jobs_per_gpu for g in range(instance.total_gpus))
        if crowded or not all(table.may_share[j, k] for j, k in beside):
            continue
        paces = [max([Fraction(1), *(exact(table.slowdown[j, k]) for i, k in beside if i == j)]) for j in jobs]
        best = max(best, sum((worth[j] / paces[j] for j in jobs if held[j]), Fraction(0)))
    return best


def random_gangs(seed: int) -> GpuSharingInstance:
    """Two to four jobs on at most four GPUs, three of four times with sharing."""
    rng = random.Random(seed)
    gpus, count = rng.randint(1, 4), rng.randint(2, 4)
    jobs = [(rng.randint(1, 4), rng.randint(1, gpus), rng.choice([1, 2.5, 3, 4.5])) for _ in range(count)]
    names = [f"j{k}" for k in range(count)]
    table = {one: {other: rng.choice([1.0, 1.25, 1.5, 2.5]) for other in names if other != one} for one in names}
    share = rng.random() < 0.75
    room = rng.choice([1.5, 10.0])
    extra = {"max_jobs_per_gpu": 2, "interference": table} if share else {}
    return instance_of(*jobs, gpus=gpus, gpu_memory=room, **extra)


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_jobs_are_worth_what_all_of_them_say_and_no_less_than_on_gpus(seed: int) -> None:
    instance = random_gangs(seed)
    rng = random.Random(seed)
    count, data = len(instance.jobs), tables(instance)
    prices = [[rng.choice([0, rng.randint(1, 50)]) for _ in range(3)] for _ in range(count)]
    edges = [1, 2, 4, 7]
    leaf = {"edges": edges, "prices": [[p * GRID // 8 for p in own] for own in prices], "together": True}
    leaf |= {"classes": list(range(count)), "weights": []}
    worth = sum(
        (b - a) * plain_together(instance, [Fraction(own[k], 8) for own in prices])
        for k, (a, b) in enumerate(pairwise(edges))
    )
    rate = np.zeros((count, 3))
    slow = np.where(data.may_share, data.slowdown, np.inf)
    width = np.diff(edges).astype(float)
    given = np.array(prices) / 8
    found, seen = worth_together(given, data.gpus, slow, instance.total_gpus, width, 10**6, rate)
    assert found == pytest.approx(float(worth)) and (rate * given).sum(axis=0) @ width == pytest.approx(found)
    if seen > count:  # with fewer nodes it is at least as much
        assert worth_together(given, data.gpus, slow, instance.total_gpus, width, 1, rate)[0] >= found - 1e-9
    for k in range(3):
        own = [Fraction(row[k], 8) for row in prices]
        assert plain_together(instance, own) >= on_gpus(instance, own)
    assert plain_value(instance, leaf) - Fraction(1, 10**9) <= value_of(instance, leaf) <= plain_value(instance, leaf)


def test_a_search_that_is_cut_proves_less_and_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40):
        instance = random_gangs(seed)
        leaf = leaves_of(instance)[1]
        value = value_of(instance, leaf)
        for limit in ("MOST_SETS", "MOST_SETS_IN_ALL"):
            monkeypatch.setattr(rules, limit, 1)
            assert value_of(instance, leaf) <= value
            monkeypatch.undo()


def test_a_small_leaf_cannot_keep_the_checker_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal prices in many buckets, each with as many sets of gangs as there may be: the limit is for all of them."""
    instance = instance_of(*((1, gpus, 2 + k % 5) for k, gpus in enumerate((3, 5, 7, 2, 3, 5) * 3)), gpus=12)
    seen: list[int] = []
    plain = rules.together

    def counted(*given: Any) -> tuple[int, int]:
        value, sets = plain(*given)
        seen.append(sets)
        return value, sets

    monkeypatch.setattr(rules, "together", counted)
    monkeypatch.setattr(rules, "MOST_SETS_IN_ALL", 50)
    count = len(instance.jobs)
    leaf = {"edges": list(range(1, 22)), "prices": [[GRID] * 20], "classes": [0] * count, "weights": []}
    value_of(instance, leaf | {"together": True})
    assert len(seen) == 20 and seen[0] > 0 and sum(seen) <= 50
    with pytest.raises(ValueError, match="buckets"):
        prices = [[0] * 1000]
        value_of(instance, leaf | {"edges": list(range(1, 1002)), "prices": prices, "together": True})


def test_gangs_as_a_whole_prove_more_at_the_papers_scale() -> None:
    instance = physical(101)
    found = bound.priced_together(instance)
    assert found is not None and found.value > 1.08 * bound.priced(instance).value
    leaf = leaf_of(instance)
    assert leaf["together"]
    assert float(value_of(instance, leaf)) == pytest.approx(found.value / len(instance.jobs), rel=1e-8)


CASES = [
    instance_of((1, 2, 4), (3, 1, 7), (2, 2, 5.5), (6, 1, 3)),
    instance_of((1, 2, 2.5), (1, 2, 4.5), (2, 2, 3), (2, 1, 4), **shared(1.25, 1.6)),
    instance_of((1, 2, 2.5), (1, 2, 2.5), (2, 2, 3), (2, 1, 4), (2, 2, 4), max_jobs_per_gpu=2),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_leaf_proves_what_slots_and_pairs_add_up_to(case: int) -> None:
    """Exactly, for the prices that are found and for any others."""
    instance = CASES[case]
    rng = np.random.default_rng(case)
    leaf = leaf_of(instance)
    tried = leaves_of(instance)
    for _ in range(12):
        edges = np.unique(rng.integers(1, 18, 6)).tolist()
        classes = rng.integers(0, 3, len(instance.jobs)).tolist()
        prices = rng.integers(0, GRID, (3, len(edges) - 1)).tolist()
        weights = rng.integers(0, GRID, len(instance.jobs)).tolist() if rng.random() < 0.5 else []
        tried.append({"edges": edges, "prices": prices, "classes": classes, "weights": weights})
    for one in tried:  # what pairs do is rounded up to 2^-40 by the checker
        value, plain = value_of(instance, one), plain_value(instance, one)
        assert plain - Fraction(1, 10**9) <= value <= plain
        assert value == plain or instance.interference
    assert value_of(instance, leaf) > 0


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_certificate_with_one_number_off_by_a_billionth_is_refused(case: int, together: bool) -> None:
    """Prices that just suffice: each one moved by 1e-9 to where the sum falls, and the claim by 1e-9."""
    instance = CASES[case]
    leaf, step = leaves_of(instance)[together], Fraction(1, len(instance.jobs))
    whole = value_of(instance, leaf)
    floor = value_of(instance, {**leaf, "prices": [[0] * len(own) for own in leaf["prices"]]})
    assert whole > floor
    target = max(floor, step * (math.ceil(whole / step) - 1))
    low, high = 0, GRID  # of all the prices times a factor, the sum passes the target within 2^-40

    def scaled(factor: int) -> dict[str, Any]:
        return {**leaf, "prices": [[p * factor // GRID for p in own] for own in leaf["prices"]]}

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value_of(instance, scaled(middle)) > target else (middle, high)
    tight = scaled(high)
    given = content.plain(instance)
    claim = target + step
    certificate = certificate_of(given, "prices", {}, claim, {"prices": tight})
    assert make.check(instance, certificate).bound == claim

    moved = GRID // 10**9 + 1
    refused = lowered = 0
    for c, k in itertools.product(range(len(tight["prices"])), range(len(tight["edges"]) - 1)):
        for sign in (-1, 1):
            prices = [list(own) for own in tight["prices"]]
            prices[c][k] += sign * moved
            if prices[c][k] < 0:
                continue
            doctored = certificate_of(given, "prices", {}, claim, {"prices": {**tight, "prices": prices}})
            if plain_value(instance, {**tight, "prices": prices}) <= target:
                lowered += 1
                with pytest.raises(Rejected, match="proves"):
                    make.check(instance, doctored)
                refused += 1
            elif value_of(instance, {**tight, "prices": prices}) > target:
                make.check(instance, doctored)
    assert refused == lowered >= 4
    for change in (Fraction(1, 10**9), Fraction(1, 10**15)):
        with pytest.raises(Rejected, match="proves"):
            make.check(instance, {**certificate, "claim": str(claim + change)})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"edges": [1, 1, 3]}, "edges must rise"),
        ({"edges": [1, 3]}, "a price for each bucket"),
        ({"prices": [[-1, 0]]}, "whole numbers from 0"),
        ({"prices": [[True, 0]]}, "whole numbers from 0"),
        ({"prices": [[0.5, 0]]}, "whole numbers from 0"),
        ({"classes": [0, 1, 0, 0]}, "a class that has prices"),
        ({"classes": [0]}, "a class that has prices"),
        ({"weights": [1]}, "and a weight"),
        ({"together": 1}, "true or false"),
        ({"weights": [-1, 1, 1, 1]}, "whole numbers from 0"),
    ],
)
def test_malformed_prices_are_refused(change: dict[str, Any], told: str) -> None:
    instance = CASES[0]
    leaf = {"edges": [1, 2, 3], "prices": [[0, 0]], "classes": [], "weights": [], **change}
    certificate = certificate_of(content.plain(instance), "prices", {}, Fraction(1), {"prices": leaf})
    with pytest.raises(Rejected, match=told):
        make.check(instance, certificate)


def test_more_classes_than_are_told_apart_have_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    by_class = bound.priced(small(3))
    monkeypatch.setattr(bound, "_MOST_CLASSES", 2)
    bound.priced.cache_clear()
    instance = small(3)
    by_weight = bound.priced(instance)
    bound.priced.cache_clear()
    assert len(by_class.prices) > 2 and not len(by_class.weights)
    assert len(by_weight.prices) == 1 and len(by_weight.weights) == len(instance.jobs)
    assert 0 < by_weight.value <= by_class.value + 1


@pytest.mark.parametrize("seed", range(12))
def test_weights_by_class_are_those_of_all_pairs(seed: int) -> None:
    """An interference of 1 changes nothing but the way: with it, all pairs are looked at."""
    data = small(seed).to_dict()
    data.update(max_jobs_per_gpu=2, interference={})
    ids = [job["id"] for job in data["jobs"]]
    by_class = GpuSharingInstance.parse(data)
    by_pair = GpuSharingInstance.parse({**data, "interference": {ids[0]: {ids[1]: 1.0}}})
    assert bound.sharing_factor(tables(by_class)) == bound.sharing_factor(tables(by_pair))
    assert bound.capacity_weights(tables(by_class)).tolist() == bound.capacity_weights(tables(by_pair)).tolist()
    for policy in (sjf_ffs, sjf_bsbf, sjf_bsbf_plus):
        assert policy(by_class).solution == policy(by_pair).solution
