"""hadar's prices between events: the checker's sum against a plain one, the compiled one, and doctored certificates."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import schedgap
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.solvers.certificates.checker import model_of
from schedgap.solvers.certificates.content import certificate_of, plain
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.solvers.certificates.make import check
from schedgap.solvers.certificates.rules.hadar import Job, devices_of
from schedgap.solvers.exact.hadar.event_prices import event_prices


def drawn(seed: int) -> HadarInstance:
    instance = schedgap.generate("hadar", "small", seed=seed, jobs=7)
    assert isinstance(instance, HadarInstance)
    return instance


def proves(instance: HadarInstance, leaf: Mapping[str, Any]) -> Fraction:
    price = model_of(plain(instance), "prices", {}).price
    assert price is not None
    value = price(leaf, {})
    assert value is not None
    return -value


def plain_value(instance: HadarInstance, leaf: Mapping[str, Any]) -> Fraction:
    """What a leaf proves, slot by slot: at every finish the cheapest mixtures of choices in the slots until then."""
    given, edges = plain(instance), leaf["edges"]
    devices = devices_of(given)

    def price(kind: str, slot: int) -> Fraction:
        line = leaf["types"].get(kind, [0] * (len(edges) - 1))
        return next(
            (Fraction(p, GRID) for p, a, b in zip(line, edges, edges[1:], strict=False) if a <= slot < b), Fraction(0)
        )

    total = sum(
        (price(kind, t) * count for kind, count in devices.items() for t in range(edges[0], edges[-1])), Fraction(0)
    )
    for row in given["jobs"]:
        job = Job(given, row, devices)
        best, slots = Fraction(0), None
        if not job.choices:
            continue
        slots = -(-job.goal // max(step for step, _ in job.choices))
        while job.arrival + slots - 1 <= given["horizon"]:
            value = job.worth[job.arrival + slots - 1]
            slots = min(max(slots + 1, slots + slots // leaf["finishes"]), given["horizon"] - job.arrival + 2)
            pieces = []
            for t in range(job.arrival, job.arrival + slots - 1):
                points = [(0, Fraction(0))]
                for step, kinds in job.choices:
                    need, cost = job.workers, Fraction(0)
                    for kind in sorted(kinds, key=lambda k, t=t: price(k, t)):
                        cost, need = cost + min(need, devices[kind]) * price(kind, t), need - min(need, devices[kind])
                    points.append((step, cost))
                while any(x > points[0][0] for x, _ in points):  # along the lower hull
                    x, y = points[0]
                    slope, _, after = min(((c - y) / (s - x), -s, (s, c)) for s, c in points if s > x)
                    pieces.append((slope, after[0] - x))
                    points = [after, *(p for p in points if p[0] > after[0])]
            left, cost = Fraction(job.goal), Fraction(0)
            for slope, progress in sorted(pieces):
                cost, left = cost + slope * min(left, progress), left - min(left, progress)
            if not left:
                best = max(best, value - cost)
        total += best
    return total


@pytest.mark.parametrize("seed", range(4))
def test_a_leaf_proves_what_slots_add_up_to(seed: int) -> None:
    """Exactly; and it is no less than the optimum, whatever the prices."""
    instance, rng = drawn(seed), np.random.default_rng(seed)
    best = schedgap.solve(instance, "srpt", confirm=False).objective
    assert best is not None
    for finishes in (1, 3, 50):
        edges = np.unique(rng.integers(1, instance.horizon + 1, 5)).tolist()
        kinds = instance.types[: 1 + int(rng.integers(0, len(instance.types)))]
        types = {kind: rng.integers(0, GRID, len(edges) - 1).tolist() for kind in kinds}
        leaf = {"edges": edges, "types": types, "finishes": finishes}
        assert proves(instance, leaf) == plain_value(instance, leaf) >= exact(best)


@pytest.mark.parametrize("seed", range(2))
def test_prices_and_claims_that_are_off_by_a_billionth_are_refused(seed: int) -> None:
    data = schedgap.generate("hadar", "small", seed=seed, jobs=40).to_dict()
    instance = HadarInstance.parse({**data, "horizon": 2_000})  # so large that values are not rounded to a step
    found = event_prices(tables(instance))
    lines = np.rint(found.prices * GRID).astype(np.int64).tolist()
    types = dict(zip(tables(instance).types, lines, strict=True))
    leaf = {"edges": found.edges.tolist(), "types": types, "finishes": found.finishes}
    value = proves(instance, leaf)
    assert float(value) == pytest.approx(found.value, rel=1e-8)
    assert value < proves(instance, {"edges": [1, 2], "types": {}, "finishes": 10**9}) * Fraction(99, 100)
    given = plain(instance)

    def accepted(claim: Fraction, leaf: Mapping[str, Any]) -> bool:
        try:
            check(instance, certificate_of(given, "prices", {}, claim, {"prices": dict(leaf)}))
        except Rejected:
            return False
        return True

    assert accepted(value, leaf) and not accepted(value - Fraction(1, 10**9), leaf)
    moved, refused = GRID // 10**9 + 1, 0
    for kind, line in types.items():
        for k in range(0, len(line), 4):
            for sign in (-1, 1):
                other = [p + sign * moved * (place == k) for place, p in enumerate(line)]
                if min(other) < 0:
                    continue
                doctored = {**leaf, "types": {**types, kind: other}}
                worse = proves(instance, doctored) > value
                assert accepted(value, doctored) != worse
                refused += worse
    assert refused > 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": [1, 1]},
        {"edges": [1]},
        {"types": {"no such type": [1]}},
        {"types": {"V100": [1, 2]}},
        {"types": {"V100": [-1]}},
        {"types": {"V100": [True]}},
        {"finishes": 0},
    ],
)
def test_malformed_prices_are_refused(wrong: dict[str, Any]) -> None:
    instance = drawn(0)
    with pytest.raises(ValueError, match=r"whole numbers|edges must rise"):
        proves(instance, {"edges": [1, 5], "types": {}, "finishes": 10, **wrong})


def test_splits_are_not_for_prices_between_edges() -> None:
    price = model_of(plain(drawn(0)), "prices", {}).price
    assert price is not None
    with pytest.raises(ValueError, match="without splits"):
        price({"edges": [1, 5], "types": {}, "finishes": 10}, {"finish[0]": (1, 2)})
