"""A training job's profile, how long an iteration of a ring takes, and its utility, what accumulated work is worth."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.ddljs.instance import DdljsInstance, Job

# A training job's profile: how long an iteration of a ring takes, eq. (1) of paper 004, and what zeta follows.


@dataclass(frozen=True)
class Profile:
    """What eq. (1) knows of a job; any units of data and time that agree with each other.

    Attributes
    ----------
    gradients : d, the size of the gradients
    bandwidth : b between neighbouring workers, data per time
    reduce_speed : G of a worker, data per time
    forward_time : t^f of one sample
    batch : M, samples in a mini-batch of a worker
    backward_time : t^b of a mini-batch
    overhead : gamma, extra latency of an iteration

    Raises
    ------
    InputError
        A speed that is not positive, or anything else below 0.
    """

    gradients: float
    bandwidth: float
    reduce_speed: float
    forward_time: float
    batch: int
    backward_time: float
    overhead: float = 0.0

    def __post_init__(self) -> None:
        for name in ("bandwidth", "reduce_speed"):
            if not getattr(self, name) > 0:
                raise InputError(f"profile: {name}: must be greater than 0, got {getattr(self, name)!r}")
        for name in ("gradients", "forward_time", "batch", "backward_time", "overhead"):
            if not getattr(self, name) >= 0:
                raise InputError(f"profile: {name}: must be at least 0, got {getattr(self, name)!r}")

    def iteration_time(self, workers: int | None = None) -> float:
        """tau, eq. (1): ``d (w - 1)/w (2/b + 1/G) + t^f M + t^b + gamma``.

        Parameters
        ----------
        workers : w >= 1; None is the limit for many workers, which no ring exceeds
        """
        if workers is not None and workers < 1:
            raise InputError(f"profile: workers: must be at least 1, got {workers}")
        share = 1.0 if workers is None else (workers - 1) / workers
        ring = self.gradients * share * (2.0 / self.bandwidth + 1.0 / self.reduce_speed)
        return ring + self.forward_time * self.batch + self.backward_time + self.overhead

    def efficiency(self, slot_length: float, workers: int | None = None) -> float:
        """zeta, iterations of a worker in a slot: ``slot_length / tau`` (section IV-3, example 1).

        Problem DDLJS has one zeta for all ring sizes, tau depends on them: without `workers` it is the smallest zeta
        of any ring.

        Raises
        ------
        InputError
            An iteration that takes no time, or a slot that is not longer than nothing.
        """
        time = self.iteration_time(workers)
        if not time > 0:
            raise InputError(f"profile: an iteration takes no time, got {time!r}")
        if not slot_length > 0:
            raise InputError(f"profile: slot_length: must be greater than 0, got {slot_length!r}")
        return slot_length / time


# Utilities of ddljs in floating point, stable where plain formulas overflow or cancel.
#
# The checker computes its own in decimals of 60 digits; a test compares the two.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAR = 300.0 * (1 + 1e-12)
"""A sigmoid is worth 0 where its exponent is below minus this, all its scale where it is above, as the checker has it;
what is added is more than the rounding of the exponent, so that nothing is cut off that the checker counts."""
SPLIT = 2.0**27 + 1
LONGEST = 4096
"""Numbers of worker-slots that :func:`steepest` looks at; beyond, evenly spread ones."""


def logistic(z: ArrayLike) -> Floats:
    """1 / (1 + exp(-z)) for any z, without overflow and with full relative accuracy where it is small."""
    at = np.asarray(z, dtype=float)
    small = np.exp(-np.abs(at))
    found: Floats = np.where(at >= 0, 1.0, small) / (1.0 + small)
    return found


def utility(job: Job, slots: ArrayLike) -> Floats:
    """mu_i after so many worker-slots.

    Parameters
    ----------
    slots : worker-slots, >= 0, of any shape

    Returns
    -------
    Array of the same shape; relative error about 1e-15, for a sigmoid about 1e-16 times its exponent.
    """
    shape = job.utility
    x = job.efficiency * np.asarray(slots, dtype=float)
    if shape.kind == "linear":
        return shape.scale * x
    if shape.kind == "sqrt":
        return shape.scale * np.sqrt(x)
    if shape.kind == "log1p":
        return shape.scale * np.log1p(x)
    if shape.kind == "log":
        return shape.scale * _ln(*_counted(job, slots))
    if shape.kind == "energy":
        return -shape.scale * x * x
    assert shape.steepness is not None and shape.midpoint is not None
    exponent = shape.steepness * (x - shape.midpoint)
    return shape.scale * np.where(np.abs(exponent) > FAR, exponent > 0, logistic(exponent))


def _counted(job: Job, slots: ArrayLike) -> tuple[Floats, Floats]:
    """max(x, least) of ``log``, rounded, and what rounding left out, of the numbers as they are written.

    Beside 1 the last bit of the work decides what ln is worth. The product is Dekker's: parts of 26 bits, exactly.
    """
    n = np.asarray(slots, dtype=float)
    work = job.efficiency * n
    whole = SPLIT * job.efficiency
    high = whole - (whole - job.efficiency)
    rest = (high * n - work) + (job.efficiency - high) * n + _unwritten(job.efficiency) * n
    least = job.utility.least or 0.0
    below = (work - least) + (rest - _unwritten(least)) < 0
    return np.where(below, least, work), np.where(below, _unwritten(least), rest)


def _unwritten(value: float) -> float:
    """What the decimal number that is written has more than the binary one that stands for it."""
    return float(exact(value) - Fraction(value))


def _ln(value: Floats, rest: Floats) -> Floats:
    """ln(value + rest): from the distance to 1 where that is small."""
    near = np.abs(value - 1.0) < 0.5
    return np.where(near, np.log1p(np.where(near, (value - 1.0) + rest, 0.0)), np.log(value))


def gain(job: Job, done: ArrayLike, more: ArrayLike) -> Floats:
    """mu_i(done + more) - mu_i(done) without cancellation: negative only for ``energy``.

    Non-increasing in `done` where mu_i is concave.

    Parameters
    ----------
    done, more : worker-slots, >= 0; broadcast against each other

    Notes
    -----
    For a sigmoid, s(b) - s(a) = s(b) s(-a) (1 - exp(a - b)); nothing is cut off, algorithms order by gains of any size.
    """
    shape = job.utility
    x = job.efficiency * np.asarray(done, dtype=float)
    d = job.efficiency * np.asarray(more, dtype=float)
    if shape.kind == "linear":
        return shape.scale * d + 0.0 * x
    if shape.kind == "sqrt":
        total = np.sqrt(x + d) + np.sqrt(x)
        return shape.scale * d / np.where(total > 0, total, 1.0)
    if shape.kind == "log1p":
        return shape.scale * np.log1p(d / (1.0 + x))
    if shape.kind == "log":
        before, left_out = _counted(job, done)
        after, left_out_after = _counted(job, np.asarray(done, dtype=float) + np.asarray(more, dtype=float))
        return shape.scale * np.log1p(((after - before) + (left_out_after - left_out)) / before)
    if shape.kind == "energy":
        return -shape.scale * d * (2.0 * x + d)
    assert shape.steepness is not None and shape.midpoint is not None
    before = shape.steepness * (x - shape.midpoint)
    step = shape.steepness * d
    return shape.scale * logistic(before + step) * logistic(-before) * -np.expm1(-step)


def highest(job: Job, most: int) -> float:
    """The largest mu_i after up to `most` worker-slots; every kind rises, or falls, all the way."""
    return float(utility(job, [0, most]).max())


def size(job: Job, most: int) -> float:
    """The largest absolute value of mu_i after up to `most` worker-slots."""
    return float(np.abs(utility(job, [0, most])).max())


def steepest(job: Job, done: int, most: int) -> tuple[float, int]:
    """The best average gain per worker-slot from here on: max over 1 <= k <= most of gain(done, k) / k.

    Returns the slope of the concave envelope of mu_i at `done`, and the smallest k that has it; (0, 0) where `most` is
    0.
    """
    if most <= 0:
        return 0.0, 0
    if job.concave:
        return float(gain(job, done, 1)), 1
    k = np.unique(np.rint(np.linspace(1, most, min(most, LONGEST)))) if most > LONGEST else np.arange(1, most + 1)
    slope = gain(job, done, k) / k
    best = int(np.argmax(slope))
    return float(slope[best]), int(k[best])


def steepest_up_to(job: Job, done: int, most: int) -> tuple[Floats, Ints]:
    """:func:`steepest` for every limit from 1 to `most`, at most :data:`LONGEST`: slopes and sizes, in one pass."""
    k = np.arange(1, most + 1)
    slope = gain(job, done, k) / k
    best = np.maximum.accumulate(slope)
    fresh = np.concatenate([[True], slope[1:] > best[:-1]])
    return best, np.maximum.accumulate(np.where(fresh, k, 0))


# Where the rings of a job can live in the network, before anything else is placed.


@dataclass(frozen=True)
class Region:
    """A largest set of nodes that can all reach each other over links wide enough for one ring edge."""

    nodes: tuple[int, ...]  # positions of its nodes, switches included
    hosts: tuple[int, ...]  # those that host a worker
    links: tuple[int, ...]  # positions of the links between its nodes that are wide enough


@dataclass(frozen=True)
class Reach:
    """Where one job can run."""

    regions: tuple[Region, ...]  # those with a host; a ring lies in one of them
    ring: int  # the largest ring, alone in the network as far as servers are concerned
    max_work: int  # worker-slots over the horizon, by ring size, arrival and budget


@once_per_instance
def reaches(instance: DdljsInstance) -> tuple[Reach, ...]:
    """The reach of every job, computed once per instance object; O((V + E) J)."""
    parts: dict[tuple[tuple[int, ...], float], tuple[Region, ...]] = {}
    rows = []
    for job, caps in zip(instance.jobs, instance.caps, strict=True):
        key = (caps, job.bandwidth)
        if key not in parts:
            parts[key] = _regions(instance, caps, job.bandwidth)
        regions = parts[key]
        ring = min(job.max_workers, max((sum(caps[u] for u in region.hosts) for region in regions), default=0))
        most = ring * (instance.horizon - job.arrival + 1)
        rows.append(Reach(regions, ring, most if job.slot_limit is None else min(most, job.slot_limit)))
    return tuple(rows)


def _regions(instance: DdljsInstance, caps: tuple[int, ...], bandwidth: float) -> tuple[Region, ...]:
    where = instance.server_index
    links = [
        (position, where[link.source], where[link.target])
        for position, link in enumerate(instance.links)
        if _wide(link.bandwidth, bandwidth)
    ]
    n = len(instance.servers)
    ends = np.array([(u, v) for _, u, v in links], dtype=np.int64).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    _, label = connected_components(graph, directed=True, connection="strong")
    found = []
    for part in dict.fromkeys(label.tolist()):
        nodes = tuple(np.flatnonzero(label == part).tolist())
        hosts = tuple(u for u in nodes if caps[u])
        if hosts:
            inside = tuple(p for p, u, v in links if label[u] == part == label[v]) if len(hosts) > 1 else ()
            found.append(Region(nodes, hosts, inside))
    return tuple(found)


def _wide(capacity: float, bandwidth: float) -> bool:
    """Whether a link holds one ring edge, tolerance 1e-9."""
    if capacity >= bandwidth:
        return True
    return capacity > 0.999 * bandwidth and exact(bandwidth) <= exact(capacity) * (1 + CHECK_TOLERANCE)


# Utilities as exact tables over whole worker-slots, cut into concave runs.

DIGITS = 13
"""Marginal utilities are rounded up to this many digits of the largest possible total."""


@dataclass(frozen=True)
class Piece:
    """`length` worker-slots that each add `slope`."""

    length: int
    slope: float


@dataclass(frozen=True)
class Table:
    """mu_i over 0..B worker-slots: ``start`` plus pieces, in runs within which slopes fall.

    Between two runs the slope rises, so the later one counts only when the earlier one is full. One run: concave.
    """

    start: float
    runs: tuple[tuple[Piece, ...], ...]


def resolution(instance: DdljsInstance) -> float:
    """A power of ten: 1e-13 of the largest sum of utilities, in absolute values, rounded to the next power above."""
    total = sum(size(job, reach.max_work) for job, reach in zip(instance.jobs, reaches(instance), strict=True))
    return 10.0 ** (math.ceil(math.log10(total)) - DIGITS) if total > 0 else 1.0


def table(job: Job, most: int, unit: float) -> Table:
    """The table of a job.

    Parameters
    ----------
    most : B, worker-slots
    unit : every marginal utility is rounded up to a multiple of it, so that a table is never below mu_i, and above
        by less than B units; rounding keeps concave tables concave
    """
    start = float(utility(job, 0))
    if most == 0 or not size(job, most):
        return Table(start, ())
    if job.utility.kind == "linear":
        return Table(start, ((Piece(most, job.utility.scale * job.efficiency),),))
    steps = np.ceil(gain(job, np.arange(most), 1) / unit * (1 - 1e-15))
    if job.concave:  # whatever rounding does to equal ones
        steps = np.maximum.accumulate(steps[::-1])[::-1]
    cuts = np.flatnonzero(np.diff(steps)) + 1
    firsts, lasts = np.concatenate([[0], cuts]), np.concatenate([cuts, [most]])
    runs: list[list[Piece]] = []
    previous = math.inf
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        if not runs or steps[first] > previous:
            runs.append([])
        previous = float(steps[first])
        runs[-1].append(Piece(last - first, float(f"{previous * unit:.15g}")))
    return Table(start, tuple(tuple(run) for run in runs))


# Rings and closed walks: a ring's links as counts, and back.
#
# A ring is a closed walk through its hosts. With all workers of a server at the walk's first visit to it, a ring is
# known by its workers per server and by how often it uses each link: any connected circulation through the hosts is
# a closed walk again (Euler), and cutting cycles out of its routes only frees links (docs/proofs-ddljs.md).

Arc = tuple[int, int]


def ring_of(workers: Mapping[int, int], uses: Mapping[Arc, int]) -> tuple[list[int], list[list[int]]]:
    """A ring with these workers per server, on these links or fewer.

    Returns host of every worker, and the node path of every ring edge (none for a single worker). Raises ValueError:
    the links do not join all hosts.

    Parameters
    ----------
    workers : workers by node, at least one in all
    uses : how often each arc is used; in = out at every node, and every host is joined to the others by them
    """
    hosts = [u for u, count in workers.items() if count > 0]
    size = sum(workers[u] for u in hosts)
    tour = _tour(hosts[0], uses)
    order = [u for u in dict.fromkeys(tour) if workers.get(u, 0) > 0]
    if len(order) != len(hosts):
        raise ValueError("the links of a ring do not join all of its hosts")
    placed = [u for u in order for _ in range(workers[u])]
    if size == 1:
        return placed, []
    stops = [tour.index(u) for u in order] + [len(tour) - 1]
    between = [_simple(tour[a : b + 1]) for a, b in itertools.pairwise(stops)] if len(order) > 1 else []
    routes: list[list[int]] = []
    for number, host in enumerate(order):
        routes.extend([host] for _ in range(workers[host] - 1))
        routes.append(between[number] if between else [host])
    return placed, routes


def uses_of(routes: Sequence[Sequence[int]]) -> Counter[Arc]:
    """How often a ring uses each arc."""
    return Counter(arc for route in routes for arc in itertools.pairwise(route))


def contiguous(workers: Sequence[int], routes: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The same workers and no more links, with all workers of a server next to each other."""
    return ring_of(Counter(workers), uses_of(routes))


def _tour(start: int, uses: Mapping[Arc, int]) -> list[int]:
    """Hierholzer's closed walk from `start` over every arc of its part; arcs in order, so it is repeatable."""
    out: dict[int, list[int]] = {}
    for (u, v), count in sorted(uses.items(), reverse=True):
        out.setdefault(u, []).extend([v] * count)
    stack, tour = [start], []
    while stack:
        if out.get(stack[-1]):
            stack.append(out[stack[-1]].pop())
        else:
            tour.append(stack.pop())
    return tour[::-1]


def _simple(path: Sequence[int]) -> list[int]:
    """The walk without its cycles."""
    found: list[int] = []
    for node in path:
        if node in found:
            del found[found.index(node) + 1 :]
        else:
            found.append(node)
    return found
