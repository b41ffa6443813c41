"""Runs what a paper's items need: pooled, stored, resumed, extended where a verdict is undecided."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import schedgap.benchmarks.instances
from schedgap.benchmarks.records import Record, failed, plain
from schedgap.benchmarks.sweep.cluster import check_cluster
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import Store, row_key
from schedgap.benchmarks.sweep.sweep import run_store, sweep
from schedgap.benchmarks.sweep.versions import environment, relevant_versions
from schedgap.formulations.common.errors import InputError, near
from schedgap.solvers.result import Status
from schedgap.tools.laboratory import measure as measuring
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import Item, Measure, Paper
from schedgap.tools.laboratory.measure import Run
from schedgap.tools.laboratory.verdicts import Judged, judge

FIRST_SEED = 1000
"""The first draw: settings were tried on draws below it, so verdicts come from draws that no choice was made on."""


PROCESSOR = "processor"
"""The metric that every run has: its processor seconds."""


@dataclass(frozen=True)
class Work:
    """One run on one draw, and the identity of all that its result depends on."""

    key: str
    item: str
    run: Run
    seed: int
    measure: Measure


@dataclass(frozen=True)
class Finding:
    """An item with its data and its judged claims.

    `processor` is the processor seconds of its runs; a run that two items need counts for the first.
    """

    item: Item
    data: Data
    judged: tuple[Judged, ...]
    processor: float = 0.0


@dataclass(frozen=True)
class Reproduction:
    """What :func:`reproduce` did."""

    folder: Path  # where the run, the page and the figures are
    page: Path | None  # the page's path; None where Ctrl-C ended the run
    findings: tuple[Finding, ...]  # one per item
    interrupted: bool  # Ctrl-C ended it; every finished draw is kept
    errors: tuple[str, ...]  # runs that failed, one line each


@cache
def _instances_digest() -> str:
    """SHA-256 over the generators and what measures: a result depends on them as on the methods."""
    digest = hashlib.sha256()
    files = [Path(inspect.getfile(measuring))]
    for folder in schedgap.benchmarks.instances.__path__:
        files += sorted(Path(folder).rglob("*.py"))
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _source(function: Measure) -> str:
    """The name of what measures, and a digest of its file."""
    text = Path(inspect.getfile(function)).read_bytes()
    return f"{function.__module__}.{function.__qualname__} {hashlib.sha256(text).hexdigest()[:16]}"


def _work(item: Item, run: Run, seed: int) -> Work:
    parts = {
        "measure": _source(item.measure),
        "problem": run.problem,
        "preset": run.preset,
        "workload": plain(run.workload),
        "method": run.method,
        "settings": plain(run.settings),
        "seed": seed,
        "versions": relevant_versions(),
        "instances": _instances_digest(),
    }
    return Work(row_key(parts), item.id, run, seed, item.measure)


def _execute(group: Sequence[Work]) -> list[tuple[Any, str]]:
    """Every run on one draw: its metrics, or why there are none."""
    return [_measured(work) for work in group]


def _measured(work: Work) -> tuple[Any, str]:
    began = time.process_time()
    try:
        found = plain(work.measure(work.run, work.seed))
        return {**found, PROCESSOR: time.process_time() - began}, ""
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return None, f"{type(error).__name__}: {lines[0]}"


def draws_of(item: Item, seeds: int | None, scale: float, more: bool) -> int:
    """How many draws an item gets: as asked for, else its own number; never fewer than two unless it has only one."""
    if item.max_seeds == 1:
        return 1
    wanted = seeds if seeds is not None else item.max_seeds if more else item.seeds
    return max(2, round(wanted * scale))


def reproduce(
    paper: str | Paper,
    *,
    items: Sequence[str] | None = None,
    seeds: int | None = None,
    scale: float = 1.0,
    resume: bool = False,
    out: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Sink | None = None,
) -> Reproduction:
    """Measure a paper's tables and figures again, judge its claims, write the page.

    Parameters
    ----------
    paper : its number or name, "000" or "sjf-bco"
    items : ids; all where None
    seeds : draws of every item; None is the items' own number, raised where a verdict is undecided
    scale : factor on the number of draws
    resume : go on with the run in `out`; nothing that had finished is repeated
    out : the run's folder, by default ``results/reproduce-<paper>``; where it holds a run and `resume` is not asked
        for, a new one beside it
    workers : processes; None is one per core
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine
    progress : a stream or a function for lines; None is silent

    Raises
    ------
    InputError
        An unknown paper or item, a number out of range, a folder that cannot be written.
    """
    from schedgap.tools.laboratory.page import write_page
    from schedgap.tools.laboratory.papers import find_paper

    paper = find_paper(paper) if isinstance(paper, str) else paper
    chosen = _chosen(paper, items)
    if seeds is not None and not 1 <= seeds <= 100_000:
        raise InputError(f"seeds: must be from 1 to 100000, got {seeds}")
    if not 0 < scale <= 1000:
        raise InputError(f"scale: must be greater than 0 and at most 1000, got {scale:g}")
    check_cluster(cluster)
    home = Path("results") / f"reproduce-{paper.id}" if out is None else Path(out)
    with run_store(home, resume) as (folder, store, goes_on):
        session = _Session(store, workers or environment()["cores"], progress, paper.id, cluster)
        if goes_on and progress is not None:
            session.say(f"reproduce goes on with {folder}: {store.count} runs had finished")
        store.set_meta(paper=paper.id, items=[item.id for item in chosen], environment=environment())
        counts = {item.id: draws_of(item, seeds, scale, more=False) for item in chosen}
        interrupted = session.run(chosen, counts)
        findings = tuple(session.finding(item, counts[item.id]) for item in chosen) if not interrupted else ()
        longer = {
            one.item.id: draws_of(one.item, seeds, scale, more=True)
            for one in findings
            if any(judged.undecided for judged in one.judged)
        }
        again = [item for item in chosen if longer.get(item.id, 0) > counts[item.id]]
        if again and not interrupted:
            session.say(f"reproduce: more draws for what is undecided: {', '.join(item.id for item in again)}")
            counts |= {item.id: longer[item.id] for item in again}
            interrupted = session.run(again, counts)
            findings = tuple(session.finding(item, counts[item.id]) for item in chosen) if not interrupted else ()
        seconds = session.processor(chosen, counts)
        findings = tuple(replace(one, processor=seconds[one.item.id]) for one in findings)
        page = None if interrupted else write_page(paper, findings, folder)
    return Reproduction(folder, page, findings, interrupted, tuple(session.errors))


def _chosen(paper: Paper, names: Sequence[str] | None) -> list[Item]:
    known = {item.id: item for item in paper.items}
    for name in names or ():
        if name not in known:
            raise InputError(
                f"item: paper {paper.id} has no item {name!r}, one of: {', '.join(known)}{near(name, known)}"
            )
    return [item for item in paper.items if names is None or item.id in names]


class _Session:
    """The store's rows as they are, and the way to get more."""

    def __init__(self, store: Store, workers: int, progress: Sink | None, paper: str, cluster: str | None) -> None:
        self.store, self.workers, self.progress, self.paper = store, workers, progress, paper
        self.cluster = cluster
        self.found: dict[str, Mapping[str, Any]] = {
            row.key: row.payload for row in store.rows() if row.result.status is not Status.ERROR
        }
        self.errors: list[str] = []

    def say(self, line: str) -> None:
        """A line of its own."""
        Progress(0, self.progress, "reproduce").say(line)

    def finding(self, item: Item, count: int) -> Finding:
        """The item's data over its first draws, judged."""
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        # a run that failed gives nothing: it counts as a draw without a value
        found = {key: [self.found.get(_work(item, run, seed).key, {}) for seed in seeds] for key, run in item.runs()}
        data = Data(found, seeds)
        return Finding(item, data, judge(item, data))

    def processor(self, items: Iterable[Item], counts: Mapping[str, int]) -> dict[str, float]:
        """Processor seconds by item; a run that two items need counts for the first."""
        seen: set[str] = set()
        found = {}
        for item in items:
            keys = {
                _work(item, run, seed).key
                for seed in range(FIRST_SEED, FIRST_SEED + counts[item.id])
                for _, run in item.runs()
            }
            found[item.id] = sum(self.found.get(key, {}).get(PROCESSOR, 0.0) for key in keys - seen)
            seen |= keys
        return found

    def run(self, items: Iterable[Item], counts: Mapping[str, int]) -> bool:
        """Run what is missing; whether Ctrl-C ended it."""
        groups: dict[tuple[str, int], dict[str, Work]] = {}
        for item in items:
            for seed in range(FIRST_SEED, FIRST_SEED + counts[item.id]):
                for _, run in item.runs():
                    work = _work(item, run, seed)
                    if work.key not in self.found:
                        groups.setdefault((run.group, seed), {})[work.key] = work
        todo = [list(group.values()) for group in groups.values()]
        bar = Progress(sum(map(len, todo)), self.progress, f"reproduce {self.paper}")

        def keep(group: Sequence[Work], outcomes: list[tuple[Any, str]]) -> None:
            for work, (payload, error) in zip(group, outcomes, strict=True):
                self.store.put(_record(self.paper, work, payload, error))
                if error:
                    self.errors.append(f"{work.item}, {work.run.method}, seed {work.seed}: {error}")
                else:
                    self.found[work.key] = payload
            bar.step(_label(group), len(group))

        def died(group: Sequence[Work], reason: str, _: float) -> None:
            keep(group, [(None, reason)] * len(group))

        try:
            sweep(todo, _execute, keep, died, label=_label, bar=bar, workers=self.workers, cluster=self.cluster)
        except KeyboardInterrupt:
            return True
        return False


def _label(group: Sequence[Work]) -> str:
    return f"{group[-1].item} seed {group[-1].seed}"


def _record(paper: str, work: Work, payload: Any, error: str) -> Record:
    record = Record(
        problem=work.run.problem,
        method=work.run.method,
        settings={"workload": plain(work.run.workload), "method": plain(work.run.settings)},
        seed=work.seed,
        suite=f"reproduce {paper}",
        batch=work.item,
        key=work.key,
        payload=payload,
    )
    return failed(record, error) if error else record
