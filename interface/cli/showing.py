"""``schedgap plot``, ``export``, ``schema`` and ``list``."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedgap.catalogue.problem import Problem
    from schedgap.formulations.common.options import Option


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``plot``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("solution", metavar="SOLUTION", help="a bare solution, or the object that solve --json prints")
    parser.add_argument(
        "--compare", metavar="SOLUTION", action="append", default=[], help="draw this one below, on the same time axis"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .svg, .png or .pdf")


def plot(arguments: argparse.Namespace) -> int:
    """Draw a solution."""
    from schedgap.cli import files
    from schedgap.figures import Drawn, check_ending, draw

    paths = [arguments.solution, *arguments.compare]
    files.once(arguments.instance, *paths)
    check_ending(arguments.out)
    problem, instance = files.read_instance(arguments.instance)
    drawn = []
    for path in paths:
        one = Drawn.of(problem, instance, *files.read_solution(path, problem), files.name_of(path))
        if one.report.violations:
            note = one.report.violations[0].message
            print(f"schedgap: note: {one.maker}: not feasible ({note}); drawn all the same", file=sys.stderr)
        drawn.append(one)
    draw(problem, instance, drawn, arguments.out)
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
    from schedgap.catalogue.registry import find_problem
    from schedgap.cli.files import to_json

    print(to_json(instance_schema(find_problem(arguments.problem)), indent=2))
    return 0


def instance_schema(problem: Problem) -> dict[str, Any]:
    """The JSON Schema of the problem's instances; ``note`` and ``reference*`` are allowed and ignored."""
    found: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found.update(problem.instance_class.model_json_schema(by_alias=True))
    for part in [found, *found.get("$defs", {}).values()]:
        if "description" in part:  # the docstring's first paragraph says what it is
            part["description"] = " ".join(part["description"].split("\n\n")[0].split())
    found["properties"] = {**found["properties"], "note": {"description": "ignored"}}
    found["patternProperties"] = {"^reference": {"description": "ignored"}}
    return found


def add_list(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``list``."""
    parser.add_argument("problem", nargs="?", metavar="PROBLEM", help="only this one, with every option explained")


def list_all(arguments: argparse.Namespace) -> int:
    """Print problems, methods, guarantees, suites, presets and formats."""
    from schedgap.benchmarks.harness.suites import SUITES, suites_of
    from schedgap.catalogue.registry import all_problems, find_problem

    whole = arguments.problem is not None
    for problem in [find_problem(arguments.problem)] if whole else all_problems().values():
        print("\n".join(_describe(problem, whole)))
        print()
    if not whole:
        print("suites (schedgap bench)")
        filled = {name for problem in all_problems().values() for name in suites_of(problem)}
        print("\n".join(_pairs(((name, text) for name, text in SUITES.items() if name in filled), "  ")))
        print("\nschedgap list PROBLEM explains the options (--set)")
    return 0


def _describe(problem: Problem, whole: bool) -> list[str]:
    """The lines about one problem; `whole` explains every option instead of naming it."""
    from schedgap.benchmarks.instances import workload_of

    workload = workload_of(problem)

    default = problem.default_method().id
    lines = [f"{problem.id}: {problem.title}; {problem.source}", "  methods (--method; * is the default)"]
    for method in problem.methods:
        source = "" if method.source == "ours" else f" ({method.source})"
        lines += _pairs([(method.id, method.title + source)], "  * " if method.id == default else "    ")
        lines += _options(method.options, whole)
        if method.printed:
            shown = " ".join(f"{name}={_shown(value)}" for name, value in method.printed.items())
            lines.append(f"        as its paper prints it (compare --printed): {shown}")
    lines.append("  presets (schedgap generate)")
    for preset in workload.presets:
        lines += [*_pairs([(preset.id, preset.title)], "    "), *_options(preset.options, whole)]
    if workload.importers:
        lines.append("  formats (schedgap import)")
    for importer in workload.importers:
        lines += [*_pairs([(importer.id, importer.title)], "    "), *_options(importer.options, whole)]
    lines.append("  guarantees (schedgap verify)")
    lines += _pairs([(g.id, f"{g.kind}: {g.statement}") for g in problem.guarantees()], "    ")
    return lines


def _options(options: Mapping[str, Option], whole: bool) -> list[str]:
    """What ``--set`` accepts: one line each with range and meaning, or the names with their defaults."""
    if not options:
        return []
    if not whole:
        text = " ".join(name if o.default is None else f"{name}={_shown(o.default)}" for name, o in options.items())
        return textwrap.wrap(f"--set {text}", 100, initial_indent=" " * 8, subsequent_indent=" " * 14)
    lines = []
    for name, option in options.items():
        default = "" if option.default is None else f", default {_shown(option.default)}"
        lines.append(f"        {name}: {option.help} [{option.range_text}{default}]")
    return lines


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pairs(pairs: Iterable[tuple[str, str]], indent: str) -> list[str]:
    """Names in a column, then a line of text each."""
    found = list(pairs)
    width = max([14, *(len(name) for name, _ in found)])
    return [f"{indent}{name:<{width}}  {text}" for name, text in found]
