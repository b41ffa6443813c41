"""All exact methods against a brute force on 14 random tiny instances, of which the gate has many; cp otherwise."""

import pytest
from oracles.gpu_sharing import brute_force
from support.checks import gpu_sharing as check

from schedgap.benchmarks.instances.gpu_sharing.random import contended, small, tiny
from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.catalogue.run import run_method
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf_plus
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import SolveOptions, Status


def instances() -> list[GpuSharingInstance]:
    three = [tiny(seed, jobs=3, slots=3, arrivals=2) for seed in range(22)]
    four = [tiny(seed, jobs=4, gpus=2, slots=2, arrivals=2) for seed in range(30, 40)]
    return three + four + [contended(seed, jobs=3, slots=3, horizon=6 + seed) for seed in range(8)]


@pytest.mark.parametrize("instance", instances()[::3], ids=lambda i: i.name)
def test_gpu_sharing_exact_methods_agree_with_brute_force(instance: GpuSharingInstance) -> None:
    optimum = brute_force(instance)
    for method in ("cp", "cbc", "highs", "cpsat"):
        result = run_method(GPU_SHARING, instance, method, SolveOptions(threads=1))
        if optimum is None:
            assert result.status is Status.INFEASIBLE, method
        else:
            assert result.status is Status.OPTIMAL, method
            assert result.objective == pytest.approx(optimum, rel=1e-6), method
    if optimum is not None:
        bound = lower_bound(instance)
        assert bound is not None and bound <= optimum + 1e-9


def test_gpu_sharing_some_are_infeasible_and_some_share() -> None:
    found = instances()
    assert any(brute_force(i) is None for i in found)
    alone = [GpuSharingInstance.parse({**i.to_dict(), "max_jobs_per_gpu": 1}) for i in found]
    gains = 0
    for one, other in zip(found, alone, strict=True):
        with_sharing, without = brute_force(one), brute_force(other)
        if with_sharing is not None and (without is None or with_sharing < without):
            gains += 1
    assert gains >= 5


def test_gpu_sharing_pareto_minimal_accumulation_pairs_are_both_kept() -> None:
    """Two jobs of load 6 or 4 on memory 10: sharing needs (1, 2) or (2, 1), and either can be the better one."""
    for slow in ("a", "b"):
        jobs = [
            {
                "id": name,
                "arrival": 1,
                "gpus": 1,
                "iterations": 8,
                "batch_size": 2,
                # Accumulation costs the slow one half as much again and the other one nothing.
                "compute": {"fixed": 0.5, "per_sample": 0.25} if name == slow else {"fixed": 0.0, "per_sample": 0.5},
                "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
                "overlap": 1.0,
                "memory": {"fixed": 2.0, "per_sample": 2.0},
            }
            for name in ("a", "b")
        ]
        instance = GpuSharingInstance.parse(
            {
                "problem": "gpu-sharing",
                "horizon": 30,
                "slot_length": 1.0,
                "servers": [{"id": "s", "gpus": 1}],
                "gpu_memory": 10.0,
                "max_jobs_per_gpu": 2,
                "jobs": jobs,
                "interference": {},
            }
        )
        result = solve_cp(instance, SolveOptions(threads=1))
        assert result.objective == 8.0 == brute_force(instance)
        other = "b" if slow == "a" else "a"
        assert result.solution["accumulation"] == {slow: 1, other: 2}


def test_gpu_sharing_cp_keeps_a_start_and_stops_at_its_limit() -> None:
    instance = small(0)
    start = sjf_bsbf_plus(GpuSharingInstance.parse({**instance.to_dict(), "horizon": 200})).solution
    loose = GpuSharingInstance.parse({**instance.to_dict(), "horizon": 120})
    told: list[float | None] = []
    options = SolveOptions(
        work_limit=1.0, threads=1, start=start, report=lambda s, objective, bound: told.append(objective)
    )
    result = solve_cp(loose, options)
    report = check(loose, result.solution)
    assert report.feasible and float(report.objective) == result.objective
    assert result.bound <= result.objective
    assert told and told[-1] == result.objective
    assert result.objective <= float(check(loose, start).objective)


def test_gpu_sharing_cp_repeats_itself_by_work_limit() -> None:
    instance = small(1, jobs=9, gpus=4, gang=2, horizon=30)
    results = [solve_cp(instance, SolveOptions(threads=1, work_limit=0.5)) for _ in range(2)]
    assert results[0].solution == results[1].solution
    assert (results[0].status, results[0].bound) == (results[1].status, results[1].bound)


def test_gpu_sharing_cp_refines_rounded_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarse losses admit too much; the checker notices and finer ones are used, with the same optimum."""
    from schedgap.formulations.gpu_sharing import modes
    from schedgap.solvers.exact.gpu_sharing import cp as gpu_sharing

    monkeypatch.setattr(gpu_sharing, "fits", lambda *_: False)  # no dynamic program: CP-SAT alone
    refined = 0
    for seed in range(6):
        instance = tiny(seed, jobs=3, gpus=2, cap=2, horizon=12)
        optimum = brute_force(instance)

        def coarse(given: GpuSharingInstance, scale: int | None = None) -> modes.Choices:
            found = modes.choices(given)
            unit = 2 if scale is None else scale
            rows = tuple(modes.JobModes(r.modes, r.levels, modes.rounded_down(r.levels, unit)) for r in found.jobs)
            return modes.Choices(found.tables, rows, found.pairs, found.blocked)

        monkeypatch.setattr(gpu_sharing, "choices", coarse)
        result = solve_cp(instance, SolveOptions(threads=1))
        assert result.objective == pytest.approx(optimum)
        refined += "loss scale" in result.info
    assert refined
