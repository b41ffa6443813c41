"""What the checker accepts is kept, also where parts disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.toy import ToyInstance, toy

from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import Disagreement
from schedgap.solvers.result import Result, SolveOptions, Status

INSTANCE = ToyInstance.parse({"problem": "toy", "machines": 2, "jobs": [3, 2, 1]})


def disagreeing(instance: Any, options: SolveOptions) -> Result:
    """Reports solutions of 5 and of 6, then one of 3 with another objective than the checker's."""
    assert options.report is not None
    options.report({"machine": [0, 0, 1]}, 5.0, None)
    options.report({"machine": [0, 0, 0]}, 6.0, None)
    return Result(Status.FEASIBLE, 2.0, None, {"machine": [0, 1, 1]})


def broken(instance: Any, options: SolveOptions) -> Result:
    """Reports a solution of 6, then one that the checker refuses."""
    assert options.report is not None
    options.report({"machine": [0, 0, 0]}, 6.0, None)
    return Result(Status.FEASIBLE, 2.0, None, {"machine": [0, 1, 7]})


@pytest.mark.parametrize(("work", "kept"), [(disagreeing, [0, 1, 1]), (broken, [0, 0, 0])])
def test_a_disagreement_keeps_what_the_checker_accepts(work: Any, kept: list[int], tmp_path: Path) -> None:
    method = Method("odd", "disagrees", Kind.EXACT, lambda: {"odd": work})
    with pytest.raises(Disagreement) as caught:
        run_method(toy(), INSTANCE, method, SolveOptions(), disagreements=tmp_path)
    assert caught.value.accepted == {"machine": kept}
    written = next(tmp_path.glob("*.solution.json"))
    assert json.loads(written.read_text()) == {"machine": kept} and str(written) in str(caught.value)


def test_without_a_solution_there_is_no_file(tmp_path: Path) -> None:
    def odd(instance: Any, options: SolveOptions) -> Result:
        return Result(Status.FEASIBLE, 2.0, None, {"machine": [0, 1, 7]})

    method = Method("odd", "disagrees", Kind.EXACT, lambda: {"odd": odd})
    with pytest.raises(Disagreement) as caught:
        run_method(toy(), INSTANCE, method, SolveOptions(), disagreements=tmp_path)
    assert caught.value.accepted is None and not list(tmp_path.glob("*.solution.json"))
