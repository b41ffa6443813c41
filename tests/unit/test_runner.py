"""Runs of suites: workers that die, resuming after kill -9, Ctrl-C, folders, and the same table every time."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.toy import ToyInstance, generate, toy
from support.work import PATIENCE, wait_until

from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.run_page import write_report
from schedgap.benchmarks.report.run_text import TABLE
from schedgap.benchmarks.suites.plan import Item, check_names, plan
from schedgap.benchmarks.suites.runner import Run, bench
from schedgap.benchmarks.suites.worker import execute
from schedgap.benchmarks.sweep.pool import Pool
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.sweep.store import FILE, Store
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.heuristics.common.run import HeuristicRun

TESTS = Path(__file__).parents[1]
SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from support.toy import toy
from schedgap.benchmarks.sweep import versions
from schedgap.benchmarks.suites.runner import bench
versions.code_digest = lambda: "the same code"
if __name__ == "__main__":
    run = bench(["slow"], out=Path(sys.argv[1]), workers=2, resume=sys.argv[2] == "resume",
                     problems=[toy("slow")], progress=sys.stderr)
    sys.exit(run.exit_status)
"""


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setenv("TOY_MARKS", str(folder))
    return folder


def _count(folder: Path, name: str) -> int:
    return len((folder / name).read_text()) if (folder / name).exists() else 0


def _run(out: Path, *suites: str, odd: tuple[str, ...] = (), **more: object) -> Run:
    return bench(suites, out=out, workers=2, problems=[toy(*odd)], **more)  # type: ignore[arg-type]


def _until_marked(mark: str) -> int:
    """Work that ends when its parent has told of it."""
    wait_until(Path(mark).exists, lambda: True)
    return 1


