"""The audit: a log is read, its record rebuilt and checked, the schedulers run on the same jobs, all of it scored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from schedgap.benchmarks.importers.cells import NOT_ENDED
from schedgap.benchmarks.importers.formats import TRACES
from schedgap.benchmarks.importers.kubernetes import NO_POD
from schedgap.benchmarks.importers.others import is_lsf, is_pbs, is_swf
from schedgap.benchmarks.importers.rows import Format, opened
from schedgap.benchmarks.importers.sacct import is_sacct, no_names
from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import ASSUMED, Trace, TraceJob, enough_servers, read_trace, user_table
from schedgap.benchmarks.instances import PER_SERVER
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.text import counted
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.files import check_folder, write_text
from schedgap.formulations.common.instance import MOST_GPUS
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.tools.audit.exclusive import BASE
from schedgap.tools.audit.load import load_of, steps
from schedgap.tools.audit.policies import POLICIES, SEARCHES
from schedgap.tools.audit.reached import Reached, changed_servers
from schedgap.tools.audit.reading import Reading, read_cluster
from schedgap.tools.audit.record import from_eligible, slot_of
from schedgap.tools.audit.result import Audit, Side
from schedgap.tools.audit.sides import Sides

PENDING = "never started (PENDING"
"""How the reason begins why a job that waited when the log was written does not count."""
NO_GPU = "no GPU"
_HELD_NO_GPU = (
    *(NO_GPU, NOT_ENDED, "never started", "was never", "is a step", "is of another tenant", "is outside the window"),
    *("is a record of another kind", "lasts no time", "is a ", "is no node"),
)
"""How the reasons begin why a row does not count that held no GPU, or is told of elsewhere."""
BUSIEST = 500
"""Jobs of the busiest window, where no number is given."""
OBSERVED = "observed"
MOST_SHARED = 2000
"""Jobs of an audit with sharing: each slowdown is a table of all pairs."""


def detect(path: str | Path, named: bool = False) -> Format:
    """The format of a log by how it begins: the columns of its first line, the keys of its JSON, or its records.

    Raises InputError: it is of none, or could be of several; or of a scheduler whose logs are not read.

    Parameters
    ----------
    named : the names of its columns are given
    """
    with opened(path, lenient=True) as file:
        head = file.read(1 << 16)
    form = {form.id: form for form in TRACES}
    if head.lstrip()[:1] in ("{", "["):
        for key, scheduler in (('"t_submit"', "Flux's listing"), ('"nb_res"', "Batsim's workload")):
            if key in head:
                raise InputError(f"{path}: {scheduler} is not read (formats: {', '.join(form)})")
        keys = (('"items"', "kubernetes"), ('"ClusterId"', "condor"), ('"jobs"', "slurm"))
        return form[next((name for key, name in keys if key in head), "philly")]
    first = next((line for line in head.splitlines() if line.strip()), "")
    if {"workload_name", "submission_time"} <= {cell.strip() for cell in first.split(",")}:
        raise InputError(f"{path}: Batsim's jobs are not read (formats: {', '.join(form)})")
    by_record = (("pbs", is_pbs(first)), ("lsf", is_lsf(first)), ("swf", is_swf(first)))
    for name, fits in (*by_record, ("slurm", named or is_sacct(first) or no_names(first))):
        if fits:
            return form[name]
    if first.startswith("NodeName="):
        raise InputError(f"{path}: lists nodes (scontrol show nodes), no jobs: give the jobs' log first, this second")
    return _by_columns(path, first)


OTHER_NAMES = {"fcfs": "fifo", "backfill": "easy", "srtf": "sjf", "spt": "sjf", "lpt": "longest"}
"""What a scheduler here is called elsewhere."""


def _by_columns(path: str | Path, first: str) -> Format:
    """The format of a table whose columns these are."""
    fitting: list[tuple[int, Format]] = []
    for form in TRACES:
        columns = {column for _, *names in form.fields.values() for column in names}
        separator = form.separator or max(",;\t|", key=first.count)
        plain = not form.names and not form.objects and form.rows is None
        if plain and columns <= {cell.strip() for cell in first.split(separator)}:
            fitting.append((len(columns), form))
    if not fitting:
        ids = ", ".join(form.id for form in TRACES)
        raise InputError(f"{path}: line 1: of no known format; name it with --format ({ids}, or csv and its columns)")
    most = max(count for count, _ in fitting)
    best = [form for count, form in fitting if count == most]
    if len(best) > 1:  # the same columns in other units
        ids = " or ".join(form.id for form in best)
        raise InputError(f"{path}: line 1: could be of {ids}; name it with --format")
    return best[0]


def format_of(name: str | None, path: str | Path, columns: Mapping[str, object], names: Sequence[str] = ()) -> Format:
    """The format of this name, that of the file where there is none; ``csv`` with the columns that are named."""
    if name is None and not columns:
        return detect(path, bool(names))
    if name in (None, "csv"):
        named = {key: str(value) for key, value in columns.items()}
        form = user_table(named, named.pop("unit", "s"), "--set", path)
        if "arrival" not in named:
            raise InputError("--set must name the column arrival=...: an audit needs when jobs were submitted")
        return form
    if columns:
        raise InputError(f"--set: names columns of a table without a format; {name} knows its own")
    for form in TRACES:
        if form.id == name:
            return form
    ids = [*(form.id for form in TRACES), "csv"]
    raise InputError(f"--format: no format {name!r} (formats: {', '.join(ids)}){near(str(name), ids)}")


def audit(
    log: str | Path,
    servers: str | Path | None = None,
    *,
    form: str | None = None,
    columns: Mapping[str, object] | None = None,
    names: Sequence[str] = (),
    problem: str | None = None,
    scheduler: str | None = None,
    methods: Sequence[str] | None = None,
    window: str | None = None,
    time_scale: float = 1.0,
    cluster: Sequence[str] = (),
    sharing: Sequence[float] = (),
    tenant: str | None = None,
    time_limit: float = 20.0,
    memory_limit: float = 4.0,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
) -> Audit:
    """How far is the schedule that a cluster really ran from the best, and what would schedulers have made of it?

    Parameters
    ----------
    log : a log of any format that ``schedgap import`` reads
    servers : a table or listing of its servers; where not given, as many GPUs as were busy at once
    form : the format; told by how the log begins where not given
    columns : columns of a table without a format: ``{"gpus": "num_gpu", "start": ..., "end": ...}``
    names : names of the columns, for output of sacct without a line of names
    problem : whose schedules are made; where not given, that of the record: jobs with GPUs of their own
    scheduler : one of your own, ``file.py:function``; it runs in a process of its own, as in ``evaluate``
    methods : only these schedulers; all of the problem where not given
    window : ``500``, the first 500 jobs; ``busiest``, the 500 that waited most; ``busiest:N``
    time_scale : factor on all times
    cluster : ``+8``, ``-8``, ``+8:a100``: so many GPUs more or fewer; ``observed``: as many as were busy at once
    sharing : what if two jobs might share a GPU, each by so much slower (``1`` is free): a side for each number
    tenant : only jobs of this queue, partition or virtual cluster
    time_limit : seconds for each scheduler; one that is cut has no figure
    memory_limit : GB for each
    seed : seed of all randomness
    out : folder for ``audit.json`` and ``audit.html``
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Audit
        ``verdict`` is one line, ``to_text()`` all tables, ``to_dict()`` a JSON form.

    Raises
    ------
    InputError
        A log that cannot be read, an unknown option, a scheduler that cannot be imported.

    Examples
    --------
    >>> print(audit("sacct.txt", "nodes.txt").verdict)  # doctest: +SKIP
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder)
    wrong = next((value for value in sharing if not 1 <= value <= 100), None)
    if wrong is not None or (sharing and (problem or BASE) != BASE):
        raise InputError(f"--sharing: factors from 1 to 100, of {BASE} alone" + f", got {wrong}" * (wrong is not None))
    bar = Progress(0, progress, "audit")
    with bar.at_work(f"reading {Path(log).name}"):
        files = [log] if servers is None else [log, servers]
        trace = read_trace(format_of(form, log, columns or {}, names), files, time_scale=time_scale, columns=names)
    left_out, notes = dict(trace.notes.left_out), list[str]()
    left_out.pop(NO_POD, None)  # told as capacity
    jobs, recorded = _recorded(trace.jobs, left_out)
    jobs, late, unknown = from_eligible(jobs)
    jobs = _chosen(jobs, tenant, window, left_out, notes)
    machines = _cluster(trace, jobs, recorded, cluster, notes)
    for what in cluster:
        if what != OBSERVED:
            _changed(machines, what)  # refused before anything runs
    capacity = sum(server.gpus for server in machines)
    too_large = [job for job in jobs if job.gpus > capacity]
    if too_large and not recorded:
        left_out[f"needs more than the {counted(capacity, 'GPU')} of the cluster"] = len(too_large)
        jobs = [job for job in jobs if job.gpus <= capacity]
    if capacity > MOST_GPUS:
        raise InputError(f"{log}: {capacity:,} GPUs at once, at most {MOST_GPUS:,}")
    if not jobs:
        raise InputError(f"{log}: no jobs are left to audit" + "".join(f"; {why}: {n}" for why, n in left_out.items()))
    if len(jobs) > MOST_SHARED and max(sharing, default=1) > 1:
        raise InputError(
            f"--sharing: {len(jobs):,} jobs, at most {MOST_SHARED:,} can slow each other: --window {MOST_SHARED}"
        )
    slot = slot_of(jobs, time_scale)
    chosen = find_problem(problem or BASE, "--problem")
    reading = read_cluster(jobs, machines, slot, recorded, trace.listed and OBSERVED not in cluster)
    load = load_of(jobs, reading.servers, recorded, reading.held)
    maker = Sides(chosen, trace, jobs, recorded, time_limit, memory_limit, seed, bar, slot)
    title = "as listed" if trace.listed else "as assumed"
    if chosen.id == BASE:
        sides = _kept_sides(reading, maker, methods, scheduler, title, cluster, sharing)
        notes += _told(reading)
        if recorded and (silent := sum(job.id in unknown for job in jobs)):
            notes.append(
                f"the log does not say when {counted(silent, 'job')} that waited became eligible (sacct: the column "
                "Eligible): none is taken to have waited for a start time, another job or a hold"
            )
        if {"processors", "memory"} & set(reading.kept) and left_out.get(NO_GPU):
            notes.append(
                f"{counted(left_out[NO_GPU], 'job')} without GPUs may have held processors and memory of these nodes"
            )
        clashes = reading.clashes
    else:
        changed = [(what, _changed(machines, what)) for what in cluster if what != OBSERVED]
        sides = [maker.side(machines, title, methods, scheduler)]
        sides += [
            maker.side(others, f"what if: {what} GPUs", methods, scheduler, what_if=True) for what, others in changed
        ]
        clashes = maker.clashes
    bar.finish()
    assumed = not trace.listed or OBSERVED in cluster
    work = float(np.mean([job.duration or 0.0 for job in jobs]))
    result = Audit(
        trace.name,
        chosen.id,
        f"{chosen.objective_name}, {chosen.unit}",
        chosen.sense == MINIMISE,
        left_out,
        load,
        tuple(sides),
        clashes,
        (*notes, *maker.notes, *(t for t in trace.notes.texts if "left out: " not in t and not t.startswith(ASSUMED))),
        work,
        slot,
        timed=chosen.id == BASE,
        chosen=tenant is not None or window is not None,
        running=left_out.get(NOT_ENDED, 0) if recorded else 0,
        pending=sum(count for why, count in left_out.items() if why.startswith(PENDING)) if recorded else 0,
        jobs=tuple(jobs),
        gangs=len(reading.gangs) if chosen.id == BASE else 0,
        out=sum(server.out for server in machines),
        late=sum(job.id in late for job in jobs),
        unread=sum(count for why, count in left_out.items() if not why.startswith(_HELD_NO_GPU)) if recorded else 0,
        condition=_condition(reading, assumed) if chosen.id == BASE else "",
        limit_condition=_limit_condition(reading, assumed) if chosen.id == BASE else "",
        same_everywhere=reading.same_everywhere and chosen.id == BASE,
    )
    if folder is not None:
        from schedgap.tools.audit.page import audit_page

        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "audit.json", json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n")
        write_text(folder / "audit.html", audit_page(result))
        for name, limit in zip(("mean", "weighted"), result.sides[0].limits, strict=False):
            if limit.certificate is not None:
                write_text(folder / f"limit-{name}.json", json.dumps(limit.instance) + "\n")
                write_text(folder / f"limit-{name}.cert", json.dumps(limit.certificate) + "\n")
    return result


