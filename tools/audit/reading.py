"""What schedules of a log keep of the cluster, and what the limit may use: the two readings of a log.

Reached: a job stays on the type that it asked for and in the shape in which it lay on nodes, in its partition, with its
processors and memory, wherever log and list of nodes both have them. What is not kept is named, and why.
Limit: GPUs of each type are one pool, and a job of several types may use any of them at any moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.benchmarks.text import counted
from schedgap.formulations.common.arrays import Ints
from schedgap.tools.audit.load import Clash, steps
from schedgap.tools.audit.policies import Nodes, Shapes, Work
from schedgap.tools.audit.record import placed_on, rebuild, slots_of

_PLENTY = 2**62
"""Processors or bytes of a node of which the amount does not count."""


@dataclass(frozen=True)
class Reading:
    """A log on a cluster, as its schedules see it."""

    jobs: tuple[TraceJob, ...]
    servers: tuple[TraceServer, ...]  # nodes; a pool for each type; or one pool
    slot: float  # seconds
    kept: tuple[str, ...]  # what schedules keep, in words
    lost: Mapping[str, str]  # what they do not keep, and why
    same_everywhere: bool  # jobs that named no type may use several, and are taken to last as long on each
    held: Mapping[str, Mapping[str, int]] | None  # GPUs of each job on each server in the record, where it says so
    shapes_of: tuple[tuple[int, ...], ...]  # GPUs of each job on each of its nodes, the most first
    # usable, types: numbers of the servers, and names of the types for the limit, that each job may use
    usable: tuple[frozenset[int], ...]
    types: tuple[frozenset[str], ...]
    clashes: tuple[Clash, ...] = ()  # where the record would need more GPUs of a node than are listed

    @property
    def condition(self) -> str:
        """What must be assumed of the world for the figures to hold of it; empty where nothing must."""
        words = ["GPUs", *self.kept]
        several = ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0]
        return f"if {several} were all that counted"

    @cached_property
    def pools(self) -> dict[str, int]:
        """GPUs by type, for the limit; one pool where types are not known."""
        found: dict[str, int] = {}
        for server in self.servers:
            found[server.kind or ""] = found.get(server.kind or "", 0) + server.gpus
        return found

    @cached_property
    def gpus(self) -> Ints:
        """(J,) GPUs of each job."""
        return np.array([job.gpus for job in self.jobs], dtype=np.int64)

    @cached_property
    def arrays(self) -> tuple[Work, Shapes, Nodes]:
        """Jobs, requests and nodes for the compiled policies."""
        uses = {name: name in self.kept for name in ("processors", "memory")}
        wanted: dict[int, float] = {}
        for job, usable in zip(self.jobs, self.usable, strict=True):
            if len(usable) < len(self.servers):
                for n in usable:
                    wanted[n] = wanted.get(n, 0.0) + job.gpus * (job.duration or 0.0) / len(usable)
        order = np.array([wanted.get(n, 0.0) / max(1, s.gpus) for n, s in enumerate(self.servers)])
        nodes = Nodes(
            np.array([server.gpus for server in self.servers], dtype=np.int64),
            np.array([(server.processors if uses["processors"] else None) or _PLENTY for server in self.servers]),
            np.array([(server.memory if uses["memory"] else None) or _PLENTY for server in self.servers]),
            np.unique(np.round(order, 6), return_inverse=True)[1].astype(np.int64),
        )
        rows: dict[frozenset[int], int] = {}
        numbers: dict[tuple[object, ...], int] = {}
        first, pieces, mask, core, shape = [0], list[tuple[int, int, int]](), list[int](), list[int](), list[int]()
        spans = np.zeros((len(self.jobs), 2), dtype=np.int64)

        def number(usable: frozenset[int], amounts: Sequence[tuple[int, int, int]]) -> int:
            key = (usable, tuple(amounts))
            if key not in numbers:
                plain = [(gpus, 0, 0) for gpus, _, _ in amounts]
                below = None if plain == list(amounts) else number(usable, plain)
                numbers[key] = len(mask)
                core.append(numbers[key] if below is None else below)
                mask.append(rows.setdefault(usable, len(rows)))
                pieces.extend(amounts)
                first.append(len(pieces))
            return numbers[key]

        for j, (job, usable) in enumerate(zip(self.jobs, self.usable, strict=True)):
            parts = [
                (
                    gpus,
                    _part(job.processors, gpus, job, uses["processors"]),
                    _part(job.memory, gpus, job, uses["memory"]),
                )
                for gpus in self.shapes_of[j]
            ]
            shape.append(number(usable, parts))
            arrival, length, _ = slots_of(job, self.slot)
            spans[j] = arrival - 1, length
        allowed = np.zeros((len(rows), len(self.servers)), dtype=np.bool_)
        for usable, row in rows.items():
            allowed[row, list(usable)] = True
        columns = np.array(pieces, dtype=np.int64).reshape(-1, 3)
        begins = np.array(first, dtype=np.int64)
        kinds = np.array(shape, dtype=np.int64)
        offset = np.concatenate(([0], np.cumsum((begins[1:] - begins[:-1])[kinds])))
        shapes = Shapes(
            begins,
            columns[:, 0].copy(),
            columns[:, 1].copy(),
            columns[:, 2].copy(),
            np.array(mask, dtype=np.int64),
            np.array(core, dtype=np.int64),
            allowed,
        )
        return Work(spans[:, 0].copy(), spans[:, 1].copy(), kinds, offset), shapes, nodes

    def changed(self, servers: Sequence[TraceServer]) -> Reading:
        """The same jobs on other servers; a new one takes the jobs that others of its type take."""
        place = {server.id: n for n, server in enumerate(self.servers)}
        alike = {server.kind: n for n, server in sorted(enumerate(self.servers), key=lambda one: not one[1].out)}
        old = [place.get(server.id, alike.get(server.kind, 0)) for server in servers]
        known: dict[frozenset[int], frozenset[int]] = {}
        for row in set(self.usable):
            known[row] = frozenset(n for n, of in enumerate(old) if of in row)
        return replace(self, servers=tuple(servers), usable=tuple(known[row] for row in self.usable), held=None)

    @cached_property
    def gangs(self) -> dict[str, list[int]]:
        """Rows of the jobs of each gang that has several."""
        found: dict[str, list[int]] = {}
        for j, job in enumerate(self.jobs):
            if job.gang is not None:
                found.setdefault(job.gang, []).append(j)
        return {gang: rows for gang, rows in found.items() if len(rows) > 1}

    def apart(self, start: Ints) -> str | None:
        """The first gang of which a pod starts later after the gang's first than it did; None where there is none.

        A gang may start with fewer pods than it has. Where no pod is later, at any time after its first as many run as
        in the record, so it never starts with fewer than it needs.
        """
        for gang, rows in self.gangs.items():
            before = np.array([slots_of(self.jobs[j], self.slot)[2] or 0 for j in rows])
            if (start[rows] - start[rows].min() > before - before.min()).any():
                return gang
        return None

    def too_large(self) -> int:
        """How many jobs do not fit the empty cluster."""
        sizes = [server.gpus for server in self.servers]
        found = 0
        for usable, shape in zip(self.usable, self.shapes_of, strict=True):
            room = sorted((sizes[n] for n in usable), reverse=True)
            found += len(room) < len(shape) or any(g > r for g, r in zip(shape, room, strict=False))
        return found

    def broken(self, start: Ints, places: Sequence[Mapping[int, int]]) -> str | None:
        """The first rule of this reading that a schedule breaks; None where it keeps them all.

        Written apart from the compiled policies: jobs one by one, then the sums on every server.

        Parameters
        ----------
        start : (J,) slots, from 0
        places : GPUs of each job by number of the server
        """
        on: dict[int, list[tuple[int, int, int, int, int]]] = {}
        for j, (job, held) in enumerate(zip(self.jobs, places, strict=True)):
            arrival, length, _ = slots_of(job, self.slot)
            if start[j] < arrival - 1:
                return f"job {job.id} starts before it was submitted"
            if not set(held) <= self.usable[j]:
                return f"job {job.id} is on GPUs that it may not use"
            if sorted(held.values(), reverse=True) != list(self.shapes_of[j]):
                return f"job {job.id} does not lie on servers as it did"
            for n, gpus in held.items():
                more = [
                    _part(amount, gpus, job, word in self.kept)
                    for word, amount in (("processors", job.processors), ("memory", job.memory))
                ]
                on.setdefault(n, []).append((int(start[j]), int(start[j]) + length, gpus, more[0], more[1]))
        for n, rows in on.items():
            server = self.servers[n]
            rooms = (2, "GPUs", server.gpus), (3, "processors", server.processors), (4, "memory", server.memory)
            for column, word, room in rooms:
                if (word == "GPUs" or word in self.kept) and room is not None:
                    begin, end, amount = (np.array([row[c] for row in rows], dtype=float) for c in (0, 1, column))
                    if steps(begin, end, amount).peak > room:
                        return f"{server.id} has too few {word}"
        return None


def _part(amount: int | None, gpus: int, job: TraceJob, counts: bool) -> int:
    """The share of an amount that goes with so many of a job's GPUs, rounded up; 0 where it does not count."""
    return -(-amount * gpus // job.gpus) if counts and amount is not None else 0


def read_cluster(
    jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot: float, recorded: bool, listed: bool
) -> Reading:
    """What schedules of these jobs can keep.

    Parameters
    ----------
    jobs, servers : rows of the log and of its list of nodes
    slot : seconds
    recorded : every job has a start and an end
    listed : the servers are those of a list
    """
    lost: dict[str, str] = {}
    why = "nothing lists them" if not listed else "the log does not say when jobs ran" if not recorded else None
    why = why or placed_on(jobs, servers)
    held, clashes = None, tuple[Clash, ...]()
    if recorded and listed:
        anywhere = jobs if why is None else [replace(job, nodes=()) for job in jobs]
        rebuilt = rebuild(anywhere, servers, slot)
        clashes = rebuilt.clashes
        if clashes and why is None:
            why = f"{_clash(clashes[0])}: its split over nodes is not in the log, or the list is of another day"
        elif why is None:
            held = rebuilt.held
    kept = [] if why else ["nodes"]
    if why:
        lost["nodes"] = why
    ran_on = _ran_on(jobs, servers, held)
    kinds = {server.kind for server in servers}
    typed = None not in kinds and len(kinds) > 1
    asked = {job.asked for job in jobs if job.asked}
    if typed and (held is not None or _fit_by_type(jobs, servers, ran_on)):
        kept.insert(0, "types")
    else:
        if typed:
            lost["types"] = "the log does not say on which types jobs ran"
        elif len(asked | {job.kind for job in jobs if job.kind}) > 1:
            lost["types"] = "the list of nodes does not have them" if listed else "nothing lists them"
        servers = [replace(server, kind=None) for server in servers]
    if held is None:
        pools: dict[str | None, int] = {}
        for server in servers:
            pools[server.kind] = pools.get(server.kind, 0) + server.gpus
        servers = [TraceServer(kind or "cluster", gpus, kind) for kind, gpus in pools.items()]
    amounts, partitions = _further(jobs, servers, slot, held, kept, lost)
    usable, types, free = _usable(jobs, servers, ran_on, partitions, held)
    kept += amounts
    shapes = tuple((job.gpus,) if held is None else tuple(sorted(held[job.id].values(), reverse=True)) for job in jobs)
    if held is None and "types" in kept and recorded:
        held = {job.id: {next(iter(ran)): job.gpus} for job, ran in zip(jobs, ran_on, strict=True)}
    elif held is None and len(servers) == 1:
        held = {job.id: {servers[0].id: job.gpus} for job in jobs}
    return Reading(
        *(tuple(jobs), tuple(servers), slot, tuple(kept), lost, free, held, shapes, tuple(usable), tuple(types)),
        clashes,
    )


def _clash(clash: Clash) -> str:
    return f"{clash.server} would have needed {counted(clash.missing, 'more GPU')} for {clash.jobs[0]}"


def _ran_on(
    jobs: Sequence[TraceJob], servers: Sequence[TraceServer], held: Mapping[str, Mapping[str, int]] | None
) -> list[frozenset[str]]:
    """The types on which each job ran, as far as the log says."""
    kind = {server.id: server.kind for server in servers}
    found = []
    for job in jobs:
        nodes = held[job.id] if held is not None else [node for node, _ in job.nodes]
        found.append(frozenset({name for node in nodes if (name := kind.get(node))} or {job.kind} - {None}))
    return found  # type: ignore[return-value]


def _fit_by_type(jobs: Sequence[TraceJob], servers: Sequence[TraceServer], ran_on: Sequence[frozenset[str]]) -> bool:
    """Whether the record, where there is one, fits the pools of GPUs by type."""
    if any(job.start is None or job.end is None for job in jobs):
        return all(job.gpus <= sum(s.gpus for s in servers if job.asked in (None, s.kind)) for job in jobs)
    if any(len(kinds) != 1 for kinds in ran_on):
        return False
    for kind in {server.kind for server in servers}:
        mine = [job for job, kinds in zip(jobs, ran_on, strict=True) if kind in kinds]
        columns = [np.array([getattr(job, name) for job in mine], dtype=float) for name in ("start", "end", "gpus")]
        begin, end, gpus = columns
        if mine and steps(begin, end, gpus).peak > sum(server.gpus for server in servers if server.kind == kind):
            return False
    known = {server.kind for server in servers}
    return all(kinds <= known for kinds in ran_on)


def _further(
    jobs: Sequence[TraceJob],
    servers: Sequence[TraceServer],
    slot: float,
    held: Mapping[str, Mapping[str, int]] | None,
    kept: list[str],
    lost: dict[str, str],
) -> tuple[list[str], bool]:
    """Processors and memory, where log and list both have them and the record keeps within them; and partitions."""
    if held is None:
        return [], False
    by_id = {server.id: server for server in servers}
    partitions = all(job.tenant for job in jobs) and all(server.partitions for server in servers)
    if partitions and any(job.tenant not in by_id[node].partitions for job in jobs for node in held[job.id]):
        lost["partitions"] = "jobs ran on nodes outside of theirs"
        partitions = False
    if partitions and len({server.partitions for server in servers}) > 1:
        kept.append("partitions")
    amounts = []
    for word in ("processors", "memory"):
        if not all(getattr(one, word) is not None for one in (*jobs, *servers)):
            continue
        on: dict[str, list[tuple[float, float, int]]] = {}
        for job in jobs:
            for node, gpus in held[job.id].items():
                part = _part(getattr(job, word), gpus, job, counts=True)
                on.setdefault(node, []).append((job.start or 0.0, job.end or 0.0, part))
        over = next((node for node, rows in on.items() if _peak(rows) > getattr(by_id[node], word)), None)
        if over is None:
            amounts.append(word)
        else:
            lost[word] = f"{over} had more of them in use than it has"
    return amounts, partitions


def _peak(rows: Sequence[tuple[float, float, int]]) -> float:
    begin, end, amount = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return steps(begin, end, amount).peak


def _usable(
    jobs: Sequence[TraceJob],
    servers: Sequence[TraceServer],
    ran_on: Sequence[frozenset[str]],
    partitions: bool,
    held: Mapping[str, Mapping[str, int]] | None,
) -> tuple[list[frozenset[int]], list[frozenset[str]], bool]:
    """Servers that each job may use; types for the limit; whether jobs of no named type may use several.

    A job that named a type of the list may use that. One that named none may use all. One that named another (a
    feature, a type that the list calls otherwise) stays on what it ran on, and for the limit may use all. What ran
    elsewhere than it asked for shows that asking did not bind: the limit lets it use both. A node out of service that
    ran none of the jobs may have been so all the time: no job may use it, and the limit counts its GPUs.
    """
    every = frozenset(server.kind for server in servers if server.kind)
    hosts = {node for shares in (held or {}).values() for node in shares}
    shut = {n for n, server in enumerate(servers) if held is not None and server.out and server.id not in hosts}
    by_key: dict[tuple[object, ...], tuple[frozenset[int], frozenset[str]]] = {}
    usable, types, free = list[frozenset[int]](), list[frozenset[str]](), False
    for job, ran in zip(jobs, ran_on, strict=True):
        key = (job.asked, ran, job.tenant if partitions else None)
        if key not in by_key:
            mine = {job.asked} if job.asked in every else ran if job.asked and ran else every
            wide = every if job.asked not in every else frozenset({job.asked, *(ran & every)})
            inside = [not partitions or job.tenant in server.partitions for server in servers]
            fits = {n for n, server in enumerate(servers) if inside[n] and (not every or server.kind in mine)}
            reach = {server.kind or "" for n, server in enumerate(servers) if inside[n]}
            by_key[key] = frozenset(fits - shut), frozenset(reach & wide if every else reach) | (ran & every)
        usable.append(by_key[key][0])
        types.append(by_key[key][1])
        free = free or (bool(every) and job.asked is None and len({servers[n].kind for n in by_key[key][0]}) > 1)
    if held is not None:  # a job that ran where it may not, by this reading, keeps the nodes that it had
        number = {server.id: n for n, server in enumerate(servers)}
        for j, job in enumerate(jobs):
            if not {number[node] for node in held[job.id]} <= usable[j]:
                usable[j] = frozenset(number[node] for node in held[job.id]) | usable[j]
    return usable, types, free


def held_of(reading: Reading, places: Ints) -> list[dict[int, int]]:
    """GPUs of each job by number of the server, of what the compiled policies answer."""
    work, shapes, _ = reading.arrays
    found = []
    for j, k in enumerate(work.shape.tolist()):
        amounts = shapes.gpus[shapes.first[k] : shapes.first[k + 1]].tolist()
        nodes = places[work.offset[j] : work.offset[j + 1]].tolist()
        found.append(dict(zip(nodes, amounts, strict=True)))
    return found
