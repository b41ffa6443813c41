"""Method ``cp`` of rar-ddls: bounds, local search and an interval model on CP-SAT, in stages, until they meet."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.solvers.budget import too_large
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel, Overlaps
from schedgap.solvers.exact.rar_ddls.patterns import LARGEST_TABLE, SlotPacking, knapsack
from schedgap.solvers.exact.rar_ddls.search import BestSchedule, LocalSearch
from schedgap.solvers.linear_program import INFINITY, Floats, LinearProgram
from schedgap.solvers.result import Result, SolveOptions, Termination, package_version

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.search import CpAnswer

_FIRST_EFFORT = 2.0
_SECOND_EFFORT = 20.0
_PACKING_SHARE = 0.25
_NARROW = 4
"""Gaps up to so many slots are closed from below, one makespan after another."""
_ENERGY = {
    "use_overload_checker_in_cumulative": True,
    "use_timetable_edge_finding_in_cumulative": True,
    "use_dual_scheduling_heuristics": True,
}
"""Propagation by energy, without which CP-SAT sees little of GPUs that are short."""
_REFUTE = _ENERGY | {"use_feasibility_jump": False, "use_rins_lns": False, "use_feasibility_pump": False}
"""What else a search for a contradiction does without: on two threads one would only guess schedules."""
_NONZEROS_OF_PART = 8
"""What a job on a server costs in the interval model, in nonzeros of PuLP's; 10 to 16 measured."""


