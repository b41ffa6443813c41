"""Machine code that is kept on disk must not outlive the code that it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CALLED = """
from schedgap.formulations.common.compiled import {decorator}

@{decorator}
def called():
    return {value}
"""
BETWEEN = """
from called import called
from schedgap.formulations.common.compiled import njit_cached

@njit_cached
def between():
    return called()
"""
CALLING = """
from between import between
from schedgap.formulations.common.compiled import njit_cached

@njit_cached
def calling():
    return between()

print(calling(), sum(calling.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "calling.py"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("decorator", ["njit_cached", "njit_kernel", "njit_inline", "njit_part", "njit_inner"])
def test_a_change_in_a_called_module_is_seen(tmp_path: Path, decorator: str) -> None:
    """Also where another module stands between."""
    (tmp_path / "calling.py").write_text(CALLING, encoding="utf-8")
    (tmp_path / "between.py").write_text(BETWEEN, encoding="utf-8")
    called = tmp_path / "called.py"
    called.write_text(CALLED.format(value=1, decorator=decorator), encoding="utf-8")
    assert run(tmp_path) == ["1", "0"]
    assert run(tmp_path) == ["1", "1"]
    called.write_text(CALLED.format(value=2, decorator=decorator), encoding="utf-8")
    assert run(tmp_path) == ["2", "0"]


INSIDE = """
from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_part

@{decorator}
def inner(x):
    return x + 1

@njit_cached
def outer(x):
    return 2 * inner(x)

for value in (3, 3.5):
    print(outer(value), inner.py_func(value))
    try:
        inner(value)
    except TypeError as error:
        print(error)
"""


@pytest.mark.parametrize("decorator", ["njit_inline", "njit_part"])
def test_a_function_without_an_entrance_refuses_python(tmp_path: Path, decorator: str) -> None:
    """Where numba would call address 0: the process goes on, and compiled callers are not disturbed."""
    (tmp_path / "calling.py").write_text(INSIDE.format(decorator=decorator), encoding="utf-8")
    refused = "inner is for compiled code alone; Python calls its py_func"
    assert " ".join(run(tmp_path)) == f"8 4 {refused} 9.0 4.5 {refused}"


NAMED = """
from typing import NamedTuple
from schedgap.formulations.common.compiled import njit_cached

class {kind}(NamedTuple):
    value: int

@njit_cached
def value(pair):
    return pair.value

print(value({kind}(7)))
"""


def test_code_kept_for_a_type_that_has_another_name_now_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text("import named", encoding="utf-8")
    for kind in ("Pair", "Couple"):
        (tmp_path / "named.py").write_text(NAMED.format(kind=kind), encoding="utf-8")
        assert run(tmp_path) == ["7"]


UNWRITABLE = """
import sys
from numba.core import caching

def refuse(self):
    raise OSError("read only")

for kind in caching.CacheImpl._locator_classes:
    if "UserProvided" not in kind.__name__:
        kind.ensure_cache_path = refuse
sys.path.insert(0, {folder!r})
from schedgap.formulations.common.compiled import njit_cached
import functions
print(functions.one(), functions.two(), sum(functions.one.stats.cache_hits.values()))
"""
FUNCTIONS = """
from schedgap.formulations.common.compiled import njit_cached

@njit_cached
def one():
    return 1

@njit_cached
def two():
    return 2
"""


def unwritable(folder: Path, temporary: Path) -> tuple[list[str], list[str]]:
    """What compiled functions return where neither the installation nor the home can be written, and the notes."""
    (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", UNWRITABLE.format(folder=str(folder))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(temporary), "NUMBA_CACHE_DIR": ""},
    )
    return done.stdout.split(), done.stderr.splitlines()


def test_a_read_only_installation_keeps_code_among_the_temporary_files(tmp_path: Path) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    for hits in ("0", "1"):
        values, notes = unwritable(tmp_path, temporary)
        assert values == ["1", "2", hits]
        assert len(notes) == 1 and str(temporary) in notes[0]
    (folder,) = temporary.iterdir()
    folder.chmod(0o777)  # somebody else could put code there
    values, notes = unwritable(tmp_path, temporary)
    assert values == ["1", "2", "0"]
    assert len(notes) == 1 and "compiled anew" in notes[0]


def test_a_numba_without_the_switch_gives_the_same(tmp_path: Path) -> None:
    """Functions that take tuples of arrays, with references counted."""
    code = """
        import sys
        import numpy as np
        from numba.core.options import DefaultOptions
        if sys.argv[1] == "without":
            del DefaultOptions._nrt
        from schedgap.formulations.common import compiled
        assert bool(compiled._NO_COUNTING) == (sys.argv[1] == "with")

        @compiled.njit_inline
        def add(arrays, place):
            arrays[1][place] += arrays[0][place]

        @compiled.njit_kernel
        def run(arrays):
            for place in range(len(arrays[0])):
                add(arrays, place)
            return arrays[1].sum()

        print(run((np.arange(5.0), np.ones(5))))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code), encoding="utf-8")
    said = [
        subprocess.run([sys.executable, str(script), how], capture_output=True, text=True, check=True).stdout
        for how in ("with", "without")
    ]
    assert said == ["15.0\n", "15.0\n"]
