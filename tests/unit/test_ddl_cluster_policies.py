"""The compiled simulator of ddl-cluster against the plain one, its placements against plain rules, conservation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.checks import ddl_cluster as check
from support.ddl_cluster_clusters import broken_conservation, expected_gpus, full_memory, random_cluster, services_at

from schedgap.benchmarks.instances.ddl_cluster.random import paper, small
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster.audit import audit
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain
from schedgap.heuristics.ddl_cluster import policies, simulation
from schedgap.heuristics.ddl_cluster.conservation import Conservation
from schedgap.heuristics.ddl_cluster.policies import ada_srsf, run_policy, srsf_1
from schedgap.heuristics.ddl_cluster.run_times import check_seconds, placing_seconds
from schedgap.heuristics.ddl_cluster.simulation import CHUNK, PLACEMENTS, FastRun, OutOfTimeError, simulate
from schedgap.solvers.result import Deadline

LOGS = ("start", "end", "admitted", "done", "placed")


def same(one: Any, other: Any) -> bool:
    """Whether two logs hold the same times; the plain one has -1 where there is no all-reduce."""
    return all(np.array_equal(*(getattr(log, name)[getattr(log, name) >= 0] for log in (one, other))) for name in LOGS)


@pytest.mark.parametrize("seed", range(50))
def test_compiled_and_plain_simulator_agree_tick_by_tick(seed: int) -> None:
    instance = random_cluster(seed)
    for policy in POLICIES:
        for placement in PLACEMENTS:
            run = simulate(instance, policy, placement, kappa=1 + seed % 3, seed=seed, record=True)
            plain = simulate_plain(instance, run.placement, policy, record=True, interpreted=True)
            assert tuple(run.finish) == plain.finish_ticks, (policy, placement)
            assert same(run.log, plain.log), (policy, placement)


@pytest.mark.parametrize("seed", range(20))
def test_fast_forward_changes_nothing(seed: int) -> None:
    instance = random_cluster(seed) if seed % 2 else small(seed)
    for policy in POLICIES:
        for placement in PLACEMENTS:
            fast = simulate(instance, policy, placement, seed=seed, record=True)
            slow = simulate(instance, policy, placement, seed=seed, record=True, strides=False)
            assert fast.placement == slow.placement
            assert same(fast.log, slow.log)
            assert fast.moments <= slow.moments


def test_fast_forward_skips_most_events_of_a_lone_job() -> None:
    instance = paper(0, jobs=1, servers=8, seconds=1)
    run = simulate(instance, "srsf-1", "lwf")
    assert run.moments < 10
    job = instance.jobs[0]
    whole = job.arrival + job.iterations * (job.forward + job.backward)
    assert clock_of(instance).seconds(run.finish[0]) == pytest.approx(whole)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("seed", range(12))
def test_placements_follow_the_plain_rules(placement: str, seed: int) -> None:
    instance = random_cluster(3 * seed + 1)
    kappa = 1 + seed % 2
    run = simulate(instance, "ada-srsf", placement, kappa=kappa, seed=seed, record=True)
    draws = np.random.default_rng(seed).random(sum(job.gpus for job in instance.jobs))
    clock, first = clock_of(instance), instance.first_gpu
    chosen = [[first[s] + g for s, g in gpus] for gpus in run.placement]
    spans = [len({s for s, _ in gpus}) > 1 for gpus in run.placement]
    bases = np.concatenate([[0], np.cumsum([job.gpus for job in instance.jobs])])
    for now in sorted(set(run.log.placed.tolist())):
        free = full_memory(instance)
        held = [j for j in range(len(chosen)) if run.log.placed[j] < now < run.finish[j]]
        for j in held:
            for g in chosen[j]:
                free[g] -= clock.memory[j]
        queue = [j for j in range(len(chosen)) if clock.arrival[j] <= now and run.log.placed[j] >= now]
        length = [
            instance.jobs[j].gpus * instance.jobs[j].iterations * (clock.forward[j] + clock.backward[j])
            for j in range(len(chosen))
        ]
        for j in sorted(queue, key=lambda j: (length[j], j)):
            # jobs placed before this one at the same moment count in full, all-reduces included
            service = services_at(instance, spans, run.log, now)
            weight = [sum(service[i] for i in held if g in chosen[i]) for g in range(instance.total_gpus)]
            if instance.given[j] is None:
                found = expected_gpus(
                    instance, j, placement, kappa, free, weight, draws[bases[j] : bases[j + 1]].tolist()
                )
            else:
                own = chosen[j]
                found = own if all(free[g] >= clock.memory[j] for g in own) else None
            assert (run.log.placed[j] == now) == (found is not None)
            if found is not None:
                assert found == chosen[j]
                held.append(j)
                for g in found:
                    free[g] -= clock.memory[j]


@pytest.mark.parametrize("seed", range(10))
def test_runs_pass_the_full_audit(seed: int) -> None:
    instance = small(seed) if seed % 2 else random_cluster(seed)
    for policy in POLICIES:
        run = simulate(instance, policy, "rand", seed=seed, record=True)
        assert audit(instance, run.placement, policy, run.log, clock_of(instance).digits) == []


def findings(instance: DdlClusterInstance, run: FastRun, limit: int = 2) -> list[str]:
    return broken_conservation(instance, run, limit)


def test_conservation_finds_what_is_broken() -> None:
    instance = small(1)
    run = simulate(instance, "ada-srsf", "lwf")
    assert findings(instance, run) == []
    j = next(j for j, gpus in enumerate(run.placement) if len({s for s, _ in gpus}) > 1)
    entry = run.log.message_base[j]

    late = run.log.admitted.copy()
    late[entry] = run.log.done[entry] - clock_of(instance).solo[j] * 6 // 10  # as fast as the published simulator
    assert any("latency + size b" in line for line in findings(instance, replace_log(run, admitted=late)))
    missing = run.log.done.copy()
    missing[entry : entry + 2] = missing[entry + 1]
    assert any("iteration" in line for line in findings(instance, replace_log(run, done=missing)))
    assert any("1 may be" in line for line in findings(instance, run, limit=1))
    early = run.finish.copy()
    local = next(j for j, gpus in enumerate(run.placement) if len({s for s, _ in gpus}) == 1)
    early[local] -= 1
    assert any("iteration" in line for line in findings(instance, replace(run, finish=early)))


def replace_log(run: FastRun, **changed: Any) -> FastRun:
    return replace(run, log=replace(run.log, **changed))


def test_conservation_finds_more_tasks_on_a_gpu_than_time() -> None:
    data = two_jobs().to_dict()
    for job, gpu in zip(data["jobs"], ("s0", "s1"), strict=True):
        job.update(gpus=1, iterations=10, placement=[[gpu, 0]])
    instance = DdlClusterInstance.parse(data)
    run = simulate(instance, "srsf-1", "lwf")
    assert findings(instance, run) == []
    broken = findings(instance, replace(run, placement=(run.placement[0], run.placement[0])))
    assert broken == ["server s0, GPU 0: tasks take 19 s more than there is"]


def two_jobs(**other: Any) -> DdlClusterInstance:
    """Two jobs across two servers of two GPUs, and one of one GPU."""
    job = {"gpus": 2, "iterations": 1, "forward": 1.0, "backward": 1.0, "memory": 1.0}
    data = {
        "problem": "ddl-cluster",
        "gpu_memory": 1.0,
        "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}],
        "link": {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
        "jobs": [
            {**job, "id": "long", "arrival": 0.0, "message": 10.0, "placement": [["s0", 0], ["s1", 0]]},
            {**job, "id": "short", "arrival": 1.0, "message": 2.0, "placement": [["s0", 1], ["s1", 1]]},
        ],
    }
    return DdlClusterInstance.parse({**data, **other})


@pytest.mark.parametrize(
    ("policy", "long", "short"),
    [("srsf-1", 12.0, 14.0), ("srsf-2", 2 + 1 + 5 + 7, 3 + 5.0), ("ada-srsf", 2 + 1 + 5 + 7, 3 + 5.0)],
)
def test_two_messages_by_hand(policy: str, long: float, short: float) -> None:
    """One begins at 2, the other at 3: waits 9 s, or both move at 1/2.5 MB/s; AdaDUAL shares, 2 (1.5) 2 < 9."""
    assert run_policy(two_jobs(), policy, 0, "lwf").flow.tolist() == [long, short - 1.0]


def test_adadual_waits_when_the_new_message_is_not_short_enough() -> None:
    data = two_jobs().to_dict()
    data["jobs"][1]["message"] = 3.0  # 2 (1.5) 3 = 9 is not less than 9
    assert run_policy(DdlClusterInstance.parse(data), "ada-srsf", 0, "lwf").flow.tolist() == [12.0, 14.0]


def test_metrics_by_hand() -> None:
    info = srsf_1(two_jobs()).info
    assert info["jct mean"] == info["jct median"] == (12 + 13) / 2
    assert info["makespan"] == 14
    assert info["utilisation"] == pytest.approx(4 * 2 / (4 * 14))
    assert info["utilisation busy"] == pytest.approx((2 / 12 + 2 / 13) / 2)
    assert (info["jobs across servers"], info["all-reduces"], info["contended"], info["message speed"]) == (2, 2, 0, 1)


def test_solution_passes_the_checker_and_keeps_given_placements() -> None:
    instance = random_cluster(7)
    assert any(given is not None for given in instance.given)
    for placement in PLACEMENTS:
        run = ada_srsf(instance, placement=placement, kappa=2, seed=3)
        report = check(instance, run.solution or {})
        assert report.feasible
        assert float(report.objective or 0) == pytest.approx(run.info["jct mean"])


def test_random_placement_depends_on_the_seed_only() -> None:
    instance = small(3)
    first, again, other = (ada_srsf(instance, placement="rand", seed=seed).solution for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"placement": "best"}, "option placement: must be one of lwf, ls, ff, rand, got 'best'"),
        ({"kappa": -1}, "option kappa: must be at least 0, got -1"),
        ({"kappa": 10**20}, r"option kappa: must be at most 1e\+06, got 100000000000000000000"),
        ({"kappa": 1.5}, "option kappa: must be int, got 1.5"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ada_srsf(small(0), **options)


def large(iterations: int) -> DdlClusterInstance:
    """Two jobs across two servers, so many iterations each."""
    data = two_jobs().to_dict()
    for job in data["jobs"]:
        job.update(iterations=iterations, forward=1e-3, backward=1e-3, message=1e-3)
    return DdlClusterInstance.parse(data)


def test_a_run_whose_audit_cannot_end_by_the_deadline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "simulate", None)  # it is not begun
    run = ada_srsf(large(600_000), deadline=Deadline.after(1.0))
    assert run.solution is None
    assert run.info["stopped"] == "time limit"
    assert "the time limit is too short: the run and its check take" in run.info["reason"]


def test_a_simulation_stops_when_told() -> None:
    instance = large(50_000)
    assert simulate(instance, "srsf-1", "lwf", cycles=False).moments > 2 * CHUNK
    asked = 0

    def second() -> bool:
        nonlocal asked
        asked += 1
        return asked == 2

    with pytest.raises(OutOfTimeError, match="0 of 2 jobs finished"):
        simulate(instance, "srsf-1", "lwf", cycles=False, stop=second)
    assert asked == 2


@pytest.mark.parametrize("seed", range(6))
def test_a_record_that_is_taken_by_chunks_is_the_whole_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 10,000 jobs of the Philly log have too many all-reduces to be kept: such a run gave no answer."""
    instance = small(seed, jobs=12) if seed % 2 else random_cluster(seed)
    for policy in ("srsf-1", "ada-srsf"):
        whole, answer = simulate(instance, policy, "lwf"), run_policy(instance, policy, 0, "lwf")
        monkeypatch.setattr(simulation, "RECORDED", 3)
        monkeypatch.setattr(simulation, "ROWS", 0)
        chunks = [0]

        def taken(log: simulation.FastLog, placement: object, chunks: list[int] = chunks) -> None:
            chunks.append(len(log.done))

        parts = simulate(instance, policy, "lwf", take=taken)
        assert list(parts.finish) == list(whole.finish) and parts.placement == whole.placement
        assert list(parts.messages) == list(whole.messages) and sum(chunks) == len(whole.log.done)
        again = run_policy(instance, policy, 0, "lwf")
        monkeypatch.undo()
        several = len(chunks) > 2
        assert parts.whole is not several
        kept = {name: value for name, value in answer.metrics.items() if name != "contended" or not several}
        assert {name: again.metrics[name] for name in kept} == kept
        assert again.metrics["contended"] is None or not several


