"""``squeue --json`` or ``scontrol show job``, and Slurm's nodes, as an instance and a decision."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

from schedgap.benchmarks.importers.rows import shortened
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Draft, Refusals, Words
from schedgap.tools.judge.seating import Runs, seat_parts
from schedgap.tools.judge.slurm.jobs import Job
from schedgap.tools.judge.slurm.nodes import devices_of, told_nodes

UNAVAILABLE = (
    *("BLOCKED", "DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "INVAL", "MAINT", "NOT_RESPONDING", "POWER", "REBOOT"),
    *("RESERVED", "UNKNOWN", "*"),
)
"""States of nodes that take no new jobs, as parts of Slurm's words."""
OPEN = {
    "PLANNED": "nodes that Slurm keeps for a planned job, read as open",
    "POWERED_DOWN": "nodes that are powered down, read as open",
}
"""Words of Slurm beside which a node takes new jobs: to keep or start it is a decision of the scheduler."""
EVEN = "its processors and memory are read as equal shares on its nodes; other shares may fit"
FIXED = "what runs is taken as fixed: whom Slurm may end or move is not read"
SHARED = ("shard", "mps")
"""Devices of Slurm that are parts of a GPU."""

Taken = tuple[int, Mapping[str, int], Mapping[str, int]]
"""GPUs, and by resource what is taken and what is there, as a node says."""


def slurm(data: Json, source: str, nodes: Path, *, outward: bool = False) -> Draft:
    """Jobs of Slurm on its nodes.

    A job is a gang of a pod a node, or a task where its GPUs are by task. All have one priority: Slurm's is
    an order, kept as arrival.
    """
    return _Slurm(data, source, nodes, outward).drafted()


