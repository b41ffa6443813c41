"""The instance and the checker of g-vne: what is refused, every violation, routes mended by the extraction."""

from typing import Any

import pytest
from support.checks import g_vne as check
from support.checks import g_vne_loads as check_loads

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.simple_rings import contiguous_ring, without_cycles
from schedgap.formulations.g_vne.substrate import most_multiples, worker_cap


def data() -> dict[str, Any]:
    pairs = [("a", "sw"), ("sw", "a"), ("b", "sw"), ("sw", "b"), ("c", "sw"), ("sw", "c")]
    return {
        "problem": "g-vne",
        "servers": [
            {"id": "a", "resources": {"gpu": 2}},
            {"id": "b", "resources": {"gpu": 0.3}},
            {"id": "c", "resources": {"gpu": 1}},
            {"id": "sw", "resources": {}},
        ],
        "links": [{"from": s, "to": t, "bandwidth": 0.3} for s, t in pairs],
        "jobs": [
            {"id": "j", "demand": {"gpu": 1}, "bandwidth": 0.2, "utility": [1, 2.5, -1]},
            {"id": "i", "demand": {"gpu": 0.1}, "bandwidth": 0.1, "utility": [1, 1, 1]},
        ],
    }


TWO = {"workers": ["a", "c"], "routes": [["a", "sw", "c"], ["c", "sw", "a"]]}


def solve(**rings: Any) -> Any:
    return check(GVneInstance.parse(data()), {"rings": rings})


def test_a_feasible_solution_is_scored() -> None:
    report = solve(j=TWO, i={"workers": ["b", "b", "b"], "routes": [["b"], ["b"], ["b"]]})
    assert report.feasible and float(report.objective) == 3.5  # 3 * 0.1 fits 0.3
    assert report.details["link_use"] == pytest.approx(2 / 3) and report.details["server_use"] == 1.0
    other = solve(j=TWO, i={"workers": ["a", "b"], "routes": [["a", "sw", "b"], ["b", "sw", "a"]]})
    assert other.feasible and other.details["link_use"] == 1.0  # 0.2 + 0.1 fits 0.3
    assert solve().feasible and solve().objective == 0


@pytest.mark.parametrize(
    ("constraint", "ring"),
    [
        ("server capacity", {"workers": ["c", "c"], "routes": [["c"], ["c"]]}),
        ("switch", {"workers": ["sw"], "routes": []}),
        ("routes", {"workers": ["a", "c"], "routes": [["a", "sw", "c"]]}),
        ("routes", {"workers": ["a"], "routes": [["a"]]}),
        ("route ends", {"workers": ["a", "c"], "routes": [["a", "sw", "c"], ["a"]]}),
        ("missing link", {"workers": ["a", "c"], "routes": [["a", "c"], ["c", "sw", "a"]]}),
        ("simple route", {"workers": ["a", "c"], "routes": [["a", "sw", "a", "sw", "c"], ["c", "sw", "a"]]}),
        (
            "link capacity",
            {"workers": ["a", "c", "a"], "routes": [["a", "sw", "c"], ["c", "sw", "a"], ["a", "sw", "a"]]},
        ),
        ("ring size", {"workers": ["a"] * 4, "routes": [["a"]] * 4}),
    ],
)
def test_every_violation_is_found(constraint: str, ring: dict[str, Any]) -> None:
    assert constraint in [violation.constraint for violation in solve(j=ring).violations]


def test_a_long_route_is_looked_at_once() -> None:
    """Each node was counted anew: 1 MB of a stranger's answer took the checker minutes, 5 MB hours."""
    wanders = ["a", "sw"] * 400_000 + ["c"]
    found = solve(j={"workers": ["a", "c"], "routes": [wanders, ["c", "sw", "a"]]}).violations
    assert [one.message for one in found if one.constraint == "simple route"] == [
        "job j, route 0: visits a, sw more than once"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["links"].append({"from": "a", "to": "a", "bandwidth": 1}), "to itself"),
        (lambda d: d["links"].append({"from": "a", "to": "x", "bandwidth": 1}), 'links[6].to: there is no server "x"'),
        (lambda d: d["links"].append({"from": "a", "to": "sw", "bandwidth": 1}), "is already links[0]"),
        (lambda d: d["jobs"][0].update(demand={"gpu": 0}), "at least one resource"),
        (lambda d: d["jobs"][0].update(utility=[]), "jobs[0].utility"),
        (lambda d: d["jobs"][0].update(id="i"), "already the id"),
        (lambda d: d["servers"][0].update(resources={"gpu": -1}), "servers[0].resources.gpu"),
    ],
)
def test_bad_instances_are_refused(change: Any, message: str) -> None:
    broken = data()
    change(broken)
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("]", r"\]")):
        GVneInstance.parse(broken)


