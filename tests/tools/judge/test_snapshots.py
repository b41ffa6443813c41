"""``schedgap judge``: snapshots read, decisions judged, reasons that are solved exactly, bad input in one line."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import Data, cluster, node, pod, running

import schedgap
from schedgap.catalogue.run import run_method
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gang_placement.instance import Gang
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Deadline, SolveOptions, Status, clock
from schedgap.tools.judge.asking import Asking
from schedgap.tools.judge.kubernetes.cluster import WHOLLY, Cluster
from schedgap.tools.judge.kubernetes.gangs import PREFERRED, REQUIRED
from schedgap.tools.judge.kubernetes.listing import Kubernetes, quantity
from schedgap.tools.judge.kubernetes.taking import Taking
from schedgap.tools.judge.reading import read_snapshot


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
    assert made.nodes[0].free == {"cpu": 627, "memory": 127, "pods": 109}  # of 50 thousandths, of a GiB
    assert [(gang.id, gang.size, gang.required, gang.weight) for gang in made.gangs] == [
        ("ml/train", 3, "rack", 6.0),
        ("ml/notebook", 1, None, 1.0),
    ]
    assert [(one.id, one.price, one.move_price) for one in made.running] == [("ml/a", 10, 1), ("ml/b", 10, 1)]
    assert read.decision == {"placement": {}}


def test_names_are_replaced_unless_they_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path, cluster())
    text = json.dumps(read_snapshot(path).instance.to_dict()) + json.dumps(read_snapshot(path).decision)
    assert not [word for word in ("train", "notebook", "node0", "rack0", "ml/", '"rack"') if word in text]


def test_names_as_long_as_kubernetes_allows_are_judged(tmp_path: Path) -> None:
    """A namespace has 63 characters, the name of a pod or node 253, a label 317."""
    text, space, rack = json.dumps(cluster()), "s" * 63, f"{'l' * 253}/{'r' * 63}"
    for short in ("node0", "node1", "train", "notebook", "a", "b"):
        long = f"{'x' * (253 - len(short))}{short}"
        text = text.replace(f'"{short}"', f'"{long}"').replace('"ml"', f'"{space}"').replace('"rack"', f'"{rack}"')
    usual = read_snapshot(written(tmp_path, cluster()))
    path = written(tmp_path, json.loads(text))
    numbered, named = (read_snapshot(path, names=names) for names in (False, True))
    assert numbered.instance == usual.instance and not numbered.unread
    made = named.instance
    kept = [one.id for part in (made.nodes, made.gangs, made.running) for one in part]
    assert len(set(kept)) == len(kept) and max(map(len, (*kept, *made.levels))) <= 200
    assert made.gangs[0].required == made.levels[0]
    assert named.unread == {"names of more than 200 characters, shortened": 7}


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


@pytest.mark.parametrize("sizes", [("8", "8", "8"), ("3", "3", "3")])
def test_that_no_moves_admit_a_gang_is_certified(
    sizes: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node has no 8 devices; of three pods with 3 of a node's 4 only two are in a rack of two nodes."""
    data, out = cluster(), tmp_path / "out"
    for one in data["items"]:
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith("train"):
            limits = one["spec"]["containers"][0]["resources"]["limits"]
            limits["nvidia.com/gpu"] = sizes[int(one["metadata"]["name"][-1])]
    train = schedgap.judge(written(tmp_path, data), out=out).lost[0]
    assert train.moves is None and train.moves_proven and train.file == "lost-0.cert"
    told = "no moves admit it, certified by lost-0.cert"
    assert told in train.line() and told in (out / "judge.html").read_text()
    (bare,) = (one for one in schedgap.judge(tmp_path / "snapshot.json").lost if one.gang == train.gang)
    assert bare.line().endswith("admit it, certified") and "nothing of lower priority runs" in bare.line()
    assert (bare.to_dict()["certificate"], bare.to_dict()["certified"]) == (None, True)
    assert json.loads((out / "judge.json").read_text())["lost"][0]["certificate"] == "lost-0.cert"
    files = [str(out / name) for name in ("lost-0.json", "lost-0.cert", "nothing.json")]
    assert main(["check", files[0], files[2], "--certificate", files[1]]) == 0
    assert "optimal" in capsys.readouterr().out
    done = subprocess.run([sys.executable, str(checker.__file__), *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_certificate_has_the_number_of_its_gang(tmp_path: Path) -> None:
    data = schedgap.generate("gang-placement", "small-first").to_dict()
    data["gangs"].append({"id": "big", "pods": [{"count": 1, "gpu": 9000}]})
    data["reference_decision"] = {"placement": {"g0": [{"group": 0, "node": "n0", "devices": [0, 1, 2, 3]}]}}
    out = tmp_path / "out"
    found = schedgap.judge(written(tmp_path, data), out=out)
    assert [(lost.gang, lost.file) for lost in found.lost][2:] == [("gang-3", ""), ("gang-4", "lost-4.cert")]
    own = [out / "lost-3.json", out / "lost-list.cert"]
    for path in own:
        path.write_text("of a person")
    del data["gangs"][-1]
    schedgap.judge(written(tmp_path, data), out=out)
    assert sorted(out.glob("lost-*")) == own and not (out / "nothing.json").exists()


def test_without_time_for_it_an_engine_alone_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(*_: object) -> None:
        raise Unproven("no time")

    monkeypatch.setattr("schedgap.tools.judge.cures.prove", unproven)
    data = {"problem": "gang-placement", "nodes": [{"id": "a", "gpus": [1000]}]}
    data["gangs"] = [{"id": "g", "pods": [{"count": 2, "gpu": 1000}]}]
    found = schedgap.judge(written(tmp_path, data), out=tmp_path / "out")
    assert "nobody can place it, as one engine proves" in found.lost[0].line() and not list(
        (tmp_path / "out").glob("lost*")
    )


@pytest.mark.parametrize(
    ("free", "reason"),
    [
        ((2, 2, 0, 0), "would fit in one block, but not in one rack"),
        ((2, 0, 2, 0), "would fit in one zone, but not in one rack"),
        ((2, 0, 0, 2), "would fit without its required level"),
        ((2, 0, 0, 0), "capacity: 2 GPUs are free, 4 are wanted"),
    ],
)
def test_a_level_is_widened_step_by_step(free: tuple[int, ...], reason: str, tmp_path: Path) -> None:
    places = (("z0", "b0", "r0"), ("z0", "b0", "r1"), ("z0", "b1", "r2"), ("z1", "b2", "r3"))
    there = [
        {"id": f"n{n}", "domain": place, "gpus": [1000] * gpus}
        for n, (place, gpus) in enumerate(zip(places, free, strict=True))
    ]
    gang = {"id": "g", "required": "rack", "pods": [{"count": 4, "gpu": 1000}]}
    data = {"problem": "gang-placement", "levels": ["zone", "block", "rack"], "nodes": there, "gangs": [gang]}
    assert schedgap.judge(written(tmp_path, data), names=True).lost[0].reasons == (reason,)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ({"count": 1, "request": {"cpu": 8000}}, "would fit without its request for cpu"),
        ({"count": 2, "gpu": 1000, "request": {"cpu": 1500}}, "would fit without its request for cpu"),
        (
            {"count": 1, "request": {"cpu": 8000, "disk": 1}},
            "together: it does not fit with all of cpu (8000 a pod of 1, at most 2000 free on a node), disk",
        ),
        (
            {"count": 1, "gpu": 3000},
            "fragmentation: 4 GPUs are free where it may go, but not in pieces for 1 pod of 3 GPUs",
        ),
        ({"count": 3, "gpu": 2000}, "capacity: 4 GPUs are free, 6 are wanted"),
    ],
)
def test_what_is_short_is_what_is_short(pods: dict[str, Any], reason: str, tmp_path: Path) -> None:
    """A pod without a GPU was said to fail by pieces of GPUs."""
    there = [{"id": f"n{n}", "gpus": [1000, 1000], "free": {"cpu": 2000 * (n == 0)}} for n in range(2)]
    data = {"problem": "gang-placement", "nodes": there, "gangs": [{"id": "g", "pods": [pods]}]}
    assert schedgap.judge(written(tmp_path, data)).lost[0].reasons[0].startswith(reason)


