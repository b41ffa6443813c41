"""``evaluate --online``: a stranger's policy is told what has happened, and cannot find out more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import peekers
from support.command import Command

import schedgap
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.tools.evaluation.contained import Bounds, Failed
from schedgap.tools.evaluation.online import ContainedPolicy, adversary
from schedgap.tools.online.policies import Fifo, Srtf
from schedgap.tools.online.replay import replay_here, world_of

PROBLEM = find_problem("gpu-sharing")
PATIENCE = 300.0


def instance_of(rows: list[tuple[int, int, int]], gpus: int) -> GpuSharingInstance:
    """Jobs of (arrival, GPUs, slots) on one server."""
    jobs = [
        {
            **{"id": f"j{n}", "arrival": arrival, "gpus": size, "iterations": slots, "batch_size": 1, "overlap": 1.0},
            "compute": {"fixed": 1.0, "per_sample": 0.0},
            "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
            "memory": {"fixed": 1.0, "per_sample": 0.0},
        }
        for n, (arrival, size, slots) in enumerate(rows)
    ]
    data = {"problem": "gpu-sharing", "name": "by-hand", "horizon": 9000, "slot_length": 1.0, "jobs": jobs}
    servers = [{"id": "s0", "gpus": gpus}]
    return GpuSharingInstance.parse({**data, "servers": servers, "gpu_memory": 1.0, "max_jobs_per_gpu": 1})


SECRET = instance_of([(1, 2, int(peekers.secret())), (5, 1, 7)], 2)


def secret_of(problem: str) -> Instance:
    """Two jobs; the first is as long as the secret says, or the second, who has not come, may be."""
    if problem == "gpu-sharing":
        return SECRET
    data = schedgap.generate(problem, "tiny", seed=1).to_dict()
    first, second = data["jobs"] = data["jobs"][:2]
    begin = 0.0 if problem == "ddl-cluster" else 1
    first["arrival"], second["arrival"] = begin, begin + 3
    if problem == "ddljs":
        second["budget"] = {"gpu": float(peekers.secret())}
    else:
        first["epochs" if problem == "hadar" else "iterations"] = int(peekers.secret())
    return find_problem(problem).instance_class.parse({**data, **({"horizon": 9000} if "horizon" in data else {})})


PROBLEMS = ("gpu-sharing", "hadar", "ddljs", "ddl-cluster")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policies' folder, with an instance in it and a link to it."""
    folder = tmp_path_factory.mktemp("policies")
    shutil.copy(peekers.__file__, folder / "peekers.py")
    (folder / "secret.json").write_text(SECRET.to_json())
    (folder / "link.json").symlink_to(folder / "secret.json")
    return folder


def contained(place: Path, name: str, seconds: float = PATIENCE, problem: str = "gpu-sharing") -> ContainedPolicy:
    bounds = Bounds(seconds, 1 << 30, closed=[place / "secret.json"], warm=False)
    return ContainedPolicy(f"{place / 'peekers.py'}:{name}", find_problem(problem), bounds)


