"""The house rules that a machine can check: layers, packaging, file sizes."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("formulations", "solvers", "heuristics", "benchmarks", "interface")
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


def test_every_package_is_shipped() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(config["tool"]["setuptools"]["packages"])
    there = set()
    for layer in LAYERS:
        for init in (ROOT / layer).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            there.add(".".join(("schedgap", *(parts[1:] if layer == "interface" else parts))))
    assert shipped == there


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


PARTS = {
    "ddl_cluster": ("audit", "audit_links", "check_schedule", "clock", "plain_events", "reading", "simulate_plain"),
}
"""Modules that belong to a problem's checker: ddl-cluster's replays its plain simulator, which is its meaning."""


def test_checkers_share_no_code_with_models_or_heuristics() -> None:
    for folder in (path for path in (ROOT / "formulations").iterdir() if (path / "check.py").exists()):
        own = f"schedgap.formulations.{folder.name}."
        parts = (*PARTS.get(folder.name, ()), "instance")
        for path in (*folder.glob("check*.py"), *(folder / f"{name}.py" for name in parts if name != "instance")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("schedgap"):
                    module = node.module or ""
                    known = module.startswith(own) and module.removeprefix(own) in parts
                    allowed = module.startswith("schedgap.formulations.common") or known
                    assert allowed, f"{path.relative_to(ROOT)} imports {module}"
