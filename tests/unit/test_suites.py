"""The suites as planned, without running them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from schedgap.benchmarks.harness.suites import SUITES, plan, suites_of
from schedgap.benchmarks.harness.warm import warm_once
from schedgap.benchmarks.harness.worker import execute
from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.studies.hadar_growth_figure import round_time_figure
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.run import run_method
from schedgap.catalogue.workload import Batch, Measurement
from schedgap.solvers.result import SolveOptions


@pytest.mark.parametrize("problem_id", all_problems())
def test_every_part_of_a_problem_in_the_suites_can_be_planned(problem_id: str) -> None:
    problem = all_problems()[problem_id]
    assert "quick" in suites_of(problem)
    assert set(suites_of(problem)) <= set(SUITES)
    for suite in suites_of(problem):
        items = plan([suite], scale=0.01, problems=[problem])
        assert items and len({item.record.key for item in items}) == len(items)
    for row in workload_of(problem).suites:
        if isinstance(row, Measurement):
            assert callable(row.load())


REFUSE = {"comm-contention": {"cpsat"}, "ddl-cluster": {"cpsat"}}
"""Engines that refuse a problem's declarative model: it is continuous."""


@pytest.mark.parametrize("problem_id", all_problems())
def test_quick_runs_every_heuristic_and_cross_checks_engines(problem_id: str) -> None:
    problem = all_problems()[problem_id]
    items = plan(["quick"], problems=[problem])
    methods = {item.task.id for item in items}
    assert {method.id for method in problem.methods if method.kind == "heuristic"} <= methods
    engines = {method.id for method in problem.methods if method.kind == "engine"} - REFUSE.get(problem_id, set())
    together: dict[str, set[str]] = {}
    for item in items:
        together.setdefault(item.record.instance_hash, set()).add(item.task.id)
    assert any(engines <= found for found in together.values())
    assert all(item.record.limits["time"] is None for item in items)  # only limits that repeat
    exact = {method.id for method in problem.methods if method.kind != "heuristic"}
    assert all(item.record.limits["work"] for item in items if item.task.id in exact)


def test_cross_has_300_random_tiny_instances_of_rar_ddls_half_of_them_contended() -> None:
    items = plan(["cross"], problems=[all_problems()["rar-ddls"]])
    hashes: dict[str, set[str]] = {}
    for item in items:
        hashes.setdefault(item.record.batch, set()).add(item.record.instance_hash)
    counts = {name: len(found) for name, found in hashes.items()}
    assert (counts["random"], counts["forced to contend"]) == (150, 150)
    exact = {item.task.id for item in items}
    assert exact >= {"brute-force", "schedule-set", "cp", "cbc", "highs", "cpsat"}


def test_every_figure_of_a_measurement_is_there() -> None:
    parts = [
        part
        for problem in all_problems().values()
        for part in workload_of(problem).suites
        if isinstance(part, Measurement)
    ]
    figures = {part.figure() for part in parts if part.figure is not None}
    assert round_time_figure in figures
    rows = [{"jobs": 32, "seconds": 0.01}, {"jobs": 64, "seconds": 0.03, "exponent": 1.5}]
    assert round_time_figure(rows).axes[0].get_title() == "seconds grow like jobs^1.50"


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
            if isinstance(row, Batch) and row.suite == "quick" and row.heuristics is None:
                assert row.settings.get("ample") or row.preset in ("paper", "table-iii")


@pytest.mark.parametrize(
    ("problem_id", "method"), [("g-vne", "colgen"), ("g-vne", "cbc"), ("comm-contention", "bb"), ("hadar", "colgen")]
)
def test_a_warm_worker_compiles_nothing_more(problem_id: str, method: str) -> None:
    """After the warm-up no compiled function meets types that it has not met: nothing of it is in a row's time."""
    planned = [i for i in plan(["quick"], problems=[all_problems()[problem_id]]) if i.task.id == method]
    items = {(i.record.batch, i.record.instance_name.rpartition("-")[0]): i for i in planned}  # of every kind there is
    for item in items.values():
        warm_once(item.problem, item.task, item.record.settings, Path("unused"))
    before = _signatures()
    for item in items.values():
        assert execute(item, Path("unused")).error == ""
    assert {name for name, count in _signatures().items() if count > before.get(name, 0)} == set()


def _signatures() -> dict[str, int]:
    """For how many types each compiled function of this process has code."""
    found = (part for part in gc.get_objects() if isinstance(part, Dispatcher))
    return {f"{one.py_func.__module__}.{one.py_func.__qualname__}": len(one.signatures) for one in found}


@pytest.mark.parametrize(("preset", "option"), [("bursts", "gap"), ("small", "load")])
def test_minus_zero_is_zero(preset: str, option: str) -> None:
    problem = all_problems()["comm-contention"]
    minus, zero = (make_instance(problem, preset, 0, {option: text}) for text in ("-0.0", "0"))
    assert minus.to_json() == zero.to_json()


def test_cross_has_more_than_20_000_instances() -> None:
    rows = [row for problem in all_problems().values() for row in workload_of(problem).suites if row.suite == "cross"]
    assert sum(row.count for row in rows if isinstance(row, Batch)) > 20_000


def test_every_instance_of_cross_can_be_made() -> None:
    """Those of hard numbers lie within what instances may hold."""
    for problem in all_problems().values():
        for row in workload_of(problem).suites:
            if isinstance(row, Batch) and row.suite == "cross" and row.settings.get("family"):
                assert all(row.preset()(seed, **row.settings) for seed in range(row.count))
