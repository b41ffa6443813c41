"""Hostile ways of answering: what the judge makes of each, and of the answer after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import answering

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.rar_ddls import PROBLEM
from schedgap.formulations.common.errors import InputError
from schedgap.tools.evaluation.contained import Bounds, Contained, Failed

INSTANCE = make_instance(PROBLEM, "tiny", 0, {"ample": True})


@pytest.fixture(scope="module")
def judged() -> Iterator[Contained]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(answering.__file__).parents[1]), prepend=os.pathsep)
        name = f"{answering.__file__}:scheduler"
        with Contained(name, PROBLEM, Bounds(seconds=600.0, warm=False)) as contained:
            yield contained


def told(judged: Contained, seed: int) -> str:
    try:
        solution = judged(INSTANCE, seed=seed)
        report = PROBLEM.check(INSTANCE, solution or {})
    except Failed as failed:
        return f"{failed.kind}: {failed}"
    except InputError as error:
        return f"refused: {error}"
    return "feasible" if report.objective is not None and not report.violations else "infeasible"


LATE = "answer: sent an answer that was not asked for"
NO_JSON = "answer: sent what is no JSON: "
WHOLE = "refused: solution: start.j0: must be a whole number, got "
NAMED = "refused: solution: start: the instance has no job "
MISSING = 'refused: solution: start: job "j0" is missing'
NO_TYPE = "error: TypeError: Object of type {} is not JSON serializable"
COMES_TO = {
    "many_digits": (NO_JSON + "Exceeds the limit", "feasible"),
    "beyond_all_numbers": (WHOLE + "Infinity", "feasible"),
    "keys_twice": ("feasible", "feasible"),  # the last of them counts
    "lists_that_are_not_counted": (NO_JSON, "feasible"),
    "a_mark_of_bytes": (NO_JSON + "Unexpected UTF-8 BOM", "feasible"),
    "no_text": (NO_JSON + "'utf-8' codec", "feasible"),
    "a_list_of_answers": ("answer: sent no JSON object", "feasible"),
    "an_error_that_is_deep": ("error: {'\\x1b[2J': [[[1]]]}", "feasible"),
    "a_token_of_another_kind": (LATE, "feasible"),
    "another_ahead": ("feasible", LATE),
    "more_than_there_is": ("answer: sent 18446744073709551615 bytes, at most 16777216 are taken", "feasible"),
    "half_a_message": ("died: its process ended with status 7", "feasible"),
    "answers_into_a_file": ("died: its process answers no more", "feasible"),
    "hears_no_more": ("feasible", "died: its process ended with status 1"),
    "true_as_a_slot": (WHOLE + "true", "feasible"),
    "a_slot_of_three_hundred_digits": (WHOLE + "1e+308", "feasible"),
    "a_number_that_lies": ("infeasible", "feasible"),  # it counts as what it is
    "a_dict_that_lies": (MISSING, "feasible"),
    "half_a_letter": (NAMED + r'"\ud800\u001b[2J\u0000"', "feasible"),
    "numbers_as_names": (NAMED + '"7"', "feasible"),
    "itself": ("error: ValueError: Circular reference detected", "feasible"),
    "what_acts_when_unpickled": (NO_TYPE.format("Unpickled"), "feasible"),
    "a_coroutine": (NO_TYPE.format("coroutine"), "feasible"),
    "no_words": ("died: its process ended with status 1", "feasible"),
    "a_name_that_steers": ("answer: sent 50000097 bytes, at most 16777216 are taken", "feasible"),
    "a_file_that_steers": (r"error: ValueError (\u001b[2J\u202e.py, line 1)", "feasible"),
    "another_instance": (MISSING, "feasible"),
    "what_lies_about": ("error: LookupError: no answer lies about", "feasible"),
    "a_module_for_the_next": ("died: its process ended with status 7", "feasible"),
    "an_end_when_asked_again": ("feasible", "died: its process ended with status 7"),
    "killed_by_itself": ("died: its process ended by signal 9", "feasible"),
}
"""What each way comes to, by how it begins, and what an honest answer comes to after it."""


@pytest.mark.parametrize("name", answering.WAYS)
def test_what_a_hostile_answer_comes_to(judged: Contained, name: str) -> None:
    """One line that steers no terminal, or judged as what it says; at most the next answer is lost with it."""
    seed = list(answering.WAYS).index(name)
    said = [told(judged, seed), told(judged, len(COMES_TO))]
    assert [one.startswith(begins) for one, begins in zip(said, COMES_TO[name], strict=True)] == [True, True], said
    assert all(one.isprintable() and len(one) < 400 for one in said)
    assert "feasible" in (said[1], told(judged, len(COMES_TO)))
