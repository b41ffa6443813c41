"""One slot of ddljs as an instance of g-vne, and the methods that may solve it inside ``gadget``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.substrate import Link, Server
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.utility import LONGEST, gain, reaches, steepest, steepest_up_to
from schedgap.formulations.g_vne.instance import GVneInstance, Job
from schedgap.formulations.g_vne.ring_network import Need, Ring, RingNetwork
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.g_vne.lp_rs_mde import TRIES
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions

# A schedule of ddljs that grows slot by slot: who may run, what every job has, the rings of each slot.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class GreedyState:
    """The state of a run.

    Attributes
    ----------
    network : what is left of the network in the current slot
    needs : of every job
    done : worker-slots of every job so far, z_i of the paper
    """

    def __init__(self, instance: DdljsInstance) -> None:
        self.instance = instance
        self.reach = reaches(instance)
        self.network = RingNetwork(instance)
        self.needs: list[Need] = [self.network.need(job.demand, job.bandwidth) for job in instance.jobs]
        self.done = [0] * len(instance.jobs)
        self.slots: list[dict[str, Any]] = []
        self._order = sorted(range(len(instance.jobs)), key=lambda i: instance.jobs[i].arrival)
        self._arrived = 0
        self._waiting: list[int] = []
        self._shares: list[float] = []
        self._used = 0
        self._gains: dict[int, tuple[int, int, Floats]] = {}
        self._slopes: dict[int, tuple[int, Floats, Ints]] = {}

    def active(self) -> list[int]:
        """I[t]: jobs that have arrived, with budget left and a ring that the network could host; in input order."""
        slot = len(self.slots) + 1
        while self._arrived < len(self._order) and self.instance.jobs[self._order[self._arrived]].arrival <= slot:
            self._waiting.append(self._order[self._arrived])
            self._arrived += 1
        self._waiting = sorted(i for i in self._waiting if self.largest(i))
        return self._waiting

    def largest(self, i: int) -> int:
        """The largest ring the job may still run: by N_i, the network alone, and what is left of its budget."""
        return min(self.reach[i].ring, self.allowed(i))

    def allowed(self, i: int) -> int:
        """The largest ring by N_i and what is left of the budget."""
        job = self.instance.jobs[i]
        return (
            job.max_workers if job.slot_limit is None else max(0, min(job.max_workers, job.slot_limit - self.done[i]))
        )

    def gains(self, i: int, most: int) -> Floats:
        """What rings of 1 to `most` workers add to the job's utility now."""
        found = self._gains.get(i)
        if found is None or found[:2] != (self.done[i], most):
            found = self.done[i], most, gain(self.instance.jobs[i], self.done[i], np.arange(1, most + 1))
            self._gains[i] = found
        return found[2]

    def steepest(self, i: int, most: int) -> tuple[float, int]:
        """The job's best average gain over 1 to `most` worker-slots from here on, and after how many."""
        job = self.instance.jobs[i]
        if job.concave or not 0 < most <= LONGEST:
            return steepest(job, self.done[i], most)
        found = self._slopes.get(i)
        if found is None or found[0] != self.done[i] or len(found[1]) < most:
            found = self.done[i], *steepest_up_to(job, self.done[i], most)
            self._slopes[i] = found
        return float(found[1][most - 1]), int(found[2][most - 1])

    def close(self, rings: Mapping[int, Ring], active: int) -> None:
        """End the slot with these rings, by job; `active` jobs were there to choose from."""
        self.slots.append(
            {"rings": {self.instance.jobs[i].id: self.network.solution_of(rings[i]) for i in sorted(rings)}}
        )
        for i, ring in rings.items():
            self.done[i] += len(ring.workers)
            self._used += len(ring.workers)
        if active:
            self._shares.append(len(rings) / active)
        self.network.reset()

    def loads(self, rings: Mapping[int, Ring]) -> tuple[Floats, Floats]:
        """What rings, by job, use of every server (by resource) and of every link."""
        for i, ring in rings.items():
            self.network.occupy(self.needs[i], ring)
        used, load = self.network.used.copy(), np.array(self.network.load, dtype=float)
        self.network.reset()
        return used, load

    def remaining_servers(self, rings: Mapping[int, Ring]) -> tuple[Server, ...]:
        """The servers with the resources that the rings leave; 0 where they overload one."""
        free = np.maximum(self.network.capacity - self.loads(rings)[0], 0.0)
        return tuple(
            server.model_copy(update={"resources": dict(zip(self.network.resources, row.tolist(), strict=True))})
            for server, row in zip(self.instance.servers, free, strict=True)
        )

    def remaining_links(self, rings: Mapping[int, Ring]) -> tuple[Link, ...]:
        """The links with the bandwidth that the rings leave; 0 where they overload one."""
        load = self.loads(rings)[1]
        return tuple(
            link.model_copy(update={"bandwidth": max(0.0, link.bandwidth - float(taken))})
            for link, taken in zip(self.instance.links, load, strict=True)
        )

    def solution(self) -> Solution:
        """The schedule so far."""
        return {"slots": self.slots}

    def run(self, **info: object) -> HeuristicRun:
        """The finished run.

        ``info``: ``embedded_ratio``, embedded over active jobs, averaged over slots with active jobs (Figures 5 and
        6 of the paper), ``worker_slots`` in all, and what the caller adds.
        """
        ratio = float(np.mean(self._shares)) if self._shares else None
        return HeuristicRun(self.solution(), {"embedded_ratio": ratio, "worker_slots": self._used, **info})


