"""Completion in the shell: argcomplete asks the parser for commands and options, and this module for names."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


def complete(parser: argparse.ArgumentParser, command: str | None) -> None:
    """Answer the shell, and end the process.

    Parameters
    ----------
    parser : with the arguments of the command
    command : command on the line, if any
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

    def __init__(self, named: Callable[[argparse.Namespace], Iterable[str]]) -> None:
        self.named = named

    def __call__(self, prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
        """The names that go on from `prefix`, which may be a list with commas."""
        before, comma, last = prefix.rpartition(",")
        return [before + comma + name for name in self.named(parsed_args) if name.startswith(last)]


def _problem(arguments: argparse.Namespace) -> str | None:
    """The problem on the line, or that of the instance's file."""
    problem: str | list[str] | None = getattr(arguments, "problem", None)
    if problem:
        return problem[0] if isinstance(problem, list) else problem
    try:
        with Path(getattr(arguments, "instance", None) or "").open(encoding="utf-8") as file:
            found = re.search(r'"problem"\s*:\s*"([\w-]+)"', file.read(1 << 20))
    except (OSError, ValueError):
        return None
    return None if found is None else found[1]


def _problems(_: argparse.Namespace) -> Iterable[str]:
    from schedgap import problems

    return problems()


def _subjects(arguments: argparse.Namespace) -> Iterable[str]:
    from schedgap.lists import SUBJECTS

    return [*_problems(arguments), *SUBJECTS]


def _own() -> list[str]:
    """Functions with a seed in the files of the working directory: heuristics of one's own."""
    heads = re.compile(r"^def ([A-Za-z]\w*)\((?=[^)]*\bseed\b)", re.MULTILINE)
    files = sorted(path for path in Path().glob("*.py") if path.is_file())
    return [f"{path}:{name}" for path in files for name in heads.findall(path.read_text("utf-8", errors="replace"))]


def _methods(arguments: argparse.Namespace) -> Iterable[str]:
    from schedgap import methods, problems

    known, problem = problems(), _problem(arguments)
    chosen = [problem] if problem in known else known
    return dict.fromkeys([*(method.id for one in chosen for method in methods(one)), *_own()])


def _records(arguments: argparse.Namespace) -> Iterable[str]:
    from schedgap import library_records, problems

    problem = _problem(arguments)
    return (record.id for record in library_records(problem if problem in problems() else None))


def _targets(arguments: argparse.Namespace) -> Iterable[str]:
    """Claims, and heuristics of all problems as ``PROBLEM/HEURISTIC``."""
    from schedgap import methods, problems

    for problem in problems():
        yield from (f"{problem}/{method.id}" for method in methods(problem) if not method.proves)
        yield from (f"{problem}/{name}" for name in _own())
    yield from _from("guarantees")(arguments)


def _papers(_: argparse.Namespace) -> Iterable[str]:
    from schedgap.lists import papers

    return [*papers(), *papers().values()]


def _items(arguments: argparse.Namespace) -> Iterable[str]:
    from schedgap.lists import experiments

    papers = experiments().items()
    return [item for paper, items in papers if arguments.paper in re.findall(r"[\w-]+", paper) for item, _ in items]


def _preset_settings(arguments: argparse.Namespace) -> Iterable[str]:
    from schedgap.lists import preset_settings

    known = arguments.problem in _problems(arguments)
    return [f"{name}=" for name in preset_settings(arguments.problem, arguments.preset)] if known else []


def _from(part: str) -> Callable[[argparse.Namespace], Iterable[str]]:
    """What ``schedgap list`` tells under this head, of the problem on the line or of all."""

    def names(arguments: argparse.Namespace) -> Iterable[str]:
        from schedgap.lists import names

        return names(part, _problem(arguments))

    return names


_NAMES: Mapping[str, Callable[[argparse.Namespace], Iterable[str]]] = {
    "problem": _problems,
    "subject": _subjects,
    "method": _methods,
    "methods": _methods,
    "preset": _from("presets"),
    "library id": _records,
    "library ids": _records,
    "import format": _from("formats"),
    "form": _from("forms"),
    "suites": _from("suites"),
    "guarantees": _from("guarantees"),
    "target": _targets,
    "paper": _papers,
    "item": _items,
    "generate settings": _preset_settings,
}
"""What the arguments of these names take."""
