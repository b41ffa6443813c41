"""``schedgap plot``, ``schema`` and ``list``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import given, once, to_json


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``plot``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("solution", metavar="SOLUTION", help="a bare solution, or the object that solve --json prints")
    parser.add_argument(
        "--compare", metavar="SOLUTION", action="append", default=[], help="draw this one below, on the same time axis"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .svg, .png or .pdf")


def run_plot(arguments: argparse.Namespace) -> int:
    """Draw a solution."""
    from schedgap import api

    once(arguments.instance, arguments.solution, *arguments.compare)
    solutions = [given(path) for path in (arguments.solution, *arguments.compare)]
    api.plot(given(arguments.instance), solutions[0], arguments.out, compare=solutions[1:], progress=sys.stderr)
    return 0


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``schema``."""
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's id, or solution:PROBLEM")


def run_schema(arguments: argparse.Namespace) -> int:
    """Print the JSON Schema of an instance or a solution."""
    from schedgap import api

    print(to_json(api.schema(arguments.problem), indent=2))
    return 0


def add_list(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``list``."""
    parser.add_argument("problem", nargs="?", metavar="PROBLEM", help="only this one, with every option explained")


def run_list(arguments: argparse.Namespace) -> int:
    """Print problems, methods, guarantees, suites, presets and formats."""
    from schedgap import api

    print(api.listing(arguments.problem))
    return 0
