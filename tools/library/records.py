"""The library of frozen instances: records, a method run over them, what is better."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.benchmarks.proving import CertificateLike, read_certificate
from schedgap.benchmarks.records import Record, plain, plain_number
from schedgap.benchmarks.text import fixed, number, table
from schedgap.catalogue.registry import find_method
from schedgap.formulations.common.errors import Disagreement, InputError, SchedgapError
from schedgap.formulations.common.files import check_folder, write_text
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import better
from schedgap.interrupt import at_work
from schedgap.reading import InstanceLike, SolutionLike, checked, name_of, read_instance, read_result
from schedgap.solvers.incumbent import contradicts
from schedgap.solvers.result import Proof, SolveOptions, Termination
from schedgap.solving import solve_record
from schedgap.tools.library.collection import SHIPPED, Credit, Entry, about, entries, faults, find, with_instances
from schedgap.tools.library.improve import Judged, Offer, credit, judge, new_entry
from schedgap.tools.library.standings import Outcome, outcome_row, standings, standings_sheet

if TYPE_CHECKING:
    from schedgap.benchmarks.sweep.progress import Sink

TIME_LIMIT = 60.0
"""Seconds for each instance where nothing is said."""
SITE_LIMIT = 10.0
"""The same of the runs for a site's tables."""


@dataclass(frozen=True)
class Run:
    """A method on an instance of the library.

    Attributes
    ----------
    entry : the instance with what was known of it
    record : record of the run; None where it failed
    error : why, where it failed
    outside : the method's schedules are not those of the problem: nothing is compared
    file : its result, which ``library_submit`` takes; None without one
    method : what ran
    """

    entry: Entry
    record: Record | None
    error: str = ""
    outside: bool = False
    disagreement: bool = False
    file: Path | None = None
    method: str = ""

    @property
    def objective(self) -> float | None:
        """The checker's objective of what was found."""
        return None if self.record is None else self.record.result.objective

    @property
    def improves(self) -> bool:
        """Whether the schedule is better than the best known."""
        known, found = self.entry.known.objective, self.objective
        if self.outside or found is None:
            return False
        return known is None or better(found, known, self.entry.problem.sense)

    @property
    def ratio(self) -> tuple[float | None, str]:
        """The ratio, and what it is to: "optimum", "bound", or "" where nothing is compared."""
        return (None, "") if self.outside or self.record is None else self.entry.ratio(self.objective)

    @property
    def status(self) -> str:
        """The status of the run; ``error`` where it failed."""
        return "error" if self.record is None else str(self.record.result.status)

    @property
    def outcome(self) -> Outcome:
        """What tables of methods are made of."""
        value, to = self.ratio
        return Outcome.model_validate(
            {
                "id": self.entry.id,
                "method": self.method,
                "status": self.status,
                "objective": self.objective,
                "ratio": plain(value),
                "ratio_to": to or None,
                "seconds": None if self.record is None else self.record.result.seconds,
                "outside": self.outside,
                "frozen": self.entry.frozen,
            }
        )

    def to_dict(self) -> dict[str, Json]:
        """One object of what ``library solve --json`` prints."""
        known, told = self.entry.known, self.outcome
        return {
            **told.model_dump(exclude={"outside", "frozen"}),
            "objective": plain_number(told.objective),
            "best_known": plain_number(known.objective),
            "bound": plain_number(known.bound),
            "proof": known.proof,
            "improves": self.improves,
            "seconds": None if told.seconds is None else round(told.seconds, 6),
            "outside_model": self.outside,
            "error": self.error or None,
            "file": None if self.file is None else str(self.file),
        }


def library_records(
    problem: str | None = None,
    *,
    library: str | Path | None = None,
    malformed: Callable[[str], None] | None = None,
) -> tuple[Entry, ...]:
    """The frozen instances of the library, with the best schedule and bound known of each.

    Parameters
    ----------
    problem : only this one
    library : a folder of records of one's own, which stand before the shipped ones of the same id, and beside them
    malformed : told of each file in `library` that is no record, in one line; the others are read

    Returns
    -------
    tuple of Entry
        Each with `id`, `instance`, and `known`: objective, solution, bound, level of proof, who found them.

    Raises
    ------
    InputError
        An unknown problem, or, where nobody is told, a file in `library` that is not a record.

    Examples
    --------
    >>> record = library_records("rar-ddls")[0]
    >>> schedgap.check(record.instance, record.known.solution, record.certificate).feasible  # doctest: +SKIP
    True
    """
    found = entries(problem, library, malformed)
    return with_instances(found, malformed)


