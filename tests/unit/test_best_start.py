"""Every heuristic has a turn before an exact method, counted by the processor: a busy machine loses none of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common import improving
from schedgap.solvers import result
from schedgap.solvers.budget import OutOfBudgetError
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination

LIMIT = 20.0


class Unwatched(AbstractContextManager[None]):
    """A budget without a thread that looks at the real clock."""

    over = Termination.TIME_LIMIT

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def end(self) -> None:
        """Nothing to end."""


class Machine:
    """A clock that heuristics turn; the processor is theirs for a part of it."""

    def __init__(self, patch: pytest.MonkeyPatch, share: float) -> None:
        self.now, self.share = 1000.0, share
        self.turns: list[str] = []
        patch.setattr(improving, "processor", lambda: (self.now - 1000.0) * share)
        patch.setattr(improving, "Budget", Unwatched)
        patch.setattr(result, "clock", lambda: self.now)

    def heuristic(self, name: str, value: float, seconds: float, overshoot: float = 0.0) -> Any:
        """One that needs so many seconds of the processor, and notices its deadline late by so many of the clock."""

        def run(instance: Instance, deadline: Deadline, seed: int = 0) -> Solution | None:
            self.turns.append(name)
            left = deadline.remaining()
            assert left is not None
            needed = seconds / self.share
            self.now += min(needed, left + overshoot)
            if needed > left:
                raise OutOfBudgetError
            return {"value": value}

        run.__name__ = name
        return run


def improved(
    machine: Machine,
    heuristics: list[Any],
    limit: float | None = LIMIT,
    bound: Callable[[], float | None] = lambda: None,
) -> float | None:
    """The objective that an exact method starts from."""

    def check(_: Instance, solution: Solution) -> CheckReport:
        return CheckReport((), Fraction(solution["value"]))

    def exact(_: Instance, options: SolveOptions) -> Result:
        value = None if options.start is None else options.start["value"]
        machine.turns.append("exact")
        return Result(Status.UNKNOWN, objective=value, termination=Termination.TIME_LIMIT)

    share = improving.SHARE_OF_PROOF
    method = improving.from_best(
        lambda: heuristics, check, MINIMISE, exact, share=share, first_ends=True, bound=lambda _: bound()
    )
    instance = make_instance(find_problem("rar-ddls"), "tiny", 0, {})
    deadline = Deadline(None if limit is None else machine.now + limit)
    return method(instance, SolveOptions(deadline=deadline)).objective


def test_the_best_heuristic_has_its_turn_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirteen others, three of them slow, on a fifteenth of a processor: the best one needs 0.07 s of it."""
    machine = Machine(monkeypatch, 1 / 15)
    others = [machine.heuristic(f"slow{k}", 39_948, 5.0) for k in range(3)]
    others += [machine.heuristic(f"quick{k}", 40_000 + k, 0.01) for k in range(10)]
    best = machine.heuristic("best", 34_468, 0.07)
    assert improved(machine, [others.pop(), best, *others]) == 34_468
    assert machine.turns.count("best") == 2 and machine.now <= 1000.0 + 0.75 * LIMIT


def test_the_cheapest_ends_where_no_equal_part_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """openb's 8,152 gangs: `best-fit` needs more than a fifteenth of the time, the others much more."""
    machine = Machine(monkeypatch, 1.0)
    slow = [machine.heuristic(f"slow{k}", 1.0, 60.0) for k in range(14)]
    assert improved(machine, [machine.heuristic("cheap", 7.0, 4.0), *slow]) == 7.0
    assert machine.turns == ["cheap", *(f"slow{k}" for k in range(14)), "exact"] and machine.now <= 1000.0 + LIMIT / 2


