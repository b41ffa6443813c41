"""The best schedule and bound of one instance of rar-ddls while methods ``cp`` and ``lns`` work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.rar_ddls.bounds import is_infeasible, lower_bound
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.solvers.incumbent import Incumbent, Number
from schedgap.solvers.result import SolveOptions

Placement = Sequence[Mapping[int, int]]
"""GPUs per server position, per job position."""


class BestSchedule(Incumbent):
    """The incumbent, whose objective is the makespan in slots; there is none beyond the horizon.

    Parameters
    ----------
    instance, options : what is solved
    """

    def __init__(self, instance: RarDdlsInstance, options: SolveOptions) -> None:
        super().__init__(MINIMISE, options, partial(parsed(check, RarDdlsSolution), instance), whole=True)
        self.instance = instance
        self.horizon = instance.horizon
        self._jobs = [job.id for job in instance.jobs]
        self._servers = [server.id for server in instance.servers]

    def begin(self) -> bool:
        """The simple bound, and whether there can be a schedule at all."""
        reason = is_infeasible(self.instance)
        if reason is None:
            self.tighten(int((self.stage("bound") and lower_bound(self.instance)) or 1))
        else:
            self.impossible(reason)
        return reason is None

    @property
    def makespan(self) -> int | None:
        """The objective."""
        return None if self.objective is None else int(self.objective)

    @property
    def lower(self) -> int:
        """The bound; 0 before there is one."""
        return 0 if self.bound is None else int(self.bound)

    @property
    def ceiling(self) -> int:
        """The makespan that a schedule worth finding has at most: the best known less one, or the horizon."""
        return self.horizon if self.objective is None else int(self.objective) - 1

    def tighten(self, bound: Number | None, *, of_better: bool = True) -> bool:
        """Keep a lower bound on the makespan of every schedule that is better than the incumbent."""
        better = super().tighten(bound, of_better=of_better)
        if self.objective is None and self.lower > self.horizon:
            self.infeasible = True
        return better

    def propose_schedule(self, start: Sequence[int], placement: Placement, source: str = "") -> int | None:
        """The proposal of :meth:`propose`, with first slots (counted from 1) and placements by position."""
        solution = self.as_solution(start, placement)
        makespan = simulate(self.instance, solution["start"], solution["placement"]).makespan
        if makespan is None or makespan > self.ceiling:
            return None
        objective = self.propose(solution, source)
        return None if objective is None else int(objective)

    def as_solution(self, start: Sequence[int], placement: Placement) -> Solution:
        """The bare solution object."""
        return {
            "start": {name: int(slot) for name, slot in zip(self._jobs, start, strict=True)},
            "placement": {
                name: {self._servers[s]: int(gpus) for s, gpus in sorted(placed.items()) if gpus}
                for name, placed in zip(self._jobs, placement, strict=True)
            },
        }
