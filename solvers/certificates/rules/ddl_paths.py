"""What a job of ddl-cluster costs at least, where the time of GPUs and of links has prices; in whole numbers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

GRID = 2**40
LARGEST = 20_000_000
"""Ticks of all jobs times buckets, at most."""
MOST_TICKS, DEAREST = 2**17, 2**100
"""Most ticks of one job, and largest price, so that neither memory nor digits are without end."""
NEVER = 1 << 400


class Path(NamedTuple):
    """A job: seconds of one iteration, and the GPUs and links that it holds."""

    release: Fraction
    compute: Fraction
    latency: Fraction
    message: Fraction
    iterations: int
    gpus: int
    links: int

    def alone(self) -> Fraction:
        """Seconds from arrival to finish at the least."""
        return self.iterations * (self.compute + self.latency + self.message)


class Buckets(NamedTuple):
    """Prices, in 2^-40, of time in buckets that have `span` ticks and begin `first` of them after 0."""

    tick: Fraction
    span: int
    first: int
    gpus: Sequence[int]
    links: Sequence[int]


def checked(paths: Sequence[Path], buckets: Buckets) -> None:
    """Raise ValueError where the prices are none, or too much work."""
    prices = [*buckets.gpus, *buckets.links]
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= DEAREST for n in prices):
        raise ValueError("prices must be whole numbers from 0 to 2^100")
    if len(buckets.gpus) != len(buckets.links) or not buckets.gpus or buckets.span < 1:
        raise ValueError("every bucket must have ticks, a price of GPUs and one of links")
    ticks = [math.floor(path.alone() / buckets.tick) + 2 for path in paths]
    if max(ticks) > MOST_TICKS or len(prices) * sum(ticks) > 2 * LARGEST:
        raise ValueError("there are too many ticks and buckets")
    if min(path.release for path in paths) < buckets.first * buckets.span * buckets.tick:
        raise ValueError("the first bucket must begin before all jobs")


def cheapest(path: Path, buckets: Buckets) -> Fraction:
    """The least of JCT and cost, rounded down, in seconds; at least the time alone.

    What is left of the job at the edges of buckets is known in whole ticks, rounded down: it falls by at most a bucket
    in each. The cost is the first price times all of the work and, at every edge, the change of the price times what is
    left of the work then, which is taken at the end of the tick where it is least.
    """
    width, alone = buckets.span * buckets.tick, path.alone()
    begin = math.floor(path.release / width) - buckets.first
    count = len(buckets.gpus)
    if begin >= count:
        return alone
    ahead = (buckets.first + begin + 1) * width - path.release
    ticks = math.floor(alone / buckets.tick)
    computing, moving = _remains(path, buckets.tick, ticks)
    cost = path.gpus * buckets.gpus[begin] * math.floor(path.iterations * path.compute * GRID)
    cost += path.links * buckets.links[begin] * math.floor(path.iterations * path.message * GRID)
    best = math.floor(alone * GRID**2) + cost if alone <= ahead else NEVER
    low = max(0, math.floor((alone - ahead) / buckets.tick))
    costs = [NEVER] * low + [cost] * (ticks + 1 - low)
    tick = math.floor(buckets.tick * GRID**2)
    for k in range(begin + 1, count + 1):
        passed = math.floor((ahead + (k - begin - 1) * width) * GRID**2)
        if passed >= best:
            break
        if k > begin + 1:
            costs = _least_ahead(costs, buckets.span)
        for prices, rate, remains in ((buckets.gpus, path.gpus, computing), (buckets.links, path.links, moving)):
            change = rate * ((prices[k] if k < count else 0) - prices[k - 1])
            if change > 0:
                costs = [cost + change * least for cost, (least, _) in zip(costs, remains, strict=True)]
            elif change < 0:
                costs = [cost + change * most for cost, (_, most) in zip(costs, remains, strict=True)]
        near = costs[: buckets.span + 1] if k < count else costs
        best = min(best, passed + min(cost + z * tick for z, cost in enumerate(near)))
    return max(alone, Fraction(best, GRID**2))


def _remains(path: Path, tick: Fraction, ticks: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The least and the most of computing, and of messages, by whole ticks left of the job; in 2^-40 s."""
    parts = (tick, path.compute, path.latency, path.message)
    unit = math.lcm(*(part.denominator for part in parts))
    step, compute, latency, message = (part.numerator * (unit // part.denominator) for part in parts)
    whole = compute + latency + message
    result = []
    for z in range(ticks + 2):
        done, rest = divmod(min(z * step, path.iterations * whole), whole)
        result.append((done * compute + max(0, rest - latency - message), done * message + min(rest, message)))
    computing, moving = (
        [(own[z] * GRID // unit, -(-own[z + 1] * GRID // unit)) for z in range(ticks + 1)]
        for own in zip(*result, strict=True)
    )
    return computing, moving


def _least_ahead(costs: list[int], span: int) -> list[int]:
    """At each place, the least from it up to `span` places further."""
    result = [0] * len(costs)
    order: deque[int] = deque()
    for z in range(len(costs) - 1, -1, -1):
        while order and costs[order[-1]] >= costs[z]:
            order.pop()
        order.append(z)
        while order[0] > z + span:
            order.popleft()
        result[z] = costs[order[0]]
    return result
