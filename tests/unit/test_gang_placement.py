"""gang-placement: what is refused, what the checker finds, how the vector orders, what rules do."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.gang_placement import Search, brute_force, random_case

import schedgap
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.models.merged import Classes
from schedgap.formulations.gang_placement.scale import components, decode, score
from schedgap.solvers.certificates.checker import digest
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import check
from schedgap.solvers.exact.gang_placement.bound import upper_bound
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

PROBLEM = find_problem("gang-placement")
Data = dict[str, Any]


def whole() -> Data:
    """The instance of the problem's description, a little larger."""
    return {
        "problem": "gang-placement",
        "levels": ["block", "rack"],
        "nodes": [
            {"id": "n0", "domain": ["b0", "r0"], "gpus": [1000, 1000, 600], "gpu_model": "A100", "free": {"cpu": 8}},
            {"id": "n1", "domain": ["b1", "r0"], "gpus": [1000, 1000], "gpu_model": "T4", "labels": {"z": "p"}},
        ],
        "running": [{"id": "r0", "node": "n0", "devices": {"2": 400}, "movable": True, "price": 3}],
        "queues": [
            {"id": "q", "quota": {"gpu": 2000}, "borrow": {"gpu": 500}, "cohort": "c"},
            {"id": "p", "quota": {"gpu": 1000}, "cohort": "c"},
        ],
        "gangs": [
            {"id": "g0", "weight": 2.5, "queue": "q", "pods": [{"count": 2, "gpu": 500}, {"count": 2, "gpu": 1000}]},
            {"id": "g1", "queue": "p", "least": 1, "pods": [{"count": 1, "gpu": 600}, {"count": 2, "gpu": 0}]},
        ],
    }


def changed(*path: Any, value: Any) -> Data:
    data: Any = whole()
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    found: Data = data
    return found


