"""Method `bb` of comm-contention: branch and bound over sequences of events.

Idea: a node is a sequence of starts and completions. Which event comes next is branched on; starts that are still
open are a polytope, over which the rest is bounded (`bounds.py`). Source: ours; the proof is in
`METHODS.md`. Guarantee: an optimum within 1e-9 of up to 20 tasks, unless a limit, rounding or
too many open starts at once end it without a proof. The search counts in floats with a margin; the checker is exact.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.check import check
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.one_at_a_time import one_at_a_time
from schedgap.formulations.comm_contention.solution import CommContentionSolution
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.solvers.exact.comm_contention.after_completions import after_completions
from schedgap.solvers.exact.comm_contention.bounds import Tasks
from schedgap.solvers.exact.comm_contention.events import BEST, MARGIN, POINTS, SKIPPED
from schedgap.solvers.exact.comm_contention.search import Nodes, expand_nodes, most_children, room_for
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Result, SolveOptions, Termination

LARGEST = 20
"""More tasks than this are not searched: the stack would not fit the memory."""


_FIRST = 20_000
"""Nodes without open starts that are searched first, for a good schedule."""


_MARGIN = 2e-10
"""Relative: schedules better by less than this are not looked for; the bound is lowered by as much."""


_ROUNDING = 2e-12
"""Relative to the span of time: what floating point may be wrong by."""


_SAME = 1e-6
"""Relative: where the search's and the checker's value of a schedule differ by less, rounding explains it."""


def solve_bb(instance: CommContentionInstance, options: SolveOptions) -> Result:
    """Branch and bound over sequences of events.

    A node is a sequence of completions and starts, in order of time. Each start is of one of four kinds: with
    the last event, at the task's release, on the idle link, or open in the gap up to the next completion. A
    sequence without open starts is one partial schedule; with open starts it is a polytope, kept as points
    whose hull it is. Open starts are needed only where a later release (or three tasks that start together) can
    make them optimal; METHODS.md has the proof that the search leaves out no optimum. The
    bound of a node is its cost so far plus ``set_bound``.

    Guarantee: the bound is OPT less 2e-10 of the objective and what rounding may be wrong by; status OPTIMAL means
    that it is still within 1e-9 of the objective, relative. Where sizes, releases and penalty differ by so many
    orders of magnitude that rounding is more than that, the status is FEASIBLE. Raises Disagreement: search and checker
    contradict each other.

    Parameters
    ----------
    options : deadline, work limit (thousands of nodes), start, relative gap, report

    Returns
    -------
    Result
        The objective is the checker's. ``info``: nodes, how many sets were open (several points).

    Notes
    -----
    Exponential in the worst case; a node costs O(n^3). Source: ours.
    """
    search = _Search(instance, options)
    return search.best.result(search.run())


class _Search:
    """One search: the stack, the best schedule, the bound."""

    def __init__(self, instance: CommContentionInstance, options: SolveOptions) -> None:
        self.instance = instance
        self.options = options
        link = instance.link
        self.n = len(instance.tasks)
        self.size = np.array([task.size for task in instance.tasks])
        first = min(task.release for task in instance.tasks)
        self.release = np.array([task.release - first for task in instance.tasks])
        self.shift = first
        self.span = 0.0
        self.b, self.eta = link.seconds_per_unit, link.contention_penalty
        self.best = Incumbent(MINIMISE, options, partial(parsed(check, CommContentionSolution), instance))
        if self.best.stage("bound"):
            self.best.tighten(lower_bound(instance))
        self.info = self.best.info
        self.info["nodes"] = 0
        if options.start is not None:
            self.best.propose(options.start)
        # one check is enough where nothing is searched
        asked = self.n <= LARGEST and self.best.stage("one at a time")
        if asked or self.best.objective is None:
            self.best.propose(one_at_a_time(instance))

    @property
    def mean(self) -> float:
        """The best objective."""
        assert self.best.objective is not None  # one task at a time is always feasible
        return float(self.best.objective)

    def run(self) -> Termination | None:
        """Search until it is over or a limit is met; why it stopped, where the incumbent does not tell."""
        if self.n > LARGEST:
            self.info["reason"] = f"{self.n} tasks, at most {LARGEST} are searched"
            return Termination.TOO_LARGE
        n = self.n
        stack: Nodes = room_for(2 * n * most_children(n) + 1, n)
        tasks = Tasks(self.size, self.release, self.b, self.eta)
        _put_root(stack)
        start = np.zeros(n)
        kept = self._kept(self._total(self.mean))
        top, later = 1, not self.best.stage("first nodes")
        while top:
            if later and not self.best.stage("whole tree"):
                return None if self.best.proven else Termination.FINISHED
            before = kept[BEST]
            try:
                top, nodes = expand_nodes(tasks, stack, top, kept, start, self._nodes_left(later), later)
                self.info["nodes"] += int(nodes)
                self.best.work = 1e-3 * self.info["nodes"] if later else 0.0
            except KeyboardInterrupt:
                self.best.interrupted = True
            if kept[BEST] < before:
                self._take(start, float(kept[BEST]))
                kept[BEST] = min(kept[BEST], self._total(self.mean))
            if self.best.interrupted:
                break
            if not later and (top == 0 or self.info["nodes"] >= _FIRST):  # now the whole tree
                top, later = 1, True
                _put_root(stack)
                self.info["first nodes"], self.info["nodes"] = self.info["nodes"], 0
                kept = self._kept(float(kept[BEST]))
            elif later:
                open_bound = float(stack.bounds[:top].min()) if top else math.inf
                self.best.tighten(self._mean(min(open_bound, float(kept[SKIPPED]), float(kept[BEST] - kept[MARGIN]))))
                fresh = self._kept(float(kept[BEST]))
                if not top and not self.best.proven and fresh[MARGIN] < kept[MARGIN] and math.isinf(kept[SKIPPED]):
                    top, kept = 1, fresh  # what was left out by the margin of a worse schedule
                    _put_root(stack)
            if self.best.finished():
                break
        if not top and kept[SKIPPED] < math.inf:
            self.info["reason"] = f"a set of schedules needed more than {POINTS} points"
            return Termination.FAILED
        if top or self.best.finished():
            return None
        self.info["reason"] = "what is left between value and bound is the rounding of times"
        return Termination.FINISHED

    def _kept(self, best: float) -> NDArray[np.float64]:
        """What a search from the root begins with: the best known, nothing skipped, and the tolerances.

        Those are of time, of volumes, and by how much a schedule must be better than `best` to be looked for.

        No schedule as good as the best known one ends after `span`, the last release and the sum of its flow
        times, whatever the penalty is. A volume may be wrong by what takes 2e-12 of the span at the rate of all
        tasks, but floating point cannot tell volumes apart that differ by less than a few units in the last place.
        """
        n, total = self.n, float(self.size.sum())
        self.span = float(self.release.max()) + best
        pace = n * self.b + (n - 1) * self.eta
        finest = 8 * np.finfo(float).eps * total
        volume = max(finest, _ROUNDING * min(total, self.span / pace))
        time = _ROUNDING * self.span
        return np.array([best, math.inf, time, volume, _MARGIN * best + n * (time + 2 * (self.b + self.eta) * volume)])

    def _nodes_left(self, later: bool) -> int:
        """Nodes up to the next limit that counts nodes."""
        if not later:
            return _FIRST - int(self.info["nodes"])
        if self.options.work_limit is None:
            return 10**9
        return max(1, math.ceil(1000 * self.options.work_limit) - int(self.info["nodes"]))

    def _total(self, mean: float) -> float:
        """The sum of flow times without latency that belongs to an objective."""
        return (mean - self.instance.link.latency) * self.n

    def _mean(self, total: float) -> float:
        return total / self.n + self.instance.link.latency

    def _take(self, start: NDArray[np.float64], total: float) -> None:
        """Score the search's best schedule, its starts put exactly at the completions they follow.

        A start that rounding puts before such a completion shares volume, and every later start of this kind
        multiplies the delay by about eta / b. So the schedule is replayed exactly and these starts are rounded up.
        Raises Disagreement: the checker finds another value than the search, by more than rounding can explain.
        """
        times = [
            max(task.release, float(moment) + self.shift)
            for task, moment in zip(self.instance.tasks, start, strict=True)
        ]
        found: list[tuple[float, Solution]] = []
        for tolerance in (0.0, 1e-14, 1e-12, 1e-10):
            solution = after_completions(self.instance, times, tolerance * (self.span + self.shift))
            scored = self.best.propose(solution)
            if scored is not None:
                found.append((float(scored), solution))
        scored, solution = min(found, key=lambda pair: pair[0])
        value = self._mean(total)
        if math.isclose(scored, value, rel_tol=_SAME):
            return
        growth = min(self.n * math.log1p(2 * self.eta / self.b), 700.0)
        if abs(scored - value) > _ROUNDING * (self.span + self.shift) * math.exp(growth):
            raise Disagreement(f"bb: the checker says {scored}, the search {value:.10g}", solution=solution)
        self.info["reason"] = "a schedule of the search cannot be written down exactly enough"


def _put_root(stack: Nodes) -> None:
    """The empty schedule as the only node: one point, nobody started last, nothing open, nobody owed."""
    stack.points[0, 0] = 0.0
    stack.numbers[0] = (1, -1, 0, 0, 0)
    stack.states[0] = 0
    stack.bounds[0] = 0.0
