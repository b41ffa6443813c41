"""LPs of g-vne over rings written out by the brute force, and a plain search for the best ring at prices."""

from __future__ import annotations

import itertools

import numpy as np
from oracles.g_vne import ring_options, room
from scipy.optimize import linprog

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import NetworkTables


def enumerated_lp(instance: GVneInstance) -> float:
    """The LP over every ring that fits alone, each with every simple route."""
    space, options = room(instance), ring_options(instance)
    worth, columns = [], []
    for j, rings in enumerate(options):
        for value, load, _ in rings:
            worth.append(-float(value))
            group = np.zeros(len(options))
            group[j] = 1.0
            columns.append(np.concatenate([np.array(load, dtype=float), group]))
    if not worth:
        return 0.0
    limit = np.concatenate([np.array(space, dtype=float), np.ones(len(options))])
    found = linprog(worth, A_ub=np.array(columns).T, b_ub=limit, method="highs")
    assert found.status == 0
    return -float(found.fun)


def distances(data: NetworkTables, price: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """All-pairs distances by Floyd and Warshall."""
    d = np.full((data.nodes, data.nodes), np.inf)
    np.fill_diagonal(d, 0.0)
    for e in np.flatnonzero(wide):
        d[data.tail[e], data.head[e]] = min(d[data.tail[e], data.head[e]], price[e])
    for v in range(data.nodes):
        d = np.minimum(d, d[:, v : v + 1] + d[v : v + 1, :])
    return d


def cheapest_ring(data: NetworkTables, j: int, size: int, node: np.ndarray, between: np.ndarray) -> float:
    """The least cost of a ring of `size` workers under the job's caps, over all sets and orders of hosts."""
    hosts = np.flatnonzero(data.cap[j]).tolist()
    best = np.inf
    for count in range(1, min(size, len(hosts)) + 1):
        for order in itertools.permutations(hosts, count):
            if order[0] != min(order):
                continue
            links = sum(between[a, b] for a, b in zip(order, order[1:] + order[:1], strict=True)) if count > 1 else 0.0
            if links == np.inf:
                continue
            # each host one worker, the others where they are cheapest
            left, cost = size - count, links + sum(node[v] for v in order)
            for v in sorted(order, key=lambda v: node[v]):
                more = min(left, int(data.cap[j, v]) - 1)
                cost += more * node[v]
                left -= more
            if left == 0:
                best = min(best, cost)
    return float(best)
