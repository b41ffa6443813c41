"""What a foreign scheduler may reach: files it may read, and the container that keeps it from others."""

# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from schedgap.formulations.common.errors import InputError

RECORDS = ("run.sqlite", "card.json", "journal.jsonl", "ledger.json", "hunt.json", "FAMILY.json")
"""A folder with one of these holds what an earlier run found, optima among it."""


MOST_FOLDERS = 5000
"""Folders below the scheduler's own that are looked into; those beyond are not readable."""


LAYERS = ("", ".formulations", ".solvers", ".heuristics", ".catalogue", ".tools", ".benchmarks")


_ANSWERS = tuple(f"schedgap/{folder}" for folder in ("benchmarks/worst", "tools/library", "benchmarks/worst"))
"""Folders that hold answers, in any installation: the last is that of versions up to 0.2."""


_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/System", "/Library/Frameworks", "/opt/homebrew"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "localtime", "timezone", "passwd", "group", "nsswitch.conf")),
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")),
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "version", "sys/vm", "sys/kernel")),
    *(f"/sys/{name}" for name in ("devices/system", "fs/cgroup", "kernel/mm")),
)


def readable(scheduler: str, closed: Sequence[Path]) -> tuple[str, ...]:
    """The folders, with all that is in them, and files that a scheduler may read beside its own folder for work.

    Python and its libraries, schedgap without its library of records, the folder of the scheduler's file (of a module
    in the working directory its outermost package alone) without records of earlier runs, and a little of the system.
    Nothing in `closed`, nor the documentation and tests of schedgap, which hold solutions.
    """
    *_, tools, benchmarks = layers = [_home(layer) for layer in LAYERS]
    sources = benchmarks.parent
    answers = [
        benchmarks / "worst",
        tools / "library",
        *(sources / name for name in ("docs", "tests/data", "tests/oracles")),
    ]
    module, _, _ = scheduler.rpartition(":")
    own = [Path(module).resolve().parent] if module.endswith(".py") else _outermost(module)
    python = [sys.prefix, sys.base_prefix, *_imports()]
    # Other installations of schedgap, of the system's Python or a user's, have the library, too.
    roots = ("/usr", "/usr/local", *python[:2])
    for folder in _ANSWERS:
        answers += [Path(one, folder) for one in python if Path(one, folder).exists()]
        answers += [one for root in roots for one in Path(root).glob(f"lib*/python3*/*/{folder}")]
    shut = {os.path.realpath(path) for path in (*closed, *answers)}
    shut |= {record for folder in own for record in _records_below(folder)}
    places = [*python, *map(str, layers), *map(str, own), *_SYSTEM]
    real = dict.fromkeys(os.path.realpath(place) for place in places if os.path.lexists(place))
    return tuple(dict.fromkeys(part for place in real for part in _without(place, shut)))


def _outermost(module: str) -> list[Path]:
    """The package or file in the working directory that holds a module; none where it is installed."""
    name = module.partition(".")[0]
    return [place for place in (Path.cwd() / name, Path.cwd() / f"{name}.py") if place.exists()]


def environment() -> dict[str, str]:
    """What its process is told of ours."""
    told = ("PATH", "LANG", "PYTHONPATH", "SYSTEMROOT")
    return {key: os.environ[key] for key in told if key in os.environ}


def _imports() -> list[str]:
    """Where its process imports from: not from the folder of a script of ours, nor from what one has added."""
    ask = [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"]
    found: list[str] = json.loads(subprocess.run(ask, env=environment(), capture_output=True, check=True).stdout)
    return [path for path in found if path and Path(path).resolve() != Path.cwd()]


def files_among(given: Iterable[object]) -> list[Path]:
    """The files of instances that are given by their paths: what a scheduler sees of them it is told."""
    return [Path(one) for one in given if isinstance(one, str | Path)]


def _home(layer: str) -> Path:
    spec = importlib.util.find_spec(f"schedgap{layer}")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _records_below(folder: Path) -> Iterator[str]:
    """Folders below this one with records, and those too many to look into."""
    for number, (path, below, files) in enumerate(os.walk(folder)):
        below[:] = [name for name in below if os.path.join(path, name) != sys.prefix]
        if number >= MOST_FOLDERS or any(name in files for name in RECORDS):
            below.clear()
            yield os.path.realpath(path)


def _without(place: str, shut: Iterable[str]) -> Iterator[str]:
    """`place`, or the parts of it in which nothing shut lies; links to elsewhere are no part of it."""
    if any(place == path or place.startswith(path + os.sep) for path in shut):
        return
    inner = [path for path in shut if path.startswith(place.rstrip(os.sep) + os.sep)]
    if not inner:
        yield place
    elif os.path.isdir(place):
        with os.scandir(place) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from _without(entry.path, inner)


def bubblewrap() -> str:
    """The program that makes containers.

    Raises InputError: it is not installed.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise InputError("--container: needs bubblewrap (the program bwrap), which is not installed here")
    return program


def contained_by(program: str, folder: str, places: Sequence[str]) -> list[str]:
    """How bubblewrap starts a command that sees these files and none else, no other process and no network."""
    seen = [
        word for place in places if not place.startswith(("/proc", "/dev")) for word in ("--ro-bind-try", *2 * (place,))
    ]
    links = [path for path in map(Path, ("/bin", "/lib", "/lib64")) if path.is_symlink()]
    linked = [word for path in links for word in ("--symlink", str(path.readlink()), str(path))]
    here = str(Path.cwd())
    own = ["--bind", folder, folder, "--proc", "/proc", "--dev", "/dev", "--dir", here, "--chdir", here]
    shut = ["--remount-ro", "/", "--"]  # what it wrote there would be memory that no limit counts
    return [program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *seen, *linked, *own, *shut]
