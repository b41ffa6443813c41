"""The time-indexed integer program of ddljs (paper 004, DDLJS with (12)-(19) in every slot).

For job i, slot t and a region of the network (nodes that reach each other over links wide enough for one ring edge),
with hosts u, links e and H = min(N_i, hosts):

- ``y[i,t,u]`` workers, ``x[i,t,u]`` = 1 where there are any: ``x <= y <= cap x``;
- ``f[i,t,e]`` how often the ring uses a link, a circulation: in = out at every node;
- the circulation has to join the hosts: a root ``r[i,t,u]`` sends one unit to every host over used links,
  ``out - in = s - x``, ``s <= H r``, ``g <= (H - 1) f``.

A ring with all workers of a server next to each other is a closed walk through its hosts, and any connected circulation
through them is one (see :mod:`.walk`); so this is (12)-(19) without a copy of the network for every ring size and
worker. Rings of one worker, and the only host of a job, need y only.

Over slots: worker-slots ``sum y`` are filled with pieces of the utility's table; concave tables need no binaries, a run
of pieces after which slopes rise has to be full before the next counts. With f, x, r and y fixed, g, s and the
pieces have whole-number solutions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.common.substrate import most_multiples
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.pieces import resolution, table
from schedgap.formulations.ddljs.reach import Reach, Region, reaches
from schedgap.formulations.ddljs.walk import Arc, contiguous, ring_of, uses_of

Term = tuple[pulp.LpVariable, float]
Value = Callable[[pulp.LpVariable], float]


def ilp_nonzeros(instance: DdljsInstance) -> int:
    """Nonzeros of the model's rows, estimated before anything is built; O(J V)."""
    total = 0
    for job, reach in zip(instance.jobs, reaches(instance), strict=True):
        slots = instance.horizon - job.arrival + 1
        per_slot = 0
        for region in reach.regions:
            hosts = len(region.hosts)
            per_slot += hosts * (3 + len(job.demand)) if hosts == 1 else 14 * hosts + 8 * len(region.links)
        total += slots * per_slot + 2 * reach.most
    return total


class _Builder:
    """Collects variables and rows job by job."""

    def __init__(self, instance: DdljsInstance) -> None:
        self.instance = instance
        self.problem = pulp.LpProblem("ddljs", pulp.LpMaximize)
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

    def row(self, terms: list[Term], sense: int, right: float, name: str) -> None:
        self.problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense=sense, rhs=right), name=name)

    def job(self, i: int, reach: Reach) -> None:
        job = self.instance.jobs[i]
        work: list[Term] = []
        if reach.most:
            for t in range(job.arrival, self.instance.horizon + 1):
                work.extend(self.slot(i, t, reach))
        self.utility(i, reach, work)

    def slot(self, i: int, t: int, reach: Reach) -> list[Term]:
        """One ring or none in a slot; its workers as terms."""
        job, caps = self.instance.jobs[i], self.instance.caps[i]
        ring = min(reach.ring, reach.most)
        every: list[Term] = []
        single: list[Term] = []
        for region in reach.regions:
            most = min(ring, sum(caps[u] for u in region.hosts))
            here: list[Term] = []
            for u in region.hosts:
                cap = min(caps[u], ring)
                y = pulp.LpVariable(f"y_{i}_{t}_{u}", 0, cap, cat="Integer")
                self.workers[i, t, u] = y
                here.append((y, 1.0))
                for name, amount in job.demand.items():
                    if amount:
                        self.server_load[t, u, name].append((y, amount))
            every.extend(here)
            if ring == 1 or len(reach.regions) == len(region.hosts) == 1:
                continue
            for u in region.hosts:
                x = pulp.LpVariable(f"x_{i}_{t}_{u}", cat="Binary")
                self.hosts[i, t, u] = x
                y = self.workers[i, t, u]
                self.row([(y, 1.0), (x, -float(min(caps[u], ring)))], pulp.LpConstraintLE, 0.0, f"used_{i}_{t}_{u}")
                self.row([(y, 1.0), (x, -1.0)], pulp.LpConstraintGE, 0.0, f"some_{i}_{t}_{u}")
            if len(region.hosts) > 1:
                single.extend(self.circulation(i, t, region, min(ring, len(region.hosts))))
                self.row(here, pulp.LpConstraintLE, float(most), f"ring_{i}_{t}_{region.hosts[0]}")
            else:
                single.append((self.hosts[i, t, region.hosts[0]], 1.0))
        if ring == 1:
            self.row(every, pulp.LpConstraintLE, 1.0, f"one_{i}_{t}")
        elif single:  # one region, and in it one root
            self.row(single, pulp.LpConstraintLE, 1.0, f"one_{i}_{t}")
        return every

    def circulation(self, i: int, t: int, region: Region, joined: int) -> list[Term]:
        """The links of a ring in a region with several hosts, `joined` of them at most; its roots as terms."""
        job = self.instance.jobs[i]
        into: dict[int, list[Term]] = defaultdict(list)
        reached_into: dict[int, list[Term]] = defaultdict(list)
        for e in region.links:
            u, v = self.arcs[e]
            room = most_multiples(self.instance.links[e].bandwidth, job.bandwidth)
            f = pulp.LpVariable(f"f_{i}_{t}_{e}", 0, joined if room is None else min(room, joined), cat="Integer")
            self.uses[i, t, e] = f
            into[v].append((f, 1.0))
            into[u].append((f, -1.0))
            if job.bandwidth:
                self.link_load[t, e].append((f, job.bandwidth))
            g = pulp.LpVariable(f"g_{i}_{t}_{e}", 0, (joined - 1) * joined)
            self.reached[i, t, e] = g
            reached_into[v].append((g, 1.0))
            reached_into[u].append((g, -1.0))
            self.row([(g, 1.0), (f, 1.0 - joined)], pulp.LpConstraintLE, 0.0, f"over_{i}_{t}_{e}")
        roots: list[Term] = []
        for u in region.hosts:
            x = self.hosts[i, t, u]
            r = pulp.LpVariable(f"r_{i}_{t}_{u}", cat="Binary")
            s = pulp.LpVariable(f"s_{i}_{t}_{u}", 0, joined)
            self.roots[i, t, u], self.sent[i, t, u] = r, s
            roots.append((r, 1.0))
            self.row([(r, 1.0), (x, -1.0)], pulp.LpConstraintLE, 0.0, f"root_{i}_{t}_{u}")
            self.row([(s, 1.0), (r, -float(joined))], pulp.LpConstraintLE, 0.0, f"send_{i}_{t}_{u}")
            reached_into[u].extend([(s, 1.0), (x, -1.0)])
        for u in region.nodes:
            if into[u]:
                self.row(into[u], pulp.LpConstraintEQ, 0.0, f"turn_{i}_{t}_{u}")
            if reached_into[u]:
                self.row(reached_into[u], pulp.LpConstraintEQ, 0.0, f"join_{i}_{t}_{u}")
        return roots

    def utility(self, i: int, reach: Reach, work: list[Term]) -> None:
        """The table of mu_i, filled by worker-slots."""
        made = table(self.instance.jobs[i], reach.most, self.unit)
        self.constant += made.start
        runs: list[list[tuple[pulp.LpVariable, int]]] = []
        gates: list[pulp.LpVariable] = []
        filled: list[Term] = []
        for k, run in enumerate(made.runs):
            runs.append([])
            if k:
                gate = pulp.LpVariable(f"w_{i}_{k}", cat="Binary")
                gates.append(gate)
                for n, (before, length) in enumerate(runs[k - 1]):
                    self.row([(before, 1.0), (gate, -float(length))], pulp.LpConstraintGE, 0.0, f"full_{i}_{k}_{n}")
            for n, piece in enumerate(run):
                z = pulp.LpVariable(f"z_{i}_{k}_{n}", 0, piece.length)
                runs[k].append((z, piece.length))
                filled.append((z, -1.0))
                self.objective.append((z, piece.slope))
                if k:
                    self.row(
                        [(z, 1.0), (gates[-1], -float(piece.length))], pulp.LpConstraintLE, 0.0, f"open_{i}_{k}_{n}"
                    )
        self.pieces[i], self.full[i] = runs, gates
        if filled:
            self.row(work + filled, pulp.LpConstraintEQ, 0.0, f"work_{i}")

    def close(self) -> None:
        for (t, u, name), terms in self.server_load.items():
            there = self.instance.servers[u].resources.get(name, 0.0)
            if self.binds(terms, there):
                self.row(terms, pulp.LpConstraintLE, there, f"server_{t}_{u}_{name}")
        for (t, e), terms in self.link_load.items():
            there = self.instance.links[e].bandwidth
            if self.binds(terms, there):
                self.row(terms, pulp.LpConstraintLE, there, f"link_{t}_{e}")
        self.problem.setObjective(pulp.LpAffineExpression(self.objective, constant=self.constant))

    @staticmethod
    def binds(terms: list[Term], there: float) -> bool:
        """Whether a capacity row can be broken within the bounds of its variables."""
        return bool(sum(variable.upBound * amount for variable, amount in terms) > there)


