"""Large neighbourhood search: the search that knows no problem, and methods `lns` that are built on it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.instances.gpu_sharing.random import small as few
from schedgap.benchmarks.instances.gpu_sharing.random import tiny
from schedgap.benchmarks.instances.hadar.random import small
from schedgap.benchmarks.instances.rar_ddls.random import contended
from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.gpu_sharing.exclusive_policies import fifo
from schedgap.heuristics.hadar.baselines import yarn_cs
from schedgap.heuristics.rar_ddls.baselines import rand
from schedgap.heuristics.rar_ddls.lpt_colocate import lpt_colocate
from schedgap.solvers.exact.gpu_sharing.lns import solve_lns as solve_sharing
from schedgap.solvers.exact.hadar.lns import solve_lns as solve_windows
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.lns import JobNeighbourhoods, solve_lns
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import PATIENCE, Neighbourhoods, NeighbourhoodSearch, StepOutcome, searched
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination, clock
from studies.speed.rar_ddls_grid import contended_grid


class Ones(Neighbourhoods):
    """Zeros instead of ones, as many as there are: an even number of freed parts can be changed, at 0.1 of work."""

    kinds = ("any", "none")

    def __init__(self, incumbent: Incumbent) -> None:
        assert incumbent.solution is not None
        self.incumbent = incumbent
        self.values = list(incumbent.solution["values"])
        self.parts = len(self.values)
        self.sizes: list[int] = []
        self.interrupt = 0

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        return [] if kind == "none" else [int(j) for j in rng.permutation(self.parts)[:size]]

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        self.sizes.append(len(parts))
        self.incumbent.work += 0.1
        if self.interrupt and len(self.sizes) >= self.interrupt:
            raise KeyboardInterrupt
        ones = [j for j in parts if self.values[j]]
        for j in ones:
            self.values[j] = 0
        if ones:
            self.incumbent.propose({"values": list(self.values)})
        return StepOutcome(bool(ones), complete=True)


def _check(solution: Solution) -> CheckReport:
    return CheckReport((), sum(solution["values"]))


def _ones(count: int = 40, **options: object) -> tuple[Incumbent, Ones]:
    start = {"values": [1] * count}
    incumbent = Incumbent(MINIMISE, SolveOptions(start=start, **options), _check, whole=True)  # type: ignore[arg-type]
    incumbent.propose(start)
    return incumbent, Ones(incumbent)


def test_it_ends_when_the_bound_is_met() -> None:
    incumbent, there = _ones(work_limit=100.0)
    incumbent.tighten(0)
    NeighbourhoodSearch(there, incumbent).run()
    assert incumbent.proven and incumbent.objective == 0
    assert [row[4] for row in incumbent.info["events"]][-1] == 0


def test_it_ends_when_the_whole_instance_was_freed_in_vain() -> None:
    incumbent, there = _ones()  # no bound, no limit
    assert NeighbourhoodSearch(there, incumbent).run()
    assert incumbent.objective == 0 and there.sizes[-1] == 40 and not incumbent.proven


def test_without_any_limit_it_loses_patience() -> None:
    class Stubborn(Ones):
        def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
            self.sizes.append(len(parts))
            return StepOutcome(better=False, complete=False)

    incumbent, _ = _ones()
    there = Stubborn(incumbent)
    assert not NeighbourhoodSearch(there, incumbent).run()
    assert incumbent.info["steps"] == PATIENCE and there.sizes[-1] == 1 < there.sizes[0]


def test_a_work_limit_ends_it_even_where_no_step_counts_any_work() -> None:
    incumbent, there = _ones(work_limit=0.5)
    NeighbourhoodSearch(there, incumbent).run()
    assert 1 <= incumbent.info["steps"] <= 50 and incumbent.out_of_work
    assert incumbent.termination is Termination.WORK_LIMIT


def test_the_same_seed_does_the_same_and_another_one_does_not() -> None:
    runs = []
    for seed in (1, 1, 2):
        incumbent, there = _ones(count=200, work_limit=3.0, seed=seed)
        NeighbourhoodSearch(there, incumbent).run()
        runs.append(incumbent.info)
    assert runs[0] == runs[1] != runs[2]


def test_a_kind_that_helps_is_chosen_more_often() -> None:
    incumbent, there = _ones(count=2000, work_limit=20.0)
    NeighbourhoodSearch(there, incumbent).run()
    tries = incumbent.info["neighbourhoods"]
    assert tries["any"][0] > 2 * tries["none"][0] > 0 == tries["none"][1]


def test_an_interrupt_keeps_what_was_found() -> None:
    incumbent, there = _ones(work_limit=100.0)
    there.interrupt = 3
    result = searched(incumbent, lambda: there)
    assert result.termination is Termination.INTERRUPTED and result.status is Status.FEASIBLE
    assert result.objective is not None and 0 < result.objective < 40


def test_a_deadline_that_has_passed_leaves_the_start() -> None:
    incumbent, there = _ones(deadline=Deadline(clock() - 1))
    result = searched(incumbent, lambda: there)
    assert result.objective == 40 and not there.sizes and result.termination is Termination.TIME_LIMIT


def test_what_is_too_large_leaves_the_start() -> None:
    def build() -> Ones:
        raise InputError("too large")

    result = searched(_ones()[0], build)
    assert result.objective == 40 and result.termination is Termination.TOO_LARGE
    assert result.info["reason"] == "too large"


# -- rar-ddls ----------------------------------------------------------------------------------------------------------


def _rings(seed: int, jobs: int = 8) -> Result:
    """From a random schedule, on a cluster whose rings must cross servers and meet; without annealed orders."""
    instance = contended_grid(seed, jobs=jobs, servers=3, longest=6)
    start = rand(instance, seed=seed).solution
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("schedgap.solvers.exact.rar_ddls.lns.SHARE", 0.0)
        return solve_lns(instance, SolveOptions(work_limit=0.5, threads=1, seed=seed, start=start))


@pytest.mark.parametrize("seed", range(3))
def test_rar_ddls_reaches_the_optimum_of_small_instances(seed: int) -> None:
    instance = contended_grid(seed, jobs=8, servers=3, longest=6)
    proven = run_method(RAR_DDLS, instance, "cp", SolveOptions(work_limit=20.0, threads=1))
    assert proven.status is Status.OPTIMAL
    start = RAR_DDLS.check(instance, rand(instance, seed=seed).solution or {}).objective
    found = _rings(seed)
    assert found.objective == proven.objective <= (start or 0)


def test_rar_ddls_improves_beside_rings_that_meet() -> None:
    assert any(_rings(seed, jobs=12).info["events"] for seed in range(2))


def test_rar_ddls_repeats_itself() -> None:
    first, second = _rings(2, jobs=12), _rings(2, jobs=12)
    assert first.info == second.info and first.solution == second.solution and first.objective == second.objective


def test_rar_ddls_anneals_orders_first_and_repeats_itself() -> None:
    instance = make_instance(RAR_DDLS, "paper", 3, {"jobs": 60, "servers": 6})
    start = lpt_colocate(instance).solution

    def found() -> Result:
        return solve_lns(instance, SolveOptions(work_limit=0.4, threads=1, seed=1, start=start))

    first, second = found(), found()
    step, work, kind, _, makespan = first.info["events"][0]
    assert (step, kind) == (0, "orders") and 0 < work <= 0.21 and makespan < first.info["start"]
    assert first.info["orders tried"] > 1000
    assert first.info == second.info and first.solution == second.solution


def test_rar_ddls_frees_rings_that_meet_together() -> None:
    instance = contended_grid(1, jobs=14, servers=3, family="pairs", longest=6)
    best = BestSchedule(instance, SolveOptions())
    best.propose(rand(instance, seed=1).solution or {})
    there = JobNeighbourhoods(best)
    rng = np.random.default_rng(0)
    report = RAR_DDLS.check(instance, best.solution or {})
    assert best.solution is not None and report.objective is not None
    place, start, end = best.solution["placement"], best.solution["start"], report.details["completion"]
    names = [job.id for job in instance.jobs]
    met = 0
    for kind in there.kinds:
        out = {names[j] for j in there.freed(kind, 3, rng)}
        for j in out:
            for k in set(names) - out:
                together = start[j] <= end[k] and start[k] <= end[j] and place[j].keys() & place[k].keys()
                assert not (together and len(place[j]) > 1 and len(place[k]) > 1)
                met += len(place[k]) > 1
    assert met > 0


def test_lns_starts_from_the_best_heuristic_and_is_never_worse() -> None:
    for seed in range(4):
        instance = contended(seed)
        best = lpt_colocate(instance, seed=0).solution
        found = run_method(RAR_DDLS, instance, "lns", SolveOptions(work_limit=0.3, threads=1))
        known = None if best is None else RAR_DDLS.check(instance, best).objective
        assert found.objective is not None and found.info["start"] >= found.objective
        assert known is None or found.info["start"] <= known


def test_lns_takes_a_given_start_that_is_better_than_the_heuristics() -> None:
    instance = contended(1)
    proven = run_method(RAR_DDLS, instance, "cp", SolveOptions(work_limit=20.0, threads=1))
    options = SolveOptions(work_limit=0.1, threads=1, start=proven.solution)
    found = run_method(RAR_DDLS, instance, "lns", options)
    assert found.objective == proven.objective == found.info["start"]


def test_lns_of_an_instance_without_a_solution() -> None:
    instance = contended(0)
    short = instance.model_copy(update={"horizon": 1})
    found = run_method(RAR_DDLS, short, "lns", SolveOptions(work_limit=0.3, threads=1))
    assert found.solution is None and found.status in (Status.INFEASIBLE, Status.UNKNOWN)


# -- hadar -------------------------------------------------------------------------------------------------------------


def _windows(seed: int, **settings: object) -> tuple[HadarInstance, Result]:
    """From what the weakest heuristic makes of a small instance."""
    instance = small(seed, **settings)  # type: ignore[arg-type]
    start = yarn_cs(instance, seed=0).solution
    return instance, solve_windows(instance, SolveOptions(work_limit=0.3, threads=1, seed=seed, start=start))


@pytest.mark.parametrize("seed", range(3))
def test_hadar_reaches_the_optimum_of_small_instances(seed: int) -> None:
    instance, found = _windows(seed, jobs=5, horizon=8)
    proven = run_method(HADAR, instance, "colgen", SolveOptions(work_limit=20.0, threads=1))
    assert proven.status is Status.OPTIMAL and found.objective == pytest.approx(proven.objective, rel=1e-9)


def test_hadar_improves_and_repeats_itself() -> None:
    instance, first = _windows(4)
    _, second = _windows(4)
    start = HADAR.check(instance, yarn_cs(instance, seed=0).solution or {}).objective
    assert first.info["events"] and first.objective > start  # type: ignore[operator]
    assert first.info == second.info and first.solution == second.solution


def test_hadar_where_every_job_has_to_finish() -> None:
    for seed in range(2):
        instance = small(seed, jobs=4, horizon=10).model_copy(update={"all_jobs_must_finish": True})
        proven = run_method(HADAR, instance, "colgen", SolveOptions(work_limit=20.0, threads=1))
        found = run_method(HADAR, instance, "lns", SolveOptions(work_limit=1.0, threads=1))
        if found.solution is not None:
            assert found.objective == pytest.approx(proven.objective, rel=1e-9)


def test_hadar_with_rates_of_many_digits() -> None:
    """Progress in units of 2^-40 of the work, each rounded down."""
    made = small(1, jobs=4, horizon=8).model_dump(mode="json")
    for job in made["jobs"]:
        job["throughput"] = {kind: rate * 1.000000123456789 for kind, rate in job["throughput"].items()}
    instance = HadarInstance.parse(made)
    proven = run_method(HADAR, instance, "colgen", SolveOptions(work_limit=20.0, threads=1))
    found = run_method(HADAR, instance, "lns", SolveOptions(work_limit=1.0, threads=1))
    assert found.objective == pytest.approx(proven.objective, rel=1e-9)


# -- gpu-sharing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", (0, 1, 3))
def test_gpu_sharing_reaches_the_optimum_of_small_instances(seed: int) -> None:
    instance = tiny(seed, ample=True)
    proven = run_method(GPU_SHARING, instance, "cp", SolveOptions(work_limit=20.0, threads=1))
    start = fifo(instance, seed=0).solution
    found = solve_sharing(instance, SolveOptions(work_limit=0.5, threads=1, seed=seed, start=start))
    assert proven.status is Status.OPTIMAL and found.objective == proven.objective


def test_gpu_sharing_improves_beside_jobs_that_share_and_repeats_itself() -> None:
    instance = few(0, jobs=14, ample=True)
    start = fifo(instance, seed=0).solution
    options = SolveOptions(work_limit=0.1, threads=1, start=start)
    first, second = solve_sharing(instance, options), solve_sharing(instance, options)
    known = GPU_SHARING.check(instance, start or {}).objective
    assert first.info["events"] and first.objective < known  # type: ignore[operator]
    assert first.info == second.info and first.solution == second.solution


def test_gpu_sharing_frees_fewer_jobs_where_sharing_goes_all_the_way_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a model was built for seconds beyond the limit of time, and given up."""
    built: list[int] = []

    def counted(there: object, jobs: list[int]) -> None:
        built.append(len(jobs))
        raise KeyboardInterrupt

    monkeypatch.setattr("schedgap.solvers.exact.gpu_sharing.lns._MOST", 3)
    monkeypatch.setattr("schedgap.solvers.exact.gpu_sharing.lns._Model", counted)
    instance = few(0, jobs=14, ample=True)
    start = fifo(instance, seed=0).solution
    result = solve_sharing(instance, SolveOptions(work_limit=5.0, threads=1, start=start))
    assert built and built[0] <= 3 and result.info["steps"] >= 1
