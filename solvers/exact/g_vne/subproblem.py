"""Rings of g-vne as columns: rows of the master, pricing at its duals, rules of a search node.

Idea: at duals of servers and links the best ring of a job is a cheapest closed walk through hosts with a number of
workers on each. Source: column generation for the program of Rost and Schmid (2018). Guarantee: pricing is exact, so
the best reduced cost makes a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import Forest, NetworkTables, tables
from schedgap.formulations.g_vne.substrate import common_step, reachable_limit
from schedgap.solvers.column_generation import Column, Master, Priced, RowBounds
from schedgap.solvers.exact.g_vne.graph_pricing import GraphPricing, Walk
from schedgap.solvers.exact.g_vne.node_rules import Rules
from schedgap.solvers.exact.g_vne.own_rows import OwnRows
from schedgap.solvers.exact.g_vne.server_cuts import Cut, clique, most_violated
from schedgap.solvers.exact.g_vne.tree_pricing import Tree, TreePrices, price_tree, split_links

TOLERANCE = float(CHECK_TOLERANCE)


_ALL = np.array([-np.inf])


@dataclass(frozen=True)
class Embedding:
    """A ring of one job."""

    job: int  # its index
    # hosts, counts: servers in the order of the ring, and how many consecutive workers each holds
    hosts: tuple[int, ...]
    counts: tuple[int, ...]
    # links from each host to the next, around; empty for one host, None on a forest, where they are unique
    paths: tuple[tuple[int, ...], ...] | None

    @property
    def size(self) -> int:
        """Workers."""
        return sum(self.counts)


class RingSubproblem:
    """All rings of an instance, as columns of a master.

    Parameters
    ----------
    capped : rings keep the job's own cap on every server and use no link that is too narrow for one edge of theirs;
        otherwise they are what the augmented LP mixes: any number of workers on a server where one fits
    sizes : (J,) the only ring size of each job, 0 for a job without one; None allows all
    linked : otherwise links are free and join everything: rings are sets of workers, for bounds only
    user_rows : rows and worth of a user's own

    Notes
    -----
    Rows that no choice of one ring per job can fill are left out. Row limits have the checker's tolerance of 1e-9
    where whole workers and ring edges need it, so that a bound on the master is one on everything the checker accepts.
    """

    def __init__(
        self,
        instance: GVneInstance,
        *,
        capped: bool = True,
        sizes: Ints | None = None,
        linked: bool = True,
        user_rows: OwnRows | None = None,
    ) -> None:
        self.instance = instance
        self.user_rows = user_rows
        self.data: NetworkTables = tables(instance)
        self.capped = capped
        data = self.data
        self.cap = data.cap if capped else np.where(data.eligible, data.longest[:, None], 0)
        self.wide = data.wide if capped else np.ones_like(data.wide)
        self.linked = linked
        self.forest = data.forest if linked else _star(data.nodes)
        self.worth = data.utility.copy()
        if user_rows is not None and user_rows.worth is not None:
            self.worth = np.where(np.isfinite(data.utility), user_rows.worth, -np.inf)
        if sizes is not None:
            keep = np.arange(self.worth.shape[1])[None, :] == sizes[:, None]
            self.worth = np.where(keep, self.worth, -np.inf)
        self.worth[:, 0] = -np.inf  # leaving a job out is no column
        self.longest = np.where(np.isfinite(self.worth).any(axis=1), data.longest, 0)
        self.free_rules = Rules(self.cap, np.zeros(data.jobs, dtype=bool))
        self.cuts: list[Cut] = []
        self._cuts_of: dict[int, list[int]] = {}
        self._make_rows()
        self.graph = None if self.forest is not None else GraphPricing(data, self.wide)

    def _make_rows(self) -> None:
        data = self.data
        rows: list[RowBounds] = []
        self.node_row = np.full(data.capacity.shape, -1, dtype=np.int64)
        heaviest = np.where(data.eligible, self.longest[:, None], 0).T @ data.demand
        steps = [common_step(data.demand[:, r].tolist()) for r in range(data.demand.shape[1])]
        for v, r in zip(*np.nonzero(heaviest > data.capacity), strict=True):
            self.node_row[v, r] = len(rows)
            rows.append(RowBounds(upper=reachable_limit(float(data.capacity[v, r]), steps[r])))
        edge = common_step(data.job_bandwidth.tolist())
        several = np.where(self.longest >= 2, data.job_bandwidth, 0.0)
        if self.forest is not None:
            self.link_row = np.full(data.nodes, -1, dtype=np.int64)
            up, down = self.forest.up, self.forest.down
            both = (up >= 0) & (down >= 0)
            several = several if self.linked else np.zeros(data.jobs)
            self.edge_capacity = np.zeros(data.nodes)
            if self.linked:
                self.edge_capacity[both] = np.minimum(data.bandwidth[up[both]], data.bandwidth[down[both]])
            # a ring crosses a tree link at most once each way
            for v in np.flatnonzero(both & (several.sum() > self.edge_capacity)):
                self.link_row[v] = len(rows)
                rows.append(RowBounds(upper=reachable_limit(float(self.edge_capacity[v]), edge)))
            self.passable = np.zeros((data.jobs, data.nodes), dtype=bool)
            self.passable[:, both] = self.wide[:, up[both]] & self.wide[:, down[both]] if self.linked else True
            order, parent = self.forest.order, self.forest.parent
            counts = np.bincount(parent[parent >= 0], minlength=data.nodes)
            first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            inner = order[parent[order] >= 0]
            self.tree = Tree(order, parent, first, inner[np.argsort(parent[inner], kind="stable")])
        else:
            self.link_row = np.full(len(data.tail), -1, dtype=np.int64)
            most = float((several * self.longest).sum())
            for e in np.flatnonzero(most > data.bandwidth):
                self.link_row[e] = len(rows)
                rows.append(RowBounds(upper=reachable_limit(float(data.bandwidth[e]), edge)))
        self.first_own = len(rows)
        if self.user_rows is not None:
            rows += [RowBounds(upper=float(limit)) for limit in self.user_rows.upper]
        self.rows = rows
        self.first_cut = len(rows)

    # -- columns ------------------------------------------------------------------------------------------------

    def column(self, ring: Embedding) -> Column:
        """The ring as a column of the master."""
        data = self.data
        load: dict[int, float] = {}
        demand = data.demand[ring.job]
        for host, count in zip(ring.hosts, ring.counts, strict=True):
            for r in np.flatnonzero(demand):
                row = int(self.node_row[host, r])
                if row >= 0:
                    load[row] = load.get(row, 0.0) + count * float(demand[r])
            for number in self._cuts_of.get(host, ()):
                share = float(self.cuts[number].share[ring.job, count])
                if share:
                    row = self.first_cut + number
                    load[row] = load.get(row, 0.0) + share
        width = float(data.job_bandwidth[ring.job])
        if width > 0 and len(ring.hosts) > 1:
            for place in self.links_used(ring):
                row = int(self.link_row[place])
                if row >= 0:
                    load[row] = load.get(row, 0.0) + width
        worth = float(self.worth[ring.job, ring.size])
        if self.user_rows is not None:
            entries, extra = self.user_rows.entries(ring.job, ring.hosts, ring.counts)
            load |= {self.first_own + int(n): float(entries[n]) for n in np.flatnonzero(entries)}
            worth += extra
        rows = np.array(sorted(load), dtype=np.int64)
        values = np.array([load[int(row)] for row in rows], dtype=float)
        return Column(ring.job, worth, rows, values, ring)

    def separate(self, columns: Sequence[Column], weights: Floats) -> int:
        """Add the cuts that a solution of the master breaks as rows of the subproblem; how many.

        Columns made before lack their entries: make them anew with :meth:`column`.
        """
        data = self.data
        sizes = self.worth.shape[1] - 1
        used: dict[int, Floats] = {}
        for place in np.flatnonzero(weights > 1e-9).tolist():
            ring: Embedding = columns[place].payload
            for host, count in zip(ring.hosts, ring.counts, strict=True):
                used.setdefault(host, np.zeros((data.jobs, sizes + 1)))[ring.job, count] += weights[place]
        fresh: list[Cut] = []
        for host, own in sorted(used.items()):
            for r in np.flatnonzero(self.node_row[host] >= 0).tolist():
                limit = self.rows[int(self.node_row[host, r])].upper
                cut = most_violated(host, limit, data.demand[:, r], sizes, own)
                if cut is not None:
                    fresh.append(cut)
            limits = np.where(data.capacity[host] > 0, data.capacity[host] * (1 + TOLERANCE), 0.0)
            together = clique(host, limits, data.demand, own)
            if together is not None:
                fresh.append(together)
        for cut in fresh:
            self._cuts_of.setdefault(cut.server, []).append(len(self.cuts))
            self.cuts.append(cut)
            self.rows.append(RowBounds(upper=float(cut.limit)))
        return len(fresh)

    def links_used(self, ring: Embedding) -> list[int]:
        """Every use of a link (of a tree link, by its lower node) by a ring."""
        if self.forest is not None:
            hosts, counts = np.array(ring.hosts, dtype=np.int64), np.array(ring.counts, dtype=np.int64)
            found: list[int] = split_links(self.forest.parent, hosts, counts).tolist()
            return found
        return [e for path in ring.paths or () for e in path]

    def solution(self, rings: Sequence[Embedding]) -> Solution:
        """The bare solution object of the chosen rings."""
        names = [server.id for server in self.instance.servers]
        result = {}
        for ring in rings:
            workers = [names[h] for h, count in zip(ring.hosts, ring.counts, strict=True) for _ in range(count)]
            routes: list[list[str]] = []
            if len(workers) > 1:
                for place, (host, count) in enumerate(zip(ring.hosts, ring.counts, strict=True)):
                    routes.extend([[names[host]]] * (count - 1))
                    after = ring.hosts[(place + 1) % len(ring.hosts)]
                    routes.append([names[v] for v in self._nodes_between(ring, place, host, after)])
            result[self.instance.jobs[ring.job].id] = {"workers": workers, "routes": routes}
        return {"rings": result}

    def _nodes_between(self, ring: Embedding, place: int, host: int, after: int) -> list[int]:
        if host == after:
            return [host]
        if self.forest is not None:
            return self.forest.path(host, after)
        assert ring.paths is not None
        return [host, *(int(self.data.head[e]) for e in ring.paths[place])]

    # -- pricing ------------------------------------------------------------------------------------------------

    def prices(self, duals: Floats, rules: Rules) -> tuple[Floats, Floats]:
        """(J, V, K + 1) cost of workers on a node, and the links' duals ((V,) of tree links, else (E,))."""
        padded = np.append(duals, 0.0)  # row -1: no row, no price
        node = self.data.demand @ padded[self.node_row].T
        for number, (job, host, _) in enumerate(rules.at_least):
            node[job, host] += duals[len(self.rows) + number]
        cost = node[:, :, None] * np.arange(self.worth.shape[1])
        for number in np.flatnonzero(duals[self.first_cut : len(self.rows)]).tolist():
            cut = self.cuts[number]
            cost[:, cut.server] += duals[self.first_cut + number] * cut.share
        return cost, padded[self.link_row]

    def master(self) -> Master:
        """A restricted master of the capacities without columns."""
        return Master(MAXIMISE, self.rows, [False] * self.data.jobs)

    def price_all(self, duals: Floats, weight: float, rules: Rules | None = None) -> Priced:
        """The best ring of every job and size at the duals.

        Parameters
        ----------
        duals : dual of each row of `rows`, then of the rules' own rows
        weight : factor on the utilities
        rules : rules that the rings keep; None allows all
        """
        rules = self.free_rules if rules is None else rules
        node, link, worth, longest = self._priced(duals, weight, rules)
        if self.forest is not None:
            return self._price_tree(node, link, worth, longest, rules)
        assert self.graph is not None
        best, walks = self.graph.price_all(node, link, worth, longest, rules)
        return Priced(best, [self.column(_of_walk(walk)) for walk in walks])

    def best_values(self, duals: Floats) -> Floats:
        """(J,) value of each job's best ring at the duals, on a forest."""
        values = self._tree_values(*self._priced(duals, 1.0, self.free_rules), self.free_rules)[0][0]
        return np.asarray(values[:, 1:].max(axis=1))

    def _priced(self, duals: Floats, weight: float, rules: Rules) -> tuple[Floats, Floats, Floats, Ints]:
        """Prices of nodes and links, and what rings of each size are worth and the largest one, under rules."""
        node, link = self.prices(duals, rules)
        worth = np.where(np.isfinite(self.worth), weight * np.where(np.isfinite(self.worth), self.worth, 0.0), -np.inf)
        if self.user_rows is not None:
            charges = duals[self.first_own : self.first_cut]
            node = node + self.user_rows.worker_prices(charges, weight)[:, :, None] * np.arange(self.worth.shape[1])
            worth = worth - self.user_rows.ring_prices(charges)
        worth[rules.out] = -np.inf
        return node, link, worth, np.where(rules.out, 0, self.longest)

    def _tree_values(
        self, node: Floats, link: Floats, worth: Floats, longest: Ints, rules: Rules
    ) -> tuple[tuple[Floats, Ints, Ints], Floats]:
        """Values, hosts and counts; and (J,) the values up to which a job's rings are of no use."""
        price = np.where(self.passable, self.data.job_bandwidth[:, None] * link[None, :], np.inf)
        # a ring that is worth nothing at the prices improves no master, unless its job has to be embedded
        least = np.zeros(self.data.jobs)
        least[list(rules.must)] = -np.inf
        prices = TreePrices(node, price, rules.cap, longest, worth, least)
        cost, hosts, counts = price_tree(self.tree, prices)
        return (worth - cost, hosts, counts), least

    def _price_tree(self, node: Floats, link: Floats, worth: Floats, longest: Ints, rules: Rules) -> Priced:
        (value, hosts, counts), least = self._tree_values(node, link, worth, longest, rules)
        best = value[:, 1:].max(axis=1)
        pairs = zip(*np.nonzero(value > least[:, None]), strict=True)
        columns = [self._tree_column(j, hosts[j, k], counts[j, k]) for j, k in pairs]
        return Priced(best, columns)

    def best_fitting(self, j: int, left: Floats, duals: Floats) -> Column | None:
        """The best ring of one job at the duals among those whose hosts and links have room for it.

        Parameters
        ----------
        left : (rows,) what the other rings leave
        duals : (rows,) prices of what is left

        Returns
        -------
        None where there is none. A ring that uses a link twice may still not fit.
        """
        data = self.data
        demand = data.demand[j]
        room = np.append(left, np.inf)
        cap = self.cap[j]
        for r in np.flatnonzero(demand):
            cap = np.minimum(cap, np.maximum(0.0, room[self.node_row[:, r]] / demand[r] + 1e-9)).astype(np.int64)
        padded = np.append(duals, 0.0)
        node = (padded[self.node_row] @ demand)[:, None] * np.arange(self.worth.shape[1])
        width = float(data.job_bandwidth[j])
        free = room[self.link_row] >= width * (1 - 1e-12)
        link = padded[self.link_row]
        if self.forest is None:
            assert self.graph is not None
            walk = self.graph.price_one(j, node, np.where(free, link, np.inf), self.worth[j], int(self.longest[j]), cap)
            return None if walk is None or walk.overfilled else self.column(_of_walk(walk))
        price = np.where(self.passable[j] & free, width * link, np.inf)
        worth = self.worth[j : j + 1]
        longest = self.longest[j : j + 1]
        cost, hosts, counts = price_tree(
            self.tree, TreePrices(node[None, :], price[None, :], cap[None, :], longest, worth, _ALL)
        )
        value = worth[0] - cost[0]
        k = int(np.argmax(value))
        return None if not np.isfinite(value[k]) else self._tree_column(j, hosts[0, k], counts[0, k])

    def _tree_column(self, j: int, hosts: Ints, counts: Ints) -> Column:
        assert self.forest is not None
        used = hosts >= 0
        order = np.argsort(self.forest.place[hosts[used]])
        chosen, workers = hosts[used][order].tolist(), counts[used][order].tolist()
        return self.column(Embedding(int(j), tuple(chosen), tuple(workers), None))

    def rows_of(self, rules: Rules) -> list[RowBounds]:
        """The rows of a master for these rules: the capacities, then the rules' own."""
        return [*self.rows, *(RowBounds(lower=float(least)) for _, _, least in rules.at_least)]

    def ruled(self, column: Column, rules: Rules) -> Column:
        """The column with its entries in the rules' own rows."""
        ring: Embedding = column.payload
        rows, values = [], []
        for number, (job, host, _) in enumerate(rules.at_least):
            if job == ring.job and host in ring.hosts:
                rows.append(len(self.rows) + number)
                values.append(float(sum(n for h, n in zip(ring.hosts, ring.counts, strict=True) if h == host)))
        if not rows:
            return column
        return replace(
            column,
            rows=np.concatenate([column.rows, np.array(rows, dtype=np.int64)]),
            values=np.concatenate([column.values, np.array(values)]),
        )


def _star(nodes: int) -> Forest:
    """All nodes below the first one."""
    parent = np.zeros(nodes, dtype=np.int64)
    parent[0] = -1
    return Forest(np.arange(nodes), parent, parent, parent)


def _of_walk(walk: Walk) -> Embedding:
    return Embedding(walk.job, walk.hosts, walk.counts, walk.paths)
