"""Regret of the shipped online policies: generated families and instances of files (logs), by what they are told.

``python -m studies.online_regret [FILE ...] [--seeds N]`` prints a table for each family, and one
for each group of files whose names begin alike up to the first dash. Regret is to the certified bound of each instance.
``--windows N`` cuts each file into N parts with equally many jobs, in order of arrival: one log has no interval.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import numpy as np

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.intervals import interval
from schedgap.benchmarks.text import table
from schedgap.catalogue.registry import find_problem, parse_instance
from schedgap.formulations.common.instance import Instance
from schedgap.tools.online.gpu_sharing import SjfBsbf
from schedgap.tools.online.policies import POLICIES
from schedgap.tools.online.replay import Estimates, replay_here, world_of
from schedgap.tools.online.state import Policy

PROBLEM = "gpu-sharing"
FAMILIES = ("small", "table-ii", "table-iii")
RUNS: tuple[tuple[str, Estimates], ...] = (
    ("fifo", "none"),
    ("las", "none"),
    *((name, told) for name in ("sjf", "srtf", "easy", "sjf-bsbf") for told in get_args(Estimates)[:2]),
)
"""Policies, and what each is told of lengths."""


def regret(instance: Instance, policy: Policy, estimates: Estimates) -> float | None:
    """(mean JCT - certified bound) / certified bound; None where there is none or the run is infeasible."""
    problem = find_problem(PROBLEM)
    preempts = bool(getattr(policy, "preempts", False))
    world = world_of(problem, instance, preempts=preempts, estimates=estimates)
    if world is None:
        return None
    report, bound = replay_here(world, policy).report, world.bound()
    if not report.feasible or report.objective is None or bound is None:
        return None
    return float(report.objective) / bound - 1


def windows_of(path: Path, count: int) -> list[Instance]:
    """The instance of a file in parts; arrivals begin at 1 in each."""
    data = json.loads(path.read_text())
    jobs = sorted(data["jobs"], key=lambda job: job["arrival"])
    parts = [part.tolist() for part in np.array_split(np.array(jobs, dtype=object), count)]
    for part in parts:
        first = part[0]["arrival"] - 1
        for job in part:
            job["arrival"] -= first
    return [parse_instance({**data, "jobs": part}, str(path))[1] for part in parts]


def groups(files: Iterable[Path], seeds: int, windows: int) -> Iterator[tuple[str, list[Instance]]]:
    """Families, then files."""
    for family in FAMILIES:
        yield family, [make_instance(find_problem(PROBLEM), family, seed) for seed in range(seeds)]
    for name, paths in itertools.groupby(sorted(files), lambda path: path.stem.partition("-")[0]):
        yield name, [instance for path in paths for instance in windows_of(path, windows)]


def shown(values: list[float]) -> str:
    """Mean and the half-width of its 95% interval."""
    found = interval(np.array(values))
    if found is None:
        return ""
    return f"{found.mean:.3f}" + ("" if found.half is None else f" +- {found.half:.3f}")


def rows_of(instances: list[Instance]) -> list[list[str]]:
    """One for each policy and what it is told; the last column is paired: told by users minus told the truth."""
    found: dict[tuple[str, Estimates], list[float | None]] = {}
    for name, estimates in RUNS:
        make = {**POLICIES, "sjf-bsbf": SjfBsbf}[name]
        found[name, estimates] = [regret(one, make(), estimates) for one in instances]
    rows = []
    for (name, estimates), values in found.items():
        known = [value for value in values if value is not None]
        pairs = zip(values, found.get((name, "exact"), []), strict=False) if estimates == "user" else ()
        paired = shown([a - b for a, b in pairs if a is not None and b is not None])
        rows.append([name, estimates, f"{len(known)} of {len(values)}", shown(known), paired])
    return rows


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--windows", type=int, default=1)
    given = parser.parse_args()
    for name, instances in groups(given.files, given.seeds, given.windows):
        head = ["policy", "told", "feasible", "regret to the bound", "user minus exact"]
        print(f"{name}: {len(instances)} instances\n{table(head, rows_of(instances))}\n", flush=True)


if __name__ == "__main__":
    main()
