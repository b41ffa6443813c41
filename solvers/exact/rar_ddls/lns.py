"""Method ``lns`` of rar-ddls: some jobs are taken out and scheduled anew by the interval model, beside the others.

Idea: jobs that end last, and some that could make room, are scheduled anew by the interval model. Source: large
neighbourhood search (Shaw, 1998). Rings that are put back never meet one that stayed, so not every schedule is
reached; nothing is proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import job_options
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.intervals import Fixed, IntervalModel
from schedgap.solvers.exact.rar_ddls.job_needs import contention_grades
from schedgap.solvers.exact.rar_ddls.overlaps import Overlaps
from schedgap.solvers.exact.rar_ddls.search import LocalSearch
from schedgap.solvers.neighbourhoods import Neighbourhoods, StepOutcome, record_gain, searched, with_companions
from schedgap.solvers.result import Result, SolveOptions

SHARE = 0.5
"""Share of the remaining time or work for annealed orders."""
ROUNDS = 4
"""Searches of one neighbourhood: a point in which rings cost more than the model says is cut off."""


def solve_lns(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """``searched`` from the start of `options`."""
    incumbent = BestSchedule(instance, options)
    incumbent.begin()
    return searched(incumbent, lambda: _after_orders(incumbent))


def _after_orders(incumbent: BestSchedule) -> JobNeighbourhoods:
    """The neighbourhoods of the start, or of what annealed orders of the jobs make better than it."""
    before = incumbent.objective
    LocalSearch(incumbent.instance, incumbent.options.seed).refine(incumbent, SHARE)
    record_gain(incumbent, before, "orders", len(incumbent.instance.jobs))
    incumbent.log("annealed orders")
    return JobNeighbourhoods(incumbent)


class JobNeighbourhoods(Neighbourhoods):
    """Jobs to be scheduled anew; each time some of those that end last, and others that could make room for them.

    Rings that meet are taken out together, and those that are put back never meet one that stayed: the others go on
    slot by slot as they did. Besides a smaller makespan, fewer GPUs in the last slot count as better.

    Parameters
    ----------
    incumbent : with a solution
    """

    kinds = ("servers", "window", "slowed", "random")

    def __init__(self, incumbent: BestSchedule) -> None:
        instance = incumbent.instance
        self.incumbent = incumbent
        self.instance = instance
        self.parts = len(instance.jobs)
        self._options = job_options(instance)
        self._grades = contention_grades(instance)
        self._name = [job.id for job in instance.jobs]
        server = {server.id: s for s, server in enumerate(instance.servers)}
        assert incumbent.solution is not None
        placed = incumbent.solution["placement"]
        placement = [{server[s]: int(g) for s, g in placed[name].items()} for name in self._name]
        self._take([int(incumbent.solution["start"][name]) for name in self._name], placement)

    def _take(self, start: Sequence[int], placement: Sequence[Mapping[int, int]]) -> bool:
        """Make a schedule the present one, where every job of it completes; whether that is so."""
        solution = self.incumbent.as_solution(start, placement)
        completion = simulate(self.instance, solution["start"], solution["placement"]).completion
        end = [slot for slot in completion.values() if slot is not None]
        if len(end) < self.parts:
            return False
        self._start, self._placement, self._end = list(start), list(placement), end
        self._makespan = max(end)
        self._last = [j for j, slot in enumerate(end) if slot == self._makespan]
        return True

    @property
    def _value(self) -> tuple[int, int]:
        return self._makespan, sum(self._options[j].gpus for j in self._last)

    # -- what is freed ------------------------------------------------------------------------------------------

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """Jobs that end last, or half of `size` of them, then others by `kind`, and the rings that these meet."""
        most = max(1, size // 2)
        last = [int(j) for j in rng.permutation(self._last)]
        chosen = dict.fromkeys(last[:most])
        for j in self._ranked(kind, last[0], rng):
            if len(chosen) >= size:
                break
            chosen[j] = None
        return with_companions(chosen, self._met)

    def _ranked(self, kind: str, seed: int, rng: np.random.Generator) -> list[int]:
        jobs = rng.permutation(self.parts)
        start, end = np.array(self._start)[jobs], np.array(self._end)[jobs]
        if kind == "window":
            moment = int(rng.integers(1, self._makespan + 1))
            key = np.maximum(0, np.maximum(start - moment, moment - end)).astype(float)
        elif kind == "slowed":
            best = np.array([option.duration or 1 for option in self._options])[jobs]
            gpus = np.array([option.gpus for option in self._options])[jobs]
            key = -gpus * (end - start + 1 - best) * rng.uniform(0.5, 1.5, self.parts)
        elif kind == "servers":
            order = rng.permutation(len(self.instance.servers))
            rank = {int(s): float(r) for r, s in enumerate(order)}
            rank.update(dict.fromkeys(self._placement[seed], -1.0))
            key = np.array([min(rank[s] for s in self._placement[j]) for j in jobs])
        else:
            key = np.zeros(self.parts)
        return [int(j) for j in jobs[np.argsort(key, kind="stable")]]

    def _met(self, j: int) -> Iterator[int]:
        """The rings that meet ring j; none where it does not cross."""
        for k, placement in enumerate(self._placement if len(self._placement[j]) > 1 else ()):
            together = self._start[k] <= self._end[j] and self._start[j] <= self._end[k]
            if len(placement) > 1 and together and self._placement[j].keys() & placement.keys():
                yield k

    # -- how it is solved ---------------------------------------------------------------------------------------

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """The interval model of the freed jobs, with contention among them, beside the others."""
        from schedgap.solvers.cp_sat.search import Value, search_cp

        jobs = sorted(parts)
        intervals = self._model(jobs)
        overlaps = Overlaps(intervals, self._grades)
        better, complete, before = False, False, self.incumbent.work

        def seen(value: Value) -> bool:
            nonlocal better
            better = self._put_back(jobs, *intervals.schedule(value)) or better
            return self.incumbent.finished()

        for _ in range(ROUNDS):
            remaining = most_work - (self.incumbent.work - before)
            if remaining <= 0 or self.incumbent.finished():
                break
            answer = search_cp(intervals.model, self.incumbent, seen=seen, most_work=remaining)
            complete = answer.infeasible or answer.optimal
            if better or answer.value is None or overlaps.refine(answer.value) == 0:
                break
            complete = False
        return StepOutcome(better, complete)

    def _model(self, jobs: Sequence[int]) -> IntervalModel:
        """Less than the present makespan, or fewer GPUs in the last slot where jobs that end there stay."""
        out = set(jobs)
        part = self.instance.model_copy(update={"jobs": tuple(self.instance.jobs[j] for j in jobs)})
        stay = [Fixed(self._start[j] - 1, self._end[j], self._placement[j]) for j in range(self.parts) if j not in out]
        everywhere = all(j in out for j in self._last)
        low = max([self.incumbent.lower, *(job.end for job in stay)])
        high = self._makespan - everywhere
        own = [self._options[j] for j in jobs]
        intervals = IntervalModel(part, own, low, high, contention=True, fixed=stay)
        if not everywhere:
            model, late = intervals.model, []
            for end in intervals.end:
                late.append(model.new_bool_var(""))
                model.add(end < high).only_enforce_if(late[-1].Not())
            gpus = sum(option.gpus * literal for option, literal in zip(own, late, strict=True))
            model.add(gpus < sum(self._options[j].gpus for j in self._last if j in out))
            model.minimize(gpus)
        return intervals

    def _put_back(self, jobs: Sequence[int], start: Sequence[int], placement: Sequence[Mapping[int, int]]) -> bool:
        """Run the whole schedule; keep it where it is better."""
        before = self._start, self._placement, self._value
        starts, placed = list(self._start), list(self._placement)
        for j, slot, where in zip(jobs, start, placement, strict=True):
            starts[j], placed[j] = slot, where
        if not self._take(starts, placed):
            return False
        if self._value >= before[2]:
            self._take(before[0], before[1])
            return False
        shorter = self._makespan <= self.incumbent.ceiling
        if shorter and self.incumbent.propose_schedule(starts, placed, "lns") is None:
            solution = self.incumbent.as_solution(starts, placed)
            raise Disagreement("lns: the checker refuses what the model put beside the fixed jobs", solution=solution)
        return True
