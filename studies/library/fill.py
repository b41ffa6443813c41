"""Fill the library, or make it better: ``python -m studies.library.fill [PROBLEM ...]``.

Each instance is solved by every heuristic, by the strongest exact method from the best of them, by ``lns`` where that
leaves it open, and then certified. What is there is kept, and replaced only by what is better; ``--again`` tries those
that are there once more, ``--effort`` for longer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from schedgap.benchmarks.proving import compressed, exact_value
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.certificates.make import Effort, check, prove
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Deadline, Proof, SolveOptions, Status
from schedgap.tools.library.collection import SHIPPED, BestKnown, Entry, entries
from schedgap.tools.library.improve import Offer, credit, judge
from studies.library.sources import Source, sources

BY = "schedgap"
SECONDS = 8.0
"""Seconds of every exact method, search and proof, at an effort of 1."""
PROVING = Effort(leaves=1_000, size=8_000)
LARGEST_CERTIFICATE = 60_000
"""Bytes, compressed."""
SLOWEST_CHECK = 0.3
"""Processor seconds: all certificates of the collection are checked in every run of the tests."""
SEARCHES = ("lns", "placement")
FURTHER = ("highs", "cpsat")
"""Engines of another make that are asked for the same optimum."""
SMALL = 3_000
"""Characters of an instance that these are asked about."""


def fill(
    problems: Sequence[str] = (),
    *,
    folder: Path = SHIPPED,
    effort: float = 1.0,
    again: bool = False,
    only: str = "",
    logs: Path | None = None,
    progress: TextIO | None = None,
) -> int:
    """Solve the instances of the declaration and write their records.

    Parameters
    ----------
    problems : ids; all where empty
    folder : folder of the library
    effort : factor on the seconds of each solve
    again : also those that have a record
    only : ids that contain this
    logs : the folder of public logs, whose instances are left as they are without it

    Returns
    -------
    int
        How many records were written or got better.
    """
    count = 0
    there = {entry.id: entry for entry in entries(folder=folder)}
    hashes = {entry.known.hash: entry.id for entry in there.values()}
    for problem in problems or all_problems():
        for source in sorted(sources(problem, logs), key=lambda source: len(source.instance.to_json(None))):
            name = hashes.setdefault(source.instance.content_hash(), source.id)
            if only not in source.id or name != source.id or (source.id in there and not again):
                continue
            began = time.process_time()
            before = there.get(source.id) or _bare(source)
            after = before
            for offer in _offers(after, effort):
                found = judge(after, offer)
                if found.improved:
                    after = found.write(folder)
            count += after is not before
            if progress is not None:
                known = after.known
                told = f"{known.status}, {known.objective}, bound {known.bound}, {known.proof}"
                print(f"{source.id}: {told}; {time.process_time() - began:.1f} s", file=progress, flush=True)
    return count


def _bare(source: Source) -> Entry:
    known = BestKnown(id=source.id, kind=source.kind, made=dict(source.made), hash=source.instance.content_hash())
    if source.terms is not None:
        known = known.model_copy(update=dict(zip(("license", "cite"), source.terms, strict=True)))
    return Entry(known, source.instance.to_dict())


def _offers(entry: Entry, effort: float) -> Iterator[Offer]:
    """What our own methods have of an instance, the quick ones first."""
    problem, instance = entry.problem, entry.instance
    best = None if entry.known.solution is None else dict(entry.known.solution)
    value = None if entry.known.objective is None else problem.sense * entry.known.objective
    closed, certified = entry.known.status == "optimal", entry.known.proof is Proof.CERTIFIED
    makers: set[str] = set()
    if closed and entry.known.proven is not None and entry.known.proven.method not in (None, "bound", "certify"):
        makers.add(entry.known.proven.engine or entry.known.proven.method or "")
    for method in [*_methods(problem), None, *_further(entry)]:
        if method is None:  # what is small is certified before another engine is asked
            made = None if best is None or (closed and certified) else _certificate(entry, best, closed, effort)
            if made is not None:
                certified = made[0]
                yield Offer(credit(BY, method="certify"), None, json.dumps(made[1]))
            continue
        if (certified and closed) or closed != (method.id in FURTHER):
            continue
        limits = SolveOptions(Deadline.after(SECONDS * effort), threads=1, start=best)
        try:
            result = run_method(problem, instance, method, limits)
        except InputError as error:  # the method is for other instances, or refuses this one
            print(f"{entry.id}: {method.id}: {error}", file=sys.stderr)
            continue
        used = {} if method in problem.heuristics() else {"time_limit": SECONDS * effort}
        by = {"seed": 0, "settings": used, "engine": result.engine, "engine_version": result.engine_version}
        if result.solution is not None and result.objective is not None:
            if value is None or problem.sense * result.objective < value:
                best, value = result.solution, problem.sense * result.objective
            yield Offer(credit(BY, method=method.id, **by), result.solution)
        if result.bound is not None and best is not None:
            ours = not method.proves or result.info.get("bound_from") == "certified"
            level = Proof.CLAIMED
            if result.status is Status.OPTIMAL and not ours:
                makers.add(result.engine or method.id)
                closed, level = True, Proof.AGREED if len(makers) > 1 or result.proof is Proof.AGREED else Proof.CLAIMED
            closed = closed or result.status is Status.OPTIMAL
            yield Offer(
                credit(BY, **({"method": "bound"} if ours else {"method": method.id, **by})),
                None,
                None,
                result.bound,
                level,
            )


def _methods(problem: Problem) -> list[Method]:
    """Heuristics of the model, the default exact method, and searches where that does not end or apply."""
    found = [method for method in problem.heuristics() if not method.outside_model]
    found.append(problem.default_method())
    return found + [method for method in problem.methods if method.id in SEARCHES and method not in found]


def _further(entry: Entry) -> list[Method]:
    """Engines of another make, where the instance is small."""
    if len(json.dumps(entry.data)) > SMALL:
        return []
    usual = entry.problem.default_method()
    return [method for method in entry.problem.methods if method.id in FURTHER and method is not usual]


def _certificate(entry: Entry, solution: dict[str, Json], closed: bool, effort: float) -> tuple[bool, Json] | None:
    """A certificate that is small and quickly checked, and whether it is of the optimum or of a bound only."""
    instance = entry.instance
    value = exact_value(entry.problem, instance, solution)
    for proves in ("optimum", "bound") if closed else ("bound",):
        ends = Deadline.after(SECONDS * effort)
        budget = Budget(ends, grace=1.0)
        try:
            with budget:
                if proves == "bound":
                    found = prove_bound(instance)
                else:
                    found = prove(instance, value, solution, Effort(ends, PROVING.leaves, PROVING.size))
        except Unproven:
            continue
        except OutOfBudgetError:
            budget.end()
            continue
        began = time.process_time()
        check(instance, found)
        if len(compressed(found)) <= LARGEST_CERTIFICATE and time.process_time() - began <= SLOWEST_CHECK:
            return proves == "optimum", found
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m studies.library.fill", description=__doc__)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="default: every problem")
    parser.add_argument("--effort", type=float, default=1.0, metavar="F", help="factor on the limits of each solve")
    parser.add_argument("--again", action="store_true", help="also instances that have a record")
    parser.add_argument("--only", default="", metavar="TEXT", help="ids that contain this")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="public logs, a folder for each repository")
    parser.add_argument("--library", type=Path, default=SHIPPED, metavar="DIR", help="default: the shipped collection")
    given = parser.parse_args(arguments)
    try:
        fill(
            given.problems,
            folder=given.library,
            effort=given.effort,
            again=given.again,
            only=given.only,
            logs=given.logs,
            progress=sys.stderr,
        )
    except InputError as error:
        print(f"fill: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
