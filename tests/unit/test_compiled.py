"""Machine code that is kept on disk must not outlive the code that it was made from."""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgap.formulations.common import compiled
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.machine import interpreted, kept_code
from schedgap.formulations.common.machine.late_code import late_code

Here = Callable[[], list[str]]

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

print(calling(), sum(calling.dispatcher.stats.cache_hits.values()))
"""


def run(folder: Path, choice: str = "always") -> list[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "kept"), "NUMBA_CACHE_DIR": ""}
    environment["SCHEDGAP_COMPILE"] = choice
    done = subprocess.run(
        [sys.executable, "calling.py"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.fixture
def run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[], list[str]]]:
    """A call of :func:`run` in that folder, in this process, whose modules of the folder are loaded anew each time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept_code.folder.cache_clear()

    def once() -> list[str]:
        interpreted._text_of.cache_clear()
        for path in tmp_path.glob("*.py"):
            sys.modules.pop(path.stem, None)
        importlib.invalidate_caches()
        capsys.readouterr()
        importlib.import_module("calling")
        return capsys.readouterr().out.split()

    yield once
    kept_code.folder.cache_clear()


@pytest.mark.parametrize("decorator", ["njit_cached", "njit_kernel", "njit_inline", "njit_part", "njit_inner"])
def test_a_change_in_a_called_module_is_seen(tmp_path: Path, run_here: Here, decorator: str) -> None:
    """Also where another module stands between."""
    (tmp_path / "calling.py").write_text(CALLING, encoding="utf-8")
    (tmp_path / "between.py").write_text(BETWEEN, encoding="utf-8")
    called = tmp_path / "called.py"
    called.write_text(CALLED.format(value=1, decorator=decorator), encoding="utf-8")
    assert run_here() == ["1", "0"]
    assert run_here() == ["1", "1"]
    called.write_text(CALLED.format(value=2, decorator=decorator), encoding="utf-8")
    assert run_here() == ["2", "0"]


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
def test_a_function_without_an_entrance_refuses_python(tmp_path: Path, run_here: Here, decorator: str) -> None:
    """Where numba would call address 0: the process goes on, and compiled callers are not disturbed."""
    (tmp_path / "calling.py").write_text(INSIDE.format(decorator=decorator), encoding="utf-8")
    refused = "inner is for compiled code alone; Python calls its py_func"
    assert " ".join(run_here()) == f"8 4 {refused} 9.0 4.5 {refused}"


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


def test_code_kept_for_a_type_that_has_another_name_now_is_made_anew(tmp_path: Path, run_here: Here) -> None:
    (tmp_path / "calling.py").write_text("import named", encoding="utf-8")
    for kind in ("Pair", "Couple"):
        (tmp_path / "named.py").write_text(NAMED.format(kind=kind), encoding="utf-8")
        assert run_here() == ["7"]


CONSTANT = """
from limits import LIMIT
from schedgap.formulations.common.compiled import njit_cached

@njit_cached
def below(value):
    return value < LIMIT

print(below(3), sum(below.dispatcher.stats.cache_hits.values()))
"""


def test_code_that_holds_a_value_of_another_module_is_made_anew_when_that_changes(
    tmp_path: Path, run_here: Here
) -> None:
    """The module has no compiled function of its own."""
    (tmp_path / "calling.py").write_text(CONSTANT, encoding="utf-8")
    (tmp_path / "limits.py").write_text("LIMIT = 2", encoding="utf-8")
    assert run_here() == ["False", "0"]
    (tmp_path / "limits.py").write_text("LIMIT = 40", encoding="utf-8")
    assert run_here() == ["True", "0"]
    (tmp_path / "limits.py").write_text("# the same\nLIMIT = 40", encoding="utf-8")
    assert run_here() == ["True", "1"]


FIELDS = """
from typing import NamedTuple
from schedgap.formulations.common.compiled import njit_cached

class Pair(NamedTuple):
    {one}: int
    {other}: int

@njit_cached
def first(pair):
    return pair.a

print(first(Pair(a=1, b=2)), sum(first.dispatcher.stats.cache_hits.values()))
"""


