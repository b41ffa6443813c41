"""Each problem's declarative model has the optimum that exhaustive search finds, at the edges of what is valid.

CP-SAT solves the models, in whole numbers. What a model leaves out because it cannot be (a rate of 0, a worker that
fits nowhere) must not leave room for what it would have excluded.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import ddljs as brute_force_ddljs
from oracles import g_vne as brute_force_g_vne
from oracles import gpu_sharing as brute_force_gpu_sharing
from oracles import hadar as brute_force_hadar
from oracles import rar_ddls as brute_force_rar_ddls
from support import extreme_tiny

from schedgap.catalogue.registry import parse_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.result import SolveOptions, Status

SEEDS = 60
FEWEST = 40
"""Instances of each problem that CP-SAT must not have refused."""


def first(search: Callable[[Any], tuple[Any, Any] | None]) -> Callable[[Any], Any]:
    def value(instance: Any) -> Any:
        found = search(instance)
        return None if found is None else found[0]

    return value


OPTIMUM: dict[str, Callable[[Any], Any]] = {
    "rar-ddls": first(brute_force_rar_ddls.brute_force),
    "hadar": first(brute_force_hadar.brute_force),
    "g-vne": first(brute_force_g_vne.brute_force),
    "ddljs": first(brute_force_ddljs.brute_force),
    "gpu-sharing": brute_force_gpu_sharing.brute_force,
}


@pytest.mark.parametrize("family", sorted(extreme_tiny.MAKERS))
def test_the_models_optimum_is_the_true_one(family: str) -> None:
    solved = 0
    for seed in range(SEEDS):
        made = extreme_tiny.MAKERS[family](np.random.default_rng(seed))
        entry, instance = parse_instance(made.to_dict())
        try:
            result = run_method(entry, instance, "cpsat", SolveOptions(threads=1))
        except ModelRefused:
            continue
        solved += 1
        optimum = OPTIMUM[made.problem_id](made)
        if optimum is None:
            assert result.status is Status.INFEASIBLE, seed
            continue
        assert result.status is Status.OPTIMAL, seed
        assert result.objective is not None
        assert abs(Fraction(result.objective) - Fraction(optimum)) <= Fraction(optimum) / 10**9, seed
    assert solved >= FEWEST