@pytest.mark.parametrize(
    "solution",
    [
        [],
        {},
        {"rings": {"x": TWO}},
        {"rings": {"j": {"workers": ["a"]}}},
        {"rings": {"j": {"workers": [], "routes": []}}},
        {"rings": {"j": {"workers": ["x"], "routes": []}}},
        {"rings": {"j": {"workers": ["a", "c"], "routes": [[], ["c", "sw", "a"]]}}},
        {"rings": {}, "more": 1},
    ],
)
def test_malformed_solutions_are_refused(solution: Any) -> None:
    with pytest.raises(InputError, match="solution"):
        check(GVneInstance.parse(data()), solution)


def test_files_keep_the_names_of_the_format() -> None:
    instance = GVneInstance.parse(data())
    assert instance.to_dict()["links"][0] == {"from": "a", "to": "sw", "bandwidth": 0.3}
    assert GVneInstance.parse(instance.to_dict()) == instance


def test_floors_are_robust() -> None:
    assert most_multiples(0.3, 0.1) == 3 and most_multiples(0.29, 0.1) == 2 and most_multiples(1, 0) is None
    assert worker_cap({"gpu": 0.3, "memory": 5}, {"gpu": 0.1, "memory": 2.5}, 9) == 2
    assert worker_cap({}, {"gpu": 1}, 9) == 0 and worker_cap({"gpu": 4}, {"gpu": 1, "disk": 0}, 3) == 3


def test_routes_become_simple_and_workers_of_a_server_stand_together() -> None:
    assert without_cycles([0, 1, 2, 1, 3, 0, 4]) == [0, 4]
    # 0 and 2 are visited twice by one closed walk
    workers = [0, 2, 0, 2]
    routes = [[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0]]
    hosts, paths = contiguous_ring(workers, routes)
    assert hosts == [0, 0, 2, 2] and paths == [[0], [0, 1, 2], [2], [2, 1, 0]]


@pytest.mark.parametrize(("beyond", "feasible"), [(1e-6, False), (1e-8, False), (1e-12, True)])
@pytest.mark.parametrize("what", ["server capacity", "link capacity"])
def test_capacities_may_be_missed_by_the_tolerance_and_no_more(what: str, beyond: float, feasible: bool) -> None:
    given = data()
    given["jobs"] = [{"id": "j", "demand": {"gpu": 1}, "bandwidth": 0.3, "utility": [1, 2]}]
    if what == "server capacity":
        given["jobs"][0]["demand"]["gpu"] = 1 + beyond  # c has 1
    else:
        given["jobs"][0]["bandwidth"] = 0.3 * (1 + beyond)  # links have 0.3
    report = check(GVneInstance.parse(given), {"rings": {"j": TWO}})
    assert report.feasible is feasible
    filled = 1 if what == "server capacity" else 4  # c; there and back over the switch
    assert [violation.constraint for violation in report.violations] == [what] * (0 if feasible else filled)


def one_way() -> dict[str, Any]:
    """Three servers around a circle of one-way links a -> b -> c -> a."""
    return {
        **data(),
        "servers": [{"id": name, "resources": {"gpu": 1}} for name in "abc"],
        "links": [{"from": s, "to": t, "bandwidth": 1} for s, t in ("ab", "bc", "ca")],
    }


