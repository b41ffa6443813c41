"""Files that are there as a whole or not at all: checked before long work begins, never left half written; and how
large those may be that are read."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from schedgap.formulations.common.errors import InputError

if TYPE_CHECKING:
    from gzip import GzipFile

_UMASK = os.umask(0)
os.umask(_UMASK)
"""Asked once, while there is one thread: the only way to ask is to change it for a moment."""


_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS})
_NAMED = 100
"""Characters of its name that the second file has: the name of a file is at most 255 bytes."""
LARGEST_FILE = 64 * 2**20
"""Bytes of a JSON file that is read; decoded it takes at most some thirty times that."""


def check_ends(path: str | Path) -> None:
    """Make sure that reading a file comes to an end: a stranger's folder may hold named pipes and links to devices.

    Raises InputError: it is one, and is not named in /dev or /proc; OSError: there is none.
    """
    mode, place = Path(path).stat().st_mode, str(Path(path).absolute())
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or place.startswith(("/dev/", "/proc/"))):
        raise InputError(f"{path}: is not a regular file")


def read_bytes(path: str | Path, most: int = LARGEST_FILE) -> bytes:
    """The content of a file.

    Raises InputError: it cannot be read, or has more than so many bytes, of which no more are read.
    """
    try:
        check_ends(path)
        with Path(path).open("rb") as file:
            return bounded(file, path, most)
    except IsADirectoryError:
        whole = f"all files of a folder: schedgap bench {path}/*.json"
        raise InputError(f"{path}: is a folder, must be a file ({whole})") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def decoded(content: bytes, path: str | Path) -> str:
    """The text of a file.

    Raises InputError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


def bounded(file: IO[bytes] | GzipFile, path: str | Path, most: int = LARGEST_FILE) -> bytes:
    """The rest of a file that is open.

    Raises InputError: it has more than so many bytes, of which no more are read.
    """
    content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: has more than {most:,} bytes")
    return content


def check_writable(path: Path) -> None:
    """Make sure that `path` can be written, without changing it.

    Raises InputError: it is a directory, its directory is not there, or it cannot be opened for writing.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a directory, cannot be written as a file")
    try:
        # what is not there is not made, not for a moment either: a kill would leave it empty
        with path.open("ab") if path.exists() else tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_text(path: Path, text: str) -> Path:
    """:func:`write_bytes` of a text in UTF-8."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    """Write `content` to `path`: all of it, or nothing where that fails.

    A crash never leaves half of it: it goes to a second file first. Only a file that cannot be replaced, since it is a
    mount of its own or its folder takes no new file, is written in place. Raises InputError: it cannot be written (a
    full disk, a folder without permission).
    """
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_bytes(content)
            return path
        target = path.resolve()  # a link stays a link
        try:
            _replace(target, content)
        except OSError as error:
            if error.errno not in _IN_PLACE or not target.exists():
                raise
            target.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _replace(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:_NAMED]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_UMASK)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_folder(folder: Path) -> None:
    """Make sure that files can be written in `folder`, which need not exist yet; nothing is left behind.

    Raises InputError: it cannot be made or written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None
    finally:
        for path in missing:
            with suppress(OSError):  # it was never made, or another process uses it by now
                path.rmdir()
