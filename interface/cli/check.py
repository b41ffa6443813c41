"""``schedgap check`` and ``certify``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from schedgap.cli.arguments import add_memory_limit, add_seed, add_time_limit, call, check_out, given, once, to_json
from schedgap.formulations.common.errors import InputError


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


def add_certify(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``certify``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument("--method", metavar="M", help="finds the schedule (default: strongest exact)")
    add_time_limit(parser, "seconds, half of them for the schedule (default: none)")
    add_memory_limit(parser, "GB that the method may take (default: three quarters of what is free)")
    add_seed(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="write the certificate to FILE")
    parser.add_argument(
        "--vipr", type=Path, metavar="FILE", help="write it as a file of VIPR 1.0, too, for checkers of others"
    )
    parser.add_argument("--json", action="store_true", help="print what is proven as one JSON object")


def run_certify(arguments: argparse.Namespace) -> int:
    """Certify an instance: 0 an optimum or a bound is proven, 3 that there is no schedule, 4 nothing is."""
    from schedgap.certifying import locked_file

    check_out(arguments.out, arguments.instance)
    if arguments.vipr is not None:
        check_out(arguments.vipr, arguments.instance)
    with locked_file(arguments.out):
        return _certified(arguments)


def _certified(arguments: argparse.Namespace) -> int:
    from schedgap.certifying import certify

    made = call(certify, arguments, given(arguments.instance), rows=arguments.vipr is not None)
    print(to_json(made.to_dict()) if arguments.json else made.to_text())
    if made.certificate is not None:
        try:
            made.write(arguments.out)
        except InputError as error:  # a disk that is full by now: it is kept where there may be room
            kept = Path(tempfile.mkdtemp(prefix="schedgap-")) / "certificate.json.gz"
            made.write(kept)
            raise InputError(f"{error}; the certificate is in {kept}") from None
        if arguments.vipr is not None:
            made.write_vipr(arguments.vipr)
    elif arguments.vipr is not None:
        files = f"neither {arguments.out} nor {arguments.vipr}"
        print(f"schedgap: note: {files} is written; without --vipr", file=sys.stderr, end=" ")
        print("forms that VIPR cannot say are tried, too", file=sys.stderr)
    return 4 if made.certificate is None else 3 if made.infeasible else 0
