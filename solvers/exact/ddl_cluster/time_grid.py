"""ddl-cluster on a time grid: whole numbers that a schedule in continuous time keeps when it is rounded down.

Every moment t of a schedule becomes floor(t / u) for a grid step u. What the model asks of these whole numbers
holds for every schedule, so its optimum is a lower bound: an end is at least a start plus floor(duration / u),
and the differences of two rounded moments are off by less than 1. An all-reduce of M MB that transfers for T
seconds has moved M. With k(t) the level of contention, the integral of 1 / w_k over its transfer is M, w_k = k
b + (k - 1) eta, and so T = b M + sum over sets B of other jobs of mu(B) O(B), where O(B) is how long all of B
transfer beside it, g(A) = 1 - b / w_k(A) is the part of the time lost while exactly the jobs of A transfer
beside it, and mu is g's Moebius transform: g(A) = sum over B within A of mu(B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import floor, lcm

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.bounds import alone_times
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

RESOLUTION = 10**10
"""Grid steps that the time until the last possible finish is divided into, or up to ten times as many."""


COARSEST = 10**8
"""The same where the weights of overlaps are long: CP-SAT aborts where products come near 2^63."""


LARGEST_PRODUCT = 10**17


FINEST_WEIGHT = 10**7
"""Weights of overlaps are whole numbers over at most this."""


@dataclass(frozen=True)
class Grid:
    """An instance with given placements in steps of 10^-digits seconds, all durations rounded down."""

    instance: DdlClusterInstance
    placement: tuple[tuple[Gpu, ...], ...]  # GPUs of each job
    digits: int  # a step is 10^-digits seconds
    # an upper bound on the sum of finish - arrival, in seconds: no better schedule lies beyond the windows
    max_total: float

    @classmethod
    def of(cls, instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], most: float) -> Grid:
        """The grid whose last possible finish is between RESOLUTION and 10 RESOLUTION steps away, or fewer steps.

        It is coarser, down to COARSEST, where steps times weights would be more than LARGEST_PRODUCT.
        """
        last = max(job.arrival for job in instance.jobs) + most
        digits = 0
        while last * 10**digits < RESOLUTION:
            digits += 1
        while last * 10**digits >= 10 * RESOLUTION:
            digits -= 1
        _, b, eta = instance.link.exact_parameters()
        weight = lcm(*((b / (k * b + (k - 1) * eta)).denominator for k in range(1, 1 + min(6, len(instance.jobs)))))
        weight = min(weight, FINEST_WEIGHT)
        while last * 10**digits * weight > LARGEST_PRODUCT and last * 10**digits >= 10 * COARSEST:
            digits -= 1
        return cls(instance, tuple(tuple(gpus) for gpus in placement), digits, most)

    def steps(self, seconds: Fraction) -> int:
        """`seconds` in whole steps, rounded down."""
        return floor(seconds * Fraction(10) ** self.digits)

    def seconds(self, steps: int) -> float:
        """`steps` in seconds."""
        return float(steps * Fraction(10) ** -self.digits)

    @cached_property
    def arrival(self) -> tuple[int, ...]:
        """Each job's arrival, in steps."""
        return tuple(self.steps(exact(job.arrival)) for job in self.instance.jobs)

    @cached_property
    def compute(self) -> tuple[tuple[int, int], ...]:
        """For each job, the steps of a forward and of a backward task."""
        return tuple((self.steps(exact(job.forward)), self.steps(exact(job.backward))) for job in self.instance.jobs)

    @cached_property
    def latency(self) -> int:
        """The steps of a latency."""
        return self.steps(exact(self.instance.link.latency))

    @cached_property
    def transfer(self) -> tuple[Fraction, ...]:
        """For each job, b message in steps, not rounded."""
        b = exact(self.instance.link.seconds_per_unit)
        return tuple(b * exact(job.message) * Fraction(10) ** self.digits for job in self.instance.jobs)

    @cached_property
    def servers(self) -> tuple[frozenset[int], ...]:
        """The servers that each job spans."""
        return tuple(frozenset(server for server, _ in gpus) for gpus in self.placement)

    @cached_property
    def spanning(self) -> tuple[int, ...]:
        """The jobs with all-reduces."""
        return tuple(j for j, servers in enumerate(self.servers) if len(servers) > 1)

    @cached_property
    def least_iteration(self) -> tuple[int, ...]:
        """The least steps of each job's iteration."""
        return tuple(
            sum(self.compute[j]) + (self.latency + floor(self.transfer[j]) if j in self.spanning else 0)
            for j in range(len(self.servers))
        )

    @cached_property
    def last_finish(self) -> tuple[int, ...]:
        """For each job, the last step at which it can finish in a schedule no worse than `most`.

        All others take at least the time they take alone.
        """
        alone = alone_times(self.instance)
        slack = exact(self.max_total * (1 + 1e-9)) - exact(sum(alone))
        return tuple(
            self.steps(exact(job.arrival) + exact(time * (1 + 1e-9)) + max(slack, Fraction(0)))
            for job, time in zip(self.instance.jobs, alone, strict=True)
        )

    def window(self, j: int, iteration: int) -> tuple[int, int]:
        """The first step at which an iteration can start, and the last at which it can end."""
        least = self.least_iteration[j]
        after = self.instance.jobs[j].iterations - 1 - iteration
        return self.arrival[j] + iteration * least, self.last_finish[j] - after * least

    def losses(self, j: int) -> dict[frozenset[int], Fraction]:
        """mu(B) by set B of other jobs, where it is not 0: see the head of this module."""
        others = [k for k in self.spanning if k != j and self.servers[k] & self.servers[j]]
        _, b, eta = self.instance.link.exact_parameters()

        def lost(jobs: Sequence[int]) -> Fraction:
            k = 1 + max(sum(server in self.servers[other] for other in jobs) for server in self.servers[j])
            return 1 - b / (k * b + (k - 1) * eta)

        result: dict[frozenset[int], Fraction] = {}
        for size in range(1, len(others) + 1):
            for chosen in combinations(others, size):
                inner = sum(
                    (
                        result.get(frozenset(part), Fraction(0))
                        for n in range(1, size)
                        for part in combinations(chosen, n)
                    ),
                    Fraction(0),
                )
                mu = lost(chosen) - inner
                if mu:
                    result[frozenset(chosen)] = mu
        return result
