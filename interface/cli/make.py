"""``schedgap generate``, ``import``, ``audit`` and ``judge``: what is drawn, what was logged, what was decided."""

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
    check_out,
    factor,
    factors,
    names,
    note,
    to_json,
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


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``audit``."""
    parser.add_argument("log", metavar="LOG", help="a log: sacct, kubectl, a table, a public trace")
    parser.add_argument("nodes", metavar="SERVERS", nargs="?", help="scontrol show nodes, sinfo, a table of servers")
    parser.add_argument("--format", metavar="F", help="of the log (default: told by how it begins)")
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
        "--columns", type=names, metavar="C,C", help="of sacct without a line of names: JobID,Submit,..."
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


def add_judge(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``judge``."""
    parser.add_argument(
        "snapshot", metavar="SNAPSHOT", help="kubectl get nodes,pods -A -o json, or an instance with a decision"
    )
    parser.add_argument("nodes", metavar="NODES", nargs="?", help="the nodes, where they are in a file of their own")
    parser.add_argument(
        "--format", metavar="F", help="own, kubernetes, slurm, ray or openb (default: told by the file)"
    )
    parser.add_argument(
        "--objective", type=names, metavar="O,O", help="weight, topology, fragmentation, moves, in order"
    )
    parser.add_argument("--gang-label", metavar="LABEL", help="a label or annotation of pods that names their gang")
    parser.add_argument("--names", action="store_true", help="keep the names of nodes, pods and gangs")
    add_time_limit(parser, "seconds for all of it, half at most for the best decision (default 40)")
    add_seed(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for judge.html, judge.json, instance, decisions"
    )
    parser.add_argument("--json", action="store_true", help="print the judgement as one JSON object")


def run_judge(arguments: argparse.Namespace) -> int:
    """Judge a decision; 0 whatever the verdict is."""
    from schedgap import judge

    form, objectives = arguments.format, arguments.objective
    found = call(judge, arguments, arguments.snapshot, arguments.nodes, form=form, objectives=objectives)
    print(to_json(found.to_dict()) if arguments.json else found.to_text())
    if arguments.out is not None:
        print(f"page: {arguments.out / 'judge.html'}", file=sys.stderr)
    return 0
