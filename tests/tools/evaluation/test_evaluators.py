"""``new evaluator``: a folder whose evaluator judges its own first program, and tells nothing of the answers."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

import schedgap
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import find_problem
from schedgap.tools.evaluation import drawn, evaluator_folder, frozen
from schedgap.tools.evaluation.drawn import drawn_instances, held_out_families
from schedgap.tools.evaluation.frozen import judge_of, stored
from schedgap.tools.library.collection import about, entries


def evaluator(folder: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("evaluator", folder / "evaluator.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Result:
    """OpenEvolve's class, as far as it is used."""

    def __init__(self, metrics: dict[str, float], artifacts: dict[str, str]) -> None:
        self.metrics, self.artifacts = metrics, artifacts


def test_its_own_program_gets_a_score(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = stored(find_problem("gpu-sharing"))[:5]
    for module in (evaluator_folder, frozen):
        monkeypatch.setattr(module, "stored", lambda problem: few)
    monkeypatch.setitem(sys.modules, "openevolve", types.ModuleType("openevolve"))
    fake: Any = types.ModuleType("openevolve.evaluation_result")
    fake.EvaluationResult = Result
    monkeypatch.setitem(sys.modules, "openevolve.evaluation_result", fake)
    for client in ("plain", "openevolve"):
        folder = tmp_path / client
        assert command("new", "evaluator", client, "--problem", "gpu-sharing", "--out", folder).status == 0
    plain, evolving = (evaluator(tmp_path / client) for client in ("plain", "openevolve"))
    try:
        program = str(tmp_path / "plain" / "initial_program.py")
        figures = plain.evaluate(program)
        assert 0.5 < figures["combined_score"] <= 1 and figures["feasible"] == 1
        assert json.loads(figures["artifacts"]["worst"])["ratio"] > 1
        (tmp_path / "broken.py").write_text("def scheduler(:\n")
        broken = plain.evaluate(str(tmp_path / "broken.py"))
        assert broken["combined_score"] == 0 and "SyntaxError" in broken["artifacts"]["failure"]
        first, all_of_them = evolving.evaluate_stage1(program), evolving.evaluate_stage2(program)
        assert all_of_them.metrics["combined_score"] == figures["combined_score"] != first.metrics["combined_score"]
        assert all_of_them.artifacts.keys() == figures["artifacts"].keys()
    finally:
        judge_of("gpu-sharing").close()
        judge_of.cache_clear()


CANARIES = json.loads((Path(__file__).parents[2] / "data" / "canaries.json").read_text())
"""By problem a stored instance, and an answer that looks better than the best and breaks one rule or two."""


@pytest.mark.parametrize("problem", sorted(about()["problems"]))
def test_a_naive_evaluator_would_take_the_bait(problem: str) -> None:
    """The objective of the answer, by the checker's own arithmetic, beats the proven optimum: rules alone tell."""
    row, instances = CANARIES[problem], stored(find_problem(problem))
    entry = next(one for one in instances if one.id == row["instance"])
    report = entry.problem.check(entry.instance, row["answer"])
    assert {violation.constraint for violation in report.violations} == set(row["rules"])
    assert entry.known.status == "optimal" and entry.known.objective == pytest.approx(row["optimum"])
    if problem == "gang-placement":  # its checker counts nothing there; all gangs are placed, so more cannot be
        assert report.objective is None and len(row["answer"]["placement"]) == len(entry.data["gangs"])
        return
    assert report.objective is not None and float(report.objective) == pytest.approx(row["looks"])
    assert entry.problem.sense * (row["optimum"] - row["looks"]) > 0.05


@pytest.mark.parametrize("problem", ["comm-contention", "gang-placement"])
def test_families_are_held_out(problem: str) -> None:
    """Nothing stored, no preset's own settings, others for another seed, and the same for the same."""
    one, again, other = ([], [], [])  # type: tuple[list[str], list[str], list[str]]
    here = find_problem(problem)
    for seed, said in ((1, one), (1, again), (2, other)):
        families = held_out_families(here, seed, said.append)
        drawn, _ = drawn_instances(here, seed, 1, families)
        assert len(drawn) == len(families) > 1
        shipped = {entry.known.hash for entry in entries(problem)}
        assert not shipped & {instance.content_hash() for *_, instance in drawn}
        said += [instance.content_hash() for *_, instance in drawn]
    assert one == again and not {line for line in one if "=" in line} <= set(other)
    usual = {make(seed)[0].content_hash() for make in workload_of(here).trials().values() for seed in range(3)}
    assert not usual & set(one)


def test_a_card_on_held_out_families(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where exact methods of ours are refused, which a card of another scheduler allows."""
    monkeypatch.chdir(tmp_path)
    presets = workload_of(find_problem("comm-contention")).presets
    few = dataclasses.replace(workload_of(find_problem("comm-contention")), presets=presets[-1:])
    monkeypatch.setattr(drawn, "workload_of", lambda problem: few)
    body = "import schedgap\n\n\ndef {}(instance, *, seed):\n    return schedgap.solve(instance{}).solution\n"
    (tmp_path / "mine.py").write_text(body.format("exact", "") + body.format("one", ', "srsf-1"'))
    line = ["--problem", "comm-contention", "--held-out", "--instances", 1, "--budget", 0.1, "--workers", 1, "--json"]
    card = json.loads(command("evaluate", "mine.py:one", *line, "--seed", 3).out)
    assert list(card["families"]) == ["held-out-newcomer"] and card["feasible"] == 1
    refused = json.loads(command("evaluate", "mine.py:exact", *line, "--seed", 3, "--out", "other").out)
    assert "exact methods are not for candidates" in refused["trials"][0]["message"]


@pytest.mark.parametrize("problem", sorted(about()["problems"]))
def test_every_problem_of_the_library_has_one(command: Command, tmp_path: Path, problem: str) -> None:
    folder = tmp_path / "new"
    assert command("new", "evaluator", "openevolve", "--problem", problem, "--out", folder).status == 0
    assert {path.name for path in folder.iterdir()} == {
        *("evaluator.py", "initial_program.py", "task.md", "README.md", "config.yaml")
    }
    texts = "".join(path.read_text() for path in folder.iterdir())
    assert not {"PROBLEM", "METHODS", "TASK", "CLIENT"} & set(texts.replace("(", " ").replace('"', " ").split())
    assert "reference_record" not in texts
    for path in folder.glob("*.py"):
        compile(path.read_text(), path.name, "exec")
    scheduler = runpy.run_path(str(folder / "initial_program.py"))["scheduler"]
    here = find_problem(problem)
    # on the last two `hadar-online` finds nothing: the repaired form is tried first, and finds something
    others = [entry for entry in stored(here) if entry.id in ("hadar/worst-gavel", "hadar/contended-1")]
    first = texts.split('for method in "')[1].split()[0]
    for entry in others:
        assert schedgap.solve(entry.instance, first, seed=0).solution is not None
    for entry in stored(here)[:3] + others:
        assert here.check(entry.instance, scheduler(entry.instance, seed=0) or {}).feasible, entry.id


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["evaluator", "shinka", "--problem", "hadar"], "new evaluator: must be openevolve or plain, got 'shinka'"),
        (["evaluator", "plain"], "new evaluator: --problem says whose schedulers are written"),
        (["evaluator", "plain", "--problem", "no"], "--problem"),
        (["heuristic", "mine", "--problem", "hadar"], "--problem: only with new evaluator"),
        (["evaluator", "plain", "--problem", "hadar", "--out", "."], "new: . is there already"),
    ],
)
def test_bad_use_is_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("new", *arguments)
    assert ran.status == 2 and line in ran.message
    assert not list(tmp_path.iterdir())
