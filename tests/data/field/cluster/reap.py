"""Runs a command as a subreaper: what it orphans is collected here, which the first process of a container may not."""

import ctypes
import os
import sys

SET_CHILD_SUBREAPER = 36  # of prctl
ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
