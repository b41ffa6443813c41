"""``schedgap plot``, ``export``, ``schema`` and ``list``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedgap.benchmarks.descriptors import Problem
    from schedgap.heuristics.common.run import Option


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``plot``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("solution", metavar="SOLUTION", help="a bare solution, or the object that solve --json prints")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .svg, .png or .pdf")


def plot(arguments: argparse.Namespace) -> int:
    """Draw a solution."""
    from schedgap.cli import files
    from schedgap.figures import check_ending, draw

    files.once(arguments.instance, arguments.solution)
    check_ending(arguments.out)
    problem, instance = files.read_instance(arguments.instance)
    solution, _ = files.read_solution(arguments.solution, problem)
    violations = problem.check(instance, solution).violations
    if violations:
        print(f"schedgap: note: not feasible ({violations[0].message}); drawn all the same", file=sys.stderr)
    draw(problem, instance, solution, arguments.out)
    return 0


def add_export(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``export``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("--format", required=True, metavar="mps|lp", help="mps or lp")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")


def export(arguments: argparse.Namespace) -> int:
    """Write the declarative model."""
    from schedgap.cli import files
    from schedgap.exporting import write_model

    problem, instance = files.read_instance(arguments.instance)
    write_model(problem, instance, arguments.out, arguments.format)
    return 0


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``schema``."""
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's id")


def schema(arguments: argparse.Namespace) -> int:
    """Print the JSON Schema of an instance."""
    from schedgap.benchmarks.problems import find_problem
    from schedgap.cli.files import to_json

    print(to_json(instance_schema(find_problem(arguments.problem)), indent=2))
    return 0


def instance_schema(problem: Problem) -> dict[str, Any]:
    """The JSON Schema of the problem's instances; ``note`` and ``reference*`` are allowed and ignored."""
    found: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found.update(problem.instance_class.model_json_schema(by_alias=True))
    found["properties"] = {**found["properties"], "note": {"description": "ignored"}}
    found["patternProperties"] = {"^reference": {"description": "ignored"}}
    return found


def add_list(parser: argparse.ArgumentParser) -> None:
    """``list`` has no arguments."""


def list_all(arguments: argparse.Namespace) -> int:
    """Print problems, methods, guarantees, suites, presets and importers."""
    from schedgap.benchmarks.problems import PROBLEMS

    for problem in PROBLEMS.values():
        _print_problem(problem)
    from schedgap.benchmarks.suites import SUITES

    print("suites (schedgap bench)")
    _print_pairs(SUITES.items())
    return 0


def _print_problem(problem: Problem) -> None:
    from schedgap.benchmarks.methods import default_method

    print(f"{problem.id}: {problem.title}; {problem.source}")
    default = default_method(problem).id
    print("\n  methods (--method; the default is marked *)")
    for method in problem.methods:
        mark = "*" if method.id == default else " "
        source = "" if method.source == "ours" else f" ({method.source})"
        print(f"  {mark} {method.id:<22} {method.title}{source}")
        _print_options(method.options)
    print("\n  presets (schedgap generate)")
    for preset in problem.presets:
        print(f"    {preset.id:<22} {preset.title}")
        _print_options(preset.options)
    if problem.importers:
        print("\n  formats (schedgap import)")
    for importer in problem.importers:
        print(f"    {importer.id:<22} {importer.title}")
        _print_options(importer.options)
    print("\n  guarantees (schedgap verify)")
    _print_pairs((g.id, f"{g.kind}: {g.statement}") for g in problem.all_guarantees)
    print()


def _print_options(options: Mapping[str, Option]) -> None:
    for name, option in options.items():
        default = "" if option.default is None else f", default {option.default}"
        print(f"        {name}={option.range_text}{default}: {option.help}")


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    for name, text in pairs:
        print(f"    {name:<22} {text}")
