"""Instances on which a hunt ended with a defect of ours; each must be answered."""

from __future__ import annotations

import pytest

from schedgap.catalogue.registry import parse_instance
from schedgap.catalogue.run import run_method
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


@pytest.mark.parametrize("method", ["sjf-bsbf", "sjf-bsbf+", "sjf-ffs"])
def test_jobs_started_at_once_do_not_share_where_sharing_is_not_allowed(method: str) -> None:
    job = {
        "arrival": 1,
        "gpus": 1,
        "iterations": 4,
        "batch_size": 4,
        "compute": {"fixed": 0.5, "per_sample": 0.0},
        "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
        "overlap": 1.0,
        "memory": {"fixed": 1.0, "per_sample": 0.0},
    }
    data = {
        "problem": "gpu-sharing",
        "horizon": 20,
        "slot_length": 1.0,
        "servers": [{"id": "s0", "gpus": 1}],
        "gpu_memory": 8.0,
        "max_jobs_per_gpu": 1,
        "jobs": [{**job, "id": f"j{k}"} for k in range(3)],
        "interference": {},
    }
    problem, instance = parse_instance(data)
    result = run_method(problem, instance, method, SolveOptions())
    assert result.objective == 4.0  # one after the other: 2, 4 and 6 slots
