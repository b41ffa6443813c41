"""Where commands may not write, and where another run writes at the same time: one line, before any work."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import nobody
from support.command import Command

from schedgap.benchmarks.sweep.store import LOCK, locked, locked_file

EACH = """
import json, sys
from schedgap.cli.main import main
for arguments in json.load(sys.stdin):
    print("status", main(arguments), file=sys.stderr)
"""
NOBODY = 65534
TESTS = Path(__file__).parents[2]
PROBES = (
    str(TESTS / "tools" / "evaluation" / "test_isolation.py"),
    "-k",
    "reaches_nothing or works_where or container",
)
PR_CAPBSET_DROP = 24
CAPABILITIES = 64


def _without_privileges() -> None:
    """Root with no capability, to whom permissions apply as to everybody; for others nothing changes."""
    libc = ctypes.CDLL(None)
    for capability in range(CAPABILITIES if sys.platform == "linux" and os.geteuid() == 0 else 0):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nobody without privileges may write."""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def _confined(closed: Path, commands: list[list[str]]) -> subprocess.CompletedProcess[str]:
    """What commands say without privileges where home, cache and working directory are read-only."""
    own = {"HOME": str(closed), "XDG_CACHE_HOME": str(closed), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", EACH],
        input=json.dumps(commands),
        cwd=closed,
        env={**os.environ, **own},
        preexec_fn=_without_privileges,
        capture_output=True,
        text=True,
        check=False,
    )


def test_where_nothing_may_be_written_each_command_says_so_in_one_line(closed: Path, mixed: Path) -> None:
    """Home, cache and the folder to write into are read-only; what writes nothing works."""
    out = ["--out", str(closed / "run")]
    scheduler = closed.parent / "mine.py"
    scheduler.write_text("def schedule(instance, *, seed=0):\n    return None\n")
    commands: list[list[str]] = [
        ["bench", "quick", "--problem", "hadar", *out],
        ["hunt", "rar-ddls/ff", *out],
        ["verify", "000-lemma-2", *out],
        ["reproduce", "000", "--item", "figure-7", *out],
        ["certify", str(mixed), *out],
        ["evaluate", f"{scheduler}:schedule", "--problem", "rar-ddls", *out],
        ["solve", str(mixed), "--method", "cp"],
    ]
    ended = _confined(closed, commands)
    said = ended.stderr.split("status ")
    assert [int(part.split()[0]) for part in said[1:]] == [2] * 6 + [0], ended.stderr
    for command, before in zip(commands[:6], said, strict=False):
        lines = [line for line in before.splitlines() if line.startswith("schedgap: error: ")]
        assert "Traceback" not in before and len(lines) == 1 and str(closed / "run") in lines[0], (command, before)
        assert lines[0].endswith("Permission denied"), (command, before)
    assert "12" in ended.stdout
    assert not list(closed.iterdir())


def test_a_home_that_is_read_only_hinders_no_command_that_writes_elsewhere(closed: Path, mixed: Path) -> None:
    """Each writes its result, and nothing beside it."""
    made = closed.parent / "made"
    made.mkdir()
    scheduler = closed.parent / "mine.py"
    scheduler.write_text("def schedule(instance, *, seed=0):\n    return None\n")
    one = str(closed.parent / "one.json")
    few = ("--workers", "1", "--out")
    short = ("--methods", "first-fit", "--scale", "0.01")  # of a problem about which no paper states anything
    commands = {
        ("generate", "rar-ddls", "--preset", "tiny", "--seed", "7", "--out", one): one,
        ("solve", one, "--method", "cp", "--out", f"{made}/solution.json"): "solution.json",
        ("certify", one, "--out", f"{made}/proof.cert"): "proof.cert",
        ("check", one, f"{made}/solution.json", "--certificate", f"{made}/proof.cert"): ".",
        ("plot", one, f"{made}/solution.json", "--out", f"{made}/chart.svg"): "chart.svg",
        ("bench", "quick", "--problem", "gang-placement", *short, *few, f"{made}/bench"): "bench/report.html",
        ("report", f"{made}/bench", "--csv", f"{made}/rows.csv"): "rows.csv",
        ("hunt", "rar-ddls/ff", "--set", "evaluations=8", *few, f"{made}/hunt"): "hunt/worst.json",
        ("verify", "000-lemma-2", "--instances", "1", "--out", f"{made}/ledger"): "ledger/ledger.html",
        ("reproduce", "000", "--item", "figure-7", "--seeds", "1", *few, f"{made}/paper"): "paper/run.sqlite",
        ("evaluate", f"{scheduler}:schedule", "--problem", "rar-ddls", "--on", one, *few, f"{made}/a"): "a/card.html",
    }
    ended = _confined(closed, [list(command) for command in commands])
    assert "Traceback" not in ended.stderr
    statuses = [int(part.split()[0]) for part in ended.stderr.split("status ")[1:]]
    assert statuses == [0] * 10 + [4], ended.stderr
    assert [file for file in commands.values() if not (made / file).exists()] == []
    assert not list(closed.iterdir()) and not list(made.rglob("*.lock"))


