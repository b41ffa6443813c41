"""``greedy``: rings by what they are worth, each where a cycle can be closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.ring_network import MOST_STARTS, Need, Ring, RingNetwork
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.result import NO_DEADLINE, Deadline

_LITTLE = 1e-12


@dataclass(frozen=True)
class _Candidate:
    """A ring size of a job, and what it is worth."""

    job: int
    size: int
    utility: float
    share: float


def greedy(
    instance: GVneInstance,
    *,
    seed: int = 0,
    order: Annotated[
        Literal["best", "density", "utility"],
        Field(description="rings by utility per dominant share, by utility, or the better of both"),
    ] = "best",
    starts: Annotated[
        int, Field(ge=1, le=100000, description="servers from which a ring is tried to be closed")
    ] = MOST_STARTS,
    deadline: Deadline = NO_DEADLINE,
) -> HeuristicRun:
    """Place rings greedily, then let every job take a more valuable ring where that has become possible.

    Candidates are all pairs of a job and a ring size with positive utility. They are taken in the chosen order; a
    job gets the first ring that :meth:`RingNetwork.place` finds room for. A pass over the jobs follows, in input
    order, in which each may exchange its ring for its most valuable one that fits. Returns ``info``: ``order``, the one
    whose result it is, and ``placed``, how many jobs; ``stopped`` where the deadline came first.

    Parameters
    ----------
    order : ``density``: utility per dominant share of the cluster (k workers' largest share of a resource);
        ``utility``; ``best``: both, and the better result
    starts : see :meth:`RingNetwork.place`
    deadline : no further ring is tried after it; what is placed by then counts

    Notes
    -----
    No guarantee. O(C log C + C * starts * hosts * links) for C candidates. Paper 004, section VI, places the
    workers of its baselines "where a cycle can be attained"; the search is ours.
    """
    network = RingNetwork(instance)
    needs = [network.need(job.demand, job.bandwidth) for job in instance.jobs]
    most = [int(network.room(need).sum()) for need in needs]  # no ring is longer, wherever it is
    totals = network.capacity.sum(axis=0)
    candidates: list[_Candidate] = []
    for j, job in enumerate(instance.jobs):
        asked = needs[j].demand > 0
        share = float((needs[j].demand[asked] / np.maximum(totals[asked], _LITTLE)).max()) if asked.any() else 0.0
        candidates.extend(
            _Candidate(j, k + 1, worth, share * (k + 1)) for k, worth in enumerate(job.utility[: most[j]]) if worth > 0
        )
    best: tuple[float, str, dict[int, Ring]] | None = None
    for name in ("density", "utility") if order == "best" else (order,):
        if best is not None and deadline.passed:
            break
        network.reset()
        placed = _fill(instance, network, needs, most, _sorted(candidates, name), starts, deadline)
        total = sum(instance.jobs[j].utility[len(ring.workers) - 1] for j, ring in placed.items())
        if best is None or total > best[0] + _LITTLE:
            best = (total, name, placed)
    assert best is not None
    rings: dict[str, Any] = {instance.jobs[j].id: network.solution_of(ring) for j, ring in sorted(best[2].items())}
    stopped = {"stopped": "time limit"} if deadline.passed else {}
    return HeuristicRun({"rings": rings}, {"order": best[1], "placed": len(rings), **stopped})


def _sorted(candidates: list[_Candidate], order: str) -> list[_Candidate]:
    """Best first; ties keep the order of input (stable)."""
    if order == "utility":
        return sorted(candidates, key=lambda c: -c.utility)
    return sorted(candidates, key=lambda c: -c.utility / max(c.share, _LITTLE))


def _fill(
    instance: GVneInstance,
    network: RingNetwork,
    needs: list[Need],
    most: list[int],
    candidates: list[_Candidate],
    starts: int,
    deadline: Deadline,
) -> dict[int, Ring]:
    """Rings by job: the first that fits, then exchanges for more valuable ones."""
    placed: dict[int, Ring] = {}
    for candidate in candidates:
        if deadline.passed:
            return placed
        if candidate.job not in placed:
            ring = network.place(needs[candidate.job], candidate.size, starts)
            if ring is not None:
                placed[candidate.job] = ring
    for j, job in enumerate(instance.jobs):
        if deadline.passed:
            return placed
        old = placed.get(j)
        worth = job.utility[len(old.workers) - 1] if old is not None else 0.0
        sizes = sorted(
            (k for k in range(min(most[j], len(job.utility))) if job.utility[k] > worth), key=lambda k: -job.utility[k]
        )
        if not sizes:
            continue
        if old is not None:
            network.release(needs[j], old)
        better = None
        for k in sizes:
            better = network.place(needs[j], k + 1, starts)
            if better is not None:
                placed[j] = better
                break
        if better is None and old is not None:
            network.occupy(needs[j], old)
    return placed
