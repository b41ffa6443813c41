"""Instance, checker, units of progress, placement, generators and figure of hadar."""

import itertools
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.checks import hadar as check
from support.work import Looks

from schedgap.benchmarks.figures.hadar import device_rows, devices
from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.instances.hadar.random import small, tiny, trace
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar import models
from schedgap.formulations.hadar import tables as hadar_tables
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.metrics import metrics
from schedgap.formulations.hadar.models import build_ilp, ilp_nonzeros
from schedgap.formulations.hadar.placement import devices_by_type, solution_from_levels
from schedgap.formulations.hadar.tables import progress_units, small_units, tables
from schedgap.reading import as_instance
from schedgap.solvers.exact.hadar.schedule_choices import Packing
from schedgap.solvers.exact.hadar.slot_cuts import maximal_packings
from schedgap.solvers.result import SolveOptions, Termination


def example() -> dict[str, Any]:
    data: dict[str, Any] = tiny(3).to_dict()
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["jobs"][0].update(workers=0), "workers"),
        (lambda d: d["jobs"][0].update(arrival=99), "at most the horizon"),
        (lambda d: d["jobs"][0]["utility"].update(deadline=3.0, kind="constant"), "deadline"),
        (lambda d: d["jobs"][0].update(utility={"kind": "linear", "weight": 1.0}), "deadline: is missing"),
        (lambda d: d["jobs"][0].update(speed=1), "unknown key"),
        (lambda d: d["jobs"][1].update(id=d["jobs"][0]["id"]), "already the id"),
        (lambda d: d["machines"][0].update(gpus={"V100": 0}), "gpus"),
        (lambda d: d["machines"][0].update(gpus={}), "gpus"),
        (lambda d: d["jobs"][0].update(throughput={"V100": -1.0}), "throughput"),
        (lambda d: d["jobs"][0].update(throughput={"V100": float("nan")}), "throughput"),
        (lambda d: d.update(slot_length=0), "slot_length"),
    ],
)
def test_bad_instances_are_refused(change: Any, message: str) -> None:
    data = json.loads(json.dumps(example()))
    change(data)
    with pytest.raises(InputError, match=message):
        HadarInstance.parse(data)


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        ([], r"solution: must be a JSON object, got \[\]"),
        ({}, "allocation: is missing"),
        ({"allocation": {}, "x": 1}, "unknown key"),
        ({"allocation": {"nobody": {}}}, "no job"),
        ({"allocation": {"j0": 5}}, "allocation.j0: must be an object"),
        ({"allocation": {"j0": {"one": []}}}, "whole number"),
        ({"allocation": {"j0": {"01": []}}}, "whole number"),
        ({"allocation": {"j0": {"1": {}}}}, "must be a list"),
        ({"allocation": {"j0": {"1": [{"machine": "h0"}]}}}, r"j0\.1\[0\]\.type: is missing"),
        ({"allocation": {"j0": {"1": [{"machine": "zz", "type": "V100", "gpus": 1}]}}}, "no machine"),
        ({"allocation": {"j0": {"1": [{"machine": "h0", "type": "zz", "gpus": 1}]}}}, "no device type"),
        (
            {"allocation": {"j0": {"1": [{"machine": "h0", "type": "V100", "gpus": 0}]}}},
            "than or equal to 1, got 0",
        ),
        ({"allocation": {"j0": {"1": [{"machine": "h0", "type": "V100", "gpus": True}]}}}, "a whole number, got true"),
        ({"allocation": {"j0": {"1": [{"machine": "h0", "type": "V100", "gpus": 1.0}]}}}, "a whole number, got 1.0"),
    ],
)
def test_malformed_solutions_are_refused(solution: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(HadarInstance.parse(example()), solution)


def one_job(**changes: Any) -> HadarInstance:
    job = {
        "id": "a",
        "arrival": 1,
        "workers": 1,
        "epochs": 1,
        "iterations_per_epoch": 1,
        "throughput": {"V100": 1},
        "utility": {"kind": "effective-throughput", "weight": 1.0},
        **changes,
    }
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "horizon": 12,
            "slot_length": 1.0,
            "machines": [{"id": "h", "gpus": {"V100": 2, "K80": 1}}],
            "jobs": [job],
        }
    )


