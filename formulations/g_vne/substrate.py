"""What g-vne and ddljs share: servers, directed links, jobs whose workers form a ring; networks as networkx graphs.

networkx is imported when a graph is asked for, since its import takes longer than many a solution. What is compiled or
runs inside searches has arrays of its own: shortest paths under link prices (``exact/g_vne/graph_pricing.py``), regions
(scipy), the rooted forest of ``network_tables.py``, and placing rings with what is left of links (``ring_network.py``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import ConfigDict, FailFast, Field, model_validator

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import (
    LARGEST,
    MOST_SERVERS,
    Frozen,
    Identifier,
    JobsInstance,
    Json,
    NonNegative,
    Part,
    unique_ids,
)
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, LARGEST_SLACK, exact
from schedgap.formulations.common.solution import Listed, TypedSolution

if TYPE_CHECKING:
    import networkx

Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
"""A number of either sign."""

MOST_LINKS = 1_000_000
"""Directed links of a network."""
MOST_WORKERS = 10_000
"""Longest ring an instance may ask for."""


class Server(Part):
    """A node of the network. One without resources is a switch: it routes and hosts nothing.

    Attributes
    ----------
    resources : capacity by resource; a resource that is not listed has capacity 0
    """

    id: Identifier
    resources: Frozen[Identifier, NonNegative]


class Link(Part):
    """A directed link; ``from`` and ``to`` in the file.

    Attributes
    ----------
    source, target : ids of two different nodes
    bandwidth : capacity, shared by all ring edges that use the link
    """

    model_config = ConfigDict(populate_by_name=True)
    source: Identifier = Field(alias="from")
    target: Identifier = Field(alias="to")
    bandwidth: NonNegative


class RingJob(Part):
    """A job whose workers form a ring.

    Attributes
    ----------
    demand : demand of one worker per resource; at least one is positive
    bandwidth : bandwidth of one ring edge, taken once by every use of a link
    """

    id: Identifier
    demand: Frozen[Identifier, NonNegative]
    bandwidth: NonNegative

    @model_validator(mode="after")
    def _demands_something(self) -> Self:
        if not any(self.demand.values()):
            raise ValueError("demand: at least one resource must be positive")
        return self


class Ring(Part):
    """One embedded ring.

    Attributes
    ----------
    workers : the host of each worker
    routes : the nodes that each ring edge visits, from a worker to the next; none for a ring of one
    """

    workers: Annotated[Listed[str], Field(min_length=1)]
    routes: Listed[Annotated[Listed[str], Field(min_length=1)]]


class RingSolution(TypedSolution):
    """Rings by job, in one time slot."""

    rings: dict[str, Ring]


class SubstrateInstance(JobsInstance):
    """An instance with a network; subclasses add their jobs.

    A network without links says so with an empty list: a file that forgets its links is another problem. Raises
    InputError: on ``parse``: unknown keys, wrong types, ids used twice, numbers out of range, a link that joins a node
    to itself, to a node that does not exist, or that is given twice.
    """

    servers: Annotated[tuple[Server, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    links: Annotated[tuple[Link, ...], Field(max_length=MOST_LINKS), FailFast()]

    @model_validator(mode="after")
    def _sound_network(self) -> Self:
        unique_ids(self.servers, "servers")
        known = {server.id for server in self.servers}
        seen: dict[tuple[str, str], int] = {}
        for position, link in enumerate(self.links):
            for end, name in (("from", link.source), ("to", link.target)):
                if name not in known:
                    raise ValueError(f'links[{position}].{end}: there is no server "{name}"')
            if link.source == link.target:
                raise ValueError(f'links[{position}]: joins "{link.source}" to itself')
            pair = (link.source, link.target)
            if pair in seen:
                first = seen[pair]
                raise ValueError(f'links[{position}]: "{link.source}" to "{link.target}" is already links[{first}]')
            seen[pair] = position
        return self

    @cached_property
    def server_index(self) -> dict[str, int]:
        """Position of each server by id."""
        return {server.id: position for position, server in enumerate(self.servers)}

    @cached_property
    def link_index(self) -> dict[tuple[int, int], int]:
        """Position of each link by the positions of the nodes it joins."""
        where = self.server_index
        return {(where[link.source], where[link.target]): position for position, link in enumerate(self.links)}

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Resources that some server lists, in the order in which they are named."""
        return tuple(dict.fromkeys(name for server in self.servers for name in server.resources))

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The network: a node for each server, with its ``resources``, an edge for each link, with its ``bandwidth``.

        Nodes and edges are in the order of the file. O(V + E).
        """
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph(name=self.name)
        graph.add_nodes_from((server.id, {"resources": dict(server.resources)}) for server in self.servers)
        graph.add_edges_from((link.source, link.target, {"bandwidth": link.bandwidth}) for link in self.links)
        return graph

    @staticmethod
    def parts_of(graph: networkx.Graph[Hashable]) -> dict[str, Json]:
        """The keys ``servers`` and ``links`` of an instance on this network.

        Parameters
        ----------
        graph : nodes are called by their text; one without ``resources`` is a switch. Each edge has a ``bandwidth``;
            one of an undirected graph is a link in either direction, and parallel edges are one link of their sum

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


def most_multiples(capacity: float, amount: float) -> int | None:
    """The largest n with ``n amount <= capacity``, tolerance 1e-9: 0.3 / 0.1 is 3. None where amount is 0."""
    if amount == 0:
        return None
    return int(exact(capacity) * (1 + CHECK_TOLERANCE) // exact(amount))


def reachable_limit(capacity: float, step: Fraction) -> float:
    """The capacity, or the largest whole multiple of `step` within it that needs the tolerance of 1e-9.

    What whole numbers of amounts add up to never exceeds it, so a linear program with this limit is not loosened by
    the tolerance of the checker.
    """
    most = exact(capacity) * (1 + CHECK_TOLERANCE)
    return max(capacity, float(most // step * step)) if step else capacity


@lru_cache(maxsize=4096)
def row_limit(capacity: float, step: Fraction) -> float:
    """The right side of a row of whole multiples of `step`, so that it means what the checker means.

    Just those sums fit that are at most L, the largest multiple within ``capacity (1 + 1e-9)``. The limit is L where
    the next multiple is out of an engine's reach; else it is lower, so that L is what it gives way to.
    """
    if not step:
        return capacity
    most = exact(capacity) * (1 + CHECK_TOLERANCE) // step * step
    return float(most + min(Fraction(0), step / 2 - min(LARGEST_SLACK, CHECK_TOLERANCE * most)))


def common_step(amounts: Iterable[float]) -> Fraction:
    """The largest number of which all amounts are whole multiples, exactly; 0 where all are 0."""
    numbers = [exact(amount) for amount in set(amounts)]
    below = math.lcm(*(number.denominator for number in numbers))
    return Fraction(math.gcd(*(int(number * below) for number in numbers)), below)


def worker_cap(resources: Mapping[str, float], demand: Mapping[str, float], most: int) -> int:
    """How many workers of a job one server hosts alone, at most `most`: floor(min_r C_r / l_r), paper 004, (5).

    A switch, which has no resources, hosts none.
    """
    for name, amount in demand.items():
        if most == 0:
            return 0
        fits = most_multiples(resources.get(name, 0.0), amount)
        if fits is not None:
            most = min(most, fits)
    return most
