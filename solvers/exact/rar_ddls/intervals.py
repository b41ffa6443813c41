"""The interval model of rar-ddls: starts, ends and placements without a time index, for CP-SAT.

Idea: durations depend on the number of servers alone while rings do not meet, so jobs are intervals and servers
cumulative resources. Source: cumulative scheduling of constraint programming. Guarantee: every schedule of makespan
at most `high` is a solution, so the optimum is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from schedgap.formulations.common.changes import Changes
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


_FEW_AMOUNTS = 6
"""Shares of a server up to this many GPUs are written as one literal per number of GPUs."""


NOTHING = Changes()
"""No change of a user's."""
TIMELESS = frozenset({"gpus", "uses", "width"})
"""Families of variables that a schedule read backwards has as it has them."""
Linear = Any
"""A variable or linear expression of CP-SAT, or a whole number."""


@dataclass(frozen=True)
class Fixed:
    """A job that stays as it is beside those of a model."""

    # start, end: its slots start .. end - 1, counted from 0
    start: int
    end: int
    placement: Mapping[int, int]  # GPUs by server position


class IntervalModel:
    """Contention-free model: durations by the number of servers used, a cumulative per server.

    Every schedule of makespan at most `high` is a solution, so its optimum is a lower bound; it is the true one
    where rings never meet. :mod:`.overlaps` adds what contention costs.

    Parameters
    ----------
    instance, options : the instance, and what its jobs can do
    low, high : bounds on the makespan
    contention : leave durations open upwards, to be fixed by further constraints
    fixed : jobs beside those of the instance; rings never meet theirs, so that these go on as they do
    changes : what a user changed: equals that it tells apart are not ordered, and a schedule is not read backwards
        where it is about time

    Attributes
    ----------
    model : the CP-SAT model, minimising the makespan where `low` leaves a choice
    start, end, duration : per job; slots start .. end - 1 counted from 0, so `end` is the completion slot
    local : literal "on one server" per job; 1 or 0 where it has no choice
    wide : per job, (most servers, literal) of each class of placements across servers
    shares : GPUs by (job, server) of a ring that crosses servers
    crosses : literal by (job, server): the ring crosses it
    rings : positions of the jobs that can cross servers
    """

    def __init__(
        self,
        instance: RarDdlsInstance,
        options: Sequence[JobOptions],
        low: int,
        high: int,
        *,
        contention: bool,
        fixed: Sequence[Fixed] = (),
        changes: Changes = NOTHING,
    ) -> None:
        from ortools.sat.python import cp_model

        self.instance = instance
        self.options = options
        self.high = high
        self.changes = changes
        self.model = cp_model.CpModel()
        self.makespan = self.model.new_int_var(low, high, "makespan")
        self.start: list[cp_model.IntVar] = []
        self.end: list[cp_model.IntVar] = []
        self.duration: list[Linear] = []
        self.local: list[Linear] = []
        self.wide: list[list[tuple[int, cp_model.IntVar]]] = []
        self.shares: dict[tuple[int, int], Linear] = {}
        self.crosses: dict[tuple[int, int], cp_model.IntVar] = {}
        self.rings = [j for j, option in enumerate(options) if option.modes]
        self._whole: dict[tuple[int, int], cp_model.IntVar] = {}
        self._on_server: list[list[tuple[cp_model.IntervalVar, Linear]]] = [[] for _ in instance.servers]
        everything = []
        for j in range(len(options)):
            self._add_times(j, contention)
            self._add_placement(j)
            everything.append(self._interval(j, None))
        sizes = [option.gpus for option in options]
        for job in fixed:
            everything.append(self.model.new_fixed_size_interval_var(job.start, job.end - job.start, ""))
            sizes.append(sum(job.placement.values()))
            for s, gpus in job.placement.items():
                self._on_server[s].append((everything[-1], gpus))
        self._part_rings(fixed)
        for server, held in zip(instance.servers, self._on_server, strict=True):
            if held:
                self.model.add_cumulative([i for i, _ in held], [d for _, d in held], server.gpus)
        self.model.add_cumulative(everything, sizes, instance.total_gpus)
        if not fixed:
            self._order_servers()
            if changes.objective is None and changes.families() <= TIMELESS:
                self._begin_at_one_end()
        self._order_equal_jobs()
        if low < high:
            self.model.minimize(self.makespan)

    def _part_rings(self, fixed: Sequence[Fixed]) -> None:
        """No ring crosses a server while a fixed one does."""
        stays: dict[int, list[tuple[int, int]]] = {}
        for job in sorted(fixed, key=lambda job: job.start):
            for s in job.placement if len(job.placement) > 1 else ():
                spans = stays.setdefault(s, [])
                if spans and job.start <= spans[-1][1]:
                    spans[-1] = (spans[-1][0], max(spans[-1][1], job.end))
                else:
                    spans.append((job.start, job.end))
        for s, spans in stays.items():
            ours = [self._interval(j, self.crosses[j, s]) for j in self.rings if (j, s) in self.crosses]
            if ours:  # any number of ours at once, or none
                all_of = [self.model.new_fixed_size_interval_var(low, high - low, "") for low, high in spans]
                sizes = [1] * len(ours) + [len(ours)] * len(spans)
                self.model.add_cumulative([*ours, *all_of], sizes, len(ours))

    def _add_times(self, j: int, contention: bool) -> None:
        option, model = self.options[j], self.model
        shortest = option.duration or 1
        start = model.new_int_var(0, max(0, self.high - shortest), f"start{j}")
        end = model.new_int_var(shortest, max(shortest, self.high), f"end{j}")
        model.add(end <= self.makespan)
        classes = [(n, model.new_bool_var(f"wide{j}_{n}")) for n in option.classes]
        if option.local and classes:
            local: Linear = model.new_bool_var(f"local{j}")
            model.add_exactly_one(local, *(literal for _, literal in classes))
        else:
            local = int(bool(option.local))
            if classes:
                model.add_exactly_one(literal for _, literal in classes)
        if not classes:
            duration: Linear = option.local_duration
        else:
            duration = model.new_int_var(shortest, max(shortest, self.high), f"duration{j}")
            if option.local:
                model.add(duration == option.local_duration).only_enforce_if(local)
            for position, (_, literal) in enumerate(classes):
                alone = max(mode.rate for mode in option.modes if mode.spread_class == position)
                least = -(-option.iterations // alone)
                if contention:
                    model.add(duration >= least).only_enforce_if(literal)
                else:
                    model.add(duration == least).only_enforce_if(literal)
        self.start.append(start)
        self.end.append(end)
        self.duration.append(duration)
        self.local.append(local)
        self.wide.append(classes)

    def _add_placement(self, j: int) -> None:
        option, model = self.options[j], self.model
        whole = []
        for s in option.local:
            literal = model.new_bool_var(f"whole{j}_{s}")
            self._whole[j, s] = literal
            whole.append(literal)
            self._on_server[s].append((self._interval(j, literal), option.gpus))
        if whole:
            model.add(sum(whole) == self.local[j])
        if not option.modes:
            return
        used, total = [], []
        for s, most in enumerate(option.share):
            if most == 0:
                continue
            crosses = model.new_bool_var(f"crosses{j}_{s}")
            if most <= _FEW_AMOUNTS:
                amounts = [(g, model.new_bool_var(f"share{j}_{s}_{g}")) for g in range(1, most + 1)]
                model.add(sum(literal for _, literal in amounts) == crosses)
                for gpus, literal in amounts:
                    self._on_server[s].append((self._interval(j, literal), gpus))
                share: Linear = sum(gpus * literal for gpus, literal in amounts)
            else:
                share = model.new_int_var(0, most, f"share{j}_{s}")
                model.add(share >= 1).only_enforce_if(crosses)
                model.add(share == 0).only_enforce_if(crosses.Not())
                self._on_server[s].append((self._interval(j, crosses), share))
            self.shares[j, s] = share
            self.crosses[j, s] = crosses
            used.append(crosses)
            total.append(share)
        model.add(sum(total) == option.gpus * (1 - self.local[j]))
        model.add(sum(used) <= sum(n * literal for n, literal in self.wide[j]))
        model.add(sum(used) >= option.fewest * (1 - self.local[j]))

    def _interval(self, j: int, presence: cp_model.IntVar | None) -> cp_model.IntervalVar:
        if presence is None:
            return self.model.new_interval_var(self.start[j], self.duration[j], self.end[j], f"job{j}")
        return self.model.new_optional_interval_var(self.start[j], self.duration[j], self.end[j], presence, "")

    def _order_servers(self) -> None:
        """Servers of equal size are used for the first time in their order, counted from the largest job.

        Large jobs use many servers, so that few names are left open.
        """
        model = self.model
        jobs = sorted(range(len(self.options)), key=self._size)
        by_size: dict[int, list[int]] = {}
        for s, server in enumerate(self.instance.servers):
            by_size.setdefault(server.gpus, []).append(s)
        names = [server.id for server in self.instance.servers]
        for group in self._alike("server", list(by_size.values()), names):
            for before, after in pairwise(group):
                earlier: list[cp_model.IntVar] = []
                for j in jobs:
                    earlier += self._uses(j, before)
                    for literal in self._uses(j, after):
                        model.add_bool_or(literal.Not(), *earlier)

    def _begin_at_one_end(self) -> None:
        """The middle of one job lies in the first half.

        Read backwards, a schedule has the same rings side by side in as many slots: every job makes its iterations in
        the same interval, or ends earlier, which slows nobody down. The job is the first of its equals, whose middle is
        no later backwards either, once they are in their order again.
        """
        pivot = min(range(len(self.options)), key=lambda j: (not self.options[j].modes, *self._size(j)))
        self.model.add(self.start[pivot] + self.end[pivot] <= self.makespan)

    def _size(self, j: int) -> tuple[int, int, int]:
        """The size by which the largest job comes first."""
        return -self.options[j].gpus, -(self.options[j].duration or 0), j

    def _order_equal_jobs(self) -> None:
        """Equal jobs start in their order; the iterations of those that never cross count by their slots only."""
        same: dict[JobOptions, list[int]] = {}
        for j, option in enumerate(self.options):
            same.setdefault(option if option.modes else replace(option, iterations=0), []).append(j)
        for group in self._alike("job", list(same.values()), [job.id for job in self.instance.jobs]):
            for before, after in pairwise(group):
                self.model.add(self.start[before] <= self.start[after])

    def _alike(self, kind: str, groups: Sequence[Sequence[int]], names: Sequence[str]) -> list[list[int]]:
        """The groups, parted where a change tells members apart; that two can change places is an equivalence."""
        parted: list[list[int]] = []
        for group in groups:
            classes: list[list[int]] = []
            for member in group:
                for known in classes:
                    if not self.changes.tell_apart(kind, names[known[0]], names[member]):
                        known.append(member)
                        break
                else:
                    classes.append([member])
            parted += classes
        return parted

    def gpus(self, j: int, s: int) -> Linear:
        """GPUs of job j on server s."""
        whole = self._whole.get((j, s))
        return (0 if whole is None else self.options[j].gpus * whole) + self.shares.get((j, s), 0)

    def uses(self, j: int, s: int) -> Linear:
        """1 where job j has GPUs on server s."""
        return sum(self._uses(j, s))

    def _uses(self, j: int, s: int) -> list[cp_model.IntVar]:
        return [found for kind in (self._whole, self.crosses) if (found := kind.get((j, s))) is not None]

    def schedule(self, value: Callable[[object], int]) -> tuple[list[int], list[dict[int, int]]]:
        """First slots (from 1) and placements of the jobs in a solution."""
        placement: list[dict[int, int]] = [{} for _ in self.options]
        for (j, s), literal in self._whole.items():
            if value(literal):
                placement[j][s] = self.options[j].gpus
        for (j, s), share in self.shares.items():
            gpus = value(share)
            if gpus:
                placement[j][s] = gpus
        return [value(start) + 1 for start in self.start], placement
