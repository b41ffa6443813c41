"""Ctrl-C at moments that are sure to be hit: while a native module is imported, and at the end of a run."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.work import PATIENCE, wait_until

from schedgap import interrupt
from schedgap.interrupt import at_once, at_work

DATA = Path(__file__).parents[1] / "data"
AT_IMPORT = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupting(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as error:  # what pybind11 makes of it
                raise ImportError("initialization failed") from error

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["schedgap", *{arguments!r}]
from schedgap.cli.main import main
sys.exit(main())
"""
AT_THE_END = """
import atexit, signal, sys
from schedgap.cli import main

atexit.register(lambda: print("the interpreter's own end"))
def interrupted(arguments):
    raise KeyboardInterrupt
main._dispatch = interrupted
sys.argv = ["schedgap", "solve", "x"]
sys.exit(main.main())
"""

AFTER_THE_END = """
import os, signal, sys
from schedgap.cli import main

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number={number}):
        kill(pid, number)
last = Last()
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["schedgap", "check", "nothing.json", "nothing.json"]
sys.exit(main.main())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("command", ["solve", "compare"])
@pytest.mark.parametrize("module", ["schedgap.cli.solve", "numba", "ortools.sat.python.cp_model"])
def test_an_import_is_not_interrupted_half_way(module: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interruption ended as an import error of the module, or as a crash later on."""
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")  # else numba is not needed for so little
    case = DATA / ("rar-01-single-colocated.json")
    engine = ["--method", "cpsat"] if (module, command) == ("ortools.sat.python.cp_model", "solve") else []
    done = run(AT_IMPORT.format(module=module, arguments=[command, str(case), *engine]))
    if (module, command) == ("numba", "solve"):
        # The method needs it when it is at work: the interruption comes within it, or finds it ended.
        assert done.returncode in (0, 130) and "Error" not in done.stderr
    else:
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "schedgap: interrupted\n")


def test_an_interrupted_process_leaves_without_tearing_down() -> None:
    done = run(AT_THE_END)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "schedgap: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_has_ended_keeps_its_exit_status(number: signal.Signals) -> None:
    """The interpreter forgets its handlers before it is gone: a run that had done all ended with -2, without a word."""
    done = run(AFTER_THE_END.format(number=int(number)))
    assert done.returncode == 2
    assert "nothing.json" in done.stderr


@pytest.mark.parametrize("ignored", [False, True])
def test_a_request_to_end_is_like_ctrl_c(ignored: bool) -> None:
    """Also where SIGINT is ignored, as in a shell's background: what was found was lost there."""
    code = f"""
import signal
from schedgap.interrupt import at_once, at_work, terminate_like_ctrl_c
signal.signal(signal.SIGINT, signal.SIG_IGN if {ignored} else signal.default_int_handler)
terminate_like_ctrl_c()
try:
    with at_once(), at_work():
        signal.raise_signal(signal.SIGTERM)
    print("lives")
except KeyboardInterrupt:
    print("Ctrl-C")
"""
    done = run(code)
    assert (done.stdout.strip(), done.returncode) == ("Ctrl-C", 0)


def test_who_handles_interrupts_himself_is_left_alone() -> None:
    def own(*_: object) -> None:
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        with at_once():
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    with at_once():
        assert signal.getsignal(signal.SIGINT) is not before
        with at_work():
            assert isinstance(signal.getsignal(signal.SIGINT), interrupt._Waiting)
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


INTERRUPTED_IMPORT = """
import os, signal
for _ in range({times}):
    os.kill(os.getpid(), signal.SIGINT)
whole = True
"""


def test_ctrl_c_waits_until_an_import_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hunt of one worker imports engines while it works; half an import was a wrong answer, or a crash."""
    (tmp_path / "half_made_module.py").write_text(INTERRUPTED_IMPORT.format(times=1))
    (tmp_path / "twice_module.py").write_text(INTERRUPTED_IMPORT.format(times=2))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), at_work():
        whole = importlib.import_module("half_made_module").whole
        wait_until(lambda: False, lambda: True)
    assert whole
    with pytest.raises(KeyboardInterrupt), at_work():  # also where what is at work ends at once
        assert importlib.import_module("half_made_module").whole and "half_made_module" in sys.modules
        del sys.modules["half_made_module"]
        importlib.import_module("half_made_module")
    with pytest.raises(KeyboardInterrupt), at_work():  # a second Ctrl-C does not wait
        importlib.import_module("twice_module")
    assert "twice_module" not in sys.modules
    with pytest.raises(KeyboardInterrupt), at_work():
        signal.raise_signal(signal.SIGINT)


TORN = """
import signal, sys
from schedgap import interrupt
from schedgap.cli import main

def dispatch(arguments):
    with interrupt.at_once(), interrupt.at_work():
        try:
            import endless_module
        except KeyboardInterrupt:  # a method has what it found so far, and what comes next imports it anew
            raise KeyError("registered twice")

interrupt.PATIENCE = 0.0
main._dispatch = dispatch
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["schedgap", "solve", "x"]
sys.exit(main.main())
"""


def test_what_fails_after_an_import_was_torn_is_the_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba, imported for more than three seconds on a busy machine, then again: exit 5 and a traceback."""
    endless = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\nwhile True:\n    time.sleep(0.01)\n"
    (tmp_path / "endless_module.py").write_text(endless)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run(TORN)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "schedgap: interrupted\n")


IN_A_CALLBACK = """
import os, signal, sys
from schedgap.cli import main
from schedgap.interrupt import at_work

def interrupt_callback(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "_promote_fields":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

def dispatch(arguments):
    import numpy as np
    pairs = np.zeros(3, dtype=[("a", "i8"), ("b", "i8")])
    sys.setprofile(interrupt_callback)
    with at_work():
        pairs == pairs

main._dispatch = dispatch
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["schedgap", "solve", "x"]
sys.exit(main.main())
"""


def test_native_code_makes_no_other_error_of_an_interruption() -> None:
    """Arrays of records are compared by way of Python, where numpy makes a TypeError of KeyboardInterrupt: exit 5."""
    done = run(IN_A_CALLBACK)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "schedgap: interrupted\n")


@pytest.mark.parametrize("module", ["schedgap.cli.main", "argparse", "schedgap.cli.check"])
def test_ctrl_c_in_the_first_moments(module: str) -> None:
    """While the command line itself is being imported: one line and 130, as later."""
    code = f"""
import os, signal, sys
class First:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(First)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, First)
from schedgap.cli import start
sys.argv = ["schedgap", "check", "nothing.json", "nothing.json"]
sys.exit(start())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "schedgap: interrupted\n")
