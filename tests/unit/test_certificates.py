"""Certificates: made, checked, refused; and that the rules of the checker hold for schedules."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracles.comm_contention import brute_force
from support.work import PATIENCE

import schedgap
from schedgap.benchmarks.ledger.verify import verify
from schedgap.benchmarks.proving import with_certificate
from schedgap.benchmarks.report.aggregate import exact_methods
from schedgap.benchmarks.report.analysis import analyse
from schedgap.benchmarks.suites.plan import plan
from schedgap.benchmarks.suites.worker import execute
from schedgap.catalogue.registry import find_problem, parse_instance
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.solvers.budget import OutOfBudgetError
from schedgap.solvers.certificates import checker, make, make_bound
from schedgap.solvers.certificates.content import certificate_of, plain
from schedgap.solvers.certificates.linear import Model, Narrower, Rejected
from schedgap.solvers.certificates.make import check, prove
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.makers.comm_contention import OrderTree
from schedgap.solvers.certificates.narrowing import NarrowedTree
from schedgap.solvers.certificates.rules.comm_contention import constant, orders_of
from schedgap.solvers.certificates.rules.rings import worth
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import NO_DEADLINE
from studies.certificates import changed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "solvers" / "certificates"
STANDARD = {
    "argparse", "bisect", "collections", "collections.abc", "contextlib", "dataclasses", "decimal",
    "fractions", "functools", "gzip", "hashlib", "heapq", "importlib", "importlib.metadata", "instances", "io",
    "itertools", "json", "linear", "math", "operator", "pathlib", "sys", "typing", "zlib", "__future__",
    "schedgap.solvers.certificates.instances", "schedgap.solvers.certificates.linear",
    "schedgap.solvers.certificates.rules.rings", "rules.rings",
    "schedgap.solvers.certificates.rules.comm_orders", "rules.comm_orders",
    "schedgap.solvers.certificates.rules.pausing", "rules.pausing",
    "schedgap.solvers.certificates.rules.gang_prices", "rules.gang_prices",
    "schedgap.solvers.certificates.rules.ddl_paths", "rules.ddl_paths",
}  # fmt: skip
PROBLEMS = ["rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs", "gang-placement"]
SEEDS = {"gpu-sharing": 0, "ddl-cluster": 2}
FORMS = {"rar-ddls": "rows", "gpu-sharing": "rows", "g-vne": "rows", "ddljs": "rows", "gang-placement": "rows"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {
        problem: schedgap.certify(schedgap.generate(problem, "tiny", seed=SEEDS.get(problem, 1)))
        for problem in PROBLEMS
    }


def test_the_checker_imports_the_standard_library_alone() -> None:
    alone = [FOLDER / f"{name}.py" for name in ("checker", "instances", "linear")]
    for path in [*alone, *(FOLDER / "rules").glob("*.py")]:
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


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_removed_leaf_and_a_cut_file_are_refused(problem: str, tmp_path: Path, made: dict[str, Any]) -> None:
    found = made[problem]
    tree = found.certificate["tree"]
    path: list[str] = []
    while "split" in _at(tree, path):
        path.append("low" if len(path) % 2 else "high")
    without: list[Any] = [_replaced(tree, path, {}), _replaced(tree, path, None)]
    if path:
        parent = _at(tree, path[:-1])
        without.append(_replaced(tree, path[:-1], {k: v for k, v in parent.items() if k != path[-1]}))
    for broken in without:
        with pytest.raises(Rejected):
            check(found.instance, dict(found.certificate, tree=broken))
    for key in found.certificate:
        if key != "options" or found.certificate["options"]:
            with pytest.raises(Rejected):
                check(found.instance, {k: v for k, v in found.certificate.items() if k != key})
    file = tmp_path / "cut.cert"
    found.write(file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(schedgap.InputError, match="cannot be read as a certificate"):
        schedgap.check(found.instance, found.result.solution, file)


def _at(tree: Any, path: list[str]) -> Any:
    for side in path:
        tree = tree[side]
    return tree


def _replaced(tree: Any, path: list[str], new: Any) -> Any:
    return {**tree, path[0]: _replaced(tree[path[0]], path[1:], new)} if path else new


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_certificate_of_another_instance_is_refused(problem: str, made: dict[str, Any]) -> None:
    other = schedgap.generate(problem, "tiny", seed=3)
    with pytest.raises(Rejected, match="another instance"):
        check(other, made[problem].certificate)


@pytest.mark.parametrize("problem", sorted(FORMS))
def test_schedules_are_points_of_the_rules(problem: str) -> None:
    """Whatever made them: the rows that certificates add up hold for every one."""
    seen = 0
    for seed in range(3):
        instance = schedgap.generate(problem, "tiny", seed=seed)
        given = plain(instance)
        options = {"horizon": given["horizon"]} if problem == "rar-ddls" else {}
        model = checker.model_of(given, FORMS[problem], options)
        for method in schedgap.methods(problem):
            if method.outside_model or method.kind == "engine" or method.id in ("job-pair", "schedule-set", "theta"):
                continue
            result = schedgap.solve(instance, method.id, work_limit=1.0, confirm=False)
            if result.solution is None:
                continue
            point = checker.parse(json.dumps(result.solution))
            value = checker.value_of(model, checker.rules_of(problem), given, point, options)
            assert value is not None
            assert float(value) == pytest.approx(result.objective, rel=1e-12)
            seen += 1
    assert seen >= 8


@pytest.mark.parametrize("seed", [0, 4, 5, 9])
def test_random_schedules_that_share_are_points_of_the_rules(seed: int) -> None:
    """Random starts, GPUs and accumulation steps of gpu-sharing, those that are feasible: nothing is optimised away."""
    instance, rules, rng = (
        schedgap.generate("gpu-sharing", "tiny", seed=seed),
        checker.rules_of("gpu-sharing"),
        random.Random(seed),
    )
    given = plain(instance)
    model = checker.model_of(given, "rows", {})
    gpus = [[server["id"], place] for server in given["servers"] for place in range(server["gpus"])]
    found = shared = 0
    for _ in range(600):
        solution: dict[str, Any] = {"start": {}, "gpus": {}, "accumulation": {}}
        for job in given["jobs"]:
            solution["start"][job["id"]] = job["arrival"] + rng.choice([0, 0, 1, 2, 3, 4, 6])
            solution["gpus"][job["id"]] = rng.sample(gpus, job["gpus"])
            fitting = [s for s in (1, 2, 4, 8, 16) if job["batch_size"] % s == 0]
            solution["accumulation"][job["id"]] = rng.choice(fitting)
        report = schedgap.check(instance, solution)
        if report.feasible:
            found += 1
            assert report.objective == checker.value_of(model, rules, given, solution, {})
            shared += any(name.startswith("pair") for name in rules.point(given, solution, {}))
        if found == 10:
            break
    assert found >= 5 and shared >= 5


def test_sequences_of_events_prove_the_optimum_and_no_more() -> None:
    """Against a search over all orders with exact linear programs; whole numbers, so that events coincide."""
    leaves = 0
    for seed in range(12):
        rng = random.Random(seed)
        n = rng.choice([2, 3, 3, 4])
        times = [(rng.randint(0, 4), rng.randint(1, 4)) for _ in range(n)]
        link = {"latency": rng.choice([0, 0.5]), "seconds_per_unit": 1, "contention_penalty": rng.choice([0, 0.25, 1])}
        tasks = [{"id": f"c{i}", "release": release, "size": size} for i, (release, size) in enumerate(times)]
        instance = parse_instance({"problem": "comm-contention", "link": link, "tasks": tasks}, "")[1]
        assert isinstance(instance, CommContentionInstance)
        optimum, _ = brute_force(instance)
        leaves += _tree(instance, optimum * (1 - Fraction(1, 10**15)))
        with pytest.raises(Unproven, match="better schedule"):
            _tree(instance, optimum * (1 + Fraction(1, 10**9)))
    assert leaves > 12


def test_an_open_start_is_in_the_tree() -> None:
    """The optimum has a start that is with no other event; with starts at events alone 47.1 would be proven."""
    file = ROOT / "tests" / "data" / "comm-contention-comm_04_event_times_not_enough.json"
    instance = schedgap.load(file)
    assert _tree(instance, Fraction("47.075") - Fraction(1, 10**12))
    with pytest.raises(Unproven, match="better schedule"):
        _tree(instance, Fraction("47.076"))


def _tree(instance: Any, value: Fraction) -> int:
    """How many leaves prove the value."""
    given = plain(instance)
    total = (value - constant(given)) * len(given["tasks"])
    tree = OrderTree(orders_of(given), total, NO_DEADLINE, 10_000)
    certificate = certificate_of(given, "orders", {}, value, tree.grow())
    assert check(instance, certificate).bound == value
    return tree.leaves


FAULTS = sorted((ROOT / "tests" / "data" / "solver-faults").glob("*.json"))


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_false_optimum_can_not_be_certified(path: Path) -> None:
    """What an engine called optimal on these is not: the optimum is certified, a worse value near it and 0 are not."""
    instance = schedgap.load(path)
    optimum = Fraction(json.loads(path.read_text())["reference"]["optimum"])
    sense = find_problem(instance.problem_id).sense
    result = schedgap.solve(instance)
    value = schedgap.check(instance, result.solution).objective
    assert value is not None and abs(value - optimum) <= Fraction(1, 10**9) * optimum
    claim = Fraction(prove(instance, Fraction(value), result.solution)["claim"])
    assert claim == value or (instance.problem_id == "ddljs" and abs(claim - value) < value / 10**9)
    for false in (value + sense * value / 10**5, value + 1 if sense > 0 else Fraction(0)):
        with pytest.raises(Unproven):
            prove(instance, false, None)


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


def test_the_checker_alone_says_where_it_does_not_look_at_the_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A form that has no map from schedules: whatever is given as one, nothing is said as if it had been judged."""
    found = schedgap.certify(schedgap.generate("hadar", "tiny", seed=1))
    (tmp_path / "i").write_text(json.dumps(found.instance.to_dict()))
    (tmp_path / "s").write_text("[]")
    found.write(tmp_path / "c")
    for given in ("ic", "ics"):
        assert checker.main([str(tmp_path / name) for name in given]) == 0
    bare, whole = (part.splitlines() for part in capsys.readouterr().out.split("proven: ")[1:])
    assert len(bare) == 1
    assert whole[1:] == ['the schedule is not looked at: form "prices" has no map from schedules to its variables']


