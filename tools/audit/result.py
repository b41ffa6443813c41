"""What an audit found: its verdict, and as text, as JSON and for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.benchmarks.report.sheet import Column, Sheet
from schedgap.benchmarks.text import counted, fixed, percent, significant
from schedgap.formulations.common.instance import Json, Solution
from schedgap.tools.audit.answer import (
    NOTHING,
    answer_lines,
    between,
    conditions,
    hours,
    outward,
    sentence,
    share,
    short_text,
)
from schedgap.tools.audit.limit import Limit
from schedgap.tools.audit.load import Clash, Load, Share
from schedgap.tools.audit.scores import Scores

_SHARES = {"jct": "JCT", "wait": "waiting", "weighted": "JCT weighted by GPU time"}


Times = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


RECORDED = "recorded"


@dataclass(frozen=True)
class Row:
    """One schedule of the same jobs."""

    name: str  # "recorded", a method's id, or the user's scheduler
    status: str  # status from ``solve``; "recorded", "infeasible" or "not run"
    objective: float | None = None  # mean JCT in seconds, or the problem's own objective; None where there is no figure
    scores: Scores | None = None  # None where the schedule has no start and end of each job
    reason: str = ""  # why there is no figure, or what is special about it
    seconds: float | None = None  # seconds that it took
    solution: Solution | None = None  # None where there is none
    times: Times | None = None  # seconds of submission, start and end of each job; where there are scores
    weighted: float | None = None  # mean seconds from submission to end, each job weighted by GPUs times length
    places: tuple[Mapping[str, int], ...] | None = None  # GPUs of each job on each server, where that is known


@dataclass(frozen=True)
class Side:
    """All schedules on one cluster."""

    # capacity, what: GPUs, and how they are called: "as listed", "8 GPUs more"
    capacity: int
    what: str
    servers: tuple[TraceServer, ...]  # servers of the schedules
    rows: tuple[Row, ...] = ()  # the record first, where there is one
    bound: float | None = None  # certified, in the unit of the objective
    minimises: bool = True  # the objective is better the smaller it is
    jobs: tuple[str, ...] = ()  # ids, in the order of the rows' times
    slowdown: float | None = None  # slowdown of two jobs that share a GPU; None where none do
    relaxed: bool = False  # GPUs are all that counts here: stands beside the answer, and is no part of it
    weighted_bound: float | None = None  # seconds: no schedule has a smaller weighted mean
    limits: tuple[Limit, ...] = ()  # what proves the bounds, where prices and draining do

    @property
    def recorded(self) -> Row | None:
        """The record, where it is a schedule of this cluster."""
        return next((row for row in self.rows if row.name == RECORDED and row.objective is not None), None)

    @property
    def best(self) -> Row | None:
        """The best schedule that is feasible, the record included."""
        return self._best(self.rows)

    @property
    def sharing(self) -> str:
        """What happens to two jobs on a GPU."""
        if self.slowdown is None:
            return "none"
        return "free" if self.slowdown == 1 else f"each {self.slowdown:g} times slower"

    @property
    def best_weighted(self) -> Row | None:
        """The best feasible schedule by the weighted mean, the record included."""
        known = [row for row in self.rows if row.weighted is not None and row.status != "relaxed"]
        return min(known, key=lambda row: row.weighted or 0.0, default=None)

    @property
    def best_scheduler(self) -> Row | None:
        """The best schedule that is feasible, but for the record."""
        return self._best([row for row in self.rows if row.name != RECORDED])

    def _best(self, rows: Sequence[Row]) -> Row | None:
        known = [
            row for row in rows if row.objective is not None and row.status not in ("outside the model", "relaxed")
        ]
        choose = min if self.minimises else max
        return choose(known, key=lambda row: row.objective or 0.0, default=None)


@dataclass(frozen=True)
class Audit:
    """A log audited."""

    # name, problem, unit, minimises: of what, the problem its schedules are of, and its objective
    name: str
    problem: str
    unit: str
    minimises: bool
    left_out: dict[str, int]  # how many jobs of the log do not count, and why
    load: Load  # figures of the log alone
    sides: tuple[Side, ...]  # the cluster as it is, then as it might be
    clashes: tuple[Clash, ...] = ()  # where the record needs more than the cluster has
    notes: tuple[str, ...] = ()  # what was relaxed or assumed
    # work, slot_length: mean seconds that a job ran, and of a slot of the record
    work: float = 0.0
    slot_length: float = 1.0
    timed: bool = True  # the objective is a mean JCT in seconds
    chosen: bool = False  # these are jobs of one tenant or window: others held GPUs, too
    running: int = 0  # jobs that had not ended when the log was written: they are left out, and held GPUs, too
    pending: int = 0  # jobs that still waited then
    unread: int = 0  # rows that do not count and may have held GPUs
    jobs: tuple[TraceJob, ...] = ()  # jobs that count
    out: int = 0  # nodes that the list has as out of service: it is of another moment than the log
    gangs: int = 0  # gangs of several pods, which are jobs: only a schedule that starts them together is reached
    late: int = 0  # jobs among them that were eligible only after they were submitted, and count as submitted then
    condition: str = ""  # what must be assumed of the cluster for the answer to hold
    limit_condition: str = ""  # what must be assumed for the limit alone to hold
    same_everywhere: bool = False  # jobs that named no type are taken to last as long on each

    @property
    def sentence(self) -> str:
        """What to tell somebody who has a minute, with what it takes for granted; empty where there is no ratio."""
        gains = self.avoidable(self.sides[0])
        if not (text := sentence(self)) or gains is None or gains["jct"][1] < NOTHING:
            return text
        return f"{text}, {conditions(self)}"

    @property
    def verdict(self) -> str:
        """One line, computed."""
        parts = [self._verdict()]
        if self.late:
            parts.append(
                f"{counted(self.late, 'job')} became eligible only after submission (a start time, another job or a "
                "hold): every schedule takes the moment of the log, and the time before does not count"
            )
        if self.gangs:
            parts.append(
                f"only schedules that start the pods of {counted(self.gangs, 'gang')} together count as reached"
            )
        if self.out:
            nodes = f"{counted(self.out, 'node')} out of service in the list (down, drained or cordoned)"
            parts.append(f"but {nodes} count{'s' * (self.out == 1)} as capacity")
        if self.running:
            whose = "it" if self.running == 1 else "they"
            parts.append(
                f"but {counted(self.running, 'job')} had not ended, and GPUs that {whose} may have held count as idle"
            )
        if self.unread:
            rows = "1 row that does not count" if self.unread == 1 else f"{self.unread:,} rows that do not count"
            parts.append(f"but {rows} may have held GPUs, which count as idle")
        if self.pending:
            jobs, what = counted(self.pending, "job"), "does" if self.pending == 1 else "do"
            parts.append(
                f"the queue had not drained: {jobs} still waited when the log was written, and {what} not count"
            )
        return "; ".join(parts)

    @property
    def fits(self) -> bool:
        """Whether the record never has more GPUs busy than there are."""
        busy = self.load.busy
        return (busy is None or busy.peak <= self.load.capacity) and (
            not self.clashes or self.sides[0].recorded is not None
        )

    def _verdict(self) -> str:
        side, load = self.sides[0], self.load
        if not self.fits:
            peak = load.busy.peak if load.busy is not None else 0.0
            return f"the record needs more GPUs than listed ({peak:g} at once of {load.capacity}): no ratio is given"
        if load.busy is not None and not load.full_queued:
            used = "" if load.utilisation is None else f"{percent(load.utilisation)} of the GPU time used, "
            return (
                f"no queue ever formed: this log cannot judge a policy ({used}at most "
                f"{load.busy.peak:,.0f} of {counted(load.capacity, 'GPU')} busy; nobody waited while too few were idle)"
            )
        gains = self.avoidable(side)
        if gains is None:
            return self._without_gains()
        waiting = gains.get("wait")
        text = f"avoidable: {share(*gains['jct'])} of the time between submission and end"
        text += f" ({' to '.join(outward(*waiting))} of the waiting)" if waiting and gains["jct"][1] >= NOTHING else ""
        given = conditions(self) if gains["jct"][1] >= NOTHING else self.limit_condition
        return f"{text}, {given}" if given else text

    def _without_gains(self) -> str:
        """Why nothing can be said of what is avoidable."""
        load = self.load
        if load.busy is None and load.demand.peak <= load.capacity:
            return "no record, and no queue would ever form: this log cannot judge a policy"
        if load.busy is None:
            return "no record: the log does not say when jobs started; schedulers and bound only"
        side = self.sides[0]
        if not self.minimises and side.recorded and side.bound and side.best:
            was = side.recorded.objective or 0.0
            least, most = (was / of if of else 1.0 for of in (side.bound, side.best.objective))
            return f"the record reaches {' to '.join(outward(least, most))} of the best {self.unit.partition(',')[0]}"
        if side.recorded is None:
            return f"the record is no schedule of {self.problem}: schedulers and bound only"
        return "no scheduler finished and no bound is known: nothing can be said of what is avoidable"

    def avoidable(self, side: Side) -> dict[str, tuple[float, float]] | None:
        """Shares of JCT and of waiting that a better schedule avoids: at least, at most; None without a record."""
        recorded, best = side.recorded, side.best
        if not self.minimises or recorded is None or best is None or side.bound is None or not recorded.objective:
            return None
        assert best.objective is not None
        shares = {"jct": (1 - best.objective / recorded.objective, 1 - side.bound / recorded.objective)}
        waited = recorded.objective - self.work
        if waited > 1e-9:
            least, most = ((value - self.work) / waited for value in (best.objective, side.bound))
            shares["wait"] = 1 - max(0.0, least), 1 - max(0.0, most)
        weighted = side.best_weighted
        if recorded.weighted and weighted is not None and weighted.weighted and side.weighted_bound is not None:
            shares["weighted"] = (
                1 - weighted.weighted / recorded.weighted,
                1 - side.weighted_bound / recorded.weighted,
            )
        return shares

    def sheets(self) -> list[Sheet]:
        """Every table, for text and page."""
        return [
            sheet
            for sheet in (
                *(self._log(), *map(self._schedules, self.sides), self._sharing()),
                *(*self._shares(), self._waited()),
            )
            if sheet.rows
        ]

    def _log(self) -> Sheet:
        load = self.load
        rows = [
            ("jobs used", f"{load.jobs:,}"),
            *((f"left out: {why}", f"{count:,}") for why, count in self.left_out.items()),
            ("GPUs", f"{load.capacity:,}"),
            *([] if load.offered is None or load.busy is not None else [("offered load", f"{load.offered:.2%}")]),
            ("peak demand, GPUs", f"{load.demand.peak:,.0f} ({load.demand.peak / load.capacity:.2f} of the cluster)"),
        ]
        if load.busy is not None:
            rows += [
                ("most GPUs busy", f"{load.busy.peak:,.0f}"),
                ("utilisation", "-" if load.utilisation is None else f"{load.utilisation:.2%}"),
                ("GPU hours queued", hours(load.queued or 0)),
                ("of these while too few were idle", hours(load.full_queued or 0)),
                ("GPU hours idle while queued", hours(load.idle_queued or 0)),
            ]
        gains = self.avoidable(self.sides[0]) if load.full_queued else None  # without a queue no schedule is at fault
        for what, (least, most) in (gains or {}).items():
            rows.append((f"avoidable of {_SHARES[what]}", between(least, most)))
        columns = (Column("the log", right=False, width=48), Column("", width=48))
        notes = (
            "utilisation, load: GPU time over that of all GPUs from the first submission to the last end, or without a "
            "record to the last submission; peak demand: if every job started when it was submitted",
        )
        return Sheet("", columns, rows, notes)

    def gains(self) -> list[tuple[Side, Row, float, float]]:
        """Where sharing was asked for: each side, its best schedule, and what that and the bound avoid of the JCT.

        Measured against the record; against fifo with GPUs of their own where there is none.
        """
        sides = [side for side in self.sides if side.relaxed]
        rows = {row.name: row.objective for row in (*(sides[0].rows if sides else ()), *self.sides[0].rows)}
        base = rows.get(RECORDED) or rows.get("fifo")
        if not sides or base is None:
            return []
        bests = [(side, side.best_scheduler) for side in sides]
        return [
            (side, best, 1 - best.objective / base, 1 - side.bound / base)
            for side, best in bests
            if best is not None and best.objective is not None and side.bound is not None
        ]

    def shared(self) -> list[Sheet]:
        """The table of sharing, where it was asked for."""
        return [sheet] if (sheet := self._sharing()).rows else []

    def _sharing(self) -> Sheet:
        """What the answer owes to an assumption that no log can settle."""
        rows = [
            (
                side.sharing,
                *(best.name, significant(best.objective), significant(side.bound), *outward(least, most)),
            )
            for side, best, least, most in self.gains()
        ]
        against = RECORDED if self.sides[0].recorded else "fifo"
        columns = (
            Column("two jobs on a GPU", right=False),
            Column("best scheduler", right=False),
            Column("mean JCT", "seconds from submission to end"),
            Column("certified bound"),
            Column("avoids", f"of the mean JCT of {against} without sharing"),
            Column("at most", "what the bound leaves of it"),
        )
        notes = (
            "no log says how much jobs slow each other: the verdict is that without sharing; types and nodes are not "
            "kept here, so these shares are of a cluster on which GPUs are all that counts",
        )
        return Sheet(f"What sharing GPUs would avoid, compared with {against}", columns, rows, notes)

    def _schedules(self, side: Side) -> Sheet:
        timed = self.timed
        rows = [self._cells(row, side) for row in side.rows]
        if side.bound is not None:
            weighted = significant(side.weighted_bound)
            rows.append(("certified bound", "-", significant(side.bound), *["-"] * 5, weighted, *["-"] * 9))
        jct = "mean JCT" if timed else self.unit
        columns = (
            Column("schedule", right=False),
            Column("status", right=False, page=True),
            Column(jct, "seconds from submission to end" if timed else ""),
            Column("to bound", "ratio to the certified bound, at least 1"),
            Column("mean JCT", "seconds from submission to end"),
            *(Column(title) for title in ("median", "p95")),
            Column("p99", page=True),
            Column("weighted", "mean JCT, each job weighted by GPUs times length"),
            Column("mean wait", "seconds from submission to start"),
            *(Column(title, page=True) for title in ("median wait", "p95 wait")),
            Column("slow-down", "bounded: max(1, JCT / max(duration, 10 s)), mean"),
            Column("p95 slow-down", page=True),
            Column("busy", "GPUs busy, from the first submission to the last end"),
            Column("fair-ness", "finish-time fairness: JCT over JCT alone on an equal share of the cluster"),
            Column("Jain", "index of the tenants' mean slowdowns"),
            Column("note", right=False, width=40),
        )
        return Sheet(f"{counted(side.capacity, 'GPU')}, {side.what}", columns, rows)

    def _cells(self, row: Row, side: Side) -> tuple[str, ...]:
        """A schedule's row."""
        scores, cells = row.scores, ["-"] * 13
        if scores is not None:
            cells = ["-" if self.timed else significant(scores.jct.mean)]
            cells += [significant(v) for v in (scores.jct.median, scores.jct.p95, scores.jct.p99, row.weighted)]
            cells += [significant(value) for value in (scores.wait.mean, scores.wait.median, scores.wait.p95)]
            cells += [
                fixed(scores.slowdown.mean, 2),
                fixed(scores.slowdown.p95, 1),
                "-" if side.slowdown else f"{scores.utilisation:.1%}",
            ]
            cells += [fixed(scores.fairness, 2), fixed(scores.jain, 3)]
        return (row.name, row.status, significant(row.objective), self._ratio(row, side), *cells, row.reason or "-")

    def _ratio(self, row: Row, side: Side) -> str:
        if row.objective is None or not side.bound or row.status == "outside the model":
            return "-"
        return fixed(row.objective / side.bound if self.minimises else side.bound / (row.objective or math.nan), 3)

    def _shares(self) -> list[Sheet]:
        recorded = self.sides[0].recorded
        fairness = {} if recorded is None or recorded.scores is None else recorded.scores.tenants
        sheets = []
        tables: tuple[tuple[str, tuple[Share, ...], Mapping[str, float]], ...] = (
            ("type asked for", self.load.kinds, {}),
            ("tenant", self.load.tenants, fairness),
        )
        for title, shares, fair in tables:
            shown = shares[:20]
            rows = [
                (
                    group.name,
                    f"{group.jobs:,}",
                    f"{group.capacity:,}",
                    "-" if group.load is None else f"{group.load:.2%}",
                    f"{group.peak:,.0f}",
                    f"{group.peak / group.capacity:.2f}",
                    significant(group.wait),
                    fixed(fair.get(group.name), 2),
                )
                for group in shown
            ]
            columns = (
                *(Column(title, right=False), Column("jobs"), Column("GPUs"), Column("load"), Column("peak")),
                Column("peak / GPUs"),
                Column("mean wait", "seconds"),
                Column("fair-ness", "finish-time fairness of the record: mean JCT over JCT alone on an equal share"),
            )
            more = (f"{len(shares) - len(shown)} more",) if len(shares) > len(shown) else ()
            sheets.append(Sheet(f"by {title}", columns, rows, more))
        return sheets

    def _waited(self) -> Sheet:
        rows = [(one.id, f"{one.gpus}", f"{one.waited:,.0f}", f"{one.idle:,.0f}") for one in self.load.waited]
        columns = (
            *(Column("job", right=False), Column("GPUs"), Column("waited", "seconds")),
            Column(
                "with enough idle",
                "seconds of these in which enough GPUs (of its type, where it asked for one) were idle",
            ),
        )
        title = "jobs that waited longest while enough GPUs were idle"
        notes = (
            "GPUs may have been idle on several servers; memory, CPUs, limits and reservations are not in the log",
        )
        return Sheet(title, columns, rows, notes)

    def clash_lines(self) -> list[str]:
        """Where the record needs more than there is, the first five."""
        lines = [
            f"second {(one.slot - 1) * self.slot_length:g}: {counted(one.missing, 'GPU')} too few on {one.server} for "
            f"{one.jobs[0]}, beside {', '.join(one.jobs[1:6]) or 'nobody'}"
            for one in self.clashes[:5]
        ]
        return lines + ([f"{len(self.clashes) - 5} more"] if len(self.clashes) > 5 else [])

    def to_text(self, full: bool = False) -> str:
        """The text that ``audit`` prints: one screen, or with every table."""
        if not full:
            return short_text(self)
        lines = [*answer_lines(self), *self.clash_lines()]
        tables = "\n\n".join(sheet.text().lstrip("\n") for sheet in self.sheets())
        notes = "\n".join(f"assumed: {note}" for note in self.notes)
        return "\n\n".join(
            part for part in ("\n".join([f"{self.name}: {lines[0]}", *lines[1:]]), tables, notes) if part
        )

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        load = self.load
        return {
            "log": self.name,
            "problem": self.problem,
            "sentence": self.sentence or None,
            "verdict": self.verdict,
            "condition": self.condition or None,
            "jobs": load.jobs,
            "eligible_later": self.late,
            "left_out": self.left_out,
            "gpus": load.capacity,
            "offered_load": load.offered,
            "peak_demand": load.demand.peak,
            "peak_busy": None if load.busy is None else load.busy.peak,
            "utilisation": load.utilisation,
            "queued_gpu_seconds": load.queued,
            "queued_while_full_gpu_seconds": load.full_queued,
            "idle_while_queued_gpu_seconds": load.idle_queued,
            "kinds": [vars(one) for one in load.kinds],
            "tenants": [vars(one) for one in load.tenants],
            "waited": [vars(one) for one in load.waited],
            "clashes": [vars(one) for one in self.clashes],
            "assumed": list(self.notes),
            "sharing": [
                {"slowdown": side.slowdown, "best": row.name, "avoids": least, "at_most": most}
                for side, row, least, most in self.gains()
            ],
            "sides": [
                {
                    "gpus": side.capacity,
                    "what": side.what,
                    "bound": side.bound,
                    "weighted_bound": side.weighted_bound,
                    "certified": [limit.certificate is not None for limit in side.limits],
                    "only_gpus_count": side.relaxed,
                    "avoidable": self.avoidable(side),
                    "rows": [
                        {
                            "schedule": row.name,
                            "status": row.status,
                            "objective": row.objective,
                            "weighted": row.weighted,
                            "scores": None if row.scores is None else row.scores.to_dict(),
                            "reason": row.reason or None,
                            "seconds": row.seconds,
                        }
                        for row in side.rows
                    ],
                }
                for side in self.sides
            ],
        }
