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


def loaded_commands(wanted: str | None) -> dict[str, Command]:
    """The commands of installed tools by name: the wanted one alone where there is such a one, else all."""
    entries = {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}
    chosen = {wanted: entries[wanted]} if wanted in entries else entries
    return {name: command for name, entry in chosen.items() if (command := _loaded(entry)) is not None}


def _loaded(entry: EntryPoint) -> Command | None:
    """The command; None where its tool was taken out of this checkout."""
    try:
        command: Command = entry.load()
    except ModuleNotFoundError as error:
        if error.name is None or not entry.module.startswith(error.name):
            raise
        return None
    return command
