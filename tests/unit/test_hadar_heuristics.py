"""The algorithms of hadar: sound schedules, options, the paper's example, metrics, bounds of their own."""

import json
import re
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles.hadar_greedy import Plain
from support.checks import hadar as check
from support.checks import hadar_forked as check_forked
from support.work import PASSED, Looks

from schedgap.benchmarks.instances.hadar.random import contended, motivation, nodes, rounds, small, tiny
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.forked import node_speeds
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.heuristics.hadar.baselines import srpt, tiresias, yarn_cs
from schedgap.heuristics.hadar.forked_rounds import utilisation_by_copies
from schedgap.heuristics.hadar.gavel import Rounds, gavel, time_fractions
from schedgap.heuristics.hadar.hadare import hadare
from schedgap.heuristics.hadar.online import hadar_online, hadar_online_plus
from schedgap.heuristics.hadar.rounds import Market, Recursion, hadar_rounds
from schedgap.heuristics.hadar.simulate import run_of, simulate
from schedgap.heuristics.hadar.throughput_estimate import DEVICES, estimate
from schedgap.solvers.exact.hadar.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

COUNTEREXAMPLES = Path(__file__).parents[1] / "data" / "counterexamples"
RUNS = [
    (hadar_online_plus, {}),
    (hadar_online_plus, {"price": "printed"}),
    (hadar_online_plus, {"restart_delay": 0.2}),
    (hadar_online_plus, {"grid": 16}),
    (hadar_rounds, {}),
    (hadar_rounds, {"payoff": "literal", "communication": 0.5}),
    (hadar_rounds, {"preempt": False, "restart_delay": 0.3}),
    (hadar_rounds, {"dp_jobs": 0}),
    (gavel, {}),
    (gavel, {"policy": "max-sum"}),
    (gavel, {"policy": "makespan", "restart_delay": 0.1}),
    (tiresias, {"threshold": 3.0}),
    (yarn_cs, {}),
    (yarn_cs, {"backfill": True, "restart_delay": 0.5}),
    (srpt, {}),
    (srpt, {"restart_delay": 0.2}),
]


@pytest.mark.parametrize(("function", "options"), RUNS, ids=lambda x: getattr(x, "__name__", str(x)))
@pytest.mark.parametrize("seed", range(3))
def test_schedules_are_sound_and_below_the_bound(seed: int, function, options) -> None:  # type: ignore[no-untyped-def]
    for instance in (small(seed, jobs=12, horizon=15), contended(seed), tiny(seed)):
        run = function(instance, **options)
        report = check(instance, run.solution)
        assert report.feasible, report.violations[:1]
        value = float(report.objective or 0)
        bound = upper_bound(instance)
        assert bound is not None and value <= bound * (1 + 1e-9)
        if run.bound is not None:
            assert run.bound >= value - 1e-9
        done = [slot for slot in report.details["completion"].values() if slot is not None]
        assert run.info["jobs_finished"] == len(done)
        assert 0 <= run.info["utilisation"] <= 1
        again = function(instance, **options)
        assert again.solution == run.solution


def test_gavel_on_the_motivating_example() -> None:
    """Section II-A to the digit: 6 rounds, 28 of 36 GPU-rounds, 60, 25 and 50 epochs left after round 1."""
    instance = motivation()
    printed = {
        "j0": {"V100": 0.6, "P100": 0.4, "K80": 0.0},
        "j1": {"V100": 0.2, "P100": 0.6, "K80": 0.2},
        "j2": {"V100": 0.2, "P100": 0.0, "K80": 0.8},
    }
    data = tables(instance)
    rounds = Rounds(data)
    at = instance.job_index
    rounds.set({(at[job], data.types.index(kind)): y for job, row in printed.items() for kind, y in row.items()})
    run = run_of(instance, simulate(instance, rounds.serve))
    assert run.info["rounds"] == 6 and run.info["jobs_finished"] == 3
    assert run.info["utilisation"] == pytest.approx(28 / 36)
    assert check(instance, run.solution or {}).details["busy"] == 28
    left = []
    for job, epochs in zip(instance.jobs, (80, 30, 50), strict=True):
        entries = by_slot((run.solution or {})["allocation"][job.id]).get(1, [])
        left.append(epochs - min((job.throughput[e["type"]] for e in entries), default=0))
    assert left == [60, 25, 50]


