"""Families: forms, polynomials, generators, and a search from nothing but hunts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.toy import toy

from schedgap import generate, hunt_family
from schedgap.benchmarks.hunt.edits import fitted as cut
from schedgap.benchmarks.hunt.limits import parse_limits
from schedgap.benchmarks.hunt.starts import starts_of
from schedgap.benchmarks.hunt.stretch import walk as walk_of
from schedgap.benchmarks.hunt.target import Judge, Probe, find_target
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError
from schedgap.tools.families import generator, regularity, search
from schedgap.tools.families.family import read_family
from schedgap.tools.families.forms import forms_of, instance_of
from schedgap.tools.families.generator import Generator, continued, fitted
from schedgap.tools.families.points import Point, closed, point
from schedgap.tools.families.polynomials import Polynomial, fit, quotient
from schedgap.tools.families.run import Lifted
from schedgap.tools.families.run import hunt_family as hunt_family_of
from schedgap.tools.families.variants import variants

FOLDER = Path(__file__).parents[3] / "docs" / "counterexamples" / "families"
STORED = sorted(FOLDER.glob("*.json"))


def _values(*numbers: int | str, begin: int = 2) -> dict[int, Fraction]:
    return {begin + k: Fraction(number) for k, number in enumerate(numbers)}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (_values(3, 3, 3), "3"),
        (_values(2, 3, 4), "n"),
        (_values(2, 6, 12, 20), "n^2 - n"),
        (_values("3/2", 3, 5, "15/2"), "1/2*n^2 - 1/2*n + 1/2"),
        (_values(0, 0), "0"),
    ],
)
def test_polynomials_are_recovered_and_read_back(values: dict[int, Fraction], text: str) -> None:
    found = fit(values)
    assert found is not None and all(found(n) == value for n, value in values.items())
    assert Polynomial.read(str(found)) == found
    if text != "1/2*n^2 - 1/2*n + 1/2":
        assert str(found) == text


def test_noise_is_refused() -> None:
    assert fit(_values(2, 3, 5), most=1) is None
    assert fit(_values(2, 6, 12, 21)) is None
    assert fit(_values(1, 2, 4, 8, 16)) is None


@pytest.mark.parametrize("text", ["", "n^", "2 n n", "x", "n - ", "1/0", "2**n", "n^2 n"])
def test_what_is_no_polynomial_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="must be a polynomial of n"):
        Polynomial.read(text)


def test_a_ratio_is_in_lowest_terms() -> None:
    ratio = quotient(Polynomial.read("2n^2 - n"), Polynomial.read("n^2"))
    assert str(ratio) == "2 - 1/n" and ratio.limit == 2 and ratio.growth == 0
    assert str(quotient(Polynomial.read("n^2 + n"), Polynomial.read("2n + 2"))) == "1/2*n"
    assert str(quotient(Polynomial.read("6n - 3"), Polynomial.read("3n"))) == "2 - 1/n"


def _listed(n: int) -> dict[str, Any]:
    """The tight instances of list scheduling, as any heap of jobs with any ids."""
    short = [{"id": f"x{k}", "iterations": 1} for k in range(n * (n - 1))]
    return {
        "servers": [{"id": "s", "gpus": n}],
        "jobs": [*short, {"id": "long", "iterations": n}],
        "horizon": 2 * n - 1,
    }


def _rising(n: int) -> dict[str, Any]:
    """Two runs whose numbers rise and fall evenly; the step of the first is not seen where n = 2."""
    first = [{"id": f"a{t}", "arrival": t, "gpus": t} for t in range(1, n)]
    second = [{"id": f"b{t}", "arrival": t, "gpus": 5 * n + 1 - t} for t in range(1, n + 1)]
    return {"horizon": n, "jobs": first + second}


@pytest.mark.parametrize("make", [_listed, _rising])
def test_a_generator_is_fitted_on_three_sizes_and_holds_at_others(make: Any) -> None:
    found = fitted({n: [make(n)] for n in (2, 3, 4)})[0]
    for n in (1, 5, 9):
        assert found(n) == instance_of(forms_of(make(n))[0]), n
    assert Generator.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


def test_instances_without_a_pattern_give_no_generator() -> None:
    other = {**_listed(3), "jobs": _rising(3)["jobs"]}
    assert fitted({2: [_listed(2)], 3: [other], 4: [_listed(4)]}) == []
    uneven = {n: {"jobs": [{"id": "a", "size": size}]} for n, size in zip(range(2, 7), (1, 2, 4, 8, 16), strict=True)}
    assert fitted({n: [data] for n, data in uneven.items()}) == []


def test_numbers_between_jobs_are_lifted_by_runs() -> None:
    def shared(n: int) -> dict[str, Any]:
        jobs = [{"id": f"k{i}", "gpus": 1} for i in range(n)] + [{"id": "big", "gpus": n}]
        return {"jobs": jobs, "interference": {f"k{i}": {"big": 1.5} for i in range(n)}}

    found = fitted({n: [shared(n)] for n in (2, 3, 4)})[0]
    assert found(5)["interference"] == {f"j{i}": {"j5": 1.5} for i in range(5)}
    mixed = shared(4)
    mixed["interference"]["k1"]["k2"] = 1.2  # not the same between all jobs of a run
    assert all(len(form["lists"]["jobs"]) > 2 for form in forms_of(mixed))


def test_one_instance_suggests_the_next() -> None:
    made = [data["jobs"] for data in continued(_listed(2), 2, fixed={"servers"})]
    assert instance_of(forms_of(_listed(3))[0])["jobs"] in made


def test_a_line_through_two_sizes_settles_what_one_leaves_open() -> None:
    def member(n: int, budgets: Sequence[int]) -> dict[str, Any]:
        jobs = [{"id": f"j{k}", "demand": k + 2, "budget": budget} for k, budget in enumerate(budgets)]
        return {"horizon": n, "jobs": jobs}

    def tried(data: Any) -> Probe | None:
        """A job has to be run once, and cannot be run twice."""
        good = all(job["demand"] == k + 2 and 0 <= job["budget"] - k - 2 < k + 2 for k, job in enumerate(data["jobs"]))
        return Probe(data, {}, 1.5) if good and data["horizon"] == len(data["jobs"]) + 1 else None

    kept = {2: member(2, [3]), 3: member(3, [3, 3])}
    assert not any(tried(one(4)) for one in fitted({n: [data] for n, data in kept.items()}, 1))
    around = {n: [data, *(o.data for o in variants(Probe(data, {}, 1.5), tried))] for n, data in kept.items()}
    assert any(all(tried(one(n)) for n in range(2, 9)) for one in fitted(around, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"generator": None}, "generator: must be an object"),
        ({"generator": {"rest": {"x": "= n^"}, "lists": {}, "pairs": {}}}, "generator.rest.x: must be a polynomial"),
        ({"generator": {"rest": {}, "lists": {"jobs": [{"count": 1}]}, "pairs": {}}}, r"lists.jobs\[0\]: must be"),
        ({"family": 7}, "this is no family"),
        ({"points": [{}]}, "is no family"),
        ({"problem": "none"}, "unknown problem 'none'"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "FAMILY.json"
    path.write_text(json.dumps({**json.loads(STORED[0].read_text()), **change}))
    with pytest.raises(InputError, match=message) as caught:
        generate(str(path), n=3)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"n": 0}, {"n": "x"}, {"n": "9" * 5000}, {"n": 3, "jobs": 2}])
def test_a_family_takes_its_size(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="a family takes --set n=SIZE"):
        generate(str(STORED[0]), **settings)


def test_few_values_are_no_evidence() -> None:
    points = [Point(n, Fraction(2 * n - 1), Fraction(n), "claimed", n) for n in (2, 3, 4, 5, 6)]
    found = closed(points, 1)
    assert found is not None and str(found.ratio) == "2 - 1/n"
    assert closed(points[:3], 1) is None  # two numbers fit a line, one beyond is too little
    bent = [*points[:4], Point(6, Fraction(10), Fraction(6), "claimed", 6)]
    assert closed(bent, 1) is None


def test_words_are_limits_too() -> None:
    target = find_target("ddljs/gadget")
    limits = parse_limits(target.problem, target.method, {"jobs.utility.kind": "linear+sqrt"})
    space = starts_of(target, limits).space
    data = generate("ddljs", seed=0).to_dict()
    assert {job["utility"]["kind"] for job in data["jobs"]} == {"sigmoid", "linear"}
    assert {job["utility"]["kind"] for job in cut(data, space)["jobs"]} == {"linear"}
    with pytest.raises(InputError, match="unknown word 'cubic'"):
        parse_limits(target.problem, target.method, {"jobs.utility.kind": "cubic"})


@pytest.mark.parametrize(
    ("target", "limits", "message"),
    [
        ("000-theorem-5", {}, "lifts the ratio of a heuristic"),
        ("rar-ddls/ls", {"parameter": "gpus"}, "unknown list or number 'gpus'"),
        ("rar-ddls/ls", {"parameter": "servers.gpus", "servers.gpus": 3}, "is the parameter of the family"),
        ("rar-ddls/ls", {"sizes": "2..3"}, "three sizes or more"),
        ("rar-ddls/ls", {"sizes": "many"}, "must be LOW..HIGH"),
        ("rar-ddls/ls", {"beyond": -1}, "beyond"),
        ("rar-ddls/ls", {"nothing": 1}, "unknown limit 'nothing'"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, target: str, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        hunt_family(target, limits=limits, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_two_less_one_over_n_from_nothing_but_hunts(tmp_path: Path, short: None) -> None:
    limits: dict[str, object] = {
        "parameter": "servers.gpus",
        "servers": 1,
        "jobs.gpus": 1,
        "jobs.iterations": "1..4",
        "jobs.backward_time": "1..1",
        "network.server_overhead": "0..0",
        "horizon": "30..30",
        "evaluations": 60,
        "suggested": 150,
        "beyond": 2,
    }
    found = hunt_family("rar-ddls/ls", limits=limits, out=tmp_path / "f")
    assert found.families and found.path is not None
    best = found.families[0]
    assert best.closed is not None and str(best.closed.ratio) == "2 - 1/n"
    assert best.fitted == (2, 3, 4) and best.beyond == (5, 6)
    assert "a conjecture" in found.to_text()
    again = read_family(found.path)
    assert again.to_dict() == best.to_dict()
    built = generate(str(found.path), n=7).to_dict()
    assert built["servers"][0]["gpus"] == 7 and len(built["jobs"]) == 43


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that makes fewer instances regular, with fewer steps."""
    for module, name, less in (
        (search, "KEPT", 1),
        (search, "TRIED", 4),
        (generator, "MOST_WAYS", 80),
        (generator, "MOST_CONTINUED", 1),
    ):
        monkeypatch.setattr(module, name, less)
    monkeypatch.setattr(search, "plateau", lambda *_: [])
    monkeypatch.setattr(search, "variants", lambda *_: [])
    monkeypatch.setattr(search, "made_regular", partial(regularity.made_regular, steps=0))


