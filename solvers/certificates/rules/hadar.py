"""hadar: prices on devices by slot. No rows: with prices p >= 0 a schedule is worth at most

    sum over slots and types of p * devices  +  sum over jobs of the best payoff of one job,

where the payoff of a schedule of a job is its utility less what its devices cost, and 0 for a job that never finishes
(it then holds nothing; with ``all_jobs_must_finish`` there is no such choice). Best payoffs are found here by dynamic
programming over slots and progress; a schedule ends in the slot that completes its work, since holding devices longer
is worth no more. There is no locality in the problem: devices are counted by type.

A split is on ``finish[j]``, the last slot job j holds devices in (the horizon + 1: it never finishes), or on
``at[j,t,c]``, 1 where it runs in slot t at choice c: 0 not at all, c its c-th rate, fastest first. A slot runs at the
rate of its slowest device.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import within
except ImportError:  # run as a file
    from linear import within  # type: ignore[import-not-found, no-redef]

GRID = 2**40
MOST_STATES = 20_000
MOST_SLOTS, MOST_PAIRS = 1_000_000, 5_000_000
"""Slots, and jobs times slots, that blocks of prices may cover."""
MOST_STEPS, STEPS_OF_A_JOB = 40_000_000, 200_000
"""Values of progress and pieces of costs that a leaf looks at, a microsecond each; 17 million at the size of a log.

