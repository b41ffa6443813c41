"""Linear programs of paper 004 as PuLP models: `mcf`, `augmented`, and rings as columns (`columns`)."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.models import sizes
from schedgap.formulations.g_vne.network_tables import NetworkTables, tables
from schedgap.formulations.g_vne.substrate import common_step, row_limit

Path = list[int]


LIMIT = 20_000
"""The most rings of all jobs together."""


RELAXED_VARIABLES = {
    "ring": VariableFamily("job, size, root", "chi: share of a ring of so many workers with position 0 on the root"),
    "place": VariableFamily("job, size, root, position, node", "rho: share of the position on the node"),
    "route": VariableFamily("job, size, root, position, from, to", "theta: share of the ring edge on the link"),
    "choose": VariableFamily("job, ring", "1 where the job runs as this ring"),
}


RELAXED_ROWS = {
    "one_ring": RowFamily("(13)", "the job's rings together <= 1"),
    "placed": RowFamily("(14)", "sum_u place = ring, for every position"),
    "flow": RowFamily("(15)", "out of u - into u = place[a,u] - place[a+1,u], over route[a]"),
    "node": RowFamily("(18)", "(16) in (18): sum of demand place <= capacity of the node, by resource"),
    "link": RowFamily("(19)", "(17) in (19): sum of bandwidth route <= bandwidth of the link"),
}


class _Relaxation:
    def __init__(self, instance: GVneInstance, name: str, objective: str) -> None:
        self.instance = instance
        self.data: NetworkTables = tables(instance)
        self.jobs = [job.id for job in instance.jobs]
        self.nodes = [server.id for server in instance.servers]
        self.layout = Layout(
            pulp.LpProblem(name, pulp.LpMaximize),
            RELAXED_VARIABLES,
            RELAXED_ROWS,
            objective,
            {"job": self.jobs, "node": self.nodes},
        )
        self.on_node: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.on_link: dict[int, list[Term]] = defaultdict(list)
        self.worth: list[Term] = []

    def load(self, j: int, u: int, variable: pulp.LpVariable, workers: int = 1) -> None:
        """Workers of job j on node u, per unit of the variable."""
        for r in np.flatnonzero(self.data.demand[j]).tolist():
            self.on_node[u, r].append((variable, workers * float(self.data.demand[j, r])))

    def use(self, j: int, e: int, variable: pulp.LpVariable, often: int = 1) -> None:
        """Ring edges of job j over link e, per unit of the variable."""
        if self.data.job_bandwidth[j] > 0:
            self.on_link[e].append((variable, often * float(self.data.job_bandwidth[j])))

    def share(self, *key: str | int, family: str) -> pulp.LpVariable:
        return self.layout.variable(family, *key, integer=False)

    def close(self, *, whole: bool) -> None:
        """Rows (18) and (19), and the objective (12); `whole`: limits are what whole rings can reach."""
        data, out = self.data, self.layout
        steps = [common_step(data.demand[:, r].tolist()) for r in range(len(data.resources))]
        edge = common_step(data.job_bandwidth.tolist())
        for (u, r), terms in self.on_node.items():
            limit = float(data.capacity[u, r])
            key = self.nodes[u], data.resources[r]
            out.row("node", key, terms, "<=", row_limit(limit, steps[r]) if whole else limit)
        for e, terms in self.on_link.items():
            ends = self.nodes[int(data.tail[e])], self.nodes[int(data.head[e])]
            limit = float(data.bandwidth[e])
            out.row("link", ends, terms, "<=", row_limit(limit, edge) if whole else limit)
        out.objective(self.worth)


def build_flows(instance: GVneInstance, *, augmented: bool) -> DeclarativeModel:
    """The linear relaxation of (12)-(19), or the augmented LP of Rost and Schmid: a copy of the ring for every root.

    Both put workers on servers where one fits, and have the same value (solvers/exact/g_vne/METHODS.md): a bound on
    the optimum.

    Complexity: O(sum_j N_j^2 (V + E)) nonzeros, V times as many when augmented. Source: paper 004, (12)-(19) and
    Algorithm 2, line 4; Rost and Schmid, IFIP Networking 2018, Formulation 2.
    """
    name = "augmented" if augmented else "mcf"
    build = _Relaxation(instance, f"g_vne_{name}", "(12), relaxed")
    data, out = build.data, build.layout
    for j, job in enumerate(build.jobs):
        hosts = np.flatnonzero(data.eligible[j]).tolist()
        some: list[Term] = []
        for k in [k for k in range(1, int(data.longest[j]) + 1) if data.utility[j, k] > 0 and hosts]:
            for root in hosts if augmented else [None]:
                at = "any" if root is None else build.nodes[root]
                chi = build.share(job, k, at, family="ring")
                some.append((chi, 1.0))
                build.worth.append((chi, float(data.utility[j, k])))
                places: list[dict[int, pulp.LpVariable]] = []
                for a in range(k):
                    allowed = hosts if root is None or a else [root]
                    place = {u: build.share(job, k, at, a, build.nodes[u], family="place") for u in allowed}
                    for u, variable in place.items():
                        build.load(j, u, variable)
                    out.row("placed", (job, k, at, a), [*((v, 1.0) for v in place.values()), (chi, -1.0)], "==", 0)
                    places.append(place)
                for a in range(k if k > 1 else 0):
                    _edge(build, j, (job, k, at, a), places[a], places[(a + 1) % k])
        if some:
            out.row("one_ring", (job,), some, "<=", 1)
    build.close(whole=False)
    return DeclarativeModel(out.problem, lambda _: {}, MAXIMISE, layout=out, tightened=False, abstract=True)


def _edge(
    build: _Relaxation,
    j: int,
    key: tuple[str | int, ...],
    here: Mapping[int, pulp.LpVariable],
    there: Mapping[int, pulp.LpVariable],
) -> None:
    """Rows (15) of one ring edge."""
    data, nodes = build.data, build.nodes
    balance: dict[int, list[Term]] = defaultdict(list)
    for e in range(data.links):
        tail, head = int(data.tail[e]), int(data.head[e])
        theta = build.share(*key, nodes[tail], nodes[head], family="route")
        balance[tail].append((theta, 1.0))
        balance[head].append((theta, -1.0))
        build.use(j, e, theta)
    for u, variable in here.items():
        balance[u].append((variable, -1.0))
    for u, variable in there.items():
        balance[u].append((variable, 1.0))
    for u, terms in balance.items():
        build.layout.row("flow", (*key, nodes[u]), terms, "==", 0)


def build_columns(instance: GVneInstance, *, relaxed: bool = False, limit: int = LIMIT) -> DeclarativeModel:
    """(12) over enumerated rings that respect the job's own caps, workers of a server next to each other.

    Contiguous workers and simple routes lose nothing (servers relay), so the integer program has the optimum; its
    linear relaxation is the capped bound of `colgen`, which feels the links. Raises ModelRefused: there are more than
    `limit` rings.

    Parameters
    ----------
    instance : a tiny instance
    relaxed : the linear relaxation
    limit : most rings
    """
    build = _Relaxation(instance, "g_vne_columns", "(12), the sum of the rings' utilities")
    data, out = build.data, build.layout
    rings: dict[tuple[str, int], tuple[list[int], list[Path]]] = {}
    for j, job in enumerate(build.jobs):
        some: list[Term] = []
        for number, (workers, routes) in enumerate(_rings(build, j), start=1):
            if len(rings) >= limit:
                raise ModelRefused(f"columns: more than {limit} rings")
            chosen = out.variable("choose", job, number, integer=not relaxed)
            rings[job, number] = workers, routes
            some.append((chosen, 1.0))
            build.worth.append((chosen, float(data.utility[j, len(workers)])))
            for u, count in Counter(workers).items():
                build.load(j, u, chosen, count)
            for pair, often in Counter(pair for route in routes for pair in itertools.pairwise(route)).items():
                build.use(j, instance.link_index[pair], chosen, often)
        if some:
            out.row("one_ring", (job,), some, "<=", 1)
    build.close(whole=True)

    def extract(value: Callable[[pulp.LpVariable], float]) -> Solution:
        found = {}
        for (job, number), (workers, routes) in rings.items():
            if value(out.variables["choose"][job, number]) > 0.5:
                found[job] = {
                    "workers": [build.nodes[u] for u in workers],
                    "routes": [[build.nodes[u] for u in route] for route in routes],
                }
        return {"rings": found}

    return DeclarativeModel(out.problem, extract, MAXIMISE, layout=out, abstract=relaxed, info={"rings": len(rings)})


def _rings(build: _Relaxation, j: int) -> Iterator[tuple[list[int], list[Path]]]:
    """Every ring of contiguous workers that fits alone: hosts in cyclic order from the first, then routes."""
    data = build.data
    hosts = np.flatnonzero(data.eligible[j]).tolist()
    paths = _simple_paths(data, j)
    worth = set(sizes(data, j))
    for n in range(1, len(hosts) + 1):
        for chosen in itertools.permutations(hosts, n):
            if chosen[0] != min(chosen):
                continue
            ends = [(chosen[i], chosen[(i + 1) % n]) for i in range(n)] if n > 1 else []
            for counts in itertools.product(*(range(1, int(data.cap[j, u]) + 1) for u in chosen)):
                if sum(counts) not in worth:
                    continue
                workers = [u for u, count in zip(chosen, counts, strict=True) for _ in range(count)]
                for ways in itertools.product(*(paths.get(pair, []) for pair in ends)):
                    yield workers, _routes(chosen, counts, ways)


def _routes(chosen: Sequence[int], counts: Sequence[int], ways: Sequence[Path]) -> list[Path]:
    """A route for every ring edge: within a server, then to the next one."""
    if sum(counts) == 1:
        return []
    routes: list[Path] = []
    for place, (u, count) in enumerate(zip(chosen, counts, strict=True)):
        routes += [[u]] * (count - 1)
        routes.append(ways[place] if ways else [u])
    return routes


def _simple_paths(data: NetworkTables, j: int) -> dict[tuple[int, int], list[Path]]:
    """All simple paths between hosts over links that are wide enough for the job."""
    import networkx

    wide = np.flatnonzero(data.wide[j])
    graph = networkx.DiGraph(zip(data.tail[wide].tolist(), data.head[wide].tolist(), strict=True))
    hosts = [u for u in np.flatnonzero(data.eligible[j]).tolist() if u in graph]
    return {(u, v): list(networkx.all_simple_paths(graph, u, v)) for u, v in itertools.permutations(hosts, 2)}
