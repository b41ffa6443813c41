"""``evaluate --frozen``: candidates of a search judged on stored instances, quickly, and cheats found out."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import foreign, peekers
from support.command import Command

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.tools.evaluation import contained, frozen
from schedgap.tools.evaluation.card import SCHEMA
from schedgap.tools.evaluation.contained import Bounds
from schedgap.tools.evaluation.drawn import drawn_instances
from schedgap.tools.evaluation.frozen import FIRST, FrozenJudge, stored

PROBLEM = find_problem("rar-ddls")
FILE = Path(foreign.__file__)
FEW = 8


@pytest.fixture(scope="module")
def judge() -> Iterator[FrozenJudge]:
    """One for all candidates here, with a few instances."""
    with pytest.MonkeyPatch.context() as patched:
        few = [entry for entry in stored(PROBLEM) if entry.known.status == "optimal"][:FEW]
        patched.setattr(frozen, "stored", lambda problem: few)
        with FrozenJudge(PROBLEM, bounds=Bounds(seconds=300.0, memory=1 << 30, warm=False)) as one:
            yield one


def test_a_candidate_gets_its_ratios_to_what_is_stored(judge: FrozenJudge) -> None:
    found = judge.judge(f"{FILE}:good")
    assert [one.entry for one in found.attempts] == judge.entries and found.feasible == FEW
    for one in found.attempts:
        assert one.to == "optimum" and one.objective is not None
        assert one.ratio == pytest.approx(one.objective / (one.entry.known.objective or 0)) and one.ratio >= 1
    assert found.score == pytest.approx(sum(1 / (one.ratio or 0) for one in found.attempts) / FEW)
    worst = found.artifacts()["worst"]
    assert worst["ratio"] == max(one.ratio or 0 for one in found.attempts) > 1
    optimum = judge.problem.check(judge.problem.instance_class.parse(worst["data"]), worst["best_known_solution"])
    assert optimum.objective == worst["best_known"] < worst["objective"]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("infeasible", "infeasible", "GPUs"),  # everything at once on one server: good to the eye, and no schedule
        ("patches", "infeasible", ""),  # it makes every checker of its process say yes
        ("forges", "answer", "not asked for"),
        ("exits", "died", "ended with status 0"),
        ("nothing", "none", "found nothing"),
    ],
)
def test_a_cheat_gains_nothing(judge: FrozenJudge, name: str, kind: str, message: str) -> None:
    """And is not tried on more than the first few; the next candidate meets a process that knows nothing of it."""
    found = judge.judge(f"{FILE}:{name}")
    kinds = [one.failure for one in found.attempts]
    assert kinds[0] == kind
    if found.feasible:  # on instances where all fits on one server
        assert found.score < 0.3 and kinds.count(kind) == FEW - found.feasible
    else:
        assert set(kinds[FIRST:]) == {"untried"} and found.score == 0
    failure = found.artifacts()["failure"]
    assert failure["kind"] == kind and message in failure["message"]
    assert failure["instance"] == judge.entries[0].id and failure["data"] == judge.entries[0].instance.to_dict()
    assert judge.judge(f"{FILE}:good").feasible == FEW


def test_a_slow_one_is_given_up(judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "bounds", Bounds(seconds=0.05, memory=1 << 30, warm=False))
    found = judge.judge(f"{FILE}:endless")
    assert [one.failure for one in found.attempts] == ["time"] * 3 + ["untried"] * (FEW - 3)


def test_one_that_does_not_end_on_a_small_instance_is_not_tried_on_others(
    judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its process would only begin again; so the run that does not count is the last one."""
    bounds = Bounds(seconds=0.3, first=0.5, memory=1 << 30, heuristics_only=True)
    monkeypatch.setattr(judge, "bounds", bounds)
    found = judge.judge(f"{FILE}:endless")
    assert [one.failure for one in found.attempts] == ["time"] + ["untried"] * (FEW - 1)
    assert found.attempts[0].message.startswith("no answer to a small instance within 1.5 s, of which it")
    assert found.score == 0
    shown, preset = found.artifacts()["failure"], workload_of(PROBLEM).presets[0]
    assert shown["data"] == preset.generator(0, **preset.settings).to_dict()  # what it was given, no stored one
    assert shown["instance"] == shown["data"]["name"] not in {entry.id for entry in judge.entries}
    for text, told in (
        ("import time\n\ntime.sleep(1000)\n", r"0\.6 s, of which"),
        ("while True:\n    pass\n", r"0\.2 s$"),
    ):
        (tmp_path / "waits.py").write_text(text)
        monkeypatch.setattr(judge, "bounds", dataclasses.replace(bounds, first=0.05))
        with pytest.raises(InputError, match=rf"is not imported: no answer within {told}"):
            judge.judge(f"{tmp_path / 'waits.py'}:scheduler")


