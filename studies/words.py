"""Words of the documentation by page, at several commits of the checkout.

python -m studies.words [COMMIT ...] [now]

A word is what ``str.split`` finds in the source of a page, signs of tables and code included; of a notebook the source
of its cells. Pages are README.md and what lies below docs, without docs/notes, which is not on the site. Without an
argument the table is of the files as they are ("now").
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.text import markdown_table

ROOT = Path(__file__).resolve().parents[1]
NOW = "now"
"""Name of the column of the files as they are."""


def words(name: str, text: str) -> int:
    """The words of one page."""
    if name.endswith(".ipynb"):
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return len(text.split())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _page(name: str) -> bool:
    return name.endswith((".md", ".ipynb")) and not name.startswith("docs/notes/")


def counted(commit: str) -> Mapping[str, int]:
    """The words of every page at a commit, or of the files as they are."""
    if commit == NOW:
        files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.*"))]
        return {name: words(name, (ROOT / name).read_text("utf-8")) for name in files if _page(name)}
    files = _git("ls-tree", "-r", "--name-only", commit, "README.md", "docs").splitlines()
    return {name: words(name, _git("show", f"{commit}:{name}")) for name in files if _page(name)}


def table(columns: Mapping[str, Mapping[str, int]]) -> str:
    """A row a page, a column a commit, a dash where a page was not there, and the sums."""
    pages = sorted(set().union(*columns.values()))
    rows = [(page, *(f"{found[page]:,}" if page in found else "-" for found in columns.values())) for page in pages]
    rows.append(("all", *(f"{sum(found.values()):,}" for found in columns.values())))
    return markdown_table(("page", *columns), rows)


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    print(table({commit: counted(commit) for commit in arguments or (NOW,)}))


if __name__ == "__main__":
    main(sys.argv[1:])
