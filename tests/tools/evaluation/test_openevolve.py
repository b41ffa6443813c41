"""What OpenEvolve's own database made of fixed programs: `tests/data/openevolve.json`, replayed without the client.

``.ci/run`` runs the client itself: `tests/support/openevolve_client.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.openevolve_client import BODIES, PROBLEM, programs

from schedgap.tools.evaluation.frozen import FrozenJudge

OUTCOME = json.loads((Path(__file__).parents[2] / "data" / "openevolve.json").read_text())
WAITS = ("slow", "endless")
"""Of these the judge waits for its limits, which `test_cli_frozen` has with shorter ones."""


def test_the_search_ranked_what_is_best_first_and_what_cheats_last() -> None:
    order = [row["program"] for row in OUTCOME]
    assert order[:3] == ["remembers", "better", "initial"] and set(order[3:]) == set(BODIES) - {"better"}
    scores = [row["combined_score"] for row in OUTCOME]
    assert scores == sorted(scores, reverse=True) and scores[0] < 1 and not any(scores[3:])


def test_the_judge_says_the_same_without_the_client(tmp_path: Path) -> None:
    texts = programs()
    with FrozenJudge(PROBLEM) as judge:
        for row in OUTCOME:
            if row["program"] in (*WAITS, "initial"):
                continue
            path = tmp_path / "program.py"
            path.write_text(texts[row["program"]])
            first = judge.judge(f"{path}:scheduler", most=3)
            found = judge.judge(f"{path}:scheduler") if first.score else first
            assert found.score == pytest.approx(row["combined_score"]), row["program"]
            assert found.too_good / len(found.attempts) == pytest.approx(row["too_good"])
            failure = next((one.failure for one in found.attempts if one.failure), None)
            assert failure == row["failure"], row["program"]