Few jobs may ask for less: their file is short, however many slots it speaks of.
"""

FEW_CHOICES = 8
"""Rates of a job that are no work to look at."""


class Work:
    """Steps that are left to a leaf: a short file may not ask for hours."""

    def __init__(self, jobs: int) -> None:
        self.most = self.left = min(MOST_STEPS, 10 * STEPS_OF_A_JOB + STEPS_OF_A_JOB * jobs)

    def spend(self, steps: int) -> None:
        """Count steps; ValueError where none are left."""
        self.left -= steps
        if self.left < 0:
            raise ValueError(f"the prices take more than {self.most} steps")


def worth(instance: Mapping[str, Any], job: Mapping[str, Any], last: int) -> Fraction:
    """The utility of a job whose last slot is this."""
    duration = (last - job["arrival"] + 1) * Fraction(instance["slot_length"])
    shape = job["utility"]
    weight = Fraction(shape["weight"])
    if shape["kind"] == "effective-throughput":
        return Fraction(weight * job["epochs"] * job["iterations_per_epoch"] / duration)
    if shape["kind"] == "linear":
        return Fraction(max(Fraction(0), weight * (1 - duration / Fraction(shape["deadline"]))))
    return weight


class Worths(dict[int, Fraction]):
    """The utility of a job by its last slot, found when it is asked for."""

    def __init__(self, instance: Mapping[str, Any], job: Mapping[str, Any]) -> None:
        super().__init__()
        self.instance, self.job = instance, job

    def __missing__(self, last: int) -> Fraction:
        self[last] = found = worth(self.instance, self.job, last)
        return found


class Job:
    """One job in whole numbers.

    Attributes
    ----------
    choices : values of each choice from 1 on: (progress of a slot, device types that are fast enough)
    goal : progress that finishes it
    """

    def __init__(self, instance: Mapping[str, Any], job: Mapping[str, Any], devices: Mapping[str, int]) -> None:
        self.arrival, self.workers = job["arrival"], job["workers"]
        self.worth = Worths(instance, job)
        rates = {kind: Fraction(rate) for kind, rate in job["throughput"].items() if rate and kind in devices}
        work = Fraction(job["epochs"] * job["iterations_per_epoch"]) * (1 - Fraction(1, 10**9))
        steps = {rate: rate * self.workers * Fraction(instance["slot_length"]) for rate in rates.values()}
        kept = []
        for rate in sorted(steps, reverse=True):
            kinds = [kind for kind in devices if rates.get(kind, 0) >= rate]
            if sum(devices[kind] for kind in kinds) >= self.workers:
                kept.append((steps[rate], kinds))
        # sums of steps are multiples of their common divisor, and no slot does more than the whole work
        below = math.lcm(*(step.denominator for step, _ in kept))
        common = math.gcd(*(int(step * below) for step, _ in kept)) or 1
        self.goal = math.ceil(work * below / common)
        self.choices = [(min(int(step * below) // common, self.goal), kinds) for step, kinds in kept]


def devices_of(instance: Mapping[str, Any]) -> dict[str, int]:
    """Devices of the whole cluster by type."""
    found: dict[str, int] = {}
    for machine in instance["machines"]:
        for kind, count in machine["gpus"].items():
            found[kind] = found.get(kind, 0) + count
    return found


def prices(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``prices``; a leaf is ``{"blocks": [[first slot, {type: price}], ...], "fractions": false}``.

    Prices hold from their first slot to the next block.
    ``"fractions": true`` relaxes payoffs, see :func:`relaxed`, but of the jobs in ``"whole"``;
    ``"worthless": true`` takes all utilities as 0: where the sum is then below 0, no schedule is in the box.

    Or ``{"edges": [...], "types": {type: [price, ...]}, "finishes": n}``, without splits: prices between edges, which
    are rising slots, and nothing beyond them; payoffs by :func:`between`.
    """
    model.sense = -1
    devices, horizon = devices_of(instance), instance["horizon"]
    jobs = [Job(instance, job, devices) for job in instance["jobs"]]
    must = bool(instance.get("all_jobs_must_finish", False))
    if len(jobs) * horizon <= 20_000:
        within(sum((horizon - job.arrival + 1) * (len(job.choices) + 1) for job in jobs))
        for j, job in enumerate(jobs):
            model.var(f"finish[{j}]", job.arrival, horizon + (not must))
            for t in range(job.arrival, horizon + 1):
                for c in range(len(job.choices) + 1):
                    model.var(f"at[{j},{t},{c}]")
        values = [v for job in jobs for t in range(job.arrival, horizon + 1) if (v := job.worth[t])]
        below = math.lcm(*(v.denominator for v in values))
        model.step = Fraction(math.gcd(*(int(v * below) for v in values)), below) if values else None

    def bound(given: Mapping[str, Any], box: Mapping[str, tuple[int, int]]) -> Fraction | None:
        """Minus the sum above, or None where a job has no schedule in the box."""
        if "edges" in given:
            if box:
                raise ValueError("prices between edges are for the whole, without splits")
            return -by_edges(jobs, devices, horizon, **given)
        if set(given) - {"blocks", "fractions", "whole", "worthless"}:
            raise ValueError("a leaf has blocks, fractions, whole and worthless")
        if len(jobs) * horizon > MOST_PAIRS:
            raise ValueError(f"blocks are for at most {MOST_PAIRS} jobs times slots")
        price = _by_slot(given["blocks"], devices, horizon)
        worthless = given.get("worthless", False)
        fractions = given.get("fractions", False)
        total = Fraction(0)
        for _, slots in itertools.groupby(price[1:], key=operator.itemgetter(1)):
            (line, _), *others = slots
            total += (1 + len(others)) * Fraction(sum(n * line[kind] for kind, n in devices.items()), GRID)
        whole = given.get("whole", [])
        if not isinstance(whole, list) or not all(type(j) is int and 0 <= j < len(jobs) for j in whole):
            raise ValueError("whole must be positions of jobs")
        touched = {int(name.partition("[")[2].rstrip("]").split(",")[0]) for name in box}
        exact, work = touched.union(whole), Work(len(jobs))
        for j, job in enumerate(jobs):
            if fractions and j not in exact:
                best = relaxed(job, price, devices, worthless, work)
            else:
                best = dearest(j, job, price, devices, box, horizon, worthless, work)
            idle = not must and box.get(f"finish[{j}]", (0, horizon + 1))[1] == horizon + 1
            idle = idle and all(box.get(f"at[{j},{t},0]", (0, 1))[1] for t in range(job.arrival, horizon + 1))
            if idle:
                best = max(Fraction(0), best) if best is not None else Fraction(0)
            if best is None:
                return None
            total += best
        if worthless:
            if total < 0:
                return None
            raise ValueError("the prices do not show that the box is empty")
        return -total

    model.price = bound


def _by_slot(blocks: Any, devices: Mapping[str, int], horizon: int) -> list[tuple[dict[str, int], int]]:
    """The prices of each slot, by type in units of 1 / 2^40 and the number of the block; slot 0 is not used."""
    if horizon > MOST_SLOTS:
        raise ValueError(f"blocks are for a horizon of at most {MOST_SLOTS} slots")
    if len(blocks) * len(devices) > MOST_PAIRS:
        raise ValueError(f"there are more than {MOST_PAIRS} prices")
    lines: list[tuple[dict[str, int], int]] = [({}, -1)]
    for number, (first, given) in enumerate(blocks):
        last = blocks[number + 1][0] - 1 if number + 1 < len(blocks) else horizon
        line = {kind: given.get(kind, 0) for kind in devices}
        if (
            first != len(lines)
            or not first - 1 <= last <= horizon
            or any(not isinstance(p, int) or p < 0 for p in line.values())
            or set(given) - set(line)
        ):
            raise ValueError("blocks must follow each other, prices be whole numbers from 0")
        lines += [(line, number)] * (last - first + 1)
    if len(lines) != horizon + 1:
        raise ValueError("blocks must cover the horizon")
    return lines