def by_flavour(quotas: dict[str, dict[str, int]]) -> list[Data]:
    """One queue, q, with these quotas by flavour."""
    return [{"id": "q", "flavours": [{"flavour": name, "quota": quota} for name, quota in quotas.items()]}]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (changed("levels", value=["node", "rack"]), 'levels: "node" is the last level always'),
        (changed("levels", value=["rack", "rack"]), 'levels[1]: "rack" is there twice'),
        (changed("nodes", 1, "domain", value=["b1"]), "nodes[1].domain: must have a label for each of 2 levels, got 1"),
        (changed("nodes", 0, "gpus", 1, value=1001), "nodes[0].gpus[1]: must be less"),
        (changed("nodes", 0, "free", value={"gpu": 3}), "nodes[0].free.gpu: GPUs are not a resource by name"),
        (changed("nodes", 1, "id", value="n0"), 'nodes[1].id: "n0" is already the id of nodes[0]'),
        (changed("running", 0, "devices", value={"0": 1}), "running[0].devices.0: with what is free"),
        (changed("running", 0, "devices", value={"7": 1}), "running[0].devices.7: node n0 has 3 devices"),
        (changed("running", 0, "node", value="x"), 'running[0].node: there is no node "x"'),
        (changed("running", 0, "price", value=None), "running[0]: movable: is true, but there is neither"),
        (changed("queues", 0, "borrow", value={"cpu": 1}), 'queues[0]: borrow.cpu: the quota does not name "cpu"'),
        (
            changed("queues", 0, "flavours", value=[{"flavour": "a", "quota": {"gpu": 0}}]),
            "queues[0]: flavours: a queue of a cohort cannot have quotas by flavour",
        ),
        (changed("queues", value=by_flavour({"a": {}})), "queues[0].flavours[0].quota"),
        (
            changed("queues", value=by_flavour({"a": {"gpu": 0}, "b": {"cpu": 0}})),
            "queues[0]: flavours[1].quota: must name the resources that flavours[0].quota names",
        ),
        (
            changed("queues", value=[{"id": "q", "flavours": 2 * by_flavour({"a": {"gpu": 0}})[0]["flavours"]}]),
            'queues[0]: flavours[1]: "a" is there twice',
        ),
        (changed("gangs", 0, "pods", 0, "gpu", value=1500), "gangs[0].pods[0]: gpu: must be 0, 1 to 999 or a multiple"),
        (
            changed("gangs", 0, "pods", 0, value={"count": 1, "gpu": 1000, "parts": 2}),
            "gangs[0].pods[0]: parts: gpu must be the part of each device",
        ),
        (changed("gangs", 0, "pods", 0, value={"count": 1, "gpu": 500, "parts": 1}), "gangs[0].pods[0].parts"),
        (changed("gangs", 0, "queue", value="x"), 'gangs[0].queue: there is no queue "x"'),
        (
            changed("gangs", 0, "required", value="row"),
            'gangs[0].required: there is no level "row", one of: block, rack',
        ),
        (changed("gangs", 0, "least", value=5), "gangs[0].least: must be at most its 4 pods, got 5"),
        (changed("gangs", 0, "weight", value=0), "gangs[0].weight"),
        (changed("gangs", 0, "weight", value=1e-15), "objectives: weight is counted in steps of 1e-15"),
        (changed("gangs", 0, "spread", value=1), "gangs[0].spread: unknown key"),
        (changed("objectives", value=["weight", "weight"]), 'objectives[1]: "weight" is there twice'),
        (changed("objectives", value=["gpus"]), "objectives[0]: must be 'weight'"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_wrong_is_refused_in_one_line(data: Data, line: str) -> None:
    with pytest.raises(InputError) as refused:
        GangPlacementInstance.parse(data, "file")
    message = str(refused.value)
    assert "\n" not in message and line.lower() in message.lower()


def test_pods_with_parts_of_several_devices_cannot_be_moved() -> None:
    data = changed("running", 0, "move_price", value=1)
    data["nodes"][0]["gpus"][1] = 500
    data["running"][0]["devices"] = {"1": 300, "2": 300}
    with pytest.raises(InputError, match="parts of several devices"):
        GangPlacementInstance.parse(data)


# -- the checker ---------------------------------------------------------------------------------------------------

SOLUTION: Data = {
    "placement": {
        "g0": [
            {"group": 0, "node": "n0", "devices": [0]},
            {"group": 0, "node": "n0", "devices": [0]},
            {"group": 1, "node": "n1", "devices": [0]},
            {"group": 1, "node": "n1", "devices": [1]},
        ],
    }
}


def verdict(data: Data, solution: Data) -> set[str]:
    instance = GangPlacementInstance.parse(data)
    return {violation.constraint for violation in PROBLEM.check(instance, solution).violations}


def given(change: Callable[[Data, list[Data]], object]) -> set[str]:
    """What the checker finds once one thing of instance or solution is changed; without it, only the quota."""
    data, solution = whole(), copy.deepcopy(SOLUTION)
    data["queues"][0]["quota"]["gpu"] = 3000
    change(data, solution["placement"]["g0"])
    return verdict(data, solution)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda data, pods: None, set()),
        (lambda data, pods: pods.pop(), {"least"}),
        (lambda data, pods: (pods.pop(0), data["gangs"][0].update(least=1)), {"prefix"}),
        (lambda data, pods: (pods.pop(), data["gangs"][0].update(least=1)), set()),
        (lambda data, pods: pods.append({"group": 0, "node": "n0", "devices": [1]}), {"group"}),
        (lambda data, pods: pods[1].update(devices=[2]), set()),
        (lambda data, pods: pods[0].update(devices=[]), {"devices"}),
        (lambda data, pods: pods[0].update(devices=[0, 1]), {"devices"}),
        (lambda data, pods: pods[0].update(devices=[9]), {"devices"}),
        (lambda data, pods: (pods[0].update(devices=[2]), pods[1].update(devices=[2])), {"devices"}),
        (lambda data, pods: pods[2].update(node="n0", devices=[2]), {"devices"}),
        (lambda data, pods: pods[2].update(devices=[1]), {"devices"}),
        (lambda data, pods: data["gangs"][0].update(required="rack"), {"required"}),
        (lambda data, pods: data["gangs"][0].update(per_node=1), {"per_node"}),
        (lambda data, pods: data["gangs"][0]["pods"][0].update(request={"cpu": 5}), {"resource"}),
        (lambda data, pods: data["gangs"][0]["pods"][0].update(request={"cpu": 4}), set()),
        (lambda data, pods: data["gangs"][0]["pods"][1].update(request={"cpu": 1}), {"resource"}),
        (lambda data, pods: data["gangs"][0]["pods"][1].update(selector={"labels": {"z": "q"}}), {"selector"}),
        (lambda data, pods: data["gangs"][0]["pods"][1].update(selector={"models": ["A100"]}), {"selector"}),
        (lambda data, pods: data["gangs"][0]["pods"][1].update(selector={"models": ["A100", "T4"]}), set()),
        (lambda data, pods: data["queues"][0]["quota"].update(gpu=2499), {"quota"}),
        (lambda data, pods: data["queues"][1]["quota"].update(gpu=0), set()),
        (lambda data, pods: (data["queues"][0].update(quota={"gpu": 2500}), data["queues"][1].update(quota={})), set()),
        (lambda data, pods: (data["queues"][0].update(quota={"gpu": 2500}, cohort=None), None), {"quota"}),
    ],
)
def test_the_checker_finds_what_is_broken(change: Callable[[Data, list[Data]], object], found: set[str]) -> None:
    assert given(change) == found


