"""Every reference case by every exact method."""

import json
from pathlib import Path

import pytest
from oracles.gpu_sharing import brute_force

from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.catalogue.method import Kind
from schedgap.catalogue.run import run_method
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.result import SolveOptions

CASES = sorted((Path(__file__).parents[1] / "data").glob("gpu-sharing-*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("method", ["cp", "cbc", "highs", "cpsat"])
def test_gpu_sharing_reference(path: Path, method: str) -> None:
    data = json.loads(path.read_text())
    instance = GpuSharingInstance.parse(data)
    result = run_method(GPU_SHARING, instance, method, SolveOptions(threads=1))
    assert str(result.status) == data["reference"]["status"]
    if data["reference"]["optimum"] is None:
        assert result.objective is None
        assert lower_bound(instance) is None
    else:
        assert result.objective == pytest.approx(data["reference"]["optimum"], rel=1e-6)
        assert result.bound == pytest.approx(result.objective)
        assert lower_bound(instance) <= result.objective + 1e-9


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("method", [m.id for m in GPU_SHARING.methods if m.kind == Kind.HEURISTIC])
def test_gpu_sharing_reference_by_every_policy(path: Path, method: str) -> None:
    """run_method has the checker look at every schedule and raises where it does not keep the rules."""
    data = json.loads(path.read_text())
    result = run_method(GPU_SHARING, GpuSharingInstance.parse(data), method, SolveOptions(threads=1))
    optimum = data["reference"]["optimum"]
    if optimum is None:
        assert result.solution is None
    elif not result.info.get("outside_model") and result.objective is not None:
        assert result.objective >= optimum - 1e-6


def test_gpu_sharing_there_are_cases() -> None:
    assert len(CASES) == 5


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_gpu_sharing_reference_by_brute_force(path: Path) -> None:
    data = json.loads(path.read_text())
    found = brute_force(GpuSharingInstance.parse(data))
    optimum = data["reference"]["optimum"]
    assert found == (None if optimum is None else pytest.approx(optimum))
