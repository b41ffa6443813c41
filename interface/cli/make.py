"""``schedgap generate`` and ``import``: what is drawn, and what is made of a log."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.cli.arguments import (
    add_seed,
    add_settings,
    check_out,
    note,
    write_or_print,
)


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``generate``."""
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's id, or a family: FAMILY.json --set n=12")
    parser.add_argument("--preset", metavar="NAME", help="a family of instances (default: the problem's first)")
    add_seed(parser)
    add_settings(parser, "settings of the preset", "key=value")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")


def run_generate(arguments: argparse.Namespace) -> int:
    """A random instance."""
    from schedgap.instances import make

    check_out(arguments.out)
    instance = make(arguments.problem, arguments.preset, arguments.seed, arguments.settings)
    write_or_print(instance.to_json(), arguments.out)
    return 0


def add_import(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``import``."""
    parser.add_argument("format", metavar="FORMAT", help="gavel, ...: see schedgap list")
    parser.add_argument("files", nargs="+", metavar="FILE", help="the files of that format")
    parser.add_argument("--problem", required=True, metavar="PROBLEM", help="the problem whose instance is wanted")
    parser.add_argument("--throughputs", metavar="FILE", help="measured rates (default: the built-in table)")
    add_settings(parser, "options of the importer", "key=value")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")


def run_import(arguments: argparse.Namespace) -> int:
    """An instance made of somebody else's files; what could not be used as it is goes to standard error."""
    from schedgap.instances import convert

    check_out(arguments.out, *arguments.files, arguments.throughputs)
    instance, messages = convert(
        arguments.format, arguments.files, arguments.problem, arguments.throughputs, arguments.settings
    )
    for message in messages:
        note(message)
    write_or_print(instance.to_json(), arguments.out)
    return 0
