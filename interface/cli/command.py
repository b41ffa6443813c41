"""What a command of a tool is; the entry points of ``schedgap.commands`` name them, those of other packages, too."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

GROUP = "schedgap.commands"
"""Entry points: ``name = "package.module:COMMAND"``, each a :class:`Command`."""


@dataclass(frozen=True)
class Command:
    """A command: one line of help, an example behind its name, its arguments, what it runs (exit status)."""

    line: str
    example: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def tool_commands() -> dict[str, EntryPoint]:
    """The commands of installed tools by name, none of them loaded."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}
