"""A process that ends with the one that started it, however that one ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

POLL = 0.5
"""Seconds between two looks at who the parent is, where the system does not tell."""
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int, *, watch: bool = True) -> None:
    """End this process, and the process group it leads, as soon as its parent ends; at once if it already has.

    Linux kills it with its parent. Everywhere a thread looks who the parent is, which changes when the first one
    ends: it also ends what this process has started itself.

    Parameters
    ----------
    parent : the parent's process id as the parent itself gave it: asked for here, it may be that of init already
    watch : start the thread
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def gone() -> bool:
        return os.getppid() != parent

    def end() -> None:
        try:
            if os.getpgid(0) == os.getpid():
                os.killpg(0, signal.SIGKILL)
        finally:  # a process that may send no signals
            os._exit(1)

    def look() -> None:
        while not gone():
            time.sleep(POLL)
        end()

    if gone():
        end()
    if watch:
        threading.Thread(target=look, daemon=True, name="parent watch").start()