def test_hadars_half_of_the_motivating_example_is_impossible() -> None:
    """Five rounds are proven infeasible; six are enough."""
    for horizon, status in ((5, Status.INFEASIBLE), (6, Status.OPTIMAL)):
        data = motivation(horizon=horizon).to_dict()
        data["all_jobs_must_finish"] = True
        for method in ("colgen", "highs"):
            found = run_method(HADAR, HadarInstance.parse(data), method, SolveOptions(threads=1))
            assert found.status is status
    # gangs of 3, 2 and 2 on 6 devices: no set of them uses all six, or even both of the fullest rounds' 100%
    sums = {a * 3 + b * 2 for a in (0, 1) for b in (0, 1, 2)}
    assert max(s for s in sums if s <= 6) == 5


def test_two_printed_cases_of_the_online_algorithm() -> None:
    lost = json.loads((COUNTEREXAMPLES / "D0-single-job-rejected.json").read_text())
    instance = HadarInstance.parse(lost)
    assert check(instance, hadar_online(instance).solution or {}).objective == 0
    assert check(instance, hadar_online(instance, eta="horizon").solution or {}).objective == 1
    low = HadarInstance.parse(json.loads((COUNTEREXAMPLES / "thm2-low-high-1gpu.json").read_text()))
    run = hadar_online(low)
    assert check(low, run.solution or {}).objective == 1
    assert 7 > 2 * run.info["alpha"] == pytest.approx(2 * np.log(28))


def test_the_printed_floor_of_prices_can_be_zero() -> None:
    data = tiny(0).to_dict()
    data["jobs"][0]["utility"] = {"kind": "linear", "weight": 5.0, "deadline": 1.5}
    data["jobs"][0]["arrival"] = 1
    data["jobs"][0]["workers"] = 1
    data["jobs"][0]["throughput"] = dict.fromkeys(("V100", "K80"), 1000.0)
    instance = HadarInstance.parse(data)
    run = hadar_online(instance)
    assert run.solution is None and re.search(r"U_min is 0.*j0", run.info["reason"]) and run.bound is None
    assert hadar_online_plus(instance).solution is not None


@pytest.mark.parametrize("function", [hadar_online, hadar_rounds, gavel, tiresias, yarn_cs, srpt])
def test_a_delay_of_a_whole_slot_is_refused_everywhere(function) -> None:  # type: ignore[no-untyped-def]
    instance = tiny(0)
    with pytest.raises(InputError, match=r"restart_delay: must be less than slot_length \(1\), got 1"):
        function(instance, restart_delay=instance.slot_length)


def long_jobs(horizon: int, epochs: int) -> HadarInstance:
    data = tiny(0).to_dict()
    data["horizon"] = horizon
    for job in data["jobs"]:
        job["epochs"] = epochs
    return HadarInstance.parse(data)


@pytest.mark.parametrize("method", [m for m in HADAR.methods if m.kind == "heuristic"], ids=lambda m: m.id)
def test_a_run_that_is_cut_is_no_answer_but_a_start(method) -> None:  # type: ignore[no-untyped-def]
    """Half of a policy's schedule says nothing of the policy: it is in no mean, and nobody's worst."""
    instance = long_jobs(10**6, 10**6)
    run = method.call(instance, seed=0, deadline=Looks(2))
    assert run.solution is None
    assert run.info.get("stopped") in ("time limit", "too large") and run.info["reason"]
    if run.partial is not None:
        assert check(instance, run.partial).feasible
    must = HadarInstance.parse({**instance.to_dict(), "all_jobs_must_finish": True})
    assert method.call(must, seed=0, deadline=Looks(2)).solution is None


