"""``schedgap bench`` and ``report``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import add_cluster, add_resume, add_seed, add_time_limit, call, factor, names, room
from schedgap.formulations.common.errors import InputError

FORMS = {"csv": "rows.csv", "parquet": "rows.parquet", "latex": "tables.tex", "markdown": "tables.md"}
"""What a report writes beside itself, and the names of these files."""
_BESIDE = ""
"""The value of ``--csv`` and ``--parquet`` without a file: beside the run."""


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``bench``."""
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE|FILE",
        help="names as in schedgap list, or files of instances (default: quick)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="the run's directory (default: results)"
    )
    parser.add_argument("--problem", type=names, metavar="P,P", help="only these problems (default: all)")
    parser.add_argument(
        "--methods", type=names, metavar="M,M", help="heuristics to run, ids or file.py:function (default: all)"
    )
    add_cluster(parser)
    add_time_limit(parser, "seconds for each solve (default: the suites' own repeatable limits)")
    add_seed(parser, default=None)
    parser.add_argument("--scale", type=factor, metavar="F", help="factor on the number of instances (default 1)")
    add_resume(parser)
    parser.add_argument(
        "--certify", action="store_true", default=None, help="certify what exact methods prove, where it is quick"
    )

    parser.add_argument("--tables", action="store_true", help="print every table, not the answer alone")


def run_bench(arguments: argparse.Namespace) -> int:
    """Run suites, print the answer and the path of the report."""
    from schedgap import bench

    run = call(bench, arguments, arguments.suites, problems=arguments.problem)
    print(run.text if arguments.tables else run.answer(room()))
    if run.report is not None:
        if not arguments.tables:
            print(f"every table: {run.folder / 'table.txt'}, with times: --tables")
        print(f"report: {run.report}")
    if run.interrupted:
        again = f"schedgap bench --out {run.folder} --resume"
        print(f"schedgap: interrupted, every finished row is kept; goes on with: {again}", file=sys.stderr)
    return run.exit_status


def add_report(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``report``."""
    parser.add_argument("runs", nargs="*", type=Path, metavar="DIR", help="a run's directory; a second to compare with")
    for form, name in FORMS.items():
        what = "rows of the run" if name.startswith("rows") else "tables of heuristics"
        parser.add_argument(
            f"--{form}",
            nargs="?",
            const=_BESIDE,
            metavar="FILE",
            help=f"also write the {what} as {form} (default: DIR/{name})",
        )


def run_report(arguments: argparse.Namespace) -> int:
    """Write the report of a run, or of two side by side, and print its path."""
    from schedgap import report

    runs: list[Path] = arguments.runs
    forms = {form: path for form in FORMS if (path := getattr(arguments, form)) is not None}
    if not runs:
        for form, path in forms.items():
            if path != _BESIDE:
                raise InputError(
                    f"report: no run is given: {path} was taken as the file that --{form} writes; "
                    f"the run goes first: schedgap report {path} --{form}"
                )
        raise InputError("the following arguments are required: DIR (see: schedgap report --help)")
    if len(runs) > 2:
        raise InputError(f"report: takes one run or two, got {len(runs)}")
    files = {form: runs[0] / FORMS[form] if path == _BESIDE else Path(path) for form, path in forms.items()}
    for path in report(*runs, **files, progress=sys.stderr):
        print(path)
    return 0
