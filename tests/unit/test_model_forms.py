"""The papers' other forms as models and methods: their values against exact methods and each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracles.ddl_cluster import optimum
from oracles.schedules import CASES

import schedgap
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.errors import InputError, ModelRefused
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.ddl_cluster import placement as module
from schedgap.solvers.exact.ddl_cluster.placement import placed, placements, ways
from schedgap.solvers.result import SolveOptions
from studies.g_vne_relaxations import plain_relaxation


@pytest.mark.parametrize("seed", range(6))
def test_the_schedule_set_has_the_optimum_and_theta_a_bound(seed: int) -> None:
    instance = CASES["rar-ddls"].make(seed)[0]
    best, chosen, theta = (schedgap.solve(instance, method) for method in ("cp", "schedule-set", "theta"))
    assert (chosen.status, chosen.objective) == (best.status, best.objective)
    if best.objective is None:
        assert theta.status == "infeasible"
        return
    assert theta.bound is not None and theta.bound <= best.objective
    assert theta.objective is not None and theta.objective >= best.objective
    model = schedgap.model(instance, "schedule-set")
    assert model.solve("cpsat").objective == best.objective
    feasible = schedgap.model(instance, "theta").solve("highs")
    assert feasible.status == "optimal" and feasible.objective == -1


@pytest.mark.parametrize("seed", range(6))
def test_p2_has_the_optimum_and_its_dual_the_value_of_its_relaxation(seed: int) -> None:
    instance = CASES["hadar"].make(seed)[0]
    best, found = schedgap.solve(instance), schedgap.solve(instance, "p2")
    assert found.status == best.status
    if best.objective is None:
        return
    assert found.objective == pytest.approx(best.objective, rel=1e-9)
    said = found.info["duality"]
    assert said["strong duality"] and said["complementary slackness"]
    assert said["LP(P2)"] == pytest.approx(said["P3"], rel=1e-7) and said["P3"] >= best.objective - 1e-9
    assert schedgap.model(instance, "P3").solve("highs").objective == pytest.approx(said["P3"], rel=1e-7)
    # the payoffs and prices are worth the dual's value
    there = {(m.id, kind): n for m in instance.machines for kind, n in m.gpus.items()}  # type: ignore[attr-defined]
    paid = sum(p["price"] * there[p["machine"], p["type"]] for p in said["prices"])
    assert paid + sum(said["payoffs"].values()) == pytest.approx(said["P3"], rel=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_the_linear_programs_of_g_vne_are_in_the_proven_order(seed: int) -> None:
    instance = schedgap.generate("g-vne", "tiny", seed=seed)
    best = schedgap.solve(instance).objective
    mcf, augmented, columns = (schedgap.solve(instance, m).bound for m in ("mcf", "augmented", "columns-lp"))
    assert best is not None and mcf is not None and augmented is not None and columns is not None
    assert mcf == pytest.approx(augmented, rel=1e-7) and mcf == pytest.approx(
        plain_relaxation(instance).value, rel=1e-7
    )
    assert best <= columns * (1 + 1e-9) and columns <= augmented * (1 + 1e-7)
    assert schedgap.model(instance, "columns", tighten=True).solve("highs").objective == pytest.approx(best, rel=1e-9)
    assert schedgap.model(instance, "mcf").solve("highs").objective == pytest.approx(mcf, rel=1e-7)


def unplaced(seed: int) -> DdlClusterInstance:
    """Two or three jobs without a placement, and memory enough."""
    data = schedgap.generate("ddl-cluster", "tiny", seed=seed).to_dict()
    jobs = [{**job, "placement": None, "iterations": 1} for job in data["jobs"][:2]]
    return DdlClusterInstance.parse({**data, "jobs": jobs, "gpu_memory": 1e6})


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_the_best_placement_is_the_best_of_all(seed: int) -> None:
    instance = unplaced(seed)
    found = module.solve_placement(instance, SolveOptions())
    every = [optimum(placed(instance, chosen)) for chosen in placements(instance)]
    assert found.status == "optimal" and found.objective == pytest.approx(min(every), rel=1e-9)
    assert found.info["placements"] == len(every) <= ways(instance)
    model = schedgap.model(instance, "events")
    best = model.solve("highs")
    assert best.status == "optimal" and best.objective == pytest.approx(min(every), rel=1e-6)
    policy = schedgap.solve(instance, "ada-srsf")
    assert policy.solution is not None
    point = model.point(policy.solution)  # a policy's run is a schedule
    finish = [point[model.variables["end"][job.id, job.iterations - 1]] for job in instance.jobs]
    flow = sum(finish) - sum(job.arrival for job in instance.jobs)
    assert flow / len(instance.jobs) == pytest.approx(policy.objective, rel=1e-9)
    for rule in ("lwf", "ff", "ls", "rand"):
        assert (schedgap.solve(instance, "srsf-1", settings={"placement": rule}).objective or 0) >= min(every) - 1e-9


def test_preset_small_is_solved_with_drawn_placements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWN", 2)
    found = schedgap.solve(schedgap.generate("ddl-cluster", "small", seed=1), "placement", seed=3)
    assert found.status == "feasible" and found.objective is not None and found.bound is not None
    assert found.info["placements"] == 2 and found.bound <= found.objective


def test_contention_and_placement_are_for_tiny_instances() -> None:
    with pytest.raises(ModelRefused, match=r"events: [0-9]+ pairs of tasks on a GPU, at most 2000"):
        schedgap.model(schedgap.generate("ddl-cluster", "small", seed=1), "events")
    tiny = schedgap.generate("ddl-cluster", "tiny", seed=1).to_dict()
    short = [{**job, "forward": 1e-6} for job in tiny["jobs"]]
    assert schedgap.model({**tiny, "jobs": short}, "events").declarative.restriction
    with pytest.raises(ModelRefused, match="continuous"):
        schedgap.model(tiny, "events").solve("cpsat")


def test_points_of_a_relaxation_are_no_schedules() -> None:
    instance = schedgap.generate("g-vne", "tiny", seed=1)
    model = schedgap.model(instance, "mcf")
    with pytest.raises(InputError, match="points of g-vne, form mcf are no schedules"):
        model.check({"rings": {}})
    before = model.solve("highs").objective
    ring = next(iter(model.variables["ring"].values()))
    model.add(ring == 0)
    after = model.solve("highs").objective
    assert before is not None and after is not None and after <= before + 1e-9


def pair_instance(slowdown: float, later: int = 2) -> schedgap.Instance:
    """Two jobs on two GPUs, the second one slot later or more."""
    data = schedgap.generate("gpu-sharing", "tiny", seed=2, jobs=2).to_dict()
    one, other = data["jobs"]
    one.update(arrival=1, gpus=2, iterations=40)
    other.update(arrival=later, gpus=2, iterations=25)
    names = one["id"], other["id"]
    slower = {names[0]: {names[1]: slowdown}, names[1]: {names[0]: slowdown}}
    servers = [{"id": "s0", "gpus": 2}]
    return schedgap.parse(
        {**data, "jobs": [one, other], "servers": servers, "interference": slower, "horizon": 400, "gpu_memory": 1e3}
        | {"max_jobs_per_gpu": 2, "slot_length": 1.0}
    )


@pytest.mark.parametrize(("slowdown", "said"), [(1.1, "share"), (1.9, "wait")])
def test_a_job_pair_is_an_instance_with_its_rule_its_program_and_its_curve(
    slowdown: float, said: str, tmp_path: Path
) -> None:
    instance = pair_instance(slowdown)
    found = schedgap.solve(instance, "job-pair")
    pair = found.info["pair"]
    assert pair["rule"] == said and (pair["kappa"] == 0) == (said == "share")
    assert pair["MILP mean"] == pytest.approx(pair["mean"], rel=1e-9)
    assert pair["MILP kappa"] == pytest.approx(pair["kappa"], abs=1e-6)
    model = schedgap.model(instance, "job-pair")
    assert model.solve("highs").objective == pytest.approx(pair["mean"], rel=1e-9)
    assert found.status in ("feasible", "optimal") and found.solution is not None
    figure = schedgap.plot_pair(instance, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").stat().st_size > 1000
    means = next(line for line in figure.axes[0].lines if line.get_label() == "mean").get_ydata()
    assert min(means) == pytest.approx(pair["mean"], rel=1e-9)


def test_a_job_pair_needs_two_jobs_that_meet() -> None:
    with pytest.raises(InputError, match="job-pair: needs an instance of two jobs, got 3"):
        schedgap.solve(schedgap.generate("gpu-sharing", "tiny", seed=2, jobs=3), "job-pair")
    with pytest.raises(InputError, match="alone is over before job"):
        schedgap.solve(pair_instance(1.5, later=399), "job-pair")


def test_theta_rho_hat_and_u_are_options_of_the_form_and_of_its_method() -> None:
    instance = schedgap.generate("rar-ddls", "contended", seed=3, jobs=2, singles=0, horizon=5)
    star = {
        (rho_hat, u): schedgap.solve(instance, "theta", settings={"rho_hat": rho_hat, "u": u})
        for rho_hat in ("realised", "best", "50,2.5")
        for u in (1.0, 2.0)
    }
    optimum = schedgap.solve(instance, "cp").objective
    assert optimum is not None
    for (rho_hat, u), found in star.items():
        theta = found.info["theta"]
        assert theta == star[rho_hat, 1.0].info["theta"] / u
        for limit, said in ((theta, "optimal"), (theta * (1 - 1e-6), "infeasible")):
            model = schedgap.model(instance, "theta", theta=limit, rho_hat=rho_hat, u=u)
            assert model.solve("highs").status == said
        assert found.bound <= optimum  # 50 slots that nobody takes are no bound
    with pytest.raises(InputError, match='rho_hat: "worst" is infinite'):
        schedgap.solve(instance, "theta", settings={"rho_hat": "worst"})
    told = dict(zip((job.id for job in instance.jobs), (50, 2.5), strict=True))
    by_id = schedgap.model(instance, "theta", theta=4.0, rho_hat=told)
    assert str(by_id.problem) == str(schedgap.model(instance, "theta", theta=4.0, rho_hat="50,2.5").problem)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"theta": 0}, "option theta: must be greater than 0, got 0"),
        ({"u": 0.5}, "option u: must be at least 1, got 0.5"),
        ({"rho_hat": "middling"}, "rho_hat: must be best, worst or a number per job, got 'middling'"),
        ({"rho_hat": "3"}, "rho_hat: 1 estimates, the instance has"),
        ({"rho": 3}, r"form theta: unknown option 'rho' \(options: theta, rho_hat, u\)"),
    ],
)
def test_wrong_options_of_a_form_are_refused_in_one_line(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        schedgap.model(schedgap.generate("rar-ddls", "contended", seed=3, jobs=2, singles=0), "theta", **settings)


def test_every_form_is_what_tighten_says() -> None:
    presets = {"rar-ddls": ("contended", {"jobs": 2, "singles": 0}), "gpu-sharing": ("pair", {"slots": 4})}
    for problem in all_problems().values():
        preset, settings = presets.get(problem.id, ("tiny", {}))
        instance = schedgap.generate(problem.id, preset, seed=1, **settings)
        assert schedgap.model(instance).declarative.tightened is False
        for form in problem.forms:
            for tighten, there in ((False, form.opens), (True, form.tightens)):
                if there:
                    made = problem.model(instance, form.id, tighten)
                    assert made is not None and made.tightened is tighten, form.id
                else:
                    with pytest.raises(InputError, match=f"form: {form.id} of {problem.id}"):
                        problem.model(instance, form.id, tighten)


@pytest.mark.parametrize("seed", range(30))
def test_the_preset_of_pairs_has_pairs_that_meet(seed: int) -> None:
    instance = schedgap.generate("gpu-sharing", "pair", seed=seed)
    model = schedgap.model(instance, "job-pair")
    values = model.solve("cpsat").info["values"]
    assert set(values) == {"kappa_first", "kappa_second", "newcomer_ends_first"}  # zeros, too
