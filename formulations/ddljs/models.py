"""The program of ddljs over slots (paper 004, (2)-(6), (10), (11); form `slots`).

For job i, slot t and a region of the network (nodes that reach each other over links wide enough for one ring edge),
with hosts u, links e and H = min(N_i, hosts):

- ``workers[i,t,u]`` and ``host[i,t,u]`` = 1 where there are any: the paper's y and x, (5);
- ``uses[i,t,u,v]`` how often the ring uses a link, a circulation: in = out at every node;
- the circulation has to join the hosts: a root sends one unit to every host over used links,
  ``out - in = sent - host``, ``sent <= H root``, ``reached <= (H - 1) uses``.

A ring with all workers of a server next to each other is a closed walk through its hosts, and any connected circulation
through them is one (see :mod:`.closed_walks`). This stands in for (7)-(9), which count paths between servers and cannot
say that the paths form one ring: two rings of two servers each satisfy (9). Rings of one worker, and the only host of a
job, need ``workers`` only.

Over slots, untightened: ``total[i,n]`` = 1 for the worker-slots of the job, worth mu_i(n). Tightened: worker-slots are
filled with pieces of the utility's table; concave tables need no binaries, a run of pieces after which slopes rise has
to be full before the next counts; and links are used at most H times. With uses, host, root and workers fixed, reached,
sent and the pieces have whole-number solutions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, Value, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.ddljs.closed_walks import Arc, contiguous, ring_of, uses_of
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.reach import Reach, Region, reaches
from schedgap.formulations.ddljs.utility import utility
from schedgap.formulations.ddljs.utility_tables import resolution, table
from schedgap.formulations.g_vne.substrate import common_step, most_multiples, row_limit

VARIABLES = {
    "workers": VariableFamily("job, slot, node", "y_is[t]: workers of the job on the server", decision=True),
    "host": VariableFamily("job, slot, node", "x_is[t]: 1 where it has any there"),
    "uses": VariableFamily("job, slot, from, to", "how often its ring uses the link", at_least=True),
    "root": VariableFamily("job, slot, node", "1 for a host from which the others are reached", free=True),
    "sent": VariableFamily("job, slot, node", "units that the root sends", free=True),
    "reached": VariableFamily("job, slot, from, to", "units that go over the link", free=True),
    "total": VariableFamily("job, worker-slots", "1 for its worker-slots over the horizon"),
    "piece": VariableFamily("job, run, piece", "worker-slots in a piece of its utility's table"),
    "full": VariableFamily("job, run", "1 where all runs of pieces before are full"),
}
ROWS = {
    "ring": RowFamily("(2)", "sum_s workers[i,t,s] <= N_i"),
    "one_size": RowFamily("(3)", "sum_n total[i,n] = 1: (3) and (11) leave worker-slots up to the budget"),
    "work": RowFamily("(10)", "sum_ts workers[i,t,s] = its worker-slots"),
    "server": RowFamily("(4)", "sum of demand workers <= capacity of the server, by resource"),
    "used": RowFamily("(5)", "workers <= min(N_i, what fits) host"),
    "some": RowFamily("(5)", "workers >= host"),
    "one": RowFamily("", "one ring at most, in one region of the network"),
    "turn": RowFamily("", "for (9): as much into a node as out of it"),
    "root": RowFamily("", "for (9): the root is a host"),
    "send": RowFamily("", "for (9): only the root sends"),
    "over": RowFamily("", "for (9): units go over used links"),
    "join": RowFamily("", "for (9): every host takes a unit"),
    "link": RowFamily("(8)", "sum of bandwidth uses <= bandwidth of the link"),
    "piece": RowFamily("", "a run counts when the ones before are full"),
}


def ilp_nonzeros(instance: DdljsInstance) -> int:
    """Nonzeros of the model's rows, estimated before anything is built; O(J V)."""
    total = 0
    for job, reach in zip(instance.jobs, reaches(instance), strict=True):
        slots = instance.horizon - job.arrival + 1
        per_slot = 0
        for region in reach.regions:
            hosts = len(region.hosts)
            per_slot += hosts * (3 + len(job.demand)) if hosts == 1 else 14 * hosts + 8 * len(region.links)
        total += slots * per_slot + 2 * reach.max_work
    return total


