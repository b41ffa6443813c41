"""``schedgap reproduce``: the tables and figures of a paper, measured again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import (
    add_cluster,
    add_resume,
    call,
    count,
    factor,
)
from schedgap.cli.command import Command


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``reproduce``."""
    parser.add_argument("paper", metavar="PAPER", help="000 to 004, or a name as in schedgap list")
    parser.add_argument(
        "--item", nargs="+", action="extend", metavar="ITEM", help="only these, as in schedgap list (default: all)"
    )
    parser.add_argument(
        "--seeds", type=count, metavar="N", help="draws of every item (default: 10, up to 40 where undecided)"
    )
    parser.add_argument("--scale", type=factor, default=1.0, metavar="F", help="factor on the number of draws")
    add_cluster(parser)
    add_resume(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's directory (default: results/reproduce-PAPER)"
    )


def run_reproduce(arguments: argparse.Namespace) -> int:
    """Measure a paper's items again, print the verdicts and the page's path; 5 where a run failed."""
    from schedgap import reproduce

    found = call(reproduce, arguments, arguments.paper, items=arguments.item)
    if found.interrupted:
        again = f"schedgap reproduce {arguments.paper} --out {found.folder} --resume"
        print(f"schedgap: interrupted, every finished run is kept; goes on with: {again}", file=sys.stderr)
        return 130
    for finding in found.findings:
        print(f"{finding.item.title} ({finding.processor:.0f} s of processor)")
        for judged in finding.judged:
            print(f"  {judged.text}: {judged.claim.text}")
    print(f"\n{sum(finding.processor for finding in found.findings):.0f} s of processor in all\npage: {found.page}")
    for line in found.errors[:10]:
        print(f"schedgap: error: {line}", file=sys.stderr)
    return 5 if found.errors else 0


COMMAND = Command(
    "measure a paper's tables and figures again, with verdicts", "003 --item table-iv", add_reproduce, run_reproduce
)
