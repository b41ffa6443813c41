"""Models that a user changed, solved: against enumeration, and what leaves when equals are told apart."""

from __future__ import annotations

import pulp
import pytest
from oracles.changed_models import examine, runs_and_finishes, workers_on_nodes

import schedgap
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.solvers.column_generation import Generated
from schedgap.solvers.exact.hadar.changed import solve_changed
from schedgap.solvers.exact.hadar.colgen import ScheduleSearch
from schedgap.solvers.result import SolveOptions

FORCED = (48, 94, 116, 132, 138)
"""Seeds of rar-ddls whose optimum is lost where equals are ordered although a change tells them apart."""

NOTICED = (1424,)
"""Once wrong: a sum that was added to in place changed the GPUs of a server."""


LOST = (73, 563, 608)
"""Seeds of hadar whose optimum is lost where every row about `run` and `finish` is one of the master."""


def test_cp_of_rar_ddls_solves_random_changes_as_enumeration_does() -> None:
    answers = [examine("rar-ddls", seed, beyond=frozenset({"run"})) for seed in (*range(30), *FORCED, *NOTICED)]
    assert answers.count("cp") > 20
    assert set(answers) <= {"cp", "no schedule"}


def test_colgen_of_g_vne_solves_random_changes_as_enumeration_does() -> None:
    beyond = frozenset({"route", "rank"})
    answers = [examine("g-vne", seed, beyond=beyond, gather=workers_on_nodes) for seed in range(40)]
    assert answers.count("colgen") > 30
    assert set(answers) <= {"colgen", "no schedule"}


BESIDE = frozenset({"devices", "uses", "rate"})
"""Families of hadar whose variables the master does not know."""


def test_colgen_of_hadar_solves_random_changes_as_enumeration_does() -> None:
    stopping = [examine("hadar", seed, beyond=BESIDE, gather=runs_and_finishes) for seed in range(40)]
    any_sum = [examine("hadar", seed, beyond=BESIDE) for seed in range(40, 80)]
    assert stopping.count("colgen") > 10
    assert any_sum.count("colgen") > 5
    assert any_sum.count("highs") > 5, "rows that the master cannot say"


@pytest.mark.parametrize("stage", ["branch and price", "compact program"])
def test_each_stage_of_hadar_closes_changed_models_alone(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    def polish(search: ScheduleSearch, root: Generated, attempt: int) -> bool:
        return stage == "compact program" and ScheduleSearch.polish(search, root, max(attempt, 1))

    monkeypatch.setattr("schedgap.solvers.exact.hadar.changed._ChangedSearch.polish", polish)
    seeds = range(1000, 1030)
    answers = [examine("hadar", seed, beyond=BESIDE, gather=runs_and_finishes) for seed in seeds]
    assert answers.count("colgen") > 5


def test_cuts_of_hadar_that_come_after_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.solvers.exact.hadar.changed.NODES", 0.008)
    monkeypatch.setattr("schedgap.solvers.exact.hadar.changed._ChangedSearch.again_after", 1)
    instance = HadarInstance.model_validate(schedgap.generate("hadar", "small", seed=101).model_dump())
    model = schedgap.model(instance)
    model.maximise(pulp.lpSum((13 - slot) * variable for (_, slot), variable in model.variables["finish"].items()))
    result = solve_changed(instance, model.changes, SolveOptions(threads=1), model.check)
    assert result is not None
    assert result.bound is not None and 21 <= result.bound < 30
    assert result.info["cuts"]


@pytest.mark.parametrize("seed", LOST)
def test_rows_that_need_what_the_master_does_not_know_would_lose_an_optimum(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("schedgap.solvers.exact.hadar.own_rows._lost_by_nothing", lambda *_: True)
    with pytest.raises(AssertionError):
        examine("hadar", seed, beyond=BESIDE)


@pytest.mark.parametrize("seed", [19, 34, 57])
def test_an_engine_goes_on_with_what_branch_and_price_leaves_open(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("schedgap.solvers.exact.g_vne.changed.NODES", 1e-4)
    assert examine("g-vne", seed, beyond=frozenset({"route", "rank"}), gather=workers_on_nodes) == "highs"


def test_changes_about_rates_go_to_an_engine() -> None:
    model = schedgap.model(five_jobs())
    model.add(pulp.lpSum(v for key, v in model.variables["run"].items() if key[0] == "a" and key[1] > 1) == 0)
    info = model.solve(time_limit=2.0).info
    assert "method" not in info and info["exact method"] == "none that can say these changes"


@pytest.mark.parametrize("seed", FORCED)
def test_enumeration_notices_equals_that_are_ordered_although_a_change_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(Changes, "tell_apart", lambda *_: False)
    with pytest.raises(AssertionError):
        examine("rar-ddls", seed, beyond=frozenset({"run"}))


@pytest.mark.parametrize("problem", ["hadar", "gpu-sharing", "g-vne", "ddljs", "gang-placement"])
def test_engines_solve_random_changes_as_enumeration_does(problem: str) -> None:
    answers = [examine(problem, seed) for seed in range(300, 306)]
    assert "highs" in answers


def five_jobs() -> Instance:
    """Five jobs on three servers: optimum 18."""
    built = schedgap.instance("rar-ddls").name("five").horizon(20)
    for server, gpus in (("s0", 4), ("s1", 4), ("s2", 2)):
        built = built.server(server, gpus=gpus)
    built = built.network(
        inter_bandwidth=10, intra_bandwidth=100, contention_scale=1, contention_penalty=0.2, server_overhead=0.0
    ).reduce_speed(1000)
    for job, gpus, iterations in (("a", 4, 100), ("b", 6, 50), ("c", 2, 200), ("d", 3, 80), ("e", 5, 60)):
        built = built.job(
            job, gpus=gpus, iterations=iterations, gradient_size=0.5, batch_size=1, forward_time=0.0, backward_time=0.05
        )
    return built.build()


def test_two_jobs_that_share_no_server() -> None:
    model = schedgap.model(five_jobs())
    uses = model.variables["uses"]
    for server in ("s0", "s1", "s2"):
        model.add(uses["a", server] + uses["c", server] <= 1)
    result = model.solve()
    assert (result.status, result.objective) == ("optimal", 20)


def test_sum_of_completions() -> None:
    model = schedgap.model(five_jobs())
    model.minimise(pulp.lpSum(slot * variable for (_, slot), variable in model.variables["end"].items()))
    result = model.solve()
    assert (result.status, result.objective) == ("optimal", 61)


def test_an_earlier_solution_is_a_start_and_is_repaired_where_it_breaks_an_own_row() -> None:
    instance = schedgap.generate("gang-placement", "tiny", seed=3)
    model = schedgap.model(instance)
    found = model.solve("highs")
    assert found.solution is not None
    assert schedgap.model(instance).solve("highs", start=found.solution).info["start by"] == "start"
    point = model.point(found.solution)
    pods, value = next((v, point[v]) for v in model.variables["pods"].values() if point[v])
    changed = schedgap.model(instance)
    changed.add(next(v for v in changed.variables["pods"].values() if v.name == pods.name) <= value - 1)
    again = changed.solve("highs", start=found.solution)
    assert again.status == "optimal"
    assert again.info["start by"] == "start, repaired"


def test_a_start_that_is_no_schedule_is_refused() -> None:
    model = schedgap.model(five_jobs())
    solution = {"start": dict.fromkeys("abcde", 1), "placement": {job: {"s0": 4} for job in "abcde"}}
    with pytest.raises(schedgap.InputError, match="start: "):
        model.solve(start=solution)
