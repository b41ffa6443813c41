"""An exact method that a limit ends has at least what the best heuristic has: it starts from there."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedgap
from schedgap.benchmarks.report.compare import run_method
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions, Status

PROBLEMS = ["rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs"]
OF_THEIR_OWN = {
    "schedule-set": "a model of tiny instances, solved by an engine",
    "theta": "another objective: the least execution time of a GPU",
    "p2": "linear programs of two problems",
    "job-pair": "two jobs",
    "job-shop": "a restriction, for an upper bound",
    "augmented": "a relaxation",
    "columns-lp": "a relaxation",
    "mcf": "a relaxation",
}
METHODS = [
    (problem, method.id)
    for problem in PROBLEMS
    for method in find_problem(problem).methods
    if method.kind in (Kind.EXACT, Kind.SEARCH) and method.id not in OF_THEIR_OWN
]


def test_methods_of_their_own_are_still_there() -> None:
    every = {method.id for problem in PROBLEMS for method in find_problem(problem).methods}
    assert set(OF_THEIR_OWN) <= every
    assert {"cp", "colgen", "bb", "placement", "lns"} <= {method for _, method in METHODS}


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_no_worse_than_the_best_heuristic(name: str, method: str, tmp_path: Path) -> None:
    problem = find_problem(name)
    sense = problem.sense
    instance = schedgap.generate(name, "small", seed=3)
    options = SolveOptions(threads=1, work_limit=0.01)
    best = None
    for heuristic in problem.heuristics():
        if not heuristic.outside_model:
            result = run_method(problem, instance, heuristic, options, disagreements=tmp_path)
            if result.objective is not None and (best is None or sense * result.objective < sense * best):
                best = result.objective
    assert best is not None
    try:
        result = run_method(problem, instance, method, options, disagreements=tmp_path)
    except InputError:
        assert (name, method) == ("ddl-cluster", "cp")  # its jobs have no placements
        return
    assert result.objective is not None
    assert sense * (result.objective - best) <= 1e-12 * abs(best)


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
