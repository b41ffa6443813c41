"""What a node of g-vne's branch and price allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schedgap.formulations.common.arrays import Bools, Ints

Edge = tuple[int, int, int]
"""A ring edge of a job between two hosts: (job, host, next host)."""


@dataclass(frozen=True)
class Rules:
    """Restrictions on the rings of every job. All of them are kept by the pricing itself, but `at_least`."""

    cap: Ints  # (J, V) most workers of the job on a node
    out: Bools  # (J,) the job is left out
    must: frozenset[int] = frozenset()  # jobs that are embedded
    # (job, node, n): the job has at least n workers on the node; a row of the master, whose dual is part of the node's
    # price
    at_least: tuple[tuple[int, int, int], ...] = ()
    no_edge: frozenset[Edge] = frozenset()  # ring edges that must not occur
    no_link: Mapping[Edge, frozenset[int]] = field(default_factory=dict)  # links that a ring edge must not use
