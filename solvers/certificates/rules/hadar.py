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
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

GRID = 2**40
MOST_STATES = 20_000


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


class Job:
    """One job in whole numbers.

    Attributes
    ----------
    choices : by choice from 1 on: (progress of a slot, device types that are fast enough)
    goal : progress that finishes it
    """

    def __init__(self, instance: Mapping[str, Any], job: Mapping[str, Any], devices: Mapping[str, int]) -> None:
        self.arrival, self.workers = job["arrival"], job["workers"]
        self.worth = {t: worth(instance, job, t) for t in range(self.arrival, instance["horizon"] + 1)}
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

    Prices hold from their first slot to the next block. ``"fractions": true`` relaxes payoffs, see :func:`relaxed`;
    ``"worthless": true`` takes all utilities as 0: where the sum is then below 0, no schedule is in the box.
    """
    model.sense = -1
    devices, horizon = devices_of(instance), instance["horizon"]
    jobs = [Job(instance, job, devices) for job in instance["jobs"]]
    must = bool(instance.get("all_jobs_must_finish", False))
    if len(jobs) * horizon <= 20_000:
        for j, job in enumerate(jobs):
            model.var(f"finish[{j}]", job.arrival, horizon + (not must))
            for t in range(job.arrival, horizon + 1):
                for c in range(len(job.choices) + 1):
                    model.var(f"at[{j},{t},{c}]")
        values = [v for job in jobs for v in job.worth.values() if v]
        below = math.lcm(*(v.denominator for v in values))
        model.step = Fraction(math.gcd(*(int(v * below) for v in values)), below) if values else None

    def bound(given: Mapping[str, Any], box: Mapping[str, tuple[int, int]]) -> Fraction | None:
        """Minus the sum above, or None where a job has no schedule in the box."""
        if set(given) - {"blocks", "fractions", "worthless"}:
            raise ValueError("a leaf has blocks, fractions and worthless")
        price = _by_slot(given["blocks"], devices, horizon)
        worthless, fractions = given.get("worthless", False), given.get("fractions", False)
        total = Fraction(sum(count * line[kind] for line, _ in price[1:] for kind, count in devices.items()), GRID)
        touched = {int(name.partition("[")[2].rstrip("]").split(",")[0]) for name in box}
        for j, job in enumerate(jobs):
            if fractions and j not in touched:
                best = relaxed(job, price, devices, worthless)
            else:
                best = dearest(j, job, price, devices, box, horizon, worthless)
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
    """By slot, prices by type in units of 1 / 2^40 and the number of the block; slot 0 is not used."""
    lines: list[tuple[dict[str, int], int]] = [({}, -1)]
    for number, (first, given) in enumerate(blocks):
        last = blocks[number + 1][0] - 1 if number + 1 < len(blocks) else horizon
        line = {kind: given.get(kind, 0) for kind in devices}
        if first != len(lines) or any(not isinstance(p, int) or p < 0 for p in line.values()) or set(given) - set(line):
            raise ValueError("blocks must follow each other, prices be whole numbers from 0")
        lines += [(line, number)] * (last - first + 1)
    if len(lines) != horizon + 1:
        raise ValueError("blocks must cover the horizon")
    return lines


def cheapest(job: Job, line: Mapping[str, int], devices: Mapping[str, int]) -> list[int]:
    """By choice, what the cheapest gang costs in a slot; 0 for not running."""
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
) -> Fraction | None:
    """The best payoff of the job's schedules in the box, exactly: the least cost of every progress, slot by slot."""
    first, last = box.get(f"finish[{j}]", (0, horizon + 1))
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
        costs = cheapest(job, price[t][0], devices)
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
    job: Job, price: Sequence[tuple[Mapping[str, int], int]], devices: Mapping[str, int], worthless: bool
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
        for piece in order:
            _, progress, cost = piece
            many = bought[piece]
            if progress * many >= left:
                payoff = value - (total + Fraction(left * cost, progress)) / GRID
                best = payoff if best is None or payoff > best else best
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
