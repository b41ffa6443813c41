"""The event loop of an online run: reveals a job when it arrives, asks the policy, and does what it answers."""

from __future__ import annotations

import bisect
import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, TypeAlias

import numpy as np

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.tools.online.service import service
from schedgap.tools.online.state import Policy, Session

Estimates: TypeAlias = Literal["exact", "user", "none"]
"""What a policy is told of a job's length when it arrives: the length, what a user would ask for, nothing."""
Decide: TypeAlias = Callable[[Mapping[str, Json]], Sequence[Json]]
"""The actions of a policy after an event, unchecked."""

OVERESTIMATE = 4.0
"""A user asks for 1 to 1 + this times the length, uniformly (the f-model of Mu'alem and Feitelson, TPDS 2001)."""
THROUGH = "jobs run through; a policy that preempts says preempts = True"


class Refused(Exception):
    """An action that is not possible, or none where some are needed: the run of the policy ends there."""


class World(ABC):
    """An instance that comes to be known in time. Only the loop holds one; policies get its messages.

    Jobs go by number in the order of arrival there, and by position in the instance here. What is the same for every
    problem stands here: who has arrived, who runs, what is told of lengths. A problem adds what its jobs hold.

    Attributes
    ----------
    problem : set by :func:`world_of`
    preempts : jobs may be stopped
    outside_model : its schedules are no solutions of the problem
    restart : slots that a stopped job loses when it goes on
    by_number : a job may start wherever so many GPUs as it needs are free, and the cluster can choose them
    last : the slot after which nothing counts, where jobs may be left undone; None where all must complete
    never : no wake-up is as late, so that ends and their sums stay numbers that the world and its checker can count
    """

    problem: Problem
    preempts = False
    outside_model = False
    restart = 0
    by_number = False
    last: int | None = None
    never = 1 << 53

    def __init__(
        self, instance: Instance, arrival: Sequence[int], sizes: Sequence[int], estimates: Estimates, seed: int
    ) -> None:
        self.instance, self.sizes, self.estimates, self.seed = instance, sizes, estimates, seed
        self.arrivals = Arrivals(arrival)
        self.position = self.arrivals.position
        self.number = {job: number for number, job in enumerate(self.position)}
        self.left = len(self.position)
        self.slot = 0
        self.waiting: set[int] = set()
        self.running: dict[int, int] = {}
        self.held = [0] * self.left
        self.end: list[int | None] = [None] * self.left
        self.factors = np.ones(self.left)
        if estimates == "user":  # a policy is told the seed, and would divide by draws that come of that alone
            secret = int(instance.content_hash(), 16)
            self.factors += OVERESTIMATE * np.random.default_rng([seed, secret]).random(self.left)

    @abstractmethod
    def cluster(self) -> Mapping[str, Json]:
        """``servers``, ``slot_length`` and, where that is not all, ``cluster``: what is known before any job."""

    @abstractmethod
    def told(self, job: int) -> Sequence[Json]:
        """What is told of a job when it arrives, its size left out: estimate, whole slots, and facts if there are."""

    @abstractmethod
    def next_end(self, until: int | None) -> int | None:
        """The last slot of the run that ends first if nothing changes; none is looked for beyond `until`."""

    @abstractmethod
    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        """End the runs that are over before the present slot: jobs that are done, jobs that wait again."""

    @abstractmethod
    def start(self, job: int, place: Json) -> None:
        """Give it what it asks for, or anything where `place` is None; :class:`Refused` where that is impossible."""

    def stop(self, job: int) -> None:
        """Take from a running job what it holds, where jobs may be stopped."""
        raise NotImplementedError

    @abstractmethod
    def solution(self) -> Solution:
        """The schedule, when all is done."""

    @abstractmethod
    def expects(self) -> Mapping[str, Json]:
        """What the checker's details must say, as computed here."""

    @abstractmethod
    def alone(self) -> Sequence[float]:
        """Slots of each job alone, at the least."""

    def news(self) -> Sequence[Json]:
        """What else has become known of jobs that are here: ``[[job, {attribute: value}], ...]``."""
        return ()

    def check(self, solution: Solution) -> CheckReport:
        """The judgement of the checker, which shares nothing with this world."""
        return self.problem.check(self.instance, solution)

    def judged(self) -> tuple[Solution, CheckReport]:
        """The schedule, when all is done, and the judgement of it.

        Raises Disagreement: the checker computes another completion than this world.
        """
        solution = self.solution()
        report = self.check(solution)
        for name, computed in self.expects().items():
            if report.details.get(name, computed) != computed:
                raise Disagreement(f"the online loop and the checker compute a different {name} of one schedule")
        return solution, report

    def bound(self) -> float | None:
        """A certified bound on the objective of whatever schedule this world may make."""
        return self.problem.certified_bound(self.instance)

    def service(self) -> Mapping[str, Json]:
        """How the jobs were served, see :func:`~schedgap.tools.online.service.service`."""
        arrival = [self.arrivals.slot[self.number[job]] for job in range(len(self.end))]
        return service(arrival, self.end, self.held, self.sizes, self.alone(), sum(self.cluster()["servers"]))

    def opening(self) -> Mapping[str, Json]:
        """What is known before the first job arrives."""
        return {**self.cluster(), "preempts": self.preempts, "restart": self.restart, "seed": self.seed}

    def next_slot(self, wake: int | None = None) -> int | None:
        """When a job arrives or has completed, next, or the wake-up; None where nothing happens."""
        known = [moment for moment in (self.arrivals.next_slot(), wake) if moment is not None]
        end = self.next_end(min(known, default=None))
        return min([*known, *([] if end is None else [end + 1])], default=None)

    def unfinished(self) -> int:
        """Jobs that are not done, those to come among them."""
        return self.left

    def advance(self, slot: int) -> Mapping[str, Json]:
        """Go to a slot; what the policy is told."""
        self.slot = slot
        ended, stopped = self.finish()
        for job in (*ended, *stopped):
            self.held[job] += slot - self.running.pop(job)
        # the loop stops at every end, so what has ended by now did so in the slot before
        for job in ended:
            self.end[job] = slot - 1
        self.left -= len(ended)
        arrived = self.arrivals.until(slot)
        self.waiting.update(stopped, (self.position[number] for number in arrived))
        rows = [[number, self.sizes[job], *self.told(job)] for number in arrived for job in (self.position[number],)]
        more = {"stopped": sorted(self.number[job] for job in stopped), "news": list(self.news())}
        known = {"slot": slot, "ended": sorted(self.number[job] for job in ended), "arrived": rows}
        return known | {key: value for key, value in more.items() if value}

    def act(self, verb: str, job: int, place: Json) -> None:
        """Do what the policy wants with a job.

        Raises Refused: it is not possible; the line says why, without slot and job.
        """
        position = self.position[job] if 0 <= job < self.arrivals.known else -1
        if verb != "start":
            if not self.preempts:
                raise Refused(THROUGH)
            if position not in self.running:
                raise Refused("it does not run")
            self.stop(position)
            self.held[position] += self.slot - self.running.pop(position)
            self.waiting.add(position)
        if verb != "preempt":
            if position not in self.waiting:
                raise Refused("it does not wait")
            self.start(position, place)
            self.waiting.discard(position)
            self.running[position] = self.slot


