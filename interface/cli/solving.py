"""``schedgap solve`` and ``schedgap compare``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.cli.arguments import add_seed, add_settings, add_time_limit, count, names, settings_of

if TYPE_CHECKING:
    from schedgap.catalogue.method import Method
    from schedgap.catalogue.problem import Problem
    from schedgap.formulations.common.instance import Instance
    from schedgap.solvers.result import Result

SHOWN = 400
"""Longest solution that is printed for a person, in characters."""


def add_solve(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``solve``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "--method", metavar="M", help="a method of the problem, or package.module:function (default: strongest exact)"
    )
    add_time_limit(parser, "seconds, building included (default: none)")
    add_seed(parser)
    add_settings(parser, "options of the method")
    parser.add_argument("--start", metavar="SOLUTION", help="a feasible solution to start from")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the bare solution to FILE")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def solve(arguments: argparse.Namespace) -> int:
    """Solve one instance."""
    from schedgap import api
    from schedgap.benchmarks.harness.warm import preload
    from schedgap.catalogue.method import Kind
    from schedgap.catalogue.methods import find_method, method_settings
    from schedgap.cli import files
    from schedgap.cli.progress import SolveProgress
    from schedgap.formulations.common.files import check_writable, write_text
    from schedgap.reading import feasible_start
    from schedgap.running import interrupted
    from schedgap.solvers.result import Termination

    files.once(arguments.instance, arguments.start or "")
    if arguments.out is not None:
        check_writable(arguments.out)
    problem, instance = files.read_instance(arguments.instance)
    method = problem.default_method() if arguments.method is None else find_method(problem, arguments.method)
    settings = method_settings(method, settings_of(arguments))
    start = None if arguments.start is None else files.read_solution(arguments.start, problem)[0]
    if start is not None:
        feasible_start(problem, instance, start, files.name_of(arguments.start))
    if start is not None and method.kind is Kind.HEURISTIC:
        print(f"schedgap: note: {method.id} makes no use of --start", file=sys.stderr)
    preload(problem, method)
    with SolveProgress(problem.sense, method.id, sys.stderr) as progress:
        try:
            result = api.solve(
                instance,
                method.id,
                time_limit=arguments.time_limit,
                seed=arguments.seed,
                start=start,
                settings=settings,
                report=progress.report,
            )
        except KeyboardInterrupt:
            best = start if progress.solution is None else progress.solution
            result = interrupted(problem, instance, best, progress.bound, time.monotonic() - progress.began)
    if arguments.out is not None and result.solution is not None:
        write_text(arguments.out, files.to_json(result.solution, indent=1) + "\n")
    if arguments.json:
        if (why := _shortfall(method, result)) is not None:
            print(f"schedgap: note: {why}", file=sys.stderr)
        print(files.to_json(_as_object(problem, instance, method, result, arguments)))
    else:
        print(_as_text(problem, instance, method, result, arguments))
    return 130 if result.termination is Termination.INTERRUPTED else exit_status(result)


def exit_status(result: Result) -> int:
    """0 solution found, 3 proven infeasible or unbounded, 4 nothing found, 5 internal error."""
    from schedgap.solvers.result import Status

    if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        return 3
    if result.status is Status.ERROR:
        return 5
    return 0 if result.solution is not None else 4


def _shortfall(method: Method, result: Result) -> str | None:
    """Why there is no answer, or one that the engine had no part in; None where there is nothing to say."""
    from schedgap.solvers.result import Status, Termination

    why = result.info.get("reason", result.termination)
    if result.status is Status.UNKNOWN:
        return f"{method.id} found no solution: {why}"
    return f"{method.id} did not solve the model: {why}" if result.termination is Termination.TOO_LARGE else None


def _label(instance: Instance, path: str) -> str:
    """The name of the instance; that of its file where it has none."""
    return instance.name or ("standard input" if path == "-" else Path(path).stem)


def _as_object(
    problem: Problem, instance: Instance, method: Method, result: Result, arguments: argparse.Namespace
) -> dict[str, Any]:
    """What ``--json`` prints: exactly the keys of the contract."""
    from schedgap.cli.files import plain_number

    return {
        "problem": problem.id,
        "instance": _label(instance, arguments.instance),
        "method": method.id,
        "engine": result.engine,
        "status": str(result.status),
        "objective": plain_number(result.objective),
        "bound": plain_number(result.bound),
        "gap": result.gap,
        "seconds": None if result.seconds is None else round(result.seconds, 6),
        "seed": arguments.seed,
        "solution": result.solution,
    }


def _as_text(
    problem: Problem, instance: Instance, method: Method, result: Result, arguments: argparse.Namespace
) -> str:
    """The result for a person."""
    from schedgap.benchmarks.report.metrics import metrics_text
    from schedgap.benchmarks.report.text import number, seconds
    from schedgap.cli.files import to_json

    engine = "" if result.engine is None else f" ({' '.join(filter(None, [result.engine, result.engine_version]))})"
    lines = [
        f"{_label(instance, arguments.instance)}: {problem.title}",
        f"  method     {method.id}{engine}",
        f"  status     {result.status}, {result.termination}",
        f"  {problem.objective_name:<10} {_with_unit(number(result.objective), problem.unit)}",
        f"  bound      {number(result.bound)}" + ("" if result.gap is None else f", gap {100 * result.gap:.3g}%"),
        f"  seconds    {seconds(result.seconds)}",
    ]
    if metrics := metrics_text(problem, result.info):
        lines.append(f"  metrics    {metrics}")
    if "reason" in result.info:
        lines.append(f"  reason     {result.info['reason']}")
    if result.solution is not None:
        if arguments.out is not None:
            lines.append(f"  solution   in {arguments.out}")
        else:
            text = to_json(result.solution)
            lines.append(f"  solution   {text if len(text) <= SHOWN else 'long: --out FILE or --json writes it'}")
    return "\n".join(lines)


def _with_unit(value: str, unit: str) -> str:
    return value if value == "-" else f"{value} {unit}".rstrip()


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``compare``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "--methods", type=names, metavar="M,M,...", help="default: the strongest exact method and every heuristic"
    )
    add_time_limit(parser, "seconds for each method (default: none)")
    add_seed(parser)
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help="seeds for each heuristic (default 1)")
    add_settings(parser, "options, each for every method that has it")
    parser.add_argument("--printed", action="store_true", help="every method as its paper prints it")
    parser.add_argument("--json", action="store_true", help="print the comparison as one JSON object")


def compare(arguments: argparse.Namespace) -> int:
    """Several methods on one instance."""
    from schedgap import api
    from schedgap.cli import files
    from schedgap.cli.progress import SolveProgress
    from schedgap.solvers.result import Termination

    problem, instance = files.read_instance(arguments.instance)
    with SolveProgress(problem.sense, "compare", sys.stderr) as progress:
        found = api.compare(
            instance,
            arguments.methods,
            time_limit=arguments.time_limit,
            seed=arguments.seed,
            repeat=arguments.repeat,
            settings=settings_of(arguments),
            printed=arguments.printed,
            report=progress.report,
        )
    print(files.to_json(found.to_dict()) if arguments.json else found.to_text())
    stopped = any(r.termination is Termination.INTERRUPTED for row in found.rows for r in row.results)
    return 130 if stopped else found.exit_status
