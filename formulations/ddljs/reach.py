"""Where the rings of a job can live in the network, before anything else is placed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.ddljs.instance import DdljsInstance


@dataclass(frozen=True)
class Region:
    """A largest set of nodes that can all reach each other over links wide enough for one ring edge."""

    nodes: tuple[int, ...]  # positions of its nodes, switches included
    hosts: tuple[int, ...]  # positions of hosts of a worker
    links: tuple[int, ...]  # positions of the links between its nodes that are wide enough


@dataclass(frozen=True)
class Reach:
    """Where one job can run."""

    regions: tuple[Region, ...]  # regions with a host; a ring lies in one of them
    ring: int  # the largest ring, alone in the network as far as servers are concerned
    max_work: int  # worker-slots over the horizon, by ring size, arrival and budget


@once_per_instance
def reaches(instance: DdljsInstance) -> tuple[Reach, ...]:
    """The reach of every job, computed once per instance object; O((V + E) J)."""
    parts: dict[tuple[tuple[int, ...], float], tuple[Region, ...]] = {}
    rows = []
    for job, caps in zip(instance.jobs, instance.caps, strict=True):
        key = (caps, job.bandwidth)
        if key not in parts:
            parts[key] = _regions(instance, caps, job.bandwidth)
        regions = parts[key]
        ring = min(job.max_workers, max((sum(caps[u] for u in region.hosts) for region in regions), default=0))
        most = ring * (instance.horizon - job.arrival + 1)
        rows.append(Reach(regions, ring, most if job.slot_limit is None else min(most, job.slot_limit)))
    return tuple(rows)


def _regions(instance: DdljsInstance, caps: tuple[int, ...], bandwidth: float) -> tuple[Region, ...]:
    where = instance.server_index
    links = [
        (position, where[link.source], where[link.target])
        for position, link in enumerate(instance.links)
        if _wide(link.bandwidth, bandwidth)
    ]
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(instance.servers)
    ends = np.array([(u, v) for _, u, v in links], dtype=np.int64).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    _, label = connected_components(graph, directed=True, connection="strong")
    found = []
    for part in dict.fromkeys(label.tolist()):
        nodes = tuple(np.flatnonzero(label == part).tolist())
        hosts = tuple(u for u in nodes if caps[u])
        if hosts:
            inside = tuple(p for p, u, v in links if label[u] == part == label[v]) if len(hosts) > 1 else ()
            found.append(Region(nodes, hosts, inside))
    return tuple(found)


def _wide(capacity: float, bandwidth: float) -> bool:
    """Whether a link holds one ring edge, tolerance 1e-9."""
    if capacity >= bandwidth:
        return True
    return capacity > 0.999 * bandwidth and exact(bandwidth) <= exact(capacity) * (1 + CHECK_TOLERANCE)
