"""What a real log costs: every heuristic of four problems on the first jobs of a log, simulated, checked and scored.

``python -m schedgap.benchmarks.studies.speed.field FORMAT LOG --out FOLDER [--jobs 100 1000 10000] [--problems ...]``
imports the first jobs of a log, runs ``schedgap solve`` on them in a process of its own a heuristic, keeps a line
for each in FOLDER/field.jsonl (a second call goes on from there), and prints the table: processor seconds, peak memory
and two exponents of the seconds, in jobs and in seconds of work (the same jobs, all times a tenth).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedgap.benchmarks.studies.speed.growth import LEAST_SECONDS, exponent
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Json

PROBLEMS = ("hadar", "ddl-cluster", "gpu-sharing", "rar-ddls")
SHORTER = 0.1
"""Of all times, for the exponent in seconds of work."""
COMMAND = [sys.executable, "-c", "import sys; from schedgap.cli import start; sys.exit(start())"]
Row = dict[str, Json]


def solved(path: Path, method: str, limit: float) -> Row:
    """One ``solve`` in a process of its own: imports, scheduler, metrics, check and bound are in its seconds."""
    order = [*COMMAND, "solve", str(path), "--method", method, "--time-limit", str(limit), "--json"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(order, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    answer = json.loads(text) if text else {}
    return {
        "status": answer.get("status", f"exit {process.returncode}"),
        "objective": answer.get("objective"),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "seconds": answer.get("solve_seconds"),
        "mb": round(usage.ru_maxrss / 1024),
    }


def imported(form: str, log: Path, problem: str, jobs: int, scale: float, folder: Path) -> Path:
    """The instance of the first jobs of a log, all times scaled."""
    path = folder / f"{problem}-{jobs}-{scale}.json"
    if not path.exists():
        order = [*COMMAND, "import", form, str(log), "--problem", problem, "--out", str(path)]
        order += ["--set", f"jobs={jobs}", "--set", f"time_scale={scale}"]
        subprocess.run(order, check=True, stderr=subprocess.DEVNULL)
    return path


def table(rows: Sequence[Row]) -> str:
    """A row for each problem, heuristic and size; exponents where they can be told, else "-"."""
    head = ("problem", "heuristic", "jobs", "status", "objective", "processor seconds", "MB", "jobs^", "work^")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        if row["scale"] != 1:
            continue
        same = [other for other in rows if all(other[key] == row[key] for key in ("problem", "method"))]
        whole = sorted((other for other in same if other["scale"] == 1), key=lambda other: other["jobs"])
        short = [other for other in same if other["scale"] != 1 and other["jobs"] == row["jobs"]]
        in_jobs = exponent(whole) if row["jobs"] == whole[-1]["jobs"] else None
        in_work = None
        if short and min(short[0]["cpu_seconds"], row["cpu_seconds"]) >= LEAST_SECONDS:
            in_work = math.log(row["cpu_seconds"] / short[0]["cpu_seconds"]) / -math.log(SHORTER)
        cells = [row[key] for key in ("problem", "method", "jobs", "status", "objective", "cpu_seconds", "mb")]
        cells += [None if power is None else f"{power:.2f}" for power in (in_jobs, in_work)]
        lines.append(f"| {' | '.join('-' if cell is None else str(cell) for cell in cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format")
    parser.add_argument("log", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of each solve")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "field.jsonl"
    rows: list[Row] = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for problem in asked.problems:
        methods = [method.id for method in find_problem(problem).methods if method.kind is Kind.HEURISTIC]
        for jobs, scale, method in ((n, s, m) for n in asked.jobs for s in (1, SHORTER) for m in methods):
            key = {"problem": problem, "method": method, "jobs": jobs, "scale": scale}
            if any(key.items() <= row.items() for row in rows):
                continue
            path = imported(asked.format, asked.log, problem, jobs, scale, asked.out)
            rows.append({**key, **solved(path, method, asked.limit)})
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
