"""Time limits and memory budgets are kept by methods that do not look at them."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from support.toy import ToyInstance, toy
from support.work import PASSED, PATIENCE

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.registry import find_problem, problem_ids
from schedgap.catalogue.run import run_method
from schedgap.solvers import budget
from schedgap.solvers.budget import Budget, OutOfBudgetError, to_its_end, used_bytes
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions, Status, Termination

INSTANCE = ToyInstance.parse({"problem": "toy", "machines": 2, "jobs": [3, 2, 1]})
FOUND = {"machine": [0, 0, 1]}


def forever(*_: Any) -> Any:
    """Python code that never looks at a clock."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        pass
    pytest.fail("nobody ended it")


def run(work: Callable[..., Any], **options: Any) -> Result:
    method = Method("stubborn", "never ends by itself", Kind.EXACT, lambda: {"stubborn": work})
    return run_method(toy(), INSTANCE, method, SolveOptions(**options))


def test_a_method_that_does_not_look_at_its_deadline_is_ended() -> None:
    result = run(forever, deadline=PASSED)
    assert (result.status, result.termination, result.bound) == (Status.UNKNOWN, Termination.TIME_LIMIT, 3.0)
    assert "the time limit came in a stage" in result.info["reason"]


def test_what_it_had_reported_is_kept() -> None:
    def work(instance: Any, options: SolveOptions) -> Any:
        assert options.report is not None
        options.report(FOUND, 5.0, None)
        forever()

    told: list[Any] = []
    result = run(work, deadline=PASSED, report=lambda *news: told.append(news))
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert (result.objective, result.solution, told) == (5.0, FOUND, [(FOUND, 5.0, None)])


def test_what_it_returns_when_it_is_ended_is_kept() -> None:
    def work(instance: Any, options: SolveOptions) -> Result:
        try:
            forever()
        except KeyboardInterrupt:
            return Result(Status.FEASIBLE, 5.0, None, FOUND, Termination.INTERRUPTED)
        raise AssertionError

    result = run(work, deadline=PASSED)
    assert (result.status, result.termination, result.objective) == (Status.FEASIBLE, Termination.TIME_LIMIT, 5.0)


@pytest.mark.skipif(used_bytes() is None, reason="the system does not tell how much memory is in use")
@pytest.mark.parametrize("another_ends", [False, True])
def test_a_method_that_takes_too_much_memory_is_ended(another_ends: bool) -> None:
    """Also while a process ends that was there before and had more than the budget."""
    gc.collect()  # what other tests left would be given back in between
    holder = "import sys; held = b'x' * (3 * 10**8); print(len(held), flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()

    def work(instance: Any, options: SolveOptions) -> Any:
        taken = []
        if another_ends:
            other.kill()
            other.wait()
        for _ in range(100):
            taken.append(mmap(-1, 10**7))  # never out of what the process has and does not use, as bytes may be
            taken[-1].write(b"x" * 10**7)
            wait_until_seen(len(taken))
        pytest.fail("nobody ended it")

    def wait_until_seen(many: int) -> None:
        end = time.monotonic() + (PATIENCE if many > 20 else 0.0)
        while time.monotonic() < end:
            pass

    try:
        result = run(work, memory_limit=10**8)
    finally:
        other.kill()
        other.communicate()
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.MEMORY_LIMIT)
    assert result.info["reason"] == "the memory budget of 0.1 GB is used up"


def steps(number: int = 100) -> None:
    """Steps of Python at which what was raised in this thread is noticed."""
    for _ in range(number):
        pass


def test_nothing_is_raised_after_the_end() -> None:
    budget = Budget(PASSED)
    budget.end()
    assert budget.look()  # the limit is over, and nobody is there any more
    steps()
    assert budget.over is None


def test_what_nobody_noticed_is_taken_back_at_the_end() -> None:
    code = compile("budget.look(); budget.end()", "straight", "exec")  # no step between the two
    budget = Budget(PASSED)
    with suppress(OutOfBudgetError):
        exec(code, {"budget": budget})
    budget.end()
    steps()
    assert budget.over is Termination.TIME_LIMIT


LEFT = """
import sys
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.result import Deadline
for deadline in (Deadline(), Deadline(0.0)):
    budget = Budget(deadline)
    try:
        budget.look()
        budget.end()
    except OutOfBudgetError:
        budget.end()
count = []
sys.setprofile(lambda *_: count.append(1))
(lambda: None)()
sys.setprofile(None)
print(len(count) > 0)
"""


def test_the_interpreter_is_left_as_it_was() -> None:
    """A mark that something is to be noticed, left behind, makes profilers and coverage wait without end."""
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True\n", done.stderr


def test_it_is_raised_again_where_a_finaliser_swallowed_it() -> None:
    budget = Budget(PASSED)
    for _ in range(3):
        with pytest.raises(OutOfBudgetError):
            budget.look()
            steps()
    budget.end()
    with Budget(PASSED), pytest.raises(OutOfBudgetError):
        with pytest.raises(OutOfBudgetError):
            forever()
        forever()


