"""A user who is not root: ``python -m support.nobody UID COMMAND ...``, started by root.

Folders that only root may enter (a home with the interpreter, a scratch folder with the environment) are entered
in name spaces of mounts of its own: what is needed below them is mounted where it was, readable for everybody.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

MAY_ENTER = 0o5
NO_MOUNTS = "may not make mounts of its own"
_NEW_MOUNTS, _BIND, _WHOLE, _OWN = 0x20000, 0x1000, 0x4000, 0x40000
_C = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    """The system's call; OSError where it refuses."""
    if _C.mount(source.encode(), os.fsencode(target), kind.encode(), flags, data.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def closed_above(path: Path) -> Path | None:
    """The first folder on the way to a path that not everybody may enter."""
    return next((folder for folder in reversed(path.parents) if folder.stat().st_mode & MAY_ENTER != MAY_ENTER), None)


def open_ways_to(paths: Iterable[Path]) -> None:
    """In a name space of its own, so that nobody else sees it: each path can be reached by everybody."""
    closed_ones = {path: closed for path in paths if (closed := closed_above(path)) is not None}
    if not closed_ones:
        return
    if _C.unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), NO_MOUNTS)
    mount("none", Path("/"), "", _WHOLE | _OWN)
    hidden: dict[Path, dict[Path, int]] = {}
    for path, closed in closed_ones.items():
        hidden.setdefault(closed, {})[path] = os.open(path, os.O_PATH)
    for closed, below in hidden.items():
        mount("none", closed, "tmpfs", 0, "mode=755")
        for path, held in below.items():
            path.mkdir(parents=True, exist_ok=True)
            mount(f"/proc/self/fd/{held}", path, "", _BIND | _WHOLE)


def main() -> None:
    """Becomes the user, and then the command."""
    user, command = int(sys.argv[1]), sys.argv[2:]
    here = Path.cwd()
    open_ways_to({*map(Path, (sys.prefix, sys.base_prefix)), Path(__file__).parents[2], here})
    os.chdir(here)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
