"""What an online policy sees and answers: jobs that have arrived and are not done, and what to do with them now.

The state is kept up to date from messages of what has changed, on the policy's side of the pipe: nothing of a job that
has not arrived, and no length but an estimate, is ever sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from schedgap.formulations.common.instance import Json

Action: TypeAlias = tuple[str, int] | tuple[str, int, Json]
"""``("start", job)``, ``("start", job, place)``, ``("move", job, place)``, ``("preempt", job)`` or ``("wake", slot)``.
What a place is depends on the problem: a list of GPUs, of devices, a ring."""


@dataclass
class Job:
    """A job that has arrived and is not done."""

    id: int  # its number in the order of arrival; names of the instance may tell more than a policy may know
    # arrival, gpus: the slot in which it arrived, and the size of its gang
    arrival: int
    gpus: int
    # estimate, slots: slots that it takes alone, as a real number and as whole slots; None where they are hidden
    estimate: float | None
    slots: int | None
    # what else is known of it, as the problem has it; no length
    facts: Mapping[str, Json] = field(default_factory=dict)
    place: Json = None  # what it runs on; None while it waits, and where the cluster has chosen and has not told yet
    done: Json = None  # what it has done, where the problem tells that
    since: int | None = None  # the slot since which it runs, None while it waits
    # ran, lost: slots in which it held its GPUs before that, and how many of them went into restoring it
    ran: int = 0
    lost: int = 0


@dataclass
class State:
    """The cluster at the present slot."""

    servers: Sequence[int]  # GPUs of each server; GPUs are numbered from 0 through the servers in order
    slot_length: float  # seconds
    preempts: bool  # whether running jobs may be preempted
    restart: int  # slots at the beginning of each further run of a job that go into restoring it
    seed: int  # for a policy that draws
    cluster: Mapping[str, Json] = field(default_factory=dict)  # what else is known of it, as the problem has it
    # slot, free: now, and GPUs without a job
    slot: int = 0
    free: int = field(init=False)
    # arrived, ended: numbers of the jobs that came now, and that completed before now
    arrived: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)  # every job here, by number
    # waiting, running: those of them that do not run, in order of arrival, and that run, in order of their starts
    waiting: dict[int, Job] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    _sorted: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        self.free = sum(self.servers)

    def held(self, job: Job) -> int:
        """Slots in which a job has held its GPUs until now."""
        return job.ran + (0 if job.since is None else self.slot - job.since)

    def worked(self, job: Job) -> int:
        """Slots of :meth:`held` in which it came on: restoring is no work."""
        if job.since is None:
            return job.ran - job.lost
        return job.ran - job.lost + max(0, self.slot - job.since - self._restoring(job))

    def _restoring(self, job: Job) -> int:
        return self.restart if job.ran else 0

    def reveal(self, event: Mapping[str, Json]) -> None:
        """Take in what has happened.

        ``{"slot", "ended": [job, ...], "arrived": [[job, GPUs, estimate, slots, facts], ...]}``, facts only where there
        are any; ``stopped``: jobs whose run is over and that wait again; ``news``: ``[[job, {attribute: value}], ...]``

        O(jobs that came or went).
        """
        self.slot = event["slot"]
        self.ended = event["ended"]
        for number in self.ended:
            self.free += self.running.pop(number).gpus
            del self.jobs[number]
        for number in event.get("stopped", ()):
            self._halt(number)
        self.apply(())
        self.arrived = [row[0] for row in event["arrived"]]
        for number, *told in event["arrived"]:
            self.jobs[number] = self.waiting[number] = Job(number, self.slot, *told)
        for number, changes in event.get("news", ()):
            vars(self.jobs[number]).update(changes)

    def apply(self, actions: Iterable[Action]) -> None:
        """Follow what the policy answered. What is impossible is found by the other side, which ends the run."""
        for verb, number, *place in actions:
            job = self.jobs.get(number)
            if verb in ("preempt", "move") and job is not None and job.since is not None:
                self._halt(number)
            if verb in ("start", "move") and job is not None and job.since is None:
                job.since, job.place = self.slot, place[0] if place else None
                self.running[number] = self.waiting.pop(number)
                self.free -= job.gpus
        self.waiting = self.waiting if self._sorted else dict(sorted(self.waiting.items()))
        self._sorted = True

    def _halt(self, number: int) -> None:
        """The job holds nothing any more and waits."""
        job = self.running.pop(number)
        job.lost, job.ran, job.since, job.place = self.held(job) - self.worked(job), self.held(job), None, None
        self.waiting[number] = job
        self.free += job.gpus
        self._sorted = False


class Policy(Protocol):
    """An online scheduler; one is made for every run.

    A class attribute ``preempts = True`` lets it preempt: its schedules are outside the model of a problem whose jobs
    run through.
    """

    def decide(self, state: State) -> Iterable[Action]:
        """What to do now. Called when jobs arrive or complete, and at the slot of its last answer's wake-up.

        Actions are taken one after another. A wake-up holds until the next decision.
        """


class Session:
    """A policy and the state that it sees, on the policy's side."""

    def __init__(self, policy: Policy, opening: Mapping[str, Json]) -> None:
        self.policy, self.state = policy, State(**opening)

    def answer(self, event: Mapping[str, Json]) -> list[Action]:
        """Its actions after an event."""
        self.state.reveal(event)
        actions = list(self.policy.decide(self.state) or ())
        self.state.apply(actions)
        return actions