class _Slots:
    """Collects variables and rows job by job."""

    def __init__(self, instance: DdljsInstance, tighten: bool) -> None:
        self.instance = instance
        self.tighten = tighten
        self.jobs = [job.id for job in instance.jobs]
        self.nodes = [server.id for server in instance.servers]
        self.layout = Layout(
            pulp.LpProblem("ddljs", pulp.LpMaximize),
            VARIABLES,
            ROWS,
            "the sum of mu_i over all jobs",
            {"job": self.jobs, "node": self.nodes, "slot": range(1, instance.horizon + 1)},
        )
        self.unit = resolution(instance)
        where = instance.server_index
        self.arcs: list[Arc] = [(where[link.source], where[link.target]) for link in instance.links]
        self.workers: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.hosts: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.roots: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.sent: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.uses: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.reached: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.pieces: dict[int, list[list[tuple[pulp.LpVariable, int]]]] = {}
        self.full: dict[int, list[pulp.LpVariable]] = {}
        self.server_load: dict[tuple[int, int, str], list[Term]] = defaultdict(list)
        self.link_load: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.objective: list[Term] = []
        self.constant = 0.0

    def job(self, i: int, reach: Reach) -> None:
        job = self.instance.jobs[i]
        work: list[Term] = []
        if reach.max_work:
            for t in range(job.arrival, self.instance.horizon + 1):
                work.extend(self.slot(i, t, reach))
        if self.tighten:
            self.utility(i, reach, work)
        else:
            self.totals(i, reach, work)

    def slot(self, i: int, t: int, reach: Reach) -> list[Term]:
        """One ring or none in a slot; its workers as terms."""
        job, caps = self.instance.jobs[i], self.instance.caps[i]
        out, name = self.layout, self.jobs[i]
        ring = min(reach.ring, reach.max_work)
        every: list[Term] = []
        single: list[Term] = []
        for region in reach.regions:
            most = min(ring, sum(caps[u] for u in region.hosts))
            here: list[Term] = []
            for u in region.hosts:
                cap = min(caps[u], ring)
                y = out.variable("workers", name, t, self.nodes[u], high=cap)
                self.workers[i, t, u] = y
                here.append((y, 1.0))
                for kind, amount in job.demand.items():
                    if amount:
                        self.server_load[t, u, kind].append((y, amount))
            every.extend(here)
            if ring == 1 or len(reach.regions) == len(region.hosts) == 1:
                continue
            for u in region.hosts:
                x = out.variable("host", name, t, self.nodes[u])
                self.hosts[i, t, u] = x
                y = self.workers[i, t, u]
                out.row("used", (name, t, self.nodes[u]), [(y, 1.0), (x, -float(min(caps[u], ring)))], "<=", 0)
                out.row("some", (name, t, self.nodes[u]), [(y, 1.0), (x, -1.0)], ">=", 0)
            if len(region.hosts) > 1:
                single.extend(self.circulation(i, t, region, min(ring, len(region.hosts)), ring))
                out.row("ring", (name, t, self.nodes[region.hosts[0]]), here, "<=", most)
            else:
                single.append((self.hosts[i, t, region.hosts[0]], 1.0))
        if ring == 1:
            out.row("ring", (name, t), every, "<=", 1)
        elif single:  # one region, and in it one root
            out.row("one", (name, t), single, "<=", 1)
        return every

    def circulation(self, i: int, t: int, region: Region, joined: int, ring: int) -> list[Term]:
        """The links of a ring in a region with several hosts, `joined` of them at most; its roots as terms."""
        job, out, name, nodes = self.instance.jobs[i], self.layout, self.jobs[i], self.nodes
        often = joined if self.tighten else ring  # a ring with its workers together needs no link more often
        into: dict[int, list[Term]] = defaultdict(list)
        reached_into: dict[int, list[Term]] = defaultdict(list)
        for e in region.links:
            u, v = self.arcs[e]
            room = most_multiples(self.instance.links[e].bandwidth, job.bandwidth)
            f = out.variable("uses", name, t, nodes[u], nodes[v], high=often if room is None else min(room, often))
            self.uses[i, t, e] = f
            into[v].append((f, 1.0))
            into[u].append((f, -1.0))
            if job.bandwidth:
                self.link_load[t, e].append((f, job.bandwidth))
            g = out.variable("reached", name, t, nodes[u], nodes[v], high=(joined - 1) * often, integer=False)
            self.reached[i, t, e] = g
            reached_into[v].append((g, 1.0))
            reached_into[u].append((g, -1.0))
            out.row("over", (name, t, nodes[u], nodes[v]), [(g, 1.0), (f, 1.0 - joined)], "<=", 0)
        roots: list[Term] = []
        for u in region.hosts:
            x = self.hosts[i, t, u]
            r = out.variable("root", name, t, nodes[u])
            s = out.variable("sent", name, t, nodes[u], high=joined, integer=False)
            self.roots[i, t, u], self.sent[i, t, u] = r, s
            roots.append((r, 1.0))
            out.row("root", (name, t, nodes[u]), [(r, 1.0), (x, -1.0)], "<=", 0)
            out.row("send", (name, t, nodes[u]), [(s, 1.0), (r, -float(joined))], "<=", 0)
            reached_into[u].extend([(s, 1.0), (x, -1.0)])
        for u in region.nodes:
            if into[u]:
                out.row("turn", (name, t, nodes[u]), into[u], "==", 0)
            if reached_into[u]:
                out.row("join", (name, t, nodes[u]), reached_into[u], "==", 0)
        return roots

    def utility(self, i: int, reach: Reach, work: list[Term]) -> None:
        """The table of mu_i, filled by worker-slots."""
        made = table(self.instance.jobs[i], reach.max_work, self.unit)
        out, name = self.layout, self.jobs[i]
        self.constant += made.start
        runs: list[list[tuple[pulp.LpVariable, int]]] = []
        gates: list[pulp.LpVariable] = []
        filled: list[Term] = []
        for k, run in enumerate(made.runs):
            runs.append([])
            if k:
                gate = out.variable("full", name, k)
                gates.append(gate)
                for before, length in runs[k - 1]:
                    out.numbered("piece", [(before, 1.0), (gate, -float(length))], ">=", 0)
            for n, piece in enumerate(run):
                z = out.variable("piece", name, k, n, high=piece.length, integer=False)
                runs[k].append((z, piece.length))
                filled.append((z, -1.0))
                self.objective.append((z, piece.slope))
                if k:
                    out.numbered("piece", [(z, 1.0), (gates[-1], -float(piece.length))], "<=", 0)
        self.pieces[i], self.full[i] = runs, gates
        if filled:
            out.row("work", (name,), work + filled, "==", 0)
        elif work:  # worth nothing, but the budget holds
            out.row("work", (name,), work, "<=", reach.max_work)

    def totals(self, i: int, reach: Reach, work: list[Term]) -> None:
        """One total for a job, and what it is worth, rounded up to the unit."""
        job, out, name = self.instance.jobs[i], self.layout, self.jobs[i]
        worth = np.ceil(utility(job, np.arange(reach.max_work + 1)) / self.unit * (1 - 1e-15))
        every = [out.variable("total", name, n) for n in range(reach.max_work + 1)]
        self.objective += [(v, float(f"{u * self.unit:.15g}")) for v, u in zip(every, worth.tolist(), strict=True)]
        out.row("one_size", (name,), [(v, 1.0) for v in every], "==", 1)
        out.row("work", (name,), [*work, *((v, -float(n)) for n, v in enumerate(every) if n)], "==", 0)

    def close(self) -> None:
        jobs = self.instance.jobs
        wanted = {name for job in jobs for name in job.demand}
        steps = {name: common_step(job.demand.get(name, 0.0) for job in jobs) for name in wanted}
        for (t, u, name), terms in self.server_load.items():
            capacity = self.instance.servers[u].resources.get(name, 0.0)
            if self.binds(terms, capacity):
                self.layout.row("server", (t, self.nodes[u], name), terms, "<=", row_limit(capacity, steps[name]))
        edge = common_step(job.bandwidth for job in jobs)
        for (t, e), terms in self.link_load.items():
            capacity = self.instance.links[e].bandwidth
            if self.binds(terms, capacity):
                u, v = self.arcs[e]
                self.layout.row("link", (t, self.nodes[u], self.nodes[v]), terms, "<=", row_limit(capacity, edge))
        self.layout.objective(self.objective, constant=self.constant)

    @staticmethod
    def binds(terms: list[Term], there: float) -> bool:
        """Whether a capacity row can be broken within the bounds of its variables."""
        return bool(sum(variable.upBound * amount for variable, amount in terms) > there)


