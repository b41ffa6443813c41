"""Slurm's accounting and its nodes: ``sacct -P``, ``sacct --json``, ``scontrol show nodes``, ``sinfo``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from schedgap.benchmarks.importers.cells import (
    NO_VALUE,
    NOT_ENDED,
    LeftOut,
    between,
    duration,
    given,
    host_names,
    moment,
    name,
)
from schedgap.benchmarks.importers.rows import Format, opened
from schedgap.benchmarks.importers.sacct import sacct_rows
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json

_TRES = re.compile(r"gres/gpu(?::([^=,]+))?=([^,]*)")
_LONGEST_TRES = 2_000
"""Characters of a list of resources."""
_KIND = r"(?::(?!no_consume\b)([^:,]*[^:,\d][^:,]*|\d+(?=:)))?"
"""A type may be digits alone (``gpu:3090:8``); what is alone and digits is the number (``gpu:8``)."""
_GRES = re.compile(rf"(?:^|,)gpu{_KIND}(?::no_consume)?(?::(\d+))?(?=,|$)")
NODE = re.compile(r"^NodeName=(\S+)(.*?)(?=^NodeName=|\Z)", re.MULTILINE | re.DOTALL)
"""A node of ``scontrol show nodes``: its name, and what is said of it."""


def gpus_of(tres: str) -> tuple[int, str | None]:
    """GPUs and their type (None where none or several are named) of ``billing=1,gres/gpu:v100=2,gres/gpu=2``.

    Raises ValueError: a quantity is no number.
    """
    if len(tres) > _LONGEST_TRES:
        raise ValueError(f"must have at most {_LONGEST_TRES:,} characters")
    amounts = {kind: _amount(amount, tres) for kind, amount in _TRES.findall(tres)}
    kinds = [kind for kind in amounts if kind]
    return amounts.get("") or sum(amounts.values()), kinds[0] if len(kinds) == 1 else None


def _amount(text: str, whole: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise ValueError(f"{whole[:60]!r}: {text[:20]!r} is no number of GPUs")
    return int(text)


def _gpus(allocated: str, state: str, start: str) -> int:
    if _never(start) or (not allocated.strip() and state.startswith(("CANCELLED", "PENDING"))):
        raise LeftOut(f"never started ({state.split()[0] if state.strip() else 'no state'})")
    amount = gpus_of(allocated)[0]
    if not amount and "gres/several_nodes" in allocated:
        raise LeftOut("has AllocGRES on several nodes, which does not say whether of each or of all")
    if not amount and (part := re.search(r"gres/(?:mps|shard)", allocated)):
        raise LeftOut(f"has parts of GPUs ({part[0]}), which are not read")
    return amount


def _never(start: str) -> bool:
    return start.strip() in ("", "0", "Unknown", "None")


def _kind(tres: str) -> str | None:
    return gpus_of(tres)[1]


def processors_of(tres: str) -> int:
    """Processors of ``cpu=8,mem=64G,node=1``.

    Raises LeftOut: it does not say.
    """
    found = re.search(r"(?:^|,)cpu=([0-9]{1,9})(?=,|$)", tres)
    if found is None:
        raise LeftOut(NO_VALUE)
    return int(found[1])


def memory_of(tres: str) -> int:
    """Bytes of memory of ``cpu=8,mem=64G,node=1``; without a unit megabytes, as Slurm counts.

    Raises LeftOut: it does not say.
    """
    found = re.search(r"(?:^|,)mem=([0-9]{1,12}(?:\.[0-9]{1,3})?)([KMGTP]?)[cn]?(?=,|$)", tres)
    if found is None:
        raise LeftOut(NO_VALUE)
    unit: int = 1 << 10 * ("KMGTP".index(found[2] or "M") + 1)
    return math.ceil(Fraction(found[1]) * unit)


def _job(cell: str, cluster: str = "") -> str:
    if "." in cell:
        raise LeftOut("is a step of a job, no job (sacct -X leaves them out)")
    return name(cluster, cell) if cluster.strip() else name(cell)


def _nodes(cell: str) -> tuple[tuple[str, None], ...]:
    return tuple((host, None) for host in host_names(cell))


def _seconds(start: str, end: str) -> float:
    if end.strip() in ("", "0", "Unknown", "None"):
        raise LeftOut(NOT_ENDED)
    return between(start, end)


def _state(cell: str) -> str:
    return given(cell).split()[0]


def _limit(cell: str) -> float:
    try:
        return duration(cell)
    except ValueError:  # UNLIMITED, Partition_Limit, INVALID: nobody needs it
        raise LeftOut("has no limit of its own") from None


_RECORD = {
    "eligible": (moment, "Eligible"),
    "start": (moment, "Start"),
    "end": (moment, "End"),
    "state": (_state, "State"),
    "nodes": (_nodes, "NodeList"),
    "limit": (_limit, "Timelimit"),
    "tenant": (name, "Partition"),
    "user": (name, "User"),
    "asked": (_kind, "ReqTRES"),
    "kind": (_kind, "AllocTRES"),
    "processors": (processors_of, "AllocTRES"),
    "memory": (memory_of, "AllocTRES"),
    "cluster": (name, "Cluster"),
}
_FIELDS = {
    "id": (_job, "JobID", "Cluster"),
    "gpus": (_gpus, "AllocTRES", "State", "Start"),
    "arrival": (moment, "Submit"),
    "duration": (_seconds, "Start", "End"),
}


def plain_cell(value: Json) -> str:
    """A cell of a JSON value, whose numbers newer data parsers wrap as {set, infinite, number}, states as a list."""
    if isinstance(value, Mapping):
        return plain_cell(value.get("number")) if value.get("set") and not value.get("infinite") else ""
    if isinstance(value, list):
        return plain_cell(value[0]) if value else ""
    return "" if value is None else str(value)


def _part(job: Json, key: str) -> Mapping[str, Json]:
    found = job.get(key)
    if not isinstance(found, Mapping):
        raise ValueError(f"no object {key!r}")
    return found


def _tres(entries: Json) -> str:
    """The form that ``sacct -P`` writes; memory is counted in megabytes."""
    known = [entry for entry in entries or () if isinstance(entry, Mapping) and entry.get("count") is not None]
    return ",".join(
        f"gres/{entry['name']}={entry['count']}" if entry.get("type") == "gres" else f"{entry['type']}={entry['count']}"
        for entry in known
        if entry.get("type") in ("gres", "cpu", "mem")
    )


def _cells(job: Json) -> Sequence[str]:
    """The cells of a job of ``sacct --json``, in the order in which the fields name their columns first."""
    if not isinstance(job, Mapping):
        raise ValueError("is not an object")
    times, tres = _part(job, "time"), _part(job, "tres")
    array: Mapping[str, Json] = job["array"] if isinstance(job.get("array"), Mapping) else {}
    task = plain_cell(array.get("task_id")) if array.get("job_id") else ""
    identity = f"{array['job_id']}_{task}" if task else plain_cell(job.get("job_id"))
    parts = job["het"] if isinstance(job.get("het"), Mapping) else {}
    if parts.get("job_id") and (offset := plain_cell(parts.get("job_offset"))):
        identity = f"{plain_cell(parts['job_id'])}+{offset}"
    limit = plain_cell(times.get("limit"))
    start = plain_cell(times.get("start"))
    return (
        identity,
        plain_cell(job.get("cluster")),
        _tres(tres.get("allocated")),
        plain_cell(_part(job, "state").get("current")),
        start,
        plain_cell(times.get("submission")),
        plain_cell(times.get("end")),
        plain_cell(times.get("eligible")),
        plain_cell(job.get("nodes")),
        f"{60 * int(limit)}" if limit.isdecimal() else "",
        plain_cell(job.get("partition")),
        plain_cell(job.get("user")),
        _tres(tres.get("requested")),
    )


_TITLE = "Slurm's accounting: sacct -a -X -P -D with JobID,Submit,Start,End,State,AllocTRES, or sacct --json"
SLURM = Format(
    "slurm",
    _TITLE,
    _FIELDS,
    _RECORD,
    rows=sacct_rows,
    attempts=True,
    lenient=True,
    json=Format("slurm", _TITLE, _FIELDS, _RECORD, objects=_cells, items="jobs", attempts=True),
)


def gres(text: str) -> tuple[int, str | None]:
    """GPUs and their type of ``gpu:v100:8(S:0-1),craynetwork:4``; 0 where a node has none.

    Raises ValueError: an entry of GPUs has no number where one should be.
    """
    plain = "" if text == "(null)" else re.sub(r"\([^()]*\)", "", text)
    found = [(int(amount or 1), kind or None) for kind, amount in _GRES.findall(plain)]
    if len(found) < sum(entry.split(":")[0] == "gpu" for entry in plain.split(",")):
        raise ValueError(f"{text[:60]!r} does not say how many GPUs")
    kinds = {kind for _, kind in found}
    return sum(amount for amount, _ in found), kinds.pop() if len(kinds) == 1 else None


Devices = tuple[int, str | None]
"""GPUs and their type, where they are of one."""


def _told_nodes(path: str | Path, text: str) -> Iterator[tuple[str, str, dict[str, str], Devices]]:
    """(place, name, what is said, GPUs) of every node of ``scontrol show nodes``.

    Raises InputError: there is none, one without a list of its GPUs, or a text that was cut, by its begin or end.
    """
    nodes = list(NODE.finditer(text := text.replace("\r\n", "\n")))
    if not nodes or text[: nodes[0].start()].strip():
        raise InputError(f"{path}: line 1: begins with no NodeName=, as scontrol show nodes writes it")
    line, before = 1, 0
    for found in nodes:
        line += text.count("\n", before, found.start())
        before = found.start()
        place = f"{path}: line {line}"
        plain = re.sub(r"(?<!\S)(?:Reason|Comment|Extra)=.*", "", found[2])  # what a person wrote
        said = dict(reversed(re.findall(r"(?<!\S)(\w+)=(\S+)", plain)))  # the first of each
        if "Gres" not in said:
            raise InputError(f"{place}: node {found[1]} has no Gres=")
        try:
            yield place, found[1], said, gres(said["Gres"])
        except ValueError as fault:
            raise InputError(f"{place}: node {found[1]}: Gres: {fault}") from None
    if not found[0].endswith("\n\n" if "\n" in found[0].strip() else "\n"):
        raise InputError(f"{place}: node {found[1]} is the last and has no empty line after it: the text was cut")


Listed = tuple[str, int, str | None, int | None, int | None, tuple[str, ...], bool]
"""Name, GPUs, type, processors, bytes of memory and partitions of a node, and whether it is out of service."""
_OUT = re.compile(r"\*|(?:^|[+*])(?:DOWN|DRAIN|DRNG|FAIL|MAINT|NOT_RESPONDING|REBOOT|FUTURE|UNK)")
"""States of nodes that start no job until somebody mends them; ``*`` is not responding."""


def slurm_nodes(path: str | Path) -> Iterator[Listed]:
    """The nodes of ``scontrol show nodes``, or of ``sinfo`` with NODELIST and GRES, which says no more than these.

    Raises InputError: a node without a list of its GPUs, or a text that was cut.
    """
    with opened(path) as file:
        text = file.read()
    if text.lstrip().startswith("NodeName="):
        for _, name, said, devices in _told_nodes(path, text):
            amounts: list[int | None] = []
            for read in (processors_of, memory_of):
                try:
                    amounts.append(read(said.get("CfgTRES", "")))
                except LeftOut:
                    amounts.append(None)
            partitions = tuple(part for part in said.get("Partitions", "").split(",") if part)
            yield name, *devices, amounts[0], amounts[1], partitions, bool(_OUT.search(said.get("State", "")))
        return
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    at = {title.split(":")[0]: place for place, title in enumerate(lines[0])}
    listed: set[str] = set()
    for number, cells in enumerate(lines[1:], 2):
        if not any(cells):
            continue
        try:
            hosts, devices = host_names(cells[at["NODELIST"]]), gres(cells[at["GRES"]])
        except (IndexError, ValueError) as error:
            raise InputError(f"{path}: line {number}: not a node and its GRES ({error})") from None
        for host in hosts:  # sinfo -N lists a node once for each of its partitions
            if host not in listed:
                listed.add(host)
                state = cells[at["STATE"]] if "STATE" in at else ""
                yield host, *devices, None, None, (), bool(_OUT.search(state.upper()))