def test_code_for_a_tuple_is_made_anew_when_its_fields_change_places(tmp_path: Path, run_here: Here) -> None:
    (tmp_path / "calling.py").write_text("import fields", encoding="utf-8")
    for one, other in ("ab", "ba"):
        (tmp_path / "fields.py").write_text(FIELDS.format(one=one, other=other), encoding="utf-8")
        assert run_here() == ["1", "0"]


def test_code_of_a_called_function_that_moved_to_another_module_is_made_anew(tmp_path: Path, run_here: Here) -> None:
    """Machine code names the modules of the functions in it: it cannot be loaded where one of them is gone."""
    calling = CALLING.replace("from between import between", "from {module} import called as between")
    for module in ("called", "moved"):
        (tmp_path / f"{module}.py").write_text(CALLED.format(value=1, decorator="njit_part"), encoding="utf-8")
        (tmp_path / "calling.py").write_text(calling.format(module=module), encoding="utf-8")
        assert run_here() == ["1", "0"]
        (tmp_path / f"{module}.py").unlink()


ONE = """
from schedgap.formulations.common.compiled import njit_cached

@njit_cached
def one():
    return 1

print(one(), sum(one.dispatcher.stats.cache_hits.values()))
"""


def test_a_copy_elsewhere_finds_the_code_unless_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(ONE, encoding="utf-8")
    assert run(tmp_path) == ["1", "0"]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "calling.py").write_text("# another line\n" + ONE, encoding="utf-8")
    (copy / "kept").symlink_to(tmp_path / "kept")
    assert run(copy) == ["1", "1"]
    (code,) = tmp_path.glob("kept/schedgap/compiled/*/*.code")
    code.write_bytes(code.read_bytes()[:-1] + b"x")
    assert run(copy) == ["1", "0"]
    assert run(copy) == ["1", "1"]


def test_a_file_under_another_name_is_not_read(tmp_path: Path, run_here: Here) -> None:
    """Its content is whole, and that of another function."""
    for value in (1, 2):
        (tmp_path / "calling.py").write_text(ONE.replace("return 1", f"return {value}"), encoding="utf-8")
        assert run_here() == [str(value), "0"]
    one, other = tmp_path.glob("kept/schedgap/compiled/*/*.code")
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    assert run_here() == ["2", "0"]
    assert run_here() == ["2", "1"]


