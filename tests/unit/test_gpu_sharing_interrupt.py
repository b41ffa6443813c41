"""Ctrl-C and the exact method of gpu-sharing."""

from __future__ import annotations

import os
import signal
import time

import pytest

from schedgap.catalogue.gpu_sharing import PRESETS
from schedgap.catalogue.problem import resolve
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions


def test_sigint_still_reaches_python_after_a_solve() -> None:
    """CP-SAT's own handler would leave SIGINT with the system's default, which ends the process."""
    preset = next(preset for preset in PRESETS if preset.id == "small")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        solve_cp(resolve(preset.function)(0), SolveOptions(deadline=Deadline.after(5), threads=1))
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
    finally:
        signal.signal(signal.SIGINT, handler)