def test_a_bound_whose_check_was_cut_off_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told as a proof that there is no schedule, since nobody had said yet what it proves."""

    def cut_off(*_: object) -> None:
        raise OutOfBudgetError

    monkeypatch.setattr(make, "check", cut_off)
    found = schedgap.certify(schedgap.generate("g-vne", "tiny", seed=1))
    assert found.certificate is None and not found.infeasible
    assert found.to_text().startswith("not certified")


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
    for seed in {"comm-contention": (0, 1, 5), "ddl-cluster": (1, 2, 3), "hadar": (0, 1, 2)}[problem]:
        found = schedgap.certify(schedgap.generate(problem, "tiny", seed=seed))
        assert found.optimal, found.reason
        for method in schedgap.methods(problem):
            if method.outside_model or method.kind == "engine" or method.id == "placement":
                continue
            result = schedgap.solve(found.instance, method.id, confirm=False)
            if result.solution is not None:
                value = schedgap.check(found.instance, result.solution).objective
                assert value is not None and found.bound is not None
                sense = found.problem.sense
                assert sense * (value - found.bound) >= -Fraction(1, 10**9) * (1 + abs(found.bound)), method.id


def test_levels_of_proof() -> None:
    instance = schedgap.generate("g-vne", "tiny", seed=1)
    assert schedgap.solve(instance, confirm=False).proof == "claimed"
    assert schedgap.certify(instance).result.proof == "certified"
    assert schedgap.solve(instance, "greedy").proof is None


BOUNDS: dict[str, dict[str, Any]] = {
    "rar-ddls": {"preset": "paper"},
    "hadar": {"preset": "trace", "jobs": 60},
    "gpu-sharing": {"preset": "table-ii"},
    "comm-contention": {"preset": "small", "tasks": 100},
    "ddl-cluster": {"preset": "paper"},
    "g-vne": {"preset": "fat-tree"},
    "ddljs": {"preset": "figure-7"},
    "gang-placement": {"preset": "large"},
}


@pytest.mark.parametrize("problem", sorted(BOUNDS))
def test_bounds_at_paper_scale(problem: str) -> None:
    """The bound that is shown is the bound that is certified."""
    instance = schedgap.generate(problem, seed=0, **BOUNDS[problem])
    bound = check(instance, prove_bound(instance)).bound
    shown = find_problem(problem).bound(instance)
    assert bound is not None and float(bound) == pytest.approx(shown, rel=1e-8)


@pytest.mark.parametrize("problem", ["gpu-sharing", "g-vne", "ddljs", "hadar", "gang-placement"])
def test_all_prices_bound_the_optimum(problem: str) -> None:
    """Prices that somebody else chose prove less, and nothing false."""
    rng = random.Random(problem)
    sense = find_problem(problem).sense
    for seed in range(6):
        instance = schedgap.generate(problem, "tiny", seed=seed)
        best = schedgap.solve(instance, confirm=False).objective
        if best is None:
            continue
        certificate = prove_bound(instance)
        model = checker.model_of(plain(instance), certificate["form"], certificate["options"])
        assert model.price is not None
        for _ in range(4):
            leaf = json.loads(json.dumps(certificate["tree"]["prices"]))
            _disturb(leaf, rng)
            try:
                bound = model.price(leaf, {})
            except ValueError as fault:
                assert "weights" in str(fault)
                continue
            assert bound is not None
            bound = checker.Prover(model, None).reached(bound)
            assert sense * Fraction(best) >= bound - Fraction(1, 10**9) * abs(bound)


def test_a_bound_between_two_sums_of_utilities_is_the_lower_one() -> None:
    """Prices end a hair above the optimum, 273.43; utilities are whole hundredths, and so are their sums."""
    instance = schedgap.generate("g-vne", "fat-tree", seed=0)
    certificate = prove_bound(instance)
    assert check(instance, certificate).bound == Fraction("273.43")
    model = checker.model_of(plain(instance), "prices", {})
    assert model.step == Fraction(1, 100) and model.price is not None
    bound = model.price(certificate["tree"]["prices"], {})
    assert bound is not None and 0 < -bound - Fraction("273.43") < Fraction(1, 10**9)
    with pytest.raises(Rejected):
        check(instance, {**certificate, "claim": "273.42"})
    found = schedgap.certify(instance)
    assert found.optimal and found.bound == Fraction("273.43")


def _disturb(node: Any, rng: random.Random) -> None:
    """Prices times a random factor, in place; small numbers (slots, classes) stay."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if isinstance(value, dict | list):
            _disturb(value, rng)
        elif isinstance(value, int) and value > 1000:
            node[key] = int(value * rng.choice([0.0, 0.5, 1.0, 1.0, 1.4]))


