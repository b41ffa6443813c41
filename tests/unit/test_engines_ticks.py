"""Continuous times that CP-SAT counts in ticks: proven from the model, or refused; HiGHS and CBC find the same."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import schedgap
from schedgap.formulations.common.errors import InputError, ModelRefused
from schedgap.formulations.common.numbers import common_divisor
from schedgap.formulations.gpu_sharing.pair import Pair, best_start, pair_milp
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.integers import integer_model
from schedgap.solvers.result import SolveOptions, Status
from schedgap.tools.testing.small_models import ModelMaker

ONE = SolveOptions(threads=1, work_limit=5)


def one_machine(seed: int) -> ModelMaker:
    """Jobs with releases, weights and durations of up to three decimals on one machine, and a deadline after one."""
    draw = random.Random(seed)
    digits = draw.choice([0, 1, 3])
    maker = ModelMaker()
    jobs = range(draw.randint(2, 4))
    last = 60.0
    length = [round(draw.uniform(0.5, 6), digits) + 1 for _ in jobs]
    start = [maker.var(round(draw.uniform(0, 8), digits), last, integer=False, name=f"start{j}") for j in jobs]
    for i in jobs:
        for j in range(i):
            first = maker.var(0, 1)
            maker.row([(start[i], 1), (start[j], -1), (first, -80)], ">=", length[j] - 80)
            maker.row([(start[j], 2), (start[i], -2), (first, 160)], ">=", 2 * length[i])
    wait = maker.var(0, None, integer=False, name="wait")  # no upper bound: it follows from the rows
    maker.row([(wait, 0.1), (start[0], -0.1)], ">=", 0.25)
    maker.minimise([(wait, 1.5), *((s, round(draw.uniform(0.1, 3), 2)) for s in start)], 0.5)
    return maker


@pytest.mark.parametrize("seed", range(12))
def test_cpsat_has_the_optimum_of_the_other_engines(seed: int) -> None:
    answers = {name: engine(name).solve(one_machine(seed).model(), ONE) for name in ("cpsat", "highs", "cbc")}
    assert answers["cpsat"].status is Status.OPTIMAL
    best = answers["cpsat"].objective
    assert answers["highs"].objective == pytest.approx(best, rel=1e-6)
    assert answers["cbc"].objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_a_pair_of_jobs_on_cpsat_is_the_theorems(seed: int) -> None:
    draw = random.Random(seed)
    digits = draw.choice([0, 1, 4, 12])
    left, new = (round(draw.uniform(1, 2000), digits) + 1 for _ in range(2))
    pair = Pair(left, new, round(draw.uniform(1, 2), 2), round(draw.uniform(1, 2), 3))
    answer = engine("cpsat").solve(pair_milp(pair), ONE)
    assert (answer.status, answer.objective) == (Status.OPTIMAL, pytest.approx(best_start(pair).mean, rel=1e-9))


def test_ticks_are_the_common_divisor_of_what_a_component_rests_on() -> None:
    maker = ModelMaker()
    x, y = maker.var(0.5, 9, integer=False), maker.var(0, 9, integer=False)
    apart, z = maker.var(0, 0.75, integer=False), maker.var(0, 5)
    maker.row([(x, 0.2), (y, -0.2), (z, 0.06)], "<=", 1.2)
    maker.row([(apart, 3), (z, -9)], "<=", 0)
    maker.minimise([(x, 1), (y, 1), (z, 1), (apart, -1)])
    model = integer_model(model_arrays(maker.model()), frozenset())
    places = {v.name: place for place, v in enumerate(model_arrays(maker.model()).variables)}
    assert model.ticks == {places["x0"]: Fraction(1, 10), places["x1"]: Fraction(1, 10), places["x2"]: Fraction(3, 4)}
    assert model.high[places["x0"]] == 90 and model.low[places["x0"]] == 5
    assert engine("cpsat").solve(maker.model(), ONE).objective == engine("highs").solve(maker.model(), ONE).objective
    assert common_divisor([Fraction(0), Fraction(2, 3), Fraction(1, 2)]) == Fraction(1, 6)
    assert common_divisor([]) == 1


def test_times_finer_than_a_row_gives_way_by_stay_exact() -> None:
    """1e-9 of 5000 is 5e-6: were these rows to give way as those of whole variables do, the optimum would be less."""
    maker = ModelMaker()
    x, y = maker.var(0, 9000, integer=False), maker.var(0, 9000, integer=False)
    maker.row([(y, 1), (x, -1)], ">=", 5000.000001)
    maker.row([(x, 1)], ">=", 0.000001)
    maker.minimise([(y, 1)])
    answer = engine("cpsat").solve(maker.model(), ONE)
    assert answer.objective == 5000.000002 and answer.bound == answer.objective


@pytest.mark.parametrize("terms", [(1.0, 1.0), (1.0, -2.0)])
def test_a_row_that_is_no_difference_is_refused_by_name(terms: tuple[float, float]) -> None:
    maker = ModelMaker()
    x, y = (maker.var(0, 9, integer=False) for _ in terms)
    maker.row(zip((x, y), terms, strict=True), ">=", 1, "sum")
    maker.minimise([(x, 1.0), (y, 3.0)])
    with pytest.raises(ModelRefused, match=r"x0 is continuous; .* row sum is no difference of two times"):
        engine("cpsat").solve(maker.model(), ONE)


@pytest.mark.parametrize(
    ("problem", "form", "settings"),
    [("comm-contention", "events", {}), ("hadar", "P3", {}), ("g-vne", "mcf", {}), ("g-vne", "augmented", {})],
)
def test_forms_without_a_proof_are_refused(problem: str, form: str, settings: dict[str, object]) -> None:
    model = schedgap.model(schedgap.generate(problem, "tiny", seed=1, **settings), form)
    with pytest.raises(ModelRefused, match="is no difference of two times"):
        model.solve("cpsat")


def fractional_cluster(seed: int, servers: int) -> schedgap.Instance:
    """Two jobs with durations of two decimals on shared GPUs; on two servers they have all-reduces."""
    draw = random.Random(seed)
    workers = [[f"s{s}", g] for s in range(servers) for g in range(2 // servers)]
    jobs = [
        {
            "id": f"j{j}",
            "arrival": round(draw.uniform(0, 2), 1),
            "gpus": 2,
            "iterations": 2,
            "forward": round(draw.uniform(0.5, 3), 2),
            "backward": round(draw.uniform(0.5, 3), 2),
            "message": round(draw.uniform(0.5, 3), 1),
            "memory": 1.0,
            "placement": workers,
        }
        for j in range(2)
    ]
    link = {"latency": 0.25, "seconds_per_unit": 0.1, "contention_penalty": 0.03}
    machines = [{"id": f"s{s}", "gpus": 2} for s in range(servers)]
    data = {"problem": "ddl-cluster", "name": "fractional", "gpu_memory": 2.0, "servers": machines}
    return schedgap.parse({**data, "link": link, "jobs": jobs})


@pytest.mark.parametrize("seed", range(3))
def test_the_job_shop_and_events_on_one_server(seed: int) -> None:
    shop = schedgap.model(fractional_cluster(seed, 2), "job-shop", tighten=True)
    assert shop.solve("cpsat").objective == pytest.approx(shop.solve("highs").objective, rel=1e-9)
    contended = schedgap.model(fractional_cluster(seed, 2), "events")
    with pytest.raises(ModelRefused, match="is no difference of two times"):
        contended.solve("cpsat")
    alone = schedgap.model(fractional_cluster(seed, 1), "events")
    assert alone.solve("cpsat").objective == pytest.approx(alone.solve("highs").objective, rel=1e-9)


def test_a_form_with_one_variant_only_says_so() -> None:
    with pytest.raises(InputError, match="job-shop of ddl-cluster is a tightened model only; use tighten=True"):
        schedgap.model(fractional_cluster(0, 2), "job-shop")