@pytest.mark.parametrize("inside", [True, False])
def test_long_work_is_told_of_while_it_goes_on(tmp_path: Path, inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.benchmarks.sweep.progress.LINE_EVERY", 0.0)
    lines: list[str] = []
    bar = Progress(2, lines.append, "bench")
    done: list[str] = []

    def tick(running: Iterable[tuple[str, float]]) -> None:
        for mark, seconds in running:
            bar.tick([(Path(mark).name, seconds)])
            Path(mark).touch()

    with Pool(_until_marked, 1, inside=inside) as pool:
        marks = [str(tmp_path / name) for name in "ab"]
        pool.run(marks, lambda mark, _: done.append(mark), lambda *told: pytest.fail(str(told)), tick=tick)
    assert done == marks
    for name in "ab":
        assert any(re.fullmatch(rf"bench 0/2 after \d+ s: at work on {name} for \d+ s", line) for line in lines), lines


def test_progress_names_what_runs_longest_and_not_too_often() -> None:
    lines: list[str] = []
    bar = Progress(9, lines.append, "bench")
    for _ in range(3):
        bar.tick([(f"item {k}", 10.0 * k) for k in range(5)])
    bar.tick([])
    (line,) = lines
    assert line.endswith("at work on item 4 for 40 s, item 3 for 30 s, item 2 for 20 s and 2 more")


def test_a_bench_tells_of_its_items_while_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.benchmarks.sweep.progress.LINE_EVERY", 0.0)
    monkeypatch.setattr("schedgap.benchmarks.sweep.pool.TICK", 0.01)
    lines: list[str] = []
    _run(tmp_path / "r", "quick", progress=lines.append)
    assert any("bench 0/22 after 0 s: at work on quick toy toy-" in line for line in lines), lines


def test_a_run_gives_its_tables_its_report_and_its_rows(tmp_path: Path) -> None:
    lines = io.StringIO()
    run = _run(tmp_path / "r", "quick", "machines", progress=lines)
    assert (run.exit_status, run.interrupted, run.reused) == (0, False, 0)
    assert run.report == tmp_path / "r" / "report.html" and run.report.is_file()
    text = (tmp_path / "r" / TABLE).read_text()
    assert "8 instances (6 random, 2 three): 8 with an optimum" in text
    assert "list machines=3" in text
    assert "seconds" not in text and "seconds" in run.text
    assert max(map(len, run.text.splitlines())) <= 120
    answer = run.answer()
    row = next(line.split() for line in answer.splitlines() if line.startswith("  list "))
    assert row[-3:] == ["6", "of", "6"] and "\ntoy: random (ratio to optimum)\n" in answer
    assert "disagreements between methods" in answer
    for width, parts in ((80, 1), (40, 3)):
        narrow = run.answer(width).splitlines()
        assert max(map(len, narrow)) <= width and sum(line.startswith("heuristic") for line in narrow) <= parts
    told = lines.getvalue().splitlines()
    assert told[0] == "bench makes the instances of quick toy" and "items on 2 workers" in told[1]
    with Store(tmp_path / "r" / FILE, read_only=True) as store:
        rows = list(store.rows())
    assert len(rows) == run.ran == 6 * 3 + 2 * 2 + 2 * 3
    assert [row.position for row in rows] == list(range(len(rows)))
    assert all(
        (tmp_path / "r" / "instances" / f"{row.instance_hash[:16]}.json").is_file() for row in rows if row.instance_hash
    )
    assert f"{run.ran}/{run.ran}" in lines.getvalue()


def test_a_worker_that_dies_costs_only_its_own_item(tmp_path: Path, marks: Path) -> None:
    run = _run(tmp_path / "r", "deadly", odd=("deadly",))
    assert run.exit_status == 5
    assert len(run.analysis.failures) == 2
    assert all("died 2 times" in line for line in run.analysis.failures)
    # Each that dies was tried twice, nothing else was repeated; workers are warmed on instance 0.
    assert sorted((marks / "deadly").read_text().replace("0", "")) == list("1223455")
    assert sorted((marks / "list").read_text().replace("0", "")) == list("11233445")
    assert "toy-2" in run.analysis.failures[0] and "toy-5" in run.analysis.failures[1]


def test_a_worker_that_dies_once_is_tried_again(tmp_path: Path, marks: Path) -> None:
    run = _run(tmp_path / "r", "once", odd=("deadly-once",))
    assert run.analysis.failures == ()
    assert run.analysis.runs.objective.notna().all()


def test_an_exception_is_an_error_row_and_the_rest_goes_on(tmp_path: Path) -> None:
    run = _run(tmp_path / "r", "raising", odd=("raising",))
    assert [line.split(": ", 1)[1] for line in run.analysis.failures] == ["ZeroDivisionError: on purpose"] * 2
    assert run.analysis.runs.objective.notna().sum() == 4
    assert "items that failed: 2" in run.text
    assert run.exit_status == 5


def test_methods_that_contradict_each_other_end_with_exit_5(tmp_path: Path) -> None:
    run = _run(tmp_path / "r", "wrong", odd=("too-good",))
    assert run.exit_status == 5
    assert run.report is not None
    path = Path(run.analysis.disagreements[0].rsplit("the instance is in ", 1)[1])
    assert path.is_file()
    assert "disagreements between methods, engines and checker: 0" not in run.text


def test_resume_repeats_nothing_that_had_finished(tmp_path: Path, marks: Path) -> None:
    first = _run(tmp_path / "r", "quick")
    before = _count(marks, "brute")
    again = _run(tmp_path / "r", resume=True)
    assert (again.ran, again.reused) == (0, first.ran)
    assert _count(marks, "brute") == before
    assert again.folder == first.folder
    assert "UNFINISHED" not in again.text
    with pytest.raises(InputError, match="has seed 0, not 5"):
        _run(tmp_path / "r", resume=True, seed=5)


def test_resume_takes_suites_in_any_order(tmp_path: Path) -> None:
    first = _run(tmp_path / "r", "quick", "machines")
    assert _run(tmp_path / "r", "machines", "quick", resume=True).reused == first.ran
    with pytest.raises(InputError, match="has suites"):
        _run(tmp_path / "r", "machines", resume=True)


def test_a_rerun_starts_a_new_run_beside_the_old_one(tmp_path: Path) -> None:
    first = _run(tmp_path / "r", "machines")
    lines = io.StringIO()
    second = _run(tmp_path / "r", "machines", progress=lines)
    assert (first.folder, second.folder) == (tmp_path / "r", tmp_path / "r-2")
    assert "holds a run already" in lines.getvalue()


def test_resume_after_kill_9_gives_the_same_table(tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two processes: the sources may be edited between them, which is not what is tested here.
    monkeypatch.setattr("schedgap.benchmarks.sweep.versions.code_digest", lambda: "the same code")
    script = tmp_path / "sweep.py"
    script.write_text(SCRIPT.format(tests=str(TESTS)))
    whole = _run(tmp_path / "whole", "slow", odd=("slow",))
    (marks / "slow").unlink()
    sweep = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "r"), "new"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TOY_HOLD": "4"},
    )
    wait_until(lambda: _count(marks, "slow") >= 4, lambda: sweep.poll() is None)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    with Store(tmp_path / "r" / FILE) as store:
        finished = {row.key: row.finished for row in store.rows()}
    assert 0 < len(finished) < whole.ran
    assert not (tmp_path / "r" / TABLE).exists()
    page = write_report(tmp_path / "r", problems=[toy("slow")]).read_text()
    missing = f"UNFINISHED: {len(finished)} of {whole.ran} items done"
    assert missing in page and "killed, or still running" in page and "not finished" in page
    assert (tmp_path / "r" / TABLE).read_text().startswith(missing)
    lines = io.StringIO()
    resumed = _run(tmp_path / "r", odd=("slow",), resume=True, progress=lines)
    assert (resumed.reused, resumed.ran) == (len(finished), whole.ran - len(finished))
    assert f"{len(finished)} of {whole.ran} items had finished" in lines.getvalue()
    with Store(tmp_path / "r" / FILE) as store:
        after = {row.key: row.finished for row in store.rows()}
    assert len(after) == whole.ran
    assert all(after[key] == moment for key, moment in finished.items())
    assert (tmp_path / "r" / TABLE).read_text() == (tmp_path / "whole" / TABLE).read_text()


