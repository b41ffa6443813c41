"""The checker's replay looks at the jobs that are present; the oracle looks at all of them at every moment."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from oracles import ddl_cluster_events
from support.ddl_cluster_random import placed_instance

from schedgap.formulations.ddl_cluster import simulate_plain as replay


@pytest.mark.parametrize("policy", ["srsf-1", "srsf-2", "ada-srsf"])
@pytest.mark.parametrize("tight", [True, False])
def test_every_task_runs_when_it_did(policy: str, tight: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    events: tuple[Callable[..., None], ...] = (replay.run_events, ddl_cluster_events.run_events)
    for seed in range(60):
        jobs = random.Random(seed).randint(2, 9)
        instance = placed_instance(seed, jobs=jobs, servers=3, iterations=6, tight=tight)
        given: Any = instance.given
        results = []
        for form in events:
            monkeypatch.setattr(replay, "run_events", form)
            run = replay.simulate_plain(instance, given, policy, record=True, interpreted=True)
            assert run.log is not None
            times = (run.log.start, run.log.end, run.log.admitted, run.log.done)
            results.append((run.finish_ticks, run.placed_ticks, *(column.tolist() for column in times)))
        assert results[0] == results[1], seed