def test_marks_of_proof_in_runs_and_in_the_ledger(tmp_path: Path) -> None:
    problem = find_problem("g-vne")
    items = [item for item in plan(["quick"], problems=[problem], certify=True) if item.instance is not None]
    first = [item for item in items if item.instance is items[0].instance]
    records = [execute(item, tmp_path) for item in first if item.record.method in ("colgen", "greedy")]
    assert [record.result.proof for record in records if record.method == "colgen"] == ["certified"]
    runs = analyse(records, tmp_path, [problem]).runs
    assert set(runs.proven) == {"certified"}
    assert exact_methods(runs)[["optimal", "certified", "agreed", "claimed"]].values.tolist() == [[1, 1, 0, 0]]
    row = verify(["004-theorem-6"], instances=3, out=tmp_path, problems=[find_problem("ddljs")], certify=True).rows[0]
    assert row.certified == row.held == 3 and row.words == "held (3 instances, 3 optima certified)"


def test_an_instance_without_room_for_a_job_is_certified_as_infeasible() -> None:
    found = schedgap.certify(ROOT / "tests" / "data" / "rar-13-infeasible-zero-rate.json")
    assert found.infeasible


def test_jobs_without_a_placement_are_solved_by_the_method_that_gives_one() -> None:
    problem = find_problem("ddl-cluster")
    assert problem.default_method(schedgap.generate("ddl-cluster", "tiny", seed=1)).id == "cp"
    free = schedgap.generate("ddl-cluster", "small", seed=0, jobs=1, iterations=1)
    assert problem.default_method(free).id == "placement"
    found = schedgap.certify(free)
    assert found.optimal and found.certificate is not None and found.certificate["form"] == "machines"


