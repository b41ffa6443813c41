"""The mixed-integer program of comm-contention over event positions (method `cbc`, `highs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pulp

from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.dynamics import simulate
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.one_at_a_time import one_at_a_time
from schedgap.formulations.comm_contention.order_program import best_among_twins
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Terms, VariableFamily

VARIABLES = {
    "begin": VariableFamily("task, position", "S: 1 where the task's start has the position", free=True),
    "end": VariableFamily("task, position", "E: 1 where its completion has the position", free=True),
    "count": VariableFamily("position, active", "K: 1 where so many are active before the position", free=True),
    "gap": VariableFamily("position, active", "d: how long, where so many are active", free=True),
    "moved": VariableFamily("task, position", "y: its volume in the gap before the position", free=True),
    "start": VariableFamily("task", "when it is admitted, in seconds", decision=True),
    "finish": VariableFamily("task", "when it is complete, in seconds"),
}
ROWS = {
    "placed": RowFamily("", "each start and each completion has one position"),
    "position": RowFamily("", "each position has one event"),
    "order": RowFamily("", "a task is active before it completes"),
    "gap": RowFamily("", "a gap has a length only for the number that is active"),
    "count": RowFamily("", "the number that is active is the starts less the completions before"),
    "inactive": RowFamily("", "a task moves nothing where it is not active"),
    "moved": RowFamily("(5)", "an active task moves gap / (k b + (k - 1) eta), with k active"),
    "link": RowFamily("(5)", "all active tasks together move k times that"),
    "whole": RowFamily("", "all of a task is moved"),
    "release": RowFamily("", "no start before its release"),
    "started": RowFamily("", "start[i] is the time of the position of its start"),
    "finished": RowFamily("", "finish[i] is the time of the position of its completion, and its latency"),
}

CONTINUOUS = 1e-7
"""Share of the horizon by which starts that an engine took from floats may be off, untightened."""
FEASIBILITY = 1e-6
"""Absolute, by what engines let rows and whole numbers be off."""
WIDEST = 1e4
"""Where the model's numbers spread further than this, engines have proved wrong bounds: only solutions count."""


def build_ilp(instance: CommContentionInstance, tighten: bool = True) -> DeclarativeModel:
    """The mixed-integer program: minimise the mean flow time.

    The 2 n starts and completions take positions 1, ..., 2 n. Binary S[i, p] and E[i, p] say which event has which
    position, K[p, k] how many are active in the gap before it; d[p, k] is that gap's length where k are active.
    Before position p, p - 1 events are over and k of the tasks are active, so (p - 1 - k) / 2 have completed, and
    every unfinished task pays for the gap::

        sum_j C_j = sum_p sum_k (n - (p - 1 - k) / 2) d[p, k]

    With w_k = k b + (k - 1) eta, u[p] = sum_k d[p, k] / w_k the volume each active task moves in a gap, and y[i, p]
    the volume of task i::

        y[i, p] <= M_i a[i, p],  u[p] - M_max (1 - a[i, p]) <= y[i, p] <= u[p],  sum_p y[i, p] = M_i
        sum_i y[i, p] = sum_k k d[p, k] / w_k,  d[p, k] <= M_max w_k K[p, k],  d[p, 0] <= r_max K[p, 0]
        time of position p >= sum_i (r_i + a) S[i, p]

    a[i, p], whether i is active, is the sum of its S minus the sum of its E before p. The objective has no big-M;
    the products of activity and volume are bounded by the sizes. Volumes are in tenths of the largest size, times
    in multiples of what such a tenth takes alone.

    Untightened, ``start`` and ``finish`` say in seconds when a task is admitted and when it is complete, and the model
    has every schedule that ends by ``horizon(instance)``; the tightened one has no pause longer than the last release.

    Parameters
    ----------
    tighten : only what may be optimal, and what is known of the optimum

    Returns
    -------
    DeclarativeModel
        Extracts the order of events and the best schedule of that order. Its variables are continuous in part, so
        `cpsat` refuses it. Where its numbers spread over more than `WIDEST` it is marked as a restriction, so that
        an engine's solutions count and its bound, which rests on absolute tolerances, does not.

    Notes
    -----
    O(n^2) binaries, O(n^2) rows. Source: ours, after paper 001, eq. (5).
    """
    return _Events(instance, tighten).model()


def ilp_nonzeros(instance: CommContentionInstance) -> int:
    """About how many nonzeros the model has, before it is built."""
    n = len(instance.tasks)
    return 2 * n * (2 * n * n + 20 * n)


def horizon(instance: CommContentionInstance) -> float:
    """The last second of the untightened model: ten times what all tasks take together after the last release."""
    link, n = instance.link, len(instance.tasks)
    pace = n * link.seconds_per_unit + (n - 1) * link.contention_penalty
    return max(task.release for task in instance.tasks) + 10 * pace * sum(task.size for task in instance.tasks)


