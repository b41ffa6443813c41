"""Tables and listings of servers, told by how they begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.importers.formats import CLUSTERS
from schedgap.benchmarks.importers.kubernetes import kubernetes_nodes
from schedgap.benchmarks.importers.rows import Notes, opened, read_rows
from schedgap.benchmarks.importers.slurm import Listed, slurm_nodes
from schedgap.benchmarks.text import counted
from schedgap.formulations.common.errors import InputError

_LINGJUN_GPUS = 8


_MOST_SERVERS = 100_000


MOST_HOSTS = 2_000_000
"""Hosts of all jobs of a log together."""


@dataclass(frozen=True)
class TraceServer:
    """A server, its GPUs, and what else is known of it."""

    id: str
    gpus: int
    kind: str | None = None
    # processors, memory, partitions: in number, in bytes, and whose jobs it takes; None and empty where nobody says
    processors: int | None = None
    memory: int | None = None
    partitions: tuple[str, ...] = ()
    out: bool = False  # down, drained or cordoned when it was listed


def read_servers(path: str | Path, notes: Notes) -> list[TraceServer]:
    """The servers of a table; its columns say of which format it is.

    Raises InputError: no known columns, or rows that do not fit.
    """
    with opened(path) as file:
        begin = file.readline().strip()
        head = {name.strip() for name in begin.split(",")}
    if begin.startswith("{"):
        found = servers_with_gpus(kubernetes_nodes(path), path, notes)
    elif begin.startswith("NodeName=") or {"NODELIST", "GRES"} <= {title.strip() for title in begin.split("|")}:
        found = servers_with_gpus(slurm_nodes(path), path, notes)
    else:
        found = _servers_of_table(path, head, notes)
    if not found:
        raise InputError(f"{path}: no servers with GPUs")
    return found


def servers_with_gpus(nodes: Iterable[Listed], path: str | Path, notes: Notes) -> list[TraceServer]:
    """The nodes that have GPUs; the others are counted."""
    found = [TraceServer(*node) for node in nodes]
    without = sum(server.gpus == 0 for server in found)
    if without:
        notes.add(f"{Path(path).name}: {counted(without, 'node')} without GPUs left out")
    return [server for server in found if server.gpus > 0]


def _servers_of_table(path: str | Path, head: set[str], notes: Notes) -> list[TraceServer]:
    """The servers of a table with these columns."""
    wanted = [{column for _, *columns in form.fields.values() for column in columns} for form in CLUSTERS]
    form = next((form for form, columns in zip(CLUSTERS, wanted, strict=True) if columns <= head), None)
    if form is None:
        kinds = "; ".join(", ".join(sorted(columns)) for columns in wanted)
        raise InputError(f"{path}: line 1: not a known table of servers (one needs the columns {kinds})")
    notes.add(*form.notes)
    servers: list[TraceServer] = []
    left_out = Notes()
    for row in read_rows(form, path, left_out):
        copies = row.get("copies", 1) * row.get("switches", 1)
        if len(servers) + copies > _MOST_SERVERS:
            raise InputError(f"{path}: line {row['line']}: more than {_MOST_SERVERS} servers")
        for copy in range(copies):
            name = row.get("id") or f"s{len(servers)}" + (f"-{copy}" if row["line"] > 2 else "")
            servers.append(TraceServer(name, row.get("gpus", _LINGJUN_GPUS), row.get("kind")))
    notes.add(*(f"{Path(path).name}: {text}" for text in left_out.texts))
    return servers