def test_workers_whose_parent_ends_while_they_start_end_too() -> None:
    """By kill -9, before they have asked who their parent is."""
    code = """
        import os, signal, time
        from schedgap.benchmarks.sweep import pool

        class Started(pool.ProcessPoolExecutor):
            def submit(self, *work):
                super().submit(*work)
                print(*self._processes, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

        pool.ProcessPoolExecutor = Started
        pool.Pool(time.sleep, 1).run([600], None, None)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert done.returncode == -signal.SIGKILL
    (worker,) = map(int, done.stdout.split())
    wait_until(lambda: not Path(f"/proc/{worker}").exists() or "(zombie)" in Path(f"/proc/{worker}/status").read_text())


def test_a_worker_that_has_grown_is_replaced_without_a_word() -> None:
    pytest.importorskip("psutil")

    def grown(item: int) -> int:
        from joblib.externals.loky import process_executor

        process_executor._MEMORY_LEAK_CHECK_DELAY = -1.0
        process_executor._MAX_MEMORY_LEAK_SIZE = -(2**60)  # whatever it holds is too much from now on
        return os.getpid()

    def died(item: int, why: str, seconds: float) -> None:
        raise AssertionError(f"{item}: {why}")

    done: list[int] = []
    with warnings.catch_warnings(record=True) as heard, Pool(grown, 1) as pool:
        warnings.simplefilter("always")
        pool.run(range(3), lambda item, pid: done.append(pid), died)
        warnings.warn("A user's own warning", stacklevel=1)
    assert len(done) == 3 and len(set(done)) > 1
    assert [str(one.message) for one in heard] == ["A user's own warning"]


def test_ctrl_c_keeps_every_finished_row_and_exits_130(tmp_path: Path, marks: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(SCRIPT.format(tests=str(TESTS)))
    sweep = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "r"), "new"],
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TOY_HOLD": "4"},
    )
    wait_until(lambda: _count(marks, "slow") >= 4, lambda: sweep.poll() is None)
    os.killpg(sweep.pid, signal.SIGINT)
    _, told = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 130, told
    assert b"Traceback" not in told
    with Store(tmp_path / "r" / FILE, read_only=True) as store:
        assert 0 < sum(1 for _ in store.rows()) < 24
        assert store.meta()["sessions"][0]["interrupted"] is True
    assert (tmp_path / "r" / TABLE).read_text().startswith("UNFINISHED: ")


def test_rows_of_other_code_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _run(tmp_path / "r", "machines")
    monkeypatch.setattr("schedgap.benchmarks.sweep.versions.code_digest", lambda: "other code")
    lines = io.StringIO()
    again = _run(tmp_path / "r", resume=True, progress=lines)
    assert (again.ran, again.reused) == (first.ran, 0)
    assert f"{first.ran} rows of other versions of the code are dropped" in lines.getvalue()


def test_the_plan_is_the_same_for_a_seed_and_differs_between_seeds() -> None:
    problems = [toy()]
    assert [i.record.key for i in plan(["quick"], problems=problems)] == [
        i.record.key for i in plan(["quick"], problems=problems)
    ]
    first = {i.record.instance_hash for i in plan(["quick"], seed=1, problems=problems)}
    assert not first & {i.record.instance_hash for i in plan(["quick"], seed=2, problems=problems)}
    scaled = plan(["quick"], scale=0.5, problems=problems)
    assert len(scaled) == 3 * 3 + 1 * 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"suites": ["nope"]}, "unknown suite 'nope', one of: quick"),
        ({"suites": ["quick"], "workers": 0}, "workers"),
        ({"suites": ["quick"], "scale": 0.0}, "scale"),
        ({"suites": ["quick"], "time_limit": 0.0}, "time limit"),
        ({"suites": ["quick"], "seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(arguments: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        bench(out=tmp_path / "r", problems=[toy()], **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "r").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        bench(["quick"], out=tmp_path / "file" / "r", problems=[toy()])


def test_the_default_suite_is_quick() -> None:
    assert check_names(()) == ("quick",)


def item(problem: Problem, method: Method, instance: Instance, **settings: int) -> Item:
    limits = {"time": None, "work": None}
    return Item(Record(problem.id, method.id, settings, limits=limits), problem, instance, method)


def test_every_method_runs_once_before_the_clock_of_its_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock is read here: what counts is the order of calls."""
    from schedgap.benchmarks.suites import worker
    from schedgap.benchmarks.sweep import warm

    calls: list[str] = []

    class Clock:
        @staticmethod
        def monotonic() -> float:
            calls.append("clock")
            return 0.0

    def listed(instance: ToyInstance, *, seed: int, machines: int | None = None) -> HeuristicRun:
        calls.append(f"{instance.name} {machines}")
        return HeuristicRun({"machine": [0] * len(instance.jobs)})

    monkeypatch.setattr(worker, "time", Clock)
    monkeypatch.setattr(warm, "_warm", set())
    monkeypatch.setattr("support.toy.listed", listed)
    problem = toy()
    method = next(m for m in problem.methods if m.id == "list")

    def done(seed: int, **settings: int) -> Record:
        return execute(item(problem, method, generate(seed), **settings), Path("unused"))

    outcomes = [done(3), done(4), done(5, machines=2)]
    first = ["toy-0 None", "clock", "toy-3 None", "clock", "clock", "toy-4 None", "clock"]
    assert calls == [*first, "toy-0 2", "clock", "toy-5 2", "clock"]  # other settings may need other compiled code
    assert [outcome.error for outcome in outcomes] == ["", "", ""]


