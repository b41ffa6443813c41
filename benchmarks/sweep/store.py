"""The store of a run: one SQLite file, one transaction a row, so that whatever had finished stays.

A row is written as soon as its work has finished, in a transaction that reaches the disk before the next
one begins (write-ahead log, synchronous = FULL). Killing the process at any moment, or pulling the plug,
loses at most the row that was being written. On closing, the log is folded back into the one file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from schedgap.benchmarks.records import Record, RunFacts
from schedgap.catalogue.method import one_line
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import LARGEST_FILE
from schedgap.formulations.common.instance import Json, read_json, validated

FILE = "run.sqlite"
LOCK = "run.lock"
_NAMED = 100
"""Characters of its name that the lock of a file has."""
NO_RUN = "holds no run"
_JSON = ("settings", "limits", "versions", "info", "solution", "payload")
_BROKEN = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What reading a damaged file raises."""
DEEPEST = 50
"""Lists and objects within each other that a value may have."""
COLUMNS = tuple(Record("", "").flat())
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT)",
    "CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, "
    + ", ".join("key TEXT NOT NULL UNIQUE" if name == "key" else name for name in COLUMNS)
    + ", checksum TEXT)",
)


def _checksum(values: Iterable[object]) -> str:
    """The checksum of a row's contents, as SQLite gives it back."""
    plain = [str(v) if isinstance(v, str) else int(v) if isinstance(v, bool) else v for v in values]
    return hashlib.sha256(repr([float(v) if isinstance(v, float) else v for v in plain]).encode()).hexdigest()[:16]


def row_key(parts: Mapping[str, object]) -> str:
    """The identity of a piece of work: SHA-256 of the canonical JSON of all that determines its result."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _unsound(value: Json, depth: int = 0) -> str:
    """Why not every reader can go through a JSON value, show it and write it; empty where they can."""
    if depth > DEEPEST:
        return f"is nested deeper than {DEEPEST}"
    if isinstance(value, str) and not value.isascii() and value != value.encode(errors="replace").decode():
        return f"has half of a surrogate pair, {value!a:.60}"
    if isinstance(value, int) and abs(value) > 10**300:
        return "has a number larger than 10^300"
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (_unsound(part, depth + 1) for part in parts)), "")


class StoreError(InputError):
    """The store cannot be written or read; one line that names the file and the reason."""


@contextmanager
def reading(folder: Path, row: Record, part: str) -> Iterator[None]:
    """StoreError, which names the row and a part of it, where what is done inside fails on that part's value."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        place = f"row of position {row.position} ({row.problem} {row.method}): {part}"
        raise StoreError(f"{folder / FILE}: {place}: cannot be what was stored: {one_line(error)}") from error


