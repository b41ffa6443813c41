"""The suites as planned, without running them."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.harness.suites import SUITES, plan, suites_of
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.studies.hadar_growth_figure import round_time_figure
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.workload import Measurement


@pytest.mark.parametrize("problem_id", all_problems())
def test_every_part_of_a_problem_in_the_suites_can_be_planned(problem_id: str) -> None:
    problem = all_problems()[problem_id]
    assert "quick" in suites_of(problem)
    assert set(suites_of(problem)) <= set(SUITES)
    for suite in suites_of(problem):
        items = plan([suite], scale=0.01, problems=[problem])
        assert items and len({item.key for item in items}) == len(items)
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
        together.setdefault(item.instance_hash, set()).add(item.task.id)
    assert any(engines <= found for found in together.values())
    assert all(item.time_limit is None for item in items)  # only limits that repeat
    exact = {method.id for method in problem.methods if method.kind != "heuristic"}
    assert all(item.work_limit for item in items if item.task.id in exact)


def test_cross_has_300_random_tiny_instances_of_rar_ddls_half_of_them_contended() -> None:
    items = plan(["cross"], problems=[all_problems()["rar-ddls"]])
    hashes: dict[str, set[str]] = {}
    for item in items:
        hashes.setdefault(item.batch, set()).add(item.instance_hash)
    assert {name: len(found) for name, found in hashes.items()} == {"random": 150, "forced to contend": 150}
    exact = {item.task.id for item in items}
    assert exact >= {"brute-force", "reformulation", "cp", "cbc", "highs", "cpsat"}


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