def numbers_of(place: Json) -> list[int]:
    """A list of whole numbers.

    Raises Refused: it is none.
    """
    if not (isinstance(place, list | tuple) and all(type(number) is int for number in place)):
        raise Refused(f"must be a list of numbers: {str(place)[:80]}")
    return list(place)


def gpus_of(place: Json, size: int, count: int) -> list[int]:
    """So many different GPUs of a cluster of `count`.

    Raises Refused: they are others.
    """
    gpus = numbers_of(place)
    if not len(gpus) == len(set(gpus)) == size:
        raise Refused(f"it needs {size} different GPUs, {len(set(gpus))} are named")
    for gpu in gpus:
        if not 0 <= gpu < count:
            raise Refused(f"there is no GPU {gpu}, they go from 0 to {count - 1}")
    return gpus


@dataclass(frozen=True)
class Replay:
    """What came of a run."""

    solution: Solution  # the schedule
    report: CheckReport  # the checker's
    seconds: Sequence[float]  # seconds of each decision, taken outside of the policy
    preemptions: int  # how many
    slots: Sequence[int]  # slot of each decision
    service: Mapping[str, Json]  # see :func:`~schedgap.tools.online.service.service`


def replay(world: World, decide: Decide) -> Replay:
    """Run a policy from the first arrival to the last completion.

    Raises
    ------
    Refused
        An impossible action, named with slot and job, or jobs that would wait for ever.
    Disagreement
        The checker computes another completion than this loop.

    Notes
    -----
    At most two decisions a job, one for each wake-up that the policy asks for, and one after each preemption's end.
    """
    wake: int | None = None
    slot, preemptions = 0, 0
    seconds: list[float] = []
    slots: list[int] = []
    while world.unfinished():
        after = world.next_slot(wake)
        if world.last is not None and (after is None or after > world.last):
            world.advance(world.last + 1)  # who ends in the last slot has ended
            break
        if after is None:
            raise Refused(f"slot {slot}: {world.unfinished()} jobs wait for ever: none runs, none comes, no wake-up")
        slot = after
        event = world.advance(slot)
        if not world.unfinished():
            break  # nothing is left to decide
        # Only here does the policy compute, so its time can be taken without trusting it.
        began = time.perf_counter()
        actions = decide(event)
        seconds.append(time.perf_counter() - began)
        slots.append(slot)
        wake = None
        for action in _listed(actions, slot):
            verb, number, place = _read(action, slot)
            if verb == "wake":
                if not slot < number < world.never:
                    raise Refused(f"slot {slot}: wake-up in slot {number}: must be later, and before {world.never}")
                wake = number if wake is None else min(number, wake)
                continue
            try:
                world.act(verb, number, place)
            except Refused as error:
                raise Refused(f"slot {slot}: {verb} of job {number}: {error}") from None
            preemptions += verb in ("preempt", "move")
    return Replay(*world.judged(), seconds, preemptions, slots, world.service())


