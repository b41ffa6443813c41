"""Rings and closed walks: a ring's links as counts, and back.

A ring is a closed walk through its hosts. With all workers of a server at the walk's first visit to it, a ring
is known by its workers per server and by how often it uses each link: any connected circulation through the
hosts is a closed walk again (Euler), and cutting cycles out of its routes only frees links (docs/proofs-
ddljs.md).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

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
