"""The inside of a scheduler's process, as far as this process can show it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import caching

from schedgap.tools.evaluation import guest


def test_the_warm_up_reaches_what_few_instances_need() -> None:
    """Else it is compiled within a candidate's 2 s; and HiGHS runs in a fork, where it waited for the parent's threads.

    In a process of its own, where nothing was compiled before, on ddljs' stored instance that counted 0 for both.
    """
    code = """
        import os, signal
        import schedgap
        from schedgap.tools.evaluation import guest
        from schedgap.catalogue.registry import find_problem
        guest._warm_up(find_problem("ddljs"))
        from schedgap.solvers.exact.g_vne.tree_pricing import split_links
        assert split_links.dispatcher.signatures
        child = os.fork()
        if not child:
            signal.alarm(120)
            found = schedgap.solve(schedgap.generate("ddljs", "tiny", seed=6), "gadget", seed=0)
            os._exit(found.solution is None)
        assert os.waitpid(child, 0)[1] == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_what_a_candidate_compiles_of_ours_need_not_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that the warm-up did not reach ended in "a scheduler may not write": on four of ddljs' stored instances."""

    def refused(*_: Any) -> None:
        raise PermissionError("a scheduler may not write")

    def one_more(number: int) -> int:
        return number + 1

    monkeypatch.setattr(caching.Cache, "_save_overload", refused)
    kept = caching.Cache._guard_against_spurious_io_errors
    monkeypatch.setattr(caching.Cache, "_guard_against_spurious_io_errors", kept)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    with pytest.raises(PermissionError):
        numba.njit(cache=True)(one_more)(1)
    guest._compile_without_files(str(tmp_path))
    assert numba.njit(cache=True)(one_more)(1) == 2 and str(tmp_path / "numba") == numba.config.CACHE_DIR
