"""Compiled code that is kept on disk: numba looks at one source file only, callers of other files need more."""

from __future__ import annotations

from pathlib import Path


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
