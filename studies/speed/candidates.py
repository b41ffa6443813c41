"""Seconds that a candidate takes in a search: 50 of different kinds, one after another.

``python -m studies.speed.candidates PROBLEM [--times N]`` prints p50 and p95 of the judge of an
evaluator, with its warm process and its cascade (three instances, then all), and of a command for one candidate of each
kind: every shipped heuristic, the better of two, and what fails in each way. The judge's first is told apart.
Seconds by the clock, and those of processors in the judge and all of its processes; then each kind once. Linux only.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from schedgap.benchmarks.text import table
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.tools.evaluation.frozen import FIRST, FrozenJudge

FAILS = {
    "none": "return None",
    "empty": "return {}",
    "raises": "return 1 / 0",
    "crashes": "import os; os._exit(1)",
    "exact": "import schedgap; return schedgap.solve(instance).solution",
    "imports": "import schedgap.tools.library.collection",
    "no program": "return (",
    "endless": "while True: pass",
}


def bodies(problem: str) -> dict[str, str]:
    """The bodies by kind."""
    names = [method.id for method in find_problem(problem).heuristics()]
    call = "import schedgap; return schedgap.solve(instance, {!r}, seed=seed).solution"
    two = "import schedgap; return min((schedgap.solve(instance, m, seed=seed) for m in {!r}), key={}).solution"
    sense = find_problem(problem).sense
    key = f"lambda found: (found.solution is None, {sense} * (found.objective or 0))"
    return {**{name: call.format(name) for name in names}, "two": two.format(names[:2], key), **FAILS}


def seconds(
    files: list[Path], judge: Callable[[str], object], processor: Callable[[], float]
) -> list[tuple[float, float]]:
    """The seconds of each candidate, by the clock and of processors."""
    taken = []
    for file in files:
        began, used = time.perf_counter(), processor()
        judge(f"{file}:scheduler")
        taken.append((time.perf_counter() - began, processor() - used))
    return taken


def of_the_nursery(process: int) -> float:
    """Processor seconds of this process, of the one that forks candidates, and of those of them that have ended."""
    told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")


def of_the_commands() -> float:
    """Processor seconds of programs that this process has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--times", type=int, default=50)
    given = parser.parse_args()
    kinds = list(bodies(given.problem).items())
    schedgap = str(Path(sys.executable).with_name("schedgap"))
    command = [schedgap, "evaluate", "--problem", given.problem, "--frozen", "--json"]
    with tempfile.TemporaryDirectory() as name, FrozenJudge(given.problem) as judge:
        files = [Path(name) / f"{number}.py" for number in range(given.times)]
        for number, file in enumerate(files):
            file.write_text(f"def scheduler(instance, *, seed):\n    {kinds[number % len(kinds)][1]}\n")

        def cascade(candidate: str) -> None:
            try:
                if judge.judge(candidate, most=FIRST).score > 0.01:
                    judge.judge(candidate)
            except InputError:  # no program
                return

        assert judge._nursery is not None
        guests = functools.partial(of_the_nursery, judge._nursery._process.pid)
        (first, _), *_ = seconds(files[:1], cascade, guests)
        warm = seconds(files, cascade, guests)
        cold = seconds(
            files[: len(kinds)],
            lambda one: subprocess.run([*command, one], capture_output=True, check=False),
            of_the_commands,
        )
    rows = []
    for label, taken in (("the evaluator, warm", warm), ("a command for each", cold)):
        failing = [one for number, one in enumerate(taken) if kinds[number % len(kinds)][0] in FAILS]
        working = [one for number, one in enumerate(taken) if kinds[number % len(kinds)][0] not in FAILS]
        for kind, part in (("all", taken), ("schedule", working), ("fail", failing)):
            figures = [*np.percentile(part, [50, 95], axis=0), np.max(part, axis=0)] if part else []
            told = [f"{figure[column]:.2f}" for column in (0, 1) for figure in figures]
            rows.append([label, kind, str(len(part)), *told])
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"{given.problem}, {len(judge.entries)} instances, {len(kinds)} kinds; the first took {first:.2f} s; {load}")
    named = [f"{name}{unit}" for unit in ("", " (processor)") for name in ("p50", "p95", "worst")]
    print(table(["judged by", "candidates", "over", *named], rows))
    for name, both in zip(bodies(given.problem), warm, strict=False):
        print(f"{name}: {both[0]:.2f} s, of processors {both[1]:.2f}")


if __name__ == "__main__":
    main()
