"""greedy and lp-rs-mde: feasible, deterministic, bounded by their own programs; rings on a network step by step."""

import functools

import numpy as np
import pytest
from support.checks import g_vne as check
from support.checks import g_vne_loads as check_loads
from support.work import PASSED, Looks

from schedgap.benchmarks.instances.g_vne.families import NAMED, star
from schedgap.benchmarks.instances.g_vne.random import fat, random, small, tiny
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import tables
from schedgap.formulations.g_vne.ring_network import RingNetwork
from schedgap.heuristics.g_vne.greedy import greedy
from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde, make_plan
from schedgap.heuristics.g_vne.measured import augmented_variables, three_conflicts, two_racks, with_sizes
from schedgap.heuristics.g_vne.mixture import Mixture
from schedgap.solvers.result import SolveOptions, Status
from studies.g_vne_relaxations import augmented_relaxation, node_relaxation

VARIANTS = ("no-violation", "mdk")


@functools.cache
def optimum(seed: int) -> float:
    """Of tiny(seed)."""
    exact = run_method(G_VNE, tiny(seed), "colgen", SolveOptions(threads=1))
    assert exact.status is Status.OPTIMAL and exact.objective is not None
    return exact.objective


def worth(instance: GVneInstance, solution: dict) -> float:  # type: ignore[type-arg]
    report = check(instance, solution)
    assert report.feasible and report.objective is not None, report.violations[:3]
    return float(report.objective)


@pytest.mark.parametrize("order", ["best", "density", "utility"])
def test_greedy_keeps_every_constraint(order: str) -> None:
    for seed in range(40):
        instance = tiny(seed)
        assert worth(instance, greedy(instance, order=order).solution) >= 0
    for seed in range(3):
        for instance in (fat(seed), random(seed, servers=20, jobs=12), small(seed, memory=True)):
            assert worth(instance, greedy(instance, order=order).solution) > 0


def test_greedy_takes_the_better_order_and_closes_rings() -> None:
    for seed in range(20):
        instance = small(seed)
        both = worth(instance, greedy(instance).solution)
        assert both == pytest.approx(
            max(worth(instance, greedy(instance, order=o).solution) for o in ("density", "utility"))
        )
    wide = NAMED[-1]
    assert worth(wide, greedy(wide).solution) == pytest.approx(2.7)
    thin = NAMED[0]
    assert worth(thin, greedy(thin).solution) == pytest.approx(1.0)


def test_placing_and_releasing_rings_leaves_nothing_behind() -> None:
    rng = np.random.default_rng(5)
    instance = random(2, servers=12, jobs=10)
    network = RingNetwork(instance)
    needs = [network.need(job.demand, job.bandwidth) for job in instance.jobs]
    placed = {}
    for step in range(200):
        j = int(rng.integers(0, len(needs)))
        if j in placed:
            network.release(needs[j], placed.pop(j))
        else:
            ring = network.place(needs[j], int(rng.integers(1, len(instance.jobs[j].utility) + 1)))
            if ring is not None:
                placed[j] = ring
        if step % 20 == 0:
            rings = {instance.jobs[j].id: network.solution_of(ring) for j, ring in placed.items()}
            assert check(instance, {"rings": rings}).feasible
    for j, ring in placed.items():
        network.release(needs[j], ring)
        assert network.fits(needs[j], ring)
    assert np.allclose(network.used, 0) and np.allclose(network.load, 0)


def test_room_is_floored_robustly_and_a_missing_resource_is_none() -> None:
    instance = star("decimals", [0.3, 0.2], 1.0, [(0.1, 1.0, [1.0] * 3)])
    network = RingNetwork(instance)
    assert network.room(network.need({"gpu": 0.1}, 1.0)).tolist() == [3, 2]
    assert network.room(network.need({"gpu": 0.1, "tpu": 1}, 1.0)).tolist() == [0, 0]
    assert network.place(network.need({"tpu": 1}, 0.0), 1) is None
    ring = network.place(network.need({"gpu": 0.1}, 1.0), 5)
    assert ring is not None and sorted(ring.workers) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("lp", ["capped", "augmented"])
