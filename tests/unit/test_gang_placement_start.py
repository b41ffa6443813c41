"""Exact methods of gang-placement begin with the best of the rules that take milliseconds, whatever their limit is."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oracles.gang_placement import random_case
from support.work import PASSED

import schedgap
from schedgap.catalogue.gang_placement import MILLISECONDS, MOMENT, PROBLEM, QUICK
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import GRACE, run_method
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.budget import POLL
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status
from schedgap.tools.judge.judge import _Judge
from schedgap.tools.judge.reading import read_snapshot

Data = dict[str, Any]


def racks(seed: int) -> Data:
    """Gangs of whole nodes, each in one rack."""
    rng = random.Random(f"racks {seed}")
    nodes = [{"id": f"r{r}n{n}", "domain": [f"r{r}"], "gpus": [1000]} for r in range(3) for n in range(4)]
    sizes = [rng.choice([1, 2, 3, 4]) for _ in range(6)]
    return {"levels": ["rack"], "nodes": nodes, "gangs": [_gang(g, k, "rack") for g, k in enumerate(sizes)]}


def _gang(g: int, count: int, required: str | None) -> Data:
    return {"id": f"g{g}", "weight": count, "arrival": g, "required": required, "pods": [{"count": count, "gpu": 1000}]}


def priorities(seed: int) -> Data:
    """Pods of processors and memory with priorities on equal nodes, which have about as much as is asked for."""
    rng = random.Random(f"priorities {seed}")
    asked = [{"cpu": rng.randint(100, 1000), "memory": rng.randint(100, 1000)} for _ in range(10)]
    free = {name: sum(one[name] for one in asked) // 3 for name in ("cpu", "memory")}
    gangs = [
        {"id": f"p{k}", "priority": rng.randint(1, 2), "arrival": k, "pods": [{"count": 1, "request": request}]}
        for k, request in enumerate(asked)
    ]
    return {"nodes": [{"id": f"n{n}", "free": free} for n in range(3)], "gangs": gangs}


def parts(seed: int) -> Data:
    """Parts of devices."""
    rng = random.Random(f"parts {seed}")
    gangs = [{"id": f"g{g}", "pods": [{"count": 1, "gpu": rng.randint(250, 500)}]} for g in range(8)]
    return {"nodes": [{"id": f"n{n}", "gpus": [1000]} for n in range(3)], "gangs": gangs}


def mixed(seed: int) -> Data:
    """All that the problem knows, but for what runs."""
    return random_case(seed) | {"objectives": ["weight", "topology"]}


FAMILIES: tuple[Callable[[int], Data], ...] = (racks, priorities, parts, mixed)


def _instance(seed: int) -> GangPlacementInstance:
    data = {"problem": "gang-placement", "objectives": ["weight"]} | FAMILIES[seed % 4](seed)
    return GangPlacementInstance.parse(data)


def _only_its_start(instance: Instance, options: SolveOptions) -> Result:
    """An exact method that has no time for anything."""
    assert options.start is not None
    return Result(Status.FEASIBLE, solution=options.start, objective=PROBLEM.check(instance, options.start).value)


def _best_rule(instance: Instance) -> float:
    values = [
        PROBLEM.check(instance, rule(instance, seed=0).solution).value for rule in PROBLEM.quick_heuristics(instance)
    ]
    return max(value for value in values if value is not None)


@pytest.mark.parametrize("seed", range(200))
def test_no_method_is_below_a_rule_within_any_limit(seed: int) -> None:
    instance = _instance(seed)
    limit = (1e-6, 0.2, 1.0, 5.0)[seed // 4 % 4]
    assert len(PROBLEM.quick_heuristics(instance)) == len(QUICK)
    begun = (PROBLEM.started, PROBLEM.started_within_limits)[seed // 16 % 2](_only_its_start)
    result = begun(instance, SolveOptions(deadline=Deadline.after(limit)))
    assert result.objective is not None and result.objective >= _best_rule(instance)


@pytest.mark.parametrize("seed", range(200))
def test_staged_itself_is_not_below_a_rule(seed: int) -> None:
    """All of it, at the limits of live decisions; what it places is checked."""
    instance = _instance(seed)
    options = SolveOptions(deadline=Deadline.after((0.2, 1.0, 5.0)[seed // 4 % 3]), threads=1)
    result = run_method(PROBLEM, instance, "staged", options)
    assert result.objective is not None and result.objective >= _best_rule(instance)


def test_no_limit_ends_a_rule_that_is_slow_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of them runs last, long after the time is over."""
    instance = _instance(0)
    rules, best = PROBLEM.quick_heuristics(instance), _best_rule(instance)

    def slow(instance: Instance, *, seed: int) -> Any:
        time.sleep(GRACE + 4 * POLL)
        return max((rule(instance, seed=seed) for rule in rules), key=lambda run: _value(instance, run.solution))

    def poor(instance: Instance, *, seed: int) -> Solution:
        del instance, seed
        return {"placement": {}}

    monkeypatch.setattr(type(PROBLEM), "quick_heuristics", lambda *_: [poor, slow])
    method = Method("slow", "begins slowly", Kind.EXACT, lambda: {"slow": PROBLEM.started(_only_its_start)})
    result = run_method(PROBLEM, instance, method, SolveOptions(deadline=PASSED))
    assert result.objective == best > 0


