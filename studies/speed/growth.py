"""How the cost of every heuristic grows with the number of jobs, 10^2 to 10^5, on clusters that grow with them.

``python -m studies.speed.growth --out FOLDER [--problems ...] [--limit 60]`` runs each pair of a
heuristic and a size in a process of its own, keeps a line for each in FOLDER/growth.jsonl (a second call goes on from
there), and writes the table of fitted exponents and one figure a problem.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import GRID, INK, PALETTE
from schedgap.benchmarks.figures.style import log_scale, new_figure, plain_axes, save
from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.sweep.warm import warm_up
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.formulations.common.instance import Instance, Json

SIZES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
WORKLOADS: Mapping[str, tuple[str, Callable[[int], dict[str, Json]]]] = {
    "rar-ddls": ("large", lambda n: {"jobs": n, "gpus": n}),
    "hadar": ("trace", lambda n: {"jobs": n, "nodes": max(1, n // 32), "horizon": 24, "hours_scale": 0.05}),
    "gpu-sharing": ("table-iii", lambda n: {"jobs": n, "servers": max(4, n // 15)}),
    "comm-contention": ("bursts", lambda n: {"tasks": n, "bursts": max(1, n // 10)}),
    "ddl-cluster": (
        "paper",
        lambda n: {"jobs": n, "servers": max(8, n // 10), "seconds": 0.15 * n, "fewest": 20, "most": 120},
    ),
    "g-vne": ("racks", lambda n: {"jobs": n, "servers": max(2, n // 2)}),
    "ddljs": ("paper", lambda n: {"jobs": n, "servers": min(10_000, max(2, n // 10))}),
}
"""Problem: preset and its settings for n jobs (of comm-contention, tasks on the one link): the load of a GPU stays the
same, but for iterations of ddl-cluster, which are a fiftieth of the paper's, and hadar's GPU-hours, a twentieth in 24
rounds."""
LEAST_SECONDS = 0.02
"""Runs shorter than that are left out of a fit: they tell of constant costs."""
FITTED = 4
"""Largest sizes that a fit takes."""

Row = dict[str, Json]


def measured(problem: str, method: str, size: int, seed: int = 0) -> Row:
    """One run in this process, which should do nothing else: its peak of memory is the process's own.

    Seconds are those of the heuristic alone, after imports and compilation; no checker is in them.
    """
    row = find_problem(problem)
    chosen = find_method(row, method)
    warm_up(row, chosen)
    preset, settings = WORKLOADS[problem]
    instance: Instance = make_instance(row, preset, seed, settings(size))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    chosen.call(instance, seed=seed)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "problem": problem,
        "method": method,
        "jobs": size,
        "seconds": round(seconds, 6),
        "cpu_seconds": round(cpu, 6),
        "before_mb": round(before / 1024, 1),
        "more_mb": round((peak - before) / 1024, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def apart(problem: str, method: str, size: int, limit: float) -> Row:
    """:func:`measured` in a new process; without seconds and with the reason where it did not end in time or failed."""
    order = [sys.executable, "-m", __spec__.name, "--one", problem, method, str(size)]
    try:
        done = subprocess.run(order, capture_output=True, text=True, timeout=2 * limit + 60, check=False)
    except subprocess.TimeoutExpired:
        return {"problem": problem, "method": method, "jobs": size, "seconds": None, "reason": "time"}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return {"problem": problem, "method": method, "jobs": size, "seconds": None, "reason": reason}
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def exponent(rows: Sequence[Row], key: str = "cpu_seconds", over: str = "jobs", fewest: int = 3) -> float | None:
    """The slope of log seconds over log jobs on the largest sizes, by least squares; None with fewer than `fewest`."""
    points = [(row[over], row[key]) for row in rows if row.get("seconds") and row[key] >= LEAST_SECONDS][-FITTED:]
    if len(points) < fewest:
        return None
    size, cost = np.log([size for size, _ in points]), np.log([cost for _, cost in points])
    return float(np.polyfit(size, cost, 1)[0])


def figure(problem: str, rows: Sequence[Row]) -> Figure:
    """Processor seconds over jobs, both logarithmic, a line for each heuristic with its exponent."""
    drawn = new_figure(7.2, 4.2)
    axes = drawn.add_axes((0.11, 0.13, 0.58, 0.82))
    for place, (method, own) in enumerate(_by_method(rows).items()):
        ended = [row for row in own if row.get("seconds") is not None]
        slope = exponent(own)
        label = method if slope is None else f"{method}: jobs^{slope:.2f}"
        axes.plot(
            [row["jobs"] for row in ended],
            [max(1e-5, row["cpu_seconds"]) for row in ended],
            marker="osD^vP*X"[place % 8],
            markersize=4,
            color=PALETTE[place % len(PALETTE)],
            linestyle="-" if place < len(PALETTE) else "--",
            label=label,
        )
    log_scale(axes, 10, y=True)
    axes.set_xlabel("tasks" if problem == "comm-contention" else "jobs", color=INK, fontsize=10)
    axes.set_ylabel("processor seconds", color=INK, fontsize=10)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    plain_axes(axes)
    return drawn


def table(rows: Sequence[Row]) -> str:
    """Exponent, the largest size that ended, its processor seconds and memory, by problem and heuristic."""
    lines = [
        "| problem | heuristic | seconds grow like | most jobs | processor seconds | memory, MB |",
        "|" + "---|" * 6,
    ]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    for problem in problems:
        for method, own in _by_method([row for row in rows if row["problem"] == problem]).items():
            ended = [row for row in own if row.get("seconds") is not None]
            if not ended:
                lines.append(f"| {problem} | {method} | | none | | |")
                continue
            last, slope = ended[-1], exponent(own)
            grows = "too quick to tell" if slope is None else f"jobs^{slope:.2f}"
            memory = f"{last['before_mb']:.0f} + {last['more_mb']:.0f}"
            lines.append(
                f"| {problem} | {method} | {grows} | {last['jobs']:,} | {last['cpu_seconds']:.3g} | {memory} |"
            )
    return "\n".join(lines) + "\n"


def _by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["jobs"]):
        found.setdefault(row["method"], []).append(row)
    return found


def run(folder: Path, problems: Sequence[str], limit: float, largest: int) -> None:
    """Measure what is not there yet, a size after the other, until one took more than the limit."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "growth.jsonl"
    rows: list[Row] = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {(row["problem"], row["method"], row["jobs"]): row for row in rows}
    for problem in problems:
        for method in find_problem(problem).methods:
            if method.kind is not Kind.HEURISTIC:
                continue
            for size in (size for size in SIZES if size <= largest):
                row = known.get((problem, method.id, size))
                if row is None:
                    row = apart(problem, method.id, size, limit)
                    rows.append(row)
                    with kept.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)
                if row["seconds"] is None or row["seconds"] * 3 > limit:
                    break
        save(figure(problem, [row for row in rows if row["problem"] == problem]), folder / f"growth-{problem}.png")
    (folder / "growth.md").write_text(table(rows))
    print(table(rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("growth"))
    parser.add_argument("--problems", default=",".join(WORKLOADS))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one run; the next size is then not tried")
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--one", nargs=3, metavar=("PROBLEM", "METHOD", "JOBS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        problem, method, size = given.one
        print(json.dumps(measured(problem, method, int(size))))
    else:
        run(given.out, given.problems.split(","), given.limit, given.largest)


if __name__ == "__main__":
    main()
