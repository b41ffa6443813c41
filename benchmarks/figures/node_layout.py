"""Where the nodes of a network stand in a picture: in layers above the hosts, around a centre, or as a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import networkx
import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.g_vne.substrate import SubstrateInstance

MOST_IN_A_ROW = 64
"""Hosts in a row; where there are more, layers become circles."""


MOST_EXACT = 200
"""Nodes up to which a graph is laid out by graph distances (cubic time)."""


def layout(instance: SubstrateInstance) -> Floats:
    """Positions of all nodes in the unit square, (S, 2); the same network always gives the same ones.

    A network whose hosts hang on switches only is drawn in layers: hosts at the bottom, a switch above the highest
    node that it is nearer to the hosts by; more than :data:`MOST_IN_A_ROW` hosts stand on a circle with the
    switches inside. Any other is laid out by graph distances (Kamada and Kawai), or by forces where it is large.
    """
    hosts = [bool(server.resources) for server in instance.servers]
    graph = networkx.relabel_nodes(instance.to_networkx(), instance.server_index).to_undirected()
    layered = any(hosts) and not all(hosts) and networkx.is_connected(graph)
    if layered and not any(hosts[a] and hosts[b] for a, b in graph.edges):
        return _layers(graph, hosts)
    if len(hosts) == 1:
        return np.array([[0.5, 0.5]])
    if len(hosts) <= MOST_EXACT and networkx.is_connected(graph):
        start = networkx.circular_layout(graph)
        placed = networkx.kamada_kawai_layout(graph, pos=start)
    else:
        placed = networkx.spring_layout(graph, seed=0, iterations=100)
    return _into_unit(np.array([placed[node] for node in range(len(hosts))], dtype=float))


def _layers(graph: networkx.Graph[int], hosts: Sequence[bool]) -> Floats:
    """Hosts in depth-first order from the top, so that a rack stays together; switches above their middle."""
    found = networkx.multi_source_dijkstra_path_length(graph, {node for node, host in enumerate(hosts) if host})
    height = {node: round(far) for node, far in found.items()}
    top = max(height.values())
    root = min(node for node in graph if height[node] == top)
    order = [node for node in networkx.dfs_preorder_nodes(graph, root, sort_neighbors=sorted) if hosts[node]]
    across: dict[int, float] = {node: (place + 0.5) / len(order) for place, node in enumerate(order)}
    for level in range(1, top + 1):
        row = sorted(node for node in graph if height[node] == level)
        wanted = {}
        for node in row:
            below = [across[other] for other in graph[node] if height[other] < level]
            wanted[node] = sum(below) / len(below)
        ranked = sorted(row, key=lambda node: (round(wanted[node], 9), node))
        crowded = len({round(wanted[node], 3) for node in row}) < len(row)
        for place, node in enumerate(ranked):
            across[node] = (place + 0.5) / len(row) if crowded else wanted[node]
    if len(order) <= MOST_IN_A_ROW:
        return np.array([[across[node], height[node] / top] for node in range(len(hosts))])
    points = []
    for node in range(len(hosts)):
        alone = height[node] == top and sum(1 for level in height.values() if level == top) == 1
        radius = 0.0 if alone else 0.5 * (1 - height[node] / (top + (0 if alone else 0.5)))
        angle = 2 * math.pi * across[node]
        points.append([0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)])
    return np.array(points)


def _into_unit(array: Floats) -> Floats:
    """Shifted and scaled into the unit square, each axis on its own."""
    low, high = array.min(axis=0), array.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, (array - low) / span, 0.5)