def test_it_is_raised_again_at_once_where_a_weak_set_swallowed_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is raised in the callback of a weak reference never reaches whoever let go of the object."""
    monkeypatch.setattr(budget, "AGAIN", 10**9)

    class Waits(set[Any]):
        def __len__(self) -> int:  # asked by the callback
            swallowed.append(1)
            forever()
            return 0

    class Thing:
        pass

    swallowed: list[int] = []
    held: WeakSet[Thing] = WeakSet()
    held._iterating = Waits()  # type: ignore[attr-defined]
    with Budget(PASSED), pytest.raises(OutOfBudgetError):
        held.add(Thing())
        forever()
    assert swallowed == [1] and threading.get_ident() not in budget._lost
    assert not capfd.readouterr().err


def test_what_others_drop_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragile:
        def __del__(self) -> None:
            raise ValueError("not ours")

    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_type))
    for _ in range(2):
        with Budget(Deadline.after(PATIENCE)):
            del_me = Fragile()
            del del_me
    assert told == [ValueError, ValueError]


def test_compilation_is_not_interrupted() -> None:
    budget = Budget(PASSED)

    def work() -> bool:
        looked = budget.look()
        steps()
        return looked

    space: dict[str, Any] = {"__name__": "numba.core", "work": work}
    exec("def compile():\n    return work()", space)
    assert space["compile"]() is False and budget.over is None
    with pytest.raises(OutOfBudgetError):
        work()
    budget.end()


def test_what_runs_to_its_end_is_ended_after_it() -> None:
    budget = Budget(PASSED)
    with to_its_end():
        with to_its_end():
            pass
        assert not budget.look()
        steps()
    assert budget.over is None
    with pytest.raises(OutOfBudgetError):
        budget.look()
        steps()
    budget.end()


def test_the_memory_of_what_runs_to_its_end_is_limited() -> None:
    budget = Budget(PASSED, memory=-1)
    budget._moment = None
    with to_its_end(), pytest.raises(OutOfBudgetError):
        budget.look()
        steps()
    budget.end()


def test_a_heuristic_is_ended_too() -> None:
    def endless(instance: Any, *, seed: int) -> Any:
        forever()

    method = Method("endless", "never ends by itself", Kind.HEURISTIC, lambda: {"endless": endless})
    result = run_method(toy(), INSTANCE, method, SolveOptions(deadline=PASSED))
    assert (result.status, result.termination, result.bound) == (Status.UNKNOWN, Termination.TIME_LIMIT, 3.0)


def test_a_bound_for_which_there_is_no_time_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def bound(*_: Any) -> float:
        asked.append(1)
        forever()
        return 3.0

    problem = toy()
    monkeypatch.setattr(type(problem), "bound", bound)
    result = run_method(problem, INSTANCE, "list", SolveOptions(deadline=PASSED))
    exact = run_method(problem, INSTANCE, "brute", SolveOptions(deadline=PASSED))
    assert (result.objective, result.bound, exact.bound, len(asked)) == (3.0, None, None, 2)


@pytest.mark.parametrize("method", ["default", "engine", "search", "heuristic"])
@pytest.mark.parametrize("problem_id", problem_ids())
def test_a_bound_that_takes_all_the_time_leaves_a_schedule(
    problem_id: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the method is, a heuristic was there before: no time limit leaves the empty schedule alone."""
    problem = find_problem(problem_id)
    if method == "default":
        chosen = problem.default_method()
    else:  # the last heuristics are the cheapest, which find something
        kinds = [m for m in problem.methods if m.kind == method and not m.outside_model]
        if not kinds:
            return  # a problem without a search
        chosen = kinds[-1 if method == "heuristic" else 0]
    instance = make_instance(problem, "tiny", 1, {"ample": True} if problem_id == "gpu-sharing" else {})

    def bound(*_: Any) -> float:
        monkeypatch.setattr(budget, "clock", lambda: late)  # the time is over now, however fast the machine
        return forever()

    monkeypatch.setattr(type(problem), "bound", bound)
    deadline = Deadline.after(PATIENCE)
    late = (deadline.moment or 0.0) + PATIENCE
    result = run_method(problem, instance, chosen, SolveOptions(deadline=deadline))
    assert result.solution is not None and ("found by" in result.info or method == "heuristic")
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)


@pytest.mark.skipif(used_bytes() is None, reason="the system does not tell how much memory is in use")
def test_programs_that_were_started_count() -> None:
    code = "import sys; held = b'x' * 10**8; print(flush=True); sys.stdin.read()"
    before = used_bytes()
    assert before is not None
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        assert (used_bytes() or 0) > before + 9 * 10**7
        child.kill()


@pytest.mark.parametrize("memory", [None, 1])
def test_an_import_is_not_cut_into_halves(memory: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would keep the half, and whatever needs the rest later in this process would fail."""
    name = f"imported_on_the_way_{memory}"
    code = "import time\nheld = b'x' * 10**7\nfor _ in range(100):\n    time.sleep(0.005)\nwhole = True\n"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    budget = Budget(PASSED if memory is None else NO_DEADLINE, memory=memory)
    with suppress(OutOfBudgetError), budget:
        importlib.import_module(name)
        forever()
    budget.end()
    assert budget.over is not None and sys.modules[name].whole


def test_a_program_that_is_imported_keeps_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is imported inside of the budget is waited for."""
    code = """
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.result import Deadline
budget = Budget(Deadline.after(0.01))
with suppress(OutOfBudgetError), budget:
    while True:
        pass
budget.end()
"""
    (tmp_path / "program_of_a_user.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("program_of_a_user")
    assert module.budget.over is Termination.TIME_LIMIT


def test_processes_that_work_side_by_side_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "available_bytes", lambda: 800)
    monkeypatch.setattr(budget, "_sharers", 1)
    assert (budget.memory_budget(), budget.memory_budget(7)) == (600, 7)
    budget.share_memory(3)
    assert (budget.memory_budget(), budget.memory_budget(7)) == (200, 7)
