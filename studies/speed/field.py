"""What a real log costs: every heuristic of four problems on the first jobs of a log, simulated, checked and scored.

``python -m studies.speed.field FORMAT LOG --out FOLDER [--jobs 1000 3000 10000 30000] [--problems
...] [--methods ...]`` imports the first jobs of a log, runs ``schedgap solve`` on them in a process of its own a
heuristic, keeps a line for each in FOLDER/field.jsonl (a second call goes on from there), and prints the table:
processor seconds, peak memory, and two exponents of the seconds, in jobs and in seconds of work (the fewest jobs, all
times 4 and 16 times as long). What the same command takes on ten jobs is taken off before an exponent is fitted, since
it is imports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Json
from studies.speed.growth import exponent

PROBLEMS = ("hadar", "ddl-cluster", "gpu-sharing", "rar-ddls")
LONGER = (4, 16)
"""Factors on all times, for the exponent in seconds of work."""
START = 10
"""Jobs whose solve takes next to nothing but imports."""
LEAST_SECONDS = 0.1
"""Beyond those of ten jobs; what is shorter tells of the machine."""
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
        "seconds": answer.get("seconds"),
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


def _net(rows: Sequence[Row], over: str, **fixed: Json) -> list[Row]:
    """The points of one heuristic that end, ascending in `over`, without the seconds of ten jobs."""
    start = min((row["cpu_seconds"] for row in rows if row["jobs"] == START), default=0.0)
    own = [
        row for row in rows if fixed.items() <= row.items() and row["jobs"] != START and row["objective"] is not None
    ]
    net = [{**row, "cpu_seconds": row["cpu_seconds"] - start} for row in sorted(own, key=lambda row: row[over])]
    return [row for row in net if row["cpu_seconds"] >= LEAST_SECONDS]


def table(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    """A line for each heuristic: seconds and memory at every size, exponents where three sizes, or two scales, tell."""
    head = ["problem", "heuristic", *(f"{size:,}: s, MB" for size in sizes), "jobs^", "work^"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for problem, method in dict.fromkeys((row["problem"], row["method"]) for row in rows):
        own = [row for row in rows if (row["problem"], row["method"]) == (problem, method)]
        at = {row["jobs"]: row for row in own if row["scale"] == 1}
        told = [at.get(size) for size in sizes]
        cells = ["-" if row is None else _cost(row) for row in told]
        in_jobs = exponent(_net(own, "jobs", scale=1), fewest=3)
        in_work = exponent(_net(own, "scale", jobs=min(sizes)), over="scale", fewest=2)
        cells += ["-" if power is None else f"{power:.2f}" for power in (in_jobs, in_work)]
        lines.append(f"| {problem} | `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cost(row: Row) -> str:
    """Seconds and memory, and a word where there is no schedule."""
    none = "" if row["objective"] is not None else f" ({row['status']})"
    return f"{row['cpu_seconds']:.1f}, {row['mb']:,}{none}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format")
    parser.add_argument("log", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--methods", nargs="+", help="all heuristics where not given")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of each solve")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "field.jsonl"
    rows: list[Row] = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for problem in asked.problems:
        every = [method.id for method in find_problem(problem).methods if method.kind is Kind.HEURISTIC]
        methods = [method for method in every if asked.methods is None or method in asked.methods]
        shapes = [(START, 1), *((jobs, 1) for jobs in asked.jobs), *((min(asked.jobs), longer) for longer in LONGER)]
        for jobs, scale, method in ((*shape, method) for shape in shapes for method in methods):
            key = {"problem": problem, "method": method, "jobs": jobs, "scale": scale}
            if any(key.items() <= row.items() for row in rows):
                continue
            path = imported(asked.format, asked.log, problem, jobs, scale, asked.out)
            if jobs == START:
                solved(path, method, asked.limit)  # may compile
            rows.append({**key, **solved(path, method, asked.limit)})
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows, asked.jobs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