def test_one_that_others_left_no_time_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first overshoots by all that is there for heuristics."""
    machine = Machine(monkeypatch, 0.2)
    late = machine.heuristic("late", 7.0, 0.9, overshoot=9.0)
    assert improved(machine, [late, machine.heuristic("best", 3.0, 0.4), machine.heuristic("other", 5.0, 0.1)]) == 3.0


def test_one_that_had_the_processor_does_not_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1.0)
    assert improved(machine, [machine.heuristic("large", 1.0, 60.0), machine.heuristic("quick", 2.0, 0.1)]) == 2.0
    assert machine.turns == ["large", "quick", "exact"]


def test_the_last_step_of_one_that_looks_at_its_deadline_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """gang-placement, 1,000 nodes: every rule had laid some gangs, and lost them in the middle of the next one."""
    machine = Machine(monkeypatch, 1.0)

    class Watched(Unwatched):
        def __exit__(self, *_: object) -> None:
            if self.deadline.passed:
                raise OutOfBudgetError

    def anytime(instance: Instance, deadline: Deadline, seed: int = 0) -> Solution:
        left = deadline.remaining()
        assert left is not None
        machine.now += 1.1 * left
        return {"value": 3}

    monkeypatch.setattr(improving, "Budget", Watched)
    assert improved(machine, [anytime]) == 3.0


def test_a_bound_that_takes_all_the_time_comes_after_the_first_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1.0)

    def nothing(instance: Instance, seed: int = 0) -> None:
        machine.turns.append("nothing")

    def endless() -> None:
        machine.turns.append("bound")
        raise OutOfBudgetError

    heuristics = [nothing, machine.heuristic("cheap", 7.0, 0.1), machine.heuristic("other", 6.0, 0.1)]
    assert improved(machine, heuristics, bound=endless) == 7.0
    assert machine.turns == ["nothing", "cheap", "bound"]
    machine.turns.clear()

    def long() -> None:
        machine.now += 0.6 * LIMIT

    assert improved(machine, heuristics, bound=long) == 6.0, "its time is not that of the others"
    machine.turns.clear()
    assert improved(machine, [nothing], bound=endless) is None
    assert machine.turns == ["nothing", "nothing", "bound"]


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_nothing_else_runs_where_a_heuristic_meets_the_bound(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """The 6,203 jobs of openb: fifo has the optimum in 0.4 s, and building the exact model took all of the limit."""
    machine = Machine(monkeypatch, share)
    fifo, slow = machine.heuristic("fifo", 3085.61, 0.4), machine.heuristic("slow", 3085.61, 60.0)
    assert improved(machine, [fifo, slow], bound=lambda: 3085.61) == 3085.61
    assert machine.turns == ["fifo"]


def test_without_a_limit_nobody_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that found nothing would find nothing again."""
    machine = Machine(monkeypatch, 1.0)

    def finds_nothing(instance: Instance, seed: int = 0) -> None:
        machine.turns.append("finds nothing")

    assert improved(machine, [finds_nothing], limit=None) is None
    assert machine.turns == ["finds nothing", "exact"]


def test_what_refuses_an_instance_does_not_lose_the_start() -> None:
    """colgen of hadar is too large for 40 jobs of a log, and ended as unknown where srpt had a schedule."""

    def check(_: Instance, solution: Solution) -> CheckReport:
        return CheckReport((), Fraction(solution["value"]))

    def refusing(_: Instance, options: SolveOptions) -> Result:
        return Result(Status.UNKNOWN, bound=2.0, termination=Termination.TOO_LARGE, info={"reason": "too many jobs"})

    def listed(instance: Instance, seed: int = 0) -> Solution:
        return {"value": 3}

    method = improving.from_best(lambda: [listed], check, MINIMISE, refusing)
    instance = make_instance(find_problem("rar-ddls"), "tiny", 1, {})
    found = method(instance, SolveOptions())
    assert (found.status, found.objective, found.solution) == (Status.FEASIBLE, 3.0, {"value": 3})
    assert (found.bound, found.termination, found.info["reason"]) == (2.0, Termination.TOO_LARGE, "too many jobs")

    method = improving.from_best(lambda: [listed], check, MINIMISE, refusing, bound=lambda _: 2.5)
    assert method(instance, SolveOptions()).bound == 2.5

    def told(instance: Instance, options: SolveOptions) -> Result:
        return replace(refusing(instance, options), bound=3.0)

    found = improving.from_best(lambda: [listed], check, MINIMISE, told)(instance, SolveOptions())
    assert (found.status, found.bound, found.termination) == (Status.OPTIMAL, 3.0, Termination.PROVEN)