def test_domains_of_one_label_under_different_parents_are_different() -> None:
    """Both nodes are in a rack called r0; one rack is required, so that a model that goes by labels would place it."""
    data = whole()
    data["gangs"] = [{"id": "g", "required": "rack", "pods": [{"count": 4, "gpu": 1000}]}]
    assert brute_force(GangPlacementInstance.parse(data))[0][0] == 0
    solution = schedgap.solve(data).solution
    assert solution is not None and not solution["placement"]


@pytest.mark.parametrize(
    ("solution", "found"),
    [
        ({"placement": {}, "preempted": ["r0"]}, set()),
        ({"placement": {}, "preempted": ["r0", "r0"]}, {"moves"}),
        ({"placement": {}, "moved": {"r0": {"node": "n1", "devices": [0]}}}, {"moves"}),
        ({"placement": {"g0": [{"group": 0, "node": "n0", "devices": [2]}] * 2}, "preempted": ["r0"]}, {"least"}),
    ],
)
def test_what_runs_moves_only_where_it_may(solution: Data, found: set[str]) -> None:
    data = whole() | {"objectives": ["weight", "moves"]}
    assert verdict(data, solution) == found
    touched = {"moves"} if solution.get("preempted") or solution.get("moved") else set()
    assert verdict(whole(), solution) >= touched


def test_ids_that_the_instance_does_not_have_are_refused() -> None:
    for solution, line in (
        ({"placement": {"x": []}}, 'no gang "x"'),
        ({"placement": {"g0": [{"group": 0, "node": "x", "devices": []}]}}, 'no node "x"'),
        ({"placement": {"g0": [{"group": 2, "node": "n0", "devices": []}]}}, "has 2 groups"),
        ({"placement": {}, "preempted": ["x"]}, 'no running pod "x"'),
    ):
        with pytest.raises(InputError, match=line):
            verdict(whole(), solution)


# -- the vector as one number ----------------------------------------------------------------------------------------


def test_the_number_orders_as_the_vector_does() -> None:
    """On all decisions of random instances: the oracle's tuples and the checker's numbers sort in the same way."""
    pairs = 0
    for seed in range(40):
        data = random_case(seed)
        instance = GangPlacementInstance.parse(data)
        found = list(itertools.islice(Search(instance.to_dict()).decisions(), 60))
        numbers = []
        for vector, solution in found:
            report = PROBLEM.check(instance, solution)
            assert report.feasible and report.objective is not None
            numbers.append((vector, report.objective))
            values = [Fraction(text) for text in report.details["components"].values()]
            assert decode(instance, score(instance, values)) == tuple(values)
            assert report.objective <= upper_bound(instance)
        for (a, x), (b, y) in itertools.combinations(numbers, 2):
            assert (a < b) == (x < y) and (a == b) == (x == y)
            pairs += 1
    assert pairs > 10_000


def test_a_ratio_is_of_the_first_component_that_differs() -> None:
    instance = schedgap.generate("gang-placement", "cluster", seed=1)
    assert [entry.kind for entry in components(instance)] == ["weight", "split", "domains"]
    vectors = ((9, 0, 3), (6, 0, 0), (9, 1, 0), (9, 0, 6), (0, 0, 0))
    numbers = [score(instance, [Fraction(part) for part in vector]) for vector in vectors]
    problem = find_problem("gang-placement")
    worse = [problem.ratio(instance, number, numbers[0]) for number in (*numbers, None)]
    assert worse == [1.0, 1.5, float("inf"), 2.0, float("inf"), None]


def test_weights_are_read_as_decimals_and_shown_as_digits() -> None:
    data = whole() | {"objectives": ["weight"]}
    data["gangs"][1].pop("least")
    data["queues"] = [{"id": "q"}, {"id": "p"}]
    data["gangs"][0]["pods"].pop()
    result = schedgap.solve(data)
    assert result.objective == 25 + 10  # 2.5 and 1 in tenths
    entry = components(GangPlacementInstance.parse(data))
    assert [(one.name, one.step, one.most) for one in entry] == [("weight", Fraction(1, 10), 35)]


def test_the_last_group_of_a_prefix_may_be_partial() -> None:
    """Three of four pods: the first group whole and one pod of the second; whole groups alone would leave it out."""
    gang = {"id": "g", "least": 3, "pods": [{"count": 2, "gpu": 500}, {"count": 2, "gpu": 1000}]}
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000]}], "gangs": [gang]}
    result = schedgap.solve(data)
    assert result.solution is not None
    assert sorted(pod["group"] for pod in result.solution["placement"]["g"]) == [0, 0, 1]


def test_priorities_come_before_weight_unless_flat() -> None:
    gangs = [
        {"id": "high", "priority": 1, "weight": 1, "pods": [{"count": 2, "gpu": 1000}]},
        {"id": "low", "priority": 0, "weight": 9, "pods": [{"count": 1, "gpu": 1000}]},
    ]
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000]}], "gangs": gangs}
    for flat, placed in ((False, {"high"}), (True, {"low"})):
        solution = schedgap.solve(data | {"flat": flat}).solution
        assert solution is not None and set(solution["placement"]) == placed


