"""``schedgap generate`` and ``schedgap import``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.benchmarks.instances import workload_of
from schedgap.cli.arguments import add_seed, add_settings, settings_of


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``generate``."""
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's id")
    parser.add_argument("--preset", metavar="NAME", help="a family of instances (default: the problem's first)")
    add_seed(parser)
    add_settings(parser, "settings of the preset", "key=value")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")


def generate(arguments: argparse.Namespace) -> int:
    """A random instance."""
    from schedgap.benchmarks.instances import make_instance
    from schedgap.catalogue.registry import find_problem
    from schedgap.cli.files import write_or_print

    _check_out(arguments.out)
    problem = find_problem(arguments.problem)
    preset = workload_of(problem).presets[0].id if arguments.preset is None else arguments.preset
    instance = make_instance(problem, preset, arguments.seed, settings_of(arguments))
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


def import_(arguments: argparse.Namespace) -> int:
    """An instance made of somebody else's files; what could not be used as it is goes to standard error."""
    from schedgap.benchmarks.importers import import_instance
    from schedgap.catalogue.registry import find_problem
    from schedgap.cli.files import write_or_print

    _check_out(arguments.out)
    problem = find_problem(arguments.problem, "--problem")
    instance, messages = import_instance(
        problem, arguments.format, arguments.files, arguments.throughputs, settings_of(arguments)
    )
    for message in messages:
        print(f"schedgap: note: {message}", file=sys.stderr)
    write_or_print(instance.to_json(), arguments.out)
    return 0


def _check_out(out: Path | None) -> None:
    from schedgap.formulations.common.files import check_writable

    if out is not None and str(out) != "-":
        check_writable(out)