def test_an_interrupted_search_says_what_it_found_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    limits: dict[str, Any] = {"machines": 2, "limit": "1000..1000", "evaluations": 24, "suggested": 5}

    def searched(folder: str, **more: Any) -> Lifted:
        return hunt_family_of("toy/list", problem=toy(), limits=limits, out=tmp_path / folder, **more)

    with monkeypatch.context() as patched:
        calls = itertools.count()

        def stopped(*args: Any) -> Any:
            if next(calls) == 12:  # in the second hunt
                raise KeyboardInterrupt
            return walk_of(*args)

        patched.setattr("schedgap.benchmarks.hunt.work.walk", stopped)
        cut = searched("cut")
    assert not cut.finished and "interrupted; hunts found" in cut.to_text()
    again, whole = searched("cut", resume=True), searched("whole")
    assert again.hunted == whole.hunted and again.finished
    with pytest.raises(InputError, match="the hunt there has limits"):
        limits["suggested"] = 21
        searched("cut", resume=True)


DEFECTS = [("broken", "rejected by the checker"), ("raising", "ZeroDivisionError: on purpose")]


@pytest.mark.parametrize(("name", "message"), DEFECTS)
def test_defects_are_told_in_the_end(tmp_path: Path, name: str, message: str) -> None:
    limits: dict[str, Any] = {"machines": 2, "limit": "1000..1000", "evaluations": 20, "suggested": 20}
    found = hunt_family_of(f"toy/{name}", problem=toy(name), limits=limits, out=tmp_path / "f")
    assert not found.families and found.defects
    assert all(message in line and Path(line.split("; the instance is in ")[1]).is_file() for line in found.defects)


