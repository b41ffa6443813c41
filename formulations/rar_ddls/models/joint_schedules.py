"""The set of joint schedules y^1, ..., y^K of the paper's reformulation, enumerated for tiny instances."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

NODES_PER_SCHEDULE = 200


LATEST = 100


History = tuple[int, ...]  # the jobs that a GPU has served, in order


Choice = tuple[tuple[History, int], ...]  # how many GPUs of each history


@dataclass(frozen=True)
class JointSchedule:
    """One schedule y^k of all jobs, with what the dynamics make of it."""

    solution: Solution  # start slots and placements
    completion: tuple[int, ...]  # (J,) the slot in which each job completes
    duration: tuple[int, ...]  # (J,) rho_j(y^k), slots from its start to its completion, both included
    gpus: tuple[tuple[int, ...], ...]  # (J,) G_j(y^k), the GPUs of each job, counted through the servers from 0

    @property
    def makespan(self) -> int:
        """max_j T_j."""
        return max(self.completion)


def joint_schedules(
    instance: RarDdlsInstance, *, latest: int, limit: int, each_gpu: bool = False, shifted: bool = True
) -> list[JointSchedule]:
    """Every schedule that completes within slots 1..latest, one of each class of equals.

    Two schedules are equal when they differ by a permutation of equal servers, of identical jobs, or of GPUs of
    one server that have served the same jobs. Raises InputError: there are more than `limit` schedules, or the search
    for them takes more than 200 `limit` nodes, or `latest` is more than 100 slots.

    Parameters
    ----------
    latest : last slot in which a job may complete
    limit : most schedules
    each_gpu : tell apart which GPUs of a server a job has (else the idle ones of lowest index)
    shifted : leave out schedules in which a job could start a slot earlier, on the same GPUs (where told apart)
        or the same numbers of GPUs, without lowering a rate there. For every schedule that is left out there is one
        that is kept, with the same placement and no later completion of any job.
    """
    if latest > LATEST:
        raise InputError(f"reformulation: {latest} slots, joint schedules are enumerated for at most {LATEST}")
    return _Enumeration(instance, latest, limit, each_gpu, shifted).run()


class _Enumeration:
    """Depth first over slots; in each slot over the jobs that may start in it."""

    def __init__(self, instance: RarDdlsInstance, latest: int, limit: int, each_gpu: bool, shifted: bool) -> None:
        self.instance = instance
        self.latest = latest
        self.limit = limit
        self.each_gpu = each_gpu
        self.shifted = shifted
        self.nodes = 0
        table = rate_table(instance)
        self.phi = table.phi.tolist()
        self.best = table.best_rate.tolist()
        self.sizes = [server.gpus for server in instance.servers]
        first = [0, *itertools.accumulate(self.sizes)]
        self.gpus_of = [range(low, high) for low, high in itertools.pairwise(first)]
        self.need = [job.gpus for job in instance.jobs]
        alike: dict[tuple[object, ...], int] = {}
        self.twin: list[int | None] = []
        for j, job in enumerate(instance.jobs):
            key = tuple(job.model_dump(exclude={"id"}).values())
            self.twin.append(alike.get(key))
            alike[key] = j
        jobs = len(instance.jobs)
        self.left = [job.iterations for job in instance.jobs]
        self.start = [0] * jobs
        self.end = [0] * jobs
        self.held: list[tuple[int, ...]] = [()] * jobs
        self.shares: list[dict[int, int]] = [{} for _ in range(jobs)]
        self.history: list[History] = [()] * first[-1]
        self.busy = [False] * first[-1]
        self.found: list[JointSchedule] = []

    def run(self) -> list[JointSchedule]:
        if min(self.best) > 0:
            self._slot(1, None)
        return self.found

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > NODES_PER_SCHEDULE * self.limit or len(self.found) > self.limit:
            raise InputError(
                f"reformulation: {len(self.need)} jobs on {len(self.sizes)} servers in {self.latest} slots "
                f"have more than {self.limit} joint schedules, or finding them takes too long"
            )

    def _running(self) -> list[int]:
        return [j for j, slot in enumerate(self.start) if slot and not self.end[j]]

    def _slot(self, t: int, before: _Slot | None) -> None:
        self._count()
        if all(self.end):
            self.found.append(self._schedule())
            return
        if self._hopeless(t):
            return
        for _ in self._starts(t, 0, before):
            self._pass(t)

    def _hopeless(self, t: int) -> bool:
        slots = self.latest - t + 1
        work = 0
        for j, remaining in enumerate(self.left):
            if not self.end[j]:
                least = -(-remaining // self.best[j])
                if least > slots:
                    return True
                work += least * self.need[j]
        return work > slots * len(self.busy)

    def _starts(self, t: int, j: int, before: _Slot | None) -> Iterator[None]:
        """Every way to start jobs j, j+1, ... in slot t; the state holds it while the caller looks."""
        if j == len(self.need):
            yield
            return
        yield from self._starts(t, j + 1, before)
        twin = self.twin[j]
        if self.start[j] or (twin is not None and not self.start[twin]):
            return
        for gpus in self._placements(j):
            self._count()
            shares = Counter(s for s, on_server in enumerate(self.gpus_of) for g in gpus if g in on_server)
            if self.shifted and before is not None and self._fits_before(j, gpus, shares, before):
                continue
            histories = [self.history[g] for g in gpus]
            for g in gpus:
                self.history[g] = (*self.history[g], j)
                self.busy[g] = True
            self.start[j], self.held[j], self.shares[j] = t, gpus, dict(shares)
            yield from self._starts(t, j + 1, before)
            self.start[j], self.held[j], self.shares[j] = 0, (), {}
            for g, history in zip(gpus, histories, strict=True):
                self.history[g] = history
                self.busy[g] = False

    def _placements(self, j: int) -> Iterator[tuple[int, ...]]:
        """GPU sets of job j, one of each class of equals, on what is idle now."""
        classes = [
            (self.sizes[s], tuple(sorted((self.history[g], self.busy[g]) for g in there)))
            for s, there in enumerate(self.gpus_of)
        ]
        twins = [max((r for r in range(s) if classes[r] == classes[s]), default=None) for s in range(len(classes))]

        def extend(s: int, left: int, chosen: list[Choice], gpus: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if left == 0 and s == len(twins):
                yield gpus
                return
            if s == len(twins):
                return
            idle = [g for g in self.gpus_of[s] if not self.busy[g]]
            twin = twins[s]
            for choice, taken in self._choices(idle, left):
                if twin is not None and choice > chosen[twin]:
                    continue
                yield from extend(s + 1, left - len(taken), [*chosen, choice], gpus + taken)

        yield from extend(0, self.need[j], [], ())

    def _choices(self, idle: list[int], most: int) -> Iterator[tuple[Choice, tuple[int, ...]]]:
        """Ways to take 0 to `most` of the idle GPUs of a server."""
        groups: dict[History, list[int]] = {}
        for g in idle:
            groups.setdefault(self.history[g] if self.each_gpu else (), []).append(g)
        keys = sorted(groups)
        for counts in itertools.product(*(range(len(groups[key]) + 1) for key in keys)):
            if sum(counts) <= most:
                taken = tuple(g for key, count in zip(keys, counts, strict=True) for g in groups[key][:count])
                yield tuple(zip(keys, counts, strict=True)), taken

    def _fits_before(self, j: int, gpus: tuple[int, ...], shares: Counter[int], before: _Slot) -> bool:
        """Whether job j could have run in the slot before as well, there lowering no rate."""
        if self.each_gpu:
            if any(before.busy[g] for g in gpus):
                return False
        elif any(sum(not before.busy[g] for g in self.gpus_of[s]) < share for s, share in shares.items()):
            return False
        rings = before.rings.copy()
        rings.update(s for s, share in shares.items() if share < self.need[j])
        return all(self._rate(i, rings) >= rate for i, rate in before.rates.items())

    def _rate(self, j: int, rings: Counter[int]) -> int:
        met = max((rings[s] for s, share in self.shares[j].items() if share < self.need[j]), default=0)
        rate: int = self.phi[j][len(self.shares[j])][met]
        return rate

    def _pass(self, t: int) -> None:
        """Run slot t, look at all that follows, and undo it."""
        running = self._running()
        rings = Counter(s for j in running for s, share in self.shares[j].items() if share < self.need[j])
        rates = {j: self._rate(j, rings) for j in running}
        slot = _Slot(self.busy.copy(), rings, rates)
        remaining = self.left.copy()
        for j, rate in rates.items():
            self.left[j] -= rate
            if self.left[j] <= 0:
                self.end[j] = t
                for g in self.held[j]:
                    self.busy[g] = False
        self._slot(t + 1, slot)
        for j in running:
            self.end[j] = 0
        self.left = remaining
        self.busy = slot.busy.copy()

    def _schedule(self) -> JointSchedule:
        jobs, servers = self.instance.jobs, self.instance.servers
        return JointSchedule(
            solution={
                "start": {job.id: self.start[j] for j, job in enumerate(jobs)},
                "placement": {
                    job.id: {servers[s].id: share for s, share in self.shares[j].items()} for j, job in enumerate(jobs)
                },
            },
            completion=tuple(self.end),
            duration=tuple(end - start + 1 for start, end in zip(self.start, self.end, strict=True)),
            gpus=tuple(self.held),
        )


@dataclass(frozen=True)
class _Slot:
    """What was there in a slot: busy GPUs, rings by server, rates of the running jobs."""

    busy: list[bool]
    rings: Counter[int]
    rates: dict[int, int]
