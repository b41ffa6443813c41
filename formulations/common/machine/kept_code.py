"""Machine code on disk, by the content of what it was made of: one folder for all clones and environments of a user.

A file's name has a digest of the function, of all functions that it calls, and of the values that these take from their
modules; its signature, the processor, and the versions of Python, numba and llvmlite are in the name, too. So a branch
or a version never finds another one's code, and nobody has to say what is out of date.

Code is only read from a folder that belongs to the user, and that nobody else may enter. Files are put in place whole;
whoever reads one checks its digest. When the folder has grown beyond :data:`MOST_BYTES` the files that were not used
for longest are removed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import IO, Any

import numpy as np

from schedgap.formulations.common.machine.interpreted import names_in

MOST_BYTES = 256 * 2**20
"""Bytes of machine code that are kept."""
_DAY = 86_400.0
_PATIENCE = 120.0
"""Seconds to wait, at most, for another process that compiles the same function."""
_SUFFIX = ".code"


@cache
def folder() -> Path | None:
    """Where code is kept: in `NUMBA_CACHE_DIR`, else in the user's cache folder, else among the temporary files.

    None where none of them is the user's alone and can be written; a note on standard error says so, once.
    """
    user = os.getuid() if hasattr(os, "getuid") else ""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    first = (Path(chosen) if chosen else Path("~/.cache").expanduser()) / "schedgap"
    second = Path(tempfile.gettempdir()) / f"schedgap-{user}"
    parts = ("numba", "llvmlite", "numpy")
    versions = f"python{platform.python_version()}-{'-'.join(name + version(name) for name in parts)}"
    for root in (first, second):
        if all(_is_private(part) for part in (root, root / "compiled", root / "compiled" / versions)):
            if root is second:
                _note(f"compiled code is kept in {root}")
            return root / "compiled" / versions
    _note("what is compiled is compiled anew by every process")
    return None


def _note(text: str) -> None:
    print(f"note: no cache folder that is yours alone can be written: {text}", file=sys.stderr)


def _is_private(path: Path) -> bool:
    """Whether a folder, made if it is not there, can be written, and by its owner alone, who is the user."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        state = path.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(state.st_mode) or not os.access(path, os.W_OK):
        return False
    return not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o077)


def name_of(function: Callable[..., Any], callee: Callable[[object], FunctionType | None], options: str) -> str:
    """The name under which a function's code is kept: its module and name, and a digest of all that is compiled.

    Parameters
    ----------
    function : what is compiled
    callee : the function that a value of a module stands for where compiled code calls it, or None
    options : how it is compiled
    """
    digest = hashlib.sha256()
    seen: set[object] = set()

    def add(*parts: object) -> None:
        digest.update("\0".join(map(str, parts)).encode())

    def add_function(function: FunctionType) -> None:
        if function in seen:
            add("again", function.__qualname__)
            return
        seen.add(function)
        add(function.__module__, function.__qualname__, repr(function.__defaults__))
        add_code(function.__code__, function.__doc__)
        for cell in function.__closure__ or ():
            add_value(cell.cell_contents, ())
        names = tuple(dict.fromkeys(names_in(function.__code__)))
        for name in names:
            if name in function.__globals__:
                add(name)
                add_value(function.__globals__[name], names)

    def add_code(code: CodeType, doc: str | None) -> None:
        add(code.co_code.hex(), code.co_names, code.co_varnames, code.co_argcount, code.co_flags)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                add_code(constant, None)
            elif constant != doc or doc is None:
                add(type(constant), repr(constant))

    def add_value(value: object, names: tuple[str, ...]) -> None:
        called = callee(value)
        if called is not None:
            add(repr(getattr(value, "options", "")))
            add_function(called)
        elif isinstance(value, np.ndarray):
            add(value.dtype, value.shape, value.tobytes().hex())
        elif isinstance(value, ModuleType):
            add(value.__name__)
            if value.__name__.partition(".")[0] == __name__.partition(".")[0]:
                for name in names:
                    add_value(getattr(value, name, None), ())
        elif isinstance(value, type):
            add(value.__module__, value.__qualname__, getattr(value, "_fields", ""))
        elif isinstance(value, FunctionType):
            add_function(value)
        else:
            add(type(value), repr(value))

    add(options, sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and "CACHE" not in item[0]))
    assert isinstance(function, FunctionType)
    add_function(function)
    module = function.__module__.removeprefix("schedgap.")
    return f"{module}.{function.__name__}-{digest.hexdigest()[:24]}"