def run_in(slots: int, kind: str = "V100", gpus: int = 1) -> dict[str, Any]:
    return {"allocation": {"a": {str(t): [{"machine": "h", "type": kind, "gpus": gpus}] for t in range(1, slots + 1)}}}


def test_ten_tenths_are_one_and_the_slowest_type_counts() -> None:
    assert check(one_job(throughput={"V100": 0.1}), run_in(10)).objective == Fraction(1, 10)
    assert check(one_job(throughput={"V100": 0.1}), run_in(9)).objective == 0
    mixed = one_job(workers=3, epochs=6, throughput={"V100": 4, "K80": 2})
    both = {
        "allocation": {
            "a": {"2": [{"machine": "h", "type": "V100", "gpus": 2}, {"machine": "h", "type": "K80", "gpus": 1}]}
        }
    }
    report = check(mixed, both)
    assert report.feasible and report.objective == 3 and report.details["completion"] == {"a": 2}


def test_idle_slots_held_after_the_work_count() -> None:
    assert check(one_job(), run_in(1)).objective == 1
    assert check(one_job(), run_in(4)).objective == Fraction(1, 4)


def test_violations_carry_their_numbers() -> None:
    report = check(one_job(arrival=2), run_in(2, gpus=2))
    assert {v.constraint for v in report.violations} == {"gang", "arrival"}
    assert "2 devices" in report.violations[1].message or "2 devices" in report.violations[0].message
    over = check(one_job(workers=3), run_in(1, gpus=3))
    assert [v.constraint for v in over.violations] == ["capacity"] and over.violations[0].amount == 1
    assert [v.constraint for v in check(one_job(), run_in(1, kind="K80")).violations] == ["type"]
    data = one_job().to_dict()
    data["all_jobs_must_finish"] = True
    report = check(HadarInstance.parse(data), {"allocation": {}})
    assert [v.constraint for v in report.violations] == ["completion"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=997), min_size=1, max_size=3),
    st.integers(1, 9),
)
def test_units_mean_what_the_shares_mean(shares: list[Fraction], slots: int) -> None:
    shares = sorted(set(shares), reverse=True)
    steps, target = progress_units(shares, slots)
    small, goal = small_units(np.array(steps, dtype=np.int64), target, slots)
    for counts in itertools.product(range(slots + 1), repeat=len(shares)):
        if sum(counts) <= slots:
            true = sum(n * s for n, s in zip(counts, shares, strict=True)) >= 1 - Fraction(1, 10**9)
            assert (sum(n * s for n, s in zip(counts, steps, strict=True)) >= target) == true
            assert (sum(n * int(s) for n, s in zip(counts, small, strict=True)) >= goal) == true


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from((0.9999, 0.5, 0.3333, 0.123456789)),
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.integers(-2, 2),
    st.integers(3, 6),
)
def test_units_tell_near_ties_of_any_size_apart(first: float, counts: list[int], nudge: int, slots: int) -> None:
    """Rates decades apart: their sums miss the work by what no number of 60 bits of it holds."""
    goal = 1 - Fraction(1, 10**9)
    rest = (goal - counts[0] * Fraction(repr(first))) / counts[1]
    assume(rest > 0)
    shares = sorted({Fraction(repr(first)), rest + nudge * Fraction(1, 10**25)}, reverse=True)
    steps, target = progress_units(shares, slots)
    small, least = small_units(np.array(steps, dtype=np.int64), target, slots)
    for chosen in itertools.product(range(slots + 1), repeat=len(shares)):
        if sum(chosen) <= slots:
            true = sum(n * s for n, s in zip(chosen, shares, strict=True)) >= goal
            assert (sum(n * s for n, s in zip(chosen, steps, strict=True)) >= target) == true
            assert (sum(n * int(s) for n, s in zip(chosen, small, strict=True)) >= least) == true


