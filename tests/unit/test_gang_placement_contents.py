"""Stage `contents`: its tables and its bound against exhaustive search, and what it decides alone."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.gang_placement import TooManyError, brute_force, spread_case
from support.placement_stages import checked_stages

from schedgap import generate
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components
from schedgap.solvers.exact.gang_placement import domain_tables, domains
from schedgap.solvers.exact.gang_placement.domain_tables import NEVER, Gang, Table, TooLarge, Tree
from schedgap.solvers.exact.gang_placement.domains import Contents, known_to_contents, solve_contents
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

Data = dict[str, Any]
PROBLEM = find_problem("gang-placement")


def racks(free: list[list[int]], gangs: list[tuple[int, int, str | None]]) -> Data:
    """Nodes with so many free devices in racks, and gangs of (pods, devices of each, required level)."""
    nodes = [
        {"id": f"n{r}-{n}", "domain": [f"r{r}"], "gpus": [1000] * devices}
        for r, rack in enumerate(free)
        for n, devices in enumerate(rack)
    ]
    waiting = [
        {"id": f"g{g}", "weight": count * size, "pods": [{"count": count, "gpu": 1000 * size}], "required": required}
        for g, (count, size, required) in enumerate(gangs)
    ]
    return {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "gangs": waiting}


def _small() -> list[Data]:
    """Every pair of racks of two nodes, with every three of four gangs."""
    kinds: list[tuple[int, int, str | None]] = [(1, 1, None), (3, 1, None), (2, 2, None), (2, 1, "rack")]
    rows = [[1, 2], [2, 2], [0, 3], [1, 4]]
    return [
        racks(list(pair), list(gangs))
        for pair in itertools.combinations_with_replacement(rows, 2)
        for gangs in itertools.combinations_with_replacement(kinds, 3)
    ]


def _compared(data: Data) -> bool:
    """Whether the stage knows the instance; its bound is the optimum, and so is its decision."""
    instance = GangPlacementInstance.parse(data)
    entries = components(instance)
    goal = next((k for k, entry in enumerate(entries) if entry.kind == "domains"), None)
    if goal is None or not known_to_contents(instance):
        return False
    wanted = PROBLEM.check(instance, brute_force(instance)[1]).details["components"]
    best = [int(Fraction(wanted[entry.name]) / entry.step) for entry in entries[: goal + 1]]
    held = [value if entry.maximise else entry.most - value for entry, value in zip(entries, best[:goal], strict=False)]
    part = solve_contents(instance, held, entries[goal].most + 1, SolveOptions(threads=1))
    assert part is not None and part.least == best[goal] and part.decision is not None
    report = PROBLEM.check(instance, part.decision)
    assert not report.violations
    assert float(report.details["components"]["domains"]) == best[goal]
    # One less is known to be impossible, and what is known already is not looked for.
    assert solve_contents(instance, held, best[goal], SolveOptions(threads=1)) == (best[goal], None)
    return True


@pytest.mark.parametrize("written", [1, 2, 4])
def test_the_bound_of_a_small_class_is_the_optimum(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where larger contents are searched for at the duals, from those of one gang or two."""
    monkeypatch.setattr(domains, "WRITTEN", written)
    assert sum(_compared(data) for data in _small()) == 190  # of 200: three gangs of one pod use one domain each