# -- rules -----------------------------------------------------------------------------------------------------------


def weight_of(method: str, data: Data, **settings: Any) -> Fraction:
    result = schedgap.solve(data, method=method, settings=settings)
    assert result.solution is not None
    report = PROBLEM.check(GangPlacementInstance.parse(data), result.solution)
    return Fraction(report.details["components"]["weight"])


def test_a_rule_that_puts_small_gangs_on_large_nodes_places_8_of_24() -> None:
    data = schedgap.generate("gang-placement", "small-first").to_dict()
    assert weight_of("ray-strict-pack", data) == 8
    assert weight_of("staged", data) == 24


@pytest.mark.parametrize(
    ("parts", "tight", "placed"),
    [((400, 400, 600, 600), True, 3), ((400, 400, 600, 600), False, 4), ((600, 600, 400, 400), True, 4)],
)
def test_parts_of_two_devices(parts: tuple[int, ...], tight: bool, placed: int) -> None:
    gangs = [{"id": f"g{g}", "arrival": g, "pods": [{"count": 1, "gpu": part}]} for g, part in enumerate(parts)]
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000]}], "gangs": gangs}
    assert weight_of("first-fit", data, tight=tight) == placed


def _on_nodes(sizes: tuple[int, ...], gangs: tuple[int, ...], **gang: Any) -> Data:
    """Nodes of so many whole devices, gangs of one pod with so many, which they weigh."""
    there = [{"id": f"n{n}", "gpus": [1000] * size} for n, size in enumerate(sizes)]
    waiting = [
        {"id": f"g{g}", "weight": size, "arrival": g, "pods": [{"count": 1, "gpu": 1000 * size}], **gang}
        for g, size in enumerate(gangs)
    ]
    return {"problem": "gang-placement", "nodes": there, "gangs": waiting}


@pytest.mark.parametrize(
    ("gangs", "optimum", "by_rule"),
    [((4, 4, 8, 8), 24, 8), ((2, 2, 4, 8, 8), 24, 8)],
    ids=["4-4-8-8", "2-2-4-8-8"],
)
def test_small_gangs_on_large_nodes(gangs: tuple[int, ...], optimum: int, by_rule: int) -> None:
    """All of 24 GPUs can be placed, and 8 are where small gangs come first and go to the large nodes."""
    data = _on_nodes((4, 4, 8, 8), gangs, required="node")
    for engine in ("highs", "cpsat"):
        assert weight_of("staged", data, engine=engine) == optimum
    assert weight_of("ray-strict-pack", data) == by_rule


@pytest.mark.parametrize("racks", [1, 2, 3])
def test_a_gang_of_several_racks_never_fits_in_one(racks: int) -> None:
    """What one rack holds fits with `required: rack`, more never does, with a proof that the checker accepts."""
    there = [{"id": f"n{n}", "domain": [f"r{n // 2}"], "gpus": [1000, 1000]} for n in range(6)]
    gang = {"id": "g", "required": "rack", "pods": [{"count": 4 * racks, "gpu": 1000}]}
    data = {"problem": "gang-placement", "levels": ["rack"], "nodes": there, "gangs": [gang], "objectives": ["weight"]}
    result = schedgap.solve(data)
    assert result.solution is not None and bool(result.solution["placement"]) is (racks == 1)
    if racks > 1:
        certified = schedgap.certify(data, result)  # accepted by the stand-alone checker
        assert certified.certificate is not None and certified.bound == result.objective == 0
        del gang["required"]
        assert weight_of("staged", data) == 1


def test_parts_are_not_added_over_devices() -> None:
    """Two devices of 600 hold no pod of 700, and no pod of a whole device; together they have 1200."""
    for gpu in (700, 1000):
        gang = {"id": "g", "pods": [{"count": 1, "gpu": gpu}]}
        data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [600, 600]}], "gangs": [gang]}
        assert weight_of("staged", data) == 0
    gang["pods"] = [{"count": 2, "gpu": 600}]
    assert weight_of("staged", {**data, "gangs": [gang]}) == 1


def test_kube_scheduler_gives_no_score_for_the_number_of_pods() -> None:
    """1 of 10 pods is a larger share than 1 of 110, and 1 of 32 processors one larger than 1 of 40."""
    pods = [{"count": 1, "gpu": 0, "request": {"cpu": 1, "pods": 1}}]
    nodes = [{"id": "a", "free": {"cpu": 40, "pods": 10}}, {"id": "b", "free": {"cpu": 32, "pods": 110}}]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": [{"id": "g", "weight": 1, "pods": pods}]}
    result = schedgap.solve(data, method="kube-most-allocated")
    assert result.solution is not None and result.solution["placement"]["g"][0]["node"] == "b"


