"""``schedgap plot``, ``schema``, ``list``, ``model`` and its alias ``export``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import add_settings, given, once, to_json
from schedgap.formulations.common.errors import InputError


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``plot``."""
    parser.add_argument("instance", nargs="?", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "solution", nargs="?", metavar="SOLUTION", help="a bare solution, or the object that solve --json prints"
    )
    parser.add_argument(
        "--compare", metavar="SOLUTION", action="append", default=[], help="draw this one below, on the same time axis"
    )
    parser.add_argument(
        "--ratios",
        type=Path,
        metavar="RUN",
        help="instead: every heuristic's ratios in a run of bench, with its bounds",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .svg, .png or .pdf")


def run_plot(arguments: argparse.Namespace) -> int:
    """Draw a solution, or the ratios of a run."""
    from schedgap import plot, plot_ratios

    if arguments.ratios is not None:
        if arguments.instance is not None or arguments.compare:
            raise InputError("plot: --ratios draws a run, it takes no instance and no solution")
        plot_ratios(arguments.ratios, arguments.out)
        return 0
    missing = [name for name in ("instance", "solution") if getattr(arguments, name) is None]
    if missing:
        names = ", ".join(missing).upper()
        raise InputError(f"the following arguments are required: {names} (see: schedgap plot --help)")
    once(arguments.instance, arguments.solution, *arguments.compare)
    solutions = [given(path) for path in (arguments.solution, *arguments.compare)]
    plot(given(arguments.instance), solutions[0], arguments.out, compare=solutions[1:], progress=sys.stderr)
    return 0


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``schema``."""
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's id, or solution:PROBLEM")


def run_schema(arguments: argparse.Namespace) -> int:
    """Print the JSON Schema of an instance or a solution."""
    from schedgap import schema

    print(to_json(schema(arguments.problem), indent=2))
    return 0


def add_list(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``list``."""
    parser.add_argument(
        "subject",
        nargs="?",
        metavar="PROBLEM|formats|suites|claims|experiments",
        help="one problem with every option explained, or what belongs to no single problem",
    )


def run_list(arguments: argparse.Namespace) -> int:
    """Print one screen of all problems, one problem, or what belongs to none."""
    from schedgap import listing

    print(listing(arguments.subject))
    return 0


def add_model(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``model``."""
    _add_form(parser)
    parser.add_argument("--print", action="store_true", dest="shown", help="sets, variables and rows (the default)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it; ends in .lp or .mps")


def run_model(arguments: argparse.Namespace) -> int:
    """Show a declarative model, or write it."""
    from schedgap import model

    made = model(given(arguments.instance), arguments.form, arguments.tighten, **arguments.settings)
    if arguments.out is not None:
        made.write(arguments.out)
    if arguments.shown or arguments.out is None:
        print(made)
    return 0


def add_export(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``export``."""
    _add_form(parser)
    parser.add_argument("--format", required=True, metavar="mps|lp", help="mps or lp")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")


def run_export(arguments: argparse.Namespace) -> int:
    """Write a declarative model."""
    from schedgap import model

    made = model(given(arguments.instance), arguments.form, arguments.tighten, **arguments.settings)
    made.write(arguments.out, arguments.format)
    return 0


def _add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("--form", metavar="F", help="one of the problem's forms (default: the first that fits)")
    add_settings(parser, "option of the form (schedgap list PROBLEM)")
    parser.add_argument("--tighten", action="store_true", help="show the form that engines solve, not the paper's")
