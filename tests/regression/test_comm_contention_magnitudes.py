"""Exact answers of comm-contention where sizes, releases and penalty are of very different magnitudes."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from oracles.comm_contention import brute_force
from support.checks import comm_contention as check

from schedgap.catalogue.comm_contention import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.models import build_ilp
from schedgap.formulations.comm_contention.order_program import best_of_order
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.solvers.exact.comm_contention.after_completions import after_completions
from schedgap.solvers.exact.comm_contention.branch_and_bound import solve_bb
from schedgap.solvers.result import SolveOptions, Status


def instance(b: float, eta: float, *tasks: tuple[float, float], a: float = 0.0) -> CommContentionInstance:
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "link": {"latency": a, "seconds_per_unit": b, "contention_penalty": eta},
            "tasks": [{"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(tasks)],
        }
    )


CHAIN = instance(0.000235, 4.8, (6e-6, 0.045), (4e-6, 0.055), (7.5e-7, 0.18), (0.0, 4.5))
"""One after the other is optimal; a start one unit in the last place early costs (eta / b)^2 of that unit."""


@pytest.mark.parametrize("factor", [1.0, 1e-4, 1e6])
def test_comm_contention_bb_with_a_penalty_far_above_the_link(factor: float) -> None:
    tasks = [(task.release * factor, task.size) for task in CHAIN.tasks]
    result = solve_bb(instance(0.000235 * factor, 4.8 * factor, *tasks), SolveOptions())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(3.0769375e-4 * factor, rel=1e-9)


@pytest.mark.parametrize("engine", ["highs", "cbc"])
def test_comm_contention_numbers_that_spread_are_no_disagreement(engine: str) -> None:
    """Releases of 4e9 times what a unit takes: rows that hold within tolerance, a mean that is off by a half."""
    wide = instance(1e-9, 0.3, (0.0, 10.0), (4.0, 3.0))
    result = run_method(PROBLEM, wide, engine, SolveOptions())
    assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(6.5e-9, rel=1e-9))


def test_comm_contention_starts_are_put_after_completions() -> None:
    early = [1.6924999999999998e-05, 4e-06, 2.7499999999999998e-05, 6.979999999999999e-05]
    before = check(CHAIN, {"start": {f"c{j}": t for j, t in enumerate(early)}})
    after = check(CHAIN, after_completions(CHAIN, early, 1e-16))
    assert float(before.objective) > 3.077e-4
    assert after.feasible and after.details["most_active"] == 1
    assert float(after.objective) == pytest.approx(3.0769375e-4, rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_comm_contention_bb_agrees_with_orders_at_any_magnitude(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    draw = 10 ** rng.uniform(-7, 4, 2 * n + 2)
    case = instance(draw[0], draw[1], *zip(draw[2 : n + 2], draw[n + 2 :], strict=True))
    _, solution = brute_force(case)
    result = solve_bb(case, SolveOptions())
    known = float(check(case, solution).objective)
    assert check(case, result.solution).objective == pytest.approx(result.objective, rel=1e-12)
    assert result.bound <= min(known, result.objective) * (1 + 1e-9)
    if result.status is Status.OPTIMAL:
        assert result.objective <= known * (1 + 1e-6)


def test_comm_contention_bounds_of_a_badly_scaled_program_do_not_count() -> None:
    assert build_ilp(CHAIN).restriction
    assert not build_ilp(instance(1.0, 0.3, (0.0, 20.0), (4.0, 3.0))).restriction


@pytest.mark.parametrize("seed", range(40))
def test_comm_contention_best_of_an_order_is_exact_at_any_magnitude(seed: int) -> None:
    b, eta, r0, m0, r1, m1 = (float(f"{x:.3g}") for x in 10 ** np.random.default_rng(seed).uniform(-13, 6, 6))
    case = instance(b, eta, (r0, m0), (r1, m1))
    pace, releases = exact(b), (exact(r0), exact(r1))
    first = releases[0] + pace * exact(m0)
    second = max(releases[1], first) + pace * exact(m1)
    found = best_of_order(case, [(0, True), (0, False), (1, True), (1, False)])
    wanted = (first + second - sum(releases)) / 2
    assert abs(Fraction(check(case, found).objective) - wanted) <= wanted / 10**9


@pytest.mark.parametrize("seed", range(12))
def test_comm_contention_engines_do_not_contradict_the_checker_at_any_magnitude(seed: int, tmp_path: Path) -> None:
    b, eta, r0, m0, r1, m1 = (float(f"{x:.3g}") for x in 10 ** np.random.default_rng(seed).uniform(-5, 5, 6))
    case = instance(b, eta, (r0, m0), (r1, m1))
    known = solve_bb(case, SolveOptions()).objective
    for method in ("highs", "cbc"):
        result = run_method(PROBLEM, case, method, SolveOptions(threads=1), disagreements=tmp_path)
        assert result.objective >= known * (1 - 1e-9)
        assert result.bound <= known * (1 + 1e-9)


def test_comm_contention_refuses_what_lasts_longer_than_a_start_can_say() -> None:
    with pytest.raises(InputError, match=r"tasks: after the last release all of them take up to 2e\+15 s"):
        instance(1e3, 1e3, (0.0, 1e12))
    instance(1e2, 1e2, (0.0, 1e12))