def test_per_node_counts_groups_that_are_within_it_each() -> None:
    """One pod and three: four on the first node are one too many."""
    gang = {"id": "g", "per_node": 3, "pods": [{"count": 1, "gpu": 1000}, {"count": 3, "gpu": 1000}]}
    for method in ("staged", "cbc", "highs", "cpsat"):
        assert weight_of(method, {**_on_nodes((4, 1), ()), "gangs": [gang]}) == 1
        assert weight_of(method, {**_on_nodes((4,), ()), "gangs": [gang]}) == 0


def test_per_node_counts_all_pods_of_a_gang() -> None:
    """Four devices on each of two nodes hold a gang of four on one; with one a node there is no place."""
    data = _on_nodes((4, 4), ())
    gang = {"id": "g", "pods": [{"count": 2, "gpu": 1000}, {"count": 2, "gpu": 0}]}
    for most, weight in ((None, 1), (2, 1), (1, 0)):
        assert weight_of("staged", {**data, "gangs": [{**gang, "per_node": most}]}) == weight


@pytest.mark.parametrize(
    ("borrow", "cohort", "placed"),
    [({"gpu": 1000}, "c", 2), ({"gpu": 0}, "c", 1), ({}, "c", 3), ({}, None, 1)],
    ids=["borrows-one", "borrows-none", "no-limit-of-its-own", "no-cohort"],
)
def test_a_quota_is_of_the_cohort(borrow: Data, cohort: str | None, placed: int) -> None:
    """Quotas of 1 and 2 devices: in a cohort the first queue has its own and what it may borrow, else its own alone."""
    data = _on_nodes((5,), (1, 1, 1, 1), queue="a")
    queues = [{"id": "a", "quota": {"gpu": 1000}, "borrow": borrow}, {"id": "b", "quota": {"gpu": 2000}}]
    data["queues"] = (
        [{**queue, "cohort": cohort} for queue in queues] if cohort else [{"id": "a", "quota": {"gpu": 1000}}]
    )
    assert weight_of("staged", data) == placed


def flavoured(quotas: dict[str, int], flavours: tuple[str | None, ...], pods: tuple[int, ...]) -> Data:
    """A node of two devices of each of the flavours; one gang of queue q with groups of so many pods of a device."""
    return {
        "problem": "gang-placement",
        "nodes": [{"id": f"n{n}", "gpus": [1000, 1000], "flavour": name} for n, name in enumerate(flavours)],
        "queues": by_flavour({name: {"gpu": 1000 * most} for name, most in quotas.items()}),
        "gangs": [{"id": "g", "queue": "q", "pods": [{"count": count, "gpu": 1000} for count in pods]}],
        "objectives": ["weight"],
    }


@pytest.mark.parametrize(
    ("quotas", "flavours", "pods", "weight"),
    [
        ({"a": 2}, ("a",), (2,), 1),
        ({"a": 1}, ("a",), (2,), 0),
        ({"a": 2}, ("b", None), (1,), 0),  # nodes that the queue does not list
        ({"a": 1, "b": 1}, ("a", "b"), (2,), 0),  # a group on one flavour: two of quota in sum are not enough
        ({"a": 1, "b": 1}, ("a", "b"), (1, 1), 1),  # groups on a flavour each
        ({"a": 0, "b": 2}, ("a", "b"), (2,), 1),
        ({"a": 3}, ("a", "a"), (3,), 1),
        ({"a": 9, "b": 9}, ("a", "b"), (3,), 0),  # no flavour has three devices
    ],
)
@pytest.mark.parametrize("method", ["staged", "highs", "cpsat"])
def test_quotas_by_flavour_decide(
    quotas: dict[str, int], flavours: tuple[str | None, ...], pods: tuple[int, ...], weight: int, method: str
) -> None:
    data = flavoured(quotas, flavours, pods)
    assert weight_of(method, data) == weight
    if method == "staged":
        for rule in ("kueue-best-fit", "first-fit", "ray-pack", "fgd", "kai-two-level"):
            assert weight_of(rule, data) == (weight if len(pods) == 1 else 0)  # a rule keeps to one flavour


def test_pods_that_ask_for_nothing_that_flavours_limit_go_anywhere() -> None:
    data = flavoured({"a": 2}, ("a", "b"), (2,))
    data["gangs"][0]["pods"].append({"count": 1, "request": {"cpu": 1}})
    data["nodes"][1]["free"] = {"cpu": 1}
    assert weight_of("staged", data) == weight_of("first-fit", data) == 1


