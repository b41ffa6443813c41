"""ddljs as it comes to be known: rings that hold servers and links for as long as their budget lasts; and gadget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.check_rings import check_rings, known_rings
from schedgap.formulations.g_vne.substrate import Ring
from schedgap.heuristics.ddljs.gadget import slot_rings
from schedgap.heuristics.ddljs.greedy_state import GreedyState
from schedgap.heuristics.ddljs.inner import Asked
from schedgap.tools.online.replay import Estimates, Refused, World
from schedgap.tools.online.state import Action, State

NO_LIMIT = 1 << 40
"""Worker-slots of a job whose budget has no end."""


class Rings(World):
    """Jobs hold rings; one that cannot go on within its budget stops, and one without budget is done.

    What a job is worth and its budget are told when it arrives, as paper 004 has it: no length is hidden.
    """

    instance: DdljsInstance
    preempts = True

    def __init__(self, instance: DdljsInstance, estimates: Estimates, seed: int, *_: object) -> None:
        jobs = instance.jobs
        super().__init__(instance, [job.arrival for job in jobs], [job.max_workers for job in jobs], estimates, seed)
        self.last = instance.horizon
        self.budget = [NO_LIMIT if job.slot_limit is None else job.slot_limit for job in jobs]
        self.rings: dict[int, Ring] = {}
        self.slots: list[dict[str, Json]] = [{} for _ in range(instance.horizon)]
        self.spent = [0] * len(jobs)

    def cluster(self) -> Mapping[str, Json]:
        network = self.instance.model_dump(mode="json", include={"servers", "links"}, by_alias=True)
        return {"servers": [], "slot_length": 1.0, "cluster": network}

    def told(self, job: int) -> Sequence[Json]:
        return [None, None, self.instance.jobs[job].model_dump(mode="json", exclude={"id", "arrival"})]

    def alone(self) -> Sequence[float]:
        return [max(1.0, budget / size) for budget, size in zip(self.budget, self.sizes, strict=True)]

    def next_end(self, until: int | None) -> int | None:
        ends = [self.running[job] + self._rest(job) // len(ring.workers) - 1 for job, ring in self.rings.items()]
        return min(ends, default=None)

    def _rest(self, job: int) -> int:
        return self.budget[job] - self.spent[job]

    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        over = [
            job
            for job, ring in self.rings.items()
            if (self.slot - self.running[job] + 1) * len(ring.workers) > self._rest(job)
        ]
        for job in over:
            self.stop(job)
        return [job for job in over if not self._rest(job)], [job for job in over if self._rest(job)]

    def start(self, job: int, place: Json) -> None:
        try:
            ring = Ring.model_validate(place)
            known_rings(self.instance, {"it"}, {"it": ring})
        except (ValidationError, InputError) as error:
            said = str(error).splitlines()[0] if isinstance(error, InputError) else "no ring"
            raise Refused(f'must be {{"workers": [server, ...], "routes": [[server, ...], ...]}}: {said}') from None
        most = min(self.sizes[job], self._rest(job))
        if len(ring.workers) > most:
            raise Refused(f"a ring of {len(ring.workers)} workers, at most {most} are allowed")
        jobs = self.instance.jobs
        rings = {jobs[other].id: held for other, held in self.rings.items()} | {jobs[job].id: ring}
        found, _ = check_rings(self.instance, [one for one in jobs if one.id in rings], rings)
        if found:
            raise Refused(found[0].message)
        self.rings[job] = ring

    def stop(self, job: int) -> None:
        ring = self.rings.pop(job)
        since, name = self.running[job], self.instance.jobs[job].id
        for slot in range(since, self.slot):
            self.slots[slot - 1][name] = ring.model_dump(mode="json")
        self.spent[job] += len(ring.workers) * (self.slot - since)

    def solution(self) -> Solution:
        self.slot = self.instance.horizon + 1
        for job in list(self.rings):
            self.stop(job)
        return {"slots": [{"rings": rings} for rings in self.slots]}

    def expects(self) -> Mapping[str, Json]:
        return {"worker_slots": {job.id: spent for job, spent in zip(self.instance.jobs, self.spent, strict=True)}}


world = Rings


class Gadget:
    """In every slot the rings that add the most utility to what jobs have already (paper 004, Algorithm 1).

    Parameters
    ----------
    inner : the g-vne method of a slot
    fill : free servers go to jobs that gain nothing yet, by what they may gain until the horizon
    horizon : slots that it believes there are; once they are over, twice as many
    """

    preempts = True

    def __init__(self, inner: str = "colgen", fill: bool = True, horizon: int = 256) -> None:
        self.inner, self.fill, self.horizon = inner, fill, horizon
        self.jobs: list[Mapping[str, Json]] = []
        self.done: list[int] = []
        self.rings: dict[int, Json] = {}
        self.progress: GreedyState | None = None
        self.before = 0

    def decide(self, state: State) -> list[Action]:
        """O(the inner method); where jobs came, and the network's tables anew."""
        for job, ring in self.rings.items():
            self.done[job] += len(ring["workers"]) * (state.slot - self.before)
        self.before = state.slot
        progress = self._learn(state)
        active = list(progress.active())
        rings, _, _ = slot_rings(progress, active, self.inner, Asked(state.slot), self.fill)
        progress.network.reset()
        held = {job: self.rings[job] for job in state.running}
        self.rings = {job: progress.network.solution_of(ring) for job, ring in rings.items()}
        changed = [job for job in rings if held.get(job) != self.rings[job]]
        stopped: list[Action] = [("preempt", job) for job in held if job in changed or job not in rings]
        started: list[Action] = [("start", job, self.rings[job]) for job in changed]
        return [*stopped, *started, *([("wake", state.slot + 1)] if active else [])]

    def _learn(self, state: State) -> GreedyState:
        """The offline algorithm's state, of the jobs that have come."""
        believed = self.horizon
        while self.horizon < state.slot:
            self.horizon *= 2
        for number in state.arrived:
            job = state.jobs[number]
            self.jobs.append({**job.facts, "id": str(number), "arrival": job.arrival})
            self.done.append(0)
        if self.progress is None or state.arrived or believed < self.horizon:
            data = {"problem": "ddljs", "name": "", "horizon": self.horizon, **state.cluster, "jobs": self.jobs}
            self.progress = GreedyState(DdljsInstance.parse(data))
        self.progress.done = list(self.done)
        self.progress.slots = [{}] * (state.slot - 1)
        return self.progress
