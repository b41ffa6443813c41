"""What the laboratory adds to presets, methods and metrics: the options that the papers leave open."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddljs.utility import steepest, steepest_up_to
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.solvers.result import SolveOptions
from schedgap.tools.laboratory.hadar_rounds import rounds_of
from schedgap.tools.laboratory.measure import Run
from schedgap.tools.laboratory.papers.paper_003_measured import WORKLOADS, imported

OPTIONS = SolveOptions(seed=3, threads=1)
ONE_DEVICE = {
    "problem": "hadar",
    "horizon": 9,
    "slot_length": 10.0,
    "machines": [{"id": "a", "gpus": {"V": 1}}, {"id": "b", "gpus": {"K": 1}}],
    "jobs": [
        {
            "id": name,
            "arrival": 1,
            "workers": 1,
            "epochs": work,
            "iterations_per_epoch": 1,
            "throughput": {"V": 2.0, "K": 1.0},
            "utility": {"kind": "constant", "weight": 1.0},
        }
        for name, work in (("x", 30), ("y", 5))
    ],
}


def test_rounds_of_a_schedule_worked_out_by_hand() -> None:
    """x runs on V in slots 1 and 2 (20 and 10 of its 30 steps), y on K for 5 s of slot 1."""
    instance = HadarInstance.parse(ONE_DEVICE, "one")
    on_a, on_b = [{"machine": "a", "type": "V", "gpus": 1}], [{"machine": "b", "type": "K", "gpus": 1}]
    found = rounds_of(instance, {"allocation": {"x": {"1": on_a, "2": on_a}, "y": {"1": on_b}}})
    assert (found["finished"], found["ttd"], found["mean"], found["range"]) == (2, 15.0, 10.0, 10.0)
    assert found["held"] == [1.0, 0.5]
    assert found["cru"] == pytest.approx((10 + 5 + 5) / (2 * 20))
    assert found["changes"] == 1.0
    late = rounds_of(instance, {"allocation": {"x": {"1": on_a, "2": on_a}, "y": {"1": on_b}}}, delay=2.0)
    assert late["ttd"] == pytest.approx(17.0), "16 steps in slot 1, 14 take 7 s of slot 2"
    missing = rounds_of(instance, {"allocation": {"x": {"1": on_a}}})
    assert (missing["finished"], missing["ttd"], missing["mean"]) == (0, None, None)


def test_an_overhead_is_lost_in_every_round() -> None:
    """x makes 16 steps in 8 s of slot 1 and its last 14 in 7 s of slot 2; a fresh start costs one second more."""
    instance = HadarInstance.parse(ONE_DEVICE, "one")
    on_a, on_b = [{"machine": "a", "type": "V", "gpus": 1}], [{"machine": "b", "type": "K", "gpus": 1}]
    schedule = {"allocation": {"x": {"1": on_a, "2": on_a}, "y": {"1": on_b}}}
    assert rounds_of(instance, schedule, overhead=2.0)["ttd"] == pytest.approx(19.0)
    assert rounds_of(instance, schedule, delay=1.0, overhead=2.0)["ttd"] == pytest.approx(20.0)
    ends = [
        run_method(find_problem("hadar"), instance, "hadar-rounds", OPTIONS, {"overhead": lost}).info["makespan"]
        for lost in (0.0, 4.0)
    ]
    assert ends == [20.0, 30.0], "with 12 steps a round x needs a third one"


def test_gangs_of_a_trace_can_be_single() -> None:
    problem = find_problem("hadar")
    drawn, single = (
        make_instance(problem, "trace", 2, {"jobs": 40, **more}).to_dict()
        for more in ({}, {"gangs": "single", "nodes": 60, "per_node": 1})
    )
    assert max(job["workers"] for job in drawn["jobs"]) > 1
    assert [{**job, "workers": 1} for job in drawn["jobs"]] == single["jobs"]
    assert all(list(machine["gpus"].values()) == [1] for machine in single["machines"])


def test_published_workloads_are_measured() -> None:
    series = WORKLOADS.series[1]
    found = imported(Run("gpu-sharing", "pollux", {"workload": 6}, series.method), 1000)
    assert found["objective"] >= found["bound"] > 0


def test_slopes_of_all_limits_at_once_are_those_of_each() -> None:
    for job in make_instance(find_problem("ddljs"), "paper", 3, {"jobs": 6}).jobs:
        slopes, sizes = steepest_up_to(job, 7, 60)
        assert [(float(a), int(b)) for a, b in zip(slopes, sizes, strict=True)] == [
            steepest(job, 7, most) for most in range(1, 61)
        ]


def test_rounds_of_copies_worked_out_by_hand() -> None:
    instance = HadarInstance.parse(ONE_DEVICE, "one")
    rounds = {
        "1": {"a": {"job": "x", "steps": 20.0}, "b": {"job": "x", "steps": 10.0}},
        "2": {"a": {"job": "y", "steps": 5}},
    }
    found = rounds_of(instance, {"rounds": rounds})
    assert (found["finished"], found["ttd"], found["cru"]) == (2, 12.5, pytest.approx((10 + 10 + 2.5) / 40))


@pytest.mark.parametrize("scheduler", ["greedy", "hadar"])
def test_copies_of_mixes_keep_the_rules_with_every_cost(scheduler: str) -> None:
    problem = find_problem("hadar")
    for mix, jobs in (("M-1", 1), ("M-4", 4)):
        instance = make_instance(problem, "mixes", 3, {"mix": mix, "cluster": "testbed"})
        ends = []
        for settings in ({}, {"restart_delay": 10.0}, {"restart_delay": 10.0, "overhead": 20.0}):
            result = run_method(problem, instance, "hadare", OPTIONS, {"scheduler": scheduler, **settings})
            assert result.solution is not None and result.info["jobs_finished"] == jobs
            ends.append(rounds_of(instance, result.solution, **_renamed(settings))["ttd"])  # type: ignore[arg-type]
        # with several jobs a cost can lead to a better order; one job alone can only lose
        assert jobs > 1 or ends[0] < ends[1] < ends[2]


def _renamed(settings: dict[str, float]) -> dict[str, float]:
    return {{"restart_delay": "delay"}.get(name, name): value for name, value in settings.items()}


def test_clusters_of_one_draw_are_nested() -> None:
    problem = find_problem("rar-ddls")
    small, large = (make_instance(problem, "paper", 5, {"servers": n, "nested": True}).to_dict() for n in (10, 20))
    assert small["jobs"] == large["jobs"]
    assert [s["gpus"] for s in small["servers"]] == [s["gpus"] for s in large["servers"]][:10]


def test_baselines_can_take_the_smallest_job_first() -> None:
    problem = find_problem("rar-ddls")
    instance = make_instance(problem, "paper", 5, {})
    times = {
        order: run_method(problem, instance, "ff", OPTIONS, {"order": order}).info["mean_jct"]
        for order in ("input", "smallest")
    }
    assert times["smallest"] < times["input"]


def test_measured_pairs_reach_beyond_two() -> None:
    problem = find_problem("gpu-sharing")

    def largest(pairs: str) -> float:
        data = make_instance(problem, "table-ii", 1, {"pairs": pairs}).to_dict()
        return max(value for row in data["interference"].values() for value in row.values())

    assert largest("uniform") <= 2.0 < largest("v100")


def test_fixed_gangs_are_worth_nothing_in_part() -> None:
    jobs = make_instance(find_problem("g-vne"), "racks", 1, {"gangs": "fixed", "gpus": 2}).to_dict()
    assert all(not any(job["utility"][:-1]) and job["utility"][-1] > 0 for job in jobs["jobs"])
    assert max(server["resources"].get("gpu", 0) for server in jobs["servers"]) == 2
