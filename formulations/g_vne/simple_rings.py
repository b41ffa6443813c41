"""Contiguous workers, simple routes: neither loses anything where servers relay."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def contiguous_ring(workers: Sequence[int], routes: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The same workers on every server, those of one server next to each other, no link used more often.

    The ring is a closed walk; all workers of a server move to its first visit and the other visits relay. Cycles of
    the joined walks are cut.

    Parameters
    ----------
    workers : the host of each position
    routes : the node path from each position to the next, around; empty for a ring of one

    Returns
    -------
    Hosts and routes in the same form, every route simple. O(length of the walk). Needs servers that relay.
    """
    size = len(workers)
    if size == 1:
        return list(workers), []
    first = [a for a in range(size) if workers[a] not in workers[:a]]
    hosts: list[int] = []
    paths: list[list[int]] = []
    for place, a in enumerate(first):
        until = first[place + 1] if place + 1 < len(first) else size + first[0]
        walk = [workers[a]]
        for step in range(a, until):
            walk.extend(routes[step % size][1:])
        count = sum(host == workers[a] for host in workers)
        hosts.extend([workers[a]] * count)
        paths.extend([[workers[a]]] * (count - 1))
        paths.append(without_cycles(walk))
    return hosts, paths


def without_cycles(walk: Sequence[int]) -> list[int]:
    """A simple path with the walk's ends, along its links: what lies between two visits of a node is cut."""
    path: list[int] = []
    place: dict[int, int] = {}
    for node in walk:
        if node in place:
            for gone in itertools.islice(path, place[node] + 1, None):
                del place[gone]
            del path[place[node] + 1 :]
        else:
            place[node] = len(path)
            path.append(node)
    return path