def place_largest(progress: GreedyState, i: int, most: int) -> Ring | None:
    """Place (and occupy) the largest ring of a job that fits what is left, at most `most` workers; None if none."""
    need = progress.needs[i]
    for size in range(min(most, int(progress.network.room(need).sum())), 0, -1):
        ring = progress.network.place(need, size)
        if ring is not None:
            return ring
    return None


NEGLIGIBLE = 1e-9
"""Gains below this share of the slot's largest are decided after the others, or left to filling: a linear program
that has both would not see them."""


@dataclass(frozen=True)
class SlotProblem:
    """Problem (10) of one slot."""

    instance: GVneInstance | None  # pi_k = mu_i(z_i + k) - mu_i(z_i); None where no job gains anything worth counting
    jobs: list[int]  # positions of its jobs
    ceiling: float  # sum of each job's best gain: an upper bound on what the slot can add
    left_out: float  # the part of `ceiling` that jobs with negligible gains make up
    later: list[int]  # positions of the jobs with negligible gains above 0


@dataclass(frozen=True)
class Answer:
    """What an inner method returns."""

    solution: Solution  # of g-vne
    bound: float | None = None  # proven, on what any rings of the slot add
    gamma: int | None = None  # Gamma of Lemma 7
    # of Algorithm 2: the largest share of a server's and of a link's capacity that is used, and the factors beta and
    # gamma that Theorem 8 allows them
    loads: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What an inner method is asked to keep to."""

    seed: int = 0  # of all randomness
    gap: float = 0.0  # relative gap at which an exact method may stop
    deadline: Deadline = NO_DEADLINE  # of the whole run
    start: Solution | None = None  # a solution to start from
    tries: int = TRIES  # most roundings of Algorithm 2, u_b

    def options(self) -> SolveOptions:
        """The same for an exact method, on one thread."""
        return SolveOptions(deadline=self.deadline, relative_gap=self.gap, seed=self.seed, threads=1, start=self.start)


Inner = Callable[[GVneInstance, Asked], Answer]


def slot_problem(
    progress: GreedyState, active: list[int], as_printed: bool = False, placed: Mapping[int, Ring] | None = None
) -> SlotProblem:
    """The weights of a slot, given what every job has already, on what the rings in `placed` leave of the network.

    Ring sizes go up to what is left of the budget (11) and what the network could host of the job alone; `as_printed`
    up to N_i instead of the latter.
    """
    rows = []
    for i in active:
        rows.append(progress.gains(i, progress.allowed(i) if as_printed else progress.largest(i)))
    best = [max(0.0, float(row.max())) for row in rows]
    least = NEGLIGIBLE * max(best, default=0.0)
    kept = [n for n, worth in enumerate(best) if worth > least]
    jobs = [
        Job.model_construct(
            id=progress.instance.jobs[active[n]].id,
            demand=progress.instance.jobs[active[n]].demand,
            bandwidth=progress.instance.jobs[active[n]].bandwidth,
            utility=tuple(rows[n].tolist()),
        )
        for n in kept
    ]
    made = None
    if jobs:
        made = GVneInstance.model_construct(
            problem="g-vne",
            name=f"{progress.instance.name}-slot-{len(progress.slots) + 1}",
            servers=progress.instance.servers if not placed else progress.remaining_servers(placed),
            links=progress.instance.links if not placed else progress.remaining_links(placed),
            jobs=tuple(jobs),
        )
    total = float(np.sum(best))
    return SlotProblem(
        made,
        [active[n] for n in kept],
        total,
        total - float(np.sum([best[n] for n in kept])),
        [active[n] for n, worth in enumerate(best) if 0 < worth <= least],
    )


def _greedy(instance: GVneInstance, asked: Asked) -> Answer:
    from schedgap.heuristics.g_vne.greedy import greedy

    solution = greedy(instance, seed=asked.seed).solution
    assert solution is not None
    return Answer(solution)


def _colgen(instance: GVneInstance, asked: Asked) -> Answer:
    from schedgap.solvers.exact.g_vne.colgen import solve_colgen

    return _proven(solve_colgen(instance, asked.options()))


def _engine(name: str) -> Inner:
    def call(instance: GVneInstance, asked: Asked) -> Answer:
        from schedgap.formulations.common.instance import parsed
        from schedgap.formulations.g_vne.check import check
        from schedgap.formulations.g_vne.instance import GVneSolution
        from schedgap.formulations.g_vne.models import build_ilp
        from schedgap.solvers.engines.declarative import solve_declarative

        build, check_it = partial(build_ilp, instance), partial(parsed(check, GVneSolution), instance)
        return _proven(solve_declarative(build, name, asked.options(), check_it))

    return call


def _rounding(**settings: Any) -> Inner:
    def call(instance: GVneInstance, asked: Asked) -> Answer:
        from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde

        run = lp_rs_mde(instance, seed=asked.seed, deadline=asked.deadline, tries=asked.tries, **settings)
        loads = {name: run.info[key] for name, key in _LOADS.items()}
        inside = None if run.info.get("outside_model") else run.bound
        return Answer(run.solution or {"rings": {}}, inside, int(run.info["gamma"]), loads)

    return call


_LOADS = {"server": "server_share", "beta": "beta_printed", "link": "link_share", "gamma": "gamma_printed"}


def _proven(result: Result) -> Answer:
    return Answer(result.solution or {"rings": {}}, result.bound)


INNER: dict[str, Inner] = {
    "colgen": _colgen,
    "greedy": _greedy,
    "lp-rs-mde": _rounding(variant="no-violation"),
    "lp-rs-mde-mdk": _rounding(variant="mdk"),
    "lp-rs-mde-printed": _rounding(variant="no-violation", lp="augmented"),
    "printed": _rounding(variant="vanilla", lp="augmented"),
    "cbc": _engine("cbc"),
    "highs": _engine("highs"),
    "cpsat": _engine("cpsat"),
}
"""Inner methods by name: ``colgen`` and the engines are exact, ``greedy`` proves nothing."""
OVERLOADS = "printed"
"""The inner method that may overload servers and links: Algorithm 2 as published."""
PRINTED = frozenset({"lp-rs-mde-printed", OVERLOADS})
"""Inner methods that are to see the slot as the paper has it: ring sizes that fit nowhere included."""
ALGORITHM_2 = frozenset({"lp-rs-mde", "lp-rs-mde-mdk", "lp-rs-mde-printed", OVERLOADS})
"""Inner methods that are asked in every slot, so that a run shows what Algorithm 2 itself does."""
