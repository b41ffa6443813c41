"""Certificates: made, checked, refused; and that the rules of the checker hold for schedules."""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.benchmarks.studies.certificates import changed
from schedgap.catalogue.registry import find_problem
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.bounds import prove_bound
from schedgap.solvers.certificates.linear import Model, Rejected
from schedgap.solvers.certificates.make import check, plain, prove
from schedgap.solvers.certificates.tree import Tree, Unproven

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "solvers" / "certificates"
STANDARD = {
    "argparse", "bisect", "collections.abc", "dataclasses", "decimal",
    "fractions", "gzip", "hashlib", "heapq", "importlib",
    "itertools", "json", "linear", "math", "pathlib", "sys", "typing", "__future__",
    "schedgap.solvers.certificates.linear",
}  # fmt: skip
PROBLEMS = ["rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs"]
FORMS = {"rar-ddls": "rows", "gpu-sharing": "rows", "comm-contention": "rows", "g-vne": "rows", "ddljs": "rows"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {
        problem: schedgap.certify(schedgap.generate(problem, "tiny", seed=0 if problem == "gpu-sharing" else 1))
        for problem in PROBLEMS
    }


def test_the_checker_imports_the_standard_library_alone() -> None:
    for path in [FOLDER / "checker.py", FOLDER / "linear.py", *(FOLDER / "rules").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else names
            assert set(names) <= STANDARD, f"{path.name} imports {names}"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_tiny_optimum_is_certified(problem: str, made: dict[str, Any]) -> None:
    found = made[problem]
    assert found.optimal, found.reason
    report = schedgap.check(found.instance, found.result.solution, found.certificate)
    assert report.feasible
    assert report.details["certificate"]["optimal"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_one_changed_number_is_refused_or_still_true(problem: str, made: dict[str, Any]) -> None:
    found = made[problem]
    rng = random.Random(7)
    refused = 0
    for _ in range(10):
        other = changed(json.loads(json.dumps(found.certificate)), rng)
        try:
            verdict = check(found.instance, other)
        except Rejected:
            refused += 1
            continue
        sense = found.problem.sense
        assert verdict.bound is not None
        assert sense * verdict.bound <= sense * found.bound * (1 + sense * Fraction(1, 10**9))
    assert refused


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_better_claim_is_refused(problem: str, made: dict[str, Any]) -> None:
    found = made[problem]
    other = dict(found.certificate, claim=str(found.bound + found.problem.sense))
    with pytest.raises(Rejected):
        check(found.instance, other)


def test_a_removed_leaf_and_a_cut_file_are_refused(tmp_path: Path) -> None:
    found = schedgap.certify(schedgap.generate("rar-ddls", "tiny", seed=5))
    node = tree = copy.deepcopy(found.certificate["tree"])
    while "split" in node["low"]:
        node = node["low"]
    for broken in ({**node, "low": {}}, {k: v for k, v in node.items() if k != "low"}, node["high"]):
        other = dict(found.certificate, tree=_replaced(tree, node, broken))
        with pytest.raises(Rejected):
            check(found.instance, other)
    path = tmp_path / "cut.cert"
    found.write(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(schedgap.InputError, match="cannot be read as a certificate"):
        schedgap.check(found.instance, found.result.solution, path)


def _replaced(tree: Any, old: Any, new: Any) -> Any:
    if tree is old:
        return new
    if isinstance(tree, dict) and "split" in tree:
        return {key: _replaced(value, old, new) for key, value in tree.items()}
    return tree


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_certificate_of_another_instance_is_refused(problem: str, made: dict[str, Any]) -> None:
    other = schedgap.generate(problem, "tiny", seed=2)
    with pytest.raises(Rejected, match="another instance"):
        check(other, made[problem].certificate)


@pytest.mark.parametrize("problem", sorted(FORMS))
def test_schedules_are_points_of_the_rules(problem: str) -> None:
    """Whatever made them: the rows that certificates add up hold for every one."""
    seen = 0
    for seed in range(4):
        instance = schedgap.generate(problem, "tiny", seed=seed)
        given = plain(instance)
        options = {"horizon": given["horizon"]} if problem == "rar-ddls" else {}
        model = checker.model_of(given, FORMS[problem], options)
        for method in schedgap.methods(problem):
            if method.id in ("cbc", "highs", "cpsat", "tiresias", "pollux", "job-pair"):
                continue
            result = schedgap.solve(instance, method.id)
            if result.solution is None or result.info.get("outside_model"):
                continue
            point = checker.parse(json.dumps(result.solution))
            value = checker.value_of(model, checker.rules_of(problem), given, point, options)
            assert value is not None
            assert float(value) == pytest.approx(result.objective, rel=1e-12)
            seen += 1
    assert seen >= 8


FAULTS = sorted((ROOT / "tests" / "data" / "solver-faults").glob("*-1e-*.json"))


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_false_optimum_can_not_be_certified(path: Path) -> None:
    """What HiGHS calls optimal on these is not; the optimum is certified, the engine's value is not."""
    instance = schedgap.load(path)
    given = plain(instance)
    model = checker.model_of(given, "rows", {})
    for false in (4, 8, 9, Fraction(json.loads(path.read_text())["reference"]["optimum"]) - Fraction(1, 100)):
        with pytest.raises(Unproven):
            Tree(model, Fraction(-false), most=200).grow()
    result = schedgap.solve(instance, "cpsat")
    value = schedgap.check(instance, result.solution).objective
    assert value is not None
    assert prove(instance, Fraction(value), result.solution)["claim"] == str(value)


def test_the_checker_runs_alone(tmp_path: Path, made: dict[str, Any]) -> None:
    found = made["g-vne"]
    files = {"i": found.instance.model_dump(mode="json", by_alias=True), "s": dict(found.result.solution)}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    found.write(tmp_path / "c")
    command = [sys.executable, "-I", str(FOLDER / "checker.py"), "i", "c", "s"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("proven: the optimum is at most")
    (tmp_path / "c").write_text(json.dumps(dict(found.certificate, claim=str(found.bound - 1))))
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.startswith("rejected")) == (1, True)


def _knapsack() -> Model:
    """max x + y, 2 x + 2 y <= 3: by its linear program at most 3/2."""
    model = Model(sense=-1)
    model.var("x", 0, 1, 1)
    model.var("y", 0, 1, 1)
    model.row("fit", [("x", 2), ("y", 2)], "<=", 3)
    return model.finished()


def test_splits_must_cover() -> None:
    model = _knapsack()
    leaf = {"bound": {"fit": "1/2"}}
    checker.Prover(model, Fraction(-1)).walk(leaf)  # 3/2 is no value of whole x and y: the step is 1
    for tree in (
        {"split": "z", "at": 0, "low": leaf, "high": leaf},
        {"split": "x", "at": "0", "low": leaf, "high": leaf},
    ):
        with pytest.raises(Rejected):
            checker.Prover(model, Fraction(-1)).walk(tree)
    with pytest.raises(Rejected, match="proves"):
        checker.Prover(model, Fraction(0)).walk(leaf)


@pytest.mark.parametrize("problem", ["comm-contention", "ddl-cluster", "hadar"])
def test_no_method_beats_what_is_certified(problem: str) -> None:
    """Where times are real or rules have no rows: every schedule found is no better than the certified bound."""
    for seed in range(3):
        found = schedgap.certify(schedgap.generate(problem, "tiny", seed=seed))
        assert found.optimal, found.reason
        for method in schedgap.methods(problem):
            if method.outside_model or method.id in ("cbc", "highs", "cpsat", "hadare", "placement", "srsf-4"):
                continue
            result = schedgap.solve(found.instance, method.id)
            if result.solution is not None:
                value = schedgap.check(found.instance, result.solution).objective
                assert value is not None and found.bound is not None
                sense = found.problem.sense
                assert sense * (value - found.bound) >= -Fraction(1, 10**9) * (1 + abs(found.bound)), method.id


def test_levels_of_proof() -> None:
    instance = schedgap.generate("g-vne", "tiny", seed=1)
    assert schedgap.solve(instance).proof == "claimed"
    assert schedgap.certify(instance).result.proof == "certified"
    assert schedgap.solve(instance, "greedy").proof in ("claimed", "none")


def test_bounds_at_paper_scale() -> None:
    """The bound that is shown is the bound that is certified."""
    for problem, instance in (
        ("rar-ddls", schedgap.generate("rar-ddls", "paper", seed=0)),
        ("comm-contention", schedgap.load(ROOT / "tests" / "data" / "comm-srsf1-16tasks.json")),
    ):
        certificate = prove_bound(instance)
        shown = find_problem(problem).bound(instance)
        assert float(check(instance, certificate).bound or 0) == pytest.approx(shown, rel=1e-12)
