"""What each job can do, in the integers that the time-indexed models are written in."""

from __future__ import annotations

from dataclasses import dataclass

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
