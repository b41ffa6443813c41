"""How many rings can run at once: the small packing problem behind a cut of the time-indexed model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

_NODES = 20_000


_LARGEST_CLUSTER = 12


Load = tuple[int, int, bool]  # GPUs free, rings that cross, whether one of them allows no more than `level`


def most_jobs(gangs: Sequence[int], gpus: int) -> int:
    """The most jobs of these sizes whose GPUs sum to at most `gpus`."""
    return sum(total <= gpus for total in itertools.accumulate(sorted(gangs)))


def ring_cut(gangs: Sequence[int], sizes: Sequence[int], level: int) -> Fraction:
    """How many ordinary rings a ring excludes that meets at most `level` rings on each server it crosses.

    With N_0 the most of these rings that run at once, q "quiet" ones (at most `level` rings on any server they
    cross) and r others can only run together when q * factor + r <= N_0.

    Parameters
    ----------
    gangs : (K,) GPUs of the rings, each >= 2
    sizes : (S,) GPUs of the servers
    level : contention that the quiet ones meet at most, >= 1

    Returns
    -------
    The factor, >= 1: min over q of (N_0 - N(q) + q) / q, where N(q) is the most that run at once when q of them
    are quiet. N(q) is found by exhaustive search over placements of the N smallest gangs (a gang can be replaced
    by a smaller one, so these are the best case), within a fixed number of nodes; where that does not suffice N(q)
    is overestimated, which keeps the cut valid.
    """
    ordered = sorted(gangs)
    most = most_jobs(ordered, sum(sizes))
    if most == 0 or len(sizes) > _LARGEST_CLUSTER:
        return Fraction(1)
    factor = Fraction(most)
    for quiet in range(1, most + 1):
        together = most
        while together >= quiet and not _fit(ordered[:together], sizes, quiet, level):
            together -= 1
        if together < quiet:
            break
        factor = min(factor, Fraction(most - together + quiet, quiet))
    return factor


def _fit(gangs: Sequence[int], sizes: Sequence[int], quiet: int, level: int) -> bool:
    """Whether these rings can run at once with some `quiet` of them quiet (True where the search gives up)."""
    for chosen in sorted(set(itertools.combinations(gangs, quiet))):
        rest = list(gangs)
        for size in chosen:
            rest.remove(size)
        rings = [(size, True) for size in reversed(chosen)] + [(size, False) for size in sorted(rest, reverse=True)]
        if _Placing(rings, level).possible(tuple((size, 0, False) for size in sizes)):
            return True
    return False


class _Placing:
    """Depth first over the rings and, for each, over the servers; failed states are remembered."""

    def __init__(self, rings: list[tuple[int, bool]], level: int) -> None:
        self.rings = rings
        self.level = level
        self.failed: set[tuple[int, tuple[Load, ...]]] = set()
        self.nodes = 0

    def possible(self, servers: tuple[Load, ...], position: int = 0) -> bool:
        if position == len(self.rings):
            return True
        state = (position, tuple(sorted(servers)))
        if state in self.failed:
            return False
        gang, _ = self.rings[position]
        if self._put(servers, position, 0, gang):
            return True
        self.failed.add(state)
        return False

    def _put(self, servers: tuple[Load, ...], position: int, at: int, left: int) -> bool:
        """Whether the ring's `left` GPUs fit servers at, at + 1, ..., and all later rings then fit too."""
        self.nodes += 1
        if self.nodes > _NODES or left == 0:
            return self.nodes > _NODES or self.possible(servers, position + 1)
        if at == len(servers) or sum(load[0] for load in servers[at:]) < left:
            return False
        gang, quiet = self.rings[position]
        free, crossing, has_quiet = servers[at]
        if not ((quiet or has_quiet) and crossing >= self.level):
            for share in range(min(left, free, gang - 1), 0, -1):
                load = (free - share, crossing + 1, quiet or has_quiet)
                if self._put((*servers[:at], load, *servers[at + 1 :]), position, at + 1, left - share):
                    return True
        return self._put(servers, position, at + 1, left)
