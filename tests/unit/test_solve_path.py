"""The way of one solve through the house: which modules it imports, and which files and lines it runs through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import schedgap
from schedgap.catalogue.registry import BUILT_IN, find_problem

ROOT = Path(__file__).resolve().parents[2]
FILES, LINES = 12, 1200
"""From ``schedgap solve FILE`` to a checked Result; lines are those of the functions that run."""
ENGINES = ("cbc", "highs", "cpsat")

TRACED = """
import io, json, sys, threading
from contextlib import redirect_stderr, redirect_stdout
from schedgap.cli.main import main

ran = {}
DONE = []

def note(frame, event, argument):
    code = frame.f_code
    if threading.current_thread().name == "progress":  # how much it runs depends on the clock
        return
    if event == "call" and not DONE and code.co_flags & 1:  # what is optimised is a function, no class or module
        ran.setdefault(code.co_filename, set()).add(code)
    elif event == "return" and code.co_qualname == "run_method":
        DONE.append(True)

threading.setprofile(note)
sys.setprofile(note)
with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
    status = main(sys.argv[1:])
sys.setprofile(None)
lines = {}
for file, codes in ran.items():
    numbers = [[n for *_, n in code.co_lines() if n] for code in codes]
    lines[file] = len({n for part in numbers for n in range(min(part), max(part) + 1)})
print(json.dumps({"status": status, "lines": lines, "modules": sorted(sys.modules)}))
"""


def _traced(file: Path, *more: str) -> dict[str, object]:
    command = [sys.executable, "-c", TRACED, "solve", str(file), "--no-confirm", *more]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(run.stdout)
    assert found["status"] == 0, run.stderr
    return found


def _folder(problem_id: str) -> str:
    return problem_id.replace("-", "_")


@pytest.mark.parametrize(
    ("problem_id", "engine"),
    [("rar-ddls", "cpsat"), ("g-vne", None), ("rar-ddls", "cbc"), ("ddljs", None)],
)
def test_a_solve_imports_no_other_problem_and_no_other_engine(
    problem_id: str, engine: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "instance.json"
    file.write_text(json.dumps(schedgap.generate(problem_id, seed=1).to_dict()), encoding="utf-8")
    modules = _traced(file, *([] if engine is None else ["--method", engine]))["modules"]
    assert isinstance(modules, list)
    ours = [name.split(".") for name in modules if name.startswith("schedgap.")]
    allowed = {problem_id, "g-vne"} if problem_id == "ddljs" else {problem_id}
    others = {name: _folder(name) for name in BUILT_IN if name not in allowed}
    foreign = [".".join(parts) for parts in ours if set(parts) & set(others.values())]
    assert not foreign, f"solving {problem_id} imports {foreign}: import it where it is used, not at the top of a file"
    if engine is not None:
        loaded = {name for name in ENGINES if f"schedgap.solvers.engines.{name}" in modules}
        loaded |= {"cpsat"} if "ortools.sat.python.cp_model" in modules else set()
        assert loaded == {engine}, f"{engine} imports {loaded - {engine}}: engines are imported when they are asked"


def test_one_solve_runs_through_few_files(tmp_path: Path) -> None:
    """Beside the engine, the problem's own folders, and what every problem is written with (formulations/common)."""
    problem = find_problem("rar-ddls")
    file = tmp_path / "instance.json"
    file.write_text(json.dumps(schedgap.generate(problem.id, seed=1).to_dict()), encoding="utf-8")
    lines = _traced(file, "--method", "highs")["lines"]
    assert isinstance(lines, dict)
    path: dict[str, int] = {}
    for name, number in lines.items():
        place = Path(name)
        if not place.is_relative_to(ROOT) or ".venv" in place.parts or "tests" in place.parts:
            continue
        parts = place.relative_to(ROOT).with_suffix("").parts
        beside = parts[:2] in (("solvers", "engines"), ("formulations", "common")) or _folder(problem.id) in parts
        if not beside:
            path["/".join(parts)] = number
    told = ", ".join(f"{name} {number}" for name, number in sorted(path.items()))
    assert "catalogue/run" in path, "the trace has missed the solve"
    assert len(path) <= FILES, f"one solve runs through {len(path)} files of {FILES}: {told}"
    assert sum(path.values()) <= LINES, f"one solve runs through {sum(path.values())} lines of {LINES}: {told}"


def test_compilation_is_on_no_clock() -> None:
    """Machine code is made once: neither a time limit nor a result's seconds pay for it."""
    code = """
import time, numba
from schedgap.solvers.result import Deadline, clock
deadline = Deadline.after(3600)
began, real = clock(), time.monotonic()

@numba.njit
def inner(x):
    return [x * k for k in range(3)]

@numba.njit
def outer(x):
    return sum(inner(x)) + len(inner(x + 1))

outer(1.5)
real, counted = time.monotonic() - real, clock() - began
assert real > 0.1 and counted < 0.5 * real, (real, counted)
assert deadline.remaining() > 3600 - 0.5 * real
"""
    subprocess.run([sys.executable, "-c", code], check=True)
