"""A link's a and b and the times of compute tasks where nobody measured them: paper 001, Table I, eqs. 2 to 4.

Nothing in schedgap asks for them: they help to write an instance of ddl-cluster or comm-contention.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log2

from schedgap.formulations.common.errors import InputError, near


@dataclass(frozen=True)
class AllReduceCost:
    """Eq. (2) of paper 001 for one algorithm and one number of nodes: T = a + b M."""

    latency: float  # a, seconds; ``link.latency`` of an instance
    seconds_per_unit: float  # b, seconds per unit of the message; ``link.seconds_per_unit``

    def seconds(self, message: float) -> float:
        """T of an all-reduce of so many units that is alone."""
        return self.latency + self.seconds_per_unit * message


ALGORITHMS = ("binary-tree", "recursive-doubling", "halving-doubling", "ring")
"""The all-reduces of Table I of paper 001."""


def all_reduce_cost(algorithm: str, nodes: int, alpha: float, beta: float, gamma: float = 0.0) -> AllReduceCost:
    """a and b of an all-reduce, by Table I of paper 001.

    Raises InputError: another algorithm, or a number out of range.

    Parameters
    ----------
    algorithm : ``binary-tree``, ``recursive-doubling``, ``halving-doubling`` or ``ring``
    nodes : N >= 1; a power of two but for the ring, as the paper assumes
    alpha : seconds that a message between two nodes takes whatever its size
    beta : further seconds per unit of it
    gamma : seconds that one node takes to reduce a unit

    Examples
    --------
    >>> cost = all_reduce_cost("ring", 4, alpha=0.25, beta=0.5)
    >>> cost.latency, cost.seconds_per_unit, cost.seconds(8.0)
    (1.5, 0.75, 7.5)
    """
    if algorithm not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise InputError(f"algorithm: must be one of {known}, got {algorithm!r}{near(algorithm, ALGORITHMS)}")
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise InputError(f"nodes: must be a whole number >= 1, got {nodes!r}")
    if algorithm != "ring" and nodes & (nodes - 1):
        raise InputError(f"nodes: must be a power of two for {algorithm}, got {nodes}")
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        if not (isfinite(value) and value >= 0):
            raise InputError(f"{name}: must be a number >= 0, got {value!r}")
    steps, share = log2(nodes), (nodes - 1) / nodes
    if algorithm == "binary-tree":
        return AllReduceCost(2 * alpha * steps, (2 * beta + gamma) * steps)
    if algorithm == "recursive-doubling":
        return AllReduceCost(alpha * steps, (beta + gamma) * steps)
    if algorithm == "halving-doubling":  # 2 beta - (2 beta + gamma) / N + gamma
        return AllReduceCost(2 * alpha * steps, (2 * beta + gamma) * share)
    return AllReduceCost(2 * (nodes - 1) * alpha, (2 * beta + gamma) * share)


def computation_times(batch: float, peak: float, forward: float, backward: float) -> tuple[float, float]:
    """Seconds of the feed-forward and of the backpropagation task: lambda B / P, eqs. (3) and (4) of paper 001.

    Raises InputError: a number that is not positive and finite.

    Parameters
    ----------
    batch : B, samples of a mini-batch
    peak : P, what the GPU computes in a second
    forward, backward : lambda_f and lambda_b, what the model's two tasks compute for one sample, in units of P

    Examples
    --------
    >>> computation_times(batch=16, peak=16e12, forward=15.5e9, backward=31e9)
    (0.0155, 0.031)
    """
    for name, value in (("batch", batch), ("peak", peak), ("forward", forward), ("backward", backward)):
        if not (isfinite(value) and value > 0):
            raise InputError(f"{name}: must be a number > 0, got {value!r}")
    return forward * batch / peak, backward * batch / peak
