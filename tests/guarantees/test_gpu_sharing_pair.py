"""Theorem 1: end points, the exact rule at its boundaries, the MILP, and the samples of ``verify``."""

import itertools
import math

import numpy as np
import pulp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.pair import (
    Pair,
    best_start,
    completion_times,
    mean_completion,
    pair_milp,
    should_share,
)
from schedgap.heuristics.common.growth import Steps
from schedgap.heuristics.common.guarantee import Verdict
from schedgap.heuristics.gpu_sharing import guarantees
from schedgap.heuristics.gpu_sharing.kernel import share_now
from schedgap.solvers.engines import engine
from schedgap.solvers.result import SolveOptions

TIMES = st.floats(0.01, 100)
SLOW = st.one_of(st.just(1.0), st.floats(1.0, 8.0))
PAIRS = st.builds(Pair, TIMES, TIMES, SLOW, SLOW)


def stepped(pair: Pair, kappa: float) -> tuple[float, float]:
    """(T_O, T_N) by going from event to event, without formulas of the theorem."""
    time, left, new = kappa, pair.left - kappa, pair.new
    end_o = end_n = math.nan
    while not (math.isnan(end_o) or math.isnan(end_n)) or left > 0 or new > 0:
        both = left > 0 and new > 0
        rate_o, rate_n = (1 / pair.slow_running, 1 / pair.slow_new) if both else (1.0, 1.0)
        step = min(left / rate_o if left > 0 else math.inf, new / rate_n if new > 0 else math.inf)
        if left > 0:
            left = 0.0 if math.isclose(left / rate_o, step, rel_tol=1e-14) else left - step * rate_o
            end_o = time + step if left == 0 else end_o
        if new > 0:
            new = 0.0 if math.isclose(new / rate_n, step, rel_tol=1e-14) else new - step * rate_n
            end_n = time + step if new == 0 else end_n
        time += step
        if left == 0 and new == 0:
            break
    return (kappa if math.isnan(end_o) else end_o), end_n