def test_chunks_of_a_record_are_checked_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is broken in one chunk is found in it: a link, a message that is too fast, a missing iteration."""
    instance = small(1)
    monkeypatch.setattr(simulation, "RECORDED", 20)
    monkeypatch.setattr(simulation, "ROWS", 0)
    logs: list[tuple[simulation.FastLog, Any]] = []
    run = simulate(instance, "ada-srsf", "lwf", take=lambda log, placement: logs.append((log, placement)))
    assert len(logs) > 2

    def broken(changed: int, limit: int = 2, **changes: Any) -> list[str]:
        conserved = Conservation(instance, limit)
        for at, (log, placement) in enumerate(logs):
            conserved.add(replace(log, **changes) if at == changed else log, placement)
        conserved.finish(logs[-1][0], run.placement, run.finish)
        return conserved.broken

    second = logs[1][0]
    assert broken(1) == []
    late = second.admitted.copy()
    late[0] = second.done[0] - 1
    assert any("latency + size b" in line for line in broken(1, admitted=late))
    assert any("1 may be" in line for line in broken(1, limit=1))
    base = np.maximum(0, second.message_base - 1)
    missing = broken(1, admitted=second.admitted[1:], done=second.done[1:], message_base=base)
    assert any("iteration is missing" in line for line in missing)


def test_a_simulation_in_chunks_is_the_same() -> None:
    instance = large(50_000)
    whole, parts = (simulate(instance, "srsf-2", "lwf", cycles=False, stop=stop) for stop in (None, lambda: False))
    assert (whole.moments, list(whole.finish)) == (parts.moments, list(parts.finish))
    assert same(whole.log, parts.log)


def test_a_deadline_that_suffices_changes_nothing() -> None:
    instance = small(3)
    assert ada_srsf(instance, deadline=Deadline.after(1e6)) == ada_srsf(instance)


@pytest.mark.parametrize("iterations", [10**7, 10**9])
def test_iterations_that_repeat_take_no_time(iterations: int) -> None:
    run = ada_srsf(large(iterations), deadline=Deadline.after(1e3))
    assert run.solution is not None
    assert run.info["events"] < 1_000
    report = check(large(iterations), run.solution)
    assert report.feasible and report.details["audited"]
    assert report.details["cycles"] > iterations // 100


def test_the_check_costs_more_with_more_tasks_or_moments() -> None:
    instance = paper(0)
    assert check_seconds(instance) > 3
    run = simulate(large(10**9), "ada-srsf", "lwf")
    longer = replace(run, moments=run.moments + 10**7)
    assert check_seconds(large(10**9), longer) > 5 + check_seconds(large(10**9), run) > 5 + check_seconds(large(10**9))
    assert placing_seconds(instance, "ls", 1) > placing_seconds(instance, "ff", 1)
