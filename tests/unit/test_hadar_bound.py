"""Which bound hadar takes for which size, and what it makes of the answers."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.hadar import brute_force, random_case

from schedgap.benchmarks.instances.hadar.random import trace
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import in_units, tables
from schedgap.solvers.certificates import checker, content, make
from schedgap.solvers.certificates.content import certificate_of
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.makers.hadar import _blocks
from schedgap.solvers.column_generation import GenerationLimits
from schedgap.solvers.exact.hadar import block_bound, bound


def data_of(jobs: int, horizon: int, possible: int | None = None) -> Any:
    """Jobs worth 1, 2, 3, ..., the first of which can finish."""
    able = np.arange(jobs) < (jobs if possible is None else possible)
    return SimpleNamespace(
        jobs=[SimpleNamespace(max_utility=k + 1.0) for k in range(jobs)], horizon=horizon, possible=able
    )


@pytest.mark.parametrize(
    ("data", "exact", "value", "asked"),
    [
        (data_of(3, 9, 0), 7.0, 0.0, []),
        (data_of(10, 100), 7.0, 7.0, ["slots"]),
        (data_of(10, 100, 1), 7.0, 7.0, ["slots"]),
        (data_of(10, 100), None, 5.0, ["slots", 0.06]),
        (data_of(7, 143), 7.0, 5.0, [0.06]),
        (data_of(20, 1000), 7.0, 5.0, [0.06]),
        (data_of(3, 6667), 7.0, 5.0, [0.2]),
        (data_of(5, 200_000), 7.0, 5.0, [0.2]),
        (data_of(5, 1_000_000), 7.0, 5.0, ["events", 0.2]),
        (data_of(3, 1_666_667), 7.0, 6.0, ["events"]),
    ],
)
def test_the_bound_by_size(
    data: Any, exact: float | None, value: float, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(bound, "_slot_prices", lambda _: (seen.append("slots"), exact)[1])
    monkeypatch.setattr(bound, "block_bound", lambda _, growth: (seen.append(growth), SimpleNamespace(bound=5.0))[1])
    prices = lambda *_: (seen.append("events"), SimpleNamespace(value=6.0))[1]  # noqa: E731
    monkeypatch.setattr(bound, "event_prices", prices)
    assert bound._bound(data) == value and seen == asked
    seen.clear()
    monkeypatch.setattr(bound, "tables", lambda _: data)
    bound.warm_up(None)
    size = len(data.jobs) * data.horizon
    assert seen == ["events"] * (size > 1_000_000) + [0.2] * (size <= 5_000_000)


@pytest.mark.parametrize(("answer", "value"), [(4.0, 4.0 * (1 + 1e-9) + 1e-9), (0.0, 1e-9), (None, None)])
def test_prices_by_slot(answer: float | None, value: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Planner:
        exact, free_rules = True, "free"

        def __init__(self, data: object, most_states: int) -> None:
            asked.append(most_states)

        def capacity_rows(self) -> str:
            return "rows"

        def price_all(self, *told: object) -> object:
            return told

    class Rows:
        def __init__(self, sense: int, rows: object, must: object) -> None:
            asked.append((sense, rows, must))

        def generate(self, price: Any, limits: GenerationLimits) -> SimpleNamespace:
            asked.append((price("duals", 1.0), limits.iterations, limits.tolerance))
            return SimpleNamespace(bound=answer)

    monkeypatch.setattr(bound, "Scheduler", Planner)
    monkeypatch.setattr(bound, "Master", Rows)
    found = bound._slot_prices(data_of(2, 3))
    assert found == (None if value is None else pytest.approx(value, rel=1e-13))
    assert asked == [2000, (MAXIMISE, "rows", [False, False]), (("duals", 1.0, "free"), 200, 1e-7)]
    Planner.exact = False
    assert bound._slot_prices(data_of(2, 3)) is None and asked[3:] == [2000]


def test_the_bound_is_in_the_instances_own_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(bound, "in_units", lambda instance, ordinary: (asked.append(ordinary), ("scaled", 0.25))[1])
    monkeypatch.setattr(bound, "tables", lambda instance: asked.append(instance) or instance)
    monkeypatch.setattr(bound, "_bound", lambda data: 8.0)

    class Plain:
        pass

    assert bound.upper_bound(Plain()) == 2.0 and asked == [(0.1, 1e6), "scaled"]


def test_slots_of_short_jobs_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of one and a half slots take two each: eight slots hold four of them, but 5.2 in fractions."""
    job = {"arrival": 1, "workers": 1, "epochs": 1, "iterations_per_epoch": 3, "throughput": {"a": 2.0, "b": 1.9}}
    instance = HadarInstance.parse(
        {
            "problem": "hadar",
            "horizon": 4,
            "slot_length": 1.0,
            "machines": [{"id": "m", "gpus": {"a": 1, "b": 1}}],
            "jobs": [job | {"id": f"j{k}", "utility": {"kind": "constant", "weight": 1.0}} for k in range(6)],
        }
    )
    found = block_bound.block_bound(tables(instance), 0.2)
    assert found.bound == pytest.approx(4.0, rel=1e-6) and found.whole == tuple(range(6))
    monkeypatch.setattr(block_bound, "_SHORT", 0)
    found = block_bound.block_bound(tables(instance), 0.2)
    assert found.bound == pytest.approx(5.2, rel=1e-3) and found.whole == ()


@pytest.mark.parametrize("seed", range(30))
def test_whole_slots_are_between_the_optimum_and_fractions(seed: int) -> None:
    """And the checker refuses a claim that is better by a hair."""
    instance = random_case(2000 + seed)
    data, given = tables(instance), content.plain(instance)
    found = block_bound.block_bound(data, 0.5, tolerance=1e-9)
    leaf = _blocks(data, 1.0)
    model = checker.model_of(given, "prices", {})
    assert model.price is not None
    proven = model.price(leaf, {})
    assert proven is not None and leaf["whole"] == list(found.whole)
    reference = brute_force(instance)
    assert reference is not None and -proven >= reference[0] and found.bound >= float(reference[0]) * (1 - 1e-12)
    for wrong in ("01", {"0": 1}, ["0"], [-1], [99], [True], [1.5], None):
        with pytest.raises(ValueError, match="positions of jobs"):
            model.price({**leaf, "whole": wrong}, {})
    relaxed = model.price({**leaf, "whole": []}, {})
    assert relaxed is not None and -relaxed >= -proven
    step = model.step
    assert step is not None
    least = math.floor(-proven / step) * step  # utilities are multiples of it
    certificate = certificate_of(given, "prices", {}, least, {"prices": leaf})
    assert make.check(instance, certificate).bound == least
    for change in (Fraction(1, 10**9), Fraction(1, 10**15)):
        with pytest.raises(Rejected, match="proves"):
            make.check(instance, {**certificate, "claim": str(least - change)})


def test_short_jobs_decide_at_the_papers_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, _ = in_units(trace(101, jobs=120, horizon=100), bound.ORDINARY)
    found = block_bound.block_bound(tables(instance), 0.2)
    assert len(found.whole) > 20
    monkeypatch.setattr(block_bound, "_SHORT", 0)
    assert found.bound < 0.995 * block_bound.block_bound(tables(instance), 0.2).bound
