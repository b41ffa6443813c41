"""An exact method that a limit ends has at least what the best heuristic has: it starts from there."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedgap
from schedgap.benchmarks.report.compare import run_method
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions, Status

PROBLEMS = ["rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs", "gang-placement"]
OF_THEIR_OWN = {
    "p2": "linear programs of two problems",
    "job-pair": "two jobs",
    "job-shop": "a restriction, for an upper bound",
    "augmented": "a relaxation",
    "columns-lp": "a relaxation",
    "mcf": "a relaxation",
}
STARTED = (Kind.EXACT, Kind.SEARCH, Kind.ENGINE)
METHODS = [
    (problem, method.id, seed)
    for problem in PROBLEMS
    for method in find_problem(problem).methods
    for seed in ((3,) if method.kind is Kind.ENGINE else (3, 4))
    if method.kind in STARTED and method.id not in OF_THEIR_OWN
]
TINY = {
    "ddl-cluster cp": "its jobs have placements there only",
    "gang-placement staged": "its other presets take seconds",
    "rar-ddls schedule-set": "a model of tiny instances",
    "rar-ddls theta": "an engine, and a limit of work is looked at between its models",
}


def test_methods_of_their_own_are_still_there() -> None:
    every = {method.id for problem in PROBLEMS for method in find_problem(problem).methods}
    assert set(OF_THEIR_OWN) <= every
    asked = {method for _, method, _ in METHODS}
    assert {"cp", "colgen", "bb", "placement", "lns", "schedule-set", "theta", "highs"} <= asked


@pytest.mark.parametrize(("name", "method", "seed"), METHODS)
def test_no_worse_than_the_best_heuristic(name: str, method: str, seed: int, tmp_path: Path) -> None:
    problem = find_problem(name)
    chosen = next(row for row in problem.methods if row.id == method)
    tiny = chosen.kind is Kind.ENGINE or f"{name} {method}" in TINY
    instance = schedgap.generate(name, "tiny" if tiny else "small", seed=seed)
    options = SolveOptions(threads=1, work_limit=0.01)
    objectives = [
        result.objective
        for heuristic in problem.heuristics()
        if not heuristic.outside_model
        and (result := run_method(problem, instance, heuristic, options, disagreements=tmp_path)).objective is not None
    ]
    best = min(objectives, key=lambda objective: problem.sense * objective, default=None)
    try:
        result = run_method(problem, instance, method, options, disagreements=tmp_path)
    except ModelRefused:  # an engine whose kind of model cannot say this problem
        assert chosen.kind is Kind.ENGINE
        return
    assert (result.objective is None) == (best is None)
    if best is not None and result.objective is not None:
        assert problem.sense * (result.objective - best) <= 1e-12 * abs(best)


def test_a_start_that_meets_the_bound_is_the_answer(tmp_path: Path) -> None:
    """Every job has a GPU of its own at once: first in, first out is optimal, and nothing else is built."""
    problem = find_problem("gpu-sharing")
    data = schedgap.generate("gpu-sharing", "small", seed=1).to_dict()
    data["servers"] = [{"id": "s", "gpus": 1000}]
    instance = type(schedgap.generate("gpu-sharing", "tiny", seed=1)).parse(data)
    result = run_method(problem, instance, "cp", SolveOptions(threads=1, work_limit=0.01), disagreements=tmp_path)
    assert result.status is Status.OPTIMAL and result.info["found by"] == "fifo" and "columns" not in result.info


def test_pairs_that_take_longer_than_there_is_are_not_built() -> None:
    """The tables of pairs of 6,203 jobs take half a minute, in which nobody looks at the clock."""
    data = schedgap.generate("gpu-sharing", "tiny", seed=1).to_dict()
    job = data["jobs"][0]
    data["jobs"] = [{**job, "id": f"j{n}", "iterations": 1} for n in range(1500)]
    data["horizon"], data["interference"] = 10**6, {}
    instance = type(schedgap.generate("gpu-sharing", "tiny", seed=1)).parse(data)
    lower_bound(instance)  # kept, so that the second is for what comes then
    result = solve_cp(instance, SolveOptions(Deadline.after(1.0), threads=1))
    assert result.status is Status.UNKNOWN and "columns" not in result.info