@pytest.mark.parametrize("written", [1, 4])
def test_the_bound_of_drawn_instances_is_the_optimum(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels that gangs require or prefer, priorities, two levels of domains."""
    monkeypatch.setattr(domains, "WRITTEN", written)
    known = 0
    for seed in range(150):
        try:
            known += _compared(spread_case(seed))
        except TooManyError:
            continue
    assert known > 100


@pytest.mark.parametrize("seed", range(60))
def test_the_stage_is_right_on_tiny_instances(seed: int) -> None:
    options = SolveOptions(stages=frozenset({"merged nodes", "contents"}), threads=1)
    checked_stages(spread_case(seed), options)


def test_it_decides_what_sixteen_nodes_hold() -> None:
    """The stage alone proves domains; the program by node needs minutes for the larger of them."""
    options = SolveOptions(stages=frozenset({"merged nodes", "contents"}), threads=1)
    results = [solve_staged(generate("gang-placement", "cluster", seed=seed), options) for seed in range(6)]
    proven = [result for result in results if result.status is Status.OPTIMAL]
    assert len(proven) >= 4 and "contents" in {result.info["decided by"] for result in proven}


def test_fewest_domains_of_a_content_and_a_layout_with_them() -> None:
    """Every content of two racks, beside every way to hand pods to nodes."""
    tree = Tree(
        (Tree((Tree(free=2, node=0), Tree(free=1, node=1))), Tree((Tree(free=3, node=2), Tree(free=0, node=3))))
    )
    for gangs in ([Gang(1, 0, 3), Gang(1, 0, 3)], [Gang(1, 1, 2), Gang(2, 0, 2)], [Gang(1, 2, 2), Gang(1, 0, 3)]):
        table = Table(gangs)
        ways: dict[tuple[int, ...], int] = {}
        for each in itertools.product(*(itertools.product(range(gang.pods + 1), repeat=4) for gang in gangs)):
            if any(sum(own) > gang.pods for gang, own in zip(gangs, each, strict=True)) or any(
                sum(gang.size * own[n] for gang, own in zip(gangs, each, strict=True)) > free
                for n, free in enumerate((2, 1, 3, 0))
            ):
                continue
            used = 0
            for gang, own in zip(gangs, each, strict=True):
                there = [n for n in range(4) if own[n]]
                parts = {n // 2 for n in there}
                if gang.depth == 1 and (len(parts) > 1 or (there and sum(own) < gang.pods)):
                    break
                if gang.depth == 2 and (len(there) > 1 or (there and sum(own) < gang.pods)):
                    break
                used += len(there) + len(parts) + bool(there)
            else:
                content = tuple(sum(own) for own in each)
                ways[content] = min(used, ways.get(content, NEVER))
        wanted = np.array(list(itertools.product(*(range(gang.pods + 1) for gang in gangs))))
        found = table.fewest(tree, wanted)
        assert {
            tuple(map(int, one)): int(used) for one, used in zip(wanted, found, strict=True) if used < NEVER
        } == ways
        for content, used in ways.items():
            nodes = table.layout(tree, 0, np.array(content))
            assert tuple(sum(nodes[n] for n in range(4)).tolist()) == content  # type: ignore[union-attr]
            racks_used = sum(((nodes[a] + nodes[b]) > 0).sum() for a, b in ((0, 1), (2, 3)))
            assert sum((nodes[n] > 0).sum() for n in range(4)) + racks_used + sum(n > 0 for n in content) == used


def test_any_duals_give_a_bound() -> None:
    """Duals that no program made: what they prove is no more than the optimum, where all contents are known."""
    rng, tight = np.random.default_rng(3), 0
    for data in _small()[::9]:
        instance = GangPlacementInstance.parse(data)
        values = list(PROBLEM.check(instance, brute_force(instance)[1]).details["components"].values())
        stage = Contents(instance, [int(float(values[0]))])
        best = int(float(values[-1]))
        for _ in range(30):
            duals = rng.integers(-5, 9, len(stage.known) + 2) * domains.SCALE // 2
            bound = stage.bound(duals.tolist())[0]
            assert bound <= best * domains.SCALE
            tight += bound > (best - 2) * domains.SCALE
    assert tight > 0


def test_a_gang_may_lie_in_parts_and_a_content_may_hold_many() -> None:
    """Six gangs of one pod fill a rack of six; one of four pods has to lie in two racks."""
    data = racks([[6], [2, 1]], [(1, 1, None)] * 5 + [(4, 1, None)])
    assert _compared(data)
    instance = GangPlacementInstance.parse(data)
    stage = Contents(instance, [9])
    part = stage.proven(100, SolveOptions(threads=1))
    assert part is not None and part.decision is not None
    assert any(len(content) > domains.WRITTEN for domain in stage.domains for content in domain.cost)


def test_it_knows_what_it_does_not_know() -> None:
    plain = racks([[2, 2]], [(2, 1, None)])
    assert known_to_contents(GangPlacementInstance.parse(plain))
    for change in ({"least": 1}, {"per_node": 1}, {"pods": [{"count": 2, "gpu": 500}]}, {"pods": [{"count": 1}]}):
        other = plain | {"gangs": [plain["gangs"][0] | change]}
        assert not known_to_contents(GangPlacementInstance.parse(other))
    asked = {"count": 2, "gpu": 1000, "request": {"cpu": 2}}
    scarce = plain | {"gangs": [plain["gangs"][0] | {"pods": [asked]}]}
    assert not known_to_contents(GangPlacementInstance.parse(scarce))
    enough = scarce | {"nodes": [node | {"free": {"cpu": 4}} for node in plain["nodes"]]}
    assert known_to_contents(GangPlacementInstance.parse(enough))
    nothing = GangPlacementInstance.parse(plain)
    assert solve_contents(nothing, [], 9, SolveOptions()) is None  # weight comes first


@pytest.mark.parametrize(("name", "most"), [("MOST_CONTENTS", 3), ("MOST_SPLITS", 0), ("MOST_LOOKS", 0)])
def test_too_much_is_left_to_others(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = GangPlacementInstance.parse(racks([[4], [2, 1]], [(1, 1, None)] * 5 + [(4, 1, None)]))
    assert solve_contents(instance, [7], 9, SolveOptions(threads=1)) is not None
    monkeypatch.setattr(domains, "WRITTEN", 1)
    monkeypatch.setattr(domains, name, most)
    part = solve_contents(instance, [7], 9, SolveOptions(threads=1))
    assert part is None or part.decision is None


def test_large_tables_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = [Gang(1, 0, 3)] * 2
    tree = Tree((Tree(free=3, node=0), Tree(free=3, node=1)))
    monkeypatch.setattr(domain_tables, "MOST_SUMS", 3)
    with pytest.raises(TooLarge):
        Table(gangs).fewest(tree, np.array([[1, 1]]))
    monkeypatch.setattr(domain_tables, "MOST_CELLS", 3)
    with pytest.raises(TooLarge):
        Table(gangs)


def test_interpreted_and_compiled_the_kernels_do_the_same() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        most = rng.integers(1, 4, 2)
        steps = np.array([most[1] + 1, 1])
        first, second = rng.integers(0, 4, (6, 2)), rng.integers(0, 4, (5, 2))
        costs = rng.integers(0, 6, 6), rng.integers(0, 6, 5)
        ways = []
        for kernel in (domain_tables.added, domain_tables.added.__wrapped__):  # type: ignore[attr-defined]
            sums = np.full(int((most + 1).prod()), NEVER)
            kernel(first, costs[0], second, costs[1], most, steps, sums)
            ways.append(sums)
        assert (ways[0] == ways[1]).all()
        wanted = np.array(list(itertools.product(range(most[0] + 1), range(most[1] + 1))))
        order = np.argsort(costs[0])
        task = first[order], costs[0][order], ways[0], wanted, steps
        other = domain_tables.fewest.__wrapped__(*task)  # type: ignore[attr-defined]
        assert (domain_tables.fewest(*task) == other).all()


@pytest.mark.parametrize("written", [1, 4])
@pytest.mark.parametrize("seed", [11, 13, 17, 26, 30, 46, 83, 124])
def test_weights_that_make_prices_dear_do_not_let_in_what_does_not_fit(
    written: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until larger contents reach the goal, prices are beyond what no content costs: such contents counted as cheap."""
    monkeypatch.setattr(domains, "WRITTEN", written)
    rng = random.Random(seed)
    rng.choice((1, 2))
    nodes = [
        {"id": f"n{k}", "domain": [f"b{k % rng.choice((1, 2))}"], "gpus": [1000] * rng.choice((1, 2, 4))}
        for k in range(rng.randint(3, 7))
    ]
    gangs: list[Data] = []
    for g in range(rng.randint(5, 9)):
        pods = [{"count": rng.choice((1, 1, 2, 3)), "gpu": 1000 * rng.choice((1, 1, 2))}]
        gangs.append({"id": f"g{g}", "pods": pods, "weight": rng.choice((1, 1000.5, 3000, 20000.5))})
        drawn = rng.random()
        gangs[-1] |= {"required": "block"} if drawn < 0.2 else {"preferred": "block"} if drawn < 0.4 else {}
    data = {"problem": "gang-placement", "levels": ["block"], "nodes": nodes, "gangs": gangs}
    instance = GangPlacementInstance.parse(data)
    best = solve_staged(instance, SolveOptions(threads=1, stages=frozenset({"programs"})))
    assert best.status is Status.OPTIMAL and best.solution is not None
    entries = components(instance)
    values = map(Fraction, PROBLEM.check(instance, best.solution).details["components"].values())
    digits = [entry.digit(value) for entry, value in zip(entries, values, strict=True)]
    goal = [entry.kind for entry in entries].index("domains")
    part = solve_contents(instance, digits[:goal], NEVER, SolveOptions(threads=1))
    assert part is not None and part.decision is not None and part.least == entries[goal].most - digits[goal]
