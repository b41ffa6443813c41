"""Which bound hadar takes for which size, and what it makes of the answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.column_generation import GenerationLimits
from schedgap.solvers.exact.hadar import bound


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
