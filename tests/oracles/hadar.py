"""A plain search for the optimum of tiny hadar instances: dynamic programming over exact progress.

For the tests and the suite ``cross``. It knows nothing of levels, units, models or the checker: slot by slot it tries
every way to give whole gangs of any mix of types to jobs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from fractions import Fraction

from oracles import TooManyError
from schedgap.benchmarks.instances.hadar.random import tiny
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.instance import HadarInstance, Job
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

TOLERANCE = 1 - Fraction(1, 10**9)


def gangs(instance: HadarInstance, job: Job) -> list[tuple[int, ...]]:
    """Every way to take W devices of usable types, as counts by type."""
    kinds = list(instance.capacity)
    most = [min(job.workers, instance.capacity[kind]) if job.throughput.get(kind, 0) > 0 else 0 for kind in kinds]
    return [c for c in itertools.product(*(range(m + 1) for m in most)) if sum(c) == job.workers]


def slot_progress(instance: HadarInstance, job: Job, counts: tuple[int, ...]) -> Fraction:
    """W L min X over the types used."""
    rates = [exact(job.throughput[kind]) for kind, n in zip(instance.capacity, counts, strict=True) if n]
    return job.workers * exact(instance.slot_length) * min(rates)


def worth(instance: HadarInstance, job: Job, slot: int) -> Fraction:
    """Utility of finishing in a slot."""
    d = (slot - job.arrival + 1) * exact(instance.slot_length)
    w = exact(job.utility.weight)
    if job.utility.kind == "effective-throughput":
        return w * job.epochs * job.iterations_per_epoch / d
    if job.utility.deadline is not None:
        return max(Fraction(0), w * (1 - d / exact(job.utility.deadline)))
    return w


Counts = tuple[int, ...]
Choice = tuple[Counts | None, ...]


def brute_force(instance: HadarInstance, limit: int = 500_000) -> tuple[Fraction, Solution] | None:
    """(optimum, a solution that has it); None where all jobs must finish and cannot.

    Raises TooManyError beyond `limit` states (slot, progress of every job).
    """
    search = _Search(instance, limit)
    found = search.best(1, (0,) * len(instance.jobs))
    return None if found is None else (Fraction(found[0], search.unit), search.solution())


class _Search:
    """Progress and gains in whole numbers: the common denominator of each is taken out."""

    def __init__(self, instance: HadarInstance, limit: int) -> None:
        self.instance = instance
        self.limit = limit
        self.options = [gangs(instance, job) for job in instance.jobs]
        needs = [job.epochs * job.iterations_per_epoch * TOLERANCE for job in instance.jobs]
        steps = [
            {counts: slot_progress(instance, job, counts) for counts in own}
            for job, own in zip(instance.jobs, self.options, strict=True)
        ]
        slots = range(instance.horizon + 1)
        gains = [[worth(instance, j, t) if t >= j.arrival else Fraction(0) for t in slots] for j in instance.jobs]
        scale = math.lcm(*(x.denominator for x in (*needs, *(x for own in steps for x in own.values()))))
        self.unit = math.lcm(*(x.denominator for own in gains for x in own))
        self.needs = [int(need * scale) for need in needs]
        self.steps = [{counts: int(x * scale) for counts, x in own.items()} for own in steps]
        self.gains = [[int(x * self.unit) for x in own] for own in gains]
        self.memo: dict[tuple[int, tuple[int, ...]], tuple[int, Choice] | None] = {}

    def choices(self, slot: int, done: list[bool], j: int, free: Counts) -> Iterator[Choice]:
        """Every way to run jobs j, j + 1, ... in a slot with these free devices."""
        if j == len(self.options):
            yield ()
            return
        for rest in self.choices(slot, done, j + 1, free):
            yield (None, *rest)
        if not done[j] and slot >= self.instance.jobs[j].arrival:
            for counts in self.options[j]:
                if all(c <= f for c, f in zip(counts, free, strict=True)):
                    left = tuple(f - c for c, f in zip(counts, free, strict=True))
                    for rest in self.choices(slot, done, j + 1, left):
                        yield (counts, *rest)

    def after(self, progress: tuple[int, ...], choice: Choice) -> tuple[int, ...]:
        return tuple(
            p if counts is None else p + own[counts]
            for p, own, counts in zip(progress, self.steps, choice, strict=True)
        )

    def best(self, slot: int, progress: tuple[int, ...]) -> tuple[int, Choice] | None:
        """The most that can still be gained from a slot on, and what to do in it."""
        done = [p >= need for p, need in zip(progress, self.needs, strict=True)]
        if slot > self.instance.horizon:
            return None if self.instance.all_jobs_must_finish and not all(done) else (0, ())
        key = (slot, progress)
        if key in self.memo:
            return self.memo[key]
        if len(self.memo) > self.limit:
            raise TooManyError(f"more than {self.limit} states")
        top: tuple[int, Choice] | None = None
        seen = set()
        for choice in self.choices(slot, done, 0, tuple(self.instance.capacity.values())):
            following = self.after(progress, choice)
            if following in seen:
                continue
            seen.add(following)
            later = self.best(slot + 1, following)
            if later is None:
                continue
            gained = sum(
                own[slot]
                for own, was, p, need in zip(self.gains, done, following, self.needs, strict=True)
                if not was and p >= need
            )
            if top is None or gained + later[0] > top[0]:
                top = (gained + later[0], choice)
        self.memo[key] = top
        return top

    def solution(self) -> Solution:
        """The solution that the search found best, machine by machine."""
        instance = self.instance
        allocation: dict[str, dict[str, list[dict[str, object]]]] = {}
        progress = (0,) * len(instance.jobs)
        for slot in range(1, instance.horizon + 1):
            found = self.best(slot, progress)
            choice = found[1] if found is not None else ()
            left = {(m.id, kind): count for m in instance.machines for kind, count in m.gpus.items()}
            for job, counts in zip(instance.jobs, choice, strict=True):
                entries: list[dict[str, object]] = []
                for kind, need in zip(instance.capacity, counts or (), strict=bool(counts)):
                    missing = need
                    for machine in instance.machines:
                        taken = min(missing, left.get((machine.id, kind), 0))
                        if taken:
                            left[machine.id, kind] -= taken
                            missing -= taken
                            entries.append({"machine": machine.id, "type": kind, "gpus": taken})
                if entries:
                    allocation.setdefault(job.id, {})[str(slot)] = entries
            progress = self.after(progress, choice)
        return {"allocation": allocation}


def solve_brute_force(instance: HadarInstance, options: SolveOptions) -> Result:
    """The brute force as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    found = brute_force(instance)
    seconds = time.monotonic() - began
    if found is None:
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=seconds)
    value = float(found[0])
    return Result(Status.OPTIMAL, value, value, found[1], Termination.PROVEN, solve_seconds=seconds)


def random_case(seed: int, *, must_finish: bool = False) -> HadarInstance:
    """A tiny instance of P2, or of P1 (often infeasible), that the brute force can solve."""
    instance = tiny(seed)
    data = instance.to_dict()
    data["all_jobs_must_finish"] = must_finish
    if must_finish:  # room, so that some can be solved
        data["horizon"] += 2
    return HadarInstance.parse(data, f"{instance.name}{'-p1' if must_finish else ''}")
