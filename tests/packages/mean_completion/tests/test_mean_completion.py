import itertools
from fractions import Fraction

import mean_completion_rules
import pytest
from mean_completion import GUARANTEE, PROBLEM, ReleaseDates, generate, listed, on_one_fast_machine

import schedgap
from schedgap.benchmarks.report.compare import compare
from schedgap.catalogue.run import run_method
from schedgap.heuristics.common.guarantee import Case
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.make import check, prove
from schedgap.solvers.result import SolveOptions


@schedgap.parametrize_with_checks([listed], PROBLEM)
def test_the_heuristic_is_a_scheduler(check):
    check()


def brute(instance):
    """Every start of every job: shares nothing with the orders of the exact method."""
    starts = [range(job.release, instance.horizon - job.length + 1) for job in instance.jobs]
    reports = (PROBLEM.check(instance, {"start": list(one)}) for one in itertools.product(*starts))
    return min(report.objective for report in reports if report.objective is not None)


@pytest.mark.parametrize("seed", range(12))
def test_orders_bound_and_brute_force(seed):
    instance = generate(seed, jobs=3, machines=1 + seed % 2, longest=3, spread=3)
    best = run_method(PROBLEM, instance, "exhaustive", SolveOptions()).objective
    assert best == pytest.approx(float(brute(instance)), rel=1e-12) and PROBLEM.bound(instance) <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_methods_and_engines_agree(seed):
    table = compare(PROBLEM, generate(seed), ["exhaustive", "list", "highs", "cpsat"], SolveOptions())
    assert table.agreement.optimum is not None and not table.agreement.contradictions


def test_one_fast_machine_by_hand():
    """Two machines, a job of 4 at 0 and one of 1 at 1: the fast one does 1, then 0.5, then 1."""
    jobs = [{"release": 0, "length": 4}, {"release": 1, "length": 1}]
    instance = ReleaseDates.parse({"problem": "mean_completion", "machines": 2, "jobs": jobs})
    assert on_one_fast_machine(instance) == [Fraction(5, 2), Fraction(3, 2)]


def test_the_model_has_every_schedule_and_the_figure_is_drawn(tmp_path):
    instance = generate(1)
    values = PROBLEM.model(instance, tighten=False).assign(listed(instance, seed=0))
    assert sum(values.values()) == 5
    PROBLEM.workload().figure()(instance, listed(instance, seed=0)).savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


@pytest.mark.parametrize(("start", "rule"), [([0, 0, 0], "machines"), ([0, 0, -1], "release")])
def test_broken_rules_are_named(start, rule):
    jobs = [{"release": 0, "length": 2}] * 3
    instance = ReleaseDates.parse({"problem": "mean_completion", "machines": 2, "jobs": jobs})
    assert rule in {violation.constraint for violation in PROBLEM.check(instance, {"start": start}).violations}


def test_an_optimum_is_certified_and_nothing_better(monkeypatch):
    monkeypatch.setattr(checker, "rules_of", lambda problem: mean_completion_rules)  # else by entry point
    instance = generate(1)
    best = run_method(PROBLEM, instance, "exhaustive", SolveOptions())
    certificate = prove(instance, Fraction(best.objective).limit_denominator(100), best.solution)
    assert check(instance, certificate, best.solution).bound == Fraction(best.objective).limit_denominator(100)
    more = {**certificate, "claim": str(Fraction(certificate["claim"]) + Fraction(1, 5))}
    with pytest.raises(checker.Rejected):
        check(instance, more, best.solution)


@pytest.mark.parametrize("seed", range(20))
def test_the_guarantee_holds(seed):
    instance = generate(seed, machines=1 + seed % 3)
    best = run_method(PROBLEM, instance, "exhaustive", SolveOptions()).objective
    found = run_method(PROBLEM, instance, "list", SolveOptions()).objective
    assert GUARANTEE.on(Case(instance, found, {}, best, best)).verdict == "held"
