"""Many instances on several workers, counted by problem."""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gate.answers import Examination, Record
from gate.instances import FAMILIES, instance_of
from gate.nastier import NASTIER

SIZE = 10
"""Instances that a worker examines before it reports."""
EACH = 200
"""Proofs that every stage owes over all problems."""
STAGES = (
    "local search", "slot packing", "packing without crossing", "interval model", "linear programs",
    "dynamic program", "cp-sat", "linear program", "cuts", "integer master", "compact program", "branch and price",
    "engine", "first nodes", "whole tree", "policies", "job shop", "grid model",
)  # fmt: skip
"""Of all exact methods, but for bounds, which are compared by themselves."""
GENERATORS = {"tiny": FAMILIES, **NASTIER}


class Part(NamedTuple):
    """Some instances of a problem, one after the other."""

    problem: str
    seed: int
    generator: str
    numbers: range


def parts(problem: str, seed: int, generator: str, count: int) -> list[Part]:
    """The first `count` instances of a seed, in parts."""
    return [Part(problem, seed, generator, range(first, min(count, first + SIZE))) for first in range(0, count, SIZE)]


def examined(scratch: Path, part: Part) -> tuple[str, Record]:
    """All answers to a part; what is wrong stands in files."""
    warnings.filterwarnings("ignore")
    total = Record()
    for number in part.numbers:
        before = _seconds()
        instance = instance_of(part.problem, part.seed, number, GENERATORS[part.generator])
        record = Examination(instance, number, scratch / "disagreements").run()
        record.seconds = _seconds() - before
        if record.faults:
            path = scratch / f"{instance.name}.json"
            path.write_text(json.dumps(instance.to_dict(), indent=1) + "\n", encoding="utf-8")
            record.faults = [(str(path), text) for _, text in record.faults]
        total.add(record)
    return part.problem, total


def _seconds() -> float:
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(todo: Sequence[Part], workers: int, scratch: Path, *, first: bool = False) -> dict[str, Record]:
    """What all parts came to, by problem; with `first` up to the first fault."""
    order = random.Random(0).sample(todo, len(todo))  # so that slow problems are spread over the workers
    totals = {part.problem: Record() for part in todo}
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # leaving it ends the workers
        for problem, record in pool.imap_unordered(partial(examined, scratch), order):
            totals[problem].add(record)
            for place, text in record.faults:
                print(f"FAULT {place}: {text}", flush=True)
            if first and record.faults:
                break
    return totals


def rare(totals: Mapping[str, Record]) -> dict[str, int]:
    """Stages that decided less often than they should, over all problems."""
    decided = sum((record.decided for record in totals.values()), Counter[str]())
    return {stage: decided[stage] for stage in STAGES if decided[stage] < EACH}


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
