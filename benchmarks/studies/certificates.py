"""Certificates of whole presets and of files: how many close, how long they take, and what changed ones prove.

python -m schedgap.benchmarks.studies.certificates presets --preset tiny --seeds 10
python -m schedgap.benchmarks.studies.certificates files instance.json ...
python -m schedgap.benchmarks.studies.certificates changes --changes 1000
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import schedgap
from schedgap.solvers.certificates.checker import Rejected
from schedgap.solvers.certificates.make import check

PROBLEMS = ("rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs")


def numbers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a certificate are: claim, options, splits, multipliers."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in ("certificate", "problem", "instance", "form"):
                yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for key, value in enumerate(node):
            yield from numbers(value, (*path, key))
    elif isinstance(node, int) or (isinstance(node, str) and path[-1] != "split" and node != "infeasible"):
        yield path


def changed(certificate: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy with one number changed: a little, a lot, its sign, or to 0."""
    result = copy.deepcopy(certificate)
    path = rng.choice(list(numbers(certificate)))
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    value = Fraction(old)
    ways = (value + 1, value - 1, value * 2, value / 2, -value, Fraction(0), value + Fraction(rng.randint(1, 2**41)))
    new = rng.choice([way for way in ways if way != value])
    place[path[-1]] = str(new) if isinstance(old, str) else int(new)
    return result


def try_changes(problem: str, count: int, seeds: int = 10) -> dict[str, int]:
    """Change one number at a time: how many are rejected, how many still prove what is true.

    Raises
    ------
    AssertionError
        A changed certificate is accepted although its claim is false.
    """
    rng = random.Random(problem)
    made = []
    for seed in range(seeds):
        found = schedgap.certify(schedgap.generate(problem, "tiny", seed=seed), time_limit=60)
        if found.certificate is not None and found.optimal:
            made.append(found)
    told = {"certificates": len(made), "changes": 0, "rejected": 0, "still valid": 0}
    while made and told["changes"] < count:
        found = rng.choice(made)
        other = changed(json.loads(json.dumps(found.certificate)), rng)
        told["changes"] += 1
        try:
            verdict = check(found.instance, other)
        except Rejected:
            told["rejected"] += 1
            continue
        # what is accepted must be true: no better than the optimum that the unchanged one proves
        sense = found.problem.sense
        assert verdict.bound is not None and found.bound is not None
        assert sense * verdict.bound <= sense * found.bound + Fraction(1, 10**6) * (1 + abs(found.bound)), (
            problem,
            other,
        )
        told["still valid"] += 1
    return told


def line(name: str, instance: Any, limit: float) -> tuple[bool, str]:
    """Certify one instance; whether that worked, and a row of a table."""
    made = schedgap.certify(instance, time_limit=limit)
    began = time.monotonic()
    if made.certificate is not None:
        check(made.instance, made.certificate)
    seconds = time.monotonic() - began
    done = made.optimal or made.infeasible
    return done, f"{name:40} {made.to_text()}; checked in {seconds:.2f} s"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("presets", "files", "changes"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=240.0)
    parser.add_argument("--changes", type=int, default=1000)
    given = parser.parse_args()
    problems = given.problems.split(",")
    if given.what == "changes":
        for problem in problems:
            print(problem, try_changes(problem, given.changes), flush=True)
    elif given.what == "files":
        results = []
        for path in given.files:
            results.append(line(path.rpartition("/")[2], path, given.limit))
            print(results[-1][1], flush=True)
        print(f"{sum(done for done, _ in results)} of {len(results)}")
    else:
        for problem in problems:
            results = []
            for seed in range(given.seeds):
                instance = schedgap.generate(problem, given.preset, seed=seed)
                results.append(line(f"{problem} {given.preset} {seed}", instance, given.limit))
                print(results[-1][1], flush=True)
            print(f"{problem}: {sum(done for done, _ in results)} of {given.seeds}", flush=True)


if __name__ == "__main__":
    main()
