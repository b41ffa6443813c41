"""Limits, warm starts, progress and interruption on every engine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from support.work import PASSED, PATIENCE, with_growing_limit

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.engines import NAMES, engine, installed_engines, watch
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.cbc_run import CbcRun
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.engines.whole import whole_model
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination
from schedgap.tools.testing.small_models import ModelMaker, knapsacks, market_split, violated
from studies.engine_handoff import sparse_model


@pytest.fixture(params=(*NAMES, *installed_engines()))
def name(request: pytest.FixtureRequest) -> str:
    """Every test here runs on every engine."""
    value: str = request.param
    return value


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that a busy machine lets answer late is waited for, not left behind."""
    monkeypatch.setattr(watch, "ABANDON_AFTER", PATIENCE)
    monkeypatch.setattr(watch, "PATIENCE", PATIENCE)


def within(model: DeclarativeModel, answer: EngineAnswer) -> None:
    """What must hold of every answer with a point."""
    assert answer.values is not None
    assert answer.objective is not None
    assert violated(model, {v.name: answer.value(v) for v in model.problem.variables()}) == []
    assert answer.bound is not None
    assert model.sense * answer.bound <= model.sense * answer.objective


@pytest.mark.parametrize("sense", [1, -1])
def test_time_limit_with_a_point(name: str, sense: int, patient: None) -> None:
    model = market_split(5, 40, 1, slack=True, sense=sense)
    answer = with_growing_limit(
        lambda deadline: engine(name).solve(model, SolveOptions(deadline=deadline, threads=1)),
        lambda answer: answer.values is not None,
    )
    assert (answer.status, answer.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    within(model, answer)
    # the distance is at least 0 away from the constant 1000, on the side of the sense
    assert answer.bound == pytest.approx(1000, abs=1e-3)
    assert sense * (answer.objective or 0) > sense * 1000


def test_time_limit_without_a_point(name: str) -> None:
    """Neither zeros (HiGHS) nor the relaxation's fractional values (CBC) are taken for a point."""
    model = market_split(5, 40, 1, slack=False)
    answer = with_growing_limit(
        lambda deadline: engine(name).solve(model, SolveOptions(deadline=deadline, threads=1)),
        lambda answer: answer.bound is not None and answer.bound > 1000,  # the root has been solved
    )
    assert (answer.status, answer.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)
    assert answer.values is None
    assert answer.objective is None
    assert answer.bound is not None
    assert 1000 < answer.bound < 1040
    with pytest.raises(ValueError, match="no feasible point"):
        answer.value(market_split(2, 2, 1, slack=False).problem.variables()[0])


def test_a_root_relaxation_longer_than_the_limit(name: str) -> None:
    """CBC overruns its own limit in the first linear program by a minute and more; it is ended from outside."""
    model = sparse_model(40_000, 5)
    answer = engine(name).solve(model, SolveOptions(deadline=Deadline.after(0.6), threads=1))
    assert answer.nodes in (None, 0, 1)  # it did not come beyond the root
    assert answer.termination is Termination.TIME_LIMIT
    assert answer.status in (Status.UNKNOWN, Status.FEASIBLE)


def test_a_deadline_that_has_passed(name: str) -> None:
    answer = engine(name).solve(market_split(5, 40, 1, slack=False), SolveOptions(deadline=PASSED, threads=1))
    assert (answer.status, answer.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)


def test_work_limit_is_repeatable(name: str) -> None:
    """A node limit (CP-SAT: deterministic time) stops early, at the same point every time."""
    model = market_split(5, 40, 3, slack=True)
    options = SolveOptions(work_limit=0.02, threads=1, seed=3)
    first, second = (engine(name).solve(model, options) for _ in range(2))
    assert (first.status, first.termination) == (Status.FEASIBLE, Termination.WORK_LIMIT)
    within(model, first)
    assert (first.objective, first.bound, first.nodes) == (second.objective, second.bound, second.nodes)
    assert [first.value(v) for v in model.problem.variables()] == [second.value(v) for v in model.problem.variables()]


def test_seed_zero_is_repeatable(name: str) -> None:
    """CBC takes seed 0 for the time of day."""
    options = SolveOptions(seed=0, threads=1, work_limit=0.02)
    model = market_split(5, 30, 4, slack=True)
    first, second = (engine(name).solve(model, options) for _ in range(2))
    assert (first.objective, first.nodes) == (second.objective, second.nodes)


def test_large_seeds_are_accepted(name: str) -> None:
    model = knapsacks(3, 8, 1)
    answers = [engine(name).solve(model, SolveOptions(seed=seed, threads=1)) for seed in (2**31 - 1, 2**40 + 7)]
    assert {a.status for a in answers} == {Status.OPTIMAL}
    assert len({a.objective for a in answers}) == 1


@pytest.mark.parametrize("constant", [0.0, 100_000.0, -2000.0])
def test_gap_stop_is_not_called_optimal(name: str, constant: float) -> None:
    """The gap is ours: to the objective with its constant, whatever an engine measures."""
    model = knapsacks(10, 60, 7, constant=constant)
    wanted = 0.05
    answer = engine(name).solve(model, SolveOptions(relative_gap=wanted, threads=1))
    found = gap(answer.objective, answer.bound)
    assert found is not None
    within(model, answer)
    if answer.status is Status.OPTIMAL:
        assert found < 1e-6
    else:
        assert (answer.status, answer.termination) == (Status.FEASIBLE, Termination.GAP_LIMIT)
        assert 0 < found <= wanted


def test_warm_start_is_used(name: str) -> None:
    """With almost no work allowed the answer is at least as good as the point given."""
    model = market_split(5, 40, 1, slack=True)
    good = engine("highs").solve(model, SolveOptions(work_limit=0.1, threads=1))
    assert good.objective is not None
    start = {v.name: good.value(v) for v in model.problem.variables()}
    lines: list[str] = []
    options = SolveOptions(start=start, work_limit=0.001, threads=1, log=lines.append)
    answer = engine(name).solve(market_split(5, 40, 1, slack=True), options)
    assert answer.objective is not None
    assert answer.objective <= good.objective
    marks = {
        "highs": "MIP start solution is feasible",
        "cbc": "MIPStart provided solution with cost",
        "cpsat": "The solution hint is complete and is feasible",
        "scip": "feasible solution found by completesol heuristic",
    }
    assert any(marks[name].lower() in line.lower() for line in lines), lines


def test_a_partial_or_wrong_start_does_no_harm(name: str) -> None:
    model = knapsacks(4, 12, 3)
    best = engine(name).solve(model, SolveOptions(threads=1)).objective
    names = [v.name for v in model.problem.variables()]
    for start in ({names[0]: 1}, dict.fromkeys(names, 1), {"nothing of this": 4}):
        answer = engine(name).solve(model, SolveOptions(start=start, threads=1))
        assert (answer.status, answer.objective) == (Status.OPTIMAL, best)


def test_log_goes_to_the_caller_only(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    engine(name).solve(knapsacks(4, 12, 3), SolveOptions(log=lines.append, threads=1))
    assert len(lines) > 5
    assert not any("\n" in line for line in lines)
    engine(name).solve(knapsacks(4, 12, 3), SolveOptions(threads=1))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sense", [1, -1])
def test_progress_in_the_models_own_sense(name: str, sense: int) -> None:
    """Objectives get better, bounds stay on their side, solutions are those of `extract`."""
    model = market_split(5, 40, 2, slack=True, sense=sense)
    seen: list[tuple[Any, float | None, float | None]] = []
    engine(name).solve(
        model,
        SolveOptions(work_limit=0.5, threads=1, report=lambda s, objective, b: seen.append((s, objective, b))),
    )
    points = [(s, objective) for s, objective, _ in seen if s is not None]
    if name == "cbc":  # its log tells objectives, not points
        assert not points
    else:
        assert points
        for solution, objective in points:
            assert violated(model, solution) == []
            assert objective is not None
            assert sense * objective >= sense * 1000
        objectives = [sense * objective for _, objective in points if objective is not None]
        assert objectives == sorted(objectives, reverse=True)
    bounds = [b for _, _, b in seen if b is not None]
    assert bounds
    assert all(sense * b <= sense * 1000 + 0.01 for b in bounds)


def test_an_error_in_the_callers_report_comes_back(name: str) -> None:
    def report(*_: object) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        engine(name).solve(
            market_split(5, 40, 2, slack=True),
            SolveOptions(report=report, threads=1, deadline=Deadline.after(PATIENCE)),
        )


def test_ctrl_c_gives_the_best_so_far(name: str, patient: None) -> None:
    """It comes once, when there is a point and the search has begun (before that, CBC may lose it)."""
    model = market_split(5, 40, 1, slack=True)
    told: list[object] = []

    def interrupt(why: object) -> None:
        if not told:
            os.kill(os.getpid(), signal.SIGINT)
        told.append(why)

    options = SolveOptions(
        threads=1,
        deadline=Deadline.after(PATIENCE),
        report=lambda solution, *_: None if solution is None else interrupt(solution),
        log=lambda line: interrupt(line) if re.search(r"After [1-9]\d* nodes", line) else None,
    )
    try:
        answer = engine(name).solve(model, options)
    except KeyboardInterrupt:
        pytest.fail("the engine let the interruption through")
    assert told
    assert (answer.status, answer.termination) == (Status.FEASIBLE, Termination.INTERRUPTED)
    within(model, answer)


def test_thread_count_may_change_between_runs(name: str) -> None:
    """HiGHS keeps a scheduler whose size cannot change while it lives."""
    results = {
        engine(name).solve(knapsacks(6, 15, 2), SolveOptions(threads=threads)).objective for threads in (1, 2, 1, None)
    }
    assert len(results) == 1


def test_nothing_is_left_behind(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file stays, in the temporary folder or in the working folder, even when the run is cut short."""
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch with a space"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    engine(name).solve(knapsacks(4, 12, 3), SolveOptions(threads=1))
    engine(name).solve(market_split(5, 40, 1, slack=False), SolveOptions(deadline=Deadline.after(0.3), threads=1))
    assert list(tmp_path.rglob("*")) == [scratch]


def test_feasibility_tolerance_can_be_tightened(name: str) -> None:
    """x >= 2e-7 with x a multiple of 1: engines for real numbers take 0 for feasible unless told not to."""
    maker = ModelMaker()
    x, y = maker.var(0, 1), maker.var(0, 1)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, -1.0)], ">=", 2e-7)
    answer = engine(name).solve(maker.model(), SolveOptions(feasibility_tolerance=1e-9, threads=1))
    assert answer.objective == 1.0


def test_an_engine_left_behind_does_not_spoil_the_end_of_the_process() -> None:
    """It is left behind after its deadline; at its end the interpreter waits for it, then leaves in peace."""
    code = """
        import threading
        from schedgap.solvers.engines import watch
        from schedgap.solvers.result import Deadline
        release = threading.Event()
        run = watch.watched(lambda: release.wait(600), lambda: None, Deadline.after(0.1))
        print(run.finished, run.late, watch.still_running())
        threading.Timer(0.5, release.set).start()
        import atexit
        atexit.register(lambda: print("at the end", watch.still_running()))
        atexit.unregister(watch.wait_for_engines)
        atexit.register(lambda: watch.wait_for_engines(600))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == ["False True True", "at the end False"], done.stderr
    assert done.returncode == 0


def test_a_second_ctrl_c_leaves_the_engine_behind(patient: None) -> None:
    """The engine does not stop, asked because of its deadline and after the first one; then the second comes."""
    release, asked = threading.Event(), 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        if asked in (1, 3):
            os.kill(os.getpid(), signal.SIGINT)

    run = watched(lambda: release.wait(PATIENCE), stop, Deadline.after(0.01))
    release.set()
    assert (run.finished, run.interrupted, run.value) == (False, True, None)
    assert asked == 3


def test_cbc_is_asked_again_where_it_missed_the_signal(patient: None, tmp_path: Path) -> None:
    """A program that takes the second request only, as CBC does when the first comes before it branches."""
    program = tmp_path / "deaf.py"
    program.write_text(
        f"#!{sys.executable}\n"
        "import signal, threading\n"
        "asked = []\n"
        "heard = threading.Event()\n"
        "signal.signal(signal.SIGINT, lambda *_: (asked.append(1), len(asked) > 1 and heard.set()))\n"
        "print('ready', flush=True)\n"
        f"heard.wait({PATIENCE})\n"
        "print('asked', len(asked), flush=True)\n"
    )
    program.chmod(0o755)
    model = whole_model(model_arrays(market_split(3, 10, 1, slack=True)))
    interrupt = SolveOptions(log=lambda line: os.kill(os.getpid(), signal.SIGINT) if line == "ready" else None)
    run = CbcRun(str(program), model, interrupt, None)
    run.go({})
    assert run.interrupted and not watch.still_running()
    assert run.lines[-1] == "asked 2"