def test_a_proof_that_does_not_look_at_the_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: Any) -> Any:
        while True:
            pass

    monkeypatch.setattr(make_bound, "_leaves", endless)
    found = schedgap.certify(schedgap.generate("g-vne", "tiny", seed=1), time_limit=1.0)
    assert found.certificate is None and "time" in found.reason


@pytest.mark.parametrize("efficiency", ["1e-62", "1.2345678901234567e-43", "1e-21", "1e-19", "0.3"])
def test_a_tiny_logarithm_is_not_rounded_below_its_value(efficiency: str) -> None:
    x = Fraction(efficiency)
    job = {"utility": {"kind": "log1p", "scale": 1}, "efficiency": x}
    least = sum((-1) ** (k + 1) * x**k / k for k in range(1, 61))  # an even number of terms: below ln(1 + x)
    assert least < worth(job, 1) < x


def test_what_reduced_costs_fix_leaves_every_better_point() -> None:
    """Random whole programs and multipliers: no point below the target is outside of the box that is left."""
    rng = random.Random(3)
    narrowed = 0
    for _ in range(200):
        model = Model()
        model.constant = Fraction(rng.randint(-2, 2), 3)
        names = [model.var(f"x{j}", 0, rng.randint(1, 3), Fraction(rng.randint(-4, 4), 2)) for j in range(3)]
        for i in range(2):
            model.row(f"r{i}", [(name, rng.randint(-2, 2)) for name in names], rng.choice(["<=", ">="]), 1)
        model.finished()
        points = []
        for point in itertools.product(*(range(int(high) + 1) for high in model.high)):
            sums = [sum(a * point[j] for j, a in row.terms.items()) - row.right for row in model.rows.values()]
            if min(sums) >= 0:
                cost = model.constant + sum(c * x for c, x in zip(model.cost, point, strict=True))
                points.append((cost, point))
        for _ in range(5):
            target = model.constant + Fraction(rng.randint(-12, 8), 2)
            multipliers = {f"r{i}": str(Fraction(rng.randint(0, 8), 4)) for i in range(2)}
            box = checker.Prover(model, target).narrowed(multipliers, {}, "root")
            narrowed += bool(box)
            for cost, point in points:
                inside = all(
                    box[name][0] <= x <= box[name][1] for name, x in zip(names, point, strict=True) if name in box
                )
                assert inside or cost >= target
    assert narrowed > 100


