"""``sacct`` as people write it: any delimiter, other choices of columns, broken lines, no line of names."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from schedgap.benchmarks.importers.cells import LeftOut, duration, host_names, moment
from schedgap.benchmarks.importers.rows import short_lines
from schedgap.formulations.common.errors import InputError

CELLS = (
    *("JobID", "AllocTRES", "State", "Start", "Submit", "End", "Eligible", "NodeList", "Timelimit", "Partition"),
    *("User", "ReqTRES", "Cluster"),
)
"""Columns that are read, whatever a log calls them."""
COMMAND = (
    "sacct -a -X -P -D --format=JobID,Submit,Start,End,State,ReqTRES,AllocTRES,NodeList,Timelimit,Partition,User,"
    "Eligible"
)
_NEEDED = (
    ("ids", ("JobID", "JobIDRaw")),
    ("submissions", ("Submit",)),
    ("starts", ("Start",)),
    ("ends", ("End", "Elapsed", "ElapsedRaw")),
    ("GPUs", ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")),
)
_FREE = ("JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine", "WorkDir", "Extra", "Container")
"""Columns in which people write what they like, delimiters and ends of lines included."""
_BEGINS = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)([^A-Za-z0-9]+)([A-Za-z][A-Za-z0-9]*)")
_MOST_JOINED = 50
"""Lines that one row may have."""
_GRES = re.compile(r"(?:^|,)(?:gres:)?gpu(?::([^:,()]*[^:,()\d][^:,()]*))?(?::(\d+))?(?:\([^)]*\))?(?=,|$)")
_STILL = ("RUNNING", "PENDING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED")


def is_sacct(first: str) -> bool:
    """Whether a line is names of columns as ``sacct`` has them."""
    return bool({"JobID", "JobIDRaw"} & set(re.findall(r"[A-Za-z]+", first)))


def no_names(first: str) -> bool:
    """Whether a line looks like a row of ``sacct`` that no line of names stands above."""
    return bool(re.match(r"[0-9]+(?:_[0-9]+)?(?:[.+][a-z0-9]+)?\W", first)) and bool(
        re.search(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T", first)
    )


def sacct_rows(
    path: str | Path, file: IO[str], columns: Sequence[str] = ()
) -> Iterator[tuple[int, Sequence[str], Sequence[str]]]:
    """Line, names and cells of every row: the columns of :data:`CELLS`, then the others under their own names.

    Raises InputError: fixed width, no line of names, or a column that is needed and in none of its forms there.
    """
    lines = enumerate(short_lines(path, file), 1)
    number, first = next(((n, text) for n, text in lines if text.strip()), (1, ""))
    if not first:
        return
    pending: list[tuple[int, str]] = []
    if columns:
        names, separator = [name.strip() for name in columns], _separator(first, len(columns))
        pending.append((number, first))
    else:
        if no_names(first):
            raise InputError(
                f"{path}: line {number}: no line of names: leave out -n, or name them: audit --columns JobID,Submit,..."
            )
        begin = _BEGINS.match(first)
        separator = "|" if begin is None else begin[2]
        if not separator.strip() and "\t" not in separator:
            raise InputError(f"{path}: line {number}: of fixed width, which cuts cells: write it with -P: {COMMAND}")
        names = _cells(first, separator)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: line {number}: the column {twice!r} is there twice")
    read = _view(path, number, names)
    further = [k for k, name in enumerate(names) if name not in CELLS]
    shown = (*CELLS, *(names[k] for k in further))
    while True:
        number, text = pending.pop(0) if pending else next(lines, (0, ""))
        if not number:
            return
        if not text.strip():
            continue
        cells = _cells(text, separator)
        joined = 1
        while len(cells) < len(names) and joined < _MOST_JOINED:
            following = pending.pop(0) if pending else next(lines, (0, ""))
            if not following[0] or _is_row(following[1], separator):
                pending = [following] * bool(following[0])
                break
            text = f"{text.rstrip(chr(10) + chr(13))} {following[1]}"
            cells = _cells(text, separator)
            joined += 1
        cells = _without_surplus(cells, names)
        if len(cells) != len(names):
            yield number, names, cells
        else:
            yield number, shown, (*read(cells), *(cells[k] for k in further))


def _cells(text: str, separator: str) -> list[str]:
    """The cells of a line; ``-p`` ends every line with the delimiter."""
    plain = text.rstrip("\r\n")
    if separator in ",;" and '"' in plain:
        return [cell.strip() for cell in next(csv.reader([plain], delimiter=separator))]
    cells = [cell.strip() for cell in plain.split(separator)]
    return cells[:-1] if len(cells) > 1 and not cells[-1] and plain.endswith(separator) and separator == "|" else cells


def _separator(text: str, count: int) -> str:
    """The delimiter that makes so many cells of a line."""
    tries = ("|", "\t", ",", ";", "|#", "^", "~", "#")
    return next((one for one in tries if len(_cells(text, one)) == count), "|")


def _is_row(text: str, separator: str) -> bool:
    """Whether a line begins with the id of a job, as no line of a broken comment should."""
    first, further, _ = text.partition(separator)
    return bool(further) and bool(re.match(r"\s*[0-9]{1,10}(?:[_.+\[]\S{0,200})?$", first))


def _without_surplus(cells: list[str], names: Sequence[str]) -> list[str]:
    """Cells that stand for one in which the delimiter was written, joined again: where the times then are times."""
    surplus = len(cells) - len(names)
    times = [names.index(name) for name in ("Submit", "Start") if name in names]
    for name in _FREE if surplus > 0 else ():
        if name not in names:
            continue
        at = names.index(name)
        joined = [*cells[:at], " ".join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]
        if all(re.match(r"[0-9]{4}-|[0-9]+$|Unknown|None|$", joined[k]) for k in times):
            return joined
    return cells


def _view(path: str | Path, number: int, names: Sequence[str]) -> Callable[[Sequence[str]], list[str]]:
    """What makes cells of :data:`CELLS` of a row with these names.

    Raises InputError: names what is missing, and the command that gives it.
    """
    at = {name: k for k, name in enumerate(names)}
    for what, forms in _NEEDED:
        if not any(name in at for name in forms):
            shown = ", ".join(names)
            raise InputError(
                f"{path}: line {number}: no column with {what} ({' or '.join(forms)}; columns: "
                f"{shown[:120] + '...' * (len(shown) > 120)}): {COMMAND}"
            )

    def cell(cells: Sequence[str], *forms: str) -> str:
        return next((cells[at[name]] for name in forms if name in at and cells[at[name]].strip()), "")

    def read(cells: Sequence[str]) -> list[str]:
        state, start = cell(cells, "State"), cell(cells, "Start")
        nodes = cell(cells, "NodeList")
        allocated, requested = cell(cells, "AllocTRES"), cell(cells, "ReqTRES")
        if "gres/gpu" not in allocated and (old := _gres_as_tres(cell(cells, "AllocGRES", "ReqGRES"), nodes)):
            allocated = ",".join(filter(None, (allocated, old)))
        if "AllocTRES" not in at and not allocated:
            allocated = requested
        end = cell(cells, "End")
        if "End" not in at:
            end = _ended(state, start, cell(cells, "ElapsedRaw", "Elapsed"))
        identity, cluster = cell(cells, "JobID", "JobIDRaw"), cell(cells, "Cluster")
        rest = (cell(cells, name) for name in ("Eligible", "NodeList", "Timelimit", "Partition", "User"))
        return [identity, allocated, state, start, cell(cells, "Submit"), end, *rest, requested, cluster]

    return read


def _ended(state: str, start: str, elapsed: str) -> str:
    """Seconds at which a job ended that tells its start and how long it ran."""
    if state.startswith(_STILL) or not elapsed:
        return "Unknown"
    try:
        return repr(moment(start) + duration(elapsed))
    except LeftOut:
        return "Unknown" if start in ("", "Unknown", "None") else start  # it lasted no time


def _gres_as_tres(text: str, nodes: str) -> str:
    """GPUs of ``AllocGRES`` (Slurm up to 20.11) as ``AllocTRES`` has them; empty where there are none.

    Of a job on several nodes it is not certain whether they are those of each: that is left to the reader of GPUs.
    """
    found = [(kind, int(amount or 1)) for kind, amount in _GRES.findall(text)]
    if not found:
        return ""
    if nodes and len(host_names(nodes)) > 1:
        return "gres/several_nodes=1"
    kinds = ",".join(f"gres/gpu:{kind}={amount}" for kind, amount in found if kind)
    return ",".join(filter(None, (kinds, f"gres/gpu={sum(amount for _, amount in found)}")))