def cheapest(job: Job, line: Mapping[str, int], devices: Mapping[str, int]) -> list[int]:
    """For each choice, what the cheapest gang costs in a slot; 0 for not running."""
    found = [0]
    for _, kinds in job.choices:
        need, cost = job.workers, 0
        for kind in sorted(kinds, key=lambda k: line[k]):
            taken = min(need, devices[kind])
            need, cost = need - taken, cost + taken * line[kind]
        found.append(cost)
    return found


def dearest(
    j: int,
    job: Job,
    price: Sequence[tuple[Mapping[str, int], int]],
    devices: Mapping[str, int],
    box: Mapping[str, tuple[int, int]],
    horizon: int,
    worthless: bool,
    work: Work,
) -> Fraction | None:
    """The best payoff of the job's schedules in the box, exactly: the least cost of every progress, slot by slot."""
    first, last = box.get(f"finish[{j}]", (0, horizon + 1))
    work.spend((horizon - job.arrival + 1) * max(0, len(job.choices) - FEW_CHOICES))
    allowed = {}
    for t in range(job.arrival, horizon + 1):
        ranges = [box.get(f"at[{j},{t},{c}]", (0, 1)) for c in range(len(job.choices) + 1)]
        forced = [c for c, (low, _) in enumerate(ranges) if low]
        open_ = [c for c, (_, high) in enumerate(ranges) if high]
        allowed[t] = open_ if not forced else [c for c in open_ if forced == [c]]
    latest = max((t for t, choices in allowed.items() if 0 not in choices), default=0)
    least = {0: 0}
    best: Fraction | None = None
    for t in range(job.arrival, min(last, horizon) + 1):
        if best is not None and (0 if worthless else job.worth[t]) <= best:
            break  # utilities do not rise, and nothing costs less than 0
        costs = cheapest(job, price[t][0], devices)
        work.spend(len(least) * len(allowed[t]))
        following: dict[int, int] = {}
        finishing: int | None = None
        for c in allowed[t]:
            step = job.choices[c - 1][0] if c else 0
            for done, paid in least.items():
                now, cost = done + step, paid + costs[c]
                if now >= job.goal:
                    finishing = cost if finishing is None else min(finishing, cost)
                else:
                    following[now] = min(cost, following.get(now, cost))
        if finishing is not None and first <= t and latest <= t:
            payoff = (0 if worthless else job.worth[t]) - Fraction(finishing, GRID)
            best = payoff if best is None or payoff > best else best
        least = following
        if len(least) > MOST_STATES:
            raise ValueError("too many values of progress")
    return best


def relaxed(
    job: Job, price: Sequence[tuple[Mapping[str, int], int]], devices: Mapping[str, int], worthless: bool, work: Work
) -> Fraction | None:
    """At least the best payoff: by each finish slot, progress at the least cost, in fractions of slots.

    In a slot, progress x at cost c is any mixture of not running and of the choices, so its least cost is the lower
    hull of these points: pieces of rising slope. The cheapest pieces of the slots up to the finish make the work.
    Utilities do not rise, and nothing costs less than 0: a later finish with a smaller utility than the best payoff
    so far is not looked at.
    """
    bought: dict[Piece, int] = {}  # how many slots have a piece
    order: list[Piece] = []
    pieces: list[Piece] = []
    latest, best = None, None
    for t in range(job.arrival, len(price)):
        value = Fraction(0) if worthless else job.worth[t]
        if best is not None and value <= best:
            break
        line, block = price[t]
        if block != latest:
            costs, latest = cheapest(job, line, devices)[1:], block
            pieces = _hull([(step, cost) for (step, _), cost in zip(job.choices, costs, strict=True)])
        for piece in pieces:
            if piece not in bought:
                bisect.insort(order, piece)
            bought[piece] = bought.get(piece, 0) + 1
        left, total = job.goal, 0
        work.spend(1)
        for piece in order:
            work.spend(1)
            _, progress, cost = piece
            many = bought[piece]
            if progress * many >= left:
                payoff = value - (total + Fraction(left * cost, progress)) / GRID
                best = payoff if best is None or payoff > best else best
                break
            left, total = left - progress * many, total + cost * many
    return best


