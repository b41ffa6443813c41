"""The checker of rar-ddls: exact rationals, its own rates, its own run through time.

It shares no code with the dynamics, the models or the heuristics; a test compares them.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only, one_for_each
from schedgap.formulations.rar_ddls.instance import Job, RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution

MOST_BEYOND = 2_000_000
"""Steps, some seconds, for rings on servers without GPUs for them; then they are followed no further."""

Starts = dict[str, int]
Placements = dict[str, dict[str, int]]


def check(instance: RarDdlsInstance, solution: RarDdlsSolution) -> CheckReport:
    """Check a solution against every constraint and recompute its makespan exactly.

    Constraints, by the short names in the report: ``start`` (a job starts in slot 1 or later), ``placement``
    (a job's GPUs sum to G_j), ``capacity`` (GPUs of each server in each slot), ``completion`` (every job
    completes), ``horizon`` (not after the horizon). Raises InputError: an id is missing, or the instance does not have
    it.

    Parameters
    ----------
    solution : when and where each job runs

    Returns
    -------
    CheckReport; objective = max_j T_j in slots (None where a job never completes, or where too many jobs lie on
    each other to be followed), also for a solution that breaks other constraints; ``details["completion"]`` has the
    completion slot of every job.

    Notes
    -----
    Iterations are counted over intervals in which no job starts or completes on a server that the job crosses;
    O(E (log E + S_j)) for E such changes, whatever the horizon, and MOST_BEYOND steps for rings that no server holds.
    The rate is floor(1/tau + 1e-9) with tau of eq. (8), paper 000, as a rational of the decimal numbers written in the
    instance.
    """
    starts, placements = solution.start, solution.placement
    one_for_each(starts, instance.job_index, "start")
    one_for_each(placements, instance.job_index, "placement")
    for name, servers in placements.items():
        known_only(servers, instance.server_index, f"placement.{name}", "server")
    violations = [
        Violation("start", f"job {job.id}: starts in slot {starts[job.id]}, the first slot is 1", 1 - starts[job.id])
        for job in instance.jobs
        if starts[job.id] < 1
    ]
    for job in instance.jobs:
        placed = sum(placements[job.id].values())
        if placed != job.gpus:
            text = f"job {job.id}: placed on {_gpus(placed)}, needs {job.gpus}"
            violations.append(Violation("placement", text, abs(placed - job.gpus)))
    run = _Run(instance, starts, placements)
    if run.crowded is not None:
        moment, server = run.crowded
        text = f"server {server}, slot {moment}: jobs lie on each other beyond its GPUs, too many to follow their rates"
        return CheckReport((*violations, Violation("capacity", text)), None)
    violations.extend(_capacity(instance, starts, placements, run.completion))
    latest = 0
    for job in instance.jobs:
        slot = run.completion.get(job.id)
        if slot is None:
            text = (
                f"job {job.id}: never completes, its rate stays 0 from slot {run.since[job.id]} "
                f"with {run.done[job.id]} of {job.iterations} iterations done"
            )
            violations.append(Violation("completion", text, job.iterations - run.done[job.id]))
            continue
        latest = max(latest, slot)
        if slot > instance.horizon:
            text = f"job {job.id}: completes in slot {slot}, the horizon is {instance.horizon}"
            violations.append(Violation("horizon", text, slot - instance.horizon))
    completion = {job.id: run.completion.get(job.id) for job in instance.jobs}
    complete = None not in completion.values()
    return CheckReport(tuple(violations), Fraction(latest) if complete else None, {"completion": completion})


class _Run:
    """The jobs' lives. `completion` has the jobs that complete; `done` and `since` tell of the last change.

    `crowded` is the slot and the server at which they are followed no further, since rings beyond the servers' GPUs
    take too many steps.
    """

    def __init__(self, instance: RarDdlsInstance, starts: Starts, placements: Placements) -> None:
        self.completion: dict[str, int] = {}
        self.done: dict[str, int] = dict.fromkeys(starts, 0)
        self.since: dict[str, int] = {}
        self._needs = {job.id: job.iterations for job in instance.jobs}
        self._rates = {job.id: _Rate(instance, job, len(placements[job.id])) for job in instance.jobs}
        self._links = {
            job.id: [server for server, gpus in placements[job.id].items() if gpus < job.gpus] for job in instance.jobs
        }
        self._speed: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._rings: dict[str, int] = {}
        self.crowded: tuple[int, str] | None = None
        self._walk(starts, {server.id: server.gpus for server in instance.servers})

    def _walk(self, starts: Starts, room: Mapping[str, int]) -> None:
        begin = defaultdict(list)
        for name, slot in starts.items():
            begin[slot].append(name)
        finish: defaultdict[int, set[str]] = defaultdict(set)  # ids of jobs by the slot after their last one
        on_link: defaultdict[str, dict[str, None]] = defaultdict(dict)
        agenda = sorted(begin)
        heapq.heapify(agenda)
        seen = None
        beyond = 0
        while agenda:
            slot = heapq.heappop(agenda)
            if slot == seen:
                continue
            seen = slot
            arrivals = begin.get(slot, [])
            before_now: dict[str, int] = {}
            for name in sorted(finish.pop(slot, ())):
                self.completion[name] = slot - 1
                del self._due[name], self._speed[name], self._rings[name]
                for link in self._links[name]:
                    before_now.setdefault(link, len(on_link[link]))
                    del on_link[link][name]
            for name in arrivals:
                self._speed[name] = 0
                self._rings[name] = 0
                self.since[name] = slot
                for link in self._links[name]:
                    before_now.setdefault(link, len(on_link[link]))
                    on_link[link][name] = None
            affected = dict.fromkeys(arrivals)
            for link, before in before_now.items():
                now = len(on_link[link])
                for name in on_link[link]:
                    # The busiest link of a ring changes when this one outgrows it, or was it and shrinks.
                    if now > self._rings[name] or (now < before == self._rings[name]):
                        affected[name] = None
            full = [link for link in before_now if len(on_link[link]) > room[link]]
            if full:
                beyond += sum(len(on_link[link]) for link in full) + sum(len(self._links[name]) for name in affected)
            if beyond > MOST_BEYOND:
                self.crowded = slot, full[0]
                return
            for name in affected:
                rings = max((len(on_link[link]) for link in self._links[name]), default=0)
                self._rings[name] = rings
                rate = self._rates[name].with_rings(rings)
                before = self._speed[name]
                if rate == before:
                    continue
                self.done[name] += before * (slot - self.since[name])
                self.since[name] = slot
                self._speed[name] = rate
                due = self._due.pop(name, None)
                if due is not None:
                    finish[due].discard(name)
                if rate > 0:
                    remaining = self._needs[name] - self.done[name]
                    due = slot + (remaining + rate - 1) // rate
                    self._due[name] = due
                    finish[due].add(name)
                    heapq.heappush(agenda, due)


class _Rate:
    """Iterations per slot of one job on its servers, as the number of rings on its busiest link varies."""

    def __init__(self, instance: RarDdlsInstance, job: Job, servers_used: int) -> None:
        network = instance.network
        share = exact(job.gradient_size) / job.gpus * (job.gpus - 1)
        self._fixed = (
            share / exact(instance.reduce_speed)
            + exact(network.server_overhead) * servers_used
            + exact(job.forward_time) * job.batch_size
            + exact(job.backward_time)
        )
        self._traffic = 2 * share
        self._network = network
        self._local = servers_used <= 1
        self._known: dict[int, int] = {}

    def with_rings(self, rings: int) -> int:
        if self._local:
            rings = 0
        rate = self._known.get(rings)
        if rate is None:
            rate = (1 / (self._fixed + self._traffic / self._bandwidth(rings)) + CHECK_TOLERANCE).__floor__()
            self._known[rings] = rate
        return rate

    def _bandwidth(self, rings: int) -> Fraction:
        if self._local:
            return exact(self._network.intra_bandwidth)
        contenders = max(Fraction(1), exact(self._network.contention_scale) * rings)
        degradation = contenders + exact(self._network.contention_penalty) * (contenders - 1)
        return exact(self._network.inter_bandwidth) / degradation


def _capacity(
    instance: RarDdlsInstance, starts: Starts, placements: Placements, completion: Mapping[str, int]
) -> Iterator[Violation]:
    """Every interval in which a server holds more GPUs' worth of jobs than it has."""
    changes: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, placed in placements.items():
        for server, gpus in placed.items():
            changes[server].append((starts[name], gpus))
            if name in completion:
                changes[server].append((completion[name] + 1, -gpus))
    for there in instance.servers:
        steps = sorted(changes[there.id])
        used = 0
        for position, (slot, gpus) in enumerate(steps):
            used += gpus
            after = steps[position + 1][0] if position + 1 < len(steps) else None
            if used > there.gpus and after != slot:
                if after is None:
                    when = f"from slot {slot} on"
                else:
                    when = f"slot {slot}" if after == slot + 1 else f"slots {slot} to {after - 1}"
                text = f"server {there.id}, {when}: {_gpus(used)} used, {there.gpus} there"
                yield Violation("capacity", text, used - there.gpus)


def _gpus(number: int) -> str:
    return f"{number} GPU{'' if number == 1 else 's'}"