def build_ilp(instance: DdljsInstance, tighten: bool = True) -> DeclarativeModel:
    """The program of the whole horizon.

    Marginal utilities are rounded up to 13 digits of the largest possible total, so that engines for integers can
    scale them; a bound stays valid, and solutions are scored by the checker.

    Complexity: O(T J (V + E) + sum B) nonzeros, see :func:`ilp_nonzeros`. Source: paper 004, section IV, (12)-(19).
    """
    builder = _Slots(instance, tighten)
    for i, reach in enumerate(reaches(instance)):
        builder.job(i, reach)
    builder.close()
    whole = [*builder.sent.values(), *builder.reached.values()]
    whole += [z for runs in builder.pieces.values() for run in runs for z, _ in run]
    return DeclarativeModel(
        problem=builder.layout.problem,
        extract=lambda value: _solution(builder, value),
        sense=MAXIMISE,
        assign=lambda solution: _assignment(builder, solution),
        restated_integral=frozenset(variable.name for variable in whole),
        resolution=builder.unit * sum(max(1, reach.max_work) for reach in reaches(instance)),
        layout=builder.layout,
        tightened=tighten,
    )


def _solution(builder: _Slots, value: Value) -> Solution:
    instance = builder.instance
    names = [server.id for server in instance.servers]
    workers: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    uses: dict[tuple[int, int], dict[Arc, int]] = defaultdict(dict)
    for (i, t, u), variable in builder.workers.items():
        count = round(value(variable))
        if count > 0:
            workers[t, i][u] = count
    for (i, t, e), variable in builder.uses.items():
        count = round(value(variable))
        if count > 0:
            uses[t, i][builder.arcs[e]] = count
    slots: list[dict[str, dict[str, object]]] = [{"rings": {}} for _ in range(instance.horizon)]
    for t, i in sorted(workers):
        hosts, routes = ring_of(workers[t, i], uses.get((t, i), {}))
        slots[t - 1]["rings"][instance.jobs[i].id] = {
            "workers": [names[u] for u in hosts],
            "routes": [[names[u] for u in route] for route in routes],
        }
    return {"slots": slots}


