"""Cases worked out by hand: the optimum by every way to it, and what each policy makes of them."""

import json
from pathlib import Path

import pytest
from oracles.ddl_cluster import optimum
from support.checks import ddl_cluster as check

from schedgap.catalogue.ddl_cluster import PROBLEM as DDL_CLUSTER
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.given_placement import given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain, solution_of
from schedgap.solvers.result import SolveOptions

CASES = sorted((Path(__file__).parents[1] / "data").glob("ddl-cluster-*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_ddl_cluster_cp_proves_the_optimum(path: Path) -> None:
    data = json.loads(path.read_text())
    result = run_method(DDL_CLUSTER, DdlClusterInstance.parse(data), "cp", SolveOptions(threads=1))
    assert str(result.status) == data["reference"]["status"]
    assert result.objective == pytest.approx(data["reference"]["optimum"], rel=1e-6)
    assert result.bound == pytest.approx(result.objective, rel=1e-6)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("method", ["job-shop", "cbc", "highs", "cpsat"])
def test_ddl_cluster_restrictions_stay_above(path: Path, method: str) -> None:
    data = json.loads(path.read_text())
    best = data["reference"]["optimum"]
    result = run_method(DDL_CLUSTER, DdlClusterInstance.parse(data), method, SolveOptions(threads=1))
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= best * (1 + 1e-6) <= result.objective * (1 + 2e-6)
    if path.stem == "ddl-cluster-contention-pays":
        assert str(result.status) == "feasible"
        assert result.info["restricted bound"] == pytest.approx(12.5)
    else:
        assert result.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_ddl_cluster_policies_by_hand(path: Path) -> None:
    data = json.loads(path.read_text())
    instance = DdlClusterInstance.parse(data)
    placement = given_placement(instance, "test")
    for policy, mean in data["reference_policies"].items():
        run = simulate_plain(instance, placement, policy)
        report = check(instance, solution_of(instance, placement, policy, run))
        assert report.feasible
        assert report.objective == pytest.approx(mean, abs=1e-12)
        assert mean >= data["reference"]["optimum"]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_ddl_cluster_cases_by_enumeration(path: Path) -> None:
    data = json.loads(path.read_text())
    instance = DdlClusterInstance.parse(data)
    best = data["reference"]["optimum"]
    assert lower_bound(instance) <= best
    if data["name"] != "memory":  # the enumeration knows no memory
        assert optimum(instance) == pytest.approx(best)


def test_ddl_cluster_there_are_cases() -> None:
    assert len(CASES) == 6
