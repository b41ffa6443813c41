"""Completion in the shell: argcomplete asks the parser for commands and options, and this module for names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping


def asked_for() -> list[str] | None:
    """The words of the line that a shell wants to have completed; None where none does."""
    return os.environ.get("COMP_LINE", "").split() if "_ARGCOMPLETE" in os.environ else None


def complete(parser: argparse.ArgumentParser, command: str | None) -> None:
    """Answer the shell, and end the process.

    Parameters
    ----------
    parser : with the arguments of the command
    command : that is on the line, if any
    """
    import argcomplete

    subs = next((a.choices for a in parser._actions if isinstance(a.choices, dict)), {})
    sub = subs.get(command or "")
    own = [] if sub is None else list(sub._actions)
    inner = [one for a in own if isinstance(a.choices, dict) for one in a.choices.values()]  # library list, ...
    for action in [*own, *(action for one in inner for action in one._actions)]:
        named = _NAMES.get(f"{command} {action.dest}") or _NAMES.get(action.dest)
        if named is not None:
            action.completer = _Names(named)
    argcomplete.autocomplete(parser)


class _Names:
    """What argcomplete calls with what stands on the line so far."""

    def __init__(self, named: Callable[[str | None], Iterable[str]]) -> None:
        self.named = named

    def __call__(self, prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
        """The names that go on from `prefix`, which may be a list with commas."""
        before, comma, last = prefix.rpartition(",")
        problem = getattr(parsed_args, "problem", None)
        chosen = self.named(problem[0] if isinstance(problem, list) else problem)
        return [before + comma + name for name in chosen if name.startswith(last)]


def _problems(_: str | None) -> Iterable[str]:
    from schedgap import api

    return api.problems()


def _methods(problem: str | None) -> Iterable[str]:
    from schedgap import api

    known = api.problems()
    chosen = [problem] if problem in known else known
    return dict.fromkeys(method.id for one in chosen for method in api.methods(one))


def _records(problem: str | None) -> Iterable[str]:
    from schedgap import api

    return (record.id for record in api.library_records(problem if problem in api.problems() else None))


def _from(part: str) -> Callable[[str | None], Iterable[str]]:
    """What ``schedgap list`` tells under this head, of the problem on the line or of all."""

    def names(problem: str | None) -> Iterable[str]:
        from schedgap.listing import names

        return names(part, problem)

    return names


_NAMES: Mapping[str, Callable[[str | None], Iterable[str]]] = {
    "problem": _problems,
    "method": _methods,
    "methods": _methods,
    "preset": _from("presets"),
    "library id": _records,
    "library ids": _records,
    "import format": _from("formats"),
    "form": _from("forms"),
    "suites": _from("suites"),
    "guarantees": _from("guarantees"),
    "target": _from("guarantees"),
}
"""What the arguments of these names take."""
