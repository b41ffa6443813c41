"""ddl-cluster as it comes to be known: who starts when and on which GPUs; and Ada-SRSF's queue with LWF placement.

Time is in ticks (see :class:`~schedgap.formulations.ddl_cluster.clock.Clock`). The cluster itself runs tasks and
admits all-reduces as Ada-SRSF does; what a policy decides is which job starts, when, and where.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.ddl_cluster.kernel import run_fast
from schedgap.heuristics.ddl_cluster.simulation import prepared
from schedgap.heuristics.ddl_cluster.state import NEVER
from schedgap.tools.online.policies import needs_length
from schedgap.tools.online.replay import Estimates, Refused, World, gpus_of, numbers_of
from schedgap.tools.online.state import Action, Job, State

RULE = "ada-srsf"


class Tasks(World):
    """Jobs hold memory on their GPUs from their start. The offline simulator runs them, and pauses for decisions."""

    instance: DdlClusterInstance
    never = NEVER

    def __init__(self, instance: DdlClusterInstance, estimates: Estimates, seed: int, *_: object) -> None:
        self.clock = clock_of(instance)
        super().__init__(instance, self.clock.arrival, [job.gpus for job in instance.jobs], estimates, seed)
        self.free = [MEMORY_CAPACITY] * instance.total_gpus
        self.located = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
        self.gpus: dict[int, list[int]] = {}
        self.release: dict[str, float] = {}
        self.state = prepared(instance, RULE, "ff")
        self.state.workers["gpu"] = -1
        self.progress = np.zeros(5, dtype=np.int64)

    def cluster(self) -> Mapping[str, Json]:
        servers = [server.gpus for server in self.instance.servers]
        memory = {"gpu_memory": MEMORY_CAPACITY}
        return {"servers": servers, "slot_length": 10.0**-self.clock.digits, "cluster": memory}

    def told(self, job: int) -> Sequence[Json]:
        part, clock, given = self.instance.jobs[job], self.clock, self.instance.given[job]
        iterations = None if self.estimates == "none" else math.ceil(part.iterations * self.factors[job])
        facts = {
            "iterations": iterations,
            **{name: getattr(clock, name)[job] for name in ("forward", "backward", "solo", "transfer", "memory")},
            "placement": None if given is None else [self.instance.first_gpu[s] + g for s, g in given],
        }
        length = None if iterations is None else iterations * (clock.forward[job] + clock.backward[job])
        return [length, length, facts]

    def alone(self) -> Sequence[float]:
        tasks = zip(self.instance.jobs, self.clock.forward, self.clock.backward, strict=True)
        return [float(job.iterations * (forward + backward)) for job, forward, backward in tasks]

    def next_end(self, until: int | None) -> int | None:
        if not self.running:
            return None
        order = np.array(list(self.gpus), dtype=np.int64)  # as they started
        run_fast(self.state, order, self.progress, NEVER, NEVER - 1 if until is None else until)
        return int(self.progress[4]) - 1

    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        self.progress[3:] = 1, self.slot  # where nothing runs, it has not been there
        done = [job for job in self.running if self.state.jobs["finish"][job] >= 0]
        for job in done:
            for gpu in self.gpus[job]:
                self.free[gpu] += self.clock.memory[job]
        return done, ()

    def news(self) -> Sequence[Json]:
        """GPU ticks of the tasks and all-reduces of each running job that have ended."""
        return [[self.number[job], {"place": self.gpus[job], "done": self._done(job)}] for job in self.running]

    def _done(self, job: int) -> int:
        row = self.state.jobs[job]
        width, forward, backward = int(row["width"]), int(row["forward"]), int(row["backward"])
        whole = forward + backward + (int(row["solo"]) if row["spread"] > 1 else 0)
        passed, rest = divmod(self.slot - int(row["stride_start"]), forward + backward) if row["stride"] else (0, 0)
        strode = passed * (forward + backward) + (forward if rest >= forward else 0)
        return width * int(row["iterations"]) * whole - int(row["service"]) + width * strode

    def start(self, job: int, place: Json) -> None:
        memory = self.clock.memory[job]
        asked = gpus_of(self._wanted(job, place), self.sizes[job], len(self.free))
        short = next((gpu for gpu in asked if self.free[gpu] < memory), None)
        if short is not None:
            raise Refused(f"GPU {short} has not the memory for it")
        for gpu in asked:
            self.free[gpu] -= memory
        self.gpus[job] = asked
        first = self.state.jobs["first_worker"][job]
        self.state.workers["gpu"][first : first + len(asked)] = asked
        self.state.jobs["arrival"][job] = self.slot
        if self.slot > self.clock.arrival[job]:
            self.release[self.instance.jobs[job].id] = held = self._seconds(self.slot)
            if held > self.instance.longest_run:  # up to there ticks stay in range, here and in the checker
                raise Refused(f"all jobs one after another end by {self.instance.longest_run:.6g} s")

    def _wanted(self, job: int, place: Json) -> Json:
        """The GPUs that are named, given by the instance, or the first with the memory for it."""
        given = self.instance.given[job]
        if given is None:
            fits = [gpu for gpu, free in enumerate(self.free) if free >= self.clock.memory[job]]
            return fits[: self.sizes[job]] if place is None else place
        known = [self.instance.first_gpu[s] + g for s, g in given]
        if place is not None and sorted(numbers_of(place)) != sorted(known):
            raise Refused(f"its GPUs are given: {known}")
        return known

    def _seconds(self, tick: int) -> float:
        """The largest number of seconds whose first tick is not later."""
        seconds = self.clock.seconds(tick)
        # a release that is rounded up would come a tick late; one that is early still waits for the memory
        while math.ceil(exact(seconds) * 10**self.clock.digits) > tick:
            seconds = math.nextafter(seconds, 0.0)
        return seconds

    def solution(self) -> Solution:
        ids, names = [job.id for job in self.instance.jobs], [server.id for server in self.instance.servers]
        where = [[names[server], index] for server, index in self.located]
        placement = {ids[job]: [where[gpu] for gpu in gpus] for job, gpus in sorted(self.gpus.items())}
        solution: Solution = {"placement": placement, "policy": RULE, **self.expects()}
        return {**solution, "release": self.release} if self.release else solution

    def expects(self) -> Mapping[str, Json]:
        ends = map(self.clock.seconds, self.state.jobs["finish"].tolist())
        return {"finish": {job.id: end for job, end in zip(self.instance.jobs, ends, strict=True)}}


world = Tasks


class AdaSrsf:
    """The smallest remaining service first, on the GPUs with the least service left (LWF-1; paper 001, Algorithm 1)."""

    def decide(self, state: State) -> list[Action]:
        """O(waiting log waiting + started (N + S) log N) for N GPUs on S servers."""
        free = [state.cluster["gpu_memory"]] * sum(state.servers)
        weight = [0] * len(free)
        server = [s for s, size in enumerate(state.servers) for _ in range(size)]

        def place(job: Job, gpus: Sequence[int], sends: bool) -> None:
            for gpu in gpus:
                free[gpu] -= job.facts["memory"]
                weight[gpu] += self.service(job, sends)

        for job in state.running.values():
            place(job, job.place, len({server[gpu] for gpu in job.place}) > 1)
        actions: list[Action] = []
        for job in sorted(state.waiting.values(), key=lambda job: (self.service(job, False), job.id)):
            gpus = self.choose(job, free, weight, server)
            if gpus is not None:
                place(job, gpus, len({server[gpu] for gpu in gpus}) > 1)
                actions.append(("start", job.id, gpus))
        return actions

    @staticmethod
    def service(job: Job, sends: bool) -> int:
        """GPU ticks of tasks that have not ended, and of all-reduces where it sends any."""
        needs_length(job)
        facts = job.facts
        task = facts["forward"] + facts["backward"] + (facts["solo"] if sends else 0)
        return int(job.gpus * facts["iterations"] * task - (job.done or 0))

    @staticmethod
    def choose(job: Job, free: Sequence[int], weight: Sequence[int], server: Sequence[int]) -> list[int] | None:
        """GPUs with the memory for it, the lightest servers first, and on them the lightest GPUs."""
        fits = [gpu for gpu, room in enumerate(free) if room >= job.facts["memory"]]
        given = job.facts["placement"]
        if given is not None:
            return given if set(given) <= set(fits) else None
        total = [0] * (server[-1] + 1)
        for gpu, s in enumerate(server):
            total[s] += weight[gpu] if job.gpus > 1 else 0
        fits.sort(key=lambda gpu: (total[server[gpu]], server[gpu] if job.gpus > 1 else 0, weight[gpu], gpu))
        return fits[: job.gpus] if len(fits) >= job.gpus else None
