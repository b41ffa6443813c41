"""The exact method `cp` of gpu-sharing: local search, LPs over runs, a bounded dynamic program, CP-SAT for the rest.

Idea: reduced costs of a linear program over runs leave few runs; a dynamic program or CP-SAT decides among these.
Source: paper 003's problem (15); reduced-cost fixing is standard, overlaps in place of GPU identities are ours.
Guarantee: `optimal` is proven; each stage's bound holds alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.gpu_sharing.check import check
from schedgap.formulations.gpu_sharing.gpu_lists import placed
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices, impossible
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.exact.gpu_sharing.dynamic_program import DynamicProgram, fits
from schedgap.solvers.exact.gpu_sharing.lp import (
    LARGEST,
    ColumnBound,
    Columns,
    all_columns,
    column_bound,
    fine_entries,
    lp_nonzeros,
)
from schedgap.solvers.exact.gpu_sharing.search import Search
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline, Result, SolveOptions, Termination, package_version

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.search import Value
from schedgap.solvers.exact.gpu_sharing.cp_model import Excess, Point, SharingModel, overspent

_RESTARTS = 4


_EFFORT = 2e8


_LARGEST_ROUNDS = 40_000


_LOOKS = 20
"""How often a local search looks at the clock."""


_SECONDS_OF_PAIR = 1.5e-6
"""What a pair of jobs costs in :func:`choices`, measured at 6,200 jobs."""


_PAIRS_SHARE = 0.3
"""Share of the remaining time for the pairs."""


_SHRUNK = 0.8
"""A search is started again when a new incumbent leaves fewer than this part of its columns."""


_FINEST = 10**12


_LARGEST_FINE = 10_000_000
"""Entries beyond which the LP by numbers of steps is not built."""


_LP_SHARE = 0.5
"""Share of the remaining time for that LP."""


_SHARE = 0.85
"""Share of the remaining time or work for the dynamic program."""


_QUICK = 3.0
"""Work of a dynamic program after which twice as many sums are tried at once."""


def solve_cp(instance: GpuSharingInstance, options: SolveOptions) -> Result:
    """Solve an instance to proven optimality.

    1. A compiled local search gives an incumbent of sum U.
    2. LPs over runs (job, accumulation, start, duration) give a bound B; every run whose reduced cost
       shows that it cannot be part of a sum of at most U - 1 is dropped. In the second LP only jobs share
       whose memory fits with their numbers of steps, and only in slots where the loss can be afforded.
    3. A dynamic program over slots, bounded by the LP's prices, shows that there is no schedule of sum B, B + 1 and
       so on, or finds one, which is optimal; it ends without a proof where a slot has too many states.
    4. CP-SAT chooses among the runs that are left, with overlap integers instead of GPU identities, for a
       sum of at most U - 1. A better point replaces the incumbent and more runs are dropped, until nothing
       better exists. Overlaps become GPU lists, and the checker scores every incumbent.

    Returns status OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN; objective and bound are mean JCT in slots. Raises
    Disagreement: a schedule that the models admit breaks a constraint of the checker.

    Parameters
    ----------
    options : limits, seed, threads, start; with ``work_limit`` every step stops by counts
    """
    jobs = len(instance.jobs)
    best = Incumbent(
        MINIMISE, options, partial(parsed(check, GpuSharingSolution), instance), unit=Fraction(1, jobs), whole=True
    )
    ended: Termination | None = None
    reason = impossible(instance)
    if reason is not None:
        best.impossible(reason)
    else:
        try:
            ended = _begun(instance, best)
            if ended is None and not best.finished():
                ended = _Stages(instance, best, choices(instance)).run()
        except (KeyboardInterrupt, SystemError) as error:
            # Ctrl-C inside compiled code arrives wrapped.
            if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            best.interrupted = True
    return best.result(ended, "cpsat", package_version("ortools"))


def _begun(instance: GpuSharingInstance, best: Incumbent) -> Termination | None:
    """The certified bound and the given start; too large where the tables of pairs leave no time for anything else."""
    jobs = len(instance.jobs)
    simple = lower_bound(instance) if best.stage("bound") else 0.0
    assert simple is not None
    best.tighten(math.ceil(simple * jobs - 1e-6))
    if best.options.start is not None:
        best.propose(best.options.start, "start")
    remaining = best.seconds_left()
    seconds = _SECONDS_OF_PAIR * jobs**2 / 2
    if remaining is None or seconds <= _PAIRS_SHARE * remaining or instance.max_jobs_per_gpu == 1:
        return None
    best.info["reason"] = f"{jobs} jobs: their pairs alone take about {seconds:.0f} s of the {remaining:.3g} s left"
    return Termination.TOO_LARGE


@dataclass
class _Stages:
    """The steps; objectives are whole sums of JCT."""

    instance: GpuSharingInstance
    best: Incumbent
    choices: Choices
    scale: int = 0
    excluded: list[Excess] = field(default_factory=list)

    def run(self) -> Termination | None:
        """All steps; why they ended, where the incumbent does not tell."""
        best = self.best
        if best.stage("local search"):
            self._search()
        if best.proven or best.out_of_time():
            return None
        if lp_nonzeros(self.instance, self.choices) > LARGEST:
            return Termination.TOO_LARGE
        columns, least, prices = self._linear_programs()
        possible = prices is not None and best.objective is not None and fits(self.instance, columns)
        if prices is not None and possible and best.stage("dynamic program"):
            self._enumerate(columns, least, prices)
        if best.stage("cp-sat"):
            self._complete(columns, least)
        return None

    def _linear_programs(self) -> tuple[Columns, Floats, ColumnBound | None]:
        """The columns that are left, the least sum of JCT with each, and the prices of the LP by numbers of steps."""
        best = self.best
        columns = all_columns(self.instance, self.choices)
        least = np.zeros(len(columns.job))
        best.info["columns"] = [len(columns.job)]
        lp, decides = None, best.stage("linear programs")
        for by_mode in (False, True):
            lp, until = None, best.options.deadline
            remaining = best.seconds_left(_LP_SHARE)
            if by_mode and remaining:
                until = Deadline.after(remaining)
            if not by_mode or fine_entries(self.choices, columns) <= _LARGEST_FINE:
                lp = column_bound(self.instance, self.choices, columns, until, by_mode=by_mode)
            if lp is None:
                break
            if not decides:
                continue
            # The second has only runs of schedules that are better than the incumbent.
            value = lp.value if not by_mode or best.objective is None else min(lp.value, float(best.objective))
            best.info["lp bound"] = value / len(self.instance.jobs)
            best.tighten(math.ceil(value - 1e-6))
            best.log("linear program")
            least = np.maximum(least, lp.value + lp.reduced)
            if best.objective is not None:
                keep = least <= int(best.objective) - 1
                columns, least = columns.only(keep), least[keep]
            if self._closed(columns):
                return columns, least, None
        return columns, least, lp

    def _closed(self, columns: Columns) -> bool:
        """Whether some job has no column left."""
        return len(np.unique(columns.job)) < len(self.instance.jobs)

    def _enumerate(self, columns: Columns, least: Floats, prices: ColumnBound) -> None:
        """All schedules of one sum after the other, in a share of what is left."""
        best = self.best
        assert best.bound is not None
        seconds, work = best.seconds_left(_SHARE), best.work_left(_SHARE)
        until = best.options.deadline if not seconds else Deadline.after(seconds)
        most_work = math.inf if work is None else best.work + work
        step, states, late = 2, 0, sum(job.arrival - 1 for job in self.instance.jobs)
        while not best.finished():
            assert best.objective is not None
            most = min(int(best.objective), int(best.bound) + step) - 1
            before, complete = best.work, True
            kept, found = columns.only(least <= most), None
            if not self._closed(kept):
                program = DynamicProgram(self.instance, self.choices, kept, best, until, most_work)
                complete, found = program.search(prices, most)
                states += program.states
            best.info["states"] = states
            best.log(f"dynamic program up to {most}")
            if not complete:
                return
            if found is None:
                best.tighten(most + 1)
            else:
                total = best.propose(found.solution(self.instance, self.choices), "dynamic program")
                if total != found.total - late:
                    return
                best.exhausted()
            step = 2 * step if best.work - before < _QUICK else 2

    def _search(self) -> None:
        """Local search from several seeds, less of it on large instances."""
        n = len(self.instance.jobs)
        rounds = int(min(_LARGEST_ROUNDS, max(20, _EFFORT / n**3)))
        for restart in range(_RESTARTS if rounds > 20 else 1):
            if self.best.proven or (restart and self.best.out_of_time()):
                return
            seed = self.best.options.seed + 7919 * restart
            tries = Search(self.instance, self.choices, seed=seed)
            part = max(1, -(-rounds // _LOOKS))
            for first in range(0, rounds, part):
                tries.run(rounds, first, part)
                if self.best.out_of_time():
                    break
            found = tries.found
            if found is not None:
                self.best.propose(found.solution(self.instance, self.choices), "local search")
        self.best.log("local search")

    def _complete(self, columns: Columns, least: Floats) -> None:
        """CP-SAT on the columns that may be part of something better, until there is nothing better."""
        best = self.best
        while not best.finished():
            most = None if best.objective is None else int(best.objective) - 1
            kept = columns if most is None else columns.only(least <= most)
            best.info["columns"] = [best.info["columns"][0], len(kept.job)]
            if self._closed(kept):
                best.exhausted()
                return
            lower = 0 if best.bound is None else int(best.bound)
            model = SharingModel(self.instance, self.choices, kept, lower, most, self.excluded)
            step = _Step(self, model, least, len(kept.job))
            from schedgap.solvers.cp_sat.search import search_cp

            answer = search_cp(model.model, best, seen=step.seen)
            best.log("model searched")
            if step.too_much is not None:
                self._refine(step.too_much)
                continue
            best.tighten(answer.bound, of_better=True)
            if answer.infeasible or answer.optimal:
                best.exhausted()
            elif not step.again:
                return

    def take(self, point: Point) -> bool:
        """Score a point of the model; False where rounded losses let it claim too much."""
        start, end, steps = [0] * len(point.runs), [0] * len(point.runs), [0] * len(point.runs)
        for j, m, t, d in point.runs:
            start[j], end[j], steps[j] = t, t + d - 1, self.choices.jobs[j].modes[m].steps
        total = self.best.propose(placed(self.instance, start, end, point.overlap, steps), "cp")
        return total is not None and total <= point.total

    def _refine(self, point: Point) -> None:
        """Count losses in finer units, or leave out what the finest ones still admit in a point.

        Raises Disagreement: no job loses more than it may: model and checker contradict each other.
        """
        found = overspent(self.choices, point)
        if not found:
            raise Disagreement("cp: the checker scores a point of the model worse than the model does")
        if self.scale >= _FINEST:
            self.excluded += found
            self.best.info["losses left out"] = len(self.excluded)
            return
        self.scale = _FINEST
        self.choices = choices(self.instance, _FINEST)
        self.best.info["loss scale"] = _FINEST


@dataclass
class _Step:
    """One search of the model: scores its points, and stops it when fewer columns would do."""

    stages: _Stages
    model: SharingModel
    least: Floats
    columns: int
    too_much: Point | None = None
    again: bool = False

    def seen(self, value: Value) -> bool:
        """Score a point; whether to stop."""
        point = self.model.point(value)
        if not self.stages.take(point):
            self.too_much = point
            return True
        best = self.stages.best
        assert best.objective is not None
        if best.proven or best.gap_reached:
            return True
        self.again = int((self.least <= int(best.objective) - 1).sum()) < _SHRUNK * self.columns
        return self.again
