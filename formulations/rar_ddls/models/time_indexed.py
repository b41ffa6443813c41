"""The time-indexed integer program of rar-ddls, for any engine (methods `cbc`, `highs`, `cpsat`)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options, most_jobs, ring_cut
from schedgap.formulations.rar_ddls.models.rows import (
    ROWS,
    VARIABLES,
    Frame,
    Terms,
    Variables,
    assignment,
    extraction,
    identical_jobs,
    identical_servers,
)
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.schedule import quick_schedule

# Jobs that cross servers in the time-indexed model: modes, rings, contention.

_FINEST_SHARE = 5040


def add_crossing(frame: Frame, j: int, job: JobOptions, count_rings: bool) -> None:
    """Variables and rows of job j on several servers.

    `count_rings`: its servers must be counted, or some job's rate depends on the rings it meets; then its
    rings are variables, and ``add_links`` limits them.
    """
    variables = frame.variables
    servers = [s for s, share in enumerate(job.share) if share]
    last_start = frame.slots - job.shortest + 1
    for t in range(1, last_start + 1):
        variables.spread[j, t] = frame.variable("spread", j, t)
    chosen = [variables.spread[j, t] for t in range(1, last_start + 1)]
    for s in servers:
        variables.share[j, s] = frame.variable("share", j, s, high=job.share[s])
    frame.equal("gpus", [*((variables.share[j, s], 1.0) for s in servers), *((v, -float(job.gpus)) for v in chosen)], 0)
    if len(job.classes) > 1:
        for c in range(len(job.classes)):
            variables.kind[j, c] = frame.variable("kind", j, c)
        frame.equal(
            "class", [*((variables.kind[j, c], 1.0) for c in range(len(job.classes))), *((v, -1.0) for v in chosen)], 0
        )
    for t in range(1, frame.slots + 1):
        _slot(frame, j, job, servers, t, count_rings)
        _contiguous(frame, j, job, t, last_start)
    _progress(frame, j, job, chosen)


def _slot(frame: Frame, j: int, job: JobOptions, servers: list[int], t: int, count_rings: bool) -> None:
    """Slot t: one mode while the job runs, its GPUs held, its rings at the level of the mode."""
    variables = frame.variables
    run = [frame.variable("run", j, m, t) for m in range(len(job.modes))]
    for m, variable in enumerate(run):
        variables.run[j, m, t] = variable
        frame.active[j, t].append((variable, 1.0))
    if len(job.classes) > 1:
        for c in range(len(job.classes)):
            modes = [(run[m], 1.0) for m, mode in enumerate(job.modes) if mode.spread_class == c]
            frame.at_most("class", [*modes, (variables.kind[j, c], -1.0)], 0)
    for s in servers:
        # The only continuous variable: the integers around it leave it no choice but share or 0.
        held = frame.variable("held", j, s, t, high=job.share[s], integer=False)
        variables.held[j, s, t] = held
        frame.load[s, t].append((held, 1.0))
        frame.at_most("kept", [(held, 1.0), (variables.share[j, s], -1.0)], 0)
    frame.equal("gang", [*((variables.held[j, s, t], 1.0) for s in servers), *((v, -float(job.gpus)) for v in run)], 0)
    if count_rings:
        _rings(frame, j, job, servers, t)


def _rings(frame: Frame, j: int, job: JobOptions, servers: list[int], t: int) -> None:
    """Slot t: which servers the job crosses, each at the level of its mode."""
    variables = frame.variables
    run = [variables.run[j, m, t] for m in range(len(job.modes))]
    for s in servers:
        held = variables.held[j, s, t]
        rings: Terms = []
        for level in job.levels:
            ring = frame.variable("ring", j, s, t, level)
            variables.ring[j, s, t, level] = ring
            rings.append((ring, 1.0))
            frame.at_most("level", [(ring, 1.0), *((run[m], -1.0) for m in _modes_at(job, level))], 0)
        frame.at_most("crossed", [(held, 1.0), *((ring, -float(job.share[s])) for ring, _ in rings)], 0)
        frame.at_least("crossed", [(held, 1.0), *((ring, -1.0) for ring, _ in rings)], 0)
    if job.counts_servers:
        rings = [(variables.ring[j, s, t, level], 1.0) for s in servers for level in job.levels]
        frame.at_most("class", [*rings, *((run[m], -float(mode.servers)) for m, mode in enumerate(job.modes))], 0)
    for level in job.levels:
        rings = [(variables.ring[j, s, t, level], 1.0) for s in servers]
        frame.at_least("level", [*rings, *((run[m], -float(job.fewest)) for m in _modes_at(job, level))], 0)


def _modes_at(job: JobOptions, level: int) -> list[int]:
    return [m for m, mode in enumerate(job.modes) if mode.level == level]


def _contiguous(frame: Frame, j: int, job: JobOptions, t: int, last_start: int) -> None:
    """The job runs without a break from its start slot, and for its shortest duration at least."""
    variables = frame.variables
    now = [(variables.run[j, m, t], 1.0) for m in range(len(job.modes))]
    before = [(variables.run[j, m, t - 1], -1.0) for m in range(len(job.modes)) if t > 1]
    started = [(variables.spread[j, t], -1.0)] if t <= last_start else []
    frame.at_most("contiguous", [*now, *before, *started], 0)
    window = range(max(1, t - job.shortest + 1), min(t, last_start) + 1)
    frame.at_least("shortest", [*now, *((variables.spread[j, u], -1.0) for u in window)], 0)


def _progress(frame: Frame, j: int, job: JobOptions, chosen: list[pulp.LpVariable]) -> None:
    """Iterations counted reach F_j; also divided by each rate and rounded up, which cuts fractional points."""
    rows = set()
    for divisor in {1, *(mode.rate for mode in job.modes if mode.rate)}:
        rows.add((-(-job.iterations // divisor), *(-(-mode.rate // divisor) for mode in job.modes)))
    for needed, *rates in sorted(rows):
        made = [
            (frame.variables.run[j, m, t], float(rate))
            for m, rate in enumerate(rates)
            if rate
            for t in range(1, frame.slots + 1)
        ]
        frame.at_least("progress", [*made, *((v, -float(needed)) for v in chosen)], 0)


def add_links(frame: Frame, jobs: list[JobOptions]) -> None:
    """No server is crossed by more rings than any ring there allows.

    A ring that allows l rings has weight 1/l, and weights sum to at most 1: if count <= l for all, count of them
    weigh at most count * 1/count. That alone excludes every excess of rings that allow at most 3; for
    larger levels, a switch per server, slot and level does.
    """
    crossing = sum(bool(job.modes) for job in jobs)
    by_place: dict[tuple[int, int], list[tuple[pulp.LpVariable, int]]] = {}
    for (_, s, t, level), ring in frame.variables.ring.items():
        by_place.setdefault((s, t), []).append((ring, min(level, frame.sizes[s], crossing)))
    for (s, t), rings in sorted(by_place.items()):
        top = min(frame.sizes[s], crossing)
        levels = sorted({level for _, level in rings})
        if levels[0] >= top:
            continue
        # Rounding a weight down keeps the row valid; the switches then see to what it no longer excludes.
        whole = min(math.lcm(*levels), _FINEST_SHARE)
        weight = {level: whole // level for level in levels}
        frame.at_most("links", [(ring, float(weight[level])) for ring, level in rings], whole)
        for level in levels:
            if level < top and weight[level] + level * weight[levels[-1]] <= whole:
                few = frame.variable("few", s, t, level)
                frame.variables.few[s, t, level] = few
                quiet = [(ring, 1.0) for ring, allowed in rings if allowed <= level]
                frame.at_most("links", [*quiet, (few, -float(level))], 0)
                frame.at_most("links", [*((ring, 1.0) for ring, _ in rings), (few, float(top - level))], top)


def add_ring_cuts(frame: Frame, jobs: list[JobOptions]) -> Iterator[tuple[dict[int, Terms], int]]:
    """How many rings of at least some size run at once, when some of them allow few others (``ring_cut``).

    Yields the terms by slot, and what they sum to at most.
    """
    crossing = [j for j in range(len(jobs)) if (j, 0, 1) in frame.variables.run]
    for least in sorted({jobs[j].gpus for j in crossing}):
        larger = [j for j in crossing if jobs[j].gpus >= least]
        gangs = [jobs[j].gpus for j in larger]
        most = most_jobs(gangs, sum(frame.sizes))
        for level in sorted({level for j in larger for level in jobs[j].levels[:-1]}):
            factor = ring_cut(gangs, frame.sizes, level)
            if factor == 1:
                continue
            quiet, other = float(factor.numerator), float(factor.denominator)
            rings: dict[int, Terms] = {t: [] for t in range(1, frame.slots + 1)}
            for j in larger:
                for m, mode in enumerate(jobs[j].modes):
                    weight = quiet if mode.level <= level else other
                    for t, terms in rings.items():
                        terms.append((frame.variables.run[j, m, t], weight))
            yield rings, most * factor.denominator


_QUICK_JOBS = 200


def build_ilp(instance: RarDdlsInstance) -> DeclarativeModel:
    """The time-indexed model whose optimum is the optimal makespan.

    Variables, all 0/1 unless said otherwise; slots t = 1..H, where H is the makespan of a quick feasible schedule
    (else the horizon, or the jobs one after the other):

    - ``local[j,s,t]``: j starts in slot t on server s alone; it then takes a fixed number of slots
    - ``spread[j,t]``: j starts in slot t on several servers
    - ``run[j,m,t]``: j runs so in slot t, in mode m = (servers used at most, rings met at most) -> rate
    - ``kind[j,c]``: the class of its number of servers, where rates depend on it
    - ``share[j,s]``: integer, its GPUs on s; ``held[j,s,t]``: the same in the slots in which it runs, else 0
    - ``ring[j,s,t,l]``: it crosses s in slot t and allows at most l rings there
    - ``used[t]``: some job is not complete before slot t; the makespan is their sum

    Every start slot is allowed. Contention is one-sided, iterations counted <= iterations made: exact, since a rate
    never rises when a ring is added. On server s a ring that allows l rings takes the l-th part of a link of
    width 1; where that does not suffice, switches ``few[s,t,l]`` exclude l' > l rings beside it.

    Tightening that keeps the optimum: the cut horizon, a certified lower bound, minimum durations, rounded
    progress rows, how many gangs run at once, how many rings a ring with a free link excludes (``ring_cut``), and
    an order among identical jobs and among identical servers.

    Parameters
    ----------
    instance : the instance; one that is infeasible gives an infeasible model

    Returns
    -------
    DeclarativeModel, minimising, objective integral. All coefficients are whole numbers. ``held`` is declared
    continuous and listed in ``restated_integral``: the integers fix it at ``share`` or 0. ``start`` is the quick
    schedule, where there is one; ``info["slots"]`` is H.

    Notes
    -----
    O(H sum_j S_j (d_j + levels)) nonzeros, see ``ilp_nonzeros``. Source: paper 000, problem RAR-DDLS with
    constraints (1) to (9), linearised here.
    """
    return _TimeIndexed(instance).build()


class _TimeIndexed:
    def __init__(self, instance: RarDdlsInstance) -> None:
        self.instance = instance
        self.jobs = job_options(instance)
        self.start = quick_schedule(instance) if len(self.jobs) <= _QUICK_JOBS else None
        self.slots = _slots(instance, None if self.start is None else self.start[0])
        self.least = max(1, int(lower_bound(instance) or 1))
        self.frame = Frame(
            layout=Layout(pulp.LpProblem("rar_ddls", pulp.LpMinimize), VARIABLES, ROWS, "makespan, max_j T_j"),
            variables=Variables(),
            jobs=[job.id for job in instance.jobs],
            servers=[server.id for server in instance.servers],
            sizes=[server.gpus for server in instance.servers],
            slots=self.slots,
        )

    def build(self) -> DeclarativeModel:
        frame, variables = self.frame, self.frame.variables
        frame.layout.sets.update(job=frame.jobs, server=frame.servers, slot=range(1, self.slots + 1))
        self._makespan()
        contended = any(len(job.levels) > 1 for job in self.jobs)
        for j, job in enumerate(self.jobs):
            self._local(j, job)
            if job.modes and job.shortest <= self.slots:
                add_crossing(frame, j, job, contended or job.counts_servers)
            self._once(j, job)
        for (s, t), terms in sorted(frame.load.items()):
            self._within("capacity", terms, frame.sizes[s], t)
        self._gangs()
        add_links(frame, self.jobs)
        for rings, limit in add_ring_cuts(frame, self.jobs):
            for t in range(1, self.slots + 1):
                self._within("ring_cut", rings[t], limit, t)
        self._order()
        return DeclarativeModel(
            problem=frame.layout.problem,
            extract=extraction(self.instance, variables),
            sense=MINIMISE,
            assign=assignment(self.instance, self.jobs, variables, self.slots),
            objective_is_integral=True,
            restated_integral=frozenset(variable.name for variable in variables.held.values()),
            start=None if self.start is None else self.start[1],
            bound=float(self.least),
            layout=frame.layout,
            info={"slots": self.slots},
        )

    def _makespan(self) -> None:
        frame, used = self.frame, self.frame.variables.used
        for t in range(self.least + 1, self.slots + 1):
            used[t] = frame.variable("used", t)
        terms = [(variable, 1.0) for variable in used.values()]
        frame.layout.objective(terms, constant=float(self.least))
        for t in range(self.least + 1, self.slots):
            frame.at_least("makespan", [(used[t], 1.0), (used[t + 1], -1.0)], 0)
        if self.least > self.slots:
            frame.layout.impossible(("bound",))

    def _within(self, law: str, terms: Terms, limit: int, t: int) -> None:
        """terms <= limit in slot t, and 0 in slots after the makespan."""
        if not terms:
            return
        used = self.frame.variables.used.get(t)
        if used is None:
            self.frame.at_most(law, terms, limit)
        else:
            self.frame.at_most(law, [*terms, (used, -float(limit))], 0)

    def _local(self, j: int, job: JobOptions) -> None:
        frame = self.frame
        for s in job.local:
            for t in range(1, self.slots - job.local_duration + 2):
                variable = frame.variable("local", j, s, t)
                frame.variables.local[j, s, t] = variable
                for slot in range(t, t + job.local_duration):
                    frame.load[s, slot].append((variable, float(job.gpus)))
                    frame.active[j, slot].append((variable, 1.0))

    def _once(self, j: int, job: JobOptions) -> None:
        """Job j starts once; no slot counts as used only after it is complete."""
        frame, variables = self.frame, self.frame.variables
        last_local = self.slots - job.local_duration + 1
        last_spread = self.slots - job.shortest + 1
        starts = [(variables.local[j, s, t], 1.0) for s in job.local for t in range(1, last_local + 1)]
        if job.modes:
            starts += [(variables.spread[j, t], 1.0) for t in range(1, last_spread + 1)]
        if not starts:
            frame.layout.impossible((frame.jobs[j],))
            return
        frame.equal("once", starts, 1)
        for t, used in variables.used.items():
            terms = list(frame.active[j, t])
            terms += [(variables.local[j, s, u], 1.0) for s in job.local for u in range(t + 1, last_local + 1)]
            if job.modes:
                terms += [(variables.spread[j, u], 1.0) for u in range(t + 1, last_spread + 1)]
            if terms:
                frame.at_most("makespan", [*terms, (used, -1.0)], 0)

    def _gangs(self) -> None:
        """In every slot: all GPUs together, and how many gangs of at least some size run at once."""
        frame = self.frame
        total = sum(frame.sizes)
        gangs = [job.gpus for job in self.jobs]
        limits = [(g, most_jobs([gang for gang in gangs if gang >= g], total)) for g in sorted(set(gangs))]
        for t in range(1, self.slots + 1):
            active = [frame.active[j, t] for j in range(len(gangs))]
            self._within("gangs", [(v, w * gangs[j]) for j, terms in enumerate(active) for v, w in terms], total, t)
            for least, limit in limits:
                if limit * least < total and limit < sum(gang >= least for gang in gangs):
                    self._within(
                        "gangs",
                        [term for j, terms in enumerate(active) if gangs[j] >= least for term in terms],
                        limit,
                        t,
                    )

    def _order(self) -> None:
        """Identical jobs start in input order; of identical servers the first have more of the largest job."""
        frame, variables = self.frame, self.frame.variables
        start: dict[int, Terms] = defaultdict(list)
        for (j, _, t), variable in variables.local.items():
            start[j].append((variable, float(t)))
        for (j, t), variable in variables.spread.items():
            start[j].append((variable, float(t)))
        for group in identical_jobs(self.instance):
            for first, second in pairwise(group):
                frame.at_most("order", [*start[first], *((v, -t) for v, t in start[second])], 0)
        largest, groups = identical_servers(self.instance)
        placed: dict[int, Terms] = defaultdict(list)
        for (j, s, _), variable in variables.local.items():
            if j == largest:
                placed[s].append((variable, float(self.jobs[j].gpus)))
        for (j, s), variable in variables.share.items():
            if j == largest:
                placed[s].append((variable, 1.0))
        for group in groups:
            for first, second in pairwise(group):
                if placed[first] or placed[second]:
                    frame.at_least("order", [*placed[first], *((v, -w) for v, w in placed[second])], 0)


def quick_solution(instance: RarDdlsInstance) -> Solution | None:
    """The schedule that ``build_ilp`` starts from, without the model; None where there is none, or beyond 200 jobs."""
    quick = quick_schedule(instance) if len(instance.jobs) <= _QUICK_JOBS else None
    return None if quick is None else quick[1]


def ilp_nonzeros(instance: RarDdlsInstance) -> int:
    """An estimate of the nonzeros of ``build_ilp(instance)`` before it is built, within a factor of 2 or so.

    Infeasible jobs count as none. O(J S) for the estimate, after the quick schedule that cuts the horizon. Beyond
    200 jobs, where no model is small, a coarse estimate: two modes and two levels for every job that can cross.
    """
    if len(instance.jobs) > _QUICK_JOBS:
        return _coarse_nonzeros(instance)
    start = quick_schedule(instance) if len(instance.jobs) <= _QUICK_JOBS else None
    slots = _slots(instance, None if start is None else start[0])
    sizes = [server.gpus for server in instance.servers]
    late = max(0, slots - int(lower_bound(instance) or 1))
    jobs = job_options(instance)
    gangs = sorted(job.gpus for job in jobs)
    limits = [(g, most_jobs([gang for gang in gangs if gang >= g], sum(sizes))) for g in sorted(set(gangs))]
    binding = [g for g, most in limits if most * g < sum(sizes) and most < sum(gang >= g for gang in gangs)]
    total = 0
    for job in jobs:
        counted = 2 + sum(g <= job.gpus for g in binding)
        starts = max(0, slots - job.local_duration + 1)
        total += len(job.local) * (starts * (2 + job.local_duration * counted) + late * min(starts, late))
        if job.modes and job.shortest <= slots:
            servers = sum(share > 0 for share in job.share)
            levels, modes = len(job.levels), len(job.modes)
            row = servers * (6 + 6 * levels + (levels if job.counts_servers else 0))
            row += modes * (counted + servers + 5 + 2 * levels) + job.shortest
            total += slots * row + late * late
    return total


def _coarse_nonzeros(instance: RarDdlsInstance) -> int:
    table = rate_table(instance)
    slots = _slots(instance, None)
    sizes = np.sort(np.array([server.gpus for server in instance.servers]))
    holding = sizes.size - np.searchsorted(sizes, table.gpus)
    duration = np.minimum(table.best_duration, slots).astype(np.float64)
    local = holding * (slots - duration + 1) * (2 + 2 * duration)
    crossing = (table.gpus >= 2) * (sizes.size > 1) * slots * (20.0 * sizes.size + 20.0)
    return int((local + crossing)[table.best_rate > 0].sum())


def _slots(instance: RarDdlsInstance, makespan: int | None) -> int:
    """The slots of the model: the makespan of a feasible schedule, else at most all jobs one after the other."""
    if makespan is not None:
        return makespan
    one_by_one: int = sum(rate_table(instance).best_duration.tolist())
    return min(instance.horizon, one_by_one)
