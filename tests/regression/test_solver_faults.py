"""Instances on which an engine once called a wrong value optimal (tests/data/solver-faults/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedgap.benchmarks.report.compare import run_method
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import load_instance
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.incumbent import contradicts
from schedgap.solvers.result import SolveOptions, Status

FOLDER = Path(__file__).parent.parent / "data" / "solver-faults"
FILES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", FILES)
def test_every_exact_method_answers_right(name: str, tmp_path: Path) -> None:
    """The optimum; or a feasible value with a bound that is true, but for the default method."""
    path = FOLDER / f"{name}.json"
    optimum = json.loads(path.read_text())["reference"]["optimum"]
    problem, instance = load_instance(path)
    methods = [method for method in problem.methods if method.kind is not Kind.HEURISTIC]
    assert len(methods) >= 3
    for method in methods:
        try:
            result = run_method(problem, instance, method, SolveOptions(threads=1), disagreements=tmp_path)
        except ModelRefused:  # numbers that the engine would drop
            assert method.kind is Kind.ENGINE and method is not methods[0]
            continue
        if "relaxation" in result.info:  # a bound and no more
            assert not contradicts(optimum, result.bound, problem.sense), method.id
            continue
        assert result.objective is not None, method.id
        if method is methods[0]:
            assert result.status is Status.OPTIMAL
        if result.status is Status.OPTIMAL:
            assert agrees(result.objective, optimum), method.id
        else:
            assert result.status is Status.FEASIBLE, method.id
            assert not contradicts(result.objective, optimum, problem.sense), method.id
        assert not contradicts(optimum, result.bound, problem.sense), method.id
