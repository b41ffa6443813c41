"""A problem, a heuristic and an engine that other installed packages register join every command by entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import toy
from support.shell import Shell

TESTS = Path(__file__).parents[1]

PROBLEM_PACKAGE = '''
"""An eighth problem: the toy of the tests, under its own name, with a suite and a claim."""

from support import toy

from schedgap.catalogue.workload import Batch, Preset, Workload

SUITES = (Batch("quick", "random", 3, exact=("brute",), heuristics=("list",)),)


class Eighth(toy.Toy):
    def __init__(self) -> None:
        super().__init__((), guarantees=True)

    def workload(self) -> Workload:
        return Workload(presets=(Preset("random", "random lengths", toy.generate),), suites=SUITES)
'''

RULES = '''
"""What every schedule of the toy satisfies, for the checker of certificates."""


def valid(instance):
    numbers = [instance["machines"], *instance["jobs"]]
    if len(numbers) < 2 or not all(type(k) is int and k >= 1 for k in numbers):
        raise ValueError("machines and jobs must be whole numbers of at least 1")


def rows(instance, options, model):
    jobs, machines = instance["jobs"], range(instance["machines"])
    model.step = 1
    model.var("top", 0, sum(jobs), cost=1)
    for j in range(len(jobs)):
        model.row(f"job[{j}]", [(model.var(f"on[{j},{m}]"), 1) for m in machines], "=", 1)
    for m in machines:
        model.row(f"load[{m}]", [("top", 1), *((f"on[{j},{m}]", -k) for j, k in enumerate(jobs))], ">=", 0)


def point(instance, solution, options):
    loads = [0] * instance["machines"]
    for length, m in zip(instance["jobs"], solution["machine"]):
        loads[m] += length
    return {"top": max(loads), **{f"on[{j},{m}]": 1 for j, m in enumerate(solution["machine"])}}


FORMS = {"rows": rows}
'''

HEURISTIC_PACKAGE = '''
"""A heuristic for a problem of schedgap: every job is one worker, on the first server that still has room."""

from fractions import Fraction
from typing import Annotated

from pydantic import Field


def lonely(instance, *, seed: int, most: Annotated[int, Field(ge=1, description="most workers of a server")] = 100):
    """One worker a job."""
    free = {s.id: {name: Fraction(str(have)) for name, have in s.resources.items()} for s in instance.servers}
    count = dict.fromkeys(free, 0)
    rings = {}
    for job in instance.jobs:
        wanted = {name: Fraction(str(amount)) for name, amount in job.demand.items()}
        for server, room in free.items():
            fits = all(room.get(name, 0) >= amount for name, amount in wanted.items())
            if job.utility[0] > 0 and room and fits and count[server] < most:
                rings[job.id] = {"workers": [server], "routes": []}
                count[server] += 1
                for name, amount in wanted.items():
                    room[name] = room.get(name, 0) - amount
                break
    return {"rings": rings}
'''

ENGINE_PACKAGE = '''
"""An engine: HiGHS once more, under a name of its own."""

from schedgap.solvers.engines.highs import Highs


class Again(Highs):
    name = "again"


ENGINE = Again()
'''


def install(folder: Path, package: str, code: str, entries: str) -> None:
    """What an installer leaves behind: a module, and metadata with its entry points."""
    (folder / f"{package}.py").write_text(textwrap.dedent(code))
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(textwrap.dedent(entries))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three installed packages."""
    folder = tmp_path_factory.mktemp("site")
    entries = "[schedgap.problems]\ntoy = eighth_problem:Eighth\n[schedgap.certificates]\ntoy = eighth_rules\n"
    install(folder, "eighth_problem", PROBLEM_PACKAGE, entries)
    (folder / "eighth_rules.py").write_text(RULES)
    entries = "[schedgap.methods]\ng-vne/lonely = foreign_heuristic:lonely\n"
    install(folder, "foreign_heuristic", HEURISTIC_PACKAGE, entries)
    install(folder, "again_engine", ENGINE_PACKAGE, "[schedgap.engines]\nagain = again_engine:ENGINE\n")
    return folder


@pytest.fixture(scope="module")
def shell(site: Path) -> Iterator[Shell]:
    """One process for commands that see the packages."""
    with Shell([site, TESTS]) as made:
        yield made


def told(shell: Shell, cwd: Path, *arguments: object, status: int = 0) -> str:
    """Standard output of a command."""
    ran = shell(cwd, *arguments)
    assert ran.status == status, ran.err
    return ran.out


