"""CP-SAT in a process of its own: what it finds outlives it, and it never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ortools.sat.python import cp_model
from support.work import PATIENCE

from schedgap.formulations.common.instance import read_json
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import job_options
from schedgap.solvers.cp_sat import process as cp_sat_process
from schedgap.solvers.cp_sat.process import CpProcess, search_apart
from schedgap.solvers.cp_sat.search import run_cp
from schedgap.solvers.cp_sat.solver import CpEnd, Listener, cp_parameters
from schedgap.solvers.engines import engine
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotPacking
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination

DATA = Path(__file__).parent.parent / "data"


def golomb(marks: int) -> cp_model.CpModel:
    """The shortest ruler on which all distances differ; a few better solutions come one after another."""
    model = cp_model.CpModel()
    mark = [model.new_int_var(0, marks * marks, "") for _ in range(marks)]
    for one, other in pairwise(mark):
        model.add(other > one)
    apart = []
    for i in range(marks):
        for j in range(i):
            apart.append(model.new_int_var(1, marks * marks, ""))
            model.add(apart[-1] == mark[i] - mark[j])
    model.add_all_different(apart)
    model.minimize(mark[-1])
    return model


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the processes that are started; there is none yet."""
    ids: list[int] = []
    begin = CpProcess.__init__

    def init(self: CpProcess) -> None:
        begin(self)
        ids.append(self._process.pid)

    monkeypatch.setattr(CpProcess, "__init__", init)
    cp_sat_process._close_all()
    return ids


def kill(started: list[int]) -> None:
    """End the last process that was started, as a failed check in CP-SAT does."""
    with suppress(ProcessLookupError):
        os.kill(started[-1], signal.SIGABRT)


def test_a_search_takes_the_same_course_in_both_places(started: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def course() -> list[Any]:
        news: list[Any] = []
        listener = Listener(
            point=lambda values, bound: bool(news.append((list(values), bound))),
            bound=lambda bound: bool(news.append(bound)),
        )
        run = search_apart(golomb(6).proto, cp_parameters(workers=1, work=50.0), listener, Deadline())
        assert isinstance(run.value, CpEnd)
        return [*news, run.value]

    apart = course()
    assert len(started) == 1
    monkeypatch.setattr(cp_sat_process, "_process", lambda: None)
    assert course() == apart
    assert apart[-1].status == "OPTIMAL" and len(apart) > 3


def test_one_process_searches_again_and_again(started: list[int]) -> None:
    for _ in range(3):
        answer = run_cp(golomb(5), seconds=None, work=None, workers=1, seed=0)
        assert answer.optimal and answer.bound == 11
    assert len(started) == 1


def test_a_process_that_dies_leaves_its_last_point(started: list[int]) -> None:
    def seen(value: Any) -> bool:
        kill(started)
        return False

    answer = run_cp(golomb(7), seconds=None, work=None, workers=1, seed=0, seen=seen)
    assert answer.has_solution and not answer.optimal and answer.value is not None
    assert "SIGABRT" in answer.died
    assert run_cp(golomb(5), seconds=None, work=None, workers=1, seed=0).bound == 11


def test_a_search_that_died_is_tried_again_without_cuts(started: list[int]) -> None:
    def seen(value: Any) -> bool:
        if len(started) == 1:
            kill(started)
        return False

    lines: list[str] = []
    answer = run_cp(golomb(6), seconds=None, work=None, workers=1, seed=0, seen=seen, log=lines.append)
    assert (answer.optimal, answer.bound, answer.died, len(started)) == (True, 17, "", 2)
    assert any("SIGABRT" in line for line in lines)


def test_an_exact_method_returns_what_it_had_when_cp_sat_died(started: list[int]) -> None:
    """As with ortools 9.15 and "Check failed: threshold > 0"."""
    instance = DdlClusterInstance.parse(read_json(DATA / "ddl-cluster-waiting-beats-every-policy.json"))

    def log(line: str) -> None:
        if started and line.startswith("#"):
            kill(started)

    result = solve_cp(instance, SolveOptions(threads=1, log=log))
    assert started
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.FAILED)
    assert result.solution is not None and result.bound is not None
    assert "SIGABRT" in result.info["reason"]


def test_the_engine_returns_what_it_had_when_cp_sat_died(started: list[int]) -> None:
    from schedgap.tools.testing.small_models import market_split

    answer = engine("cpsat").solve(
        market_split(4, 30, 1, slack=True),
        SolveOptions(threads=1, report=lambda _, objective, __: None if objective is None else kill(started)),
    )
    assert (answer.status, answer.termination) == (Status.FEASIBLE, Termination.FAILED)
    assert "SIGABRT" in answer.info["reason"]


def test_slot_packing_outlives_cp_sat(started: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pricing had run inside of the process that has the schedule."""
    instance = RarDdlsInstance.parse(read_json(DATA / "rar-14-mixed.json"))

    def bound() -> int:
        incumbent = BestSchedule(instance, SolveOptions(threads=1))
        SlotPacking(incumbent, job_options(instance)).raise_bound(incumbent, 1.0)
        return incumbent.lower

    whole = bound()
    assert len(started) == 1 and whole > 0
    search = CpProcess.search

    def dying(self: CpProcess, *arguments: Any) -> Any:
        kill(started)
        return search(self, *arguments)

    monkeypatch.setattr(CpProcess, "search", dying)
    assert bound() <= whole


def test_an_error_of_the_listener_is_raised_and_ends_the_process(started: list[int]) -> None:
    def seen(value: Any) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_cp(golomb(6), seconds=None, work=None, workers=1, seed=0, seen=seen)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_a_process_that_starts_slowly_is_there_for_the_next_search(
    started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = CpProcess.__init__

    def held(self: CpProcess) -> None:
        begin(self)
        os.kill(started[-1], signal.SIGSTOP)

    monkeypatch.setattr(CpProcess, "__init__", held)
    for _ in range(2):
        answer = run_cp(golomb(5), seconds=0.01, work=None, workers=1, seed=0)
        assert not answer.has_solution and not answer.died
    os.kill(started[0], signal.SIGCONT)
    assert run_cp(golomb(5), seconds=None, work=None, workers=1, seed=0).bound == 11
    assert len(started) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
@pytest.mark.parametrize(
    ("before", "seconds", "seen", "ended"),
    [
        ("", None, "os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(self._process.pid, signal.SIGSTOP)", 0.01, "False", 0),
        (
            "os.kill(self._process.pid, signal.SIGSTOP); threading.Timer(0.1, os.kill, (os.getpid(), 2)).start()",
            None,
            "False",
            0,
        ),
    ],
    ids=["kill -9 in the middle of a search", "it still starts", "Ctrl-C while it starts"],
)
def test_it_ends_with_the_process_that_started_it(before: str, seconds: float | None, seen: str, ended: int) -> None:
    code = f"""
        import os, signal, threading
        from schedgap.solvers.cp_sat import process as cp_sat_process
        from schedgap.solvers.cp_sat.search import run_cp
        from test_cp_process import golomb
        begin = cp_sat_process.CpProcess.__init__
        def init(self):
            begin(self)
            print(self._process.pid, flush=True)
            {before}
        cp_sat_process.CpProcess.__init__ = init
        run_cp(golomb(9), seconds={seconds}, work=None, workers=1, seed=0, seen=lambda value: {seen})
    """
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == ended, done.stderr
    child = int(done.stdout)
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("the process goes on")