@at_work()
def library_solve(
    ids: Sequence[str] = (),
    method: str | Sequence[str] | None = None,
    *,
    problem: str | None = None,
    time_limit: float | None = TIME_LIMIT,
    seed: int = 0,
    settings: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    library: str | Path | None = None,
    progress: Sink | None = None,
) -> list[Run]:
    """Run a method, or several, over instances of the library.

    Parameters
    ----------
    ids : ids of records; all, or all of `problem`, where empty
    method : an id, or ``file.py:function`` of one's own, or several; the strongest exact one of each problem where not
        given
    time_limit : seconds for each
    seed, settings : seed and settings of the method
    out : a folder for the results, ``<problem>-<name>.json`` each, which :func:`library_submit` takes; of several
        methods ``<problem>-<name>-<number of the method>.json``
    library : see :func:`library_records`
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    list of Run
        One that fails on an instance is told with its reason. After Ctrl-C those that were done.

    Raises
    ------
    InputError
        An unknown id, problem or method.
    """
    known = entries(None if ids else problem, library)
    chosen = [find(name, known) for name in ids] or list(known)
    wrong = next((one.id for one in chosen if problem not in (None, one.problem.id)), None)
    if wrong is not None:
        raise InputError(f"library: {wrong} is not of {problem}")
    wanted = [method] if method is None or isinstance(method, str) else list(method)
    _known(chosen, [name for name in wanted if name is not None])
    if out is not None:
        check_folder(Path(out))
        Path(out).mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    for entry, (place, name) in product(chosen, enumerate(wanted, 1)):
        file = None
        if out is not None:
            number_of = f"-{place}" if len(wanted) > 1 else ""
            file = Path(out) / f"{entry.id.replace('/', '-')}{number_of}.json"
        runs.append(_solved(entry, name, time_limit, seed, settings, file, progress))
        if _interrupted(runs):
            break
    return runs


def _known(chosen: Sequence[Entry], methods: Sequence[str]) -> None:
    """A check, before anything runs, that every problem has these methods."""
    for one, name in product({entry.problem.id: entry.problem for entry in chosen}.values(), methods):
        find_method(one, name)


def _interrupted(runs: Sequence[Run]) -> bool:
    record = runs[-1].record if runs else None
    return record is not None and record.result.termination is Termination.INTERRUPTED


def _solved(
    entry: Entry,
    method: str | None,
    time_limit: float | None,
    seed: int = 0,
    settings: Mapping[str, object] | None = None,
    out: Path | None = None,
    progress: Sink | None = None,
) -> Run:
    used = find_method(entry.problem, method) if method is not None else entry.problem.default_method()
    name = method or used.id
    try:
        record = solve_record(
            entry.instance,
            method,
            SolveOptions(seed=seed),
            time_limit=time_limit,
            settings=settings,
            confirm=False,
            progress=progress,
        )
        solution, outside = record.result.solution, used.outside_model
        path = None
        if solution is not None and out is not None:
            path = write_text(out, json.dumps(record.to_dict(), indent=1, allow_nan=False) + "\n")
        if not outside and contradicts(record.result.objective, entry.known.bound, entry.problem.sense):
            judge(entry, Offer(credit("library solve"), solution))  # raises, and leaves both in a file
    except Disagreement as error:
        return Run(entry, None, str(error), disagreement=True, method=name)
    except SchedgapError as error:
        return Run(entry, None, str(error), method=name)
    return Run(entry, record, outside=outside, file=path, method=name)


