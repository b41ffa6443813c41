"""Method `staged`: the components of the objective one after another, each an integer program of its own.

Idea: the first component is solved, held at its optimum as a row, and the next one is solved. Each begins with
cheaper relaxations that often close it: sums over all nodes, with exchange between nodes (`exchange.py`), equal nodes,
gangs and pods merged (`merged.py`), patterns of what a node holds (`patterns.py`), contents of what a domain holds
(`domains.py`), a bound by prices (`bound.py`).
Source: ours; lexicographic goal programming is folklore. Guarantee: optimal where every component was closed, else
`info` counts the closed ones. As the front desk starts it, it is never below the best rule that takes milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.gang_placement.check import check
from schedgap.formulations.gang_placement.instance import GangPlacementInstance, GangPlacementSolution
from schedgap.formulations.gang_placement.models.assignment import assignment_nonzeros, build_assignment
from schedgap.formulations.gang_placement.models.merged import solvable
from schedgap.formulations.gang_placement.scale import components, encode
from schedgap.solvers.engines.answer import rounded_bound
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.exact.gang_placement.bound import upper_bound
from schedgap.solvers.exact.gang_placement.device_knapsack import device_knapsacks_of
from schedgap.solvers.exact.gang_placement.domains import solve_contents
from schedgap.solvers.exact.gang_placement.exchange import FEW_RUNS, exchange_of
from schedgap.solvers.exact.gang_placement.merged import solve_merged
from schedgap.solvers.exact.gang_placement.patterns import MOST_COLUMNS, Proven, patterns_of, solve_patterns
from schedgap.solvers.exact.gang_placement.pricing import knapsacks_of, solve_priced
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Proof, Result, SolveOptions, Status

TARGETS = 4
"""Values from the bound of sums on, one less each, that exchange tries."""
EngineName = Literal["cpsat", "highs", "cbc"]


def solve_staged(
    instance: GangPlacementInstance,
    options: SolveOptions,
    *,
    engine: Annotated[EngineName, Field(description="which engine solves each program")] = "highs",
) -> Result:
    """The lexicographic optimum: each component is solved with those before it held at their optima.

    Returns
    -------
    Result
        OPTIMAL where every component was proven; else the bound says how far the proof came: the digits that are
        proven, the bound on the next one, and the best that the rest could be. ``info["components"]``: of the
        solution; ``info["proven components"]``: how many of them, in order, no decision improves.

    Notes
    -----
    The programs have numbers of ordinary size where the objective as one number has many digits, and every one of them
    is whole, so that engines are believed.
    """
    return _Stages(instance, options, engine).run()


class _Stages:
    """One run."""

    def __init__(self, instance: GangPlacementInstance, options: SolveOptions, engine: EngineName) -> None:
        self.instance = instance
        self.options = options
        self.engine = engine
        self.entries = components(instance)
        self.best = Incumbent(-1, options, self._check)
        self.held: list[int] = []
        self.results: list[Result] = []

    def run(self) -> Result:
        """All stages, as far as limits allow."""
        nothing: Solution = {"placement": {}}  # which is always feasible
        for start in (self.options.start, nothing):
            if start is not None:
                self.best.propose(start, "start")
        if self.best.stage("bound"):
            self.best.tighten(upper_bound(self.instance))
        if self.best.stage("exchange"):
            self._exchange()
        stages = [("merged nodes", self._merge), ("patterns", self._fill)]
        if not self.best.finished() and self._priced():  # equal gangs are few, so that what merges them is large
            stages.reverse()
        for name, stage in [*stages, ("contents", self._share)]:
            if self.best.stage(name):
                stage()
        if self.best.stage("programs"):
            while len(self.held) < len(self.entries) and not self.best.finished() and self._stage(len(self.held)):
                pass
        if len(self.held) == len(self.entries):
            self.best.tighten(encode(self.instance, self.held))
        return self._result()

    def _priced(self) -> bool:
        """Whether patterns are too many for one integer program and are made by prices."""
        patterns = patterns_of(self.instance)
        many = patterns is None or len(patterns.counts) > MOST_COLUMNS
        return many and (knapsacks_of(self.instance) or device_knapsacks_of(self.instance)) is not None

    def _merge(self) -> None:
        while len(self.held) < solvable(self.instance) and not self.best.finished() and self._merged():
            pass

    def _exchange(self) -> None:
        while not self.best.finished() and self._exchanged():
            pass

    def _exchanged(self) -> bool:
        """The next component by sums over all bins; whether a decision meets their bound."""
        exchange = exchange_of(self.instance, self.held) if len(self.held) < len(self.entries) else None
        bound = None if exchange is None else exchange.most(self.options.deadline)
        if exchange is None or bound is None:
            return False
        for target in range(bound, max(self._reached(), bound - TARGETS), -1):
            decision = exchange.decision(target, FEW_RUNS, self.options)
            if decision is not None:
                self.best.propose(decision, "exchange")
                break
        return self._met(bound)

    def _fill(self) -> None:
        while self._weighs(len(self.held)) and not self.best.finished() and self._patterns():
            pass

    def _share(self) -> None:
        """The component `domains`, where it is the next one, by what domains of the widest level hold."""
        if len(self.held) == len(self.entries) or self.best.finished():
            return
        highest = self.entries[len(self.held)].most
        part = solve_contents(self.instance, self.held, highest - self._reached(), self.options)
        if part is not None:
            if part.decision is not None:
                self.best.propose(part.decision, "contents")
            self._met(highest - part.least)

    def _check(self, solution: Solution) -> CheckReport:
        return check(self.instance, GangPlacementSolution.parse(solution))

    def _digits(self, report: CheckReport) -> list[int]:
        values = map(Fraction, report.details["components"].values())
        return [entry.digit(value) for entry, value in zip(self.entries, values, strict=True)]

    def _merged(self) -> bool:
        """The next component with equal nodes merged; whether a decision meets the relaxation's bound."""
        answer, decision = solve_merged(self.instance, self.held, self.engine, self.options)
        if decision is not None:
            self.best.propose(decision, "merged nodes")
        if answer.doubt or answer.bound is None:
            return False
        return self._met(int(rounded_bound(answer.bound, MAXIMISE)))

    def _weighs(self, goal: int) -> bool:
        return goal < len(self.entries) and self.entries[goal].kind == "weight"

    def _patterns(self) -> bool:
        """The next component with patterns of bins; whether a decision meets their bound."""
        least = self._reached()
        known = self.best.solution if least >= 0 else None
        task = self.instance, self.held, least, replace(self.options, start=known)
        proven = solve_patterns(*task)
        if proven is None or (proven.decision is None and proven.bound > least):
            proven = tightest(proven, solve_priced(*task))
        if proven is None:
            return False
        if proven.decision is not None:
            self.best.propose(proven.decision, "patterns")
        return self._met(proven.bound)

    def _reached(self) -> int:
        """The next component of the best decision where that has what is held, else -1."""
        goal, solution = len(self.held), self.best.solution
        digits = self._digits(self._check(solution)) if solution is not None else []
        return digits[goal] if digits[:goal] == self.held and digits else -1

    def _met(self, bound: int) -> bool:
        """Keep the bound on the next component; whether the best decision has it, which is held then."""
        self._tighten([*self.held, bound])
        assert self.best.solution is not None
        digits = self._digits(self._check(self.best.solution))[: len(self.held) + 1]
        if digits != [*self.held, bound]:
            return False
        self.held.append(bound)
        return True

    def _stage(self, goal: int) -> bool:
        """Solve one component with those before it held; whether it is proven."""

        def scored(solution: Solution) -> CheckReport:
            report = self._check(solution)
            digits = self._digits(report)
            held = not report.violations and digits[:goal] >= self.held
            return replace(report, objective=Fraction(digits[goal]) if held else None)

        start = self.best.solution
        if start is not None and self._digits(self._check(start))[:goal] < self.held:
            start = None
        result = solve_declarative(
            lambda: build_assignment(self.instance, True, goal=goal, held=self.held),
            self.engine,
            replace(self.options, start=start, report=None, relative_gap=0.0, stages=None),
            scored,
            assignment_nonzeros(self.instance),
        )
        self.results.append(result)
        if result.solution is not None:
            self.best.propose(result.solution, self.engine)
        if result.status is Status.OPTIMAL and result.objective is not None:
            self.held.append(int(result.objective))
            self._tighten(self.held)
            return True
        if result.bound is not None:
            self._tighten([*self.held, int(result.bound)])
        return False

    def _tighten(self, digits: list[int]) -> None:
        """The bound where the first digits are at most these and the rest is the best there could be."""
        rest = self.entries[len(digits) :]
        most = [entry.most for entry in rest]
        self.best.tighten(encode(self.instance, [*digits, *most]))

    def _result(self) -> Result:
        last = self.results[-1] if self.results else None
        if self.best.solution is not None:
            self.best.info["components"] = dict(self._check(self.best.solution).details["components"])
        self.best.info["proven components"] = len(self.held)
        levels = [result.proof for result in self.results]
        if self.results and all(level is Proof.AGREED for level in levels):
            self.best.info["proof"] = Proof.AGREED
        if last is None:
            return self.best.result()
        ended = None if self.best.proven else last.termination
        return self.best.result(ended, engine=last.engine, version=last.engine_version)


def tightest(proven: Proven | None, other: Proven | None) -> Proven | None:
    """The lower of two bounds, with the decision of the second."""
    if proven is None or other is None:
        return proven or other
    return Proven(min(proven.bound, other.bound), other.decision)
