"""The worst instance known for every heuristic still gives the ratio that stands in its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.worst import worst_instances
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import all_problems, find_method, load_instance, parse_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.numbers import ratio
from schedgap.solvers.result import SolveOptions, Status
from studies.library.renew import file_name, renew

KNOWN = worst_instances()
COUNTEREXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "counterexamples").glob("*.json"))


@pytest.mark.parametrize("key", KNOWN, ids="/".join)
def test_the_ratio_is_what_it_was(key: tuple[str, str]) -> None:
    worst = KNOWN[key]
    problem, instance = parse_instance(worst.data, worst.file)
    exact = run_method(
        problem, instance, problem.default_method(), SolveOptions(threads=1, work_limit=20.0, seed=worst.seed)
    )
    assert exact.status is Status.OPTIMAL
    run = run_method(problem, instance, worst.method, SolveOptions(seed=worst.seed), worst.options)
    seen = ratio(run.objective, exact.objective, problem.sense)
    assert seen == pytest.approx(worst.ratio, rel=1e-6)
    assert exact.objective == pytest.approx(worst.data["reference"]["optimum"], rel=1e-6)


@pytest.mark.parametrize("path", COUNTEREXAMPLES, ids=lambda path: path.stem)
def test_no_shipped_counterexample_is_worse(path: Path) -> None:
    problem, instance = load_instance(path)
    exact = run_method(problem, instance, problem.default_method(), SolveOptions(threads=1, work_limit=20.0))
    assert exact.status is Status.OPTIMAL
    for (problem_id, method), worst in KNOWN.items():
        if problem_id == problem.id:
            run = run_method(problem, instance, method, SolveOptions())
            seen = ratio(run.objective, exact.objective, problem.sense)
            assert seen is None or seen <= worst.ratio * (1 + 1e-9), method


def test_every_heuristic_has_one() -> None:
    wanted = {
        (problem.id, method.id)
        for problem in all_problems().values()
        for method in problem.methods
        if method.kind is Kind.HEURISTIC and not method.outside_model
    }
    assert wanted == set(KNOWN)
    assert all(worst.file == file_name(*key) for key, worst in KNOWN.items())


def test_sjf_bco_is_worse_than_the_first_known_case() -> None:
    assert KNOWN["rar-ddls", "sjf-bco"].ratio >= 43 / 7


def test_renewing_replaces_only_by_something_worse(tmp_path: Path) -> None:
    limits = ["jobs=2", "servers=1", "evaluations=60", "start=tiny"]
    (line,) = renew(["rar-ddls/lpt-colocate"], limits=limits, folder=tmp_path, budget=20)
    assert "kept" in line and not list(tmp_path.iterdir())
    assert find_method(all_problems()["rar-ddls"], "lpt-colocate").id in line
    assert finite(KNOWN["rar-ddls", "lpt-colocate"].ratio) is not None
    assert json.dumps(dict(KNOWN["rar-ddls", "lpt-colocate"].data))


@pytest.mark.parametrize("slots", [5, 50])
def test_sjf_bco_has_no_constant_ratio(slots: int) -> None:
    """A gang of 3 alone on servers of 1 and 3 GPUs: the optimum uses the larger, least-loaded GPUs are on both."""
    data = {
        "problem": "rar-ddls",
        "horizon": slots,
        "network": {
            "inter_bandwidth": 1.0,
            "intra_bandwidth": 100.0 * slots,
            "contention_scale": 1.0,
            "contention_penalty": 0.0,
            "server_overhead": 0.0,
        },
        "reduce_speed": 100.0 * slots,
        "servers": [{"id": "s1", "gpus": 1}, {"id": "s2", "gpus": 3}],
        "jobs": [
            {
                "id": "j1",
                "gpus": 3,
                "iterations": slots,
                "gradient_size": 0.4,
                "batch_size": 1,
                "forward_time": 0.0,
                "backward_time": 0.0,
            }
        ],
    }
    problem, instance = parse_instance(data)
    exact = run_method(problem, instance, problem.default_method(), SolveOptions(threads=1, work_limit=20.0))
    assert (exact.status, exact.objective) == (Status.OPTIMAL, 1.0)
    assert run_method(problem, instance, "sjf-bco", SolveOptions()).objective == slots
