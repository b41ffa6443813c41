"""Limits of comm-contention's checker and bound: tolerances, the identity, numbers by hand and by a plain machine."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.checks import comm_contention as check

from schedgap.formulations.comm_contention import check_replays
from schedgap.formulations.comm_contention.bounds import lower_bound, rounded_down
from schedgap.formulations.comm_contention.check_replays import Rounded, replay_enclosed, replay_exactly
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.numbers import exact


def instance(*tasks: tuple[float, float], a: float = 0.0, b: float = 1.0, eta: float = 0.3) -> CommContentionInstance:
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "link": {"latency": a, "seconds_per_unit": b, "contention_penalty": eta},
            "tasks": [{"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(tasks)],
        }
    )


@pytest.mark.parametrize(
    ("release", "early", "feasible"),
    [
        (0.001, 9e-13, True),
        (0.001, 1.1e-12, False),
        (5e-10, 4e-10, False),
        (5.0, 4.9e-9, True),
        (5.0, 5.1e-9, False),
        (5.0, 9e-4, False),
        (1e6, 9e-4, True),
        (1e6, 1.1e-3, False),
        (0.0, 0.0, True),
        (0.0, 1e-15, False),
    ],
)
def test_comm_contention_a_start_may_be_a_billionth_early(release: float, early: float, feasible: bool) -> None:
    report = check(instance((release, 1.0)), {"start": {"c0": release - early}})
    assert report.feasible is feasible
    for violation in report.violations:
        assert violation.constraint == "release"
        assert violation.amount == pytest.approx(early, rel=1e-6)


@pytest.mark.parametrize("start", [1e15, -1e15])
def test_comm_contention_starts_have_a_range(start: float) -> None:
    case = instance((0.0, 1.0))
    assert check(case, {"start": {"c0": start}}).objective == exact(start) + 1
    with pytest.raises(InputError, match=r"start\.c0: must be (less|greater) than or equal to"):
        check(case, {"start": {"c0": 1.001 * start}})


def test_comm_contention_text_has_a_length() -> None:
    case = instance((0.0, 1.0))
    assert check(case, {"start": {"c0": 1.5}, "exact": {"c0": "1.5" + 997 * "0"}}).feasible
    with pytest.raises(InputError, match=r"exact\.c0.*\.\.\.$"):
        check(case, {"start": {"c0": 1.5}, "exact": {"c0": "1.5" + 998 * "0"}})


def test_comm_contention_three_share_by_hand() -> None:
    # 3.6 seconds a unit for three, 2.3 for two: c2 ends after 1 unit, c1 after 2, c0 after 3
    case = instance((0.0, 3.0), (0.0, 2.0), (0.0, 1.0), a=0.5)
    start = [Fraction(0)] * 3
    for found in (replay_exactly(case, start), replay_enclosed(case, start)):
        assert [float(x) for x in found.completion] == pytest.approx([7.4, 6.4, 4.1])
        assert found.shared == 1 + 1 + 2 and found.max_active == 3


def test_comm_contention_an_idle_link_begins_anew() -> None:
    # the first two meet for one unit; after the pause the third is alone, then the fourth ends with it
    case = instance((0.0, 2.0), (1.0, 1.0), (10.0, 2.0), (11.0, 1.0), eta=1.0)
    start = [exact(task.release) for task in case.tasks]
    for found in (replay_exactly(case, start), replay_enclosed(case, start)):
        assert found.completion == [4, 4, 14, 14]
        assert found.shared == 2 and found.max_active == 2


def test_comm_contention_few_are_replayed_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = check_replays.replay_enclosed

    def enclosed(case: CommContentionInstance, start: list[Fraction]) -> check_replays.Replay:
        asked.append(len(start))
        return real(case, start)

    monkeypatch.setattr(check_replays, "replay_enclosed", enclosed)
    for n in (99, 100, 101):
        check(instance(*[(float(j), 2.0) for j in range(n)]), {"start": {f"c{j}": float(j) for j in range(n)}})
    assert asked == [101]


@pytest.mark.parametrize("up", [False, True])
def test_comm_contention_every_run_must_balance(up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = instance((0.0, 2.0), (1.0, 1.0), (1.5, 1.0))
    start = [exact(task.release) for task in case.tasks]
    honest = Rounded(case, start, 8)
    assert honest.balanced(honest.run(up=False)) and honest.balanced(honest.run(up=True))
    real = Rounded.run

    def off(self: Rounded, *, up: bool) -> check_replays.Run:
        found = real(self, up=up)
        return check_replays.Run(found.completion, found.shared, found.lost + (up is wrong), found.max_active)

    wrong = up
    monkeypatch.setattr(Rounded, "run", off)
    with pytest.raises(Disagreement, match="identity"):
        replay_enclosed(case, start)


def test_comm_contention_the_upper_run_is_not_before_the_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    case = instance((0.0, 2.0), (1.0, 1.0), (1.5, 1.0), eta=0.4)
    start = [exact(task.release) for task in case.tasks]
    real = Rounded.run
    monkeypatch.setattr(Rounded, "run", lambda self, *, up: real(self, up=not up))
    with pytest.raises(Disagreement, match="before the lower"):
        replay_enclosed(case, start)


def test_comm_contention_an_exact_replay_must_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    case = instance((0.0, 2.0), (1.0, 1.0), b=2.0)
    monkeypatch.setattr(check_replays, "sum", lambda values, start=0: sum(values, start) + 1, raising=False)
    with pytest.raises(Disagreement, match="identity"):
        replay_exactly(case, [Fraction(0), Fraction(1)])


def test_comm_contention_enclosures_are_as_narrow_as_promised() -> None:
    case = instance((0.0, 2.0), (1.0, 1.0), a=0.25, eta=0.4)
    rounded = Rounded(case, [Fraction(0), Fraction(1)], 60)
    low = check_replays.Run([10**18 + rounded.begin[0], 10**18 + rounded.begin[1]], 0, 0, 2)
    for off, narrow in ((1000, True), (1001, False)):
        high = check_replays.Run([low.completion[0], low.completion[1] + off], 0, 0, 2)
        assert rounded.narrow(low, high) is narrow


def machine(case: CommContentionInstance) -> Fraction:
    """Mean flow time of the machine that may pause, by the smallest remaining time at every event."""
    latency, b, _ = case.link.exact_parameters()
    left = {j: b * exact(task.size) for j, task in enumerate(case.tasks)}
    release = [exact(task.release) for task in case.tasks]
    clock, total = min(release), Fraction(0)
    while left:
        here = [j for j in left if release[j] <= clock]
        later = [release[j] for j in left if release[j] > clock]
        if not here:
            clock = min(later)
            continue
        j = min(here, key=lambda k: left[k])
        step = min([left[j], *(r - clock for r in later)])
        clock += step
        left[j] -= step
        if not left[j]:
            total += clock + latency - release[j]
            del left[j]
    return total / len(case.tasks)


def test_comm_contention_the_bound_is_the_machine() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        tasks = [
            (round(float(rng.uniform(3, 3 + 2 * n)), seed % 3), round(float(rng.uniform(0.1, 4)), 2)) for _ in range(n)
        ]
        case = instance(*tasks, a=float(rng.choice([0.0, 0.37])), b=float(rng.choice([0.3, 1.0])))
        wanted = machine(case)
        assert exact(lower_bound(case)) <= wanted
        assert lower_bound(case) == pytest.approx(float(wanted), rel=1e-15)


def test_comm_contention_bounds_are_rounded_down() -> None:
    for number in (Fraction(1, 3), Fraction(2, 3), Fraction(10**20 + 1, 10**19), Fraction(1, 10)):
        assert exact(rounded_down(number)) <= number <= exact(float(np.nextafter(rounded_down(number), np.inf)))
    assert rounded_down(Fraction(1, 10)) == 0.1


def test_comm_contention_no_schedule_of_a_grid_is_below_the_bound() -> None:
    case = instance((0.0, 3.0), (1.0, 1.0), (1.0, 2.0), eta=0.0)
    grid = [x / 2 for x in range(13)]
    values = [
        check(case, {"start": dict(zip(("c0", "c1", "c2"), start, strict=True))}).objective
        for start in itertools.product(grid, grid, grid)
        if start[1] >= 1 and start[2] >= 1
    ]
    assert min(values) >= exact(lower_bound(case))
