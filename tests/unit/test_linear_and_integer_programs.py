"""Programs from arrays: linear ones that change, integer masters, and what an incumbent decides."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.checks import hadar as check

from schedgap.benchmarks.instances.hadar.random import small
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.solvers.column_generation import Column
from schedgap.solvers.exact.hadar.colgen import ScheduleSearch
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.integer_program import IntegerProgram, SearchLimits, integer_master
from schedgap.solvers.linear_program import INFINITY, LinearProgram, solve_once
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination


def test_a_program_is_solved_again_after_every_change() -> None:
    program = LinearProgram()
    program.add_rows(np.array([2.0]), np.array([INFINITY]))
    program.add_columns(np.array([3.0]), np.array([np.inf]), [(np.array([0]), np.array([1.0]))])
    found = program.solve()
    assert found is not None and found.value == 6 and found.x == [2] and found.duals == [3]
    program.add_columns(np.array([1.0]), np.array([np.inf]), [(np.array([0]), np.array([1.0]))])
    found = program.solve()
    assert found is not None and found.value == 2 and found.x.tolist() == [0, 2]
    program.add_rows(np.array([-np.inf]), np.array([1.0]), [(np.array([1]), np.array([1.0]))])
    found = program.solve()
    assert found is not None and found.value == 4 and found.duals.tolist() == [3, -2]
    program.set_upper(np.array([0]), np.array([0.0]))
    assert program.solve() is None  # infeasible
    program.set_row(0, 1.0, 1.0)
    program.set_costs(np.array([1]), np.array([5.0]))
    found = program.solve()
    assert found is not None and found.value == 5
    program.remove_columns(np.array([0]))
    assert (program.columns, program.rows) == (1, 2)
    assert program.solve(Deadline(0.0)) is None


def test_a_program_given_as_a_whole_has_the_same_optimum() -> None:
    matrix = sparse.csc_matrix(np.array([[1.0, 1.0], [0.0, 1.0]]))
    found = solve_once(
        matrix, np.array([3.0, 1.0]), np.full(2, np.inf), np.array([2.0, -np.inf]), np.array([np.inf, 1])
    )
    assert found is not None and found.value == 4 and found.duals.tolist() == [3, -2]
    unbounded = solve_once(
        matrix, np.array([-1.0, 0.0]), np.full(2, np.inf), np.full(2, -np.inf), np.array([np.inf] * 2)
    )
    assert unbounded is None


@pytest.mark.parametrize("must", [False, True])
def test_the_integer_master_finds_the_best_choice(must: bool) -> None:
    rng = np.random.default_rng(1)
    found_none = 0
    for _ in range(40):
        columns = [
            Column(group, float(rng.integers(1, 20)), np.arange(2), rng.integers(0, 5, 2).astype(float))
            for group in range(3)
            for _ in range(3)
        ]
        capacity = rng.integers(2, 10, 2).astype(float)
        best: float | None = None
        for choice in itertools.product(range(-1, 3), repeat=3):
            taken = [columns[3 * group + place] for group, place in enumerate(choice) if place >= 0]
            if (must and len(taken) < 3) or (sum((c.values for c in taken), np.zeros(2)) > capacity).any():
                continue
            worth = sum(column.objective for column in taken)
            best = worth if best is None else max(best, worth)
        found = integer_master(columns, capacity, 3, SearchLimits(1000), must=must)
        assert (None if found is None else sum(columns[i].objective for i in found)) == best
        found_none += found is None
    assert must == bool(found_none)


def test_a_start_of_the_integer_master_is_never_lost() -> None:
    rng = np.random.default_rng(2)
    columns = [
        Column(j, float(rng.integers(10, 99)), np.arange(20), rng.random(20)) for j in range(60) for _ in range(4)
    ]
    found = integer_master(columns, np.full(20, 1.5), 60, SearchLimits(1), start=[7])
    assert found is not None and sum(columns[i].objective for i in found) >= columns[7].objective


def test_a_search_proves_infeasibility_and_bounds() -> None:
    program = IntegerProgram()
    program.add_columns(np.array([-1.0, -1.0]), np.ones(2))
    program.add_rows(np.array([-INFINITY]), np.array([1.5]), [(np.array([0, 1]), np.ones(2))])
    answer = program.search(SearchLimits(100))
    assert answer.complete and answer.bound == -1 and answer.x is not None and answer.x.sum() == 1
    program.add_rows(np.array([1.9]), np.array([INFINITY]), [(np.array([0, 1]), np.ones(2))])
    answer = program.search(SearchLimits(100))
    assert answer.complete and answer.x is None


def _check(solution: Solution) -> CheckReport:
    return CheckReport((), Fraction(solution["value"]))


def test_an_incumbent_counts_in_units_and_reports_in_the_instances_own() -> None:
    told: list[tuple[Any, float | None, float | None]] = []
    options = SolveOptions(report=lambda *known: told.append(known))
    best = Incumbent(MINIMISE, options, _check, unit=Fraction(1, 3), whole=True)
    assert best.tighten(4) and not best.tighten(3) and not best.tighten(None)
    assert best.propose({"value": Fraction(7, 3)}, "first") == 7
    assert best.propose({"value": Fraction(8, 3)}, "second") == 8
    assert best.objective == 7 and best.info == {"found by": "first"} and not best.proven
    assert best.tighten(9, of_better=True) and best.proven  # nothing better than 7 is worth less than 9
    assert told == [(None, None, 4 / 3), ({"value": Fraction(7, 3)}, 7 / 3, 4 / 3), (None, 7 / 3, 7 / 3)]
    result = best.result(engine="x", version="1")
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 7 / 3, 7 / 3)
    assert result.termination is Termination.PROVEN


def test_an_incumbent_tells_why_a_run_ends() -> None:
    assert Incumbent(MINIMISE).result().status is Status.UNKNOWN
    best = Incumbent(MINIMISE)
    best.exhausted()
    assert best.result().status is Status.INFEASIBLE and best.finished()
    best = Incumbent(MAXIMISE, SolveOptions(relative_gap=0.1, work_limit=2.0))
    best.accept({}, 10.0)
    best.tighten(12.0)
    assert best.termination is Termination.WORK_LIMIT and best.work_left(0.5) == 1 and not best.finished()
    best.work = 2.0
    assert best.finished() and best.termination is Termination.WORK_LIMIT
    best.tighten(11.0)
    assert best.gap_reached and best.termination is Termination.GAP_LIMIT
    best.interrupted = True
    result = best.result(Termination.PROVEN)
    assert (result.status, result.termination, result.bound) == (Status.FEASIBLE, Termination.FINISHED, 11)
    best.accept({}, 11.5)
    with pytest.raises(Disagreement):
        best.result()


def test_ctrl_c_keeps_what_branch_and_price_has_found(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small(4)
    search = ScheduleSearch(instance, SolveOptions(threads=1), partial(check, instance), 1.0)
    solve = search.relax

    def interrupted(*args: Any) -> Any:
        if search.nodes == 2:
            raise KeyboardInterrupt
        return solve(*args)

    monkeypatch.setattr(search, "relax", interrupted)
    search.run()
    result = search.result()
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.INTERRUPTED)
    assert result.objective is not None and result.bound is not None and result.bound > result.objective


def test_a_probe_starts_from_the_remembered_basis_and_keeps_to_its_iterations() -> None:
    """min x + 2 y, x + y >= 2: 2 at first; 3 with x <= 1, empty with x <= 1 and y <= 0.5."""
    program = LinearProgram()
    program.add_columns(np.array([1.0, 2.0]), np.array([5.0, 5.0]))
    program.add_rows(np.array([2.0]), np.array([INFINITY]), [(np.array([0, 1]), np.array([1.0, 1.0]))])
    found = program.solve()
    assert found is not None and found.value == pytest.approx(2)
    program.remember()
    for upper, value in (([1.0, 5.0], 3.0), ([1.0, 0.5], INFINITY), ([1.0, 5.0], 3.0)):
        program.set_box(np.zeros(2), np.array(upper))
        assert program.probe(60) == pytest.approx(value)
    assert (program.probe(0) or 0.0) <= 3.0  # what is reached is no more than the least value
    found = program.solve()
    assert found is not None and found.value == pytest.approx(3)