@at_work()
def library_submit(
    name: str,
    solution: SolutionLike | None = None,
    certificate: CertificateLike | None = None,
    *,
    by: str,
    library: str | Path | None = None,
    instance: InstanceLike | None = None,
    license: str | None = None,
    cite: str | None = None,
) -> Judged:
    """Offer a schedule or a certificate for a record, which gets better where it is one; or a new record.

    Everything is checked: the schedule by the problem's checker, the certificate by the checker of certificates. A
    record gets better by a strictly better schedule, a strictly better bound, or the same bound with a higher level of
    proof. A bound counts only with its certificate.

    Parameters
    ----------
    name : the record's id
    solution : a schedule, or the whole object of ``solve --json``, whose method and engine are then named and whose
        objective has to be the checker's
    certificate : certificate from ``certify``
    by : who is named for what gets better
    library : the folder that the record is written to; in a source checkout the collection itself where not given
    instance : for a new record: the instance, imported from a log; `solution` is then needed
    license, cite : terms on which that log may be handed on (``CC-BY-4.0``, say), and its citation

    Returns
    -------
    Judged
        What got better and what did not; `violations` where something was refused.

    Raises
    ------
    InputError
        An unknown id, or one that is there for a new record; nothing offered; a new record without its terms; or
        nowhere to write: an installed package is not written into.
    Disagreement
        A schedule better than a proven bound; instance and schedule are in a file.
    """
    if instance is None:
        entry = find(name, entries(folder=library))
    else:
        _, parsed = read_instance(instance)
        file = Path(name_of(instance, "instance")).name
        entry = new_entry(name, parsed, file, license, cite, library)
    home = SHIPPED if library is None else Path(library)
    if library is None and not (SHIPPED.parents[2] / "pyproject.toml").is_file():
        raise InputError("library submit: --library DIR is needed: what is installed is not written into")
    if solution is None and certificate is None:
        raise InputError(f"library submit {name}: a schedule or a certificate is needed")
    check_folder(home)
    bare, whole = (None, None) if solution is None else read_result(solution, entry.problem)
    facts = {key: whole[key] for key in ("method", "engine", "seed") if key in whole} if whole is not None else {}
    if bare is not None and solution is not None:  # what cannot be read is told with its file
        checked(entry.problem, entry.instance, bare, name_of(solution, "solution"))
    text = None if certificate is None else read_certificate(certificate)
    claimed = None if whole is None else whole.get("objective")
    if isinstance(claimed, bool) or not isinstance(claimed, float | int | None):
        raise InputError(f"library submit {name}: objective: must be a number, got {claimed!r}")
    found = judge(entry, Offer(credit(by, **facts), bare, text, claimed=claimed))
    if not found.improved:
        return found
    return Judged(entry, found.write(home), found.violations, found.gains, found.lacks, found.certificate)


def library_faults(records: Sequence[Entry]) -> dict[str, list[str]]:
    """What does not hold in records, by id: schedules, objectives, bounds and certificates are checked anew."""
    found: dict[str, list[str]] = {}
    for entry in records:
        try:
            found[entry.id] = faults(entry)
        except InputError as error:  # a certificate or an instance that cannot be read
            found[entry.id] = [str(error)]
    return {name: lines for name, lines in found.items() if lines}


def records_text(records: Sequence[Entry]) -> str:
    """What ``library list`` prints for a person."""
    rows = []
    for entry in records:
        known = entry.known
        value, to = entry.ratio(known.objective)
        state = "optimal" if to == "optimum" else "open" if value is None else f"open, {fixed(value, 4)} to bound"
        who = known.found.by if known.found is not None else "-"
        bound = "the same" if to == "optimum" else number(known.bound)
        names = [name.split()[0] for name in known.accepted]
        checkers = ", ".join(["ours", *names]) if known.certificate else "-"
        cells = (number(known.objective), bound, state, known.proof or "-", checkers, who)
        rows.append([entry.id, known.kind, *cells])
    head = ["id", "kind", "best known", "bound", "state", "proof", "accepted by", "found by"]
    facts = about()
    closed = sum(entry.known.status == "optimal" for entry in records)
    certified = sum(entry.known.proof is Proof.CERTIFIED for entry in records)
    others = sum(bool(entry.known.accepted) for entry in records)
    last = (
        f"{len(records)} records, {closed} optimal, {certified} certified, {others} of them by a checker of others, too"
    )
    terms = sorted({entry.known.license for entry in records if entry.known.license is not None})
    own = f"; of imported logs {', '.join(terms)}, each with its citation" if terms else ""
    return "\n".join([table(head, rows), f"{last}; version {facts['version']}, {facts['license']}{own}"])


def records_dict(records: Sequence[Entry]) -> dict[str, Json]:
    """The object that ``library list --json`` prints; schedules are in the files."""
    return {
        **about(),
        "records": [
            {
                **entry.known.model_dump(mode="json", exclude={"solution"}),
                "ratio_to_bound": plain(entry.ratio(entry.known.objective)[0]),
                "file": str(entry.path),
            }
            for entry in records
        ],
    }


