"""One job of ``squeue --json``: what it has or asks for on each node, which nodes take it, what of it is not read."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from schedgap.benchmarks.importers.cells import host_names
from schedgap.benchmarks.importers.slurm import plain_cell
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import MOST_WAITING, Draft
from schedgap.tools.judge.slurm.nodes import devices_of
from schedgap.tools.judge.table import RELAXED, UNREAD, way_of

MIB = {"K": Fraction(1, 1024), "": Fraction(1), "M": Fraction(1), "G": Fraction(1024), "T": Fraction(1024**2)}
WAITS_FOR_ROOM = ("", "None", "Resources", "Priority", "ReqNodeNotAvail", "NodeDown")
"""Reasons of Slurm for a pending job that another decision could place."""
HOLDS = ("COMPLETING", "SUSPENDED", "STOPPED")
"""States beside RUNNING in which a job keeps what it was given, also as words beside another."""
BEHIND = "the room that Slurm may keep for jobs of higher priority"
"""What a pending job is held against whose reason is Priority: backfill knows durations, which are not read."""
UNSET = ("", "0", "False", "false", "None", "(null)", "N/A", "65534", "65535", "4294967294", "4294967295")
"""What Slurm writes where nothing is asked for."""
PLAIN_FEATURES = re.compile(r"[\w.\-]+(&[\w.\-]+)*")


class Job:
    """A job, with what each of its pods has.

    Attributes
    ----------
    out : why nothing is decided about it: it does not wait for room
    unread : why it cannot be judged
    rules : what it asks for that is left out
    share : (name, number) of parts of one GPU a node; None where it has none
    """

    def __init__(self, draft: Draft, job: Mapping[str, Json], place: str, with_memory: bool) -> None:
        self.draft, self.job, self.place = draft, job, place
        self.state = self._state()
        if not self.state:
            raise InputError(f"{place}.job_state: is missing")
        self.live = self.state in ("RUNNING", "PENDING", "CONFIGURING")
        self.hosts = self.named("nodes") if self.live and self.state != "PENDING" else ()
        self.name = self.cell("job_id")
        self.whole_job = self.name if self.cell("het_job_id") in ("", "0") else self.cell("het_job_id")
        self.nodes = len(self.hosts) or max(1, self._nodes_of("tres_req_str") or self.whole("node_count"))
        self.types: frozenset[str] = frozenset()
        total, self.typed = self._gpus()
        self.by = by = self._counted_by(total)
        self.count = self._count(by, total)
        self.per_node = None if by or self.count == 1 else 1
        self.priority = 0 if self.state == "RUNNING" else self.whole("priority")
        granted = self._nodes_of("tres_alloc_str")
        if 0 < len(self.hosts) < granted:  # it completes, and some nodes have left it already
            total = -(-total // granted) * len(self.hosts)
        self.devices, self.spare = divmod(total, self.count)  # of each pod, and what is left over
        self.share = self._share() if self.live else None
        self.request = self._request(with_memory)
        self.allowed = self._allowed()
        self.features = self._features()
        self.rules: list[str] = []
        self.unread = ""
        if self.live and self.state != "RUNNING":
            self._rules()
        self.out = self._left_out()

    def cell(self, key: str) -> str:
        return plain_cell(self.job.get(key))

    def _state(self) -> str:
        """The first word, but RUNNING of all that hold what they have: a job that completes or is suspended."""
        words = self.words("job_state")
        if any(word in HOLDS for word in words):
            return "RUNNING"
        return "CONFIGURING" if "CONFIGURING" in words else (words or [""])[0]

    @property
    def completes(self) -> bool:
        """Whether it has ended and keeps its nodes until these are clean.

        Its array does not count it any more: slurmctld's ``job_completion_logger`` takes one off ``tot_run_tasks``,
        which ``job_array_start_test`` holds against the limit, when a task ends, before its epilog.
        """
        return "COMPLETING" in self.words("job_state")

    @property
    def reason(self) -> str:
        """Why it waits: the description where there is one, as squeue prints it."""
        told = self.cell("state_description")
        return self.cell("state_reason") if told in UNSET else told

    def words(self, key: str) -> list[str]:
        """The words of a text, or of a list of texts, which newer versions write."""
        told = self.job.get(key)
        return [word for part in (told if isinstance(told, list) else [told]) for word in plain_cell(part).split()]

    def whole(self, key: str) -> int:
        """A number of a job that waits or runs; 0 of another."""
        if not self.live:
            return 0
        if key in ("tasks", "max_nodes") and self.cell(key) == "":
            return 0
        if not re.fullmatch(r"[0-9]{1,12}", self.cell(key)):
            raise InputError(f"{self.place}.{key}: must be a whole number, got {str(self.job.get(key))[:40]!r}")
        return int(self.cell(key))

    # -- devices -------------------------------------------------------------------------------------------------

    def _told(self, key: str) -> dict[str, Counter[str]]:
        try:
            return devices_of(self.cell(key))
        except ValueError as fault:
            raise InputError(f"{self.place}.{key}: {fault}") from None

    def _detail(self) -> list[str]:
        found = self.job.get("gres_detail")
        return [str(entry) for entry in found] if isinstance(found, list) else []

    def _sources(self) -> Iterable[tuple[dict[str, Counter[str]], int]]:
        """Devices as each key tells them, with how often that is."""
        holds = self.state != "PENDING"
        if holds and self.cell("tres_alloc_str"):
            yield self._told("tres_alloc_str"), 1
        if holds and self._detail():
            every: dict[str, Counter[str]] = {}
            for entry in self._detail():
                try:
                    for name, types in devices_of(entry).items():
                        every.setdefault(name, Counter()).update(types)
                except ValueError as fault:
                    raise InputError(f"{self.place}.gres_detail: {fault}") from None
            yield every, 1
        yield self._told("tres_req_str"), 1
        yield self._told("tres_per_node"), self.nodes
        yield self._told("tres_per_job"), 1
        yield self._told("tres_per_task"), max(1, self.whole("tasks"))

    def _gpus(self) -> tuple[int, Counter[str]]:
        """GPUs of all nodes together, by the first key that tells them; types by the first that names them."""
        if not self.live:
            return 0, Counter()
        found = [(each["gpu"], times) for each, times in self._sources() if each.get("gpu")]
        total = next((types.total() * times for types, times in found), 0)
        typed = next(
            (Counter({kind: n * times for kind, n in types.items() if kind}) for types, times in found if any(types)),
            Counter(),
        )
        self.types = frozenset(typed)
        return total, typed

    def typed_request(self) -> dict[str, int]:
        """GPUs of each type of one pod, as resources."""
        return {f"gpu:{kind}": -(-number // self.count) for kind, number in self.typed.items()}

    def _share(self) -> tuple[str, int] | None:
        """Parts of one GPU that it has on each node."""
        for name in ("shard", "mps"):
            total = next((each[name].total() * times for each, times in self._sources() if each.get(name)), 0)
            if total:
                return name, -(-total // self.nodes)
        return None

    def shared_devices(self) -> tuple[int, ...]:
        """The GPU whose parts it has, where ``gres_detail`` tells: ``shard:2(0/4,2/4)`` is that of number 1."""
        for entry in self._detail() if len(self.hosts) == 1 else ():
            found = re.fullmatch(r"(?:gres[/:])?(?:shard|mps)[^()]*\(([\d/,]+)\)", entry)
            used = (
                [k for k, part in enumerate(found[1].split(",")) if part.split("/")[0] not in ("", "0")]
                if found
                else []
            )
            if len(used) == 1:
                return (used[0],)
        return ()

    def devices_by_number(self, n: int) -> dict[int, int] | None:
        """The whole GPUs that it has on a node by their number, where ``gres_detail`` tells (``IDX:0-1,3``)."""
        detail = self._detail()
        if len(detail) != len(self.hosts):
            return None
        found = re.search(r"gpu[^()]*\(IDX:([\d,\-]+)\)", detail[self.hosts.index(n)])
        if found is None or len(found[1]) > 1000:
            return None
        numbers: dict[int, int] = {}
        for part in found[1].split(","):
            ends = [int(end) for end in part.split("-") if end]
            numbers |= dict.fromkeys(range(ends[0], min(ends[-1], ends[0] + 1000) + 1), WHOLE) if ends else {}
        there = len(self.draft.nodes[n]["gpus"])
        return numbers if all(0 <= d < there for d in numbers) else None

    def _counted_by(self, total: int) -> str:
        """What the GPUs of a waiting job are counted by, where not by node: task, or job where it may have nodes."""
        if self.state != "PENDING":
            return ""
        several = self.cell("max_nodes") != "1" and total > 0
        by_job = "job" if several and "gpu" in self.cell("tres_per_job") else ""
        return "task" if "gpu" in self.cell("tres_per_task") else by_job

    def _count(self, by: str, total: int) -> int:
        """Pods: hosts that it has, GPUs of a job that may spread them, tasks, or the fewest nodes."""
        count = total if by == "job" else max(1, self.whole("tasks")) if by == "task" else self.nodes
        if count > MOST_WAITING and self.state == "PENDING":
            raise InputError(
                f"{self.place}: a job of {count} nodes, tasks or GPUs, at most {MOST_WAITING} are supported"
            )
        return max(1, count)

    def _nodes_of(self, key: str) -> int:
        """Nodes of a text of resources, 0 where it does not tell."""
        counted = re.search(r"(?:^|,)node=([0-9]{1,7})(?:,|$)", self.cell(key))
        return int(counted[1]) if counted else 0

    def _left_out(self) -> str:
        """Why nothing is decided about a job that does not run, if so."""
        reason = self.reason
        if self.state not in ("PENDING", "CONFIGURING"):
            return f"jobs that are {self.state[:40]}"
        if self.state == "PENDING" and reason not in WAITS_FOR_ROOM:
            return f"jobs that may not start yet ({reason[:40]})"
        return "jobs whose GPUs are not as many on each node" if self.spare else ""

    def devices_of_hosts(self) -> Sequence[int]:
        """GPUs on each of its nodes: as ``gres_detail`` tells, else equal shares."""
        total = self.devices * self.count + self.spare
        devices = [devices_of(entry).get("gpu", Counter()).total() for entry in self._detail()]
        if len(devices) == self.count and sum(devices) == total:
            return devices
        self.draft.unread["jobs that run and do not tell the GPUs on each node, taken as equal"] += (
            self.count > 1 and total > 0
        )
        if self.spare:
            what = f"{total} GPUs on {self.count} nodes, and gres_detail does not tell how many on each"
            raise InputError(f"{self.place}.tres_alloc_str: {what}")
        return [self.devices] * self.count

    @property
    def array(self) -> str:
        """The id of its array; its own where it is in none."""
        told = self.cell("array_job_id")
        return self.name.partition("_")[0] if told in ("", "0") else told

    @property
    def tasks_at_a_time(self) -> int | None:
        """How many tasks of its array may run at a time; None where that has no limit."""
        told = (self.cell("array_task_string").partition("%")[2], self.cell("array_max_tasks"))
        return next((int(text) for text in told if text.isdecimal() and int(text)), None)

    def waiting_tasks(self) -> list[str]:
        """Ends of the names of the tasks of a waiting array: ``_0``, ``_1``."""
        tasks = self.cell("array_task_string").partition("%")[0]
        endings: list[str] = []
        for part in tasks.split(",") if tasks and self.state == "PENDING" else ():
            ends = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([1-9][0-9]{0,6}))?)?", part)
            self.draft.unread["job arrays whose tasks are not all listed"] += ends is None
            if ends is not None:
                first, step = int(ends[1]), int(ends[3] or 1)
                listed = range(first, int(ends[2] or first) + 1, step)
                if len(self.draft.gangs) + len(endings) + len(listed) > MOST_WAITING:
                    place = f"{self.place}.array_task_string"
                    raise InputError(f"{place}: {tasks[:40]!r}: more than {MOST_WAITING} jobs and tasks wait")
                endings += [f"_{k}" for k in listed]
        return endings or [""]

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

    def _request(self, with_memory: bool) -> dict[str, int]:
        """Other resources of each node."""
        unit = 1 if self.by == "job" else WHOLE  # the pods of a GPU each may share a processor
        result = {"cpu": unit * -(-self.whole("cpus") * WHOLE // (self.count * unit))}
        key = "tres_alloc_str" if self.cell("tres_alloc_str") else "tres_req_str"
        for amount in re.findall(r"(?:^|,)mem=([^,]*)", self.cell(key)) if with_memory and self.live else ():
            memory = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGT]?)", amount)
            if memory is None:
                raise InputError(f"{self.place}.{key}: mem={amount[:40]!r} is no amount of memory")
            result["memory"] = math.ceil(Fraction(memory[1]) * MIB[memory[2]] / self.count)
        return result

    # -- where it may go, and what is not read -----------------------------------------------------------------------

    def _allowed(self) -> tuple[int, ...]:
        """Nodes of its partitions, but those excluded; those required where it asks for no more."""
        if not self.live:
            return ()
        labels = [node["labels"] for node in self.draft.nodes]
        parts = [f"partition-{name}" for name in self.cell("partition").split(",") if name]
        self.excluded, self.required = self.named("excluded_nodes"), self.named("required_nodes")
        self.outside = {n for n, there in enumerate(labels) if parts and not any(part in there for part in parts)}
        only = set(self.required) if len(self.required) >= self.count else set(range(len(labels)))
        return tuple(sorted(only - self.outside - set(self.excluded)))

    def refusal(self, n: int) -> tuple[str, str]:
        """Why a node is not among those that take it."""
        if n in self.excluded:
            return "excluded by it", "excluded by it"
        if n in self.outside:
            return "its partition", f"partition {self.cell('partition')}"
        return "other nodes are required", "other nodes are required"

    @property
    def conditions(self) -> str:
        """All that decides which nodes take it, as one text."""
        parts = (self.excluded, self.required, self.cell("partition"), self.cell("features"), self.share, self.count)
        return str(parts)

    def _features(self) -> frozenset[str] | None:
        """Features that a node must have; None where the text says more than that."""
        text = self.cell("features")
        if text in UNSET:
            return frozenset()
        return frozenset(text.split("&")) if PLAIN_FEATURES.fullmatch(text) else None

    def _rules(self) -> None:
        """What of a waiting job is left out, and why it cannot be judged."""
        result: dict[str, None] = {}
        unread: dict[str, None] = {}
        for key, value in self.job.items():
            row = way_of("slurm", "job", key)
            empty = value in ([], {}, None) or (self.cell(key) in UNSET)
            if row.way in (RELAXED, UNREAD) and not empty:
                (result if row.way == RELAXED else unread)[row.why] = None
        if self.state == "PENDING" and self.reason == "Priority":
            result[BEHIND] = None
        if "none" in self.words("shared"):
            result["a node for itself"] = None
        if 0 < len(self.required) < self.count:
            result["its required nodes"] = None
        if self.by and (self.nodes > 1 or 0 < self.whole("max_nodes") < self.count):
            result["how many nodes it may have"] = None
        if self.by and self.cell("tasks_per_node") not in UNSET:
            result["its tasks of a node"] = None
        for each, _ in self._sources():
            for name in each:
                if way_of("slurm", "gres", name).way == RELAXED:
                    result[f"its {name}"] = None
        if self.share and self.devices:
            unread["it asks for GPUs and parts of GPUs"] = None
        self.rules, self.unread = list(result), "; ".join(unread)
