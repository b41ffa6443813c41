"""Engines by entry point: those of this package are declared and installed, and SCIP knows where it is believed."""

from __future__ import annotations

import os
import tomllib
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from schedgap.formulations.common.errors import EngineMissing, InputError, ModelRefused
from schedgap.solvers import engines
from schedgap.solvers.engines import GROUP, engine, installed_engines
from schedgap.solvers.result import SolveOptions, Status
from schedgap.tools.testing.small_models import ModelMaker

ONE = SolveOptions(threads=1)
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

TRIED = {
    "highspy": ("1.12.0 1.13.1 1.16.0", "1.11.0 1.14.0 1.15.0 1.15.1 1.17.0"),
    "ortools": ("9.15.6755", "9.14.6206 9.16.0"),
    "pulp": ("3.3.0 3.3.2", "3.2.2 4.0.0"),
    "pyscipopt": ("5.4.0 6.3.0", "5.3.0"),
}
"""Versions with which the tests of engines were run, the lowest and the newest among them; and some that are not let
in: docs/notes/upstream-reports.md says why."""


def allowed(name: str) -> Requirement:
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["scip"]]
    return next(asked for line in lines if (asked := Requirement(line)).name == name)


@pytest.mark.parametrize("name", TRIED)
def test_the_versions_that_are_let_in_are_those_that_were_tried(name: str) -> None:
    asked = allowed(name).specifier
    let_in, refused = (words.split() for words in TRIED[name])
    assert list(asked.filter([*let_in, *refused])) == let_in
    lowest = next(one.version for one in asked if one.operator == ">=")
    assert let_in[0] in (lowest, f"{lowest}.0"), "the lowest version is one that was tried"
    everywhere = [Requirement(line).specifier for line in PROJECT["optional-dependencies"]["test"] if name in line]
    assert everywhere in ([], [asked]), "both extras ask for the same"
    if os.environ.get("SCHEDGAP_ENGINES") == "lowest":  # make lowest
        assert version(name) == let_in[0]
    assert version(name) in asked


def test_what_this_package_declares_is_installed() -> None:
    declared = PROJECT["entry-points"][GROUP]
    assert declared.items() <= {name: entry.value for name, entry in installed_engines().items()}.items(), (
        "install again: pip install -e ."
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [("no_such_module:ENGINE", "No module named 'no_such_module'"), ("json:ENGINE", "has no attribute 'ENGINE'")],
)
def test_an_engine_that_does_not_load_is_missing(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("other", value, GROUP)
    monkeypatch.setattr(engines, "installed_engines", lambda: {"other": entry})
    with pytest.raises(EngineMissing, match=f"engine other: cannot be used here: .*{message}"):
        engine("other")


def test_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "entry_points", lambda group: [EntryPoint("highs", "x:ENGINE", group)])
    with pytest.raises(InputError, match="entry point highs: there is an engine highs already"):
        installed_engines.__wrapped__()


@pytest.mark.parametrize(("size", "doubt"), [(2.0**17, ""), (2.0**19, "the activity of a row goes up to 5.24e+05")])
def test_scip_is_believed_where_its_relative_tolerance_is_less_than_a_whole(size: float, doubt: str) -> None:
    maker = ModelMaker()
    x, y = maker.var(0, size / 2), maker.var(0, size / 2)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0), (y, 1.0)], ">=", size / 2 + 3)
    answer = engine("scip").solve(maker.model(), ONE)
    assert (answer.status, answer.objective) == (Status.OPTIMAL, 3)
    assert answer.doubt.startswith(doubt) and bool(answer.doubt) == bool(doubt)


@pytest.mark.parametrize("number", [1e-10, 1e16])
def test_scip_refuses_numbers_that_it_would_change(number: float) -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 4, integer=False), maker.var(0, 4, integer=False)
    maker.minimise([(x, 1.0)])
    maker.row([(x, number), (y, 1.0)], ">=", 0, "strange")
    with pytest.raises(ModelRefused, match=r"row strange: coefficient .* is too small or too large for SCIP"):
        engine("scip").solve(maker.model(), ONE)


def test_scip_finds_no_bounded_optimum_without_cutting_for_ever() -> None:
    """SCIP 10.0 adds cuts to the unbounded relaxation without end; x0 and x2 can grow."""
    maker = ModelMaker(-1)
    x0, x1, x2 = maker.var(1), maker.var(1), maker.var(-2)
    maker.minimise([(x0, -3.0), (x1, 1.0), (x2, 0.0)])
    maker.row([(x0, 0.5), (x1, -2.0), (x2, 0.5)], "==", -3)
    assert engine("scip").solve(maker.model(), ONE).status is Status.UNBOUNDED
