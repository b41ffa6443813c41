"""ddl-cluster in other units: seconds or milliseconds, MB or bytes, the answers are the same."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.ddl_cluster_clusters import random_cluster

import schedgap
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.ddl_cluster import paths

ATTACK = Path(__file__).resolve().parents[1] / "data" / "attack"
"""Files of an attack on the answers: transfers of 1e-4 s and less that are a little longer than whole 1e-10 s."""
POLICIES = ("srsf-1", "srsf-2", "srsf-3", "ada-srsf")
UNITS = [(0, 6), (3, 0), (3, 6), (-3, 0), (6, -3), (-3, 6)]
"""Powers of ten by which times and sizes are multiplied."""


@pytest.fixture(autouse=True)
def _coarse_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound by prices fills whatever room it has; here answers are compared, and its tests are elsewhere."""
    monkeypatch.setattr(paths, "_CELLS", 40_000)


def rescaled(data: Mapping[str, Any], time: int, size: int) -> dict[str, Any]:
    """The same instance with numbers 10^time times as large for times, 10^size for sizes and memory."""

    def times(value: float, power: int) -> float:
        return float(exact(value) * Fraction(10) ** power)

    other = copy.deepcopy(dict(data))
    other["gpu_memory"] = times(other["gpu_memory"], size)
    link = other["link"]
    link["latency"] = times(link["latency"], time)
    for name in ("seconds_per_unit", "contention_penalty"):
        link[name] = times(link[name], time - size)
    for job in other["jobs"]:
        for name in ("arrival", "forward", "backward"):
            job[name] = times(job[name], time)
        for name in ("message", "memory"):
            job[name] = times(job[name], size)
    return other


@pytest.mark.parametrize("name", ["ddl-cluster-short-message", "ddl-cluster-bytes"])
@pytest.mark.parametrize("method", ["placement", *POLICIES, "lns"])
def test_short_transfers_are_answered(name: str, method: str) -> None:
    instance = schedgap.load(ATTACK / f"{name}.json")
    result = schedgap.solve(instance, method, time_limit=20)
    assert result.status == "optimal"
    job, link = instance.jobs[0], instance.link
    least = exact(job.forward) + exact(job.backward) + exact(link.seconds_per_unit) * exact(job.message)
    assert least <= exact(result.objective) <= least * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("units", UNITS, ids=str)
def test_ticks_are_the_same_in_all_units(seed: int, units: tuple[int, int]) -> None:
    instance = random_cluster(seed)
    other = DdlClusterInstance.parse(rescaled(instance.to_dict(), *units))
    clock, same = clock_of(instance), clock_of(other)
    assert clock.digits - same.digits == units[0]
    for name in ("arrival", "forward", "backward", "latency", "transfer", "slowdown", "pair_factor", "memory"):
        assert getattr(clock, name) == getattr(same, name), name


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", [*POLICIES, "placement"])
def test_answers_are_the_same_in_all_units(seed: int, method: str) -> None:
    data = random_cluster(seed).to_dict()
    data["jobs"] = data["jobs"][:3]
    for job in data["jobs"]:
        job["iterations"] = min(job["iterations"], 2)
    answers = []
    for time, size in ((0, 0), (3, 6), (-6, -3)):
        result = schedgap.solve(DdlClusterInstance.parse(rescaled(data, time, size)), method, time_limit=60)
        objective = None if result.objective is None else result.objective / 10.0**time
        answers.append((result.status, objective))
    assert answers[0][0] in ("optimal", "feasible")
    for status, objective in answers[1:]:
        assert status == answers[0][0]
        assert objective == pytest.approx(answers[0][1], rel=1e-9)
