"""Many instances on several workers, counted by problem."""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gate.answers import Examination, Record
from gate.gates import GATES, modest
from gate.instances import FAMILIES, instance_of
from gate.nastier import NASTIER
from gate.pages_links import PAGES

SIZE = 10
"""Instances that a worker examines before it reports."""
EACH = 200
"""Proofs that every stage of a problem owes."""
GENERATORS = {"tiny": FAMILIES, **NASTIER, **PAGES}
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
        record = Examination(instance, [number], scratch / "disagreements").run()
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


def by_generator(totals: Totals) -> dict[str, Record]:
    """All of each generator, whatever the problem."""
    return _summed((generator, record) for (generator, _), record in totals.items())


def by_problem(totals: Totals) -> dict[str, Record]:
    """All of each problem, whatever the generator."""
    return _summed((problem, record) for (_, problem), record in totals.items())


def _summed(named: Iterable[tuple[str, Record]]) -> dict[str, Record]:
    sums: dict[str, Record] = {}
    for name, record in named:
        sums.setdefault(name, Record()).add(record)
    return sums


def decided(totals: Totals) -> dict[tuple[str, str], int]:
    """Proofs by every stage that owes some, by problem and stage."""
    return {(p, stage): record.decided[stage] for p, record in by_problem(totals).items() for stage in GATES[p].owes}


def rare(totals: Totals) -> dict[tuple[str, str], int]:
    """Stages that decided less often on their problem than they should."""
    return {key: count for key, count in decided(totals).items() if count < EACH}


def too_open(totals: Totals) -> dict[tuple[str, str], float]:
    """Of which problem too many proofs or certificates are not there, and their share."""
    shares = {}
    for problem, record in by_problem(totals).items():
        for kind, most in GATES[problem].most_open._asdict().items():
            share = record.let_off[kind] / max(1, record.owed[kind])
            if share > most:
                shares[problem, kind] = share
    return shares


def table(totals: Totals) -> str:
    """What was compared, and which stages decided; then the sums of every generator."""
    lines = []
    for (generator, problem), record in totals.items():
        lines.append(f"{generator + ' ' + problem:24} {_line(record)}")
        owed = (f"{record.let_off[kind]} of {count} {kind}" for kind, count in record.owed.items())
        lines.append(f"{'':24}   not there: {', '.join(owed)}")
        for title, counter in (("asked", record.answers), ("decided", record.decided), ("open", record.open)):
            if counter:
                parts = ", ".join(f"{name} {count}" for name, count in counter.most_common())
                lines.append(f"{'':24}   {title}: {parts}")
    for generator, record in by_generator(totals).items():
        lines.append(f"{'all of ' + generator:24} {_line(record)}")
    return "\n".join(lines)


def _line(record: Record) -> str:
    return (
        f"{record.instances:5} instances ({record.infeasible} without a schedule, {record.skipped} too large), "
        f"{sum(record.answers.values()):6} answers, {len(record.faults)} faults, {record.seconds:.0f} s"
    )
