"""g-vne through the command line: every command once, bad input in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.changes import put
from support.command import Command


@pytest.fixture
def case(data: Path) -> Path:
    """A network of two racks; its optimum is 14.54."""
    return data / "g-vne-03-two-rack-tree.json"


def test_solve_check_and_plot(command: Command, case: Path, tmp_path: Path) -> None:
    solution = tmp_path / "s.json"
    ran = command("solve", case, "--json", "--out", solution)
    answer = json.loads(ran.out)
    assert ran.status == 0 and answer["method"] == "colgen" and answer["status"] == "optimal"
    assert answer["objective"] == answer["bound"] == pytest.approx(14.54)
    ran = command("check", case, solution, "--json")
    assert ran.status == 0 and json.loads(ran.out)["objective"] == pytest.approx(14.54)
    picture = tmp_path / "rings.svg"
    assert command("plot", case, solution, "--out", picture).status == 0
    assert "jobs embedded" in picture.read_text()


@pytest.mark.parametrize("method", ["greedy", "lp-rs-mde"])
def test_heuristics_answer_below_the_optimum(command: Command, case: Path, method: str) -> None:
    ran = command("solve", case, "--method", method, "--json", "--seed", 3)
    answer = json.loads(ran.out)
    assert ran.status == 0 and answer["status"] in ("feasible", "optimal")
    assert 0 < answer["objective"] <= 14.54 + 1e-9 <= answer["bound"] + 1e-6


def test_compare_labels_ratios_and_what_is_outside_the_model(command: Command, case: Path) -> None:
    methods = "colgen,greedy,lp-rs-mde"
    ran = command("compare", case, "--methods", methods, "--set", "variant=vanilla", "lp=augmented", "--json")
    rows = {row["method"]: row for row in json.loads(ran.out)["rows"]}
    assert ran.status == 0 and rows["colgen"]["status"] == "optimal"
    assert rows["greedy"]["ratio"] >= 1 and rows["greedy"]["ratio_to"] == "optimum"
    assert rows["lp-rs-mde"]["ratio"] is None


def test_check_prints_every_violation_with_its_numbers(command: Command, case: Path, tmp_path: Path) -> None:
    solution = tmp_path / "s.json"
    route = [["s0", "r0", "s1"], ["s1", "r0", "s0"]]
    rings = {"j0": {"workers": ["s0", "s1"], "routes": route}, "j1": {"workers": ["s0", "s1"], "routes": route}}
    solution.write_text(json.dumps({"rings": rings}))
    ran = command("check", case, solution)
    assert ran.status == 1
    for words in (
        "server s1, gpu: 2 used, 1 there",
        "link s0 -> r0: 4 used, 3 there",
        "link r0 -> s1: 4 used, 2 there",
    ):
        assert words in ran.out


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        (put("servers", 0, "resources", "gpu", value=-1), "servers[0].resources", "got -1"),
        (put("servers", 1, "id", value="s0"), "servers[1].id", '"s0" is already the id of servers[0]'),
        (put("links", 0, "from", value="nowhere"), "links[0].from", 'there is no server "nowhere"'),
        (put("links", 0, "to", value="s0"), "links[0]", 'joins "s0" to itself'),
        (put("links", 0, "bandwidth", value="3"), "links[0].bandwidth", 'got "3"'),
        (put("links", 0, "bandwidth", value=-3), "links[0].bandwidth", "got -3"),
        (put("jobs", 0, "utility", value=[]), "jobs[0].utility", "got []"),
        (put("jobs", 0, "utility", 1, value="2"), "jobs[0].utility[1]", 'got "2"'),
        (put("jobs", 0, "demand", value={}), "jobs[0]", "at least one resource must be positive"),
        (put("jobs", 0, "demand", "gpu", value=0), "jobs[0]", "at least one resource must be positive"),
        (put("jobs", 1, "id", value="j0"), "jobs[1].id", '"j0" is already the id of jobs[0]'),
        (put("jobs", 0, "workers", value=3), "jobs[0].workers", "unknown key"),
        (put("horizon", value=3), "horizon", "unknown key"),
    ],
)
def test_bad_instances_are_refused_in_one_line(
    command: Command, case: Path, tmp_path: Path, change: Any, place: str, words: str
) -> None:
    data = json.loads(case.read_text())
    change(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    ran = command("solve", path)
    assert ran.status == 2 and ran.message.startswith(f"{path}: {place}") and words in ran.message


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        ([], "must be"),
        ({"rings": []}, "rings: must be an object, got []"),
        ({"rings": {"j9": {"workers": ["s0"], "routes": []}}}, 'rings: the instance has no job "j9"'),
        ({"rings": {"j0": {"workers": ["s9"], "routes": []}}}, 'rings.j0.workers: the instance has no server "s9"'),
        ({"rings": {"j0": {"workers": [], "routes": []}}}, "rings.j0.workers: must have at least 1 item, got []"),
        ({"rings": {"j0": {"workers": ["s0"]}}}, "rings.j0.routes: is missing"),
        (
            {"rings": {"j0": {"workers": ["s0"], "routes": [[]]}}},
            "rings.j0.routes[0]: must have at least 1 item",
        ),
        ({"rings": {}, "slots": 1}, "slots: unknown key"),
    ],
)
def test_bad_solutions_are_refused_in_one_line(
    command: Command, case: Path, tmp_path: Path, solution: Any, words: str
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(solution))
    ran = command("check", case, path)
    assert ran.status == 2 and words in ran.message, ran.message


def test_generate_import_and_verify(command: Command, tmp_path: Path) -> None:
    ran = command("generate", "g-vne", "--preset", "racks", "--set", "servers=6", "jobs=3", "--seed", 2)
    assert ran.status == 0 and len(json.loads(ran.out)["jobs"]) == 3
    ran = command("generate", "g-vne", "--preset", "fat-tree", "--set", "ports=5")
    assert ran.status == 2 and "option ports: must be one of 2, 4, 6" in ran.message
    net = tmp_path / "net.gml"
    net.write_text("graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 bw 10. ] ]")
    made = tmp_path / "net.json"
    ran = command("import", "gml", net, "--problem", "g-vne", "--set", "jobs=2", "gpus=2", "--out", made)
    assert ran.status == 0 and "2 jobs are drawn (seed 0)" in ran.err
    assert json.loads(command("solve", made, "--json").out)["status"] == "optimal"
    ran = command("import", "gml", tmp_path / "missing.gml", "--problem", "g-vne")
    assert ran.status == 2 and ran.message == f"{tmp_path / 'missing.gml'}: No such file or directory"
    ran = command("verify", "004-lemma-7-embeddable", "--instances", "3", "--out", tmp_path / "found", "--json")
    row = json.loads(ran.out)["guarantees"][0]
    assert ran.status == 0 and row["verdict"] == "refuted" and Path(row["counterexample"]).exists()
