"""Files that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from schedgap.benchmarks.store import StoreError


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
