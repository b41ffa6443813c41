"""The two replays of comm-contention's checker against each other, and the time that a large check takes."""

from fractions import Fraction

import numpy as np
import pytest
from support.checks import comm_contention as check
from support.work import calls

from schedgap.formulations.comm_contention import check_replays
from schedgap.formulations.comm_contention.check_replays import replay_enclosed, replay_exactly
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import Disagreement


def case(releases: list[float], sizes: list[float], a: float, b: float, eta: float) -> CommContentionInstance:
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "link": {"latency": a, "seconds_per_unit": b, "contention_penalty": eta},
            "tasks": [
                {"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(zip(releases, sizes, strict=True))
            ],
        }
    )


def drawn(seed: int, n: int) -> tuple[CommContentionInstance, list[Fraction]]:
    """Numbers that no power of two divides, coarse enough for ties, in one or several busy periods."""
    rng = np.random.default_rng(seed)
    begun = [float(t) for t in rng.integers(0, 10 * n, n) / float(rng.choice([1, 10, 30]))]
    sizes = [float(m) for m in rng.integers(1, 60, n) / 10]
    b, eta = float(rng.choice([0.3, 1.0, 0.7])), float(rng.choice([0.0, 0.1, 0.9]))
    instance = case(begun, sizes, float(rng.choice([0.0, 0.2])), b, eta)
    return instance, [Fraction(repr(t)) for t in begun]


@pytest.mark.parametrize("seed", range(30))
def test_comm_contention_enclosures_hold_the_exact_replay(seed: int) -> None:
    instance, start = drawn(seed, 40)
    exact, near = replay_exactly(instance, start), replay_enclosed(instance, start)
    for truth, told, begun in zip(exact.completion, near.completion, start, strict=True):
        assert abs(truth - told) <= Fraction(1, 10**15) * (truth - begun)
    assert float(near.shared) == pytest.approx(float(exact.shared), rel=1e-12, abs=1e-12)
    assert near.max_active <= exact.max_active


@pytest.mark.parametrize("bits", [2, 8, 20])
def test_comm_contention_coarse_runs_are_below_and_above(bits: int) -> None:
    apart = 0
    for seed in range(20):
        instance, start = drawn(seed, 30)
        truth = replay_exactly(instance, start).completion
        rounded = check_replays.Rounded(instance, start, bits)
        low, high = rounded.run(up=False).completion, rounded.run(up=True).completion
        assert all(a <= c * rounded.second <= b for a, c, b in zip(low, truth, high, strict=True))
        apart += low != high
    assert apart >= 5


def test_comm_contention_precision_grows_where_errors_do(monkeypatch: pytest.MonkeyPatch) -> None:
    # each transfer starts when 2/7 of the last are left (but for 1e-16), an unstable balance: an error in
    # the first end is (1 + eta / b)^30 as large 30 tasks on
    instance = case([round(1.1 * j, 1) for j in range(30)], [1.857142857142857] + [1.0] * 29, 0.0, 0.7, 1.4)
    start = [Fraction(repr(t.release)) for t in instance.tasks]
    tried: list[int] = []

    class Counted(check_replays.Rounded):
        def __init__(self, instance: CommContentionInstance, start: list[Fraction], bits: int) -> None:
            tried.append(bits)
            super().__init__(instance, start, bits)

    monkeypatch.setattr(check_replays, "BITS", 1)
    monkeypatch.setattr(check_replays, "Rounded", Counted)
    truth, told = replay_exactly(instance, start).completion, replay_enclosed(instance, start).completion
    assert all(abs(t - c) <= Fraction(1, 10**15) * (c - s) for t, c, s in zip(told, truth, start, strict=True))
    assert len(tried) >= 3


def test_comm_contention_ties_survive_rounding() -> None:
    # the last transfer starts the moment the others end, which thirds hide from any fixed point
    instance = case([0.0, 1.0, 0.0, 6.0] * 40, [1.0, 1.0, 0.5, 1.0] * 40, 0.0, 0.7, 0.1)
    start = [Fraction(repr(t.release)) + 200 * (j // 4) for j, t in enumerate(instance.tasks)]
    exact, near = replay_exactly(instance, start), replay_enclosed(instance, start)
    assert [float(c) for c in near.completion] == pytest.approx([float(c) for c in exact.completion], rel=1e-14)


def test_comm_contention_the_work_of_a_check_grows_like_its_tasks() -> None:
    """All of them active together; in calls, with twice as many tasks it is a little more than twice."""

    def work(n: int) -> int:
        sizes = [float(1 + (81 * j) % 1000 / 10) for j in range(n)]
        instance = case([0.001 * j for j in range(n)], sizes, 0.0, 2.0, 2.0)
        solution = {"start": {t.id: t.release for t in instance.tasks}}
        report = check(instance, solution)
        assert report.feasible and report.details["most_active"] > 0.95 * n
        return calls(check, instance, solution)

    assert work(2000) < 2.2 * work(1000)


def test_comm_contention_a_broken_replay_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, start = drawn(3, 40)
    begin = check_replays.Rounded.run

    def wrong(self: check_replays.Rounded, *, up: bool) -> check_replays.Run:
        found = begin(self, up=up)
        return check_replays.Run(found.completion, found.shared + 1, found.lost, found.max_active)

    monkeypatch.setattr(check_replays.Rounded, "run", wrong)
    with pytest.raises(Disagreement, match="volume identity"):
        replay_enclosed(instance, start)