def build_ilp(instance: DdljsInstance) -> DeclarativeModel:
    """The program of the whole horizon.

    Marginal utilities are rounded up to 13 digits of the largest possible total, so that engines for integers can
    scale them; a bound stays valid, and solutions are scored by the checker.

    Complexity: O(T J (V + E) + sum B) nonzeros, see :func:`ilp_nonzeros`. Source: paper 004, section IV, (12)-(19).
    """
    builder = _Builder(instance)
    for i, reach in enumerate(reaches(instance)):
        builder.job(i, reach)
    builder.close()
    whole = [*builder.sent.values(), *builder.reached.values()]
    whole += [z for runs in builder.pieces.values() for run in runs for z, _ in run]
    return DeclarativeModel(
        problem=builder.problem,
        extract=lambda value: _solution(builder, value),
        sense=MAXIMISE,
        assign=lambda solution: _assignment(builder, solution),
        restated_integral=frozenset(variable.name for variable in whole),
        resolution=builder.unit * sum(reach.most for reach in reaches(instance)),
    )


def _solution(builder: _Builder, value: Value) -> Solution:
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


def _assignment(builder: _Builder, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """Variable values of a feasible solution, each ring with its workers put together server by server."""
    instance = builder.instance
    where = instance.server_index
    arc_number = {arc: e for e, arc in enumerate(builder.arcs)}
    values: dict[pulp.LpVariable, float] = dict.fromkeys(builder.problem.variables(), 0.0)
    done: Counter[int] = Counter()
    for t, entry in enumerate(solution["slots"], start=1):
        for name, ring in entry["rings"].items():
            i = instance.job_index[name]
            given = [where[u] for u in ring["workers"]]
            hosts, routes = contiguous(given, [[where[u] for u in route] for route in ring["routes"]])
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
            for route in routes:
                if len(route) > 1 and joined > 1:
                    joined -= 1
                    for arc, count in uses_of([route]).items():
                        values[builder.reached[i, t, arc_number[arc]]] += float(joined * count)
    for i, runs in builder.pieces.items():
        left = done[i]
        for k, run in enumerate(runs):
            if k and left > 0:
                values[builder.full[i][k - 1]] = 1.0
            for z, length in run:
                values[z] = float(min(left, length))
                left -= min(left, length)
    return values
