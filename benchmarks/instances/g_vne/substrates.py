"""Servers, switches and links of a cluster, for every problem that embeds rings: rack trees, fat trees, graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.formulations.common.errors import InputError

PAPER_GPUS = (1, 2, 4, 8)
PAPER_SERVER_LINKS = (10.0, 100.0)
PAPER_RACK_LINKS = (200.0, 3200.0)
"""Paper 004, section VI: GPUs of a server; Gbit/s between server and rack, and between rack and core."""

Racks: TypeAlias = Annotated[int | None, Field(ge=1, le=10000, description="racks; 2 to 5 where not given")]
Workers: TypeAlias = Annotated[int, Field(ge=1, le=1000, description="workers of the largest ring")]
Range = tuple[float, float]
Resources = Callable[[np.random.Generator], dict[str, float]]


@dataclass(frozen=True)
class Substrate:
    """The parts of an instance that describe the cluster, as decoded JSON."""

    servers: list[dict[str, Any]]  # ``{"id", "resources"}`` in order; a switch has no resources
    links: list[dict[str, Any]]  # ``{"from", "to", "bandwidth"}``, directed

    def join(self, one: str, other: str, bandwidth: float, back: float | None = None) -> None:
        """A link in each direction, of the same bandwidth unless `back` says otherwise."""
        self.links.append({"from": one, "to": other, "bandwidth": bandwidth})
        self.links.append({"from": other, "to": one, "bandwidth": bandwidth if back is None else back})


def bandwidth_in(rng: np.random.Generator, low_high: Range) -> float:
    """A bandwidth drawn uniformly, to two decimals and never 0."""
    return max(0.01, round(float(rng.uniform(*low_high)), 2))


def gpus_only(choices: Sequence[int] = PAPER_GPUS) -> Resources:
    """Servers whose only resource is GPUs, drawn from `choices`."""
    return lambda rng: {"gpu": int(rng.choice(choices))}


def no_empty_racks(servers: int, racks: int | None) -> None:
    """Refuse more racks than servers.

    Raises InputError: there are; None is any number that fits.
    """
    if racks is not None and racks > servers:
        raise InputError(f"racks: must be at most servers ({servers}), got {racks}")


def rack_tree(
    rng: np.random.Generator,
    *,
    servers: int,
    racks: int,
    resources: Resources | None = None,
    server_links: Range = PAPER_SERVER_LINKS,
    rack_links: Range = PAPER_RACK_LINKS,
) -> Substrate:
    """Servers spread at random over racks that meet in one core: paper 004's cluster."""
    own = resources or gpus_only()
    made = Substrate([{"id": f"s{i}", "resources": own(rng)} for i in range(servers)], [])
    racks = min(racks, servers)
    home = np.concatenate([np.arange(racks), rng.integers(0, racks, servers - racks)])
    rng.shuffle(home)
    made.servers.extend({"id": f"rack{r}", "resources": {}} for r in range(racks))
    for i in range(servers):
        made.join(f"s{i}", f"rack{home[i]}", bandwidth_in(rng, server_links))
    if racks > 1:
        made.servers.append({"id": "core", "resources": {}})
        for r in range(racks):
            made.join(f"rack{r}", "core", bandwidth_in(rng, rack_links))
    return made


def fat_tree(
    rng: np.random.Generator,
    *,
    ports: int,
    resources: Resources | None = None,
    server_links: Range = PAPER_SERVER_LINKS,
    switch_links: Range = PAPER_SERVER_LINKS,
) -> Substrate:
    """The fat tree of switches with `ports` ports: ports^3 / 4 servers, 5 ports^2 / 4 switches.

    Each of `ports` pods has ports/2 edge and ports/2 aggregation switches, joined completely; aggregation switch
    number a of each pod is joined to core switches a ports/2 .. (a + 1) ports/2 - 1 (Al-Fares, Loukissas and
    Vahdat, SIGCOMM 2008).
    """
    own = resources or gpus_only()
    half = ports // 2
    made = Substrate([{"id": f"s{i}", "resources": own(rng)} for i in range(ports * half * half)], [])
    switches = [f"{kind}{p}.{i}" for p in range(ports) for kind in ("edge", "agg") for i in range(half)]
    switches += [f"core{c}" for c in range(half * half)]
    made.servers.extend({"id": name, "resources": {}} for name in switches)
    for p in range(ports):
        for e in range(half):
            for h in range(half):
                made.join(f"s{(p * half + e) * half + h}", f"edge{p}.{e}", bandwidth_in(rng, server_links))
            for a in range(half):
                made.join(f"edge{p}.{e}", f"agg{p}.{a}", bandwidth_in(rng, switch_links))
        for a in range(half):
            for c in range(half):
                made.join(f"agg{p}.{a}", f"core{a * half + c}", bandwidth_in(rng, switch_links))
    return made


def random_graph(
    rng: np.random.Generator,
    *,
    servers: int,
    switches: int = 0,
    degree: float = 3.0,
    resources: Resources | None = None,
    links: Range = PAPER_SERVER_LINKS,
    one_way: float = 0.0,
) -> Substrate:
    """A connected random graph of servers (which relay) and switches.

    A random tree holds it together; further pairs are joined until the mean degree is `degree`.
    """
    own = resources or gpus_only()
    made = Substrate([{"id": f"s{i}", "resources": own(rng)} for i in range(servers)], [])
    made.servers.extend({"id": f"w{i}", "resources": {}} for i in range(switches))
    names = [node["id"] for node in made.servers]
    n = len(names)
    order = rng.permutation(n)
    pairs = {(int(min(a, b)), int(max(a, b))) for a, b in ((order[i], order[rng.integers(0, i)]) for i in range(1, n))}
    for a, b in sorted(pairs):
        made.join(names[a], names[b], bandwidth_in(rng, links), bandwidth_in(rng, links))
    missing = [(a, b) for a in range(n) for b in range(a + 1, n) if (a, b) not in pairs]
    more = min(len(missing), max(0, round(degree * n / 2) - len(pairs)))
    for k in sorted(rng.choice(len(missing), more, replace=False).tolist()) if more else ():
        a, b = missing[k]
        if rng.random() < one_way:
            a, b = (a, b) if rng.random() < 0.5 else (b, a)
            made.links.append({"from": names[a], "to": names[b], "bandwidth": bandwidth_in(rng, links)})
        else:
            made.join(names[a], names[b], bandwidth_in(rng, links), bandwidth_in(rng, links))
    return made
