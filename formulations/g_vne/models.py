"""The integer program (12)-(19) of paper 004 (form `arcs`).

Variables, for job i, ring size k, ring position a:

- ``ring[i,k]`` = 1 when i runs as a ring of k workers: the paper's chi (13);
- ``place[i,k,a,u]`` = 1 when position a is on node u: its rho (14);
- ``route[i,k,a,u,v]`` = 1 when the ring edge from a to a + 1 uses link uv: its theta (15).

The cumulative loads h and o of (16) and (17) are put into the capacities (18) and (19). A flow of (15) may carry cycles
beside its path; a route visits no node twice, so the untightened model numbers the nodes along it.

Tightened: only rings that are worth something and that fit under the job's caps, positions only on servers where one
worker fits, ring edges only over links that are wide enough for one, cycles left to the extraction. A ring may be
turned: position 0 is on the node of smallest index among its own, so position a > 0 is not on a node u unless
position 0 is on one up to u."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, Role, RowFamily, Term, Value, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import NetworkTables, tables
from schedgap.formulations.g_vne.simple_rings import contiguous_ring
from schedgap.formulations.g_vne.substrate import common_step, row_limit

Key = tuple[int, int, int, int]
"""(job, size, position, node or link)."""


VARIABLES = {
    "ring": VariableFamily("job, size", "chi: 1 where the job runs as a ring of so many workers", decision=True),
    "place": VariableFamily(
        "job, size, position, node", "rho: 1 where the worker of the position is on the node", decision=True
    ),
    "route": VariableFamily(
        "job, size, position, from, to", "theta: 1 where the ring edge to the next position uses the link"
    ),
    "rank": VariableFamily("job, size, position, node", "the node's number along the ring edge's route", free=True),
}


ROWS = {
    "one_ring": RowFamily("(13)", "sum_k ring[i,k] <= 1"),
    "placed": RowFamily("(14)", "sum_u place[i,k,a,u] = ring[i,k]"),
    "flow": RowFamily("(15)", "out of u - into u = place[i,k,a,u] - place[i,k,a+1,u], over route[i,k,a]"),
    "simple": RowFamily("", "rank[v] >= rank[u] + 1 where route[i,k,a,u,v] = 1: no node twice"),
    "node": RowFamily("(18)", "(16) in (18): sum of demand place <= capacity of the node, by resource"),
    "link": RowFamily("(19)", "(17) in (19): sum of bandwidth route <= bandwidth of the link"),
    "turned": RowFamily(
        "",
        "position 0 is on the node of smallest index",
        Role.SYMMETRY,
        "a ring turned by one place is the same ring with the same loads",
    ),
}


def sizes(data: NetworkTables, j: int) -> list[int]:
    """Ring sizes of a job that can be better than leaving it out: worth > 0, enough room under its own caps."""
    return [k for k in range(1, int(data.largest_ring[j]) + 1) if data.utility[j, k] > 0]


def ilp_nonzeros(instance: GVneInstance) -> int:
    """Nonzeros of the rows, before anything is built; O(J K)."""
    data = tables(instance)
    total = 0
    resources = (data.demand > 0).sum(axis=1)
    for j in range(data.jobs):
        hosts = int(data.eligible[j].sum())
        links = int(data.wide[j].sum())
        for k in sizes(data, j):
            edges = k if k > 1 else 0
            turning = hosts * (hosts + 1) // 2 + hosts if k > 1 else 0
            total += 2 + k * (hosts * (1 + int(resources[j])) + 1) + edges * (2 * hosts + 3 * links) + (k - 1) * turning
    return total


class _Arcs:
    def __init__(self, instance: GVneInstance, tighten: bool) -> None:
        self.instance = instance
        self.data = tables(instance)
        self.tighten = tighten
        self.jobs = [job.id for job in instance.jobs]
        self.nodes = [server.id for server in instance.servers]
        self.layout = Layout(
            pulp.LpProblem("g_vne", pulp.LpMaximize),
            VARIABLES,
            ROWS,
            "(12), the sum of the rings' utilities",
            {"job": self.jobs, "node": self.nodes, "link": [f"{link.source}>{link.target}" for link in instance.links]},
        )
        self.chi: dict[tuple[int, int], pulp.LpVariable] = {}
        self.rho: dict[Key, pulp.LpVariable] = {}
        self.theta: dict[Key, pulp.LpVariable] = {}
        self.on_node: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.on_link: dict[int, list[Term]] = defaultdict(list)

    def sizes(self, j: int) -> Sequence[int]:
        """Ring sizes that the model has."""
        return sizes(self.data, j) if self.tighten else range(1, int(self.data.longest[j]) + 1)

    def hosts(self, j: int) -> list[int]:
        """Nodes that may hold a worker."""
        if self.tighten:
            found: list[int] = np.flatnonzero(self.data.eligible[j]).tolist()
            return found
        return [u for u, server in enumerate(self.instance.servers) if server.resources]

    def links(self, j: int) -> list[int]:
        """Links that a ring edge may use."""
        found: list[int] = np.flatnonzero(self.data.wide[j]).tolist() if self.tighten else list(range(self.data.links))
        return found

    def job(self, j: int) -> None:
        """Rows (13) of one job and everything of its rings."""
        data, out, job = self.data, self.layout, self.jobs[j]
        hosts, links = self.hosts(j), self.links(j)
        some: list[Term] = []
        for k in self.sizes(j):
            chi = self.chi[j, k] = out.variable("ring", job, k)
            some.append((chi, 1.0))
            for a in range(k):
                for u in hosts:
                    rho = self.rho[j, k, a, u] = out.variable("place", job, k, a, self.nodes[u])
                    for r in np.flatnonzero(data.demand[j]):
                        self.on_node[u, int(r)].append((rho, float(data.demand[j, r])))
                placed: list[Term] = [(self.rho[j, k, a, u], 1.0) for u in hosts]
                out.row("placed", (job, k, a), [*placed, (chi, -1.0)], "==", 0)
            if k > 1:
                for a in range(k):
                    self.edge(j, k, a, hosts, links)
                if self.tighten:
                    self.turned(j, k, hosts)
        if some:
            out.row("one_ring", (job,), some, "<=", 1)

    def edge(self, j: int, k: int, a: int, hosts: Sequence[int], links: Sequence[int]) -> None:
        """Rows (15) of the ring edge from position a to the next."""
        data, out, job = self.data, self.layout, self.jobs[j]
        after = (a + 1) % k
        balance: dict[int, list[Term]] = defaultdict(list)
        for e in links:
            tail, head = int(data.tail[e]), int(data.head[e])
            theta = self.theta[j, k, a, e] = out.variable("route", job, k, a, self.nodes[tail], self.nodes[head])
            balance[tail].append((theta, 1.0))
            balance[head].append((theta, -1.0))
            if data.job_bandwidth[j] > 0:
                self.on_link[e].append((theta, float(data.job_bandwidth[j])))
        for u in hosts:
            balance[u].append((self.rho[j, k, a, u], -1.0))
            balance[u].append((self.rho[j, k, after, u], 1.0))
        for u, terms in balance.items():
            out.row("flow", (job, k, a, self.nodes[u]), terms, "==", 0)
        if not self.tighten:
            self.simple(j, k, a, links)

    def simple(self, j: int, k: int, a: int, links: Sequence[int]) -> None:
        """No cycles in the flow of a ring edge."""
        data, out, job = self.data, self.layout, self.jobs[j]
        last = float(data.nodes - 1)
        rank = [out.variable("rank", job, k, a, node, high=last, integer=False) for node in self.nodes]
        for e in links:
            tail, head, theta = int(data.tail[e]), int(data.head[e]), self.theta[j, k, a, e]
            terms = [(rank[head], 1.0), (rank[tail], -1.0), (theta, -last - 1)]
            out.row("simple", (job, k, a, self.nodes[tail], self.nodes[head]), terms, ">=", -last)

    def turned(self, j: int, k: int, hosts: Sequence[int]) -> None:
        """Position 0 is on the node of smallest index."""
        for a in range(1, k):
            for place, u in enumerate(hosts[:-1]):
                first = [(self.rho[j, k, 0, v], -1.0) for v in hosts[: place + 1]]
                terms = [(self.rho[j, k, a, u], 1.0), *first]
                self.layout.row("turned", (self.jobs[j], k, a, self.nodes[u]), terms, "<=", 0)

    def close(self) -> None:
        """Rows (18) and (19), and the objective (12)."""
        data, out = self.data, self.layout
        names = data.resources
        steps = [common_step(data.demand[:, r].tolist()) for r in range(len(names))]
        for (u, r), terms in self.on_node.items():
            out.row("node", (self.nodes[u], names[r]), terms, "<=", row_limit(float(data.capacity[u, r]), steps[r]))
        edge = common_step(data.job_bandwidth.tolist())
        for e, terms in self.on_link.items():
            ends = self.nodes[int(data.tail[e])], self.nodes[int(data.head[e])]
            out.row("link", ends, terms, "<=", row_limit(float(data.bandwidth[e]), edge))
        out.objective([(chi, float(data.utility[j, k])) for (j, k), chi in self.chi.items()])


def build_ilp(instance: GVneInstance, tighten: bool = True) -> DeclarativeModel:
    """The program (12)-(19), one set of variables for each job and ring size.

    Tightened, a ring edge's flow may carry cycles beside its path; the extraction keeps a simple path of it and then
    puts the workers of a server together, which uses no link more often (servers relay). Untightened, its points are
    the solutions: each has at least one, and the whole variables of a point say one.

    Complexity: O(sum_j N_j^2 (V + E)) nonzeros, see :func:`ilp_nonzeros`. Source: paper 004, (12)-(19).
    """
    builder = _Arcs(instance, tighten)
    for j in range(builder.data.jobs):
        builder.job(j)
    builder.close()
    ranks = builder.layout.variables.get("rank", {}).values()
    return DeclarativeModel(
        problem=builder.layout.problem,
        extract=lambda value: _extract(builder, value),
        sense=MAXIMISE,
        assign=lambda solution: _assignment(builder, solution),
        restated_integral=frozenset(rank.name for rank in ranks),
        start={"rings": {}} if tighten else None,
        layout=builder.layout,
        tightened=tighten,
    )


def _extract(builder: _Arcs, value: Value) -> Solution:
    """Rings on simple routes; tightened, with the workers of a server next to each other.

    An integral unit flow between two nodes is a path and perhaps cycles; the path alone uses no link more often.
    """
    import networkx

    data, instance = builder.data, builder.instance
    rings = {}
    for (j, k), chi in builder.chi.items():
        if value(chi) <= 0.5:
            continue
        places = []
        for a in range(k):
            hosts_used = [u for u in builder.hosts(j) if value(builder.rho[j, k, a, u]) > 0.5]
            if len(hosts_used) != 1:
                raise ValueError(f"g-vne: position {a} of job {instance.jobs[j].id} is on {len(hosts_used)} nodes")
            places.append(hosts_used[0])
        routes = []
        for a in range(k if k > 1 else 0):
            flow = networkx.DiGraph()
            flow.add_nodes_from(places)
            used = [e for e in builder.links(j) if value(builder.theta[j, k, a, e]) > 0.5]
            flow.add_edges_from((int(data.tail[e]), int(data.head[e])) for e in used)
            try:
                routes.append(networkx.shortest_path(flow, places[a], places[(a + 1) % k]))
            except networkx.NetworkXNoPath:
                raise ValueError(f"g-vne: ring edge {a} of job {instance.jobs[j].id} has no path in its flow") from None
        found = contiguous_ring(places, routes) if builder.tighten else (places, routes)
        rings[instance.jobs[j].id] = _named(instance, *found)
    return {"rings": rings}


def _named(instance: GVneInstance, workers: Sequence[int], routes: Sequence[Sequence[int]]) -> dict[str, object]:
    names = [server.id for server in instance.servers]
    return {"workers": [names[u] for u in workers], "routes": [[names[u] for u in route] for route in routes]}


def _assignment(builder: _Arcs, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Variable values of a solution; tightened, rings of sizes without variables are left out."""
    instance = builder.instance
    values: dict[pulp.LpVariable, float] = dict.fromkeys(builder.layout.family_of, 0.0)
    where = instance.server_index
    for name, ring in solution["rings"].items():
        j = instance.job_index[name]
        places = [where[host] for host in ring["workers"]]
        routes = [[where[node] for node in route] for route in ring["routes"]]
        k = len(places)
        if (j, k) not in builder.chi:
            continue
        turn = min(range(k), key=lambda a: places[a]) if builder.tighten else 0
        values[builder.chi[j, k]] = 1.0
        for a in range(k):
            values[builder.rho[j, k, a, places[(turn + a) % k]]] = 1.0
            if routes:
                path = routes[(turn + a) % k]
                for pair in itertools.pairwise(path):
                    values[builder.theta[j, k, a, instance.link_index[pair]]] = 1.0
                if not builder.tighten:
                    for number, node in enumerate(path):
                        values[builder.layout.variables["rank"][name, k, a, builder.nodes[node]]] = float(number)
    return values