def test_the_checker_finds_pods_on_other_flavours() -> None:
    data = flavoured({"a": 1, "b": 1}, ("a", "b", "c"), (2,))
    for nodes, violations in (("n0 n0", {"quota"}), ("n0 n1", {"flavour"}), ("n2 n2", {"flavour"})):
        pods = [{"group": 0, "node": node, "devices": [d]} for d, node in enumerate(nodes.split())]
        assert verdict(data, {"placement": {"g": pods}}) == violations


def test_a_quota_by_flavour_is_part_of_the_instance_that_a_certificate_names() -> None:
    """Another quota, 0 among them, another flavour of a node: another digest; without flavours the digest stays."""
    data = flavoured({"a": 1}, ("a",), (1,))
    node, queue = data["nodes"][0], {"id": "q", "quota": {"gpu": 5}}
    others = [
        data,
        data | {"queues": by_flavour({"a": {"gpu": 0}})},
        data | {"queues": by_flavour({"b": {"gpu": 1000}})},
        data | {"nodes": [node | {"flavour": "b"}]},
        data | {"queues": [queue]},
    ]
    assert len({digest(plain(GangPlacementInstance.parse(other))) for other in others}) == len(others)
    before = {key: value for key, value in node.items() if key != "flavour"}
    assert digest(plain(GangPlacementInstance.parse(data | {"nodes": [before], "queues": [queue]}))) == (
        "c73fa9c97484fc568d107676e8885b7f2c6b3fdf2dd58dc0c0de749a5ec744c4"
    )


def test_a_certificate_says_that_flavours_keep_a_gang_out() -> None:
    instance = GangPlacementInstance.parse(flavoured({"a": 1, "b": 1}, ("a", "b"), (2,)))
    certified = schedgap.certify(instance)
    assert certified.optimal and certified.certificate is not None
    assert certified.certificate["form"] == "rows"
    proven = check(instance, certified.certificate, {"placement": {}})
    assert proven.bound == proven.value == 0
    other = GangPlacementInstance.parse(flavoured({"a": 2, "b": 1}, ("a", "b"), (2,)))
    with pytest.raises(Rejected):
        check(other, certified.certificate)


def parted(devices: list[int], gpu: int, parts: int, count: int) -> Data:
    """One node; one gang of pods with such a part of each of some devices."""
    return {
        "problem": "gang-placement",
        "nodes": [{"id": "n", "gpus": devices}],
        "gangs": [{"id": "g", "pods": [{"count": count, "gpu": gpu, "parts": parts}]}],
        "objectives": ["weight"],
    }


@pytest.mark.parametrize(
    ("devices", "gpu", "parts", "count", "weight"),
    [
        ([1000, 1000], 500, 2, 2, 1),
        ([1000, 1000], 500, 2, 3, 0),
        ([1000], 500, 2, 1, 0),  # there is room for two parts, on one device
        ([1000, 300], 300, 2, 2, 0),  # four parts fit, but one pod alone finds two devices
        ([1000, 300, 300], 300, 2, 2, 1),
        ([600, 600, 600, 500], 500, 3, 1, 1),
        ([1000, 1000, 1000], 500, 2, 3, 1),  # ab, bc, ca
    ],
)
def test_parts_of_a_pod_lie_on_different_devices(
    devices: list[int], gpu: int, parts: int, count: int, weight: int
) -> None:
    data = parted(devices, gpu, parts, count)
    for method in ("staged", "highs", "cpsat"):
        assert weight_of(method, data) == weight
    assert decode(GangPlacementInstance.parse(data), upper_bound(GangPlacementInstance.parse(data)))[0] == weight
    for rule in ("first-fit", "fgd", "best-fit", "ray-pack", "kueue-best-fit", "kube-most-allocated"):
        assert weight_of(rule, data) <= weight
    if count == 1:
        assert weight_of("fgd", data) == weight_of("kueue-best-fit", data) == weight


def test_the_checker_finds_parts_on_one_device_and_what_a_queue_uses() -> None:
    data = parted([1000, 1000], 500, 2, 1)
    for devices, violations in (([0, 1], set()), ([0, 0], {"devices"}), ([0], {"devices"})):
        pods = [{"group": 0, "node": "n", "devices": devices}]
        assert verdict(data, {"placement": {"g": pods}}) == violations
    data |= {"queues": [{"id": "q", "quota": {"gpu": 999}}], "gangs": [data["gangs"][0] | {"queue": "q"}]}
    pods = [{"group": 0, "node": "n", "devices": [0, 1]}]
    assert verdict(data, {"placement": {"g": pods}}) == {"quota"}
    assert weight_of("staged", data) == weight_of("first-fit", data) == 0


def test_a_certificate_says_that_a_pod_finds_too_few_devices() -> None:
    instance = GangPlacementInstance.parse(parted([1000, 300], 300, 2, 2))
    certified = schedgap.certify(instance)
    assert certified.optimal and certified.certificate is not None
    assert check(instance, certified.certificate, {"placement": {}}).bound == 0
    with pytest.raises(Rejected):
        check(GangPlacementInstance.parse(parted([1000, 600], 300, 2, 2)), certified.certificate)


