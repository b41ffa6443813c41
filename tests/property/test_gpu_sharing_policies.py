"""Policies: feasible schedules, the printed algorithm in plain Python, and hand-made cases."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import extreme_tiny
from support.checks import gpu_sharing as check
from support.checks import gpu_sharing_elastic as check_elastic
from support.gpu_sharing_plain_policy import plain_sjf_bsbf
from support.work import PASSED

from schedgap.benchmarks.instances.gpu_sharing.random import contended, small
from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.gpu_sharing.exclusive_policies import easy, fifo, sjf, sjf_priced, sjf_reserve
from schedgap.heuristics.gpu_sharing.preemptive import pollux, tiresias
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf, sjf_bsbf_plus, sjf_ffs
from schedgap.solvers.exact.gpu_sharing.bound import capacity_weights, lower_bound, priced_starts, sharing_factor
from schedgap.solvers.result import Deadline

INSIDE = {
    "fifo": fifo,
    "easy": easy,
    "sjf": sjf,
    "sjf-reserve": sjf_reserve,
    "sjf-priced": sjf_priced,
    "sjf-ffs": sjf_ffs,
    "sjf-bsbf": sjf_bsbf,
    "sjf-bsbf+": sjf_bsbf_plus,
}
OUTSIDE = {"tiresias": tiresias, "pollux": pollux}


def random_instance(seed: int) -> GpuSharingInstance:
    if seed % 3 == 0:
        return contended(seed, jobs=6, gpus=3, horizon=300)
    return small(seed, jobs=6 + seed % 20, gpus=4 + seed % 5, horizon=1000, spread=(seed % 7) / 6, arrivals=8)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_gpu_sharing_sjf_bsbf_is_the_printed_algorithm(seed: int) -> None:
    instance = random_instance(seed)
    solution = sjf_bsbf(instance).solution
    assert solution is not None
    ties: list[str] = []
    plain = plain_sjf_bsbf(instance, ties)
    assume(not ties)  # sharing or not, or which partner first, is left to rounding there
    assert {n: (solution["start"][n], solution["accumulation"][n]) for n in plain} == plain


@given(st.integers(0, 10**6), st.sampled_from(sorted(INSIDE)))
@settings(max_examples=60, deadline=None)
def test_gpu_sharing_policies_make_feasible_schedules(seed: int, name: str) -> None:
    instance = random_instance(seed)
    run = INSIDE[name](instance)
    assert run.solution is not None
    report = check(instance, run.solution)
    assert report.feasible, report.violations
    assert float(report.objective) == pytest.approx(run.info["jct all"])
    bound = lower_bound(instance)
    assert bound is not None and bound <= float(report.objective) + 1e-9


@given(st.integers(0, 10**6), st.sampled_from(sorted(INSIDE | OUTSIDE)))
@settings(max_examples=150, deadline=None)
def test_gpu_sharing_policies_take_every_valid_instance(seed: int, name: str) -> None:
    """Also jobs that only communicate, slowdowns of 10^6 and memory that just fits: a schedule, or a reason."""
    instance = extreme_tiny.gpu_sharing(np.random.default_rng(seed))
    run = (INSIDE | OUTSIDE)[name](instance)
    if run.solution is None:
        assert run.info["reason"]
        return
    report = (check if name in INSIDE else check_elastic)(instance, run.solution)
    assert report.feasible, report.violations


def test_gpu_sharing_pollux_where_an_iteration_on_one_gpu_takes_no_time() -> None:
    """Without computation only the gang of two takes time; one GPU does all iterations in its first slot."""
    data = json.loads((Path(__file__).parents[1] / "data" / "pollux-no-computation.json").read_text())
    instance = GpuSharingInstance.parse(data)
    solution = pollux(instance).solution
    assert solution is not None and solution["segments"] == {"j0": [[1, 1, 1]]}
    report = check_elastic(instance, solution)
    assert report.feasible and report.objective == 1


@pytest.mark.parametrize("cap", [1, 2])
@given(st.integers(0, 10**6), st.sampled_from(sorted(INSIDE)))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_policies_keep_the_cap(cap: int, seed: int, name: str) -> None:
    data = random_instance(seed).to_dict()
    instance = GpuSharingInstance.parse({**data, "max_jobs_per_gpu": cap, "horizon": 3000})
    solution = INSIDE[name](instance).solution
    assert solution is not None
    report = check(instance, solution)
    assert report.feasible, report.violations
    # Not only by the checker: who is on a GPU in a slot, counted here.
    end = report.details["completion"]
    present: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for job, gpus in solution["gpus"].items():
        for server, gpu in gpus:
            present.setdefault((server, gpu), []).append((solution["start"][job], end[job]))
    most = max(sum(a <= t <= b for a, b in rows) for rows in present.values() for t, _ in rows)
    assert most <= cap


def test_gpu_sharing_jobs_of_one_decision_keep_the_cap() -> None:
    """Both jobs are there at once: the second must not share with the first, which has just started."""
    data = two_jobs(1.0).to_dict()
    data["jobs"][1]["arrival"] = 1
    together = GpuSharingInstance.parse(data)
    apart = GpuSharingInstance.parse({**data, "max_jobs_per_gpu": 1})
    for policy in (sjf_ffs, sjf_bsbf, sjf_bsbf_plus):
        assert policy(together).solution["start"] == {"o": 1, "n": 1}
        assert policy(apart).solution["start"] == {"o": 5, "n": 1}


@given(st.integers(0, 10**6), st.sampled_from(sorted(OUTSIDE)))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_preemptive_schedules_pass_their_own_checker(seed: int, name: str) -> None:
    instance = random_instance(seed)
    run = OUTSIDE[name](instance, restart=float(seed % 3))
    report = check_elastic(instance, run.solution)
    assert report.feasible, report.violations
    assert float(report.objective) == pytest.approx(run.info["jct all"])
    with pytest.raises(InputError):
        check(instance, run.solution)


def test_gpu_sharing_elastic_checker_sees_what_is_wrong() -> None:
    instance = small(3, horizon=200)
    good = tiresias(instance).solution
    first = instance.jobs[0].id

    def broken(change) -> list[str]:
        rows = {k: [list(r) for r in v] for k, v in good["segments"].items()}
        change(rows)
        return [v.constraint for v in check_elastic(instance, {**good, "segments": rows}).violations]

    assert broken(lambda rows: None) == []
    assert "work" in broken(lambda rows: rows[first][-1].__setitem__(1, rows[first][-1][1] - 1))
    assert "arrival" in broken(lambda rows: rows[first][0].__setitem__(0, 0))
    assert "capacity" in broken(lambda rows: rows[first][0].__setitem__(2, 9))
    assert "order" in broken(lambda rows: rows[first].append(list(rows[first][0])))
    for bad in ({}, {**good, "noise": "x"}, {**good, "restart": -1}, {**good, "segments": {}}):
        with pytest.raises(InputError):
            check_elastic(instance, bad)


def two_jobs(xi: float, **changes) -> GpuSharingInstance:
    """Job o runs from slot 1 for 10 slots, job n arrives in slot 3 and takes 4; one GPU."""
    job = {
        "arrival": 1,
        "gpus": 1,
        "iterations": 10,
        "batch_size": 1,
        "compute": {"fixed": 1.0, "per_sample": 0.0},
        "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
        "overlap": 1.0,
        "memory": {"fixed": 1.0, "per_sample": 0.0},
    }
    data = {
        "problem": "gpu-sharing",
        "horizon": 100,
        "slot_length": 1.0,
        "servers": [{"id": "s", "gpus": 1}],
        "gpu_memory": 2.0,
        "max_jobs_per_gpu": 2,
        "jobs": [{**job, "id": "o"}, {**job, "id": "n", "arrival": 3, "iterations": 4}],
        "interference": {"o": {"n": xi}, "n": {"o": xi}},
        **changes,
    }
    return GpuSharingInstance.parse(data)


def test_gpu_sharing_the_rule_decides_in_a_schedule() -> None:
    # a = 8, n = 4: shares iff xi (2 - 1/xi) < 2 (xi < 1.5) or 8 > 4 (2 xi - 2) (xi < 2).
    for xi, start in ((1.0, 3), (1.6, 3), (1.99, 3), (2.0, 11), (2.5, 11)):
        solution = sjf_bsbf(two_jobs(xi)).solution
        assert solution["start"]["n"] == start, xi
    assert sjf_ffs(two_jobs(2.5)).solution["start"]["n"] == 3
    assert sjf(two_jobs(1.0)).solution["start"]["n"] == 11
    assert sjf_bsbf(two_jobs(1.0, max_jobs_per_gpu=1)).solution["start"]["n"] == 11
    assert sjf_bsbf(two_jobs(1.0, gpu_memory=1.9)).solution["start"]["n"] == 11


def test_gpu_sharing_a_partner_that_is_slowed_already_is_slowed_no_further() -> None:
    """o runs on two GPUs, 1.5 times slower since k came to one of them; n slows it by as much, that is by nothing more.

    With the whole factor 1.5 once more the rule would make n wait (158.8 against 155), and it would end 30 slots later.
    """
    job = two_jobs(1.0).to_dict()["jobs"][0]
    jobs = [
        {**job, "id": "o", "gpus": 2, "iterations": 40},
        {**job, "id": "k", "arrival": 2, "iterations": 60},
        {**job, "id": "n", "arrival": 3, "iterations": 40},
    ]
    factors = {"o": {"k": 1.5, "n": 1.5}, "n": {"o": 1.9}}
    instance = two_jobs(1.0, servers=[{"id": "s", "gpus": 2}], jobs=jobs, interference=factors, horizon=300)
    solution = sjf_bsbf(instance).solution
    assert solution is not None and solution["start"] == {"o": 1, "k": 2, "n": 3}
    shared = check(instance, solution).details["completion"]
    waits = check(instance, {**solution, "start": {"o": 1, "k": 2, "n": shared["o"] + 1}}).details["completion"]
    assert shared["o"] == waits["o"] and shared["n"] + 30 == waits["n"]


def test_gpu_sharing_plus_waits_for_a_gpu_that_is_free_soon() -> None:
    data = two_jobs(1.6).to_dict()
    data["servers"][0]["gpus"] = 2
    data["jobs"].append({**data["jobs"][0], "id": "short", "iterations": 3})
    data["interference"] = {"o": {"n": 1.6}, "n": {"o": 1.6, "short": 3.0}, "short": {"n": 3.0}}
    instance = GpuSharingInstance.parse(data)
    assert sjf_bsbf(instance).solution["start"]["n"] == 3
    # Waiting ends with slot 3, not with slot 10.
    assert sjf_bsbf_plus(instance).solution["start"]["n"] == 4


def test_gpu_sharing_fifo_blocks_and_sjf_passes_over() -> None:
    data = two_jobs(1.0, max_jobs_per_gpu=1).to_dict()
    data["servers"][0]["gpus"] = 2
    data["jobs"][1].update(gpus=2, arrival=2)
    data["jobs"].append({**data["jobs"][0], "id": "late", "arrival": 3, "iterations": 2})
    instance = GpuSharingInstance.parse({**data, "interference": {}})
    assert fifo(instance).solution["start"] == {"o": 1, "n": 11, "late": 15}
    assert fifo(instance, backfill=True).solution["start"] == {"o": 1, "n": 11, "late": 3}
    assert sjf(instance).solution["start"] == {"o": 1, "n": 11, "late": 3}
    assert sjf(instance, backfill=False).solution["start"]["late"] == 3


def plain_easy(instance: GpuSharingInstance) -> tuple[dict[str, int], bool]:
    """Slot by slot, with the definition's own words; and whether each kept the first reservation that it got."""
    jobs, solo = instance.jobs, tables(instance).solo_slots.tolist()
    start, promised, kept, slot = {}, {}, True, 0
    while len(start) < len(jobs):
        slot += 1

        def free(moment: int) -> int:
            return instance.total_gpus - sum(jobs[j].gpus for j, s in start.items() if moment < s + solo[j])

        waiting = [j for j in range(len(jobs)) if j not in start and jobs[j].arrival <= slot]
        waiting.sort(key=lambda j: jobs[j].arrival)
        while waiting and jobs[waiting[0]].gpus <= free(slot):
            kept &= promised.get(waiting[0], slot) >= slot
            start[waiting.pop(0)] = slot
        if not waiting:
            continue
        first = waiting.pop(0)
        moment = next(m for m in range(slot, 10**6) if free(m) >= jobs[first].gpus)
        promised.setdefault(first, moment)
        for j in waiting:
            if jobs[j].gpus <= free(slot):
                start[j] = slot
                if free(moment) < jobs[first].gpus:  # it would delay the first
                    del start[j]
    return {jobs[j].id: s for j, s in start.items()}, kept


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_easy_is_its_definition_slot_by_slot(seed: int) -> None:
    instance = small(seed, jobs=6 + seed % 20, gpus=4 + seed % 5, horizon=3000, spread=(seed % 7) / 6, arrivals=8)
    found = easy(instance).solution
    assume(found is not None)
    start, kept = plain_easy(instance)
    assert found["start"] == start and kept