def _recorded(jobs: Sequence[TraceJob], left_out: dict[str, int]) -> tuple[list[TraceJob], bool]:
    """The jobs that count: those that started and ended where any has a record, else those that last a known time."""
    with_record = [job for job in jobs if job.start is not None and job.end is not None]
    if with_record:
        if len(with_record) < len(jobs):
            left_out["has no single start and end"] = len(jobs) - len(with_record)
        return with_record, True
    timed = [job for job in jobs if job.duration is not None]
    if len(timed) < len(jobs):
        left_out["has no duration"] = len(jobs) - len(timed)
    return timed, False


def _chosen(
    jobs: list[TraceJob], tenant: str | None, window: str | None, left_out: dict[str, int], notes: list[str]
) -> list[TraceJob]:
    """The jobs of the tenant and in the window, their times from the first submission on."""
    jobs = _window(_of_tenant(jobs, tenant, left_out), window, left_out)
    if tenant is not None or window is not None:
        whose = "of other tenants" if window is None else "outside the window"
        notes.append(f"jobs {whose} hold no GPU: waiting for them counts as avoidable")
    zero = min((job.arrival for job in jobs), default=0.0)
    if zero > 0:
        notes.append(f"times count from the first of these submissions, {zero:,.0f} s after that of the log")
    return [job.moved(zero, 1.0) for job in jobs]


