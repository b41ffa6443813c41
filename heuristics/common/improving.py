"""What an improving method starts from: the best schedule of a problem's heuristics, or a given one that is better."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.budget import Budget, OutOfBudgetError, to_its_end
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions, Status, clock

SHARE = 0.75
"""Share of the time that all heuristics together may take. Each has an equal part of what those before it leave."""


SHARE_OF_PROOF = 0.5
"""The same before a proof; the first has half."""


SHARE_AGAIN = 0.5
"""Share of the remaining time for heuristics that a busy machine gave no turn."""


TURN = 0.5
"""Share of an equal part of the time, in seconds of the processor, that makes a turn."""


BY_ITSELF = 0.8
"""Share of its part of the time after which a heuristic with a deadline ends, so that its last step is not cut."""


processor = time.process_time
"""Seconds of the processor that this program has had."""


Improve = Callable[..., Result]
"""Called as an exact method is, with the instance and options that have a start."""


Heuristics = Sequence[Callable[..., object]]
"""Heuristics in the order in which they run, with their default settings."""


def from_best(
    heuristics: Callable[[], Heuristics],  # imports them; all of them make schedules of the problem itself
    check: Callable[[Instance, Solution], CheckReport],  # the problem's checker
    sense: int,  # +1 minimise, -1 maximise
    improve: Improve,  # an exact method's function, which makes use of a start
    # what a solution says of its objective, where a check takes long: the best by that is the start, and `improve` is
    # the first to check it
    stated: Callable[[Solution], float] | None = None,
    *,
    # of the time that is left, what all heuristics may take at first
    share: float = SHARE,
    first_ends: bool = False,  # with half of that
    # a certified bound on the optimum, asked for when there is a schedule
    bound: Callable[[Instance], float | None] | None = None,
    # `improve` runs even where a schedule meets the bound, which else is the answer
    always: bool = False,
    # within a limit of time the last heuristic comes first, which takes least, and has half of that
    quick_first: bool = False,
    # those of them that take milliseconds for an instance: they run first and to their end, within any limit
    surely: Callable[[Instance], Heuristics] | None = None,
) -> Improve:
    """The method that gives `improve` the best schedule of the heuristics as its start."""

    @wraps(improve)
    def method(instance: Instance, options: SolveOptions, **settings: Any) -> Result:
        best = Incumbent(sense, options, partial(check, instance))
        known = _Known(best, bound and partial(bound, instance), stated)
        try:
            with to_its_end():
                known.note("start", options.start)
                done = _run_surely(known, surely(instance) if surely is not None else (), instance)
            if done:
                known.ask()
            inside = [heuristic for heuristic in heuristics() if heuristic not in done]
            if quick_first and best.seconds_left() is not None:
                inside = inside[::-1]
            starved = _take_turns(known, inside, instance, share, first_ends or quick_first)
            _take_turns(known, starved, instance, SHARE_AGAIN)
            if known.empty and best.seconds_left() is not None:
                _take_turns(known, inside[:1], instance, 1.0)  # another try, where none was in time
            known.ask()
        except KeyboardInterrupt:
            best.interrupted = True
            name, start = known.first()
            if start is not None and best.solution is None:
                best.propose(start, name or "")
            return best.result()
        if best.proven and not always:
            return best.result()
        name, start = known.first()
        facts: dict[str, Any] = {"start by": name} | ({"start": best.objective} if stated is None else {})
        before = clock() - best.began
        result = improve(instance, replace(options, start=start), **settings)
        seconds = before + (result.solve_seconds or 0.0)
        if result.status is Status.UNKNOWN and best.solution is not None:  # it refuses
            best.tighten(result.bound)
            why = None if best.proven else result.termination
            kept = best.result(why, result.engine, result.engine_version)
            result = replace(kept, build_seconds=result.build_seconds, info=result.info)
        return replace(result, solve_seconds=seconds, info={**facts, **result.info})

    return method


class _Known:
    """What heuristics made so far, and the bound, which is asked for once."""

    def __init__(
        self,
        best: Incumbent,
        bound: Callable[[], float | None] | None,
        stated: Callable[[Solution], float] | None,  # then nothing is checked here
    ) -> None:
        self.best, self._bound, self._stated = best, bound, stated
        self._unchecked: list[tuple[str, Solution]] = []

    @property
    def empty(self) -> bool:
        return self.best.solution is None and not self._unchecked

    def first(self) -> tuple[str | None, Solution | None]:
        """The best schedule, and whose it is."""
        sense, stated = self.best.sense, self._stated
        if stated is None or not self._unchecked:
            return self.best.info.get("found by"), self.best.solution
        return min(self._unchecked, key=lambda row: sense * stated(row[1]))

    def note(self, name: str, solution: Solution | None) -> None:
        """Keep what a heuristic made."""
        if solution is not None and self._stated is not None:
            self._unchecked.append((name, solution))
        elif solution is not None:
            self.best.propose(solution, name)

    def ask(self) -> float:
        """Ask for the bound, if nobody has; the seconds that took."""
        began = clock()
        bound, self._bound = self._bound, None
        if bound is not None:
            self.best.tighten(bound())
        return clock() - began


def _run_surely(start: _Known, heuristics: Heuristics, instance: Instance) -> Heuristics:
    """Run heuristics to their end; those that ran."""
    for number, heuristic in enumerate(heuristics):
        if start.best.proven:
            return heuristics[:number]
        solution, _ = _run(start.best, heuristic, instance, NO_DEADLINE, 1)
        start.note(_name(heuristic), solution)
    return heuristics


def _name(heuristic: Callable[..., object]) -> str:
    return getattr(heuristic, "__name__", "heuristic").replace("_", "-")


def _take_turns(
    known: _Known, turns: Heuristics, instance: Instance, part: float, first_ends: bool = False
) -> Heuristics:
    """Run heuristics in parts of so much of the time; those that had no turn of the processor."""
    best = known.best
    remaining = best.seconds_left(part)
    until = best.options.deadline.part(part)
    turn = 0.0 if remaining is None else TURN * remaining / max(1, len(turns))
    starved = []
    for number, heuristic in enumerate(turns):
        if best.proven:
            break
        solution, began = None, processor()
        if not best.out_of_time():
            parts = min(2, len(turns)) if first_ends and not number else len(turns) - number
            solution, ended = _run(best, heuristic, instance, until, parts)
            starved += [heuristic] if not ended and processor() - began < turn else []
        known.note(_name(heuristic), solution)
        seconds = 0.0 if known.empty else known.ask()
        if until.moment is not None:  # the bound's time is not theirs
            latest = best.options.deadline.part(part).moment or 0.0
            until = Deadline(min(until.moment + seconds, latest))
    return starved


def _run(
    best: Incumbent, heuristic: Callable[..., object], instance: Instance, until: Deadline, parts: int
) -> tuple[Solution | None, bool]:
    """What a heuristic makes, and whether it came to its end before its part of the time was over."""
    own: dict[str, Any] = {"seed": best.options.seed}
    deadline = until.part(1 / parts)
    if "deadline" in inspect.signature(heuristic).parameters:
        own["deadline"] = deadline.part(BY_ITSELF)
    budget = None if deadline.moment is None else Budget(deadline)  # whose run it is watches the memory
    answer: object = None
    try:
        with budget or nullcontext():
            answer = heuristic(instance, **own)
    except InputError:  # a method that refuses this instance
        return None, True
    except OutOfBudgetError:
        if budget is not None:
            budget.end()
        if budget is None or budget.over is None:  # of the run itself, not of this heuristic
            raise
        return None, False
    return _solution(answer), True


def _solution(answer: object) -> Solution | None:
    solution = (answer.solution or answer.partial) if isinstance(answer, HeuristicRun) else answer
    return solution if isinstance(solution, dict) else None