def test_gpu_sharing_easy_passes_over_without_a_delay() -> None:
    """Two of three GPUs are busy for ten slots, then three are wanted: only what ends by then may pass."""
    data = two_jobs(1.0, max_jobs_per_gpu=1).to_dict()
    data["servers"][0]["gpus"] = 3
    data["jobs"][0].update(gpus=2)
    data["jobs"][1].update(gpus=3, arrival=2)
    more = [
        {**data["jobs"][0], "gpus": 1, "id": name, "arrival": 3, "iterations": n} for name, n in (("x", 9), ("y", 8))
    ]
    instance = GpuSharingInstance.parse({**data, "jobs": [*data["jobs"], *more], "interference": {}})
    assert easy(instance).solution["start"] == {"o": 1, "n": 11, "x": 15, "y": 3}
    assert fifo(instance, backfill=True).solution["start"]["n"] > 11


def test_gpu_sharing_a_reserve_keeps_room_for_short_jobs() -> None:
    """Of four GPUs, two long jobs take all at once; with a reserve one GPU waits for what is short."""
    data = two_jobs(1.0, max_jobs_per_gpu=1).to_dict()
    data["servers"][0]["gpus"] = 4
    base = data["jobs"][0]
    short = [{**base, "id": f"s{k}", "gpus": 1, "iterations": 2, "arrival": 2 + 3 * k} for k in range(7)]
    long = [{**base, "id": f"l{k}", "gpus": 2, "iterations": 20 + k, "arrival": 1} for k in range(2)]
    instance = GpuSharingInstance.parse({**data, "jobs": [*long, *short], "interference": {}})
    plain, reserved = sjf(instance).solution["start"], sjf_reserve(instance, reserve=0.99).solution["start"]
    assert plain["l0"] == plain["l1"] == 1 and plain["s0"] == 21
    assert reserved["l0"] == 1 and reserved["l1"] == 21
    assert all(reserved[job["id"]] == job["arrival"] for job in short)
    data["jobs"] = [{**base, "gpus": 4, "arrival": 1}]
    assert sjf_reserve(GpuSharingInstance.parse({**data, "interference": {}}), reserve=0.99).solution["start"] == {
        "o": 1
    }