def test_a_method_that_fails_while_it_is_warmed_tells_so_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from schedgap.benchmarks.sweep import warm

    monkeypatch.setattr(warm, "_warm", set())
    problem = toy("raising")
    method = next(m for m in problem.methods if m.id == "raising")
    outcome = execute(item(problem, method, generate(1)), Path("unused"))
    assert outcome.error.startswith("ZeroDivisionError: on purpose") and not outcome.disagreement


def test_an_interrupt_while_a_worker_starts_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor has its thread by then, which has not begun; the worker that was started ends."""

    def interrupted(thread: Any) -> None:
        if type(thread).__name__ == "_ExecutorManagerThread":
            workers.extend(thread.processes.values())
            raise KeyboardInterrupt
        start(thread)

    workers: list[Any] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    pool = Pool(abs, workers=1)
    with pytest.raises(KeyboardInterrupt), pool:
        pool.run([-1], lambda item, outcome: None, lambda item, why, seconds: None)
    workers[0].join(PATIENCE)
    assert workers[0].exitcode == -signal.SIGTERM


def _blocks_ctrl_c(_: object) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_worker_has_ctrl_c_blocked_from_its_first_moment_and_its_parent_only_meanwhile() -> None:
    """Until it is set up it would print a traceback of its imports beside the line of its parent."""
    told: list[bool] = []
    with Pool(_blocks_ctrl_c, 1) as pool:
        pool.run([0, 1], lambda _, outcome: told.append(outcome), lambda *_: None)
    assert told == [True, True] and not _blocks_ctrl_c(None)


def test_workers_without_semaphores_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case of a read-only /dev/shm."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("schedgap.benchmarks.sweep.pool.ProcessPoolExecutor", refused)
    with Pool(abs, 1) as pool, pytest.raises(InputError) as error:
        pool.run([1], lambda *_: None, lambda *_: None)
    assert str(error.value).startswith("workers: their locks need shared memory")
    assert str(error.value).endswith(": Read-only file system")
