"""Typed solutions: what is refused, and in which words, whatever the problem."""

from typing import Any

import numpy as np
import pytest

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.g_vne.instance import GVneSolution
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.int64(5), 'solution: start.j0: must be a whole number, got "np.int64(5)"'),
        ({1}, 'solution: start.j0: must be a whole number, got "{1}"'),
        (True, "solution: start.j0: must be a whole number, got true"),
        (2.0, "solution: start.j0: must be a whole number, got 2.0"),
        (10**30, f"solution: start.j0: must be less than or equal to 1000000000, got {10**30}"),
    ],
)
def test_a_value_of_another_kind_is_shown_as_it_is(value: Any, line: str) -> None:
    with pytest.raises(InputError) as raised:
        RarDdlsSolution.parse({"start": {"j0": value}, "placement": {"j0": {"s0": 1}}})
    assert str(raised.value) == line


def test_more_than_one_fault_is_counted_and_the_source_is_named() -> None:
    with pytest.raises(InputError) as raised:
        RarDdlsSolution.parse({"start": {"a": 1.5, "b": None}, "placement": {}}, "my.json")
    assert str(raised.value) == "my.json: start.a: must be a whole number, got 1.5 (and 1 more)"


@pytest.mark.parametrize("hosts", [{"a", "b"}, iter("ab"), "ab", {"a": 1}])
def test_lists_are_lists_or_tuples(hosts: Any) -> None:
    with pytest.raises(InputError, match=r"^solution: rings\.j\.workers: must be a list, got "):
        GVneSolution.parse({"rings": {"j": {"workers": hosts, "routes": []}}})
    given = GVneSolution.parse({"rings": {"j": {"workers": ("a",), "routes": []}}})
    assert given == GVneSolution.parse({"rings": {"j": {"workers": ["a"], "routes": ()}}})


@pytest.mark.parametrize("slot", ["01", "1.0", " 1", "+1", "", "one", 1.0, "-0", "1" * 13, "\N{SUPERSCRIPT TWO}"])
def test_slots_are_written_the_one_way(slot: Any) -> None:
    with pytest.raises(InputError, match=r"^solution: allocation\.j.*whole number"):
        HadarSolution.parse({"allocation": {"j": {slot: []}}})
    assert HadarSolution.parse({"allocation": {"j": {"7": [], -3: []}}}).allocation == {"j": {7: (), -3: ()}}
