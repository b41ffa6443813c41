"""Losses that no small whole numbers tell apart: what rounding admits is left out, one kind of run after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common import numbers
from schedgap.reading import as_instance
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import SolveOptions, Status

FOUND = Path(__file__).parents[1] / "data" / "gate" / "gpu-sharing-losses-of-17-digits.json"


def test_cp_leaves_out_what_rounded_losses_admit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_MULTISETS", 0)
    instance = as_instance(FOUND)
    result = solve_cp(instance, SolveOptions(threads=1))
    assert result.status is Status.INFEASIBLE
    assert result.info["loss scale"] == 10**12
    assert result.info["losses left out"] > 0


@pytest.mark.parametrize("engine", ["highs", "cbc", "cpsat"])
def test_engines_cut_off_what_rounded_losses_admit(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_MULTISETS", 0)
    instance = as_instance(FOUND)
    result = run_method(find_problem("gpu-sharing"), instance, engine, SolveOptions(threads=1))
    assert result.status is Status.INFEASIBLE
    assert result.info["cut off"] > 0
