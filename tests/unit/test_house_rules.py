"""The house rules that a machine can check: layers, packaging, file sizes."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from support.deletion import RULES

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("formulations", "solvers", "heuristics", "catalogue", "benchmarks", "interface", "tools")
"""From the ground up; a tool has its command, so it stands above the door, which finds it by entry point."""
SHIPPED = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))
FILES = sorted([*SHIPPED, *(ROOT / "studies").rglob("*.py")])
"""Studies stand in a source checkout alone: speed and scale, robustness, literal references."""


PROBLEMS = ("rar_ddls", "hadar", "gpu_sharing", "comm_contention", "ddl_cluster", "g_vne", "ddljs", "gang_placement")
_DOTTED = re.compile(r"schedgap(\.\w+)+(:\w+)?")


def _on_each(paths: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test of many files, which names every file at fault: a test a file would take longer than what is tested."""

    def of_one(test: Callable[[Path], None]) -> Callable[[], None]:
        def of_all() -> None:
            faults = []
            for path in paths:
                try:
                    test(path)
                except AssertionError as error:
                    faults.append(f"{path.relative_to(ROOT)}: {error}")
            assert not faults, "\n".join(faults)

        of_all.__doc__ = test.__doc__
        return of_all

    return of_one


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported(path: Path) -> frozenset[str]:
    """Full names of what a file imports, strings such as "schedgap.x.y:name" or "schedgap.x.y" included."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            found.add(node.value.replace(":", "."))
    return frozenset(name for name in found if name.split(".")[0] == "schedgap")


def _imported_layers(path: Path) -> set[str]:
    """Layers of schedgap that a file imports."""
    second = {name.split(".")[1] for name in _imported(path)}
    return {name if name in LAYERS else "interface" for name in second}


def _problem(parts: Sequence[str]) -> str | None:
    """The problem whose folder or file this is."""
    return next((part for part in parts if part in PROBLEMS), None)


@_on_each(SHIPPED)
def test_imports_run_downwards_only(path: Path) -> None:
    place = path.relative_to(ROOT)
    own = LAYERS.index(place.parts[0])
    above = {layer for layer in _imported_layers(path) if LAYERS.index(layer) > own}
    assert not above - NAMED_ABOVE.get(str(place), set()), f"{place} imports from above: {sorted(above)}"


@_on_each(FILES)
def test_a_problem_knows_no_other(path: Path) -> None:
    """With one exception: a slot of ddljs is an instance of g-vne. What is common, and solvers, know no problem."""
    place = path.relative_to(ROOT)
    parts = [*place.parts[:-1], path.stem]
    own, known = _problem(parts), {_problem(name.split(".")) for name in _imported(path)} - {None}
    if own is not None:
        assert known <= {own, "g_vne"} if own == "ddljs" else known <= {own}, place
    elif "common" in parts[:2] or parts[0] == "solvers":
        assert not known, place


NAMED_ABOVE = {
    "solvers/engines/__init__.py": {"interface"},  # the name of entry points
    "solvers/certificates/checker.py": {"interface"},  # the same
    "catalogue/registry.py": {"interface"},  # the names of entry points
    "interface/__init__.py": {"tools"},  # what type checkers are told of the API; nothing of it is imported
    "interface/claims.py": {"tools"},  # the same
    "interface/testing.py": {"tools"},  # the same
}
"""Layers above that a file names as text, and imports nothing of."""


@pytest.mark.parametrize("path", sorted((ROOT / "interface" / "cli").glob("*.py")), ids=lambda p: p.stem)
def test_the_command_line_knows_only_the_api(path: Path) -> None:
    """It is a skin: what a command does stands in the interface modules beside it, which api gathers."""
    of_all = "schedgap.formulations.common.errors."  # what errors print; it loads nothing else
    assert all(name.split(".")[1] not in LAYERS or name.startswith(of_all) for name in _imported(path)), path.name


def test_every_package_is_shipped() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(config["tool"]["setuptools"]["packages"])
    there = set()
    for layer in LAYERS:
        for init in (ROOT / layer).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            there.add(".".join(("schedgap", *(parts[1:] if layer == "interface" else parts))))
    assert shipped == there


def test_folders_stay_small() -> None:
    for folder in {path.parent for path in FILES}:
        files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc"]
        assert len(files) <= 25, f"{folder.relative_to(ROOT)} has {len(files)} files"


def test_files_for_people_are_written_whole_or_not_at_all() -> None:
    """By `formulations/common/files.py`; all others write only what the next step of theirs reads."""
    writes = re.compile(r"\.(write_text|write_bytes|to_parquet)\((?!index)")
    direct = {str(p.relative_to(ROOT)) for p in SHIPPED if writes.search(p.read_text())}
    assert direct == {
        "formulations/common/files.py",
        "solvers/engines/cbc_run.py",
        "benchmarks/hunt/target.py",
    }


@_on_each(FILES)
def test_files_stay_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 600, f"{path.relative_to(ROOT)} has {lines} lines of 600: divide it by ideas, one file each"


RINGS = tomllib.loads((Path(__file__).parent / "house_rings.toml").read_text(encoding="utf-8"))
AIMS = {"kit": 15_000, "ddl_cluster": 6_500, "tools": 2_000}
"""Statements that a ring should have at most; a problem 5,500."""
STATEMENTS_TO_SPARE = 150
"""A ring that is further below its limit has lost something, and its limit goes down with it."""


def _ring(path: Path) -> str:
    """What one must know to change a file: the kit, one problem, or one tool."""
    parts = [*path.relative_to(ROOT).parts[:-1], path.stem]
    if parts[0] == "tools":
        return f"tools/{parts[1]}" if len(parts) > 2 else "kit"
    rooms = [RULES.get(part, part) for part in parts]
    tool = f"tools/{rooms[-1]}"
    return _problem(rooms) or (tool if path.stem in RULES and tool in RINGS else "kit")


def _statements(path: Path) -> int:
    """Statements of a file without its imports: a file that becomes two must not count as more to know."""
    imports = (ast.Import, ast.ImportFrom)
    return sum(isinstance(node, ast.stmt) and not isinstance(node, imports) for node in ast.walk(_tree(path)))


def test_every_file_of_the_wheel_is_in_a_ring() -> None:
    rings = {_ring(path) for path in SHIPPED}
    assert rings == set(RINGS), "tests/unit/house_rings.toml: give a new problem or tool a ring, take an empty one out"


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_keeps_its_limit(ring: str) -> None:
    limit, why = RINGS[ring]["statements"], RINGS[ring].get("why", "")
    aim = AIMS.get(ring.partition("/")[0], 5_500)
    assert limit <= aim or why, f"[{ring}]: say why more than the {aim} that a ring should have"
    number = sum(_statements(path) for path in SHIPPED if _ring(path) == ring)
    assert number <= limit, f"{ring} has {number} statements of {limit}: take out what the new ones replace, or say why"
    assert number > limit - STATEMENTS_TO_SPARE, f"{ring} has {number} statements of {limit}: lower the limit"


SHORT_NAMES = {"found", "one", "most", "left", "own", "known", "there", "told", "beside"}
"""Names that say nothing of the field: fine for a few lines, not for longer."""
LONGEST_SHORT_NAME = 5
"""Lines from where such a name is given to where it is read last."""
SHORT_NAMES_LEFT = 490
"""Variables and parameters of this kind that live longer; whoever renames some lowers the number."""


def _long_lived(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The short names of one function that live for too many lines, inner functions included."""
    lines: dict[str, list[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name | ast.arg):
            name = node.id if isinstance(node, ast.Name) else node.arg
            if name in SHORT_NAMES:
                lines.setdefault(name, []).append(node.lineno)
    return {name for name, at in lines.items() if max(at) - min(at) > LONGEST_SHORT_NAME}


def test_short_names_that_live_long_become_fewer() -> None:
    bodies = [_tree(path).body for path in SHIPPED]
    bodies += [node.body for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    functions = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    number = sum(len(_long_lived(function)) for function in functions)
    assert number <= SHORT_NAMES_LEFT, (
        f"{number} names of {sorted(SHORT_NAMES)} live longer than {LONGEST_SHORT_NAME} lines, {SHORT_NAMES_LEFT} may:"
        " say what the thing is"
    )
    assert number > SHORT_NAMES_LEFT - 20, f"SHORT_NAMES_LEFT may be {number}: it only falls"


NAMED_OUTSIDE = {
    "tools/audit/exclusive.py": {"gpu_sharing"},  # a record is a schedule of it
    "tools/audit/sides.py": {"gpu_sharing"},
    "tools/audit/typed_record.py": {"hadar"},
    "tools/laboratory/hadar_rounds.py": {"hadar"},
    "tools/laboratory/paper_metrics.py": {"ddljs", "g_vne", "gpu_sharing", "hadar", "rar_ddls"},
    "tools/laboratory/papers/__init__.py": {"hadar"},
    "benchmarks/proving.py": {"comm_contention", "ddl_cluster"},
    "interface/cli/main.py": {"gpu_sharing", "rar_ddls"},  # examples under the helps
    "tools/evaluation/command.py": {"hadar"},  # the same
    "solvers/certificates/checker.py": set(PROBLEMS),
    "solvers/certificates/instances.py": set(PROBLEMS),
}
"""Files that still name problems which are not theirs; to be struck off one by one."""
OF_SNAPSHOTS = """asking cures draft judge judgement kubernetes/cluster kubernetes/parts leaving lost openb page
ray reading reasons seating slurm/jobs slurm/queue table"""
"""A snapshot is an instance of one problem, a decision a solution of it."""
NAMED_OUTSIDE |= {f"tools/judge/{name}.py": {"gang_placement"} for name in OF_SNAPSHOTS.split()}
REGISTRY = "catalogue/registry.py"
"""The one file that lists the problems of the family."""
_NAMES = re.compile(rf"(?<![a-zA-Z0-9])({'|'.join(p.replace('_', '[-_]') for p in PROBLEMS)})(?![a-zA-Z0-9])")


def _named(path: Path) -> set[str]:
    """Problems that the code of a file names, in a string, a name or an import; docstrings may, as examples."""
    tree = _tree(path)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            texts.append(node.value if isinstance(node.value, str) else "")
        texts += [getattr(node, part) or "" for part in ("id", "attr", "module", "arg") if hasattr(node, part)]
        texts += [node.name] if isinstance(node, ast.alias) else []
    return {name.replace("-", "_") for text in texts if isinstance(text, str) for name in _NAMES.findall(text)}


@_on_each(SHIPPED)
def test_a_problem_is_named_in_its_own_folders_only(path: Path) -> None:
    """And in a paper's (laboratory/papers); ddljs may name g-vne, on which it is built."""
    place = path.relative_to(ROOT)
    parts = [RULES.get(part, part) for part in (*place.parts[:-1], path.stem)]
    if str(place) == REGISTRY or any(part.startswith("paper_") for part in parts):
        return
    foreign = _named(path) - {_problem(parts)} - ({"g_vne"} if "ddljs" in parts else set())
    listed = NAMED_OUTSIDE.get(str(place), set())
    assert foreign <= listed, (
        f"{place} names {sorted(foreign - listed)}: let the problem's own folder or its catalogue table say it,"
        " and ask the registry"
    )
    assert foreign >= listed, f"strike {sorted(listed - foreign)} off NAMED_OUTSIDE[{str(place)!r}]: they are gone"


def test_what_still_names_problems_exists() -> None:
    gone = {name for name in NAMED_OUTSIDE if not (ROOT / name).exists()}
    assert not gone, f"strike off NAMED_OUTSIDE: {sorted(gone)}"


UNTYPED = {
    "formulations/common/compiled.py njit_cached",  # what numba's own decorator takes
    "formulations/common/compiled.py Function",
    "formulations/common/compiled.py __call__",  # whatever a kernel takes and gives
    "formulations/common/compiled.py __init__",
    "formulations/common/compiled.py dispatcher",  # numba's, which has no types
    "formulations/common/machine/interpreted.py __init__",
    "formulations/common/machine/interpreted.py call",
    "formulations/common/machine/kept_code.py load_overload",
    "formulations/common/machine/kept_code.py name_of",
    "formulations/common/machine/kept_code.py path",
    "formulations/common/machine/kept_code.py save_overload",
    "formulations/common/instance.py Json",  # decoded JSON; no other name hides Any
    "formulations/common/instance.py __reduce__",  # as pickle's
    "catalogue/problem.py parts",  # functions of whatever problem
    "heuristics/ddl_cluster/state.py Table",  # numba's records, which have no types
    "interface/__init__.py __getattr__",  # any name of the API
    "interface/reading.py of_tools",  # whatever a tool offers
    "interface/cli/arguments.py __init__",  # as argparse's
    "solvers/cp_sat/child.py receive",  # messages between processes
    "solvers/cp_sat/child.py send",
    "solvers/cp_sat/search.py Value",  # variables and expressions of CP-SAT
    "solvers/exact/rar_ddls/intervals.py Linear",
    "solvers/engines/arrays.py rows_of",  # rows of PuLP, which has no types
    "solvers/ruin_and_recreate.py Load",  # whatever numbers a problem counts with
}
"""Public functions and names of types with Any in them."""


def _has_any(note: ast.AST | None) -> bool:
    """Whether an annotation, text or not, says Any or typing.Any."""
    for part in [] if note is None else ast.walk(note):
        text = isinstance(part, ast.Constant) and isinstance(part.value, str) and re.search(r"\bAny\b", part.value)
        if text or getattr(part, "id", getattr(part, "attr", None)) == "Any":
            return True
    return False


@_on_each(FILES)
def test_no_any_in_a_public_signature(path: Path) -> None:
    place = path.relative_to(ROOT)
    if place.is_relative_to("solvers/certificates") or place.is_relative_to("tools/vipr"):
        return  # it checks bare JSON and imports nothing of ours, the name Json neither
    found = set()
    module = _tree(path).body
    for node in module:
        names = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        for name in names:
            a_type = isinstance(name, ast.Name) and re.fullmatch(r"[A-Z][a-z]\w*", name.id)
            if a_type and _has_any(node.value):  # type: ignore[union-attr]
                found.add(f"{place} {name.id}")
    bodies = [module]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bodies.append(node.body)
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_") or node.name.endswith("__"):
                given = node.args
                every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                notes = [arg.annotation for arg in every if arg is not None] + [node.returns]
                if any(_has_any(note) for note in notes):
                    found.add(f"{place} {node.name}")
    assert not found - UNTYPED


REPLAYED = {"audit", "audit_links", "check_schedule", "replay", "replay_components", "replay_cycles", "simulate_plain"}
"""What belongs to the checker of ddl-cluster: it replays a policy with the plain simulator, which is its definition."""


OF_EVERY_CHECKER = {"instance", "solution", "substrate", "clock", "forked", "scale"}
"""What a problem is: instance, network, solution, in whole numbers where replayed, its objectives as one number."""


def _parts_of(path: Path, problem: str) -> set[str]:
    """The modules of a problem in formulations that a file imports."""
    start = f"schedgap.formulations.{problem}."
    return {name.removeprefix(start).split(".")[0] for name in _imported(path) if name.startswith(start)}


def test_the_replaying_checker_shares_no_code_with_what_it_checks() -> None:
    folder = ROOT / "formulations" / "ddl_cluster"
    for path in folder.rglob("*.py"):
        taken = _parts_of(path, "ddl_cluster")
        if path.parent == folder and path.stem in REPLAYED:
            assert taken <= REPLAYED | OF_EVERY_CHECKER, f"{path.name} imports {taken}"
        if path.parent == folder and path.stem.startswith("audit"):
            assert taken <= {"audit_links", "clock", "instance", "solution"}, f"the audit imports {taken}"
    for path in (ROOT / "heuristics").rglob("*.py"):
        names = {name.rpartition(".")[2] for name in _imported(path)}
        parts = _parts_of(path, "ddl_cluster")
        assert not parts & {"replay", "replay_components", "replay_cycles"} and "simulate_plain" not in names, path


def test_checkers_share_no_code_with_models_or_heuristics() -> None:
    checks = [path for path in (ROOT / "formulations").rglob("*.py") if path.stem.startswith("check")]
    assert len(checks) > len(PROBLEMS)
    for path in checks:
        own = path.parent.name
        allowed = OF_EVERY_CHECKER | {check.stem for check in checks if check.parent == path.parent}
        allowed |= REPLAYED if own == "ddl_cluster" else set()
        for name in _imported(path):
            common = name.startswith("schedgap.formulations.common.")
            parts = name.split(".")
            built_on = parts[1:4] == ["formulations", "g_vne", "check_rings"] and own == "ddljs"
            mine = own != "common" and parts[1:3] == ["formulations", own] and parts[3] in allowed
            assert common or mine or built_on, f"{path.relative_to(ROOT)} imports {name}"


def test_heuristics_and_models_take_nothing_from_checkers() -> None:
    """But the verdict: a whole check, to score or to confirm."""
    for path in FILES:
        checker = path.stem.startswith("check")
        if checker or not any(
            path.is_relative_to(ROOT / folder) for folder in ("formulations", "solvers", "heuristics")
        ):
            continue
        for node in ast.walk(_tree(path)):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            stem = module.rpartition(".")[2]
            if module.startswith("schedgap.formulations") and (stem.startswith("check")):
                taken = {alias.name for alias in node.names}  # type: ignore[attr-defined]
                allowed = {name for name in taken if name.startswith("check") or name[0].isupper()}
                assert taken == allowed, f"{path.relative_to(ROOT)} imports {taken - allowed} from {module}"


_PREPOSITION = re.compile(r"(of|that|those|by|as|(in|to|from|for|on|with|at) which)\b", re.IGNORECASE)
"""Words with which no note and no docstring begins: a note is a noun phrase with its unit."""


def _notes(path: Path) -> Iterator[str]:
    """Docstrings; notes of parameters (``name : note``, or behind ``#`` in a signature), of fields and of constants."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(_tree(path)):
        body: list[ast.stmt] = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []
        for before, after in zip([None, *body], body, strict=False):
            value = after.value if isinstance(after, ast.Expr) else None
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                continue
            if isinstance(before, ast.Assign | ast.AnnAssign):
                yield value.value
            elif before is None:
                yield value.value
                yield from re.findall(r"^\s*[\w*, ]+ : (.*)", value.value, re.MULTILINE)
    for line in lines:
        yield from re.findall(r"^\s+\w+: [^#]*#\s+(.*)", line) + re.findall(r'(?:description|help)="([^"]*)', line)


@_on_each(FILES)
def test_notes_are_noun_phrases(path: Path) -> None:
    assert not [note[:60] for note in _notes(path) if _PREPOSITION.match(note)]


@_on_each(FILES)
def test_a_module_that_is_named_is_there(path: Path) -> None:
    for name in re.findall(r":mod:`~?([.\w]+)`", path.read_text(encoding="utf-8")):
        parts = name.split(".")
        inside = parts[0] != "schedgap" or (len(parts) > 1 and parts[1] not in LAYERS)
        home = path.parent if parts[0] != "schedgap" else ROOT / "interface" if inside else ROOT
        place = home.joinpath(*[part for part in parts if part not in ("", "schedgap")])
        assert place.is_dir() or place.with_suffix(".py").is_file(), f"there is no module {name}"
