"""Parts of ddljs: rings from circulations, tables, the bound, algorithms, generators, importers, the figure."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.checks import ddljs as check
from support.work import PASSED, PATIENCE

from schedgap.benchmarks.figures.ddljs import worker_slots, workers_by_slot
from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.instances.ddljs.families import late, tight
from schedgap.benchmarks.instances.ddljs.random import paper, small, tiny
from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddljs.closed_walks import contiguous, ring_of, uses_of
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.models import build_ilp, ilp_nonzeros
from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.utility import utility
from schedgap.formulations.ddljs.utility_tables import resolution, table
from schedgap.heuristics.ddljs.baselines import drf, fifo, las
from schedgap.heuristics.ddljs.gadget import by_marginals, gadget
from schedgap.heuristics.ddljs.greedy_state import GreedyState
from schedgap.heuristics.ddljs.inner import slot_problem
from schedgap.solvers import budget
from schedgap.solvers.exact.ddljs.bound import upper_bound
from schedgap.solvers.exact.g_vne.colgen import solve_colgen
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination


def test_a_scattered_ring_is_put_together_server_by_server() -> None:
    """a - s - b in a line, a ring of s a s b: the same workers, s twice in a row, no more links."""
    workers, routes = [1, 0, 1, 2], [[1, 0], [0, 1], [1, 2], [2, 1]]
    made, paths = contiguous(workers, routes)
    assert Counter(made) == Counter(workers) and made in ([1, 1, 0, 2], [1, 1, 2, 0])
    assert len(paths) == 4 and all(path[0] == made[k] and path[-1] == made[(k + 1) % 4] for k, path in enumerate(paths))
    assert all(len(set(path)) == len(path) for path in paths)
    assert not uses_of(paths) - uses_of(routes)


def test_links_that_do_not_join_the_hosts_are_refused() -> None:
    with pytest.raises(ValueError, match="join"):
        ring_of({0: 1, 2: 1}, {(0, 1): 1, (1, 0): 1})


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_the_utility_rounded_up(seed: int) -> None:
    instance = tiny(seed)
    unit = resolution(instance)
    for job, reach in zip(instance.jobs, reaches(instance), strict=True):
        made = table(job, reach.max_work, unit)
        steps = [piece.slope for run in made.runs for piece in run for _ in range(piece.length)]
        assert len(steps) == reach.max_work and (not job.concave or len(made.runs) <= 1)
        for count in range(reach.max_work + 1):
            above = made.start + sum(steps[:count]) - float(utility(job, count))
            assert -1e-14 <= above <= (count + 1) * unit


def test_a_horizon_of_one_slot_is_drawn() -> None:
    assert all(small(seed, horizon=1).horizon == 1 for seed in range(5))


def test_the_program_is_as_large_as_estimated() -> None:
    for seed in range(5):
        instance = small(seed)
        problem = build_ilp(instance).problem
        built = sum(len(row) for row in problem.constraints.values())
        assert built / 2 <= ilp_nonzeros(instance) <= 3 * built


def test_too_large_a_program_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "seconds_per_nonzero", lambda: 1e6)
    small = paper(0, servers=12, jobs=40, horizon=50)  # a fourth of it is as much too large
    found = run_method(DDLJS, small, "highs", SolveOptions(deadline=Deadline.after(PATIENCE)))
    assert found.termination is Termination.TOO_LARGE and found.bound is not None


@pytest.mark.parametrize("utilities", ["sigmoid", "sqrt"])
def test_gadget_on_the_papers_workload(utilities: str) -> None:
    """A fourth of it: within 1 % of a certified bound, and above the baselines."""
    instance = paper(0, servers=12, jobs=40, horizon=50, utilities=utilities)
    found = run_method(DDLJS, instance, "gadget", SolveOptions(), {"inner": "greedy"})
    assert found.objective is not None and found.bound is not None
    assert found.bound <= 1.01 * found.objective
    for method in ("fifo", "drf"):
        other = run_method(DDLJS, instance, method, SolveOptions())
        assert other.objective is not None and other.objective < found.objective


def test_filling_is_what_starts_a_steep_sigmoid() -> None:
    instance = paper(1, jobs=30, horizon=60)
    filled = check(instance, gadget(instance, inner="greedy").solution or {}).objective
    literal = check(instance, gadget(instance, inner="greedy", fill=False).solution or {}).objective
    assert filled is not None and literal is not None and filled > literal


@pytest.mark.parametrize("seed", range(25))
def test_the_knapsack_of_a_slot_is_a_bound(seed: int) -> None:
    instance = tiny(seed)
    progress = GreedyState(instance)
    problem = slot_problem(progress, list(progress.active()))
    if problem.instance is None:
        return
    best = solve_colgen(problem.instance, SolveOptions(threads=1))
    packed = by_marginals(progress, problem)
    assert best.status is Status.OPTIMAL and best.objective is not None
    assert best.objective <= problem.ceiling - problem.left_out + 1e-9
    if packed is not None:
        assert best.objective <= packed[1] * (1 + 1e-9) + 1e-12
    assert not progress.network.used.any()


def test_a_slot_that_is_used_up_exactly_has_a_bound_without_room() -> None:
    """What no worker can use is no room, nor is the checker's 1e-9: else the inner method is asked without need."""
    job = {"arrival": 1, "max_workers": 2, "demand": {"gpu": 1}, "budget": {}, "bandwidth": 0, "efficiency": 1}
    worth = {"kind": "sqrt", "scale": 1}
    data = {
        "problem": "ddljs",
        "horizon": 1,
        "servers": [{"id": "s", "resources": {"gpu": 2}}],
        "links": [],
        "jobs": [{"id": name, "utility": worth, **job} for name in "ab"],
    }
    progress = GreedyState(DdljsInstance.parse(data))
    problem = slot_problem(progress, list(progress.active()))
    packed = by_marginals(progress, problem)
    assert problem.instance is not None and packed is not None
    where = {i: n for n, i in enumerate(problem.jobs)}
    gained = sum(problem.instance.jobs[where[i]].utility[len(r.workers) - 1] for i, r in packed[0].items())
    assert packed[1] == pytest.approx(gained, rel=1e-12)


