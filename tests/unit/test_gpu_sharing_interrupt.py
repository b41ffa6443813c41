"""Ctrl-C and the exact method of gpu-sharing."""

from __future__ import annotations

import os
import signal
import threading

from schedgap.benchmarks.generators import gpu_sharing as generators
from schedgap.benchmarks.presets import GPU_SHARING_PRESETS
from schedgap.solvers.exact.gpu_sharing import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions, Termination


def test_ctrl_c_is_noticed_and_still_python_s_afterwards() -> None:
    assert generators.__name__
    preset = next(preset for preset in GPU_SHARING_PRESETS if preset.id == "small")
    from schedgap.benchmarks.descriptors import resolve

    instance = resolve(preset.function)(0)
    solve_cp(instance, SolveOptions(deadline=Deadline.after(3), threads=1))  # compiled before the clock counts
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        result = solve_cp(instance, SolveOptions(deadline=Deadline.after(30), threads=1))
        timer.cancel()
        assert result.solution is not None
        assert result.termination in (Termination.INTERRUPTED, Termination.PROVEN)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.5)
        except KeyboardInterrupt:
            return
    finally:
        signal.signal(signal.SIGINT, handler)
    raise AssertionError("SIGINT no longer reaches Python")
