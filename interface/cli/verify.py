"""``schedgap verify`` and ``hunt``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Protocol

from schedgap.cli.arguments import (
    add_cluster,
    add_resume,
    add_seed,
    add_settings,
    call,
    count,
    seconds,
    to_json,
)
from schedgap.formulations.common.errors import InputError


class _Hunted(Protocol):
    """What a hunt, or a search for a family, comes to."""

    @property
    def folder(self) -> Path: ...
    @property
    def finished(self) -> bool: ...
    @property
    def defects(self) -> tuple[str, ...]: ...
    def to_text(self) -> str: ...


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``verify``."""
    parser.add_argument("guarantees", nargs="*", metavar="GUARANTEE", help="ids as in schedgap list (default: all)")
    parser.add_argument("--claims", type=Path, metavar="FILE.py", help="claims of your own: a file with CLAIMS")
    parser.add_argument("--instances", type=count, metavar="N", help="instances to try for each guarantee")
    add_seed(parser)
    add_cluster(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for counterexample files")
    parser.add_argument(
        "--power", action="store_true", help="tell how much smaller the constant of each held claim could be"
    )
    parser.add_argument("--certify", action="store_true", help="count how many optima are certified (slow)")
    parser.add_argument("--json", action="store_true", help="print the ledger as one JSON object")


def run_verify(arguments: argparse.Namespace) -> int:
    """Try guarantees on many instances; refutations are findings, not failures."""
    from schedgap import verify

    ledger = call(verify, arguments, arguments.guarantees)
    print(to_json(ledger.to_dict()) if arguments.json else ledger.to_text(power=arguments.power))
    return 0


def add_hunt(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``hunt``."""
    parser.add_argument(
        "target",
        metavar="GUARANTEE|PROBLEM/HEURISTIC",
        help="an id as in schedgap list, or a heuristic; PROBLEM/package.module:function is one of your own",
    )
    parser.add_argument("--claims", type=Path, metavar="FILE.py", help="claims of your own: a file with CLAIMS")
    parser.add_argument(
        "--family",
        action="store_true",
        help="hunt at several sizes n, and fit a generator and its ratio(n); limits parameter, sizes, beyond",
    )
    parser.add_argument("--around", metavar="FILE", help="begin from this instance instead of random ones")
    add_settings(
        parser,
        "limits: most entries of a list (jobs=4), a number's largest value or range (horizon=5..20, jobs.gpus=2), "
        "an option of the heuristic, or one of the search: evaluations, at_least, span, work, keep, start",
        "limit=value",
    )
    parser.add_argument("--budget", type=seconds, metavar="S", help="seconds (default: none, it stops by counts)")
    add_seed(parser)
    add_cluster(parser)
    add_resume(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the hunt's directory (default: hunts/TARGET)")


def run_hunt(arguments: argparse.Namespace) -> int:
    """Search for the worst instance, or a family; 4 where no instance counted, 5 where parts disagreed on some."""
    from schedgap import hunt

    workers = arguments.workers or os.cpu_count() or 1
    if not arguments.family:
        found = call(hunt, arguments, arguments.target, limits=arguments.settings, workers=workers)
        return _ended(found, found.found is not None)
    for name in ("budget", "claims", "around"):
        if getattr(arguments, name) is not None:
            raise InputError(f"hunt: --family takes no --{name}: it stops by counts, and lifts ratios")
    from schedgap import hunt_family

    lifted = call(hunt_family, arguments, arguments.target, limits=arguments.settings, workers=workers)
    return _ended(lifted, bool(lifted.families))


def _ended(found: _Hunted, any_found: bool) -> int:
    """Print it; 130 after Ctrl-C, 5 where parts disagreed, 4 where nothing was found."""
    print(found.to_text())
    if not found.finished:
        print(f"schedgap: interrupted, all of it is kept; --out {found.folder} --resume goes on", file=sys.stderr)
        return 130
    if found.defects:
        more = f" (and {len(found.defects) - 1} more)" if len(found.defects) > 1 else ""
        print(f"schedgap: error: {found.defects[0]}{more}", file=sys.stderr)
        return 5
    return 0 if any_found else 4
