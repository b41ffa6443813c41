"""Anytime curves and primal integrals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import schedgap
from schedgap.benchmarks.anytime import (
    Recorder,
    best_objective,
    curve_of,
    descent,
    horizon,
    mean_descent,
    primal_gap,
    primal_integral,
    time_to_ratio,
)
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.catalogue.run import run_method
from schedgap.solvers.result import SolveOptions

CURVE = [[1.0, 20.0, None], [3.0, 12.0, 8.0], [6.0, 10.0, 10.0]]


def at(steps: list[tuple[float, float]], moment: float) -> float:
    return ([1.0] + [gap for seconds, gap in steps if seconds <= moment])[-1]


def test_by_hand() -> None:
    # 1 for one second, 10/20 for two, 2/12 for three, 0 for the rest
    assert primal_integral(CURVE, 10.0, 8.0) == pytest.approx(1 + 2 * 0.5 + 3 / 6)
    assert primal_integral(CURVE, 10.0, 2.0) == pytest.approx(1 + 0.5)
    assert [at(list(descent(CURVE, 10.0)), t) for t in (0.5, 1.0, 7.0)] == pytest.approx([1.0, 0.5, 0.0])
    nothing = [[9.0, None, None]]
    both = mean_descent([(CURVE, 10.0), (nothing, 10.0)])
    assert [at(both, t) for t in (0.5, 1.0, 4.0, 7.0)] == pytest.approx([1.0, 0.75, (1 + 1 / 6) / 2, 0.5])
    assert horizon([CURVE, [[2.0, None, None]]]) == 6.0


def test_time_to_a_ratio() -> None:
    assert [time_to_ratio(CURVE, 10.0, 1, target) for target in (2.0, 1.9, 1.2, 1.0)] == [1.0, 3.0, 3.0, 6.0]
    rising = [[1.0, None, None], [2.0, 5.0, None], [4.0, 9.0, None], [9.0, 9.0, None]]
    assert [time_to_ratio(rising, 10.0, -1, target) for target in (2.0, 1.2, 1.0)] == [2.0, 4.0, None]
    assert time_to_ratio([[0.5, 0.0, None]], 0.0, 1, 1.0) == 0.5  # nothing is lost where nothing can be won
    assert time_to_ratio([[0.5, 0.3, None]], 0.1 + 0.2, 1, 1.0) == 0.5


@pytest.mark.parametrize(
    ("objective", "reference", "gap"),
    [(None, 1.0, 1.0), (0.0, 0.0, 0.0), (-1.0, 1.0, 1.0), (0.0, 2.0, 1.0), (4, 2, 0.5)],
)
def test_gaps(objective: float | None, reference: float, gap: float) -> None:
    assert primal_gap(objective, reference) == gap


def test_no_schedule_costs_the_whole_time() -> None:
    assert primal_integral([[5.0, None, 3.0]], 10.0, 7.0) == 7.0
    assert best_objective(None, [[[5.0, None, 3.0]]], 1) is None
    assert best_objective(None, [CURVE, [[1.0, 9.0, None]]], 1) == 9.0
    assert best_objective(None, [CURVE, [[1.0, 9.0, None]]], -1) == 10.0
    assert best_objective(7.0, [CURVE], 1) == 7.0


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(1, 100)), min_size=1, max_size=8),
    st.floats(1, 100),
    st.floats(0, 12),
)
def test_within_its_range_and_sooner_is_less(rows: list[tuple[float, float]], reference: float, until: float) -> None:
    curve = [[t, objective, None] for t, objective in sorted(rows)]
    sooner = [[t / 2, objective, bound] for t, objective, bound in curve]
    assert 0 <= primal_integral(sooner, reference, until) <= primal_integral(curve, reference, until) + 1e-9
    assert primal_integral(curve, reference, until) <= until + 1e-9


@pytest.mark.parametrize("name", ["cp", "lns", "fifo"])
def test_runs_keep_when_each_better_schedule_was_found(name: str) -> None:
    problem, instance = find_problem("gpu-sharing"), schedgap.generate("gpu-sharing", preset="small", seed=3)
    method, heard = find_method(problem, name), list[float | None]()
    recorder = Recorder(problem.sense, lambda _, objective, __: heard.append(objective))
    options = SolveOptions(work_limit=0.2, threads=1, report=recorder)
    result = recorder.kept(method, run_method(problem, instance, method, options))
    curve = curve_of(result)
    if name == "fifo":
        assert curve is None
        return
    assert curve is not None and curve[-1][1:] == [result.objective, result.bound]
    moments, objectives = [row[0] for row in curve], [row[1] for row in curve]
    assert moments == sorted(moments) and objectives == sorted(objectives, reverse=True)
    assert len(set(objectives)) > 1 and set(objectives) <= {*heard, result.objective}


def test_compare_puts_integrals_side_by_side() -> None:
    instance = schedgap.generate("comm-contention", preset="tiny", seed=1)
    found = schedgap.compare(instance, ["bb", "highs"], threads=1)
    told = found.to_dict()
    rows = told["rows"]
    assert isinstance(rows, list) and all(0 <= row["primal_integral"] <= told["horizon"] for row in rows)
    assert all(row["anytime"][-1][1] == row["objective"] for row in rows)
    assert "primal integral over " in found.to_text()
    alone = schedgap.compare(instance, ["bb"], threads=1).to_text()
    assert "primal integral" not in alone
