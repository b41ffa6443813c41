"""The suites as planned, without running them."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from oracles.cross import with_search
from oracles.hard_numbers import FAMILIES

from schedgap.benchmarks.instances import find_preset, make_instance, workload_of
from schedgap.benchmarks.suites.plan import SUITES, plan, suites_of
from schedgap.benchmarks.suites.worker import execute
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.compiled import Kernel
from schedgap.solvers.result import SolveOptions
from studies.speed.__main__ import MEASUREMENTS
from studies.speed.__main__ import main as main_of_speed
from studies.speed.charts import round_time_figure, trap_figure
from studies.speed.field import solved, table


@pytest.mark.parametrize("problem_id", all_problems())
def test_every_part_of_a_problem_in_the_suites_can_be_planned(problem_id: str) -> None:
    problem = all_problems()[problem_id]
    assert "quick" in suites_of(problem)
    assert set(suites_of(problem)) <= set(SUITES)
    for suite in suites_of(problem):
        items = plan([suite], scale=0.01, problems=[problem])
        assert items and len({item.record.key for item in items}) == len(items)


REFUSE = {"comm-contention": {"cpsat"}, "ddl-cluster": {"cpsat"}}
"""Engines that refuse a problem's declarative model: it is continuous."""


@pytest.mark.parametrize("problem_id", all_problems())
def test_quick_runs_every_heuristic_and_cross_checks_engines(problem_id: str) -> None:
    problem = all_problems()[problem_id]
    items = plan(["quick"], problems=[problem])
    methods = {item.method.id for item in items}
    assert {method.id for method in problem.methods if method.kind == "heuristic"} <= methods
    engines = {method.id for method in problem.methods if method.kind == "engine"}
    engines -= {"scip"} | REFUSE.get(problem_id, set())  # the suite has the engines that everybody has
    together: dict[str, set[str]] = {}
    for item in items:
        together.setdefault(item.record.instance_hash, set()).add(item.method.id)
    assert any(engines <= found for found in together.values())
    assert all(item.record.limits["time"] is None for item in items)  # only limits that repeat
    exact = {method.id for method in problem.methods if method.kind != "heuristic"}
    assert all(item.record.limits["work"] for item in items if item.method.id in exact)


def test_every_measurement_of_speed_is_a_function() -> None:
    assert all(callable(part.function) for part in MEASUREMENTS.values())
    figures = {part.figure for part in MEASUREMENTS.values()}
    assert {round_time_figure, trap_figure} <= figures
    rows = [{"jobs": 32, "seconds": 0.01}, {"jobs": 64, "seconds": 0.03, "exponent": 1.5}]
    assert round_time_figure(rows).axes[0].get_title() == "seconds grow like jobs^1.50"


def test_measurements_are_run_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main_of_speed(["contention-trap", "--out", str(tmp_path)]) == 0
    assert "AdaDUAL's ratio" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"contention-trap.json", "contention-trap.svg"}


def test_what_a_log_costs_has_exponents(tmp_path: Path) -> None:
    """From what ``solve`` prints: rows without its seconds count as runs that did not end."""
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(make_instance(all_problems()["hadar"], "tiny", 1, {}).to_dict()))
    row = {"problem": "hadar", "method": "srpt", **solved(path, "srpt", 60.0)}
    rows = [{**row, "jobs": 10, "scale": 1, "cpu_seconds": 1.0}]
    for jobs, scale, seconds in ((100, 1, 2.0), (200, 1, 3.0), (400, 1, 5.0), (100, 4, 3.0), (100, 16, 5.0)):
        rows.append({**row, "jobs": jobs, "scale": scale, "cpu_seconds": seconds})
    assert table(rows, [100, 200, 400]).endswith("| 1.00 | 0.50 |")


AMPLE = [(problem, preset) for problem, presets in (("rar-ddls", ("tiny", "contended", "small")),
         ("gpu-sharing", ("tiny", "small"))) for preset in presets]  # fmt: skip


@pytest.mark.parametrize(("problem_id", "preset"), AMPLE)
def test_an_ample_horizon_cuts_off_no_heuristic(problem_id: str, preset: str) -> None:
    problem, cut = all_problems()[problem_id], 0
    for seed in range(12):
        for ample in (True, False):
            instance = make_instance(problem, preset, seed, {"ample": ample})
            runs = [run_method(problem, instance, m, SolveOptions(seed=seed)) for m in problem.heuristics()]
            missing = sum(run.solution is None for run in runs)
            assert not (ample and missing)
            cut += missing
    # the usual horizons do cut some off
    assert cut or (problem_id, preset) == ("gpu-sharing", "small")


def test_no_suite_that_compares_cuts_off_a_heuristic() -> None:
    """Every instance of ``quick`` on which all heuristics run has an ample horizon, or one of its paper's scale."""
    for name in ("rar-ddls", "gpu-sharing"):
        for row in workload_of(all_problems()[name]).suites:
            if row.suite == "quick" and row.heuristics is None:
                assert row.settings.get("ample") or row.preset in ("paper", "table-iii")


@pytest.mark.parametrize(
    ("problem_id", "method"), [("g-vne", "colgen"), ("g-vne", "cbc"), ("comm-contention", "bb"), ("hadar", "colgen")]
)
def test_a_warm_worker_compiles_nothing_more(problem_id: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the warm-up no compiled function meets types that it has not met: nothing of it is in a row's time."""
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")
    planned = [i for i in plan(["quick"], problems=[all_problems()[problem_id]]) if i.method.id == method]
    items = {(i.record.batch, i.record.instance_name.rpartition("-")[0]): i for i in planned}  # of every kind there is
    for item in items.values():
        warm_once(item.problem, item.method, item.record.settings, Path("unused"))
    before = _signatures()
    assert before
    for item in items.values():
        assert execute(item, Path("unused")).error == ""
    assert {name for name, count in _signatures().items() if count > before.get(name, 0)} == set()


def _signatures() -> dict[str, int]:
    """For how many types each compiled function of this process has code."""
    made = (part.__dict__.get("dispatcher") for part in gc.get_objects() if type(part) is Kernel)
    found = (one for one in made if one is not None)
    return {f"{one.py_func.__module__}.{one.py_func.__qualname__}": len(one.signatures) for one in found}


@pytest.mark.parametrize(("preset", "option"), [("bursts", "gap"), ("small", "load")])
def test_minus_zero_is_zero(preset: str, option: str) -> None:
    problem = all_problems()["comm-contention"]
    minus, zero = (make_instance(problem, preset, 0, {option: text}) for text in ("-0.0", "0"))
    assert minus.to_json() == zero.to_json()


def test_cross_compares_every_exact_method_with_a_plain_search_on_22_950_instances() -> None:
    rows = [row for problem in all_problems().values() for row in workload_of(with_search(problem)).suites]
    assert sum(row.count for row in rows) == 22_950
    items = plan(["cross"], scale=0.01, problems=[with_search(all_problems()["rar-ddls"])])
    assert {item.method.id for item in items} >= {"brute-force", "schedule-set", "cp", "cbc", "highs", "cpsat"}


def test_every_instance_of_cross_can_be_made() -> None:
    """Those of hard numbers lie within what instances may hold."""
    for problem in map(with_search, all_problems().values()):
        for row in workload_of(problem).suites:
            if row.preset in FAMILIES:
                assert all(find_preset(problem, row.preset).generator(seed) for seed in range(row.count))