def _random_model(rng: random.Random, count: int) -> tuple[Model, list[tuple[Fraction, tuple[int, ...]]]]:
    """So many whole variables, and rows; with the points that satisfy them, by cost."""
    model = Model()
    most = 3 if count < 6 else 1
    names = [model.var(f"{'xy'[j % 2]}[{j}]", 0, rng.randint(1, most), rng.randint(1, 9)) for j in range(count)]
    for i in range(rng.randint(3, 4)):
        terms = [(name, Fraction(rng.randint(-6, 9), 2)) for name in names]
        model.row(f"r{i}", terms, rng.choice(["<=", ">=", ">=", "="] if i == 0 else [">="]), rng.randint(-2, count))
    model.finished()
    points = []
    for point in itertools.product(*(range(int(high) + 1) for high in model.high)):
        sums = [(sum(a * point[j] for j, a in row.terms.items()) - row.right, row.equal) for row in model.rows.values()]
        if all(value >= 0 and not (equal and value) for value, equal in sums):
            points.append((sum((c * x for c, x in zip(model.cost, point, strict=True)), Fraction(0)), point))
    return model, sorted(points)


def test_narrowing_by_rows_keeps_every_point() -> None:
    rng = random.Random(5)
    narrowed = empty = 0
    for _ in range(300):
        model, points = _random_model(rng, 4)
        box = Narrower(model).narrow({})
        if box is None:
            empty += 1
            assert not points
            continue
        narrowed += bool(box)
        for _, point in points:
            for x, name in zip(point, model.names, strict=True):
                low, high = box.get(name, (0, 9))
                assert low <= x <= high
        assert Narrower(model).narrow(box) == box  # nothing is left to narrow
    assert narrowed > 50 and empty > 5


