"""hadar as it comes to be known: gangs on devices of several types, which may stop and move; and policies for it."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.hadar.instance import HadarInstance, Job, Machine, Utility
from schedgap.formulations.hadar.placement import entries_of
from schedgap.formulations.hadar.pricing import automaton
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.hadar.baselines import least_attained, one_type, shortest_remaining
from schedgap.heuristics.hadar.online import best_plan
from schedgap.heuristics.hadar.online_prices import PriceEnds, Prices, price_ends
from schedgap.heuristics.hadar.round_devices import bottleneck
from schedgap.heuristics.hadar.rounds import Market, rounds
from schedgap.heuristics.hadar.simulate import Policy, Simulated, State, Steady, always, never, solution_of
from schedgap.tools.online.policies import needs_length
from schedgap.tools.online.replay import Estimates, Refused, World, numbers_of
from schedgap.tools.online.state import Action
from schedgap.tools.online.state import Job as Known
from schedgap.tools.online.state import State as Seen

HORIZON = 1024
"""Slots that a policy believes there are where it is not told; once they are over it believes twice as many."""
UNSEEN = 1 << 40
"""More slots than any horizon has: the length of a job that no devices of the cluster can run."""


class Typed(World):
    """Gangs on devices; what a gang does in a slot follows from its slowest type."""

    instance: HadarInstance
    preempts = True

    def __init__(self, instance: HadarInstance, estimates: Estimates, seed: int, *_: object) -> None:
        self.data = data = tables(instance)
        super().__init__(
            instance, [job.arrival for job in data.jobs], [job.workers for job in data.jobs], estimates, seed
        )
        self.last = instance.horizon
        self.free = data.machine_capacity.copy()
        self.rest = [job.target for job in data.jobs]
        self.grids: dict[int, tuple[Ints, int]] = {}
        self.result = Simulated()

    def cluster(self) -> Mapping[str, Json]:
        machines = [dict(machine.gpus) for machine in self.instance.machines]
        servers = [sum(machine.values()) for machine in machines]
        return {"servers": servers, "slot_length": self.instance.slot_length, "cluster": {"machines": machines}}

    def told(self, job: int) -> Sequence[Json]:
        part, hidden = self.instance.jobs[job], self.estimates == "none"
        length = self._alone(job) * self.factors[job]
        work = None if hidden else math.ceil(part.work * self.factors[job])
        known = {"work": work, "throughput": dict(part.throughput), "utility": part.utility.model_dump()}
        return [None if hidden else length, None if hidden else math.ceil(length), known]

    def alone(self) -> Sequence[float]:
        return [self._alone(job) for job in range(len(self.data.jobs))]

    def _alone(self, job: int) -> float:
        table = self.data.jobs[job]
        return table.target / int(table.step[0]) if table.levels else float(UNSEEN)

    def next_end(self, until: int | None) -> int | None:
        ends = (self.running[job] - 1 - (-self.rest[job] // pace) for job, (_, pace) in self.grids.items())
        return min(ends, default=None)

    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        done = [
            job for job, (_, pace) in self.grids.items() if pace * (self.slot - self.running[job]) >= self.rest[job]
        ]
        for job in done:
            self.stop(job)
        return done, ()

    def start(self, job: int, place: Json) -> None:
        grid = self._any(job) if place is None else self._named(place)
        table = self.data.jobs[job]
        if grid.sum() != table.workers:
            raise Refused(f"it needs {table.workers} devices, {int(grid.sum())} are named")
        if (grid > self.free).any():
            raise Refused("devices that it names are not free")
        if table.type_step[grid.any(axis=0)].min() == 0:
            raise Refused("it cannot use a type that it names")
        self.free -= grid
        self.grids[job] = grid, int(bottleneck(grid, table.type_step))

    def _any(self, job: int) -> Ints:
        """Devices of one type, the fastest that has room."""
        for kind in np.argsort(-self.data.jobs[job].type_step, kind="stable").tolist():
            grid = one_type(self.data, job, self.free, kind)
            if grid is not None:
                return grid
        raise Refused(f"no type that it can use has {self.sizes[job]} devices free")

    def _named(self, place: Json) -> Ints:
        grid = np.zeros_like(self.free)
        for cell in place if isinstance(place, list | tuple) else [place]:
            machine, kind, count = row if len(row := numbers_of(cell)) == 3 else (-1, -1, -1)
            if not (0 <= machine < grid.shape[0] and 0 <= kind < grid.shape[1] and count > 0):
                raise Refused(f"must be [machine, type, devices], by their numbers: {str(cell)[:80]}")
            grid[machine, kind] += min(count, int(self.free[machine, kind]) + 1)  # one more than free is not free
        return grid

    def stop(self, job: int) -> None:
        grid, pace = self.grids.pop(job)
        since = self.running[job]
        self.free += grid
        if since < self.slot:
            self.rest[job] = max(0, self.rest[job] - pace * (self.slot - since))
            self.result.hold(job, since, self.slot - 1, entries_of(self.instance, self.data, grid))

    def solution(self) -> Solution:
        self.slot = self.instance.horizon + 1
        for job in list(self.grids):
            self.stop(job)
        return solution_of(self.instance, self.result)

    def expects(self) -> Mapping[str, Json]:
        ends = [None if self.rest[job] else self.result.runs[job][-1][1] for job in range(len(self.rest))]
        return {"completion": {job.id: end for job, end in zip(self.instance.jobs, ends, strict=True)}}


world = Typed


class _Learner:
    """A policy that keeps tables of the jobs that it knows, over a horizon that it believes in."""

    preempts = True
    lengths = True

    def __init__(self, horizon: int = HORIZON) -> None:
        self.horizon = horizon
        self.jobs: list[Job] = []
        self.data: ProgressTables | None = None
        self.held: dict[int, Ints] = {}

    def learn(self, state: Seen) -> ProgressTables:
        """Tables of all that have come; O(those that came now), or O(all) where the horizon was too short."""
        new = [self._job(state.jobs[number]) for number in state.arrived]
        self.jobs += new
        believed = self.horizon
        while self.horizon < state.slot:
            self.horizon *= 2
        if self.data is None or believed < self.horizon:
            self.data = tables(self.instance(state, self.jobs))
        elif new:
            self.data = replace(self.data, jobs=self.data.jobs + tables(self.instance(state, new)).jobs)
        return self.data

    def instance(self, state: Seen, jobs: Sequence[Job]) -> HadarInstance:
        """Jobs that are known, on the cluster."""
        machines = tuple(Machine(id=str(h), gpus=gpus) for h, gpus in enumerate(state.cluster["machines"]))
        return HadarInstance.model_construct(
            problem="hadar",
            name="",
            horizon=self.horizon,
            slot_length=state.slot_length,
            machines=machines,
            jobs=tuple(jobs),
        )

    def _job(self, job: Known) -> Job:
        work = job.facts["work"] or 1
        if self.lengths:
            needs_length(job)
        return Job.model_construct(
            id=str(job.id),
            arrival=job.arrival,
            workers=job.gpus,
            epochs=1,
            iterations_per_epoch=work,
            throughput=job.facts["throughput"],
            utility=Utility(**job.facts["utility"]),
        )

    def carry_out(self, state: Seen, grids: Mapping[int, Ints]) -> list[Action]:
        """Actions after which these jobs hold these devices, and no others."""
        held = {job: self.held[job] for job in state.running}
        stays = {job for job, grid in grids.items() if job in held and (held[job] == grid).all()}
        stopped: list[Action] = [("preempt", job) for job in held if job not in stays]
        self.held = {**{job: held[job] for job in stays}, **{job: grids[job] for job in grids if job not in stays}}
        cells = {job: np.argwhere(grid).tolist() for job, grid in grids.items() if job not in stays}
        return stopped + [
            ("start", job, [[h, r, int(grids[job][h, r])] for h, r in where]) for job, where in cells.items()
        ]


class _InRounds(_Learner):
    """An algorithm of rounds: it is asked again when jobs come or end, and when its mind may have changed."""

    def __init__(self, horizon: int = HORIZON) -> None:
        super().__init__(horizon)
        nothing = np.zeros(0, dtype=np.int64)
        self.own = State(0, [], nothing, 1, {}, np.zeros((0, 0), dtype=np.int64), nothing)

    def rule(self, data: ProgressTables) -> tuple[Policy, Steady]:
        """What it decides, and how long that stays."""
        raise NotImplementedError

    def decide(self, state: Seen) -> list[Action]:
        """O(the offline algorithm's decision)."""
        before = self.data
        data, own = self.learn(state), self.own
        if data is not before:
            self.policy, self.steady = self.rule(data)
        self._follow(state, data)
        grids = self.policy(own) if own.active else {}
        actions = self.carry_out(state, grids)
        own.changed, own.held = False, self.held
        running = list(grids)
        gangs = np.array([data.jobs[job].workers for job in running], dtype=np.int64)
        own.attained[running] += gangs  # as after the round that begins now
        rest = self.steady(own, grids, UNSEEN) if own.active else UNSEEN
        own.attained[running] -= gangs
        return actions if rest >= UNSEEN else [*actions, ("wake", state.slot + 1 + rest)]

    def _follow(self, state: Seen, data: ProgressTables) -> None:
        """What has been done and who is here, as the algorithm counts it."""
        own, passed = self.own, state.slot - self.own.slot
        for job, grid in own.held.items():
            done = passed * int(bottleneck(grid, data.jobs[job].type_step))
            own.missing[job] = max(1, own.missing[job] - done)  # it is not over before its end was told
            own.attained[job] += passed * data.jobs[job].workers
        targets = [data.jobs[job].target for job in state.arrived]
        own.missing = np.concatenate([own.missing, np.array(targets, dtype=np.int64)])
        own.attained = np.concatenate([own.attained, np.zeros(len(targets), dtype=np.int64)])
        own.slot, own.arrived = state.slot, [job for job in state.arrived if data.jobs[job].levels]
        for job in own.arrived:
            insort(own.active, job)
        for job in state.ended:
            del own.active[bisect_left(own.active, job)]
        own.held = {job: grid for job, grid in own.held.items() if job in state.running}
        own.used = sum(own.held.values(), np.zeros_like(data.machine_capacity))
        own.changed = own.changed or bool(own.arrived or state.ended)


class HadarRounds(_InRounds):
    """Hadar's rounds (paper 002, Algorithms 1 and 2); what it believes of the horizon is an option."""

    def rule(self, data: ProgressTables) -> tuple[Policy, Steady]:
        """See :func:`~schedgap.heuristics.hadar.rounds.hadar_rounds`."""
        return rounds(Market.of(data, True, 0.0), True, 8), never


class Tiresias(_InRounds):
    """Two queues by attained service, blind to types. It needs no lengths."""

    lengths = False

    def rule(self, data: ProgressTables) -> tuple[Policy, Steady]:
        """See :func:`~schedgap.heuristics.hadar.baselines.tiresias`."""
        return least_attained(data, 60.0)


class Srpt(_InRounds):
    """The shortest remaining time first, each on the fastest type that has room."""

    def rule(self, data: ProgressTables) -> tuple[Policy, Steady]:
        """See :func:`~schedgap.heuristics.hadar.baselines.srpt`."""
        return shortest_remaining(data), always


class HadarOnline(_Learner):
    """Admits a job when it arrives, with the schedule of the largest payoff under exponential prices (paper 002).

    Parameters
    ----------
    horizon : horizon that it believes in
    ends : the least and the largest price of a device, (6) and (7), which the theorem takes as known; where not given,
        those of the jobs that have come
    """

    def __init__(self, horizon: int = HORIZON, ends: PriceEnds | None = None) -> None:
        super().__init__(horizon)
        self.ends = ends
        self.used: Ints | None = None
        self.plans: dict[int, dict[int, Ints]] = {}

    def decide(self, state: Seen) -> list[Action]:
        """O(T (S L + P log P)) for each job that came, as offline."""
        data = self.learn(state)
        for job in state.ended:
            self.plans.pop(job, None)
        for job in state.arrived:
            self._admit(state, data, job)
        now = {job: plan[state.slot] for job, plan in self.plans.items() if state.slot in plan}
        actions = self.carry_out(state, now)
        later = [slot for slot in self._changes() if slot > state.slot]
        return [*actions, ("wake", min(later))] if later else actions

    def _changes(self) -> list[int]:
        """Slots from which on a plan has other devices, or none."""
        return [
            slot
            for plan in self.plans.values()
            for slot in {*plan, *(last + 1 for last in plan)}
            if (plan.get(slot) is None) != (plan.get(slot - 1) is None)
            or (slot in plan and (plan[slot] != plan[slot - 1]).any())
        ]

    def _admit(self, state: Seen, data: ProgressTables, job: int) -> None:
        known = replace(data, jobs=data.jobs[: job + 1])
        ends = self.ends or price_ends(self.instance(state, self.jobs), known, "direct", "printed")
        if ends is None or not known.possible[job]:
            return
        prices = Prices(known, ends, False)
        if self.used is not None:
            prices.used[: len(self.used)] = self.used
            prices.price = prices.at(prices.used)
        chosen = best_plan(
            data.jobs[job], automaton(data.jobs[job], data.horizon - data.jobs[job].arrival + 1, 4096), prices
        )
        if chosen is None:
            return
        first = data.jobs[job].arrival - 1
        prices.take(chosen[2], first)
        self.used = prices.used
        plan = self.plans[job] = {}
        for row in np.flatnonzero(chosen[2].any(axis=1)).tolist():
            plan[first + row] = np.zeros_like(data.machine_capacity)
            for pool in np.flatnonzero(chosen[2][row]):
                plan[first + row][prices.where[pool]] = chosen[2][row, pool]
