"""Certified lower bounds on the makespan of rar-ddls, at any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import NEVER, Integers, RateTable, rate_table

_LARGEST_FACTOR = 100
"""The number of functions that are tried: each is dual feasible by itself, so fewer are safe."""
_MOST_MOMENTS = 4_000
_MOST_PRODUCTS = 3 * 10**7


def is_infeasible(instance: RarDdlsInstance) -> str | None:
    """Why no schedule can exist, where that is seen at a glance; None says nothing.

    Returns one line with the numbers: a job larger than the cluster, a job that makes no iteration even alone, or a
    lower bound beyond the horizon.
    """
    duration = rate_table(instance).best_duration
    for job, slots in zip(instance.jobs, duration.tolist(), strict=True):
        if job.gpus > instance.total_gpus:
            return f"job {job.id}: needs {job.gpus} GPUs, the cluster has {instance.total_gpus}"
        if slots >= NEVER:
            return f"job {job.id}: makes no iteration in a slot, even alone"
    least = _makespan_bound(instance)
    if least > instance.horizon:
        return f"no schedule ends before slot {least}, the horizon is {instance.horizon}"
    return None


@once_per_instance
def lower_bound(instance: RarDdlsInstance) -> float | None:
    """A lower bound on the makespan that holds for every schedule.

    With d_j the best contention-free duration of job j, G_j its GPUs and N those of the cluster, the largest of

    - max_j d_j;
    - area: ceil(sum_j f(G_j) d_j / f(N)) for dual feasible functions f, which count gangs that cannot run beside
      each other (Fekete and Schepers 2001; f(G) = G is the plain area);
    - middle: the least H with sum_j f(G_j) max(0, min(d_j - a, H - 2a)) <= f(N) (H - 2a) for all a < H/2: a job
      that ends by H runs at least so long within slots a+1 .. H-a, wherever it is put (Baptiste, Le Pape and
      Nuijten 1999, energetic reasoning, for the window that is best here);
    - room: for a gang size g and lambda >= 0, ceil(sum_j min((G_j + lambda [G_j >= g]) d_j, G_j e_j) /
      (N + lambda sum_s floor(O_s / g))) with d_j on one server and e_j the best duration across servers: a server
      holds at most floor(O_s / g) such gangs whole, and those that cross take longer.

    Returns slots; None where a job can never complete (the instance is infeasible, no number bounds its makespan).

    Notes
    -----
    Floating point only chooses f, a, g and lambda; the bound itself is computed in whole numbers. O(J log J) for
    each of a bounded number of choices: 10,000 jobs take a tenth of a second.
    """
    if int(rate_table(instance).best_duration.max()) >= NEVER:
        return None
    return float(_makespan_bound(instance))


def _makespan_bound(instance: RarDdlsInstance) -> int:
    table = rate_table(instance)
    load = _Load.of(table)
    families = list(_families(load.gangs, instance.total_gpus))
    best = max(int(table.best_duration.max()), *(f.area(load) for f in families))
    best = max(best, _room(instance, table))
    return _middle(load, families, best)


@dataclass(frozen=True)
class _Load:
    """Jobs grouped by gang size and duration."""

    gangs: list[int]  # distinct gang sizes
    # kind, slots, count: per group, position of its gang size, duration, number of jobs
    kind: Integers
    slots: Integers
    count: Integers
    work: list[int]  # per gang size, sum of durations

    @classmethod
    def of(cls, table: RateTable) -> _Load:
        sizes, kind = np.unique(table.gpus, return_inverse=True)
        groups, count = np.unique(np.stack([kind, table.best_duration]), axis=1, return_counts=True)
        work = [0] * sizes.size  # Python integers: sums cannot overflow
        for k, slots, many in zip(groups[0].tolist(), groups[1].tolist(), count.tolist(), strict=True):
            work[k] += slots * many
        return cls(sizes.tolist(), groups[0], groups[1], count.astype(np.int64), work)


@dataclass(frozen=True)
class _Family:
    """A dual feasible function, scaled to whole numbers: jobs that run at once weigh at most `capacity`."""

    weights: tuple[int, ...]
    capacity: int

    def area(self, load: _Load) -> int:
        return -(-sum(f * w for f, w in zip(self.weights, load.work, strict=True)) // self.capacity)

    def overfilled(self, load: _Load, before: int, makespan: int) -> bool:
        """Whether what must run in slots before+1 .. makespan-before does not fit there."""
        length = makespan - 2 * before
        total = 0
        for k, slots, many in zip(load.kind.tolist(), load.slots.tolist(), load.count.tolist(), strict=True):
            total += self.weights[k] * many * max(0, min(slots - before, length))
        return length > 0 and total > self.capacity * length


def _families(gangs: Sequence[int], total: int) -> dict[_Family, None]:
    found: dict[_Family, None] = {_Family(tuple(gangs), total): None}
    for low in gangs:
        # f = 1 above 1 - eps, 0 below eps, x between, for eps = low / N <= 1/2
        if 2 * low > total:
            break
        weights = (total if g > total - low else (g if g >= low else 0) for g in gangs)
        found[_Family(tuple(weights), total)] = None
    for k in range(1, min(total, _LARGEST_FACTOR) + 1):
        # u_k(x) = x where (k + 1) x is whole, floor((k + 1) x) / k elsewhere; scaled by N k
        weights = (g * k if (k + 1) * g % total == 0 else ((k + 1) * g // total) * total for g in gangs)
        found[_Family(tuple(weights), total * k)] = None
    return found


def _middle(load: _Load, families: Sequence[_Family], best: int) -> int:
    """Raise `best` by what must run in the middle of any schedule."""
    weights = np.array([[w / f.capacity for w in f.weights] for f in families])
    step = max(1, best // 64)
    low, high = best, best
    while True:  # widen until a makespan is not refuted, then bisect; what is refuted stays refuted
        refuted = _refute(load, families, weights, high)
        if not refuted:
            break
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        if _refute(load, families, weights, middle):
            low = middle + 1
        else:
            high = middle
    return low


def _refute(load: _Load, families: Sequence[_Family], weights: npt.NDArray[np.float64], makespan: int) -> bool:
    """Whether the middle of a schedule of this makespan would have to hold too much."""
    moments = np.unique(np.concatenate([load.slots, makespan - load.slots]))
    moments = moments[(moments > 0) & (2 * moments < makespan)]
    most = min(_MOST_MOMENTS, max(16, _MOST_PRODUCTS // max(1, weights.size)))
    if moments.size > most:
        moments = moments[np.linspace(0, moments.size - 1, most).astype(np.int64)]
    if moments.size == 0:
        return False
    held = np.stack([_beyond(load, k, moments) - _beyond(load, k, makespan - moments) for k in range(len(load.gangs))])
    excess = (weights @ held) / (makespan - 2 * moments).astype(np.float64)
    family, moment = np.unravel_index(int(excess.argmax()), excess.shape)
    if excess[family, moment] <= 1.0 - 1e-9:
        return False
    return families[int(family)].overfilled(load, int(moments[moment]), makespan)


def _beyond(load: _Load, kind: int, moments: Integers) -> npt.NDArray[np.float64]:
    """sum over jobs of one gang size of max(0, d_j - moment)."""
    mine = load.kind == kind
    slots = load.slots[mine].astype(np.float64)  # increasing, as np.unique leaves them
    count = load.count[mine].astype(np.float64)
    many = np.concatenate([np.cumsum(count[::-1])[::-1], [0.0]])
    total = np.concatenate([np.cumsum((count * slots)[::-1])[::-1], [0.0]])
    at = np.searchsorted(slots, moments, side="right")
    result: npt.NDArray[np.float64] = total[at] - many[at] * moments
    return result


def _room(instance: RarDdlsInstance, table: RateTable) -> int:
    """The bound by how many large gangs the servers hold whole."""
    sizes = np.sort(np.array([server.gpus for server in instance.servers], dtype=np.int64))[::-1]
    across = _across(table, sizes)
    fits = table.gpus <= sizes[0]
    gpus, alone = table.gpus, table.best_duration
    best = 0
    for g in np.unique(gpus[fits & (gpus >= 2)]).tolist():
        large = fits & (gpus >= g)
        whole = int((sizes // g).sum())
        # beyond this lambda the job is cheaper across servers
        turn = gpus[large].astype(np.float64) * (across[large] - alone[large]) / alone[large]
        order = np.argsort(turn, kind="stable")
        turn = turn[order]
        local = alone[large].astype(np.float64)[order]
        base = float((gpus.astype(np.float64) * alone).sum())
        # at lambda = turn[i]: jobs after i add lambda * d, jobs up to i add what they lose across servers
        lost = np.cumsum(turn * local)
        still = local.sum() - np.cumsum(local)
        with np.errstate(over="ignore", invalid="ignore"):
            value = (base + lost + turn * still) / (instance.total_gpus + turn * whole)
        pick = int(order[int(np.nanargmax(value))])
        j = int(np.flatnonzero(large)[pick])
        best = max(best, _room_exactly(instance, table, across, large, whole, j))
    return best


def _room_exactly(
    instance: RarDdlsInstance, table: RateTable, across: Integers, large: npt.NDArray[np.bool_], whole: int, turn: int
) -> int:
    """The bound for lambda = p / q, where job `turn` is as cheap across servers as on one."""
    p = int(table.gpus[turn]) * int(across[turn] - table.best_duration[turn])
    q = int(table.best_duration[turn])
    total = 0
    rows = zip(table.gpus.tolist(), table.best_duration.tolist(), across.tolist(), large.tolist(), strict=True)
    for gpus, alone, wide, counts in rows:
        total += min((q * gpus + p) * alone, q * gpus * wide) if counts else q * gpus * alone
    return -(-total // (q * instance.total_gpus + p * whole))


def _across(table: RateTable, sizes: Integers) -> Integers:
    """Best durations across servers (at least two), or ``NEVER`` where that makes no progress."""
    jobs = np.arange(table.gpus.size)
    rate = table.rates(jobs, np.maximum(2, table.fewest_servers), 1)
    slots = np.where(rate > 0, -(-table.iterations // np.maximum(rate, 1)), NEVER)
    result: Integers = np.maximum(slots, table.best_duration).astype(np.int64)
    return result if sizes.size > 1 else np.full(table.gpus.size, NEVER, dtype=np.int64)