@pytest.mark.parametrize("where", ["write", "replace"])
def test_a_full_disk_keeps_nothing_and_changes_nothing(
    tmp_path: Path, run_here: Here, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    (tmp_path / "calling.py").write_text(ONE, encoding="utf-8")
    with monkeypatch.context() as patch:
        if where == "write":
            patch.setattr(kept_code.os, "fdopen", full)
        else:
            patch.setattr(kept_code.Path, "replace", full)
        assert run_here() == ["1", "0"]
    assert {path.suffix for path in tmp_path.glob("kept/schedgap/compiled/*/*")} <= {".lock"}
    assert run_here() == ["1", "0"]


def test_two_processes_at_once_compile_once(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(ONE, encoding="utf-8")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "kept"), "NUMBA_CACHE_DIR": ""}
    environment["SCHEDGAP_COMPILE"] = "always"
    started = [
        subprocess.Popen(
            [sys.executable, "calling.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].split() for process in started) == [["1", "0"], ["1", "1"]]


@njit_cached
def count_up(values: np.ndarray, turns: int) -> int:  # type: ignore[type-arg]
    for _ in range(turns):
        values[0] += 1
    return int(values[0])


def test_ctrl_c_ends_an_interpreted_call_which_has_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent after some milliseconds of processor time; the call would take hours."""
    monkeypatch.setenv("SCHEDGAP_COMPILE", "never")
    values = np.zeros(1, np.int64)
    assert count_up(values, 3) == 3
    handler = signal.signal(signal.SIGVTALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            count_up(values, 2**40)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, handler)
    assert values[0] == 3


def read_only(folder: Path, temporary: Path) -> tuple[list[str], list[str]]:
    """What a compiled function returns where the user's cache folder cannot be made, and the notes."""
    (folder / "calling.py").write_text(ONE, encoding="utf-8")
    (folder / "file").touch()
    places = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(folder / "file"), "NUMBA_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "calling.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **places, "SCHEDGAP_COMPILE": "always"},
    )
    return done.stdout.split(), done.stderr.splitlines()


def test_a_read_only_home_keeps_code_among_the_temporary_files(tmp_path: Path) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    for hits in ("0", "1"):
        values, notes = read_only(tmp_path, temporary)
        assert values == ["1", hits]
        assert len(notes) == 1 and str(temporary) in notes[0]
    (folder,) = temporary.iterdir()
    folder.chmod(0o755)  # somebody else could read, or put, code there
    values, notes = read_only(tmp_path, temporary)
    assert values == ["1", "0"]
    assert len(notes) == 1 and "compiled anew" in notes[0]


def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "t"))
    search = kept_code.folder.__wrapped__
    assert str(search()).startswith(str(tmp_path / "schedgap"))
    for part in ("schedgap", "schedgap/compiled"):
        (tmp_path / part).chmod(0o750)
        assert str(search()).startswith(str(tmp_path / "t"))
        (tmp_path / part).chmod(0o700)
    (tmp_path / "schedgap").rename(tmp_path / "elsewhere")
    (tmp_path / "schedgap").symlink_to(tmp_path / "elsewhere")
    assert str(search()).startswith(str(tmp_path / "t"))


def test_what_was_not_used_for_longest_leaves_a_full_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "versions"
    place.mkdir()
    for age, name in enumerate(("new.code", "old.code", "oldest.code")):
        (place / name).write_bytes(bytes(100))
        os.utime(place / name, (1e9 - age, 1e9 - age))
    (place / "new-half").write_bytes(bytes(1000))
    os.utime(place / "new-half", (1e9, 1e9))
    monkeypatch.setattr(kept_code, "MOST_BYTES", 200)
    kept_code._clean(place)
    assert sorted(path.name for path in place.iterdir()) == ["new.code", "old.code"]


SLOW = """
import numpy as np
from schedgap.formulations.common.compiled import first_use, njit_cached, njit_part

@njit_part
def add(values, k):
    values[0] += values[k]

@njit_cached
def run(values, turns, rng):
    for _ in range(turns):
        for k in range(1, len(values)):
            add(values, k)
    return values[0] + rng.random()

for turns in (1, 100_000):
    values = np.arange(11.0)
    print(run(values, turns, np.random.default_rng(1)) - np.random.default_rng(1).random(), values[0])
    print("numba" in __import__("sys").modules)
"""


@pytest.mark.parametrize(
    ("choice", "loaded"),
    [("when-it-pays", ["False", "True"]), ("never", ["False", "False"]), ("always", ["True", "True"])],
)
def test_a_call_that_takes_long_is_made_again_compiled(tmp_path: Path, choice: str, loaded: list[str]) -> None:
    """The arrays and the generator that it had changed by then are as before it."""
    (tmp_path / "calling.py").write_text(SLOW, encoding="utf-8")
    assert run(tmp_path, choice) == ["55.0", "55.0", loaded[0], "5500000.0", "5500000.0", loaded[1]]


def test_kept_code_is_loaded_only_for_more_than_numbas_import(tmp_path: Path) -> None:
    """The first call takes a few steps, the second a million."""
    (tmp_path / "calling.py").write_text(SLOW, encoding="utf-8")
    run(tmp_path, "always")
    assert run(tmp_path, "when-it-pays") == ["55.0", "55.0", "False", "5500000.0", "5500000.0", "True"]


