"""Machine code that is kept on disk must not outlive the code that it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from schedgap.formulations.common.compiled import forget_stale

CALLED = """
import numba

@numba.njit(cache=True)
def called():
    return {value}
"""
CALLING = """
import numba, called
from schedgap.formulations.common.compiled import forget_stale

forget_stale(__file__, called.__file__)

@numba.njit(cache=True)
def calling():
    return called.called()

print(calling(), sum(calling.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "calling.py"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_change_in_a_called_module_is_seen(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(CALLING, encoding="utf-8")
    called = tmp_path / "called.py"
    called.write_text(CALLED.format(value=1), encoding="utf-8")
    assert run(tmp_path) == ["1", "0"]
    assert run(tmp_path) == ["1", "1"]
    called.write_text(CALLED.format(value=22), encoding="utf-8")
    later = called.stat().st_mtime + 10  # coarse clocks of file systems
    os.utime(called, (later, later))
    assert run(tmp_path)[0] == "22"


def test_only_older_code_of_this_module_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    called = tmp_path / "called.py"
    called.write_text("", encoding="utf-8")
    for name, age in (("mine.f-1.py311.nbi", 100), ("mine.f-1.py311.1.nbc", 100), ("mine.g-9.py311.nbi", -100)):
        (kept / name).write_text("", encoding="utf-8")
        moment = called.stat().st_mtime - age
        os.utime(kept / name, (moment, moment))
    for name in ("mine_too.f-1.py311.nbi", "mine.cpython-311.pyc"):
        (kept / name).write_text("", encoding="utf-8")
        os.utime(kept / name, (0, 0))
    assert forget_stale(str(tmp_path / "mine.py"), str(called)) == 2
    left = {path.name for path in kept.iterdir()}
    assert left == {"mine.g-9.py311.nbi", "mine_too.f-1.py311.nbi", "mine.cpython-311.pyc"}