@pytest.fixture(scope="module", params=PROBLEMS)
def peeked(place: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """What each way to peek came to, all in one process."""
    found = {}
    instance = secret_of(request.param)
    (place / "secret.json").write_text(instance.to_json())
    with contained(place, "Peeker", problem=request.param) as policy:
        for _ in peekers.PEEKS:
            with pytest.raises(Failed) as caught:
                policy(instance, seed=0)
            assert caught.value.kind == "error"
            name, _, outcome = str(caught.value).removeprefix("RuntimeError: ").partition(": ")
            found[name] = outcome
    yield found


@pytest.mark.parametrize("name", peekers.PEEKS)
def test_whoever_peeks_is_refused_or_finds_nothing(peeked: dict[str, str], name: str) -> None:
    refused = {f"the_file_{how}" for how in ("of_the_instance", "by_a_link", "by_another_name_of_its_folder")}
    refused |= {"the_memory_of_the_judge", "the_environment_of_the_judge", "the_library_of_records"}
    assert peeked[name].startswith("refused") if name in refused else peeked[name].startswith("nothing")


def test_the_peeks_would_find_it_where_nothing_is_kept_from_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where the instance is: the file is read, and frames and memory hold the length."""
    monkeypatch.setattr(peekers, "__file__", str(place / "peekers.py"))
    length = int(peekers.secret())
    held = [length]
    for name in ("the_file_of_the_instance", "the_file_by_a_link", "objects_in_memory", "frames_of_its_callers"):
        assert peekers.PEEKS[name](None), name
    assert held


LATE = """
import sys

class Late:
    def decide(self, state):
        return [("start", job.id) for job in state.waiting.values() if job.gpus <= state.free][:1]

served = sys.modules["__main__"]._Served
plain = served.answer

def answer(self, request):
    if not set(request) - {"token"}:
        raise RuntimeError("an empty message: its answer would be late, and the time of decisions the pipe's")
    return plain(self, request)

served.answer = answer
"""


def test_the_pipes_time_is_measured_before_the_policy_is_there(tmp_path: Path) -> None:
    """One that knows the judge's messages answers empty ones late: no such message comes."""
    (tmp_path / "late.py").write_text(LATE)
    with ContainedPolicy(f"{tmp_path / 'late.py'}:Late", PROBLEM, Bounds(PATIENCE, warm=False)) as policy:
        assert policy(SECRET, seed=0) is not None
    assert policy.overhead is not None and policy.overhead > 0


def test_a_clock_that_a_policy_stops_is_not_the_judges(place: Path) -> None:
    with contained(place, "StopsTheClock") as policy:
        policy(SECRET, seed=0)
        assert len(policy.runs[0].seconds) == 3 and min(policy.runs[0].seconds) >= 0.05
        assert policy.seconds is not None and policy.seconds >= 0.1


@pytest.mark.parametrize(
    ("name", "kind", "message", "seconds"),
    [
        ("Early", "action", "slot 1: start of job 1: it does not wait", PATIENCE),
        ("Shrinks", "action", "slot 1: start of job 0: it needs 2 different GPUs, 1 are named", PATIENCE),
        ("Preempts", "action", "slot 1: preempt of job 0: jobs run through", PATIENCE),
        ("Forges", "answer", "not asked for", PATIENCE),
        ("Idle", "action", "slot 5: 2 jobs wait for ever", PATIENCE),
        ("Wakes", "time", "no answer within", 0.5),
        ("Endless", "time", "no answer within 1.5 s, of which it worked less than 0.5 s", 0.5),
        ("Exits", "died", "ended with status 3", PATIENCE),
        ("Forever", "memory", "MemoryError", PATIENCE),
        ("Far", "action", "must be later, and before", PATIENCE),
        ("Deep", "error", "RecursionError", PATIENCE),
        ("NoNumber", "error", "not JSON", PATIENCE),
        ("Twice", "answer", "not asked for", PATIENCE),
        ("NoList", "action", "must be a list of actions: 5", PATIENCE),
        ("NoAnswer", "action", "must be a list of actions: None", PATIENCE),
        ("Stops", "error", "PermissionError", PATIENCE),
        ("Flips", "action", "slot 1: preempt of job 0: jobs run through", PATIENCE),
    ],
)
def test_what_cheats_or_fails_is_a_failure(place: Path, name: str, kind: str, message: str, seconds: float) -> None:
    with contained(place, name, seconds) as policy, pytest.raises(Failed) as caught:
        policy(SECRET, seed=0)
    assert caught.value.kind == kind and message in str(caught.value)


@pytest.mark.parametrize("problem", PROBLEMS[1:])
@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("Early", "action", "start of job"),
        ("Shrinks", "action", "start of job 0: "),
        ("Idle", "action", "jobs wait for ever"),
        ("Forges", "answer", "not asked for"),
        ("Exits", "died", "ended with status 3"),
    ],
)
def test_what_cheats_in_other_problems_is_a_failure(
    place: Path, problem: str, name: str, kind: str, message: str
) -> None:
    """Idle is none where jobs may be left undone: it is worth nothing then."""
    with contained(place, name, problem=problem) as policy:
        if name == "Idle" and problem != "ddl-cluster":
            instance = secret_of(problem)
            solution = policy(instance, seed=0)
            assert solution is not None and find_problem(problem).check(instance, solution).objective == 0
            return
        with pytest.raises(Failed) as caught:
            policy(secret_of(problem), seed=0)
    assert caught.value.kind == kind and message in str(caught.value)


