"""``schedgap judge``: snapshots read, decisions judged, reasons that are solved exactly, bad input in one line."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import Data, cluster, node, pod, running

import schedgap
from schedgap.benchmarks.snapshots.kubernetes import Kubernetes, quantity
from schedgap.benchmarks.snapshots.reading import read_snapshot
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError


def written(tmp_path: Path, data: Any) -> Path:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("16Gi", Fraction(2**34)),
        ("2", Fraction(2)),
        ("1e3", Fraction(1000)),
        ("1.5k", Fraction(1500)),
        ("250u", Fraction(1, 4000)),
        (".5", Fraction(1, 2)),
        ("1E", Fraction(10**18)),
        ("2Mi", Fraction(2**21)),
    ],
)
def test_quantities_as_kubernetes_writes_them(text: str, value: Fraction) -> None:
    assert quantity(text, "x") == value


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1GiB", "1e", "-1", "0x1", None, [], "1.2.3"])
def test_what_is_no_quantity_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match=r"^here: "):
        quantity(text, "here")


def test_a_listing_becomes_an_instance(tmp_path: Path) -> None:
    read = read_snapshot(written(tmp_path, cluster()), names=True)
    made = read.instance
    assert read.form == "kubernetes" and made.levels == ("rack",)
    assert [sum(one.gpus) for one in made.nodes] == [1000, 4000, 1000, 4000]
    assert made.nodes[0].free == {"cpu": 31350, "memory": 130048, "pods": 109}
    assert [(gang.id, gang.size, gang.required, gang.weight) for gang in made.gangs] == [
        ("ml/train", 3, "rack", 6.0),
        ("ml/notebook alone", 1, None, 1.0),
    ]
    assert [(one.id, one.price, one.move_price) for one in made.running] == [("ml/a", 10, 1), ("ml/b", 10, 1)]
    assert read.decision == {"placement": {}}


def test_names_are_replaced_unless_they_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path, cluster())
    text = json.dumps(read_snapshot(path).instance.to_dict()) + json.dumps(read_snapshot(path).decision)
    assert not [word for word in ("train", "notebook", "node0", "rack0", "ml/", '"rack"') if word in text]


def test_names_of_our_own_are_replaced_too(tmp_path: Path) -> None:
    data = schedgap.generate("gang-placement", "tiny", seed=1).to_dict()
    data["nodes"][0]["labels"] = {"owner": "alice"}
    data["gangs"][0]["pods"][0] |= {"gpu": 400, "selector": {"labels": {"owner": "alice"}}}
    data["running"] = [{"id": "secret", "node": data["nodes"][0]["id"], "movable": True, "price": 1}]
    path = written(tmp_path, data)
    kept, read = read_snapshot(path, names=True), read_snapshot(path)
    assert kept.instance.to_dict()["running"][0]["id"] == "secret"
    text = json.dumps(read.instance.to_dict())
    assert not [word for word in ("alice", "owner", "secret", '"n0"', '"g0"', '"q"', '"r0"', '"rack"') if word in text]
    best = [schedgap.solve(one.instance).objective for one in (kept, read)]
    assert best[0] == best[1]


def test_why_a_gang_is_lost_is_solved_exactly(tmp_path: Path) -> None:
    """The gang wants 6 GPUs in one rack; each has 5 free. Without the level it fits, and so it does after one move."""
    found = schedgap.judge(written(tmp_path, cluster()), names=True)
    train, notebook = found.lost
    assert (train.gang, train.fits, train.alone) == ("ml/train", False, False)
    assert train.reasons == ("would fit without its required level",)
    assert (train.price, train.moves_proven) == (1, True)
    assert notebook.fits
    assert found.best.status == "optimal" and found.ratio == (float("inf"), "optimum")
    assert found.values["weight"] == 0 and found.best_values["weight"] == 1


def test_a_gang_that_no_moves_admit_is_told(tmp_path: Path) -> None:
    data = cluster()
    for one in data["items"]:
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith("train"):
            one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "8"
    train = schedgap.judge(written(tmp_path, data)).lost[0]
    assert train.moves is None and train.moves_proven and train.reasons[0].startswith("capacity")


def test_bound_pods_are_the_decision(tmp_path: Path) -> None:
    data = cluster()
    data["items"][-1]["spec"]["nodeName"] = "node0"
    found = schedgap.judge(written(tmp_path, data), names=True)
    assert found.decision["placement"] == {
        "ml/notebook alone": [{"group": 0, "node": "node0", "devices": [3]}],
    }
    assert found.report.feasible and found.ratio == (1.0, "optimum") and found.verdict == "the decision is optimal"


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({}, {0, 1, 2}),
        ({"nodeSelector": {"disk": "node1"}}, {1}),
        ({"tolerations": [{"key": "spot", "operator": "Exists"}]}, {0, 1, 2, 3}),
        ({"tolerations": [{"key": "spot", "value": "no"}]}, {0, 1, 2}),
        ({"tolerations": [{"operator": "Exists"}]}, {0, 1, 2, 3, 4}),
    ],
)
def test_labels_taints_and_cordons_say_where_a_pod_may_go(spec: Data, nodes: set[int]) -> None:
    items = [node(f"node{n}", 1, "r") for n in range(3)]
    items.append(node("node3", 1, "r", taints=[{"key": "spot", "value": "yes", "effect": "NoSchedule"}]))
    items.append(node("node4", 1, "r", unschedulable=True))
    assert set(Kubernetes(items, "x").allowed(pod("p", 1, **spec))) == nodes


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ({"key": "disk", "operator": "In", "values": ["node0", "node2"]}, {0, 2}),
        ({"key": "disk", "operator": "NotIn", "values": ["node0"]}, {1, 2}),
        ({"key": "gone", "operator": "Exists"}, set()),
        ({"key": "gone", "operator": "DoesNotExist"}, {0, 1, 2}),
        ({"key": "size", "operator": "Gt", "values": ["1"]}, {2}),
        ({"key": "size", "operator": "Lt", "values": ["1"]}, {0}),
    ],
)
def test_required_affinity(expression: Data, nodes: set[int]) -> None:
    items = [node(f"node{n}", 1, "r") for n in range(3)]
    for n, one in enumerate(items):
        one["metadata"]["labels"]["size"] = str(n)
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert set(Kubernetes(items, "x").allowed(pod("p", 1, affinity=affinity))) == nodes


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    data = cluster()
    data["items"].append({"kind": "Service", "metadata": {"name": "s"}})
    data["items"].append(running("gone", 1, "elsewhere"))
    data["items"].append({**pod("done", 1), "status": {"phase": "Succeeded"}})
    data["items"][-4]["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1}]
    unread = read_snapshot(written(tmp_path, data)).unread
    assert unread == {
        "objects of kind Service": 1,
        "pods on nodes that are not listed": 1,
        "pods that have ended": 1,
        "pods with topologySpreadConstraints": 1,
    }


def test_rays_decision_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ray 2.60 with STRICT_PACK on fake nodes of 4, 4, 8 and 8 GPUs placed the two groups of 4 on the nodes of 8."""
    data = schedgap.generate("gang-placement", "small-first").to_dict()
    seats = {"g0": "n2", "g1": "n3"}
    data["reference_decision"] = {
        "placement": {g: [{"group": 0, "node": n, "devices": [0, 1, 2, 3]}] for g, n in seats.items()}
    }
    path = written(tmp_path, data)
    assert main(["judge", str(path), "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decision"]["components"] == {"weight": 8.0}
    assert told["best"]["components"] == {"weight": 24.0}
    assert (told["ratio"], told["ratio_to"], told["best"]["status"]) == (3.0, "optimum", "optimal")
    assert [(one["gang"], one["placed_in_best"]) for one in told["lost"]] == [("gang-2", True), ("gang-3", True)]
    page = (tmp_path / "out" / "judge.html").read_text()
    assert "8 where 24 is possible" in page and "http" not in page and page.count("class='node'") == 8
    for name, objective in (("decision", 8), ("best", 24)):
        out = tmp_path / "out"
        assert schedgap.check(out / "instance.json", out / f"{name}.json").objective == objective


def _without(data: Data, *path: Any) -> Data:
    found = copy.deepcopy(data)
    inner: Any = found
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return found


def _with(data: Data, *path: Any, value: Any) -> Data:
    found = copy.deepcopy(data)
    inner: Any = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ([], "a snapshot must be a JSON object, got list"),
        ({"items": {}}, "items: must be a list"),
        ({"items": []}, "items: there is no node"),
        ({"items": [3]}, "items[0].kind: is missing"),
        (_without(cluster(), "items", 0, "metadata", "name"), "items[0].metadata.name: is missing"),
        (_without(cluster(), "items", 0, "status", "allocatable"), "items[0].status.allocatable: is missing"),
        (
            _with(cluster(), "items", 0, "status", "allocatable", "cpu", value="many"),
            "allocatable.cpu: 'many' is no quantity",
        ),
        (_with(cluster(), "items", 4, "spec", "containers", value=3), "items[4].spec.containers: must be a list"),
        (_with(cluster(), "items", 4, "spec", "priority", value="x"), "items[4].spec.priority: must be a whole number"),
        (_with(cluster(), "items", 0, "status", "conditions", value=[3]), "items[0].status.conditions[0]: must be an"),
        (
            _with(cluster(), "items", 0, "metadata", "labels", "rack", value=[]),
            "items[0].metadata.labels.rack: must be",
        ),
        (
            _with(cluster(), "items", 0, "status", "allocatable", "nvidia.com/gpu", value="1e12"),
            "items[0].status.allocatable: a node with 1000000000000 GPUs, at most",
        ),
        (
            _with(cluster(), "items", 0, "status", "allocatable", "cpu", value="1e999"),
            "1e999 is not from 0 to 2^63 - 1",
        ),
        ({"problem": "gang-placement", "nodes": []}, "nodes: must have at least 1"),
        ({"problem": "hadar"}, "problem"),
    ],
)
def test_bad_snapshots_are_refused_in_one_line(
    data: Any, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", str(written(tmp_path, data))]) == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and "snapshot.json" in told and line.lower() in told.lower()


def test_a_decision_that_breaks_rules_has_no_ratio(tmp_path: Path) -> None:
    data = schedgap.generate("gang-placement", "small-first").to_dict()
    data["reference_decision"] = {"placement": {"g3": [{"group": 0, "node": "n0", "devices": [0]}]}}
    found = schedgap.judge(written(tmp_path, data))
    assert not found.report.feasible and "breaks" in found.verdict and "devices" in found.to_text()
