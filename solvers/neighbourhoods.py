"""Large neighbourhood search: a part of the best solution is freed and solved exactly, and the rest stays as it is.

A problem says which parts there are, what is freed together, and how the freed part is solved beside what is fixed;
the search is the same for all: what to free next and how much of it follows from what that has brought so far (Shaw
1998, Using constraint programming and local search methods to solve vehicle routing problems, CP'98; Ropke and
Pisinger 2006, An adaptive large neighborhood search heuristic, Transportation Science 40)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.incumbent import Incumbent, Number, optimal
from schedgap.solvers.result import Deadline, Result, Termination, package_version

STEP_WORK = 0.2
"""Deterministic time of one step at most."""


LEAST_STEP = 0.01
"""What a step counts for at least: one that needs no search must not go on for ever."""


FIRST_SIZE = 8
"""Parts that are freed at first."""


GROWTH = 1.25
"""Factor by which more is freed after a step that found nothing, and by how much less after one that did not end."""


MEMORY = 0.8
"""Share of what was known of a kind that outlives a step."""


LEAST_WEIGHT = 0.05
"""A kind that never helps is still tried."""


SHOWN = 25
"""Steps after which a gain is proposed, where a check takes as long as many steps."""


CHECKS = 1.5
"""How many times as long as the start took to be made and checked is then left at the end, for the last solution."""


PATIENCE = 200
"""Steps without gain after which a run ends that has no limit."""


@dataclass(frozen=True)
class StepOutcome:
    """What one step came to."""

    better: bool  # the present solution was replaced by a better one
    complete: bool  # nothing better is left in this neighbourhood


class Neighbourhoods(ABC):
    """The neighbourhoods of one problem; keeps the present solution and proposes better ones to the incumbent."""

    kinds: tuple[str, ...]  # the ways to choose what is freed
    parts: int  # how many there are to be freed: jobs, or whatever a solution consists of

    @abstractmethod
    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """About `size` parts that are freed together; none where this kind has nothing to free."""

    @abstractmethod
    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """Solve the freed parts beside the others, within so much deterministic time that is counted there."""

    def value(self) -> float | None:
        """The objective of the present solution, in the incumbent's units, where not every gain is proposed.

        That is for problems whose checks take as long as many steps: the search then proposes it now and then.
        """
        return None

    def solution(self) -> Solution:
        """The present solution, where it has a value."""
        raise NotImplementedError


@dataclass
class _Kind:
    """What is known of a way to choose."""

    size: float
    weight: float = 1.0
    tries: int = 0
    gains: int = 0


@dataclass
class NeighbourhoodSearch:
    """The search, from the present solution of `neighbourhoods` on; with a work limit it repeats itself for a seed."""

    neighbourhoods: Neighbourhoods  # neighbourhoods of the problem
    incumbent: Incumbent  # receives what is found, counts the work, and says when to end
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _steps: int = 0
    _idle: int = 0

    def run(self) -> bool:
        """Search until a limit, or until nothing is left; whether the whole instance was freed, to no gain."""
        best, neighbourhoods = self.incumbent, self.neighbourhoods
        rng = np.random.default_rng(best.options.seed)
        self._kinds = {kind: _Kind(min(FIRST_SIZE, neighbourhoods.parts)) for kind in neighbourhoods.kinds}
        limited = best.options.work_limit is not None or best.options.deadline.moment is not None
        barren: set[frozenset[int]] = set()
        events: list[list[object]] = best.info.setdefault("events", [])  # what went before has its own
        whole = False
        try:
            while not best.finished() and not whole and (limited or self._idle < PATIENCE):
                name, kind = self._choose(rng)
                parts = frozenset(neighbourhoods.freed(name, round(kind.size), rng))
                before = best.work
                if parts and parts not in barren:
                    outcome = neighbourhoods.solve(parts, STEP_WORK)
                else:  # it is known to hold nothing
                    outcome = StepOutcome(better=False, complete=True)
                best.work = max(best.work, before + LEAST_STEP)
                self._learn(kind, outcome)
                if outcome.better:
                    barren.clear()
                    value = neighbourhoods.value()
                    now = best.in_own(best.objective if value is None else value)
                    events.append([self._steps, round(best.work, 6), name, len(parts), now])
                    best.log(f"step {self._steps}, {name}: {len(parts)} of {neighbourhoods.parts} freed")
                elif outcome.complete:
                    barren.add(parts)
                    whole = len(parts) == neighbourhoods.parts
                if self._steps % SHOWN == 0 or optimal(neighbourhoods.value(), best.bound, best.sense):
                    self._show()
        finally:
            self._show()
            best.info["steps"] = self._steps
            best.info["neighbourhoods"] = {name: [kind.tries, kind.gains] for name, kind in self._kinds.items()}
        best.log(f"{self._steps} steps, {len(events)} of them with gain")
        return whole

    def _show(self) -> None:
        """Propose the present solution, where it is better than the incumbent."""
        best, value = self.incumbent, self.neighbourhoods.value()
        if value is None or not best.improves(value):
            return
        if best.objective is None or not agrees(value, float(best.objective)):
            best.propose(self.neighbourhoods.solution(), "lns", trusted=True)

    def _choose(self, rng: np.random.Generator) -> tuple[str, _Kind]:
        names = list(self._kinds)
        weights = np.array([self._kinds[name].weight for name in names])
        name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
        return name, self._kinds[name]

    def _learn(self, kind: _Kind, outcome: StepOutcome) -> None:
        """The weight follows the gains; the size, how hard it was."""
        self._steps += 1
        self._idle = 0 if outcome.better else self._idle + 1
        kind.tries += 1
        kind.gains += outcome.better
        kind.weight = max(LEAST_WEIGHT, MEMORY * kind.weight + (1 - MEMORY) * outcome.better)
        if not outcome.complete:
            kind.size = max(1.0, kind.size / GROWTH)
        elif not outcome.better:
            kind.size = min(float(self.neighbourhoods.parts), kind.size * GROWTH)


def propose_initial(incumbent: Incumbent, solution: Solution, kind: str, parts: int) -> None:
    """Propose what was found before the first step; a gain is an event, too."""
    before = incumbent.objective
    incumbent.propose(solution, kind)
    record_gain(incumbent, before, kind, parts)


def record_gain(incumbent: Incumbent, objective: Number | None, kind: str, parts: int) -> None:
    """An event before the first step, where there is a gain on this objective."""
    if incumbent.objective != objective:
        events = incumbent.info.setdefault("events", [])
        events.append([0, round(incumbent.work, 6), kind, parts, incumbent.in_own(incumbent.objective)])


def with_companions(chosen: Iterable[int], companions: Callable[[int], Iterable[int]]) -> set[int]:
    """The chosen parts, their companions, the companions of those, and so on."""
    found = set(chosen)
    waiting = list(found)
    while waiting:
        for other in companions(waiting.pop()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def searched(incumbent: Incumbent, build: Callable[[], Neighbourhoods]) -> Result:
    """The result of a search, neighbourhood by neighbourhood, from the start that the caller gave.

    Without one there is nothing to improve. The bound is the certified one; the checker accepts the solution.

    Parameters
    ----------
    incumbent : with a bound that is certified already
    build : the neighbourhoods, once the start is known

    Notes
    -----
    Nothing is proven here: a result is optimal only where it meets the bound. With a ``work_limit`` (CP-SAT's
    deterministic time) a run repeats itself.
    """
    ended: Termination | None = None
    try:
        began = time.monotonic()
        if incumbent.options.start is not None:
            incumbent.propose(incumbent.options.start, "start")
            incumbent.info["start"] = incumbent.in_own(incumbent.objective)
        took = time.monotonic() - began
        if incumbent.solution is None:
            incumbent.info.setdefault("reason", "no heuristic has a solution to start from, within the limits")
        if not incumbent.finished():
            ended = Termination.FINISHED if incumbent.solution is None else _search(incumbent, build, took)
    except KeyboardInterrupt:
        incumbent.interrupted = True
    return incumbent.result(ended, "cpsat", package_version("ortools"))


def _search(incumbent: Incumbent, build: Callable[[], Neighbourhoods], took: float) -> Termination | None:
    """Why the search ended, where the incumbent does not tell; `took` is the seconds of a check."""
    try:
        chosen = build()
    except InputError as error:  # its tables would be too large
        incumbent.info["reason"] = str(error)
        return Termination.TOO_LARGE
    moment = incumbent.options.deadline.moment
    if moment is not None and chosen.value() is not None:
        began = time.monotonic()
        chosen.solution()
        took += time.monotonic() - began
        incumbent.options = replace(incumbent.options, deadline=Deadline(moment - CHECKS * took))
    return Termination.FINISHED if NeighbourhoodSearch(chosen, incumbent).run() else None
