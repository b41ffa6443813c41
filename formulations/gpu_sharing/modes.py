"""What the exact models choose from: per job accumulation steps, starts, durations and losses in integers.

A job that runs d slots makes up for its work W exactly if its losses, 1 - 1/x in a slot at slowdown x, sum
to at most d - W. The models count losses in whole numbers: a weight for every slowdown, about K (1 - 1/x),
and what a run of d slots may come to. No real schedule is excluded, so the models' bounds hold for every K;
with the numbers chosen here (see ``loss_integers``) no other is admitted either, or only within 1e-7 of a
slot for every slot.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schedgap.formulations.common.numbers import Multisets, exact, rounded_both_ways
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, exact_work, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

_SCALES = tuple(10**power for power in range(10))


LARGE_SCALE = 10**7


_LARGEST_SCALE = 10**12


@dataclass(frozen=True)
class Mode:
    """A job with a fixed number of accumulation steps."""

    steps: int  # s
    work: Fraction  # W in solo slots
    shortest: int  # slots alone, ceil(W)
    longest: int  # slots beside its worst partner all the time


@dataclass(frozen=True)
class Losses:
    """Losses of one job in whole numbers."""

    scale: int  # K
    weights: tuple[int, ...]  # weights of a slot at each level, ascending: K (1 - 1/x) rounded down, or up
    # by work and slots, what a run may come to: the most of all real runs; where it has none, floor(K (d - W))
    limits: Mapping[tuple[Fraction, int], int]
    exact: bool  # they admit exactly the real runs


@dataclass(frozen=True)
class JobModes:
    """The choices of one job."""

    modes: tuple[Mode, ...]  # modes by accumulation steps, ascending; only those a schedule may need
    levels: tuple[float, ...]  # the distinct slowdowns above 1 that its partners cause, ascending
    integers: Losses  # its losses

    @property
    def exact(self) -> bool:
        """Whether the integers admit exactly the real schedules."""
        return self.integers.exact

    def loss(self, slowdown: float) -> int:
        """What a slot at slowdown x loses."""
        return self.integers.weights[self.levels.index(slowdown)]

    def budget(self, mode: Mode, slots: int) -> int:
        """What a run of d slots may lose."""
        limit = self.integers.limits.get((mode.work, slots))
        return math.floor(self.integers.scale * (slots - mode.work)) if limit is None else limit


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
    scale : K of the jobs whose losses are not exact with the chosen one

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
    found = loss_integers(modes, levels, room)
    return JobModes(tuple(modes), levels, found if found.exact or scale is None else rounded_down(levels, scale))


def rounded_down(levels: Sequence[float], scale: int, *, whole: bool = False) -> Losses:
    """All losses rounded down; with `whole` there is nothing to round."""
    weights = tuple(math.floor(scale * (1 - 1 / exact(x))) for x in levels)
    return Losses(scale, weights, {}, whole or not levels)


def loss_integers(modes: Sequence[Mode], levels: Sequence[float], room: int) -> Losses:
    """Losses in the smallest whole numbers that admit exactly the real runs, where some are found.

    Every multiset of at most d slowed slots is compared with what each run may lose, in rationals, unless
    there are too many. Losses are tried in units of 1/K for the powers of ten up to 10^9, each rounded down
    or up: every multiset that a run can afford has to weigh less than all that it cannot, however near the
    two are. Else K is the common denominator of the losses, which are whole numbers with it; beyond 10^12 it
    is 10^7, and near ties are admitted.
    """
    if not levels:
        return rounded_down(levels, 1)
    losses = [1 - 1 / exact(x) for x in levels]
    whole = math.lcm(*(loss.denominator for loss in losses))
    most = min(room, max((mode.longest for mode in modes), default=0))
    runs = {(m.work, d): d - m.work for m in modes for d in range(m.shortest, min(m.longest, room) + 1)}
    multisets = Multisets.of(losses, most)
    for scale in () if multisets is None else _SCALES:
        for weights in rounded_both_ways(losses, scale):
            assert multisets is not None
            found = multisets.heaviest([(d, budget) for (_, d), budget in runs.items()], weights)
            if found is not None:
                return Losses(scale, weights, dict(zip(runs, found, strict=True)), True)
    return rounded_down(levels, whole, whole=True) if whole <= _LARGEST_SCALE else rounded_down(levels, LARGE_SCALE)
