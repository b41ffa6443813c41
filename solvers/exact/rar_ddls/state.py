"""What is known of one instance while method ``cp`` works on it: the best schedule, the best bound, limits."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import gap
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.result import SolveOptions

Placement = Sequence[Mapping[int, int]]
"""By job position: GPUs by server position."""

MARGIN = 0.25
"""Seconds before the deadline at which searches are told to stop, so that the answer is out in time."""


class Known:
    """The incumbent and the bound; both only improve, and every improvement is reported.

    Attributes
    ----------
    bound : proven lower bound on the makespan of every schedule, in slots
    makespan, solution : of the best schedule found that the checker accepts; None before one is found
    infeasible : proven that no schedule keeps the horizon
    interrupted : Ctrl-C came
    work : CP-SAT's deterministic time used so far
    """

    def __init__(self, instance: RarDdlsInstance, options: SolveOptions, bound: int) -> None:
        self.instance = instance
        self.options = options
        self.bound = bound
        self.makespan: int | None = None
        self.solution: Solution | None = None
        self.infeasible = False
        self.interrupted = False
        self.work = 0.0
        self.began = time.monotonic()
        self._jobs = [job.id for job in instance.jobs]
        self._servers = [server.id for server in instance.servers]

    @property
    def ceiling(self) -> int:
        """The makespan that a schedule worth finding has at most: the best known less one, or the horizon."""
        return self.instance.horizon if self.makespan is None else self.makespan - 1

    @property
    def proven(self) -> bool:
        """Nothing is left to find: bound and schedule meet, or there is no schedule."""
        return self.infeasible or self.bound > self.ceiling

    @property
    def close_enough(self) -> bool:
        """The caller's relative gap is reached."""
        found = gap(self.makespan, self.bound)
        return found is not None and found <= self.options.relative_gap

    @property
    def finished(self) -> bool:
        """No further stage is to start."""
        return self.proven or self.close_enough or self.interrupted or self.out_of_time or self.out_of_work

    @property
    def out_of_time(self) -> bool:
        """The deadline is reached, but for the margin."""
        left = self.seconds_left()
        return left is not None and left <= 0.0

    @property
    def out_of_work(self) -> bool:
        """CP-SAT's deterministic time is used up."""
        left = self.work_left()
        return left is not None and left <= 1e-3

    def seconds_left(self, share: float = 1.0) -> float | None:
        """`share` of the seconds left before the margin; None without a deadline."""
        left = self.options.deadline.left()
        return None if left is None else share * max(0.0, left - min(MARGIN, 0.1 * left))

    def work_left(self, share: float = 1.0) -> float | None:
        """`share` of the deterministic time left; None where there is no limit."""
        limit = self.options.work_limit
        return None if limit is None else share * max(0.0, limit - self.work)

    @property
    def workers(self) -> int:
        """Threads for CP-SAT: one where the run must be repeatable."""
        if self.options.threads is None:
            return 1 if self.options.work_limit is not None else (os.cpu_count() or 1)
        return self.options.threads

    def learn(self, bound: int) -> None:
        """Keep a proven lower bound when it is the best so far."""
        if bound > self.bound:
            self.bound = bound
            if self.makespan is not None:
                self.bound = min(bound, self.makespan)
            elif bound > self.instance.horizon:
                self.infeasible = True
            self._report(None)

    def refute(self) -> None:
        """No schedule has a makespan up to ``ceiling``: the incumbent is optimal, or there is none at all."""
        if self.makespan is None:
            self.infeasible = True
        else:
            self.learn(self.makespan)

    def offer(self, solution: Solution) -> int | None:
        """Take a solution, whoever made it; the checker decides.

        Returns
        -------
        Its makespan where the checker accepts it (within the horizon), else None. A malformed solution
        counts as none.
        """
        try:
            report = check(self.instance, solution)
        except InputError:
            return None
        if not report.feasible or report.objective is None:
            return None
        makespan = int(report.objective)
        if self.makespan is None or makespan < self.makespan:
            self.makespan, self.solution = makespan, solution
            self._report(solution)
        return makespan

    def offer_schedule(self, start: Sequence[int], placement: Placement) -> int | None:
        """As :meth:`offer`, with first slots (counted from 1) and placements by position."""
        solution = self.as_solution(start, placement)
        makespan = simulate(self.instance, solution["start"], solution["placement"]).makespan
        if makespan is None or makespan > self.ceiling:
            return None
        return self.offer(solution)

    def as_solution(self, start: Sequence[int], placement: Placement) -> Solution:
        """The bare solution object."""
        return {
            "start": {name: int(slot) for name, slot in zip(self._jobs, start, strict=True)},
            "placement": {
                name: {self._servers[s]: int(gpus) for s, gpus in sorted(placed.items()) if gpus}
                for name, placed in zip(self._jobs, placement, strict=True)
            },
        }

    def positions(self) -> tuple[list[int], list[dict[int, int]]] | None:
        """The best schedule as first slots and placements by position."""
        if self.solution is None:
            return None
        index = self.instance.server_index
        start = [int(self.solution["start"][name]) for name in self._jobs]
        placed = [{index[s]: int(g) for s, g in self.solution["placement"][name].items()} for name in self._jobs]
        return start, placed

    def _report(self, solution: Solution | None) -> None:
        if self.options.report is not None:
            makespan = None if self.makespan is None else float(self.makespan)
            self.options.report(solution, makespan, float(self.bound))

    def log(self, message: str) -> None:
        """A line for the caller's log."""
        if self.options.log is not None:
            best = "none" if self.makespan is None else str(self.makespan)
            self.options.log(f"cp {time.monotonic() - self.began:7.2f} s: {message}; best {best}, bound {self.bound}")
