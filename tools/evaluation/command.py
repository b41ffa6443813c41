"""``schedgap evaluate`` and ``new``: a scheduler of your own."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.cli.arguments import (
    add_cluster,
    add_memory_limit,
    add_seed,
    add_settings,
    add_time_limit,
    call,
    count,
    seconds,
    to_json,
)
from schedgap.cli.command import Command
from schedgap.interrupt import INTERRUPTED

MOST_SEED = 2**53 - 1
"""Seeds that cards draw are larger than those that engines take; a card of each can be repeated."""


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``evaluate``."""
    parser.add_argument("scheduler", metavar="SCHEDULER", help="file.py:function or package.module:function")
    parser.add_argument("--problem", metavar="P", help="the problem whose instances it takes (default: that of --on)")
    parser.add_argument(
        "--on", nargs="+", default=[], metavar="FILE", help="instances of your own, instead of families"
    )
    parser.add_argument(
        "--online", action="store_true", help="SCHEDULER is a class with decide(state), told of jobs when they arrive"
    )
    parser.add_argument(
        "--estimates",
        choices=("exact", "user", "none"),
        help="what an online policy is told of lengths: the truth, what a user would ask for, nothing (default)",
    )
    parser.add_argument(
        "--frozen", action="store_true", help="a quick score on stored instances, of which nothing is solved; no card"
    )
    parser.add_argument("--held-out", action="store_true", help="draw the families now, too")
    add_settings(
        parser, "a setting of generators, such as ample=true: the presets that have it are drawn with it", "key=value"
    )
    parser.add_argument("--claims", type=Path, metavar="FILE.py", help="claims of your own: a file with CLAIMS")
    parser.add_argument("--budget", type=seconds, metavar="S", help="seconds of its hunt (default: it stops by counts)")
    parser.add_argument("--instances", type=count, metavar="N", help="instances of each family (default 5)")
    add_time_limit(parser, "seconds for an instance (default 10)")
    add_memory_limit(parser, "of its process (default 4)", 4.0)
    add_seed(parser, None, "drawn anew", MOST_SEED)
    add_cluster(parser, "processes that look for optima (default: all cores)")
    parser.add_argument("--container", action="store_true", help="run the scheduler in bubblewrap, too")
    parser.add_argument(
        "--out", type=Path, default=Path("evaluation"), metavar="DIR", help="card.json, card.html (default: evaluation)"
    )
    parser.add_argument("--json", action="store_true", help="print the card as one JSON object")


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Judge a scheduler; 1 where it fails on an instance, 4 where it fails on all."""
    from schedgap import evaluate

    arguments.problem = arguments.problem or _problem_of(arguments.on)
    if arguments.frozen:
        return _run_frozen(arguments)
    card = call(evaluate, arguments, arguments.scheduler, arguments.problem)
    print(to_json(card.to_dict()) if arguments.json else card.to_text())
    if card.folder is None:
        return INTERRUPTED
    return _status(card.feasible, len(card.trials))


def _problem_of(files: list[str]) -> str:
    """The problem of the first instance; another one among the rest is refused where they are read.

    Raises InputError: there is no file.
    """
    from schedgap import InputError
    from schedgap.catalogue.registry import load_instance

    if not files:
        raise InputError("--problem: is required without --on (problems: schedgap list)")
    return load_instance(files[0])[0].id


def _run_frozen(arguments: argparse.Namespace) -> int:
    """A development score; 1 where it fails on a stored instance, 4 where it fails on all."""
    from schedgap import InputError, evaluate_frozen

    drawn = ("on", "held_out", "claims", "budget", "instances", "seed", "workers", "cluster", "settings")
    given = next(filter(vars(arguments).get, drawn), "").replace("_", "-").replace("settings", "set")
    if given:
        raise InputError(f"--{given}: not with --frozen, whose instances are stored with what is known of them")
    found = call(evaluate_frozen, arguments, arguments.scheduler, arguments.problem)
    print(to_json(found.to_dict()) if arguments.json else found.to_text())
    return _status(found.feasible, len(found.attempts))


def _status(feasible: int, instances: int) -> int:
    return 0 if feasible == instances else 1 if feasible else 4


def add_new(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``new``."""
    parser.add_argument("kind", choices=("heuristic", "problem", "evaluator"), help="what is written")
    parser.add_argument(
        "name", metavar="NAME", help="the package's: small letters, digits and _; an evaluator's: openevolve or plain"
    )
    parser.add_argument("--problem", metavar="P", help="problem of an evaluator, whose schedulers are written")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where it goes; of an evaluator the new folder itself")


def run_new(arguments: argparse.Namespace) -> int:
    """Write a package that passes its own tests, and print its files."""
    from schedgap import new_package

    for path in new_package(arguments.kind, arguments.name, arguments.out, problem=arguments.problem):
        print(path)
    return 0


EVALUATE = Command(
    "a report card of your own scheduler, in a process of its own",
    "mine.py:f --problem hadar",
    add_evaluate,
    run_evaluate,
)
NEW = Command(
    "a package of your own, heuristic or problem, that passes its own tests", "problem knap", add_new, run_new
)
