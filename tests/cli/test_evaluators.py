"""``new evaluator``: a folder whose evaluator judges its own first program, and tells nothing of the answers."""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

from schedgap.benchmarks.evaluation import evaluators, frozen
from schedgap.benchmarks.evaluation.frozen import stored
from schedgap.benchmarks.library.collection import about
from schedgap.catalogue.registry import find_problem


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
    for module in (evaluators, frozen):
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
        plain.judge().close()
        evolving.judge().close()


@pytest.mark.parametrize("problem", sorted(about()["problems"]))
def test_every_problem_of_the_library_has_one(command: Command, tmp_path: Path, problem: str) -> None:
    folder = tmp_path / "new"
    assert command("new", "evaluator", "openevolve", "--problem", problem, "--out", folder).status == 0
    assert {path.name for path in folder.iterdir()} == {
        *("evaluator.py", "initial_program.py", "task.md", "README.md", "config.yaml")
    }
    texts = "".join(path.read_text() for path in folder.iterdir())
    assert not {"PROBLEM", "METHOD", "TASK", "CLIENT"} & set(texts.replace("(", " ").replace('"', " ").split())
    assert "reference_record" not in texts
    for path in folder.glob("*.py"):
        compile(path.read_text(), path.name, "exec")


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
