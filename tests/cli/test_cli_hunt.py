"""``schedgap hunt`` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from support.command import Command
from support.work import PATIENCE, wait_until

from schedgap.benchmarks.hunt.journal import FILE

LIMITS = ("jobs=3", "servers=1", "jobs.gpus=1", "jobs.iterations=12", "start=tiny")


def test_theorem_5_fails_with_gangs_of_one_gpu(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "h"
    ran = command("hunt", "000-theorem-5", "--set", *LIMITS, "evaluations=160", "--workers", "1", "--out", out)
    assert ran.status == 0 and "refuted" in ran.out.splitlines()[0]
    data = json.loads((out / "worst.json").read_text())
    facts = data["reference_hunt"]
    assert facts["left"] > facts["right"] and len(data["jobs"]) == 3
    repeated = facts["repeat"].split()[1:]
    repeated[1] = str(out / "worst.json")
    ran = command(*repeated, "--json")
    rows = {row["method"]: row for row in json.loads(ran.out)["rows"]}
    claims = {claim["id"]: claim for claim in rows["sjf-bco"]["guarantees"]}
    assert claims["000-theorem-5"]["verdict"] == "refuted"
    assert json.loads(ran.out)["optimum"] == facts["optimum"]


def test_bad_input_is_one_line(command: Command, tmp_path: Path) -> None:
    for arguments, message in (
        (("hunt", "nothing"), "unknown guarantee 'nothing'"),
        (("hunt", "rar-ddls/nothing"), "unknown method 'nothing'"),
        (("hunt", "rar-ddls/no.such:thing"), "cannot import no.such"),
        (("hunt", "rar-ddls/ff", "--set", "gpus=3"), "unknown limit 'gpus'"),
        (("hunt", "rar-ddls/ff", "--set", "start=huge"), "unknown start 'huge'"),
        (("hunt", "rar-ddls/ff", "--budget", "0"), "must be seconds"),
        (("hunt", "rar-ddls/ff", "--workers", "0"), "must be a whole number from 1"),
        (("hunt", "gpu-sharing/pollux"), "outside the model"),
        (("hunt", "003-theorem-1"), "not about instances"),
    ):
        ran = command(*arguments, "--out", tmp_path / "x")
        assert ran.status == 2 and message in ran.message


def test_a_heuristic_of_ones_own_that_raises(command: Command, tmp_path: Path) -> None:
    ran = command("hunt", "rar-ddls/support.toy:users_raising", "--workers", "1", "--out", tmp_path / "h")
    line = ran.err.splitlines()[-1]
    assert ran.status == 2 and "raised KeyError: 'gpus'" in line and "the instance is in" in line


def test_ctrl_c_prints_the_best_so_far(tmp_path: Path) -> None:
    out = tmp_path / "h"
    command = [sys.executable, "-m", "schedgap.cli.main", "hunt", "rar-ddls/ff", "--workers", "1", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(
        lambda: (out / FILE).exists() and '"kind":"found"' in (out / FILE).read_text(), lambda: process.poll() is None
    )
    os.kill(process.pid, signal.SIGINT)
    told, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert told.startswith("rar-ddls/ff: ratio ") and "interrupted" in told
    assert f"--out {out} --resume" in errors
    assert json.loads((out / "found.json").read_text())["reference_hunt"]["ratio"] >= 1


def test_bad_input_for_families_is_one_line(command: Command, tmp_path: Path) -> None:
    for arguments, message in (
        (("hunt", "rar-ddls/ls", "--family", "--budget", "3"), "--family takes no --budget"),
        (("hunt", "rar-ddls/ls", "--family", "--set", "parameter=gpus"), "unknown list or number 'gpus'"),
        (("hunt", "rar-ddls/ls", "--family", "--set", "sizes=4"), "limit sizes: must be LOW..HIGH"),
        (("hunt", "000-theorem-5", "--family"), "lifts the ratio of a heuristic"),
        (("hunt", "rar-ddls/ls", "--set", "parameter=jobs"), "unknown limit 'parameter'"),
        (("generate", tmp_path / "none.json", "--set", "n=3"), "none.json"),
    ):
        ran = command(*arguments, *(("--out", tmp_path / "x") if arguments[0] == "hunt" else ()))
        assert ran.status == 2 and message in ran.message
