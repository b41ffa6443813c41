"""Policies and exact methods on chains of transfers, where a start one unit in the last place early costs much."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from oracles.hard_numbers import hard_comm_contention
from support.checks import comm_contention as check
from support.comm_contention_plain_policies import RULES, plain

from schedgap.catalogue.comm_contention import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.comm_contention.admissions import starts_of
from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.check_replays import replay_exactly
from schedgap.formulations.comm_contention.dynamics import simulate
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.one_at_a_time import one_at_a_time
from schedgap.formulations.comm_contention.order_program import best_of_order
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.heuristics.comm_contention import policies
from schedgap.solvers.result import SolveOptions, Status

DATA = Path(__file__).parents[1] / "data"
VALUES = {"comm-srsf1-paper-link-200": 14.096036544, "comm-srsf1-16tasks": 2.5644375, "comm-chain-worst": 11.7132375}
"""Mean flow time, smallest first and one at a time."""


def case(name: str) -> CommContentionInstance:
    return CommContentionInstance.parse(json.loads((DATA / f"{name}.json").read_text()))


def value(instance: CommContentionInstance, solution: Solution | None) -> Fraction:
    """The checker's value of the solution as a file has it."""
    report = check(instance, json.loads(json.dumps(solution)))
    assert report.feasible
    return Fraction(report.objective)


def one_by_one(instance: CommContentionInstance) -> Fraction:
    """Mean flow time of tasks released at 0, smallest first and one at a time."""
    latency, b, _ = instance.link.exact_parameters()
    clock = total = Fraction(0)
    for size in sorted(exact(task.size) for task in instance.tasks):
        clock += latency + b * size
        total += clock
    return total / len(instance.tasks)


@pytest.mark.parametrize("name", VALUES)
def test_comm_contention_one_at_a_time_has_its_closed_form(name: str) -> None:
    instance = case(name)
    wanted = one_by_one(instance)
    assert float(wanted) == pytest.approx(VALUES[name], rel=1e-9)
    assert lower_bound(instance) == float(wanted)  # nobody comes later
    start = one_at_a_time(instance)
    order = sorted(range(len(instance.tasks)), key=lambda j: start["start"][instance.tasks[j].id])
    found = {
        "srsf-1": policies.srsf_1(instance).solution,
        "adadual": policies.adadual(instance).solution,
        "adadual-k": policies.adadual_k(instance).solution,
        "quick": start,
        "order": best_of_order(instance, [(j, starts) for j in order for starts in (True, False)]),
    }
    for method, solution in found.items():
        assert abs(value(instance, solution) - wanted) <= wanted / 10**12, method
        assert "exact" not in solution, method
        ends = simulate(instance, starts_of(solution)).completion
        assert sum(ends.values()) / len(ends) == pytest.approx(float(wanted), rel=1e-12), method


@pytest.mark.parametrize("name", VALUES)
def test_comm_contention_bb_answers_chains(name: str) -> None:
    instance = case(name)
    result = run_method(PROBLEM, instance, "bb", SolveOptions())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(one_by_one(instance)), rel=1e-12)


def test_comm_contention_engines_answer_a_chain() -> None:
    data = case("comm-srsf1-16tasks").to_dict()
    data["tasks"] = data["tasks"][-4:]
    instance = CommContentionInstance.parse(data)
    for method in ("cbc", "highs"):
        result = run_method(PROBLEM, instance, method, SolveOptions(threads=1))
        assert result.objective == pytest.approx(float(one_by_one(instance)), rel=1e-12), method


