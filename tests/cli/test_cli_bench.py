"""``schedgap bench``, ``report`` and ``verify`` on the real problems, small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Command

from schedgap.benchmarks.problems import PROBLEMS, load_instance
from schedgap.benchmarks.suites import SUITES, plan, suites_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """One small quick run: its folder, standard output and standard error."""
    folder = tmp_path_factory.mktemp("bench") / "results"
    command = [sys.executable, "-m", "schedgap.cli.main", "bench", "--out", str(folder), "--scale", "0.1"]
    ran = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder, ran.stdout, ran.stderr


def test_bench_prints_one_table_and_the_path_of_the_report(run: tuple[Path, str, str]) -> None:
    folder, out, err = run
    lines = out.rstrip().splitlines()
    assert lines[-1] == f"report: {folder / 'report.html'}"
    assert "disagreements between methods, engines and checker: 0" in lines
    assert max(map(len, lines[:-1])) <= 120
    for problem in PROBLEMS.values():
        assert any(line.startswith(f"== quick == {problem.id}:") for line in lines)
        for method in problem.methods:
            if method.kind == "heuristic":
                assert any(line.split() and line.split()[0] == method.id for line in lines), method.id
    assert "failed" not in out
    assert "bench " in err


def test_the_report_has_every_problem(run: tuple[Path, str, str]) -> None:
    content = (run[0] / "report.html").read_text()
    for problem in PROBLEMS.values():
        assert f'id="quick-{problem.id}"' in content
    assert "Worst case of" in content and "What ran where" in content


def test_resume_after_the_end_repeats_nothing(command: Command, run: tuple[Path, str, str]) -> None:
    folder, _, _ = run
    table = (folder / "table.txt").read_text()
    again = command("bench", "--out", folder, "--resume")
    assert again.status == 0, again.err
    assert " items had finished" in again.err
    assert "bench 1/" not in again.err
    assert (folder / "table.txt").read_text() == table


def test_report_exports_and_compares(command: Command, run: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, _, _ = run
    exported = command("report", folder, "--csv", tmp_path / "rows.csv")
    assert exported.status == 0, exported.err
    assert (tmp_path / "rows.csv").read_text().startswith("suite,problem,batch,instance,")
    compared = command("report", folder, folder)
    assert compared.status == 0 and compared.out.strip() == str(folder / "comparison.html")
    nothing = command("report", tmp_path)
    assert nothing.status == 2 and "there is no run here" in nothing.err


def test_bench_refuses_bad_arguments(command: Command, run: tuple[Path, str, str], tmp_path: Path) -> None:
    for arguments, words in (
        (["nope"], "unknown suite 'nope'"),
        (["--time-limit", "0"], "limit"),
        (["--resume", "--seed", "9"], "has seed 0, not 9"),
    ):
        ran = command("bench", *arguments, "--out", run[0])
        assert ran.status == 2 and words in ran.err, ran.err
        assert len(ran.err.strip().splitlines()) == 1
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert command("bench", "--out", blocked / "results").status == 2


def test_verify_refutes_and_holds_with_files_that_solve_reads(command: Command, tmp_path: Path) -> None:
    asked = ["000-lemma-3", "000-lemma-4", "000-theorem-5", "000-theorem-5-gang", "000-theorem-5-repaired"]
    ran = command("verify", *asked, "--instances", 30, "--out", tmp_path, "--json")
    assert ran.status == 0, ran.err
    rows = {row["id"]: row for row in json.loads(ran.out)["guarantees"]}
    assert [rows[name]["verdict"] for name in asked] == ["refuted"] * 3 + ["held"] * 2
    for name in asked[:3]:
        path = Path(rows[name]["counterexample"])
        problem, _ = load_instance(path)
        shown = json.loads(path.read_text())["reference_counterexample"]
        assert shown["left"] > shown["right"]
        solved = json.loads(command("solve", path, "--method", problem.methods[0].id, "--json").out)
        assert (solved["status"], solved["objective"]) == ("optimal", shown["optimum"])
        assert command("compare", path).status == 0
    assert rows["000-theorem-5-repaired"]["worst_ratio"] > 1.4
    assert rows["000-theorem-5-repaired"]["tightness"] <= 1
    plain = command("verify", "000-lemma-3", "--instances", 10, "--out", tmp_path)
    assert "refuted" in plain.out and str(tmp_path / "000-lemma-3.json") in plain.out
    assert command("verify", "000-lemma-99").status == 2


def test_every_suite_of_every_problem_can_be_planned() -> None:
    for problem in PROBLEMS.values():
        assert "quick" in suites_of(problem)
        assert set(suites_of(problem)) <= set(SUITES)
        for suite in suites_of(problem):
            items = plan([suite], scale=0.01, problems=[problem])
            assert items and len({item.key for item in items}) == len(items)


def test_cross_has_300_random_instances_half_of_them_contended() -> None:
    items = plan(["cross"], problems=[PROBLEMS["rar-ddls"]])
    hashes: dict[str, set[str]] = {}
    for item in items:
        hashes.setdefault(item.batch, set()).add(item.instance_hash)
    assert len(hashes["random"]) >= 148 and len(hashes["forced to contend"]) >= 148
    exact = {item.task.id for item in items if getattr(item.task, "kind", "") != "heuristic"}
    assert exact >= {"brute-force", "cp", "cbc", "highs", "cpsat"}
