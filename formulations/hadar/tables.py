"""What the exact methods and the algorithms need of an instance, as arrays: progress in whole units, utilities.

The progress of a slot is W L min{X^r : r used}. A *level* of a job is one of its distinct rates: running at level
l means to hold only types at least that fast, and to count W L X_l for the slot. Progress is kept in whole units:
``step[l]`` units a slot, ``target`` units finish the job, such that a multiset of slots reaches the target exactly
when the checker accepts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, Multisets, exact, rounded_both_ways, unit_of
from schedgap.formulations.hadar.instance import HadarInstance, Job

FINEST = 1 << 60
"""Largest target: sums of two capped numbers stay within int64."""


@dataclass(frozen=True)
class Worth:
    """U_j in closed form: what a job is worth that finishes in slot f, n = f - arrival + 1 slots after it came."""

    kind: int  # 0 ``scale / (n slot)``, 1 ``max(0, scale (1 - n slot / deadline))``, 2 ``scale``
    scale: float  # weight, times the iterations for kind 0
    slot: float  # length of a slot
    # whole, part: the deadline in slots, whole ones and the rest: their difference to n does not cancel
    whole: float
    part: float
    limit: float  # the deadline in slots
    # arrival, earliest, horizon: slots; the worth is 0 before `earliest` and after `horizon`
    arrival: int
    earliest: int
    horizon: int

    def at(self, finish: int) -> float:
        """U_j of finishing in a slot, the same float as in the array."""
        return self.of(finish) if self.earliest <= finish <= self.horizon else 0.0

    def of(self, finish: int) -> float:
        """The closed form, whether the job can finish in that slot or not."""
        slots = max(finish - self.arrival + 1, 1)
        if self.kind == 0:
            return self.scale / (slots * self.slot)
        if self.kind == 2:
            return self.scale
        return 0.0 if slots > self.whole else self.scale * ((self.whole - slots) + self.part) / self.limit

    def array(self) -> Floats:
        """(T + 1,) U_j by finish slot; 8 bytes a slot."""
        slots = np.maximum(np.arange(self.horizon + 1) - self.arrival + 1, 1)
        if self.kind == 0:
            worth = self.scale / (slots * self.slot)
        elif self.kind == 1:
            worth = self.scale * ((self.whole - slots) + self.part) / self.limit
            worth[slots > self.whole] = 0.0
        else:
            worth = np.full(self.horizon + 1, self.scale)
        worth[: self.earliest] = 0.0
        return worth

    def row(self) -> Floats:
        """(9,) the attributes, for compiled code."""
        return np.array(astuple(self), dtype=np.float64)


@dataclass(frozen=True)
class JobTable:
    """One job as arrays; L levels, fastest first, only those that the cluster has W devices for."""

    # workers, arrival: W_j and a_j
    workers: int
    arrival: int
    rate: Floats  # (L,) iterations per unit of time and worker
    allowed: NDArray[np.bool_]  # (L, R) which types a level may use
    step: Ints  # (L,) units of progress in a slot
    target: int  # units that finish the job
    min_slots: int  # slots needed at the fastest level; horizon + 1 where the job has no level at all
    worth: Worth  # U_j of finishing in slot f; 0 before ``arrival + min_slots - 1``
    type_step: Ints  # (R,) units in a slot whose slowest type is r, 0 where the job cannot use it

    @cached_property
    def utility(self) -> Floats:
        """(T + 1,) U_j of finishing in slot f, made when it is first asked for: T may be 10^9."""
        return self.worth.array()

    @property
    def max_utility(self) -> float:
        """The largest utility: that of the earliest finish, as utilities do not rise."""
        return self.worth.at(self.earliest)

    @property
    def earliest(self) -> int:
        """The first slot the job can finish in."""
        return self.arrival + self.min_slots - 1

    @property
    def levels(self) -> int:
        """L."""
        return len(self.step)


@dataclass(frozen=True)
class ProgressTables:
    """An instance as arrays."""

    horizon: int  # T
    types: tuple[str, ...]  # device types, R of them
    capacity: Ints  # (R,) devices of a type in the cluster
    machine_capacity: Ints  # (H, R) devices by machine
    jobs: tuple[JobTable, ...]  # one table per job

    @cached_property
    def workers(self) -> Ints:
        """(J,) W_j."""
        return np.array([job.workers for job in self.jobs], dtype=np.int64)

    @cached_property
    def type_steps(self) -> Ints:
        """(J, R) the ``type_step`` of all jobs."""
        return np.array([job.type_step for job in self.jobs], dtype=np.int64)

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """(J,) whether a job can finish by the horizon when it is alone."""
        return np.array([job.earliest <= self.horizon for job in self.jobs])


@once_per_instance
def tables(instance: HadarInstance) -> ProgressTables:
    """The tables of `instance`, computed once per instance object.

    Complexity: O(J R (log R + log of the numbers)), whatever the horizon.
    """
    return _build(instance)


def in_units(instance: HadarInstance, ordinary: tuple[float, float]) -> tuple[HadarInstance, float]:
    """The instance with its weights divided by a power of two, and that unit.

    Returns the instance itself and 1 where it is there, or no job is worth anything.

    Parameters
    ----------
    ordinary : where the largest utility that a job can have alone may be, see :func:`unit_of`
    """
    unit = unit_of(max(job.max_utility for job in tables(instance).jobs), ordinary)
    if unit == 1.0:
        return instance, unit
    jobs = tuple(
        job.model_copy(update={"utility": job.utility.model_copy(update={"weight": job.utility.weight / unit})})
        for job in instance.jobs
    )
    return HadarInstance.model_construct(**{**dict(instance), "jobs": jobs}), unit


def _build(instance: HadarInstance) -> ProgressTables:
    types = instance.types
    capacity = np.array([instance.capacity[kind] for kind in types], dtype=np.int64)
    machine_capacity = np.array(
        [[machine.gpus.get(kind, 0) for kind in types] for machine in instance.machines], dtype=np.int64
    )
    slot_length = exact(instance.slot_length)
    jobs = tuple(_job_table(job, types, capacity, instance.horizon, slot_length) for job in instance.jobs)
    return ProgressTables(instance.horizon, types, capacity, machine_capacity, jobs)


def _job_table(job: Job, types: Sequence[str], capacity: Ints, horizon: int, slot_length: Fraction) -> JobTable:
    rates = [exact(job.throughput.get(kind, 0)) for kind in types]
    distinct = sorted({rate for rate in rates if rate > 0}, reverse=True)
    shares = [rate * job.workers * slot_length / job.work for rate in distinct]
    units, target = progress_units(shares, max(0, horizon - job.arrival + 1))
    unit_of = dict(zip(distinct, units, strict=True))
    fits = [
        sum(int(c) for c, other in zip(capacity, rates, strict=True) if other >= rate) >= job.workers
        for rate in distinct
    ]
    kept = [rate for rate, enough in zip(distinct, fits, strict=True) if enough]
    step = np.array([unit_of[rate] for rate in kept], dtype=np.int64)
    min_slots = -(-target // int(step[0])) if kept else horizon + 1
    min_slots = min(min_slots, horizon + 1)
    return JobTable(
        workers=job.workers,
        arrival=job.arrival,
        rate=np.array([float(rate) for rate in kept]),
        allowed=np.array([[other >= rate for other in rates] for rate in kept], dtype=bool).reshape(-1, len(types)),
        step=step,
        target=target,
        min_slots=min_slots,
        worth=worth_of(job, horizon, slot_length, job.arrival + min_slots - 1),
        type_step=np.array([unit_of[rate] if rate > 0 else 0 for rate in rates], dtype=np.int64),
    )


_LATEST = Fraction(10**30)
"""Slots of a deadline that no horizon comes near: nothing is lost by then."""


def worth_of(job: Job, horizon: int, slot_length: Fraction, earliest: int) -> Worth:
    """The utility of a job that can finish from slot `earliest` on."""
    kind, scale, limit = 2, float(job.utility.weight), Fraction(0)
    if job.utility.kind == "effective-throughput":
        kind, scale = 0, job.utility.weight * float(job.work)
    elif job.utility.deadline is not None:
        kind, limit = 1, min(_LATEST, exact(job.utility.deadline) / slot_length)
    whole = limit.__floor__()
    numbers = (float(slot_length), float(whole), float(limit - whole), float(limit) if whole else 1.0)
    return Worth(kind, scale, *numbers, job.arrival, earliest, horizon)


def progress_units(shares: Sequence[Fraction], slots: int) -> tuple[list[int], int]:
    """Whole numbers (steps, target) for slots that each do a share of a job's work.

    A multiset of slots has ``sum of steps >= target`` exactly when its shares sum to at least 1 - 1e-9,
    the checker's tolerance. Where the exact numbers exceed 2^60, steps are rounded to 2^-60 of the work,
    each down or up, so that this stays true of at most `slots` slots; all are rounded up where there are
    too many multisets to say so.

    Parameters
    ----------
    shares : progress of one slot as a fraction of the work, > 0, the largest first
    slots : largest number of slots of the job
    """
    if not shares:
        return [], 1
    whole = math.lcm(*(share.denominator for share in shares))
    steps = [int(share * whole) for share in shares]
    common = math.gcd(*steps)
    steps = [step // common for step in steps]
    # sum(steps) >= whole (1 - 1e-9) / common, and the left side is a whole number
    target = math.ceil(whole * (1 - CHECK_TOLERANCE) / common)
    if target > FINEST:
        goal = 1 - CHECK_TOLERANCE
        multisets = Multisets.of([min(share, goal) for share in shares], slots)
        if multisets is not None:
            choices = ([min(step, FINEST) for step in rounded] for rounded in rounded_both_ways(shares, FINEST))
            found = _told_apart(multisets, goal, slots, choices)
            if found is not None:
                return found
        steps = [math.ceil(Fraction(step * FINEST, target)) for step in steps]
        target = FINEST
    return [min(step, target) for step in steps], target


def _told_apart(
    multisets: Multisets, goal: Fraction, slots: int, choices: Iterable[Sequence[int]]
) -> tuple[list[int], int] | None:
    """Steps by which the multisets that reach a goal are more than all others.

    Returns the steps, and a target that just those reach; None where no choice tells them apart.

    Parameters
    ----------
    slots : no multiset has more numbers
    choices : steps of the numbers, tried in turn
    """
    # the largest sum below the goal
    short = Fraction(math.ceil(goal * multisets.unit) - 1, multisets.unit)
    for steps in choices:
        found = multisets.heaviest([(slots, short)], steps) if min(steps) > 0 else None
        if found is not None:
            least = found[0] + 1
            return [min(step, least) for step in steps], least
    return None


def small_units(step: Ints, target: int, slots: int, largest: int = 100_000) -> tuple[Ints, int]:
    """Smaller whole numbers with the same meaning, so that a model's coefficients stay small.

    ``sum of steps >= target`` keeps its truth for every multiset of at most `slots` slots: for every way to
    choose the slots at all levels but the last, the number of slots the last level still needs is unchanged. Returns
    (steps, target); the arguments themselves where no smaller ones were found.

    Parameters
    ----------
    step, target : see :class:`JobTable`
    slots : the most slots a schedule can have
    largest : the largest target that counts as small
    """
    if len(step) == 0 or target <= 12:
        return step, target
    if len(step) == 1:
        return np.ones(1, dtype=np.int64), min(-(-target // int(step[0])), slots + 1)
    combinations = _combinations(step[:-1], target, slots)
    if combinations is None:
        return step, target
    needs = _needs(combinations, step, target, slots)
    for size in _SIZES:
        if size >= min(target, largest + 1):
            break
        for rounding in (1, 0):
            smaller = np.array([(int(s) * size - rounding) // target + rounding for s in step], dtype=np.int64)
            if smaller.min() > 0 and np.array_equal(_needs(combinations, smaller, size, slots), needs):
                return smaller, size
    return _both_ways(step, target, slots) or (step, target)


def _both_ways(step: Ints, target: int, slots: int) -> tuple[Ints, int] | None:
    """The same where some levels have to be rounded down and others up; None where there are many multisets."""
    if math.comb(slots + len(step), slots) > _MULTISETS:
        return None
    multisets = Multisets.of([Fraction(int(s)) for s in step], slots)
    assert multisets is not None
    shares = [Fraction(int(s), target) for s in step]
    for size in _MIXED:
        found = _told_apart(multisets, Fraction(target), slots, rounded_both_ways(shares, size))
        if found is not None:
            return np.array(found[0], dtype=np.int64), found[1]
    return None


_MULTISETS = 2_000
_MIXED = (*range(1, 41), 10**2, 10**3, 10**4, 10**5)
_SIZES = [*range(1, 241), *(int(240 * 1.06**k) for k in range(1, 104))]


def _combinations(step: Ints, target: int, slots: int) -> Ints | None:
    """(K, L - 1) every choice of numbers of slots that no level exceeds on its own; None where too many."""
    limits = [min(slots, -(-target // int(s))) + 1 for s in step]
    if math.prod(limits) > 20_000:
        return None
    return np.stack(np.meshgrid(*[np.arange(limit) for limit in limits], indexing="ij"), axis=-1).reshape(
        -1, len(limits)
    )


def _needs(combinations: Ints, step: Ints, target: int, slots: int) -> Ints:
    done = np.zeros(len(combinations), dtype=np.int64)
    for level in range(combinations.shape[1]):
        # capped at the target, so that sums stay within int64
        done = np.minimum(done + np.minimum(combinations[:, level] * int(step[level]), target), target)
    free = np.maximum(slots - combinations.sum(axis=1), -1)
    return np.asarray(np.minimum(-(-(target - done) // int(step[-1])), free + 1))
