"""Every command that README and the pages show: it parses; what is quick runs in the order shown, and is read."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from matplotlib.text import Text
from support.command import Command
from support.kubectl import cluster

import schedgap
from schedgap.catalogue.registry import find_method, find_problem, problem_ids, read_instance
from schedgap.cli.arguments import split_settings
from schedgap.cli.main import _parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDER = re.compile(r"\[[A-Z-]|\w\|\w|\b(NAME|FILE|FORMAT|PROBLEM|SERVERS|FOLDER|HOST|FAMILY|PAPER)\b|\.\.\.")
"""A synopsis is no command."""
LONG = {"bench", "verify", "hunt", "library", "audit"}
"""They take minutes on what the pages name; tests of their own run them on less."""
ELSEWHERE = {"--claims", "slurm", "--frozen", "--online", "--ratios"}
"""They need more than lies on the desk; tests of their own run them (test_cli_frozen, test_cli_online and others)."""
OWN = (ROOT / "docs" / "extending-heuristic.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
CSV = "JobID,num_gpu,run_s,submit\n" + "".join(f"j{k},{1 + k % 4},{100 + 10 * k},{5 * k}\n" for k in range(8))


def shown(page: Path) -> list[tuple[list[str], str]]:
    """The arguments of each command on the page, and the file that takes its output."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = []
    for line in re.findall(r"^(?: {4})?(?:\$ )?(?:\.venv/bin/)?schedgap ([a-z].*)$", text, re.MULTILINE):
        command, _, out = re.split(r" #|\s{4,}", line)[0].partition(" > ")
        if not PLACEHOLDER.search(command) and command.split()[0] in _commands():
            found.append((shlex.split(command), out.strip()))
    return found


def _commands() -> set[str]:
    from schedgap.cli.main import COMMANDS

    return set(COMMANDS)


def test_every_command_of_the_pages_parses() -> None:
    """Its options exist, and it lacks no argument."""
    parsed = 0
    for page in PAGES:
        for arguments, _ in shown(page):
            found = _parser(arguments[0]).parse_args(split_settings(arguments))
            assert found.command == arguments[0], (page.name, arguments)
            parsed += 1
    assert parsed > 45


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with the files that the pages take for granted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, function in (("mine", "one_by_one"), ("my", "scheduler")):
        (tmp_path / f"{name}.py").write_text(OWN.replace("one_by_one", function), encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(CSV, encoding="utf-8")
    for name in ("instance", "monday", "tuesday"):
        command("generate", "rar-ddls", "--preset", "tiny", "--seed", 3, "--set", "ample=true", "--out", f"{name}.json")
    command("solve", "instance.json", "--out", "solution.json")
    (tmp_path / "cluster.json").write_text(json.dumps(cluster()), encoding="utf-8")
    return tmp_path


INSTALLED = "extending"
"""A page whose commands need the package that it makes; test_newcomer installs it."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if shown(page) and page.stem != INSTALLED], ids=lambda page: page.stem
)
def test_what_is_quick_runs_as_shown(page: Path, desk: Path, command: Command) -> None:
    for given, out in shown(page):
        if given[0] in LONG or ELSEWHERE & set(given) or "monday.json" in given[:2]:
            continue
        if any(part.startswith("openevolve_output") for part in given):  # what another program writes
            continue
        arguments = given
        if given[0] == "evaluate":
            on = ["monday.json", "tuesday.json"] if "--on" in given else ["instance.json"]
            problem = "rar-ddls"  # what lies on the desk
            arguments = [*given[:2], "--problem", problem, "--on", *on, "--out", "card", "--workers", "1"]
        ran = command(*arguments)
        assert ran.status == 0, (page.name, given, ran.err)
        assert "Traceback" not in ran.err and "internal error" not in ran.err
        if out:
            (desk / out).write_text(ran.out, encoding="utf-8")
            assert json.loads(ran.out)["status"] in ("optimal", "feasible")
        elif given[0] == "solve" and "--out" not in given:
            assert re.search(r"^  status     (optimal|feasible)", ran.out, re.M)
        elif given[0] == "check":
            assert ran.out.startswith(("feasible; ", "optimal; "))
        elif "--out" in given and given[0] != "evaluate":
            assert (desk / given[given.index("--out") + 1]).stat().st_size > 0
        else:
            assert ran.out.strip()


def _named() -> list[tuple[str, ...]]:
    """The commands of the pages that make instances, each once; a synopsis, a loop and a guest's problem are none."""
    found = {tuple(given): None for page in PAGES for given, _ in shown(page) if given[0] == "generate"}
    return [given for given in found if given[1] in problem_ids() and "--out" in given and "$seed" not in given]


ENDS = {"optimal": 0, "feasible": 0, "infeasible": 3, "unbounded": 3, "unknown": 4}
"""Statuses, and the exit status that goes with each."""
REFUSED = {
    "job-pair": "job-pair: needs an instance of two jobs, got ",
    "cpsat": "CP-SAT solves integer models only",
}
"""Methods that are not for every instance of their problem, and why: the one line of their error."""


@pytest.mark.parametrize(
    ("made", "method"),
    [(made, method.id) for made in _named() for method in find_problem(made[1]).methods],
    ids=lambda part: part if isinstance(part, str) else part[-1].removesuffix(".json"),
)
def test_every_method_on_every_instance_that_the_pages_name(
    made: tuple[str, ...], method: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without ``--json``, within a limit so short that some find nothing, which they say."""
    monkeypatch.chdir(tmp_path)
    assert command(*made).status == 0
    problem, instance = read_instance(made[-1])
    line = ("solve", made[-1], "--method", method, "--time-limit", "0.3", "--no-confirm")
    ran = command(*line, "--json")
    if ran.status == 2:
        assert REFUSED[method] in ran.message and command(*line).message == ran.message
        return
    data = json.loads(ran.out)
    assert ran.status == ENDS[data["status"]] and (data["method"], data["instance"]) == (method, instance.name)
    own = find_method(problem, method)
    if data["solution"] is not None and not own.outside_model and own.checker is None:
        assert schedgap.check(instance, data["solution"]).value == data["objective"]
    assert (data["solution"] is None) == (ran.status != 0)
    if ran.status == 4:
        assert f"schedgap: note: {method} found no solution: " in ran.err
    ran = command(*line)
    assert ran.status in ENDS.values() and "Traceback" not in ran.err
    status = re.search(r"^  status     (\w+)", ran.out, re.M)
    assert status is not None and ran.status == ENDS[status[1]]
    assert re.search(rf"^  method     {re.escape(method)}(\s|$)", ran.out, re.M)


def test_the_picture_of_the_readme_shows_contention_and_marks_the_loss() -> None:
    """Not only does it exist: rings share links in it, and what the worse schedule loses is written there."""
    instance = schedgap.generate("rar-ddls", "small", seed=30, servers=3, gpus=3, ample=True)
    schedules = schedgap.solve(instance, "sjf-bco"), schedgap.solve(instance, confirm=False)
    figure = schedgap.plot(instance, schedules[0], compare=schedules[1])
    told = [text.get_text() for text in figure.findobj(Text)]
    assert "sjf-bco: makespan 18 slots = 1.29 \u00d7 14" in " ".join(told).replace("solution 1", "sjf-bco")
    assert told.count("4 more") == 1 and told.count("2 rings share its link") == 1  # one legend
    assert not any(word == "3" for word in told if word in ("3", "4 or more"))  # nothing that is not drawn
    alone = [text.get_text() for text in schedgap.plot(instance, schedules[1]).findobj(Text)]
    assert not any("more" in word or "\u00d7" in word for word in alone)
