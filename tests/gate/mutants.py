"""Faults that were there once, put back into a copy: the gate has to find each of them.

``PYTHONPATH=tests python -m gate.mutants`` copies the sources, changes one place after another, and runs the gate on
the problem concerned until its first fault, which must not be one without the change; exit 1 where a mutant survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("formulations", "solvers", "heuristics", "catalogue", "benchmarks", "tools")


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    fault : what it does
    problem : where the gate looks
    changes : (file, text that is there once, what takes its place)
    """

    fault: str
    problem: str
    changes: tuple[tuple[str, str, str], ...]

    def texts(self) -> dict[str, str]:
        """The files with the fault in them."""
        texts: dict[str, str] = {}
        for name, old, new in self.changes:
            text = texts.get(name) or (ROOT / name).read_text(encoding="utf-8")
            assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times, a mutant needs it once"
            texts[name] = text.replace(old, new)
        return texts


MUTANTS = {
    "splits": Mutant(
        "cp of rar-ddls: the last gang of a size says for all how many servers they may use",
        "rar-ddls",
        (
            (
                "solvers/exact/rar_ddls/patterns.py",
                "splits = {ring: list(_splits(*ring)) for ring in dict.fromkeys(map(_ring, rings))}",
                "last = {o.gpus: _ring(o) for o in rings}\n"
                "            splits = {ring: list(_splits(*last[ring[0]])) for ring in map(_ring, rings)}",
            ),
        ),
    ),
    "row names": Mutant(
        "certificates of rar-ddls: rows of two rings and of more have the same names",
        "rar-ddls",
        (("solvers/certificates/rules/rar_ddls.py", 'f"crowd[{j},{s},{t},{p}]"', 'f"meet[{j},{s},{t},{p}]"'),),
    ),
    "ticks": Mutant(
        "ddl-cluster: a transfer ends 0.001 of a tick of 1e-10 s early, which the audit does not allow",
        "ddl-cluster",
        (
            ("formulations/ddl_cluster/clock.py", "FINEST_DIGITS = 60", "FINEST_DIGITS = 10"),
            (
                "formulations/ddl_cluster/clock.py",
                "transfer=tuple(ticks(b * exact(job.message)) for job in jobs)",
                "transfer=tuple(float(b * exact(job.message) * scale) for job in jobs)",
            ),
        ),
    ),
    "keywords": Mutant(
        "certified bounds of ddl-cluster: the link of a server named gpus or links is taken for all GPUs or links",
        "ddl-cluster",
        (
            (
                "solvers/certificates/rules/ddl_cluster.py",
                "resources.setdefault((server,), []).append(",
                "resources.setdefault(server, []).append(",
            ),
            (
                "solvers/certificates/rules/ddl_cluster.py",
                "resources[name if isinstance(name, str) else tuple(name)]",
                "resources[name if isinstance(name, str) else name[0] if len(name) == 1 else tuple(name)]",
            ),
        ),
    ),
    "second LP": Mutant(
        "cp of gpu-sharing: a bound on schedules better than the incumbent is taken for one on all",
        "gpu-sharing",
        (
            (
                "solvers/exact/gpu_sharing/cp.py",
                "value = lp.value if not by_mode or best.objective is None else min(lp.value, float(best.objective))",
                "value = lp.value",
            ),
        ),
    ),
}


def copied(to: Path) -> None:
    """The sources under their import names; compiled code comes along."""
    shutil.copytree(ROOT / "interface", to / "schedgap")
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, to / "schedgap" / layer)


def killed(mutant: Mutant, sources: Path, seed: int, share: float) -> str:
    """The first fault that the gate finds; "" where the mutant survives."""
    before = {}
    for name, text in mutant.texts().items():
        path = sources / "schedgap" / name
        before[path] = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    whole = ["--seed", str(seed), "--share", str(share), "--first"]
    try:
        found = _gate(mutant.problem, sources, *whole)
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
    for fault in found:
        number = re.search(r"-(\d+)\.json", fault)
        assert number is not None
        if not _gate(mutant.problem, sources, "--seed", str(seed), "--number", number[1]):
            return fault
    return ""


def _gate(problem: str, sources: Path, *arguments: str) -> list[str]:
    """The faults that a run of the gate finds."""
    command = [sys.executable, "-m", "gate", "--problem", problem, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(sources), str(ROOT / "tests")))}
    done = subprocess.run(command, env=environment, cwd=sources, capture_output=True, text=True)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(done.stderr)
    return [line for line in done.stdout.splitlines() if line.startswith("FAULT")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gate.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the instances of a whole run of the gate, at most")
    parser.add_argument("names", nargs="*", help="only these mutants", metavar="NAME")
    asked = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copied(Path(folder))
        for name in asked.names or MUTANTS:
            fault = killed(MUTANTS[name], Path(folder), asked.seed, asked.share)
            survived += not fault
            print(f"{name}: {'killed' if fault else 'SURVIVES'}: {MUTANTS[name].fault}\n    {fault}", flush=True)
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