def test_a_limit_of_pods_a_node_is_a_cause(tmp_path: Path) -> None:
    gang = {"id": "g", "per_node": 1, "pods": [{"count": 2, "gpu": 1000}]}
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000]}], "gangs": [gang]}
    assert schedgap.judge(written(tmp_path, data)).lost[0].reasons == ("would fit without its limit of pods a node",)


def test_nodes_that_do_not_say_how_many_pods_they_take_take_all(tmp_path: Path) -> None:
    """They took none, and every gang was lost by that."""
    data = cluster()
    for item in data["items"]:
        item.get("status", {}).get("allocatable", {}).pop("pods", None)
    read = read_snapshot(written(tmp_path, data))
    assert read.unread == {"nodes that do not say how many pods they take": 4}
    assert schedgap.judge(tmp_path / "snapshot.json").lost[1].fits


def test_no_cause_is_named_that_was_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragmentation was said even where the time was over before that was decided."""

    def undecided(asking: Asking, instance: Any, gang: Gang) -> Any:
        return (None, {"placement": {}}) if gang.required is None else placed_alone(asking, instance, gang)

    placed_alone = Asking.placed_alone
    monkeypatch.setattr(Asking, "placed_alone", undecided)
    gang = {"id": "g", "required": "node", "pods": [{"count": 1, "gpu": 3000}]}
    there = [{"id": f"n{n}", "gpus": [1000, 1000]} for n in range(2)]
    data = {"problem": "gang-placement", "nodes": there, "gangs": [gang]}
    assert schedgap.judge(written(tmp_path, data)).lost[0].reasons == (
        "4 GPUs are free where it may go, 3 are wanted; what keeps it out is undecided in the time",
        "undecided in the time: without its required level",
    )


def test_each_question_has_its_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question took all of it, so that nothing was known of the other gangs."""
    parts: list[float] = []

    def run(problem: Any, instance: Any, method: str, options: SolveOptions) -> Any:
        parts.append(options.deadline.remaining() or 0.0)
        return run_method(problem, instance, method, options)

    monkeypatch.setattr("schedgap.tools.judge.asking.run_method", run)
    gangs = [{"id": f"g{g}", "pods": [{"count": 1, "gpu": 3000, "request": {"x": 1}}]} for g in range(10)]
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000]}], "gangs": gangs}
    lost = schedgap.judge(written(tmp_path, data), time_limit=10_000).lost
    assert parts[0] <= 5_000 and len(lost) == 10
    # twenty questions are open, those of the first gang alone are three more: its request, what is short
    assert max(parts[1:3]) < 10_000 / 19 and all(one.alone is False for one in lost)


def test_the_nodes_own_limit_of_pods_is_told_as_such(tmp_path: Path) -> None:
    full = node("node0", 4, "r0")
    full["status"]["allocatable"]["pods"] = "1"
    data = {"items": [full, running("a", 1, "node0"), pod("b", 1)]}
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    assert lost.reasons == ("would fit, but the nodes' own limit of pods is reached",)


def test_a_pod_that_asks_for_no_nodes_is_not_told_of_a_selector(tmp_path: Path) -> None:
    data = {"items": [node("node0", 1, "r0"), node("node1", 4, "r0", unschedulable=True), pod("b", 2)]}
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    assert lost.reasons == ("would fit on nodes that do not take it (node1: cordoned)",)


