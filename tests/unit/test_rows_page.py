"""The page of the models' rows: every row of every form that can be written is on it, with its equation."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedgap
from schedgap.catalogue.registry import BUILT_IN, find_problem
from schedgap.rows import rows_of_models

ROOT = Path(__file__).parents[2]
PAGE = "\n".join(rows_of_models())


def test_the_hook_writes_the_page() -> None:
    assert '"reference/rows.md": rows_of_models' in (ROOT / "mkdocs_hooks.py").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "reference" / "rows.md").is_file()


@pytest.mark.parametrize("problem", BUILT_IN)
def test_every_row_of_a_model_is_on_the_page(problem: str) -> None:
    form = find_problem(problem).forms[0]
    model = schedgap.model(schedgap.generate(problem, "tiny"), form.id)
    missing = {name.partition("[")[0] for name in model.problem.constraints}
    missing = {prefix for prefix in missing if f"| `{prefix}`" not in PAGE}
    assert model.problem.constraints and not missing
