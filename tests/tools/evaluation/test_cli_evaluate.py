"""A foreign scheduler in a process of its own: hostile ones fail and harm nothing; the card says what is true."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import foreign
from support.browser import BROWSER, looked_at
from support.command import Command
from support.kernel import kernel_helps
from support.work import wait_until

import schedgap
from schedgap import InputError
from schedgap.benchmarks.hunt import run as hunts
from schedgap.benchmarks.hunt import target as targets
from schedgap.benchmarks.hunt.result import Hunted
from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.sweep import progress
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.method import users_file
from schedgap.catalogue.rar_ddls import PROBLEM
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.run import run_method
from schedgap.catalogue.workload import Preset, Workload
from schedgap.solvers.result import SolveOptions
from schedgap.tools.evaluation import run as runs
from schedgap.tools.evaluation.card import Card, Trial
from schedgap.tools.evaluation.contained import Bounds, Contained, Failed

FILE = Path(foreign.__file__)
PAGE = Path(__file__).parents[3] / "docs" / "evaluating.md"
INSTANCE = make_instance(PROBLEM, "tiny", 0, {"ample": True})
BOUNDS = Bounds(seconds=300.0, memory=1 << 30, warm=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim.txt").write_text("as it was")
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "card.json").write_text('{"optimum": 7}')
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run.sqlite").write_text("the store of a run")
    (tmp_path / "hunts").mkdir()
    (tmp_path / "hunts" / "journal.jsonl").write_text("{}")
    (tmp_path / "hunts" / "worst.json").write_text('{"reference_hunt": {"optimum": 7}}')
    return tmp_path


def group_is_gone(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    # What was killed and is not yet waited for by its new parent still has its group.
    return all(state(int(entry.name)) in ("Z", "") for entry in Path("/proc").iterdir() if group(entry) == leader)


def group(entry: Path) -> int:
    try:
        return os.getpgid(int(entry.name))
    except (ValueError, ProcessLookupError):
        return -1


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


PATIENCE = 300.0
"""Seconds that no answer takes."""


def untouched(folder: Path) -> bool:
    return (folder / "victim.txt").read_text() == "as it was" and {path.name for path in folder.iterdir()} == {
        *("victim.txt", "evaluation", "results", "hunts")
    }


@pytest.mark.parametrize(
    ("name", "kind", "message", "seconds"),
    [
        ("prints", "answer or error", "", PATIENCE),  # whether it meets the pipe depends on which descriptors are open
        ("forges", "answer", "not asked for", PATIENCE),
        ("forks", "time", "no answer within", 0.5),
        ("eats", "memory", "MemoryError", PATIENCE),
        ("endless", "time", "no answer within 1.5 s, of which it worked less than 0.5 s", 0.5),
        ("exits", "died", "its process ended with status 0", PATIENCE),
        ("huge", "answer", "at most 16777216 are taken", PATIENCE),
        ("hoards", "files", "its folder has more than 10000 entries, 1024 MB or paths of 1000 letters", PATIENCE),
        ("nests", "files", "paths of 1000 letters", PATIENCE),
        ("hides", "files", "its folder has more than", PATIENCE),
    ],
)
def test_a_hostile_scheduler_fails_and_harms_nothing(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    message: str,
    seconds: float,
) -> None:
    tmp_path = tmp_path_factory.mktemp("work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Contained(f"{FILE}:{name}", PROBLEM, Bounds(seconds, BOUNDS.memory, warm=False)) as contained:
        with pytest.raises(Failed) as caught:
            contained(INSTANCE, seed=0)
        leader = None if contained._process is None else contained._process.pid
    assert caught.value.kind in kind.split(" or ") and message in str(caught.value)
    assert untouched(folder)
    assert leader is None or group_is_gone(leader)
    assert contained._folder == "" and not list(tmp_path.iterdir())


def test_nothing_is_left_of_it_when_its_parent_is_killed(tmp_path: Path) -> None:
    """By kill -9, while the scheduler computes without end."""
    code = """
        import os, signal, threading
        from support import foreign
        from schedgap.tools.evaluation.contained import Bounds, Contained
        from schedgap.benchmarks.instances import make_instance
        from schedgap.catalogue.rar_ddls import PROBLEM
        contained = Contained(f"{foreign.__file__}:endless", PROBLEM, Bounds(seconds=600.0, warm=False))
        contained._start()
        print(contained._process.pid, flush=True)
        threading.Thread(target=contained, args=(make_instance(PROBLEM, "tiny", 0),), kwargs={"seed": 0}).start()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    paths = os.pathsep.join([str(FILE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: group_is_gone(int(done.stdout)))
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_what_its_process_survives_is_told_and_harms_nothing(folder: Path) -> None:
    messages = {
        "nan": "ValueError",
        "reads": "may not read",
        "text": "must return a solution object or None, got str",
    }
    bounds = Bounds(PATIENCE, BOUNDS.memory, closed=(folder / "evaluation",), warm=False)
    with Contained(f"{FILE}:in_turn", PROBLEM, bounds) as contained:
        for number, name in enumerate(foreign.SURVIVED):
            if name in KERNEL and not kernel_helps("restrict('/tmp', ['/'])"):
                continue
            with pytest.raises(Failed) as caught:
                contained(INSTANCE, seed=number)
            assert messages.get(name, "could not write") in str(caught.value), name
            assert untouched(folder), name


KERNEL = ("writes_in_c", "patches_the_watch", "patches_the_fence")
"""What only the kernel can stop."""


@pytest.mark.skipif(not kernel_helps("refuse_calls()"), reason="the kernel has no seccomp")
def test_machine_code_reaches_no_other_process_and_changes_no_rights(folder: Path) -> None:
    before = (folder / "victim.txt").stat()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as victim:
        with Contained(f"{FILE}:reaches_out", PROBLEM, BOUNDS) as contained, pytest.raises(Failed) as caught:
            contained(INSTANCE, seed=victim.pid)
        victim.kill()
    assert str(caught.value).startswith("OSError: could: (foreign.py, line ")
    assert (folder / "victim.txt").stat() == before


ANSWERS = """
import json
from pathlib import Path

def answers(instance, *, seed):
    here = Path(__file__), Path("SCHEDULER")
    for place in (folder for file in here for folder in (file.parent, file.parents[1])):
        try:
            return json.loads((place / "answer.json").read_text())
        except OSError:
            continue
    raise LookupError("no answer lies there")
"""


def test_a_scheduler_sees_nothing_that_lies_beside_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator keeps scheduler, instance, log and solution in one folder; a package is seen as a whole."""
    best = run_method(PROBLEM, INSTANCE, "cp", SolveOptions()).solution
    monkeypatch.chdir(folder)
    package = folder / "judged_package"
    package.mkdir()
    for place in (folder, package):
        (place / "answer.json").write_text(json.dumps(best))
    for home in (folder, package):
        (home / "mine.py").write_text(ANSWERS.replace("SCHEDULER", str(home / "mine.py")))
    with Contained(f"{folder / 'mine.py'}:answers", PROBLEM, BOUNDS) as contained, pytest.raises(Failed) as failed:
        contained(INSTANCE, seed=0)
    assert "no answer lies there" in str(failed.value)
    (package / "answer.json").unlink()
    with Contained("judged_package.mine:answers", PROBLEM, BOUNDS) as contained, pytest.raises(Failed) as failed:
        contained(INSTANCE, seed=0)
    assert "no answer lies there" in str(failed.value)


def test_a_scheduler_may_use_threads_and_the_modules_of_its_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FILE.parents[1]), prepend=os.pathsep)
    monkeypatch.chdir(folder)
    (folder / "judged").mkdir()
    (folder / "judged" / "beside.py").write_text("from support.foreign import threads\n")
    lazy = (
        "def lazy(instance, *, seed):\n    from judged import beside\n    return beside.threads(instance, seed=seed)\n"
    )
    (folder / "judged" / "lazy.py").write_text(lazy)
    with Contained("judged.lazy:lazy", PROBLEM, BOUNDS) as contained:
        solution = contained(INSTANCE, seed=0)
    assert solution is not None and PROBLEM.check(INSTANCE, solution).feasible
    for line in ("import beside", "def late(instance, *, seed):\n    import beside"):
        (folder / "judged" / "alone.py").write_text(f"{line}\n")
        with (
            Contained(f"{folder / 'judged' / 'alone.py'}:late", PROBLEM, BOUNDS) as contained,
            pytest.raises((Failed, InputError)) as failed,
        ):
            contained(INSTANCE, seed=0)
        assert "No module named 'beside'" in str(failed.value)
        assert "a file is judged alone: name a package (package.module:function)" in str(failed.value)


def test_a_scheduler_may_call_a_shipped_heuristic(folder: Path) -> None:
    """By the API, which must not load the library, that it may not read."""
    with Contained(f"{FILE}:shipped", PROBLEM, Bounds(PATIENCE, warm=False)) as contained:
        solution = contained(INSTANCE, seed=0)
    assert solution is not None and PROBLEM.check(INSTANCE, solution).feasible


def test_patching_the_checker_reaches_nobody_and_answers_are_checked_outside(folder: Path) -> None:
    with Contained(f"{FILE}:patches", PROBLEM, BOUNDS) as contained:
        solution = contained(INSTANCE, seed=0)
        assert solution is not None and PROBLEM.check(INSTANCE, solution).violations
    with Contained(f"{FILE}:good", PROBLEM, BOUNDS) as contained:
        for seed in (0, 1):
            solution = contained(INSTANCE, seed=seed)
            assert solution is not None and PROBLEM.check(INSTANCE, solution).feasible
        assert contained.seconds is not None and contained.peak is not None and contained.peak > 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One family, two heuristics, no warm-up: a card in seconds."""
    from schedgap.benchmarks.instances.rar_ddls.random import tiny

    monkeypatch.setattr(PROBLEM, "workload", lambda: Workload((Preset("tiny", "", tiny, {"ample": True}),)))
    kept = tuple(m for m in PROBLEM.methods if m.id in ("cp", "ls", "lpt-colocate"))
    monkeypatch.setattr(PROBLEM, "methods", kept)
    monkeypatch.setattr(runs, "EVALUATIONS", 20)
    monkeypatch.setattr("schedgap.tools.evaluation.contained.Bounds", partial(Bounds, warm=False))


def test_the_card_of_a_scheduler(command: Command, folder: Path, small: None) -> None:
    claims = (
        "from schedgap.heuristics.common.guarantee import Guarantee, at_most, not_applicable\n"
        "def twice(case):\n"
        "    if case.objective is None or case.optimum is None:\n"
        "        return not_applicable('needs both')\n"
        "    return at_most(case.objective, case.optimum)\n"
        f"CLAIMS = [Guarantee('opt', 'rar-ddls', 'mine', 'C <= OPT', 'none', twice, {f'{FILE}:good'!r})]\n"
    )
    (folder / "claims.py").write_text(claims)
    arguments = (f"{FILE}:good", "--problem", "rar-ddls", "--instances", "3", "--claims", "claims.py")
    # The default limit of each instance is too short on a busy machine.
    arguments += ("--workers", "1", "--time-limit", "600")
    ran = command("evaluate", *arguments, "--out", "card", "--json")
    assert ran.status == 0, ran.err
    data = json.loads(ran.out)
    assert json.loads((folder / "card" / "card.json").read_text()) == data
    assert (data["schema"], data["instances"], data["feasible"], data["failures"]) == (1, 3, 3, {})
    assert f"seed {data['seed']}, drawn anew" in ran.err and not data["seed_chosen"]
    assert 0 < data["score"] <= 1
    keys = PAGE.read_text().split("## The JSON form")[1].split("\n## ")[0]
    documented = re.findall(r"`(\w+)", "".join(re.findall(r"^\| (`.*?) \|", keys, re.MULTILINE)))
    assert set(data) == set(documented)
    ratios = [trial["objective"] / trial["optimum"] for trial in data["trials"]]
    assert [trial["ratio"] for trial in data["trials"]] == pytest.approx(ratios)
    assert data["score"] == pytest.approx(sum(1 / ratio for ratio in ratios) / 3)
    assert data["ratio"]["optimum"]["worst"] == pytest.approx(max(ratios))
    assert {row["method"] for row in data["against"]} == {"ls", "lpt-colocate"}
    assert all(row["better"] + row["equal"] + row["worse"] == row["both"] == 3 for row in data["against"])
    assert [row["own_mean_ratio"] for row in data["against"]] == 2 * [pytest.approx(sum(ratios) / 3)]
    (claim,) = data["claims"]
    # Its hunt's worst instance counts too: a claim that it refutes is not held.
    assert claim["refuted"] == sum(ratio > 1 + 1e-9 for ratio in [*ratios, data["worst"]["ratio"]])
    assert claim["held"] + claim["refuted"] == 4
    assert data["worst"]["ratio"] >= 1 and Path(data["worst"]["file"]).is_file()
    page = (folder / "card" / "card.html").read_text()
    if BROWSER is not None:
        looked_at({folder / "card" / "card.html": 1}, folder / "profile")
    assert "score" in page and "Against the shipped methods" in page
    assert page.count(" to the optimum</title>") == 3  # a dot an instance
    for family in data["families"]:
        kept = schedgap.load(folder / "card" / "worst" / f"{family}.json")
        assert kept.content_hash() in {one["instance"] for one in data["trials"] if one["family"] == family}


def test_nothing_tells_the_seed_until_the_scheduler_has_run(
    folder: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of progress may go to a file that it can read; and there are too many seeds to try."""
    lines: list[str] = []
    before: list[str] = []
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    judged = Contained.judged
    monkeypatch.setattr(Contained, "judged", lambda *given: (before.extend(lines), judged(*given))[1])
    told = {"problem": "rar-ddls", "instances": 2, "workers": 1, "time_limit": 600.0, "budget": 0.1}
    card = schedgap.evaluate(f"{FILE}:good", **told, out="drawn", progress=lines.append)
    assert before and not re.search(r"\d{7}", "".join(before))
    assert any(f"--seed {card.seed} repeats" in line for line in lines)
    assert 9e9 <= min(trial.seed for trial in card.trials) <= max(trial.seed for trial in card.trials) < 2**53
    again = schedgap.evaluate(f"{FILE}:good", **told, out="chosen", seed=card.seed)
    assert [trial.instance.content_hash() for trial in again.trials] == [
        trial.instance.content_hash() for trial in card.trials
    ]
    assert "the seed was given" in again.to_text() and "given" not in card.to_text().splitlines()[1]


def test_a_card_of_one_that_earns_nothing() -> None:
    """Its ratio is infinite: no number of JSON, and in no mean beside another's."""
    problem = all_problems()["g-vne"]
    known = Agreement(4.0, 4.0, False, ())
    trials = [Trial("tiny", 0, INSTANCE, 0.0, "", "", 0.5, known, {"greedy": 2.0, "other": None})]
    trials.append(replace(trials[0], seed=1, objective=2.0))
    card = Card("mine.py:f", problem, 0, trials)
    data = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert data["ratio"]["optimum"] == {
        "count": 2,
        "mean": "inf",
        "median": "inf",
        "p90": "inf",
        "worst": "inf",
        "half": None,
    }
    assert data["score"] == 0.25
    greedy, other = data["against"]
    assert (greedy["worse"], greedy["equal"], greedy["both"]) == (1, 1, 1)
    assert greedy["mean_ratio"] == greedy["own_mean_ratio"] == 2.0
    assert (other["better"], other["both"], other["mean_ratio"], other["own_mean_ratio"]) == (2, 0, None, None)
    text = card.to_text()
    assert "worst drawn: ratio inf" in text and "inf: it has value 0 where more is possible." in text
    assert "bounds" not in text.replace("certified bounds", "")


def test_a_scheduler_that_fails_everywhere_scores_0(command: Command, folder: Path, small: None) -> None:
    for name, failure in (("infeasible", "infeasible"), ("nothing", "none"), ("whispers", "error")):
        arguments = ("--problem", "rar-ddls", "--instances", "2", "--workers", "1", "--json", "--out", name)
        ran = command("evaluate", f"{FILE}:{name}", *arguments)
        assert ran.status == 4, ran.err
        data = json.loads(ran.out)
        assert data["score"] == 0 and data["failures"] == {failure: 2}
        printed = ran.out + ran.err + "".join(path.read_text("utf-8") for path in Path(name).glob("card.*"))
        assert "\x1b" not in printed and "\x07" not in printed and "Traceback" not in printed
        assert name != "whispers" or "red" in printed  # the message is there, made harmless
    ran = command("evaluate", f"{FILE}:absent", "--problem", "rar-ddls", "--out", "x")
    assert ran.status == 2 and "has no function 'absent'" in ran.err.splitlines()[-1] and "Traceback" not in ran.err


def test_ctrl_c_in_its_hunt_leaves_no_card_that_looks_whole(
    command: Command, folder: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed one left of a hunt is set aside, and the repetition has the same card as one that nobody killed."""
    options = ("--instances", "1", "--workers", "1", "--time-limit", "600", "--seed", "0", "--json")
    arguments = ("evaluate", f"{FILE}:good", "--problem", "rar-ddls", *options)
    whole = json.loads(command(*arguments, "--out", "whole").out)
    hunts, real = iter((False, True)), runs.hunt

    def interrupted(*given: object, **named: object) -> Hunted:
        hunted = real(*given, **named)  # type: ignore[arg-type]
        return replace(hunted, finished=next(hunts))

    monkeypatch.setattr(runs, "hunt", interrupted)
    ran = command(*arguments, "--out", "card")
    assert ran.status == 130 and json.loads(ran.out)["feasible"] == 1
    assert sorted(path.name for path in (folder / "card").iterdir()) == ["hunt"]
    again = json.loads(command(*arguments, "--out", "card").out)
    assert sorted(path.name for path in (folder / "card").iterdir()) == [
        "card.html",
        "card.json",
        "hunt",
        "hunt-unfinished-1",
        "worst",
    ]
    assert again["worst"]["ratio"] == whole["worst"]["ratio"] and again["worst"]["file"] == "card/hunt/worst.json"


def test_the_budget_of_its_hunt_is_kept_whatever_its_parts_take(
    folder: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that only the scheduler and the exact method move: each takes long, and no longer than it may."""
    now = [0.0]
    pool_of = hunts.pool_of

    def pool_with_a_clock(*arguments: Any, **more: Any) -> Any:
        pool = pool_of(*arguments, **more)
        pool.clock = lambda: now[0]
        return pool

    def costing(real: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            left = arguments[3].deadline.remaining()
            assert left is not None
            now[0] += min(seconds, left) + 1e-6
            taken.append(min(seconds, left))
            return real(*arguments, **named)

        return run

    taken: list[float] = []
    monkeypatch.setattr(hunts, "pool_of", pool_with_a_clock)
    monkeypatch.setattr(targets, "run_heuristic", costing(targets.run_heuristic, 0.02))
    monkeypatch.setattr(targets, "run_method", costing(targets.run_method, 0.3))
    card = schedgap.evaluate(
        f"{FILE}:good", "rar-ddls", budget=1.0, instances=1, workers=1, seed=0, out="card", time_limit=600.0
    )
    assert card.hunted is not None and card.hunted.finished and card.hunted.found is not None
    assert 0.85 < now[0] <= 1 + 1e-3 and max(taken) == 0.3


def test_its_hunt_promises_no_option_that_it_has_not(
    command: Command, folder: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget that ends while the worst instance is made smaller: ``evaluate`` has no ``--resume``."""

    def late(*_: object) -> None:
        raise hunts._Late

    monkeypatch.setattr(hunts, "shrunk", late)
    options = ("--instances", "1", "--workers", "1", "--seed", "0")
    ran = command("evaluate", f"{FILE}:good", "--problem", "rar-ddls", *options)
    assert ran.status == 0 and "hunt: the budget ended the shrinking" in ran.err and "--resume" not in ran.err


def test_a_fault_of_a_shipped_method_ends_the_evaluation(
    command: Command, folder: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no instance without an optimum, which a mean would leave out."""

    def fails(*_: object) -> None:
        raise ArithmeticError("no")

    monkeypatch.setattr(runs, "run_method", fails)
    arguments = ("--problem", "rar-ddls", "--instances", "1", "--workers", "1", "--time-limit", "600", "--out", "x")
    ran = command("evaluate", f"{FILE}:nothing", *arguments, "--seed", "7")
    assert ran.status == 5 and ran.err.splitlines()[-1].endswith(" 7000000: ArithmeticError: no")


@pytest.mark.parametrize("kind", ["heuristic", "problem"])
def test_a_new_package_passes_its_own_tests(command: Command, folder: Path, kind: str) -> None:
    ran = command("new", kind, "mine")
    assert ran.status == 0 and "pyproject.toml" in ran.out
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine"], capture_output=True, text=True
    )
    assert tested.returncode == 0, tested.stdout
    module = users_file(folder / "mine" / "src" / "mine" / "__init__.py")
    if kind == "heuristic":  # on the instance of the README, too, it finds something
        instance = make_instance(PROBLEM, "small", 2)
        assert PROBLEM.check(instance, module.mine(instance, seed=0)).feasible
    else:  # its exact method tells no seconds
        assert run_method(module.PROBLEM, module.generate(0), "exhaustive", SolveOptions()).seconds is not None
    assert "is there already" in command("new", kind, "mine").message
    assert "must be of small letters" in command("new", kind, "My-Thing").message


def test_check_scheduler_says_what_is_wrong_and_where() -> None:
    for function, message in (
        (foreign.infeasible, r"infeasible on rar-ddls, family \w+, seed 0: not feasible: "),
        (foreign.text, "must return a solution object .a dict. or None, got str"),
        (lambda instance: None, "cannot be called as <lambda>.instance, seed=0.: got an unexpected keyword"),
        (foreign.exits_not, "raised KeyError: 'gpus'"),
        (foreign.random, "two runs with the same seed differ"),
    ):
        with pytest.raises(InputError, match=message):
            schedgap.check_scheduler(function, "rar-ddls")


@schedgap.parametrize_with_checks([foreign.nothing], "rar-ddls")
def test_a_scheduler_that_finds_nothing_is_one(check: Callable[[], None]) -> None:
    check()
