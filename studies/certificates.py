"""Certificates of whole presets and of files: how many close, how long they take, and what changed ones prove.

python -m studies.certificates presets --preset tiny --seeds 10
python -m studies.certificates files instance.json ...
python -m studies.certificates changes --changes 1000
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem, load_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Instance, Json
from schedgap.solvers.certificates.content import Certificate
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import Effort, check, prove
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Deadline, SolveOptions, Status

PROBLEMS = ("rar-ddls", "hadar", "gpu-sharing", "comm-contention", "ddl-cluster", "g-vne", "ddljs")


def numbers(node: Json, path: tuple[Json, ...] = ()) -> Iterator[tuple[Json, ...]]:
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


def changed(certificate: dict[str, Json], rng: random.Random) -> dict[str, Json]:
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


def certificate(problem: Problem, instance: Instance, limit: float) -> tuple[Certificate | None, str, float]:
    """A certificate of the optimum (or that there is none), else why not; and the seconds of proving."""
    deadline = Deadline.after(limit)
    result = run_method(
        problem, instance, problem.default_method(instance), SolveOptions(deadline=deadline.capped(limit / 2))
    )
    began = time.monotonic()
    value = None
    if result.status is Status.OPTIMAL and result.solution is not None:
        objective = problem.check(instance, result.solution).objective
        assert objective is not None
        value = Fraction(objective)
    elif result.status is not Status.INFEASIBLE:
        return None, f"ends with status {result.status.value}, {result.objective}", 0.0
    try:
        return prove(instance, value, result.solution, Effort(deadline)), "", time.monotonic() - began
    except Unproven as fault:
        return None, str(fault), time.monotonic() - began


def try_changes(name: str, count: int, seeds: int = 10) -> dict[str, int]:
    """Change one number at a time: how many are rejected, how many still prove what is true.

    Raises
    ------
    AssertionError
        A changed certificate is accepted although its claim is false.
    """
    rng = random.Random(name)
    problem = find_problem(name)
    made = []
    for seed in range(seeds):
        instance = make_instance(problem, "tiny", seed)
        found, _, _ = certificate(problem, instance, 60.0)
        if found is not None and found["claim"] != "infeasible":
            made.append((instance, found))
    told = {"certificates": len(made), "changes": 0, "rejected": 0, "still valid": 0}
    while made and told["changes"] < count:
        instance, found = rng.choice(made)
        told["changes"] += 1
        try:
            verdict = check(instance, changed(found, rng))
        except Rejected:
            told["rejected"] += 1
            continue
        # what is accepted must be true: no better than the optimum that the unchanged one proves
        truth = Fraction(found["claim"])
        assert verdict.bound is not None
        assert problem.sense * (verdict.bound - truth) <= Fraction(1, 10**9) * (1 + abs(truth)), name
        told["still valid"] += 1
    return told


def line(problem: Problem, name: str, instance: Instance, limit: float) -> tuple[bool, str]:
    """Certify one instance; whether that worked, and a row of a table."""
    found, reason, seconds = certificate(problem, instance, limit)
    if found is None:
        try:
            bound = check(instance, prove_bound(instance)).bound
            reason += f"; certified bound {float(bound or 0):.9g}"
        except Unproven as fault:
            reason += f"; {fault}"
        return False, f"{name:40} not certified: {reason} ({seconds:.1f} s)"
    began = time.monotonic()
    leaves = check(instance, found).leaves
    checking, size = time.monotonic() - began, len(gzip.compress(json.dumps(found).encode()))
    told = f"{found['claim'][:24]:24} {leaves:6} leaves {size:8} bytes"
    return True, f"{name:40} {told}, proven in {seconds:.2f} s, checked in {checking:.2f} s"


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
    names = given.problems.split(",")
    if given.what == "changes":
        for name in names:
            print(name, try_changes(name, given.changes), flush=True)
    elif given.what == "files":
        results = []
        for path in given.files:
            problem, instance = load_instance(path)
            results.append(line(problem, path.rpartition("/")[2], instance, given.limit))
            print(results[-1][1], flush=True)
        print(f"{sum(done for done, _ in results)} of {len(results)}")
    else:
        for name in names:
            results = []
            for seed in range(given.seeds):
                instance = make_instance(find_problem(name), given.preset, seed)
                results.append(line(find_problem(name), f"{name} {given.preset} {seed}", instance, given.limit))
                print(results[-1][1], flush=True)
            print(f"{name}: {sum(done for done, _ in results)} of {given.seeds}", flush=True)


if __name__ == "__main__":
    main()