def is_kept(name: str) -> bool:
    """Whether there is code of a function, of whatever signature and processor."""
    place = folder()
    if place is None:
        return False
    try:
        return any(file.name.startswith(name) and file.suffix == _SUFFIX for file in place.iterdir())
    except OSError:
        return False


def is_file(path: Path | None) -> bool:
    """Whether there is such a file that may be looked at."""
    try:
        return path is not None and path.is_file()
    except OSError:
        return False


class KeptCode:
    """The code of one function on disk, as numba's dispatcher asks for it and hands it over.

    Parameters
    ----------
    name : see :func:`name_of`
    """

    cache_path = ""

    def __init__(self, name: str) -> None:
        self._name = name

    def path(self, signature: Any, target: Any) -> Path | None:
        """The file for one signature on this processor."""
        place = folder()
        if place is None:
            return None
        target.refresh()
        kind = (_description(signature), target.codegen().magic_tuple())
        return place / f"{self._name}-{hashlib.sha256(repr(kind).encode()).hexdigest()[:24]}{_SUFFIX}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The code for a signature, or None; a file that is damaged counts as none."""
        from numba.core.compiler import CompileResult

        rebuild: Any = CompileResult._rebuild

        path = self.path(signature, target)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if _digest(path, data[32:]) != data[:32]:
            return None
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _DAY:
                path.touch()
        try:
            return rebuild(target, *pickle.loads(data[32:]))
        except Exception:  # it names a type that is gone, or was written by a numba of other content: anything can fail
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature; where it cannot be kept, or written, nothing happens."""
        from numba.core import serialize

        dumps: Any = serialize.dumps

        path = self.path(signature, result.target_context)
        if path is None or result.lifted or result.library.has_dynamic_globals:
            return
        data = dumps(result._reduce())
        with suppress(OSError):
            _put(path, _digest(path, data) + data)
            _clean(path.parent)

    def flush(self) -> None:
        """Nothing: code of other content has another name."""


def _digest(path: Path, data: bytes) -> bytes:
    """A digest of code and of the name that it is kept by: a file that was renamed, or copied, is another one."""
    return hashlib.sha256(path.name.encode() + b"\0" + data).digest()


def _description(value: Any) -> str:
    """A numba type in words, with the fields of a tuple that has names."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_description, value))})"
    fields = getattr(getattr(value, "instance_class", None), "_fields", "")
    parts = _description(tuple(value.types)) if fields else ""
    return f"{value}{fields}{parts}"


def _put(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _clean(place: Path) -> None:
    """Remove what was not used for longest until the code of all versions has room, and what was left half written."""
    files = []
    for path in place.parent.rglob("*"):
        with suppress(OSError):
            state = path.stat()
            if path.name.startswith("new-") and time.time() - state.st_mtime > _DAY:
                path.unlink()
            elif stat.S_ISREG(state.st_mode):
                files.append((state.st_mtime, state.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= MOST_BYTES:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


@contextmanager
def turn(name: str, waiting: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Within it no other process compiles the same function, where the system has locks and the folder is at hand.

    Parameters
    ----------
    name : see :func:`name_of`
    waiting : a context for the time in which another process does
    """
    file = _lock_file(name)
    if file is None:
        yield
        return
    with file:
        with waiting():
            until = time.monotonic() + _PATIENCE
            while _is_locked_elsewhere(file.fileno()) and time.monotonic() < until:
                time.sleep(0.05)
        yield


def _lock_file(name: str) -> IO[bytes] | None:
    place = folder()
    if place is None or sys.platform == "win32":
        return None
    try:
        return (place / f"{name}.lock").open("ab")
    except OSError:
        return None


def _is_locked_elsewhere(handle: int) -> bool:
    """Whether another process has the lock of a file; else this one has it now, or the file system has no locks."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def steps_taken(name: str) -> int:
    """Steps that processes of this user have interpreted a function for."""
    place = folder()
    try:
        return 0 if place is None else int((place / f"{name}.steps").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def add_steps(name: str, steps: int) -> None:
    """Note that a function was interpreted for so many steps more."""
    place = folder()
    if place is not None:
        with suppress(OSError):
            _put(place / f"{name}.steps", str(steps_taken(name) + steps).encode())
