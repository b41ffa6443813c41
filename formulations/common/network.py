"""Networks of g-vne and ddljs as networkx graphs: the one place where one becomes the other.

networkx is imported when a graph is asked for, since its import takes longer than many a solution. What is compiled or
runs inside searches has arrays of its own: shortest paths under link prices (``solvers/exact/g_vne/graph.py``), regions
(scipy), the rooted forest of ``g_vne/tables.py``, and placing rings with what is left of links (``ring_network.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json

if TYPE_CHECKING:
    import networkx

    from schedgap.formulations.common.substrate import SubstrateInstance


def to_networkx(instance: SubstrateInstance) -> networkx.DiGraph[str]:
    """The network: a node for each server, with its ``resources``, an edge for each link, with its ``bandwidth``.

    Nodes and edges are in the order of the file. O(V + E).
    """
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph(name=instance.name)
    graph.add_nodes_from((server.id, {"resources": dict(server.resources)}) for server in instance.servers)
    graph.add_edges_from((link.source, link.target, {"bandwidth": link.bandwidth}) for link in instance.links)
    return graph


def parts_of(graph: networkx.Graph[Any]) -> dict[str, Json]:
    """The keys ``servers`` and ``links`` of an instance on this network.

    Parameters
    ----------
    graph : nodes are called by their text; one without ``resources`` is a switch. Each edge has a ``bandwidth``; one of
        an undirected graph is a link in either direction, and parallel edges are one link of their sum

    Raises
    ------
    InputError
        `graph` is no graph, an edge has no bandwidth, or two nodes have one text.

    Complexity: O(V + E).
    """
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise InputError(f"graph: must be a networkx graph, got {type(graph).__name__}")
    names = {node: str(node) for node in graph}
    if len(set(names.values())) < len(names):
        twice = next(name for name in names.values() if list(names.values()).count(name) > 1)
        raise InputError(f"graph: two nodes are called {twice!r}")
    bandwidths: dict[tuple[str, str], float] = {}
    for source, target, data in graph.edges(data=True):
        if "bandwidth" not in data:
            raise InputError(f"graph: edge {names[source]} to {names[target]}: bandwidth is missing")
        pair = names[source], names[target]
        for ends in (pair,) if graph.is_directed() or source == target else (pair, pair[::-1]):
            bandwidths[ends] = bandwidths[ends] + data["bandwidth"] if ends in bandwidths else data["bandwidth"]
    servers: Sequence[Mapping[str, Json]] = [
        {"id": names[node], "resources": resources} for node, resources in graph.nodes(data="resources", default={})
    ]
    return {
        "servers": list(servers),
        "links": [{"from": a, "to": b, "bandwidth": amount} for (a, b), amount in bandwidths.items()],
    }
