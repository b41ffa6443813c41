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
from gate.gates import modest
from gate.instances import FAMILIES, instance_of
from gate.nastier import NASTIER

SIZE = 10
"""Instances that a worker examines before it reports."""
EACH = 200
"""Proofs that every stage owes over all problems."""
STAGES = (
    "local search", "slot packing", "packing without crossing", "interval model", "linear programs",
    "dynamic program", "cp-sat", "linear program", "cuts", "integer master", "compact program", "branch and price",
    "dive", "engine", "first nodes", "one at a time", "whole tree", "policies", "job shop", "grid model", "placements",
    "programs",
)  # fmt: skip
"""Of all exact methods, but for bounds, which are compared by themselves."""
GENERATORS = {"tiny": FAMILIES, **NASTIER}
Totals = Mapping[tuple[str, str], Record]
"""By generator and problem."""


class Part(NamedTuple):
    """Some instances of a problem, one after the other."""

    problem: str
    seed: int
    generator: str
    numbers: range


def parts(problem: str, seed: int, generator: str, count: int) -> list[Part]:
    """The first `count` instances of a seed, in parts."""
    return [Part(problem, seed, generator, range(first, min(count, first + SIZE))) for first in range(0, count, SIZE)]


def examined(scratch: Path, part: Part) -> tuple[Part, Record]:
    """All answers to a part; what is wrong stands in files."""
    warnings.filterwarnings("ignore")
    modest()
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
    return part, total


def _seconds() -> float:
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(todo: Sequence[Part], workers: int, scratch: Path, *, first: bool = False) -> Totals:
    """What all parts came to, by generator and problem; with `first` up to the first fault."""
    order = random.Random(0).sample(todo, len(todo))  # so that slow problems are spread over the workers
    totals = {(part.generator, part.problem): Record() for part in todo}
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # leaving it ends the workers
        for part, record in pool.imap_unordered(partial(examined, scratch), order):
            totals[part.generator, part.problem].add(record)
            for place, text in record.faults:
                print(f"FAULT {place}: {text}", flush=True)
            if first and record.faults:
                break
    return totals


def decided(totals: Totals) -> dict[str, int]:
    """Proofs by every stage, over all problems."""
    every = sum((record.decided for record in totals.values()), Counter[str]())
    return {stage: every[stage] for stage in STAGES}


def rare(totals: Totals) -> dict[str, int]:
    """Stages that decided less often than they should, over all problems."""
    return {stage: count for stage, count in decided(totals).items() if count < EACH}


def table(totals: Totals) -> str:
    """What was compared, and which stages decided; then the sums of every generator and of every stage."""
    lines = []
    for (generator, problem), record in totals.items():
        lines.append(f"{generator + ' ' + problem:24} {_line(record)}")
        for title, counter in (("asked", record.answers), ("decided", record.decided), ("open", record.open)):
            if counter:
                parts = ", ".join(f"{name} {count}" for name, count in counter.most_common())
                lines.append(f"{'':24}   {title}: {parts}")
    for generator in dict.fromkeys(generator for generator, _ in totals):
        whole = Record()
        for (name, _), record in totals.items():
            if name == generator:
                whole.add(record)
        lines.append(f"{'all of ' + generator:24} {_line(whole)}")
    stages = ", ".join(f"{stage} {count}" for stage, count in decided(totals).items())
    return "\n".join([*lines, f"{'proofs by stage':24} {stages}"])


def _line(record: Record) -> str:
    return (
        f"{record.instances:5} instances ({record.infeasible} without a schedule, {record.skipped} too large), "
        f"{sum(record.answers.values()):6} answers, {len(record.faults)} faults, {record.seconds:.0f} s"
    )
