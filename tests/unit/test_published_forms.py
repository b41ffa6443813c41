"""The published forms beside the repaired ones: what they run, what their checkers measure, what a profile gives."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.instances.ddljs.families import FAMILIES, conflicts, star
from schedgap.benchmarks.instances.rar_ddls.random import tiny
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddljs.check import check
from schedgap.formulations.ddljs.check_loads import check_loads
from schedgap.formulations.ddljs.profile import Profile
from schedgap.formulations.ddljs.solution import DdljsSolution
from schedgap.formulations.g_vne.check_rings import overloads
from schedgap.heuristics.common.variant import variant
from schedgap.heuristics.ddljs.gadget import gadget, gadget_printed
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf
from schedgap.heuristics.rar_ddls.sjf_bco import sjf_bco, sjf_bco_plus
from schedgap.solvers.result import SolveOptions


def test_sjf_bco_as_published_compares_no_probe() -> None:
    for seed in range(30):
        instance = tiny(seed)
        printed, repaired = sjf_bco(instance), sjf_bco_plus(instance)
        assert printed.info["probe"] is None and not printed.info["probe_compared"]
        assert printed.info["bisected"] == repaired.info["bisected"]
        if printed.solution is not None:
            assert printed.info["makespan"] == printed.info["bisected"]["makespan"] >= repaired.info["makespan"]


def test_a_variant_has_other_defaults_and_no_fixed_options() -> None:
    def heuristic(instance: object, *, seed: int = 0, kind: str = "a", size: int = 1) -> tuple[str, int]:
        return kind, size

    other = variant(heuristic, "other", "another one", fixed={"kind": "b"}, defaults={"size": 2})
    assert other(None) == ("b", 2) and other(None, size=3) == ("b", 3) and other.__name__ == "other"
    with pytest.raises(TypeError, match="no keyword 'colour'"):
        variant(heuristic, "wrong", "", fixed={"colour": 1})


def test_gadget_as_published_is_outside_the_model_with_its_own_checker_and_bound() -> None:
    problem = all_problems()["ddljs"]
    overloaded = 0
    for seed in range(6):
        instance = star(seed)
        result = run_method(problem, instance, "gadget-printed", SolveOptions(seed=seed))
        assert result.info["outside_model"] and result.solution is not None and result.objective is not None
        assert result.bound is not None and result.objective <= result.bound * (1 + 1e-9)
        inside = check(instance, DdljsSolution.parse(result.solution))
        report = check_loads(instance, DdljsSolution.parse(result.solution))
        assert report.feasible and len(report.details["overloaded"]) == len(inside.violations)
        overloaded += bool(report.details["overloaded"])
        for entry, told in zip(DdljsSolution.parse(result.solution).slots, result.info["loads"], strict=True):
            found = [load for load in overloads(instance, instance.jobs, entry.rings) if "server" in load.where]
            for load in found:  # the algorithm's own factor is of all selected rings
                assert load.factor <= told["beta"] + 1e-9
                assert float(load.used / load.capacity) <= told["server"] + 1e-6
    assert overloaded >= 3


def test_one_rounding_earns_nothing_of_three_conflicts_about_one_time_in_eight() -> None:
    nothing = sum(gadget_printed(conflicts(0), seed=seed, tries=1).info["worker_slots"] == 0 for seed in range(80))
    assert 3 <= nothing <= 22  # 10 expected, standard deviation 3
    assert gadget(conflicts(0), inner="printed", fill=False, seed=0).info["outside_model"]


def test_eq_1_by_hand() -> None:
    profile = Profile(100.0, 10.0, 50.0, 0.01, 32, 0.2, 0.05)
    assert profile.iteration_time(1) == pytest.approx(0.32 + 0.2 + 0.05)
    assert profile.iteration_time(4) == pytest.approx(75 * (0.2 + 0.02) + 0.57)
    assert profile.iteration_time() == pytest.approx(100 * 0.22 + 0.57)
    assert profile.efficiency(60.0, 4) == pytest.approx(60 / 17.07)
    for wrong in ({"bandwidth": 0.0}, {"gradients": -1.0}, {"batch": -1}):
        with pytest.raises(InputError, match=f"profile: {next(iter(wrong))}: must be"):
            Profile(**{**vars(profile), **wrong})
    with pytest.raises(InputError, match="workers: must be at least 1, got 0"):
        profile.iteration_time(0)
    with pytest.raises(InputError, match="takes no time"):
        Profile(0.0, 1.0, 1.0, 0.0, 0, 0.0).efficiency(1.0)


def test_shortest_by_gpus_takes_the_job_of_fewest_gpus_first() -> None:
    data = make_instance(find_problem("gpu-sharing"), "tiny", 0).to_dict()
    long, short = ({**data["jobs"][0], "arrival": 1} for _ in range(2))
    long |= {"id": "narrow", "gpus": 1, "iterations": 4 * data["jobs"][0]["iterations"]}
    short |= {"id": "wide", "gpus": 2}
    data |= {"servers": [{"id": "s0", "gpus": 2}], "jobs": [short, long], "interference": {}, "horizon": 500}
    data |= {"max_jobs_per_gpu": 1}
    instance = find_problem("gpu-sharing").instance_class.parse(data)
    first = {}
    for order in ("time", "gpus"):
        solution = sjf_bsbf(instance, order=order).solution
        assert solution is not None
        first[order] = min(solution["start"], key=solution["start"].get)
    assert first == {"time": "wide", "gpus": "narrow"}


def test_the_sigmoids_of_the_ledger_are_in_the_printed_ranges() -> None:
    for family in ("late", "sections_vi"):
        for seed in range(6):
            for job in FAMILIES[family](seed)[0].jobs:
                shape = job.utility
                assert shape.kind == "sigmoid" and 50 <= job.efficiency <= 500 and 1 <= shape.scale <= 100
                assert 0 < (shape.steepness or 0) < 1 and 300 <= (shape.midpoint or 0) <= 3000
