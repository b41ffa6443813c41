"""What `lns` makes of the best heuristic at paper scale, and what is left to the certified bound.

``python -m studies.best_known ddljs --out best-known.csv``: a process and a line of the file for
every seed, one after another; lines that are in the file already are not made again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.result import Deadline, SolveOptions

Row = dict[str, Json]
Settings = Mapping[str, Json]

CASES: Mapping[str, tuple[tuple[str, Settings], ...]] = {
    "rar-ddls": (("paper", {}), ("paper", {"servers": 10, "horizon": 1500})),
    "hadar": (("trace", {}),),
    "gpu-sharing": (("table-ii", {}), ("table-iii", {})),
    "ddl-cluster": (("paper", {}),),
    "ddljs": (("paper", {}), ("figure-5", {}), ("figure-5", {"gpu_factor": 0.25})),
}
"""Presets of each problem at the size of its paper's experiments."""
SAME = ("problem", "preset", "settings", "seed", "limit")
"""What identifies a line."""
COLUMNS = (
    *SAME,
    *("start_by", "start", "lns", "bound", "improvement_percent", "gap_start_percent", "gap_percent", "status"),
    *("steps", "gains", "seconds", "processor_seconds", "load"),
)


def best_known(problem: str, preset: str, settings: Settings, seed: int, limit: float) -> Row:
    """One run of `lns` in one thread, the heuristics that it starts from included.

    Returns
    -------
    The best heuristic and its objective, that of `lns`, the certified bound; percentages relative to what the
    heuristic has, and of gaps |objective - bound| / |objective|; None where unknown.
    """
    from schedgap.benchmarks.sweep.warm import warm_once
    from schedgap.catalogue.registry import find_method

    known = find_problem(problem)
    instance = make_instance(known, preset, seed, settings)
    warm_once(known, find_method(known, "lns"), {})
    began = time.monotonic()
    result = run_method(known, instance, "lns", SolveOptions(deadline=Deadline.after(limit), threads=1))
    start, found = result.info.get("start"), result.objective
    better = None if start is None or found is None else known.sense * (start - found) / abs(start)
    return {
        "problem": problem,
        "preset": preset,
        "settings": json.dumps(dict(settings)),
        "seed": seed,
        "limit": limit,
        "start_by": result.info.get("start by"),
        "start": start,
        "lns": found,
        "bound": result.bound,
        "improvement_percent": _percent(better),
        "gap_start_percent": _percent(gap(start, result.bound)),
        "gap_percent": _percent(result.gap),
        "status": result.status.value,
        "steps": result.info.get("steps", 0),
        "gains": len(result.info.get("events", ())),
        "seconds": round(time.monotonic() - began, 1),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 4) + 0.0


def _apart(arguments: Sequence[str]) -> Row:
    """One line, from a process of its own: its processor seconds are those of CP-SAT too."""
    before, load = _processor(), os.getloadavg()[0]
    command = [sys.executable, "-m", "studies.best_known", "--row", *arguments]
    row: Row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return row | {"processor_seconds": round(_processor() - before, 1), "load": round(load, 1)}


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Run some problems, all where none is named; print and write a line for every seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a run")
    parser.add_argument("--out", type=Path, default=Path("best-known.csv"))
    parser.add_argument("--row", nargs=5, metavar="PART", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.row:
        problem, preset, settings, seed, limit = given.row
        print(json.dumps(best_known(problem, preset, json.loads(settings), int(seed), float(limit))))
        return
    unknown = [name for name in given.problems if name not in CASES]
    if unknown:
        parser.error(f"unknown problem {unknown[0]!r}, one of: {', '.join(CASES)}")
    done = set()
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            done = {tuple(row[part] for part in SAME) for row in csv.DictReader(file)}
    else:
        given.out.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    for problem in given.problems or CASES:
        for preset, settings in CASES[problem]:
            for seed in range(given.first, given.first + given.seeds):
                name = (problem, preset, json.dumps(dict(settings)), str(seed), str(given.limit))
                if name in done:
                    continue
                row = _apart(name)
                with given.out.open("a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, COLUMNS).writerow(row)
                print(" | ".join("unknown" if row[part] is None else str(row[part]) for part in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
