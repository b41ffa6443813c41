"""Compiled code that is kept on disk: numba looks at one source file only, callers of other files need more."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_NO_COUNTING: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def kept(function: Function, **options: Any) -> Function:
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
        return result
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
    _places.append(None if len(_places) > 1 else _own_folder())
    if (folder := _places[-1]) is not None:
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder  # type: ignore[attr-defined]
    text = "is compiled anew by every process" if folder is None else f"is kept in {folder}"
    print(f"note: no cache folder of numba can be written: compiled code {text}", file=sys.stderr)
    return kept(function, **options)


_places: list[str | None] = [""]
"""Where machine code is kept: where numba wants to (""), then in a folder of our own, then nowhere (None)."""


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


def compiled(function: Function) -> Function:
    """Compile a function that makes no arrays, and keep it on disk; tuples of arrays are cheap to pass.

    References to arrays are not counted: in short loops that takes longer than all the rest. A numba without this
    switch counts them, which is only slower.
    """
    return kept(function, **_NO_COUNTING)


def written_in(function: Function) -> Function:
    """As :func:`compiled`, for a function that is to be written into its callers."""
    result: Function = numba.njit(inline="always", **_NO_COUNTING)(function)
    return result


def forget_stale(module_file: str, *called_files: str) -> int:
    """Remove the kept machine code of a module that is older than a file whose compiled functions it calls.

    numba's ``cache=True`` compiles again when the module itself changed. Functions of other modules are built
    into the machine code too, and a change there (a new commit in a checkout, say) goes unnoticed. To be called
    before the first compiled function of the module is used.

    Parameters
    ----------
    module_file : ``__file__`` of the module with the calling functions
    called_files : ``__file__`` of the modules with the functions that they call

    Returns
    -------
    How many files were removed. Only ``__pycache__`` beside the module is looked at; where that cannot be
    written, nothing is kept there either.
    """
    module = Path(module_file)
    newest = max(Path(name).stat().st_mtime for name in called_files)
    removed = 0
    for old in (module.parent / "__pycache__").glob(f"{module.stem}.*.nb[ic]"):
        try:
            if old.stat().st_mtime < newest:
                old.unlink()
                removed += 1
        except OSError:  # another process removed it, or may write here and we may not
            continue
    return removed