def test_the_level_and_the_domain_of_a_gang_that_runs_in_part_are_one_condition(tmp_path: Path) -> None:
    """rack0, where a pod of it runs, has one device left, rack1 three: neither alone would let it fit as a whole."""
    notes = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    pods = [pod(f"t{n}", 1, "train", annotations=notes, **({} if n else {"nodeName": "node0"})) for n in range(3)]
    pods[0]["status"]["phase"] = "Running"
    data = {"items": [node("node0", 2, "rack0"), node("node1", 3, "rack1"), *pods]}
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    (told,) = lost.reasons
    assert told == "would fit without its required level"


def test_only_gpus_where_the_gang_may_go_count_as_free(tmp_path: Path) -> None:
    there: list[Data] = [{"id": "n0", "gpus": [1000] * 4, "gpu_model": "T4"}, {"id": "n1", "gpus": [1000] * 4}]
    pods = [{"count": 1, "gpu": 5000, "selector": {"models": ["T4"]}}]
    data = {"problem": "gang-placement", "nodes": there, "gangs": [{"id": "g", "pods": pods}]}
    (told,) = schedgap.judge(written(tmp_path, data)).lost[0].reasons
    assert told == "capacity: 4 GPUs are free where it may go, 5 are wanted"


@pytest.mark.parametrize("movable", [False, True])
def test_of_a_gang_that_fits_alone_nobody_says_that_nothing_admits_it(movable: bool, tmp_path: Path) -> None:
    """Two free devices, a gang of one, and a waiting shape of two: to place nothing is best, and others are none."""
    data: Data = {
        "problem": "gang-placement",
        "nodes": [{"id": "n", "gpus": [1000, 1000, 0]}],
        "running": [{"id": "r", "node": "n", "devices": {"2": 1000}, "movable": movable, "price": 1}],
        "gangs": [{"id": "g", "pods": [{"count": 1, "gpu": 1000}]}],
        "shapes": [{"gpu": 2000, "share": 1}],
        "objectives": ["fragmentation", "weight"],
    }
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    assert lost.alone and not lost.fits
    told = "fragmentation counts before weight, and fragmentation would be worse (1000 with it, 0 without)"
    admitted = "; it fits beside what the best decision places without moves" if movable else ""
    assert lost.line() == f"g (1 pod, 1 GPU): {told}{admitted}"


def test_moves_of_the_best_decision_itself_are_told_as_such(tmp_path: Path) -> None:
    """What waits wants whole nodes: r is ended for big on n0, and small on n1 would leave a device alone."""
    data: Data = {
        "problem": "gang-placement",
        "nodes": [{"id": "n0", "gpus": [0, 1000]}, {"id": "n1", "gpus": [1000, 1000], "gpu_model": "T4"}],
        "running": [{"id": "r", "node": "n0", "devices": {"0": 1000}, "movable": True, "price": 1}],
        "gangs": [
            {"id": "big", "weight": 2, "pods": [{"count": 1, "gpu": 2000}]},
            {"id": "small", "pods": [{"count": 1, "gpu": 1000, "selector": {"models": ["T4"]}}]},
        ],
        "shapes": [{"gpu": 2000, "share": 1}],
        "objectives": ["fragmentation", "weight", "moves"],
    }
    big, small = schedgap.judge(written(tmp_path, data), names=True).lost
    told = "admitted beside what the best decision places by ending r, price 1 (the least,"
    assert big.fits and told in small.line()


def test_moves_admit_a_gang_beside_what_the_best_decision_places(tmp_path: Path) -> None:
    """n0 has three free devices and n1 one: of the gangs of two one fits, and one more where a pod moves to n1."""
    there = [{"id": "n0", "gpus": [1000, 1000, 1000, 0]}, {"id": "n1", "gpus": [1000, 0]}]
    runs = [{"id": "r", "node": "n0", "devices": {"3": 1000}, "movable": True, "move_price": 2}]
    gangs = [
        {"id": f"g{g}", "weight": 3 - g, "required": "node", "pods": [{"count": 2, "gpu": 1000}]} for g in range(3)
    ]
    data = {"problem": "gang-placement", "nodes": there, "running": runs, "gangs": gangs}
    best, first, second = schedgap.judge(written(tmp_path, data), names=True).lost
    assert best.fits and best.moves is None
    assert (first.alone, first.price, first.moves_proven) == (True, 2, True)
    worth = "others are worth more (weight: 2 with it, 3 without)"
    assert f"{worth}; admitted beside what the best decision places by moving r to n1, price 2 (the" in first.line()
    assert second.line() == first.line().replace("g1", "g2").replace(
        "2 with", "1 with"
    )  # each alone beside the best, not both
    runs[0]["movable"] = False
    assert schedgap.judge(written(tmp_path, data), names=True).lost[1].line().endswith(f": {worth}")
    runs[0] |= {"movable": True, "selector": {"models": ["none"]}}
    told = schedgap.judge(written(tmp_path, data), names=True).lost[1].line()
    assert "no moves and preemptions admit it beside what the best decision places, as one engine proves" in told


def test_a_gang_is_admitted_with_its_fewest_pods(tmp_path: Path) -> None:
    """To end one pod is enough; the price was that of all pods that could come."""
    runs = [{"id": f"r{n}", "node": "n", "devices": {str(n): 1000}, "movable": True, "price": 10} for n in range(3)]
    gang = {"id": "g", "least": 1, "pods": [{"count": 3, "gpu": 1000}]}
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [0] * 3}], "running": runs, "gangs": [gang]}
    (lost,) = schedgap.judge(written(tmp_path, data)).lost
    assert (lost.price, lost.reasons) == (10, ("capacity: 0 GPUs are free, 1 is wanted",))


