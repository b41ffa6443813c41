"""A claim of anyone tried: exact arithmetic, what drawn instances have in common, counterexamples."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from schedgap.claims import Fraction, Impossible, Refuted, brute_force, check_claim, try_claim
from schedgap.formulations.common.errors import InputError
from schedgap.tools.claims.shape import WRAP, data_of, shape_of, value_of
from studies.textbook.__main__ import by_hypothesis
from studies.textbook.bounds import BOUNDS, Bound
from studies.textbook.machines import MACHINES_AND_JOBS, least_makespan, list_scheduling, machines_and_jobs

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
def test_theorems_hold_and_what_is_a_little_sharper_is_refuted(bound: Bound) -> None:
    held = bound.holds(draws=50, hunt=100)
    assert not held.refuted and held.drawn + held.hunted >= 100
    assert held.power <= 1, "no theorem is used beyond its right side"
    sharpened = bound.fails()
    assert sharpened.refuted
    trial = sharpened.tightest
    assert trial is not None and trial.left > trial.right, "in rationals, not by rounding"
    exact, heuristic = bound.sharpened
    assert (exact(trial.instance), heuristic(trial.instance)) == (trial.exact, trial.value)
    assert sharpened.as_found is not None
    assert len(json.dumps(trial.instance, default=str)) <= len(json.dumps(sharpened.as_found.instance, default=str))


def test_hypothesis_alone_gets_the_same_instances() -> None:
    refuted, tried, _ = by_hypothesis(BOUNDS[4], 20.0, 0, target=False)
    assert refuted and tried > 0


def _graham(bound: Any, **options: Any) -> Any:
    return check_claim(machines_and_jobs, least_makespan, list_scheduling, bound, **options)


def test_a_counterexample_is_shrunk_written_and_tried_first(tmp_path: Path) -> None:
    with pytest.raises(Refuted, match=r"sharp: refuted .*: 3 > 14/5 \(heuristic 3, exact 2\)"):
        _graham(Fraction(7, 5), name="sharp", out=tmp_path)
    file = json.loads((tmp_path / "sharp.json").read_text(encoding="utf-8"))
    assert file["instance"] == {"machines": 2, "jobs": [1, 1, 2]}
    assert file["verdict"] == "refuted" and (file["left"], file["right"]) == ("3", "14/5")
    again = try_claim(
        machines_and_jobs, least_makespan, list_scheduling, Fraction(7, 5), name="sharp", out=tmp_path, draws=1, hunt=0
    )
    assert again.refuted and again.hunted == 1, "one draw refutes nothing, the file does"
    file["instance"]["machines"] = 100
    (tmp_path / "sharp.json").write_text(json.dumps(file), encoding="utf-8")
    other = try_claim(
        machines_and_jobs, least_makespan, list_scheduling, 2, name="sharp", out=tmp_path, draws=1, hunt=0
    )
    assert not other.refuted and other.hunted == 0, "outside of what is drawn now"


def test_what_holds_tells_how_near_it_came_and_what_it_could_not_be() -> None:
    result = _graham(lambda x: 2 - Fraction(1, x["machines"]), out=None)
    assert result.power == 1.0 and not result.refuted
    assert result.to_text().startswith("claim: holds (200 drawn, 1000 hunted); nearest")
    loose = _graham(4, out=None, hunt=0)
    assert loose.power < 0.5 and "anything below 0.3" in loose.to_text()


def test_the_same_seed_gives_the_same_answer_and_another_one_others() -> None:
    first, again, other = (_graham(2, out=None, draws=40, hunt=60, seed=seed) for seed in (3, 3, 4))
    assert first == again and first.tightest != other.tightest


@pytest.mark.parametrize("sense", ["min", "max"])
def test_nothing_beats_an_exact_value_and_no_relaxation_is_beyond_it(sense: Any, tmp_path: Path) -> None:
    def draw(rng: Random) -> dict[str, Any]:
        return {"jobs": [rng.randint(1, 9) for _ in range(rng.randint(1, 5))]}

    sign = 1 if sense == "min" else -1
    total = lambda x: sum(x["jobs"])  # noqa: E731
    wrong = lambda x: total(x) + sign * (len(x["jobs"]) > 2)  # noqa: E731
    with pytest.raises(Impossible, match=r"wrong: the heuristic's 3 beats the exact [24]\n  on .*\[1, 1, 1\]"):
        try_claim(draw, wrong, total, 2, sense=sense, name="wrong", out=tmp_path)
    assert json.loads((tmp_path / "wrong.json").read_text())["verdict"] == "impossible"

    def loose(instance: Any) -> int:
        return wrong(instance)

    side = "above" if sense == "min" else "below"
    with pytest.raises(Impossible, match=f"the bound [24] of loose is {side} the exact 3"):
        try_claim(draw, total, total, 2, sense=sense, relaxations=loose, out=None)
    assert not try_claim(
        draw, total, total, 1, sense=sense, relaxations=(total, total), out=None, draws=20, hunt=20
    ).refuted


def test_whole_numbers_and_fractions_are_exact_and_floats_have_a_tolerance() -> None:
    def draw(rng: Random) -> int:
        return rng.randint(1, 10)

    third = Fraction(1, 3)
    few = partial(try_claim, out=None, draws=20, hunt=20)
    assert not few(draw, lambda n: n * third, lambda n: n * third, 1).refuted
    assert few(draw, lambda n: n, lambda n: n + Fraction(1, 10**12), 1).refuted
    assert not few(draw, lambda n: n, lambda n: n * (1 + 1e-12), 1).refuted
    assert few(draw, lambda n: n, lambda n: n * (1 + 1e-8), 1).refuted
    assert not few(draw, lambda n: n / 3, lambda n: n / 3, 1.0).refuted


def test_what_a_claim_says_nothing_of_is_counted() -> None:
    result = try_claim(
        lambda rng: rng.randint(0, 9),
        lambda n: None if n == 0 else n,
        lambda n: n,
        lambda n: None if n % 2 else 1,
        out=None,
        draws=100,
        hunt=0,
    )
    assert result.outside > 30 and result.drawn > 20 and result.drawn + result.outside == 100
    nothing = try_claim(lambda rng: rng.random(), lambda _: None, lambda x: x, out=None)
    assert nothing.tightest is None and "says nothing of any instance" in nothing.to_text()


# Generators.


def test_generators_of_python_of_numpy_and_strategies() -> None:
    def of_numpy(rng: np.random.Generator) -> dict[str, Any]:
        return {"machines": int(rng.integers(1, 5)), "jobs": rng.integers(1, 10, rng.integers(1, 9)).tolist()}

    for draw in (machines_and_jobs, of_numpy, MACHINES_AND_JOBS):
        result = try_claim(draw, least_makespan, list_scheduling, Fraction(7, 5), out=None)
        assert result.refuted and result.tightest is not None
        assert result.tightest.instance == {"machines": 2, "jobs": [1, 1, 2]}


INSTANCES: list[Any] = [
    [{"a": Fraction(k, 6), "b": (k, "red" if k % 2 else "blue"), "c": [[k, 2]] * (k % 3)} for k in range(1, 30)],
    [[Fraction(1, k)] * (k % 4) for k in range(1, 30)],
    [{f"n{j}": k for j in range(k % 5)} for k in range(30)],
    [(k, None if k % 2 else 3, True) for k in range(30)],
]


@pytest.mark.parametrize("instances", INSTANCES)
def test_instances_come_back_as_they_were(instances: list[Any]) -> None:
    shape = shape_of(instances)
    for instance in instances:
        data = data_of(shape.schema, {WRAP: instance})
        assert shape.admits(data)
        back = value_of(shape.schema, data)[WRAP]
        assert back == instance and type(back) is type(instance)
        assert json.loads(json.dumps(data, default=str)) is not None


def _draws(draw: Any, count: int = 300) -> Any:
    return shape_of([draw(Random(k)) for k in range(count)])


@pytest.mark.parametrize(
    ("draw", "inside", "outside"),
    [
        (lambda rng: {"x": sorted(rng.sample(range(50), 4))}, {"x": [1, 2, 3, 9]}, {"x": [2, 1, 3, 9]}),
        (lambda rng: {"x": rng.sample(range(9), rng.randint(5, 7))}, {"x": [5, 1, 3, 2, 0]}, {"x": [5, 1, 3, 1, 0]}),
        (
            lambda rng: (lambda cap: {"cap": cap, "x": [rng.randint(1, cap) for _ in range(rng.randint(1, 9))]})(
                rng.randint(3, 20)
            ),
            {"cap": 5, "x": [5, 2]},
            {"cap": 5, "x": [6, 2]},
        ),
        (
            lambda rng: (lambda n: {"x": [rng.randint(0, 9)] * n, "y": [rng.randint(0, 9)] * n})(rng.randint(5, 12)),
            {"x": [1] * 6, "y": [2] * 6},
            {"x": [1] * 6, "y": [2] * 7},
        ),
        (
            lambda rng: [tuple(rng.sample(range(6), 2)) for _ in range(rng.randint(5, 9))],
            [(0, 3), (3, 0), (5, 1), (0, 1), (1, 2)],
            [(0, 3), (3, 3), (5, 1), (0, 1), (1, 2)],
        ),
    ],
    ids=["sorted", "distinct", "capacity", "as long", "different ends"],
)
def test_changed_instances_keep_what_all_drawn_ones_have(draw: Any, inside: Any, outside: Any) -> None:
    shape = _draws(draw)
    assert shape.admits(data_of(shape.schema, {WRAP: inside}))
    assert not shape.admits(data_of(shape.schema, {WRAP: outside}))


def test_few_instances_show_nothing_that_is_kept() -> None:
    assert not shape_of([{"x": [1, 2, 3]}] * 19).kept and shape_of([{"x": [1, 2, 3]}] * 20).kept


def test_what_only_the_user_knows_is_said_by_valid() -> None:
    """Even numbers alone: changed ones may be odd, and are none."""

    def draw(rng: Random) -> dict[str, Any]:
        return {"n": 2 * rng.randint(1, 500)}

    claim = draw, lambda x: x["n"], lambda x: x["n"] + x["n"] % 2, 1
    refuted = try_claim(*claim, out=None)
    assert refuted.refuted and "if it is no instance, say so with valid=" in refuted.to_text()
    assert not try_claim(*claim, out=None, valid=lambda x: x["n"] % 2 == 0).refuted


def test_smaller_instances_of_the_user_are_tried() -> None:
    """Two jobs become one of the sum of their times, which no general step does."""

    def draw(rng: Random) -> list[int]:
        return [rng.randint(1, 30) for _ in range(rng.randint(2, 6))]

    def merged(jobs: list[int]) -> Any:
        yield from ([*jobs[:k], jobs[k] + jobs[k + 1], *jobs[k + 2 :]] for k in range(len(jobs) - 1))

    def exact(jobs: list[int]) -> int:
        return 1

    def heuristic(jobs: list[int]) -> int:
        return 2 if sum(jobs) >= 40 else 1

    alone = try_claim(draw, exact, heuristic, out=None, valid=lambda jobs: max(jobs) <= 30)
    helped = try_claim(draw, exact, heuristic, out=None, smaller=merged)
    assert alone.tightest is not None and helped.tightest is not None
    assert sum(helped.tightest.instance) >= 40 and len(helped.tightest.instance) <= len(alone.tightest.instance)


def test_brute_force() -> None:
    least = brute_force(lambda n: range(n), lambda n, k: (k - n) ** 2)
    most = brute_force(lambda n: range(n), lambda _, k: k, "max")
    assert (least(4), most(4), least(0), most(0)) == (1, 3, None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heuristic": lambda _: None}, r"^mine: heuristic: returned nothing, on 5$"),
        ({"heuristic": lambda _: "3"}, r"^mine: heuristic: must return a number, got '3', on 5$"),
        ({"heuristic": lambda _: True}, r"^mine: heuristic: must return a number, got True, on 5$"),
        ({"exact": lambda _: float("nan")}, r"^mine: exact: must be finite, got nan, on 5$"),
        ({"exact": lambda n: n / 0}, r"^mine: exact: raised ZeroDivisionError: division by zero, on 5$"),
        ({"bound": lambda _: []}, r"^mine: bound: must return a number, got \[\], on 5$"),
        (
            {"draw": lambda _: {"a": [1, {2}]}},
            r"^draw: a\[1\]: must be a dict, list, .* or word, got \{2\}$",
        ),
        ({"draw": lambda _: {1: 2}}, r"^draw: the instance: keys must be words, got 1$"),
        (
            {"draw": lambda _: float("nan")},
            r"^draw: the instance: must be a dict, .*, got nan$",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_instance(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"draw": lambda _: 5, "exact": lambda n: n, "heuristic": lambda n: n, "bound": 1}
    with pytest.raises(InputError, match=message):
        try_claim(**{**good, **change}, name="mine", out=None)


def test_functions_that_raise_on_changed_instances_are_counted() -> None:
    def heuristic(x: dict[str, Any]) -> int:
        return x["n"] // (x["n"] != 77) if x["n"] % 7 else x["n"] // (x["n"] % 2 == 0)

    result = try_claim(lambda rng: {"n": 2 * rng.randint(1, 60)}, lambda x: x["n"], heuristic, 1, out=None, draws=50)
    assert result.raised and f"{result.raised} more left out on which a function raised" in result.to_text()


# As pytest sees it.


def test_the_fixture_tells_the_counterexample_and_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_mine.py").write_text(
        "from random import Random\n\n\n"
        "def test_mine(claim):\n"
        "    claim(lambda rng: [rng.randint(1, 9)], sum, lambda x: sum(x) + (x[0] > 6), 1, draws=30)\n\n\n"
        "def test_true(claim):\n"
        "    assert claim(lambda rng: [rng.randint(1, 9)], sum, sum, 1, draws=30).power == 1\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed, 1 passed" in run.stdout and "test_mine: refuted" in run.stdout, run.stdout + run.stderr
    assert json.loads((tmp_path / "counterexamples" / "test_mine.json").read_text())["instance"] == [7]
    light = (
        "import sys, schedgap.tools.claims.plugin; print(sorted({'numpy', 'pandas', 'pydantic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", light], capture_output=True, text=True).stdout.strip() == "[]"


def test_grahams_bound_takes_twenty_lines_and_one_import(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 20 and sum("import" in line for line in lines) == 1
    names: dict[str, Any] = {}
    exec(compile(code, "claims.md", "exec"), names)
    names["test_graham"]()


def test_what_the_page_shows_of_a_claim_that_is_too_sharp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(page.split("```python\n")[1].split("```")[0], "claims.md", "exec"), names)
    with pytest.raises(AssertionError) as told:
        names["check_claim"](names["draw"], names["optimum"], names["list_scheduling"], bound=Fraction(7, 5))
    assert page.split("```\n")[2].strip() == str(told.value).strip()
