"""The time-indexed integer program of rar-ddls, for any engine (methods `cbc`, `highs`, `cpsat`)."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, Terms
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.formulations.rar_ddls.models.crossing import add_crossing, add_links, add_ring_cuts
from schedgap.formulations.rar_ddls.models.extraction import assignment, extraction, identical_jobs, identical_servers
from schedgap.formulations.rar_ddls.models.rows import ROWS, VARIABLES, Frame, Variables
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.ring_cut import most_jobs
from schedgap.formulations.rar_ddls.schedule import quick_schedule

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
