"""Linear programs on which HiGHS gives up: no method falls, and none takes that for a proof."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import schedgap
from schedgap.benchmarks.report.compare import run_method
from schedgap.catalogue.registry import find_problem, load_instance
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.incumbent import contradicts
from schedgap.solvers.linear_program import LinearProgram
from schedgap.solvers.result import SolveOptions, Status

FILE = Path(__file__).parents[1] / "data" / "attack" / "C-gpu-kunknown.json"
METHODS = [  # those that solve linear programs of their own, and the bounds that all others are told
    ("rar-ddls", "cp"),
    ("hadar", "colgen"),
    ("hadar", "lns"),
    ("hadar", "gavel"),
    ("gpu-sharing", "cp"),
    ("gpu-sharing", "lns"),
    ("g-vne", "colgen"),
    ("g-vne", "lp-rs-mde"),
    ("ddljs", "lns"),
]


def test_a_job_of_no_slot_at_all(tmp_path: Path) -> None:
    problem, instance = load_instance(FILE)
    for method in problem.methods:
        if method.id == "job-pair":
            continue
        result = run_method(problem, instance, method, SolveOptions(threads=1, work_limit=1.0), disagreements=tmp_path)
        assert result.status is not Status.ERROR, method.id
        if not method.outside_model:
            assert result.objective == 1.0, method.id


@cache
def optimum(name: str) -> tuple[Instance, float]:
    """A tiny instance and its optimum."""
    instance = schedgap.generate(name, "tiny", seed=2)
    result = schedgap.solve(instance)
    assert result.status is Status.OPTIMAL and result.objective is not None
    return instance, result.objective


@pytest.mark.parametrize(("name", "method"), METHODS)
@pytest.mark.parametrize("after", [0, 3])
def test_every_method_with_linear_programs_goes_on(
    name: str, method: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the start, and after some programs that were solved."""
    known, value = optimum(name)
    problem, instance = find_problem(name), type(known).parse(known.to_dict())  # nothing is kept with it
    lower_bound.cache_clear()
    runs = 0
    run = LinearProgram._run

    def gives_up(self: LinearProgram) -> str:
        nonlocal runs
        runs += 1
        status = run(self)
        return status if runs <= after else "kUnknown"

    monkeypatch.setattr(LinearProgram, "_run", gives_up)
    options = SolveOptions(threads=1, work_limit=0.5)
    if method == "gavel" and not after:
        with pytest.raises(InputError, match="gavel: HiGHS finds no time fractions"):
            run_method(problem, instance, method, options, disagreements=tmp_path)
        return
    result = run_method(problem, instance, method, options, disagreements=tmp_path)
    lower_bound.cache_clear()
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE), result.info
    assert not contradicts(value, result.bound, problem.sense)
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(value, rel=1e-9)
