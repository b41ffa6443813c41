"""One instance of a problem here, all answers: the examination of guests, and stages of exact methods beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from gate.gates import GATES
from oracles import TooManyError

from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.result import SolveOptions
from schedgap.tools.testing import examining
from schedgap.tools.testing.examining import Record

EVERY = {"engine": 6, "certificate": 3, "heuristic": 2}
"""One in so many instances is asked these."""


class Examination(examining.Examination):
    """All answers to one instance.

    Parameters
    ----------
    instance, numbers : a number chooses what is asked beside the default method; the same question is asked once
    """

    def __init__(self, instance: Instance, numbers: Iterable[int], scratch: Path) -> None:
        self.gate = GATES[instance.problem]
        self.numbers = numbers
        near, way = self.gate.near, self.gate.gives_way
        problem = find_problem(instance.problem)
        super().__init__(problem, instance, None, None, near=near, gives_way=way, scratch=scratch)
        self.record = Record()

    def run(self) -> Record:
        """Ask everybody."""
        try:
            self.optimum, self.solution = self.gate.truth(self.instance)
        except TooManyError:
            self.record.skipped = 1
            return self.record
        self.record.instances, self.record.infeasible = 1, int(self.optimum is None)
        return self.ask({label: ask for number in self.numbers for label, ask in self._questions(number)})

    def _questions(self, turn: int) -> Iterator[tuple[str, Callable[[], None]]]:
        methods = self.problem.methods
        engines = [method.id for method in methods if method.kind is Kind.ENGINE]
        heuristics = [method.id for method in methods if method.kind is Kind.HEURISTIC and not method.outside_model]
        if self.solution is not None or self.optimum is None:
            yield "checker", self.checker
        default = self.problem.default_method(self.instance).id
        yield default, lambda: self.judge_answer(default, self.answer(default, SolveOptions(threads=1)))
        turns = [self.gate.stages[place % len(self.gate.stages)] for place in range(turn, turn + self.gate.sets)]
        for stages in dict.fromkeys([*turns, *self.gate.always(self.instance)]):
            yield " + ".join(sorted(stages)), partial(self._staged, stages)
        yield "bound", self.bound
        if turn % EVERY["engine"] == 0:
            name = engines[turn // EVERY["engine"] % len(engines)]
            yield f"engine {name}", partial(self.engine, name)
        if turn % EVERY["heuristic"] == 0:
            chosen = heuristics[turn // EVERY["heuristic"] % len(heuristics)]
            yield chosen, partial(self.heuristic, chosen)
        yield "certified bound", self.certified_bound
        if turn % EVERY["certificate"] == 0:
            yield "certificate", self.certificate
            yield "false certificate", self.false_certificates

    def _staged(self, stages: frozenset[str]) -> None:
        """The exact method with some of its stages, from a poor schedule where it needs one."""
        options = SolveOptions(threads=1, stages=stages, start=self._poor(stages))
        label = " + ".join(sorted(stages))
        try:
            solve = self.gate.solve
            result = self.answer("highs", options) if solve is None else solve(self.instance, options)
        except ModelRefused:
            self.record.open[f"{label} refuses"] += 1
            return
        decided = result.info.get("decided by", "")
        known = stages | {"placements"} | ({"root node"} if "branch and price" in stages else set())
        if decided and decided not in known:
            self.fault(f"{label}: decided by {decided}, which was not asked")
        self.judge_answer(label, result, owed=bool(stages & self.gate.complete))

    def first(self) -> Solution | None:
        """A first schedule for an engine of gang-placement, as every solve with a limit gives it one.

        Its objective goes up to 1e12: without a schedule CP-SAT was seen to walk there in single steps, without end.
        """
        if self.problem.id != "gang-placement":
            return None
        return self.answer("kueue-best-fit", SolveOptions()).solution

    def _poor(self, stages: frozenset[str]) -> Solution | None:
        """Jobs one after the other, the last first."""
        given: Any = self.instance
        if self.problem.id == "comm-contention":
            link = given.link
            clock, start = max(task.release for task in given.tasks), {}
            for task in sorted(given.tasks, key=lambda task: -task.size):
                start[task.id] = clock
                clock += 1.1 * (task.size * link.seconds_per_unit + link.latency)
            return {"start": start}
        if self.problem.id == "gpu-sharing" and "dynamic program" in stages:
            return self.answer("fifo", SolveOptions()).solution
        return None

    def step(self) -> Fraction:
        """One slot, or one slot of one job."""
        whole = {"rar-ddls": Fraction(1), "gpu-sharing": Fraction(1, len(getattr(self.instance, "jobs", "1")))}
        return whole.get(self.problem.id) or super().step()

    def may_be_infeasible(self) -> bool:
        """Whether "no schedule" may be claimed: only where there might be none."""
        return self.problem.id in ("rar-ddls", "gpu-sharing") or bool(
            getattr(self.instance, "all_jobs_must_finish", False)
        )
