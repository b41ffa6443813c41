"""hadar at the edges of its numbers: huge and tiny weights, deadlines a breath away from a slot, many gang sizes."""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from types import FrameType
from typing import Any

import pytest
from oracles.hadar import brute_force, random_case

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.solvers.exact.hadar import slot_cuts
from schedgap.solvers.exact.hadar.bound import upper_bound
from schedgap.solvers.exact.hadar.colgen import solve_colgen
from schedgap.solvers.result import SolveOptions, Status, Termination


def times(instance: HadarInstance, factor: float) -> HadarInstance:
    data = instance.to_dict()
    for job in data["jobs"]:
        job["utility"]["weight"] *= factor
    return HadarInstance.parse(data)


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e12])
@pytest.mark.parametrize("seed", range(6))
def test_colgen_and_bound_at_any_magnitude(seed: int, factor: float) -> None:
    instance = times(random_case(500 + seed), factor)
    found = brute_force(instance)
    assert found is not None
    optimum = found[0]
    reports: list[float] = []
    options = SolveOptions(report=lambda _, value, bound: reports.extend(x for x in (value, bound) if x is not None))
    result = solve_colgen(instance, options)
    assert result.status is Status.OPTIMAL and result.termination is Termination.PROVEN
    assert result.objective == float(optimum)
    assert result.bound is not None and optimum <= result.bound * (1 + Fraction(1, 10**15)) <= 1.000000002 * optimum
    certified = upper_bound(instance)
    assert certified is not None and certified >= optimum
    assert result.info["lp_bound"] >= float(optimum) * (1 - 1e-9)
    assert reports and max(reports) <= max(result.info["lp_bound"], float(optimum)) * (1 + 1e-6)
    worth = sum(price * count for kind, count in instance.capacity.items() for price in result.info["prices"][kind])
    worth += sum(result.info["payoffs"].values())
    assert worth == pytest.approx(result.info["lp_bound"], rel=1e-6)


def test_effective_throughput_of_1e20() -> None:
    """Weight times iterations is far beyond what HiGHS takes as a cost."""
    data = random_case(501).to_dict()
    for job in data["jobs"]:
        job["utility"] = {"kind": "effective-throughput", "weight": 1e15}
        job["epochs"], job["iterations_per_epoch"] = 10**6 + job["epochs"], 1
        job["throughput"] = {kind: 10**6 * rate for kind, rate in job["throughput"].items()}
    instance = HadarInstance.parse(data)
    found = brute_force(instance)
    assert found is not None and found[0] > 10**20
    result = solve_colgen(instance, SolveOptions())
    assert (result.status, result.objective) == (Status.OPTIMAL, float(found[0]))
    certified = upper_bound(instance)
    assert certified is not None and certified >= found[0]


@pytest.mark.parametrize("deadline", [0.30000000000000004, 0.3000000000000001, 0.3, 0.29999999999999993, 1e-15, 1e15])
def test_utilities_next_to_a_deadline_do_not_cancel(deadline: float) -> None:
    """1 - 0.3 / deadline in floats has no correct digit there; with a weight of 10^8 that made bounds wrong by 1e-8."""
    data = random_case(502).to_dict()
    data |= {"horizon": 5, "slot_length": 0.1}
    data["jobs"] = [
        {**job, "arrival": 1, "utility": {"kind": "linear", "weight": 1e8, "deadline": deadline}}
        for job in data["jobs"]
    ]
    instance = HadarInstance.parse(data)
    for job, table in zip(instance.jobs, tables(instance).jobs, strict=True):
        for finish in range(table.earliest, instance.horizon + 1):
            slots = finish - job.arrival + 1
            wanted = max(Fraction(0), exact(1e8) * (1 - slots * exact(0.1) / exact(deadline)))
            for value in (table.worth.at(finish), float(table.utility[finish])):
                assert abs(Fraction(value) - wanted) <= wanted / 10**15
    found = brute_force(instance)
    assert found is not None
    certified, result = upper_bound(instance), solve_colgen(instance, SolveOptions())
    assert certified is not None and certified >= found[0]
    assert result.objective == float(found[0]) and result.bound is not None and result.bound >= found[0]


def two_knapsacks() -> HadarInstance:
    """40 jobs of 40 sizes, each on one of two types, one slot: two knapsacks of 20 items."""
    rng = random.Random(1)
    jobs: list[dict[str, Any]] = [
        {
            "id": f"j{k}",
            "arrival": 1,
            "workers": 20 + 7 * k % 61 + k,
            "epochs": 1,
            "iterations_per_epoch": 1,
            "throughput": {"A" if k % 2 else "B": 1.0},
            "utility": {"kind": "constant", "weight": round(10 + rng.random() * 90, 3)},
        }
        for k in range(40)
    ]
    machines = [{"id": kind, "gpus": {kind: 500}} for kind in "AB"]
    data = {"problem": "hadar", "horizon": 1, "slot_length": 1.0, "machines": machines, "jobs": jobs}
    return HadarInstance.parse(data)


def test_the_packings_of_many_gang_sizes_are_given_up_once() -> None:
    """Work is counted, not timed: one search for the packings of a slot, which ends at its limit of steps."""
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal steps
        code = frame.f_code
        steps += event == "call" and code.co_name == "extend" and code.co_filename == slot_cuts.__file__

    sys.setprofile(count)
    try:
        certified = upper_bound(two_knapsacks())
        assert steps == 0  # a bound needs no packings
        result = solve_colgen(two_knapsacks(), SolveOptions(work_limit=0.05))
    finally:
        sys.setprofile(None)
    assert 0 < steps <= slot_cuts.MOST_STEPS + 50
    assert result.objective is not None and result.bound is not None and certified is not None
    assert result.objective <= result.bound <= certified * (1 + 1e-9)


def test_an_open_gap_is_never_called_proven() -> None:
    for seed in range(500, 530):
        result = solve_colgen(times(random_case(seed), 1.0), SolveOptions(work_limit=0.001, relative_gap=0.2))
        assert (result.status is Status.OPTIMAL) == (result.termination is Termination.PROVEN)
