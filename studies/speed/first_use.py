"""What the first use of a method costs: ``schedgap solve`` with nothing compiled, and with all code kept.

``python -m studies.speed.first_use [--presets tiny small] [--problems ...] [--methods ...] [--repeats 5]`` solves one
instance of each preset, seed 1, by the default method and every heuristic, each in a process of its own. It prints
medians of the processor seconds of the whole process, its start included. *Fresh* begins with an empty folder for
compiled code, *kept* after a run that compiled all that it met.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from studies.speed.field import solved

LIMIT = 60.0
"""Seconds of a solve; what ends by it is marked."""


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Within it processes are started with these variables."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def seconds_of(path: Path, method: str, kept: Path, compiling: str) -> tuple[float, str]:
    """Processor seconds of one solve with code in this folder, and its status."""
    with environment({"NUMBA_CACHE_DIR": str(kept), "SCHEDGAP_COMPILE": compiling}):
        row = solved(path, method, LIMIT)
    return float(str(row["cpu_seconds"])), str(row["status"])


def first_use(path: Path, method: str, repeats: int, scratch: Path) -> tuple[float, float, str]:
    """Medians of the seconds, fresh and kept, and the status."""
    fresh, kept, status = [], [], ""
    for k in range(repeats):
        spent, status = seconds_of(path, method, scratch / f"{path.stem}-{method}-{k}", "when-it-pays")
        fresh.append(spent)
    shared = scratch / "shared"
    seconds_of(path, method, shared, "always")
    for _ in range(repeats):
        spent, status = seconds_of(path, method, shared, "when-it-pays")
        kept.append(spent)
    return median(fresh), median(kept), status


def main() -> None:
    """Print the table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--presets", nargs="+", default=["tiny", "small"])
    parser.add_argument("--problems", nargs="+", default=list(all_problems()))
    parser.add_argument("--methods", nargs="+", help="default: the default method and every heuristic")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.problems:
            problem = find_problem(name)
            for preset in arguments.presets:
                try:
                    instance = make_instance(problem, preset, 1)
                except InputError as error:  # no such preset of this problem
                    print(error)
                    continue
                path = Path(folder) / f"{name}-{preset}.json"
                write_text(path, instance.to_json())
                methods = [problem.default_method(instance).id]
                methods += [method.id for method in problem.methods if method.kind is Kind.HEURISTIC]
                for method in methods:
                    if arguments.methods is None or method in arguments.methods:
                        fresh, kept, status = first_use(path, method, arguments.repeats, Path(folder))
                        rows.append([name, preset, method, fixed(fresh, 1), fixed(kept, 1), status])
                        print(*rows[-1], flush=True)
    print(table(["problem", "preset", "method", "fresh", "kept", "status"], rows))


if __name__ == "__main__":
    main()
