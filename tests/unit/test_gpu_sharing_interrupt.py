"""Ctrl-C and the exact method of gpu-sharing."""

from __future__ import annotations

import os
import signal
import time

import pytest
from support.work import PATIENCE

from schedgap.benchmarks.instances.gpu_sharing.random import small
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import SolveOptions


def test_sigint_still_reaches_python_after_a_solve() -> None:
    """CP-SAT's own handler would leave SIGINT with the system's default, which ends the process."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        solve_cp(small(0), SolveOptions(work_limit=0.1, threads=1))
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE)
    finally:
        signal.signal(signal.SIGINT, handler)
