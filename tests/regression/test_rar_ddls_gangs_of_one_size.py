"""Gangs of one size that may use different numbers of servers: what one job can do says nothing about another."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.rar_brute_force import brute_force

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import job_options
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.cp import solve_cp
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotPacking
from schedgap.solvers.result import SolveOptions, Status

FOLDER = Path(__file__).parents[1] / "data" / "attack"


@pytest.mark.parametrize("name", ["A-rar-wrong-optimum", "A-rar-wrong-infeasible", "A-rar-exit5"])
@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_of_the_jobs_does_not_matter(name: str, backwards: bool) -> None:
    data = json.loads((FOLDER / f"{name}.json").read_text())
    if backwards:
        data["jobs"].reverse()
    result = solve_cp(RarDdlsInstance.parse(data), SolveOptions(threads=1, work_limit=20.0))
    assert (result.status, result.objective) == (Status.OPTIMAL, data["reference"]["optimum"])


@pytest.mark.parametrize("seed", range(30))
def test_slot_packing_alone_never_passes_the_optimum(seed: int) -> None:
    """No schedule is given, so the bound is that of the stage; a slow job may use fewer servers than a quick one."""
    rng = np.random.default_rng(seed)
    jobs = [
        {
            "id": f"j{j}",
            "gpus": 3,
            "iterations": int(rng.integers(1, 3)),
            "gradient_size": 0.0,
            "batch_size": 1,
            "forward_time": 0.0,
            "backward_time": float(rng.choice([0.01, 0.05, 0.3])),
        }
        for j in range(int(rng.integers(2, 4)))
    ]
    base = json.loads((FOLDER / "A-rar-wrong-optimum.json").read_text())
    instance = RarDdlsInstance.parse({**base, "jobs": jobs, "horizon": 6})
    answer = brute_force(instance)
    assert answer is not None
    incumbent = BestSchedule(instance, SolveOptions(threads=1, work_limit=20.0))
    assert incumbent.begin()
    SlotPacking(incumbent, job_options(instance)).raise_bound(incumbent, 1.0)
    assert incumbent.objective is None
    assert incumbent.lower <= answer[0]
