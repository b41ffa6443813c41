"""Packing on servers that no ring leaves: slots as bins, and schedules that waste little.

Idea: with no ring across servers the makespan is a packing: of bins where lengths are equal, of a strip where not.
Source: Gilmore and Gomory (1961) for bins. Guarantee: the search of a strip on one server is exhaustive for each length
that is asked, unless a limit ends it; dives prove nothing.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.patterns import LARGEST_TABLE, knapsack
from schedgap.solvers.linear_program import INFINITY, LinearProgram

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
    capacity : capacity of a bin
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
    gpus, length : GPUs of the server, length of the schedule
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
