"""A certified lower bound at any size."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact


@once_per_instance
def lower_bound(instance: CommContentionInstance) -> float:
    """The mean flow time of shortest remaining processing time first on a machine that may pause.

    k active transfers together move k / (k b + (k - 1) eta) <= 1 / b units per second, so at every moment any
    schedule has moved at most what one machine of speed 1 / b could have, transfer by transfer: it is a
    preemptive schedule of processing times b M_j and releases r_j + a on one machine, whose least total
    completion time SRPT attains. Hence OPT >= bound, and OPT = bound when no transfer arrives while a larger
    one runs. Returns seconds: exact, and rounded down to a floating-point number.

    Notes
    -----
    O(n log n) operations on whole numbers. Source: SRPT is optimal for 1 | r_j, pmtn | sum C_j (Schrage 1968); the
    reduction is ours.
    """
    latency, alone, _ = instance.link.exact_parameters()
    works = [alone * exact(task.size) for task in instance.tasks]
    releases = [exact(task.release) for task in instance.tasks]
    second = math.lcm(*{x.denominator for x in works}, *{x.denominator for x in releases})
    coming = sorted((_times(r, second), _times(work, second)) for r, work in zip(releases, works, strict=True))
    coming.reverse()
    remaining: list[int] = []
    clock = flow = 0
    while coming or remaining:
        if not remaining:
            clock = max(clock, coming[-1][0])
        while coming and coming[-1][0] <= clock:
            heapq.heappush(remaining, coming.pop()[1])
        until = coming[-1][0] if coming else None
        if until is None or clock + remaining[0] <= until:
            step = heapq.heappop(remaining)
            flow += step * (len(remaining) + 1)  # as many wait or run for that long
            clock += step
        else:
            flow += (until - clock) * len(remaining)
            heapq.heapreplace(remaining, remaining[0] - (until - clock))
            clock = until
    return rounded_down(Fraction(flow, second * len(instance.tasks)) + latency)


def rounded_down(number: Fraction) -> float:
    """The last floating-point number whose decimal form is not more."""
    value = float(number)
    while exact(value) > number:
        value = math.nextafter(value, -math.inf)
    return value


def _times(number: Fraction, factor: int) -> int:
    """The product, where `factor` is a multiple of the denominator."""
    return number.numerator * (factor // number.denominator)