def test_a_link_is_used_in_its_own_direction_only() -> None:
    instance = GVneInstance.parse(one_way())
    along = {"workers": ["a", "b", "c"], "routes": [["a", "b"], ["b", "c"], ["c", "a"]]}
    report = check(instance, {"rings": {"i": along}})
    assert report.feasible and report.details["link_use"] == pytest.approx(0.1)
    against = {"workers": ["a", "c", "b"], "routes": [["a", "c"], ["c", "b"], ["b", "a"]]}
    report = check(instance, {"rings": {"i": against}})
    assert [v.constraint for v in report.violations] == ["missing link"] * 3
    assert [v.message.split("link ")[1] for v in report.violations] == ["a -> c", "c -> b", "b -> a"]
    back = {"workers": ["a", "b"], "routes": [["a", "b"], ["b", "a"]]}
    assert [v.constraint for v in check(instance, {"rings": {"i": back}}).violations] == ["missing link"]
    around = {"workers": ["a", "b"], "routes": [["a", "b"], ["b", "c", "a"]]}
    assert check(instance, {"rings": {"i": around}}).feasible


def test_a_server_has_nothing_of_a_resource_that_it_does_not_list() -> None:
    made = data()
    made["jobs"][1]["demand"] = {"gpu": 0.1, "memory": 0.5}
    report = check(GVneInstance.parse(made), {"rings": {"i": {"workers": ["b"], "routes": []}}})
    assert [v.constraint for v in report.violations] == ["server capacity"]
    assert report.violations[0].amount == 0.5


@pytest.mark.parametrize(
    ("ring", "constraint", "amount"),
    [
        ({"workers": ["b"] * 4, "routes": [["b"]] * 4}, "ring size", 1),
        ({"workers": ["b"], "routes": [["b"]]}, "routes", 1),
        ({"workers": ["b", "b"], "routes": [["b"]]}, "routes", 1),
    ],
)
def test_violations_say_by_how_much(ring: dict[str, Any], constraint: str, amount: float) -> None:
    made = data()
    made["servers"][1]["resources"] = {"gpu": 1}
    report = check(GVneInstance.parse(made), {"rings": {"i": ring}})
    assert [(v.constraint, v.amount) for v in report.violations] == [(constraint, amount)]


@pytest.mark.parametrize(("amount", "fits"), [(1.000000001, True), (1.0000000010001, False)])
def test_the_tolerance_itself_still_fits(amount: float, fits: bool) -> None:
    made = one_way()
    made["jobs"] = [{"id": "i", "demand": {"gpu": amount}, "bandwidth": amount, "utility": [1, 1, 1]}]
    along = {"workers": ["a", "b", "c"], "routes": [["a", "b"], ["b", "c"], ["c", "a"]]}
    report = check(GVneInstance.parse(made), {"rings": {"i": along}})
    assert {v.constraint for v in report.violations} == (set() if fits else {"server capacity", "link capacity"})


def test_rings_that_are_no_object() -> None:
    for solution in ([], 5, "rings"):
        with pytest.raises(InputError, match="solution: must be a JSON object, got "):
            check(GVneInstance.parse(data()), solution)


FAR = {"workers": ["a", "c", "a"], "routes": [["a", "sw", "c"], ["c", "sw", "a"], ["a"]]}
"""Two workers on server a, one on c."""


def test_shares_amounts_and_numbers_of_several_rings() -> None:
    """a holds j twice and i once: 2.1 of 2; the links carry 0.2 + 0.1 of 0.3."""
    report = solve(j=FAR, i={"workers": ["a", "c"], "routes": [["a", "sw", "c"], ["c", "sw", "a"]]})
    assert [(v.constraint, v.message) for v in report.violations] == [
        ("server capacity", "server a, gpu: 2.1 used, 2 there"),
        ("server capacity", "server c, gpu: 1.1 used, 1 there"),
    ]
    assert [v.amount for v in report.violations] == pytest.approx([0.1, 0.1])
    assert report.details == {"workers": {"j": 3, "i": 2}, "server_use": pytest.approx(1.1), "link_use": 1.0}
    assert report.objective == 0  # -1 of three workers, 1 of two


def test_a_full_link_says_by_how_much() -> None:
    twice = {"workers": ["a", "c", "a"], "routes": [["a", "sw", "c"], ["c", "sw", "a"], ["a", "sw", "a"]]}
    found = [v for v in solve(i=twice, j=FAR).violations if v.constraint == "link capacity"]
    assert [v.message for v in found] == [
        "link a -> sw: 0.4 used, 0.3 there",
        "link sw -> a: 0.4 used, 0.3 there",
    ]
    assert [v.amount for v in found] == pytest.approx([0.1, 0.1])