def test_large_shapes_are_solved_by_the_relaxation_that_docs_measure() -> None:
    """The table of docs/gang-placement.md at a reduced size, without a clock: what merged nodes alone prove."""
    small = schedgap.generate("gang-placement", "large", seed=0, nodes=16, gangs=6)
    wide = schedgap.generate("gang-placement", "large", seed=1, nodes=250, gangs=40)
    for instance, objectives in ((small, ["weight", "topology"]), (wide, ["weight"])):
        made = GangPlacementInstance.parse({**instance.to_dict(), "objectives": objectives})
        options = SolveOptions(stages=frozenset({"bound", "merged nodes"}), threads=1)
        result = solve_staged(made, options)
        best, bound = (decode(made, int(value or 0)) for value in (result.objective, result.bound))
        assert 0 < best[0] <= bound[0] <= best[0] * Fraction(101, 100)
        assert result.info["proven components"] >= 1


def test_equal_gangs_of_racks_are_counted_and_handed_out() -> None:
    """Gangs of whole nodes, each in one rack, that fill ten racks of 20 in one way at least, and a few more."""
    for seed in range(3):
        rng = random.Random(seed)
        nodes = [{"id": f"r{r}n{n}", "domain": [f"r{r}"], "gpus": [1000]} for r in range(10) for n in range(20)]
        sizes = [
            size for _ in range(10) for size in rng.choice([(16, 4), (12, 8), (8, 6, 3, 3), (16, 3, 1), (12, 6, 2)])
        ]
        rng.shuffle(sizes)
        sizes += [16, 12, 6]
        gangs = [
            {"id": f"g{g}", "weight": size, "required": "rack", "pods": [{"count": size, "gpu": 1000}]}
            for g, size in enumerate(sizes)
        ]
        data = {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "gangs": gangs}
        instance = GangPlacementInstance.parse(data | {"objectives": ["weight"]})
        result = solve_staged(instance, SolveOptions(stages=frozenset({"merged nodes"}), threads=1))
        assert (result.status, result.objective, result.info["decided by"]) == (Status.OPTIMAL, 200, "merged nodes")


def test_gangs_that_differ_in_anything_are_not_counted_as_equal() -> None:
    """Each change of the second gang but of its name and arrival makes it another kind."""
    first: Data = {"id": "a", "weight": 2, "priority": 1, "pods": [{"count": 2, "gpu": 500}]}
    changes: list[Data] = [{"weight": 3}, {"priority": 2}, {"queue": "q"}, {"required": "node"}, {"preferred": "node"}]
    changes += [{"per_node": 1}, {"least": 1}, {"pods": [{"count": 1, "gpu": 500}]}]
    for field in ({"gpu": 400}, {"parts": 2}, {"request": {"cpu": 1}}, {"selector": {"models": ["x"]}}):
        changes.append({"pods": [{"count": 2, "gpu": 500} | field]})
    data: Data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000]}], "queues": [{"id": "q"}]}
    for change, classes in ((({}), 1), ({"arrival": 5}, 1), *((change, 2) for change in changes)):
        instance = GangPlacementInstance.parse(data | {"gangs": [first, first | {"id": "b"} | change]})
        assert len(Classes(instance).gangs) == classes, change


KAI_PACKING = [((0, 3, 4), 1), ((8, 4, 16), 1), ((1, 0, 64), 0)]
"""Free devices of nodes, and the node with the highest score of those that take a pod of one device.

Of KAI-Scheduler's pkg/scheduler/plugins/nodeplacement/nodepack_test.go, commit 521a99a: "4 nodes, 3 with GPUs small
gaps", "3 nodes, 3 with GPUs all free", "1 with big gap, 2 with small gaps".
"""


@pytest.mark.parametrize(("free", "first"), KAI_PACKING)
def test_kai_packs_the_node_with_the_fewest_free_gpus(free: tuple[int, ...], first: int) -> None:
    solution = schedgap.solve(_on_nodes(free, (1,)), method="kai-two-level").solution
    assert solution is not None and solution["placement"]["g0"][0]["node"] == f"n{first}"


def test_kai_spreads_by_the_share_of_gpus_that_is_free() -> None:
    """spread.go, commit 0582d67: free over all. Of 8 devices 4 are free, of 4 devices 3, so the small node is first."""
    data = _on_nodes((4, 3), (1,))
    held = {"n0": 4, "n1": 1}
    for node in data["nodes"]:
        size = len(node["gpus"])
        taken = {str(size + d): 1000 for d in range(held[node["id"]])}
        node["gpus"] += [0] * held[node["id"]]
        data.setdefault("running", []).append({"id": f"r-{node['id']}", "node": node["id"], "devices": taken})
    solution = schedgap.solve(data, method="kube-least-allocated").solution
    assert solution is not None and solution["placement"]["g0"][0]["node"] == "n1"


