"""The real OpenEvolve drives our evaluator, with a stand-in for the model: ``SCHEDGAP_OPENEVOLVE=python pytest ...``.

The variable names a Python that has openevolve and schedgap; without it the form alone is tried, in test_evaluators.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import standin_model

from schedgap.benchmarks.evaluation.evaluators import new_evaluator

PYTHON = os.environ.get("SCHEDGAP_OPENEVOLVE", "")
ROUNDS = 2 * len(standin_model.PROGRAMS)


@pytest.mark.skipif(not PYTHON, reason="SCHEDGAP_OPENEVOLVE names no Python with openevolve")
def test_its_database_ranks_what_is_true(tmp_path: Path) -> None:
    folder = tmp_path / "evaluator"
    new_evaluator("openevolve", "gpu-sharing", folder)
    tests = str(Path(standin_model.__file__).parents[1])
    command = [sys.executable, "-m", "support.standin_model"]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": tests})
    try:
        assert model.stdout is not None
        port = int(model.stdout.readline())
        with (folder / "config.yaml").open("a") as config:
            config.write(
                f"diff_based_evolution: false\ncheckpoint_interval: 1\nllm:\n  api_base: http://127.0.0.1:{port}/v1\n  api_key: none\n"
                "  models:\n    - {name: m, weight: 1.0}\n"
            )
        run = [PYTHON, "-m", "openevolve.cli", "initial_program.py", "evaluator.py", "--config", "config.yaml"]
        subprocess.run([*run, "--iterations", str(ROUNDS)], cwd=folder, check=True, capture_output=True, timeout=900)
    finally:
        model.kill()
    scores: dict[str, set[float]] = {}
    for path in folder.glob("openevolve_output/checkpoints/*/programs/*.json"):
        found = json.loads(path.read_text())
        name = next((name for name in standin_model.PROGRAMS if f"# {name}\n" in found["code"]), "initial")
        scores.setdefault(name, set()).add(found["metrics"]["combined_score"])
    assert max(scores["better"]) > max(scores["initial"]) > 0.5
    for name in set(standin_model.PROGRAMS) - {"better", "infeasible"}:
        assert scores.get(name, {0.0}) == {0.0}, name
    assert max(scores.get("infeasible", {0.0})) < 0.2
    assert "# better" in (folder / "openevolve_output" / "best" / "best_program.py").read_text()
