"""The ledger of paper 000: what `verify` refutes and holds; `solve` and `compare` read its counterexamples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedgap.benchmarks.ledger.rows import Ledger
from schedgap.benchmarks.ledger.verify import verify
from schedgap.benchmarks.report.compare import compare, run_method
from schedgap.catalogue.registry import load_instance
from schedgap.solvers.result import SolveOptions, Status

REFUTED = ("000-lemma-3", "000-lemma-4", "000-theorem-5")
HELD = (
    "000-lemma-2-repaired",
    "000-lemma-3-repaired",
    "000-theorem-5-gang",
    "000-theorem-5-repaired",
    "000-theorem-5-area",
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return verify([*REFUTED, *HELD], instances=30, out=tmp_path_factory.mktemp("counterexamples"))


def test_printed_claims_are_refuted_and_repaired_ones_held(ledger: Ledger) -> None:
    verdicts = {row.guarantee.id: str(row.verdict) for row in ledger.rows}
    assert verdicts == {**dict.fromkeys(REFUTED, "refuted"), **dict.fromkeys(HELD, "held")}
    repaired = next(row for row in ledger.rows if row.guarantee.id == "000-theorem-5-repaired")
    assert repaired.held >= 25
    assert repaired.worst_ratio is not None and repaired.worst_ratio > 1.4
    assert repaired.tightness is not None and repaired.tightness <= 1
    assert all(row.worst_ratio is not None and row.worst_ratio >= 1 for row in ledger.rows)


@pytest.mark.parametrize("name", REFUTED)
def test_counterexamples_are_read_by_solve_and_compare(ledger: Ledger, name: str) -> None:
    row = next(row for row in ledger.rows if row.guarantee.id == name)
    path = row.counterexample
    assert isinstance(path, Path)
    problem, instance = load_instance(path)
    data = json.loads(path.read_text())
    shown = data["reference_counterexample"]
    assert shown["left"] > shown["right"]
    result = run_method(problem, instance, "cp", SolveOptions(threads=1))
    assert (result.status, result.objective) == (Status.OPTIMAL, shown["optimum"])
    # Some need options that are no option of the command line, such as estimates job by job.
    if set(shown["options"]) <= set(next(m for m in problem.methods if m.id == "sjf-bco").options):
        comparison = compare(problem, instance, ["cp", "sjf-bco"], SolveOptions(threads=1), shown["options"])
        found = {j.guarantee.id: j for j in comparison.rows[1].judgements}[name]
        assert str(found.verdict) == "refuted"
        assert (found.evaluation.left, found.evaluation.right) == (shown["left"], shown["right"])


def test_theorem_5_fails_where_every_job_has_one_gpu(ledger: Ledger) -> None:
    path = next(row for row in ledger.rows if row.guarantee.id == "000-theorem-5").counterexample
    assert path is not None
    data = json.loads(path.read_text())
    shown = data["reference_counterexample"]
    gpus = sum(server["gpus"] for server in data["servers"])
    assert all(job["gpus"] == 1 for job in data["jobs"])
    assert shown["objective"] / shown["optimum"] == pytest.approx(2 - 1 / gpus)  # the family's ratio, bound n_g = 1