def test_narrowed_trees_prove_the_optimum_and_no_more() -> None:
    """On random whole programs: a tree for the optimum, which the checker accepts, and none for the next value."""
    rng = random.Random(11)
    split = 0
    for _ in range(60):
        model, points = _random_model(rng, 8)
        if not points or model.step is None:
            continue
        optimum = points[0][0]
        tree = NarrowedTree(model, optimum).grow()
        checker.Prover(model, optimum).walk(tree)
        split += "split" in json.dumps(tree)
        with pytest.raises((Unproven, Rejected)):
            checker.Prover(model, optimum + model.step).walk(NarrowedTree(model, optimum + model.step).grow())
        with pytest.raises(Rejected):
            checker.Prover(model, optimum + model.step).walk(tree)
    assert split > 3


def test_where_narrowing_may_stand() -> None:
    leaf = {"bound": {"fit": "1/2"}}
    for tree in ({"narrow": {"narrow": leaf}}, {"narrow": leaf, "then": leaf}, {"narrow": None}, {"narrow": {}}):
        with pytest.raises(Rejected):
            checker.Prover(_knapsack(), Fraction(-1)).walk(tree)
    checker.Prover(_knapsack(), Fraction(-1)).walk({"narrow": leaf})


def test_nothing_is_fixed_without_a_value_to_prove() -> None:
    tree = {"fix": {}, "then": {"infeasible": {}}}
    with pytest.raises(Rejected, match="nothing can be fixed"):
        checker.Prover(_knapsack(), None).walk(tree)
    with pytest.raises(Rejected, match="exactly fix and then"):
        checker.Prover(_knapsack(), Fraction(-1)).walk({"fix": {}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claim": "1e99999999"}, "must be a whole number or a fraction"),
        ({"claim": "1" + 5000 * "0"}, "claim: '10000"),
        ({"claim": "1" + 400 * "0"}, "beyond all numbers"),
        ({"claim": "-1/0"}, "is no fraction"),
    ],
)
def test_absurd_numbers_are_rejected_at_once(change: dict[str, str], message: str, made: dict[str, Any]) -> None:
    """The first one alone kept the checker busy for minutes."""
    for certified in made.values():
        with pytest.raises(Rejected, match=message):
            check(certified.instance, {**certified.certificate, **change})


