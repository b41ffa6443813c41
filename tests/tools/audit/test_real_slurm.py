"""A real Slurm on this machine, with SCHEDGAP_SLURM=1: what it decides is judged, what happened to forty jobs audited.

As root, after ``apt-get install --no-install-recommends slurm-wlm munge slurmdbd mariadb-server``; about two minutes.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedgap import audit, judge
from schedgap.tools.judge.reading import read_snapshot

CLUSTER = Path(__file__).parents[2] / "data" / "field" / "cluster"
JOBS = 40
COLUMNS = "JobID,Submit,Eligible,Start,End,State,ReqTRES,AllocTRES,NodeList,Timelimit,Partition,User"
pytestmark = pytest.mark.skipif(
    os.environ.get("SCHEDGAP_SLURM") != "1", reason="starts a real Slurm, as root: set SCHEDGAP_SLURM=1"
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Path]:
    """The folder of a running cluster of four nodes with eight fake GPUs each; its socket wants a short path."""
    base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    for path in CLUSTER.iterdir():
        text = path.read_text().replace("@BASE@", str(base)).replace("@HOST@", socket.gethostname())
        (base / path.name).write_text(text)
    (base / "slurmdbd.conf").chmod(0o600)
    try:
        with (base / "up.log").open("w") as log:
            subprocess.run(["bash", str(base / "up.sh")], check=True, timeout=300, stdout=log, stderr=log)
        yield base
    finally:
        subprocess.run(["bash", str(base / "down.sh")], check=False, timeout=60, capture_output=True)
        time.sleep(2)
        shutil.rmtree(base, ignore_errors=True)


def ask(base: Path, *command: str) -> str:
    environment = {**os.environ, "SLURM_CONF": str(base / "slurm.conf")}
    return subprocess.run(command, check=True, timeout=60, env=environment, capture_output=True, text=True).stdout


def test_forty_jobs_of_a_real_slurm_are_audited(slurm: Path, tmp_path: Path) -> None:
    drawn = random.Random(3)
    for number in range(JOBS):
        gpus, seconds = drawn.choice([1, 1, 2, 4, 8]), drawn.randint(1, 8)
        kind = drawn.choice(["", "", ":v100", ":a100"])
        limits = ["-n", "1", "--mem=0", "--output=/dev/null", "--time=2"]
        ask(slurm, "sbatch", "-J", f"j{number}", *limits, f"--gres=gpu{kind}:{gpus}", "--wrap", f"sleep {seconds}")
    ends = time.monotonic() + 600
    while ask(slurm, "squeue", "-h").strip():
        assert time.monotonic() < ends, ask(slurm, "squeue")
        time.sleep(2)
    time.sleep(3)  # accounting hears of the last end
    (tmp_path / "sacct.txt").write_text(ask(slurm, "sacct", "-a", "-X", "-P", "-D", f"--format={COLUMNS}"))
    (tmp_path / "sacct.json").write_text(ask(slurm, "sacct", "-a", "-X", "--json"))
    (tmp_path / "nodes.txt").write_text(ask(slurm, "scontrol", "show", "nodes"))
    text, parsed = (
        audit(tmp_path / name, tmp_path / "nodes.txt", methods=["fifo", "sjf"], out=tmp_path / name.replace(".", "-"))
        for name in ("sacct.txt", "sacct.json")
    )
    assert text.load.jobs == parsed.load.jobs == JOBS and text.load.capacity == 32 and not text.left_out
    assert not text.clashes and text.load.busy is not None and 0 < text.load.busy.peak <= 32
    recorded = text.sides[0].recorded
    assert recorded is not None and recorded.scores is not None and recorded.scores.wait.mean >= 0
    assert (text.load.queued, text.load.busy.peak) == (parsed.load.queued, parsed.load.busy and parsed.load.busy.peak)
    assert {kind.name for kind in text.load.kinds} == {"any", "v100", "a100"}
    bound = text.sides[0].bound
    assert bound is not None and all((row.objective or 0) >= bound - 1e-9 for row in text.sides[0].rows)
    assert json.loads((tmp_path / "sacct-txt" / "audit.json").read_text())["jobs"] == JOBS


def test_one_decision_of_a_real_slurm_is_judged(slurm: Path, tmp_path: Path) -> None:
    """After the other test, whose jobs it would add to. The large jobs wait, and could not start."""
    limits = ["--mem=0", "--output=/dev/null", "--time=5"]
    asked = (
        ["-n1", "-w", "n1", "--gres=gpu:8"],
        ["-n1", "-w", "n3", "--gres=gpu:4"],
        ["-n1", "-w", "n2", "--gres=gpu:1"],
    )
    waiting = (["-N3", "--ntasks-per-node=1", "--gres=gpu:6"], ["-n1", "--array=0-2", "--gres=gpu:v100:8"])
    for what in asked:
        ask(slurm, "sbatch", *limits, *what, "--wrap", "sleep 300")
    ends = time.monotonic() + 120
    while ask(slurm, "squeue", "-h", "-t", "R").count("\n") < len(asked):
        assert time.monotonic() < ends, ask(slurm, "squeue")
        time.sleep(1)
    for what in waiting:
        ask(slurm, "sbatch", *limits, *what, "--wrap", "sleep 300")
    time.sleep(3)
    try:
        (tmp_path / "jobs.json").write_text(ask(slurm, "squeue", "--json"))
        nodes = ask(slurm, "scontrol", "show", "nodes")
        (tmp_path / "nodes.txt").write_text(nodes)
        found = judge(tmp_path / "jobs.json", tmp_path / "nodes.txt", names=True)
        (tmp_path / "jobs.txt").write_text(ask(slurm, "scontrol", "show", "job", "-d"))
        (tmp_path / "sinfo.json").write_text(ask(slurm, "sinfo", "--json"))  # scontrol has no --json in 22.05
        others = [("jobs.txt", "nodes.txt"), ("jobs.json", "sinfo.json")]
        same = [read_snapshot(tmp_path / jobs, nodes=tmp_path / told, names=True) for jobs, told in others]
    finally:
        ask(slurm, "scancel", "-u", "root")
    free = [sum(node.gpus) // 1000 for node in found.instance.nodes]
    taken = [line.partition("gres/gpu=")[2].partition(",")[0] for line in nodes.splitlines() if "AllocTRES" in line]
    assert free == [8 - int(amount or 0) for amount in taken] == [0, 7, 4, 8]
    assert [lost.pods for lost in found.lost] == [3, 1, 1, 1] and not any(lost.fits for lost in found.lost)
    for read in same:
        assert [sum(node.gpus) // 1000 for node in read.instance.nodes] == free and len(read.outward.gangs) == 4
    assert found.verdict.startswith("the decision is optimal: none of 42") and all(
        lost.proof is not None for lost in found.lost
    )