def test_kueue_chooses_the_tightest_domain_that_holds_all() -> None:
    """Racks with 3, 4 and 6 free devices and a gang of 4: BestFit the one of 4, MostFreeCapacity the one of 6."""
    nodes = [{"id": f"n{n}", "domain": [f"r{n}"], "gpus": [1000] * count} for n, count in enumerate((3, 6, 4))]
    gang = {"id": "g", "preferred": "rack", "pods": [{"count": 4, "gpu": 1000}]}
    data = {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "gangs": [gang]}
    for method, node in (("kueue-best-fit", "n2"), ("kueue-most-free", "n1"), ("kueue-least-free", "n2")):
        solution = schedgap.solve(data, method=method).solution
        assert solution is not None
        assert {pod["node"] for pod in solution["placement"]["g"]} == {node}


def test_least_and_most_allocated_are_opposites() -> None:
    nodes = [{"id": "small", "gpus": [1000] * 2}, {"id": "large", "gpus": [1000] * 8}]
    gang = {"id": "g", "pods": [{"count": 1, "gpu": 1000}]}
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": [gang]}
    for method, node in (("kube-most-allocated", "small"), ("kube-least-allocated", "large"), ("best-fit", "small")):
        solution = schedgap.solve(data, method=method).solution
        assert solution is not None and solution["placement"]["g"][0]["node"] == node


@pytest.mark.parametrize("rule", ["fgd", "best-fit"])
def test_compiled_rules_decide_as_the_plain_ones(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single pods one after another: the same nodes and devices."""
    from schedgap.heuristics.gang_placement import stream

    rng = np.random.default_rng(5)
    different = 0
    for _ in range(12):
        nodes = [
            {
                "id": f"n{n}",
                "gpus": [int(rng.choice([1000, 600])) for _ in range(rng.integers(1, 5))],
                "free": {"cpu": 9},
            }
            for n in range(6)
        ]
        gangs = [
            {
                "id": f"g{g}",
                "priority": int(rng.integers(2)),
                "pods": [
                    {"count": 1, "gpu": int(rng.choice([0, 150, 300, 470, 600, 1000, 2000])), "request": {"cpu": 1}}
                ],
            }
            for g in range(40)
        ]
        instance = GangPlacementInstance.parse({"problem": "gang-placement", "nodes": nodes, "gangs": gangs})
        plain = run_method(PROBLEM, instance, rule, SolveOptions()).solution
        monkeypatch.setattr(stream, "WORTH", 0)
        compiled = run_method(PROBLEM, instance, rule, SolveOptions()).solution
        monkeypatch.undo()
        assert compiled == plain and PROBLEM.check(instance, compiled).feasible
        different += run_method(PROBLEM, instance, "first-fit", SolveOptions()).solution != plain
    assert different > 6


@pytest.mark.parametrize("rule", ["fgd", "best-fit"])
def test_compiled_rules_know_nodes_without_gpus(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from schedgap.heuristics.gang_placement import stream

    gangs = [{"id": "part", "pods": [{"count": 1, "gpu": 300}]}, {"id": "none", "pods": [{"count": 1}]}]
    data = {"problem": "gang-placement", "nodes": [{"id": "n"}], "gangs": gangs}
    monkeypatch.setattr(stream, "WORTH", 0)
    solution = schedgap.solve(data, method=rule).solution
    assert solution == {"placement": {"none": [{"group": 0, "node": "n", "devices": []}]}}


def test_a_figure_draws_parts_and_what_runs() -> None:
    instance = GangPlacementInstance.parse(whole())
    figure = schedgap.plot(instance, SOLUTION)
    texts = {text.get_text() for part in figure.subfigs for axes in part.axes for text in axes.texts}
    assert {"b0/r0/n0", "b1/r0/n1"} <= texts


def test_parts_that_fill_no_device_bound_what_can_be_placed() -> None:
    """Parts of 600 on four devices: two thirds of the GPUs, not all of them, whatever a policy does."""
    gangs = [{"id": f"g{g}", "weight": 0.6, "pods": [{"count": 1, "gpu": 600}]} for g in range(9)]
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000] * 4}], "gangs": gangs}
    instance = GangPlacementInstance.parse({**data, "objectives": ["weight"]})
    assert decode(instance, upper_bound(instance)) == (Fraction(24, 10),)
    mixed = [{"id": f"h{g}", "weight": 0.3, "pods": [{"count": 1, "gpu": 300}]} for g in range(9)]
    instance = GangPlacementInstance.parse({**data, "gangs": gangs + mixed, "objectives": ["weight"]})
    assert decode(instance, upper_bound(instance)) == (Fraction(36, 10),)
