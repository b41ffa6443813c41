"""The house rules that a machine can check: layers, packaging, file sizes."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("formulations", "solvers", "heuristics", "catalogue", "benchmarks", "interface")
NOT_SHIPPED = "schedgap.benchmarks.studies"
"""Only a source checkout has it: speed and scale studies, oracles, literal references."""
FILES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))


def _imported_layers(path: Path) -> set[str]:
    """Layers of schedgap that a file imports, strings such as "schedgap.x.y:name" included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value:
            names = [node.value.split(":")[0]]
        for name in names:
            parts = name.split(".")
            if parts[0] == "schedgap" and all(part.isidentifier() for part in parts):
                found.add(parts[1] if len(parts) > 1 and parts[1] in LAYERS else "interface")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downwards_only(path: Path) -> None:
    own = LAYERS.index(path.relative_to(ROOT).parts[0])
    above = {layer for layer in _imported_layers(path) if LAYERS.index(layer) > own}
    assert not above, f"{path.relative_to(ROOT)} imports from above: {sorted(above)}"


@pytest.mark.parametrize("path", sorted((ROOT / "interface" / "cli").glob("*.py")), ids=lambda p: p.stem)
def test_the_command_line_knows_only_the_api(path: Path) -> None:
    """It is a skin: what a command does stands in the interface modules beside it, which api gathers."""
    assert _imported_layers(path) <= {"interface"}, path.name


def test_every_package_is_shipped() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(config["tool"]["setuptools"]["packages"])
    there = set()
    for layer in LAYERS:
        for init in (ROOT / layer).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            there.add(".".join(("schedgap", *(parts[1:] if layer == "interface" else parts))))
    assert shipped == {package for package in there if not package.startswith(NOT_SHIPPED)}


def test_folders_stay_small() -> None:
    for folder in {path.parent for path in FILES}:
        files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc"]
        assert len(files) <= 15, f"{folder.relative_to(ROOT)} has {len(files)} files"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


UNTYPED = {
    "formulations/common/compiled.py kept",  # what numba's own decorator takes
    "interface/cli/arguments.py __init__",  # as argparse's
    "solvers/cp_sat/child.py receive",  # messages between processes
    "solvers/cp_sat/child.py send",
    "solvers/engines/arrays.py rows_of",  # rows of PuLP, which has no types
}
"""Public functions with Any in their signature. Decoded JSON is called Json, and no other name hides it."""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_any_in_a_public_signature(path: Path) -> None:
    if path.is_relative_to(ROOT / "solvers" / "certificates"):
        return  # it checks bare JSON and imports nothing of ours, the name Json neither
    found = set()
    classes = [ast.parse(path.read_text(encoding="utf-8")).body]
    while classes:
        for node in classes.pop():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.append(node.body)
            if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                given = node.args
                every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                notes = [arg.annotation for arg in every if arg is not None] + [node.returns]
                inside = [part for note in notes if note is not None for part in ast.walk(note)]
                if any(isinstance(part, ast.Name) and part.id == "Any" for part in inside):
                    found.add(f"{path.relative_to(ROOT)} {node.name}")
    assert not found - UNTYPED


REPLAYED = {"audit", "audit_links", "check_schedule", "clock", "plain_events", "simulate_plain"}
"""What belongs to the checker of ddl-cluster: it replays a policy with the plain simulator, which is its definition."""


def test_the_replaying_checker_shares_no_code_with_what_it_checks() -> None:
    for path in FILES:
        inside = path.parent.name == "ddl_cluster" and path.parent.parent.name == "formulations"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or "ddl_cluster." not in (node.module or ""):
                continue
            names, module = {alias.name for alias in node.names}, (node.module or "").rpartition(".")[2]
            if inside and path.stem in REPLAYED:
                assert module in REPLAYED | {"instance", "solution"}, f"{path.relative_to(ROOT)} imports {module}"
            if inside and path.stem.startswith("audit"):
                assert module in {"instance", "audit_links"}, f"the audit imports {module}"
            if path.is_relative_to(ROOT / "heuristics"):
                assert module != "plain_events" and "simulate_plain" not in names, path.relative_to(ROOT)


def test_checkers_share_no_code_with_models_or_heuristics() -> None:
    elastic = ROOT / "formulations" / "gpu_sharing" / "elastic.py"  # the checker of schedules outside the model
    for check in [*(ROOT / "formulations").rglob("check*.py"), elastic]:
        own = {f"schedgap.formulations.ddl_cluster.{name}" for name in REPLAYED}
        for node in ast.walk(ast.parse(check.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("schedgap"):
                module = node.module or ""
                allowed = module.startswith("schedgap.formulations.common") or module.endswith(
                    (".instance", ".solution")
                )
                allowed = allowed or (check.parent.name == "ddl_cluster" and module in own)
                folder = f"schedgap.formulations.{check.parent.name}.check"  # parts of a checker, checked here too
                allowed = allowed or module.startswith(folder)
                assert allowed, f"{check.relative_to(ROOT)} imports {module}"


def test_heuristics_and_models_take_nothing_from_checkers() -> None:
    """But the verdict: a whole check, to score or to confirm."""
    for path in FILES:
        checker = path.stem.startswith("check") or path.stem == "elastic"
        if checker or not any(
            path.is_relative_to(ROOT / folder) for folder in ("formulations", "solvers", "heuristics")
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            stem = module.rpartition(".")[2]
            if module.startswith("schedgap.formulations") and (stem.startswith("check") or stem == "elastic"):
                taken = {alias.name for alias in node.names}  # type: ignore[attr-defined]
                allowed = {name for name in taken if name.startswith("check") or name[0].isupper()}
                assert taken == allowed, f"{path.relative_to(ROOT)} imports {taken - allowed} from {module}"
