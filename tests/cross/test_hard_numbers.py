"""Exact methods against a plain search on tiny instances with hard numbers: a sample of the suite ``cross``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from oracles.comm_contention import brute_force
from oracles.cross import with_search
from oracles.exact_lp import minimum
from oracles.hard_numbers import FAMILIES, Numbers, hard_comm_contention
from support.checks import comm_contention as check

from schedgap.benchmarks.instances import find_preset, workload_of
from schedgap.benchmarks.report.compare import answer_of
from schedgap.catalogue.agreement import Answer, agree
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method
from schedgap.catalogue.run import run_method
from schedgap.catalogue.workload import Batch
from schedgap.formulations.common.errors import InputError, ModelRefused
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.result import SolveOptions, Status

SAMPLE = range(3)
"""Seeds of each family."""


FOUND = (
    ("gpu-sharing", "near-ties", 450),  # the plain search: one slot too many, at the tolerance itself
    ("ddljs", "near-ties", 119),  # highs: optimal, 15% off
    ("ddljs", "near-ties", 222),  # cbc: infeasible
    ("gpu-sharing", "near-ties", 274),  # cbc: infeasible
    ("hadar", "magnitudes", 323),  # highs: optimal, 14% off
    ("hadar", "near-ties", 559),  # highs, cbc: refused, coefficients of 5e15
    ("g-vne", "magnitudes", 106),  # highs: optimal, 0.9% off
    ("ddl-cluster", "near-ties", 179),  # cp, job-shop, highs: optimal, 1.4e-8 off
    ("comm-contention", "magnitudes", 1082),  # bb: optimal, 6e-9 off
)
"""What was wrong once: problem, family, seed."""


def batches(problem: Problem) -> list[Batch]:
    """The batches of hard numbers, one per family."""
    return [row for row in workload_of(problem).suites if row.preset in FAMILIES]


def made(problem: Problem, batch: Batch, seed: int) -> Instance:
    """One of its instances."""
    return find_preset(problem, batch.preset).generator(seed)


def answers_to(problem: Problem, batch: Batch, seed: int) -> list[Answer]:
    """The search's answer and those of every exact method, none of which contradict each other."""
    instance = made(problem, batch, seed)
    options = SolveOptions(seed=seed, threads=1, work_limit=batch.work_limit)
    answers = []
    for name in batch.exact:
        method = find_method(problem, name)
        try:
            answers.append(answer_of(method, run_method(problem, instance, method, options)))
        except ModelRefused:
            assert name == "cpsat"
    found = agree(answers, problem.sense, problem.certified_bound(instance))
    assert found.contradictions == (), instance.name
    known = found.infeasible or found.optimum is not None
    assert known or answers[0].status is Status.UNKNOWN  # too many orders for the search
    return answers


@pytest.mark.parametrize("problem_id", all_problems())
def test_exact_methods_agree(problem_id: str) -> None:
    problem = with_search(all_problems()[problem_id])
    assert [batch.preset for batch in batches(problem)] == list(FAMILIES)
    proofs: list[bool] = []
    for batch in batches(problem):
        for seed in SAMPLE:
            answers = answers_to(problem, batch, seed)
            proofs += [answer.status in (Status.OPTIMAL, Status.INFEASIBLE) for answer in answers[1:]]
    assert sum(proofs) > len(proofs) / 2  # who only says "feasible" is never wrong, and useless


@pytest.mark.parametrize(("problem_id", "family", "seed"), FOUND)
def test_what_was_wrong_once_is_right(problem_id: str, family: str, seed: int) -> None:
    problem = with_search(all_problems()[problem_id])
    (batch,) = (batch for batch in batches(problem) if batch.preset == family)
    assert answers_to(problem, batch, seed)[0].status is Status.OPTIMAL


@pytest.mark.parametrize("problem_id", all_problems())
def test_instances_are_repeatable_and_hard(problem_id: str) -> None:
    problem = with_search(all_problems()[problem_id])
    for batch in batches(problem):
        first, again = ([made(problem, batch, seed) for seed in range(40)] for _ in range(2))
        assert [one.content_hash() for one in first] == [one.content_hash() for one in again]
        assert len({one.content_hash() for one in first}) == 40
        values = [value for one in first for value in _numbers(one.to_dict()) if value]
        long = sum(len(repr(value).replace(".", "").strip("0")) > 8 for value in values)
        if batch.preset == "magnitudes":
            assert max(values) / min(values) >= 1e4
        else:
            assert long >= 40  # numbers with many digits


def _numbers(data: object) -> Iterator[float]:
    if isinstance(data, float):
        yield abs(data)
    elif isinstance(data, dict | list):
        for part in data.values() if isinstance(data, dict) else data:
            yield from _numbers(part)


def test_numbers_near_a_value_differ_by_a_millionth_to_a_billionth() -> None:
    numbers = Numbers(0, "near-ties")
    apart = {abs(numbers.near(3.0) / 3.0 - 1) for _ in range(200)}
    assert min(apart - {0.0}) == pytest.approx(1e-9, rel=1e-3) and max(apart) == pytest.approx(4e-6, rel=1e-3)
    with pytest.raises(InputError, match="family: must be one of near-ties, magnitudes, decimals, got 'easy'"):
        Numbers(0, "easy")


def test_the_search_of_comm_contention_is_exact() -> None:
    """The checker, in rationals too, finds the optimum in the starts that are rounded to floats."""
    for family in FAMILIES:
        for seed in range(10):
            instance = hard_comm_contention(seed, family=family)
            optimum, solution = brute_force(instance)
            report = check(instance, solution)
            assert report.feasible and report.objective is not None
            assert abs(report.objective - optimum) <= Fraction(1, 10**12) * optimum


def test_a_linear_program_in_rationals() -> None:
    third = Fraction(1, 3)
    one = Fraction(1)
    # least 2x + 3y with x + y >= 1/3 and x <= 1/9
    found = minimum([2 * one, 3 * one], [[-one, -one], [one, 0 * one]], [-third, third / 3])
    assert found == (Fraction(2, 9) + Fraction(2, 3), [Fraction(1, 9), Fraction(2, 9)])
    assert minimum([one], [[one], [-one]], [one, -2 * one]) is None
