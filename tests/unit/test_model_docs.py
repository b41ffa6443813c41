"""The rows of models: each family is on the site's page with its equation; the worked changes of problems run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oracles.schedules import CASES

from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.rows import rows_of_models

DOCS = Path(__file__).parents[2] / "docs"
ROWS = "\n".join(rows_of_models())


def section(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").split("## Forms")[1].split("\n## ")[0]


@pytest.mark.parametrize("page", [f"{problem}.md" for problem in all_problems()])
def test_the_worked_change_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", section(page), flags=re.DOTALL)
    assert len(blocks) == 1
    exec(blocks[0], {})


@pytest.mark.parametrize("name", list(CASES))
def test_every_family_of_rows_stands_on_the_page(name: str) -> None:
    case = CASES[name]
    text = section(f"{case.problem}.md")
    model = find_problem(case.problem).model(case.make(1)[0], case.form, False)
    assert model is not None and model.layout is not None
    for family in model.layout.rows:
        law = model.layout.laws[family]
        said = law.meaning + (f" ({law.role}: {law.why})" if law.why else "")
        assert f"| `{law.prefix(family)}` | {law.equation or 'ours'} | {said} |" in ROWS, family
    for form in find_problem(case.problem).forms:
        assert f"| `{form.id}` |" in text


def test_the_site_writes_the_page_of_rows() -> None:
    assert '"reference/rows.md": rows_of_models' in (DOCS.parent / "mkdocs_hooks.py").read_text(encoding="utf-8")
    assert (DOCS / "reference" / "rows.md").is_file()
