"""Skipped cycles: a run with them is the run without them, all-reduce by all-reduce, and they are skipped."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from support.ddl_cluster_clusters import broken_conservation, random_cluster, sharing_links

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.ddl_cluster import simulation
from schedgap.heuristics.ddl_cluster.policies import metrics
from schedgap.heuristics.ddl_cluster.simulation import FastLog, FastRun, simulate


def longer(seed: int) -> DdlClusterInstance:
    """A random cluster whose jobs have up to 400 iterations."""
    data, rng = random_cluster(seed).to_dict(), random.Random(seed)
    for job in data["jobs"]:
        job["iterations"] = rng.choice([1, 3, 20, 100, 400])
    return DdlClusterInstance.parse(data)


def all_reduces(log: FastLog) -> list[tuple[list[int], list[int]]]:
    """By job, admission and end of every all-reduce, those in skipped cycles too."""
    result = []
    for job in range(len(log.message_base) - 1):
        part = slice(log.message_base[job], log.message_base[job + 1])
        admitted, done = log.admitted[part].tolist(), log.done[part].tolist()
        more: list[tuple[int, int]] = []
        for _, tick, period, count, _ in log.jumps[log.jumps[:, 0] == job].tolist():
            rows = [(a, d) for a, d in zip(admitted, done, strict=True) if tick - period < d <= tick]
            more += [(a + n * period, d + n * period) for n in range(1, count + 1) for a, d in rows]
        both = sorted([*zip(admitted, done, strict=True), *more])
        result.append(([a for a, _ in both], [d for _, d in both]))
    return result


def broken(instance: DdlClusterInstance, run: FastRun, policy: str) -> list[str]:
    return broken_conservation(instance, run, POLICIES[policy][0])


@pytest.mark.parametrize("policy", ["srsf-1", "srsf-2", "ada-srsf"])  # three in a row need not lock: nobody waits
def test_cycles_on_shared_links_are_skipped(policy: str) -> None:
    instance = sharing_links(30_000, 0.0 if policy == "srsf-2" else 0.1)
    fast, slow = simulate(instance, policy, "lwf"), simulate(instance, policy, "lwf", cycles=False)
    assert len({frozenset(s for s, _ in gpus) for gpus in fast.placement}) == 1
    contended = metrics(instance, slow)["contended"]
    waits = len(np.unique(np.diff(slow.log.done[:4_000]))) > 1
    assert contended > 0 or waits, "they do meet"
    together = {tick for job, tick, *_ in fast.log.jumps.tolist() if job == 0}
    shared = sum(count for job, tick, _, count, _ in fast.log.jumps.tolist() if job == 1 and tick in together)
    assert shared >= 1_000, "cycles of both of these jobs at once"
    assert fast.moments * 10 < slow.moments
    assert list(fast.finish) == list(slow.finish)
    assert all_reduces(fast.log) == all_reduces(slow.log)


@pytest.mark.parametrize("seed", range(30))
def test_a_run_with_skipped_cycles_is_the_run(seed: int) -> None:
    instance = longer(seed)
    for policy in POLICIES:
        for placement in ("lwf", "ff"):
            fast, slow = (simulate(instance, policy, placement, seed=seed, cycles=cycles) for cycles in (True, False))
            assert fast.placement == slow.placement
            assert list(fast.finish) == list(slow.finish)
            assert list(fast.log.placed) == list(slow.log.placed)
            assert all_reduces(fast.log) == all_reduces(slow.log)
            assert broken(instance, fast, policy) == [] == broken(instance, slow, policy)
            one, other = metrics(instance, fast), metrics(instance, slow)
            for name in one.keys() - {"events", "cycles skipped"}:
                assert one[name] == pytest.approx(other[name], rel=1e-9), name


def test_a_skip_is_kept_where_the_simulation_stops_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulate(sharing_links(2_000), "srsf-2", "lwf")
    monkeypatch.setattr(simulation, "CHUNK", 3)
    parts = simulate(sharing_links(2_000), "srsf-2", "lwf", stop=lambda: False)
    assert (list(parts.finish), parts.skipped) == (list(whole.finish), whole.skipped)
    assert all_reduces(parts.log) == all_reduces(whole.log)


def test_the_record_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulate(sharing_links(300), "srsf-1", "lwf", cycles=False)
    monkeypatch.setattr(simulation, "ROWS", 1)
    assert all_reduces(simulate(sharing_links(300), "srsf-1", "lwf", cycles=False).log) == all_reduces(whole.log)


@pytest.mark.parametrize("column", [1, 2, 3, 4])
def test_conservation_finds_a_skip_that_was_none(column: int) -> None:
    instance = sharing_links(2_000)
    run = simulate(instance, "srsf-2", "lwf")
    assert broken(instance, run, "srsf-2") == []
    jumps = run.log.jumps.copy()
    jumps[0, column] += jumps[0, 2] // 2 if column in (1, 2) else 1
    assert broken(instance, replace(run, log=replace(run.log, jumps=jumps)), "srsf-2")
