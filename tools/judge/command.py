"""``schedgap judge``: one decision of a live cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schedgap.cli.arguments import (
    add_seed,
    add_time_limit,
    call,
    names,
    to_json,
)
from schedgap.cli.command import Command


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


COMMAND = Command(
    "one decision of a live cluster: what it lost, why, how far from the best",
    "snapshot.json",
    add_judge,
    run_judge,
)
