"""``schedgap solve`` and ``compare``: the contract of --json, files, starts, own heuristics, limits, Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import Command
from support.work import PATIENCE, with_growing_limit

from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.solvers.result import Deadline

ENTRY = [sys.executable, "-m", "schedgap.cli.main"]
KEYS = ["problem", "instance", "method", "engine", "status", "objective", "bound", "gap", "seconds", "seed",
        "proof", "solution"]  # fmt: skip
INTERPRETED = "interpreted_seconds"
"""A key beside them, where a kernel ran as Python in place of its first compilation."""


def solved(command: Command, *arguments: object, status: int = 0, stdin: str = "") -> dict[str, Any]:
    ran = command("solve", *arguments, "--json", stdin=stdin)
    assert ran.status == status, ran.err
    assert ran.out.count("\n") == 1
    found: dict[str, Any] = json.loads(ran.out)
    assert [key for key in found if key != INTERPRETED] == KEYS
    return found


def hard(command: Command, folder: Path) -> Path:
    """An instance that no method proves within this test."""
    path = folder / "hard.json"
    settings = ["servers=7", "jobs=30", "singles=5", "slots=8"]
    assert command("generate", "rar-ddls", "--preset", "contended", "--set", *settings, "--out", path).status == 0
    return path


def test_the_default_is_the_strongest_exact_method(command: Command, mixed: Path) -> None:
    found = solved(command, mixed, "--seed", 7)
    assert (found["problem"], found["instance"], found["method"]) == ("rar-ddls", "rar-14-mixed", "cp")
    assert (found["status"], found["objective"], found["bound"], found["gap"]) == ("optimal", 12, 12, 0)
    assert found["engine"] == "cpsat" and found["seed"] == 7 and found["seconds"] > 0
    assert set(found["solution"]) == {"start", "placement"}


def test_what_solve_prints_is_what_check_takes(command: Command, mixed: Path, tmp_path: Path) -> None:
    ran = command("solve", mixed, "--method", "lpt-colocate", "--json", "--out", tmp_path / "bare.json")
    (tmp_path / "whole.json").write_text(ran.out)
    assert json.loads((tmp_path / "bare.json").read_text()) == json.loads(ran.out)["solution"]
    for name in ("bare.json", "whole.json"):
        checked = json.loads(command("check", mixed, tmp_path / name, "--json").out)
        assert checked["feasible"] and checked["objective"] == json.loads(ran.out)["objective"]


@pytest.mark.parametrize("method", [m.id for m in RAR_DDLS.methods if m.kind == "heuristic"])
def test_every_heuristic(command: Command, mixed: Path, method: str) -> None:
    runs = [command("solve", mixed, "--method", method, "--seed", seed, "--json") for seed in range(4)]
    for ran in runs:
        found = json.loads(ran.out)
        assert found["method"] == method and found["engine"] is None
        if found["solution"] is None:  # rand does not always fit the horizon
            assert (ran.status, found["status"], found["objective"], found["gap"]) == (4, "unknown", None, None)
            assert found["proof"] is None  # the bound that it brings proves nothing of the answer
            continue
        assert ran.status == 0 and found["status"] in ("optimal", "feasible") and found["objective"] >= 12
        assert found["gap"] == pytest.approx(abs(found["objective"] - found["bound"]) / found["objective"])
    assert any(ran.status == 0 for ran in runs)


def test_for_a_person(command: Command, data: Path, tmp_path: Path) -> None:
    ran = command("solve", data / "rar-02-colocated-optimum.json", "--method", "highs", "--no-confirm")
    lines = ran.out.splitlines()
    assert ran.status == 0 and all(line.startswith("highs ") for line in ran.err.splitlines())
    assert lines[0].startswith("rar-02-colocated-optimum: ")
    fields = dict(line.split(maxsplit=1) for line in lines[1:])
    assert fields["proof"] == "claimed: one solver alone"
    assert (
        fields["status"] == "optimal, claimed by highs"
        and fields["makespan"] == "5 slots"
        and fields["bound"] == "5, gap 0%"
    )
    assert json.loads(fields["solution"])["start"].keys() == {"j0", "j1", "j2"}
    ran = command("solve", data / "rar-02-colocated-optimum.json", "--method", "ff", "--out", tmp_path / "s.json")
    assert f"  solution   in {tmp_path / 's.json'}" in ran.out.splitlines()
    ran = command("solve", data / "rar-08-infeasible-horizon.json", "--method", "cpsat")
    assert ran.status == 3 and "infeasible" in ran.out and "makespan   -" in ran.out
    ran = command("solve", data / "rar-14-mixed.json", "--method", "lpt-colocate")
    assert "  proof " not in ran.out  # only the bound is proven


def test_standard_input_and_a_name_for_what_has_none(command: Command, mixed: Path, tmp_path: Path) -> None:
    assert solved(command, "-", "--method", "ff", stdin=mixed.read_text())["instance"] == "rar-14-mixed"
    data = json.loads(mixed.read_text())
    del data["name"]
    assert solved(command, "-", "--method", "ff", stdin=json.dumps(data))["instance"] == "standard input"
    (tmp_path / "case.json").write_text(json.dumps(data))
    assert solved(command, tmp_path / "case.json", "--method", "ff")["instance"] == "case"


def test_infeasible_is_a_status(command: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    found = solved(command, data / "rar-08-infeasible-horizon.json", "--out", out, status=3)
    assert (found["status"], found["objective"], found["gap"], found["solution"]) == ("infeasible", None, None, None)
    assert not out.exists()


def test_a_heuristic_that_finds_nothing(command: Command, data: Path) -> None:
    case = data / "rar-08-infeasible-horizon.json"
    found = solved(command, case, "--method", "lpt-colocate", status=4)
    assert (found["status"], found["objective"], found["solution"]) == ("unknown", None, None)
    said = command("solve", case, "--method", "lpt-colocate", "--json").err
    assert said.startswith("schedgap: note: lpt-colocate found no solution: ") and "horizon" in said


def test_what_found_nothing_has_no_metrics(command: Command, tmp_path: Path) -> None:
    """They would be means over the jobs that ended in time."""
    path = tmp_path / "x.json"
    command("generate", "gpu-sharing", "--preset", "tiny", "--seed", "0", "--out", path)
    ran = command("solve", path, "--method", "sjf")
    assert "unknown" in ran.out and "metrics" not in ran.out


def test_options_of_a_method(command: Command, mixed: Path) -> None:
    solved(command, mixed, "--method", "sjf-bco", "--set", "kappa=1", "bisection=feasible", "--seed", "1")


def test_a_start_is_checked_and_never_lost(command: Command, mixed: Path, tmp_path: Path) -> None:
    reference = json.loads(mixed.read_text())["reference_solution"]
    start = tmp_path / "start.json"
    start.write_text(json.dumps(reference))
    found = solved(command, mixed, "--start", start, "--method", "cpsat")
    assert (found["status"], found["objective"]) == ("optimal", 12)
    ran = command("solve", mixed, "--start", start, "--method", "ff", "--json")
    assert ran.err == "schedgap: note: ff makes no use of --start\n" and json.loads(ran.out)["objective"] == 12
    reference["start"]["j0"] = 1
    start.write_text(json.dumps(reference))
    ran = command("solve", mixed, "--start", start)
    assert ran.status == 2 and ran.message.startswith(f"{start}: not a feasible start: server s2, slot")
    reference["start"]["j9"] = 1
    start.write_text(json.dumps(reference))
    assert command("solve", mixed, "--start", start).message.startswith(f"{start}: ")


OWN = '''
def one_by_one(instance, *, seed):
    """Jobs one after the other on the first servers that hold them, each for as long as it could take."""
    start, placement, now = {}, {}, 1
    for job in instance.jobs:
        left, places = job.gpus, {}
        for server in instance.servers:
            if left:
                places[server.id] = min(left, server.gpus)
                left -= places[server.id]
        start[job.id], placement[job.id] = now, places
        now += 6
    return {"start": start, "placement": placement}

def wrong(instance, *, seed):
    return {"start": {job.id: 1 for job in instance.jobs}, "placement": {job.id: {"s0": 1} for job in instance.jobs}}

def garbage(instance, *, seed):
    return [1, 2]

def nothing(instance, *, seed):
    return None

def fails(instance, *, seed):
    return {}["a"]

def leaves(instance, *, seed):
    raise SystemExit(0)

def prints(instance, *, seed):
    print("hello")
    return one_by_one(instance, seed=seed)
'''


def test_a_heuristic_of_ones_own(command: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_heuristic.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    case = data / "rar-02-colocated-optimum.json"
    found = solved(command, case, "--method", "own_heuristic:one_by_one")
    assert found["status"] == "feasible" and found["method"] == "own_heuristic:one_by_one" and found["objective"] > 5
    assert solved(command, case, "--method", "own_heuristic:nothing", status=4)["status"] == "unknown"
    assert solved(command, case, "--method", "own_heuristic:prints")["objective"] == found["objective"]
    for name in ("wrong", "garbage", "fails", "leaves"):
        ran = command("solve", case, "--method", f"own_heuristic:{name}")
        assert ran.status == 2 and ran.message.startswith(f"method own_heuristic:{name}: ")


def test_a_time_limit_is_kept(command: Command, tmp_path: Path) -> None:
    """Without it neither ends within hours."""
    path = hard(command, tmp_path)
    for method in ("cp", "highs"):
        ran = command("solve", path, "--method", method, "--time-limit", "2", "--json")
        found = json.loads(ran.out)
        assert ran.status in (0, 4) and found["seconds"] > 0
        assert found["status"] in ("feasible", "unknown") and found["bound"] is not None


def test_ctrl_c_prints_the_best_so_far(command: Command, tmp_path: Path) -> None:
    path = hard(command, tmp_path)
    arguments = [*ENTRY, "solve", str(path), "--json", "--out", str(tmp_path / "s.json")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = [process.stderr.readline()]
    while "objective -" in told[-1]:  # until something was found
        told.append(process.stderr.readline())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    found = json.loads(out)
    assert (
        [key for key in found if key != INTERPRETED] == KEYS
        and found["status"] == "feasible"
        and found["objective"] >= found["bound"] > 0
    )
    assert command("check", path, tmp_path / "s.json").status == 0
    assert all(line.startswith("cp ") and "bound" in line for line in [*told, *err.splitlines()] if line)


def test_ctrl_c_before_anything_was_found(command: Command, tmp_path: Path) -> None:
    path = hard(command, tmp_path)
    wait = "def wait(instance, *, seed):\n    print('here', flush=True, file=sys.stderr)\n    time.sleep(3600)\n"
    (tmp_path / "slow.py").write_text(f"import sys\nimport time\n{wait}")
    arguments = [*ENTRY, "solve", str(path), "--json", "--method", "slow:wait"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None and process.stderr.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in err) == (130, False), err
    assert json.loads(out)["status"] == "unknown" and json.loads(out)["solution"] is None


def test_a_terminal_has_one_line_that_is_updated(command: Command, tmp_path: Path) -> None:
    path = hard(command, tmp_path)

    def enough(told: tuple[str, bytes]) -> bool:
        # no line after the last one: within a very short limit cp finds nothing, or has no time for its model
        return told[1].count(b"\r") >= 3 and b"\n" not in told[1]

    out, seen = with_growing_limit(lambda limit: on_a_terminal(path, limit), enough, 3)
    assert json.loads(out)["method"] == "cp"
    assert b"\n" not in seen and seen.count(b"\r") >= 3 and b"objective" in seen


def on_a_terminal(path: Path, limit: Deadline) -> tuple[str, bytes]:
    """What a run says to its output and to its terminal."""
    ours, theirs = pty.openpty()
    arguments = [*ENTRY, "solve", str(path), "--json", "--time-limit", str(limit.remaining())]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    out, _ = process.communicate(timeout=PATIENCE)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    return out, seen


def test_compare_prints_a_table(command: Command, mixed: Path) -> None:
    ran = command("compare", mixed, "--methods", "cp,sjf-bco,lpt-colocate")
    lines = ran.out.splitlines()
    assert ran.status == 0 and all(line.startswith("compare ") for line in ran.err.splitlines())
    assert lines[0] == "optimum, claimed: 12 slots" and lines[1].startswith("closest: ") and not lines[2]
    assert lines[3].split()[:5] == ["method", "status", "objective", "bound", "ratio"]
    assert {"cp", "sjf-bco", "lpt-colocate"} <= {line.split(maxsplit=1)[0] for line in lines[5:] if line[:1].strip()}
    assert "to optimum" in ran.out
    found = json.loads(command("compare", mixed, "--methods", "cp,sjf-bco,lpt-colocate", "--json").out)
    assert found["optimum"] == 12 and [row["method"] for row in found["rows"]] == ["cp", "sjf-bco", "lpt-colocate"]
    assert all(row["ratio"] >= 1 and row["ratio_to"] == "optimum" for row in found["rows"])


def test_compare_repeats_with_seeds_and_labels_ratios_to_a_bound(command: Command, mixed: Path) -> None:
    found = json.loads(command("compare", mixed, "--methods", "rand,ff", "--repeat", "3", "--seed", "4", "--json").out)
    assert found["optimum"] is None
    assert all(row["ratio_to"] == "bound" for row in found["rows"] if row["objectives"])


def test_compare_of_an_infeasible_instance(command: Command, data: Path) -> None:
    ran = command("compare", data / "rar-13-infeasible-zero-rate.json")
    assert ran.status == 3 and "infeasible" in ran.out


@pytest.mark.parametrize("letters", ["ascii", "latin-1"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_names_that_standard_output_cannot_write_are_shown_by_their_codes(
    tmp_path: Path, letters: str, form: tuple[str, ...]
) -> None:
    link = {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.1}
    task = {"id": "é任务", "release": 0.0, "size": 1.0}
    path = tmp_path / "instance.json"
    path.write_text(json.dumps({"problem": "comm-contention", "name": "é任务", "link": link, "tasks": [task]}))
    code = "from schedgap.cli.main import main; import sys; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "solve", str(path), "--method", "srsf-1", *form],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": letters},
    )
    assert done.returncode == 0, done.stderr
    if form:
        assert json.loads(done.stdout.decode(letters))["solution"] == {"start": {"é任务": 0.0}}
