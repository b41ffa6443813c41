"""Seconds that a candidate takes in a search, one after another with one judge.

``python -m schedgap.benchmarks.studies.speed.candidates PROBLEM [--times N]`` prints p50 and p95, the judge's first
candidate told apart, since the process from which candidates are forked starts then: of the program that a new
evaluator begins with, which calls a shipped heuristic by ``schedgap.solve``, and of one that answers None at once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from schedgap.benchmarks.evaluation.frozen import FrozenJudge
from schedgap.benchmarks.evaluation.package import new_evaluator
from schedgap.benchmarks.text import table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "search"
        new_evaluator("plain", given.problem, folder)
        nothing = folder / "nothing.py"
        nothing.write_text("def scheduler(instance, *, seed):\n    return None\n")
        for program in (folder / "initial_program.py", nothing):
            with FrozenJudge(given.problem) as judge:
                taken = []
                for _ in range(given.times + 1):
                    began = time.perf_counter()
                    judge.judge(f"{program}:scheduler")
                    taken.append(time.perf_counter() - began)
            figures = [taken[0], *np.percentile(taken[1:], [50, 95])]
            rows.append([program.stem, *(f"{seconds:.2f}" for seconds in figures)])
    print(f"{given.problem}, {given.times} candidates each; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(table(["program", "first", "p50", "p95"], rows))


if __name__ == "__main__":
    main()