def test_without_a_bound_none_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found was shown as the bound."""

    def run(problem: Any, instance: Any, method: str, options: SolveOptions) -> Any:
        return replace(run_method(problem, instance, method, options), bound=None, status=Status.FEASIBLE)

    monkeypatch.setattr("schedgap.tools.judge.judge.run_method", run)
    data = schedgap.generate("gang-placement", "small-first").to_dict()
    data["reference_decision"] = {"placement": {"g0": [{"group": 0, "node": "n0", "devices": [0, 1, 2, 3]}]}}
    found = schedgap.judge(written(tmp_path, data))
    told: Any = found.to_dict()
    assert told["best"]["bound"] is None and told["ratio"] is None
    assert found.distance == "weight: 4 where 24 is possible; the time was over before a bound was known; "
    assert [row[-1] for row in found.table() if row[0] == "weight"] == ["unknown"]


def test_many_single_pods_are_placed_as_well_as_the_compiled_rules_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On openb's 8,152 pods the bound took all the time, no rule had run, and to place nothing was called best."""

    def run(problem: Any, instance: Any, method: str, options: SolveOptions) -> Any:  # no time for anything
        return run_method(problem, instance, method, replace(options, stages=frozenset(), deadline=Deadline(clock())))

    monkeypatch.setattr("schedgap.tools.judge.judge.run_method", run)
    monkeypatch.setattr("schedgap.heuristics.gang_placement.stream.WORTH", 1)
    parts = (400, 600, 400, 600, 1000, 300, 700)
    gangs = [
        {"id": f"g{g}", "weight": part / 1000, "pods": [{"count": 1, "gpu": part}]} for g, part in enumerate(parts)
    ]
    data = {"problem": "gang-placement", "nodes": [{"id": f"n{n}", "gpus": [1000]} for n in range(3)], "gangs": gangs}
    found = schedgap.judge(written(tmp_path, data))
    rules = [schedgap.solve(found.instance, method=rule).objective for rule in ("fgd", "best-fit")]
    assert found.best.objective == max(filter(None, rules)) > 0