@pytest.mark.parametrize("ring_sizes", ["selected", "free"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_lp_rs_mde_keeps_every_constraint_and_its_bound(variant: str, ring_sizes: str, lp: str) -> None:
    for seed in range(8):
        instance = tiny(seed)
        run = lp_rs_mde(instance, seed=seed, variant=variant, lp=lp, ring_sizes=ring_sizes, tries=20)
        value = worth(instance, run.solution)
        assert value == pytest.approx(run.info["objective"])
        assert value <= optimum(seed) + 1e-9
        assert run.bound is not None and run.bound >= optimum(seed) - 1e-7
        assert max(run.info["server_share"], run.info["link_share"]) <= 1 + 2e-9
    for instance in (fat(1), random(1, servers=15, jobs=8)):
        worth(instance, lp_rs_mde(instance, variant=variant, lp=lp, ring_sizes=ring_sizes, tries=20).solution)


def test_the_same_seed_gives_the_same_rings_and_more_tries_are_no_worse() -> None:
    instance = small(3, memory=True)
    first = lp_rs_mde(instance, seed=7, tries=30)
    assert lp_rs_mde(instance, seed=7, tries=30).solution == first.solution
    objectives = [lp_rs_mde(instance, seed=7, tries=n).info["objective"] for n in (1, 5, 30)]
    assert objectives == sorted(objectives)
    assert lp_rs_mde(instance, seed=7, tries=30, variant="mdk").info["objective"] >= first.info["objective"] - 1e-9


def test_mdk_over_all_rings_is_near_the_optimum() -> None:
    ratios = []
    for seed in range(8):
        instance = small(seed, servers=5, jobs=4)
        exact = run_method(G_VNE, instance, "colgen", SolveOptions(threads=1, work_limit=20.0))
        run = lp_rs_mde(instance, variant="mdk", ring_sizes="free")
        ratios.append(run.info["objective"] / exact.objective)
    assert min(ratios) >= 0.8 and np.mean(ratios) >= 0.95


def test_vanilla_is_outside_the_model_and_its_loads_are_measured() -> None:
    overloaded = 0
    for seed in range(10):
        instance = small(seed)
        result = run_method(
            G_VNE, instance, "lp-rs-mde", SolveOptions(seed=seed), {"variant": "vanilla", "lp": "augmented"}
        )
        assert result.info["outside_model"] and result.status is Status.FEASIBLE and result.solution is not None
        report = check_loads(instance, result.solution)
        assert report.feasible and float(report.objective or 0) == pytest.approx(result.objective)
        assert max(1.0, report.details["server_use"]) == pytest.approx(max(1.0, result.info["server_share"]))
        assert max(1.0, report.details["link_use"]) == pytest.approx(max(1.0, result.info["link_share"]))
        inside = check(instance, result.solution)
        assert bool(report.details["overloaded"]) == (not inside.feasible)
        assert len(inside.violations) == len(report.details["overloaded"])
        overloaded += not inside.feasible
    assert overloaded >= 5
    met = run_method(G_VNE, small(0), "lp-rs-mde", SolveOptions(), {"variant": "vanilla", "tries": 500})
    assert met.info["met"] and met.objective >= met.info["lp_fixed"] / 3 - 1e-9
    inside_run = run_method(G_VNE, small(0), "lp-rs-mde", SolveOptions())
    assert not inside_run.info.get("outside_model") and inside_run.bound is not None


def test_check_loads_still_refuses_broken_routes() -> None:
    wide = NAMED[-1]
    solution = {"rings": {"j0": {"workers": ["s0", "s1"], "routes": [["s0", "s1"], ["s1", "switch", "s0"]]}}}
    report = check_loads(wide, solution)
    assert [violation.constraint for violation in report.violations] == ["missing link"]
    too_large = {"workers": ["s0"] * 4, "routes": [["s0"]] * 4}
    report = check_loads(wide, {"rings": {"j0": too_large}})
    assert [violation.constraint for violation in report.violations] == ["ring size"] and report.objective is None
    assert len(report.details["overloaded"]) == 1


def test_the_programs_by_columns_are_those_written_out() -> None:
    for seed in range(4):
        instance = two_racks(6, 4, seed)
        plan = make_plan(instance, lp="augmented")
        assert plan.first.value == pytest.approx(node_relaxation(instance).value, rel=1e-7)
        written = augmented_relaxation(instance, plan.sizes)
        assert plan.second.value == pytest.approx(written.value, rel=1e-7)
        assert augmented_variables(plan) == written.variables


def test_rings_that_do_not_fit_alone_get_no_weight() -> None:
    for seed in range(6):
        plan = make_plan(random(seed, servers=10, jobs=6))
        for column in plan.mixture.columns:
            assert (column.values <= plan.mixture.capacity[column.rows]).all()
        kept = float(plan.mixture.weights.sum())
        raw = Mixture.of(plan.second, drop=False)
        assert kept + plan.mixture.dropped == pytest.approx(float(raw.weights.sum()), abs=1e-6)


def test_drawing_one_and_many_have_the_same_probabilities() -> None:
    plan = make_plan(three_conflicts())
    assert plan.second.value == pytest.approx(1.5)
    utility, load = plan.mixture.draw_many(np.random.default_rng(1), 4000)
    assert utility.mean() == pytest.approx(1.5, abs=0.05)
    assert load.mean(axis=0) == pytest.approx(np.ones(load.shape[1]), abs=0.05)
    rng = np.random.default_rng(2)
    counts = np.bincount([len(plan.mixture.draw(rng)) for _ in range(2000)], minlength=4) / 2000
    assert counts == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8], abs=0.04)