class Store:
    """The rows of one run.

    Raises StoreError: the file cannot be opened or is not a store.

    Parameters
    ----------
    path : the SQLite file; its folder must exist
    read_only : only read; the file must exist
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self._rows = 0
        if read_only and not path.is_file():
            raise StoreError(f"{path}: there is no run here")
        try:
            if read_only:
                self._db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
            else:
                self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                for statement in _SCHEMA:
                    self._db.execute(statement)
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LARGEST_FILE)
            tables = "type = 'table' AND name IN ('rows', 'meta')"  # a view may have no end
            names = self._db.execute(f"SELECT count(*) FROM sqlite_master WHERE {tables}")
            # A column that is computed makes a small file large: ours are written.
            made = self._db.execute("SELECT count(*) FROM sqlite_master m, pragma_table_xinfo(m.name) WHERE hidden > 0")
            if names.fetchone()[0] < 2 or made.fetchone()[0]:
                self._db.close()
                raise StoreError(f"{path}: {NO_RUN}")
            sound = str(self._db.execute("PRAGMA quick_check(1)").fetchone()[0])
            if sound != "ok":
                self._db.close()
                raise StoreError(f"{path}: is damaged: {' '.join(sound.split())}")
            self._rows = self._db.execute("SELECT count(*) FROM rows").fetchone()[0]
            there = [str(name) for _, name, *_ in self._db.execute("PRAGMA table_info(rows)")]
            ours = [name for name in there if name in COLUMNS]  # checksums are in the table's order
            self._columns = [*ours, *(name for name in COLUMNS if name not in ours)]
        except _BROKEN as error:
            raise self._failed("open", error) from error

    def put(self, row: Record) -> None:
        """Write one row, replacing one of the same key, in a transaction of its own.

        Raises StoreError: it cannot be written (a full disk, say); every row written before is still there.
        """
        values = row.flat()
        for name in _JSON:
            values[name] = None if values[name] is None else json.dumps(values[name], allow_nan=False)
        held = [values[name] for name in self._columns]
        marks = ", ".join("?" for _ in (*held, "checksum"))

        def change() -> None:
            self._db.execute("DELETE FROM rows WHERE key = ?", (row.key,))
            names = ", ".join((*self._columns, "checksum"))
            self._db.execute(f"INSERT INTO rows ({names}) VALUES ({marks})", [*held, _checksum(held)])

        self._write(change)
        self._rows += 1

    def _write(self, change: Callable[[], None]) -> None:
        """Make a change that may be repeated, in one transaction.

        Ctrl-C inside it is raised when the change is written whole: a transaction left open would refuse the
        next one, and what had finished would be lost with it.
        """
        stop: KeyboardInterrupt | None = None
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                change()
                self._db.execute("COMMIT")
                break
            except KeyboardInterrupt as interrupt:
                stop = interrupt
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise self._failed("write", error) from error
        if stop is not None:
            raise stop

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._rows

    def rows(self) -> Iterator[Record]:
        """Every row, in the order of the plan.

        Raises InputError: a row cannot be read, is not what was written, or is none: one line that names it, the field
        and the value.
        """
        try:
            cursor = self._db.execute(
                f"SELECT {', '.join(self._columns)}, checksum FROM rows ORDER BY position, number"
            )
            for number, (*values, checksum) in enumerate(cursor, start=1):
                place = f"row {number}"
                self._intact(place, values, checksum)
                data = dict(zip(self._columns, values, strict=True))
                for name in _JSON:
                    data[name] = self._decoded(f"{place}: {name}", data[name])
                if data["disagreement"] in (0, 1):
                    data["disagreement"] = bool(data["disagreement"])
                yield Record.of(data, f"{self.path}: {place}")
        except _BROKEN as error:
            raise self._failed("read", error) from error

    def finished(self) -> set[str]:
        """Keys of the work that has finished; work that ended in an error has not."""
        return {row.key for row in self.rows() if row.result.status != "error" or row.disagreement}

    def keep(self, keys: Collection[str]) -> int:
        """Drop every row whose key is not among `keys` (results of other versions); how many there were."""
        stale = [row.key for row in self.rows() if row.key not in keys]

        def change() -> None:
            self._db.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in stale])

        self._write(change)
        self._rows -= len(stale)
        return len(stale)

    def set_meta(self, **values: object) -> None:
        """Remember facts of the run (JSON values) by name."""
        pairs = [(name, json.dumps(value, allow_nan=False)) for name, value in values.items()]
        rows = [(*pair, _checksum(pair)) for pair in pairs]

        def change() -> None:
            self._db.executemany("INSERT OR REPLACE INTO meta (name, value, checksum) VALUES (?, ?, ?)", rows)

        self._write(change)

    def meta(self) -> dict[str, Json]:
        """What :meth:`set_meta` remembered."""
        try:
            found: dict[str, Json] = {}
            for name, value, checksum in self._db.execute("SELECT name, value, checksum FROM meta"):
                self._intact(f"fact {name}", (name, value), checksum)
                found[str(name)] = self._decoded(f"fact {name}", value)
            validated(RunFacts, found, str(self.path))
            return found
        except _BROKEN as error:
            raise self._failed("read", error) from error

    def close(self) -> None:
        """Fold the log into the one file and close it; safe to call twice."""
        # A full disk or a read-only store cannot fold: the rows are safe in the log, and the next opening does it.
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _intact(self, what: str, values: Iterable[object], checksum: object) -> None:
        if _checksum(values) != checksum:
            raise StoreError(f"{self.path}: {what} is damaged: its checksum does not hold")

    def _decoded(self, place: str, text: object) -> Json:
        """What a JSON text in it says; None where there is none."""
        if text is not None and not isinstance(text, str):
            raise StoreError(f"{self.path}: {place}: must be JSON text, got {text!r:.60}")
        value = None if text is None else read_json(f"{self.path}: {place}", text)
        if fault := _unsound(value):
            raise StoreError(f"{self.path}: {place}: {fault}")
        return value

    def _failed(self, what: str, error: Exception) -> StoreError:
        kept = f"; its {self._rows} finished rows are kept, --resume goes on" if what == "write" else ""
        return StoreError(f"{self.path}: cannot {what}: {error}{kept}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run in `folder` for this process alone; the system lets go of it even after kill -9.

    Raises StoreError: another process works on this run, or the folder cannot be written.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}") from error
    try:
        with _taken(handle, folder, folder / LOCK):
            yield
    finally:
        if made:
            with suppress(OSError):  # something is in it
                folder.rmdir()


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold a result that is one file, as :func:`locked` a folder; no device, nor where nothing can be made beside it.

    Raises StoreError: another process works on it.
    """
    lock = path.with_name(f".{path.name[:_NAMED]}.lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666) if path.is_file() or not path.exists() else None
    except OSError:
        handle = None
    with nullcontext() if handle is None else _taken(handle, path, lock):
        yield


@contextmanager
def _taken(handle: int, place: Path, lock: Path) -> Iterator[None]:
    """What holds a lock: who has it is written down, and at the end it is gone."""
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink == 0:  # whoever held it has just ended
                raise BlockingIOError
            os.ftruncate(handle, os.write(handle, str(os.getpid()).encode()))
        except BlockingIOError:
            who = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
            raise StoreError(f"{place}: another run is writing there (process {who})") from None
        except OSError as error:
            raise StoreError(f"{lock}: cannot be written: {error.strerror or error}") from error
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
    finally:
        os.close(handle)


@contextmanager
def held(out: Path, taken: Callable[[Path], bool], resume: bool = False) -> Iterator[Path]:
    """The folder of a run, held: `out` to go on there, otherwise `out` or a new one beside what others have `taken`.

    Raises StoreError: another process works there, or has just ended there; or the folder cannot be written.
    """
    folder = out if resume else fresh_folder(out, taken)
    with locked(folder):
        if not resume and taken(folder):
            raise StoreError(f"{folder}: another run has ended there just now")
        yield folder


def holds_a_run(folder: Path) -> bool:
    """Whether there is a run in `folder`."""
    return (folder / FILE).is_file()


def fresh_folder(folder: Path, taken: Callable[[Path], bool] = holds_a_run) -> Path:
    """`folder` itself if it holds no run, otherwise the first of ``folder-2``, ``folder-3``, ... that does not."""
    candidate, k = folder, 1
    while taken(candidate):
        k += 1
        candidate = folder.with_name(f"{folder.name}-{k}")
    return candidate
