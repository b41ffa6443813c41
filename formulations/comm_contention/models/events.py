"""The mixed-integer program of comm-contention over event positions (method `cbc`, `highs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pulp

from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.order import best_of_order
from schedgap.formulations.comm_contention.quick import one_at_a_time
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution

Terms = list[tuple[pulp.LpVariable, float]]

WIDEST = 1e4
"""Where the model's numbers spread further than this, engines have proved wrong bounds: only solutions count."""


def build_ilp(instance: CommContentionInstance) -> DeclarativeModel:
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

    Parameters
    ----------
    instance : the instance

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
    return _Builder(instance).model()


def ilp_nonzeros(instance: CommContentionInstance) -> int:
    """About how many nonzeros the model has, before it is built."""
    n = len(instance.tasks)
    return 2 * n * (2 * n * n + 20 * n)


class _Builder:
    """One model under construction."""

    def __init__(self, instance: CommContentionInstance) -> None:
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
        self.problem = pulp.LpProblem("comm_contention", pulp.LpMinimize)
        self.begin: dict[tuple[int, int], pulp.LpVariable] = {}
        self.end: dict[tuple[int, int], pulp.LpVariable] = {}
        self.gap: dict[tuple[int, int], pulp.LpVariable] = {}

    def model(self) -> DeclarativeModel:
        """The whole model."""
        self._positions()
        self._gaps()
        self._volumes()
        self._releases()
        scale = self.second / self.n
        cost = [(d, (self.n - (p - k) // 2) * scale) for (p, k), d in self.gap.items()]
        constant = -scale * sum(self.release) + self.instance.link.latency
        self.problem.setObjective(pulp.LpAffineExpression(cost, constant))
        return DeclarativeModel(
            self.problem,
            self._extract,
            1,
            start=one_at_a_time(self.instance),
            bound=lower_bound(self.instance),
            restriction=self._spread() > WIDEST,
        )

    def _spread(self) -> float:
        """Largest over smallest of the numbers that activity and time are multiplied by."""
        largest = max(10.0 * self._pace(self.n), *self.release, 10.0)
        return largest / min(1.0, *self.size)

    def add(self, terms: Iterable[tuple[pulp.LpVariable, float]], sense: str, right: float) -> None:
        """One row."""
        code = {"<=": pulp.LpConstraintLE, ">=": pulp.LpConstraintGE, "==": pulp.LpConstraintEQ}[sense]
        self.problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(list(terms)), code, None, float(right)))

    def _positions(self) -> None:
        """Each event has a position, each position an event, starts come before completions."""
        for i in range(self.n):
            for p in self.events:
                self.begin[i, p] = pulp.LpVariable(f"S_{i}_{p}", 0, 1, pulp.LpInteger)
                self.end[i, p] = pulp.LpVariable(f"E_{i}_{p}", 0, 1, pulp.LpInteger)
            self.add([(self.begin[i, p], 1.0) for p in self.events], "==", 1)
            self.add([(self.end[i, p], 1.0) for p in self.events], "==", 1)
            for p in self.events:
                self.add([*self._active(i, p), (self.end[i, p], -1.0)], ">=", 0)
        for p in self.events:
            here = [(v[i, p], 1.0) for v in (self.begin, self.end) for i in range(self.n)]
            self.add(here, "==", 1)

    def _active(self, i: int, p: int) -> Terms:
        """Whether task i is active in the gap before position p."""
        return [(self.begin[i, q], 1.0) for q in range(p)] + [(self.end[i, q], -1.0) for q in range(p)]

    def _counts(self, p: int) -> list[int]:
        """How many can be active in the gap before position p: p starts and completions are over."""
        return [k for k in range(min(p, 2 * self.n - p) + 1) if (p - k) % 2 == 0]

    def _gaps(self) -> None:
        """Lengths of gaps by the number of active tasks."""
        idle = max(self.release)
        for p in self.events:
            chosen: Terms = []
            number: Terms = []
            for k in self._counts(p):
                count = pulp.LpVariable(f"K_{p}_{k}", 0, 1, pulp.LpInteger)
                longest = 10.0 * self._pace(k) if k else idle
                d = self.gap[p, k] = pulp.LpVariable(f"d_{p}_{k}", 0, longest)
                self.add([(d, 1.0), (count, -longest)], "<=", 0)
                chosen.append((count, 1.0))
                number.append((count, -float(k)))
            self.add(chosen, "==", 1)
            active = [term for i in range(self.n) for term in self._active(i, p)]
            self.add([*active, *number], "==", 0)

    def _pace(self, k: int) -> float:
        return k + (k - 1) * self.eta

    def _volumes(self) -> None:
        """Who moves what in which gap."""
        for i in range(self.n):
            moved: Terms = []
            for p in self.events[1:]:
                y = pulp.LpVariable(f"y_{i}_{p}", 0, self.size[i])
                moved.append((y, 1.0))
                self.add([(y, 1.0), *((v, -self.size[i] * c) for v, c in self._active(i, p))], "<=", 0)
                each = [(self.gap[p, k], -1.0 / self._pace(k)) for k in self._counts(p) if k]
                self.add([(y, 1.0), *each], "<=", 0)
                off = [(v, -10.0 * c) for v, c in self._active(i, p)]
                self.add([(y, 1.0), *each, *off], ">=", -10)
            self.add(moved, "==", self.size[i])
        volumes = self.problem.variablesDict()
        for p in self.events[1:]:
            here = [(volumes[f"y_{i}_{p}"], 1.0) for i in range(self.n)]
            self.add([*here, *((self.gap[p, k], -k / self._pace(k)) for k in self._counts(p) if k)], "==", 0)

    def _releases(self) -> None:
        """A start is not before its release."""
        for p in self.events:
            time = [(self.gap[q, k], 1.0) for q in range(p + 1) for k in self._counts(q)]
            self.add([*time, *((self.begin[i, p], -self.release[i]) for i in range(self.n))], ">=", 0)

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
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
        return best_of_order(self.instance, order) or {"start": start}
