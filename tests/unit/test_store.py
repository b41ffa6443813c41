"""The store: what was written stays, whatever ends the process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schedgap.benchmarks.harness.store import FILE, Store, StoreError, fresh_folder, locked, row_key
from schedgap.benchmarks.records import Record
from schedgap.solvers.result import Result, Status

WRITER = """
import sys
from pathlib import Path
from schedgap.benchmarks.harness.store import Store
from schedgap.benchmarks.records import Record
from schedgap.solvers.result import Result, Status
store = Store(Path(sys.argv[1]))
for k in range(10**6):
    store.put(Record("p", "m", seed=k, position=k, key=f"k{k}", result=Result(Status.OPTIMAL, float(k))))
    print(k, flush=True)
"""


def _row(key: str, position: int = 0, status: str = "optimal", objective: float | None = None, **more: Any) -> Record:
    result = Result(Status(status), objective, solution={"machine": [0, 1]}, info={"x": None}, engine="highs")
    return Record("toy", "list", {"a": 1}, 3, "toy-1", "abc", "quick", "random", position, key, result=result, **more)


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = _row("a", objective=1.5, at=4)
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
            store.put(_row("second", 1, payload=[7] * 50_000))
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


def test_one_process_at_a_time(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from schedgap.benchmarks.harness.store import locked\n"
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
