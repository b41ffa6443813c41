"""Hunt again for the worst instances: ``python -m studies.library.renew [PROBLEM ...]``.

A file is replaced only by an instance that is worse for its heuristic.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from schedgap.benchmarks.hunt.result import Hunted, write_found
from schedgap.benchmarks.hunt.run import hunt
from schedgap.benchmarks.worst import SUFFIX, worst_instances
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.formulations.common.errors import InputError

HERE = Path(__file__).parents[2] / "benchmarks" / "worst"


def file_name(problem: str, method: str) -> str:
    """The file of a heuristic: characters that do not belong in names of files are written as words."""
    method = re.sub("[^A-Za-z0-9_.-]", "_", method.replace("+", "-plus"))
    return f"{problem.replace('-', '_')}/worst-{method}{SUFFIX}"


def renew(
    names: Sequence[str] = (),
    *,
    budget: float = 60.0,
    seed: int = 0,
    workers: int = 1,
    limits: Sequence[str] = (),
    folder: Path = HERE,
    progress: TextIO | None = None,
) -> list[str]:
    """Hunt for each heuristic and keep what is worse than the file that is there.

    Parameters
    ----------
    names : problems, or ``PROBLEM/HEURISTIC``; all where empty
    budget : seconds for each heuristic
    limits : limits of every hunt, ``jobs=4``
    folder : where the files are

    Returns
    -------
    list of str
        A line for each heuristic.
    """
    lines = []
    before = {key: one.ratio for key, one in worst_instances().items()}
    given = dict(limit.split("=", 1) for limit in limits)
    for name in names or all_problems():
        problem = find_problem(name.partition("/")[0])
        wanted = name.partition("/")[2]
        for method in problem.heuristics():
            if method.outside_model or wanted not in ("", method.id):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                found = hunt(
                    f"{problem.id}/{method.id}",
                    limits=given,
                    budget=budget,
                    seed=seed,
                    workers=workers,
                    out=Path(scratch) / "hunt",
                    progress=progress,
                )
            old = before.get((problem.id, method.id))
            lines.append(_kept(found, old, folder / file_name(problem.id, method.id)))
            if progress is not None:
                print(lines[-1], file=progress, flush=True)
    return lines


def _kept(found: Hunted, old: float | None, path: Path) -> str:
    """Write the shrunk instance, or leave what is there; one line about it."""
    known_before = "none" if old is None else f"{old:.6g}"
    if found.worst is None or (old is not None and found.worst.value <= old):
        value = "nothing" if found.worst is None else f"{found.worst.value:.6g}"
        return f"{found.target.id}: found {value}, known {known_before}: kept"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_found(path, found.target, found.worst, "the worst instance known")
    return f"{found.target.id}: found {found.worst.value:.6g}, known {known_before}: written to {path.name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m studies.library.renew", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PROBLEM[/HEURISTIC]", help="default: every problem")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds for each heuristic")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--set", nargs="+", default=[], metavar="LIMIT=VALUE", dest="limits")
    given = parser.parse_args(arguments)
    try:
        renew(
            given.names,
            budget=given.budget,
            seed=given.seed,
            workers=given.workers,
            limits=given.limits,
            progress=sys.stderr,
        )
    except InputError as error:
        print(f"renew: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