@pytest.mark.parametrize(("name", "message"), DEFECTS)
def test_a_defect_beyond_the_hunts_is_told_too(tmp_path: Path, name: str, message: str) -> None:
    judge = Judge(find_target(f"toy/{name}", toy(name)), 1.0, tmp_path)
    data = {"problem": "toy", "machines": 1, "jobs": [3, 2]}
    assert point(judge, 2, data, {}) is None
    assert message in judge.defects[0] and len(list(tmp_path.glob("*.json"))) == 1


def test_a_command_that_met_with_a_defect_ends_with_status_5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    met = Lifted(find_target("rar-ddls/ls"), (), {}, tmp_path, defects=("parts disagree; the instance is in x", "y"))
    monkeypatch.setattr("schedgap.hunt_family", lambda *_, **__: met)
    assert main(["hunt", "rar-ddls/ls", "--family"]) == 5
    assert capsys.readouterr().err == "schedgap: error: parts disagree; the instance is in x (and 1 more)\n"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_what_stored_families_say_is_computed_again(path: Path) -> None:
    family = read_family(path)
    assert family.to_dict() == json.loads(path.read_text())
    target = find_target(f"{family.problem.id}/{family.method}")
    for known in family.points[:2]:
        made = point(Judge(target, 10.0), known.n, family.generator(known.n), family.options)
        assert made is not None
        assert (made.objective, made.optimum) == (known.objective, known.optimum)
    if family.closed is not None:
        assert all(family.closed.ratio(p.n) == p.ratio(target.problem.sense) for p in family.points)
