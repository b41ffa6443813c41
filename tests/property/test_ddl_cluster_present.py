"""The checker's replay passes over whole cycles; the oracle goes through every event of every job."""

from __future__ import annotations

import random
from typing import Any

import pytest
from oracles.ddl_cluster_events import plain_run
from oracles.ddl_cluster_replay import compare_audits, compare_runs
from support.checks import ddl_cluster as check
from support.ddl_cluster_clusters import sharing_links
from support.ddl_cluster_random import placed_instance

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import Run, simulate_plain, solution_of


@pytest.mark.parametrize("policy", ["srsf-1", "srsf-2", "ada-srsf"])
@pytest.mark.parametrize("tight", [True, False])
def test_every_task_runs_when_it_did(policy: str, tight: bool) -> None:
    for seed in range(60):
        jobs = random.Random(seed).randint(2, 9)
        instance = placed_instance(seed, jobs=jobs, servers=3, iterations=6, tight=tight)
        given: Any = instance.given
        run = simulate_plain(instance, given, policy, record=True, interpreted=True)
        assert run.log is not None
        times = {name: getattr(run.log, name).tolist() for name in ("placed", "start", "end", "admitted", "done")}
        assert {"finish": list(run.finish_ticks), **times} == plain_run(instance, given, policy), seed


def test_cycles_that_are_passed_over_change_nothing() -> None:
    wrong, skipped = compare_runs(0, 12)
    assert not wrong
    assert skipped > 1_000


@pytest.mark.parametrize("seed", [1041, 1682])
def test_jobs_that_go_on_at_one_tick_rouse_all_beside_them(seed: int) -> None:
    # two stood still; the first was put with a component that slept beside the second, which then overslept
    assert not compare_runs(seed, seed + 1)[0]


@pytest.mark.parametrize("policy", ["srsf-1", "srsf-2", "ada-srsf"])
def test_cycles_on_shared_links_are_passed_over(policy: str) -> None:
    instance = sharing_links(2_200, 0.0 if policy == "srsf-2" else 0.1)
    given: Any = instance.given
    run = simulate_plain(instance, given, policy, interpreted=True)
    plain = plain_run(instance, given, policy)
    assert list(run.finish_ticks) == plain["finish"]
    least = 100 if policy == "srsf-2" else 1_000  # a cycle of srsf-2 has seventeen iterations of each
    assert run.skipped >= least, "of all three jobs at once, while all are there"
    assert 10 * run.moments < len(plain["done"]), "and no other moments were gone through instead"
    waited = {done - admitted for admitted, done in zip(plain["admitted"], plain["done"], strict=True)}
    assert len(waited) > 3 or policy != "srsf-2", "all-reduces do meet"


def test_a_cycle_that_is_audited_stands_for_all() -> None:
    wrong, passed_over = compare_audits(0, 12)
    assert not wrong
    assert passed_over > 1_000


@pytest.mark.parametrize("seed", [3027, 6793])
def test_an_all_reduce_may_have_been_admitted_at_another_moment(seed: int) -> None:
    # of the cycle and of what repeats it; what they have moved by its end is the same, and that is audited
    assert not compare_audits(seed, seed + 1)[0]


def stated(instance: DdlClusterInstance, run: Run) -> Any:
    given: Any = instance.given
    return solution_of(instance, given, "srsf-1", run)


def test_doctored_solutions_of_skipped_runs_are_refused() -> None:
    instance = sharing_links(5_000_000)
    given: Any = instance.given
    run = simulate_plain(instance, given, "srsf-1")
    report = check(instance, stated(instance, run))
    assert report.feasible and report.details["audited"]
    assert report.details["cycles"] > 1_000_000, "each of which one that was audited stands for"
    right = stated(instance, run)
    for job in right["finish"]:
        early = {**right, "finish": {**right["finish"], job: right["finish"][job] * (1 - 2e-6)}}
        assert [v.constraint for v in check(instance, early).violations] == ["finish"]
    fewer = instance.to_dict()
    fewer["jobs"][2]["iterations"] -= 20  # transfers, and what belongs to them, that never were
    short = DdlClusterInstance.parse(fewer)
    lost = stated(instance, simulate_plain(short, given, "srsf-1"))
    assert "finish" in [v.constraint for v in check(instance, lost).violations]
