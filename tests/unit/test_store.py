"""The store: what was written stays, whatever ends the process."""

from __future__ import annotations

import csv
import fcntl
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toy import toy

import schedgap
from schedgap.benchmarks.records import Record, plain
from schedgap.benchmarks.report.analysis import analyse, instance_path
from schedgap.benchmarks.report.export import export
from schedgap.benchmarks.report.run_page import write_report
from schedgap.benchmarks.sweep.store import (
    COLUMNS,
    FILE,
    LOCK,
    Store,
    StoreError,
    _checksum,
    fresh_folder,
    held,
    locked,
    row_key,
)
from schedgap.benchmarks.sweep.versions import environment
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.solvers.result import Result, SolveOptions, Status

WRITER = """
import sys
from pathlib import Path
from schedgap.benchmarks.sweep.store import Store
from schedgap.benchmarks.records import Record
from schedgap.solvers.result import Result, Status
store = Store(Path(sys.argv[1]))
for k in range(10**6):
    store.put(Record("p", "m", seed=k, position=k, key=f"k{k}", result=Result(Status.OPTIMAL, float(k))))
    print(k, flush=True)
"""


def _row(key: str, position: int = 0, status: str = "optimal", objective: float | None = None, **more: Any) -> Record:
    result = Result(Status(status), objective, solution={"machine": [0, 1]}, info={"x": None}, engine="highs")
    return Record(
        "toy", "list", {"a": 1}, 3, "toy-1", "abc0" * 16, "quick", "random", position, key, result=result, **more
    )


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = _row("a", objective=1.5)
    with Store(tmp_path / FILE) as store:
        store.put(row)
        store.set_meta(suites=["quick"], seed=0)
    with Store(tmp_path / FILE, read_only=True) as store:
        assert list(store.rows()) == [row]
        assert store.meta() == {"suites": ["quick"], "seed": 0}
    assert not list(tmp_path.glob("*-wal"))


def test_rows_are_in_the_order_of_the_plan_and_a_key_is_kept_once(tmp_path: Path) -> None:
    with Store(tmp_path / FILE) as store:
        for key, position in (("c", 2), ("a", 0), ("b", 1)):
            store.put(_row(key, position))
        store.put(_row("b", 1, objective=2.0))
        assert [(row.key, row.result.objective) for row in store.rows()] == [("a", None), ("b", 2.0), ("c", None)]


def test_failed_work_has_not_finished_but_a_disagreement_has(tmp_path: Path) -> None:
    with Store(tmp_path / FILE) as store:
        store.put(_row("good"))
        store.put(_row("died", 1, "error", error="its worker died"))
        store.put(_row("wrong", 2, "error", error="x", disagreement=True))
        assert store.finished() == {"good", "wrong"}
        assert store.keep({"good", "wrong"}) == 1
        assert [row.key for row in store.rows()] == ["good", "wrong"]


def test_everything_reported_as_written_survives_kill_9(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / FILE)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for _ in range(25):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    told = [last, *(int(line) for line in writer.stdout.read().split())]
    writer.wait()
    with Store(tmp_path / FILE) as store:
        numbers = [row.position for row in store.rows()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > told[-1]
    connection = sqlite3.connect(tmp_path / FILE)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / FILE) as store:
        store.put(_row("first"))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite answers as when the disk is full
        with pytest.raises(StoreError, match=r"cannot write: database or disk is full.*1 finished rows are kept") as e:
            store.put(_row("second", 1, payload=[{"x": 7}] * 20_000))
        assert e.value.exit_status == 2 and "\n" not in str(e.value)
    with Store(tmp_path / FILE) as store:
        assert [row.key for row in store.rows()] == ["first"]
        store.put(_row("third", 2))