def test_gpu_sharing_a_job_waits_for_what_the_prices_make_it_wait_for() -> None:
    """A long job that comes a slot before many short ones: at the bound's prices it starts after them."""
    data = two_jobs(1.0, max_jobs_per_gpu=1).to_dict()
    data["servers"][0]["gpus"] = 2
    base = data["jobs"][0]
    long = {**base, "id": "long", "gpus": 2, "iterations": 300, "arrival": 1}
    short = [{**base, "id": f"s{k}", "gpus": 2, "iterations": 2, "arrival": 2} for k in range(40)]
    instance = GpuSharingInstance.parse({**data, "horizon": 2000, "jobs": [long, *short], "interference": {}})
    plain, priced = sjf(instance), sjf_priced(instance)
    assert plain.solution["start"]["long"] == 1 and plain.info["jct all"] > 300
    assert priced.solution["start"]["long"] > max(
        start for job, start in priced.solution["start"].items() if job != "long"
    )
    assert priced.info["jct all"] < 60 and lower_bound(instance) <= priced.info["jct all"]
    assert sjf_priced(instance, held=0.0).solution == plain.solution


@pytest.mark.parametrize("seed", range(12))
def test_gpu_sharing_no_job_starts_before_it_is_let(seed: int) -> None:
    instance = random_instance(seed)
    starts, run = priced_starts(instance), sjf_priced(instance, held=1.0)
    assert run.solution is not None
    assert all(run.solution["start"][job.id] >= start for job, start in zip(instance.jobs, starts, strict=True))
    best = sjf_priced(instance)
    parts = [sjf_priced(instance, held=part).info["jct all"] for part in (0.5, 0.75, 0.9, 1.0)]
    assert best.info["jct all"] == min(parts)


