"""What each engine solves of the same declarative models, and in how many processor seconds.

python -m studies.engines run --presets tiny,small --seeds 100,101 --out FILE
python -m studies.engines table FILE...

One thread each. For another version of an engine, run it in another environment; the table takes the files of all of
them. Answers that contradict each other end it with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.catalogue.run import checker_of
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.engines import NAMES, engine, installed_engines
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.result import Deadline, SolveOptions


def processor_seconds() -> float:
    """The seconds of this process, of those it has waited for and of those that still run (Linux), such as CP-SAT's."""
    total = sum(os.times()[:4])
    for children in Path("/proc/self/task").glob("*/children"):
        try:
            running = children.read_text().split()
        except FileNotFoundError:  # a thread that has ended meanwhile
            continue
        for child in running:
            fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def answers(problem: Problem, instance: Instance, by: str, limit: float) -> dict[str, Json]:
    """What one engine says, the checker having scored its solution."""
    model, version = problem.model(instance), engine(by).version()
    if model is None:
        raise InputError(f"{problem.id} has no declarative model")
    options, began = SolveOptions(Deadline.after(limit), threads=1), processor_seconds()
    result = solve_declarative(lambda: model, by, options, checker_of(problem, instance))
    return {
        "engine": f"{by} {version}",
        "status": str(result.status),
        "objective": result.objective,
        "bound": result.bound,
        "processor_seconds": processor_seconds() - began,
    }


def run(given: argparse.Namespace) -> None:
    """Every engine on every instance, one line of JSON each."""
    chosen = given.engines.split(",") if given.engines else [*NAMES, *installed_engines()]
    with Path(given.out).open("w", encoding="utf-8") as file:
        for preset in given.presets.split(","):
            for name in given.problems.split(",") if given.problems else all_problems():
                problem = find_problem(name)
                for seed in map(int, given.seeds.split(",")):
                    try:
                        instance = make_instance(problem, preset, seed)
                    except InputError as missing:  # not every problem has every preset
                        print(missing, file=sys.stderr)
                        break
                    for by in chosen:
                        line: dict[str, Json] = {"instance": f"{name} {preset} {seed}"}
                        try:
                            line |= answers(problem, instance, by, given.time_limit)
                        except InputError as refused:
                            line |= {"engine": f"{by} {engine(by).version()}", "status": "refused", "why": str(refused)}
                        print(json.dumps(line), file=file, flush=True)


def shown(lines: list[dict[str, Json]]) -> str:
    """A table by problem and preset: how many each engine decides, its median processor seconds where all do."""
    by_instance: dict[str, dict[str, dict[str, Json]]] = defaultdict(dict)
    for line in lines:
        by_instance[line["instance"]][line["engine"]] = line
    engines = sorted({line["engine"] for line in lines})
    groups: dict[str, list[dict[str, dict[str, Json]]]] = defaultdict(list)
    for instance, answers in by_instance.items():
        optima = [a["objective"] for a in answers.values() if a["status"] == "optimal"]
        if any(not agrees(value, optima[0]) for value in optima):
            raise ValueError(f"{instance}: {answers}")
        groups[instance.rpartition(" ")[0]].append(answers)
    rows = []
    for name, group in groups.items():
        row = [name, str(len(group))]
        common = [a for a in group if all(_decided(a.get(by)) for by in engines)]
        for by in engines:
            times = [a[by]["processor_seconds"] for a in common]
            row.append(f"{sum(_decided(a.get(by)) for a in group)}, {fixed(median(times) if times else None, 2)}")
        rows.append([*row, str(len(common))])
    return table(["models", "of", *engines, "by all"], rows, "lr" + "r" * len(engines) + "r")


def _decided(answer: dict[str, Json] | None) -> bool:
    return answer is not None and answer["status"] in ("optimal", "infeasible")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--problems", default="")
    running.add_argument("--presets", default="tiny,small")
    running.add_argument("--seeds", default="100,101,102")
    running.add_argument("--engines", default="")
    running.add_argument("--time-limit", type=float, default=60.0)
    running.add_argument("--out", required=True)
    commands.add_parser("table").add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    if given.command == "run":
        run(given)
    else:
        print(shown([json.loads(text) for file in given.files for text in file.read_text().splitlines()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