def records_bks(records: Sequence[Entry]) -> list[dict[str, Json]]:
    """Records in the fields of ScheduleOpt's ``bks.json``.

    ``lb`` and ``ub`` are bounds of the optimum:
    of a problem that maximises the schedule is the lower one.
    ``certificate`` is "yes" where what is said can be checked.
    What a record does not know, the hardware and the time, is null.
    """
    rows = []
    for entry in records:
        known, problem = entry.known, entry.problem
        bound = _side(known.bound, known.proven, checked=known.proof is Proof.CERTIFIED)
        best = _side(known.objective, known.found, checked=True)
        lower, upper = (bound, best) if problem.sense > 0 else (best, bound)
        status = "closed" if known.status == "optimal" else "open"
        rows.append({"instance": entry.id, "family": problem.id, "status": status, "lb": lower, "ub": upper})
    return rows


def _side(value: float | None, who: Credit | None, *, checked: bool) -> dict[str, Json] | None:
    if value is None or who is None:
        return None
    by = (who.by, who.method, who.engine, who.engine_version, f"schedgap {who.schedgap}")
    return {
        "value": plain_number(value),
        "date": who.date,
        "solver": " ".join(filter(None, by)),
        "hardware": None,
        "time": None,
        "certificate": "yes" if checked else "no",
    }


@at_work()
def library_site(
    out: str | Path,
    methods: Sequence[str] = (),
    *,
    problem: str | None = None,
    time_limit: float = SITE_LIMIT,
    library: str | Path | None = None,
    malformed: Callable[[str], None] | None = None,
    progress: Sink | None = None,
) -> Path:
    """Write the library as static pages: one for each instance, problem and method, and all of it as one JSON file.

    Parameters
    ----------
    out : the folder; files in it are replaced
    methods : methods that run on the instances first, for the tables of methods; the heuristics of each problem where
        empty
    problem : only its records
    time_limit : seconds for each run
    library : see :func:`library_records`
    malformed : told of each file in `library` that is no record, and of what does not hold in a record, in one line;
        no method runs on such a record, its page tells the same, and the others are written
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Path
        Of the first page. ``library.json`` beside it is described by ``library.schema.json``.

    Raises
    ------
    InputError
        An unknown problem or method, a folder that cannot be written, or, where nobody is told, a file in `library`
        that is not a record.
    """
    from schedgap.tools.library.site import Site

    check_folder(Path(out))
    records = entries(problem, library, malformed)
    wanted = [methods] if isinstance(methods, str) else methods
    _known(records, wanted)
    wrong = library_faults(records)
    if malformed is not None:
        for name, lines in wrong.items():
            malformed(f"{name}: {'; '.join(lines)}")
    runs: list[Run] = []
    for entry in (entry for entry in records if entry.id not in wrong):
        for name in wanted or [one.id for one in entry.problem.heuristics()]:
            runs.append(_solved(entry, name, time_limit, progress=progress))
            if _interrupted(runs):
                raise KeyboardInterrupt
    return Site(Path(out), [run.outcome for run in runs], wrong).write(records, progress)


def runs_text(runs: Sequence[Run]) -> str:
    """What ``library solve`` prints for a person."""
    several = len({run.method for run in runs}) > 1
    rows, notes = [], []
    for run in runs:
        told = "improves the record" if run.improves else ""
        rows.append([run.entry.id, run.method, *outcome_row(run.entry, run.outcome), told])
        if run.error:
            notes.append(f"{run.entry.id}, {run.method}: {run.error}")
    head = ["id", "method", "status", "objective", "best known", "ratio", ""]
    better_ones = sum(run.improves for run in runs)
    solved = sum(run.objective is not None for run in runs)
    last = f"{solved} of {len(runs)} solved, {better_ones} better than the best known"
    last += ": see library submit" if better_ones else ""
    found = standings([run.outcome for run in runs]) if several else []
    tables = [
        f"\n{name}: {standings_sheet([one for one in found if one.problem == name]).text()}"
        for name in dict.fromkeys(one.problem for one in found)
    ]
    return "\n".join([table(head, rows), *notes, last, *tables])


def runs_status(runs: Sequence[Run]) -> int:
    """The exit status of ``library solve``: 5 disagreement, 130 interrupted, 2 no run was possible, 4 nothing found."""
    if any(run.disagreement for run in runs):
        return 5
    if _interrupted(runs):
        return 130
    if runs and all(run.record is None for run in runs):
        return 2
    return 0 if any(run.objective is not None for run in runs) else 4