LIMITED = """
import resource
import schedgap

for problem, method, preset in (
    ("hadar", "lns", "trace"), ("ddl-cluster", "ada-srsf", "small"), ("gpu-sharing", "cp", "small")
):
    instance = schedgap.generate(problem, preset, seed=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    result = schedgap.solve(instance, method, time_limit=0.5)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 20, (problem, method)
    print(result.termination.value.replace(" ", "-"))
"""


def test_limits_of_time_hold_where_nothing_is_compiled(tmp_path: Path) -> None:
    """Processor seconds count: as Python these calls take minutes."""
    (tmp_path / "calling.py").write_text(LIMITED, encoding="utf-8")
    assert run(tmp_path, "never") == ["time-limit"] * 3


def test_steps_of_former_processes_count(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(SLOW.replace("100_000", "800"), encoding="utf-8")
    compiled_by = [run(tmp_path, "when-it-pays")[-1] for _ in range(8)]
    assert compiled_by[0] == "False" and "True" in compiled_by


def test_another_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDGAP_COMPILE", "sometimes")
    with pytest.raises(InputError, match="SCHEDGAP_COMPILE: must be always, never or when-it-pays, got 'sometimes'"):
        compiled.choice()


def test_a_numba_without_the_switch_gives_the_same(tmp_path: Path) -> None:
    """Functions that take tuples of arrays, with references counted."""
    code = """
        import sys
        import numpy as np
        from numba.core.options import DefaultOptions
        if sys.argv[1] == "without":
            del DefaultOptions._nrt
        from schedgap.formulations.common import compiled
        compiled._load_numba()

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
        subprocess.run(
            [sys.executable, str(script), how],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "SCHEDGAP_COMPILE": "always",
                "XDG_CACHE_HOME": str(tmp_path / how),
                "NUMBA_CACHE_DIR": "",
            },
        ).stdout
        for how in ("with", "without")
    ]
    assert said == ["15.0\n", "15.0\n"]


RAISING = """
from schedgap.formulations.common.compiled import njit_cached, njit_part

@njit_part
def inner(x, values):
    if x == 1:
        raise ValueError("is one")
    if x == 2:
        raise KeyError("is", x)
    return values[0] // (x - 3)

@njit_cached
def calling(x, values):
    return inner(x, values.copy())

import numpy as np

for x in (1, 2, 3, 4):
    try:
        print(calling(x, np.array([8])))
    except Exception as error:
        print(repr(error))
made = [hasattr(one.library, "_schedgap_late") for one in inner.dispatcher.overloads.values()]
print(made, sum(calling.dispatcher.stats.cache_hits.values()))
"""


def test_what_only_kernels_call_has_no_code_of_its_own_and_raises_as_before(tmp_path: Path, run_here: Here) -> None:
    (tmp_path / "calling.py").write_text(RAISING, encoding="utf-8")
    raised = "ValueError('is one') KeyError('is', 2) ZeroDivisionError('integer division by zero') 8"
    assert " ".join(run_here()) == f"{raised} [True] 0"
    assert " ".join(run_here()) == f"{raised} [] 1"


def test_code_that_was_left_out_is_made_when_it_is_asked_for() -> None:
    import numba

    def two_functions() -> tuple[Any, Any]:
        @numba.njit("int64(int64)", no_cpython_wrapper=True)
        def inner(x: int) -> int:
            return x + 1

        @numba.njit("int64(int64)")
        def outer(x: int) -> int:
            return 2 * int(inner(x))

        return next(iter(inner.overloads.values())), outer

    with late_code():
        one, outer = two_functions()
    users, users_outer = two_functions()
    assert not hasattr(users.library, "_schedgap_late") and users_outer(3) == 8  # a user's functions are as ever
    assert hasattr(one.library, "_schedgap_late") and outer(3) == 8
    pointer = one.library.get_pointer_to_function(one.fndesc.llvm_cfunc_wrapper_name)
    assert not hasattr(one.library, "_schedgap_late")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(pointer)(4) == 5
    assert outer(3) == 8
