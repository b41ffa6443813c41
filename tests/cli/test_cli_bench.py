"""``schedgap bench``, ``report`` and ``verify`` as a user runs them, at the smallest scale."""

import csv
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command
from support.small_suite import ROWS

from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.sweep.store import FILE, Store
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS


@pytest.fixture(autouse=True)
def small_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick suite of one problem, with two instances."""
    workload = replace(workload_of(RAR_DDLS), suites=ROWS)
    monkeypatch.setattr(RAR_DDLS, "workload", lambda: workload)
    monkeypatch.setattr("schedgap.benchmarks.suites.plan.all_problems", lambda: {"rar-ddls": RAR_DDLS})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs a finished run makes it."""
    return tmp_path_factory.mktemp("finished") / "run"


@pytest.fixture
def run_folder(command: Command, finished: Path, tmp_path: Path) -> Path:
    """A finished run: a copy, which the test may change."""
    if not finished.exists():
        ran = command("bench", "--out", finished, "--workers", "1")
        assert ran.status == 0 and ran.out.splitlines()[-1] == f"report: {finished / 'report.html'}"
    return shutil.copytree(finished, tmp_path / "run")


def without_times(table: str) -> list[str]:
    """The lines that do not hold times."""
    return [line for line in table.splitlines() if "== quick ==" in line or "  held" in line or "  refuted" in line]


def test_bench_prints_its_table_and_resumes_without_repeating(command: Command, run_folder: Path) -> None:
    ran = command("bench", "--out", run_folder, "--resume")
    said, first, *_ = ran.out.split("\n\n")
    assert said.startswith("printed statements of the papers: ") and " with a known optimum" in said
    assert first.startswith("What is proven, and what is measured\n")
    assert "\nHow far the heuristics are from the best\n" in ran.out
    assert "Exact methods" not in ran.out
    row = next(line.split() for line in ran.out.splitlines() if line.startswith("  sjf-bco"))
    assert row[-3:] == ["2", "of", "2"]
    ran = command("bench", "--out", run_folder, "--resume", "--tables")
    assert ran.status == 0 and "disagreements between methods, engines and checker: 0" in ran.out
    assert f"report: {run_folder / 'report.html'}" in ran.out.splitlines()
    assert (run_folder / "report.html").stat().st_size > 10_000
    finished = re.search(r"(\d+) of (\d+) items had finished", ran.err)
    assert finished is not None and finished[1] == finished[2]
    again = command("bench", "--out", run_folder, "--resume", "--tables")
    assert without_times(again.out) == without_times(ran.out) != []
    ran = command("bench", "--out", run_folder, "--resume", "--seed", "5")
    assert ran.status == 2 and "has seed 0, not 5" in ran.message


def test_report_and_its_rows(command: Command, run_folder: Path, tmp_path: Path) -> None:
    ran = command("report", run_folder, "--csv", tmp_path / "rows.csv")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [str(tmp_path / "rows.csv"), str(run_folder / "report.html")]
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"highs", "ff", "sjf-bco"} and all(row["problem"] for row in rows)
    ran = command("report", run_folder, run_folder)
    assert ran.status == 0 and Path(ran.out.strip()).is_file()
    ran = command("report", run_folder, run_folder, "--csv")
    assert ran.status == 2 and ran.message == "--csv: exports one run, got two"


def test_the_ratios_of_a_run_are_drawn(command: Command, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "ratios.svg"
    ran = command("plot", "--ratios", run_folder, "--out", out)
    assert (ran.status, ran.out, ran.err) == (0, "", "") and out.stat().st_size > 5_000
    assert command("plot", "--ratios", tmp_path, "--out", out).status == 2
    ran = command("plot", "x.json", "y.json", "--ratios", run_folder, "--out", out)
    assert ran.message == "plot: --ratios draws a run, it takes no instance and no solution"
    assert "required: SOLUTION" in command("plot", "x.json", "--out", out).message


def test_verify_prints_the_ledger(command: Command, tmp_path: Path) -> None:
    arguments = ["verify", "000-lemma-2", "000-lemma-2-repaired", "--instances", "3", "--out", tmp_path]
    ran = command(*arguments)
    assert ran.status == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line.startswith("000-")}
    assert "refuted" in rows["000-lemma-2"] and "held (3 instances)" in rows["000-lemma-2-repaired"]
    found = json.loads(command(*arguments, "--json").out)
    assert [row["id"] for row in found["guarantees"]] == ["000-lemma-2", "000-lemma-2-repaired"]
    counterexample = tmp_path / "000-lemma-2.json"
    assert command("solve", counterexample, "--method", "sjf-bco").status == 0
    assert command("compare", counterexample, "--methods", "sjf-bco,lpt-colocate").status == 0


def test_report_refuses_before_it_writes(
    command: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = command("report", "--csv", run_folder)
    assert (ran.status, ran.out) == (2, "")
    assert ran.message.endswith(f"the run goes first: schedgap report {run_folder} --csv")
    assert command("report").message == "the following arguments are required: DIR (see: schedgap report --help)"
    ran = command("report", run_folder, "--csv", tmp_path)
    assert ran.status == 2 and ran.message == f"--csv: {tmp_path} is a directory, must be a file"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = command("report", run_folder, "--csv", "--parquet")
    assert ran.status == 2 and ran.message.startswith("--parquet: needs the package pyarrow")
    assert not (run_folder / "rows.csv").exists()


def test_report_of_an_unfinished_run_says_so(command: Command, run_folder: Path) -> None:
    with Store(run_folder / FILE) as store:
        key = next(store.rows()).key
        total = store.count
        store.keep({row.key for row in store.rows()} - {key})
    ran = command("report", run_folder)
    missing = f"UNFINISHED: {total - 1} of {total} items done"
    assert ran.status == 0 and ran.err == f"schedgap: note: {run_folder}: {missing}\n"
    assert missing in (run_folder / "report.html").read_text()