def _of_tenant(jobs: list[TraceJob], tenant: str | None, left_out: dict[str, int]) -> list[TraceJob]:
    if tenant is None:
        return jobs
    names = {job.tenant for job in jobs if job.tenant}
    if tenant not in names:
        listed = ", ".join(sorted(names)[:20]) or "the log has none"
        raise InputError(f"--tenant: there is no tenant {tenant!r} (tenants: {listed}){near(tenant, names)}")
    left_out["is of another tenant"] = sum(job.tenant != tenant for job in jobs)
    return [job for job in jobs if job.tenant == tenant]


def _window(jobs: list[TraceJob], window: str | None, left_out: dict[str, int]) -> list[TraceJob]:
    """The first jobs by arrival, or as many one after another as have waited (or asked) for most GPU time.

    Raises InputError: neither a number, nor ``busiest``, nor ``busiest:N``.
    """
    if window is None:
        return jobs
    found = re.fullmatch(r"(busiest)?:?([1-9][0-9]{0,8})?", window)
    if found is None or not window:
        raise InputError(f"--window: must be a number of jobs, busiest, or busiest:N, got {window!r}")
    size = min(len(jobs), int(found[2] or BUSIEST))
    ordered = sorted(jobs, key=lambda job: (job.arrival, job.line))
    first = 0
    if found[1] and len(jobs) > size:
        area = [
            job.gpus * ((job.start - job.arrival) if job.start is not None else job.duration or 0.0) for job in ordered
        ]
        sums = np.convolve(area, np.ones(size), "valid")
        first = int(sums.argmax())
    if len(jobs) > size:
        left_out["is outside the window"] = len(jobs) - size
    return ordered[first : first + size]


