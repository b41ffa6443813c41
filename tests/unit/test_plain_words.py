"""Words that no page and no message has: a reader who learned English late stops at them; a plainer one exists."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
LAYERS = ("formulations", "solvers", "heuristics", "catalogue", "benchmarks", "tools", "interface")
SOURCES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))

REFUSED = (
    "aforementioned", "ad hoc", "a posteriori", "clearly", "de facto", "e.g.", "etc.", "hence", "hereby", "herein",
    "i.e.", "in order to", "insofar", "inasmuch", "it is easy to", "leverage", "leverages", "namely", "note that",
    "notwithstanding", "obviously", "of course", "per se", "please", "respectively", "simply", "the former",
    "the latter", "thereby", "therein", "thereof", "trivially", "upon", "utilise", "utilize", "vice versa", "viz.",
    "whence", "wherein", "whereof", "with respect to",
)  # fmt: skip
"""Words and phrases, in any case."""
LONGEST = 25
"""Words of a sentence of a page, on average; cells of tables and items of lists are sentences."""

_WORD = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, REFUSED))})(?![\w-])", re.IGNORECASE)


def prose(path: Path) -> str:
    """The text of a page without its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    text = re.sub(r"```.*?```|`[^`]*`|\$[^$]*\$", "x", text, flags=re.DOTALL)
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith("    "))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_has_plain_words(page: Path) -> None:
    assert not _WORD.findall(prose(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_sentences_of_a_page_are_short_on_average(page: Path) -> None:
    sentences = re.split(r"[.!?:;](?:\s|$)|\||\n\s*[-*#]+ |\n\n", prose(page))
    lengths = [len(sentence.split()) for sentence in sentences if len(sentence.split()) > 3]
    assert lengths and sum(lengths) / len(lengths) <= LONGEST


def test_messages_have_plain_words() -> None:
    faults = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            printed = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("print", "reject", "warn")
            if not (isinstance(node, ast.Raise) or printed):
                continue
            texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            faults += [f"{path.relative_to(ROOT)}: {text}" for text in texts if _WORD.search(str(text))]
    assert not faults