def test_the_adversary_finds_what_a_policy_regrets(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short jobs come when a long one has started: the ratio grows, and the file has the instance that shows it."""
    monkeypatch.chdir(tmp_path)
    name = "schedgap.tools.online.policies:Fifo"
    bounds = Bounds(PATIENCE, 2 << 30, warm=False)
    ratios = []
    with ContainedPolicy(name, PROBLEM, bounds) as policy:
        for tried in (1, 40):
            worst = adversary(policy, 3, tmp_path, tried)
            assert worst is not None and worst["tried"] == tried
            ratios.append(worst["ratio"])
    here = world_of(PROBLEM, schedgap.load(worst["file"]))
    assert here is not None
    mine = replay_here(here, Fifo()).report
    assert mine.feasible and mine.objective is not None
    assert float(mine.objective) / (here.bound() or 1) == pytest.approx(ratios[1])
    assert ratios[0] < 1.7 < 1.8 < ratios[1]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A long job, then short ones: whoever starts what is there regrets it."""
    monkeypatch.chdir(tmp_path)
    names = []
    for number, slots in enumerate((4, 6)):
        names.append(f"two-{number}.json")
        instance = instance_of([(1, 1, slots), (2, 1, 1), (2, 1, 1)], 1)
        Path(names[-1]).write_text(instance.to_json())
    shutil.copy(peekers.__file__, tmp_path / "mine.py")
    return names


def card_of(command: Command, *arguments: object, status: int = 0) -> dict[str, Any]:
    ran = command("evaluate", *arguments, "--problem", "gpu-sharing", "--workers", 1, "--json")
    assert ran.status == status, ran.err
    card: dict[str, Any] = json.loads(ran.out)
    return card


def test_the_card_of_a_policy(command: Command, two: list[str]) -> None:
    """By hand: started at once the long job makes 4 + 4 + 5 = 13 slots of 1 + 2 + 7 = 10, and 6 + 6 + 7 of 12."""
    card = card_of(command, "mine.py:Remembers", "--online", "--on", *two)
    assert [trial["objective"] for trial in card["trials"]] == pytest.approx([13 / 3, 19 / 3])
    assert [trial["optimum"] for trial in card["trials"]] == pytest.approx([10 / 3, 12 / 3])
    regret = card["online"]["regret"]
    assert regret["optimum"]["mean"] == pytest.approx((3 / 10 + 7 / 12) / 2)
    assert regret["optimum"]["worst"] == pytest.approx(7 / 12) and regret["optimum"]["count"] == 2
    assert regret["bound"] == {"count": 0, "mean": None, "half_width": None, "worst": None}
    assert regret["clairvoyance"]["mean"] == 0 and regret["clairvoyance"]["count"] == 2
    assert (card["online"]["estimates"], card["online"]["preemptions"]) == ("none", 0)
    assert card["online"]["decisions"] == 2 * 4  # two arrivals and two ends; nobody is asked after the last
    assert 0 < card["online"]["decision_seconds"]["p50"] <= card["online"]["decision_seconds"]["p99"]
    assert card["online"]["overhead_seconds"] > 0


def test_a_policy_that_preempts_is_held_to_a_bound(command: Command, two: list[str]) -> None:
    name = "schedgap.tools.online.policies:Srtf"
    card = card_of(command, name, "--online", "--estimates", "exact", "--on", two[0])
    here = world_of(PROBLEM, schedgap.load(two[0]), preempts=True)
    assert here is not None
    mine = replay_here(here, Srtf())
    (trial,) = card["trials"]
    assert trial["objective"] == pytest.approx(float(mine.report.objective or 0))
    assert trial["ratio_to"] == "bound" and trial["bound"] == pytest.approx(here.bound())
    assert card["online"]["outside_model"] and card["online"]["regret"]["optimum"]["count"] == 0
    assert card["online"]["regret"]["clairvoyance"]["count"] == 0  # it knows the lengths


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--estimates", "user"], "--estimates user: only an online policy is told of lengths (--online)"),
        (["--online", "--problem", "rar-ddls"], "--online: there is no online loop for rar-ddls"),
        (["--online"], "scheduler mine.py:peek: --online takes a class with decide(state) -> actions"),
        (["--online", "--estimates", "some"], "argument --estimates: invalid choice: 'some'"),
    ],
)
def test_bad_use_is_one_line(command: Command, two: list[str], arguments: list[str], line: str) -> None:
    given = ["--problem", "gpu-sharing", "--on", two[0]] if "rar-ddls" not in arguments else []
    ran = command("evaluate", "mine.py:peek", *given, *arguments)
    assert ran.status == 2 and line in ran.err.splitlines()[-1] and "Traceback" not in ran.err
