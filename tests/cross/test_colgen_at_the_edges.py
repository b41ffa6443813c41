"""Column generation against exhaustive search at the edges of what is valid: near ties, numbers far apart, zeros."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import g_vne as brute_force_g_vne
from oracles import hadar as brute_force_hadar
from support import extreme_tiny

from schedgap.catalogue.registry import parse_instance
from schedgap.catalogue.run import run_method
from schedgap.solvers.exact.g_vne.bound import upper_bound as g_vne_bound
from schedgap.solvers.exact.hadar.bound import upper_bound as hadar_bound
from schedgap.solvers.result import SolveOptions, Status, Termination

SEARCH = {"hadar": brute_force_hadar.brute_force, "g-vne": brute_force_g_vne.brute_force}
BOUND = {"hadar": hadar_bound, "g-vne": g_vne_bound}
SEEDS = 150


@pytest.mark.parametrize("problem", sorted(SEARCH))
def test_colgen_is_never_wrong_and_hardly_ever_open(problem: str) -> None:
    proven = 0
    for seed in range(SEEDS):
        made = extreme_tiny.MAKERS[problem](np.random.default_rng(seed))
        found = SEARCH[problem](made)
        entry, instance = parse_instance(made.to_dict())
        result = run_method(entry, instance, "colgen", SolveOptions(threads=1, work_limit=2.0))
        if found is None:
            assert result.status is Status.INFEASIBLE, seed
            proven += 1
            continue
        optimum = Fraction(found[0])
        certified = BOUND[problem](made)
        assert certified is not None and certified >= optimum, seed
        assert result.objective is not None and result.bound is not None, seed
        assert result.bound >= optimum * (1 - Fraction(1, 10**15)), seed
        if result.status is Status.OPTIMAL:
            assert result.termination is Termination.PROVEN, seed
            assert abs(Fraction(result.objective) - optimum) <= optimum / 10**9, seed
            proven += 1
        else:
            assert result.status is Status.FEASIBLE and result.termination is not Termination.PROVEN, seed
    assert proven >= SEEDS - 2
