"""The commands that README and the pages show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from schedgap.catalogue.registry import problem_ids
from schedgap.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDER = re.compile(r"\[[A-Z-]|\w\|\w|\b(NAME|FILE|FORMAT|PROBLEM|SERVERS|FOLDER|HOST|FAMILY|PAPER)\b|\.\.\.")
"""Marks of a synopsis, which is no command."""


def commands_shown(page: Path) -> list[tuple[list[str], str]]:
    """The arguments of each command on a page, and the file that takes its output ("" for none)."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    shown = []
    for line in re.findall(r"^(?: {4})?(?:\$ )?(?:\.venv/bin/)?schedgap ([a-z].*)$", text, re.MULTILINE):
        command, _, out = re.split(r" #|\s{4,}", line)[0].partition(" > ")
        if not PLACEHOLDER.search(command) and command.split()[0] in COMMANDS:
            shown.append((shlex.split(command), out.strip()))
    return shown


def instances_shown() -> list[tuple[str, ...]]:
    """The ``generate`` commands of all pages, each once; a synopsis, a loop and a guest's problem are none."""
    shown = {tuple(given): None for page in PAGES for given, _ in commands_shown(page) if given[0] == "generate"}
    return [given for given in shown if given[1] in problem_ids() and "--out" in given and "$seed" not in given]