def test_rounds_of_gavel_that_all_repeat_one_can_be_cut() -> None:
    """A job alone is served in every round: they are counted in pieces, and the deadline is looked at in between."""
    alone = long_jobs(10**8, 10**9).to_dict()
    instance = HadarInstance.parse({**alone, "jobs": alone["jobs"][:1]})
    cut, whole = gavel(instance, deadline=Looks(3)), gavel(instance)
    assert cut.info["stopped"] == "time limit" and 10**6 < cut.info["rounds"] < 10**8
    assert whole.info["rounds"] == 10**8 and whole.info["changes"] == 1


def test_the_deadline_keeps_the_jobs_admitted_so_far() -> None:
    instance = small(0, jobs=12, horizon=15)
    full, none = hadar_online_plus(instance), hadar_online_plus(instance, deadline=PASSED)
    assert none.info["stopped"] == "time limit" and none.info["admitted"] == 0
    assert (none.bound or 0) >= (upper_bound(instance) or 0) * (1 - 1e-9)
    assert "stopped" not in full.info


@pytest.mark.parametrize("method", [m.id for m in HADAR.methods])
def test_a_horizon_of_a_billion_slots_takes_no_memory(method: str) -> None:
    engines = {m.id for m in HADAR.methods if m.kind == "engine"}
    instance = long_jobs(10**9, 10)
    tracemalloc.start()
    try:
        found = run_method(HADAR, instance, method, SolveOptions(deadline=Looks(1000), threads=1))
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**8
    finally:
        tracemalloc.stop()
    if method == "colgen":  # refuses it, and keeps the best schedule of the heuristics
        assert found.status is Status.FEASIBLE and found.solution is not None and found.info["reason"]
    elif method in engines | {"p2", "hadar-online", "hadar-online+"}:
        assert found.status is Status.UNKNOWN and found.solution is None and found.info["reason"]
    else:
        assert found.objective is not None and found.objective > 0


def test_utilities_in_closed_form_are_the_array() -> None:
    for seed in range(6):
        for instance in (small(seed, jobs=6, horizon=15), tiny(seed), contended(seed)):
            for job in tables(instance).jobs:
                assert [job.worth.at(f) for f in range(instance.horizon + 1)] == job.utility.tolist()
                assert job.max_utility == job.utility.max()