def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("not a database, " * 100)
    with pytest.raises(StoreError, match=f"{FILE}: cannot open"):
        Store(tmp_path / FILE)
    with pytest.raises(StoreError, match="there is no run here"):
        Store(tmp_path / "absent.sqlite", read_only=True)
    with pytest.raises(StoreError, match="cannot open"):
        Store(tmp_path / "no folder" / FILE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_is_full_at_once_is_told_with_the_file(tmp_path: Path) -> None:
    """It was told as standard output, wherever that went."""
    (tmp_path / LOCK).symlink_to("/dev/full")
    with pytest.raises(StoreError) as refused, locked(tmp_path):
        pass
    assert str(refused.value) == f"{tmp_path / LOCK}: cannot be written: No space left on device"


def test_one_process_at_a_time(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from schedgap.benchmarks.sweep.store import locked\n"
        "with locked(Path(sys.argv[1])):\n print('in', flush=True); time.sleep(3600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "in\n"
    try:
        with pytest.raises(StoreError, match=f"another run is writing there .process {other.pid}."), locked(tmp_path):
            pass
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with locked(tmp_path):
        assert (tmp_path / "run.lock").read_text() == str(os.getpid())
    assert not (tmp_path / "run.lock").exists()


def test_a_lock_that_its_holder_removes_holds_nobody_else_off_and_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opened it before it was removed has locked a file that is no more: a third one would make a new one."""
    taken = fcntl.flock

    def after_its_end(handle: int, how: int) -> None:
        (tmp_path / LOCK).unlink()
        taken(handle, how)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", after_its_end)
        with pytest.raises(StoreError, match="another run is writing there"), locked(tmp_path):
            pass
    with locked(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()


def test_a_run_that_ended_while_a_second_one_began_is_not_written_over(tmp_path: Path) -> None:
    looks = iter((False, True))
    with pytest.raises(StoreError, match="another run has ended there just now"), held(tmp_path, lambda _: next(looks)):
        pass


def test_a_new_run_goes_beside_the_old_one(tmp_path: Path) -> None:
    first = tmp_path / "results"
    assert fresh_folder(first) == first
    first.mkdir()
    assert fresh_folder(first) == first
    Store(first / FILE).close()
    assert fresh_folder(first) == tmp_path / "results-2"


def test_the_key_depends_on_all_that_determines_a_result() -> None:
    parts = {"instance": "abc", "method": "cp", "settings": {"b": 1, "a": 2}, "seed": 0, "limits": [None, 5]}
    assert row_key(parts) == row_key({**parts, "settings": {"a": 2, "b": 1}})
    for name, value in (("instance", "abd"), ("method", "cbc"), ("settings", {}), ("seed", 1), ("limits", [1, 5])):
        assert row_key({**parts, name: value}) != row_key(parts)


class _Interrupted:
    """A connection during whose statements Ctrl-C comes once."""

    def __init__(self, inner: Any, at: str) -> None:
        self.inner, self.at = inner, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if self.at and statement.startswith(self.at):
            self.at = ""
            raise KeyboardInterrupt
        return self.inner.execute(statement, *values)


@pytest.mark.parametrize("at", ["BEGIN", "DELETE", "INSERT", "COMMIT"])
def test_ctrl_c_inside_a_transaction_loses_nothing_and_leaves_none_open(tmp_path: Path, at: str) -> None:
    with Store(tmp_path / FILE) as store:
        store.put(_row("a"))
        store._db = _Interrupted(store._db, at)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            store.put(_row("a", status="feasible"))
        assert [(row.key, row.result.status) for row in store.rows()] == [("a", "feasible")]
        store.set_meta(interrupted=True)
        assert store.meta()["interrupted"] is True


def test_a_flipped_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Wherever it is: in a number, in JSON, in a key, in the file's own structure."""
    import random

    path = tmp_path / FILE
    with Store(path) as store:
        for k in range(12):
            store.put(_row(f"key-{k}", k, objective=k / 7, error="", seconds=0.5))
        store.set_meta(suites=["quick"], seed=0)
    whole = path.read_bytes()

    def read() -> tuple[Any, ...]:
        with Store(path, read_only=True) as store:
            return list(store.rows()), store.meta(), store.finished()

    intact = read()
    refused = 0
    rng = random.Random(0)
    used = [at for at, byte in enumerate(whole) if byte]
    for at in rng.sample(used, 150):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        try:
            assert read() == intact
        except StoreError as error:
            refused += 1
            assert str(error).startswith(str(path)) and len(str(error).splitlines()) == 1
    assert refused > 75


def _doctor(path: Path, statement: str, *values: object) -> None:
    """Change a store and make its checksums, which anybody can work out, hold again."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)
        for number, *held in db.execute(f"SELECT number, {', '.join(COLUMNS)} FROM rows").fetchall():
            db.execute("UPDATE rows SET checksum = ? WHERE number = ?", (_checksum(held), number))
        for pair in db.execute("SELECT name, value FROM meta").fetchall():
            db.execute("UPDATE meta SET checksum = ? WHERE name = ?", (_checksum(pair), pair[0]))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with a proven optimum, a heuristic with claims, and instances of its own."""
    problem = find_problem("rar-ddls")
    instance = schedgap.generate("rar-ddls", "tiny", seed=1)
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "instances").mkdir()
    write_text(instance_path(folder, instance.content_hash()), instance.to_json())
    with Store(folder / FILE) as store:
        for position, name in enumerate(("cp", "sjf-bco", "ff")):
            result = run_method(problem, instance, find_method(problem, name), SolveOptions(threads=1))
            result = replace(result, solution=plain(result.solution), info=plain(result.info))
            place = {"suite": "quick", "batch": "tiny", "position": position, "key": name, "instance_name": "x"}
            store.put(
                Record("rar-ddls", name, result=result, instance_hash=instance.content_hash(), **place, seconds=0.5)
            )
        session = {**environment(), "workers": 1, "began": 1.0, "ended": 0.5, "interrupted": False, "items": 3}
        store.set_meta(suites=["quick"], seed=0, scale=1.0, planned=3, sessions=[session])
    return folder


DEEP = '{"a":' * 60 + "1" + "}" * 60
DOCTORED: list[tuple[str, object, str]] = [
    ("termination", "because", "row 1: termination: must be 'proven', "),
    ("termination", 7, "row 1: termination: must be 'proven', "),
    ("status", "best", "row 1: status: must be 'optimal', "),
    ("objective", "12", 'row 1: objective: must be a number, got "12"'),
    ("objective", b"\xff", "row 1: objective: must be a number, got "),
    ("objective", float("inf"), "row 1: objective: must be a finite number, got Infinity"),
    ("bound", "-", "row 1: bound: must be a number"),
    ("info", "[1]", "row 1: info: "),
    ("info", "7", "row 1: info: "),
    ("info", "{", "row 1: info: not valid JSON at line 1, column 2"),
    ("info", 7, "row 1: info: must be JSON text, got 7"),
    ("info", "[" * 5000, "row 1: info: nested too deeply|row 1: info: not valid JSON"),
    ("info", DEEP, "row 1: info: is nested deeper than 50"),
    ("info", '{"a": NaN}', "row 1: info: line 1, column 7: NaN is not allowed"),
    ("info", '{"a": ' + "9" * 400 + "}", "row 1: info: has a number larger than"),
    ("info", '{"anytime": [["x", {}, 1]]}', "row 1: info: anytime\\[0\\]\\[0\\]: must be a number, got"),
    ("info", '{"anytime": [[0.5, 1]]}', "row 1: info: anytime\\[0\\]: "),
    ("info", '{"proof": []}', "row 1: info: proof: must be 'certified', 'agreed' or 'claimed'"),
    ("settings", "null", "row 1: settings: "),
    ("settings", '["a"]', "row 1: settings: "),
    ("settings", '{"a": "\\ud800"}', "row 1: settings: has half of a surrogate pair"),
    ("settings", '{"\\udfff": 1}', "row 1: settings: has half of a surrogate pair"),
    ("position", "first", "row 3: position: must be a whole number"),
    ("position", -1, "row 1: position: must be greater than or equal to 0, got -1"),
    ("seed", "0", "row 1: seed: must be a whole number"),
    ("seed", 1.5, "row 1: seed: must be a whole number, got 1.5"),
    ("instance_hash", "../../../../etc/passwd", "row 1: instance_hash: must match pattern"),
    ("instance_hash", 5, "row 1: instance_hash: must be text, got 5"),
    ("instance_name", "a\x1b[2J", "row 1: instance_name: must have no control characters"),
    ("instance_name", None, "row 1: instance_name: must be text, got null"),
    ("problem", 5, "row 1: problem: must be text, got 5"),
    ("method", "a\nb", "row 1: method: must have no control characters"),
    ("solution", "[]", "row 1: solution: must be an object, got \\[\\]"),
    ("payload", "7", "row 1: payload"),
    ("payload", "[7]", "row 1: payload"),
    ("error", None, "row 1: error: must be text"),
    ("seconds", "long", "row 1: seconds: must be a number"),
    ("finished", 1e300, "row 1: finished: must be less than or equal to 1"),
    ("disagreement", "no", "row 1: disagreement: must be a valid boolean"),
    ("limits", "7", "row 1: limits: "),
    ("suites", "7", "suites: must be a list|suites: must be a valid list"),
    ("suites", "[1]", "suites\\[0\\]: must be text, got 1"),
    ("planned", '"many"', "planned: must be a whole number"),
    ("time_limit", '"1"', "time_limit: must be a number"),
    ("sessions", "{}", "sessions: must be a"),
    ("sessions", "[7]", "sessions\\[0\\]: must be an object, got 7"),
    ("sessions", '[{"began": "now"}]', "sessions\\[0\\].began: must be a number"),
]


@pytest.mark.parametrize(("what", "value", "said"), DOCTORED)
def test_a_doctored_store_is_one_line(what: str, value: object, said: str, foreign: Path, tmp_path: Path) -> None:
    """Nine of 27 such stores, and an unknown termination, ended in tracebacks."""
    folder = tmp_path / "run"
    shutil.copytree(foreign, folder)
    if what in COLUMNS:
        _doctor(folder / FILE, f"UPDATE rows SET {what} = ? WHERE position = 0", value)
    else:
        _doctor(folder / FILE, "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", what, value)
    with pytest.raises(InputError) as refused:
        write_report(folder)
    line = str(refused.value)
    assert line.startswith(f"{folder / FILE}: ") and len(line.splitlines()) == 1
    assert re.search(f"[:;] ({said})", line), line


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        (
            "info",
            '{"n_g": "x", "rho_hat": "x", "u": "x", "l": [], "bisected": 7}',
            r"position 1 \(rar-ddls sjf-bco\): info: cannot be what was stored: ",
        ),
        ("solution", '{"jobs": 7}', r"\(rar-ddls .*\): solution: cannot be what was stored: "),
    ],
)
def test_what_claims_and_figures_cannot_read_is_one_line(
    part: str, value: str, said: str, foreign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(foreign, folder)
    _doctor(folder / FILE, f"UPDATE rows SET {part} = ?, objective = objective + position WHERE position > 0", value)
    with pytest.raises(StoreError, match=said):
        write_report(folder)


def test_a_store_whose_rows_are_a_view_without_an_end_is_none(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        db.execute("CREATE TABLE meta (name, value, checksum)")
        db.execute(f"CREATE VIEW rows AS {endless}")
    with pytest.raises(StoreError, match="holds no run"):
        Store(tmp_path / FILE, read_only=True)


def test_a_store_whose_values_are_computed_is_none(tmp_path: Path) -> None:
    """A file of 20 kB with a column of 800 MB took 6.8 GB and a minute."""
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        columns = ", ".join(name for name in COLUMNS if name != "payload")
        db.execute("CREATE TABLE meta (name, value, checksum)")
        db.execute(f"CREATE TABLE rows (number, {columns}, checksum, payload TEXT AS (hex(zeroblob(9))))")
    with pytest.raises(StoreError, match="holds no run"):
        Store(tmp_path / FILE, read_only=True)


def test_a_foreign_run_that_is_whole_is_reported_and_its_cells_are_no_formulas(foreign: Path, tmp_path: Path) -> None:
    """Its clock was set back while it ran."""
    folder = tmp_path / "run"
    shutil.copytree(foreign, folder)
    evil = ["=cmd|'/C calc'!A00", "@SUM(1)", "+1", "-1"]
    _doctor(folder / FILE, "UPDATE rows SET instance_name = ?, batch = ?, engine = ?, engine_version = ?", *evil)
    assert "clock set back" in write_report(folder).read_text()
    with export("csv", folder, tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [rows[0][name] for name in ("instance", "batch", "engine", "engine_version")] == [f"'{x}" for x in evil]
    assert all(float(row["objective"]) > 0 for row in rows)


def test_a_measurement_of_an_earlier_version_is_named_and_not_shown(tmp_path: Path) -> None:
    row = Record("toy", "squares", suite="scale", batch="squares of n", payload=[{"n": 1}])
    (line,) = analyse([row], tmp_path, [toy()]).failures
    assert line == "scale toy: squares of n: a measurement, which this version does not show"
