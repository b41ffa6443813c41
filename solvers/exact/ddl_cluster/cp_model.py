"""The CP-SAT model of ddl-cluster on a grid: intervals per task, overlaps of all-reduces, memory.

Idea: moments are rounded down to a grid, and every row is one that each schedule in continuous time keeps after
rounding. Source: interval variables of constraint programming; rows for overlaps under (5) of paper 001 are ours.
Guarantee: the model is a relaxation, so its bound holds; its point is no schedule before `timetable` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from math import ceil, floor, lcm, prod
from typing import TYPE_CHECKING, Any

from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of, misfits
from schedgap.formulations.ddl_cluster.given_placement import Sharing
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import Run
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Compute, Plan

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.search import Value
from schedgap.solvers.exact.ddl_cluster.time_grid import FINEST_WEIGHT, Grid

LARGEST_TERMS = 20_000
"""Sets of all-reduces whose overlaps a model may count."""


LARGEST_TASKS = 20_000
"""Compute tasks a model may have."""


MOST_NEIGHBOURS = 5
"""Jobs that may share servers with one job: their sets are counted one by one."""


def model_size(grid: Grid) -> str:
    """Why the model of contention would be too large to be worth building; empty where it is not."""
    jobs = grid.instance.jobs
    terms = 0
    for j in grid.spanning:
        others = [k for k in grid.spanning if k != j and grid.servers[k] & grid.servers[j]]
        if len(others) > MOST_NEIGHBOURS:
            return f"job {jobs[j].id} shares servers with {len(others)} jobs, at most {MOST_NEIGHBOURS}"
        terms += sum(prod(jobs[k].iterations for k in (j, *chosen)) for chosen in grid.losses(j))
    return f"{terms} overlaps of all-reduces, at most {LARGEST_TERMS}" if terms > LARGEST_TERMS else ""


MOST_MISFITS = 500
"""Smallest sets of jobs that do not fit a GPU. Where
there are more, memory is a cumulative, with which CP-SAT may abort."""


@dataclass(frozen=True)
class Point:
    """Moments in grid steps: starts of compute tasks, begins and ends of transfers."""

    start: Mapping[Compute, int]
    begin: Mapping[AllReduce, int]
    end: Mapping[AllReduce, int]


def rounded_run(instance: DdlClusterInstance, run: Run, digits: int) -> Point:
    """A recorded run rounded down to a grid of 10^-digits seconds."""
    log, clock = run.log, clock_of(instance)
    if log is None:
        raise ValueError("the run was not recorded")
    step = Fraction(10) ** (digits - clock.digits)

    def rounded(tick: Any) -> int:
        return floor(int(tick) * step)

    start: dict[Compute, int] = {}
    begin: dict[AllReduce, int] = {}
    end: dict[AllReduce, int] = {}
    for j, job in enumerate(instance.jobs):
        for i in range(job.iterations):
            for w, kind in product(range(job.gpus), (0, 1)):
                start[j, i, kind, w] = rounded(log.start[log.task_base[j] + 2 * (i * job.gpus + w) + kind])
            begin[j, i] = rounded(log.admitted[log.message_base[j] + i] + clock.latency)
            end[j, i] = rounded(log.done[log.message_base[j] + i])
    return Point(start, begin, end)


class GridModel:
    """Variables and constraints; the objective is the sum of the finish times in grid steps.

    Parameters
    ----------
    grid : the instance in grid steps
    exclusive : at most one all-reduce is active on a server, as under srsf-1: a job shop
    """

    def __init__(self, grid: Grid, exclusive: bool = False) -> None:
        from ortools.sat.python import cp_model

        self.grid = grid
        self.exclusive = exclusive
        self.model = cp_model.CpModel()
        self.jobs = grid.instance.jobs
        self.sharing = Sharing.of(grid.placement)
        self.first: list[Any] = []
        self.tasks: dict[Compute, Any] = {}
        self.begin: dict[AllReduce, Any] = {}
        self.end: dict[AllReduce, Any] = {}
        self.finish: list[Any] = []
        self._overlaps: dict[tuple[frozenset[AllReduce], int], Any] = {}
        self._chosen: dict[tuple[frozenset[AllReduce], str], dict[AllReduce, Any]] = {}
        self._add_jobs()
        self._add_gpus()
        self._add_memory()
        if exclusive:
            self._add_servers()
        else:
            self._add_contention()
            self._add_link_time()
        most = grid.steps(Fraction(grid.max_total * (1 + 1e-9)) + sum(Fraction(job.arrival) for job in self.jobs))
        self.model.add(sum(self.finish) <= most + len(self.jobs))
        self.model.minimize(sum(self.finish))

    def _add_jobs(self) -> None:
        """Iterations in order: tasks, barrier, all-reduce."""
        grid, model = self.grid, self.model
        for j, job in enumerate(self.jobs):
            forward, backward = grid.compute[j]
            low, high = grid.arrival[j], grid.last_finish[j]
            ready = model.new_int_var(low, high, f"first {j}")
            self.first.append(ready)
            for i in range(job.iterations):
                low, high = grid.window(j, i)
                barrier = model.new_int_var(low + forward + backward, high, f"barrier {j} {i}")
                if self.sharing.alone[j]:
                    model.add(barrier >= ready + forward + backward)
                for group in self.sharing.workers[j].values():
                    first = model.new_int_var(low, high - forward - backward, f"forward {j} {i} {group[0]}")
                    second = model.new_int_var(low + forward, high - backward, f"backward {j} {i} {group[0]}")
                    model.add(first >= ready)
                    model.add(second >= first + forward)
                    model.add(barrier >= second + backward)
                    self.tasks[j, i, 0, group[0]] = first
                    self.tasks[j, i, 1, group[0]] = second
                ready = barrier
                if j in grid.spanning:
                    length = floor(grid.transfer[j])
                    begin = model.new_int_var(low + forward + backward + grid.latency, high - length, f"begin {j} {i}")
                    end = model.new_int_var(low + grid.least_iteration[j], high, f"end {j} {i}")
                    model.add(begin >= barrier + grid.latency)
                    if self.exclusive:
                        model.add(end == begin + length)
                    else:
                        model.add(end >= begin + length)
                    self.begin[j, i], self.end[j, i] = begin, end
                    ready = end
            self.finish.append(ready)

    def _add_gpus(self) -> None:
        """One compute task at a time, on one GPU of each set of jobs that share GPUs."""
        for here in self.sharing.jobs:
            intervals = []
            for j in here:
                group = self.sharing.workers[j][here]
                for i in range(self.jobs[j].iterations):
                    for kind in (0, 1):
                        start = self.tasks[j, i, kind, group[0]]
                        length = self.grid.compute[j][kind]
                        intervals.append(self.model.new_fixed_size_interval_var(start, length, ""))
            self.model.add_no_overlap(intervals)

    def _add_memory(self) -> None:
        """Constraints that keep two jobs of each least set that does not fit a GPU apart."""
        parts = clock_of(self.grid.instance).memory
        apart: dict[tuple[int, int], Any] = {}
        for here in self.sharing.jobs:
            try:
                sets = misfits(here, parts, MOST_MISFITS)
            except ModelRefused:
                sets = []
                held = []
                for j in here:
                    size = self.model.new_int_var(0, self.grid.last_finish[j], "")
                    held.append(self.model.new_interval_var(self.first[j], size, self.finish[j], ""))
                self.model.add_cumulative(held, [parts[j] for j in here], MEMORY_CAPACITY)
            for chosen in sets:
                for j, k in permutations(chosen, 2):
                    if (j, k) not in apart:
                        apart[j, k] = self.model.new_bool_var("")
                        behind = self.model.add(self.first[k] >= self.finish[j])
                        behind.only_enforce_if(apart[j, k])
                self.model.add_bool_or(apart[pair] for pair in permutations(chosen, 2))

    def _add_servers(self) -> None:
        """At most one all-reduce active on a server, its latency included."""
        latency = self.grid.latency
        for server in range(len(self.grid.instance.servers)):
            here = [(j, i) for j, i in self.begin if server in self.grid.servers[j]]
            if len({j for j, _ in here}) > 1:
                self.model.add_no_overlap(
                    self.model.new_fixed_size_interval_var(
                        self.begin[key] - latency, latency + floor(self.grid.transfer[key[0]]), ""
                    )
                    for key in here
                )

    def _add_contention(self) -> None:
        """An all-reduce takes as long as those beside it make it."""
        grid = self.grid
        for j in grid.spanning:
            losses = grid.losses(j)
            scale = lcm(*(mu.denominator for mu in losses.values())) if losses else 1
            scale = min(scale, FINEST_WEIGHT)
            for i in range(self.jobs[j].iterations):
                terms = []
                for others, mu in losses.items():
                    weight = floor(mu * scale) if mu > 0 else -ceil(-mu * scale)
                    for chosen in product(*(range(self.jobs[k].iterations) for k in sorted(others))):
                        together = frozenset({(j, i), *zip(sorted(others), chosen, strict=True)})
                        if (overlap := self._overlap(together, -1 if mu > 0 else 1)) is not None:
                            terms.append(weight * overlap)
                if terms:
                    length = self.end[j, i] - self.begin[j, i]
                    need = floor(grid.transfer[j] * scale)
                    self.model.add(scale * (length + 1) >= need + sum(terms))

    def _add_link_time(self) -> None:
        """Two messages on one link take at least size b each of the time between their first begin and last end.

        Implied for exact times; it tells the search what the overlaps only tell once they are known.
        """
        grid, model = self.grid, self.model
        for (j, i), (k, r) in combinations(sorted(self.begin), 2):
            if j == k or not grid.servers[j] & grid.servers[k]:
                continue
            (low, high), (other_low, other_high) = grid.window(j, i), grid.window(k, r)
            if min(high, other_high) <= max(low, other_low):
                continue
            need = floor(grid.transfer[j] + grid.transfer[k])
            earliest = self._extremes([(j, i), (k, r)], "last begin")  # the other one begins first
            latest = self._extremes([(j, i), (k, r)], "first end")
            for one, other in (((j, i), (k, r)), ((k, r), (j, i))):
                for last, final in (((j, i), (k, r)), ((k, r), (j, i))):
                    model.add(self.end[final] - self.begin[one] >= need - 1).only_enforce_if(
                        earliest[other], latest[last]
                    )

    def _overlap(self, together: frozenset[AllReduce], rounding: int) -> Any | None:
        """How long all these transfer at once, at least (rounding -1) or at most (+1); None where never."""
        windows = [(*self.grid.window(j, i),) for j, i in together]
        low, high = max(first for first, _ in windows), min(last for _, last in windows)
        if low >= high:
            return None
        if (together, rounding) not in self._overlaps:
            overlap = self.model.new_int_var(0, high - low + 1, "")
            limit = self._overlap_at_least if rounding < 0 else self._overlap_at_most
            limit(overlap, sorted(together))
            self._overlaps[together, rounding] = overlap
        return self._overlaps[together, rounding]

    def _overlap_at_least(self, overlap: Any, members: Sequence[AllReduce]) -> None:
        """From the first end back to the last begin: linear once it is known whose these are."""
        model = self.model
        for (one, first), (other, last) in product(
            self._extremes(members, "first end").items(), self._extremes(members, "last begin").items()
        ):
            model.add(overlap >= self.end[one] - self.begin[other] - 1).only_enforce_if(first, last)

    def _overlap_at_most(self, overlap: Any, members: Sequence[AllReduce]) -> None:
        """From any end back to any begin, and nothing where one is before the other."""
        met = self.model.new_bool_var("")
        self.model.add(overlap == 0).only_enforce_if(~met)
        for one, other in product(members, members):
            self.model.add(overlap <= self.end[one] - self.begin[other] + 1).only_enforce_if(met)

    def _extremes(self, members: Sequence[AllReduce], which: str) -> dict[AllReduce, Any]:
        """For each all-reduce, a literal that it is the one of `members` that ends first, or that begins last."""
        key = (frozenset(members), which)
        if key not in self._chosen:
            model = self.model
            chosen: dict[AllReduce, Any]
            if len(members) == 2:
                either = model.new_bool_var("")
                chosen = {members[0]: either, members[1]: ~either}
            else:
                chosen = {member: model.new_bool_var("") for member in members}
                model.add_exactly_one(chosen.values())
            for member, literal in chosen.items():
                for other in members:
                    if other != member:
                        if which == "first end":
                            model.add(self.end[member] <= self.end[other]).only_enforce_if(literal)
                        else:
                            model.add(self.begin[member] >= self.begin[other]).only_enforce_if(literal)
            self._chosen[key] = chosen
        return self._chosen[key]

    def hint(self, point: Point) -> None:
        """Start the search from these grid steps."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for key, task in self.tasks.items():
            self.model.add_hint(task, point.start[key])
        for message, begin in self.begin.items():
            self.model.add_hint(begin, point.begin[message])
            self.model.add_hint(self.end[message], point.end[message])

    def point(self, value: Value) -> Point:
        """The grid steps of a solution of the model."""
        return Point(
            {key: value(task) for key, task in self.tasks.items()},
            {key: value(begin) for key, begin in self.begin.items()},
            {key: value(end) for key, end in self.end.items()},
        )

    def plan(self, value: Value, early: int = 0) -> Plan:
        """What a solution of the model decides, its wanted starts `early` steps before."""
        seconds = self.grid.seconds
        start: dict[Compute, float] = {}
        for j, groups in enumerate(self.sharing.workers):
            for group in groups.values():
                for i, kind in product(range(self.jobs[j].iterations), (0, 1)):
                    moment = seconds(value(self.tasks[j, i, kind, group[0]]) - early)
                    start.update({(j, i, kind, w): moment for w in group})
        begins = {key: value(variable) for key, variable in self.begin.items()}
        ends = {key: value(variable) for key, variable in self.end.items()}
        after: dict[AllReduce, list[AllReduce]] = {}
        for key, begin in begins.items():
            near = [k for k in self.grid.spanning if k != key[0] and self.grid.servers[k] & self.grid.servers[key[0]]]
            for k in near:
                ended = [i for i in range(self.jobs[k].iterations) if ends[k, i] <= begin]
                if ended:
                    after.setdefault(key, []).append((k, ended[-1]))
        firsts = [value(variable) for variable in self.first]
        finishes = [value(variable) for variable in self.finish]
        waits: dict[int, Sequence[int]] = {}
        for here in self.sharing.jobs:
            for j in here:
                waits[j] = sorted({*waits.get(j, ()), *(k for k in here if k != j and finishes[k] <= firsts[j])})
        return Plan(start, {key: seconds(begin - early) for key, begin in begins.items()}, after, waits)
