"""The admission policies of comm-contention in rationals, moment by moment: what the fast ones are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.numbers import exact

Rule = Callable[[Fraction, list[Fraction], Fraction, Fraction], bool]


def at_most(n: int) -> Rule:
    """SRSF(n)."""
    return lambda size, left, b, eta: len(left) < n


def theorem_2(size: Fraction, left: list[Fraction], b: Fraction, eta: Fraction) -> bool:
    """AdaDUAL as printed, with the ratio."""
    return not left or (len(left) == 1 and size / left[0] < b / (2 * (b + eta)))


def every_completion(size: Fraction, left: list[Fraction], b: Fraction, eta: Fraction) -> bool:
    """adadual-k by its meaning: starting now adds less than starting at any completion."""

    def added(at: Fraction) -> Fraction:
        """Time until `at` units more have been moved, and what the overlaps from then on cost."""
        levels = sorted({Fraction(0), at, *(x for x in left if x < at)})
        wait = Fraction(0)
        for low, high in itertools.pairwise(levels):
            k = sum(x > low for x in left)
            wait += (high - low) * (k * b + (k - 1) * eta)
        return wait + 2 * (b + eta) * sum(min(size, max(x - at, Fraction(0))) for x in left)

    return all(added(Fraction(0)) < added(x) for x in left)


RULES = {
    "srsf_1": at_most(1),
    "srsf_2": at_most(2),
    "srsf_3": at_most(3),
    "adadual": theorem_2,
    "adadual_k": every_completion,
}


def plain(instance: CommContentionInstance, rule: Rule) -> dict[str, Fraction]:
    """Start of each task; who is in its latency counts with its whole size and moves nothing."""
    a, b, eta = (exact(x) for x in instance.link.model_dump().values())
    release = [exact(t.release) for t in instance.tasks]
    left = [exact(t.size) for t in instance.tasks]
    start: dict[int, Fraction] = {}
    clock = min(release)
    while True:
        queue = [j for j in range(len(left)) if j not in start and release[j] <= clock]
        for j in sorted(queue, key=lambda j: (left[j], j)):
            if not rule(left[j], sorted(left[i] for i in start if left[i] > 0), b, eta):
                break
            start[j] = clock
        while True:  # until somebody is to be asked: a release or a completion
            moving = [i for i in start if left[i] > 0 and start[i] + a <= clock]
            pace = len(moving) * b + (len(moving) - 1) * eta
            ends = [clock + pace * left[i] for i in moving]
            ready = [start[i] + a for i in start if left[i] > 0 and i not in moving]
            moments = ends + ready + [r for r in release if r > clock]
            if not moments:
                return {instance.tasks[j].id: t for j, t in start.items()}
            before, clock = clock, min(moments)
            for i in moving:
                left[i] -= (clock - before) / pace
            if clock in ends or clock in release:
                break