def test_the_time_limit_is_that_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No deadline of any part is later than that of the call; each part but the last leaves some."""
    moments: list[tuple[float, float]] = []

    def run(problem: Any, instance: Any, method: str, options: SolveOptions) -> Any:
        moments.append((options.deadline.moment or float("inf"), clock()))
        return run_method(problem, instance, method, options)

    monkeypatch.setattr("schedgap.tools.judge.asking.run_method", run)
    monkeypatch.setattr("schedgap.tools.judge.judge.run_method", run)
    began = clock()
    schedgap.judge(written(tmp_path, cluster()), time_limit=1000)
    first, *others = (moment for moment, _ in moments)
    assert len(others) > 2 and first <= moments[0][1] + 500
    assert all(began < moment <= moments[0][1] + 1000 for moment in others)


def test_every_condition_that_is_not_read_is_counted(tmp_path: Path) -> None:
    data = cluster()
    pod = data["items"][-1]
    given = pod["metadata"].get("annotations") or {}
    pod["metadata"]["annotations"] = {**given, "kueue.x-k8s.io/podset-slice-required-topology": "rack"}
    pod["spec"] |= {"schedulingGates": [{"name": "g"}], "resources": {"requests": {"cpu": "999"}}}
    pod["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": "data"}}]
    pod["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    pod["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    (aside,) = read_snapshot(written(tmp_path, data)).asides
    assert aside.reason == "the scheduling gate g holds it"
    pod["spec"].pop("schedulingGates")
    (rules,) = read_snapshot(written(tmp_path, data)).facts.relaxed.values()
    assert rules == ("its host ports", "the nodes of its volumes", "its slices")


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_label_of_ones_own_names_gangs(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = cluster()
    for one in data["items"]:
        if one["metadata"]["name"].startswith("train"):
            del one["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"]
            one["metadata"][where]["team/gang"] = "ours"
    path = written(tmp_path, data)
    bare = read_snapshot(path)
    assert [gang.size for gang in bare.instance.gangs] == [1]
    assert {one.reason for one in bare.asides} == {"team/gang is not known"} and len(bare.asides) == 3
    named = read_snapshot(path, gang_label="team/gang", names=True).instance.gangs
    assert [(gang.id, gang.size) for gang in named] == [("ml/ours", 3), ("ml/notebook", 1)]
    assert main(["judge", str(path), "--gang-label", "team/gang", "--names"]) == 0
    assert "ml/ours (3 pods, 6 GPUs)" in capsys.readouterr().out


def test_bound_pods_are_the_decision(tmp_path: Path) -> None:
    data = cluster()
    data["items"][-1]["spec"]["nodeName"] = "node0"
    found = schedgap.judge(written(tmp_path, data), names=True)
    assert found.decision["placement"] == {
        "ml/notebook": [{"group": 0, "node": "node0", "devices": [3]}],
    }
    assert (
        found.report.feasible
        and found.ratio == (1.0, "optimum")
        and found.verdict.startswith("the decision is optimal: 1 of 7 ")
    )


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
    assert set(Taking(Kubernetes(items, "x").nodes).allowed(spec)) == nodes


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
    assert set(Taking(Kubernetes(items, "x").nodes).allowed({"affinity": affinity})) == nodes


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    data = cluster()
    data["items"].append({"kind": "Service", "metadata": {"name": "s"}})
    data["items"].append(running("gone", 1, "elsewhere"))
    data["items"].append({**pod("done", 1), "status": {"phase": "Succeeded"}})
    data["items"][-4]["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1}]
    unread = read_snapshot(written(tmp_path, data)).unread
    assert unread == {"pods on nodes that are not listed": 1, "pods that have ended": 1}


def _labelled(*levels: tuple[str, ...], names: tuple[str, ...]) -> list[Data]:
    """A node of 8 GPUs for each tuple of values of labels; an empty value is no label."""
    made = [node(f"node{n}", 8, "r") for n in range(len(levels))]
    for one, values in zip(made, levels, strict=True):
        one["metadata"]["labels"] = {name: value for name, value in zip(names, values, strict=True) if value}
    return made


def _asking(*names: str) -> list[Data]:
    return [pod(f"p{n}", 1, annotations={REQUIRED: name}) for n, name in enumerate(names)]


REPEATED = [(f"z{z}", f"r{r}") for z in range(3) for r in range(2)]
NESTED = [("a", "x0"), ("a", "x1"), ("b", "x2")]


@pytest.mark.parametrize(
    ("names", "values", "expected"),
    [
        (("zone", "rack"), REPEATED, ["zone", "rack"]),
        (("topology.kubernetes.io/zone", "cloud.provider.com/topology-rack"), REPEATED, None),
        (("outer", "inner"), NESTED, ["outer", "inner"]),
        (("z-outer", "a-inner"), NESTED, ["z-outer", "a-inner"]),
        (("hall", "row", "rack"), [("h", "a", "r0"), ("h", "a", "r1"), ("h", "b", "r2"), ("i", "c", "r3")], None),
        (("b", "a"), [("1", "2"), ("3", "4")], ["a", "b"]),
    ],
)
def test_levels_are_ordered_by_what_lies_in_what(
    names: tuple[str, ...], values: list[tuple[str, ...]], expected: list[str] | None
) -> None:
    """By the number of names alone, two names of racks that three zones share made racks wider than zones."""
    read = Kubernetes([*_labelled(*values, names=names), *_asking(*reversed(names))], "x")
    assert Cluster(read, None, False).levels == (expected or list(names))


@pytest.mark.parametrize(
    ("names", "values"),
    [(("cell", "row"), REPEATED), (("rack", "zone"), NESTED), (("a-block", "b-block"), REPEATED)],
)
def test_levels_whose_order_cannot_be_told_are_refused(
    names: tuple[str, ...], values: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"items": [*_labelled(*values, names=names), *_asking(*names)]}
    assert main(["judge", str(written(tmp_path, data))]) == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and all(name in told for name in names) and "Topology" in told


def test_a_gang_of_one_zone_of_repeated_racks_fits(tmp_path: Path) -> None:
    """That no moves admit it was certified."""
    notes = {REQUIRED: "zone"}
    gang = [pod(f"t{n}", 8, "train", annotations=notes) for n in range(2)]
    data = {"items": [*_labelled(*REPEATED, names=("zone", "rack")), *gang, *_asking("rack")]}
    assert [lost.fits for lost in schedgap.judge(written(tmp_path, data), names=True).lost] == [True, True]


@pytest.mark.parametrize("kind", ["required", "preferred"])
@pytest.mark.parametrize(("topology", "fits"), [((), [True, False]), (("zone", "rack"), [False, False])])
def test_a_node_without_the_label_takes_no_pod_that_asks_for_the_level(
    kind: str, topology: tuple[str, ...], fits: list[bool], tmp_path: Path
) -> None:
    """As Kueue: of the levels of a Topology a node needs all labels, else those that are asked for."""
    nodes = _labelled(("", "r0"), ("z", ""), names=("zone", "rack"))
    nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    notes = {f"kueue.x-k8s.io/podset-{kind}-topology": "rack"}
    items = [*nodes, *(pod(f"p{n}", 4 * n + 4, annotations=notes) for n in range(2)), pod("q", 1)]
    if topology:
        spec = {"levels": [{"nodeLabel": name} for name in topology]}
        items.append({"kind": "Topology", "metadata": {"name": "t"}, "spec": spec})
    read = read_snapshot(written(tmp_path, {"items": items}), names=True)
    seats = [
        len([one for one in read.instance.nodes if gang.pods[0].selector.takes(one)]) for gang in read.instance.gangs
    ]
    assert seats == [int(fits[0])] * 2 + [2]
    assert read.unread == {"nodes without the label of a level": 2 if topology else 1}
    solution = schedgap.solve(read.instance).solution
    assert solution is not None
    assert [gang.id in solution["placement"] for gang in read.instance.gangs] == [*fits, True]


@pytest.mark.parametrize(("first", "cpu"), [("init", 64), ("sidecar", 65)])
def test_an_init_container_counts_with_the_sidecars_before_it(first: str, cpu: int) -> None:
    init = {"resources": {"requests": {"cpu": "64"}}}
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    both = [init, sidecar] if first == "init" else [sidecar, init]
    one = pod("p", 1, initContainers=both, overhead={"cpu": "2"})
    assert Kubernetes([node("node0", 1, "r"), one], "x").request("x", one)["cpu"] == cpu + 2
    one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "80"
    assert Kubernetes([node("node0", 1, "r"), one], "x").request("x", one)["cpu"] == 83


@pytest.mark.parametrize(("terms", "nodes"), [([{}], 0), ([{}, {"matchExpressions": []}], 0), ([{}, "good"], 1)])
def test_an_empty_term_of_affinity_matches_no_node(terms: list[Any], nodes: int) -> None:
    good = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node0"]}]}
    terms = [good if term == "good" else term for term in terms]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    read = Kubernetes([node("node0", 1, "r"), node("node1", 1, "r")], "x")
    assert len(Taking(read.nodes).allowed({"affinity": affinity})) == nodes


def test_priorities_beyond_an_instances_are_ranks(tmp_path: Path) -> None:
    """Those of the system are 2,000,000,000 and 2,000,001,000: one pending pod with it, and the cluster was refused."""
    given = (2_000_001_000, 5, 0, 5, -(2**31))
    items = [node("node0", 8, "r"), *(pod(f"p{n}", 1, priority=value) for n, value in enumerate(given))]
    read = read_snapshot(written(tmp_path, {"items": items}))
    assert [gang.priority for gang in read.instance.gangs] == [3, 2, 1, 2, 0]
    items = items[:1] + items[2:5]
    assert [gang.priority for gang in read_snapshot(written(tmp_path, {"items": items})).instance.gangs] == [5, 0, 5]


def test_large_amounts_are_counted_in_larger_units(tmp_path: Path) -> None:
    one, other = node("node0", 8, "r"), node("node1", 8, "r")
    one["status"]["allocatable"]["example.com/bytes"] = "80Gi"
    other["status"]["allocatable"]["example.com/bytes"] = str(80 * 2**30 - 1)
    asks = [pod("p", 1), pod("q", 1)]
    for pod_, amount in zip(asks, ("80Gi", "1"), strict=True):
        pod_["spec"]["containers"][0]["resources"]["requests"]["example.com/bytes"] = amount
    read = read_snapshot(written(tmp_path, {"items": [one, other, *asks]}))
    for made, outward in ((read.instance, False), (read.outward, True)):
        (most, less), (asked, little) = (
            [there.free["example.com/bytes"] for there in made.nodes],
            [gang.pods[0].request["example.com/bytes"] for gang in made.gangs],
        )
        assert max(most, asked) <= 10**9 and little == (0 if outward else 1)
        assert (asked <= most, asked <= less) == (outward, outward)  # 80Gi fit 80Gi exactly, which rounding hides


def _with_resources(one: Data, **amounts: str) -> Data:
    """Resources by vendor: ``amd="1"`` is ``amd.com/gpu``."""
    given = {f"{name}.{'sh' if name == 'koordinator' else 'com'}/gpu": amount for name, amount in amounts.items()}
    if one["kind"] == "Node":
        del one["status"]["allocatable"]["nvidia.com/gpu"]
        one["status"]["allocatable"] |= given
    else:
        one["spec"]["containers"][0]["resources"]["limits"] = given
    return one


@pytest.mark.parametrize(
    ("nodes", "asked", "gpus", "weight", "fits"),
    [
        ([{"nvidia": "8"}], {"amd": "1"}, [8], 1, False),
        ([{"nvidia": "8"}, {"amd": "4"}], {"amd": "8"}, [8, 4], 8, False),
        ([{"nvidia": "8"}, {"amd": "4"}], {"amd": "4"}, [8, 4], 4, True),
        ([{"nvidia": "8", "amd": "4"}], {"amd": "6"}, [12], 6, False),
        ([{"nvidia": "8", "koordinator": "800"}], {"nvidia": "100"}, [8], 100, False),
        ([{"nvidia": "8", "koordinator": "800"}], {"koordinator": "100"}, [8], 1, True),
        ([{"example": "8"}], {"example": "8"}, [8], 8, True),
    ],
)
def test_devices_of_two_vendors_are_not_one_sum(
    nodes: list[dict[str, str]], asked: dict[str, str], gpus: list[int], weight: float, fits: bool, tmp_path: Path
) -> None:
    there = [_with_resources(node(f"node{n}", 0, "r"), **given) for n, given in enumerate(nodes)]
    data = {"items": [*there, _with_resources(pod("p", 0), **asked)]}
    made = read_snapshot(written(tmp_path, data)).instance
    assert [len(one.gpus) for one in made.nodes] == gpus and made.gangs[0].weight == weight
    solution = schedgap.solve(made).solution
    assert solution is not None and bool(solution["placement"]) is fits


def test_a_vendor_that_no_node_has_is_what_is_short(tmp_path: Path) -> None:
    data = {"items": [node("node0", 8, "r"), _with_resources(pod("p", 0), amd="1")]}
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    assert lost.reasons == ("capacity: 0 GPUs are free, 1 is wanted",)


def test_to_end_a_pod_gives_back_no_more_than_the_node_has(tmp_path: Path) -> None:
    """The pod asks for 48 processors of a node with 31.85: the next that does was said to be admitted by its end."""
    items = [node("node0", 4, "r"), running("a", 4, "node0"), pod("b", 4)]
    for one in items[1:]:
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "48"
    (lost,) = schedgap.judge(written(tmp_path, {"items": items}), names=True).lost
    assert lost.moves is None and lost.moves_proven
    made = read_snapshot(tmp_path / "snapshot.json").instance
    assert made.running[0].request["cpu"] * 48 < made.gangs[0].pods[0].request["cpu"] * 32


def _gang_of_two(first: Data, second: Data, least: int | None) -> Data:
    """Pods of one PodGroup of Volcano; a node of 2 GPUs."""
    pods = []
    for name, given in (("first", first), ("second", second)):
        one = pod(name, given.get("gpus", 0), **{key: given[key] for key in ("nodeName",) if key in given})
        one["metadata"]["labels"]["scheduling.k8s.io/group-name"] = "g"
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = given.get("cpu", "1")
        pods.append(one)
    group = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "ml"}, "spec": {"minMember": least}}
    return {"items": [node("node0", 2, "r"), *pods, *([group] if least else [])]}


@pytest.mark.parametrize(
    ("first", "second", "gpus"),
    [
        ({"gpus": 8}, {"gpus": 1}, [1, 8]),
        ({"gpus": 8}, {"gpus": 1, "nodeName": "node0"}, [1, 8]),
        ({"gpus": 1}, {"gpus": 8}, [1, 8]),
        ({"gpus": 1, "cpu": "2"}, {"gpus": 2, "cpu": "1"}, None),
        ({"gpus": 2, "nodeName": "node0"}, {"gpus": 1}, None),
    ],
)
def test_any_pods_of_a_gang_make_its_minimum(first: Data, second: Data, gpus: list[int] | None, tmp_path: Path) -> None:
    """The first of the listing were taken, so that a gang of which one small pod fits was certified as impossible.

    The smallest come first, which is exact where each pod asks for no more than the next. Else it is left out.
    """
    found = schedgap.judge(written(tmp_path, _gang_of_two(first, second, 1)), names=True)
    bound = "nodeName" in first or "nodeName" in second
    if gpus is None:
        assert found.snapshot.facts.relaxed == {"ml/g": ("which of its different pods start first",)}
        assert len(found.instance.gangs) == bound and found.report.feasible  # what is bound stays where it is
        return
    (gang,) = found.instance.gangs
    assert [group.gpu // 1000 for group in gang.pods] == gpus and gang.least == 1
    assert found.report.feasible and [lost.fits for lost in found.lost] == ([] if bound else [True])


@pytest.mark.parametrize("least", [2, None])
def test_a_gang_of_all_its_pods_may_have_any_order(least: int | None, tmp_path: Path) -> None:
    data = _gang_of_two({"gpus": 1, "cpu": "2", "nodeName": "node0"}, {"gpus": 1, "nodeName": "node0"}, least)
    read = read_snapshot(written(tmp_path, data), names=True)
    assert len(read.decision["placement"]["ml/g"]) == 2
    assert read.facts.rests == ({} if least else {"ml/g": WHOLLY})


@pytest.mark.parametrize("least", [2, None])
def test_what_rests_on_a_pod_group_that_is_not_listed_says_so(least: int | None, tmp_path: Path) -> None:
    data = _gang_of_two({"gpus": 64}, {"gpus": 1}, least)
    (lost,) = schedgap.judge(written(tmp_path, data), names=True).lost
    assert (WHOLLY in lost.line()) is (least is None) and lost.alone is (None if least is None else False)


RACK = {REQUIRED: "rack"}


@pytest.mark.parametrize(
    ("notes", "gpus", "kept"),
    [
        (({}, RACK, RACK), (0, 4, 4), False),
        ((RACK, RACK, RACK), (0, 4, 4), False),
        ((RACK, RACK, RACK), (4, 4, 4), True),
        (({}, {}, {}), (0, 4, 4), True),
        (tuple({**RACK, "kueue.x-k8s.io/podset-group-name": "all"} for _ in range(3)), (0, 4, 4), True),
        (tuple({**RACK, "kueue.x-k8s.io/role-hash": str(min(n, 1))} for n in range(3)), (4, 4, 4), True),
    ],
)
@pytest.mark.parametrize("bound", [False, True])
def test_a_gang_whose_kinds_of_pods_have_levels_and_are_not_told_is_left_out(
    notes: tuple[dict[str, str], ...], gpus: tuple[int, ...], kept: bool, bound: bool, tmp_path: Path
) -> None:
    """Kueue gives each kind of pods a domain of its own: they are subgroups where every pod tells its role."""
    pods = [pod(f"t{n}", count, "train", annotations=notes[n]) for n, count in enumerate(gpus)]
    if bound:
        pods[2]["spec"]["nodeName"] = "node0"
    data = {"items": [node("node0", 8, "rack0"), node("node1", 8, "rack1"), *pods]}
    read = read_snapshot(written(tmp_path, data), names=True)
    assert len(read.instance.gangs) == int(kept)
    assert [one.reason for one in read.asides] == ([] if kept else ["its kinds of pods have levels of their own"])
    busy = sum(part == 0 for part in read.instance.nodes[0].gpus)
    assert busy == (4 if bound and not kept else 0) and len(read.instance.running) == busy // 4


def test_what_groups_and_pods_ask_for_beyond_is_counted(tmp_path: Path) -> None:
    data = _gang_of_two({"gpus": 1}, {"gpus": 1}, 2)
    data["items"][-1]["spec"] |= {"networkTopology": {"mode": "hard"}, "minTaskMember": {"a": 1}}
    data["items"][2]["metadata"]["annotations"][PREFERRED] = "rack"
    read = read_snapshot(written(tmp_path, data), names=True)
    reasons = {one.gang: one.reason for one in read.asides}
    assert reasons["ml/g"] == "its groups have fewest pods of their own"
    data["items"][-1]["spec"].pop("minTaskMember")
    read = read_snapshot(written(tmp_path, data), names=True)
    assert read.facts.relaxed["ml/g"] == ("its network topology",)


def test_a_pod_alone_with_the_name_of_a_group_is_not_of_it(tmp_path: Path) -> None:
    group = {"kind": "PodGroup", "metadata": {"name": "train", "namespace": "ml"}, "spec": {"minMember": 2}}
    read = read_snapshot(written(tmp_path, {"items": [node("node0", 8, "r"), group, pod("train", 8)]}))
    assert read.unread == {"PodGroups that no listed pod names": 1} and read.instance.gangs[0].least is None


@pytest.mark.parametrize(("where", "phase"), [("elsewhere", "Pending"), ("node1", "Running")])
@pytest.mark.parametrize(("least", "rest"), [(3, 2), (2, 1), (1, 1)])
def test_of_a_gang_that_is_partly_seated_the_rest_is_judged(
    where: str, phase: str, least: int, rest: int, tmp_path: Path
) -> None:
    data = cluster()
    data["items"].append({"kind": "PodGroup", "metadata": {"name": "train", "namespace": "ml"}, "spec": {}})
    data["items"][-1]["spec"]["minMember"] = least
    (first,) = (one for one in data["items"] if one["metadata"]["name"] == "train-0")
    first["spec"]["nodeName"], first["status"]["phase"] = where, phase
    for names, shown in ((True, "ml/train"), (False, "gang-0")):
        read = read_snapshot(written(tmp_path, data), names=names)
        assert [(gang.size, gang.fewest) for gang in read.instance.gangs[:1]] == [(2, rest)]
        assert read.unread[f"pods of {shown} that run, or on nodes that are not listed"] == 1


@pytest.mark.parametrize(("runs_on", "placed"), [("node0", False), ("node1", True), (None, True)])
def test_the_rest_of_a_gang_stays_in_the_domain_of_what_runs(runs_on: str | None, placed: bool, tmp_path: Path) -> None:
    """The rest of a gang with a required level was placed in any domain. rack0 has one device left, rack1 two."""
    gang = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    items = [node("node0", 2, "rack0"), node("node1", 3, "rack1")]
    for name, where in (("train-0", runs_on), ("train-1", None), ("train-2", None)):
        phase = "Running" if where else "Pending"
        one = pod(name, 1, **({"nodeName": where} if where else {}))
        one["metadata"] |= {"labels": {"kueue.x-k8s.io/pod-group-name": "train"}, "annotations": gang}
        items.append({**one, "status": {"phase": phase}} if where or name != "train-0" else one)
    read = read_snapshot(written(tmp_path, {"items": items}), names=True)
    wanted = {"node0": ["node0"], "node1": ["node1"], None: ["node0", "node1"]}[runs_on]
    selector = read.instance.gangs[0].pods[0].selector
    assert [one.id for one in read.instance.nodes if selector.takes(one)] == wanted
    solution = schedgap.solve(read.instance).solution
    assert solution is not None and bool(solution["placement"]) is placed


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
        (
            {"items": [*cluster()["items"], node("node0", 8, "rack1")]},
            "items[10].metadata.name: 'node0' is already the",
        ),
        ({"items": [*cluster()["items"], pod("notebook", 1)]}, "items[10].metadata.name: 'ml/notebook' is already the"),
        (
            _with(cluster(), "items", 0, "status", "allocatable", "cpu", value="9" * 5000),
            "allocatable.cpu: '9999",
        ),
        (_with(cluster(), "items", 0, "status", "allocatable", "cpu", value="１２"), "cpu: '１２' is no quantity"),  # noqa: RUF001
        (
            {
                "items": [
                    *cluster()["items"],
                    {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": "x"}},
                ]
            },
            "items[10].spec.minMember: must be a whole number",
        ),
        (
            {
                "items": [
                    *cluster()["items"],
                    {
                        "kind": "Topology",
                        "metadata": {"name": "t"},
                        "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "rack"}]},
                    },
                ]
            },
            "items[10].spec.levels: a label is there twice",
        ),
        (
            {
                **schedgap.generate("gang-placement", "small-first").to_dict(),
                "reference_decision": {"placement": {"g0": [{"group": 0, "node": "gone", "devices": [0]}]}},
            },
            'reference_decision: placement: g0: the instance has no node "gone"',
        ),
        ({"problem": "gang-placement", "nodes": [], "gangs": []}, "nodes: must have at least 1"),
        ({**schedgap.generate("gang-placement", "small-first").to_dict(), "problem": "hadar"}, "problem"),
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


def test_the_best_decision_is_no_worse_than_a_rules_before_programs_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of pods the time is over before; here programs are left out."""

    def run(problem: Any, instance: Any, method: str, options: SolveOptions) -> Any:
        return run_method(problem, instance, method, replace(options, stages=frozenset()))

    monkeypatch.setattr("schedgap.tools.judge.judge.run_method", run)
    nodes = [{"id": f"n{n}", "gpus": [1000] * 4} for n in range(20)]
    gangs = [{"id": f"g{g}", "pods": [{"count": 1, "gpu": 1000}]} for g in range(200)]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs}
    found = schedgap.judge(written(tmp_path, data))
    assert found.best_values["weight"] == 80 and found.values["weight"] == 0
    assert "and 100 more, of which the best decision places 0" in found.to_text()
    lost: Any = found.to_dict()["lost"]
    assert len(lost) == 200 and sum(one["placed_in_best"] for one in lost) == 80