def _value(instance: Instance, solution: Solution) -> float:
    return PROBLEM.check(instance, solution).value or 0


def _some_rule(instance: GangPlacementInstance, seed: int) -> Solution:
    rules = PROBLEM.quick_heuristics(instance)
    decision: Solution = rules[seed % len(rules)](instance, seed=seed).solution
    return decision


@pytest.mark.parametrize("seed", range(200))
def test_judge_is_not_below_a_rule(seed: int, tmp_path: Path) -> None:
    """The scheduler's decision in turn: none, a rule's, the first gang's alone of a rule's; reading is not limited."""
    instance = _instance(seed)
    data = instance.to_dict()
    if seed % 3:
        placement = _some_rule(instance, seed)["placement"]
        kept = dict(list(placement.items())[: None if seed % 3 == 1 else 1])
        data["reference_decision"] = {"placement": kept}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(data))
    read = read_snapshot(path, names=True)
    found = _Judge(read, None, Deadline.after((1e-6, 0.2, 1.0, 5.0)[seed // 4 % 4]), 0).run()
    best, scheduler = found.best.objective, PROBLEM.check(found.instance, found.decision).value
    assert best is not None and scheduler is not None
    assert best >= max(_best_rule(found.instance), scheduler)
    assert PROBLEM.check(found.instance, found.best.solution or {}).value == best
    assert found.most is None or found.most >= found.reached


@pytest.mark.parametrize("method", ["staged", "highs", "cpsat", "cbc"])
@pytest.mark.parametrize("seed", range(4))
def test_a_limit_of_a_moment_is_enough_for_the_rules(seed: int, method: str) -> None:
    instance = _instance(seed)
    problem = find_problem("gang-placement")
    chosen = next(one for one in problem.methods if one.id == method)
    assert chosen.kind in (Kind.EXACT, Kind.ENGINE)
    result = run_method(problem, instance, method, SolveOptions(deadline=Deadline.after(0.2), threads=1))
    assert result.objective is not None and result.objective >= _best_rule(instance)


def test_rules_that_take_longer_keep_to_the_limit() -> None:
    """All but one of a large instance, two of a larger one."""
    for nodes, gangs, many in ((64, 120, len(QUICK) - 1), (1000, 30, 2), (4, 4, len(QUICK))):
        instance = schedgap.generate("gang-placement", "large", seed=0, nodes=nodes, gangs=gangs)
        work = sum(gang.size for gang in instance.gangs) * nodes
        assert (MILLISECONDS < work <= MOMENT) == (many == 2)
        assert len(PROBLEM.quick_heuristics(instance)) == many


def test_first_fit_is_sure_for_thousands_of_pods() -> None:
    """Once not: a method began with nothing, and ended far below it."""
    gangs = [_gang(number, 100, None) for number in range(25)]
    nodes = [{"id": f"n{number}", "gpus": [1000, 1000]} for number in range(1_000)]
    data = {"problem": "gang-placement", "objectives": ["weight"], "nodes": nodes, "gangs": gangs}
    instance = GangPlacementInstance.parse(data)
    assert [rule.__name__ for rule in PROBLEM.quick_heuristics(instance)] == ["first_fit"]
    result = PROBLEM.started(_only_its_start)(instance, SolveOptions(deadline=Deadline.after(1e-6)))
    assert result.objective == 2_000