def test_with_sizes_leaves_one_ring_size() -> None:
    instance = NAMED[-1]
    fixed = with_sizes(instance, {"j0": 2})
    assert fixed.jobs[0].utility == (-1.0, 1.9, -1.0)
    found = run_method(G_VNE, fixed, "colgen", SolveOptions(threads=1))
    assert found.objective == pytest.approx(1.9)
    assert run_method(G_VNE, with_sizes(instance, {}), "colgen", SolveOptions(threads=1)).objective == 0


def test_a_deadline_that_has_passed_gives_a_solution_all_the_same() -> None:
    instance = random(0, servers=20, jobs=10)
    run = lp_rs_mde(instance, deadline=PASSED)
    assert worth(instance, run.solution) >= 0 and run.info["stopped"] == "time limit"
    assert not run.info["lp_complete"]


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("greedy", {"order": "random"}, "option order: must be one of best, density, utility, got 'random'"),
        ("greedy", {"starts": 0}, "option starts: must be at least 1, got 0"),
        ("lp-rs-mde", {"variant": "best"}, "option variant: must be one of no-violation, vanilla, mdk, got 'best'"),
        ("lp-rs-mde", {"tries": "many"}, "option tries: must be int, got 'many'"),
        ("lp-rs-mde", {"alpha": 2}, "option alpha: must be at most 1, got 2"),
        ("lp-rs-mde", {"gamma": 2}, "unknown option 'gamma'"),
    ],
)
def test_bad_options_are_told(method: str, settings: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match="option") as error:
        run_method(G_VNE, NAMED[0], method, SolveOptions(), settings)
    assert words in str(error.value)


def test_greedy_does_not_try_rings_that_no_network_could_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Utilities of 10,000 sizes on servers for eight workers: the other sizes cost nothing."""
    servers = [{"id": f"s{v}", "resources": {"gpu": 2.0}} for v in range(4)]
    links = [{"from": f"s{v}", "to": f"s{(v + 1) % 4}", "bandwidth": 5.0} for v in range(4)]
    job = {"id": "j", "demand": {"gpu": 1.0}, "bandwidth": 1.0, "utility": [float(k) for k in range(1, 10_001)]}
    instance = GVneInstance.parse({"problem": "g-vne", "servers": servers, "links": links, "jobs": [job]})
    tried: list[int] = []
    place = RingNetwork.place
    monkeypatch.setattr(
        RingNetwork, "place", lambda self, need, size, most: tried.append(size) or place(self, need, size, most)
    )
    run = greedy(instance)
    assert run.info["placed"] == 1 and max(tried) == 8
    assert tables(instance).utility.shape == (1, 9)


def test_greedy_stops_at_its_deadline() -> None:
    instance = small(0)
    assert greedy(instance, deadline=PASSED).solution == {"rings": {}}
    assert greedy(instance, deadline=Looks(3)).info["stopped"] == "time limit"
