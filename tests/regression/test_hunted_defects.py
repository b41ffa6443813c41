"""Instances on which a hunt ended with a defect of ours; each must be answered."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.problems import parse_instance
from schedgap.benchmarks.single import run_method
from schedgap.solvers.result import SolveOptions, Status


@pytest.mark.parametrize("arrival", [1, 5])
def test_colgen_where_no_job_fits_the_cluster(arrival: int) -> None:
    data = {
        "problem": "hadar",
        "horizon": 5,
        "slot_length": 8.8,
        "machines": [{"id": "n0", "gpus": {"T2": 1}}, {"id": "n1", "gpus": {"T1": 1}}],
        "jobs": [
            {
                "id": "j0",
                "arrival": arrival,
                "workers": 10,
                "epochs": 1,
                "iterations_per_epoch": 1,
                "throughput": {"T1": 6.0, "T2": 48.7},
                "utility": {"kind": "constant", "weight": 0.25},
            }
        ],
    }
    problem, instance = parse_instance(data)
    result = run_method(problem, instance, "colgen", SolveOptions(threads=1, work_limit=2.0))
    assert (result.status, result.objective) == (Status.OPTIMAL, 0)
