"""The gate at the shell: ``PYTHONPATH=tests python -m gate``; exit 1 where any answer is wrong, with the instances."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from pathlib import Path

from gate.attacker import attack
from gate.commands import questions
from gate.commands import run as run_commands
from gate.gates import GATES
from gate.sweep import EACH, GENERATORS, Part, parts, rare, run, table, too_open
from support.small_scope import FORMS, count_false

FIXED = 1
MOST_SKIPPED = 0.02
"""Of all instances: those that an exhaustive search gives up."""
ATTACKED, STEPS = 30, 400
"""Instances of each form of certificates, and steps of the attacker on each, in a whole run."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gate", description=__doc__)
    parser.add_argument(
        "--seed", type=int, help="only this one; half of each of a fixed and a fresh one where not given"
    )
    parser.add_argument("--number", type=int, help="only this instance of the seed")
    parser.add_argument("--problem", choices=GATES, action="append", help="only this one; may be repeated")
    parser.add_argument("--share", type=float, default=1.0, help="of the instances of a whole run")
    parser.add_argument(
        "--generator", choices=GENERATORS, action="append", help="may be repeated; tiny where not given"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a folder for what is found; a temporary one where not given")
    parser.add_argument("--first", action="store_true", help="stop at the first fault")
    parser.add_argument("--commands", type=int, help="only the command line, on so many seeds of each preset")
    parser.add_argument(
        "--certificates", type=int, metavar="N", help="only the attacker of certificates, N instances of each form"
    )
    parser.add_argument("--large", action="store_true", help="with --certificates, the larger small-scope classes, too")
    asked = parser.parse_args()
    seeds = [FIXED, random.SystemRandom().randrange(10**9)] if asked.seed is None else [asked.seed]
    if asked.certificates is not None:
        false = sum(_certificates(seed, asked.certificates, asked.problem) for seed in seeds)
        return int(false + (_classes(asked.problem) if asked.large else 0) > 0)
    if asked.commands is not None:
        return int(_commands(seeds[-1], asked.commands, asked.problem, asked.workers) > 0)
    scratch = asked.out or Path(tempfile.mkdtemp(prefix="gate-"))
    scratch.mkdir(parents=True, exist_ok=True)
    generators, problems = asked.generator or ["tiny"], asked.problem or list(GATES)
    todo: list[Part] = []
    for generator, problem, seed in itertools.product(generators, problems, seeds):
        count = max(1, round(asked.share * GATES[problem].count / len(seeds)))
        one = asked.number is not None and [Part(problem, seed, generator, range(asked.number, asked.number + 1))]
        todo += one or parts(problem, seed, generator, count)
    print(f"gate: seeds {seeds}, generators {generators}, instances of faults go to {scratch}", flush=True)
    totals = run(todo, asked.workers, scratch, first=asked.first)
    print(table(totals))
    faults = sum(len(record.faults) for record in totals.values())
    whole = asked.share >= 1 and asked.number is None
    few, many = (rare(totals), too_open(totals)) if whole else ({}, {})
    for (problem, stage), count in few.items():
        print(f"RARE {problem}, {stage}: decided {count} times, has to {EACH} times")
    for (problem, kind), share in many.items():
        most = getattr(GATES[problem].most_open, kind)
        print(f"OPEN {problem}: {share:.2%} of the {kind} are not there, {most:.2%} at most may be missing")
    instances, skipped = (sum(getattr(r, name) for r in totals.values()) for name in ("instances", "skipped"))
    lost = skipped > MOST_SKIPPED * (instances + skipped)
    if lost:
        print(f"TOO LARGE for the exhaustive searches: {skipped} of {instances + skipped} instances")
    print(f"gate: {instances} instances, {faults} faults; seeds {seeds}")
    if whole and asked.problem is None:
        faults += _commands(seeds[-1], 1, None, asked.workers)
        faults += sum(_certificates(seed, ATTACKED // len(seeds), None) for seed in seeds)
    return int(faults > 0 or bool(few) or bool(many) or lost)


def _certificates(seed: int, instances: int, problems: list[str] | None) -> int:
    """False bounds that the attacker has accepted."""
    print(f"gate: certificates attacked, seed {seed}: instances, leaves, accepted, tight, false", flush=True)
    false = 0
    for form in FORMS:
        if problems is None or form.partition(" ")[0] in problems:
            found = attack(form, seed, instances, STEPS)
            print(found.line(form), *found.false[:1], flush=True)
            false += len(found.false)
    return false


def _classes(problems: list[str] | None) -> int:
    """False bounds of the larger classes, in which every certificate is put to every instance."""
    print("gate: larger classes: instances, pairs, refused, tight, false", flush=True)
    false = 0
    for form, cases in FORMS.items():
        if problems is None or form.partition(" ")[0] in problems:
            found = count_false(cases(large=True))
            told = f"{found.instances:>5} {found.pairs:>8} {found.refused:>8} {found.tight:>7} {len(found.false):>3}"
            print(f"{form:26} {told} {found.seconds:>7.1f} s", *found.false[:1], flush=True)
            false += len(found.false)
    return false


def _commands(first: int, count: int, problems: list[str] | None, workers: int) -> int:
    """Faults of every method from the command line, on presets of `count` seeds from `first` on."""
    asked = questions(range(first, first + count), problems, pages=problems is None)
    faults = run_commands(asked, workers)
    print(f"gate: {len(asked)} commands from seed {first} on, {faults} faults", flush=True)
    return faults


if __name__ == "__main__":
    sys.exit(main())