def _cluster(
    trace: Trace, jobs: Sequence[TraceJob], recorded: bool, asked: Sequence[str], notes: list[str]
) -> list[TraceServer]:
    """The servers: of the log or its table, or as many GPUs as were busy at once on each where nothing lists them."""
    if trace.listed and OBSERVED not in asked:
        notes.append(
            "the cluster is the one that is listed all the time: nodes that came, went or failed are not modelled"
        )
        return list(trace.servers)
    if not recorded:
        if OBSERVED in asked:
            raise InputError("--servers observed: the log does not say when jobs started")
        number = enough_servers(jobs, PER_SERVER)
        notes.append(
            f"{ASSUMED}: {counted(number, 'server')} of {PER_SERVER} GPUs assumed, as many as these jobs keep busy"
        )
        return [TraceServer(f"s{i}", PER_SERVER) for i in range(number)]
    notes.append(
        "the cluster is as many GPUs as were busy at once: " + ("asked for" if trace.listed else "nothing lists it")
    )
    begin, end = (np.array([getattr(job, name) for job in jobs], dtype=float) for name in ("start", "end"))
    peak = steps(begin, end, np.array([float(job.gpus) for job in jobs])).peak
    return [TraceServer("cluster", int(peak))]


def _changed(servers: Sequence[TraceServer], what: str) -> list[TraceServer]:
    """The cluster with so many GPUs more or fewer, perhaps of one type.

    Raises InputError: not +N or -N or +N:TYPE, no such type, or no GPU is left.
    """
    asked = re.fullmatch(r"([+-])([1-9][0-9]{0,6})(?::(.+))?", what)
    if asked is None:
        raise InputError(f"--servers: must be +N or -N GPUs, +N:TYPE, or observed, got {what!r}")
    kinds = {server.kind for server in servers if server.kind}
    if asked[3] and asked[3] not in kinds:
        listed = ", ".join(sorted(kinds)) or "the list has none"
        raise InputError(f"--servers: there is no type {asked[3]!r} (types: {listed}){near(asked[3], kinds)}")
    made = changed_servers(servers, asked[1], int(asked[2]), asked[3])
    if not made:
        raise InputError(f"--servers: {what} leaves no GPU of {sum(server.gpus for server in servers)}")
    return made


