"""Every command that README and the pages show: it parses; what is quick runs in the order shown, and is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from matplotlib.text import Text
from support.command import Command
from support.kubectl import cluster
from support.pages import PAGES, commands_shown

import schedgap
from schedgap.cli.arguments import split_settings
from schedgap.cli.main import _parser

LONG = {"bench", "verify", "hunt", "library", "audit"}
"""They take minutes on what the pages name; tests of their own run them on less."""
ELSEWHERE = {"--claims", "slurm", "--frozen", "--online", "--ratios"}
"""They need more than lies on the desk; tests of their own run them (test_cli_frozen, test_cli_online and others)."""
OWN = (
    (Path(__file__).parents[2] / "docs" / "evaluating.md")
    .read_text(encoding="utf-8")
    .split("```python\n")[1]
    .split("```")[0]
)
CSV = "JobID,num_gpu,run_s,submit\n" + "".join(f"j{k},{1 + k % 4},{100 + 10 * k},{5 * k}\n" for k in range(8))


def test_every_command_of_the_pages_parses() -> None:
    """Its options exist, and it lacks no argument."""
    parsed = 0
    for page in PAGES:
        for arguments, _ in commands_shown(page):
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
    "page", [page for page in PAGES if commands_shown(page) and page.stem != INSTALLED], ids=lambda page: page.stem
)
def test_what_is_quick_runs_as_shown(page: Path, desk: Path, command: Command) -> None:
    for given, out in commands_shown(page):
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