def test_a_link_without_bandwidth_carries_nothing() -> None:
    made = one_way()
    made["links"][0]["bandwidth"] = 0
    report = check(GVneInstance.parse(made), {"rings": {"i": AROUND}})
    assert [(v.message, v.amount) for v in report.violations] == [("link a -> b: 0.1 used, 0 there", 0.1)]
    assert report.details["link_use"] == pytest.approx(0.1)  # of the links that have some
    assert report.details["server_use"] == pytest.approx(0.1)


def test_links_after_one_that_does_not_exist_are_checked_too() -> None:
    made = one_way()
    made["links"][2]["bandwidth"] = 0.05
    short = {"workers": ["a", "c"], "routes": [["a", "c"], ["c", "a"]]}
    report = check(GVneInstance.parse(made), {"rings": {"i": short}})
    assert [v.message for v in report.violations] == [
        "job i, route 0: there is no link a -> c",
        "link c -> a: 0.1 used, 0.05 there",
    ]


AROUND = {"workers": ["a", "b", "c"], "routes": [["a", "b"], ["b", "c"], ["c", "a"]]}


def test_loads_are_measured_and_everything_else_is_a_violation() -> None:
    instance = GVneInstance.parse(data())
    over = {"j": FAR, "i": {"workers": ["a", "c"], "routes": [["a", "sw", "c"], ["c", "sw", "a"]]}}
    report = check_loads(instance, {"rings": over})
    assert report.feasible and report.objective == 0
    assert [line.rpartition(", factor")[0] for line in report.details["overloaded"]] == [
        "server a, gpu: 2.1 used, 1.05 times what is there",
        "server c, gpu: 1.1 used, 1.1 times what is there",
    ]
    assert report.details["beyond"] == 0
    assert report.details["workers"] == {"j": 3, "i": 2}
    assert check_loads(instance, {"rings": {}}).objective == 0
    one = check_loads(instance, {"rings": {"j": TWO}})
    assert one.objective == 2.5 and one.details["overloaded"] == []


def test_loads_are_refused_as_solutions_are() -> None:
    instance = GVneInstance.parse(data())
    large = {"i": {"workers": ["b"] * 5, "routes": [["b"]] * 5}, "j": TWO}
    report = check_loads(instance, {"rings": large})
    assert [(v.constraint, v.amount) for v in report.violations] == [("ring size", 2)]
    assert report.objective is None and check(instance, {"rings": large}).objective is None
    against = {"workers": ["a", "b"], "routes": [["a", "b"], ["b", "sw", "a"]]}
    missing = check_loads(instance, {"rings": {"i": against}})
    assert [v.constraint for v in missing.violations] == ["missing link"]
    assert len(missing.details["overloaded"]) == 1 and "link a -> b: 0.1 used" in missing.details["overloaded"][0]
    astray = {"workers": ["a", "b"], "routes": [["a", "x", "b"], ["b", "sw", "a"]]}
    for unknown in ({"x": TWO}, {"i": {"workers": ["x"], "routes": []}}, {"i": astray}):
        with pytest.raises(InputError, match=r'the instance has no (job|server) "x"'):
            check_loads(instance, {"rings": unknown})


def test_a_ring_that_is_too_large_leaves_no_objective() -> None:
    report = solve(j={"workers": ["a"] * 4, "routes": [["a"]] * 4}, i={"workers": ["b"], "routes": []})
    assert report.objective is None
    excess = {one.constraint: one.amount for one in report.violations}
    assert excess == {"ring size": 1.0, "server capacity": 2.0}


def test_violations_come_in_the_order_of_names() -> None:
    instance = data()
    switches = [f"s{k}" for k in range(8)]
    instance["servers"] += [{"id": name, "resources": {}} for name in switches]
    report = check(GVneInstance.parse(instance), {"rings": {"j": {"workers": switches[::-1], "routes": []}}})
    found = [one.message for one in report.violations if one.constraint == "switch"]
    assert found == [f"job j: {name} has no resources, it hosts no worker" for name in switches]
