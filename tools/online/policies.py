"""Online policies that schedgap ships, written as anybody would write one: they see a state and nothing else."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from schedgap.tools.online.state import Action, Job, Policy, State


def needs_length(job: Job) -> tuple[float, int]:
    """Estimated slots and their whole number.

    Raises ValueError: lengths are hidden.
    """
    if job.estimate is None or job.slots is None:
        raise ValueError("this policy needs lengths: run it with --estimates exact or user")
    return job.estimate, job.slots


class Fifo:
    """Jobs in order of arrival; the first that does not fit holds up the rest. It needs no lengths."""

    def decide(self, state: State) -> Iterator[Action]:
        """O(jobs that start)."""
        free = state.free
        for job in state.waiting.values():
            if job.gpus > free:
                return
            free -= job.gpus
            yield "start", job.id


class Sjf:
    """The shortest estimate first; a job that does not fit is passed over."""

    def __init__(self) -> None:
        self.queue: list[tuple[float, int]] = []

    def decide(self, state: State) -> Iterable[Action]:
        """O(waiting)."""
        for number in state.arrived:
            bisect.insort(self.queue, (needs_length(state.jobs[number])[0], number))
        free = state.free
        started: dict[int, None] = {}
        for _, number in self.queue:
            if free == 0:
                break
            if state.jobs[number].gpus <= free:
                free -= state.jobs[number].gpus
                started[number] = None
        if started:
            self.queue = [entry for entry in self.queue if entry[1] not in started]
        return [("start", number) for number in started]


class Easy:
    """Jobs in order of arrival with EASY backfilling (Lifka, JSSPP 1995).

    The first job that does not fit has a reservation at the slot at which enough GPUs are free if estimates hold. A
    later one may pass it if it fits now and either ends by then or takes none of the GPUs that are reserved.
    """

    def decide(self, state: State) -> Iterator[Action]:
        """O(waiting + running log running)."""
        waiting = iter(state.waiting.values())
        free, started, head = state.free, [], None
        for job in waiting:
            if job.gpus > free:
                head = job
                break
            free -= job.gpus
            started.append(job)
            yield "start", job.id
        if head is None or free == 0:
            return
        reserved, spare = self._reservation(state, started, head.gpus - free)
        for job in waiting:
            in_time = needs_length(job)[1] <= reserved - state.slot
            if job.gpus > free or not (in_time or job.gpus <= spare):
                continue
            free -= job.gpus
            spare -= 0 if in_time else job.gpus  # it holds its GPUs beyond the reservation
            yield "start", job.id

    @staticmethod
    def _reservation(state: State, started: list[Job], missing: int) -> tuple[int, int]:
        """The slot at which so many more GPUs are free, and the GPUs that are then free beside them."""
        ends = [
            (max((job.since or 0) + needs_length(job)[1], state.slot + 1), job.gpus) for job in state.running.values()
        ]
        ends += [(state.slot + needs_length(job)[1], job.gpus) for job in started]
        reserved = math.inf
        freed = 0
        for end, gpus in sorted(ends):
            if end > reserved:
                break
            freed += gpus
            reserved = end if freed >= missing else reserved
        if freed < missing:
            raise ValueError("the first job that waits is larger than the cluster")
        return int(reserved), freed - missing


class _Preemptive:
    """Gives the cluster out anew at every decision, in an order; a job that does not fit is passed over."""

    preempts = True

    def fill(self, state: State, key: Callable[[Job], tuple[float, ...]]) -> list[Action]:
        """The jobs that lose their GPUs, then those that get some; O(jobs log jobs)."""
        free, kept = sum(state.servers), {}
        for job in sorted(state.jobs.values(), key=key):
            if job.gpus <= free:
                free -= job.gpus
                kept[job.id] = job
        stopped: list[Action] = [("preempt", number) for number in state.running if number not in kept]
        return stopped + [("start", job.id) for job in kept.values() if job.since is None]


class Srtf(_Preemptive):
    """The shortest remaining time first, preemptive.

    Optimal for the mean completion time on one GPU where lengths are known and restarts cost nothing (Schrage 1968).
    """

    def decide(self, state: State) -> list[Action]:
        """O(jobs log jobs)."""
        return self.fill(state, lambda job: (needs_length(job)[1] - state.worked(job), job.id))


class Las(_Preemptive):
    """Two queues by attained service, preemptive, after Tiresias (Gu et al., NSDI 2019). It needs no lengths.

    A job is in the first queue until it has had `threshold` GPU seconds; each queue is in order of arrival.
    """

    def __init__(self, threshold: float = 3600.0) -> None:
        self.threshold = threshold

    def decide(self, state: State) -> list[Action]:
        """O(jobs log jobs); asks to be woken when a running job leaves the first queue."""
        limit = math.ceil(self.threshold / state.slot_length)
        rest = {job.id: limit - job.gpus * state.held(job) for job in state.jobs.values()}
        actions = self.fill(state, lambda job: (rest[job.id] <= 0, job.id))
        stopped = {number for _, number, *_ in actions if number in state.running}
        runs = {*state.running, *(number for _, number, *_ in actions)} - stopped
        moves = [state.slot - (-rest[number] // state.jobs[number].gpus) for number in runs if rest[number] > 0]
        return [*actions, ("wake", min(moves))] if moves else actions


POLICIES: Mapping[str, Callable[[], Policy]] = {"fifo": Fifo, "sjf": Sjf, "srtf": Srtf, "las": Las, "easy": Easy}
"""Policies by name."""
