"""Many instances on several workers, counted by problem."""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gate.answers import Examination, Record
from gate.instances import FAMILIES, instance_of
from gate.nastier import NASTIER

PART = 10
"""Instances that a worker examines before it reports."""
EACH = 200
"""Proofs that every stage owes over all problems."""
GENERATORS = {"tiny": FAMILIES, **NASTIER}


def examined(scratch: Path, item: tuple[str, int, str, int]) -> tuple[str, Record]:
    """One part of a problem's instances; what is wrong stands in files."""
    warnings.filterwarnings("ignore")
    problem, seed, generator, first = item[0], item[1], item[2], item[3]
    total = Record()
    for number in range(first, first + PART):
        before = _seconds()
        instance = instance_of(problem, seed, number, GENERATORS[generator])
        record = Examination(instance, number, scratch / "disagreements").run()
        record.seconds = _seconds() - before
        if record.faults:
            path = scratch / f"{instance.name}.json"
            path.write_text(json.dumps(instance.to_dict(), indent=1) + "\n", encoding="utf-8")
            record.faults = [(str(path), text) for _, text in record.faults]
        total.add(record)
    return problem, total


def _seconds() -> float:
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(
    seed: int, counts: dict[str, int], generator: str, workers: int, scratch: Path, *, first: bool = False
) -> dict[str, Record]:
    """All instances of one seed, by problem; with `first` up to the first fault."""
    items = [(p, seed, generator, first) for p, count in counts.items() for first in range(0, count, PART)]
    random.Random(seed).shuffle(items)  # so that slow problems are spread over the workers
    totals = {problem: Record() for problem in counts}
    for problem, record in _answers(items, workers, scratch):
        totals[problem].add(record)
        for place, text in record.faults:
            print(f"FAULT {place}: {text}", flush=True)
        if first and record.faults:
            break
    return totals


def _answers(items: list[tuple[str, int, str, int]], workers: int, scratch: Path) -> Iterator[tuple[str, Record]]:
    work = partial(examined, scratch)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # leaving it ends the workers
        yield from pool.imap_unordered(work, items)


def table(totals: dict[str, Record]) -> str:
    """What was compared, and which stages decided."""
    lines = []
    for problem, record in totals.items():
        answers = sum(record.answers.values())
        lines.append(
            f"{problem:16} {record.instances:5} instances ({record.infeasible} without a schedule, {record.skipped} "
            f"too large), {answers:6} answers, {len(record.faults)} faults, {record.seconds:.0f} s"
        )
        for title, counter in (("asked", record.answers), ("decided", record.decided), ("open", record.open)):
            if counter:
                parts = ", ".join(f"{name} {count}" for name, count in sorted(counter.items(), key=lambda x: -x[1]))
                lines.append(f"{'':16}   {title}: {parts}")
    return "\n".join(lines)
