"""A house without some rooms: modules of deleted problems and tools cannot be imported, as if their files were gone."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import Any

RULES = {
    "rigid_jobs": "audit",
    "comm_orders": "comm_contention",
    "ddl_paths": "ddl_cluster",
    "gang_prices": "gang_placement",
    "rings": "g_vne",
    "ring_prices": "g_vne",
    "node_layout": "g_vne",
}
"""Problem (with underscores) or tool of a file of rules or figures with another name; rules that two share stay."""


BUILT_ON = {"evaluation": frozenset({"library", "online"})}
"""Tools that a tool is built on: it leaves with each of them."""


class Without(importlib.abc.MetaPathFinder):
    """A finder that sees no module of the deleted problems and tools."""

    def __init__(self, finder: Any, problems: Sequence[str], tools: Sequence[str]) -> None:
        self.finder = finder
        self.rooms = {problem.replace("-", "_") for problem in problems}
        self.tools = {("schedgap", "tools", tool) for tool in tools}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """None for a deleted module, else what the finder behind it says."""
        parts = fullname.split(".")
        rooms = {RULES.get(part, part) for part in parts}
        tools = {tuple(parts[:3]), *(("schedgap", "tools", RULES.get(part, "")) for part in parts)}
        if parts[0] == "schedgap" and (rooms & self.rooms or tools & self.tools):
            return None
        spec: importlib.machinery.ModuleSpec | None = self.finder.find_spec(fullname, path, target)
        return spec

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """The installed packages that the finder behind it lists."""
        listed: Iterable[Distribution] = getattr(self.finder, "find_distributions", lambda _: ())(context)
        return listed


@contextlib.contextmanager
def quiet() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """What is printed, and what is said beside it."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        yield out, err


def main() -> int:
    """Runs ``deletion.py DELETED_PROBLEMS DELETED_TOOLS FOLDER`` with one command a line on standard input.

    Prints one JSON list a command: its arguments, its exit status, the last line that it wrote to standard error.
    """
    problems, tools, folder = (argument.split(",") if argument else [] for argument in sys.argv[1:4])
    sys.meta_path[:] = [Without(finder, problems, tools) for finder in sys.meta_path]
    import os

    os.chdir(Path(folder[0]))
    from schedgap.cli.main import main as schedgap

    for line in sys.stdin.read().splitlines():
        with quiet() as (_, err):
            status: object
            try:
                status = schedgap(line.split())
            except BaseException as error:
                status = f"{type(error).__name__}: {error}"
        print(json.dumps([line, status, err.getvalue().strip().splitlines()[-(1 if status != 5 else 9) :]]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
