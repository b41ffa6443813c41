"""What the exact models choose from: per job accumulation steps, starts, durations and losses in integers.

A job that runs d slots makes up for its work W exactly if its losses, 1 - 1/x in a slot at slowdown x, sum
to at most d - W. The models count losses in units of 1/K: weights floor(K (1 - 1/x)) and budgets
floor(K (d - W)). Rounding down never excludes a real schedule, so the models' bounds hold for every K; with
the K chosen here (see ``loss_scale``) it admits no other schedule either, or only within a resolution that
is stated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, exact_work, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

_VECTORS = 20_000
_SCALES = tuple(10**power for power in range(10))
LARGE_SCALE = 10**7
_LARGEST_SCALE = 10**12


@dataclass(frozen=True)
class Mode:
    """A job with a fixed number of accumulation steps.

    Attributes
    ----------
    steps : s
    work : W in solo slots
    shortest : slots alone, ceil(W)
    longest : slots beside its worst partner all the time
    """

    steps: int
    work: Fraction
    shortest: int
    longest: int


@dataclass(frozen=True)
class JobModes:
    """The choices of one job.

    Attributes
    ----------
    modes : by accumulation steps, ascending; only those a schedule may need
    levels : the distinct slowdowns above 1 that its partners cause, ascending
    scale : K of its losses
    exact : the integers admit exactly the real schedules
    """

    modes: tuple[Mode, ...]
    levels: tuple[float, ...]
    scale: int
    exact: bool

    def loss(self, slowdown: float) -> int:
        """floor(K (1 - 1/x))."""
        x = exact(slowdown)
        return math.floor(self.scale * (x - 1) / x)

    def budget(self, mode: Mode, slots: int) -> int:
        """floor(K (d - W)), what a run of d slots may lose."""
        return math.floor(self.scale * (slots - mode.work))


@dataclass(frozen=True)
class Choices:
    """The choices of all jobs; `blocked` says why there is no schedule at all, where that shows already."""

    tables: SharingTables
    jobs: tuple[JobModes, ...]
    pairs: tuple[tuple[int, int], ...]
    blocked: str | None

    def clashes(self, j: int, k: int) -> list[tuple[int, int]]:
        """Pairs of mode indices of j and k that do not fit one GPU together."""
        return [
            (a, b)
            for a, one in enumerate(self.jobs[j].modes)
            for b, other in enumerate(self.jobs[k].modes)
            if not self.tables.pair_fits(j, one.steps, k, other.steps)
        ]

    def slots(self, j: int, mode: Mode) -> range:
        """Durations worth considering within the horizon."""
        room = self.tables.instance.horizon - self.tables.instance.jobs[j].arrival + 1
        return range(mode.shortest, min(mode.longest, room) + 1)


def impossible(instance: GpuSharingInstance) -> str | None:
    """Why no schedule exists, where one job alone shows it; None otherwise."""
    data = tables(instance)
    for j, job in enumerate(instance.jobs):
        if job.gpus > instance.total_gpus:
            return f"job {j} ({job.id}): needs {job.gpus} GPUs, the cluster has {instance.total_gpus}"
        if not data.steps[j]:
            return f"job {j} ({job.id}): no sub-batch fits the GPU memory of {instance.gpu_memory:g}"
        end = job.arrival + int(data.solo_slots[j]) - 1
        if end > instance.horizon:
            return f"job {j} ({job.id}): completes in slot {end} at the earliest, the horizon is {instance.horizon}"
    return None


def choices(instance: GpuSharingInstance, scale: int | None = None) -> Choices:
    """Modes, levels and sharing pairs of an instance.

    Parameters
    ----------
    scale : K for every job instead of the chosen one

    Returns
    -------
    Choices
        Only accumulation steps that a Pareto-minimal pair may need are kept: the fewest that fit alone, and
        the fewest that fit beside some partner with some steps of its own.
    """
    data = tables(instance)
    reason = impossible(instance)
    if reason is not None:
        return Choices(data, (), (), reason)
    pairs = tuple((j, k) for j, k in np.argwhere(np.triu(data.may_share)).tolist())
    rows = []
    for j, wanted in enumerate(_wanted(data)):
        levels = np.unique(data.slowdown[j][data.may_share[j]])
        rows.append(_job_modes(instance, j, sorted(wanted), tuple(levels[levels > 1.0].tolist()), scale))
    return Choices(data, tuple(rows), pairs, None)


def _wanted(data: SharingTables) -> list[set[int]]:
    """The accumulation steps that are kept of each job; which fit beside which is asked once for jobs of one kind."""
    kinds: dict[Hashable, list[int]] = {}
    for j, job in enumerate(data.instance.jobs):
        kinds.setdefault((job.memory.fixed, job.memory.per_sample, job.batch_size, data.steps[j]), []).append(j)
    wanted: list[set[int]] = [set() for _ in data.steps]
    for own in kinds.values():
        steps = {data.steps[own[0]][0]}
        for others in kinds.values():
            partner = next((k for k in others if k != own[0]), None)
            if partner is not None and data.may_share[own[0], partner]:
                fits = (data.smallest_fit(own[0], partner, s) for s in data.steps[partner])
                steps.update(fit for fit in fits if fit is not None)
        for j in own:
            wanted[j] = steps
    return wanted


def _job_modes(
    instance: GpuSharingInstance, j: int, steps: Sequence[int], levels: tuple[float, ...], scale: int | None
) -> JobModes:
    job = instance.jobs[j]
    room = instance.horizon - job.arrival + 1
    worst = exact(levels[-1]) if levels else Fraction(1)
    modes = []
    for s in steps:
        work = exact_work(job, s, instance.slot_length)
        if math.ceil(work) <= room:
            modes.append(Mode(s, work, max(1, math.ceil(work)), max(1, math.ceil(work * worst))))
    if scale is not None:
        return JobModes(tuple(modes), levels, scale, not levels)
    found = loss_scale(modes, levels, room)
    return JobModes(tuple(modes), levels, found or LARGE_SCALE, found is not None)


def loss_scale(modes: Sequence[Mode], levels: Sequence[float], room: int) -> int | None:
    """The smallest power of ten K with which the rounded losses admit exactly the real schedules, or None.

    Every multiset of at most d slowed slots is compared with each budget, in rationals, unless there are more than
    20,000 of them. Then, and where no power up to 10^9 is exact, K is the common denominator of the losses, which
    are whole numbers with it and leave nothing to rounding, however near a sum is to a budget; None beyond 10^12.
    """
    if not levels:
        return 1
    most = min(room, max((mode.longest for mode in modes), default=0))
    losses = [1 - 1 / exact(x) for x in levels]
    whole = math.lcm(*(loss.denominator for loss in losses))
    if math.comb(most + len(levels), len(levels)) > _VECTORS:
        return whole if whole <= _LARGEST_SCALE else None
    budgets = [(d, d - m.work) for m in modes for d in range(m.shortest, min(m.longest, room) + 1)]
    totals = [
        (size, sum((losses[i] for i in chosen), Fraction(0)), chosen)
        for size in range(1, most + 1)
        for chosen in combinations_with_replacement(range(len(levels)), size)
    ]
    # Only a multiset that is just above a budget can be admitted wrongly: the nearest one decides.
    near: list[tuple[Fraction, tuple[int, ...]]] = []
    for d, budget in budgets:
        above = [(total, chosen) for size, total, chosen in totals if size <= d and total > budget]
        near.extend((budget, chosen) for total, chosen in above if total - budget < Fraction(d, _SCALES[0]))
    scale: int
    for scale in _SCALES:
        weights = [math.floor(scale * loss) for loss in losses]
        near = [(b, c) for b, c in near if sum(weights[i] for i in c) <= math.floor(scale * b)]
        if not near:
            return scale
    return whole if whole <= _LARGEST_SCALE else None


# From overlap counts to GPU lists: with a cap of 2 the counts are all that matters.


def placed(
    instance: GpuSharingInstance,
    start: Sequence[int],
    end: Sequence[int],
    overlap: Mapping[tuple[int, int], int],
    steps: Sequence[int],
) -> Solution:
    """A solution with GPU lists that realise the overlap counts.

    At a start, job j takes o_jk GPUs that only k holds, for every running k, and free GPUs for the rest. If
    sum_k o_jk <= G_j and sum G - sum o <= N hold over the running jobs of every slot, these exist whatever
    was chosen before: the running jobs' counts fix how many GPUs are free, held by one job, or by each pair.

    Parameters
    ----------
    start, end : first and last slot of each job, by position
    overlap : o_jk for j < k, GPUs that the two share while both run; a pair that is not there shares none
    steps : accumulation steps of each job

    Returns
    -------
    Solution
        The bare solution.

    Raises
    ------
    ValueError
        The counts break one of the two conditions.
    """
    names = [(server.id, index) for server in instance.servers for index in range(server.gpus)]
    holders: list[list[int]] = [[] for _ in names]
    held: dict[int, list[int]] = {}
    result: dict[int, list[int]] = {}
    for j in sorted(range(len(start)), key=lambda j: (start[j], j)):
        for k in [k for k in held if end[k] < start[j]]:
            for gpu in held.pop(k):
                holders[gpu].remove(k)
        mine: list[int] = []
        for k in sorted(held):
            need = overlap.get((min(j, k), max(j, k)), 0)
            mine += _take([gpu for gpu in held[k] if holders[gpu] == [k]], need, names, mine)
        free = [gpu for gpu, here in enumerate(holders) if not here]
        mine += _take(free, instance.jobs[j].gpus - len(mine), names, mine)
        if len(mine) != instance.jobs[j].gpus:
            raise ValueError(f"job {instance.jobs[j].id}: the overlap counts leave no {instance.jobs[j].gpus} GPUs")
        held[j] = mine
        for gpu in mine:
            holders[gpu].append(j)
        result[j] = sorted(mine)
    jobs = instance.jobs
    return {
        "start": {job.id: int(start[j]) for j, job in enumerate(jobs)},
        "gpus": {job.id: [[names[gpu][0], names[gpu][1]] for gpu in result[j]] for j, job in enumerate(jobs)},
        "accumulation": {job.id: int(steps[j]) for j, job in enumerate(jobs)},
    }


def _take(found: list[int], need: int, names: Sequence[tuple[str, int]], mine: Sequence[int]) -> list[int]:
    """`need` of the GPUs found, on few servers: those of servers already used first, then the fullest supply."""
    used = {names[gpu][0] for gpu in mine}
    supply: dict[str, int] = {}
    for gpu in found:
        supply[names[gpu][0]] = supply.get(names[gpu][0], 0) + 1
    found = sorted(found, key=lambda gpu: (names[gpu][0] not in used, -supply[names[gpu][0]], gpu))
    return found[: max(0, need)]
