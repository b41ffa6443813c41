"""Questions that single items ask of their data: data that must flip each, and no question without such data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import MAIN, Item
from schedgap.tools.laboratory.papers import NAMES, find_paper
from schedgap.tools.laboratory.rules import Fact, State

_ROWS = [[1, 10.0, 1.0], [8, 10.0, 9.0], [16, 10.0, 99.0]]
"""All-reduces at once, their size, their time."""
_LINE = [[1, batch, rate, rate] for batch, rate in ((8, 10.0), (16, 20.0), (32, 40.0))]
_BENT = [[1, batch, rate, rate] for batch, rate in ((8, 10.0), (16, 40.0), (32, 10.0))]

FLIPS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "eta of eq. (5) is above 0": (
        {"fit": {"eta": [0.1, 0.3], "fit": [0.0, 0.0, 0.2]}},
        {"fit": {"eta": [-0.1, 0.3], "fit": [0.0, 0.0, 0.2]}},
    ),
    "every measured time lies above": ({"fit": {"above": [True, True]}}, {"fit": {"above": [True, False]}}),
    "all errors of the fit are within 10%": (
        {"fit": {"rows": _ROWS, "residuals": [0.01, -0.09, 0.5]}},
        {"fit": {"rows": _ROWS, "residuals": [0.01, -0.11, 0.0]}},
    ),
    "Gavel: rounds, share": (
        {"Gavel": {"held": [5 / 6, 4 / 6, 5 / 6, 5 / 6, 5 / 6, 4 / 6], "gru": 0.778}},
        {"Gavel": {"held": [5 / 6, 4 / 6, 5 / 6, 5 / 6, 5 / 6], "gru": 0.78}},
    ),
    "some reading of Hadar ends": (
        {"Gavel": {"ttd": 6.0}, "Hadar (density)": {"ttd": 7.0}, "Hadar (literal)": {"ttd": 5.0}},
        {"Gavel": {"ttd": 6.0}, "Hadar (density)": {"ttd": 6.0}, "Hadar (literal)": {"ttd": None}},
    ),
    "HadarE: every node busy": ({"HadarE": {"held": [1.0, 1.0, 0.2]}}, {"HadarE": {"held": [1.0, 0.8, 0.2]}}),
    "HadarE shorter": (
        {"HadarE": {"ttd": 1.0}, "Hadar": {"ttd": 2.0}},
        {"HadarE": {"ttd": 2.0}, "Hadar": {"ttd": 2.0}},
    ),
    "error below 15%": ({"*": {"error": 0.14}}, {"*": {"error": 0.16}}),
    "bert: R^2 of a line": ({"bert": {"rows": _LINE}}, {"bert": {"rows": _BENT}}),
    "the largest ratio is at least 6": (
        {"*": {"ratio": [1.0], "largest": 6.0, "median": 2.0}},
        {"*": {"ratio": [1.0], "largest": 5.9, "median": 2.0}},
    ),
    "yolov3: largest at batch 16": (
        {"yolov3": {"rows": [[1, 8, 10.0], [1, 16, 11.0], [2, 8, 30.0], [2, 16, 20.0], [4, 8, 5.0], [4, 16, 6.0]]}},
        {"yolov3": {"rows": [[1, 8, 10.0], [1, 16, 11.0], [2, 8, 30.0], [2, 16, 20.0]]}},
    ),
    "yolov3 at batch 16: the smallest gain": (
        {"yolov3": {"rows": [[8, 16, 10.0], [12, 16, 14.0], [16, 16, 14.0]]}},
        {"yolov3": {"rows": [[8, 16, 10.0], [12, 16, 11.0], [16, 16, 14.0]]}},
    ),
    "every share of the optimum above a third": (
        {"*": {"objective": 34.0}, "column generation": {"bound": 100.0}},
        {"*": {"objective": 33.0}, "column generation": {"bound": 100.0}},
    ),
    "every slot's share of its bound above a third": (
        {"*": {"least slot share": 0.34}},
        {"*": {"least slot share": 0.33}},
    ),
}
"""By a part of the question: what has to hold, and what has to fail; ``*`` is every series that is not named."""


def _facts() -> Iterator[tuple[str, Item, Fact]]:
    for number in NAMES:
        for item in find_paper(number).items:
            for claim in item.claims:
                for rule in claim.parts:
                    if isinstance(rule, Fact):
                        yield f"{number} {item.id}: {rule.what}", item, rule


FACTS: Sequence[tuple[str, Item, Fact]] = tuple(_facts())


def _data(item: Item, told: Mapping[str, Any]) -> Data:
    found = {
        (choice, x, series.label): [told.get(series.label, told.get("*", {}))]
        for choice in (MAIN, *(one.label for one in item.choices))
        for x in item.points
        for series in item.series
    }
    return Data(found, (1000,))


@pytest.mark.parametrize(("item", "fact"), [(item, fact) for _, item, fact in FACTS], ids=[name for name, *_ in FACTS])
def test_data_flips_every_question(item: Item, fact: Fact) -> None:
    if fact.what.startswith("some makespan of Table II"):
        assert fact.judge(_data(item, {"*": {}})).state is State.FAILS, "the print contradicts itself: no data flip it"
        return
    ((holds, fails),) = (flips for part, flips in FLIPS.items() if part in fact.what)
    assert fact.judge(_data(item, holds)).state is State.HOLDS
    assert fact.judge(_data(item, fails)).state is State.FAILS


def test_every_kind_of_question_is_flipped() -> None:
    assert len(FACTS) >= len(FLIPS)
    assert all(any(part in name for name, *_ in FACTS) for part in FLIPS)


def test_use_is_compared_while_every_run_goes_on() -> None:
    """The claims of Figure 3 of paper 002 over whole runs, and over the rounds before the first of them ends."""
    (item,) = (one for one in find_paper("002").items if one.id == "figure-3")
    claim = item.claims[0]
    less, more = {"held": [0.5, 0.5, 1.0, 1.0], "gru": 0.75}, {"held": [0.9, 0.9], "gru": 0.7}
    for yarn, others, together in ((more, less, State.HOLDS), (less, more, State.FAILS)):
        data = _data(item, {"YARN-CS": yarn, "*": others})
        whole = {State.HOLDS: State.FAILS, State.FAILS: State.HOLDS}[together]
        for choice, state in ((MAIN, whole), ("rounds in which every run goes on", together)):
            assert choice == MAIN or choice in (claim.choices or ())
            assert [rule.judge(data.under(choice)).state for rule in claim.parts] == [state] * len(claim.parts)