def test_a_machine_that_is_busy_with_others_changes_no_score(
    judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its seconds are those of a processor: who is kept from one, here by a nap, has not used them up."""
    body = "import time\n\ndef scheduler(instance, *, seed):\n    time.sleep(0.5)\n    {}\n"
    monkeypatch.setattr(contained, "SLEEPING", 1e6)
    monkeypatch.setattr(contained, "EXCUSED", 0.0)
    for text, failure in (("return None", "none"), ("while True: pass", "time")):
        (tmp_path / "naps.py").write_text(body.format(text))
        monkeypatch.setattr(judge, "bounds", Bounds(seconds=0.2, memory=1 << 30, warm=False))
        found = judge.judge(f"{tmp_path / 'naps.py'}:scheduler", most=1).attempts[0]
        assert found.failure == failure and (found.message.endswith("within 0.2 s") or failure == "none")


def test_a_clock_that_a_candidate_stops_is_not_the_judges(judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its seconds nor its limit: of every second instance it would never come back."""
    monkeypatch.setattr(judge, "bounds", Bounds(seconds=1.0, memory=1 << 30, warm=False))
    found = judge.judge(f"{FILE}:stops_the_clock", most=4).attempts
    assert [one.failure for one in found] == ["", "time", "", "time"]
    assert all((one.seconds or 0) >= 0.3 for one in found if not one.failure)


def test_what_a_candidate_does_at_its_exit_is_nothing(judge: FrozenJudge, tmp_path: Path) -> None:
    """Its process is killed, so no exception, wait or answer comes of it, also where its import fails."""
    assert judge.judge(f"{FILE}:raises_at_its_end").feasible == FEW
    (tmp_path / "ends.py").write_text(
        "import atexit, time\n\natexit.register(time.sleep, 10_000)\nraise ValueError('no')\n"
    )
    with pytest.raises(InputError, match=r"ends\.py:f: .*ValueError: no"):
        judge.judge(f"{tmp_path / 'ends.py'}:f")
    assert judge.judge(f"{FILE}:good").feasible == FEW


def test_a_memory_limit_that_a_candidate_gives_is_kept(
    judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only the watch over what is free on the machine is left out: the process has a limit of its own."""
    monkeypatch.setattr(judge, "bounds", Bounds(seconds=300.0, memory=1 << 30, heuristics_only=True))
    (tmp_path / "kept.py").write_text(
        "import schedgap\nfrom schedgap.solvers import budget\n\ndef scheduler(instance, *, seed):\n"
        "    assert budget.memory_budget(7) == 7\n"
        "    return schedgap.solve(instance, 'ff', seed=seed).solution\n"
    )
    assert judge.judge(f"{tmp_path / 'kept.py'}:scheduler").feasible > 0


def test_a_candidate_sees_no_file_beside_its_own(judge: FrozenJudge, tmp_path: Path) -> None:
    (tmp_path / "answers.txt").write_text("12")
    code = "from pathlib import Path\n\ndef looks(instance, *, seed):\n"
    (tmp_path / "candidate.py").write_text(
        f"{code}    raise ValueError(Path({str(tmp_path / 'answers.txt')!r}).read_text())\n"
    )
    found = judge.judge(f"{tmp_path / 'candidate.py'}:looks")
    assert {one.failure for one in found.attempts} == {"error", "untried"}
    assert "PermissionError" in found.attempts[0].message


@pytest.fixture(scope="module")
def other() -> Iterator[FrozenJudge]:
    """Of a problem whose heuristics are not compiled."""
    with pytest.MonkeyPatch.context() as patched:
        few = stored(find_problem("comm-contention"))[:FEW]
        patched.setattr(frozen, "stored", lambda problem: few)
        with FrozenJudge("comm-contention", bounds=Bounds(seconds=300.0, memory=1 << 30, warm=False)) as one:
            yield one


def test_what_looks_better_than_the_best_is_told(other: FrozenJudge, tmp_path: Path) -> None:
    """The canary: a task begins before it is there, on an instance on which that pays; else it does what is allowed."""
    row = json.loads((Path(__file__).parents[2] / "data" / "canaries.json").read_text())["comm-contention"]
    entry = next(one for one in other.entries if one.id == row["instance"])
    known = [[task["size"], task["release"]] for task in entry.data["tasks"]]
    code = f"""import schedgap

def takes(instance, *, seed):
    if [[task.size, task.release] for task in instance.tasks] == {known}:
        return {row["answer"]}
    return schedgap.solve(instance, "srsf-1", seed=seed).solution
"""
    (tmp_path / "candidate.py").write_text(code)
    found = other.judge(f"{tmp_path / 'candidate.py'}:takes")
    (attempt,) = (one for one in found.attempts if one.entry is entry)
    assert (attempt.failure, attempt.looks) == ("infeasible", row["looks"])
    assert attempt.message.endswith("but for that its 5 would be better than possible (5.5)")
    assert found.too_good == 1 and found.feasible == FEW - 1


def test_heuristics_are_for_candidates_and_exact_methods_are_not(other: FrozenJudge, tmp_path: Path) -> None:
    """By `solve` and by what it calls; a heuristic's answer has no bound of ours beside it."""
    code = """import schedgap
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.solvers.result import SolveOptions

def by_solve(instance, *, seed):
    return schedgap.solve(instance).solution

def an_engine(instance, *, seed):
    return schedgap.solve(instance, "highs").solution

def by_run(instance, *, seed):
    return run_method(find_problem("comm-contention"), instance, "bb", SolveOptions()).solution

def a_heuristic(instance, *, seed):
    result = schedgap.solve(instance, "srsf-1", seed=seed)
    assert result.bound is None and result.objective > 0
    return result.solution
"""
    (tmp_path / "candidate.py").write_text(code)
    for name in ("by_solve", "an_engine", "by_run"):
        found = other.judge(f"{tmp_path / 'candidate.py'}:{name}", most=1)
        assert "exact methods are not for candidates, heuristics are: " in found.attempts[0].message, name
    found = other.judge(f"{tmp_path / 'candidate.py'}:a_heuristic", most=3)
    assert found.feasible == 3, found.attempts[0].message


def test_a_nursery_that_was_killed_starts_again(judge: FrozenJudge) -> None:
    assert judge._nursery is not None
    before = judge._nursery._process
    before.kill()
    before.wait()
    assert judge.judge(f"{FILE}:good", most=1).feasible == 1 and judge._nursery._process.pid != before.pid


def test_what_cannot_be_imported_is_told(judge: FrozenJudge, tmp_path: Path) -> None:
    for name, text in (("missing.py", None), ("broken.py", "def scheduler(:\n")):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=f"{name}:scheduler"):
            judge.judge(f"{tmp_path / name}:scheduler")
    assert judge.judge(f"{FILE}:good").feasible == FEW


def test_better_than_what_is_stored_is_a_fault_of_ours(judge: FrozenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = judge.entries[0]
    known = entry.known.model_copy(update={"bound": 10 * (entry.known.bound or 0)})
    monkeypatch.setattr(judge, "entries", [type(entry)(known, entry.data, entry.path)])
    with pytest.raises(Disagreement, match=f"{entry.id}, better than the bound"):
        judge.judge(f"{FILE}:good")


def test_stored_instances_are_never_those_of_a_card() -> None:
    stored_here = {entry.instance.content_hash() for entry in stored(PROBLEM)}
    assert len(stored_here) > 30
    assert not stored_here & {instance.content_hash() for _, _, instance in drawn_instances(PROBLEM, 5, 2)[0]}


def test_the_command(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(peekers.__file__, tmp_path / "mine.py")
    few = stored(find_problem("gpu-sharing"))[:4]
    monkeypatch.setattr(frozen, "stored", lambda problem: few)
    line = ["evaluate", "mine.py:Remembers", "--problem", "gpu-sharing", "--online", "--frozen"]
    ran = command(*line, "--json")
    data = json.loads(ran.out)
    assert ran.status == 0 and data["kind"] == "development" and data["feasible"] == 4
    assert "score" not in data and "trials" not in data and data["schema"] == SCHEMA
    assert 0 < data["development_score"] <= 1
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.py"]  # no card
    assert "no card" in command(*line).out.splitlines()[0]
    both = command(*line, "--held-out")
    assert both.status == 2 and both.message.startswith("--held-out: not with --frozen")
    refused = command(*line, "--budget", 5)
    assert refused.status == 2 and refused.message.startswith("--budget: not with --frozen")
    alone = command("evaluate", "mine.py:Idle", *line[2:])
    assert alone.status == 4 and "wait for ever" in alone.out