@given(PAIRS, st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_gpu_sharing_pair_times_are_those_of_running_it(pair: Pair, part: float) -> None:
    kappa = pair.left * part
    assert completion_times(pair, kappa) == pytest.approx(stepped(pair, kappa), rel=1e-9, abs=1e-9)


@given(PAIRS, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_gpu_sharing_pair_mean_is_concave(pair: Pair, one: float, other: float) -> None:
    a, b = pair.left * one, pair.left * other
    middle = mean_completion(pair, (a + b) / 2)
    assert middle >= (mean_completion(pair, a) + mean_completion(pair, b)) / 2 - 1e-9 * max(1, middle)


@given(PAIRS)
@settings(max_examples=300, deadline=None)
def test_gpu_sharing_pair_best_start_beats_a_fine_grid(pair: Pair) -> None:
    best = best_start(pair).mean
    grid = [mean_completion(pair, pair.left * i / 200) for i in range(201)]
    assert best <= min(*grid, mean_completion(pair, pair.switch)) + 1e-9 * best


@given(PAIRS)
@settings(max_examples=500, deadline=None)
def test_gpu_sharing_rule_says_when_sharing_is_strictly_better(pair: Pair) -> None:
    now, later = mean_completion(pair, 0.0), mean_completion(pair, pair.left)
    assume(abs(now - later) > 1e-9 * later)
    assert should_share(pair) == (now < later)
    kernel = share_now(pair.left, pair.new, pair.slow_running, pair.slow_new, pair.left, pair.new)
    assert kernel == (now < later, pytest.approx(min(now, later)))


@given(TIMES, st.floats(1.0, 8.0), st.floats(1e-6, 1e-2), st.sampled_from([-1, 1]))
@settings(max_examples=200, deadline=None)
def test_gpu_sharing_rule_at_the_boundary_of_its_first_condition(n: float, slow: float, off: float, side: int) -> None:
    """Case 1 (O ends first): sharing pays iff xi_O (2 - 1/xi_N) < 2."""
    running = 2 / (2 - 1 / slow) * (1 + side * off)
    assume(running >= 1)
    pair = Pair(0.9 * slow * n / running, n, running, slow)  # xi_N n > xi_O a
    assert should_share(pair) == (side < 0)
    assert (mean_completion(pair, 0.0) < mean_completion(pair, pair.left)) == (side < 0)


@given(TIMES, st.floats(1.3, 6.0), st.floats(1.3, 6.0), st.floats(1e-6, 1e-2), st.sampled_from([-1, 1]))
@settings(max_examples=200, deadline=None)
def test_gpu_sharing_rule_at_the_boundary_of_its_second_condition(
    n: float, running: float, slow: float, off: float, side: int
) -> None:
    """Case 2 (N ends first): sharing pays iff a > n (xi_N (2 - 1/xi_O) - 1)."""
    assume(running * (2 - 1 / slow) > 2)
    pair = Pair(n * (slow * (2 - 1 / running) - 1) * (1 + side * off), n, running, slow)
    assume(pair.slow_new * pair.new < pair.slow_running * pair.left)
    assert should_share(pair) == (side > 0)
    assert (mean_completion(pair, 0.0) < mean_completion(pair, pair.left)) == (side > 0)


def test_gpu_sharing_ties_and_no_interference() -> None:
    tie = Pair(1.0, 1.0, 4 / 3, 2.0)  # xi_O (2 - 1/xi_N) = 2 exactly
    assert mean_completion(tie, 0.0) == pytest.approx(mean_completion(tie, 1.0))
    assert not should_share(tie)
    assert best_start(Pair(3.0, 5.0, 1.0, 1.0)) == best_start(Pair(3.0, 5.0, 1.0, 1.0))
    assert should_share(Pair(3.0, 5.0, 1.0, 1.0))


def test_gpu_sharing_the_printed_proof_fails_where_the_theorem_holds() -> None:
    """Where N ends first the mean always rises with kappa: that piece never prefers waiting on its own."""
    pair = Pair(10.0, 1.0, 5.0, 5.0)
    assert pair.switch > 0
    starts = np.linspace(0, pair.switch, 50)
    values = [mean_completion(pair, float(k)) for k in starts]
    assert all(b > a for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("name", ["highs", "cbc"])
def test_gpu_sharing_pair_milp_finds_the_exact_minimum(name: str) -> None:
    rng = np.random.default_rng(5)
    solver = engine(name)
    for _ in range(12):
        pair = Pair(*np.exp(rng.uniform(-1, 2, 2)).round(3).tolist(), *(1 + rng.exponential(0.8, 2)).round(3).tolist())
        model = pair_milp(pair)
        answer = solver.solve(model, SolveOptions(threads=1))
        assert answer.objective == pytest.approx(best_start(pair).mean, rel=1e-6)
        kappa = model.extract(answer.value)["kappa"]
        assert mean_completion(pair, min(kappa, pair.left)) == pytest.approx(answer.objective, rel=1e-6)
        assert isinstance(model.problem, pulp.LpProblem)


@pytest.mark.parametrize(
    "numbers", [(0.0, 1, 1, 1), (1, -1, 1, 1), (1, 1, 0.9, 1), (1, 1, 1, math.nan), (math.inf, 1, 1, 1)]
)
def test_gpu_sharing_bad_pairs_are_refused(numbers: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="pair: "):
        Pair(*numbers)


def test_gpu_sharing_vectorised_means_are_the_scalar_ones() -> None:
    a, n, running, new = guarantees.random_pairs(3)
    kappa = a * np.random.default_rng(3).uniform(0, 1, len(a))
    found = guarantees.means(a, n, running, new, kappa)
    for i in range(len(a)):
        pair = Pair(float(a[i]), float(n[i]), float(running[i]), float(new[i]))
        assert found[i] == pytest.approx(mean_completion(pair, float(kappa[i])))


def test_gpu_sharing_verify_looks_at_twenty_thousand_pairs() -> None:
    ledger = verify([g.id for g in GPU_SHARING.guarantees()], progress=None)
    *rows, growth = ledger.rows
    assert [row.verdict for row in rows] == [Verdict.HELD] * 2 and growth.verdict is Verdict.MEASURED
    for row in rows:
        assert row.held * guarantees.PAIRS >= 20_000
        assert row.tightness == pytest.approx(1.0)
    assert {row.words for row in rows} == {"held (40,000 pairs in 200 samples)"}


def test_gpu_sharing_a_wrong_rule_would_be_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid sees a rule that always shares, and end points that are worse than they are."""
    means = guarantees.means
    monkeypatch.setattr(guarantees, "means", lambda a, n, o, w, k: means(a, n, o, w, k) + (k == 0) * a)
    assert guarantees.end_point(1).verdict is Verdict.REFUTED
    assert guarantees.exact_rule(1).verdict is Verdict.REFUTED


def seen_starts(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The starts that means are asked for, as they are asked."""
    seen: list[np.ndarray] = []
    means = guarantees.means
    monkeypatch.setattr(guarantees, "means", lambda *a: (seen.append(a[4]), means(*a))[1])
    return seen


def test_gpu_sharing_a_sample_tries_a_grid_and_the_kink(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_starts(monkeypatch)
    found = guarantees.end_point(3)
    assert (found.verdict, found.right) == (Verdict.HELD, 1.0) and found.left == pytest.approx(1.0)
    now, later, tried = seen
    drawn = [Pair(*map(float, row)) for row in zip(*guarantees.random_pairs(3), strict=True)]
    assert tried.shape == (len(drawn), guarantees.POINTS + 2)
    for k, pair in enumerate(drawn):
        assert (now[k], later[k], tried[k, -1]) == pytest.approx((0.0, pair.left, pair.switch), abs=1e-12)
        assert tried[k, :-1] == pytest.approx(np.linspace(0.0, pair.left, guarantees.POINTS + 1))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gpu_sharing_a_sample_decides_by_the_exact_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_starts(monkeypatch)
    found = guarantees.exact_rule(seed)
    assert (found.verdict, found.right) == (Verdict.HELD, 1.0) and found.left == pytest.approx(1.0)
    drawn = [Pair(*map(float, row)) for row in zip(*guarantees.random_pairs(seed), strict=True)]
    chosen = seen[1] if seen[0].ndim > 1 else seen[0]
    assert [start == 0.0 for start in chosen] == [should_share(pair) for pair in drawn]
    assert all(start in (0.0, pair.left) for start, pair in zip(chosen, drawn, strict=True))


def test_gpu_sharing_half_of_a_sample_is_close_to_a_boundary() -> None:
    left, new, running, slow = guarantees.random_pairs(3)
    assert len(left) == guarantees.PAIRS == 200
    assert [int(k) for k in np.flatnonzero(running[:100] == 1.0)] == list(range(20))
    assert [int(k) for k in np.flatnonzero(slow == 1.0)] == list(range(10, 25))
    assert all(math.exp(-3) <= x <= math.exp(3) for x in (*left[:150], *new))
    assert min(running) >= 1.0 and min(slow) >= 1.0 and max(left[:150]) > 15 and min(new) < 0.06 and max(new) > 15
    first = running[100:150] * (2 - 1 / slow[100:150]) / 2 - 1
    second = left[150:] / (new[150:] * (slow[150:] * (2 - 1 / running[150:]) - 1)) - 1
    for off in (first[running[100:150] > 1.0], second[left[150:] > 1e-6]):
        assert len(off) > 25
        sizes = {float(f"{abs(x):.0e}") for x in off if abs(x) > 1e-12}
        assert sizes == {1e-3, 1e-7} and min(off) < -1e-8 and max(off) > 1e-8 and 0.0 in np.round(off, 12)


def test_gpu_sharing_its_claims_say_nothing_of_instances() -> None:
    assert [claim.evaluate(None).verdict for claim in guarantees.GUARANTEES] == [Verdict.NOT_APPLICABLE] * 3


def test_time_of_a_decision_grows_as_the_paper_says_in_words() -> None:
    """Steps of the literal decision, counted; the order it leaves is that of the pairs' mean completion times."""
    values = guarantees.sharing_growth(0).values
    assert 0.95 < values["exponent_gpus"] < 1.05 and 0.95 < values["exponent_batch"] < 1.1
    assert values["exponent_batch_alone"] < 0.2
    left, slow_running, slow_new = np.array([4.0, 1.0, 2.0]), np.array([1.5, 1.5, 3.0]), np.array([1.2, 1.2, 3.0])
    steps = Steps()
    order = guarantees.choose_literally(left, slow_running, slow_new, 2.0, 8, steps)
    new = 2.0 * 1.01  # the largest sub-batch is the best one
    pairs = [Pair(a, new, o, n) for a, o, n in zip(left, slow_running, slow_new, strict=True)]
    assert order == sorted(range(3), key=lambda gpu: mean_completion(pairs[gpu], best_start(pairs[gpu]).kappa))
    assert 3 * 4 < steps.count <= 3 * 4 + 4
