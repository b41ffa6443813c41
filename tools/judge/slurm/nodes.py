"""Nodes as Slurm lists them: ``scontrol show nodes``, the same or ``sinfo`` with ``--json``; devices of its texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from schedgap.benchmarks.importers.cells import host_names
from schedgap.benchmarks.importers.rows import opened
from schedgap.benchmarks.importers.slurm import NODE, plain_cell
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json, read_json

_ENTRY = re.compile(
    r"(?:gres[/:])?([A-Za-z_]\w*)(?::(?!no_consume\b)([^:=,(]*[^:=,(\d][^:=,(]*|\d+(?=[:=])))?(?::no_consume)?(?:[:=](\S*))?"
)
"""A device, its type, their number: ``gpu:a100:2``, ``gres/gpu:a100=2``, ``gres:shard:2``; a type may be digits."""
NO_DEVICES = frozenset(
    {"cpu", "mem", "node", "billing", "energy", "fs", "vmem", "pages", "license", "bb", "ic", "usage"}
)
"""Trackable resources that are no devices."""


def devices_of(text: str) -> dict[str, Counter[str]]:
    """Devices of a text of Slurm, by name and type; the type is empty where none is told.

    Of ``gres/gpu=4,gres/gpu:a100=4`` the number without a type is that of all, so it is left out beside types that
    make it up.

    Raises ValueError: an entry has no number where one should be.
    """
    plain = "" if text in ("(null)", "N/A") else re.sub(r"\([^)]*\)", "", text)
    result: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in plain.split(","):
        parts = _ENTRY.fullmatch(entry.strip())
        if parts is None or parts[1] in NO_DEVICES:
            continue
        number = parts[3] or "1"
        if not re.fullmatch(r"[0-9]{1,12}", number):
            what = "is no number of GPUs" if "=" in entry else "does not say how many GPUs"
            raise ValueError(f"{text[:60]!r}: {number[:20]!r} {what}" if "=" in entry else f"{text[:60]!r} {what}")
        result[parts[1]][parts[2] or ""] += int(number)
    for types in result.values():
        typed = sum(number for kind, number in types.items() if kind)
        if typed and types[""]:
            types[""] = max(0, types[""] - typed)
    return {name: +types for name, types in result.items()}


class Told(NamedTuple):
    """What is said of one node, by the words of ``scontrol show nodes``."""

    place: str
    name: str
    said: dict[str, str]


def told_nodes(path: str | Path) -> list[Told]:
    """Every node of a listing, in its order.

    Raises InputError: there is none, one without a list of its devices, or a text that was cut.
    """
    with opened(path) as file:
        text = file.read()
    if text.lstrip()[:1] in ("{", "["):
        return list(_of_json(read_json(path, text), str(path)))
    return list(_of_text(str(path), text.replace("\r\n", "\n")))


def _of_text(path: str, text: str) -> Iterator[Told]:
    nodes = list(NODE.finditer(text))
    if not nodes or text[: nodes[0].start()].strip():
        raise InputError(f"{path}: line 1: begins with no NodeName=, as scontrol show nodes writes it")
    keys: list[set[str]] = []
    line = 1
    at = 0
    for result in nodes:
        line += text.count("\n", at, result.start())
        at = result.start()
        place = f"{path}: line {line}"
        plain = re.sub(r"(?<!\S)(?:Reason|Comment|Extra)=.*", "", result[2])  # what a person wrote
        said = dict(reversed(re.findall(r"(?<!\S)(\w+)=(\S*)", plain)))  # the first of each
        if keys and result is nodes[-1] and (lacking := sorted(set.intersection(*keys) - set(said))):
            raise InputError(
                f"{place}: node {result[1]} is the last and has no {lacking[0]}=, as all others: the text was cut"
            )
        keys.append(set(said))
        if "Gres" not in said:
            raise InputError(f"{place}: node {result[1]} has no Gres=")
        if result is nodes[-1] and re.search(r"(?<!\S)[A-Z]\w*$", result[0]):
            raise InputError(f"{place}: node {result[1]} is the last and ends in half a word: the text was cut")
        yield Told(place, result[1], said)


_KEYS = {
    "Gres": "gres",
    "GresUsed": "gres_used",
    "CPUTot": "cpus",
    "CPUEfctv": "effective_cpus",
    "CPUAlloc": "alloc_cpus",
    "RealMemory": "real_memory",
    "AllocMem": "alloc_memory",
    "AllocTRES": "tres_used",
}
_LISTS = {"State": ("state", "+"), "Partitions": ("partitions", ","), "ActiveFeatures": ("active_features", ",")}


def _of_json(data: Json, path: str) -> Iterator[Told]:
    """The nodes of ``scontrol show nodes --json`` and ``sinfo --json``."""
    groups = data.get("sinfo") if isinstance(data, Mapping) else None
    if isinstance(groups, list):
        yield from _of_sinfo(groups, path)
        return
    nodes = data.get("nodes") if isinstance(data, Mapping) else None
    if not isinstance(nodes, list) or not nodes:
        raise InputError(f"{path}: nodes: must be a list of objects, as scontrol show nodes --json writes it")
    for n, node in enumerate(nodes):
        place = f"{path}: nodes[{n}]"
        if not isinstance(node, Mapping) or not isinstance(node.get("name"), str):
            raise InputError(f"{place}.name: is missing")
        if "gres" not in node:
            raise InputError(f"{place}: node {node['name'][:60]} has no gres")
        said = {word: text for word, key in _KEYS.items() if (text := plain_cell(node.get(key)))}
        said.setdefault("Gres", "")
        for word, (key, joint) in _LISTS.items():
            value = node.get(key)
            parts = value if isinstance(value, list) else [value]
            said |= {word: joint.join(map(str, parts))} if value else {}
        if node.get("state_flags"):
            said["State"] = "+".join([said.get("State", ""), *map(str, node["state_flags"])])
        yield Told(place, node["name"], said)


def _of_sinfo(groups: list[Json], path: str) -> Iterator[Told]:
    """Each node once, with all of its partitions; what is taken, where a group is one node."""
    result: dict[str, Told] = {}
    for g, group in enumerate(groups):
        place = f"{path}: sinfo[{g}]"

        def part(*keys: str, group: Json = group) -> Any:
            value = group
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            return value

        try:
            hosts = [host for text in part("nodes", "nodes") or () for host in host_names(str(text))]
        except ValueError as fault:
            raise InputError(f"{place}.nodes.nodes: {fault}") from None
        partition = str(part("partition", "name") or "").rstrip("*")
        for key in ("cpus", "memory"):
            if part(key, "minimum") != part(key, "maximum"):
                raise InputError(
                    f"{place}.{key}: nodes that differ are one entry: sinfo -N --json lists each for itself"
                )
        for host in hosts:
            if host in result:
                result[host].said["Partitions"] += f",{partition}"
                continue
            states = part("node", "state") or []
            said = {
                "Gres": str(part("gres", "total") or ""),
                "Partitions": partition,
                "State": "+".join(map(str, states)),
            }
            said |= {"CPUTot": plain_cell(part("cpus", "maximum")), "RealMemory": plain_cell(part("memory", "maximum"))}
            said["ActiveFeatures"] = str(part("features", "active") or "")
            if len(hosts) == 1:
                said |= {
                    "CPUAlloc": plain_cell(part("cpus", "allocated")),
                    "AllocMem": plain_cell(part("memory", "allocated")),
                }
                said["GresUsed"] = str(part("gres", "used") or "")
                said["AllocTRES"] = ""
            result[host] = Told(place, host, said)
    if not result:
        raise InputError(f"{path}: sinfo: there is no node")
    yield from result.values()


_JOB_KEYS = {
    **{"JobState": "job_state", "Reason": "state_reason", "NodeList": "nodes", "NumNodes": "node_count"},
    **{"NumCPUs": "cpus", "NumTasks": "tasks", "Priority": "priority", "Partition": "partition"},
    **{"ReqTRES": "tres_req_str", "TRES": "tres_req_str", "AllocTRES": "tres_alloc_str"},
    **{"TresPerNode": "tres_per_node", "TresPerJob": "tres_per_job", "TresPerTask": "tres_per_task"},
    **{"ExcNodeList": "excluded_nodes", "ReqNodeList": "required_nodes", "Features": "features"},
    **{"Licenses": "licenses", "ArrayTaskId": "array_task_string", "HetJobId": "het_job_id", "Network": "network"},
    **{
        "Reservation": "resv_name",
        "Dependency": "dependency",
        "Contiguous": "contiguous",
        "ReqSwitch": "required_switches",
    },
}


def jobs_of_text(path: str | Path, text: str) -> dict[str, Json]:
    """``scontrol show job`` as ``squeue --json`` has it.

    Raises InputError: a job has no state.
    """
    jobs: list[dict[str, Json]] = []
    parts = re.split(r"^(?=JobId=)", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    for part in parts:
        if not part.strip():
            continue
        plain = re.sub(r"(?<!\S)(?:Comment|AdminComment|Command|WorkDir|StdErr|StdIn|StdOut|JobName)=.*", "", part)
        said = dict(reversed(re.findall(r"(?<!\S)(\w+)=(\S*)", plain)))
        if "JobState" not in said:
            raise InputError(
                f"{path}: job {said.get('JobId', '?')[:40]} has no JobState=, as scontrol show job writes it"
            )
        job: dict[str, Json] = {"job_id": said["JobId"], "gres_detail": re.findall(r"GRES=(\S+)", part)}
        for word, key in _JOB_KEYS.items():
            value = said.get(word, "")
            if value not in ("", "(null)", "N/A") and key not in job:
                job[key] = value
        job["node_count"] = str(job.get("node_count", "1")).split("-")[0]
        job["max_nodes"] = (re.findall(r"NumNodes=\d+-(\d+)", part) or ["0"])[0]
        if said.get("JobState") != "PENDING":
            job.pop("array_task_string", None)
            job["tres_alloc_str"] = job.get("tres_alloc_str") or job.get("tres_req_str", "")
        job["contiguous"] = job.get("contiguous") == "1"
        job["shared"] = (
            "none"
            if said.get("OverSubscribe") in ("NO", "EXCLUSIVE") and "EXCLUSIVE" in said.get("OverSubscribe", "")
            else ""
        )
        if str(job.get("array_task_string", "")).isdecimal() and "ArrayJobId" in said:
            job["job_id"], job["array_task_string"] = f"{said['ArrayJobId']}_{said['ArrayTaskId']}", ""
        jobs.append(job)
    return {"jobs": jobs}
