"""A foreign online policy: its process is told what arrives and ends, the instance stays on this side of the pipe."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from schedgap.benchmarks.hunt.edits import Data
from schedgap.benchmarks.hunt.limits import Space, parse_limits
from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.starts import starts_of
from schedgap.benchmarks.hunt.target import Target
from schedgap.benchmarks.intervals import interval
from schedgap.benchmarks.report.sheet import Column, Sheet
from schedgap.benchmarks.text import fixed
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.formulations.common.numbers import ratio
from schedgap.solvers.result import NO_DEADLINE, Deadline
from schedgap.tools.evaluation.contained import Bounds, Contained, Failed, Patience
from schedgap.tools.online.replay import Estimates, Refused, Replay, World, replay, world_of

TRIED = 100
"""Instances that an adversary tries."""
WATCHING = 0.4
"""Share of its changes that let a job come after a decision."""
ECHOES = 50
"""Empty messages that are sent and answered before the first decision: what a decision of an empty policy costs."""


@dataclass(frozen=True)
class Decisions:
    """How a policy ran on an instance."""

    seconds: Sequence[float]  # seconds of each decision, the pipe included
    slots: Sequence[int]  # slots in which they were taken
    preemptions: int
    service: Mapping[str, Json]  # how the jobs were served
    objective: float | None  # the checker's; None where the schedule is not feasible
    # its objective where it is told the true lengths; None where it failed there, or was told them anyway
    clairvoyant: float | None = None

    @classmethod
    def of(cls, run: Replay) -> Decisions:
        """The record of a run whose schedule is not kept: there may be many, each large."""
        objective = float(run.report.objective) if run.report.feasible and run.report.objective is not None else None
        return cls(run.seconds, run.slots, run.preemptions, run.service, objective)


@dataclass(eq=False)
class ContainedPolicy(Contained):
    """An online policy in a process of its own, callable as a heuristic; the event loop runs in this process."""

    is_policy: ClassVar[bool] = True
    estimates: Estimates = "none"  # what it is told of lengths
    preempts: bool | None = None  # it may preempt, which it says itself; None before it was started
    overhead: float | None = None  # seconds that an empty message and its answer take, the median of many
    runs: dict[int, Decisions] = field(default_factory=dict, repr=False)  # decisions that came to an end, by seed
    _outside: bool = False

    def __call__(self, instance: Instance, *, seed: int, deadline: Deadline = NO_DEADLINE) -> Solution | None:
        """The schedule that its decisions make; None where the instance has none at all.

        Raises Failed: as :class:`Contained`; of kind action where it wants what is impossible.
        """
        self._ready(deadline)
        world = self.world(instance, seed)
        if world is None:
            return None
        run = self._run(world, self.patience(self.bounds.seconds))
        self._look()
        self.runs[seed] = Decisions.of(run)
        return run.solution

    def world(self, instance: Instance, seed: int = 0) -> World | None:
        """The instance as it meets it."""
        told: dict[str, Any] = {"preempts": bool(self.preempts), "estimates": self.estimates, "seed": seed}
        made = world_of(self.problem, instance, **told)
        self._outside = made is not None and made.outside_model
        return made

    @property
    def outside_model(self) -> bool:
        """Whether it does what the model of the problem does not have, such as preempt."""
        return self._outside

    def certified_bound(self, instance: Instance) -> float | None:
        """A bound that holds for its schedules, preemptive ones too."""
        world = self.world(instance)
        return None if world is None else world.bound()

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        """The checker's judgement, also of a schedule that the problem's own model does not allow."""
        world = self.world(instance)
        return self.problem.check(instance, solution) if world is None else world.check(solution)

    def _before_import(self) -> None:
        """What a policy that does nothing costs, told beside the time of decisions, of which it is a part.

        It is measured while the process has no code of the policy yet, which could answer late on purpose.
        """
        echoes = []
        for _ in range(ECHOES):
            began = time.perf_counter()
            self._ask({"echo": True}, self.patience(self.bounds.seconds))
            echoes.append(time.perf_counter() - began)
        self.overhead = statistics.median(echoes)

    def _imported(self, told: dict[str, Any]) -> None:
        before, self.preempts = self.preempts, bool(told.get("preempts"))
        if before not in (None, self.preempts):  # it is judged as one kind
            raise Failed("answer", "says another `preempts` when its process starts again")

    def _try(self, instance: Instance, patience: Patience) -> None:
        world = self.world(instance)
        if world is not None:
            self._run(world, patience)

    def _run(self, world: World, patience: Patience) -> Replay:
        """All decisions together may take so long."""

        def ask(message: dict[str, Any]) -> Json:
            try:
                return self._ask(message, patience).get("actions")
            finally:
                self.seconds = patience.spent

        try:
            ask({"opening": world.opening()})
            return replay(world, lambda event: ask({"event": event}))
        except Refused as error:
            raise Failed("action", str(error)) from None


@dataclass(frozen=True)
class Online:
    """The part of a card that only an online policy has."""

    estimates: Estimates  # what it was told of lengths
    # it preempts, so its schedules are none of the problem; ratios are to a bound that holds for them, too
    outside_model: bool
    overhead: float | None  # seconds of a decision that are the pipe's and not the policy's
    runs: Sequence[Decisions | None]  # decisions of each trial, in their order; None where it failed
    adversary: Mapping[str, Json] | None = None  # see :func:`adversary`; None where it was not asked or found nothing

    def to_dict(
        self, objectives: Sequence[float | None], ratios: Sequence[tuple[float | None, str]], sense: int
    ) -> Json:
        """JSON-compatible form, given the objective and the ratio of each trial.

        ``regret`` is the part of the reference that is lost, (objective - reference) / reference where the objective is
        minimised: to the optimum, to a certified bound where no optimum is proven, and to the same policy that knows
        the lengths; the last may be negative.
        """
        seconds = sorted(itertools.chain(*(run.seconds for run in self.runs if run is not None)))
        pairs = [
            (own, run.clairvoyant)
            for own, run in zip(objectives, self.runs, strict=True)
            if own is not None and run is not None and run.clairvoyant
        ]
        known = [(value, kind) for value, kind in ratios if value is not None]
        regret: dict[str, list[float]] = {"optimum": [], "bound": []}
        for value, kind in known:
            regret[kind].append(value - 1 if sense > 0 else 1 - 1 / value)
        regret["clairvoyance"] = [sense * (own / exact - 1) for own, exact in pairs]
        return {
            "estimates": self.estimates,
            "outside_model": self.outside_model,
            "regret": {to: _mean_and_interval(values) for to, values in regret.items()},
            "decisions": len(seconds),
            "preemptions": sum(run.preemptions for run in self.runs if run is not None),
            "service": self._service(),
            "adversary": self.adversary,
            "decision_seconds": {"p50": _percentile(seconds, 50), "p99": _percentile(seconds, 99)},
            "overhead_seconds": self.overhead,
        }

    def _service(self) -> Json:
        """The means over the instances on which each figure is known."""
        rows = [run.service for run in self.runs if run is not None]
        found = {name: [row[name] for row in rows if row[name] is not None] for name in (rows or [{}])[0]}
        return {name: statistics.fmean(values) if values else None for name, values in found.items()}

    def headline(self, data: Mapping[str, Json]) -> list[str]:
        """What a person should know first."""
        lines = [f"online: jobs are told when they arrive, lengths: {_TOLD[self.estimates]}"]
        if self.outside_model:
            text = "it preempts: outside the model, so ratios are to a bound"
            lines.append(f"{text} that holds with preemption, too")
        times, own = data["decision_seconds"], data["overhead_seconds"]
        if times["p50"] is not None and own is not None:
            parts = {**times, "of these the pipe": own}
            told = ", ".join(f"{name} {1e6 * value:.0f} us" for name, value in parts.items())
            counts = f"{data['decisions']} decisions, {data['preemptions']} preemptions"
            lines.append(f"{counts}; a decision: {told}")
        if self.adversary is not None:
            worst = self.adversary
            text = f"worst of {worst['tried']} instances of an adversary that sees its decisions: ratio"
            lines.append(f"{text} {fixed(worst['ratio'])} to a certified bound, {worst['file']}")
        return lines

    def sheets(self, data: Mapping[str, Json]) -> list[Sheet]:
        """Regrets and how jobs were served, from :meth:`to_dict`."""
        names = [name for name, value in data["service"].items() if value is not None]
        cells = [fixed(data["service"][name]) for name in names]
        columns = tuple(Column(name, _SERVICE[name]) for name in names)
        return [self._regrets(data), Sheet("Service, means over the instances", columns, [cells] if cells else [])]

    def _regrets(self, data: Mapping[str, Json]) -> Sheet:
        names = ("over", "mean", "95% interval", "worst")
        columns = (Column("to", right=False), *map(Column, names))
        rows = []
        for to, row in data["regret"].items():
            if not row["count"]:
                continue
            half = row["half_width"]
            interval = "" if half is None else f"+- {fixed(half)}"
            mean, worst = fixed(row["mean"]), fixed(row["worst"])
            rows.append([_NAMED[to], str(row["count"]), mean, interval, worst])
        return Sheet("Regret: what it loses, as a part of the reference", columns, rows)


_SERVICE = {
    "unfinished": "jobs that did not complete",
    "jct": "slots from arrival to completion",
    "wait": "of these, those in which it held nothing",
    "fairness": "finish-time fairness: JCT over JCT alone on an equal share of the cluster",
    "jain": "index of the jobs' slowdowns: 1 where all are equal",
    "utilisation": "gang slots held over GPU slots",
}
_NAMED = {
    "optimum": "proven optimum",
    "bound": "certified bound",
    "clairvoyance": "itself with known lengths",
}
_TOLD = {
    "exact": "the true ones",
    "user": "what a user would ask for",
    "none": "nothing",
}


def _percentile(ordered: Sequence[float], percent: int) -> float | None:
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else None


def _mean_and_interval(values: Sequence[float]) -> Mapping[str, Json]:
    """Count, mean, the half-width of its 95% interval (Student's t; None below two values) and the worst."""
    found = interval(np.array(values))
    return {
        "count": 0 if found is None else found.count,
        "mean": None if found is None else found.mean,
        "half_width": None if found is None else found.half,
        "worst": max(values, default=None),
    }


def scheduled(name: str, problem: Problem, bounds: Bounds, estimates: Estimates | None) -> Contained:
    """A scheduler in a process of its own: a function, or a policy where something is said of estimates."""
    if estimates is None:
        return Contained(name, problem, bounds)
    return ContainedPolicy(name, problem, bounds, estimates=estimates)


def adversary(
    contained: Contained, seed: int, out: Path, tried: int = TRIED, limits: Mapping[str, Json] | None = None
) -> Mapping[str, Json] | None:
    """The worst of some instances that are made while it is watched how the policy decides: its ratio to a bound.

    From a small preset on, numbers and jobs change as in a hunt, or a job comes the slot after a decision of the policy
    on the instance before: when it has just started what it would not have started. What is worse is kept. Policies
    that preempt are judged as well, since the bound is of their world; the ratio is not less than that to the optimum.
    `limits` are those of a hunt. Returns ``ratio``, ``objective``, ``bound``, ``tried`` and ``file``; None where no
    instance had both.
    """
    assert isinstance(contained, ContainedPolicy)
    problem, rng = contained.problem, np.random.default_rng(seed)
    target = Target(problem, contained.method())
    starts = starts_of(target, parse_limits(problem, target.method, limits or {}))
    best: dict[str, Json] | None = None
    data: Data = starts.draw(rng)[0]
    slots: Sequence[int] = ()
    for _ in range(tried):
        instance, found = None, None
        with contextlib.suppress(Failed, InputError):
            instance = problem.instance_class.parse(data)
            if contained(instance, seed=0) is not None:
                objective, bound = contained.runs[0].objective, contained.certified_bound(instance)
                worse = ratio(objective, bound, problem.sense)
                found = None if worse is None or math.isinf(worse) else worse
        if found is not None and instance is not None and (best is None or found >= best["ratio"]):
            best = {"ratio": found, "objective": objective, "bound": bound, "data": data}
            slots = contained.runs[0].slots
        data = starts.draw(rng)[0] if best is None else _next(best["data"], starts.space, slots, rng)
    if best is None:
        return None
    out.mkdir(parents=True, exist_ok=True)
    file = out / "adversary.json"
    write_text(file, problem.instance_class.parse(best.pop("data")).to_json())
    return {**best, "tried": tried, "file": str(file)}


def _next(data: Data, space: Space, slots: Sequence[int], rng: np.random.Generator) -> Data:
    """Another instance: some change, or a job that comes in the slot after a decision, where arrivals are slots."""
    jobs = data["jobs"]
    if rng.random() < WATCHING and slots and all(isinstance(job["arrival"], int) for job in jobs):
        moved = copy.deepcopy(dict(data))
        moved["jobs"][int(rng.integers(len(jobs)))]["arrival"] = int(rng.choice(slots)) + 1
        return moved
    return mutated(data, space, rng, data) or data


def watch(contained: Contained, instances: Sequence[Instance], say: Callable[[str], None]) -> Online:
    """How a policy ran on instances, whose place in the list is the seed, and how it does if told the lengths.

    For that it has another process and another folder, and its turn comes last:
    so it remembers nothing here of what it is told there.
    """
    assert isinstance(contained, ContainedPolicy)
    runs = dict(contained.runs)
    if contained.estimates != "exact" and runs:
        say("evaluate: the same policy with known lengths")
        other = ContainedPolicy(contained.name, contained.problem, contained.bounds, estimates="exact")
        with other:
            for place, run in runs.items():
                with contextlib.suppress(Failed):
                    other(instances[place], seed=place)
                    runs[place] = replace(run, clairvoyant=other.runs[place].objective)
    told = [runs.get(place) for place in range(len(instances))]
    return Online(contained.estimates, contained.outside_model, contained.overhead, told)
