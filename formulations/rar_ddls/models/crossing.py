"""Jobs that cross servers in the time-indexed model: modes, rings, contention."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pulp

from schedgap.formulations.common.layout import Terms
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.formulations.rar_ddls.models.rows import Frame
from schedgap.formulations.rar_ddls.ring_cut import most_jobs, ring_cut

_FINEST_SHARE = 5040


def add_crossing(frame: Frame, j: int, job: JobOptions, count_rings: bool) -> None:
    """Variables and rows of job j on several servers.

    `count_rings`: its servers must be counted, or some job's rate depends on the rings it meets; then its
    rings are variables, and ``add_links`` limits them.
    """
    variables = frame.variables
    servers = [s for s, share in enumerate(job.share) if share]
    last_start = frame.slots - job.shortest + 1
    for t in range(1, last_start + 1):
        variables.spread[j, t] = frame.variable("spread", j, t)
    chosen = [variables.spread[j, t] for t in range(1, last_start + 1)]
    for s in servers:
        variables.share[j, s] = frame.variable("share", j, s, high=job.share[s])
    frame.equal("gpus", [*((variables.share[j, s], 1.0) for s in servers), *((v, -float(job.gpus)) for v in chosen)], 0)
    if len(job.classes) > 1:
        for c in range(len(job.classes)):
            variables.kind[j, c] = frame.variable("kind", j, c)
        frame.equal(
            "class", [*((variables.kind[j, c], 1.0) for c in range(len(job.classes))), *((v, -1.0) for v in chosen)], 0
        )
    for t in range(1, frame.slots + 1):
        _slot(frame, j, job, servers, t, count_rings)
        _contiguous(frame, j, job, t, last_start)
    _progress(frame, j, job, chosen)


def _slot(frame: Frame, j: int, job: JobOptions, servers: list[int], t: int, count_rings: bool) -> None:
    """Slot t: one mode while the job runs, its GPUs held, its rings at the level of the mode."""
    variables = frame.variables
    run = [frame.variable("run", j, m, t) for m in range(len(job.modes))]
    for m, variable in enumerate(run):
        variables.run[j, m, t] = variable
        frame.active[j, t].append((variable, 1.0))
    if len(job.classes) > 1:
        for c in range(len(job.classes)):
            modes = [(run[m], 1.0) for m, mode in enumerate(job.modes) if mode.spread_class == c]
            frame.at_most("class", [*modes, (variables.kind[j, c], -1.0)], 0)
    for s in servers:
        # The only continuous variable: the integers around it leave it no choice but share or 0.
        held = frame.variable("held", j, s, t, high=job.share[s], integer=False)
        variables.held[j, s, t] = held
        frame.load[s, t].append((held, 1.0))
        frame.at_most("kept", [(held, 1.0), (variables.share[j, s], -1.0)], 0)
    frame.equal("gang", [*((variables.held[j, s, t], 1.0) for s in servers), *((v, -float(job.gpus)) for v in run)], 0)
    if count_rings:
        _rings(frame, j, job, servers, t)


def _rings(frame: Frame, j: int, job: JobOptions, servers: list[int], t: int) -> None:
    """Slot t: which servers the job crosses, each at the level of its mode."""
    variables = frame.variables
    run = [variables.run[j, m, t] for m in range(len(job.modes))]
    for s in servers:
        held = variables.held[j, s, t]
        rings: Terms = []
        for level in job.levels:
            ring = frame.variable("ring", j, s, t, level)
            variables.ring[j, s, t, level] = ring
            rings.append((ring, 1.0))
            frame.at_most("level", [(ring, 1.0), *((run[m], -1.0) for m in _modes_at(job, level))], 0)
        frame.at_most("crossed", [(held, 1.0), *((ring, -float(job.share[s])) for ring, _ in rings)], 0)
        frame.at_least("crossed", [(held, 1.0), *((ring, -1.0) for ring, _ in rings)], 0)
    if job.counts_servers:
        rings = [(variables.ring[j, s, t, level], 1.0) for s in servers for level in job.levels]
        frame.at_most("class", [*rings, *((run[m], -float(mode.servers)) for m, mode in enumerate(job.modes))], 0)
    for level in job.levels:
        rings = [(variables.ring[j, s, t, level], 1.0) for s in servers]
        frame.at_least("level", [*rings, *((run[m], -float(job.fewest)) for m in _modes_at(job, level))], 0)


def _modes_at(job: JobOptions, level: int) -> list[int]:
    return [m for m, mode in enumerate(job.modes) if mode.level == level]


def _contiguous(frame: Frame, j: int, job: JobOptions, t: int, last_start: int) -> None:
    """The job runs without a break from its start slot, and for its shortest duration at least."""
    variables = frame.variables
    now = [(variables.run[j, m, t], 1.0) for m in range(len(job.modes))]
    before = [(variables.run[j, m, t - 1], -1.0) for m in range(len(job.modes)) if t > 1]
    started = [(variables.spread[j, t], -1.0)] if t <= last_start else []
    frame.at_most("contiguous", [*now, *before, *started], 0)
    window = range(max(1, t - job.shortest + 1), min(t, last_start) + 1)
    frame.at_least("shortest", [*now, *((variables.spread[j, u], -1.0) for u in window)], 0)


def _progress(frame: Frame, j: int, job: JobOptions, chosen: list[pulp.LpVariable]) -> None:
    """Iterations counted reach F_j; also divided by each rate and rounded up, which cuts fractional points."""
    rows = set()
    for divisor in {1, *(mode.rate for mode in job.modes if mode.rate)}:
        rows.add((-(-job.iterations // divisor), *(-(-mode.rate // divisor) for mode in job.modes)))
    for needed, *rates in sorted(rows):
        made = [
            (frame.variables.run[j, m, t], float(rate))
            for m, rate in enumerate(rates)
            if rate
            for t in range(1, frame.slots + 1)
        ]
        frame.at_least("progress", [*made, *((v, -float(needed)) for v in chosen)], 0)


def add_links(frame: Frame, jobs: list[JobOptions]) -> None:
    """No server is crossed by more rings than any ring there allows.

    A ring that allows l rings has weight 1/l, and weights sum to at most 1: if count <= l for all, count of them
    weigh at most count * 1/count. That alone excludes every excess of rings that allow at most 3; for
    larger levels, a switch per server, slot and level does.
    """
    crossing = sum(bool(job.modes) for job in jobs)
    by_place: dict[tuple[int, int], list[tuple[pulp.LpVariable, int]]] = {}
    for (_, s, t, level), ring in frame.variables.ring.items():
        by_place.setdefault((s, t), []).append((ring, min(level, frame.sizes[s], crossing)))
    for (s, t), rings in sorted(by_place.items()):
        top = min(frame.sizes[s], crossing)
        levels = sorted({level for _, level in rings})
        if levels[0] >= top:
            continue
        # Rounding a weight down keeps the row valid; the switches then see to what it no longer excludes.
        whole = min(math.lcm(*levels), _FINEST_SHARE)
        weight = {level: whole // level for level in levels}
        frame.at_most("links", [(ring, float(weight[level])) for ring, level in rings], whole)
        for level in levels:
            if level < top and weight[level] + level * weight[levels[-1]] <= whole:
                few = frame.variable("few", s, t, level)
                frame.variables.few[s, t, level] = few
                quiet = [(ring, 1.0) for ring, allowed in rings if allowed <= level]
                frame.at_most("links", [*quiet, (few, -float(level))], 0)
                frame.at_most("links", [*((ring, 1.0) for ring, _ in rings), (few, float(top - level))], top)


def add_ring_cuts(frame: Frame, jobs: list[JobOptions]) -> Iterator[tuple[dict[int, Terms], int]]:
    """How many rings of at least some size run at once, when some of them allow few others (``ring_cut``).

    Yields the terms by slot, and what they sum to at most.
    """
    crossing = [j for j in range(len(jobs)) if (j, 0, 1) in frame.variables.run]
    for least in sorted({jobs[j].gpus for j in crossing}):
        larger = [j for j in crossing if jobs[j].gpus >= least]
        gangs = [jobs[j].gpus for j in larger]
        most = most_jobs(gangs, sum(frame.sizes))
        for level in sorted({level for j in larger for level in jobs[j].levels[:-1]}):
            factor = ring_cut(gangs, frame.sizes, level)
            if factor == 1:
                continue
            quiet, other = float(factor.numerator), float(factor.denominator)
            rings: dict[int, Terms] = {t: [] for t in range(1, frame.slots + 1)}
            for j in larger:
                for m, mode in enumerate(jobs[j].modes):
                    weight = quiet if mode.level <= level else other
                    for t, terms in rings.items():
                        terms.append((frame.variables.run[j, m, t], weight))
            yield rings, most * factor.denominator
