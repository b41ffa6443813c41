"""Certificates of ddl-cluster: shares and prices of GPUs and links, and rows where placements are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.formulations.ddl_cluster.bounds import Resource, shares
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.certificates.make import Way, by_branching
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.ddl_cluster.bound import priced
from schedgap.solvers.exact.ddl_cluster.paths import SPAN, priced_paths


def leaves(instance: DdlClusterInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    yield "machines", {}, {}
    names = [server.id for server in instance.servers]
    yield "machines", {}, {"shares": [[_named(names, r), own] for r, own in shares(instance).items()]}
    found = priced(instance)
    prices = np.rint(found.prices * GRID).astype(np.int64).tolist()
    yield "machines", {}, {"fineness": found.fineness, "edges": found.edges.tolist(), "prices": prices}
    if (ways := priced_paths(instance)) is not None:
        gpus, links = np.rint(ways.prices * GRID).astype(np.int64).tolist()
        content = {"fineness": ways.fineness, "span": SPAN, "first": ways.first, "gpus": gpus, "links": links}
        yield "machines", {}, {"paths": content}


def way(instance: DdlClusterInstance, given: dict[str, Any], value: Fraction | None) -> Way:
    """Rows of the schedules up to the value; there are none without placements."""
    del instance
    if value is None or not all(job.get("placement") for job in given["jobs"]):
        raise Unproven("the bound is not the value, and placements are not given")
    return "rows", {"cutoff": str(value)}, by_branching


def _named(names: Sequence[str], resource: Resource) -> str | list[str | int]:
    """A resource of ddl-cluster with the server's id in place of its position."""
    if isinstance(resource, str):
        return resource
    return [names[resource]] if isinstance(resource, int) else [names[resource[0]], resource[1]]