def _assignment(builder: _Slots, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Variable values of a feasible solution, each ring with its workers put together server by server."""
    instance = builder.instance
    where = instance.server_index
    arc_number = {arc: e for e, arc in enumerate(builder.arcs)}
    values: dict[pulp.LpVariable, float] = dict.fromkeys(builder.layout.family_of, 0.0)
    done: Counter[int] = Counter()
    for t, entry in enumerate(solution["slots"], start=1):
        for name, ring in entry["rings"].items():
            i = instance.job_index[name]
            given = [where[u] for u in ring["workers"]]
            hosts, routes = given, [[where[u] for u in route] for route in ring["routes"]]
            if builder.tighten:
                hosts, routes = contiguous(hosts, routes)
            done[i] += len(hosts)
            for u, count in Counter(hosts).items():
                values[builder.workers[i, t, u]] = float(count)
                if (i, t, u) in builder.hosts:
                    values[builder.hosts[i, t, u]] = 1.0
            if (i, t, hosts[0]) not in builder.roots:
                continue
            joined = len(set(hosts))
            values[builder.roots[i, t, hosts[0]]] = 1.0
            values[builder.sent[i, t, hosts[0]]] = float(joined)
            for arc, count in uses_of(routes).items():
                values[builder.uses[i, t, arc_number[arc]]] = float(count)
            seen = {hosts[0]}
            for route in routes:
                for arc, count in uses_of([route]).items():
                    values[builder.reached[i, t, arc_number[arc]]] += float((joined - len(seen)) * count)
                seen.add(route[-1])
    for i, name in enumerate(builder.jobs if not builder.tighten else ()):
        values[builder.layout.variables["total"][name, done[i]]] = 1.0
    for i, runs in builder.pieces.items():
        remaining = done[i]
        for k, run in enumerate(runs):
            if k and remaining > 0:
                values[builder.full[i][k - 1]] = 1.0
            for z, length in run:
                values[z] = float(min(remaining, length))
                remaining -= min(remaining, length)
    return values