@pytest.mark.parametrize(
    "begun",
    [
        ("bench", "quick", "--problem", "hadar", "--scale", "0.01", "--resume"),
        ("hunt", "rar-ddls/ff", "--set", "evaluations=8", "--resume"),
        ("hunt", "rar-ddls/ls", "--family", "--set", "parameter=servers.gpus", "--resume"),
        ("reproduce", "000", "--item", "figure-7", "--seeds", "1", "--resume"),
        ("verify", "000-lemma-2", "--instances", "1"),
        ("evaluate", "mine.py:schedule", "--problem", "rar-ddls"),
    ],
)
def test_two_runs_do_not_write_into_one_folder(
    begun: tuple[str, ...], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first has written so far stays where it is: an unfinished hunt of an evaluation, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def schedule(instance, *, seed=0):\n    return None\n")
    folder = tmp_path / "run"
    (folder / "hunt").mkdir(parents=True)
    with locked(folder):
        before = sorted(folder.rglob("*"))
        ran = command(*begun, "--out", folder)
        assert ran.status == 2 and sorted(folder.rglob("*")) == before
    assert ran.message == f"{folder}: another run is writing there (process {os.getpid()})"
    assert not (folder / LOCK).exists()


def test_two_runs_do_not_write_one_certificate(command: Command, mixed: Path, tmp_path: Path) -> None:
    """Nothing of a lock is left, and a device takes a certificate as before."""
    proof = tmp_path / "proof.cert"
    with locked_file(proof):
        ran = command("certify", mixed, "--out", proof)
    assert (ran.status, ran.message) == (2, f"{proof}: another run is writing there (process {os.getpid()})")
    assert not proof.exists()
    for out in (proof, Path(os.devnull)):
        assert command("certify", mixed, "--out", out).status == 0
    assert proof.stat().st_size > 0 and [path.name for path in tmp_path.glob("*.lock")] == []
    assert not [path for path in (*tmp_path.iterdir(), *Path(os.devnull).parent.iterdir()) if "lock" in path.suffix]


def _by_nobody(home: Path, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """What a user says who is not root: another one where these tests are run by root, else who runs them."""
    line = [sys.executable, *command]
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
        line = [sys.executable, "-m", "support.nobody", str(NOBODY), *line]
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    env = {**os.environ, **own, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(line, input=given, cwd=home, env=env, capture_output=True, text=True, check=False)
    if nobody.NO_MOUNTS in ended.stderr:
        why = "the interpreter lies where nobody else may enter, and root may make no mounts here"
        assert not os.environ.get("SCHEDGAP_PROBES_REQUIRED"), why
        pytest.skip(why)
    return ended


def test_a_user_who_is_not_root(tmp_path: Path) -> None:
    """Solves, proves, checks and draws, with a home of its own and nothing else that it may write."""
    instance = tmp_path / "one.json"
    instance.write_bytes((TESTS / "data" / "rar-02-colocated-optimum.json").read_bytes())
    commands = [
        ["solve", "one.json", "--method", "cp", "--out", "solution.json"],
        ["certify", "one.json", "--out", "proof.cert"],
        ["check", "one.json", "solution.json", "--certificate", "proof.cert"],
        ["plot", "one.json", "solution.json", "--out", "chart.svg"],
    ]
    who = (
        "import os; print(os.getuid(), os.getgroups(), open('/proc/self/status').read().split('CapEff:')[1].split()[0])"
    )
    told = _by_nobody(tmp_path, "-c", who if sys.platform == "linux" else "print()").stdout
    assert sys.platform != "linux" or os.geteuid() != 0 or told.split() == [str(NOBODY), "[]", "0" * 16]
    ended = _by_nobody(tmp_path, "-c", EACH, given=json.dumps(commands))
    assert [part.split()[0] for part in ended.stderr.split("status ")[1:]] == ["0"] * 4, ended.stderr
    assert "optimal" in ended.stdout and "Traceback" not in ended.stderr
    made = {path: path.stat().st_uid for path in tmp_path.iterdir() if path != instance}
    assert {"solution.json", "proof.cert", "chart.svg"} <= {path.name for path in made}
    assert set(made.values()) == {NOBODY if os.geteuid() == 0 else os.geteuid()}


@pytest.mark.skipif(os.geteuid() != 0, reason="test_isolation.py is by a user who is not root")
def test_the_sandbox_of_a_user_who_is_not_root(tmp_path: Path) -> None:
    """All probes again: what keeps a scheduler in needs no right of root."""
    ended = _by_nobody(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(TESTS.parent), *PROBES)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    passed = int(ended.stdout.split(" passed")[0].split()[-1])
    assert passed > 200
