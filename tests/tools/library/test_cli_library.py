"""``schedgap library``: what is submitted is checked, a record gets better or stays, proofs are not contradicted."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

from schedgap.formulations.common.instance import read_json
from schedgap.solvers.certificates import checker
from schedgap.solvers.result import Proof
from schedgap.tools.library import collection
from schedgap.tools.library.collection import Entry, find, read

ID = "rar-ddls/worst-ff"
HEURISTIC = """
import json
from pathlib import Path

def best(instance, *, seed=0):
    return json.loads(Path("best.json").read_text())

def nothing(instance, *, seed=0):
    return None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library where the record of ID has a poor schedule and no bound, in a folder with best.json and poor.json."""
    from schedgap import solve

    monkeypatch.chdir(tmp_path)
    entry = find(ID)
    poor = solve(entry.instance, "sjf-bco")
    assert poor.solution is not None and poor.objective is not None and entry.known.objective is not None
    assert poor.objective > entry.known.objective and entry.known.proof == "certified"
    (tmp_path / "best.json").write_text(json.dumps(entry.known.solution))
    (tmp_path / "poor.json").write_text(json.dumps(poor.solution))
    rewritten(entry, tmp_path / "lib", objective=poor.objective, solution=poor.solution, **NO_BOUND)
    return tmp_path / "lib"


NO_BOUND: Mapping[str, Any] = {"bound": None, "proof": None, "proven": None, "status": "open"}


def rewritten(entry: Entry, folder: Path, **change: Any) -> Path:
    path = Entry(entry.known.model_copy(update=change), entry.data, entry.path).write(folder).path
    assert path is not None
    return path


def record(folder: Path) -> Entry:
    return read(folder / "rar_ddls" / "worst-ff.json")


def submit(command: Command, folder: Path, *arguments: object) -> tuple[int, str]:
    before = sorted((path.name, path.read_bytes()) for path in folder.rglob("*.*"))
    ran = command("library", "submit", ID, *arguments, "--by", "A. N. Other", "--library", folder)
    if "improved" not in ran.out or "no improvement" in ran.out:
        assert sorted((path.name, path.read_bytes()) for path in folder.rglob("*.*")) == before
    return ran.status, ran.out + ran.err


def test_one_malformed_record_is_one_line_and_the_others_are_listed(command: Command, folder: Path) -> None:
    for name, text in (("broken", "{"), ("bare", "{}"), ("elsewhere", '{"reference_record": {"id": "rar-ddls/x"}}')):
        (folder / "rar_ddls" / f"{name}.json").write_text(text)
    (folder / "no-problem").mkdir()
    data = json.loads((folder / "rar_ddls" / "worst-ff.json").read_text())
    data["reference_record"]["id"] = "no-problem/y"
    (folder / "no-problem" / "y.json").write_text(json.dumps(data))
    data["reference_record"]["id"] = "rar-ddls/no-instance"
    (folder / "rar_ddls" / "no-instance.json").write_text(json.dumps({**data, "jobs": "all"}))
    data["reference_record"]["id"] = "rar-ddls/good-beside-them"
    (folder / "rar_ddls" / "good-beside-them.json").write_text(json.dumps(data))
    ran = command("library", "list", "--problem", "rar-ddls", "--library", folder)
    assert ran.status == 2 and "rar-ddls/good-beside-them" in ran.out
    lines = ran.err.splitlines()
    assert len(lines) == 5 and all("note: " in line and str(folder) in line for line in lines)
    checked = command("library", "list", "--check", "--problem", "rar-ddls", "--library", folder)
    assert checked.status == 2 and "rar-ddls/good-beside-them" in checked.out
    assert command("library", "solve", ID, "--library", folder).status == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_named_pipes_and_devices_in_a_folder_are_refused_at_once(command: Command, folder: Path) -> None:
    """Nobody writes to such a pipe, and such a device never ends: whoever reads them waits for ever."""
    path = rewritten(find(ID), folder)
    certificate = read(path).certificate
    assert certificate is not None
    certificate.unlink()
    os.mkfifo(certificate)
    os.mkfifo(folder / "rar_ddls" / "pipe.json")
    (folder / "rar_ddls" / "zeros.json").symlink_to("/dev/zero")
    ran = command("library", "list", "--check", "--problem", "rar-ddls", "--library", folder)
    assert ran.status == 2 and [line.split(": ", 2)[2] for line in ran.err.splitlines()] == [
        f"{ID}: {certificate}: is not a regular file",
        *(f"{folder}/rar_ddls/{name}.json: is not a regular file" for name in ("pipe", "zeros")),
    ]
    for line in (("solve",), ("import", "slurm", "--problem", "rar-ddls", "--out", folder / "new"), ("judge",)):
        ran = command(*line, certificate)
        assert ran.status == 2 and ran.err == f"schedgap: error: {certificate}: is not a regular file\n"
    standalone = [sys.executable, checker.__file__, str(path), str(certificate)]
    ended = subprocess.run(standalone, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (2, f"cannot be read: {certificate}: is not a regular file\n")
    reader, writer = os.pipe()
    os.write(writer, b'{"a": 1}')
    os.close(writer)
    assert read_json(f"/dev/fd/{reader}") == {"a": 1}, "what a shell makes of <(command) is read"
    os.close(reader)


def test_a_missing_certificate_and_a_broken_instance_are_lines_of_the_check(tmp_path: Path) -> None:
    from schedgap.tools.library.records import library_faults

    path = rewritten(find(ID), tmp_path / "lib")
    entry = read(path)
    assert entry.certificate is not None
    entry.certificate.unlink()
    broken = Entry(entry.known.model_copy(update={"id": "rar-ddls/broken"}), {**entry.data, "jobs": 7}, path)
    poor = Entry(entry.known.model_copy(update={"id": "rar-ddls/poor", "certificate": None}), entry.data, path)
    faults = library_faults([entry, broken, poor])
    assert list(faults) == [ID, "rar-ddls/broken", "rar-ddls/poor"]
    assert faults[ID] == [f"{entry.certificate}: cannot be read as a certificate: No such file or directory"]
    assert len(faults["rar-ddls/broken"]) == 1 and "jobs: must be a list, got 7" in faults["rar-ddls/broken"][0]


def test_a_folder_is_read_once_for_all_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from schedgap.tools.library.records import library_solve

    path = rewritten(find(ID), tmp_path / "lib")
    find(ID)  # the shipped records are kept
    read_files: list[Path] = []
    monkeypatch.setattr(collection, "read", lambda path: (read_files.append(path), read(path))[1])
    runs = library_solve([ID, ID], "ff", library=tmp_path / "lib")
    assert read_files == [path] and [run.entry.path for run in runs] == [path, path]


def test_a_better_schedule_and_then_its_certificate(command: Command, folder: Path) -> None:
    shipped = find(ID)
    status, text = submit(command, folder, "best.json")
    known = record(folder).known
    assert status == 0 and "improved, open" in text and known.found is not None
    assert (known.objective, known.found.by, known.status) == (shipped.known.objective, "A. N. Other", "open")
    for again, told in (("best.json", "the same as"), ("poor.json", "worse than")):
        status, text = submit(command, folder, again)
        assert status == 0 and told in text and "no improvement" in text
    status, text = submit(command, folder, "--certificate", shipped.certificate)
    known = record(folder).known
    assert status == 0 and "improved, optimal" in text and known.proven is not None
    assert (known.status, known.proof, known.proven.by) == ("optimal", "certified", "A. N. Other")
    assert not collection.faults(record(folder))
    status, text = submit(command, folder, "--certificate", shipped.certificate)
    assert status == 0 and "no improvement" in text


def test_a_certificate_raises_the_level_of_proof(command: Command, folder: Path) -> None:
    shipped = find(ID)
    rewritten(shipped, folder, proof=Proof.CLAIMED)
    assert record(folder).known.certificate is None
    status, text = submit(command, folder, "--certificate", shipped.certificate)
    assert status == 0 and "certified" in text and record(folder).known.proof == "certified"
    rewritten(shipped, folder, proof=Proof.CLAIMED, bound=shipped.known.bound - 1, status="open")  # type: ignore[operator]
    status, text = submit(command, folder, "best.json", "--certificate", shipped.certificate)
    assert status == 0 and "the same as" in text and "improved, optimal" in text


def test_what_is_wrong_is_refused(command: Command, folder: Path, tmp_path: Path) -> None:
    shipped = find(ID)
    best = json.loads((tmp_path / "best.json").read_text())
    moved = {**best, "start": {job: start + 1000 for job, start in best["start"].items()}}
    (tmp_path / "moved.json").write_text(json.dumps(moved))
    assert submit(command, folder, "moved.json")[0] == 1
    assert shipped.certificate is not None
    forged = json.loads(gzip.decompress(shipped.certificate.read_bytes()))
    forged["claim"] = str(int(forged["claim"]) + 5)
    (tmp_path / "forged.cert").write_text(json.dumps(forged))
    status, text = submit(command, folder, "best.json", "--certificate", "forged.cert")
    assert status == 1 and "certificate: rejected" in text and "refused" in text
    other = find("rar-ddls/tiny-0").certificate
    status, text = submit(command, folder, "best.json", "--certificate", other)
    assert status == 1 and "certificate: rejected" in text
    for text in ("no JSON", "[]"):
        (tmp_path / "none.cert").write_text(text)
        status, told = submit(command, folder, "best.json", "--certificate", "none.cert")
        assert status == 2 and "the certificate " in told
    (tmp_path / "half.json").write_text("{}")
    status, told = submit(command, folder, "half.json")
    assert status == 2 and "half.json: " in told
    assert submit(command, folder)[0] == 2
    ran = command("library", "submit", "rar-ddls/worst-f", "best.json", "--by", "N", "--library", folder)
    assert ran.status == 2 and "did you mean 'rar-ddls/worst-ff'" in ran.message
    ran = command("library", "submit", ID, "best.json", "--by", " ", "--library", folder)
    assert ran.status == 2 and "by: must be a name" in ran.message


def test_better_than_a_proven_optimum_stops_everything(command: Command, folder: Path, tmp_path: Path) -> None:
    poor = record(folder).known
    shipped = find(ID).known
    forged = {"bound": poor.objective, "proof": Proof.AGREED, "proven": shipped.proven, "status": "optimal"}
    rewritten(record(folder), folder, **forged)
    status, text = submit(command, folder, "best.json")
    assert status == 5 and "accepted by the checker" in text
    (kept,) = (tmp_path / "disagreements").glob("*.json")
    assert json.loads(kept.read_text())["reference_solution"] == shipped.solution
    (tmp_path / "mine.py").write_text(HEURISTIC)
    ran = command("library", "solve", ID, "--method", "mine.py:best", "--library", folder)
    assert ran.status == 5 and "accepted by the checker" in ran.out


def test_an_installed_collection_is_not_written_into(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedgap.tools.library.records.SHIPPED", folder / "a" / "b" / "c")
    ran = command("library", "submit", ID, "best.json", "--by", "N")
    assert ran.status == 2 and "--library DIR is needed" in ran.message


def test_a_method_of_ones_own_over_the_records(command: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEURISTIC)
    ran = command("library", "solve", ID, "--method", "mine.py:best", "--library", folder, "--out", "runs")
    assert ran.status == 0 and "improves the record" in ran.out and "1 better than the best known" in ran.out
    status, text = submit(command, folder, "runs/rar-ddls-worst-ff.json")
    found = record(folder).known.found
    assert status == 0 and "improved" in text and found is not None and found.method == "mine.py:best"
    ran = command("library", "solve", ID, "--method", "sjf-bco", "--json")
    (run,) = json.loads(ran.out)
    assert ran.status == 0 and run["ratio_to"] == "optimum" and not run["improves"]
    assert run["ratio"] == run["objective"] / run["best_known"] > 1
    assert command("library", "solve", ID, "--method", "mine.py:nothing").status == 4
    assert command("library", "solve", ID, "--problem", "hadar").status == 2
    assert command("library", "solve", ID, "--method", "greedy").status == 2


def test_the_list_and_its_check(command: Command, folder: Path) -> None:
    ran = command("library", "list", "--problem", "rar-ddls", "--library", folder)
    assert ran.status == 0 and any(line.startswith(ID) and " open " in line for line in ran.out.splitlines())
    ran = command("library", "list", "--json")
    listed = json.loads(ran.out)
    assert len(listed["records"]) == len(collection.entries()) and listed["license"] == "MIT"
    assert not {"solution"} & listed["records"][0].keys()
    path = rewritten(record(folder), folder / "wrong", objective=1.0)
    ran = command("library", "list", "--problem", "rar-ddls", "--library", folder / "wrong", "--check")
    assert ran.status == 1 and f"{ID}: makespan 1 recorded" in ran.err
    path.write_text("{}")
    ran = command("library", "list", "--library", folder / "wrong")
    assert ran.status == 2 and "reference_record: is missing" in ran.err


def test_who_accepted_a_certificate_is_told_until_there_is_another(command: Command, tmp_path: Path) -> None:
    entry = find("g-vne/tiny-1")
    assert entry.known.accepted and entry.certificate is not None
    line = next(line for line in command("library", "list").out.splitlines() if line.startswith("g-vne/tiny-1 "))
    assert "ours, viprchk" in line and "ours, viprchk" not in command("library", "list", "--problem", "hadar").out
    same = entry.write(tmp_path / "lib")
    assert same.known.accepted == entry.known.accepted
    changed = same.write(
        tmp_path / "lib", {**json.loads(gzip.decompress(same.certificate.read_bytes())), "note": "new"}
    )
    assert changed.known.certificate != same.known.certificate and changed.known.accepted == []
    gone = Entry(entry.known.model_copy(update=NO_BOUND), entry.data, entry.path).write(tmp_path / "lib")
    assert gone.known.certificate is None and gone.known.accepted == []
    said = Entry(entry.known.model_copy(update={**NO_BOUND, "certificate": None}), entry.data, entry.path)
    assert "a certificate is accepted by checkers of others, but there is none" in collection.faults(said)


def test_records_in_the_fields_of_scheduleopt(command: Command) -> None:
    """Both bounds of the optimum; the side of the schedule is the lower one where the objective is maximised."""
    rows = {row["instance"]: row for row in json.loads(command("library", "list", "--bks").out)}
    assert len(rows) == len(collection.entries())
    fields = {"value", "date", "solver", "hardware", "time", "certificate"}
    for entry in collection.entries():
        row, known = rows[entry.id], entry.known
        assert set(row) == {"instance", "family", "status", "lb", "ub"}
        assert all(row[side] is None or set(row[side]) == fields for side in ("lb", "ub"))
        schedule, bound = (row["ub"], row["lb"]) if entry.problem.sense > 0 else (row["lb"], row["ub"])
        assert schedule["value"] == known.objective and schedule["certificate"] == "yes"
        assert (bound is None) == (known.bound is None)
        assert bound is None or (bound["certificate"] == "yes") == (known.proof is Proof.CERTIFIED)
        assert (row["status"] == "closed") == (known.status == "optimal")
        if row["lb"] is not None and row["ub"] is not None:
            assert row["lb"]["value"] <= row["ub"]["value"] * (1 + 1e-9) + 1e-9
    assert rows["g-vne/tiny-1"]["lb"]["solver"] == "schedgap colgen highs 1.13.1 schedgap 0.1.0"
    assert rows["g-vne/tiny-1"]["lb"]["hardware"] is None and rows["g-vne/tiny-1"]["lb"]["time"] is None
    both = command("library", "list", "--bks", "--json")
    assert both.status == 2 and "--json: not allowed with argument --bks" in both.message and not both.out


def test_names_of_strangers_do_not_steer_the_terminal(command: Command, folder: Path) -> None:
    """Authors of records, files that are not there; JSON stays what it says."""
    who = "A\x1b[2J\x9b1m\u202e\x7f\r\x07"
    entry = read(folder / "rar_ddls" / "worst-ff.json")
    rewritten(entry, folder, found=entry.known.found.model_copy(update={"by": who}))
    listed = command("library", "list", "--library", folder)
    written = command("library", "list", "--library", folder, "--json")
    missing = command("check", folder / "a\x1b]0;title\x07.json", folder / "best.json")
    assert "A\\u001b[2J\\u009b1m\\u202e\\u007f\\r\\u0007" in listed.out.replace("\n", "")
    assert who in [(record["found"] or {}).get("by") for record in json.loads(written.out)["records"]]
    assert "\\u001b]0;title\\u0007" in missing.message
    for text in (listed.out, written.out, missing.err):
        assert all(letter.isprintable() for letter in text.replace("\n", "")), text