def drawn(seed: int) -> CommContentionInstance:
    """A stream that seldom ends, on a link with a small, a large or a very large penalty."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 25))
    b, latency = float(rng.choice([0.3, 1.0])), float(rng.choice([0.0, 0.37]))
    sizes = [round(float(x), 2) for x in np.exp(rng.uniform(-1, 1.5, n))]
    releases = [round(float(x), 2) for x in rng.uniform(0, b * sum(sizes), n)]
    link = {
        "latency": latency,
        "seconds_per_unit": b,
        "contention_penalty": b * float(rng.choice([0.3, 9.0, 30.0, 1000.0])),
    }
    tasks = [{"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(zip(releases, sizes, strict=True))]
    return CommContentionInstance.parse({"problem": "comm-contention", "link": link, "tasks": tasks})


@pytest.mark.parametrize("name", RULES)
def test_comm_contention_policy_has_the_value_of_the_plain_one(name: str) -> None:
    for seed in range(60):
        instance = drawn(seed)
        start = plain(instance, RULES[name])
        ends = replay_exactly(instance, [start[task.id] for task in instance.tasks]).completion
        flow = sum(end - exact(task.release) for task, end in zip(instance.tasks, ends, strict=True))
        solution = getattr(policies, name)(instance).solution
        assert value(instance, solution) * len(ends) == pytest.approx(flow, rel=1e-11), (name, seed)


def unstable(links: int) -> CommContentionInstance:
    """Transfers that start in turn when 0.3 of the one before are left, after one that starts at a 7th of a second.

    Under srsf-2 an error in that start is 1 + eta / b = 20 / 7 times as large one transfer on, and so forth.
    """
    tasks = [(0.0, 1.0), (0.1, 1.0), (0.2, 0.9428571428571428)]
    tasks += [(round(3.15 + 1.09 * k, 2), 1.0) for k in range(links)]
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "link": {"latency": 0.0, "seconds_per_unit": 0.7, "contention_penalty": 1.3},
            "tasks": [{"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(tasks)],
        }
    )


@pytest.mark.parametrize("links", [3, 24, 33])
def test_comm_contention_starts_have_as_many_digits_as_they_need(links: int) -> None:
    instance = unstable(links)
    start = plain(instance, RULES["srsf_2"])
    ends = replay_exactly(instance, [start[task.id] for task in instance.tasks]).completion
    wanted = sum(end - exact(task.release) for task, end in zip(instance.tasks, ends, strict=True)) / len(ends)
    solution = policies.srsf_2(instance).solution
    assert abs(value(instance, solution) - wanted) <= wanted / 10**11
    assert ("exact" in solution) == (links > 3)
    rounded = value(instance, {"start": solution["start"]})
    assert (abs(rounded - wanted) > wanted / 10**9) == (links > 3), "the digits are needed"
    ends_seen = simulate(instance, starts_of(solution)).completion
    assert [ends_seen[t.id] for t in instance.tasks] == pytest.approx([float(end) for end in ends], rel=1e-12)


@pytest.mark.parametrize(
    ("finer", "words"),
    [
        ([], "solution: exact: must be an object"),
        ({"c9": "1.5"}, "solution: exact.c9: has no start"),
        ({"c1": 1.5}, "solution: exact.c1: must be text"),
        ({"c1": "1,5"}, "solution: exact.c1: must match pattern"),
        ({"c1": "1e999999999"}, "solution: exact.c1: must match pattern"),
        ({"c1": "1.5" + 1000 * "0"}, "solution: exact.c1: must have at most 1000 characters"),
        ({"c1": "1.6"}, "solution: exact.c1: does not round to the start, 1.5, got 1.6"),
    ],
)
def test_comm_contention_malformed_digits(finer: object, words: str) -> None:
    data = unstable(1).to_dict() | {"tasks": unstable(1).to_dict()["tasks"][:2]}
    instance = CommContentionInstance.parse(data)
    with pytest.raises(InputError, match=words) as raised:
        check(instance, {"start": {"c0": 0.0, "c1": 1.5}, "exact": finer})
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200


def test_comm_contention_digits_count() -> None:
    data = unstable(1).to_dict() | {"tasks": unstable(1).to_dict()["tasks"][:2]}
    instance = CommContentionInstance.parse(data)
    finer = check(instance, {"start": {"c0": 0.0, "c1": 1.5}, "exact": {"c1": "1.50000000000000000001"}})
    assert Fraction(finer.objective) == Fraction(check(instance, {"start": {"c0": 0.0, "c1": 1.5}}).objective) + (
        Fraction(1, 2 * 10**20)
    )


@pytest.mark.parametrize("seed", [173, 681])
@pytest.mark.parametrize("engine", ["highs", "cbc"])
def test_comm_contention_twins_that_no_engine_tells_apart_are_exchanged(seed: int, engine: str) -> None:
    """Found by the suite cross: both engines gave the order of two near equal tasks that is worse by 1e-8."""
    instance = hard_comm_contention(seed, family="near-ties")
    result = run_method(
        PROBLEM,
        instance,
        next(m for m in PROBLEM.methods if m.id == engine),
        SolveOptions(threads=1, work_limit=1000.0),
    )
    latency, b, _ = instance.link.exact_parameters()
    sizes = [exact(task.size) for task in instance.tasks]
    # Both are there at 0, and the second's latency passes while the first is transferred.
    best = latency + b * sum(sizes) / 2 + b * min(sizes) / 2
    assert result.status is Status.OPTIMAL and result.objective == pytest.approx(float(best), rel=1e-13)
