"""The search of hadar's `lns` over orders of the jobs: feasible, repeatable, and its running value is the true one."""

from __future__ import annotations

import numpy as np
import pytest

import schedgap
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import solution_from_levels
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.formulations.hadar.tables import tables
from schedgap.solvers.exact.hadar.list_search import Levels, ListSearch, _anneal, _start
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import SolveOptions


def searched(instance: HadarInstance, work: float = 0.05, seed: int = 0) -> Levels:
    """What the search finds with so much work."""
    found: list[Levels] = []
    best = Incumbent(MAXIMISE, SolveOptions(work_limit=work, seed=seed))
    ListSearch(tables(instance), instance.all_jobs_must_finish).run(best, found.append)
    return found[0]


def drawn(preset: str, seed: int, **changes: object) -> HadarInstance:
    """An instance of a preset, with other values for some keys."""
    data = schedgap.generate("hadar", preset, seed=seed).to_dict() | changes
    return HadarInstance.parse(data)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preset", ["tiny", "small", "contended"])
def test_what_it_finds_is_feasible_and_repeats_itself(preset: str, seed: int) -> None:
    instance = drawn(preset, seed)
    levels = searched(instance, seed=seed)
    assert levels == searched(instance, seed=seed)
    solution = solution_from_levels(instance, tables(instance), levels)
    assert solution is not None
    report = check(instance, HadarSolution.parse(solution))
    assert report.feasible
    utility = sum(tables(instance).jobs[j].worth.at(max(own)) for j, own in levels.items())
    assert report.objective == pytest.approx(utility)


def test_the_value_of_a_changed_order_is_that_of_placing_all_jobs() -> None:
    search = ListSearch(tables(drawn("small", 3)), must=False)
    order, slowest = search._first(), search._slowest
    state = _start(order, slowest, search._problem)
    first = state.worth[0]
    for seed in range(20):
        _anneal(30, 5.0, np.random.default_rng(seed), search._slowest, state, search._problem)
        again = _start(state.order, state.slowest, search._problem)
        assert state.worth[0] == pytest.approx(again.worth[0])
        assert (state.free == again.free).all() and state.worth_before == pytest.approx(again.worth_before)
        assert _start(state.best_order, state.best_slowest, search._problem).worth[0] == pytest.approx(state.worth[1])
    assert state.worth[1] >= first


def test_where_all_jobs_must_finish_they_do() -> None:
    instance = drawn("small", 1, all_jobs_must_finish=True, horizon=60)
    assert len(searched(instance)) == len(instance.jobs)


def test_lns_starts_from_the_orders() -> None:
    instance = schedgap.generate("hadar", "trace", seed=0, jobs=40, nodes=2, horizon=60)
    result = schedgap.solve(instance, "lns", work_limit=0.5)
    best = max(schedgap.solve(instance, name).objective or 0.0 for name in ("hadar-rounds", "hadar-online"))
    assert result.objective is not None and result.objective >= best
    assert result.info["orders tried"] > 0


def test_jobs_that_cannot_run_or_come_too_late() -> None:
    data = schedgap.generate("hadar", "small", seed=2).to_dict()
    many = sum(sum(machine["gpus"].values()) for machine in data["machines"]) + 1
    data["jobs"] += [
        data["jobs"][0] | {"id": "wide", "workers": many},
        data["jobs"][1] | {"id": "slow", "throughput": {}},
    ]
    instance = HadarInstance.parse(data)
    levels = searched(instance)
    assert levels and not levels.keys() & {len(instance.jobs) - 2, len(instance.jobs) - 1}
