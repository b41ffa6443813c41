"""Groups of a gang with levels of their own: what is refused, what is feasible, who can place it."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest

import schedgap
from schedgap.catalogue.gang_placement import PROBLEM
from schedgap.catalogue.method import Kind
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.certificates.checker import digest
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import check, plain

Data = dict[str, Any]
RULES = [method.id for method in PROBLEM.methods if method.kind is Kind.HEURISTIC]


def racks(free: str, subgroups: dict[str, str], groups: list[tuple[int, str]], **more: Any) -> Data:
    """Racks of nodes with so many free devices ("21 2": two nodes, and one), one gang of (count, subgroups) groups."""
    nodes = [
        {"id": f"r{r}n{n}", "domain": [f"r{r}"], "gpus": [1000] * int(number)}
        for r, rack in enumerate(free.split())
        for n, number in enumerate(rack)
    ]
    pods = [{"count": count, "gpu": 1000} | ({"subgroups": names.split()} if names else {}) for count, names in groups]
    gang = {"id": "g", "pods": pods, "subgroups": [{"id": name, "required": at} for name, at in subgroups.items()]}
    data = {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "objectives": ["weight"]}
    return data | {"gangs": [gang | more]}


TWO = racks("22", {"a": "rack", "b": "node"}, [(1, "a"), (2, "a b")])


def changed(value: Any, *path: str | int) -> Data:
    data = copy.deepcopy(TWO)
    inner: Any = data["gangs"][0]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            changed("x", "subgroups", 0, "required"),
            'gangs[0].subgroups[0].required: there is no level "x", one of: rack',
        ),
        (
            changed("b", "subgroups", 0, "id"),
            'gangs[0].subgroups[1].id: "b" is already the id of gangs[0].subgroups[0]',
        ),
        (changed(["c"], "pods", 0, "subgroups"), 'gangs[0].pods[0].subgroups: the gang has no subgroup "c"'),
        (changed(["a"], "pods", 1, "subgroups"), "gangs[0].subgroups[1]: no group of pods is in it"),
        (changed(["a", "a"], "pods", 0, "subgroups"), 'gangs[0].pods[0].subgroups[1]: "a" is there twice'),
        (changed([], "pods", 0, "subgroups"), "gangs[0].pods[0].subgroups"),
        (changed([], "subgroups"), "gangs[0].subgroups"),
    ],
)
def test_subgroups_that_lead_nowhere_are_one_line(data: Data, line: str) -> None:
    with pytest.raises(InputError) as error:
        GangPlacementInstance.parse(data)
    assert line in str(error.value)
    asked = plain(GangPlacementInstance.parse(TWO)) | {"gangs": data["gangs"]}
    with pytest.raises(Rejected):
        check_form(asked)


def check_form(data: Data) -> None:
    """Whether the stand-alone checker takes the instance."""
    from schedgap.solvers.certificates.instances import valid

    valid(data)


@pytest.mark.parametrize(
    ("where", "violations"),
    [
        ("r0n0.0 r0n1.0 r0n1.1", set()),
        ("r1n0.0 r0n1.0 r0n1.1", {"subgroup"}),  # a in two racks
        ("r0n0.0 r0n1.0 r0n0.1", {"subgroup"}),  # b on two nodes
    ],
)
def test_the_checker_finds_subgroups_in_two_domains(where: str, violations: set[str]) -> None:
    data = TWO | {"nodes": [*TWO["nodes"], {"id": "r1n0", "domain": ["r1"], "gpus": [1000]}]}
    seats = [seat.split(".") for seat in where.split()]
    pods = [{"group": k, "node": node, "devices": [int(d)]} for k, (node, d) in zip((0, 1, 1), seats, strict=True)]
    report = PROBLEM.check(GangPlacementInstance.parse(data), {"placement": {"g": pods}})
    assert {violation.constraint for violation in report.violations} == violations


@pytest.mark.parametrize(
    ("data", "weight"),
    [
        (racks("11 11", {"a": "rack", "b": "rack"}, [(2, "a"), (2, "b")]), 1),  # a rack each
        (racks("11 11", {"a": "rack"}, [(3, "a"), (1, "")]), 0),  # no rack has three
        (racks("11 1", {"a": "rack"}, [(2, "a"), (1, "")]), 1),  # one group is free to go elsewhere
        (racks("11 1", {"a": "rack"}, [(2, "a"), (1, "")], required="rack"), 0),  # the gang is not
        (racks("2 11", {"a": "node", "b": "rack"}, [(2, "a"), (2, "b")]), 1),
        (racks("2 11", {"a": "node", "b": "node"}, [(2, "a"), (2, "b")]), 0),
        (racks("2 22", {"a": "rack", "b": "node"}, [(2, "a"), (2, "a b")]), 1),  # nested
        (racks("2 2", {"a": "rack", "b": "node"}, [(2, "a"), (2, "a b")]), 0),
        (
            racks("11 1 1", {"a": "rack", "b": "rack"}, [(1, "a"), (1, "a b"), (1, "b")]),
            0,
        ),  # crossing: one rack for all
        (racks("1 111", {"a": "rack", "b": "rack"}, [(1, "a"), (1, "a b"), (1, "b")]), 1),
        (racks("2 1", {"a": "rack"}, [(3, "a")], least=2), 1),  # what is placed is together
        (racks("1 22", {"a": "rack", "b": "node"}, [(2, "a"), (2, "b")], required="rack"), 1),  # the second rack
    ],
)
@pytest.mark.parametrize("method", ["staged", "highs", "cpsat"])
def test_levels_of_subgroups_decide(data: Data, weight: int, method: str) -> None:
    result = schedgap.solve(data, method=method)
    assert result.solution is not None
    report = PROBLEM.check(GangPlacementInstance.parse(data), result.solution)
    assert (result.status.value, Fraction(report.details["components"]["weight"])) == ("optimal", weight)


@pytest.mark.parametrize("rule", RULES)
def test_rules_keep_levels_of_subgroups(rule: str) -> None:
    """They place what fits in one way only, and nothing that does not; one has a node for each pod alone."""
    fits = racks("1 21", {"a": "rack", "b": "node"}, [(2, "b"), (1, "a")])
    fits["gangs"][0]["required"] = "rack"
    for data, weight in (
        (fits, int(rule != "ray-strict-spread")),
        (racks("11 11", {"a": "node"}, [(2, "a"), (1, "")]), 0),
    ):
        result = schedgap.solve(data, method=rule)
        assert result.solution is not None
        report = PROBLEM.check(GangPlacementInstance.parse(data), result.solution)
        assert report.feasible and Fraction(report.details["components"]["weight"]) == weight


def test_subgroups_are_part_of_the_instance_that_a_certificate_names() -> None:
    """Another level or member is another digest; without subgroups the digest stays."""
    others = [TWO, changed("node", "subgroups", 0, "required"), changed(["a", "b"], "pods", 0, "subgroups")]
    assert len({digest(plain(GangPlacementInstance.parse(other))) for other in others}) == len(others)
    bare = racks("22", {}, [(1, "")])
    bare["gangs"][0].pop("subgroups")
    assert digest(plain(GangPlacementInstance.parse(bare))) == (
        "6567e0ff6d6b932ea142c28236fee764677c92b04c1ed16de7defe40d9341f47"
    )


def test_a_certificate_says_that_a_subgroup_keeps_a_gang_out() -> None:
    instance = GangPlacementInstance.parse(racks("11 11", {"a": "node"}, [(2, "a"), (1, "")]))
    certified = schedgap.certify(instance)
    assert certified.optimal and certified.certificate is not None
    assert check(instance, certified.certificate, {"placement": {}}).bound == 0
    other = GangPlacementInstance.parse(racks("11 11", {"a": "rack"}, [(2, "a"), (1, "")]))
    with pytest.raises(Rejected):
        check(other, certified.certificate)
