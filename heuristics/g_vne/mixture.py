"""Each job's rings with the probabilities that randomized rounding draws them with, and what they load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.heuristics.g_vne.relaxation import LEAST_WEIGHT, Relaxation
from schedgap.solvers.column_generation import Column


def fits_alone(column: Column, capacity: Floats) -> bool:
    """Whether a ring fits the empty network."""
    return bool((column.values <= capacity[column.rows]).all())


@dataclass(frozen=True)
class Mixture:
    """The weighted rings M_i of all jobs."""

    columns: tuple[Column, ...]  # the rings with positive weight, job by job
    weights: Floats  # (columns,) probabilities; those of a job sum to at most 1
    capacity: Floats  # (I,) of servers' resources and links that rings can fill
    dropped: float  # weight of rings left out because they do not fit the empty network

    @classmethod
    def of(cls, relaxation: Relaxation, drop: bool) -> Mixture:
        """The rings of a solved program, optionally without those that fit not even alone."""
        capacity = np.array([row.upper for row in relaxation.subproblem.rows], dtype=float)
        chosen: list[tuple[Column, float]] = []
        dropped = 0.0
        for column, weight in zip(relaxation.columns, relaxation.weights, strict=True):
            if weight <= LEAST_WEIGHT:
                continue
            if drop and not fits_alone(column, capacity):
                dropped += float(weight)
            else:
                chosen.append((column, float(weight)))
        chosen.sort(key=lambda pair: pair[0].group)
        columns = tuple(column for column, _ in chosen)
        weights = np.array([weight for _, weight in chosen], dtype=float)
        totals = np.zeros(relaxation.subproblem.data.jobs)
        np.add.at(totals, [c.group for c in columns], weights)
        if len(columns):  # a sum above 1 is rounding of the simplex method
            weights = weights / np.maximum(1.0, totals[[c.group for c in columns]])
        return cls(columns, weights, capacity, dropped)

    @cached_property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First and last + 1 column of each job that has some."""
        jobs = np.array([column.group for column in self.columns], dtype=np.int64)
        edges = np.flatnonzero(np.diff(jobs, prepend=-1)) if len(jobs) else np.zeros(0, dtype=np.int64)
        ends = np.append(edges[1:], len(jobs)) if len(jobs) else edges
        return tuple((int(a), int(b)) for a, b in zip(edges, ends, strict=True))

    @cached_property
    def _reach(self) -> Floats:
        """(jobs, rings) weights of each job's rings added up; infinite where a job has fewer."""
        width = max((last - first for first, last in self.groups), default=0)
        found = np.full((len(self.groups), width), np.inf)
        for row, (first, last) in zip(found, self.groups, strict=True):
            row[: last - first] = np.cumsum(self.weights[first:last])
        return found

    @cached_property
    def _packed(self) -> tuple[Ints, Ints, Floats]:
        """What each ring takes: where its entries begin, their rows and values, ring after ring."""
        counts = [len(column.rows) for column in self.columns]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(column.rows for column in self.columns)])
        values = np.concatenate([np.zeros(0), *(column.values for column in self.columns)])
        return starts, rows.astype(np.int64), values

    @cached_property
    def utility(self) -> Floats:
        """(columns,) of each ring."""
        return np.array([column.objective for column in self.columns], dtype=float)

    @cached_property
    def load(self) -> Floats:
        """(columns, I) what each ring takes."""
        table = np.zeros((len(self.columns), len(self.capacity)))
        for place, column in enumerate(self.columns):
            table[place, column.rows] = column.values
        return table

    @property
    def value(self) -> float:
        """Expected utility of a rounding."""
        return float(self.utility @ self.weights) if len(self.columns) else 0.0

    def draw(self, rng: np.random.Generator) -> Ints:
        """One rounding: each job takes at most one of its rings, independently: Step 8."""
        place = (self._reach <= rng.random(len(self.groups))[:, None]).sum(axis=1)
        first, last = np.array(self.groups, dtype=np.int64).reshape(-1, 2).T
        chosen: Ints = (first + place)[first + place < last]
        return chosen

    def accepted(self, chosen: Ints) -> Ints:
        """The rings, taken in this order, that fit what the ones before them leave."""
        taken: Ints = chosen[_fitting(chosen, *self._packed, self.capacity.copy())]
        return taken

    def draw_many(self, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        """Utilities (n,) and loads (n, I) of `count` roundings, as :meth:`draw` makes them."""
        utility, load = np.zeros(count), np.zeros((count, len(self.capacity)))
        for first, last in self.groups:
            place = np.searchsorted(np.cumsum(self.weights[first:last]), rng.random(count), side="right")
            taken = first + place < last
            rings = first + place[taken]
            utility[taken] += self.utility[rings]
            load[taken] += self.load[rings]
        return utility, load

    def share(self, chosen: Ints | Sequence[int]) -> Floats:
        """(I,) load over capacity; 0/0 is 0."""
        load: Floats = self.load[np.asarray(chosen, dtype=np.int64)].sum(axis=0)
        return shares(load, self.capacity)


@njit_cached
def _fitting(chosen: Ints, starts: Ints, rows: Ints, values: Floats, left: Floats) -> Bools:
    """Which of these rings fit what is left, one after the other; `left` is used up."""
    taken = np.ones(len(chosen), dtype=np.bool_)
    for n, ring in enumerate(chosen):
        for k in range(starts[ring], starts[ring + 1]):
            if not values[k] <= left[rows[k]]:
                taken[n] = False
        if taken[n]:
            for k in range(starts[ring], starts[ring + 1]):
                left[rows[k]] -= values[k]
    return taken


def shares(load: Floats, capacity: Floats) -> Floats:
    """Load over capacity; 0/0 is 0, and infinite where only the capacity is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load > 0, load / capacity, 0.0)
