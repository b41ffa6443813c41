"""Linux's Landlock: the kernel keeps a process from reading and changing files, also where it runs machine code."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446


_VERSION, _BENEATH, NO_NEW_PRIVILEGES = 1, 1, 38


_EXECUTE, _WRITE, _READ, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 14


_CHANGES = _WRITE | sum(1 << bit for bit in range(4, 13))
"""Writing files; removing and making entries of every kind."""


_REFER = 1 << 13


_NETWORK, _SCOPE = 0b11, 0b11
"""TCP, bind and connect; abstract sockets and signals to processes outside."""


def restrict(folder: str, readable: Iterable[str]) -> bool:
    """From here on this thread and what it starts change files in `folder` only, and start no program.

    Files are read there and in `readable` (folders with all that is in them, and files); names of files can be listed.

    No TCP connection and no signal to a process outside either, where the kernel is new enough for that. Returns
    whether it holds: False on other systems, and where the kernel has no Landlock.
    """
    if not sys.platform.startswith("linux"):
        return False
    system = ctypes.CDLL(None)
    system.syscall.restype = ctypes.c_long
    version = system.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))
    if version < 1:
        return False
    inside = _CHANGES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    parts = (inside | _READ | _EXECUTE, _NETWORK if version >= 4 else 0, _SCOPE if version >= 6 else 0)
    rules = struct.pack("=QQQ", *parts)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = system.syscall(_CREATE, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0))
    if ruleset < 0:
        return False
    own = ((folder, inside | _READ), (os.devnull, inside & (_WRITE | _TRUNCATE) | _READ))
    for path, allowed in (*own, *((path, _READ) for path in readable)):
        with suppress(OSError):  # what is gone by now is not read
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", allowed, place)
            system.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), rule, ctypes.c_uint(0))
            os.close(place)
    system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    held = system.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)) == 0
    os.close(ruleset)
    return bool(held)