def test_wide_gangs_do_not_overflow() -> None:
    """One pool of 200 devices, gangs of 150 to 200: rho^200 is no float, the capped price is."""
    jobs = [
        {
            "id": f"j{j}",
            "arrival": 1 + j % 3,
            "workers": 150 + 10 * j,
            "epochs": 3,
            "iterations_per_epoch": 100,
            "throughput": {"V100": 1.0},
            "utility": {"kind": "constant", "weight": 10.0**j},
        }
        for j in range(6)
    ]
    data = {
        "problem": "hadar",
        "horizon": 12,
        "slot_length": 1.0,
        "machines": [{"id": "h", "gpus": {"V100": 200}}],
        "jobs": jobs,
    }
    instance = HadarInstance.parse(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = hadar_online_plus(instance)
    assert check(instance, run.solution or {}).feasible
    info = run.info
    assert info["max_step"] <= info["alpha_step"] < 1e12
    json.dumps(dict(info), allow_nan=False)
    optimum = run_method(HADAR, instance, "colgen", SolveOptions()).objective or 0.0
    value = float(check(instance, run.solution or {}).objective or 0)
    assert value <= optimum <= info["certificate"] * (1 + 1e-9)
    assert optimum <= 4 / 3 * info["alpha_step"] * value
    for job in jobs:
        job["utility"] = {"kind": "constant", "weight": 1e-290 if job["id"] == "j0" else 1e15}
    huge = hadar_online_plus(HadarInstance.parse(data))
    assert huge.info["alpha_step"] is None
    case = Case(instance, 1.0, huge.info, 1.0, 1.0, {"price": "early", "umin": "direct"})
    repaired = next(g for g in HADAR.guarantees() if g.id == "002-theorem-2-repaired")
    verdict = repaired.evaluate(case)
    assert verdict.verdict is Verdict.NOT_APPLICABLE and "too large for a float" in verdict.reason


def test_hadare_says_why_a_batch_that_must_finish_has_no_objective() -> None:
    data = {**nodes(1).to_dict(), "all_jobs_must_finish": True, "horizon": 1}
    for job in data["jobs"]:
        job["arrival"], job["epochs"] = 1, 10**6
    found = run_method(HADAR, HadarInstance.parse(data), "hadare", SolveOptions())
    assert found.status is Status.UNKNOWN and found.solution is None and found.objective is None
    assert "do not finish by the horizon" in found.info["reason"] and found.info["own_ratio"] is None


def test_certificate_holds_at_any_prices() -> None:
    for seed in range(6):
        instance = tiny(seed)
        optimum = run_method(HADAR, instance, "colgen", SolveOptions()).objective or 0.0
        for options in ({}, {"price": "printed"}, {"grid": 16}, {"restart_delay": 0.3}):
            assert (hadar_online_plus(instance, **options).bound or 0.0) >= optimum * (1 - 1e-9)


def test_recursion_beats_greedy_and_enumeration_agrees() -> None:
    """The memoised recursion is the best over all subsets taken in order."""
    for seed in range(4):
        instance = small(seed, jobs=6, horizon=12)
        data = tables(instance)
        market = Market.of(data, True, 0.0)
        left = np.array([job.target for job in data.jobs], dtype=np.int64)
        jobs = np.arange(6)
        recursion = Recursion(market, jobs, left, 1)
        value, _ = recursion.best(0, data.machine_capacity.copy())
        round_ = Plain(market, jobs, left, 1)
        plain = max(_taken_in_order(round_, subset) for subset in range(64))
        assert value == pytest.approx(plain, rel=1e-12)


def _taken_in_order(round_: Plain, subset: int) -> float:
    free = round_.market.data.machine_capacity.copy()
    total = 0.0
    for j in range(6):
        if subset >> j & 1:
            payoff, grid = round_.payoff(j, free)
            if payoff <= 0:
                return -1.0
            total += payoff
            free = free - grid
    return total


def test_a_round_of_2048_jobs_places_whole_gangs() -> None:
    instance = rounds(0, jobs=2048)
    data = tables(instance)
    left = np.array([job.target for job in data.jobs], dtype=np.int64)
    taken = Market.of(data, True, 0.0).take(np.arange(2048), data.machine_capacity, left, 1)
    used = sum(taken.values())
    assert (used <= data.machine_capacity).all() and len(taken) > 50
    assert all(int(grid.sum()) == data.jobs[j].workers for j, grid in taken.items())


def test_fractions_of_gavel_are_feasible_and_makespan_is_a_bound() -> None:
    for seed in range(4):
        instance = small(seed, jobs=6, horizon=30)
        data = tables(instance)
        jobs = np.arange(6)
        left = np.array([float(job.target) for job in data.jobs])
        for policy in ("max-min", "max-sum", "makespan"):
            y, value = time_fractions(data, jobs, left, policy)
            workers = np.array([job.workers for job in data.jobs])
            assert (y.sum(axis=1) <= 1 + 1e-7).all()
            assert ((workers[:, None] * y).sum(axis=0) <= data.capacity + 1e-6).all()
            assert value > 0
        share = np.array([job.type_step / job.target for job in data.jobs])
        # a job that no single type can hold does not count
        able = ((share > 0) & (workers[:, None] <= data.capacity[None, :])).any(axis=1)
        assert (1.0 / (y * share).sum(axis=1)[able]).max() == pytest.approx(value, rel=1e-6)


def test_hadare_is_checked_by_its_own_checker() -> None:
    for instance in (nodes(1), nodes(5), small(0, jobs=8, horizon=12)):
        for options in ({}, {"throughput": "estimated"}, {"copies": 1}):
            run = hadare(instance, **options)
            report = check_forked(instance, run.solution or {})
            assert report.feasible, report.violations[:1]
            assert float(report.objective or 0) <= (run.bound or 0) * (1 + 1e-9)
            assert run.info["outside_model"] and run.info["jobs_finished"] == sum(
                slot is not None for slot in report.details["completion"].values()
            )
    wrong = hadare(nodes(1)).solution or {}
    slot = next(iter(wrong["rounds"]))
    node = next(iter(wrong["rounds"][slot]))
    wrong["rounds"][slot][node]["steps"] *= 50
    assert {v.constraint for v in check_forked(nodes(1), wrong).violations} >= {"speed"}
    with pytest.raises(InputError, match="no machine"):
        check_forked(nodes(1), {"rounds": {"1": {"nowhere": {"job": "j0", "steps": 1.0}}}})
    found = run_method(HADAR, nodes(1), "hadare", SolveOptions())
    assert found.info["outside_model"] and found.status is Status.FEASIBLE


def test_a_copy_needs_its_gang_on_one_node() -> None:
    instance = contended(0)
    speed = node_speeds(instance)
    for j, job in enumerate(instance.jobs):
        # two devices of two types on each machine: both have to be usable for a gang of two
        assert (speed[j] > 0).all() == (job.workers == 1 or (job.workers == 2 and len(job.throughput) == 2))


def test_equation_10_and_the_utilisation_of_the_counterexample() -> None:
    assert estimate(DEVICES["V100"], 2.0, 1.0, 1.0) == 2 * estimate(DEVICES["V100"], 1.0, 1.0, 1.0)
    assert estimate(DEVICES["V100"], 1.0, 2.0, 2.0) == estimate(DEVICES["V100"], 1.0, 1.0, 1.0) / 4
    assert DEVICES["V100"].index > DEVICES["K80"].index
    data = json.loads((COUNTEREXAMPLES / "thm3-chain-violated.json").read_text())
    cru = utilisation_by_copies(np.array(data["work"]), np.array(data["speed"]), 3)
    assert cru == pytest.approx(data["cru"], rel=1e-12)
    tie = json.loads((COUNTEREXAMPLES / "thm3-tie.json").read_text())
    assert utilisation_by_copies(np.array(tie["work"]), np.array(tie["speed"]), 2) == pytest.approx(tie["cru"])


def test_srpt_runs_the_job_with_the_least_left_first() -> None:
    """One device: the long job waits for the short one, and for one with less to do than it has left."""
    utility = {"kind": "constant", "weight": 1.0}
    jobs = [
        {"id": name, "arrival": arrival, "workers": 1, "epochs": epochs, "iterations_per_epoch": 1,
         "throughput": {"fast": 2.0, "slow": 1.0}, "utility": utility}
        for name, arrival, epochs in (("long", 1, 40), ("short", 4, 4), ("same", 7, 30))
    ]  # fmt: skip
    machines = [{"id": "h", "gpus": {"fast": 1}}]
    instance = HadarInstance.parse(
        {"problem": "hadar", "horizon": 100, "slot_length": 1.0, "machines": machines, "jobs": jobs}
    )
    held = srpt(instance).solution["allocation"]  # type: ignore[index]
    runs = {job: [(first, last) for first, last, _ in rows] for job, rows in held.items()}
    # at 7 the long job has 40 - 6 - 2 = 32 to go, so the third goes first
    assert runs == {"long": [(1, 3), (6, 6), (22, 37)], "short": [(4, 5)], "same": [(7, 21)]}
    assert srpt(instance).info["decisions"] <= 6
