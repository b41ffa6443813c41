"""One way to read tables of jobs and servers: a format declares its columns; rows are read and dirt is counted."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from schedgap.benchmarks.importers.cells import NO_VALUE, LeftOut, Unfit, check_order
from schedgap.benchmarks.text import counted, percent
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.files import check_ends
from schedgap.formulations.common.instance import Json

Reader = Callable[..., Json]
"""``f(cell, ...) -> value``; raises ValueError that says what the cell must be, or :class:`LeftOut`."""


_SHOWN_LINES = 5


_FEW_ROWS = 10
"""Rows below which the share of left-out rows is not reported."""


_LONGEST_CELL = 131_072


_LONGEST_LINE = 1 << 20


_LONGEST_ELEMENT = 1 << 22


@dataclass(frozen=True)
class Format:
    """The columns of a table."""

    # id, title: its name after ``schedgap import``, and one line
    id: str
    title: str
    fields: Mapping[str, tuple[Any, ...]]  # what is read: a reader, and the columns whose cells it is given
    # the same for what is read where its columns are there, and None where a cell has no value
    optional: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    # column names of every layout, in order, where the file does not name them itself
    names: tuple[tuple[str, ...], ...] = ()
    separator: str | None = ","  # None: the one of comma, semicolon, tab and bar that the first line has most of
    strict: bool = False  # a row that does not fit is an error, not counted
    relative: bool = False  # arrivals count from the file's own zero; otherwise from the first job
    notes: tuple[str, ...] = ()  # what is assumed of every file of this format
    # for a file that holds a JSON list instead of a table: the cells of an element
    objects: Callable[[Any], Sequence[Any]] | None = None
    items: str = ""  # the key of that list where an object holds it
    attempts: bool = False  # a second row with the same id is a further attempt of the job, and a job of its own
    json: Format | None = None  # the form of a file of this format that holds JSON
    lines: bool = False  # `objects` reads every line of the file instead
    # ``f(path, file, names)``, line, names and cells of every row, for a table that needs more than a delimiter
    rows: Callable[..., Iterator[tuple[int, Sequence[str], Sequence[str]]]] | None = None
    lenient: bool = False  # a byte that is not UTF-8 does not cost the log

    @property
    def _every(self) -> dict[str, tuple[Any, ...]]:
        """Fields that are needed, and those that are not."""
        return {**self.fields, **self.optional}


@dataclass
class Notes:
    """What is said of an import, each text once with the number of jobs or the lines it is about."""

    strict: bool = False
    read: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    _rows: dict[str, tuple[int, list[int]]] = field(default_factory=dict)

    def add(self, *texts: str) -> None:
        """A note about one more job."""
        for text in texts:
            self._counts[text] = self._counts.get(text, 0) + 1

    def row(self, text: str, line: int) -> None:
        """A note about the row of this line."""
        count, lines = self._rows.get(text, (0, []))
        if count < _SHOWN_LINES:
            lines.append(line)
        self._rows[text] = count + 1, lines

    @property
    def left_out(self) -> dict[str, int]:
        """How many rows were left out, by reason."""
        begin = "left out: "
        return {text.removeprefix(begin): n for text, (n, _) in self._rows.items() if text.startswith(begin)}

    @property
    def texts(self) -> list[str]:
        """All of them, in the order in which they first came: rows first."""
        told = []
        for text, (count, lines) in self._rows.items():
            listed = ", ".join(map(str, lines)) + (", ..." if count > len(lines) else "")
            told.append(f"{counted(count, 'row')} {text} (line{'s' * (count > 1)} {listed})")
        left = sum(self.left_out.values())
        if left and self.read >= _FEW_ROWS:
            told.append(f"left out: {left} of {counted(self.read, 'row')}, {percent(left / self.read)}")
        return told + [text if count == 1 else f"{text} ({count:,} jobs)" for text, count in self._counts.items()]


def read_rows(
    form: Format, path: str | Path, notes: Notes, keep: str | None = None, columns: Sequence[str] = ()
) -> Iterator[dict[str, Json]]:
    """The rows of a table that fit its format, one at a time, each a dict of its fields and ``line``.

    A row that does not fit is left out and told to `notes` with its line; so is a second row with the same id. A last
    row that the file does not end may be cut, which is told too: 204 of 2048 can be read. Raises InputError: not a
    readable table: names the file, the line and the value. Also when more than half of the rows cannot be read or
    repeat an id: then the file is not of this format, or not a row a job.

    Parameters
    ----------
    path : the file, UTF-8
    notes : receives what was left out
    keep : ``column=value``: only rows with this value
    columns : names of the columns, where the file has no line of names and its format can do without
    """
    seen: dict[str, list[int]] = {}
    total = unreadable = 0
    worst = ""
    with opened(path, lenient=form.lenient) as file:
        for line, names, cells in _lines(form, path, file, columns):
            positions = {name: index for index, name in enumerate(names)}
            if total == 0:
                _require(form, positions, path, keep)
            total += 1
            try:
                cells = cells if form.objects is None else _cells(form.objects, cells)
                if len(cells) != len(names):
                    raise Unfit(f"{len(names)} columns expected", f"got {len(cells)}")
                if keep is not None and cells[positions[keep.split("=", 1)[0]]] != keep.split("=", 1)[1]:
                    continue
                row = _values(form, positions, cells)
                if check_order(row):
                    notes.row("with a start up to 60 s before the submission: submitted when started", line)
                if row.get("gpus") == 0:
                    raise LeftOut("no GPU")
                name = row.get("id")
                if name is not None and name in seen:
                    if not form.attempts:
                        raise Unfit("its id is used twice", f"{name!r} is already that of line {seen[name][0]}")
                    row["id"] = f"{name}~{len(seen[name]) + 1}"
                    notes.row(
                        "with a further attempt of a job, taken as a job of its own: JOB~2 is the second of JOB", line
                    )
                if name is not None:
                    seen.setdefault(name, []).append(line)
            except (Unfit, LeftOut) as error:
                what, *detail = map(str, error.args)
                text = f"{path}: line {line}: {', '.join((what, *detail))}"
                if form.strict:
                    raise InputError(text) from None
                if isinstance(error, Unfit):
                    unreadable += 1
                    worst = worst or text
                notes.row(f"left out: {what}", line)
            else:
                row["line"] = line
                yield row
    notes.read += total
    if 2 * unreadable > total:
        raise InputError(f"{worst} ({unreadable} of {total} rows cannot be read or repeat an id)")
    if total and (form.objects is None or form.lines):
        with Path(path).open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(-1, os.SEEK_END)
            if not packed and raw.read(1) not in b"\r\n":
                notes.row("may be cut: the file does not end with the end of a line", line)


def _cells(objects: Callable[[Any], Sequence[Any]], element: Any) -> Sequence[Any]:
    try:
        return objects(element)
    except LeftOut:
        raise
    except ValueError as error:
        raise Unfit("cannot be read", str(error)) from None


def _lines(
    form: Format, path: str | Path, file: IO[str], given_names: Sequence[str] = ()
) -> Iterator[tuple[int, Sequence[str], Any]]:
    """Line number, column names, cells."""
    if given_names and form.rows is None:
        raise InputError(f"{path}: a log of {form.id} names its columns itself: no names can be given")
    if form.rows is not None:
        yield from form.rows(path, file, given_names)
        return
    if form.objects is not None:
        columns = tuple(dict.fromkeys(column for _, *parts in form._every.values() for column in parts))
        numbered = enumerate(short_lines(path, file), 1)
        texts = ((n, text) for n, text in numbered if text.strip() and not text.startswith(";"))
        elements = texts if form.lines else _elements(path, file, form.items)
        yield from ((line, columns, element) for line, element in elements)
        return
    first = next(short_lines(path, file), "")
    separator = form.separator or max(",;\t|", key=first.count)
    file.seek(0)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator in "\t|" else csv.QUOTE_MINIMAL
    rows = csv.reader(short_lines(path, file), delimiter=separator, quoting=quoting, strict=True)
    layouts = {len(names): names for names in form.names}
    names: tuple[str, ...] = ()
    before = 0
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            text = f"a cell of more than {_LONGEST_CELL} characters" if "field larger" in str(error) else str(error)
            raise InputError(f"{path}: line {before + 1}: {text}") from None
        line, before = before + 1, rows.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if not names:
            names = tuple(cell.strip() for cell in cells)
            if not layouts or names in form.names:
                if len(set(names)) < len(names):
                    twice = next(name for name in names if names.count(name) > 1)
                    raise InputError(f"{path}: line {line}: the column {twice!r} is there twice")
                continue
            names = layouts.get(len(cells), ())
        if layouts and (len(cells) not in layouts or (form.strict and len(cells) != len(names))):
            wanted = " or ".join(map(str, sorted(layouts)))
            if len(cells) in layouts:
                wanted = f"{len(names)} as in the lines before"
            if form.strict or not names:
                by = "tabs" if separator == "\t" else f"{separator!r}"
                raise InputError(f"{path}: line {line}: {len(cells)} columns separated by {by}, expected {wanted}")
        yield line, names, cells


def short_lines(path: str | Path, file: IO[str]) -> Iterator[str]:
    """The lines of a table; one that never ends is refused, of which no more is read."""
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise InputError(f"{path}: line {number}: has more than {_LONGEST_LINE:,} characters")
        yield line


def _require(form: Format, positions: Mapping[str, int], path: str | Path, keep: str | None) -> None:
    """All the columns that are read are there."""
    needed = (
        form._every if form.id == "csv" else {} if form.rows else form.fields
    )  # of a user's table all that it named
    wanted = [column for _, *columns in needed.values() for column in columns]
    if keep is not None:
        if "=" not in keep:
            raise InputError(f"option keep: must be column=value, got {keep!r}")
        wanted.append(keep.split("=", 1)[0])
    for column in wanted:
        if column not in positions:
            known = ", ".join(positions)
            raise InputError(
                f"{path}: line 1: there is no column {column!r} (columns: {known[:200] + '...' * (len(known) > 200)})"
                + near(column, positions)
            )


def _values(form: Format, positions: Mapping[str, int], cells: Sequence[Any]) -> dict[str, Any]:
    row = {}
    for name, (read, *columns) in form._every.items():
        if name in form.optional and not all(column in positions for column in columns):
            continue
        try:
            row[name] = read(*(cells[positions[column]] for column in columns))
        except LeftOut as missing:
            if name in form.optional:
                continue
            if str(missing) != NO_VALUE or form.id != "csv":
                raise
            empty = next((one for one in columns if not str(cells[positions[one]]).strip()), columns[0])
            raise LeftOut(f"{empty} {NO_VALUE}") from None
        except ValueError as error:
            column = next((one for one in columns if _refused(form, one, cells[positions[one]])), columns[0])
            numbered = f"column {positions[column] + 1} ({column})" if form.names else column
            got = cells[positions[column]]
            text = repr(got) if len(repr(got)) <= 40 else repr(got)[:37] + "..."
            raise Unfit(f"{numbered}: {error}", f"got {text}") from None
    return row


def _refused(form: Format, column: str, cell: Any) -> bool:
    """Whether the reader of this column alone cannot read the cell: of several columns, that one is at fault."""
    try:
        for read, *columns in form._every.values():
            if columns == [column]:
                read(cell)
    except LeftOut:
        return False
    except ValueError:
        return True
    return False


@contextmanager
def opened(path: str | Path, *, lenient: bool = False) -> Iterator[IO[str]]:
    """A text file to read, compressed by gzip or not; `lenient`: bytes that are not UTF-8 are read as U+FFFD.

    Raises InputError: it cannot be opened, is not UTF-8, or is cut.
    """
    try:
        check_ends(path)
        with Path(path).open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        how: dict[str, Any] = {"encoding": "utf-8-sig", "newline": "", "errors": "replace" if lenient else "strict"}
        with gzip.open(path, "rt", **how) if packed else Path(path).open(**how) as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{path}: line {_undecodable(path)}: not UTF-8 text") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: not the whole of a file of gzip: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _undecodable(path: str | Path) -> int:
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    with Path(path).open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else Path(path).open("rb") as file:
        while piece := file.read(1 << 16):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError as error:
                return line + bytes(error.object[: error.start]).count(b"\n")
            line += piece.count(b"\n")
    return line


_BETWEEN, _BEFORE = re.compile(r"[ \t\r\n,]*"), re.compile(r"[ \t\r\n\[]*")
"""What stands between elements of a list, and before the first."""


def _elements(path: str | Path, file: IO[str], key: str = "") -> Iterator[tuple[int, Any]]:
    """The elements of a JSON list with the line each begins in, read in pieces: memory for one of them.

    With a `key` the list is the value of that key of an object, the first that is a list.
    """
    decoder = json.JSONDecoder()
    line = 1
    text = ""
    inside = False
    if key:
        opening = re.compile(rf'"{key}"\s*:\s*\[')
        while (start := opening.search(text)) is None:
            piece = file.read(1 << 16)
            text += piece
            if not piece or len(text) > _LONGEST_ELEMENT:
                raise InputError(f"{path}: line 1: not JSON with a list of {key}")
        line += text[: start.end()].count("\n")
        text, inside = text[start.end() :], True
    while True:
        piece = file.read(1 << 16)
        text += piece
        at = 0
        while True:
            begin = (_BETWEEN if inside else _BEFORE).match(text, at).end()  # type: ignore[union-attr]
            inside = True
            line += text.count("\n", at, begin)
            at = begin
            if text.startswith("]", at):
                return
            try:
                element, end = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            yield line, element
            line += text.count("\n", at, end)
            at = end
        text = text[at:]
        if not piece or len(text) > _LONGEST_ELEMENT:
            raise InputError(f"{path}: line {line}: not JSON, or the list does not end")


def shortened(value: Json, cut: dict[str, str]) -> Json:
    """With names that are too long for an instance cut and told apart; `cut` has those so far."""
    if isinstance(value, Mapping):
        return {shortened(key, cut): shortened(part, cut) for key, part in value.items()}
    if isinstance(value, list):
        return [shortened(part, cut) for part in value]
    long = isinstance(value, str) and len(value) > 200
    return cut.setdefault(value, f"{value[:170]} (shortened, {len(cut)})") if long else value
