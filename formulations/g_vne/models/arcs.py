"""The integer program (12)-(19) of paper 004.

Variables, for job i, ring size k, ring position a:

- ``chi[i,k]`` = 1 when i runs as a ring of k workers (13);
- ``rho[i,k,a,u]`` = 1 when position a is on node u (14);
- ``theta[i,k,a,uv]`` = 1 when the ring edge from a to a + 1 uses link uv (15).

The cumulative loads h and o of (16) and (17) are put into the capacities (18) and (19). Positions only go to servers
where one worker fits, ring edges only over links that are wide enough for one, which no solution misses. A ring may
be turned: position 0 is on the node of smallest index among its own, so position a > 0 is not on a node u unless
position 0 is on one up to u.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.ring_routes import contiguous_ring, simple_path
from schedgap.formulations.g_vne.tables import Tables, tables

Term = tuple[pulp.LpVariable, float]
Value = Callable[[pulp.LpVariable], float]
Key = tuple[int, int, int, int]
"""(job, size, position, node or link)."""


def sizes(data: Tables, j: int) -> list[int]:
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


@dataclass
class _Builder:
    instance: GVneInstance
    data: Tables
    problem: pulp.LpProblem = field(default_factory=lambda: pulp.LpProblem("g_vne", pulp.LpMaximize))
    chi: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    rho: dict[Key, pulp.LpVariable] = field(default_factory=dict)
    theta: dict[Key, pulp.LpVariable] = field(default_factory=dict)
    on_node: dict[tuple[int, int], list[Term]] = field(default_factory=lambda: defaultdict(list))
    on_link: dict[int, list[Term]] = field(default_factory=lambda: defaultdict(list))

    def row(self, terms: Sequence[Term], sense: int, right: float, name: str) -> None:
        expression = pulp.LpAffineExpression(list(terms))
        self.problem.addConstraint(pulp.LpConstraint(expression, sense=sense, rhs=right), name=name)

    def binary(self, name: str) -> pulp.LpVariable:
        return pulp.LpVariable(name, 0, 1, cat=pulp.LpInteger)

    def job(self, j: int) -> None:
        """Rows (13) of one job and everything of its rings."""
        data = self.data
        hosts = np.flatnonzero(data.eligible[j]).tolist()
        links = np.flatnonzero(data.wide[j]).tolist()
        some: list[Term] = []
        for k in sizes(data, j):
            chi = self.chi[j, k] = self.binary(f"chi_{j}_{k}")
            some.append((chi, 1.0))
            for a in range(k):
                for u in hosts:
                    rho = self.rho[j, k, a, u] = self.binary(f"rho_{j}_{k}_{a}_{u}")
                    for r in np.flatnonzero(data.demand[j]):
                        self.on_node[u, int(r)].append((rho, float(data.demand[j, r])))
                placed: list[Term] = [(self.rho[j, k, a, u], 1.0) for u in hosts]
                self.row([*placed, (chi, -1.0)], pulp.LpConstraintEQ, 0.0, f"place_{j}_{k}_{a}")
            if k > 1:
                for a in range(k):
                    self.edge(j, k, a, hosts, links)
                self.turned(j, k, hosts)
        if some:
            self.row(some, pulp.LpConstraintLE, 1.0, f"one_ring_{j}")

    def edge(self, j: int, k: int, a: int, hosts: Sequence[int], links: Sequence[int]) -> None:
        """Rows (15) of the ring edge from position a to the next."""
        data = self.data
        after = (a + 1) % k
        balance: dict[int, list[Term]] = defaultdict(list)
        for e in links:
            theta = self.theta[j, k, a, e] = self.binary(f"theta_{j}_{k}_{a}_{e}")
            balance[int(data.tail[e])].append((theta, 1.0))
            balance[int(data.head[e])].append((theta, -1.0))
            if data.job_bandwidth[j] > 0:
                self.on_link[e].append((theta, float(data.job_bandwidth[j])))
        for u in hosts:
            balance[u].append((self.rho[j, k, a, u], -1.0))
            balance[u].append((self.rho[j, k, after, u], 1.0))
        for u, terms in balance.items():
            self.row(terms, pulp.LpConstraintEQ, 0.0, f"flow_{j}_{k}_{a}_{u}")

    def turned(self, j: int, k: int, hosts: Sequence[int]) -> None:
        """Position 0 is on the node of smallest index."""
        for a in range(1, k):
            for place, u in enumerate(hosts[:-1]):
                first = [(self.rho[j, k, 0, v], -1.0) for v in hosts[: place + 1]]
                self.row([(self.rho[j, k, a, u], 1.0), *first], pulp.LpConstraintLE, 0.0, f"turn_{j}_{k}_{a}_{u}")

    def close(self) -> None:
        """Rows (18) and (19), and the objective (12)."""
        data = self.data
        for (u, r), terms in self.on_node.items():
            self.row(terms, pulp.LpConstraintLE, float(data.capacity[u, r]), f"node_{u}_{r}")
        for e, terms in self.on_link.items():
            self.row(terms, pulp.LpConstraintLE, float(data.bandwidth[e]), f"link_{e}")
        self.problem.setObjective(
            pulp.LpAffineExpression([(chi, float(data.utility[j, k])) for (j, k), chi in self.chi.items()])
        )


def build_ilp(instance: GVneInstance) -> DeclarativeModel:
    """The program (12)-(19), one set of variables for each job and ring size.

    Sizes that are worth nothing, or that do not fit under the job's caps, have no variables: the job is better left
    out.

    A ring edge's flow may carry cycles beside its path; the extraction keeps a simple path of it and then puts the
    workers of a server together, which uses no link more often (servers relay).

    Complexity: O(sum_j N_j^2 (V + E)) nonzeros, see :func:`ilp_nonzeros`. Source: paper 004, (12)-(19).
    """
    data = tables(instance)
    builder = _Builder(instance, data)
    for j in range(data.jobs):
        builder.job(j)
    builder.close()
    return DeclarativeModel(
        problem=builder.problem,
        extract=lambda value: _extract(builder, value),
        sense=MAXIMISE,
        assign=lambda solution: _assignment(builder, solution),
        start={"rings": {}},
    )


def _extract(builder: _Builder, value: Value) -> Solution:
    """Rings of contiguous workers on simple routes."""
    data, instance = builder.data, builder.instance
    rings = {}
    for (j, k), chi in builder.chi.items():
        if value(chi) <= 0.5:
            continue
        hosts = np.flatnonzero(data.eligible[j]).tolist()
        places = []
        for a in range(k):
            there = [u for u in hosts if value(builder.rho[j, k, a, u]) > 0.5]
            if len(there) != 1:
                raise ValueError(f"g-vne: position {a} of job {instance.jobs[j].id} is on {len(there)} nodes")
            places.append(there[0])
        routes = []
        for a in range(k if k > 1 else 0):
            used = [
                (int(data.tail[e]), int(data.head[e]))
                for e in np.flatnonzero(data.wide[j]).tolist()
                if value(builder.theta[j, k, a, e]) > 0.5
            ]
            path = simple_path(used, places[a], places[(a + 1) % k])
            if path is None:
                raise ValueError(f"g-vne: ring edge {a} of job {instance.jobs[j].id} has no path in its flow")
            routes.append(path)
        rings[instance.jobs[j].id] = _named(instance, *contiguous_ring(places, routes))
    return {"rings": rings}


def _named(instance: GVneInstance, workers: Sequence[int], routes: Sequence[Sequence[int]]) -> dict[str, object]:
    names = [server.id for server in instance.servers]
    return {"workers": [names[u] for u in workers], "routes": [[names[u] for u in route] for route in routes]}


def _assignment(builder: _Builder, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Variable values of a solution; rings of sizes without variables are left out."""
    instance = builder.instance
    values: dict[pulp.LpVariable, float] = dict.fromkeys(
        [*builder.chi.values(), *builder.rho.values(), *builder.theta.values()], 0.0
    )
    where = instance.server_index
    for name, ring in solution["rings"].items():
        j = instance.job_index[name]
        places = [where[host] for host in ring["workers"]]
        routes = [[where[node] for node in route] for route in ring["routes"]]
        k = len(places)
        if (j, k) not in builder.chi:
            continue
        turn = min(range(k), key=lambda a: places[a])
        values[builder.chi[j, k]] = 1.0
        for a in range(k):
            values[builder.rho[j, k, a, places[(turn + a) % k]]] = 1.0
            if routes:
                path = routes[(turn + a) % k]
                for pair in itertools.pairwise(path):
                    values[builder.theta[j, k, a, instance.link_index[pair]]] = 1.0
    return values