def solve_cp(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """Solve rar-ddls exactly; status OPTIMAL or INFEASIBLE unless a limit comes first.

    Stages, each ended as soon as bound and schedule meet:

    1. certified bounds (:mod:`bounds`); the given start, and annealed greedy schedules;
    2. slot packing: a bound by what can run at once, contention included, by column generation; more annealing;
    3. the interval model with the cost of overlaps on CP-SAT: a schedule of as many slots as the bound is asked for and
       refuted, again and again, where few slots are open, and the makespan minimised where that does not end in its
       share of the limit. It has no time index, so the number of slots hardly matters. Each solution is simulated.
       Where the model claims too much, inequalities that it violates are added, and it is solved again.

    Raises Disagreement: models and dynamics contradict each other, which would be an error in one of them.

    Parameters
    ----------
    options : with ``threads=1`` and a ``work_limit`` (CP-SAT's deterministic time) a run repeats itself

    Returns
    -------
    Result; its bound is valid whatever ended the run, its solution is accepted by the checker.
    """
    incumbent = BestSchedule(instance, options)
    ended: Termination | None = None
    if incumbent.begin():
        try:
            ended = _Stages(incumbent).run()
        except KeyboardInterrupt:
            incumbent.interrupted = True
    return incumbent.result(ended, engine="cpsat", version=package_version("ortools"))


class _Stages:
    """The stages, and what they leave for later ones."""

    def __init__(self, incumbent: BestSchedule) -> None:
        self.incumbent = incumbent
        self.options: list[JobOptions] = []

    def run(self) -> Termination | None:
        """All stages; too large where the last one was left out."""
        incumbent = self.incumbent
        if incumbent.options.start is not None:
            incumbent.propose(incumbent.options.start)
        search = LocalSearch(incumbent.instance, incumbent.options.seed)
        if incumbent.stage("local search"):
            search.run(incumbent, _FIRST_EFFORT)
        incumbent.log("local search")
        if incumbent.finished():
            return None
        self.options = job_options(incumbent.instance)
        packing = SlotPacking(incumbent, self.options)
        if incumbent.stage("slot packing"):
            packing.raise_bound(incumbent, _PACKING_SHARE)
        incumbent.log("slot packing")
        if incumbent.finished():
            return None
        if incumbent.stage("packing without crossing"):
            pack(incumbent, self.options)
        incumbent.log("packing without crossing")
        if incumbent.finished():
            return None
        if incumbent.stage("local search"):
            search.run(incumbent, _SECOND_EFFORT)
        incumbent.log("local search")
        if incumbent.finished():
            return None
        parts = sum(len(option.local) + int(np.count_nonzero(option.share)) for option in self.options)
        asked = incumbent.options
        reason = too_large(_NONZEROS_OF_PART * parts, asked.deadline, memory_limit=asked.memory_limit)
        if reason is not None:
            incumbent.info["reason"] = f"interval model: {reason}"
            return Termination.TOO_LARGE
        if incumbent.stage("interval model"):
            self.overlaps(packing)
        return None

    def overlaps(self, packing: SlotPacking) -> None:
        """The interval model with contention: is there a schedule that meets the bound, then what is the shortest."""
        incumbent = self.incumbent
        while not incumbent.finished() and (gap := incumbent.ceiling - incumbent.lower + 1) <= _NARROW:
            if not self._search(packing, incumbent.lower, 1 / gap):
                break
        if not incumbent.finished():
            self._search(packing, incumbent.ceiling, 1.0)

    def _search(self, packing: SlotPacking, high: int, share: float) -> bool:
        """Schedules of at most `high` slots, refined until the model is exact; whether it came to its end.

        With `high` at the bound there is nothing to minimise, and CP-SAT refutes it sooner.
        """
        incumbent = self.incumbent
        intervals = IntervalModel(incumbent.instance, self.options, incumbent.lower, high, contention=True)
        overlaps = Overlaps(intervals, packing.grades)
        overlaps.add_needs(packing.needs, packing.grades)
        for cut in packing.cuts:
            overlaps.add_cut(cut, packing.grades)
        incumbent.log(f"interval model built, at most {high} slots")
        while not incumbent.finished():
            incumbent.info["rounds"] = incumbent.info.get("rounds", 0) + 1
            answer = self._answer(intervals, share)
            if answer.infeasible:
                incumbent.tighten(min(high, incumbent.ceiling) + 1)
                return True
            incumbent.tighten(answer.bound)
            if answer.value is None:
                return False
            makespan = incumbent.propose_schedule(*intervals.schedule(answer.value))
            incumbent.log("interval model solved")
            if incumbent.finished():
                break
            if makespan is None and overlaps.refine(answer.value) == 0:
                raise Disagreement("interval model and dynamics disagree", details={"engine": "cpsat"})
            intervals.model.add(intervals.makespan <= incumbent.ceiling)
            intervals.model.add(intervals.makespan >= incumbent.lower)
        return True

    def _answer(self, intervals: IntervalModel, share: float) -> CpAnswer:
        incumbent = self.incumbent

        def seen(value: Callable[[Any], int]) -> bool:
            incumbent.propose_schedule(*intervals.schedule(value))
            return incumbent.proven or incumbent.gap_reached

        def bounded(bound: int) -> bool:
            incumbent.tighten(bound)
            return incumbent.proven or incumbent.gap_reached

        from schedgap.solvers.cp_sat.search import search_cp

        parameters = _ENERGY if intervals.model.has_objective() else _REFUTE
        return search_cp(intervals.model, incumbent, seen=seen, bounded=bounded, parameters=parameters, share=share)


# Packing on servers that no ring leaves: slots as bins, and schedules that waste little.

_DIVES = 200
_MOST_JOBS = 400
_NODES, _RUNS, _RUNS_BEFORE_MORE = 20_000, 40, 10


def pack(incumbent: BestSchedule, options: Sequence[JobOptions]) -> None:
    """Look for a schedule that meets the bound, where no job leaves its server.

    Jobs of one slot on equal servers are packed into bins (:class:`_Bins`); jobs of any lengths on one server are
    placed one event after another (:class:`_Strip`), which is exhaustive where no limit comes first.
    """
    sizes = {server.gpus for server in incumbent.instance.servers}
    gpus = max(sizes)
    if len(sizes) > 1 or not all(option.local for option in options) or (gpus + 1) * len(options) > LARGEST_TABLE:
        return
    if all(option.local_duration == 1 for option in options):
        _pack_bins(incumbent, options, gpus)
    elif len(incumbent.instance.servers) == 1 and len(options) <= _MOST_JOBS:
        _pack_strip(incumbent, options, gpus)


def _pack_bins(incumbent: BestSchedule, options: Sequence[JobOptions], gpus: int) -> None:
    """The bins are slots of servers."""
    servers = len(incumbent.instance.servers)
    members: dict[int, list[int]] = {}
    for j, option in enumerate(options):
        members.setdefault(option.gpus, []).append(j)
    bins = _Bins({size: len(jobs) for size, jobs in members.items()}, gpus, incumbent)
    draw = random.Random(incumbent.options.seed)
    for _ in range(_DIVES):
        if incumbent.finished():
            return
        packed = bins.dive(incumbent.lower * servers, draw)
        if packed is None:
            continue
        start, placement = [0] * len(options), [dict[int, int]() for _ in options]
        for position, content in enumerate(packed):
            for size in content:
                job = members[size].pop()
                start[job], placement[job] = position // servers + 1, {position % servers: size}
        incumbent.propose_schedule(start, placement)
        return


class _Bins:
    """Packing into few bins by dives: a bin of the linear program's solution is filled for good, again and again.

    The program is that of Gilmore and Gomory (1961), one column for each content of a bin, priced by a knapsack.
    After each bin it is solved anew for what is left, and a dive ends where its value shows that there will be too
    many. Columns stay for later dives, which choose at random among those that are used most.

    Parameters
    ----------
    count : how many items there are of each size
    capacity : of a bin
    """

    def __init__(self, count: Mapping[int, int], capacity: int, incumbent: BestSchedule) -> None:
        self._count, self._capacity, self._incumbent = dict(count), capacity, incumbent
        self._columns: dict[tuple[int, ...], None] = {(size,): None for size in count}

    def dive(self, most: int, draw: random.Random) -> list[list[int]] | None:
        """The sizes in each of at most `most` bins, or None where this dive found none.

        Notes
        -----
        A hundred items into forty bins: about half a second, most of it in the first program.
        """
        remaining = dict(self._count)
        packed: list[list[int]] = []
        while remaining:
            columns, used, value = self._relaxed(remaining)
            if value is None or len(packed) + math.ceil(value - 1e-6) > most:
                return None
            whole = [column for column, x in zip(columns, used, strict=True) for _ in range(int(x + 1e-6))]
            if not whole:
                best = max(range(len(columns)), key=lambda c: used[c] * draw.uniform(0.5, 1.0))
                whole = [columns[best]]
            for column in whole:
                content = self._filled(column, remaining)
                if content:
                    packed.append(content)
        return packed if len(packed) <= most else None

    def _filled(self, column: Sequence[int], left: dict[int, int]) -> list[int]:
        """What is left of the column's items, and further ones that fit, large ones first; taken out of `left`."""
        content: list[int] = []
        others = [size for size in sorted(left, reverse=True) for _ in range(left[size])]
        for size in (*column, *others):
            if left.get(size, 0) and sum(content) + size <= self._capacity:
                content.append(size)
                left[size] -= 1
                if not left[size]:
                    del left[size]
        return content

    def _relaxed(self, left: Mapping[int, int]) -> tuple[list[tuple[int, ...]], list[float], float | None]:
        """(columns, how often each is used, number of bins) of the linear program for what is left."""
        sizes = sorted(left, reverse=True)
        row = {size: i for i, size in enumerate(sizes)}
        program = LinearProgram()
        program.add_rows(np.array([float(left[size]) for size in sizes]), np.full(len(sizes), INFINITY))
        columns: list[tuple[int, ...]] = []

        def add(column: tuple[int, ...]) -> None:
            counted = Counter(column)
            rows = np.array([row[size] for size in counted], dtype=np.int64)
            program.add_columns(
                np.ones(1), np.full(1, INFINITY), [(rows, np.array([float(c) for c in counted.values()]))]
            )
            columns.append(column)

        for column in dict.fromkeys(self._within(column, left) for column in self._columns):
            if column:
                add(column)
        while not self._incumbent.finished():
            found = program.solve()
            if found is None:
                break
            column, value = self._priced(sizes, left, found.duals)
            if value <= 1 + 1e-9:
                return columns, found.x.tolist(), found.value
            self._columns[column] = None
            add(column)
        return columns, [], None

    @staticmethod
    def _within(column: Sequence[int], left: Mapping[int, int]) -> tuple[int, ...]:
        """The items of a column that are left, each as often as it is."""
        counted = Counter(column)
        return tuple(size for size in counted for _ in range(min(counted[size], left.get(size, 0))))

    def _priced(self, sizes: Sequence[int], left: Mapping[int, int], prices: Floats) -> tuple[tuple[int, ...], float]:
        """(content of a bin of the highest price, its price); O(items x capacity)."""
        items = [
            (size, price)
            for size, price in zip(sizes, prices.tolist(), strict=True)
            if price > 0
            for _ in range(min(left[size], self._capacity // size))
        ]
        chosen, value = knapsack(items, self._capacity, np.zeros(self._capacity + 1))
        self._incumbent.work += 1e-9 * self._capacity * len(items)
        return tuple(items[k][0] for k in chosen), value


def _pack_strip(incumbent: BestSchedule, options: Sequence[JobOptions], gpus: int) -> None:
    """Searches of limited size with the jobs in ever new orders, since a few orders find a schedule at once."""
    work = [(option.gpus, option.local_duration) for option in options]
    draw = random.Random(incumbent.options.seed)
    for run in range(_RUNS):
        if incumbent.finished():
            return
        power, noise = draw.random(), draw.choice((0.0, 0.2, 0.5))
        rank = {
            pair: (pair[0] / gpus) ** power * (pair[1] / incumbent.lower) ** (1 - power) * draw.uniform(1 - noise, 1)
            for pair in sorted(set(work))
        }
        order = sorted(range(len(work)), key=lambda j: (-rank[work[j]], work[j], j))
        search = _Strip([work[j] for j in order], gpus, incumbent.lower, _NODES * 2 ** (run // _RUNS_BEFORE_MORE))
        found = search.run(incumbent)
        incumbent.work += 1e-6 * search.nodes
        if found is not None:
            slots = dict(zip(order, found, strict=True))
            incumbent.propose_schedule([slots[j] + 1 for j in range(len(work))], [{0: need} for need, _ in work])
            return
        if search.nodes < search.max_nodes:
            incumbent.tighten(incumbent.lower + 1)


@dataclass
class _Node:
    """A moment: what runs, what waits, what may still be wasted, and the choices that have not been tried."""

    time: int
    running: list[tuple[int, int]]
    waiting: list[int]
    waste: int
    choices: Iterator[list[int]]


class _Strip:
    """Schedules of a given length on one server, event after event, while what they waste leaves enough.

    Jobs start at 0 or where others end, which loses no optimum: without contention any job can be moved earlier until
    one ends. At each event a set of jobs starts, first ones first; GPUs that stay idle until the next event are
    wasted, and length x N - sum of G_j d_j may be. With nothing to waste only sets that fill the server are left, so
    that perfect packings are found at once.

    Parameters
    ----------
    work : (GPUs, slots) of each job; equal ones beside each other
    gpus, length : of the server and of the schedule
    most : nodes after which it is given up
    """

    def __init__(self, work: Sequence[tuple[int, int]], gpus: int, length: int, most: int) -> None:
        self.work, self.gpus, self.length, self.max_nodes = work, gpus, length, most
        self.nodes = 0

    def run(self, incumbent: BestSchedule) -> list[int] | None:
        """Starts from 0, or None where there are none or a limit came first (`nodes` has reached `most`)."""
        waste = self.length * self.gpus - sum(need * slots for need, slots in self.work)
        start = [0] * len(self.work)
        stack = [self._node(0, [], list(range(len(self.work))), waste)]
        while stack:
            node = stack[-1]
            chosen = next(node.choices, None)
            self.nodes += 1
            if self.nodes % 1024 == 0 and incumbent.finished():
                self.nodes = self.max_nodes
            if self.nodes >= self.max_nodes:
                return None
            if chosen is None:
                stack.pop()
                continue
            for j in chosen:
                start[j] = node.time
            starting = set(chosen)
            waiting = [j for j in node.waiting if j not in starting]
            if not waiting:
                return start
            running = node.running + [(node.time + self.work[j][1], self.work[j][0]) for j in chosen]
            if not running:
                continue
            until = min(end for end, _ in running)
            idle = (self.gpus - sum(need for _, need in running)) * (until - node.time)
            if idle <= node.waste:
                running = [(end, need) for end, need in running if end > until]
                stack.append(self._node(until, running, waiting, node.waste - idle))
        return None

    def _node(self, time: int, running: list[tuple[int, int]], waiting: list[int], waste: int) -> _Node:
        free = self.gpus - sum(need for _, need in running)
        # what is idle now stays so until the next event: a running job's end, or that of one that starts now
        until = min([*(end for end, _ in running), *(time + self.work[j][1] for j in waiting)])
        late = any(self.work[j][1] > self.length - time for j in waiting)
        least = max(0, free - waste // (until - time))
        return _Node(time, running, waiting, waste, iter(()) if late else self._sets(waiting, free, least))

    def _sets(self, waiting: Sequence[int], free: int, least: int) -> Iterator[list[int]]:
        """Sets of waiting jobs of `least` to `free` GPUs together; of equal jobs the first ones."""
        reach = [1]
        for j in reversed(waiting):
            reach.append((reach[-1] | reach[-1] << self.work[j][0]) & ((1 << (free + 1)) - 1))
        reach.reverse()
        stack: list[tuple[int, int, list[int]]] = [(0, free, [])]
        while stack:
            k, remaining, chosen = stack.pop()
            low = max(0, remaining - (free - least))
            self.nodes += 1
            if not reach[k] >> low & ((1 << (remaining - low + 1)) - 1):
                continue
            if k == len(waiting):
                yield chosen
                continue
            job = self.work[waiting[k]]
            after = k + 1
            while after < len(waiting) and self.work[waiting[after]] == job:
                after += 1
            for times in range(min(after - k, remaining // job[0]) + 1):
                stack.append((after, remaining - times * job[0], chosen + list(waiting[k : k + times])))
