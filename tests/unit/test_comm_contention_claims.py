"""The samples on which comm-contention's claims are tried: what they hold; false claims are refuted on them."""

import numpy as np
import pytest
from support.checks import comm_contention as check

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.heuristics.comm_contention import guarantees
from schedgap.heuristics.comm_contention.guarantees import GUARANTEES, total_completion, trap, trap_ratio
from schedgap.heuristics.common.guarantee import Verdict


def test_comm_contention_pairs_are_near_the_threshold_and_without_penalty() -> None:
    pairs = guarantees._pairs(0)
    assert len(pairs) == guarantees.PAIRS == 20
    for k, (b, eta, small, large) in enumerate(pairs):
        assert 0.13 < b < 7.4 and 0.13 < large < 20.1 and 0 < small <= large
        assert (eta == 0) == (k % 5 == 0)
        if k % 3 == 0:
            off = abs(small / large / (b / (2 * (b + eta))) - 1)
            assert off == pytest.approx(1e-3, rel=1e-6) or off == pytest.approx(1e-6, rel=1e-3)
    assert guarantees._pairs(1) != pairs


def test_comm_contention_total_completion_is_the_checkers() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, b, eta = int(rng.integers(1, 7)), float(rng.uniform(0.2, 2)), float(rng.uniform(0, 1))
        sizes = [float(x) for x in rng.uniform(0.2, 3, n)]
        starts = [float(x) for x in rng.choice([rng.uniform(0, 5), 2.0, 0.0], n)]
        case = CommContentionInstance.parse(
            {
                "problem": "comm-contention",
                "link": {"seconds_per_unit": b, "contention_penalty": eta},
                "tasks": [{"id": str(j), "release": 0.0, "size": m} for j, m in enumerate(sizes)],
            }
        )
        report = check(case, {"start": {str(j): t for j, t in enumerate(starts)}})
        assert total_completion(b, eta, sizes, starts) == pytest.approx(n * float(report.objective), rel=1e-12)
        order = sorted(range(n), key=lambda j: starts[j])
        told = guarantees._shared_volume(b, eta, [sizes[j] for j in order], [starts[j] for j in order])
        assert told == pytest.approx(report.details["shared_volume"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("theorem_1", lambda b, sizes, starts: starts[1] < 0.999 * b * sizes[0]),
        ("theorem_2", lambda b, sizes, starts: 0.0 < starts[0] < 0.999 * b * sizes[1]),
        ("volume_identity", lambda b, sizes, starts: True),
    ],
)
def test_comm_contention_samples_look_at_what_is_claimed(
    claim: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = total_completion
    calls: list[int] = []

    def other(b: float, eta: float, sizes: list[float], starts: list[float]) -> float:
        calls.append(1)
        value = real(b, eta, sizes, starts)
        return 0.99 * value if wrong(b, sizes, starts) else value  # type: ignore[operator]

    monkeypatch.setattr(guarantees, "total_completion", other)
    found = getattr(guarantees, claim)(0)
    assert found.verdict is Verdict.REFUTED and found.left > 1e-3
    assert len(calls) >= 20


def test_comm_contention_claims_are_tight_on_their_samples() -> None:
    for seed in range(3):
        for claim in (guarantees.theorem_1, guarantees.theorem_2, guarantees.best_start):
            found = claim(seed)
            assert found.verdict is Verdict.HELD and found.right == 1.0
            assert found.left == pytest.approx(1.0, rel=1e-9)  # the claimed start is among those tried
            assert "worst" in found.reason
        found = guarantees.volume_identity(seed)
        # An identity that holds is neither near to failing nor far: rounding gives it no power.
        assert found.verdict is Verdict.HELD and "n = " in found.reason
        assert found.tightness is None and found.smallest_factor == 0.0


@pytest.mark.parametrize("answer", [True, False])
def test_comm_contention_neither_always_nor_never_is_best(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantees, "starts_now", lambda size, left, b, eta: answer)
    refuted = [guarantees.best_start(seed).verdict is Verdict.REFUTED for seed in range(3)]
    assert all(refuted)


def test_comm_contention_newcomers_meet_one_to_five(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, list[float], float, float]] = []
    real = guarantees.starts_now

    def asked(size: float, left: list[float], b: float, eta: float) -> bool:
        seen.append((size, list(left), b, eta))
        return real(size, left, b, eta)

    monkeypatch.setattr(guarantees, "starts_now", asked)
    guarantees.best_start(0)
    assert [len(left) for _, left, _, _ in seen] == [k % 5 + 1 for k in range(guarantees.NEWCOMERS)]
    for case, (size, left, b, eta) in enumerate(seen):
        assert left == sorted(left) or case % 4 == 0
        assert min(left) > 0.13 and max(left) < 20.1 and 0.36 < b < 2.72 and eta > 0
        assert 0 < size <= 1.3 * max(left)
        if case % 4 == 0 and len(left) > 1:
            assert left[0] == left[1]
        elif len(left) > 1:
            assert left[0] < left[1]


def test_comm_contention_theorem_2_tries_the_moment_at_which_the_first_to_end_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: set[tuple[float, ...]] = set()
    real = total_completion

    def seen(b: float, eta: float, sizes: list[float], starts: list[float]) -> float:
        tried.add((b, sizes[0], starts[0]))
        return real(b, eta, sizes, starts)

    monkeypatch.setattr(guarantees, "total_completion", seen)
    guarantees.theorem_2(0)
    for b, _, small, large in guarantees._pairs(0):
        assert {(b, small, t) for t in (0.0, b * large, b * (large - small))} <= tried


def test_comm_contention_the_trap() -> None:
    case = trap(5)
    assert [task.size for task in case.tasks] == [1.0, 0.38, 1e-4, 1e-4, 1e-4]
    assert [task.release for task in case.tasks] == [0.0, 1e-6, 1e-5, 5.1e-4, 1.01e-3]
    assert case.link.model_dump() == {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.3}
    assert trap_ratio(5) == pytest.approx(2.831313024143286, rel=1e-12)
    assert guarantees.TRAP_SIZES == (5, 10, 20, 50, 100)
    found = guarantees.unbounded(0)
    assert found.values["ratio_20"] == pytest.approx(10.154477270900424, rel=1e-9)
    assert found.values["slope"] == pytest.approx(0.4591873766, rel=1e-9)


def test_comm_contention_claims_are_not_about_instances() -> None:
    for guarantee in GUARANTEES:
        assert guarantee.hint == {"families": ()} or guarantee.measure is not None
        assert guarantee.evaluate(None).verdict is Verdict.NOT_APPLICABLE  # type: ignore[arg-type]