@pytest.mark.parametrize("engine", ["highs", "cbc"])
def test_engines_cut_off_work_that_lacks_a_hair(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No small units: coefficients a million apart, of which an engine's tolerance hides the small ones."""
    monkeypatch.setattr(hadar_tables, "_MULTISETS", 0)
    path = Path(__file__).parents[1] / "data" / "gate" / "hadar-work-of-two-slots-decades-apart.json"
    result = run_method(HADAR, as_instance(path), engine, SolveOptions(threads=1))
    assert result.objective == pytest.approx(2.3333320002, rel=1e-9)


def test_the_tolerance_of_the_units_is_the_checkers() -> None:
    """Three slots of 0.3333333333 fall short by 1e-10: the checker takes that for done, so must the units."""
    instance = one_job(throughput={"V100": 0.3333333333})
    job = tables(instance).jobs[0]
    assert job.min_slots == 3 and check(instance, run_in(3)).objective == Fraction(1, 3)
    instance = one_job(throughput={"V100": 0.33333333})
    assert tables(instance).jobs[0].min_slots == 4 and check(instance, run_in(3)).objective == 0


def test_placement_agrees_with_halls_condition() -> None:
    rng = np.random.default_rng(0)
    data = tables(small(1, jobs=10, horizon=6))
    seen = set()
    for _ in range(300):
        running = []
        packing = Packing(data)
        load = packing.empty()
        fits = True
        for j in rng.permutation(10)[: rng.integers(1, 5)].tolist():
            job = data.jobs[j]
            if not job.levels:
                continue
            level = int(rng.integers(job.levels))
            permit = np.ones((data.horizon + 1, job.levels + 1), dtype=np.bool_)
            fits = fits and bool(packing.permits(load, j, permit)[1, level + 1])
            load[1, (packing.sets & packing.masks[j][level]) == packing.masks[j][level]] += job.workers
            running.append((j, level))
        given = devices_by_type(running, data)
        assert (given is not None) == fits
        seen.add(fits)
        if given is not None:
            assert (given.sum(axis=0) <= data.capacity).all()
            for (j, level), row in zip(running, given, strict=True):
                assert row.sum() == data.jobs[j].workers and not row[~data.jobs[j].allowed[level]].any()
    assert seen == {True, False}


def test_maximal_packings_are_all_that_cannot_grow() -> None:
    keys, most, capacity = [(3, 0b11), (2, 0b01), (1, 0b10)], [2, 2, 2], [2, 2]
    found = {tuple(row) for row in maximal_packings(keys, most, capacity).tolist()}
    assert found == {(1, 0, 1), (0, 1, 2)}


def test_programs_start_solutions_and_sizes() -> None:
    instance = small(2, jobs=5, horizon=8)
    model = build_ilp(instance)
    nonzeros = sum(len(row) for row in model.problem.constraints.values())
    assert 0.5 * nonzeros <= ilp_nonzeros(instance) <= 2 * nonzeros
    found = run_method(HADAR, instance, "colgen", SolveOptions())
    assert found.solution is not None and model.assign is not None
    values = model.assign(found.solution)
    for row in model.problem.constraints.values():
        total = sum(values[v] * c for v, c in row.items()) + row.constant
        assert total <= 1e-9 if row.sense == -1 else total >= -1e-9 if row.sense == 1 else abs(total) < 1e-9
    again = model.extract(lambda v: values[v])
    assert check(instance, again).objective == check(instance, found.solution).objective
    restarted = run_method(HADAR, instance, "colgen", SolveOptions(start=found.solution))
    assert restarted.objective == pytest.approx(found.objective)


def test_a_start_with_jobs_that_never_finish_is_a_point_of_the_program() -> None:
    """Rules leave such jobs behind; the program has no slot for them, and the start was a KeyError."""
    instance = small(2, jobs=5, horizon=8)
    model = build_ilp(instance)
    whole = run_method(HADAR, instance, "colgen", SolveOptions()).solution
    assert whole is not None and model.assign is not None
    for name, held in whole["allocation"].items():
        cut = {**whole["allocation"], name: dict(list(held.items())[:-1])}
        solution = {"allocation": {one: slots for one, slots in cut.items() if slots}}
        values = model.assign(solution)
        for row in model.problem.constraints.values():
            total = sum(values[v] * c for v, c in row.items()) + row.constant
            assert total <= 1e-9 if row.sense == -1 else total >= -1e-9 if row.sense == 1 else abs(total) < 1e-9
        worth = sum(float(c) * values[v] for v, c in model.problem.objective.items())
        assert worth == pytest.approx(float(check(instance, solution).objective or 0))


@pytest.mark.parametrize("engine", ["highs", "cbc", "cpsat"])
def test_a_start_beyond_the_programs_index_sets_costs_the_start_alone(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = small(2, jobs=5, horizon=8)
    best = run_method(HADAR, instance, "colgen", SolveOptions())
    asked: list[Solution] = []

    def beyond(builder: object, solution: Solution) -> Mapping[object, float]:
        asked.append(solution)
        return {}[(1, 2)]

    monkeypatch.setattr(models, "_assignment", beyond)
    answer = run_method(HADAR, instance, engine, SolveOptions(start=best.solution, threads=1))
    assert asked and (answer.status, answer.objective) == ("optimal", pytest.approx(best.objective))


def test_colgen_says_when_it_is_out_of_reach() -> None:
    found = run_method(HADAR, trace(0, jobs=60), "colgen", SolveOptions())
    assert (found.status, found.termination) == ("feasible", "too large to build in the time")  # its start stays
    assert found.bound is not None and found.solution is not None


def test_a_time_limit_leaves_a_solution_and_a_bound() -> None:
    instance = small(8, jobs=16, horizon=20)
    found = run_method(HADAR, instance, "colgen", SolveOptions(deadline=Looks(12)))
    assert found.termination is Termination.TIME_LIMIT
    assert found.solution is not None and found.bound is not None and found.objective is not None
    assert found.objective <= found.bound * (1 + 1e-9)


def test_metrics_of_a_known_schedule() -> None:
    found = metrics(one_job(), run_in(3))
    assert found["jobs_finished"] == 1 and found["mean_jct"] == found["makespan"] == 3.0
    assert found["utilisation"] == pytest.approx(1 / 3)


def test_completion_times_are_known_where_every_job_finished() -> None:
    """Over the finished jobs alone, who finishes only the short one looks fast."""
    instance = make_instance(HADAR, "tiny", 1)
    one = run_method(HADAR, instance, "yarn-cs", SolveOptions()).info
    assert [one[key] for key in ("jobs_finished", "mean_jct", "median_jct", "makespan")] == [1, None, None, None]
    assert HADAR.metrics_note


def test_levels_that_do_not_fit_are_refused() -> None:
    instance = small(0, jobs=12, horizon=6)
    data = tables(instance)
    wide = [j for j, job in enumerate(data.jobs) if job.workers >= 2 and job.levels]
    assert solution_from_levels(instance, data, {j: {6: 0} for j in wide}) is None


@pytest.mark.parametrize("preset", [preset.id for preset in workload_of(HADAR).presets])
def test_presets_are_repeatable_and_sound(preset: str) -> None:
    settings = {"jobs": 12} if preset in ("trace", "rounds") else {}
    one = make_instance(HADAR, preset, 3, settings)
    two = make_instance(HADAR, preset, 3, settings)
    assert one.content_hash() == two.content_hash()
    assert HadarInstance.parse(one.to_dict()).content_hash() == one.content_hash()


def test_the_trace_is_the_papers_size() -> None:
    instance = trace(0)
    assert (len(instance.jobs), len(instance.machines), instance.total_gpus) == (480, 15, 60)
    assert instance.capacity == {"V100": 20, "P100": 20, "K80": 20} and instance.slot_length == 360


def test_the_figure_shows_every_device_slot() -> None:
    instance = small(1, jobs=8, horizon=10)
    found = run_method(HADAR, instance, "hadar-rounds", SolveOptions())
    assert found.solution is not None
    rows, slots = device_rows(instance, found.solution)
    shown = sum(int((grid >= 0).sum()) for grid in rows.values())
    assert shown == check(instance, found.solution).details["busy"]
    assert {kind: len(grid) for kind, grid in rows.items()} == instance.capacity and slots <= 10
    assert devices(instance, found.solution).axes
    forked = run_method(HADAR, instance, "hadare", SolveOptions())
    assert forked.solution is not None and devices(instance, forked.solution).axes
