"""``squeue --json`` and ``scontrol show nodes`` as an instance and a decision; docs/judging.md says what is read."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import host_names
from schedgap.benchmarks.importers.slurm import gpu_types, gpus_of, gres, plain_cell, told_nodes
from schedgap.benchmarks.snapshots.draft import EVEN, Draft
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import WHOLE

UNAVAILABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "POWER", "REBOOT", "RESERVED", "UNKNOWN")
"""States of nodes that take no new jobs, as parts of Slurm's words."""
OPEN = {
    "PLANNED": "nodes that Slurm keeps for a planned job, read as open",
    "POWERED_DOWN": "nodes that are powered down, read as open",
}
"""Words of Slurm beside which a node takes new jobs: to keep or start it is a decision of the scheduler."""


MOST_GANGS = 100_000
"""Jobs of Slurm that wait, each task of an array one."""
SEVERAL = "nodes with GPUs of several types, of which any is taken for the one asked for"


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
        if any(job.count > 1 for job in parts):
            draft.rests[name + task] = EVEN


Taken = tuple[int, Mapping[str, int], Mapping[str, int]]
"""GPUs, and by resource what is taken and what is there, as a node says."""


def _slurm_nodes(draft: Draft, path: Path) -> tuple[set[int], dict[int, Taken]]:
    """Adds the nodes; positions of those that take new jobs, and what each says is taken, where it does."""
    open_ones = set()
    taken: dict[int, Taken] = {}
    for place, name, said, (devices, _) in told_nodes(path):
        _slurm_numbers(name, said, place)
        free = {"cpu": WHOLE * int(said["CPUEfctv"]), "memory": int(said["RealMemory"])}
        several = "+".join(sorted(gpu_types(said["Gres"])))
        draft.node(name, devices, several or None, free, place)
        draft.unread[SEVERAL] += "+" in several
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
OTHER_GRES = re.compile(r"(?<!\w)gres[/:](?!gpu\b)\w+")
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
        self.types = gpu_types(self.cell("tres_req_str"))
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
        if self.cell("resv_name"):
            return "jobs in a reservation, whose nodes are not read"
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
        if self.types:
            selector["models"] = self._models()
        return {"count": self.count, "gpu": WHOLE * self.devices, "request": self.request, "selector": selector}

    def _models(self) -> list[str]:
        """Of nodes that have GPUs of all types it asks for: a node may have several."""
        models = {str(node.get("gpu_model")) for node in self.draft.nodes}
        return sorted(model for model in models if self.types <= set(model.split("+"))) or ["none"]

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
        self._count_rest()
        return tuple(n for n in found if n not in excluded)

    def _count_rest(self) -> None:
        """What it asks for that is not read."""
        for key in ("features", "licenses", "required_switches", "contiguous"):
            self.draft.unread[f"jobs that ask for {key}"] += self.cell(key) not in ("", "0", "False")
        tres = ("tres_req_str", "tres_per_node", "tres_per_job", "tres_per_task")
        others = {name for key in tres for name in OTHER_GRES.findall(self.cell(key))}
        self.draft.unread.update(f"jobs that ask for {name}" for name in others)
