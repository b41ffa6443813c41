"""The column-generation core on problems of its own: knapsack cover, cutting stock, equality rows, infeasibility."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.solvers.column_generation import Column, GenerationLimits, GenerationStatus, Master, Priced, RowBounds
from schedgap.solvers.linear_program import LinearProgram
from schedgap.solvers.result import Deadline

Floats = NDArray[np.float64]


def column(group: int, objective: float, entries: dict[int, float]) -> Column:
    return Column(group, objective, np.array(list(entries), dtype=np.int64), np.array(list(entries.values())))


def by_enumeration(columns: list[Column], groups: int, sense: int):  # type: ignore[no-untyped-def]
    """Pricing that looks at a list of all columns."""
    sign = 1.0 if sense == MAXIMISE else -1.0

    def pricing(duals: Floats, weight: float) -> Priced:
        best = np.full(groups, -sign * np.inf)
        chosen: dict[int, Column] = {}
        for c in columns:
            value = weight * c.objective - float(duals[c.rows] @ c.values)
            if sign * value > sign * best[c.group]:
                best[c.group], chosen[c.group] = value, c
        return Priced(best, list(chosen.values()))

    return pricing


def packing(seed: int) -> tuple[list[Column], list[RowBounds], int]:
    rng = np.random.default_rng(seed)
    rows = [RowBounds(upper=float(rng.integers(2, 6))) for _ in range(5)]
    columns = []
    for group in range(4):
        for _ in range(12):
            used = rng.integers(0, 3, 5)
            columns.append(column(group, float(rng.integers(1, 20)), {i: float(u) for i, u in enumerate(used) if u}))
    return columns, rows, 4


def lp(columns: list[Column], rows: list[RowBounds], groups: int, sense: int, must: bool) -> float | None:
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    sign = -1.0 if sense == MAXIMISE else 1.0
    for k, c in enumerate(columns):
        h.addVar(0, highspy.kHighsInf)
        h.changeColCost(k, sign * c.objective)
    for i, row in enumerate(rows):
        entries = [(k, v) for k, c in enumerate(columns) for r, v in zip(c.rows, c.values, strict=True) if r == i]
        index = np.array([k for k, _ in entries], dtype=np.int32)
        h.addRow(max(row.lower, -1e30), min(row.upper, 1e30), len(entries), index, np.array([v for _, v in entries]))
    for g in range(groups):
        own = np.array([k for k, c in enumerate(columns) if c.group == g], dtype=np.int32)
        h.addRow(1.0 if must else -highspy.kHighsInf, 1.0, len(own), own, np.ones(len(own)))
    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(sign * h.getInfo().objective_function_value)


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("must", [False, True])
@pytest.mark.parametrize("sense", [MAXIMISE, MINIMISE])
@pytest.mark.parametrize("seed", range(4))
def test_the_master_over_all_columns_is_solved(seed: int, sense: int, must: bool, smoothing: float) -> None:
    columns, rows, groups = packing(seed)
    expected = lp(columns, rows, groups, sense, must)
    master = Master(sense, rows, [must] * groups)
    found = master.generate(by_enumeration(columns, groups, sense), GenerationLimits(smoothing=smoothing))
    if expected is None:
        assert found.status is GenerationStatus.INFEASIBLE and found.bound is None
        return
    assert found.status is GenerationStatus.CONVERGED
    assert found.value == pytest.approx(expected, abs=1e-7) and found.bound == pytest.approx(expected, abs=1e-6)
    side = 1.0 if sense == MAXIMISE else -1.0
    for value, bound in found.history:  # valid at every iteration
        assert side * bound >= side * expected - 1e-7
        assert value is None or side * value <= side * expected + 1e-7
    # strong duality with the master's own duals
    dual = sum(
        float(d) * (r.upper if d * side > 0 else r.lower if np.isfinite(r.lower) else 0.0)
        for d, r in zip(found.master_duals, rows, strict=True)
        if d
    )
    assert dual + float(found.master_payoffs.sum()) == pytest.approx(expected, abs=1e-6)


def test_cutting_stock_with_rows_that_zero_breaks() -> None:
    """Fewest rolls of width 10 for 4 pieces of 3, 3 of 4 and 2 of 5: a pattern is a column of one shared group each."""
    patterns = [p for p in itertools.product(range(4), range(3), range(3)) if 0 < 3 * p[0] + 4 * p[1] + 5 * p[2] <= 10]
    rolls = 6
    columns = [column(g, 1.0, {i: float(n) for i, n in enumerate(p) if n}) for g in range(rolls) for p in patterns]
    rows = [RowBounds(lower=4.0), RowBounds(lower=3.0), RowBounds(lower=2.0)]
    found = Master(MINIMISE, rows, [False] * rolls).generate(by_enumeration(columns, rolls, MINIMISE))
    expected = lp(columns, rows, rolls, MINIMISE, False)
    assert found.status is GenerationStatus.CONVERGED and expected is not None
    assert found.value == pytest.approx(expected, abs=1e-7)


def test_equality_rows() -> None:
    columns = [column(0, 3.0, {0: 1.0}), column(0, 5.0, {0: 2.0}), column(1, 1.0, {0: 1.0}), column(1, 0.0, {})]
    rows = [RowBounds(2.0, 2.0)]
    found = Master(MAXIMISE, rows, [False, False]).generate(by_enumeration(columns, 2, MAXIMISE))
    assert found.status is GenerationStatus.CONVERGED
    assert found.value == pytest.approx(5.0)
    assert found.bound == pytest.approx(5.0)


def test_restricting_columns_and_groups_is_a_node_of_a_tree() -> None:
    columns, rows, groups = packing(7)
    master = Master(MAXIMISE, rows, [False] * groups)
    whole = master.generate(by_enumeration(columns, groups, MAXIMISE))
    fewer = [c for c in columns if c.group != 1]
    allowed = np.array([c.group != 1 for c in master.columns])
    master.restrict(allowed, np.array([True, False, True, True]))
    part = master.generate(by_enumeration(fewer, groups, MAXIMISE))
    assert whole.value is not None
    must = [True, False, True, True]
    reference = Master(MAXIMISE, rows, must).generate(by_enumeration(fewer, groups, MAXIMISE))
    assert part.status is reference.status
    if part.value is not None:
        assert part.value == pytest.approx(reference.value, abs=1e-7) and part.value <= whole.value + 1e-7
    master.restrict(np.ones(len(master.columns), dtype=bool), np.zeros(groups, dtype=bool))
    again = master.generate(by_enumeration(columns, groups, MAXIMISE))
    assert again.value == pytest.approx(whole.value, abs=1e-7)


def test_cuts_are_added_and_columns_forgotten() -> None:
    columns, rows, groups = packing(3)
    master = Master(MAXIMISE, rows, [False] * groups)
    before = master.generate(by_enumeration(columns, groups, MAXIMISE))
    assert before.value is not None
    # at most half of one column of group 0 in all
    mine = [i for i, c in enumerate(master.columns) if c.group == 0]
    master.add_rows([RowBounds(upper=0.5)], [(np.array(mine, dtype=np.int64), np.ones(len(mine)))])
    cut = [
        Column(c.group, c.objective, np.append(c.rows, len(rows)), np.append(c.values, 1.0)) if c.group == 0 else c
        for c in columns
    ]
    after = master.generate(by_enumeration(cut, groups, MAXIMISE))
    expected = lp(cut, [*rows, RowBounds(upper=0.5)], groups, MAXIMISE, False)
    assert after.value == pytest.approx(expected, abs=1e-7) and after.value < before.value
    keep = after.weights > 1e-9
    master.drop(keep)
    assert len(master.columns) == int(keep.sum())
    assert master.generate(by_enumeration(cut, groups, MAXIMISE)).value == pytest.approx(expected, abs=1e-7)
    with pytest.raises(ValueError, match="zero breaks"):
        master.add_rows([RowBounds(lower=1.0)], [(np.zeros(0, dtype=np.int64), np.zeros(0))])


def test_an_over_estimate_keeps_the_bound_valid() -> None:
    columns, rows, groups = packing(5)
    exact = by_enumeration(columns, groups, MAXIMISE)
    expected = lp(columns, rows, groups, MAXIMISE, False)

    def generous(duals: Floats, weight: float) -> Priced:
        found = exact(duals, weight)
        return Priced(found.best + 0.25, found.columns)

    found = Master(MAXIMISE, rows, [False] * groups).generate(generous)
    assert found.status is GenerationStatus.STALLED
    assert found.bound is not None and expected is not None
    assert expected <= found.bound <= expected + 0.25 * groups + 1e-6


def test_limits_stop_with_a_valid_bound() -> None:
    columns, rows, groups = packing(1)
    pricing = by_enumeration(columns, groups, MAXIMISE)
    expected = lp(columns, rows, groups, MAXIMISE, False)
    assert expected is not None
    one = Master(MAXIMISE, rows, [False] * groups).generate(pricing, GenerationLimits(iterations=1))
    assert one.status is GenerationStatus.LIMIT and one.iterations == 1
    assert one.bound is not None and one.bound >= expected - 1e-9
    late = Master(MAXIMISE, rows, [False] * groups).generate(pricing, GenerationLimits(deadline=Deadline(0.0)))
    assert late.status is GenerationStatus.LIMIT and late.bound is None and late.iterations == 0
    cut = Master(MAXIMISE, rows, [False] * groups).generate(pricing, GenerationLimits(cutoff=1e9))
    assert cut.status is GenerationStatus.CUT_OFF


def test_a_program_is_solved_whatever_threads_others_use(capfd: pytest.CaptureFixture[str]) -> None:
    """HiGHS keeps its pool of threads for a thread of ours, and refuses to run with another number of them."""
    import threading

    import highspy

    found: list[float | None] = []

    def both() -> None:
        other = highspy._core._Highs()
        for option, value in (("output_flag", False), ("threads", 2)):
            other.setOptionValue(option, value)
        other.addVar(0.0, 1.0)
        other.run()
        program = LinearProgram()
        program.add_columns(np.array([-2.0]), np.array([3.0]))
        solved = program.solve()
        found.append(None if solved is None else solved.value)

    thread = threading.Thread(target=both)
    thread.start()
    thread.join()
    assert found == [-6.0]
    assert capfd.readouterr().out == ""
