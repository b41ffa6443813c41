"""All engines on the same random models: unbounded and infeasible ones included, none may differ."""

from __future__ import annotations

import numpy as np
import pytest

from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.engines import NAMES, engine, installed_engines
from schedgap.solvers.result import SolveOptions, Status
from schedgap.tools.testing.small_models import enumerate_optimum, random_model

FAMILIES = [(integer, bounded) for integer in (True, False) for bounded in (True, False)]


@pytest.mark.parametrize(("integer", "bounded"), FAMILIES)
def test_statuses_and_optima_agree(integer: bool, bounded: bool) -> None:
    seen: set[Status] = set()
    for seed in range(80):
        found: dict[str, tuple[Status, float | None]] = {}
        for name in (*NAMES, *installed_engines()):
            model = random_model(np.random.default_rng(seed), integer=integer, bounded=bounded)
            try:
                answer = engine(name).solve(model, SolveOptions(threads=1, work_limit=1.0))
            except ModelRefused:
                assert name == "cpsat"
                continue
            found[name] = (answer.status, None if answer.objective is None else round(answer.objective, 5))
            seen.add(answer.status)
        # CBC can search an unbounded box for ever; it may then say that it does not know
        known = {answer for answer in found.values() if answer[0] is not Status.UNKNOWN}
        assert len(known) == 1, f"seed {seed}: {found}"
    assert {Status.OPTIMAL, Status.INFEASIBLE} <= seen
    assert (Status.UNBOUNDED in seen) == (not bounded)


def test_optima_equal_enumeration() -> None:
    for seed in range(200, 230):
        model = random_model(np.random.default_rng(seed), integer=True, bounded=True)
        best = enumerate_optimum(model)
        for name in (*NAMES, *installed_engines()):
            answer = engine(name).solve(model, SolveOptions(threads=1))
            if best is None:
                assert answer.status is Status.INFEASIBLE, f"seed {seed}, {name}"
            else:
                assert answer.status is Status.OPTIMAL, f"seed {seed}, {name}"
                assert answer.objective == pytest.approx(best, abs=1e-9), f"seed {seed}, {name}"
