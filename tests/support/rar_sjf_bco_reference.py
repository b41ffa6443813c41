"""The plain SJF-BCO and rivals, from the benchmarks that also measure against them, and how to compare with them."""

from __future__ import annotations

import math
from typing import Any

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.heuristics.common.run import HeuristicRun
from studies.reference_sjf_bco import (
    PlainPass,
    PlainRun,
    placement_of,
    plain_ff,
    plain_ls,
    plain_rand,
    plain_sjf_bco,
)

__all__ = [
    "PlainPass",
    "PlainRun",
    "assert_same",
    "placement_of",
    "plain_ff",
    "plain_ls",
    "plain_rand",
    "plain_sjf_bco",
]


def assert_same(instance: RarDdlsInstance, fast: HeuristicRun, plain: PlainRun, largest: int) -> None:
    """The fast run has the schedule, the limits and the probes of the plain one.

    A fast search does not finish passes that cannot beat the best one: where the plain one has a makespan that
    does not improve, the fast one has T + 1.
    """
    found = plain.returned
    if found is None:
        assert fast.info["returned"] is None
        assert fast.solution is None
        assert fast.info["reason"]
    else:
        theta = None if math.isinf(found.theta) else found.theta
        assert fast.info["theta_tilde"] == theta
        assert fast.info["makespan"] == found.makespan
        assert fast.info["W_max"] == float(found.largest_load)
        if found.makespan <= instance.horizon:
            assert fast.solution == placement_of(instance, found)
        else:
            assert fast.solution is None
            assert "horizon" in fast.info["reason"]
    incumbent = largest + 1
    seen = []
    for theta, makespan in plain.probes:
        seen.append([theta, makespan if makespan < incumbent else largest + 1])
        incumbent = min(incumbent, makespan)
    assert fast.info["theta_probes"] == seen


def durations(one: PlainPass) -> list[int]:
    """r_j of a pass, slots."""
    return [last - first + 1 for first, last in zip(one.start, one.completion, strict=True)]


def options_for(rng: Any, instance: RarDdlsInstance) -> dict[str, Any]:
    """Random options of ``sjf_bco``: each of u, lambda, bisection, T, kappa, rho_hat now and then."""
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["u"] = float(rng.choice([1.5, 2.0, 3.3, 7.0]))
    if rng.random() < 0.5:
        options["lambda"] = float(rng.choice([1.1, 1.3, 1.5, 2.0, 4.0]))
    if rng.random() < 0.5:
        options["bisection"] = "feasible"
    if rng.random() < 0.4:
        options["T"] = int(rng.integers(1, 2 * instance.horizon))
    if rng.random() < 0.2:
        options["kappa"] = int(rng.integers(1, 10))
    if rng.random() < 0.3:
        options["rho_hat"] = [float(rng.choice([0.7, 1, 2.5, 3, 10, 33])) for _ in instance.jobs]
    return options