class _Slurm:
    """One reading of Slurm's listings."""

    def __init__(self, data: Json, source: str, nodes: Path, outward: bool) -> None:
        self.draft = Draft(source, outward=outward)
        self.draft.facts.fixed = FIXED
        self.draft.facts.units = {"cpu": Fraction(1, WHOLE), "memory": Fraction(2**20)}
        self.features: list[set[str]] = []
        self.shares: list[Counter[str]] = []  # parts of a GPU that each node makes of one, by name
        self.closed: dict[int, str] = {}
        self.taken: dict[int, Taken] = {}
        self._nodes(nodes)
        jobs = data.get("jobs") if isinstance(data, Mapping) else None
        if not isinstance(jobs, list) or not all(isinstance(job, Mapping) for job in jobs):
            raise InputError(f"{source}: jobs: must be a list of objects, as squeue --json writes it")
        self.with_memory = any("mem=" in str(job.get("tres_alloc_str")) for job in jobs)
        self.jobs = [Job(self.draft, job, f"{source}: jobs[{j}]", self.with_memory) for j, job in enumerate(jobs)]
        started = [job for job in self.jobs if job.live and job.state != "PENDING"]
        self.active = Counter(job.array for job in started if not job.completes)  # tasks by array
        self.draft.distinct((job.name, f"{source}: jobs[{j}].job_id") for j, job in enumerate(self.jobs))

    def _nodes(self, path: Path) -> None:
        """Adds the nodes; those with GPUs of several types count each type, too."""
        listing = told_nodes(path)
        listed = []
        for place, name, said in listing:
            try:
                listed.append(devices_of(said["Gres"]))
            except ValueError as fault:
                raise InputError(f"{place}: node {name}: Gres: {fault}") from None
        self.typed = any(len(devices.get("gpu", ())) > 1 for devices in listed)
        if self.typed:
            kinds = {f"gpu:{kind}" for devices in listed for kind in devices.get("gpu", ()) if kind}
            self.draft.facts.kinds = frozenset(kinds)
        for (place, name, said), devices in zip(listing, listed, strict=True):
            _numbers(name, said, place)
            free = {"cpu": WHOLE * int(said["CPUEfctv"]), "memory": int(said["RealMemory"])}
            gpus = devices.get("gpu", Counter())
            free |= {f"gpu:{kind}": number for kind, number in gpus.items() if kind} if self.typed else {}
            model = "+".join(sorted(kind for kind in gpus if kind)) or None
            self.draft.node(name, gpus.total(), model, free, place)
            per = {kind: devices[kind].total() // max(1, gpus.total()) for kind in SHARED if devices.get(kind)}
            self.shares.append(Counter(per))
            self._state(said, len(self.draft.nodes) - 1)
            self.features.append(set(re.split("[,&]", said.get("ActiveFeatures", ""))) - {"", "(null)"})
            for label in (said.get("Partitions") or "").split(","):
                self.draft.nodes[-1]["labels"][f"partition-{label}"] = "yes"
            if "AllocTRES" in said:
                self.taken[len(self.draft.nodes) - 1] = _alloc(name, said, place, free)

    def _state(self, said: Mapping[str, str], n: int) -> None:
        words = said["State"].upper().split("+")
        shut = [word for word in words if word not in OPEN and any(part in word for part in UNAVAILABLE)]
        if shut:
            self.closed[n] = "+".join(words).lower()
            self.draft.unread["nodes that take no new jobs (down, drained, reserved)"] += 1
        else:
            self.draft.unread.update(what for word, what in OPEN.items() if word in words)

    def drafted(self) -> Draft:
        """What runs first, then what nodes say beyond that, then what waits."""
        together: dict[str, list[Job]] = defaultdict(list)
        runs = []
        for job in sorted(self.jobs, key=lambda job: -job.priority):
            if job.state == "RUNNING":
                runs.append(job)
            else:
                together[job.whole_job].append(job)
        self._run_all(runs)
        self._taken()
        for name, parts in together.items():
            unread = next((job.unread for job in parts if job.unread), "")
            out = next((job.out for job in parts if job.out), "")
            if out:  # a job of several parts starts as a whole
                self.draft.unread[out] += 1
            elif unread:
                gpus = Fraction(sum(job.devices * job.count for job in parts))
                self.draft.aside(
                    name, sum(job.count for job in parts), gpus, unread, placed=any(job.hosts for job in parts)
                )
                self._hold(parts)
            else:
                self._gang(name, parts)
        return self.draft

    # -- what runs -----------------------------------------------------------------------------------------------

    def _run_all(self, jobs: Sequence[Job]) -> None:
        """Parts of GPUs first, so that whole ones are what they leave."""
        parts: dict[int, list[Runs]] = defaultdict(list)
        for job in jobs:
            self.draft.unread["jobs that run on nodes that are not told"] += not job.hosts
            for n in job.hosts if job.share else ():
                low, high = self._part(job, n)
                name = job.name if job.count == 1 else f"{job.name} on {self.draft.nodes[n]['id']}"
                parts[n].append(Runs(name, low, high, job.request, job.shared_devices()))
        for n, found in parts.items():
            seat_parts(self.draft, n, found)
        for job in jobs:
            if job.share:
                continue
            for n, devices in zip(job.hosts, job.devices_of_hosts() if job.hosts else (), strict=True):
                name = job.name if job.count == 1 else f"{job.name} on {self.draft.nodes[n]['id']}"
                request = job.request | (job.typed_request() if self.typed else {})
                self.draft.run(name, n, devices, request, job.devices_by_number(n) if self.shares[n] else None)

    def _hold(self, parts: Sequence[Job]) -> None:
        """What is being configured and is not judged holds its room."""
        for job in parts:
            for n in job.hosts:
                self.draft.run(f"{job.name} on {self.draft.nodes[n]['id']}", n, job.devices, job.request)

    def _part(self, job: Job, n: int) -> tuple[int, int]:
        """Thousandths of one GPU, rounded down and up, of the parts that a job has on a node."""
        name, number = job.share or ("", 0)
        per = self.shares[n][name]
        if not per:
            return WHOLE, WHOLE
        unit = WHOLE // per
        if per * unit <= WHOLE < (per + 1) * unit:
            return number * unit, number * unit
        return WHOLE * number // per, -(-WHOLE * number // per)

    def _taken(self) -> None:
        """What nodes say is taken, where that is more than jobs say: a user may not see the jobs of others.

        Processors and memory of jobs on several nodes are shares; what a node says of these counts, if its GPUs agree.
        """
        placed: dict[int, Counter[str]] = defaultdict(Counter)  # on a node, by the decision
        for job in self.jobs:
            for n in job.hosts if job.state == "CONFIGURING" else ():
                placed[n].update({"gpu": job.devices, **job.request})
        for n, (gpus, amounts, room) in self.taken.items():
            node = self.draft.nodes[n]
            more = gpus - sum(part < WHOLE for part in node["gpus"]) - placed[n]["gpu"]
            if more > 0:
                self.draft.unread["GPUs that nodes say are taken, and no job that is listed has"] += more
                self.draft.run(f"not listed on {node['id']}", n, more, {})
            for name in ("cpu", "memory") if self.with_memory else ("cpu",):
                free = room[name] - max(0, amounts[name] - placed[n][name])
                node["free"][name] = max(0, free if more >= 0 else min(free, node["free"][name]))

    # -- what waits ----------------------------------------------------------------------------------------------

    def _gang(self, name: str, parts: Sequence[Job]) -> None:
        """A gang of the parts of a job, and of each task of an array."""
        rules = [rule for job in parts for rule in job.rules]
        groups, reasons = [], []
        several = any(job.count > 1 for job in parts)
        for job in parts:
            group, rule = self._group(job, several)
            groups.append(group)
            rules += rule
            reasons.append(Refusals(job.conditions, partial(self._cause, job)))
        seats = [(k, n) for k, job in enumerate(parts) for n in job.hosts]
        per_node = parts[0].per_node if len(parts) == 1 else None
        self.draft.unread["parts of heterogeneous jobs that may share a node"] += len(parts) > 1
        gpus = sum((Fraction(group["gpu"] * group["count"], WHOLE) for group in groups), Fraction(0))
        for task in self._startable(parts[0]):
            shown = shortened(name + task, self.draft.cut)
            self.draft.wait(name + task, groups, seats, per_node=per_node, rules=rules, gpus=gpus)
            facts = self.draft.facts
            facts.closed[shown] = reasons
            facts.words[shown] = Words(per_node=f"that it asks for {parts[0].count} nodes")
            if several and not seats:
                facts.rests[shown] = EVEN

    def _startable(self, job: Job) -> list[str]:
        """Ends of the names of the tasks that its array lets start now: all are alike, so the first of them."""
        tasks, most = job.waiting_tasks(), job.tasks_at_a_time
        if most is None or job.state != "PENDING":
            return tasks
        room = max(0, most - self.active[job.array])
        self.draft.unread["tasks that their array does not let start now"] += max(0, len(tasks) - room)
        return tasks[:room]

    def _group(self, job: Job, several: bool) -> tuple[dict[str, Json], list[str]]:
        """The pods of one part, and rules that are left out.

        Shares of several nodes are equal in the one reading and of no weight in the other.
        """
        draft = self.draft
        nodes = [n for n in job.allowed if n not in self.closed]
        rules = []
        wanted = job.features
        if wanted is None:
            rules.append("its features")
        else:
            nodes = [n for n in nodes if wanted <= self.features[n]]
        gpu = WHOLE * job.devices
        if job.share:
            nodes = [n for n in nodes if self.shares[n][job.share[0]] >= job.share[1]]
            found = [self._part(job, n) for n in nodes] or [(1, 1)]
            low, high = min(part[0] for part in found), max(part[1] for part in found)
            draft.apart |= low < high
            gpu = max(1, low) if draft.outward else min(high, WHOLE)
        request = dict(job.request)
        if several and not job.hosts:
            draft.apart = True
            request = {} if draft.outward else request
        selector = draft.selector(nodes)
        if self.typed:
            request |= job.typed_request()
        elif job.types:
            selector["models"] = self._models(job.types)
        return {"count": job.count, "gpu": gpu, "request": request, "selector": selector}, rules

    def _models(self, types: frozenset[str]) -> list[str]:
        """The nodes that have GPUs of all types that are asked for."""
        models = {str(node.get("gpu_model")) for node in self.draft.nodes}
        return sorted(model for model in models if types <= set(model.split("+"))) or ["none"]

    def _cause(self, job: Job, n: int) -> tuple[str, str] | None:
        """Why a node does not take a job."""
        if n in self.closed:
            return self.closed[n], self.closed[n]
        if n not in job.allowed:
            return job.refusal(n)
        if job.features is not None and not job.features <= self.features[n]:
            return "its features", f"features {'&'.join(sorted(job.features))}"
        if job.share and self.shares[n][job.share[0]] < job.share[1]:
            return f"{job.share[0]} of one GPU", f"{job.share[0]} of one GPU"
        return None


def _numbers(name: str, said: dict[str, str], place: str) -> None:
    """Refuse a node without its numbers; processors are those without the ones that Slurm keeps for itself."""
    said["CPUEfctv"] = said.get("CPUEfctv") or said.get("CPUTot", "")
    numbers = ("CPUTot", "CPUEfctv", "RealMemory", *(("CPUAlloc", "AllocMem") if "AllocTRES" in said else ()))
    for key, what in {**dict.fromkeys(numbers, "a number"), "State": "a word"}.items():
        if not re.fullmatch("[0-9]{1,9}" if what == "a number" else ".+", said.get(key, "")):
            raise InputError(f"{place}: node {name} has no {key}= with {what}, got {said.get(key)!r}")


def _alloc(name: str, said: Mapping[str, str], place: str, room: Mapping[str, int]) -> Taken:
    """What a node says is taken."""
    try:
        gpus = devices_of(said["AllocTRES"]).get("gpu", Counter()).total()
        gpus = gpus or devices_of(said.get("GresUsed", "")).get("gpu", Counter()).total()
    except ValueError as fault:
        raise InputError(f"{place}: node {name}: AllocTRES: {fault}") from None
    return gpus, {"cpu": WHOLE * int(said["CPUAlloc"]), "memory": int(said["AllocMem"])}, room
