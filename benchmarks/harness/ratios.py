"""How heuristics compare over instances: means over what all of them solved, and shares in which failures count.

The shares are points of a performance profile (E. D. Dolan, J. J. More, *Benchmarking optimization software with
performance profiles*, Mathematical Programming 91, 2002): of all instances, the part on which a method is within a
factor of the best. A method that finds nothing, or earns nothing of something, is within no factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schedgap.benchmarks.harness.analysis import Entry, Solved
from schedgap.catalogue.method import Kind
from schedgap.formulations.common.numbers import RELATIVE_TOLERANCE, ratio

Key = tuple[str, str]
WITHIN = (1.0, 1.1, 1.5, 2.0)
"""Factors whose shares a table shows."""


@dataclass(frozen=True)
class Standing:
    """One heuristic over the instances of a block.

    Attributes
    ----------
    label : the heuristic with its settings
    ratios : of what it solved, by instance (group and hash), to what the block's ratios are to; also infinite ones
    to_best : per instance, the ratio to the best schedule that any method found; infinite where it found none
    """

    label: str
    ratios: dict[Key, float]
    to_best: tuple[float, ...]

    @property
    def infinite(self) -> int:
        """On how many instances it earned nothing of something."""
        return sum(1 for value in self.ratios.values() if math.isinf(value))

    @property
    def worst(self) -> float | None:
        """The largest ratio."""
        return max(self.ratios.values(), default=None)

    def mean(self, common: frozenset[Key]) -> float | None:
        """The mean ratio over some instances, all of them solved; None where there are none."""
        return math.fsum(self.ratios[one] for one in common) / len(common) if common and self.ratios else None

    def share(self, factor: float) -> float:
        """The part of all instances on which it is within `factor` of the best."""
        return sum(1 for value in self.to_best if value <= factor * (1 + RELATIVE_TOLERANCE)) / len(self.to_best)


@dataclass(frozen=True)
class Block:
    """Heuristics that ran on the same instances, with ratios to the same thing.

    Attributes
    ----------
    to : "optimum", "bound", "own bound" for a method outside the model whose run brings one, or "" for none
    solved : the instances
    standings : one per heuristic
    """

    to: str
    solved: tuple[Solved, ...]
    standings: tuple[Standing, ...]

    @property
    def common(self) -> frozenset[Key]:
        """Instances on which every heuristic that solved any has a finite ratio."""
        every = [one.ratios for one in self.standings if one.ratios]
        return frozenset(
            key(one) for one in self.solved if every and all(math.isfinite(r.get(key(one), math.inf)) for r in every)
        )


def key(one: Solved) -> Key:
    """What tells an instance of a run: its group and its hash."""
    return one.batch, one.hash


def solved_by_all(solved: Sequence[Solved]) -> list[Solved]:
    """The instances on which every heuristic that solved any has a schedule."""
    every = [(one, [e for e in one.entries if e.method.kind is Kind.HEURISTIC]) for one in solved]
    able = {e.label for _, entries in every for e in entries if e.row.objective is not None}
    return [one for one, entries in every if all(e.row.objective is not None for e in entries if e.label in able)]


def blocks(solved: Iterable[Solved]) -> list[Block]:
    """Everything that can be compared, in the order of first appearance; instances proven infeasible are left out."""
    groups: dict[tuple[tuple[str, ...], str], list[tuple[Solved, list[Entry]]]] = {}
    for one in solved:
        if one.agreement.infeasible:
            continue
        inside = [e for e in one.entries if e.method.kind is Kind.HEURISTIC and not e.outside]
        own = [e for e in one.entries if e.method.kind is Kind.HEURISTIC and e.outside and _own(e) is not None]
        to = "optimum" if one.agreement.optimum is not None else "bound" if one.agreement.bound is not None else ""
        for entries, what in ((inside, to), (own, "own bound")):
            if entries:
                groups.setdefault((tuple(e.label for e in entries), what), []).append((one, entries))
    order = ("optimum", "bound", "", "own bound")
    found = [_block(to, pairs) for (_, to), pairs in groups.items()]
    return sorted(found, key=lambda block: order.index(block.to))


def _own(entry: Entry) -> float | None:
    value = (entry.row.info or {}).get("own_ratio")
    return float(value) if isinstance(value, int | float) else None


def _block(to: str, pairs: Sequence[tuple[Solved, list[Entry]]]) -> Block:
    standings = []
    for position, entry in enumerate(pairs[0][1]):
        ratios, to_best = {}, []
        for one, entries in pairs:
            own = entries[position]
            value = _own(own) if to == "own bound" else own.ratio
            if value is not None:
                ratios[key(one)] = value
            to_best.append(value if to == "own bound" and value is not None else ratio_to_best(one, own))
        standings.append(Standing(entry.label, ratios, tuple(to_best)))
    return Block(to, tuple(one for one, _ in pairs), tuple(standings))


def ratio_to_best(one: Solved, entry: Entry) -> float:
    """The ratio to the optimum where it is proven, else to the best objective that any method found."""
    sense = one.problem.sense
    best = one.agreement.optimum
    if best is None:
        known = [e.row.objective for e in one.entries if e.row.objective is not None and not e.outside]
        best = min(known, key=lambda value: sense * value, default=None)
    found = ratio(entry.row.objective, best, sense)
    return math.inf if found is None else found