def test_a_page_draws_parts_and_what_left(tmp_path: Path) -> None:
    """A device is filled as far as it is taken; what the best decision ends is not drawn as running."""
    data = {
        "problem": "gang-placement",
        "nodes": [{"id": "a", "gpus": [600, 1000]}, {"id": "b", "gpus": [0]}],
        "running": [{"id": "r", "node": "b", "devices": {"0": 1000}, "movable": True, "price": 1}],
        "gangs": [
            {"id": "part", "pods": [{"count": 1, "gpu": 500}]},
            {"id": "two", "per_node": 1, "pods": [{"count": 2, "gpu": 1000}]},
        ],
        "objectives": ["weight", "moves"],
        "reference_decision": {"placement": {"part": [{"group": 0, "node": "a", "devices": [0]}]}},
    }
    found = schedgap.judge(written(tmp_path, data), names=True, out=tmp_path / "out")
    assert found.best_values["weight"] == 2 and found.best_values["moves"] == 1
    first, best = (tmp_path / "out" / "judge.html").read_text().split("<h2>The best decision</h2>")
    assert "title='what runs: 0.4, part: 0.5'" in first and "var(--busy) 0% 40%" in first
    assert "title='what runs: 1'" in first and "title='what runs: 1'" not in best and best.count("title='two: 1'") == 2
    assert "width=device-width" in first and "prefers-color-scheme:dark" in first


