"""Files that are there as a whole or not at all."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from schedgap.benchmarks.harness.store import StoreError


def write_whole(path: Path, text: str) -> Path:
    """Write `text` to `path` by way of a second file, so that a crash never leaves half of it.

    Raises
    ------
    StoreError
        It cannot be written (a full disk, a folder without permission).
    """
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def check_folder(folder: Path) -> None:
    """Make sure that files can be written in `folder`, which need not exist yet; nothing is left behind.

    Raises
    ------
    StoreError
        It cannot be made or written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror or error}") from None
    finally:
        for path in missing:
            with suppress(OSError):  # it was never made, or another process uses it by now
                path.rmdir()
