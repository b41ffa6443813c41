"""How many default answers of the quick suite are confirmed, and what that costs in processor seconds.

python -m studies.confirmations [--time-limit S] [--presets tiny,small --seeds N]

On a machine that does other work a confirmation is given more seconds by the clock (``--patience``), and counts where
it took no more processor seconds than the solve did, or one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from schedgap.benchmarks import confirming
from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.suites.plan import plan
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.catalogue.run import checker_of, run_method
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.result import Deadline, Proof, SolveOptions
from studies.engines import processor_seconds

LEVELS = [None, *reversed(Proof)]


def instances(presets: list[str], seeds: int) -> Iterator[tuple[Problem, Instance]]:
    """The instances of the quick suite, or of presets."""
    if presets:
        for preset in presets:
            for name in all_problems():
                for seed in range(seeds):
                    yield find_problem(name), make_instance(find_problem(name), preset, seed)
        return
    every = {item.instance.content_hash(): item.instance for item in plan(["quick"]) if item.instance is not None}
    for instance in every.values():
        yield find_problem(instance.problem_id), instance


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--patience", type=float, default=5.0)
    parser.add_argument("--presets", default="")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    confirming.SECONDS = given.patience
    levels: dict[str, Counter[tuple[str, Proof | None]]] = {}
    costs: dict[str, list[float]] = {}
    for problem, instance in instances([name for name in given.presets.split(",") if name], given.seeds):
        method, check = problem.default_method(instance), checker_of(problem, instance)
        options = SolveOptions(Deadline.after(given.time_limit), threads=1)
        began = processor_seconds()
        result = run_method(problem, instance, method, options, check=check)
        solved = processor_seconds()
        options = replace(options, deadline=Deadline())
        after = confirming.confirmed(problem, instance, method, result, options, check, print)
        spent = processor_seconds() - solved
        level = after.proof if spent <= max(1.0, solved - began) else result.proof
        count = levels.setdefault(problem.id, Counter())
        count["before", result.proof] += 1
        count["after", level] += 1
        if result.proof is Proof.CLAIMED:
            costs.setdefault(problem.id, []).append(spent)
        told = f"{problem.id} {instance.name}: {result.proof} -> {level} by {after.info.get('confirmed_by')}"
        print(f"{told}; {solved - began:.2f} s, confirmation {spent:.2f} s", file=sys.stderr, flush=True)
    rows = []
    for name, count in levels.items():
        spent_here = np.array(costs.get(name, [0.0]))
        figures = [np.median(spent_here), np.quantile(spent_here, 0.95), spent_here.max()]
        shown = [f"{count['before', level]} -> {count['after', level]}" for level in LEVELS]
        rows.append([name, *shown, *(fixed(float(value)) for value in figures)])
    print(table(["problem", *(str(level or "none") for level in LEVELS), "median", "p95", "max"], rows, "lrrrrrrr"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
