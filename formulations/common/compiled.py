"""Compiled code that is kept on disk: numba looks at one source file only, callers of other files need more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function that makes no arrays, and keep it on disk; tuples of arrays are cheap to pass.

    References to arrays are not counted, which takes longer than all else in a function of a few loops. A numba
    without that switch counts them.
    """
    switch = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
    result: Function = numba.njit(cache=True, **switch)(function)
    return result


def written_in(function: Function) -> Function:
    """As :func:`compiled`, for a function that is to be written into its callers."""
    switch = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
    result: Function = numba.njit(inline="always", **switch)(function)
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
    for kept in (module.parent / "__pycache__").glob(f"{module.stem}.*.nb[ic]"):
        try:
            if kept.stat().st_mtime < newest:
                kept.unlink()
                removed += 1
        except OSError:  # another process removed it, or may write here and we may not
            continue
    return removed
