"""Time limits and memory budgets are kept by methods that do not look at them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from support.toy import ToyInstance, toy
from support.work import PASSED, PATIENCE, wait_until

from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.run import run_method
from schedgap.solvers.budget import Budget, OutOfBudgetError, used_bytes
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions, Status, Termination

INSTANCE = ToyInstance.parse({"problem": "toy", "machines": 2, "jobs": [3, 2, 1]})
FOUND = {"machine": [0, 0, 1]}


def forever(*_: Any) -> Any:
    """Python code that never looks at a clock."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        pass
    pytest.fail("nobody ended it")


def run(work: Callable[..., Any], **options: Any) -> Result:
    method = Method("stubborn", "never ends by itself", Kind.EXACT, lambda: {"stubborn": work})
    return run_method(toy(), INSTANCE, method, SolveOptions(**options))


def test_a_method_that_does_not_look_at_its_deadline_is_ended() -> None:
    result = run(forever, deadline=PASSED)
    assert (result.status, result.termination, result.bound) == (Status.UNKNOWN, Termination.TIME_LIMIT, 3.0)
    assert "took all the time" in result.info["reason"]


def test_what_it_had_reported_is_kept() -> None:
    def work(instance: Any, options: SolveOptions) -> Any:
        assert options.report is not None
        options.report(FOUND, 5.0, None)
        forever()

    told: list[Any] = []
    result = run(work, deadline=PASSED, report=lambda *news: told.append(news))
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert (result.objective, result.solution, told) == (5.0, FOUND, [(FOUND, 5.0, None)])


def test_what_it_returns_when_it_is_ended_is_kept() -> None:
    def work(instance: Any, options: SolveOptions) -> Result:
        try:
            forever()
        except KeyboardInterrupt:
            return Result(Status.FEASIBLE, 5.0, None, FOUND, Termination.INTERRUPTED)
        raise AssertionError

    result = run(work, deadline=PASSED)
    assert (result.status, result.termination, result.objective) == (Status.FEASIBLE, Termination.TIME_LIMIT, 5.0)


@pytest.mark.skipif(used_bytes() is None, reason="the system does not tell how much memory is in use")
def test_a_method_that_takes_too_much_memory_is_ended() -> None:
    def work(instance: Any, options: SolveOptions) -> Any:
        taken = []
        for _ in range(100):
            taken.append(b"x" * 10**7)
            wait_until_seen(len(taken))
        pytest.fail("nobody ended it")

    def wait_until_seen(many: int) -> None:
        end = time.monotonic() + (PATIENCE if many > 20 else 0.0)
        while time.monotonic() < end:
            pass

    result = run(work, memory_limit=10**8)
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.MEMORY_LIMIT)
    assert result.info["reason"] == "the memory budget of 0.1 GB is used up"


def test_nothing_is_raised_after_the_end() -> None:
    for _ in range(3):
        with Budget(NO_DEADLINE, memory=10**12):
            pass
    with pytest.raises(OutOfBudgetError), Budget(Deadline(0.0)) as budget:
        forever()
    assert budget.over is Termination.TIME_LIMIT
    seen = time.monotonic()
    wait_until(lambda: time.monotonic() > seen + 0.2)


def test_compilation_is_not_interrupted() -> None:
    def work() -> bool:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        return True

    space: dict[str, Any] = {"__name__": "numba.core", "work": work}
    exec("def compile():\n    return work()", space)
    with Budget(Deadline(0.0)) as budget:
        done = space["compile"]()
        with pytest.raises(OutOfBudgetError):
            forever()
    assert done and budget.over is Termination.TIME_LIMIT