@pytest.mark.parametrize("inner", ["lp-rs-mde", "lp-rs-mde-mdk", "lp-rs-mde-printed"])
def test_algorithm_2_inside(inner: str) -> None:
    for seed in range(4):
        instance = tiny(seed, utilities="concave")
        run = gadget(instance, seed=seed, inner=inner)
        assert run.solution is not None and check(instance, run.solution).feasible
        again = gadget(instance, seed=seed, inner=inner)
        assert again.solution == run.solution
        assert run.info["alpha"] is None or 0 <= run.info["alpha"] <= 1


def test_a_deadline_and_a_gap_are_kept() -> None:
    instance = small(2)
    late = gadget(instance, deadline=PASSED)
    assert late.solution == gadget(instance, inner="greedy").solution
    loose = gadget(instance, gap=0.05)
    assert loose.solution is not None and check(instance, loose.solution).feasible
    assert loose.info["alpha"] >= 0.95 - 1e-9


def test_ties_go_by_input_order() -> None:
    made = tight(2).to_dict()
    for job in made["jobs"]:
        job["utility"]["scale"] = 1.0
        job["arrival"] = 1
        job["demand"] = {"gpu": 10}
        job["budget"] = {"gpu": 10}
    instance = DdljsInstance.parse(made)
    run = gadget(instance, inner="greedy")
    assert run.solution is not None
    assert [list(slot["rings"]) for slot in run.solution["slots"]] == [["A1"], ["B1"]]


def test_fifo_keeps_its_ring_and_blocks() -> None:
    made = tight(2).to_dict()  # 10 GPUs: A1 takes 1, B1 all, B2 9
    made["horizon"] = 3
    for job in made["jobs"]:
        job["arrival"] = 1
    instance = DdljsInstance.parse(made)
    strict = fifo(instance, workers=1).solution
    assert strict is not None
    assert [list(slot["rings"]) for slot in strict["slots"]] == [["A1"], ["B1"], ["B2"]]
    loose = fifo(instance, workers=1, backfill=True).solution
    assert loose is not None
    assert [sorted(slot["rings"]) for slot in loose["slots"]] == [["A1", "B2"], ["B1"], []]


def test_las_and_drf_share() -> None:
    instance = late(4)
    turns = las(instance, workers=1).info
    assert turns["worker_slots"] == instance.horizon
    served = las(instance, workers=1).solution
    assert served is not None
    assert [next(iter(slot["rings"])) for slot in served["slots"]][:4] == ["steep", "flat", "steep", "flat"]
    made = late(4).to_dict()
    made["servers"] = [{"id": "s0", "resources": {"gpu": 5}}]
    for job in made["jobs"]:
        job["max_workers"] = 5
    fair = drf(DdljsInstance.parse(made)).solution
    assert fair is not None
    sizes = {name: len(ring["workers"]) for name, ring in fair["slots"][0]["rings"].items()}
    assert sizes == {"steep": 3, "flat": 2}


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_holds_with_few_blocks_and_coarse_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small(seed, horizon=4)
    fine = upper_bound(instance)
    monkeypatch.setattr("schedgap.solvers.exact.ddljs.bound.LARGEST", 4)
    monkeypatch.setattr("schedgap.solvers.exact.ddljs.bound.GRID", 3)
    coarse = upper_bound(small(seed, horizon=4))
    exact = run_method(DDLJS, instance, "highs", SolveOptions(threads=1)).objective
    assert fine is not None and coarse is not None and exact is not None
    assert coarse >= fine * (1 - 1e-9) and coarse >= exact * (1 - 1e-9)


def test_presets_are_valid_and_repeatable() -> None:
    for preset in workload_of(DDLJS).presets:
        one = DDLJS.instance_class.parse(_generated(preset.id).to_dict())
        assert one == _generated(preset.id)
    assert paper(0) != paper(1)
    start = paper(0, arrivals="start", budget="iterations")
    assert {job.arrival for job in start.jobs} == {1}
    assert all((job.slot_limit or 0) <= 6000 / job.efficiency for job in start.jobs)


def _generated(preset: str) -> DdljsInstance:
    made = make_instance(DDLJS, preset, seed=3)
    assert isinstance(made, DdljsInstance)
    return made


def test_a_network_from_a_file(tmp_path: Path) -> None:
    text = 'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ] edge [ source 0 target 1 ] ]'
    (tmp_path / "net.gml").write_text(text)
    instance, messages = import_instance(DDLJS, "gml", [tmp_path / "net.gml"], settings={"jobs": 3, "horizon": 5})
    assert isinstance(instance, DdljsInstance)
    assert len(instance.jobs) == 3 and instance.horizon == 5 and any("drawn" in message for message in messages)


def test_the_figure_shows_rings_and_worth() -> None:
    instance = small(1)
    run = gadget(instance, inner="greedy")
    assert run.solution is not None
    grid = workers_by_slot(instance, run.solution)
    assert grid.sum() == run.info["worker_slots"] and grid.shape == (4, 5)
    assert len(worker_slots(instance, run.solution).axes) == 2
    assert np.isfinite(
        worker_slots(paper(0, jobs=60, horizon=80), {"slots": [{"rings": {}}] * 80}).get_size_inches()
    ).all()
