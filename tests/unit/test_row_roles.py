"""What every family of rows of all problems cuts off, as data; and when two equals can change places."""

from __future__ import annotations

from fractions import Fraction

import pytest

import schedgap
from schedgap.catalogue.registry import BUILT_IN, find_problem
from schedgap.formulations.common.changes import Changes, OwnRow
from schedgap.formulations.common.layout import Layout, Role, RowFamily

PRESETS: dict[str, tuple[str, dict[str, object]]] = {"ddl-cluster": ("tiny", {})}


def _layouts(problem: str) -> list[tuple[str, bool, Layout]]:
    row = find_problem(problem)
    preset, settings = PRESETS.get(problem, (None, {}))
    instance = schedgap.generate(problem, preset, seed=1, **settings)
    found = []
    for tighten in (False, True):
        form = row.default_form(tighten)
        if form is not None:
            model = row.model(instance, form.id, tighten)
            assert model is not None
            assert model.layout is not None
            found.append((form.id, tighten, model.layout))
    return found


@pytest.mark.parametrize("problem", list(BUILT_IN))
def test_a_model_that_may_be_changed_has_no_row_that_cuts_a_schedule(problem: str) -> None:
    for form, tighten, layout in _layouts(problem):
        for family in layout.rows if not tighten else ():
            assert layout.laws[family].role in (Role.DEFINING, Role.VALID), (form, family)
        for family, law in layout.laws.items():
            assert bool(law.why) == (law.role is not Role.DEFINING), (form, family)


def test_a_row_that_cuts_schedules_must_say_why() -> None:
    with pytest.raises(ValueError, match="reason"):
        RowFamily("", "equal jobs in order", Role.SYMMETRY)


def _changes(*rows: dict[tuple[str, tuple[str | int, ...]], int], goal: dict | None = None) -> Changes:
    own = [
        OwnRow(f"r{n}", {place: Fraction(c) for place, c in row.items()}, -1, Fraction(1)) for n, row in enumerate(rows)
    ]
    return Changes(tuple(own), goal, indices={"start": ("job", "slot"), "beside": ("job", "job")})


def test_equals_change_places_until_a_row_tells_them_apart() -> None:
    only_a = {("start", ("a", 1)): 1}
    only_b = {("start", ("b", 1)): 1}
    assert not _changes().tell_apart("job", "a", "b")
    assert _changes(only_a).tell_apart("job", "a", "b")
    assert not _changes(only_a).tell_apart("job", "b", "c")
    assert not _changes(only_a, only_b).tell_apart("job", "a", "b")
    assert _changes(only_a, only_a, only_b).tell_apart("job", "a", "b")
    assert _changes(only_a, only_b).tell_apart("job", "a", "c")
    assert not _changes({("beside", ("a", "b")): 1, ("beside", ("b", "a")): 1}).tell_apart("job", "a", "b")
    assert _changes({("beside", ("a", "b")): 1}).tell_apart("job", "a", "b")
    assert _changes(goal=only_a).tell_apart("job", "a", "b")
    assert not _changes(goal=only_a | only_b).tell_apart("job", "a", "b")