def test_gpu_sharing_policies_say_why_they_found_nothing() -> None:
    tight = two_jobs(1.0, max_jobs_per_gpu=1, horizon=12)
    run = sjf(tight)
    assert run.solution is None and "the horizon is 12" in run.info["reason"]
    assert "memory" in sjf_bsbf(two_jobs(1.0, gpu_memory=0.5)).info["reason"]
    assert tiresias(two_jobs(1.0, gpu_memory=0.5)).solution is None


def test_gpu_sharing_consolidates_on_the_tightest_server() -> None:
    data = two_jobs(1.0).to_dict()
    data["servers"] = [{"id": "wide", "gpus": 4}, {"id": "tight", "gpus": 2}]
    data["jobs"][0]["gpus"] = 2
    instance = GpuSharingInstance.parse(data)
    assert {server for server, _ in sjf(instance).solution["gpus"]["o"]} == {"tight"}


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_capacity_weights_hold_on_every_gpu(seed: int) -> None:
    data = tables(random_instance(seed))
    weights = capacity_weights(data)
    assert (weights <= 1 + 1e-12).all() and (weights >= 1 / sharing_factor(data) - 1e-12).all()
    pairs = weights[:, None] / data.slowdown + weights[None, :] / data.slowdown.T
    assert (pairs[data.may_share] <= 1 + 1e-9).all()


