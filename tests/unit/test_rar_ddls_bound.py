"""The parts of rar-ddls's lower bound against their formulas, gone through literally in exact numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgap.formulations.rar_ddls import bounds
from schedgap.formulations.rar_ddls.rates import NEVER


def table_of(gpus: list[int], slots: list[int], wide: list[int] | None = None) -> Any:
    """Rates by which jobs take `slots` on one server and `wide` across: so many iterations at one a slot."""
    wide = slots if wide is None else wide
    most = math.lcm(*(w for w in wide if w != NEVER), *slots)
    rate = np.array([0 if w == NEVER else most // w for w in wide])
    return SimpleNamespace(
        gpus=np.array(gpus),
        best_duration=np.array(slots),
        iterations=np.full(len(gpus), most),
        fewest_servers=np.ones(len(gpus), dtype=np.int64),
        rates=lambda jobs, servers, rings: np.where((servers == 2) & (rings == 1), rate[jobs], -1),
    )


def cluster(*servers: int) -> Any:
    return SimpleNamespace(servers=[SimpleNamespace(gpus=g) for g in servers], total_gpus=sum(servers))


def drawn(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    servers = cluster(*(int(g) for g in rng.integers(1, 6, rng.integers(2, 4))))
    count = int(rng.integers(2, 7 + seed % 6))
    gpus = [int(g) for g in rng.integers(1, servers.total_gpus + 1, count)]
    slots = [int(d) for d in rng.integers(1, 9, count)]
    wide = [NEVER if rng.random() < 0.1 else d + int(rng.integers(0, 6)) for d in slots]
    return servers, table_of(gpus, slots, wide)


def test_jobs_are_grouped() -> None:
    load = bounds._Load.of(table_of([2, 1, 2, 2], [5, 3, 5, 4]))
    assert load.gangs == [1, 2] and load.work == [3, 14]
    rows = sorted(zip(load.kind.tolist(), load.slots.tolist(), load.count.tolist(), strict=True))
    assert rows == [(0, 3, 1), (1, 4, 1), (1, 5, 2)]


@pytest.mark.parametrize("total", range(1, 10))
def test_families_are_those_of_the_literature(total: int) -> None:
    """f(x) = x; 1 above 1 - eps, 0 below eps, x between; u_k of Fekete and Schepers; all dual feasible."""
    gangs = list(range(1, total + 1))
    found = {tuple(Fraction(w, f.capacity) for w in f.weights) for f in bounds._families(gangs, total)}
    shares = [Fraction(g, total) for g in gangs]
    wanted = {tuple(shares)}
    for eps in (share for share in shares if share <= Fraction(1, 2)):
        wanted.add(tuple(Fraction(1) if x > 1 - eps else x if x >= eps else Fraction(0) for x in shares))
    for k in range(1, total + 1):
        scaled = [(k + 1) * x for x in shares]
        wanted.add(
            tuple(x if s.denominator == 1 else Fraction(math.floor(s), k) for x, s in zip(shares, scaled, strict=True))
        )
    assert found == wanted
    for count in range(1, total + 1):
        for beside in itertools.combinations_with_replacement(range(total), count):
            if sum(shares[i] for i in beside) <= 1:
                assert all(sum(f[i] for i in beside) <= 1 for f in found)


def test_an_area_is_rounded_up() -> None:
    family = bounds._Family((2, 3), 4)
    load = bounds._Load.of(table_of([1, 2], [5, 3]))
    assert family.area(load) == 5  # 19 / 4
    assert family.area(bounds._Load.of(table_of([1, 2], [4, 4]))) == 5  # 20 / 4


def must_hold(load: bounds._Load, family: bounds._Family, before: int, makespan: int) -> bool:
    """What the jobs must run in slots before+1 .. makespan-before, more than there is room for."""
    length = makespan - 2 * before
    rows = zip(load.kind.tolist(), load.slots.tolist(), load.count.tolist(), strict=True)
    needed = sum(family.weights[k] * many * max(0, min(slots - before, length)) for k, slots, many in rows)
    return needed > family.capacity * length


@pytest.mark.parametrize("seed", range(25))
def test_the_middle_of_a_schedule(seed: int) -> None:
    servers, table = drawn(seed)
    load = bounds._Load.of(table)
    families = list(bounds._families(load.gangs, servers.total_gpus))
    best = max(int(table.best_duration.max()), *(f.area(load) for f in families))
    least = next(
        makespan
        for makespan in itertools.count(best)
        if not any(must_hold(load, f, a, makespan) for f in families for a in range(1, (makespan + 1) // 2))
    )
    assert bounds._middle(load, families, best) == least
    for family, before in itertools.product(families, range(4)):
        for makespan in range(2 * before + 1, best + 3):
            assert family.overfilled(load, before, makespan) == must_hold(load, family, before, makespan)
    assert not families[0].overfilled(load, 2, 4) and not families[0].overfilled(load, 3, 4)


def test_the_middle_raises_the_bound_far() -> None:
    """Three jobs of half the cluster, 1000 slots each: an area of 1500, yet one of them begins at 1000 or later."""
    load = bounds._Load.of(table_of([2] * 3, [1000] * 3))
    families = list(bounds._families(load.gangs, 4))
    assert max(family.area(load) for family in families) == 1500
    assert bounds._middle(load, families, 1500) == 2000


def test_what_is_beyond_a_moment() -> None:
    load = bounds._Load.of(table_of([1, 1, 1, 2], [2, 5, 5, 9]))
    assert bounds._beyond(load, 0, np.array([0, 1, 2, 4, 5, 6])).tolist() == [12.0, 9.0, 6.0, 2.0, 0.0, 0.0]
    assert bounds._beyond(load, 1, np.array([0, 8, 9])).tolist() == [9.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(80))
def test_the_room_for_large_gangs(seed: int) -> None:
    """The largest bound over gang sizes and the turning points of lambda, literally."""
    servers, table = drawn(seed)
    sizes = [server.gpus for server in servers.servers]
    wide = bounds._across(table, np.array(sizes))
    rows = list(zip(table.gpus.tolist(), table.best_duration.tolist(), wide.tolist(), strict=True))
    best = 0
    for g in {gpus for gpus, _, _ in rows if 2 <= gpus <= max(sizes)}:
        large = [2 <= g <= gpus <= max(sizes) for gpus, _, _ in rows]
        whole = sum(size // g for size in sizes)
        for k in itertools.compress(range(len(rows)), large):
            lam = Fraction(rows[k][0] * (rows[k][2] - rows[k][1]), rows[k][1])
            total = sum(
                min((gpus + lam) * alone, gpus * across) if counts else gpus * alone
                for (gpus, alone, across), counts in zip(rows, large, strict=True)
            )
            best = max(best, math.ceil(total / (servers.total_gpus + lam * whole)))
    assert bounds._room(servers, table) == best


def test_durations_across_servers() -> None:
    table = table_of([2, 2, 1], [3, 4, 5], [6, NEVER, 5])
    assert bounds._across(table, np.array([4, 4])).tolist() == [6, NEVER, 5]
    assert bounds._across(table, np.array([4])).tolist() == [NEVER] * 3
    table.fewest_servers = np.array([3, 3, 3])  # asked for three servers then, where the rate is not known here
    assert bounds._across(table, np.array([4, 4])).tolist() == [NEVER] * 3


def test_of_many_moments_a_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    load = bounds._Load.of(table_of([2] * 12, list(range(20, 44, 2))))
    families = list(bounds._families(load.gangs, 4))
    best = max(family.area(load) for family in families)
    every = bounds._middle(load, families, best)
    beyond, seen = bounds._beyond, []
    monkeypatch.setattr(bounds, "_beyond", lambda *told: (seen.append(len(told[2])), beyond(*told))[1])
    assert bounds._middle(load, families, best) == every and max(seen) > 3
    seen.clear()
    monkeypatch.setattr(bounds, "_MOST_MOMENTS", 3)
    assert best <= bounds._middle(load, families, best) <= every and set(seen) == {3}


def test_there_is_no_bound_where_a_job_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    servers, table = cluster(2, 2), table_of([1, 1], [3, 5])
    monkeypatch.setattr(bounds, "rate_table", lambda _: table)
    assert bounds.lower_bound(servers) == 5.0
    table.best_duration = np.array([3, NEVER])
    assert bounds.lower_bound(cluster(2, 2)) is None  # a bound is kept with its instance
