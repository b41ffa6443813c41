"""a, b and t of paper 001 from a model's size, the nodes and the link: Table I and eqs. (2) to (4)."""

from __future__ import annotations

import pytest

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster.all_reduce import ALGORITHMS, all_reduce_cost, computation_times

BY_HAND = {
    # N = 4, alpha = 8, beta = 2, gamma = 1, logarithms 2: a, b
    "binary-tree": (2 * 8 * 2, (2 * 2 + 1) * 2),
    "recursive-doubling": (8 * 2, (2 + 1) * 2),
    "halving-doubling": (2 * 8 * 2, 2 * 2 - (2 * 2 + 1) / 4 + 1),
    "ring": (2 * 3 * 8, 2 * 3 / 4 * 2 + 3 / 4),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_table_i_by_hand(algorithm: str) -> None:
    cost = all_reduce_cost(algorithm, 4, alpha=8.0, beta=2.0, gamma=1.0)
    assert (cost.latency, cost.seconds_per_unit) == BY_HAND[algorithm]
    assert cost.seconds(100.0) == BY_HAND[algorithm][0] + 100 * BY_HAND[algorithm][1]
    alone = all_reduce_cost(algorithm, 1, alpha=8.0, beta=2.0, gamma=1.0)
    assert (alone.latency, alone.seconds_per_unit) == (0, 0)  # a node alone has nobody to wait for


def ring_by_steps(nodes: int, message: float, alpha: float, beta: float, gamma: float) -> float:
    """N - 1 steps that send a share of the message and reduce it, N - 1 that send it round."""
    share = message / nodes
    return sum(alpha + beta * share + gamma * share for _ in range(nodes - 1)) + (nodes - 1) * (alpha + beta * share)


def halving_by_steps(nodes: int, message: float, alpha: float, beta: float, gamma: float) -> float:
    """Halves are sent and reduced until each node has its share, then doubled back."""
    total, part = 0.0, message
    while part > message / nodes:
        part /= 2
        total += 2 * (alpha + beta * part) + gamma * part
    return total


@pytest.mark.parametrize("nodes", [2, 4, 8, 64])
def test_the_optimal_algorithms_step_by_step(nodes: int) -> None:
    numbers = {"alpha": 0.3, "beta": 0.07, "gamma": 0.011}
    ring, halving = (all_reduce_cost(name, nodes, **numbers) for name in ("ring", "halving-doubling"))
    assert ring.seconds(50.0) == pytest.approx(ring_by_steps(nodes, 50.0, **numbers), rel=1e-12)
    assert halving.seconds(50.0) == pytest.approx(halving_by_steps(nodes, 50.0, **numbers), rel=1e-12)


def test_equations_3_and_4() -> None:
    assert computation_times(batch=32, peak=8.0, forward=0.5, backward=1.25) == (2.0, 5.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"algorithm": "rings"}, "algorithm: must be one of .*, got 'rings'; did you mean 'ring'"),
        ({"nodes": 0}, "nodes: must be a whole number >= 1, got 0"),
        ({"nodes": 2.0}, "nodes: must be a whole number >= 1, got 2.0"),
        ({"algorithm": "binary-tree", "nodes": 6}, "nodes: must be a power of two for binary-tree, got 6"),
        ({"beta": -1.0}, "beta: must be a number >= 0, got -1.0"),
        ({"gamma": float("nan")}, "gamma: must be a number >= 0, got nan"),
    ],
)
def test_numbers_out_of_range_are_refused(settings: dict[str, object], said: str) -> None:
    given = {"algorithm": "ring", "nodes": 6, "alpha": 0.1, "beta": 0.2} | settings
    with pytest.raises(InputError, match=said):
        all_reduce_cost(**given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="peak: must be a number > 0, got 0"):
        computation_times(batch=1, peak=0, forward=1, backward=1)
