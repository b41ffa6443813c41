"""Compiled functions whose machine code is kept on disk, and made anew when any file that they call changes."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.dispatcher import Dispatcher
from numba.core.options import DefaultOptions
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_NO_COUNTING: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def njit_cached(function: Function, **options: Any) -> Function:
    """Compile a function and keep the machine code on disk.

    It is kept beside the package or in the user's cache folder, as numba does. Where neither can be written (an
    installation that is read only, a container without a home), in a folder of the user's own among the temporary
    files; where that is not safe either, the code is compiled anew by every process. A note says so once.

    Parameters
    ----------
    function : what to compile
    options : further options of ``numba.njit``
    """
    options = {**options, "cache": _places[-1] is not None}
    try:
        result: Function = numba.njit(**options)(function)
        return _stamped(result)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
    _places.append(None if len(_places) > 1 else _own_folder())
    if (folder := _places[-1]) is not None:
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder  # type: ignore[attr-defined]
    text = "is compiled anew by every process" if folder is None else f"is kept in {folder}"
    print(f"note: no cache folder of numba can be written: compiled code {text}", file=sys.stderr)
    return njit_cached(function, **options)


_places: list[str | None] = [""]
"""Where machine code is kept: where numba wants to (""), then in a folder of our own, then nowhere (None)."""


_files_called: dict[str, set[str]] = {}
"""Files whose compiled functions each file with compiled functions calls, itself included."""


def _called_files(function: Callable[..., Any]) -> set[str]:
    """The files whose code is built into this function's machine code."""
    own = function.__code__.co_filename
    files = _files_called.setdefault(own, {own})
    for value in function.__globals__.values():
        if isinstance(value, Dispatcher):
            file = value.py_func.__code__.co_filename
            files |= _files_called.get(file, {file})
    return files


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _stamped(function: Function) -> Function:
    """Let numba's index of kept code depend on every file called.

    numba compiles again when the text of the function's own file has changed.
    Functions of other files are built into the machine code too,
    so their texts belong in the index.
    """
    dispatcher: Any = function
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if index is not None:  # code is kept at all
        digests = [_digest(file) for file in sorted(_called_files(dispatcher.py_func))]
        index._source_stamp = (index._source_stamp, digests)
        read = index._load_index

        def overloads() -> dict[Any, str]:
            # An index is read before its stamp is compared: one of former code may name types that are gone.
            try:
                kept: dict[Any, str] = read()
            except (AttributeError, ImportError):
                return {}
            return kept

        index._load_index = overloads
    return function


def _own_folder() -> str | None:
    """A folder for machine code of these very sources that nobody else can write; None where there is none."""
    if not hasattr(os, "getuid"):
        return None
    root = Path(__file__).parents[2]
    sources = sorted(
        path for layer in ("formulations", "solvers", "heuristics") for path in (root / layer).rglob("*.py")
    )
    known = [numba.__version__, *(f"{path} {path.stat().st_mtime_ns}" for path in sources)]
    digest = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"schedgap-{os.getuid()}-{digest}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return str(folder) if ours and os.access(folder, os.W_OK) else None


def njit_kernel(function: Function) -> Function:
    """Compile a function that makes no arrays, and keep it on disk; tuples of arrays are cheap to pass.

    References to arrays are not counted: in short loops that takes longer than all the rest. A numba without this
    switch counts them, which is only slower.
    """
    return njit_cached(function, **_NO_COUNTING)


def njit_inline(function: Function) -> Function:
    """A decorator like :func:`njit_kernel`, for a function that LLVM writes into its only callers.

    The code is as fast as with numba's own inlining, and compiled in
    two thirds of the time: types are inferred once a function, not once a call.
    """
    return _without_entrance(function, forceinline=True, **_NO_COUNTING)


def njit_part(function: Function) -> Function:
    """Compile a function that only compiled functions call.

    Their machine code contains it, and is what is kept.
    """
    return _without_entrance(function)


def njit_inner(function: Function) -> Function:
    """A decorator like :func:`njit_part`, for a function that makes no arrays: see :func:`njit_kernel`."""
    return _without_entrance(function, **_NO_COUNTING)


def _without_entrance(function: Function, **options: Any) -> Function:
    """Compile a function that Python cannot call.

    Its entrances for Python and C take a third of the compilation.
    numba would end the process at such a call; here it is a TypeError.
    """
    options.update(no_cpython_wrapper=True, no_cfunc_wrapper=True)
    result: Any = numba.njit(**options)(function)
    _called_files(function)
    if result is not function:  # with NUMBA_DISABLE_JIT it is the function itself
        overloads = result.overloads

        def keep(compiled: Any) -> None:
            overloads[tuple(compiled.signature.args)] = compiled

        def refuse(*args: object, **kwargs: object) -> None:
            name = function.__name__
            raise TypeError(f"{name} is for compiled code alone; Python calls its py_func")

        # numba's table of what Python may call stays empty,
        # so that each call comes to `_compile_for_args`.
        result.add_overload = keep
        result._compile_for_args = refuse
    inner: Function = result
    return inner


def njit_with(function: Function, helpers: Mapping[Callable[..., object], bool]) -> Function:
    """A decorator like :func:`njit_kernel`, for what the interpreter runs, too, with
    what it calls: each function, and whether it is to be written into its callers.
    """
    files = _called_files(function)
    for helper, inline in helpers.items():
        register_jitable(forceinline=inline, **_NO_COUNTING)(helper)
        files.add(helper.__code__.co_filename)
    return njit_kernel(function)
