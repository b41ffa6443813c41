"""Is a scheduler one? What ``check_scheduler`` asks of a function, a check for each family of instances."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import check_signature, last_line_of, one_line
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.heuristics.common.run import HeuristicRun

if TYPE_CHECKING:
    import pytest

EACH = 2
"""Instances of each family."""


@dataclass(frozen=True)
class Check:
    """One thing that is asked of a scheduler; calling it raises InputError where it fails."""

    name: str  # for test reports: ``my_scheduler-tiny-0``
    function: Callable[..., object]
    problem: Problem
    family: str = ""
    seed: int = 0

    def __call__(self) -> None:
        """Run it.

        Raises InputError: one line: the scheduler, the instance, what is wrong.
        """
        who = getattr(self.function, "__name__", type(self.function).__name__)
        if not self.family:
            _signature(self.function, who)
            return
        instance = workload_of(self.problem).trials()[self.family](self.seed)[0]
        where = f"{who} on {self.problem.id}, family {self.family}, seed {self.seed}"
        before = instance.content_hash()
        first = _solution(self.function, instance, where)
        if instance.content_hash() != before:
            raise InputError(f"{where}: changed the instance")
        if first != _solution(self.function, instance, where):
            raise InputError(f"{where}: two runs with the same seed differ; all randomness must come from seed")
        if first is None:
            return
        try:
            report = self.problem.check(instance, first)
        except InputError as error:
            raise InputError(f"{where}: returned no solution of {self.problem.id}: {error}") from None
        if report.violations:
            more = f" (and {len(report.violations) - 1} more)" if len(report.violations) > 1 else ""
            raise InputError(f"{where}: not feasible: {report.violations[0].message}{more}")


def checks_of(functions: Sequence[Callable[..., object]], problem: str | Problem) -> Iterator[Check]:
    """All checks of some schedulers, one for the signature and two for each family of the problem."""
    row = find_problem(problem)
    for function in functions:
        who = getattr(function, "__name__", type(function).__name__)
        yield Check(f"{who}-signature", function, row)
        for family in workload_of(row).trials():
            for seed in range(EACH):
                yield Check(f"{who}-{family}-{seed}", function, row, family, seed)


def check_scheduler(function: Callable[..., object], problem: str | Problem) -> None:
    """Try a scheduler of one's own on two instances of each family of a problem, in this process.

    It must be callable as ``function(instance, seed=0)``, return a feasible solution or None, do the same for the
    same seed, and leave the instance as it is.

    Raises
    ------
    InputError
        One line that says what is wrong, and on which instance.
    """
    for check in checks_of([function], problem):
        check()


def parametrize_with_checks(functions: Sequence[Callable[..., object]], problem: str | Problem) -> pytest.MarkDecorator:
    """A decorator for a pytest test with the argument ``check``: one test for each check of each scheduler.

    Raises
    ------
    InputError
        There is no such problem.

    Examples
    --------
    >>> @parametrize_with_checks([my_scheduler], "rar-ddls")  # doctest: +SKIP
    ... def test_my_scheduler(check):
    ...     check()
    """
    import pytest

    return pytest.mark.parametrize("check", [pytest.param(one, id=one.name) for one in checks_of(functions, problem)])


def _signature(function: Callable[..., object], who: str) -> None:
    if not callable(function):
        raise InputError(f"{who}: must be a function (instance, *, seed) -> solution")
    check_signature(function, who, {"seed": 0})


def _solution(function: Callable[..., object], instance: Instance, where: str) -> dict[str, Any] | None:
    try:
        found = function(instance, seed=0)
    except Exception as error:
        raise InputError(f"{where}: raised {one_line(error)}{last_line_of(error)}") from error
    found = found.solution if isinstance(found, HeuristicRun) else found
    if found is None:
        return None
    if not isinstance(found, dict):
        raise InputError(f"{where}: must return a solution object (a dict) or None, got {type(found).__name__}")
    try:
        return dict(json.loads(json.dumps(found, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: the solution is not JSON: {error}") from None
