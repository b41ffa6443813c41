"""``schedgap check``."""

from __future__ import annotations

import argparse

from schedgap.cli.arguments import given, once, to_json


def add_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``check``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "solution",
        metavar="SOLUTION",
        help="a bare solution, or the object that solve --json prints; - for standard input",
    )
    parser.add_argument("--certificate", metavar="FILE", help="a certificate, as certify writes it")
    parser.add_argument("--vipr", metavar="FILE", help="a file of VIPR: are its rows those of the instance?")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run_check(arguments: argparse.Namespace) -> int:
    """Check a solution: 0 when it is feasible, 1 when it is not."""
    from schedgap.checking import checked_solution

    once(arguments.instance, arguments.solution)
    instance, solution = given(arguments.instance), given(arguments.solution)
    checked = checked_solution(instance, solution, arguments.certificate, arguments.vipr)
    print(to_json(checked.to_dict()) if arguments.json else checked.to_text())
    return 0 if checked.report.feasible else 1
