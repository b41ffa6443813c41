"""What a hunt has found, on the disk at once: one line of JSON each, appended by any process, never rewritten."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from schedgap.benchmarks.sweep.store import StoreError
from schedgap.formulations.common.instance import Json

FILE = "journal.jsonl"


class Journal:
    """The lines of a hunt.

    A line is one write under a lock and reaches the disk before :meth:`add` returns. A process that is
    killed leaves at most one line without its end; the next line begins on a line of its own, and reading
    passes over what is not whole.

    Parameters
    ----------
    path : the file; its folder must exist
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: Mapping[str, object]) -> None:
        """Append one line.

        Raises StoreError: it cannot be written.
        """
        text = json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n"
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                size = os.fstat(handle).st_size
                torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
                data = (("\n" if torn else "") + text).encode()
                while data:
                    data = data[os.write(handle, data) :]
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def lines(self) -> Iterator[dict[str, Json]]:
        """Every whole line, in the order written.

        Raises StoreError: it cannot be read.
        """
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        for line in text.splitlines():
            try:
                data = json.loads(line)
            except ValueError:  # the end of a line that a killed process did not write
                continue
            if isinstance(data, dict):
                yield data