class _Events:
    """One model under construction."""

    def __init__(self, instance: CommContentionInstance, tighten: bool) -> None:
        self.tighten = tighten
        self.instance = instance
        self.n = len(instance.tasks)
        self.events = range(2 * self.n)
        tasks, link = instance.tasks, instance.link
        largest = max(task.size for task in tasks)
        unit = largest / 10
        self.second = unit * link.seconds_per_unit
        self.first = min(task.release for task in tasks)
        self.size = [task.size / unit for task in tasks]
        self.release = [(task.release - self.first) / self.second for task in tasks]
        self.eta = link.contention_penalty / link.seconds_per_unit
        self.ids = [task.id for task in tasks]
        self.longest = max(self.release) if tighten else (horizon(instance) - self.first) / self.second
        self.layout = Layout(
            pulp.LpProblem("comm_contention", pulp.LpMinimize),
            VARIABLES,
            ROWS,
            "the mean of completion - release",
            {"task": self.ids, "position": range(2 * self.n)},
        )
        self.begin: dict[tuple[int, int], pulp.LpVariable] = {}
        self.end: dict[tuple[int, int], pulp.LpVariable] = {}
        self.gap: dict[tuple[int, int], pulp.LpVariable] = {}

    def model(self) -> DeclarativeModel:
        """The whole model."""
        self._positions()
        self._gaps()
        self._volumes()
        self._releases()
        if not self.tighten:
            self._seconds()
        scale = self.second / self.n
        cost = [(d, (self.n - (p - k) // 2) * scale) for (p, k), d in self.gap.items()]
        constant = -scale * sum(self.release) + self.instance.link.latency
        self.layout.objective(cost, constant)
        return DeclarativeModel(
            self.layout.problem,
            self._extract,
            1,
            assign=None if self.tighten else self._point,
            start=one_at_a_time(self.instance) if self.tighten else None,
            bound=lower_bound(self.instance) if self.tighten else None,
            layout=self.layout,
            tightened=self.tighten,
            restriction=self._spread() > WIDEST,
            resolution=self._resolution(),
            until=None if self.tighten else horizon(self.instance),
            later=(horizon(self.instance) - max(task.release for task in self.instance.tasks)) / self.n,
        )

    def _resolution(self) -> float:
        """What an engine's floats may gain: by starts, and by rows whose tolerance is multiplied by the spread."""
        if not self.tighten:
            return CONTINUOUS * horizon(self.instance)
        return FEASIBILITY * self._spread() * 2 * self.n * self.second if self._spread() > WIDEST else 0.0

    def _spread(self) -> float:
        """Largest over smallest of the numbers that activity and time are multiplied by."""
        largest = max(10.0 * self._pace(self.n), *self.release, 10.0)
        return largest / min(1.0, *self.size)

    def _positions(self) -> None:
        """Each event has a position, each position an event, starts come before completions."""
        for i in range(self.n):
            for p in self.events:
                self.begin[i, p] = self.layout.variable("begin", self.ids[i], p)
                self.end[i, p] = self.layout.variable("end", self.ids[i], p)
            self.layout.numbered("placed", [(self.begin[i, p], 1.0) for p in self.events], "==", 1)
            self.layout.numbered("placed", [(self.end[i, p], 1.0) for p in self.events], "==", 1)
            for p in self.events:
                self.layout.numbered("order", [*self._active(i, p), (self.end[i, p], -1.0)], ">=", 0)
        for p in self.events:
            here = [(v[i, p], 1.0) for v in (self.begin, self.end) for i in range(self.n)]
            self.layout.numbered("position", here, "==", 1)

    def _active(self, i: int, p: int) -> Terms:
        """Whether task i is active in the gap before position p."""
        return [(self.begin[i, q], 1.0) for q in range(p)] + [(self.end[i, q], -1.0) for q in range(p)]

    def _counts(self, p: int) -> list[int]:
        """How many can be active in the gap before position p: p starts and completions are over."""
        return [k for k in range(min(p, 2 * self.n - p) + 1) if (p - k) % 2 == 0]

    def _gaps(self) -> None:
        """Lengths of gaps by the number of active tasks."""
        for p in self.events:
            chosen: Terms = []
            number: Terms = []
            for k in self._counts(p):
                count = self.layout.variable("count", p, k)
                longest = 10.0 * self._pace(k) if k else self.longest
                d = self.gap[p, k] = self.layout.variable("gap", p, k, high=longest, integer=False)
                self.layout.numbered("gap", [(d, 1.0), (count, -longest)], "<=", 0)
                chosen.append((count, 1.0))
                number.append((count, -float(k)))
            self.layout.numbered("count", chosen, "==", 1)
            active = [term for i in range(self.n) for term in self._active(i, p)]
            self.layout.numbered("count", [*active, *number], "==", 0)

    def _pace(self, k: int) -> float:
        return k + (k - 1) * self.eta

    def _volumes(self) -> None:
        """Who moves what in which gap."""
        for i in range(self.n):
            moved: Terms = []
            for p in self.events[1:]:
                y = self.layout.variable("moved", self.ids[i], p, high=self.size[i], integer=False)
                moved.append((y, 1.0))
                self.layout.numbered(
                    "inactive", [(y, 1.0), *((v, -self.size[i] * c) for v, c in self._active(i, p))], "<=", 0
                )
                each = [(self.gap[p, k], -1.0 / self._pace(k)) for k in self._counts(p) if k]
                self.layout.numbered("moved", [(y, 1.0), *each], "<=", 0)
                off = [(v, -10.0 * c) for v, c in self._active(i, p)]
                self.layout.numbered("moved", [(y, 1.0), *each, *off], ">=", -10)
            self.layout.numbered("whole", moved, "==", self.size[i])
        for p in self.events[1:]:
            here = [(self.layout.variables["moved"][self.ids[i], p], 1.0) for i in range(self.n)]
            self.layout.numbered(
                "link", [*here, *((self.gap[p, k], -k / self._pace(k)) for k in self._counts(p) if k)], "==", 0
            )

    def _releases(self) -> None:
        """A start is not before its release."""
        for p in self.events:
            time = self._time(p)
            self.layout.numbered(
                "release", [*time, *((self.begin[i, p], -self.release[i]) for i in range(self.n))], ">=", 0
            )

    def _time(self, p: int) -> Terms:
        """The time of position p."""
        return [(self.gap[q, k], 1.0) for q in range(p + 1) for k in self._counts(q)]

    def _seconds(self) -> None:
        """Starts and completions in seconds."""
        last = horizon(self.instance)
        for family, law, events, shift in (
            ("start", "started", self.begin, 0.0),
            ("finish", "finished", self.end, self.instance.link.latency),
        ):
            for i, task in enumerate(self.ids):
                moment = self.layout.variable(family, task, high=last + shift, integer=False)
                for p in self.events:
                    time = [(v, -self.second * c) for v, c in self._time(p)]
                    here, reach, level = (events[i, p], last), last, self.first + shift
                    self.layout.numbered(law, [(moment, 1.0), *time, here], "<=", level + reach)
                    self.layout.numbered(law, [(moment, 1.0), *time, (here[0], -last)], ">=", level - reach)

    def _point(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        """Values of a schedule that ends by the horizon; events at one moment in the order starts, completions."""
        latency = self.instance.link.latency
        start = [float(solution["start"][task]) for task in self.ids]
        done = simulate(self.instance, dict(zip(self.ids, start, strict=True))).completion
        finish = [done[task] - latency for task in self.ids]
        if max(finish) > horizon(self.instance) * (1 + CONTINUOUS):
            return {}
        values = dict.fromkeys(self.layout.family_of, 0.0)
        line = sorted([*((t, 0, i) for i, t in enumerate(start)), *((t, 1, i) for i, t in enumerate(finish))])
        var, clock = self.layout.variables, 0.0
        active: set[int] = set()
        for p, (moment, kind, i) in enumerate(line):
            time = (moment - self.first) / self.second
            values[self.gap[p, len(active)]] = max(0.0, time - clock)
            if p:
                values[var["count"][p, len(active)]] = 1.0
                for j in active:
                    values[var["moved"][self.ids[j], p]] = max(0.0, time - clock) / self._pace(len(active))
            else:
                values[var["count"][0, 0]] = 1.0
            values[(self.end if kind else self.begin)[i, p]] = 1.0
            active ^= {i}
            clock = max(clock, time)
        for task, begun, ended in zip(self.ids, start, finish, strict=True):
            values[var["start"][task]], values[var["finish"][task]] = begun, ended + latency
        return values

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        if not self.tighten:
            begun = self.layout.variables["start"]
            return {"start": {task.id: max(task.release, value(begun[task.id])) for task in self.instance.tasks}}
        order = []
        clock = 0.0
        start: dict[str, float] = {}
        for p in self.events:
            clock += sum(value(self.gap[p, k]) for k in self._counts(p))
            kind, i = max(
                ((starts, i) for starts in (True, False) for i in range(self.n)),
                key=lambda event: value((self.begin if event[0] else self.end)[event[1], p]),
            )
            order.append((i, kind))
            if kind:
                task = self.instance.tasks[i]
                start[task.id] = max(task.release, clock * self.second + self.first)
        return best_among_twins(self.instance, order) or {"start": start}
