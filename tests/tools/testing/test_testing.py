"""``schedgap.testing``: our problems, methods and engines pass what guests are asked; what is broken is told."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from gate.gates import GATES, modest
from gate.instances import FAMILIES, instance_of

from schedgap.catalogue.rar_ddls import RarDdls
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.engines import NAMES, engine
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.result import Deadline, SolveOptions, Status
from schedgap.testing import Broken, check_engine, check_method, check_problem, enumeration
from schedgap.tools.testing.checks import Exact


def _small(problem: str, count: int, first: int = 0) -> list[Instance]:
    return [instance_of(problem, 1, number, FAMILIES) for number in range(first, first + count)]


@pytest.fixture(autouse=True)
def _modest(monkeypatch: pytest.MonkeyPatch) -> None:
    modest(monkeypatch.setattr)


@pytest.mark.parametrize("problem", list(GATES))
def test_our_problems_with_all_their_methods(problem: str) -> None:
    gate = GATES[problem]
    checked = check_problem(
        problem, gate.truth, _small(problem, 2), near=gate.near * (1 + 1e-6), gives_way=gate.gives_way
    )
    assert checked.instances == 2
    assert min(checked.asked[kind] for kind in ("exact", "heuristic", "limited", "bound", "certificate")) > 0


@pytest.mark.parametrize("name", NAMES)
def test_our_engines(name: str) -> None:
    checked = check_engine(name)
    assert checked.asked["answered"] >= 60
    assert checked.infeasible > 5


def _rar(seed: int = 0) -> tuple[Exact, list[Instance]]:
    return GATES["rar-ddls"].truth, [one for one in _small("rar-ddls", 6, seed) if GATES["rar-ddls"].truth(one)[0]]


def test_a_checker_that_accepts_too_much_is_told_with_an_instance() -> None:
    class Lenient(RarDdls):
        def check(self, instance: Instance, solution: Solution) -> CheckReport:
            return replace(super().check(instance, solution), violations=())

    truth, instances = _rar()
    with pytest.raises(Broken, match=r"problem rar-ddls: checker: accepts .*\n  on \{") as told:
        check_problem(Lenient(), truth, instances, methods=[])
    assert '"problem": "rar-ddls"' in str(told.value)


def test_a_bound_beyond_the_optimum_is_told() -> None:
    class Proud(RarDdls):
        def bound(self, instance: Instance) -> float | None:
            bound = super().bound(instance)
            return None if bound is None else bound + 50

    truth, instances = _rar()
    with pytest.raises(Broken, match=r"bound: the bound .* is beyond the optimum"):
        check_problem(Proud(), truth, instances, methods=[])


def test_heuristics_of_guests() -> None:
    truth, instances = _rar()
    row = find_problem("rar-ddls")

    def cautious(instance: Instance, *, seed: int) -> Any:
        return row.quick(instance)

    checked = check_method(cautious, "rar-ddls", truth, instances)
    assert checked.asked["heuristic"] == len(instances)

    def capricious(instance: Any, *, seed: int) -> Any:
        late = dict(row.quick(instance) or {})
        if late:
            first = next(iter(late["start"]))
            late["start"] = {**late["start"], first: late["start"][first] + random.randint(0, 10**6)}
        return late

    with pytest.raises(Broken, match="capricious"):
        check_method(capricious, "rar-ddls", truth, instances)

    def greedy(instance: Any, *, seed: int) -> Any:
        jobs = [job.id for job in instance.jobs]
        return {"start": dict.fromkeys(jobs, 1), "placement": {job: {instance.servers[0].id: 1} for job in jobs}}

    with pytest.raises(Broken, match="greedy"):
        check_method(greedy, "rar-ddls", truth, _small("rar-ddls", 6))


def test_the_truth_by_enumeration_is_what_the_checker_says() -> None:
    instance = _rar()[1][0]
    optimum, solution = GATES["rar-ddls"].truth(instance)
    assert solution is not None
    late = {**solution, "start": {job: slot + 1 for job, slot in solution["start"].items()}}
    assert enumeration("rar-ddls", lambda _: [late, solution])(instance) == (optimum, solution)


class _Liar:
    """HiGHS, whose answers are changed."""

    limits = engine("highs").limits
    handover_cost = engine("highs").handover_cost
    name = "liar"

    def __init__(self, **changed: Any) -> None:
        self.changed = changed

    def version(self) -> str:
        return "0"

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        return replace(engine("highs").solve(model, options), **self.changed)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"objective": 12345.0}, "the optimum is"),
        ({"status": Status.INFEASIBLE, "objective": None, "values": None}, "says infeasible"),
    ],
)
def test_an_engine_that_lies_is_told_with_its_model(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(Broken, match=told) as error:
        check_engine(_Liar(**changed))
    assert "engine liar" in str(error.value)
    assert "staircase" in str(error.value)


def test_p2_of_hadar_ends_with_its_limit() -> None:
    """Its linear programs were asked after the limit, and what they could not say ended in a RuntimeError."""
    from schedgap.catalogue.run import run_method

    row = find_problem("hadar")
    result = run_method(row, _small("hadar", 2)[1], "p2", SolveOptions(deadline=Deadline.after(1e-3)))
    assert result.status in (Status.UNKNOWN, Status.FEASIBLE, Status.OPTIMAL)
