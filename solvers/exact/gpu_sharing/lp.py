"""The column LP of gpu-sharing: a lower bound on the sum of JCT, and reduced costs that rule columns out.

Idea: choose a run for each job in fractions; a GPU that two share counts once, and what sharing loses must fit into
the run. Source: time-indexed column programs; the rows on sharing are ours. Guarantee: the bound is evaluated again
from rounded duals, so it holds whatever HiGHS's tolerances are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.linear_program import solve_once
from schedgap.solvers.result import Deadline

LARGEST = 6_000_000
"""Nonzeros beyond which the LP is not built."""
_MARGIN = 1e-6
_LEAST_LOSS = 1e-6
"""Smallest loss that counts, in slots per GPU, since HiGHS does not tell coefficients of about 1e-9 from 0."""


@dataclass(frozen=True)
class Columns:
    """Every run of every job: arrays of equal length."""

    # job, mode, start, slots: what the run is
    job: Ints
    mode: Ints
    start: Ints
    slots: Ints
    cost: Ints  # its JCT in slots
    slack: Floats  # slots that it may lose, see :func:`spare`

    def only(self, keep: NDArray[np.bool_]) -> Columns:
        """The columns where `keep` is set."""
        job, mode, start, slots, cost = (p[keep] for p in (self.job, self.mode, self.start, self.slots, self.cost))
        return Columns(job, mode, start, slots, cost, self.slack[keep])

    def entries(self) -> tuple[Ints, Ints]:
        """Position and slot of every slot of every column."""
        owner = np.arange(len(self.job)).repeat(self.slots)
        before = np.cumsum(self.slots) - self.slots
        return owner, np.arange(len(owner)) - before.repeat(self.slots) + self.start[owner]

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, ...]], slack: Sequence[Floats]) -> Columns:
        """Columns from parts: job, mode, start, slots and cost of each, and its slack."""
        job, mode, start, slots, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(job, mode, start, slots, cost, np.concatenate(slack))


@dataclass(frozen=True)
class ColumnBound:
    """What the LP proves, and its prices: a schedule costs `value` and, for all it does, at least what is priced."""

    value: float  # a lower bound on the sum of JCT
    reduced: Floats  # least amount by which using each column raises the bound
    # (slots,) what a GPU that nobody holds, or a place beside a job that nobody takes, adds in slot 1, 2, ...
    idle: Floats
    alone: Floats  # (kinds, slots) what a GPU of a kind adds that is not shared
    unspent: Floats  # (kinds,) what a slot adds that a run may lose and does not
    unshared: Floats  # (kinds, jobs, slots) what a GPU of a kind adds that could be shared with a job and is not
    window: Ints  # (kinds, 2) the first and the last slot of the kind's columns


@dataclass(frozen=True)
class Kinds:
    """Runs that are alike where GPUs are shared: those of a job, or those of a job with one number of steps."""

    job: Ints  # job of each kind
    first: Ints  # the first kind of each job
    of_column: Ints  # the kind of each column
    pairs: Ints  # (pairs, 2) kinds that may share a GPU

    @classmethod
    def of(cls, choices: Choices, columns: Columns, by_mode: bool) -> Kinds:
        """The kinds of columns; with `by_mode` pairs whose memory does not fit do not share."""
        if not by_mode:
            job = np.arange(len(choices.jobs))
            return cls(job, job, columns.job, np.array(choices.pairs, dtype=np.int64).reshape(-1, 2))
        first, fits = fitting(choices)
        of_column = first[columns.job] + columns.mode
        present = np.zeros(len(fits), dtype=np.bool_)
        present[of_column] = True
        fits &= present[:, None] & present
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for j, k in choices.pairs:
            block = fits[first[j] : first[j + 1], first[k] : first[k + 1]]
            pairs.append(np.argwhere(block) + first[[j, k]])
        job = np.arange(len(choices.jobs)).repeat(np.diff(first))
        return cls(job, first[:-1], of_column, np.concatenate(pairs))


def fitting(choices: Choices) -> tuple[Ints, NDArray[np.bool_]]:
    """The first kind of each job by numbers of steps, and how many there are; which kinds fit one GPU."""
    first = np.array([0, *np.cumsum([len(choice.modes) for choice in choices.jobs])], dtype=np.int64)
    fits = np.zeros((first[-1], first[-1]), dtype=np.bool_)
    for j, k in choices.pairs:
        fits[first[j] : first[j + 1], first[k] : first[k + 1]] = True
        for a, b in choices.clashes(j, k):
            fits[first[j] + a, first[k] + b] = False
    return first, fits | fits.T


def all_columns(instance: GpuSharingInstance, choices: Choices) -> Columns:
    """Every start, mode and duration within the horizon."""
    parts: list[tuple[Ints, ...]] = []
    slack: list[Floats] = []
    loss = losses(choices)
    for j, choice in enumerate(choices.jobs):
        arrival = instance.jobs[j].arrival
        for m, mode in enumerate(choice.modes):
            for d in choices.slots(j, mode):
                start = np.arange(arrival, instance.horizon - d + 2, dtype=np.int64)
                same = np.ones_like(start)
                parts.append((same * j, same * m, start, same * d, start + d - arrival))
                slack.append(np.full(len(start), spare(loss[j], float(d - mode.work))))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Columns(empty, empty, empty, empty, empty, np.zeros(0))
    return Columns.joined(parts, slack)


def lp_nonzeros(instance: GpuSharingInstance, choices: Choices) -> int:
    """About how many nonzeros the LP has."""
    total = 0
    for j, choice in enumerate(choices.jobs):
        for mode in choice.modes:
            for d in choices.slots(j, mode):
                total += max(0, instance.horizon - d - instance.jobs[j].arrival + 2) * (2 * d + 2)
    return total + 5 * instance.horizon * len(choices.pairs)


def fine_entries(choices: Choices, columns: Columns) -> int:
    """About how many entries the tables of the LP by numbers of steps have."""
    kinds, slots = (
        sum(len(choice.modes) for choice in choices.jobs),
        int((columns.start + columns.slots).max(initial=1)),
    )
    return int(columns.slots.sum()) * len(choices.jobs) + 2 * kinds**2 * slots


def column_bound(
    instance: GpuSharingInstance, choices: Choices, columns: Columns, deadline: Deadline, *, by_mode: bool = False
) -> ColumnBound | None:
    """Solve the LP relaxation over the columns; None when there is no solution, or none before HiGHS or time ends.

    x chooses a run per job, v[j, k, t] >= 0 is how many GPUs j and k share in slot t. With l_jk = 1 - 1/xi_jk::

        sum_j G_j run[j, t] - sum v[j, k, t] <= N,      sum_k v[j, k, t] <= G_j run[j, t]
        sum_kt l_jk v[j, k, t] / G_j <= sum (d - W) x   (the largest loss is at least the mean over the GPUs)

    With `by_mode` the last two rows and v are those of jobs with one number of steps, and only those share whose
    memory fits; and v[j, k, t] is at most min(G_j, G_k) times those runs of j that can share with k in slot t
    (:func:`can_share`). The bound is evaluated again from the duals, so that it holds whatever the LP's tolerances are.
    """
    jobs = len(instance.jobs)
    slots = int((columns.start + columns.slots).max(initial=1)) - 1
    kinds = Kinds.of(choices, columns, by_mode)
    window = _windows(columns, kinds, slots)
    pair, slot = _meetings(kinds, window)
    parts = [_run_part(choices, columns, kinds, slots), _pair_part(choices, kinds, pair, slot, slots)]
    plain = parts[0].shape[0]
    limited = np.zeros(0, dtype=np.int64)
    if by_mode:
        limited, more = _limits(choices, columns, kinds, pair, slot, slots)
        parts = [sparse.vstack([part, rows]) for part, rows in zip(parts, more, strict=True)]
    matrix = sparse.hstack(parts).tocsc()
    count = len(columns.job)
    cost = np.zeros(matrix.shape[1])
    cost[:count] = columns.cost
    gpus = choices.tables.gpus[kinds.job]
    most = gpus[kinds.pairs[pair]].min(axis=1, initial=instance.total_gpus)
    upper = np.concatenate([np.ones(count), most.astype(float)])
    low = np.full(matrix.shape[0], -np.inf)
    high = np.zeros(matrix.shape[0])
    high[columns.job] = 1.0
    low[:jobs] = high[:jobs]
    high[jobs : jobs + slots] = instance.total_gpus
    # The rows imply the bounds of v; without them its reduced costs are no less than 0.
    found = solve_once(matrix, cost, np.where(np.arange(len(upper)) < count, 1.0, np.inf), low, high, deadline)
    if found is None:
        return None
    duals = found.duals
    duals[jobs:] = np.minimum(duals[jobs:], 0.0)
    reduced = cost - matrix.T @ duals
    value = float(duals[: jobs + slots] @ high[: jobs + slots])
    # A job takes exactly one of its columns, so what they cost below zero counts once per job.
    least = np.zeros(jobs)
    np.minimum.at(least, columns.job, reduced[:count])
    value += float(least.sum()) + float(np.minimum(reduced[count:], 0.0) @ upper[count:])
    share, budget = jobs + slots, jobs + slots + len(kinds.job) * slots
    beside = np.zeros(len(kinds.job) * jobs * slots)
    beside[limited] = -duals[plain:]
    return ColumnBound(
        value - _MARGIN,
        np.maximum(reduced[:count] - least[columns.job], 0.0) - _MARGIN,
        -duals[jobs:share],
        -duals[share:budget].reshape(-1, slots),
        -duals[budget:plain],
        beside.reshape(-1, jobs, slots),
        window + 1,
    )


def _windows(columns: Columns, kinds: Kinds, slots: int) -> Ints:
    """The first and last slot, from 0, in which each kind may run; one after the other where there is none."""
    window = np.array([[slots, -1]], dtype=np.int64).repeat(len(kinds.job), axis=0)
    np.minimum.at(window[:, 0], kinds.of_column, columns.start - 1)
    np.maximum.at(window[:, 1], kinds.of_column, columns.start + columns.slots - 2)
    return window


def _meetings(kinds: Kinds, window: Ints) -> tuple[Ints, Ints]:
    """Positions of pairs of kinds, and slots from 0 in which both may run."""
    begin, end = window[kinds.pairs, 0].max(axis=1), window[kinds.pairs, 1].min(axis=1)
    length = np.maximum(end - begin + 1, 0)
    pair = np.arange(len(kinds.pairs)).repeat(length)
    return pair, np.arange(len(pair)) - (np.cumsum(length) - length - begin).repeat(length)


def _run_part(choices: Choices, columns: Columns, kinds: Kinds, slots: int) -> sparse.csc_matrix:
    """Columns of the runs: rows are jobs, capacity by slot, sharing by kind and slot, budgets by kind."""
    jobs = len(choices.jobs)
    index = np.arange(len(columns.job))
    owner, slot = columns.entries()
    slot = slot - 1
    size = choices.tables.gpus[columns.job[owner]].astype(float)
    budget = jobs + slots + len(kinds.job) * slots
    kind = kinds.of_column
    rows = np.concatenate([columns.job, jobs + slot, jobs + slots + kind[owner] * slots + slot, budget + kind])
    places = np.concatenate([index, owner, owner, index])
    values = np.concatenate([np.ones(len(index)), size, -size, -columns.slack])
    return sparse.csc_matrix((values, (rows, places)), shape=(budget + len(kinds.job), len(index)))


def _pair_part(choices: Choices, kinds: Kinds, pair: Ints, slot: Ints, slots: int) -> sparse.csc_matrix:
    """Columns of the shared GPUs, by pair of kinds and slot."""
    one, other = kinds.pairs[pair, 0], kinds.pairs[pair, 1]
    share = len(choices.jobs) + slots
    budget = share + len(kinds.job) * slots
    rows = [
        share - slots + slot,
        share + one * slots + slot,
        share + other * slots + slot,
        budget + one,
        budget + other,
    ]
    ones = np.ones(len(pair))
    losses = [mean_loss(choices, kinds.job[a], kinds.job[b]) for a, b in ((one, other), (other, one))]
    values = np.concatenate([-ones, ones, ones, *losses])
    where = (np.concatenate(rows), np.tile(np.arange(len(pair)), 5))
    return sparse.csc_matrix((values, where), shape=(budget + len(kinds.job), len(pair)))


def can_share(choices: Choices, columns: Columns) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """With whom runs can share in each of their slots.

    Two jobs that share do so in all slots in which both run. So run r of j can share with k in slot t only if some run
    of k through t meets r in no more slots than r can lose beside k, and than it can lose beside j itself. Returns the
    column and the slot of each entry, and (entries, jobs) whether it can be shared with the job.
    """
    owner, slot = columns.entries()
    first, fits = fitting(choices)
    able = np.zeros((len(owner), len(choices.jobs)), dtype=np.bool_)
    order = np.lexsort((columns.start, columns.job))
    of_job = np.searchsorted(columns.job[order], np.arange(len(choices.jobs) + 1))
    place = (np.cumsum(columns.slots) - columns.slots)[order]
    kind = (first[columns.job] + columns.mode)[order]
    last = (columns.start + columns.slots - 1)[order]
    begin = columns.start[order]
    runs = Runs(columns.job[order], kind, begin, last, columns.slack[order], place)
    _meet(runs, of_job, losses(choices), fits, able)
    return owner, slot, able


class Runs(NamedTuple):
    """Columns by job and then by first slot, for compiled code."""

    job: Ints
    kind: Ints
    # start, last: slots
    start: Ints
    last: Ints
    slack: Floats
    place: Ints  # position of the first of their entries


@njit_cached
def _meet(
    runs: Runs, of_job: Ints, loss: Floats, fits: NDArray[np.bool_], able: NDArray[np.bool_]
) -> None:  # pragma: no cover - compiled
    """Mark the slots in which runs can share with a job, some run of which can afford it, too."""
    for r in range(len(runs.job)):
        j, start, last = runs.job[r], runs.start[r], runs.last[r]
        for k in range(len(of_job) - 1):
            for q in range(of_job[k], of_job[k + 1]):
                if k == j or runs.start[q] > last:
                    break
                begin, end = max(start, runs.start[q]), min(last, runs.last[q])
                met = end - begin + 1
                if met < 1 or not fits[runs.kind[r], runs.kind[q]]:
                    continue
                if met * loss[j, k] <= runs.slack[r] + 1e-9 and met * loss[k, j] <= runs.slack[q] + 1e-9:
                    for slot in range(runs.place[r] + begin - start, runs.place[r] + end - start + 1):
                        able[slot, k] = True


def shortest_runs(columns: Columns, jobs: int) -> Ints:
    """The fewest slots of a column of each job."""
    shortest = np.full(jobs, int((columns.start + columns.slots).max(initial=1)))
    np.minimum.at(shortest, columns.job, columns.slots)
    return shortest


def _limits(
    choices: Choices, columns: Columns, kinds: Kinds, pair: Ints, slot: Ints, slots: int
) -> tuple[Ints, tuple[sparse.csc_matrix, sparse.csc_matrix]]:
    """The rows that say who can share: numbers (kind, partner, slot) of those that say something; their two parts."""
    jobs, gpus = len(choices.jobs), choices.tables.gpus
    owner, when, able = can_share(choices, columns)
    row = (kinds.of_column[owner][:, None] * jobs + np.arange(jobs)) * slots + when[:, None] - 1
    size = np.minimum(gpus[columns.job[owner]][:, None], gpus)
    one, other = kinds.pairs[pair, 0], kinds.pairs[pair, 1]
    sides = [(a * jobs + kinds.job[b]) * slots + slot for a, b in ((one, other), (other, one))]
    wanted = np.unique(row[~able | (size < gpus[columns.job[owner]][:, None])])
    rows = np.intersect1d(wanted, np.concatenate(sides))
    parts = []
    shared = np.arange(len(pair))
    place = np.broadcast_to(owner[:, None], row.shape)[able]
    for number, column, value, width in (
        (row[able], place, -size[able].astype(float), len(columns.job)),
        (np.concatenate(sides), np.tile(shared, 2), np.ones(2 * len(pair)), len(pair)),
    ):
        known = np.isin(number, rows)
        where = (np.searchsorted(rows, number[known]), column[known])
        parts.append(sparse.csc_matrix((value[known], where), shape=(len(rows), width)))
    return rows, (parts[0], parts[1])


def mean_loss(choices: Choices, one: Ints, other: Ints) -> Floats:
    """What `one` loses in a slot, in the mean over its GPUs, for one GPU that it shares with `other`."""
    loss: Floats = losses(choices)[one, other] / choices.tables.gpus[one]
    return loss


def losses(choices: Choices) -> Floats:
    """(J, J) what a job loses in a slot beside another, no more than it does: too little is not counted."""
    data = choices.tables
    loss = 1 - 1 / data.slowdown
    counted: Floats = np.where(data.may_share & (loss >= _LEAST_LOSS * data.gpus[:, None]), loss, 0.0)
    return counted


def spare(loss: Floats, slack: float | Floats) -> Floats:
    """The part of d - W slots that a run with these :func:`losses` may lose: nothing where no loss is so small."""
    counted: Floats = np.where(slack < loss[loss > 0].min(initial=np.inf) - 1e-9, 0.0, slack)
    return counted


def _compile() -> None:
    """Run once, so that what is kept on disk is loaded: the clock of a solve starts after the imports."""
    one, number, flag = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, 1), dtype=np.bool_)
    runs = Runs(one, one, one, one, number, one)
    _meet(runs, np.array([0, 1], dtype=np.int64), np.zeros((1, 1)), flag, flag.copy())


_compile()