def _listed(actions: Json, slot: int) -> Sequence[Json]:
    if isinstance(actions, list):
        return actions
    raise Refused(f"slot {slot}: must be a list of actions: {str(actions)[:80]}")


def _read(action: Json, slot: int) -> tuple[str, int, Json]:
    """A verb, a number, and what it is to hold or None.

    Raises Refused: it is none.
    """
    shape = action if isinstance(action, list | tuple) and len(action) in (2, 3) else (None, None)
    known = shape[0] in ("start", "move") if len(shape) == 3 else shape[0] in ("start", "preempt", "wake")
    if not known or type(shape[1]) is not int:
        raise Refused(f"slot {slot}: no action: {str(action)[:80]}")
    return shape[0], shape[1], shape[2] if len(shape) == 3 else None


def estimates_of(online: bool, estimates: Estimates | None) -> Estimates | None:
    """What a scheduler is told of lengths, from the options of a command; None for one that is not online.

    Raises InputError: estimates for one that is not online.
    """
    if estimates is not None and not online:
        raise InputError(f"--estimates {estimates}: only an online policy is told of lengths (--online)")
    return (estimates or "none") if online else None


class Arrivals:
    """The jobs of an instance by number, and those of them that are still to come."""

    def __init__(self, arrival: Sequence[int]) -> None:
        self.position = sorted(range(len(arrival)), key=lambda j: (arrival[j], j))
        self.slot = [arrival[j] for j in self.position]
        self.known = 0

    def next_slot(self) -> int | None:
        """When the next one comes."""
        return self.slot[self.known] if self.known < len(self.slot) else None

    def until(self, slot: int) -> range:
        """The numbers of those that come until a slot; they are known from then on."""
        first, self.known = self.known, bisect.bisect_right(self.slot, slot)
        return range(first, self.known)


def world_of(
    problem: Problem,
    instance: Instance,
    *,
    preempts: bool = False,  # whether the policy may preempt
    estimates: Estimates = "exact",  # what is told of lengths
    seed: int = 0,  # seed of the estimates of users
    restart: float | None = None,  # seconds that a preempted job needs to go on; the problem's own where not given
) -> World | None:
    """The world of an instance, from the problem's own module in this folder; None where it has no schedule at all.

    Raises InputError: the problem has no online loop, or the seed is negative.
    """
    if seed < 0:
        raise InputError(f"seed: must be at least 0, got {seed}")
    make = loop_of(problem).world
    made: World | None = make(problem.cast_instance(instance), estimates, seed, preempts, restart)
    if made is not None:
        made.problem = problem
    return made


def loop_of(problem: Problem) -> ModuleType:
    """What the online loop is of a problem.

    Raises InputError: it has none.
    """
    name = f"{__package__}.{problem.id.replace('-', '_')}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError(f"--online: there is no online loop for {problem.id}") from None


def replay_here(world: World, policy: Policy) -> Replay:
    """Run a policy of ours in this process; one of strangers belongs into a process of its own."""
    return replay(world, Session(policy, world.opening()).answer)
