"""Method ``cp`` of rar-ddls under rows and objectives of a user's own: the interval model with overlaps has them too.

Every schedule is a point of that model with its true starts, ends and GPUs, so a row about these leaves those that keep
it. What the model says of ends may be late: such a point is judged by the checker of the changed model, its starts and
placement are excluded by one clause, and the search goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from schedgap.formulations.common.changes import Changes, Sum, whole_terms
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import job_options
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel, Linear
from schedgap.solvers.exact.rar_ddls.overlaps import Overlaps
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotPacking
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Result, SolveOptions, Status, package_version

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

TAKEN = frozenset({"start", "end", "gpus", "held", "uses", "width", "ring", "makespan"})
"""Families of variables that the model can say."""
LARGEST = 2**40
"""Largest coefficient and level of a row in whole numbers."""
PACKING_SHARE = 0.15


def solve_changed(instance: RarDdlsInstance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    """The best schedule that keeps a user's rows, under the own objective or the user's.

    Parameters
    ----------
    check : checker of the changed model: the problem's own, the own rows and the objective

    Returns
    -------
    Result; None where a row is about a variable that this model does not have (``run``), or has numbers that are no
    small whole ones. Its bound is valid whatever ended the run.

    Notes
    -----
    As :func:`~schedgap.solvers.exact.rar_ddls.cp.solve_cp`, less what needs the makespan where the objective is
    another: local search and packing without crossing find schedules of the unchanged problem.
    """
    if not changes.families() <= TAKEN or not instance.jobs:
        return None
    scaled = [_scaled(row.terms, row.level) for row in changes.rows]
    goal = None if changes.objective is None else _scaled(changes.objective, changes.constant)
    if any(row is None for row in scaled) or (changes.objective is not None and goal is None):
        return None
    base = BestSchedule(instance, replace(options, start=None, report=None))
    if not base.begin():
        return None  # infeasible, which the engine says with its own reason
    search = _Changed(instance, changes, options, check, base)
    try:
        search.run()
    except KeyboardInterrupt:
        search.incumbent.interrupted = True
    return search.result()


def _scaled(terms: Sum, level: Fraction) -> tuple[Mapping[Any, int], int, int] | None:
    return whole_terms(terms, level, LARGEST)


class _Changed:
    """One run."""

    def __init__(
        self, instance: RarDdlsInstance, changes: Changes, options: SolveOptions, check: Check, base: BestSchedule
    ) -> None:
        self.instance, self.changes, self.base = instance, changes, base
        self.check = check
        self.factor = 1
        self.offset = 0
        self.sense = MINIMISE if changes.objective is None else changes.sense
        if changes.objective is not None:
            scaled = _scaled(changes.objective, changes.constant)
            assert scaled is not None
            terms, constant, self.factor = scaled
            # counted from a value that no schedule is below: no variable is negative, and none is above its range
            largest = {"makespan": instance.horizon, "gpus": instance.total_gpus, "held": instance.total_gpus}
            self.offset = self.sense * constant - sum(abs(c) * largest.get(f, 1) for (f, _), c in terms.items())
        self.incumbent = Incumbent(MINIMISE, options, self._counted, whole=True)

    def _counted(self, solution: Solution) -> CheckReport:
        """The report with the objective in whole numbers from 0, to be minimised."""
        report = self.check(solution)
        if report.objective is None:
            return report
        return replace(report, objective=self.sense * self.factor * report.objective - self.offset, whole=True)

    def run(self) -> None:
        """All stages."""
        incumbent, base = self.incumbent, self.base
        if incumbent.options.start is not None:
            incumbent.propose(incumbent.options.start, "start")
        jobs = job_options(self.instance)
        packing = SlotPacking(base, jobs)
        packing.raise_bound(base, PACKING_SHARE)
        of_makespan = self.changes.objective is None
        if of_makespan:
            incumbent.tighten(base.lower)
        if incumbent.finished():
            return
        high = self.instance.horizon
        if of_makespan and incumbent.objective is not None:
            high = int(incumbent.objective) - 1
        if high < base.lower:
            incumbent.exhausted()
            return
        model = IntervalModel(self.instance, jobs, base.lower, high, contention=True, changes=self.changes)
        overlaps = Overlaps(model, packing.grades)
        overlaps.add_needs(packing.needs, packing.grades)
        for cut in packing.cuts:
            overlaps.add_cut(cut, packing.grades)
        expressions = _Expressions(self.instance, model)
        model.model.add_max_equality(model.makespan, model.end)
        for row in self.changes.rows:
            scaled = _scaled(row.terms, row.level)
            assert scaled is not None
            expressions.add(scaled[0], row.sense, scaled[1])
        value: Linear = model.makespan
        if self.changes.objective is not None:
            scaled = _scaled(self.changes.objective, self.changes.constant)
            assert scaled is not None
            value = self.sense * (expressions.total(scaled[0]) + scaled[1]) - self.offset
            model.model.minimize(value)
            if incumbent.objective is not None:
                model.model.add(value <= int(incumbent.objective) - 1)
        self._search(model, overlaps, expressions, value)

    def _search(self, model: IntervalModel, overlaps: Overlaps, expressions: _Expressions, value: Linear) -> None:
        from schedgap.solvers.cp_sat.search import search_cp

        incumbent = self.incumbent

        def seen(of: Callable[[Any], int]) -> bool:
            self._propose(model, of)
            return incumbent.proven or incumbent.gap_reached

        def bounded(bound: int) -> bool:
            incumbent.tighten(bound, of_better=True)
            return incumbent.proven or incumbent.gap_reached

        while not incumbent.finished():
            incumbent.info["rounds"] = incumbent.info.get("rounds", 0) + 1
            answer = search_cp(model.model, incumbent, seen=seen, bounded=bounded)
            if answer.infeasible:
                incumbent.exhausted()
                return
            incumbent.tighten(answer.bound, of_better=True)
            if answer.value is None:
                return
            self._propose(model, answer.value)
            if incumbent.finished():
                return
            if overlaps.refine(answer.value) == 0:
                expressions.exclude(answer.value)
            if incumbent.objective is not None:
                model.model.add(value <= int(incumbent.objective) - 1)

    def _propose(self, model: IntervalModel, value: Callable[[Any], int]) -> None:
        start, placement = model.schedule(value)
        self.incumbent.propose(self.base.as_solution(start, placement), "cp")

    def result(self) -> Result:
        """The result in the objective of the changed model."""
        counted = self.incumbent.result(engine="cpsat", version=package_version("ortools"))

        def back(number: float | None) -> float | None:
            if number is None:
                return None
            return float(Fraction(self.sense) * (Fraction(number) + self.offset) / self.factor)

        bound = counted.bound if counted.status is not Status.INFEASIBLE else None
        return replace(
            counted, objective=back(counted.objective), bound=back(bound), info={**counted.info, "method": "cp"}
        )


class _Expressions:
    """The variables of the printed form as expressions of the interval model.

    A sum over the start slots of one job is a function of its start: a line where it is one, else steps, each with a
    literal "from this slot on". So are sums over its end slots and over the numbers of servers that it may use.
    """

    def __init__(self, instance: RarDdlsInstance, intervals: IntervalModel) -> None:
        self.intervals = intervals
        self.model = intervals.model
        self.horizon = instance.horizon
        self.jobs = {job.id: j for j, job in enumerate(instance.jobs)}
        self.servers = {server.id: s for s, server in enumerate(instance.servers)}
        self._from: dict[tuple[str, int, int], Linear] = {}
        self._width: dict[int, cp_model.IntVar] = {}
        self._product: dict[tuple[str, int, int, int], Linear] = {}

    def add(self, terms: Mapping[Any, int], sense: int, level: int) -> None:
        """One row."""
        total = self.total(terms)
        if isinstance(total, int):  # no variable of it is there
            if not {-1: total <= level, 0: total == level, 1: total >= level}[sense]:
                self.model.add_bool_or([])
            return
        self.model.add(total <= level if sense < 0 else total >= level if sense > 0 else total == level)

    def total(self, terms: Mapping[Any, int]) -> Linear:
        """The sum of coefficients times variables; never added in place, which in CP-SAT changes the summand itself."""
        steps: dict[tuple[str, int], dict[int, int]] = {}
        total: Linear = 0
        for (family, key), coefficient in terms.items():
            if family in ("start", "end", "width"):
                steps.setdefault((family, self.jobs[key[0]]), {})[int(key[1])] = coefficient
            else:
                total = total + coefficient * self._variable(family, key)
        for (family, j), by_number in steps.items():
            total = total + self._function(family, j, by_number)
        return total

    def _variable(self, family: str, key: tuple[Any, ...]) -> Linear:
        if family == "makespan":
            return self.intervals.makespan
        j, s = self.jobs[key[0]], self.servers[key[1]]
        if family == "gpus":
            return self.intervals.gpus(j, s)
        if family == "uses":
            return self.intervals.uses(j, s)
        return self._while_active(family, j, s, int(key[2]))

    def _number(self, family: str, j: int) -> tuple[Linear, int, int]:
        """The number that a family's second index takes for a job, and its range."""
        if family == "start":
            return self.intervals.start[j] + 1, 1, self.horizon
        if family == "end":
            return self.intervals.end[j], 1, self.horizon
        if j not in self._width:
            servers = range(len(self.servers))
            self._width[j] = self.model.new_int_var(1, len(self.servers), f"width{j}")
            self.model.add(self._width[j] == sum(self.intervals.uses(j, s) for s in servers))
        return self._width[j], 1, len(self.servers)

    def _function(self, family: str, j: int, values: Mapping[int, int]) -> Linear:
        """values[number], 0 where there is none."""
        number, low, high = self._number(family, j)
        listed = [values.get(n, 0) for n in range(low, high + 1)]
        slope = listed[1] - listed[0] if len(listed) > 1 else 0
        if all(value == listed[0] + slope * n for n, value in enumerate(listed)):
            return slope * (number - low) + listed[0]
        total: Linear = listed[0]
        for n in range(low + 1, high + 1):
            jump = listed[n - low] - listed[n - low - 1]
            if jump:
                total = total + jump * self._at_least(family, j, n)
        return total

    def _at_least(self, family: str, j: int, least: int) -> Linear:
        """1 where the number is at least so much."""
        if (family, j, least) not in self._from:
            number, low, high = self._number(family, j)
            if least <= low or least > high:
                return int(least <= low)
            literal = self.model.new_bool_var("")
            self.model.add(number >= least).only_enforce_if(literal)
            self.model.add(number < least).only_enforce_if(literal.Not())
            self._from[family, j, least] = literal
        return self._from[family, j, least]

    def _while_active(self, family: str, j: int, s: int, t: int) -> Linear:
        """GPUs on a server (``held``), or whether a ring crosses it (``ring``), in slot t; 0 where it does not run."""
        key = family, j, s, t
        if key not in self._product:
            what: Linear = self.intervals.gpus(j, s)
            room = self.intervals.instance.servers[s].gpus
            if family == "ring":
                what, room = self.intervals.crosses.get((j, s), 0), 1
            active = self.model.new_bool_var("")  # start <= t <= end
            self.model.add(self._at_least("end", j, t) - self._at_least("start", j, t + 1) == active)
            product = self.model.new_int_var(0, room, "")
            self.model.add(product == what).only_enforce_if(active)
            self.model.add(product == 0).only_enforce_if(active.Not())
            self._product[key] = product
        return self._product[key]

    def exclude(self, value: Callable[[Any], int]) -> None:
        """No schedule of exactly these starts and GPUs: it was judged."""
        differs = []
        start, placement = self.intervals.schedule(value)
        for j, slot in enumerate(start):
            differs.append(self._differs(self.intervals.start[j], slot - 1))
            for s in range(len(self.servers)):
                gpus = self.intervals.gpus(j, s)
                if not isinstance(gpus, int):
                    differs.append(self._differs(gpus, placement[j].get(s, 0)))
        self.model.add_bool_or(differs)

    def _differs(self, expression: Linear, value: int) -> cp_model.IntVar:
        """A literal that implies that the expression is not the value."""
        below, above, other = (self.model.new_bool_var("") for _ in range(3))
        self.model.add(expression <= value - 1).only_enforce_if(below)
        self.model.add(expression >= value + 1).only_enforce_if(above)
        self.model.add_bool_or(below, above, other.Not())
        return other
