"""``schedgap audit``: what a cluster's log says of its scheduler."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import (
    add_memory_limit,
    add_seed,
    add_settings,
    add_time_limit,
    call,
    factor,
    factors,
    names,
    to_json,
)
from schedgap.cli.command import Command


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``audit``."""
    parser.add_argument("log", metavar="LOG", help="a log: sacct, kubectl, a table, a public trace")
    parser.add_argument("nodes", metavar="SERVERS", nargs="?", help="scontrol show nodes, sinfo, a table of servers")
    parser.add_argument("--format", metavar="F", help="format of the log (default: told by how it begins)")
    parser.add_argument("--problem", metavar="P", help="whose schedules (default: those of the record)")
    parser.add_argument("--scheduler", metavar="S", help="one of your own, file.py:function, in a process of its own")
    parser.add_argument("--methods", type=names, metavar="M,M", help="only these schedulers (default: all)")
    parser.add_argument("--window", metavar="N|busiest[:N]", help="the first N jobs, or the N that waited most (500)")
    parser.add_argument("--time-scale", type=factor, default=1.0, metavar="X", help="factor on all times (default 1)")
    parser.add_argument(
        "--servers",
        action="append",
        default=[],
        metavar="+N[:TYPE]|-N|observed",
        help="what if there were N GPUs more or fewer",
    )
    parser.add_argument(
        "--sharing", type=factors, default=(), metavar="X,X", help="what if two shared a GPU, each X times slower"
    )
    parser.add_argument("--tenant", metavar="NAME", help="only jobs of this queue, partition or virtual cluster")
    parser.add_argument(
        "--columns", type=names, metavar="C,C", help="columns of sacct without a line of names: JobID,Submit,..."
    )
    add_settings(parser, "columns of a table: gpus, arrival, start, end, id, nodes, tenant, unit", "column=name")
    add_time_limit(parser, "seconds for each scheduler (default 20)")
    add_memory_limit(parser, "for each scheduler (default 4)", 4.0)
    add_seed(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for audit.html and audit.json")
    parser.add_argument("--full", action="store_true", help="print every table, not one screen")
    parser.add_argument("--json", action="store_true", help="print the audit as one JSON object")


def run_audit(arguments: argparse.Namespace) -> int:
    """Audit a log; 0 whatever the verdict is."""
    from schedgap import audit

    columns, servers = arguments.settings, arguments.servers
    found = call(
        *(audit, arguments, arguments.log, arguments.nodes),
        form=arguments.format,
        columns=columns,
        names=arguments.columns or (),
        cluster=servers,
    )
    print(to_json(found.to_dict()) if arguments.json else found.to_text(arguments.full))
    if arguments.out is not None:
        print(f"page: {arguments.out / 'audit.html'}", file=sys.stderr)
    return 0


COMMAND = Command(
    "a cluster's log: what really ran, beside schedulers, best known and bound",
    "sacct.txt nodes.txt",
    add_audit,
    run_audit,
)
