"""Every study is told of by a page, run by a test or part of another study; else it leaves the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path for path in (ROOT / "studies").rglob("*.py") if path.name != "__init__.py")
PLACES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "Makefile",
    ROOT / ".ci" / "run",
    *(ROOT / "docs").rglob("*.md"),
]
PLACES += [path for folder in ("tests", "studies") for path in (ROOT / folder).rglob("*.py")]
TEXTS = {path: path.read_text(encoding="utf-8") for path in PLACES if path.name != Path(__file__).name}


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_somebody_needs_it(study: Path) -> None:
    file = study.relative_to(ROOT)
    module = ".".join(file.with_suffix("").parts)
    package, _, name = module.rpartition(".")
    needed = re.compile(
        rf"{re.escape(module)}\b|{re.escape(str(file))}|from {re.escape(package)} import [^\n]*\b{name}\b"
    )
    assert any(needed.search(text) for path, text in TEXTS.items() if path != study)
