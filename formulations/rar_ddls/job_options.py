"""What each job can do, in the integers that the time-indexed models are written in."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table


@dataclass(frozen=True)
class Mode:
    """One way for a ring that crosses servers to run through a slot."""

    servers: int  # the most servers it may use in this mode
    spread_class: int  # position of the class of such numbers of servers
    level: int  # the most rings that may cross any of its servers in this mode
    rate: int  # iterations per slot, at most F_j


@dataclass(frozen=True)
class JobOptions:
    """What one job can do."""

    # gpus, iterations: G_j, F_j
    gpus: int
    iterations: int
    local: tuple[int, ...]  # positions of the servers that hold the whole job; empty where its rate there is 0
    local_duration: int  # slots on any of them, whatever else runs
    # (S,) most GPUs on each server when the job crosses servers, min(O_s, G_j - 1); zeros where it cannot
    share: tuple[int, ...]
    modes: tuple[Mode, ...]  # how it can run when it crosses servers; empty where it cannot
    # fewest, max_servers: numbers of servers of such a placement
    fewest: int
    max_servers: int
    shortest: int  # slots that it takes at least when it crosses servers

    @property
    def classes(self) -> tuple[int, ...]:
        """The most servers of each class of placements with equal rates."""
        return tuple(dict.fromkeys(mode.servers for mode in self.modes))

    @property
    def counts_servers(self) -> bool:
        """Whether a placement that has room may use more servers than its class allows, or than any class does.

        A number of servers at which the rate is 0 has no class, so that nothing but a limit excludes it.
        """
        return len(self.classes) > 1 or self.max_servers < min(self.gpus, sum(share > 0 for share in self.share))

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels of contention at which some rate drops, and the highest that can occur."""
        return tuple(sorted({mode.level for mode in self.modes}))

    @property
    def duration(self) -> int | None:
        """The fewest slots in any placement, or None for a job that cannot complete."""
        known = [d for d, possible in ((self.local_duration, self.local), (self.shortest, self.modes)) if possible]
        return min(known, default=None)


def job_options(instance: RarDdlsInstance) -> list[JobOptions]:
    """The options of every job, equal rates merged.

    Guarantees: a placement and a contention that can occur have a mode of at least as many servers and at
    least the same level, with the very rate of the table; a mode whose rate a less demanding one reaches is
    left out. So "rate of the mode <= rate of the table" is all a model needs.
    """
    table = rate_table(instance)
    sizes = np.array([server.gpus for server in instance.servers], dtype=np.int64)
    phi = table.phi
    can_cross = [_can_cross(int(gpus), sizes, phi[j]) for j, gpus in enumerate(table.gpus)]
    rings = sum(can_cross)
    options = []
    for j, job in enumerate(instance.jobs):
        rates = np.minimum(phi[j], job.iterations)
        local_rate = int(rates[1, 1])
        local = tuple(np.flatnonzero(sizes >= job.gpus).tolist()) if local_rate else ()
        duration = -(-job.iterations // local_rate) if local_rate else 0
        if not can_cross[j]:
            nothing = (0,) * sizes.size
            options.append(JobOptions(job.gpus, job.iterations, local, duration, nothing, (), 0, 0, 0))
            continue
        share = np.minimum(sizes, job.gpus - 1)
        fewest = _fewest(job.gpus, share)
        most = min(job.gpus, sizes.size)
        while rates[most, 1] == 0:
            most -= 1
        highest = max(1, min(rings, int(np.sort(sizes)[-1])))
        options.append(
            JobOptions(
                gpus=job.gpus,
                iterations=job.iterations,
                local=local,
                local_duration=duration,
                share=tuple(share.tolist()),
                modes=_modes(rates, fewest, most, highest),
                fewest=fewest,
                max_servers=most,
                shortest=-(-job.iterations // int(rates[fewest, 1])),
            )
        )
    return options


def _fewest(gpus: int, share: Integers) -> int:
    return int(np.searchsorted(np.cumsum(np.sort(share)[::-1]), gpus)) + 1


def _can_cross(gpus: int, sizes: Integers, rates: Integers) -> bool:
    if gpus < 2 or sizes.size < 2:
        return False
    share = np.minimum(sizes, gpus - 1)
    if share.sum() < gpus:
        return False
    return bool(rates[_fewest(gpus, share), 1] > 0)


def _modes(rates: Integers, fewest: int, most: int, highest: int) -> tuple[Mode, ...]:
    modes = []
    spread_class = 0
    for n in range(fewest, most + 1):
        row = rates[n, 1 : highest + 1]
        if n < most and (rates[n + 1, 1 : highest + 1] == row).all():
            continue
        drops = [p for p in range(1, highest + 1) if p == highest or row[p] < row[p - 1]]
        modes += [Mode(n, spread_class, p, int(row[p - 1])) for p in drops]
        spread_class += 1
    return tuple(modes)


# How many rings can run at once: the small packing problem behind a cut of the time-indexed model.

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