def _slurm_job(number: int, nodes: str, count: int) -> Data:
    made = {"job_id": number, "job_state": ["RUNNING"], "nodes": nodes, "node_count": count, "cpus": count}
    return made | {"tres_alloc_str": f"cpu={count},gres/gpu={count}", "tres_req_str": f"cpu={count},gres/gpu={count}"}


def _slurm_nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.txt"
    path.write_text("".join(f"NodeName=n{n} CPUTot=8 RealMemory=100 Gres=gpu:2 State=IDLE\n\n" for n in (1, 2)))
    return path


def test_a_job_that_runs_on_several_nodes_keeps_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, {"jobs": [_slurm_job(7, "n[1-2]", 2), _slurm_job(8, "n1", 1)]})
    read = read_snapshot(path, nodes=_slurm_nodes(tmp_path), names=True)
    assert [pod.id for pod in read.instance.running] == ["7 on n1", "7 on n2", "8"]


@pytest.mark.parametrize("names", [True, False])
def test_what_is_listed_twice_is_refused(names: bool, tmp_path: Path) -> None:
    jobs = written(tmp_path, {"jobs": [_slurm_job(7, "n1", 1), _slurm_job(7, "n2", 1)]})
    with pytest.raises(InputError, match=r"jobs\[1\]\.job_id: '7' is there twice"):
        read_snapshot(jobs, nodes=_slurm_nodes(tmp_path), names=names)
    group = {"placement_group_id": "p", "state": "PENDING", "strategy": "PACK", "bundles": []}
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps([{"node_id": "a", "state": "ALIVE", "resources_total": {"GPU": 8}}]))
    with pytest.raises(InputError, match=r"\[1\]\.placement_group_id: 'p' is there twice"):
        read_snapshot(written(tmp_path, [group, group]), nodes=nodes, names=names)