def _kept_sides(
    reading: Reading,
    maker: Sides,
    methods: Sequence[str] | None,
    scheduler: str | None,
    title: str,
    cluster: Sequence[str],
    sharing: Sequence[float],
) -> list[Side]:
    """The cluster as it is and as it might be, with schedules that keep it; then what sharing would bring without."""
    every = (*POLICIES, *SEARCHES)
    mine = [name for name in every if methods is None or name in methods]
    others = [name for name in methods or () if name not in every]
    shipped = {method.id for method in maker.methods(None)}
    for name in others:
        if name not in shipped:
            ids = ", ".join(dict.fromkeys((*every, *sorted(shipped))))
            raise InputError(
                f"--methods: there is no scheduler {name!r} here (schedulers: {ids})"
                + near(OTHER_NAMES.get(name, name), shipped)
            )
    reached = Reached(reading, maker.trace.name, maker.time_limit, maker.seed, maker.bar)
    users = []
    if others or scheduler is not None:
        made = maker.side(reading.servers, title, others, scheduler, what_if=True)
        users = [reached.kept(row, row.solution) if row.solution and row.times else row for row in made.rows]
    sides = [reached.side(title, mine, maker.recorded)]
    sides[0] = replace(sides[0], rows=(*sides[0].rows, *users))
    for what in cluster:
        if what != OBSERVED:
            more = reading.changed(_changed(reading.servers, what))
            sides.append(reached.side(f"what if: {_gpus_more(reading, more, what)}", mine, False, more))
    if sharing:
        shared = [name for name in methods or sorted(shipped) if name in shipped]
        chosen = shared or None
        alone = maker.side(reading.servers, "if GPUs were all that counted", chosen, None, what_if=True)
        sides.append(replace(alone, relaxed=True))
        for value in sharing:
            what = f"what if: two on a GPU, each {value:g} times slower, if GPUs were all that counted"
            side = maker.side(reading.servers, what, chosen, None, what_if=True, slowdown=value)
            sides.append(replace(side, relaxed=True))
    return sides


def _gpus_more(reading: Reading, changed: Reading, what: str) -> str:
    """``+8 a100``: the type of what comes or goes."""
    before, after = (
        {kind: sum(s.gpus for s in one.servers if s.kind == kind) for kind in {s.kind for s in reading.servers}}
        for one in (reading, changed)
    )
    differ = [
        f"{after[kind] - before[kind]:+d} {kind or 'GPU' + 's' * (abs(after[kind] - before[kind]) != 1)}"
        for kind in sorted(before, key=str)
        if after[kind] != before[kind]
    ]
    return ", ".join(differ) or what


def _of_size(reading: Reading, assumed: bool) -> list[str]:
    """What must be assumed of the number of GPUs: of a cluster that nothing lists, and of clusters in one log."""
    words = ["the cluster had no more GPUs than were busy at once"] if assumed else []
    clusters = len({job.cluster for job in reading.jobs})
    return words + ([f"its {clusters} clusters were one"] if clusters > 1 else [])


def _condition(reading: Reading, assumed: bool) -> str:
    """What must be assumed of the cluster."""
    return " and ".join([reading.condition, *_of_size(reading, assumed)])


def _limit_condition(reading: Reading, assumed: bool) -> str:
    """What must be assumed of the cluster for the limit alone, which nodes, processors and memory cannot make false."""
    words = _of_size(reading, assumed)
    if reading.same_everywhere:
        words.append("jobs last as long on every type")
    if "partitions" in reading.kept:
        words.append("jobs may use no partitions but theirs")
    return "if " + " and ".join(words) if words else ""


def _told(reading: Reading) -> list[str]:
    """What schedules keep, what they do not and why, and what is taken for granted."""
    kept = ", ".join(reading.kept)
    lines = [f"schedules keep {kept}: a job stays in the shape in which it lay" if "nodes" in reading.kept else ""]
    if kept and not lines[0]:
        lines = [f"schedules keep {kept}"]
    lines += [f"{word} are not kept: {why}" for word, why in reading.lost.items()]
    if any(server.out for server in reading.servers):
        lines.append("of nodes out of service in the list, schedules use those on which jobs ran, the limit all")
    lines.append("the limit lets a job use its GPUs on any nodes of the types that it may use, in any split")
    lines.append("durations are those of the log, and known to schedulers that look at them; limits are not used")
    if reading.same_everywhere:
        lines.append("a job that named no type may use any, and takes as long on each")
    return [text for text in lines if text]
