"""Kernels that no method reaches on tiny instances: called as their tests call them, both ways, compared bit by bit."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.both_ways import comparing

import schedgap
from schedgap import audit
from schedgap.formulations.common.compiled import Kernel
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.gang_placement import stream
from schedgap.heuristics.gpu_sharing.kernel import share_now
from schedgap.solvers.exact.ddl_cluster.block_orders import walk
from schedgap.solvers.exact.ddl_cluster.gangs import Gangs
from schedgap.solvers.exact.ddl_cluster.task_walks import TOO_MUCH, TaskWalks, laid_out
from schedgap.solvers.exact.g_vne.graph_pricing import layered
from schedgap.solvers.exact.hadar.event_prices import event_prices
from schedgap.solvers.result import SolveOptions

CASES = Path(__file__).parents[1] / "data" / "world"


def _function(module: str, name: str, *arguments: Any) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(module), name)(*arguments)


def _prices_of_hadar() -> None:
    for seed in range(3):
        data = tables(schedgap.generate("hadar", "tiny", seed=seed))
        event_prices(data)


def _walks_of_blocks() -> None:
    drawn = importlib.import_module("unit.test_neighbourhoods_ddl")
    for seed in range(2):
        gangs = Gangs(drawn.trained(seed, jobs=9))
        best, now, trial = (drawn.order_of([[j] for j in range(9)], 9) for _ in range(3))
        free = np.zeros((5, len(gangs.instance.servers)), dtype=np.int64)
        drawn.total_of(gangs.tables(), best, free)
        walk(gangs.tables(), best, now, trial, free, 60, 1e9, np.array([seed]))


def _walks_of_tasks() -> None:
    drawn = importlib.import_module("unit.test_ddl_cluster_walks").drawn
    for seed in range(3):
        walks = TaskWalks(drawn(seed))
        walks.begin(np.random.default_rng(seed))
        laid_out(walks.cluster, walks.plans[0], walks.now, TOO_MUCH, np.empty((0, 5), dtype=np.int64))
        walks.walk(40, np.array([seed]))


def _patched(module: str, name: str) -> Callable[[], None]:
    def call() -> None:
        with pytest.MonkeyPatch.context() as patch:
            getattr(importlib.import_module(module), name)(patch)

    return call


def _shares() -> None:
    for a, n, slower in ((3.0, 4.0, 1.5), (7.0, 2.0, 1.1), (5.0, 5.0, 2.5)):
        share_now(a, n, slower, slower + 0.25, a, n)


def _graphs() -> None:
    between = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=np.int64)
    cost = np.array([[0.0, 0.25, 0.5], [0.25, 0.0, 0.1], [0.5, 0.1, 0.0]])
    layered(0, between, cost, np.array([1, 2, 1]), 3, np.full(3, -1, dtype=np.int64), 0)


def _streams() -> None:
    rng = np.random.default_rng(5)
    nodes = [{"id": f"n{n}", "gpus": [1000, 600, 1000][: n % 4], "free": {"cpu": 9}} for n in range(6)]
    pods = [
        {"count": 1, "gpu": int(rng.choice([0, 150, 300, 600, 1000, 2000])), "request": {"cpu": 1}} for _ in range(40)
    ]
    gangs = [{"id": f"g{g}", "pods": [pod]} for g, pod in enumerate(pods)]
    instance = GangPlacementInstance.parse({"problem": "gang-placement", "nodes": nodes, "gangs": gangs})
    for rule in (stream.FGD, stream.BEST_FIT):
        stream.place_stream(instance, rule)


def _annealings() -> None:
    parts = importlib.import_module("unit.test_neighbourhoods")
    for seed in range(3):
        instance = parts.contended_grid(seed, jobs=6, servers=3, longest=4)
        start = parts.rand(instance, seed=seed).solution
        parts.solve_lns(instance, SolveOptions(work_limit=0.02, threads=1, seed=seed, start=start))


def _drains() -> None:
    rigid = importlib.import_module("unit.test_rigid_jobs")
    jobs = [
        {"arrival": k % 3, "length": 1 + k % 4, "gpus": 1 + k % 2, "pools": [["a"], ["b"]][k % 2]} for k in range(9)
    ]
    rigid.by_floats(rigid.instance(jobs, "area"))


ALONE: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "prices of hadar": (_prices_of_hadar, {"_payoffs"}),
    "jobs of hadar": (
        _patched("unit.test_hadar_bound", "test_short_jobs_decide_at_the_papers_scale"),
        {"price_job"},
    ),
    "rounds of hadar": (
        _function("property.test_hadar_greedy", "test_choices_by_gangs_are_those_job_by_job", 24),
        {"greedy", "prices", "worth"},
    ),
    "walks of blocks": (_walks_of_blocks, {"walk", "total_of"}),
    "walks of tasks": (_walks_of_tasks, {"walk", "laid_out"}),
    "events": (_patched("unit.test_neighbourhoods_ddl", "test_coarse_ticks_and_many_jobs"), {"run_events"}),
    "shares": (_shares, {"share_now"}),
    "graphs": (_graphs, {"layered"}),
    "streams": (_streams, {"_fill"}),
    "annealings": (_annealings, {"anneal"}),
    "drains": (_drains, {"backlog_integral"}),
    "policies of audit": (
        lambda: audit(CASES / "sacct-mps.txt", methods=["fifo"]),
        {"schedule"},
    ),
    "bounds of a rest": (
        _function("unit.test_comm_contention_rest_bound", "test_comm_contention_pieces_of_an_interval"),
        {"set_bound", "interval_bound"},
    ),
    "rows": (
        _function("unit.test_certificates", "test_narrowed_trees_prove_the_optimum_and_no_more"),
        {"_narrow_rows"},
    ),
}
"""What calls kernels, and which; those that kernels alone call are compared within them."""


@pytest.mark.parametrize("name", ALONE)
def test_calls_of_a_kernel_give_the_same_both_ways(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")
    call, kernels = ALONE[name]
    calls: Counter[str] = Counter()
    with comparing(calls, 4):
        call()
    compared = {kernel.rpartition("-")[0].rpartition(".")[2] for kernel in calls if calls[kernel]}
    assert kernels <= compared, sorted(compared)


def test_a_comparison_notices_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of one unit in the last place."""
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")
    kernel: Any = share_now
    assert isinstance(kernel, Kernel) and kernel.twin is not None
    call = kernel.twin.call

    def slightly_more(*given: Any) -> Any:
        (good, mean), steps = call(*given)
        return (good, float(np.nextafter(mean, np.inf))), steps

    monkeypatch.setattr(kernel.twin, "call", slightly_more)
    with comparing(Counter(), 1), pytest.raises(AssertionError, match="share_now"):
        _shares()
