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

from schedgap.benchmarks.online.state import Policy, Session
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Json, Solution

Estimates: TypeAlias = Literal["exact", "user", "none"]
"""What a policy is told of a job's length when it arrives: the length, what a user would ask for, nothing."""
Decide: TypeAlias = Callable[[Mapping[str, Json]], Sequence[Json]]
"""The actions of a policy after an event, unchecked."""


class Refused(Exception):
    """An action that is not possible, or none where some are needed: the run of the policy ends there."""


class World(ABC):
    """An instance that comes to be known in time. Only the loop holds one; policies get its messages.

    Jobs go by number in the order of arrival.
    """

    outside_model = False
    """Whether its schedules are no solutions of the problem."""

    @abstractmethod
    def opening(self) -> Mapping[str, Json]:
        """What is known before the first job arrives."""

    @abstractmethod
    def next_slot(self) -> int | None:
        """When a job arrives or has completed, next; None where neither happens unless the policy acts."""

    @abstractmethod
    def advance(self, slot: int) -> Mapping[str, Json]:
        """Go to a slot; what the policy is told."""

    @abstractmethod
    def act(self, verb: str, job: int, gpus: Sequence[int] | None) -> None:
        """Do what the policy wants with a job.

        Raises
        ------
        Refused
            It is not possible; the line says why, without slot and job.
        """

    @abstractmethod
    def unfinished(self) -> int:
        """Jobs that are not done, those to come among them."""

    @abstractmethod
    def solution(self) -> Solution:
        """The schedule, when all is done."""

    @abstractmethod
    def completion(self) -> Mapping[str, int]:
        """The last slot of every job, as computed here."""

    @abstractmethod
    def check(self, solution: Solution) -> CheckReport:
        """The judgement of the checker, which shares nothing with this world."""

    @abstractmethod
    def bound(self) -> float | None:
        """A certified bound on the objective of whatever schedule this world may make."""


@dataclass(frozen=True)
class Replay:
    """What came of a run.

    Attributes
    ----------
    solution : the schedule
    report : the checker's
    seconds : of each decision, taken outside of the policy
    preemptions : how many
    """

    solution: Solution
    report: CheckReport
    seconds: Sequence[float]
    preemptions: int


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
    while world.unfinished():
        moments = [moment for moment in (world.next_slot(), wake) if moment is not None]
        if not moments:
            raise Refused(f"slot {slot}: {world.unfinished()} jobs wait for ever: none runs, none comes, no wake-up")
        slot = min(moments)
        event = world.advance(slot)
        if not world.unfinished():
            break  # nothing is left to decide
        # Only here does the policy compute, so its time can be taken without trusting it.
        began = time.perf_counter()
        actions = decide(event)
        seconds.append(time.perf_counter() - began)
        wake = None
        for action in actions:
            verb, number, gpus = _read(action, slot)
            if verb == "wake":
                wake = _later(number, slot, wake)
                continue
            try:
                world.act(verb, number, gpus)
            except Refused as error:
                raise Refused(f"slot {slot}: {verb} of job {number}: {error}") from None
            preemptions += verb == "preempt"
    solution = world.solution()
    report = world.check(solution)
    if report.details.get("completion", world.completion()) != world.completion():
        raise Disagreement("the online loop and the checker compute different completions of one schedule")
    return Replay(solution, report, seconds, preemptions)


def _read(action: Json, slot: int) -> tuple[str, int, Sequence[int] | None]:
    """A verb, a number, and GPUs or None.

    Raises
    ------
    Refused
        It is none.
    """
    shape = action if isinstance(action, list | tuple) else ()
    gpus = shape[2] if len(shape) == 3 else None
    whole = [shape[1], *(gpus if isinstance(gpus, list | tuple) else ())] if len(shape) in (2, 3) else [None]
    known = len(shape) > 1 and shape[0] in (("start",) if len(shape) == 3 else ("start", "preempt", "wake"))
    listed = len(shape) == 2 or isinstance(gpus, list | tuple)
    if not (known and listed and all(isinstance(number, int) and not isinstance(number, bool) for number in whole)):
        raise Refused(f"slot {slot}: no action: {str(action)[:80]}")
    return shape[0], shape[1], gpus


def _later(moment: int, slot: int, wake: int | None) -> int:
    if moment <= slot:
        raise Refused(f"slot {slot}: wake-up in slot {moment}: must be later")
    return moment if wake is None else min(moment, wake)


def estimates_of(online: bool, estimates: Estimates | None) -> Estimates | None:
    """What a scheduler is told of lengths, from the options of a command; None for one that is not online.

    Raises
    ------
    InputError
        Estimates for one that is not online.
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
    preempts: bool = False,
    estimates: Estimates = "exact",
    seed: int = 0,
    restart: float | None = None,
) -> World | None:
    """The world of an instance, from the problem's own module in this folder; None where it has no schedule at all.

    Parameters
    ----------
    preempts : whether the policy may preempt
    estimates : what is told of lengths
    seed : of the estimates of users
    restart : seconds that a preempted job needs to go on; the problem's own where not given

    Raises
    ------
    InputError
        The problem has no online loop.
    """
    made: World | None = _module(problem).world(problem.cast_instance(instance), preempts, estimates, seed, restart)
    return made


def check_online(problem: Problem) -> None:
    """Refuse a problem that has no online loop.

    Raises
    ------
    InputError
        It has none.
    """
    _module(problem)


def _module(problem: Problem) -> ModuleType:
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
