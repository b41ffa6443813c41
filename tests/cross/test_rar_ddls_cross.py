"""All exact ways of rar-ddls agree on random tiny instances, half of them forced to contend."""

from __future__ import annotations

import numpy as np
import pytest
from support.checks import rar_ddls as check
from support.rar_brute_force import brute_force, random_tiny

from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.reformulation import build_reformulation
from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp, ilp_nonzeros
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.exact.rar_ddls.cp import solve_cp
from schedgap.solvers.result import Result, SolveOptions, Status

INSTANCES = 40


def tiny(number: int) -> RarDdlsInstance:
    return random_tiny(np.random.default_rng(7000 + number), contended=number % 2 == 1)


def answers(instance: RarDdlsInstance) -> dict[str, Result]:
    options = SolveOptions(threads=1)

    def verdict(given: object) -> object:
        return check(instance, given)

    found = {
        name: solve_declarative(lambda: build_ilp(instance), name, options, verdict, ilp_nonzeros(instance))
        for name in ("cbc", "highs", "cpsat")
    }
    found["reformulation"] = solve_declarative(lambda: build_reformulation(instance), "highs", options, verdict)
    found["cp"] = solve_cp(instance, options)
    return found


@pytest.mark.parametrize("number", range(INSTANCES))
def test_brute_force_engines_reformulation_and_cp_agree(number: int) -> None:
    instance = tiny(number)
    best = brute_force(instance)
    if best is not None:
        report = check(instance, best[1])
        assert report.feasible and report.objective == best[0]
        bound = lower_bound(instance)
        assert bound is not None and bound <= best[0]
    for method, result in answers(instance).items():
        if best is None:
            assert result.status is Status.INFEASIBLE, method
            assert result.solution is None, method
        else:
            assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best[0], best[0]), method
            report = check(instance, result.solution)
            assert report.feasible and report.objective == best[0], method


def test_half_of_the_instances_contend() -> None:
    """In most of the odd ones the optimum itself pays for contention: without any it would be shorter."""
    paying = 0
    for number in range(1, INSTANCES, 2):
        instance = tiny(number)
        network = instance.network.model_copy(update={"contention_scale": 1e-9})
        best, free = brute_force(instance), brute_force(instance.model_copy(update={"network": network}))
        paying += free is not None and (best is None or free[0] < best[0])
    assert paying >= INSTANCES // 4
