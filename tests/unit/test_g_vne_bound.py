"""The bound of g-vne: which program it solves, and what it makes of the answer."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from schedgap.solvers.column_generation import GenerationLimits, GenerationStatus
from schedgap.solvers.exact.g_vne import bound


@pytest.mark.parametrize(
    ("jobs", "nodes", "sizes", "hosts", "told"),
    [
        # on a tree: pricings by the work of one
        (10, 5, 4, None, (True, 400)),
        (100, 100, 15, None, (True, 100)),
        (100, 100, 15.01, None, "pooled"),
        # with cycles: J K hosts^3 steps and J rings a pricing
        (10, 100, 11, 50, (True, 160)),
        (10, 500, 4, 177, (True, 12)),
        (10, 500, 4, 178, (False, 400)),
        (1000, 10, 6, 8, (True, 20)),
        (1666, 2, 6, 2, (True, 12)),
        (1667, 2, 6, 2, (False, 400)),
        (2, 1000, 2, 437, (False, 400)),
        (2, 1000, 2, 436, (True, 12)),
        (1000, 40, 6, 30, (True, 14)),
        (500, 41, 6, 41, (False, 121)),
        (100, 400, 6, 60, (True, 18)),
        (1000, 100, 6, 100, "pooled"),
    ],
)
def test_the_work_of_a_bound_is_counted_beforehand(
    jobs: int, nodes: int, sizes: float, hosts: int | None, told: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(linked, pricings) of the linear program, or "pooled" where none is solved."""
    data = SimpleNamespace(
        jobs=jobs,
        nodes=nodes,
        utility=np.zeros((1, int(sizes) + (sizes % 1 > 0))),
        forest=object() if hosts is None else None,
        eligible=np.arange(nodes)[None, :] < (hosts or 0),
    )
    asked: list[object] = []

    def solved(instance: object, *, linked: bool, tolerance: float, pricings: int) -> SimpleNamespace:
        assert tolerance == 1e-7
        asked.append((linked, pricings))
        return SimpleNamespace(bound=3.0, subproblem="rows", prices="prices")

    monkeypatch.setattr(bound, "tables", lambda _: data)
    monkeypatch.setattr(bound, "ring_lp", solved)
    monkeypatch.setattr(bound, "in_ordinary_units", lambda instance: (instance, 2.0))
    monkeypatch.setattr(bound, "RingSubproblem", lambda instance, linked: ("pooled", linked))
    monkeypatch.setattr(bound, "pooled_bound", lambda subproblem: (5.0, np.array([1.0])))
    value, subproblem, prices = bound.priced_bound(None)
    if told == "pooled":
        assert not asked and subproblem == ("pooled", hosts is None)
        assert value == pytest.approx(10.0, rel=1e-8) and value > 10.0 and prices.tolist() == [2.0]
    else:
        assert asked == [told] and (value, subproblem, prices) == (3.0, "rows", "prices")


@pytest.mark.parametrize(
    ("answer", "value", "prices"),
    [
        (4.0, 4.0, [3.0, 0.0]),  # its own duals prove it; a negative one is rounding
        (6.5, 6.0, [0.0, 0.0]),  # every job at its best is less, and proven by no price at all
        (6.0, 6.0, [3.0, 0.0]),
        (None, 6.0, [0.0, 0.0]),  # nothing was priced
        (0.0, 0.0, [3.0, 0.0]),
    ],
)
def test_what_a_linear_program_over_rings_proves(
    answer: float | None, value: float, prices: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    columns = [SimpleNamespace(payload=name) for name in ("a", "b", "c")]

    def generate(price: object, limits: GenerationLimits) -> SimpleNamespace:
        asked.append((price, limits.tolerance, limits.iterations))
        return SimpleNamespace(
            bound=answer,
            value=None if answer is None else 2.0,
            status=GenerationStatus.CONVERGED if answer else GenerationStatus.STALLED,
            columns=columns,
            weights=np.array([0.5, 1e-10, 1.0]),
            history=[(None, 9.0), (1.0, 8.0)],
            duals=np.array([3.0, -1.0]),
        )

    def rows(instance: object, **more: object) -> SimpleNamespace:
        asked.append((instance, more))
        return SimpleNamespace(
            worth=np.array([[0.0, 1.0, 2.0], [-5.0, 4.0, 3.0], [-1.0, -2.0, -3.0]]),
            rows=[None, None],
            price_all="pricing",
            master=lambda: SimpleNamespace(generate=generate),
        )

    monkeypatch.setattr(bound, "in_ordinary_units", lambda instance: ("scaled", 0.5))
    monkeypatch.setattr(bound, "RingSubproblem", rows)
    found = bound.ring_lp(None, capped=False, linked=False, tolerance=1e-5, pricings=7)
    assert asked == [("scaled", {"capped": False, "sizes": None, "linked": False}), ("pricing", 1e-5, 7)]
    rounded = value * (1 + 1e-9) + 1e-9 if value else 0.0
    assert found.bound == pytest.approx(rounded * 0.5, rel=1e-13)
    assert found.prices.tolist() == [price * 0.5 for price in prices]
    assert (found.value, found.converged) == (0.0 if answer is None else 1.0, bool(answer))
    assert found.rings == (("a", 0.5), ("c", 1.0)) and found.history == ((0.5, 4.0),)