def by_edges(
    jobs: Sequence[Job],
    devices: Mapping[str, int],
    horizon: int,
    edges: Sequence[int],
    types: Mapping[str, Sequence[int]],
    finishes: int,
) -> Fraction:
    """What the devices cost between the edges, and at least the best payoffs of the jobs."""
    width = [b - a for a, b in itertools.pairwise(edges)]
    numbers = [finishes - 1, *edges, *(p for line in types.values() for p in line)]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
        raise ValueError("edges and prices must be whole numbers from 0, finishes from 1")
    if min(width, default=0) < 1 or set(types) - set(devices) or any(len(p) != len(width) for p in types.values()):
        raise ValueError("edges must rise, and prices be given for types, one between each two edges")
    lines = [{kind: line[k] for kind, line in types.items()} for k in range(len(width))]
    lines = [{kind: line.get(kind, 0) for kind in devices} for line in [{}, *lines, {}]]
    found = Fraction(
        sum(w * line[k] * n for w, line in zip(width, lines[1:], strict=False) for k, n in devices.items())
    )
    known: dict[Any, list[Piece]] = {}
    for job in jobs:
        kind = (job.workers, *((step, *kinds) for step, kinds in job.choices))

        def hull(k: int, job: Job = job, kind: Any = kind) -> list[Piece]:
            if (kind, k) not in known:
                costs = cheapest(job, lines[k], devices)[1:]
                steps = [step for step, _ in job.choices]
                known[kind, k] = _hull(list(zip(steps, costs, strict=True)))
            return known[kind, k]

        if job.choices:
            found += GRID * between(job, edges, hull, horizon, finishes)
    return found / GRID


def between(
    job: Job, edges: Sequence[int], hull: Callable[[int], list[Piece]], horizon: int, finishes: int
) -> Fraction:
    """At least the best payoff of a job, or 0: as :func:`relaxed`, for some finishes only.

    A finish between two that are looked at, d and at most d + max(1, d / finishes) slots after the arrival, is worth no
    more than the sooner, and costs no less than the cheapest slots before the later one.

    Parameters
    ----------
    hull : hull of the slots before the k-th edge, and behind the last one; see :func:`_hull`
    """
    first, best = job.arrival, Fraction(0)
    known = begin = bisect.bisect_right(edges, first)
    order: list[tuple[Piece, int]] = []
    slots = -(-job.goal // max(step for step, _ in job.choices))
    while first + slots - 1 <= horizon and job.worth[first + slots - 1] > best:
        value = job.worth[first + slots - 1]
        slots = min(max(slots + 1, slots + slots // finishes), horizon - first + 2)
        end = first + slots - 1  # the first slot that is not looked at
        while known <= len(edges) and (known == begin or edges[known - 1] < end):
            for piece in hull(known):
                bisect.insort(order, (piece, known))
            known += 1
        left, total = job.goal, 0
        for (_, progress, cost), k in order:
            low = first if k == begin else edges[k - 1]
            many = (end if k == len(edges) else min(end, edges[k])) - low
            if progress * many >= left:
                best = max(best, value - (total + Fraction(left * cost, progress)) / GRID)
                break
            left, total = left - progress * many, total + cost * many
    return best


Piece = tuple[Fraction, int, int]
"""Cost per progress, progress, cost."""


def _hull(points: Sequence[tuple[int, int]]) -> list[Piece]:
    """The pieces of the lower hull of (0, 0) and the points, up to the most progress."""
    found: list[Piece] = []
    x, y = 0, 0
    while True:
        beyond = [(Fraction(c - y, step - x), -step, c) for step, c in points if step > x]
        if not beyond:
            return found
        slope, step, cost = min(beyond)
        found.append((slope, -step - x, cost - y))
        x, y = -step, cost


def score(instance: Mapping[str, Any], solution: Mapping[str, Any]) -> Fraction:
    """The utility of a solution: the sum over the jobs whose slots make enough progress."""
    total = Fraction(0)
    for job in instance["jobs"]:
        held = solution["allocation"].get(job["id"], {})
        # by slot, or runs [first, last, devices]
        runs = [(int(t), int(t), e) for t, e in held.items()] if isinstance(held, dict) else held
        runs = [run for run in runs if run[2]]
        length = job["workers"] * Fraction(instance["slot_length"])
        slowest = [min(Fraction(job["throughput"][e["type"]]) for e in entries) for _, _, entries in runs]
        progress = sum((length * (run[1] - run[0] + 1) * x for run, x in zip(runs, slowest, strict=True)), Fraction(0))
        work = job["epochs"] * job["iterations_per_epoch"]
        if runs and progress >= work * (1 - Fraction(1, 10**9)):
            total += worth(instance, job, max(run[1] for run in runs))
    return total


FORMS = {"prices": prices}
