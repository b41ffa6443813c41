"""Certificates of bounds at any size: the numbers that today's bounds rest on, for the checker to add up again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.formulations.common.instance import Instance
from schedgap.formulations.ddl_cluster.bounds import Resource, shares
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, in_units, tables
from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.solvers.certificates.make import Certificate, certificate_of, plain
from schedgap.solvers.certificates.rar_ddls import areas
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.ddl_cluster.bound import priced as on_gpus
from schedgap.solvers.exact.ddljs.bound import block_prices
from schedgap.solvers.exact.g_vne.bound import priced_bound
from schedgap.solvers.exact.gang_placement.merged import node_prices
from schedgap.solvers.exact.gpu_sharing.bound import priced
from schedgap.solvers.exact.hadar.bound import LARGE, MANY, MEDIUM, ORDINARY, block_bound
from schedgap.solvers.exact.hadar.event_prices import event_prices

Leaf = tuple[str, dict[str, Any], dict[str, Any]]
"""Form, options, content."""


def prove_bound(instance: Instance) -> Certificate:
    """A certificate of a bound on the optimum, accepted by the checker.

    Raises
    ------
    Unproven
        The problem has no such certificates yet, or none is accepted.
    """
    given = plain(instance)
    best: tuple[Fraction, Certificate] | None = None
    for form, options, content in _leaves(instance, given):
        model = checker.model_of(given, form, options)
        assert model.price is not None
        try:
            value = model.price(content, {})
        except ValueError:
            continue
        if value is None or (form == "area" and not value):
            continue
        value = checker.Prover(model, None).reached(value)
        if best is None or value > best[0]:
            best = value, certificate_of(given, form, options, model.sense * value, {"prices": content})
        if form == "area":
            break
    if best is None:
        raise Unproven(f"no certificate of a bound for {given['problem']} of this size")
    return best[1]


def _leaves(instance: Instance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    if isinstance(instance, RarDdlsInstance):
        bound = lower_bound(instance)
        if bound is not None:
            horizon = min(given["horizon"], int(bound) - 1)
            for content in areas(instance, horizon):
                yield "area", {"horizon": horizon}, content
    elif isinstance(instance, HadarInstance):
        yield "prices", {}, {"edges": [1, 2], "types": {}, "finishes": 200}  # every job at its best
        scaled, unit = in_units(instance, ORDINARY)
        data = tables(scaled)
        size = len(data.jobs) * data.horizon
        if size > MANY and data.possible.any():
            yield "prices", {}, _between(data, unit)
        if size <= LARGE:
            yield "prices", {}, _blocks(data, unit)
    elif isinstance(instance, GpuSharingInstance):
        reason = impossible(instance)
        if reason is not None:
            raise Unproven(f"there is no schedule: {reason}")
        yield "prices", {}, {"edges": [0], "prices": [[]], "classes": [], "weights": []}  # every job alone
        yield "prices", {}, _buckets(instance)
    elif isinstance(instance, GVneInstance):
        yield "prices", {}, _rings(instance)
    elif isinstance(instance, DdljsInstance):
        yield "prices", {}, {"ends": [instance.horizon], "classes": [-1] * len(instance.servers), "prices": [[]]}
        yield from _slots(instance)
    elif isinstance(instance, DdlClusterInstance):
        yield "machines", {}, {}
        names = [server.id for server in instance.servers]
        yield "machines", {}, {"shares": [[_named(names, r), own] for r, own in shares(instance).items()]}
        found = on_gpus(instance)
        prices = np.rint(found.prices * GRID).astype(np.int64).tolist()
        yield "machines", {}, {"fineness": found.fineness, "edges": found.edges.tolist(), "prices": prices}
    elif isinstance(instance, GangPlacementInstance):
        for leaf in node_prices(instance):
            yield "prices", {}, leaf
    elif given["problem"] == "comm-contention":
        yield "srpt", {}, {}
    else:
        try:
            rules = checker.rules_of(given["problem"])
        except Rejected as fault:
            raise Unproven(str(fault)) from fault
        yield from rules.bounds(given) if hasattr(rules, "bounds") else ()


def _named(names: Sequence[str], resource: Resource) -> str | list[str | int]:
    """A resource of ddl-cluster with the server's id in place of its position."""
    if isinstance(resource, str):
        return resource
    return [names[resource]] if isinstance(resource, int) else [names[resource[0]], resource[1]]


def _rings(instance: GVneInstance) -> dict[str, Any]:
    """Prices of g-vne on nodes and links; that of a tree link on its narrower direction."""
    _, subproblem, prices = priced_bound(instance)
    data, whole = subproblem.data, np.rint(prices * GRID)
    nodes: dict[str, dict[str, int]] = {}
    for v, r in np.argwhere(subproblem.node_row >= 0).tolist():
        if price := int(whole[subproblem.node_row[v, r]]):
            nodes.setdefault(str(v), {})[data.resources[r]] = price
    links: dict[str, int] = {}
    for place in np.flatnonzero(subproblem.link_row >= 0).tolist():
        e = place
        if subproblem.forest is not None:
            up, down = int(subproblem.forest.up[place]), int(subproblem.forest.down[place])
            e = up if data.bandwidth[up] <= data.bandwidth[down] else down
        if price := int(whole[subproblem.link_row[place]]):
            links[str(e)] = price
    return {"nodes": nodes, "links": links, "linked": subproblem.linked}


def _slots(instance: DdljsInstance) -> Iterator[Leaf]:
    """Prices of ddljs by blocks of slots and classes of servers."""
    blocks, _, prices = block_prices(instance)
    if prices is not None:
        lines = [
            [{name: int(p) for name, p in zip(blocks.resources, own, strict=True) if p} for own in line]
            for line in np.rint(prices * GRID)
        ]
        yield "prices", {}, {"ends": blocks.ends.tolist(), "classes": blocks.classes.tolist(), "prices": lines}


def _buckets(instance: GpuSharingInstance) -> dict[str, Any]:
    """Prices of gpu-sharing by buckets of slots."""
    found = priced(instance)
    return {
        "edges": found.edges.tolist(),
        "prices": np.rint(found.prices * GRID).astype(np.int64).tolist(),
        "classes": found.classes.tolist(),
        "weights": np.floor(found.weights * (1 - 1e-12) * GRID).astype(np.int64).tolist(),
    }


def _between(data: ProgressTables, unit: float) -> dict[str, Any]:
    """Prices of hadar between events, in the instance's own unit."""
    found = event_prices(data)
    lines = np.rint(found.prices * unit * GRID)
    types = {kind: [int(p) for p in line] for kind, line in zip(data.types, lines, strict=True)}
    return {"edges": found.edges.tolist(), "types": types, "finishes": found.finishes}


def _blocks(data: ProgressTables, unit: float) -> dict[str, Any]:
    """Block prices of hadar, in the instance's own unit."""
    found = block_bound(data, 0.06 if len(data.jobs) * data.horizon <= MEDIUM else 0.2)
    lines = np.rint(np.maximum(found.prices, 0.0) * unit * GRID)
    blocks = [
        [int(first), {kind: int(p) for kind, p in zip(data.types, line, strict=True) if p}]
        for first, line in zip(found.starts, lines, strict=True)
    ]
    return {"blocks": blocks, "fractions": True}
