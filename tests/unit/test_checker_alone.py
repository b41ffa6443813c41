"""The checker of certificates on instances that no other part has seen: it refuses what is none at its own door."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Model, Rejected
from schedgap.solvers.certificates.make_bound import prove_bound

FOLDER = Path(__file__).parents[1] / "data" / "attack"
PROBLEMS = ["rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs", "gang-placement"]
Change = Callable[[dict[str, Any]], object]


def at(*path: Any, value: Any) -> Change:
    """Sets one value of an instance."""

    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value  # type: ignore[index]

    return change


def twice(name: str) -> Change:
    return lambda data: data[name].append(copy.deepcopy(data[name][0]))


FORGED: list[tuple[str, Change, str]] = [
    ("gang-placement", at("nodes", 0, "gpus", value=[1001]), "gpus"),
    ("gang-placement", at("nodes", 0, "domain", value=[]), "domain"),
    ("gang-placement", at("nodes", 0, "free", value={"gpu": 1}), "free.gpu"),
    ("gang-placement", at("levels", value=["node"]), "levels"),
    ("gang-placement", at("gangs", 0, "weight", value=-1), "weight"),
    ("gang-placement", at("gangs", 0, "pods", 0, "gpu", value=1500), "multiple of 1000"),
    ("gang-placement", at("gangs", 0, "pods", 0, "count", value=0), "count"),
    ("gang-placement", at("gangs", 0, "required", value="row"), "no such level"),
    ("gang-placement", at("gangs", 0, "least", value=10**6), "least"),
    ("gang-placement", at("running", value=[{"id": "r", "node": "n0", "devices": {"0": 1000}}]), "devices"),
    ("gang-placement", at("running", value=[{"id": "r", "node": "nowhere"}]), "is on no node"),
    ("gang-placement", at("queues", 0, "borrow", value={"cpu": 1}), "borrows"),
    ("gang-placement", at("objectives", value=["weight", "weight"]), "twice"),
    ("gang-placement", twice("gangs"), "is there twice"),
    ("hadar", at("jobs", 0, "arrival", value=10**6), "arrival"),
    ("hadar", at("jobs", 0, "utility", "weight", value=-1), "weight"),
    ("hadar", at("jobs", 0, "workers", value=0), "workers"),
    ("hadar", at("slot_length", value=-1), "slot_length"),
    ("hadar", at("all_jobs_must_finish", value=2), "all_jobs_must_finish"),
    ("hadar", twice("jobs"), "is there twice"),
    ("rar-ddls", at("jobs", 0, "gpus", value=-1), "gpus"),
    ("rar-ddls", at("servers", 0, "gpus", value=-3), "gpus"),
    ("rar-ddls", at("jobs", 0, "backward_time", value=-5), "backward_time"),
    ("rar-ddls", at("horizon", value="7"), "horizon"),
    ("rar-ddls", twice("servers"), "is there twice"),
    ("gpu-sharing", at("jobs", 0, "arrival", value=-4), "arrival"),
    ("gpu-sharing", at("max_jobs_per_gpu", value=3), "max_jobs_per_gpu"),
    ("gpu-sharing", at("interference", value={"nobody": {}}), "interference"),
    ("gpu-sharing", at("interference", value={"j0": {"j1": 0.5}}), "interference"),
    ("comm-contention", at("tasks", 0, "size", value=-1), "size"),
    ("comm-contention", at("tasks", 0, "release", value=-1), "release"),
    ("comm-contention", at("tasks", value=[]), "tasks"),
    ("ddl-cluster", at("jobs", 0, "forward", value=-1), "forward"),
    ("ddl-cluster", at("jobs", 0, "gpus", value=10**6), "needs more GPUs"),
    ("ddl-cluster", at("link", "latency", value=-1), "latency"),
    ("g-vne", at("servers", 0, "resources", "gpu", value=-1), "gpu"),
    ("g-vne", twice("links"), "links"),
    ("g-vne", at("links", 0, "to", value="nowhere"), "links"),
    ("g-vne", at("jobs", 0, "bandwidth", value=-1), "bandwidth"),
    ("ddljs", at("jobs", 0, "arrival", value=0), "arrival"),
    ("ddljs", at("jobs", 0, "efficiency", value=-1), "efficiency"),
    ("ddljs", at("jobs", 0, "max_workers", value=True), "max_workers"),
    ("ddljs", at("colour", value=1), "unknown key"),
]


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By problem: a tiny instance as the checker reads it, and a certificate of a bound."""
    found = {}
    for problem in PROBLEMS:
        instance = schedgap.generate(problem, "tiny", seed=1)
        found[problem] = plain(instance), json.loads(json.dumps(prove_bound(instance)))
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_instance_as_it_is_passes(problem: str, made: dict[str, Any]) -> None:
    instance, certificate = made[problem]
    assert checker.check(instance, certificate).bound is not None


@pytest.mark.parametrize(
    ("problem", "change", "message"), FORGED, ids=lambda part: part if isinstance(part, str) else ""
)
def test_what_is_no_instance_is_refused(problem: str, change: Change, message: str, made: dict[str, Any]) -> None:
    instance, certificate = copy.deepcopy(made[problem])
    change(instance)
    certificate["instance"] = checker.digest(instance)
    with pytest.raises(Rejected, match=message) as refused:
        checker.check(instance, certificate)
    assert "\n" not in str(refused.value) and "malformed" not in str(refused.value)


def test_an_empty_domain_splits_into_nothing() -> None:
    """A job that arrives after the horizon: both sides of a split are empty, and 0 was "proven" where 5 is possible."""
    command = [
        sys.executable,
        "-B",
        checker.__file__,
        *(str(FOLDER / f"H-hadar-arrival.{end}") for end in ("json", "cert")),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 1
    assert run.stdout == "rejected: instance.jobs[1].arrival: 9 is beyond the horizon 3\n"


@pytest.mark.parametrize(("low", "high", "whole"), [(3, 2, True), ("1/3", "2/3", True), ("2/3", "1/3", False)])
def test_a_variable_without_a_value_is_not_declared(low: Any, high: Any, whole: bool) -> None:
    with pytest.raises(Rejected, match=r"variable x has no value"):
        Model().var("x", low, high, whole=whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"jobs": [{"x": 0, "x": 1}]}', "the key 'x' is given twice"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "-Infinity is no number"),
        ('{"a": 1e999}', "not JSON"),
    ],
)
def test_text_that_says_two_things_or_none(text: str, message: str) -> None:
    with pytest.raises(Rejected, match=message):
        checker.parse(text)
