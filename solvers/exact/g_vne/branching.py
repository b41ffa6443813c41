"""Branching of g-vne: on whether a job runs, workers on a server, the order of hosts, links of a ring edge.

Idea: branch on what rings have in common, not on single columns, so that the pricing problem can keep the rule.
Source: Ryan and Foster (1981) for the principle; which common parts are asked first is ours. Guarantee: the children
lose no choice of rings and exclude the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.solvers.column_generation import (
    Column,
)
from schedgap.solvers.exact.g_vne.node_rules import Edge, Rules
from schedgap.solvers.exact.g_vne.subproblem import Embedding, RingSubproblem

WHOLE = 1e-6
"""A weight this near to a whole number is one."""


Part = list[tuple[Embedding, float]]
"""Rings of one job with their weights."""


def allowed(ring: Embedding, rules: Rules) -> bool:
    """Whether a ring keeps the rules; `at_least` rows are left to the master."""
    j = ring.job
    if rules.out[j]:
        return False
    if any(n > rules.cap[j, v] for v, n in workers(ring).items()):
        return False
    if not rules.no_edge and not rules.no_link:
        return True
    for place, edge in enumerate(edges(ring)):
        if edge in rules.no_edge:
            return False
        if ring.paths is not None and not rules.no_link.get(edge, frozenset()).isdisjoint(ring.paths[place]):
            return False
    return True


def workers(ring: Embedding) -> dict[int, int]:
    """Workers by server."""
    total: dict[int, int] = {}
    for v, n in zip(ring.hosts, ring.counts, strict=True):
        total[v] = total.get(v, 0) + n
    return total


def edges(ring: Embedding) -> list[Edge]:
    """Ring edges between different hosts, in order."""
    if len(ring.hosts) < 2:
        return []
    after = ring.hosts[1:] + ring.hosts[:1]
    return [(ring.job, a, b) for a, b in zip(ring.hosts, after, strict=True)]


def branch(
    subproblem: RingSubproblem, rules: Rules, columns: Sequence[Column], weights: Floats
) -> tuple[Rules, Rules] | None:
    """Two sets of rules that lose no choice of rings and both exclude these weights.

    Returns
    -------
    None where the weights are whole: every job has one ring, or none.
    """
    parts: dict[int, Part] = {}
    for place in np.flatnonzero(weights > WHOLE).tolist():
        parts.setdefault(columns[place].group, []).append((columns[place].payload, float(weights[place])))
    for choose in (_on_jobs, _on_workers, _on_edges, _on_links):
        pair = choose(subproblem, rules, parts)
        if pair is not None:
            return pair
    return None


def _away(value: float) -> float:
    """Distance to the nearest whole number."""
    return abs(value - round(value))


def _on_jobs(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    covered = {j: sum(weight for _, weight in part) for j, part in parts.items()}
    open_jobs = [j for j, value in covered.items() if _away(value) > WHOLE]
    if not open_jobs:
        return None
    j = max(open_jobs, key=lambda i: (_away(covered[i]) * max(1e-9, float(np.max(subproblem.worth[i]))), -i))
    return without(rules, j), replace(rules, must=rules.must | {j})


def without(rules: Rules, j: int) -> Rules:
    """The rules with a job left out."""
    out = rules.out.copy()
    out[j] = True
    return replace(rules, out=out, at_least=tuple(row for row in rules.at_least if row[0] != j))


def _on_workers(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    best: tuple[float, int, int, float] | None = None
    for j, part in parts.items():
        if len(part) < 2:
            continue
        mean: dict[int, float] = {}
        seen: dict[int, set[int]] = {}
        for ring, weight in part:
            for v, n in workers(ring).items():
                mean[v] = mean.get(v, 0.0) + weight * n
        for ring, _ in part:
            own = workers(ring)
            for v in mean:
                seen.setdefault(v, set()).add(own.get(v, 0))
        for v, value in mean.items():
            if len(seen[v]) > 1:
                rank = 1.0 + _away(value) if _away(value) > WHOLE else 0.5
                if best is None or rank > best[0] + 1e-9:
                    best = (rank, j, v, value)
    if best is None:
        return None
    _, j, v, value = best
    most = int(np.floor(value + WHOLE))
    cap = rules.cap.copy()
    cap[j, v] = min(cap[j, v], most)
    kept = tuple(row for row in rules.at_least if row[:2] != (j, v))
    fewer = replace(rules, cap=cap)
    more = replace(rules, must=rules.must | {j}, at_least=(*kept, (j, v, most + 1)))
    return fewer, more


def _on_edges(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    if subproblem.forest is not None:
        return None
    for j, part in parts.items():
        common = set.intersection(*(set(edges(ring)) for ring, _ in part))
        some = sorted(set.union(*(set(edges(ring)) for ring, _ in part)) - common)
        if not some:
            continue
        _, a, b = some[0]
        hosts = {v for ring, _ in part for v in ring.hosts}
        others = {(j, a, v) for v in hosts if v not in (a, b)} | {(j, v, b) for v in hosts if v not in (a, b)}
        return replace(rules, no_edge=rules.no_edge | {(j, a, b)}), replace(rules, no_edge=rules.no_edge | others)
    return None


def _on_links(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    data = subproblem.data
    for part in parts.values():
        paths: dict[Edge, set[tuple[int, ...]]] = {}
        for ring, _ in part:
            for edge, path in zip(edges(ring), ring.paths or (), strict=False):
                paths.setdefault(edge, set()).add(path)
        for edge, used in sorted(paths.items()):
            if len(used) < 2:
                continue
            first, second = sorted(used)[:2]
            step = next(i for i, (e, f) in enumerate(zip(first, second, strict=False)) if e != f)
            out = np.flatnonzero(data.tail == data.tail[first[step]])
            one = frozenset(int(e) for e in out if e != second[step])
            return _forbid(rules, edge, one), _forbid(rules, edge, frozenset({second[step]}))
    return None


def _forbid(rules: Rules, edge: Edge, links: frozenset[int]) -> Rules:
    return replace(rules, no_link={**rules.no_link, edge: rules.no_link.get(edge, frozenset()) | links})
