"""theta*_u: the smallest limit for which problem (14)-(16) of paper 000 is feasible, by exhaustive search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence


def smallest_limit(
    gangs: Sequence[int],  # G_j of each job, at most `gpus`
    weights: Sequence[int],  # positive
    gpus: int,  # N, identical for this purpose
    nodes: int = 20_000,  # assignments of one job to look at
) -> int | None:
    """The smallest largest load when every job adds its weight to G_j different GPUs.

    ``theta* = min over assignments of max_g sum_{j on g} w_j``, with one weight per job: the optimum of the
    right-hand side of (16) when every such assignment is the placement of some schedule in the set. Returns the limit
    in the unit of the weights, or None where the search did not end within `nodes`.

    Depth first by falling weight; GPUs of equal load are interchangeable, states that were seen are cut, and so
    is every load that does not improve. Exponential.
    """
    order = sorted(range(len(gangs)), key=lambda j: (-weights[j], -gangs[j]))
    area = sum(g * w for g, w in zip(gangs, weights, strict=True))
    floor = max(max(weights), -(-area // gpus))
    loads = [0] * gpus
    for j in order:
        loads.sort()
        for g in range(gangs[j]):
            loads[g] += weights[j]
    best = max(loads)
    seen: set[tuple[int, tuple[int, ...]]] = set()
    looked_at = 0
    stack: list[Iterator[tuple[int, ...]]] = []
    state: tuple[int, ...] = (0,) * gpus
    if best > floor:
        stack.append(_choices(state, gangs[order[0]], weights[order[0]]))
    while stack and best > floor:
        following = next(stack[-1], None)
        if following is None:
            stack.pop()
            continue
        looked_at += 1
        if looked_at > nodes:
            return None
        depth = len(stack)
        if following[-1] >= best or (depth, following) in seen:
            continue
        if depth == len(order):
            best = following[-1]
            continue
        seen.add((depth, following))
        stack.append(_choices(following, gangs[order[depth]], weights[order[depth]]))
    return best


def _choices(loads: tuple[int, ...], gang: int, weight: int) -> Iterator[tuple[int, ...]]:
    """Every way to add `weight` to `gang` of the sorted `loads`, sorted; ways that look the same once."""
    values = sorted(set(loads))
    counts = [loads.count(value) for value in values]
    for taken in itertools.product(*(range(min(count, gang) + 1) for count in counts)):
        if sum(taken) == gang:
            result: list[int] = []
            for value, count, some in zip(values, counts, taken, strict=True):
                result += [value] * (count - some) + [value + weight] * some
            yield tuple(sorted(result))