@pytest.mark.parametrize("text", ["1e999", 5000 * "1", 100_000 * "[", "{", "\x00", "NaN"])
def test_text_that_is_no_certificate_is_rejected_everywhere(text: str, tmp_path: Path, made: dict[str, Any]) -> None:
    certified = made["g-vne"]
    with pytest.raises(Rejected):
        check(certified.instance, text)
    names = ("i.json", "s.json", "c.json", "c.json.gz", "broken.gz")
    instance, solution, file, packed, broken = (tmp_path / name for name in names)
    instance.write_text(certified.instance.to_json())
    solution.write_text(json.dumps(certified.result.solution))
    file.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    broken.write_bytes(gzip.compress(json.dumps(certified.certificate).encode())[:12] + 40 * b"\xff")
    for path in (file, packed):
        report = schedgap.check(instance, solution, certificate=path)
        assert [one.constraint for one in report.violations] == ["certificate"]
    with pytest.raises(schedgap.InputError, match=r"broken\.gz: cannot be read as a certificate"):
        schedgap.check(instance, solution, certificate=broken)
    for path in (file, broken):
        command = [sys.executable, str(FOLDER / "checker.py"), str(instance), str(path)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert ran.returncode in (1, 2) and "Traceback" not in ran.stderr


def test_a_certificate_that_is_too_large_is_refused_while_it_is_read(
    tmp_path: Path, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "LARGEST_FILE", 10_000)
    certified, bomb = made["g-vne"], tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(1_000_000 * b" "))
    for path in (bomb, Path("/dev/zero")):
        with pytest.raises(schedgap.InputError, match=f"{path}: has more than 10,000 bytes"):
            schedgap.check(certified.instance, certified.result.solution, certificate=path)


def test_the_checker_alone_unpacks_no_more_than_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5 MB became 3.1 GB."""
    monkeypatch.setattr(checker, "LARGEST_FILE", 10_000)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(50_000_000 * b" "))
    tracemalloc.start()
    try:
        for path in (bomb, Path("/dev/zero")):
            with pytest.raises(Rejected, match=f"{path}: has more than 10,000 bytes"):
                checker.load(str(path))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    bomb.write_bytes(gzip.compress(b"[1]" + 9_000 * b" "))
    assert checker.load(str(bomb)) == [1]


def test_a_schedule_better_than_what_is_proven_is_no_optimum(made: dict[str, Any]) -> None:
    """It would show that the rules are wrong."""
    for problem in ("comm-contention", "ddl-cluster", "ddljs"):
        certified = made[problem]
        assert certified.optimal
        worse = certified.bound + certified.problem.sense * certified.bound
        assert not replace(certified, bound=worse).optimal
        assert "certified: optimal" in certified.to_text()
        if certified.result.objective != float(certified.bound):
            assert "to 1e-9: the bound is" in certified.to_text()


def test_rules_of_another_sense_or_value_prove_nothing(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of somebody else's package may forget `model.sense`, and then prove the value of any schedule."""
    certified = made["g-vne"]
    problem, instance, found = certified.problem, certified.instance, certified.result.solution
    report = problem.check(instance, found)
    assert "certificate" in with_certificate(problem, instance, found, report, certified.certificate)[0].details
    other = replace(report, objective=report.objective + 1)
    told = with_certificate(problem, instance, found, other, certified.certificate)[0].violations[-1].message
    assert "the rules give the schedule" in told and "the problem's checker" in told

    monkeypatch.setattr(type(problem), "sense", -problem.sense)
    told = with_certificate(problem, instance, found, report, certified.certificate)[0].violations[-1].message
    assert "the problem does not" in told
    with pytest.raises(Unproven, match="the problem does not"):
        prove(instance, report.objective, found, bound={}, sense=problem.sense)
    bounded = made["rar-ddls"]  # whose optimum a bound alone proves
    assert prove(bounded.instance, bounded.bound, bounded.result.solution, sense=1) == bounded.certificate
    for proves in (prove_bound, lambda *given: prove(given[0], bounded.bound, None, sense=given[1])):
        with pytest.raises(Unproven, match="the problem does not"):
            proves(bounded.instance, -1)

    model = Model()
    model.var("x", cost=1)
    model.sense = -1
    with pytest.raises(Rejected, match="the sense changed after a variable"):
        model.finished()


