"""The rooms of benchmarks/ stand above each other: what is imported lies below, so no two import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.deletion import BUILT_ON

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FLOORS: tuple[tuple[str, ...], ...] = (
    ("text", "figures", "proving", "anytime", "service"),
    ("records", "confirming", "instances", "intervals", "worst"),
    ("importers", "judging", "sweep"),
    ("workload", "report"),
    ("ledger",),
    ("suites", "hunt"),
)
"""From the ground up. A room imports from lower floors only."""
TOOLS = sorted(path.parent.name for path in (BENCHMARKS.parent / "tools").glob("*/__init__.py"))
ASKED_FOR = {"audit": frozenset({"evaluation"})}
"""Tools that a tool imports where a user asks for them: a scheduler of one's own, contained."""
TABLES = {"workload.py", "traces.py", "network_files.py"}
"""Room `workload` of each problem in ``instances/``: its table, and what makes its instances of files of others."""
FLOOR = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def _room(path: Path) -> str:
    parts = path.relative_to(BENCHMARKS).parts
    return "workload" if path.name in TABLES else parts[0].removesuffix(".py")


def _imported(path: Path) -> set[str]:
    """Rooms that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    parts = [name.split(".") for name in names if name.startswith("schedgap.benchmarks.")]
    return {part[2] for part in parts}


FILES = sorted(path for path in BENCHMARKS.rglob("*.py") if path.name != "__init__.py" or path.parent != BENCHMARKS)


def test_every_room_has_its_floor() -> None:
    rooms = {_room(path) for path in FILES}
    assert rooms <= set(FLOOR), f"say in FLOORS where {sorted(rooms - set(FLOOR))} stands"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_arrows_between_rooms_point_down(path: Path) -> None:
    room = _room(path)
    above = sorted(other for other in _imported(path) - {room} if FLOOR.get(other, 99) >= FLOOR[room])
    assert not above, f"{path.relative_to(BENCHMARKS)}: {room} imports {above}, which stand no lower"


def _tools_imported(path: Path) -> set[str]:
    names = {node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[2] for name in names if name.startswith("schedgap.tools.")}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_built_on_the_tools_it_names(tool: str) -> None:
    files = (BENCHMARKS.parent / "tools" / tool).rglob("*.py")
    used = set().union(*(_tools_imported(path) for path in files)) - {tool}
    assert used == BUILT_ON.get(tool, frozenset()) | ASKED_FOR.get(tool, frozenset())
