"""The tables of the front desk: everything they name is there and takes what it is given."""

import inspect
from dataclasses import fields

import pytest

from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import FamilyProblem
from schedgap.catalogue.registry import BUILT_IN, find_problem
from schedgap.heuristics.common.guarantee import Guarantee

TAKEN = {"check": 2, "model_size": 1, "bound": 1, "quick": 1, "first_seconds": 1, "warm_up": 1}
"""Functions of a problem, with how many arguments each is called with."""


def _fits(function: object, arguments: int, **keywords: object) -> bool:
    assert callable(function)
    inspect.signature(function).bind(*[None] * arguments, **keywords)
    return True


@pytest.mark.parametrize("problem_id", BUILT_IN)
def test_functions_and_forms_are_there_and_take_what_they_are_given(problem_id: str) -> None:
    problem = find_problem(problem_id)
    assert isinstance(problem, FamilyProblem)
    parts = problem.parts()
    assert {field.name for field in fields(parts)} == TAKEN.keys()
    assert all(isinstance(claim, Guarantee) for claim in problem.guarantees())
    for part, arguments in TAKEN.items():
        assert getattr(parts, part) is None or _fits(getattr(parts, part), arguments), part
    for form in problem.forms:
        assert _fits(form.build, 2), form.id
        assert form.changed is None or _fits(form.changed, 4), form.id


@pytest.mark.parametrize("problem_id", BUILT_IN)
def test_methods_are_there_and_take_what_they_are_given(problem_id: str) -> None:
    for method in find_problem(problem_id).methods:
        if method.kind is Kind.HEURISTIC:
            assert _fits(method.call, 1, seed=0), method.id
        elif method.kind is not Kind.ENGINE:
            assert _fits(method.call, 2), method.id
