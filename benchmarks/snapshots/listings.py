"""What Slurm, Ray and openb list of a cluster as an instance and a decision; docs/judging.md says what is read."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import host_names, opened, shortened
from schedgap.benchmarks.importers.slurm import gpus_of, gres, plain_cell, told_nodes
from schedgap.benchmarks.snapshots.kubernetes import quantity
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import MOST_GPUS, Json, Solution, read_json
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance

UNAVAILABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "POWER", "REBOOT", "RESERVED", "UNKNOWN")
"""States of nodes that take no new jobs, as parts of Slurm's words."""
OPEN = {
    "PLANNED": "nodes that Slurm keeps for a planned job, read as open",
    "POWERED_DOWN": "nodes that are powered down, read as open",
}
"""Words of Slurm beside which a node takes new jobs: to keep or start it is a decision of the scheduler."""

MOST_GANGS = 100_000
"""Jobs of Slurm that wait, each task of an array one."""
SHORTENED = "names of more than 200 characters, shortened"


@dataclass
class Draft:
    """An instance in the making."""

    source: str
    levels: Sequence[str] = ()  # of the topology, widest first
    index: dict[str, int] = field(default_factory=dict)  # position of a node by its own name
    nodes: list[dict[str, Any]] = field(default_factory=list)
    running: list[dict[str, Any]] = field(default_factory=list)
    gangs: list[dict[str, Any]] = field(default_factory=list)
    placement: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)  # what was not understood or left out, counted
    seated: Counter[str] = field(default_factory=Counter)  # by gang, pods that are not decided about any more
    even: set[str] = field(default_factory=set)  # gangs whose processors and memory are read as equal shares
    cut: dict[str, str] = field(default_factory=dict)  # long names, as told
    kinds: dict[tuple[int, ...], str] = field(default_factory=dict)
    bound: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def node(
        self,
        name: str,
        devices: int,
        model: str | None,
        free: Mapping[str, int],
        place: str,
        domain: Sequence[str] = (),
    ) -> None:
        """A node with all that it has."""
        if name in self.index:
            raise InputError(f"{place}: node {name!r} is there twice")
        if devices > MOST_GPUS:
            raise InputError(f"{place}: a node with {devices} GPUs, at most {MOST_GPUS} are supported")
        self.index[name] = len(self.nodes)
        made = {"id": name, "domain": list(domain), "gpus": [WHOLE] * devices, "free": dict(free), "labels": {}}
        self.nodes.append(made | ({"gpu_model": model} if model else {}))

    @staticmethod
    def distinct(given: Iterable[tuple[str, str]]) -> None:
        """Refuse a name, told with its place, that is there twice."""
        seen: set[str] = set()
        for name, place in given:
            if name in seen:
                raise InputError(f"{place}: {name[:60]!r} is there twice")
            seen.add(name)

    def run(self, name: str, n: int, devices: int, request: Mapping[str, int]) -> dict[str, Json]:
        """A pod that runs takes the first devices that are free; what is known of it."""
        node = self.nodes[n]
        free = [d for d, part in enumerate(node["gpus"]) if part == WHOLE][:devices]
        self.unread["GPUs that run on a node beyond those it has"] += devices - len(free)
        for d in free:
            node["gpus"][d] = 0
        for resource, amount in request.items():
            left = node["free"].get(resource, 0) - amount
            node["free"][resource] = max(0, left)
            self.unread[f"{resource} that runs on a node beyond what it has"] += max(0, -left)
        made = {"node": node["id"], "devices": {str(d): WHOLE for d in free}, "request": dict(request)}
        self.running.append({"id": name, **made})
        return self.running[-1]

    def selector(self, nodes: Sequence[int]) -> dict[str, Json]:
        """A label on the nodes that take a pod."""
        if len(nodes) == len(self.nodes):
            return {}
        kind = self.kinds.setdefault(tuple(nodes), f"takes-{len(self.kinds)}")
        for n in nodes:
            self.nodes[n]["labels"][kind] = "yes"
        return {"labels": {kind: "yes"}}

    def wait(
        self, name: str, groups: Sequence[dict[str, Json]], seats: Iterable[tuple[int, int]], **more: Json
    ) -> None:
        """A gang; `seats` are (group, node) of the pods that the scheduler placed."""
        total = sum(group["gpu"] * group["count"] for group in groups)
        made: dict[str, Any] = {key: value for key, value in more.items() if value is not None}
        made["id"] = name
        made["pods"] = list(groups)
        made["weight"] = total / WHOLE if total else 1.0
        made["arrival"] = float(len(self.gangs))
        self.gangs.append(made)
        placed = [self._seat(k, groups[k]["gpu"], n) for k, n in seats]
        if placed:
            self.placement[name] = placed

    def _seat(self, k: int, gpu: int, n: int) -> dict[str, Any]:
        """The first devices that hold it beside what was placed before."""
        part = min(gpu, WHOLE)
        there = [d for d, free in enumerate(self.nodes[n]["gpus"]) if part and free - self.bound[n, d] >= part]
        devices = there[: max(1, gpu // WHOLE)]
        for d in devices:
            self.bound[n, d] += part
        return {"group": k, "node": self.nodes[n]["id"], "devices": devices}

    def finished(self) -> tuple[GangPlacementInstance, Solution, Mapping[str, int]]:
        """(instance, decision, what was not read)."""
        data = {"problem": "gang-placement", "levels": list(self.levels), "nodes": self.nodes}
        data |= {"running": self.running, "gangs": self.gangs}
        instance = GangPlacementInstance.parse(shortened(data, self.cut), self.source)
        decision = shortened({"placement": self.placement}, self.cut)
        self.unread[SHORTENED] = len(self.cut)
        return instance, decision, {what: count for what, count in self.unread.items() if count}


# -- Slurm


def slurm(data: Json, source: str, nodes: Path) -> Draft:
    """Jobs of ``squeue --json`` on the nodes of ``scontrol show nodes``.

    A job is a gang of a pod a node, or a task where its GPUs are by task. All have one priority: Slurm's is
    an order, kept as arrival.
    """
    draft = Draft(source)
    places, taken = _slurm_nodes(draft, nodes)
    jobs = data.get("jobs") if isinstance(data, Mapping) else None
    if not isinstance(jobs, list) or not all(isinstance(job, Mapping) for job in jobs):
        raise InputError(f"{source}: jobs: must be a list of objects, as squeue --json writes it")
    with_memory = any("mem=" in str(job.get("tres_alloc_str")) for job in jobs)
    read = [_Job(draft, job, f"{source}: jobs[{j}]", with_memory) for j, job in enumerate(jobs)]
    draft.distinct((job.name, f"{source}: jobs[{j}].job_id") for j, job in enumerate(read))
    together: dict[str, list[_Job]] = defaultdict(list)
    for job in sorted(read, key=lambda job: -job.priority):
        if job.state == "RUNNING":
            _slurm_runs(draft, job)
        else:
            together[job.whole_job].append(job)
    _slurm_taken(draft, taken, read, with_memory)
    for name, parts in together.items():
        out = next((job.out for job in parts if job.out), "")
        if out:  # a job of several parts starts as a whole
            draft.unread[out] += 1
        else:
            _slurm_gang(draft, name, parts, places)
    return draft


def _slurm_runs(draft: Draft, job: _Job) -> None:
    """A pod on each node of a job that holds what it has."""
    draft.unread["jobs that run on nodes that are not told"] += not job.hosts
    for n, devices in zip(job.hosts, job.devices_of_hosts() if job.hosts else (), strict=True):
        name = job.name if job.count == 1 else f"{job.name} on {draft.nodes[n]['id']}"
        draft.run(name, n, devices, job.request)


def _slurm_taken(draft: Draft, taken: Mapping[int, Taken], jobs: Sequence[_Job], with_memory: bool) -> None:
    """What nodes say is taken, where that is more than jobs say: a user may not see the jobs of others.

    Processors and memory of jobs on several nodes are shares; what a node says of these counts, if its GPUs agree.
    """
    placed: dict[int, Counter[str]] = defaultdict(Counter)  # on a node, by the decision
    for job in jobs:
        for n in job.hosts if job.state == "CONFIGURING" else ():
            placed[n].update({"gpu": job.devices, **job.request})
    for n, (gpus, amounts, room) in taken.items():
        node = draft.nodes[n]
        more = gpus - sum(part == 0 for part in node["gpus"]) - placed[n]["gpu"]
        if more > 0:
            draft.unread["GPUs that nodes say are taken, and no job that is listed has"] += more
            draft.run(f"not listed on {node['id']}", n, more, {})
        for name in ("cpu", "memory") if with_memory else ("cpu",):
            free = room[name] - max(0, amounts[name] - placed[n][name])
            node["free"][name] = free if more >= 0 else min(free, node["free"][name])


def _slurm_gang(draft: Draft, name: str, parts: Sequence[_Job], places: set[int]) -> None:
    """A gang of the parts of a job, and of each task of an array."""
    pods = [job.group(places) for job in parts]
    seats = [(k, n) for k, job in enumerate(parts) for n in job.hosts]
    per_node = parts[0].per_node if len(parts) == 1 else None
    draft.unread["parts of heterogeneous jobs that may share a node"] += len(parts) > 1
    for task in parts[0].waiting_tasks():
        draft.wait(name + task, pods, seats, per_node=per_node)
        draft.even.update([name + task] if any(job.count > 1 for job in parts) else ())


Taken = tuple[int, Mapping[str, int], Mapping[str, int]]
"""GPUs, and by resource what is taken and what is there, as a node says."""


def _slurm_nodes(draft: Draft, path: Path) -> tuple[set[int], dict[int, Taken]]:
    """Adds the nodes; positions of those that take new jobs, and what each says is taken, where it does."""
    open_ones = set()
    taken: dict[int, Taken] = {}
    for place, name, said, (devices, model) in told_nodes(path):
        _slurm_numbers(name, said, place)
        free = {"cpu": WHOLE * int(said["CPUEfctv"]), "memory": int(said["RealMemory"])}
        draft.node(name, devices, model, free, place)
        words = said["State"].upper().split("+")
        if any(part in word for word in words if word not in OPEN for part in UNAVAILABLE):
            draft.unread["nodes that take no new jobs (down, drained, reserved)"] += 1
        else:
            open_ones.add(len(draft.nodes) - 1)
            draft.unread.update(what for word, what in OPEN.items() if word in words)
        for label in (said.get("Partitions") or "").split(","):
            draft.nodes[-1]["labels"][f"partition-{label}"] = "yes"
        if "AllocTRES" in said:
            taken[len(draft.nodes) - 1] = _slurm_alloc(name, said, place, free)
    return open_ones, taken


def _slurm_numbers(name: str, said: dict[str, str], place: str) -> None:
    """Refuse a node without its numbers; processors are those without the ones that Slurm keeps for itself."""
    said.setdefault("CPUEfctv", said.get("CPUTot", ""))
    numbers = ("CPUTot", "CPUEfctv", "RealMemory", *(("CPUAlloc", "AllocMem") if "AllocTRES" in said else ()))
    for key, what in {**dict.fromkeys(numbers, "a number"), "State": "a word"}.items():
        if not re.fullmatch("[0-9]{1,12}" if what == "a number" else ".+", said.get(key, "")):
            raise InputError(f"{place}: node {name} has no {key}= with {what}, got {said.get(key)!r}")


def _slurm_alloc(name: str, said: Mapping[str, str], place: str, room: Mapping[str, int]) -> Taken:
    """What a node says is taken."""
    try:
        gpus = gpus_of(said["AllocTRES"])[0]
    except ValueError as fault:
        raise InputError(f"{place}: node {name}: AllocTRES: {fault}") from None
    return gpus, {"cpu": WHOLE * int(said["CPUAlloc"]), "memory": int(said["AllocMem"])}, room


MIB = {"K": Fraction(1, 1024), "": Fraction(1), "M": Fraction(1), "G": Fraction(1024), "T": Fraction(1024**2)}
WAITS_FOR_ROOM = ("", "None", "Resources", "Priority", "ReqNodeNotAvail", "NodeDown")
"""Reasons of Slurm for a pending job that another decision could place."""


HOLDS = ("COMPLETING", "SUSPENDED", "STOPPED")
"""States beside RUNNING in which a job keeps what it was given, also as words beside another."""


class _Job:
    """One job of ``squeue --json``, with what each of its pods has."""

    def __init__(self, draft: Draft, job: Mapping[str, Any], place: str, with_memory: bool) -> None:
        self.draft, self.job, self.place = draft, job, place
        self.state = self._state()
        if not self.state:
            raise InputError(f"{place}.job_state: is missing")
        self.live = self.state in ("RUNNING", "PENDING", "CONFIGURING")
        self.hosts = self.named("nodes") if self.live and self.state != "PENDING" else ()
        self.name = self.cell("job_id")
        self.whole_job = self.name if self.cell("het_job_id") in ("", "0") else self.cell("het_job_id")
        self.by = by = self._counted_by()
        self.count = self._count(by)
        self.per_node = None if by or self.count == 1 else 1
        draft.unread[f"jobs with GPUs by {by}, whose number of nodes is not read"] += bool(by)
        self.model = self._gpus("tres_req_str")[1]
        self.priority = 0 if self.state == "RUNNING" else self.whole("priority")
        total, _ = self._gpus(self.tres)
        granted = self._nodes_of("tres_alloc_str")
        if 0 < len(self.hosts) < granted:  # it completes, and some nodes have left it already
            total = -(-total // granted) * len(self.hosts)
        self.devices, self.spare = divmod(total, self.count)  # of each pod, and what is left over
        self.request = self._request(with_memory)
        self.allowed = self._allowed()
        whole = "none" in self.words("shared") or "true" in self.words("exclusive")
        draft.unread["jobs that ask for whole nodes, judged by their GPUs alone"] += whole and self.state == "PENDING"
        self.out = self._left_out()

    def cell(self, key: str) -> str:
        return plain_cell(self.job.get(key))

    def _state(self) -> str:
        """The first word, but RUNNING of all that hold what they have: a job that completes or is suspended."""
        words = self.words("job_state")
        if any(word in HOLDS for word in words):
            return "RUNNING"
        return "CONFIGURING" if "CONFIGURING" in words else (words or [""])[0]

    def words(self, key: str) -> list[str]:
        """Those of a text, or of a list of texts, as newer versions write them."""
        told = self.job.get(key)
        return [word for part in (told if isinstance(told, list) else [told]) for word in plain_cell(part).split()]

    def whole(self, key: str) -> int:
        """A number of a job that waits or runs; 0 of another."""
        if not self.live:
            return 0
        if not re.fullmatch(r"[0-9]{1,12}", self.cell(key)):
            raise InputError(f"{self.place}.{key}: must be a whole number, got {self.job.get(key)!r}")
        return int(self.cell(key))

    def _counted_by(self) -> str:
        """What the GPUs of a waiting job are counted by, where not by node: task, or job where it may have nodes."""
        if self.state != "PENDING":
            return ""
        several = self.cell("max_nodes") != "1" and self._gpus("tres_req_str")[0] > 0
        by_job = "job" if several and "gpu" in self.cell("tres_per_job") else ""
        return "task" if "gpu" in self.cell("tres_per_task") else by_job

    def _count(self, by: str) -> int:
        """Pods: hosts that it has, GPUs of a job that may spread them, tasks, or the fewest nodes."""
        if by == "job":
            return self._gpus("tres_req_str")[0]
        fewest = self._nodes_of("tres_req_str") or self.whole("node_count")
        return len(self.hosts) or max(1, self.whole("tasks") if by == "task" else fewest)

    def _nodes_of(self, key: str) -> int:
        """Nodes of a text of resources, 0 where it does not tell."""
        counted = re.search(r"(?:^|,)node=([0-9]{1,7})(?:,|$)", self.cell(key))
        return int(counted[1]) if counted else 0

    def _left_out(self) -> str:
        """Why nothing is decided about a job that does not run, if so."""
        reason = self.cell("state_reason")
        if self.state not in ("PENDING", "CONFIGURING"):
            return f"jobs that are {self.state}"
        if self.state == "PENDING" and reason not in WAITS_FOR_ROOM:
            return f"jobs that may not start yet ({reason[:40]})"
        return "jobs whose GPUs are not as many on each node" if self.spare else ""

    def devices_of_hosts(self) -> Sequence[int]:
        """GPUs on each of its nodes: as ``gres_detail`` tells, else equal shares."""
        detail = self.job.get("gres_detail")
        try:
            devices = [gres(str(entry))[0] for entry in (detail if isinstance(detail, list) else [])]
        except ValueError as fault:
            raise InputError(f"{self.place}.gres_detail: {fault}") from None
        total = self.devices * self.count + self.spare
        if len(devices) == self.count and sum(devices) == total:
            return devices
        self.draft.unread["jobs that run and do not tell the GPUs on each node, taken as equal"] += (
            self.count > 1 and total > 0
        )
        if self.spare:
            what = f"{total} GPUs on {self.count} nodes, and gres_detail does not tell how many on each"
            raise InputError(f"{self.place}.{self.tres}: {what}")
        return [self.devices] * self.count

    def waiting_tasks(self) -> Iterable[str]:
        """Ends of the names of the tasks of a waiting array: ``_0``, ``_1``."""
        tasks, limited, _ = self.cell("array_task_string").partition("%")
        endings: list[str] = []
        for part in tasks.split(",") if tasks and self.state == "PENDING" else ():
            ends = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([1-9][0-9]{0,6}))?)?", part)
            self.draft.unread["job arrays whose tasks are not all listed"] += ends is None
            if ends is not None:
                first, step = int(ends[1]), int(ends[3] or 1)
                listed = range(first, int(ends[2] or first) + 1, step)
                if len(self.draft.gangs) + len(endings) + len(listed) > MOST_GANGS:
                    place = f"{self.place}.array_task_string"
                    raise InputError(f"{place}: {tasks[:40]!r}: more than {MOST_GANGS} jobs and tasks wait")
                endings += [f"_{k}" for k in listed]
        self.draft.unread["job arrays of which fewer tasks may run at a time"] += bool(limited)
        return endings or [""]

    def group(self, places: set[int]) -> dict[str, Json]:
        """Its pods, on those of some nodes that take them."""
        selector = self.draft.selector([n for n in self.allowed if n in places])
        selector |= {"models": [self.model]} if self.model else {}
        return {"count": self.count, "gpu": WHOLE * self.devices, "request": self.request, "selector": selector}

    def named(self, key: str) -> tuple[int, ...]:
        """Positions of nodes."""
        try:
            listed = host_names(self.cell(key)) if self.cell(key) else []
        except ValueError as fault:
            raise InputError(f"{self.place}.{key}: {self.cell(key)[:40]!r}: {fault}") from None
        for name in listed:
            if name not in self.draft.index:
                raise InputError(f"{self.place}.{key}: there is no node {name[:40]!r}")
        return tuple(self.draft.index[name] for name in listed)

    @property
    def tres(self) -> str:
        """The key of what it has, else of what it asks for."""
        return "tres_alloc_str" if self.cell("tres_alloc_str") else "tres_req_str"

    def _gpus(self, key: str) -> tuple[int, str | None]:
        """GPUs of all nodes together, and their type."""
        try:
            return gpus_of(self.cell(key)) if self.live else (0, None)
        except ValueError as fault:
            raise InputError(f"{self.place}.{key}: {fault}") from None

    def _request(self, with_memory: bool) -> dict[str, int]:
        """Other resources of each node."""
        unit = 1 if self.by == "job" else WHOLE  # the pods of a GPU each may share a processor
        found = {"cpu": unit * -(-self.whole("cpus") * WHOLE // (self.count * unit))}
        for amount in re.findall(r"(?:^|,)mem=([^,]*)", self.cell(self.tres)) if with_memory and self.live else ():
            memory = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGT]?)", amount)
            if memory is None:
                raise InputError(f"{self.place}.{self.tres}: mem={amount[:40]!r} is no amount of memory")
            found["memory"] = math.ceil(Fraction(memory[1]) * MIB[memory[2]] / self.count)
        return found

    def _allowed(self) -> tuple[int, ...]:
        """Nodes of its partitions, but those excluded; those required where it asks for no more."""
        if not self.live:
            return ()
        labels = [node["labels"] for node in self.draft.nodes]
        parts = [f"partition-{name}" for name in self.cell("partition").split(",") if name]
        found = [n for n, there in enumerate(labels) if not parts or any(part in there for part in parts)]
        excluded, required = self.named("excluded_nodes"), self.named("required_nodes")
        if len(required) >= self.count:
            found = [n for n in found if n in required]
        self.draft.unread["jobs that are required on nodes and ask for more"] += 0 < len(required) < self.count
        for key in ("features", "licenses"):
            self.draft.unread[f"jobs that ask for {key}"] += bool(self.cell(key))
        return tuple(n for n in found if n not in excluded)


# -- Ray


def ray(data: Json, source: str, nodes: Path) -> Draft:
    """Placement groups on nodes, as ``ray list ... --format json --detail`` writes them.

    STRICT_PACK is one node, STRICT_SPREAD one bundle a node, PACK a preferred node. Where the listing does not tell the
    strategy, which depends on Ray's version, it is PACK, and counted.
    """
    draft = Draft(source)
    for position, node in enumerate(_objects(read_json(nodes), str(nodes))):
        place = f"{nodes}: [{position}]"
        if node.get("state") != "ALIVE":
            draft.unread["nodes that are not alive"] += 1
            continue
        room = _ray_amounts(draft, node.get("resources_total"), f"{place}.resources_total", down=True)
        devices = room.pop("GPU", 0)
        model = next((name.partition(":")[2] for name in room if name.startswith("accelerator_type:")), None)
        free = {name: amount for name, amount in room.items() if ":" not in name}
        draft.node(str(node.get("node_id")), devices // WHOLE, model, free, place)
    if isinstance(data, Mapping):
        data = [_of_table(name, group, source) for name, group in data.items()]
    groups = list(enumerate(_objects(data, source)))
    draft.distinct((str(group.get("placement_group_id")), f"{source}: [{g}].placement_group_id") for g, group in groups)
    for position, group in sorted(groups, key=lambda one: _came(one[1])):
        _ray_group(draft, group, f"{source}: [{position}]")
    return draft


def _came(group: Mapping[str, Any]) -> int:
    """When the group was asked for, where the listing tells."""
    stats = group.get("stats")
    moment = str(stats.get("creation_request_received_ns", "")) if isinstance(stats, Mapping) else ""
    return int(moment) if moment.isdecimal() and len(moment) < 30 else 0


def _of_table(name: str, group: Json, source: str) -> Mapping[str, Any]:
    """A group of ``placement_group_table()`` as the listing has it."""
    parts: Mapping[str, Any] = group if isinstance(group, Mapping) else {}
    bundles: Any = parts.get("bundles")
    there: Any = parts.get("bundles_to_node_id") or {}
    for key, part in (("bundles", bundles), ("bundles_to_node_id", there)):
        if not isinstance(part, Mapping):
            raise InputError(f"{source}: {name[:60]}.{key}: must be an object, as placement_group_table() has it")
    made = [{"unit_resources": asked, "node_id": there.get(b)} for b, asked in bundles.items()]
    return {**parts, "placement_group_id": name, "bundles": made}


def _ray_group(draft: Draft, group: Mapping[str, Any], place: str) -> None:
    if group.get("state") not in ("CREATED", "PENDING", "PREPARED", "RESCHEDULING"):
        draft.unread[f"placement groups that are {str(group.get('state'))[:20]}"] += 1
        return
    found: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
    seats: list[tuple[int, int]] = []
    for b, bundle in enumerate(_objects(group.get("bundles"), f"{place}.bundles")):
        asked = _ray_amounts(draft, bundle.get("unit_resources"), f"{place}.bundles[{b}].unit_resources", down=False)
        gpu = asked.pop("GPU", 0)
        key = (("GPU", gpu), *sorted(asked.items()))
        pods = found.setdefault(
            key, {"count": 0, "gpu": gpu, "request": {n: a for n, a in asked.items() if ":" not in n}}
        )
        pods["count"] += 1
        if group["state"] == "CREATED":
            node = str(bundle.get("node_id"))
            if node not in draft.index:
                raise InputError(f"{place}.bundles[{b}].node_id: there is no node {node[:60]!r} that is alive")
            seats.append((list(found).index(key), draft.index[node]))
    strategy = str(group.get("strategy") or "").upper()
    draft.unread["placement groups whose strategy is not told, taken as PACK"] += not strategy
    draft.unread["placement groups that wish to be spread"] += strategy == "SPREAD"
    draft.wait(
        str(group.get("placement_group_id")),
        list(found.values()),
        seats,
        required="node" if strategy == "STRICT_PACK" else None,
        preferred="node" if strategy in ("", "PACK") else None,
        per_node=1 if strategy == "STRICT_SPREAD" else None,
    )


def _objects(data: Json, place: str) -> list[Mapping[str, Any]]:
    if not isinstance(data, list) or not all(isinstance(one, Mapping) for one in data):
        raise InputError(f"{place}: must be a list of objects, as ray list --format json --detail writes it")
    return data


def _ray_amounts(draft: Draft, given: Json, place: str, *, down: bool) -> dict[str, int]:
    """Resources in thousandths, memory in MiB; nodes rounded down, requests up."""
    if not isinstance(given, Mapping):
        raise InputError(f"{place}: must be an object, got {type(given).__name__}")
    found = {}
    for name, amount in given.items():
        text = re.fullmatch(r"(\d+(?:\.\d+)?) ([KMGT]i)?B", amount) if isinstance(amount, str) else None
        if text is not None:  # how the listing of nodes writes memory
            amount = float(quantity(text[1] + (text[2] or ""), f"{place}.{name}"))
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1e18:
            raise InputError(f"{place}.{name}: must be a number from 0, got {amount!r}")
        if name.startswith(("node:", "object_store_memory")):
            continue
        exact = Fraction(str(amount)) * (Fraction(1, 2**20) if name == "memory" else WHOLE)
        found["cpu" if name == "CPU" else name] = math.floor(exact) if down else math.ceil(exact)
    return found


# -- openb


def openb(source: Path, nodes: Path) -> Draft:
    """Pods of the cluster trace openb, each a gang, on its nodes; nobody has placed one yet."""
    draft = Draft(str(source))
    for place, row in _table(nodes, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        free = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        draft.node(row["sn"], _count(row, "gpu", place), row["model"] or None, free, place)
    pods = list(_table(source, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")))
    draft.distinct((row["name"], f"{place}: name") for place, row in pods)
    for place, row in pods:
        gpus, part = _count(row, "num_gpu", place), _count(row, "gpu_milli", place)
        if gpus > 1 and part != WHOLE:
            raise InputError(f"{place}: gpu_milli: {gpus} GPUs of {part} thousandths each; several must be whole")
        request = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        models = [model for model in row["gpu_spec"].split("|") if model]
        group = {"count": 1, "gpu": gpus * part, "request": request}
        draft.wait(row["name"], [group | ({"selector": {"models": models}} if models else {})], ())
    return draft


def _table(path: Path, columns: Sequence[str]) -> Iterable[tuple[str, dict[str, str]]]:
    with opened(path) as file:
        rows = list(csv.DictReader(file.read().splitlines()))
    for name in columns:
        if not rows or name not in rows[0]:
            raise InputError(f"{path}: line 1: there is no column {name!r}, or no line below it")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise InputError(f"{path}: line {line}: has not as many cells as line 1")
        yield f"{path}: line {line}", row


def _count(row: Mapping[str, str], name: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", row[name]):
        raise InputError(f"{place}: {name}: must be a whole number from 0, got {row[name][:40]!r}")
    return int(row[name])


LISTINGS: Mapping[str, Callable[..., Draft]] = {"slurm": slurm, "ray": ray, "openb": openb}
"""Formats that are two files, the second of nodes."""


def told(data: Json) -> str | None:
    """The format that a JSON value tells by itself."""
    if isinstance(data, Mapping) and "jobs" in data and "problem" not in data:
        return "slurm"
    groups = list(data.values()) if isinstance(data, Mapping) else data if isinstance(data, list) else []
    key = "strategy" if isinstance(data, Mapping) else "placement_group_id"
    return "ray" if groups and all(isinstance(x, Mapping) and key in x for x in groups) else None
