"""theta and schedule-set, whose programs a limit ends, prove nothing and keep the start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import schedgap
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.time_indexed import quick_solution
from schedgap.solvers import engines
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.exact.rar_ddls.reformulated import solve_schedule_set, solve_theta
from schedgap.solvers.result import NO_DEADLINE, Result, SolveOptions, Status, Termination


@pytest.mark.parametrize("method", [solve_schedule_set, solve_theta])
def test_a_limit_is_no_proof(method: Callable[[RarDdlsInstance, SolveOptions], Result]) -> None:
    instance = schedgap.generate("rar-ddls", "tiny", seed=1)
    assert isinstance(instance, RarDdlsInstance)
    over = NO_DEADLINE.capped(-1.0)
    assert method(instance, SolveOptions(over, threads=1)).status is Status.UNKNOWN
    start = quick_solution(instance)
    result = method(instance, SolveOptions(over, threads=1, start=start))
    assert result.status is Status.FEASIBLE and result.solution == start


def test_infeasible_beyond_the_range_of_the_engine_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = schedgap.generate("rar-ddls", "tiny", seed=1)
    assert isinstance(instance, RarDdlsInstance)
    believed, options = engine("highs"), SolveOptions(NO_DEADLINE, threads=1, start=quick_solution(instance))
    assert solve_theta(instance, options).bound is not None

    asked: list[DeclarativeModel] = []

    class Doubted:
        name, version = believed.name, believed.version

        def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
            answer = believed.solve(model, options)
            asked.append(model)  # the largest theta has a schedule; every smaller one is refused, falsely
            falsely = {} if len(asked) == 1 else {"status": Status.INFEASIBLE, "values": None}
            return replace(answer, doubt="its range is exceeded", **falsely)

    monkeypatch.setattr(engines, "engine", lambda name: Doubted())
    result = solve_theta(instance, options)
    assert (result.status, result.bound, result.termination) == (Status.FEASIBLE, None, Termination.FAILED)
