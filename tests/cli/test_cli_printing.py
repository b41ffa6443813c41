"""What every method of every problem answers passes through everything that prints an answer."""

import json
from pathlib import Path

import pytest
from support.command import Command

import schedgap
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.analysis import instance_path
from schedgap.benchmarks.report.compare import Comparison, MethodRuns, compare
from schedgap.benchmarks.sweep.store import FILE, Store
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.result import Proof, Result, SolveOptions, Status

LIMITS = SolveOptions(threads=1, work_limit=0.02)
LEVELS = {*Proof, None}


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is solved to warm up, and no figure drawn."""
    monkeypatch.setattr("schedgap.benchmarks.report.compare.warm_once", lambda *_: None)
    monkeypatch.setattr("schedgap.benchmarks.report.page.as_svg", lambda *_: "<svg/>")


def comparison(problem: Problem, instance: Instance) -> Comparison:
    """Every method that takes the instance, side by side."""
    rows: list[MethodRuns] = []
    for method in problem.methods:
        try:
            found = compare(problem, instance, [method.id], LIMITS)
        except InputError as refusal:
            assert "needs an instance of two jobs" in str(refusal)
            continue
        rows += found.rows
    return Comparison(problem, instance, found.agreement, tuple(rows))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("problem", all_problems())
def test_every_method_through_every_way_of_printing(problem: str, command: Command, tmp_path: Path) -> None:
    instance = schedgap.generate(problem, "tiny", seed=0)
    found = comparison(find_problem(problem), instance)
    assert "proof" in found.to_text() + found._repr_html_() and len(found.to_frame()) == len(found.rows)
    assert {row["proof"] for row in json.loads(json.dumps(found.to_dict()))["rows"]} <= LEVELS

    path = instance_path(tmp_path, instance.content_hash())
    path.parent.mkdir()
    path.write_text(instance.to_json())
    records = [record for row in found.rows for record in row.records]
    with Store(tmp_path / FILE) as store:
        store.set_meta(suites=["quick"], planned=len(records))
        for k, record in enumerate(records):
            store.put(kept(record, instance, k))
    assert command("report", tmp_path, "--csv").status == 0
    with Store(tmp_path / FILE, read_only=True) as store:
        again = list(store.rows())
    assert [record.result.proof for record in again] == [record.result.proof for record in records]
    for record in again:
        printed(record, path, command)


def kept(record: Record, instance: Instance, position: int) -> Record:
    """As a run keeps it."""
    own = {"instance_hash": instance.content_hash(), "suite": "quick", "batch": "tiny"}
    return Record(**{**vars(record), **own, "key": str(position), "position": position})


def printed(record: Record, path: Path, command: Command) -> None:
    """What ``solve`` prints of it, and ``check`` of what ``solve --json`` printed."""
    text, data = record.to_text(find_problem(record.problem)), json.dumps(record.to_dict())
    result = record.result
    assert json.loads(data)["proof"] == result.proof and (result.proof is not None) == result.status.needs_proof
    assert ("  proof " in text) == result.status.needs_proof
    if result.solution is not None and not result.info.get("outside_model"):
        assert command("check", path, "-", stdin=data).status == 0


def test_an_unknown_level_of_proof_is_no_result() -> None:
    with pytest.raises(ValueError, match="exact bound"):
        Result(Status.OPTIMAL, 1.0, info={"proof": "exact bound"})


def test_an_optimum_that_the_exact_bound_proves_is_printed(command: Command, tmp_path: Path) -> None:
    """An engine out of its range, whose value the relaxation's duals prove in exact arithmetic."""
    path = tmp_path / "tiny.json"
    assert command("generate", "ddljs", "--preset", "tiny", "--seed", 0, "--out", path).status == 0
    ran = command("solve", path, "--method", "highs")
    assert ran.status == 0 and "status     optimal" in ran.out
    ran = command("compare", path, "--methods", "highs,cbc")
    assert ran.status == 0 and "claimed = one solver alone" in ran.out


def test_the_levels_of_the_library_are_listed(command: Command) -> None:
    ran = command("library", "list", "--problem", "ddljs", "--json")
    assert ran.status == 0
    assert {row.get("proof") for row in json.loads(ran.out)["records"]} <= LEVELS