def test_gpu_sharing_bound_needs_the_one_in_phi() -> None:
    """One GPU, two jobs of 4 slots, xi = 3: with phi = 2/3 the bound would exceed the optimum of 6 (4 and 8)."""
    data = two_jobs(3.0).to_dict()
    for job in data["jobs"]:
        job.update(arrival=1, iterations=4)
    instance = GpuSharingInstance.parse(data)
    assert sharing_factor(tables(instance)) == 1.0
    bound = lower_bound(instance)
    assert bound is not None and 4 <= bound <= 6
    data["interference"] = {}
    assert sharing_factor(tables(GpuSharingInstance.parse(data))) == 2.0


def test_gpu_sharing_every_policy_is_in_the_table_of_methods() -> None:
    listed = {m.id for m in GPU_SHARING.methods if m.kind == "heuristic"}
    assert listed == {*INSIDE, *OUTSIDE}
    instance = small(5, horizon=300)
    for method in GPU_SHARING.methods:
        if method.kind == "heuristic":
            one, other = method.call(instance, seed=0), method.call(instance, seed=0)
            assert one.solution == other.solution
            assert method.outside_model == (method.id in OUTSIDE)
    assert np.isfinite(lower_bound(instance))


@pytest.mark.parametrize("method", [m for m in GPU_SHARING.methods if m.kind == "heuristic"], ids=lambda m: m.id)
def test_gpu_sharing_the_time_limit_ends_a_policy(method) -> None:
    instance = small(5, horizon=300)
    assert method.has_keyword("deadline")
    stopped = method.call(instance, seed=0, deadline=PASSED)
    assert stopped.solution is None and stopped.info["stopped"] == "time limit" and "16 jobs" in stopped.info["reason"]
    assert (
        method.call(instance, seed=0, deadline=Deadline.after(1e6)).solution == method.call(instance, seed=0).solution
    )
