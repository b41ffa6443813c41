"""The paper's second and third example of utilities: energy, and plain logarithmic fairness."""

import itertools
import math
import random
from typing import Any

import pulp
import pytest
from oracles.ddljs import brute_force
from support.checks import ddljs as check

import schedgap
from schedgap.benchmarks.instances.ddljs.random import paper, tiny
from schedgap.benchmarks.judging.judge import evaluate
from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.numbers import MAXIMISE, ratio
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.heuristics.ddljs.gadget import gadget
from schedgap.heuristics.ddljs.guarantees import CONCAVE, GUARANTEES
from schedgap.solvers.exact.ddljs.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status


def mixed(seed: int) -> DdljsInstance:
    """Tiny jobs of both kinds, some of them beside a square root."""
    draw, data = random.Random(seed), tiny(7000 + seed).to_dict()
    for job in data["jobs"]:
        kind = draw.choice(("log", "log", "energy", "sqrt"))
        job["utility"] = {"kind": kind, "scale": draw.choice((0.5, 1.0, 3.3))}
        if kind == "log":
            job["utility"]["least"] = draw.choice((1e-9, 0.1, 1.0, 4.0))
    return DdljsInstance.parse(data)


@pytest.mark.parametrize("seed", range(12))
def test_every_method_agrees_with_a_brute_force(seed: int) -> None:
    instance = mixed(seed)
    value, _ = brute_force(instance)
    bound = upper_bound(instance)
    assert bound is not None and bound >= value - 1e-12
    for engine in ("highs", "cpsat", "cbc"):
        found = run_method(DDLJS, instance, engine, SolveOptions(threads=1))
        assert found.status is Status.OPTIMAL, engine
        assert found.objective == pytest.approx(value, rel=1e-9, abs=1e-9), engine
    assert schedgap.model(instance, tighten=False).solve("highs").objective == pytest.approx(value, rel=1e-9, abs=1e-9)
    for method in ("gadget", "fifo", "drf", "las"):
        found = run_method(DDLJS, instance, method, SolveOptions())
        assert found.objective is not None and found.objective <= value + 1e-9 * max(1, abs(value)), method
        assert found.bound is not None and found.bound >= value - 1e-12, method


def one_server(gpus: int, horizon: int, *jobs: dict[str, Any]) -> DdljsInstance:
    """One server of so many GPUs; whatever sums to at most gpus * horizon worker-slots can be scheduled."""
    rest = {"arrival": 1, "demand": {"gpu": 1}, "budget": {}, "bandwidth": 1.0}
    made = [{"id": f"j{i}", **rest, **job} for i, job in enumerate(jobs)]
    servers = [{"id": "s", "resources": {"gpu": gpus}}]
    data = {"problem": "ddljs", "name": "one", "servers": servers, "links": [], "horizon": horizon, "jobs": made}
    return DdljsInstance.parse(data)


@pytest.mark.parametrize("least", [1e-15, 1e-3])
def test_where_all_jobs_can_run_the_optimum_is_that_of_the_plain_logarithm(least: float) -> None:
    """3 GPUs, 3 slots, rings of 1, 2 and 3: the largest sum of ln(zeta X) over X >= 1, X_i <= 3 N_i, sum X <= 9."""
    zeta, sizes = (1.0, 0.5, 4.0), (1, 2, 3)
    shape = {"kind": "log", "scale": 1.0, "least": least}
    jobs = [{"max_workers": n, "efficiency": z, "utility": shape} for n, z in zip(sizes, zeta, strict=True)]
    instance = one_server(3, 3, *jobs)
    shared = [x for x in itertools.product(*(range(1, 3 * n + 1) for n in sizes)) if sum(x) <= 9]
    best = max(sum(math.log(z * k) for z, k in zip(zeta, x, strict=True)) for x in shared)
    assert best == pytest.approx(math.log(3 * 1.5 * 12))
    found = run_method(DDLJS, instance, "cpsat", SolveOptions(threads=1))
    assert found.objective == pytest.approx(best, rel=1e-12) and found.status is Status.OPTIMAL


def test_a_job_that_cannot_run_does_not_make_all_schedules_equal() -> None:
    shape = {"kind": "log", "scale": 1.0, "least": 1e-9}
    big = {"max_workers": 1, "efficiency": 1.0, "utility": shape, "demand": {"gpu": 9}}
    instance = one_server(2, 2, big, {"max_workers": 2, "efficiency": 1.0, "utility": shape})
    found = run_method(DDLJS, instance, "cpsat", SolveOptions(threads=1))
    assert found.objective == pytest.approx(math.log(1e-9) + math.log(4)) and found.status is Status.OPTIMAL


def test_energy_alone_is_least_when_nothing_runs() -> None:
    instance = paper(0, servers=4, racks=2, jobs=6, horizon=8, utilities="energy")
    found = run_method(DDLJS, instance, "gadget", SolveOptions())
    assert found.objective == 0 and found.status is Status.OPTIMAL
    busy = run_method(DDLJS, instance, "drf", SolveOptions())
    assert busy.objective is not None and busy.objective < 0


def test_the_least_energy_for_so_much_work() -> None:
    """2 GPUs, 4 slots, 5 worker-slots asked for by a row: powers 1, 2 and 3 with costs c (power X)^2."""
    power, cost = (1.0, 2.0, 3.0), (2.0, 1.0, 0.5)
    jobs = [
        {"max_workers": 1, "efficiency": p, "utility": {"kind": "energy", "scale": c}}
        for p, c in zip(power, cost, strict=True)
    ]
    instance = one_server(2, 4, *jobs)
    model = schedgap.model(instance)
    model.add(pulp.lpSum(model.variables["workers"].values()) >= 5, name="work")
    found = model.solve("highs")
    ways = (x for x in itertools.product(range(5), repeat=3) if sum(x) >= 5)
    least = min(sum(c * (p * k) ** 2 for p, c, k in zip(power, cost, x, strict=True)) for x in ways)
    assert found.objective == pytest.approx(-least) and found.solution is not None
    report = check(instance, found.solution)
    assert report.feasible and float(report.objective or 0) == pytest.approx(-least)


def test_what_is_below_0_has_no_ratio() -> None:
    assert ratio(-6.0, -4.0, MAXIMISE) is ratio(-6.0, 0.0, MAXIMISE) is ratio(-6.0, 2.0, MAXIMISE) is None
    assert ratio(0.0, 2.0, MAXIMISE) == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_no_guarantee_is_refuted_by_utilities_that_fall_or_are_negative(seed: int) -> None:
    instance = mixed(seed)
    value, _ = brute_force(instance)
    run = gadget(instance)
    assert run.solution is not None
    objective = float(check(instance, run.solution).objective or 0)
    case = Case(instance, objective, run.info, value, value, {"inner": "colgen", "fill": True})
    outside = not all(job.rising for job in instance.jobs)
    assert outside == bool(CONCAVE.fails and CONCAVE.fails(case))
    verdicts = {guarantee.id: evaluate(guarantee, case).evaluation.verdict for guarantee in GUARANTEES}
    assert Verdict.REFUTED not in verdicts.values(), verdicts
