"""``schedgap model`` and its alias ``export``."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.cli.arguments import add_settings, given


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
    parser.add_argument("--tighten", action="store_true", help="as engines solve it, not as the paper prints it")
