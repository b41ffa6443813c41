"""What can run in one slot: the cluster as a small integer program over patterns of servers, without their names.

Idea: servers of one size are counted, not named, by what each holds in a slot. Source: patterns of cutting stock.
Guarantee: a relaxation, since two parts of a ring may lie on one server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.result import NO_DEADLINE, Deadline

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


MOST_PATTERNS = 3_000


LARGEST_TABLE = 5 * 10**7
"""Cells of a dynamic program over GPUs and jobs that are worth their memory."""


Weight = TypeVar("Weight", int, float)


Label = tuple[int, int]
"""(job, how it runs): 0 on one server, i >= 1 across servers in grade i of contention."""


Ring = tuple[int, int, int, int]
"""All that says how a job can be split: its GPUs, the fewest and the most servers, the most GPUs on any."""


@dataclass(frozen=True)
class Pattern:
    """What one server holds in a slot."""

    parts: tuple[int, ...]  # GPUs of each ring that crosses it, falling
    local: tuple[int, ...]  # gangs that run on it alone, falling


class OneSlot:
    """The program "which jobs run in one slot, and how", a relaxation of the true rules.

    Servers of equal size are counted, not named; a ring is split into parts, and a part needs a place of its
    size on a server that no more rings cross than the job's grade of contention allows. That two parts of one
    ring lie on different servers is not asked for.

    Parameters
    ----------
    instance, options : the instance, and what its jobs can do
    grades : the smallest p of each grade of contention, from 1
    """

    def __init__(self, instance: RarDdlsInstance, options: Sequence[JobOptions], grades: Sequence[int]) -> None:
        from ortools.sat.python import cp_model

        self.grades = tuple(grades)
        self._options = options
        self.model = cp_model.CpModel()
        self.runs: dict[Label, cp_model.IntVar] = {}
        sizes = Counter(server.gpus for server in instance.servers)
        self._local_gangs = sorted({o.gpus for o in options if o.local}, reverse=True)
        rings = [o for o in options if o.modes]
        self._largest_part = max((max(o.share) for o in rings), default=0)
        self.too_large = False
        try:
            patterns = {size: list(self._patterns(size)) for size in sizes}
            splits = {ring: list(_splits(*ring)) for ring in dict.fromkeys(map(_ring, rings))}
        except _TooManyError:
            self.too_large = True
            return
        self._build(sizes, patterns, splits)

    def best(self, weights: Mapping[Label, int], incumbent: BestSchedule) -> tuple[list[Label], int]:
        """The set of labels of largest weight that can run in one slot, and an upper bound on the weight of any.

        Without an answer in time, or where CP-SAT died, no labels and the sum of the weights. The time it took and an
        interruption are counted at the incumbent.
        """
        from ortools.sat.python import cp_model

        from schedgap.solvers.cp_sat.process import search_apart
        from schedgap.solvers.cp_sat.solver import Listener, cp_parameters

        expression = cp_model.LinearExpr.weighted_sum(
            list(self.runs.values()), [weights.get(label, 0) for label in self.runs]
        )
        self.model.maximize(expression)
        remaining = incumbent.seconds_left()
        seconds = None if remaining is None else max(0.01, remaining)
        settings = cp_parameters(workers=1, work=5.0, seconds=seconds)
        deadline = NO_DEADLINE if seconds is None else Deadline.after(seconds)
        run = search_apart(self.model.proto, settings, Listener(), deadline)
        incumbent.interrupted = incumbent.interrupted or run.interrupted
        end = run.value
        incumbent.work += 0.0 if end is None else end.work
        if end is None or end.values is None:
            return [], sum(weights.values())
        labels = [label for label, runs in self.runs.items() if end.values[runs.index] and weights.get(label, 0)]
        # the bound is a float; weights are kept small enough for it to be exact
        return labels, int(end.bound + 1e-6)

    def _build(
        self,
        sizes: Mapping[int, int],
        patterns: Mapping[int, Sequence[Pattern]],
        splits: Mapping[Ring, Sequence[tuple[int, ...]]],
    ) -> None:
        model = self.model
        local: dict[int, list[tuple[int, cp_model.IntVar]]] = {}
        supply: dict[tuple[int, int], list[tuple[int, cp_model.IntVar]]] = {}
        for size, count in sizes.items():
            chosen = []
            for pattern in patterns[size]:
                times = model.new_int_var(0, count, "")
                chosen.append(times)
                grade = self._grade(len(pattern.parts))
                for part, many in Counter(pattern.parts).items():
                    supply.setdefault((grade, part), []).append((many, times))
                for gang, many in Counter(pattern.local).items():
                    local.setdefault(gang, []).append((many, times))
            model.add(sum(chosen) <= count)
        demand: dict[tuple[int, int], list[tuple[int, cp_model.IntVar]]] = {}
        allowed: dict[tuple[Ring, int], list[cp_model.IntVar]] = {}
        members = Counter(_ring(option) for option in self._options if option.modes)
        for ring, ways in splits.items():
            for grade in range(1, len(self.grades) + 1):
                for way in ways:
                    times = model.new_int_var(0, members[ring], "")
                    allowed.setdefault((ring, grade), []).append(times)
                    for part, many in Counter(way).items():
                        demand.setdefault((grade, part), []).append((many, times))
        for part in sorted({part for _, part in demand}):
            for grade in range(1, len(self.grades) + 1):
                needed = [m * v for g in range(1, grade + 1) for m, v in demand.get((g, part), ())]
                supplied = [m * v for g in range(1, grade + 1) for m, v in supply.get((g, part), ())]
                model.add(sum(needed) <= sum(supplied))
        self._choose(allowed, local)
        total = sum(size * count for size, count in sizes.items())
        model.add(sum(self._options[j].gpus * runs for (j, _), runs in self.runs.items()) <= total)

    def _choose(
        self,
        allowed: Mapping[tuple[Ring, int], list[cp_model.IntVar]],
        local: Mapping[int, list[tuple[int, cp_model.IntVar]]],
    ) -> None:
        alone: dict[int, list[cp_model.IntVar]] = {}
        crossing: dict[tuple[Ring, int], list[cp_model.IntVar]] = {}
        for j, option in enumerate(self._options):
            ways = [0] if option.local else []
            ways += range(1, len(self.grades) + 1) if option.modes else []
            for way in ways:
                self.runs[j, way] = self.model.new_bool_var("")
                if way == 0:
                    alone.setdefault(option.gpus, []).append(self.runs[j, way])
                else:
                    crossing.setdefault((_ring(option), way), []).append(self.runs[j, way])
            self.model.add_at_most_one(self.runs[j, way] for way in ways)
        for gang, runs in alone.items():
            self.model.add(sum(runs) <= sum(m * v for m, v in local.get(gang, ())))
        for key, runs in crossing.items():
            self.model.add(sum(runs) <= sum(allowed.get(key, [])))

    def _grade(self, rings: int) -> int:
        return sum(rings >= p for p in self.grades)

    def _patterns(self, size: int) -> Iterator[Pattern]:
        """Patterns to which no further local gang can be added."""
        count = 0
        for parts in _multisets(size, min(size, self._largest_part)):
            remaining = size - sum(parts)
            for local in self._fillings(remaining, len(self._local_gangs) and self._local_gangs[0]):
                count += 1
                if count > MOST_PATTERNS:
                    raise _TooManyError
                yield Pattern(parts, local)

    def _fillings(self, left: int, largest: int) -> Iterator[tuple[int, ...]]:
        gangs = [gang for gang in self._local_gangs if gang <= min(left, largest)]
        if not any(gang <= left for gang in self._local_gangs):
            yield ()
        for gang in gangs:
            for rest in self._fillings(left - gang, gang):
                yield (gang, *rest)


class Knapsack:
    """What one server can run in a slot: any jobs that need no more GPUs than it has.

    Parameters
    ----------
    gpus : GPUs of the server
    options : what the jobs can do; only those that fit it run at all

    Attributes
    ----------
    runs : the labels that there are
    too_large : its table would not be worth its memory
    """

    def __init__(self, gpus: int, options: Sequence[JobOptions]) -> None:
        self._gpus = gpus
        self._need = {(j, 0): option.gpus for j, option in enumerate(options) if option.local}
        self.runs: Mapping[Label, object] = self._need
        self.too_large = (gpus + 1) * len(self._need) > LARGEST_TABLE

    def best(self, weights: Mapping[Label, int], incumbent: BestSchedule) -> tuple[list[Label], int]:
        """The labels of largest weight that fit together, and that weight; by dynamic programming, in whole numbers.

        Notes
        -----
        O(J N) for J jobs and N GPUs.
        """
        labels = [label for label in self._need if weights.get(label, 0) > 0]
        if sum(weights[label] for label in labels) >= 2**62:
            return [], sum(weights.values())
        items = [(self._need[label], weights[label]) for label in labels]
        chosen, value = knapsack(items, self._gpus, np.zeros(self._gpus + 1, dtype=np.int64))
        incumbent.work += 1e-9 * self._gpus * len(labels)
        return [labels[k] for k in chosen], int(value)


def knapsack(
    items: Sequence[tuple[int, Weight]], capacity: int, most: NDArray[np.int64] | NDArray[np.float64]
) -> tuple[list[int], Weight]:
    """The items of the largest weight that fit together, and that weight.

    Parameters
    ----------
    items : size and weight of each
    most : (capacity + 1,) zeros, of the type to count in; overwritten

    Notes
    -----
    Dynamic programming over items and capacity: O(items x capacity) time, as many bytes.
    """
    taken = np.zeros((len(items), capacity + 1), dtype=bool)
    for row, (size, weight) in enumerate(items):
        with_it = most[:-size] + weight
        taken[row, size:] = with_it > most[size:]
        most[size:] = np.maximum(most[size:], with_it)
    remaining, chosen = capacity, []
    for row in range(len(items) - 1, -1, -1):
        if taken[row, remaining]:
            chosen.append(row)
            remaining -= items[row][0]
    return chosen, most[-1].item()


class _TooManyError(Exception):
    """More patterns than are worth it."""


def _multisets(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Falling sequences of numbers from 1 to `largest` that sum to at most `total`."""
    yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _multisets(total - first, first):
            yield (first, *rest)


def _ring(option: JobOptions) -> Ring:
    return option.gpus, option.fewest, option.max_servers, max(option.share)


def _splits(gang: int, fewest: int, most: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Falling sequences of `fewest` to `most` numbers up to `largest` that sum to `gang`."""
    count = 0
    stack: list[tuple[tuple[int, ...], int]] = [((), gang)]
    while stack:
        parts, remaining = stack.pop()
        if remaining == 0:
            if len(parts) >= fewest:
                count += 1
                if count > MOST_PATTERNS:
                    raise _TooManyError
                yield parts
            continue
        if len(parts) < most:
            stack.extend(
                ((*parts, p), remaining - p) for p in range(1, min(remaining, parts[-1] if parts else largest) + 1)
            )
