"""Hadar's policies from event to event equal those that decide in every round, slot by slot and job by job."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import hadar_rounds as plain
from support.checks import hadar as check

from schedgap.benchmarks.instances.hadar.random import contended, small, tiny
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import entries_of
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar import baselines, rounds
from schedgap.heuristics.hadar import gavel as hadar_gavel
from schedgap.heuristics.hadar.baselines import tiresias, yarn_cs
from schedgap.heuristics.hadar.gavel import gavel
from schedgap.heuristics.hadar.simulate import Simulated, simulate


def stretched(seed: int) -> HadarInstance:
    """A random instance whose jobs run for up to some hundred slots; a third of them have no room for all."""
    rng = np.random.default_rng(seed)
    data = [tiny, small, contended][seed % 3](seed).to_dict()
    factor = int(rng.integers(1, 60))
    data["horizon"] = max(2, int(data["horizon"] * factor * rng.uniform(0.4, 1.5)))
    for job in data["jobs"]:
        job["epochs"] *= max(1, int(factor * rng.uniform(0.5, 1.5)))
        job["arrival"] = min(data["horizon"], 1 + int((job["arrival"] - 1) * factor * rng.uniform(0.2, 1.0)))
    return HadarInstance.parse(data)


def compare(instance: HadarInstance, run: HeuristicRun, expected: plain.Simulated) -> None:
    data = tables(instance)
    slots: dict[str, dict[int, Any]] = {}
    for slot, grids in expected.grids.items():
        for j, grid in grids.items():
            slots.setdefault(instance.jobs[j].id, {})[slot] = entries_of(instance, data, grid)
    solution = run.solution or run.partial or {}
    assert {job: by_slot(held) for job, held in solution["allocation"].items()} == slots
    assert (run.info["rounds"], run.info["changes"]) == (expected.rounds, expected.changes)
    report = check(instance, solution)
    assert report.feasible
    # a job that lost time to delays may be done for the checker, which knows of none
    completion = report.details["completion"]
    assert all(completion[instance.jobs[j].id] == slot for j, slot in expected.finish.items())
    by_slots = check(instance, {"allocation": {j: {str(t): e for t, e in row.items()} for j, row in slots.items()}})
    assert by_slots.objective == report.objective and by_slots.details == report.details


SEEDS = (*range(36), 1202, 1943)  # the last two have priorities that come to be equal


@pytest.mark.parametrize("seed", SEEDS)
def test_policies_from_event_to_event(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = stretched(seed)
    rng = np.random.default_rng(seed)
    delay = float(rng.choice([0.0, 0.3])) * instance.slot_length
    threshold = float(rng.choice([1.0, 7.5, 60.0]))
    backfill = bool(rng.integers(2))
    objective = str(rng.choice(["max-min", "max-sum", "makespan"]))
    compare(
        instance,
        tiresias(instance, threshold=threshold, restart_delay=delay),
        plain.simulate(instance, plain.tiresias(instance, threshold), delay),
    )
    compare(
        instance,
        yarn_cs(instance, backfill=backfill, restart_delay=delay),
        plain.simulate(instance, plain.yarn_cs(instance, backfill), delay),
    )
    by_class = objective == "max-min" and bool(rng.integers(2))
    monkeypatch.setattr(hadar_gavel, "MOST_APART", len(instance.jobs) - by_class)
    expected = plain.simulate(instance, plain.gavel(instance, objective, by_class), delay)
    for piece in (baselines.PIECE, 30):  # rounds counted in one go, and in several
        monkeypatch.setattr(baselines, "PIECE", piece)
        compare(instance, gavel(instance, policy=objective, restart_delay=delay), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(30))
def test_fractions_by_class_are_an_optimum_of_the_program_by_job(seed: int) -> None:
    """Equal jobs get the same; the value, and what all get together then, are those of the plain programs."""
    drawn = [tiny, small, contended][seed % 3](seed).to_dict()
    jobs = [job | {"id": f"{job['id']}-{copy}"} for job in drawn["jobs"] for copy in range(1 + seed % 4)]
    data = tables(HadarInstance.parse({**drawn, "jobs": jobs}))
    some = np.random.default_rng(seed).permutation(len(jobs))[: max(2, len(jobs) * 2 // 3)]
    fractions, value = hadar_gavel.time_fractions(data, some, np.zeros(0), "max-min", by_class=True)
    ratio, most = plain.most_of_max_min(data, some)
    gain = (plain.shares(data, some) * fractions).sum(axis=1)
    assert value == pytest.approx(ratio, rel=1e-6, abs=1e-9)
    assert gain.sum() == pytest.approx(most, rel=1e-6, abs=1e-9)
    able = plain.shares(data, some).any(axis=1)
    assert (gain[able] >= value * (1 - 1e-6)).all() and (fractions.sum(axis=1) <= 1 + 1e-7).all()
    assert (data.workers[some] @ fractions <= data.capacity + 1e-6).all()
    for a, b in pairwise(sorted(some.tolist())):
        if jobs[a]["id"].rsplit("-", 1)[0] == jobs[b]["id"].rsplit("-", 1)[0]:
            row = {int(j): fractions[i].tolist() for i, j in enumerate(some)}
            assert row[a] == row[b]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preempt", [True, False])
def test_hadar_rounds_by_runs(seed: int, preempt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody is preempted jobs come and go between decisions; an overhead counts for rounds at once, too."""
    instance = stretched(seed)
    expected = []

    def both(instance: HadarInstance, policy: Any, delay: float, *limits: Any, **options: Any) -> Simulated:
        one_by_one = {key: options[key] for key in ("overhead", "may_wait")}
        expected.append(plain.simulate(instance, policy, delay, **one_by_one))
        return simulate(instance, policy, delay, *limits, **options)

    monkeypatch.setattr(rounds, "simulate", both)
    length = instance.slot_length
    run = rounds.hadar_rounds(instance, preempt=preempt, restart_delay=0.1 * length, overhead=0.2 * length)
    compare(instance, run, expected[0])


def test_a_long_run_costs_as_much_as_a_short_one() -> None:
    """A million rounds, some ten decisions."""
    data = tiny(0).to_dict()
    data["horizon"] = 10**8
    for job in data["jobs"]:
        job["epochs"] = 10**6
    run = yarn_cs(HadarInstance.parse(data))
    assert run.info["rounds"] > 10**5 and run.info["decisions"] < 20
