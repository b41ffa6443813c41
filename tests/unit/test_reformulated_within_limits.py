"""theta and schedule-set, whose programs a limit ends, prove nothing and keep the start."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import schedgap
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.time_indexed import quick_solution
from schedgap.solvers.exact.rar_ddls.reformulated import solve_schedule_set, solve_theta
from schedgap.solvers.result import NO_DEADLINE, Result, SolveOptions, Status


@pytest.mark.parametrize("method", [solve_schedule_set, solve_theta])
def test_a_limit_is_no_proof(method: Callable[[RarDdlsInstance, SolveOptions], Result]) -> None:
    instance = schedgap.generate("rar-ddls", "tiny", seed=1)
    assert isinstance(instance, RarDdlsInstance)
    over = NO_DEADLINE.capped(-1.0)
    assert method(instance, SolveOptions(over, threads=1)).status is Status.UNKNOWN
    start = quick_solution(instance)
    result = method(instance, SolveOptions(over, threads=1, start=start))
    assert result.status is Status.FEASIBLE and result.solution == start