def told_by_itself(site: Path, cwd: Path, *arguments: object, status: int = 0) -> str:
    """Standard output of a command in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(TESTS)])}
    command = [sys.executable, "-m", "schedgap.cli.main", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)
    assert ended.returncode == status, ended.stderr
    return ended.stdout


def test_an_installed_problem_is_in_every_command(site: Path, shell: Shell, tmp_path: Path) -> None:
    listed = told_by_itself(site, tmp_path, "list", "toy")
    assert "jobs on identical machines" in listed and "toy-graham" in listed and "machines: use only" in listed
    told(shell, tmp_path, "generate", "toy", "--seed", "1", "--out", "toy.json")
    solved = json.loads(told(shell, tmp_path, "solve", "toy.json", "--json"))
    assert (solved["problem"], solved["status"]) == ("toy", "optimal")
    compared = json.loads(told(shell, tmp_path, "compare", "toy.json", "--json"))
    assert {row["method"] for row in compared["rows"]} == {"brute", "list", "shuffled"}
    told(shell, tmp_path, "verify", "toy-graham", "--instances", "4", "--out", "claims", "--workers", "1")
    told(shell, tmp_path, "hunt", "toy/list", "--set", "evaluations=20", "--out", "hunt", "--workers", "1")
    table = told(shell, tmp_path, "bench", "quick", "--problem", "toy", "--out", "runs", "--workers", "1")
    assert "toy" in table and (tmp_path / "runs" / "report.html").is_file()


def test_an_installed_heuristic_is_in_every_command(shell: Shell, tmp_path: Path) -> None:
    listed = told(shell, tmp_path, "list", "g-vne")
    assert "lonely" in listed and "most workers of a server [int >= 1, default 100]" in listed
    told(shell, tmp_path, "generate", "g-vne", "--seed", "1", "--out", "one.json")
    solved = json.loads(told(shell, tmp_path, "solve", "one.json", "--method", "lonely", "--set", "most=1", "--json"))
    assert solved["method"] == "lonely" and solved["objective"] >= 0
    compared = json.loads(told(shell, tmp_path, "compare", "one.json", "--json"))
    assert any(row["method"] == "lonely" and row["ratio_to"] == "optimum" for row in compared["rows"])
    limits = ("--set", "evaluations=10", "--set", "jobs=2", "--workers", "1")
    assert "lonely" in told(shell, tmp_path, "hunt", "g-vne/lonely", *limits, "--out", "hunt")


def test_an_installed_engine_solves_every_problem_that_has_a_model(shell: Shell, tmp_path: Path) -> None:
    file = TESTS / "data" / "rar-14-mixed.json"
    assert "again           declarative model solved by again" in told(shell, tmp_path, "list", "rar-ddls")
    solved = json.loads(told(shell, tmp_path, "solve", file, "--method", "again", "--json"))
    assert (solved["engine"], solved["status"]) == ("again", "optimal")
    compared = json.loads(told(shell, tmp_path, "compare", file, "--methods", "again,cpsat", "--json"))
    assert len({row["objective"] for row in compared["rows"]}) == 1
    assert "again" not in told(shell, tmp_path, "list", "toy")  # which has no model


def test_an_installed_problem_is_certified_and_kept_in_a_library(shell: Shell, tmp_path: Path) -> None:
    instance = toy.generate(1, machines=3)
    (tmp_path / "lib" / "toy").mkdir(parents=True)
    record = {"id": "toy/one", "kind": "reference", "made": {}, "hash": instance.content_hash()}
    data = {**instance.to_dict(), "reference_record": record}
    (tmp_path / "lib" / "toy" / "one.json").write_text(json.dumps(data))
    (tmp_path / "one.json").write_text(json.dumps(instance.to_dict()))

    (tmp_path / "solved.json").write_text(told(shell, tmp_path, "solve", "one.json", "--json"))
    proven = json.loads(told(shell, tmp_path, "certify", "one.json", "--out", "one.cert", "--json"))
    assert (proven["status"], proven["proof"], proven["bound"]) == ("optimal", "certified", proven["objective"])
    checked = told(shell, tmp_path, "check", "one.json", "solved.json", "--certificate", "one.cert", "--json")
    assert json.loads(checked)["details"]["certificate"]["optimal"] is True

    offered = ("solved.json", "--certificate", "one.cert", "--by", "a test", "--library", "lib")
    told(shell, tmp_path, "library", "submit", "toy/one", *offered)
    kept = json.loads((tmp_path / "lib" / "toy" / "one.json").read_text())["reference_record"]
    assert (kept["status"], kept["proof"], kept["objective"]) == ("optimal", "certified", proven["objective"])
    assert "toy/one" in told(shell, tmp_path, "library", "list", "--problem", "toy", "--library", "lib")
    told(shell, tmp_path, "library", "list", "--check", "--problem", "toy", "--library", "lib")
    solved = json.loads(
        told(shell, tmp_path, "library", "solve", "toy/one", "--method", "list", "--library", "lib", "--json")
    )
    assert solved[0]["ratio_to"] == "optimum"

    kept["objective"] -= 1  # a record that lies is named
    (tmp_path / "lib" / "toy" / "one.json").write_text(json.dumps({**data, "reference_record": kept}))
    told(shell, tmp_path, "library", "list", "--check", "--problem", "toy", "--library", "lib", status=1)


def test_a_problem_without_rules_has_no_certificates(site: Path, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(toy.generate(1).to_dict()))
    metadata = site / "eighth_problem-1.0.dist-info" / "entry_points.txt"
    entries = metadata.read_text()
    try:
        metadata.write_text(entries.partition("[schedgap.certificates]")[0])
        said = told_by_itself(site, tmp_path, "certify", "one.json", "--out", "one.cert", status=4)
        assert "there are no rules for certificates of 'toy'" in said
    finally:
        metadata.write_text(entries)
