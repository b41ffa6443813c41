"""``schedgap solve`` and ``schedgap compare``."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.cli.arguments import (
    add_memory_limit,
    add_seed,
    add_settings,
    add_time_limit,
    call,
    check_out,
    count,
    given,
    names,
    note,
    once,
    to_json,
    write_or_print,
)
from schedgap.formulations.common.errors import Disagreement, InputError

MEMORY = "GB that a method may take (default: three quarters of what is free)"


def add_solve(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``solve``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "--method", metavar="M", help="a method of the problem, or package.module:function (default: strongest exact)"
    )
    add_time_limit(parser, "seconds, building included (default: none)")
    add_memory_limit(parser, MEMORY)
    add_seed(parser)
    add_settings(parser, "options of the method")
    parser.add_argument("--start", metavar="SOLUTION", help="a feasible solution to start from")
    parser.add_argument("--no-confirm", action="store_true", help="ask no other program whether what is proven is true")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the bare solution to FILE")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run_solve(arguments: argparse.Namespace) -> int:
    """Solve one instance."""
    from schedgap.solving import SolveOptions, in_bytes, solve_record, solved_text

    once(arguments.instance, arguments.start)
    check_out(arguments.out, arguments.instance, arguments.start)
    try:
        solved = call(
            solve_record,
            arguments,
            given(arguments.instance),
            arguments.method,
            SolveOptions(seed=arguments.seed, memory_limit=in_bytes(arguments.memory_limit)),
            start=None if arguments.start is None else given(arguments.start),
            confirm=not arguments.no_confirm,
        )
    except Disagreement as error:  # what the checker accepts is not lost with it
        if arguments.out is not None and error.accepted is not None:
            write_or_print(to_json(error.accepted, indent=1), arguments.out)
        raise
    unwritten: InputError | None = None
    if arguments.out is not None and solved.result.solution is not None:
        try:
            write_or_print(to_json(solved.result.solution, indent=1), arguments.out)
        except InputError as error:  # a disk that is full by now: the solution is printed all the same
            unwritten = error
    if arguments.json:
        if solved.shortfall is not None:
            note(solved.shortfall)
        print(to_json(solved.to_dict()))
    elif unwritten is not None:
        print(to_json(solved.result.solution, indent=1))
    else:
        print(solved_text(solved, arguments.out))
    if unwritten is not None:
        raise InputError(f"{unwritten}; the solution is on standard output instead")
    return solved.exit_status


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``compare``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "--methods", type=names, metavar="M,M,...", help="default: the strongest exact method and every heuristic"
    )
    add_time_limit(parser, "seconds for each method (default: none)")
    add_memory_limit(parser, MEMORY)
    add_seed(parser)
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help="seeds for each heuristic (default 1)")
    add_settings(parser, "options, each for every method that has it")
    parser.add_argument("--printed", action="store_true", help="every method as its paper prints it")
    parser.add_argument("--json", action="store_true", help="print the comparison as one JSON object")


def run_compare(arguments: argparse.Namespace) -> int:
    """Several methods on one instance."""
    from schedgap import compare

    found = call(compare, arguments, given(arguments.instance))
    print(to_json(found.to_dict()) if arguments.json else found.to_text())
    return found.exit_status
