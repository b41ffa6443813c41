"""Schedules that keep what the log says of the cluster: the record, policies and a search, each checked and scored."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.service import present
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.text import counted
from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.tools.audit.limit import drain_limit, price_limit
from schedgap.tools.audit.policies import POLICIES, SEARCHES, ranks, schedule, search
from schedgap.tools.audit.reading import Reading, held_of
from schedgap.tools.audit.record import slots_of
from schedgap.tools.audit.result import RECORDED, Row, Side
from schedgap.tools.audit.scores import scores


class Reached:
    """Makes the sides of an audit whose schedules keep a reading."""

    def __init__(self, reading: Reading, name: str, time_limit: float, seed: int, bar: Progress) -> None:
        self.reading, self.name, self.time_limit, self.seed, self.bar = reading, name, time_limit, seed, bar
        self.usual: float | None = None

    def side(self, what: str, methods: Sequence[str], record: bool, reading: Reading | None = None) -> Side:
        """The record where it is asked for, these policies, and both limits, on this reading or a changed one."""
        reading = self.reading if reading is None else reading
        capacity = sum(server.gpus for server in reading.servers)
        if too_large := reading.too_large():
            return Side(capacity, f"{what} (too few for {counted(too_large, 'job')})", reading.servers)
        rows = [self._record(reading)] if record else []
        for method in methods:
            with self.bar.at_work(method):
                rows.append(self._run(reading, method))
        with self.bar.at_work("the limits"):
            limit, weighted = price_limit(reading, self.name), drain_limit(reading, self.name)
        ids = tuple(job.id for job in reading.jobs)
        return Side(
            *(capacity, what, reading.servers, tuple(rows), limit.seconds, True, ids),
            weighted_bound=weighted.seconds,
            limits=(limit, weighted),
        )

    def _record(self, reading: Reading) -> Row:
        """The recorded schedule; infeasible where more GPUs were busy than there are."""
        if reading.clashes and reading.held is None:
            first = reading.clashes[0]
            return Row(RECORDED, "infeasible", reason=f"{counted(first.missing, 'GPU')} too few on {first.server}")
        start = np.array([(slots_of(job, reading.slot)[2] or 1) - 1 for job in reading.jobs], dtype=np.int64)
        places = None
        if reading.held is not None:
            number = {server.id: n for n, server in enumerate(reading.servers)}
            places = [{number[at]: n for at, n in reading.held[job.id].items()} for job in reading.jobs]
            if why := reading.broken(start, places):
                return Row(RECORDED, "infeasible", reason=why)
        return self.judged(reading, RECORDED, RECORDED, start, places, None)

    def _run(self, reading: Reading, method: str) -> Row:
        """A policy, or the search; their schedules are checked by what :meth:`Reading.broken` says."""
        work, shapes, nodes = reading.arrays
        began = time.monotonic()
        if method in SEARCHES:
            weighted = method == "search-weighted"
            start, places, tried = search(work, shapes, nodes, reading.gpus, weighted, self.time_limit, self.seed)
            reason = f"{tried:,} orders"
        else:
            mode, order, reason = *POLICIES[method][:2], ""
            start, places = schedule(work, shapes, nodes, ranks(work, reading.gpus, order), mode)
        seconds = time.monotonic() - began
        held = held_of(reading, places)
        if why := reading.broken(start, held):
            return Row(method, "infeasible", reason=why, seconds=seconds)
        return self.judged(reading, method, "feasible", start, held, seconds, reason)

    def judged(
        self,
        reading: Reading,
        name: str,
        status: str,
        start: Ints,
        places: Sequence[Mapping[int, int]] | None,
        seconds: float | None,
        reason: str = "",
    ) -> Row:
        """The row of a schedule: starts in slots from 0, and GPUs of each job by number of the server."""
        work = reading.arrays[0]
        submit, begin, length = (
            reading.slot * np.asarray(a, dtype=np.float64) for a in (work.arrival, start, work.length)
        )
        end = begin + length
        if self.usual is None:
            self.usual = present(submit, end)
        capacity = sum(server.gpus for server in reading.servers)
        figures = scores(reading.jobs, submit, begin, end, capacity, self.usual)
        area = (reading.gpus * work.length).astype(np.float64)
        weighted = float(area @ (end - submit) / area.sum())
        named = None
        if places is not None:
            named = tuple({reading.servers[n].id: gpus for n, gpus in held.items()} for held in places)
        if gang := reading.apart(start):
            status, reason = "relaxed", f"not counted: pods of {gang} start apart"
        return Row(
            *(name, status, figures.jct.mean, figures, reason, seconds, None, (submit, begin, end)),
            weighted=weighted,
            places=named,
        )

    def kept(self, row: Row, solution: Solution) -> Row:
        """A schedule that was made where types and nodes do not count: with its weighted mean where it keeps them."""
        number = {server.id: n for n, server in enumerate(self.reading.servers)}
        places = []
        for job in self.reading.jobs:
            held: dict[int, int] = {}
            for server, _ in solution["gpus"][job.id]:
                held[number[server]] = held.get(number[server], 0) + 1
            places.append(held)
        start = np.array([solution["start"][job.id] - 1 for job in self.reading.jobs], dtype=np.int64)
        if why := self.reading.broken(start, places):
            return replace(row, status="relaxed", reason=f"not counted: {why}")
        made = self.judged(self.reading, row.name, row.status, start, places, row.seconds, row.reason)
        return replace(made, solution=solution)


def changed_servers(servers: Sequence[TraceServer], what: str, amount: int, kind: str | None) -> list[TraceServer]:
    """The servers with so many GPUs more (one more server, of the commonest type) or fewer (from the last servers)."""
    mine = [n for n, server in enumerate(servers) if kind is None or server.kind == kind]
    if what == "+":
        kinds = [servers[n].kind for n in mine]
        alike = servers[mine[kinds.index(max(kinds, key=kinds.count))]]
        if all(one.id in (one.kind, "cluster") for one in servers):  # pools: the first of them grows
            return [replace(one, gpus=one.gpus + amount) if one is alike else one for one in servers]
        return [*servers, replace(alike, id="more", gpus=amount, processors=None, memory=None, out=False)]
    found = list(servers)
    for n in reversed(mine):
        taken = min(amount, found[n].gpus)
        amount -= taken
        found[n] = replace(found[n], gpus=found[n].gpus - taken)
    return [server for server in found if server.gpus > 0]