def sharing_job(name: str, gpus: int = 1, memory: float = 0.5, **changes: Any) -> dict[str, Any]:
    """A job of two iterations of a second."""
    job: dict[str, Any] = {"id": name, "arrival": 1, "gpus": gpus, "iterations": 2, "batch_size": 1, "overlap": 1.0}
    job["communication"] = {"latency": 0, "per_unit": 0, "message": 1.0}
    return (
        job | {"compute": {"fixed": 1.0, "per_sample": 0.0}, "memory": {"fixed": memory, "per_sample": 0.0}} | changes
    )


@pytest.mark.parametrize(
    "jobs",
    [
        [sharing_job("a", memory=0.5000000004), sharing_job("b", memory=0.5000000004)],
        [
            sharing_job(
                "a",
                gpus=2,
                compute={"fixed": 1e-200, "per_sample": 0.0},
                communication={"latency": 1e-200, "per_unit": 0, "message": 1},
                overlap=2.0,
            )
        ],
    ],
    ids=["memory to 1e-9", "iterations of 1e-200 s"],
)
def test_the_rules_of_gpu_sharing_forbid_nothing_that_the_problem_allows(jobs: list[dict[str, Any]]) -> None:
    """Both were certified infeasible once; the problem's checker accepts the schedule in which all begin at once."""
    servers = [{"id": "s0", "gpus": max(job["gpus"] for job in jobs)}]
    data = {"problem": "gpu-sharing", "name": "edge", "horizon": 3, "slot_length": 1.0, "servers": servers}
    instance = parse_instance({**data, "gpu_memory": 1.0, "max_jobs_per_gpu": 2, "jobs": jobs})[1]
    gpus = {job["id"]: [["s0", k] for k in range(job["gpus"])] for job in jobs}
    solution = {"start": dict.fromkeys(gpus, 1), "gpus": gpus, "accumulation": dict.fromkeys(gpus, 1)}
    report = schedgap.check(instance, solution)
    assert report.feasible and report.objective is not None
    for claim in (None, Fraction(report.objective) + 1):
        with pytest.raises(Unproven):
            prove(instance, claim, None)


def test_a_result_is_certified_without_solving_again(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = schedgap.generate("rar-ddls", seed=1)
    result = schedgap.solve(instance, confirm=False)
    lost = schedgap.solve(schedgap.load(ROOT / "tests" / "data" / "rar-13-infeasible-zero-rate.json"), confirm=False)

    def solves(*_: object, **__: object) -> None:
        raise AssertionError("it is solved again")

    monkeypatch.setattr("schedgap.solving.solve", solves)
    found = schedgap.certify(instance, result)
    assert found.optimal and found.value == result.objective and found.result.proof == "certified"
    claimed = replace(result, objective=1.0)  # the checker's objective counts
    assert schedgap.certify(instance, claimed).value == result.objective
    assert schedgap.certify(ROOT / "tests" / "data" / "rar-13-infeasible-zero-rate.json", lost).infeasible
    worse = {**result.solution, "start": {job: slot + 1 for job, slot in result.solution["start"].items()}}
    later = schedgap.certify(instance, replace(result, solution=worse))
    assert not later.optimal and "certified" not in str(later.result.proof)
    early = {**result.solution, "start": dict.fromkeys(result.solution["start"], 1)}
    with pytest.raises(schedgap.InputError, match="result: its schedule is rejected: "):
        schedgap.certify(instance, replace(result, solution=early))
    with pytest.raises(schedgap.InputError, match="outside the model"):
        schedgap.certify(instance, replace(result, info={"outside_model": True}))


def test_a_bound_that_is_not_there_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def none(instance: Any, _: object) -> None:
        asked.append(instance.name)
        raise Unproven("no prices")

    monkeypatch.setattr("schedgap.solvers.certificates.make_bound.prove_bound", none)
    assert schedgap.certify(schedgap.generate("rar-ddls", "tiny", seed=1)).optimal
    assert len(asked) == 1
