"""Runs suites: plan, workers, store, tables, report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from schedgap.benchmarks.ledger.statements import statements
from schedgap.benchmarks.records import Record, failed
from schedgap.benchmarks.report.analysis import Analysis, analyse, instance_path
from schedgap.benchmarks.report.faults import write_faulty
from schedgap.benchmarks.report.run_page import with_statements
from schedgap.benchmarks.report.run_text import TABLE, answer_text, run_text
from schedgap.benchmarks.suites.plan import Item, check_names, check_numbers, plan
from schedgap.benchmarks.suites.worker import execute
from schedgap.benchmarks.sweep.cluster import check_cluster, own_folder
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import FILE, Store, StoreError, fresh_folder
from schedgap.benchmarks.sweep.sweep import run_store, sweep
from schedgap.benchmarks.sweep.versions import environment, relevant_versions
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.solvers.result import Deadline

DISAGREEMENTS = "disagreements"


@dataclass(frozen=True)
class Run:
    """A run of suites, finished or interrupted."""

    folder: Path  # holds ``run.sqlite``, ``instances/``, ``table.txt`` and ``report.html``
    analysis: Analysis  # what came out
    text: str  # its tables, with times
    report: Path | None  # the report's path; None after an interruption
    interrupted: bool  # Ctrl-C ended it; every finished row is kept
    # ran, reused: items that ran now, and that had finished before
    ran: int
    reused: int

    def answer(self, width: int = 120) -> str:
        """One small table, the answer for each problem, and what went wrong; lines of at most so many characters."""
        return answer_text(self.analysis, width)

    @property
    def exit_status(self) -> int:
        """130 interrupted, 5 there are disagreements or items that ended in an error, else 0."""
        return 130 if self.interrupted else 5 if self.analysis.disagreements or self.analysis.failures else 0


def bench(
    suites: Sequence[str] = (),
    *,
    problems: Sequence[str | Problem] | None = None,
    methods: Sequence[str] | None = None,
    out: str | Path = "results",
    workers: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    scale: float | None = None,
    resume: bool = False,
    certify: bool | None = None,
    cluster: str | None = None,
    progress: Sink | None = None,
) -> Run:
    """Run suites into a result store and write their report, as ``schedgap bench`` does.

    Parameters
    ----------
    suites : names, or files of instances (``mine.json``); the quick suite where empty, with `resume` those of the run
    problems : only these, by id or as objects; all where not given
    methods : heuristics that run beside the exact methods, instead of all: ids, or ``file.py:function`` of your own
    out : the run's directory; a new one beside it where it holds a run already
    workers : processes, each solve on one thread; one per core where not given
    time_limit : seconds for each solve; the suites' own repeatable limits where not given
    seed, scale : seed of the instances, and factor on their number; 0 and 1 where not given
    resume : go on with the run in `out`: what had finished is kept, what had failed is tried again
    certify : certify what exact methods prove, where a small certificate is found
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Run
        Its tables as text, the path of the report, and what came out.

    Raises
    ------
    InputError
        An unknown suite, a bad number, a folder that cannot be written; `resume` where the run has another setting.
    """
    cores = environment()["cores"]
    workers = cores if workers is None else workers
    if not 1 <= workers <= 1024:
        raise InputError(f"workers: must be from 1 to 1024, got {workers}")
    Deadline.after(time_limit)
    chosen = None if problems is None else [find_problem(problem) for problem in problems]
    check_names(suites, chosen)
    check_numbers(seed, scale)
    check_cluster(cluster)
    bar = Progress(0, progress, "bench")
    home = Path(out)
    with run_store(home, resume) as (folder, store, goes_on):
        asked = _asked(store if goes_on else None, folder, suites, chosen, seed, scale, time_limit, methods, certify)
        if chosen is None and asked["problems"] is not None:
            chosen = [find_problem(problem) for problem in asked["problems"]]
        items = plan(
            asked["suites"],
            seed=asked["seed"],
            scale=asked["scale"],
            time_limit=asked["time_limit"],
            problems=chosen,
            methods=asked["methods"],
            told=bar.before,
            certify=bool(asked["certify"]),
        )
        sessions = store.meta().get("sessions", [])
        # The record is there before the work: a run that is killed shows what it was and how far it came.
        session: dict[str, Any] = {**environment(), "workers": workers, "began": time.time()}
        store.set_meta(**asked, planned=len(items), sessions=[*sessions, session])
        dropped = store.keep({item.record.key for item in items})
        finished = store.finished()
        todo = [item for item in items if item.record.key not in finished]
        _say_start(bar, folder, home, resume, goes_on, len(items), len(todo), dropped)
        _write_instances(folder, items)
        bar.total = len(todo)
        if todo:
            where = f"{min(workers, len(todo))} workers" if cluster is None else f"the cluster at {cluster}"
            bar.say(f"bench runs {len(todo)} items on {where}, into {folder}")
        if todo:
            _forget_old_pages(folder)
        interrupted = _work(store, todo, workers, folder, bar, cluster)
        if "quick" in asked["suites"] and asked["methods"] is None and not interrupted:
            there = [problem for problem in chosen or all_problems().values() if _takes_part(problem, items)]
            interrupted = _state(store, there, int(asked["seed"]), bar, workers, cluster)
        session |= {"items": bar.done, "ended": time.time(), "interrupted": interrupted}
        store.set_meta(sessions=[*sessions, session])
        analysis = analyse(store.rows(), folder, chosen, len(items))
        meta = store.meta()
        analysis = with_statements(analysis, folder / FILE, meta)
        write_faulty(analysis, folder)
    write_text(folder / TABLE, run_text(analysis, times=False))
    report = None
    if not interrupted:
        from schedgap.benchmarks.report.run_page import write_report

        bar.say("bench writes the report")
        with bar.at_work("the report"):
            report = write_report(folder, known=(analysis, meta))
        bar.finish()
    return Run(folder, analysis, run_text(analysis), report, interrupted, bar.done, len(items) - len(todo))


def _asked(
    store: Store | None,
    folder: Path,
    names: Sequence[str],
    problems: Sequence[Problem] | None,
    seed: int | None,
    scale: float | None,
    time_limit: float | None,
    methods: Sequence[str] | None,
    certify: bool | None,
) -> dict[str, Any]:
    """Suites, seed, scale and limit of the run: as given, as stored, or the defaults."""
    given = {
        "suites": list(dict.fromkeys(names)) if names else None,
        "problems": None if problems is None else [problem.id for problem in problems],
        "seed": seed,
        "scale": scale,
        "time_limit": time_limit,
        "methods": None if methods is None else list(methods),
        "certify": certify,
    }
    defaults: dict[str, Any] = {"suites": ["quick"], "problems": None, "seed": 0, "scale": 1.0}
    defaults |= {"time_limit": None, "methods": None, "certify": False}
    stored = store.meta() if store is not None else {}
    if "suites" not in stored:
        return {name: defaults[name] if value is None else value for name, value in given.items()}
    for name, value in given.items():
        known = stored.get(name)
        same = set(value) == set(known or ()) if isinstance(value, list) else value == known
        if value is not None and not same:
            raise InputError(f"--resume: the run in {folder} has {name} {known}, not {value}")
    return {name: stored.get(name) for name in defaults}


def _forget_old_pages(folder: Path) -> None:
    """Tables and report of a state that the work ahead changes must not outlive it."""
    for name in (TABLE, "report.html"):
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{folder / name}: {error.strerror or error}") from error


def _say_start(
    bar: Progress, folder: Path, out: Path, resume: bool, goes_on: bool, total: int, todo: int, dropped: int
) -> None:
    if goes_on:
        bar.say(f"bench goes on with {folder}: {total - todo} of {total} items had finished")
        newer = fresh_folder(out)
        if newer != out.with_name(f"{out.name}-2"):
            bar.say("bench: there are newer runs beside it; --out names the one to go on with")
    elif resume:
        bar.say(f"bench: no run in {folder} to go on with; it starts there")
    elif folder != out:
        bar.say(f"bench: {out} holds a run already; this one goes to {folder}")
    if dropped:
        bar.say(f"bench: {dropped} rows of other versions of the code are dropped and run again")


def _work(store: Store, todo: Sequence[Item], workers: int, folder: Path, bar: Progress, cluster: str | None) -> bool:
    """Run the items and store their rows; whether Ctrl-C ended it."""

    def done(item: Item, record: Record) -> None:
        store.put(replace(record, finished=time.time()))
        bar.step(item.label)
        if record.error:
            bar.say(f"bench: {item.label}: {record.error.splitlines()[0]}")

    def died(item: Item, reason: str, seconds: float) -> None:
        done(item, replace(failed(item.record, reason), seconds=seconds))

    def allowed(item: Item) -> float | None:
        limit = item.record.limits["time"]
        return None if limit is None else 2 * limit + 60

    run = partial(execute, disagreements=own_folder(folder, cluster) / DISAGREEMENTS)
    pieces = _spread(todo)
    try:
        sweep(pieces, run, done, died, label=_label, bar=bar, workers=workers, allowed=allowed, cluster=cluster)
    except KeyboardInterrupt:
        return True
    return False


def _takes_part(problem: Problem, items: Iterable[Item]) -> bool:
    return any(item.problem is problem for item in items)


def _state(
    store: Store, problems: Sequence[Problem], seed: int, bar: Progress, workers: int, cluster: str | None
) -> bool:
    """Try what the papers prove about these problems and store it; whether Ctrl-C ended it."""
    key = {"problems": [problem.id for problem in problems], "versions": relevant_versions(), "seed": seed}
    if store.meta().get("stated") == key:
        return False
    bar.say("bench tries what the papers prove")
    try:
        rows = statements(problems, seed, bar, workers, cluster)
    except KeyboardInterrupt:
        return True
    # where some were not tried, --resume tries again
    whole = not any(row.missing for row in rows)
    done = key if whole else None
    store.set_meta(stated=done, statements=[row.to_dict() for row in rows])
    return False


def _label(item: Item) -> str:
    return item.label


def _spread(items: Iterable[Item]) -> list[Item]:
    """The items of all problems side by side, so that workers begin with different problems.

    On a new machine they then do not compile the same code at once: what one has compiled the other loads.
    """
    of_problem: dict[str, list[Item]] = {}
    for item in items:
        of_problem.setdefault(item.problem.id, []).append(item)
    placed = [(k / len(own), item) for own in of_problem.values() for k, item in enumerate(own)]
    return [item for _, item in sorted(placed, key=itemgetter(0))]


def _write_instances(folder: Path, items: Iterable[Item]) -> None:
    """Every instance of the plan as a file that ``solve`` and ``compare`` read."""
    seen: set[str] = set()
    try:
        (folder / "instances").mkdir(exist_ok=True)
        for item in items:
            digest = item.record.instance_hash
            if digest in seen:
                continue
            seen.add(digest)
            path = instance_path(folder, digest)
            if not path.is_file():
                write_text(path, item.instance.to_json())
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}") from error
