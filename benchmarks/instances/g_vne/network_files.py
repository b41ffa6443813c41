"""Networks from files, for every problem that embeds rings: GML graphs, and tables of hosts below three switches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.cells import name as own_name
from schedgap.benchmarks.importers.rows import Format, Notes, read_rows
from schedgap.benchmarks.instances.g_vne.substrates import PAPER_GPUS, Substrate
from schedgap.catalogue.workload import Importer
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import decoded, read_bytes
from schedgap.formulations.common.options import options_of, passes_on_to
from schedgap.formulations.g_vne.substrate import SubstrateInstance

if TYPE_CHECKING:
    import networkx

KNOWN_CAPACITIES: Mapping[str, float] = {"LinkSpeedRaw": 1e-9, "bandwidth": 1.0, "capacity": 1.0, "bw": 1.0}
"""Edge attributes that are looked for, and what makes Gbit/s of them (Topology Zoo's LinkSpeedRaw is in bit/s)."""
TWO_WAY = ("capacity_st", "capacity_ts")
"""Bit/s from source to target and back."""


def _own_names(*cells: str) -> tuple[str, ...]:
    """The switches of a host; the host and they are different nodes."""
    names = tuple(own_name(cell) for cell in cells)
    if len(set(names)) < len(names):
        raise ValueError(f"{next(one for one in names if names.count(one) > 1)!r} names more than one node")
    return names[1:]


_CLOS = Format("clos", "", {"id": (own_name, "ip"), "switches": (_own_names, "ip", "DSW", "PSW", "ASW")}, strict=True)
"""alibaba-lingjun-dataset-2023's topo.csv: a host and its switches, core layer first."""


@dataclass(frozen=True)
class Edge:
    """A link of a file: its ends, what the file says of its capacity (Gbit/s, or None), and there and back or not."""

    source: str
    target: str
    capacity: float | None
    capacity_back: float | None
    both: bool


def gml_substrate(
    files: Sequence[str | Path],
    *,
    capacity: Annotated[
        Literal["file", "constant", "degree"],
        Field(description="file: what edges say; constant: bandwidth everywhere; degree: times the smaller degree"),
    ] = "file",
    bandwidth: Annotated[float, Field(gt=0, le=1e9, description="Gbit/s, see capacity")] = 10.0,
    attribute: Annotated[
        str | None, Field(description="edge attribute with the capacity; the usual ones where not given")
    ] = None,
    unit: Annotated[float, Field(gt=0, le=1e9, description="what makes Gbit/s of the attribute")] = 1.0,
    gpus: Annotated[
        int | None, Field(ge=1, le=10**6, description="GPUs of every server; 1, 2, 4 or 8 at random where not given")
    ] = None,
    seed: int = 0,
) -> tuple[Substrate, list[str]]:
    """The network of a GML file, each node a server that relays.

    Returns (substrate, messages) : what was merged, left out or assumed, a line each. Raises InputError: not one file,
    not GML, no node, an attribute that no edge has, a capacity that is not a number >= 0.

    Parameters
    ----------
    capacity : ``file``: what edges say, `bandwidth` where they say nothing; ``constant``: `bandwidth` everywhere;
        ``degree``: `bandwidth` times the smaller degree of the two ends
    attribute, unit : the edge attribute that holds the capacity, and the factor that makes Gbit/s of it; where not
        given, capacity_st and capacity_ts (bit/s, one for each direction) and those of :data:`KNOWN_CAPACITIES`
    gpus : GPUs of every node; 1, 2, 4 or 8 at random (by `seed`) where not given
    """
    import networkx

    path = _single(files, "gml")
    graph, notes = _read_gml(path)
    names = _node_names(graph)
    degree = {names[node]: count for node, count in graph.degree()}
    edges, loops = [], 0
    for number, (a, b, data) in enumerate(graph.edges(data=True)):
        if a == b:
            loops += 1
            continue
        where = f"{path}: edge {number} ({names[a]} to {names[b]})"
        there, back = _capacity_of(data, attribute, unit, where)
        edges.append(Edge(names[a], names[b], there, back, not graph.is_directed()))
    if attribute is not None and edges and all(edge.capacity is None for edge in edges):
        raise InputError(f"{path}: no edge has the attribute {attribute!r}")
    if loops:
        notes.append(f"{loops} edges left out: they join a node to itself")
    if capacity == "file":
        silent = sum(edge.capacity is None for edge in edges)
        if silent:
            notes.append(f"{silent} of {len(edges)} edges say no capacity: {bandwidth:g} Gbit/s assumed")
    network: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    network.add_nodes_from(names.values())
    place: dict[tuple[str, str], int] = {}  # links stay in the order of the file; networkx has them by their source
    for edge in edges:
        rule = bandwidth * (min(degree[edge.source], degree[edge.target]) if capacity == "degree" else 1)
        for pair, said in (
            ((edge.source, edge.target), edge.capacity),
            ((edge.target, edge.source), edge.capacity_back),
        ):
            if pair == (edge.source, edge.target) or edge.both:
                network.add_edge(*pair, bandwidth=rule if said is None or capacity != "file" else said)
                place.setdefault(pair, len(place))
    made = _substrate(network, list(network), gpus, seed, notes)
    made.links.sort(key=lambda link: place[link["from"], link["to"]])
    return made, notes


def clos_substrate(
    files: Sequence[str | Path],
    *,
    host_bandwidth: Annotated[float, Field(gt=0, le=1e9, description="Gbit/s of a host's link")] = 100.0,
    asw_bandwidth: Annotated[float, Field(gt=0, le=1e9, description="Gbit/s of an access switch's link up")] = 800.0,
    psw_bandwidth: Annotated[
        float, Field(gt=0, le=1e9, description="Gbit/s of an aggregation switch's link up")
    ] = 3200.0,
    gpus: Annotated[int | None, Field(ge=1, le=10**6, description="GPUs of every server")] = 8,
    seed: int = 0,
) -> tuple[Substrate, list[str]]:
    """Hosts below access (ASW), aggregation (PSW) and core (DSW) switches, from a table with columns ip, DSW, PSW, ASW.

    Hosts are called h0, h1, ... in the order of the lines; switches ``DSW/PSW/ASW``, since the table's switch
    names repeat below another switch. Several core switches are joined by one node, ``top``. Raises InputError: not one
    file, other columns, a line with an empty or missing cell, a host that is there twice or shares a switch's name,
    switches of one line that share a name.

    Parameters
    ----------
    host_bandwidth, asw_bandwidth, psw_bandwidth : Gbit/s of the link up from a host, an ASW, a PSW (and a DSW to
        ``top``)
    """
    import networkx

    path = _single(files, "clos")
    hosts: list[str] = []
    network: networkx.Graph[str] = networkx.Graph()  # a switch comes in once for each host below it

    def join(low: str, high: str, amount: float) -> None:
        network.add_edge(low, high, bandwidth=amount)

    for row in read_rows(_CLOS, path, Notes(strict=True)):
        dsw, psw, asw = row["switches"]
        hosts.append(f"h{len(hosts)}")
        join(hosts[-1], f"{dsw}/{psw}/{asw}", host_bandwidth)
        join(f"{dsw}/{psw}/{asw}", f"{dsw}/{psw}", asw_bandwidth)
        join(f"{dsw}/{psw}", dsw, psw_bandwidth)
    if not hosts:
        raise InputError(f"{path}: has no hosts")
    below = set(hosts)
    cores = [name for name in network if name not in below and "/" not in name]
    if len(cores) > 1:
        for core in cores:
            join(core, "top", psw_bandwidth)
    notes = [
        f"{len(hosts)} hosts below {len(network) - len(hosts)} switches; the file has no bandwidths: "
        f"{host_bandwidth:g}, {asw_bandwidth:g} and {psw_bandwidth:g} Gbit/s assumed"
    ]
    return _substrate(network, hosts, gpus, seed, notes), notes


def _substrate(
    network: networkx.Graph[str], hosts: Sequence[str], gpus: int | None, seed: int, notes: list[str]
) -> Substrate:
    """The network with GPUs on its hosts, which stand first."""
    rng = np.random.default_rng(seed)
    notes.append(f"GPUs are {'drawn from 1, 2, 4, 8' if gpus is None else gpus}: the file has none")
    for host in hosts:
        network.nodes[host]["resources"] = {"gpu": int(rng.choice(PAPER_GPUS)) if gpus is None else gpus}
    parts = SubstrateInstance.parts_of(network)
    return Substrate(sorted(parts["servers"], key=lambda server: not server["resources"]), parts["links"])


def _read_gml(path: str | Path) -> tuple[Any, list[str]]:
    """The graph, parallel edges kept."""
    import networkx

    text = decoded(read_bytes(path), path)
    try:
        graph = _parsed(text)
        notes: list[str] = []
    except networkx.NetworkXError as error:
        if "duplicated" not in str(error) or "multigraph" in text:
            raise InputError(f"{path}: not a GML graph: {_line(error)}") from None
        try:  # files of the Topology Zoo have parallel edges without saying so
            graph = _parsed(text.replace("graph [", "graph [\n  multigraph 1", 1))
        except (networkx.NetworkXError, ValueError, TypeError, KeyError, AttributeError) as second:
            raise InputError(f"{path}: not a GML graph: {_line(second)}") from None
        notes = ["parallel edges are merged, their capacities added"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, AttributeError):  # networkx takes the value of "node" and "edge" for a list of keys
            error = ValueError(f'"node", "edge" and "graph" must be followed by [ ... ]; {error}')
        if isinstance(error, RecursionError):
            error = ValueError("brackets within brackets too deep")
        raise InputError(f"{path}: not a GML graph: {_line(error)}") from None
    if not len(graph):
        raise InputError(f"{path}: the graph has no node")
    return graph, notes


def _parsed(text: str) -> Any:
    import networkx

    try:
        return networkx.parse_gml(text.splitlines(), label="id")
    except AttributeError:  # networkx asks a node or an edge that is no list for its keys
        raise TypeError("graph, node and edge must each be a list in brackets") from None


def _node_names(graph: Any) -> dict[Any, str]:
    """Labels where they are there and used once, else with the node's number."""
    labels = {node: str(data.get("label") or node) for node, data in graph.nodes(data=True)}
    count: dict[str, int] = {}
    for label in labels.values():
        count[label] = count.get(label, 0) + 1
    return {node: label if count[label] == 1 else f"{label}#{node}" for node, label in labels.items()}


def _capacity_of(
    data: Mapping[str, Any], attribute: str | None, unit: float, where: str
) -> tuple[float | None, float | None]:
    """Gbit/s there and back, as the edge says."""
    if attribute is not None:
        said = _number(data[attribute], f"{where}: {attribute}") * unit if attribute in data else None
        return said, said
    if all(name in data for name in TWO_WAY):
        there, back = (_number(data[name], f"{where}: {name}") * 1e-9 for name in TWO_WAY)
        return there, back
    for name, factor in KNOWN_CAPACITIES.items():
        if name in data:
            said = _number(data[name], f"{where}: {name}") * factor
            return said, said
    return None, None


def _number(value: Any, where: str) -> float:
    """A capacity; the files write some as text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{where}: must be a number >= 0, got {value!r}")
    return number


def _single(files: Sequence[str | Path], what: str) -> str | Path:
    if len(files) != 1:
        raise InputError(f"import {what}: takes one file, got {len(files)}")
    return files[0]


def _line(error: BaseException) -> str:
    """An error's text on one line, the first 120 characters."""
    return " ".join(str(error).split())[:120] or type(error).__name__


def network_importers(
    gml: Callable[..., SubstrateInstance], clos: Callable[..., SubstrateInstance] | None = None
) -> tuple[Importer, Importer]:
    """The formats of networks, for one problem.

    Parameters
    ----------
    gml : ``f(substrate, name, seed, **options) -> instance`` draws the jobs, which no such file has; its annotated
        keywords are options of the importer
    clos : the same for the other format, where it differs
    """
    return (
        Importer(
            "gml",
            "a graph in GML, such as those of the Internet Topology Zoo; jobs are drawn",
            _with_jobs(gml_substrate, gml),
        ),
        Importer(
            "clos",
            "hosts below three layers of switches (alibaba-lingjun-dataset-2023, topo.csv); jobs are drawn",
            _with_jobs(clos_substrate, clos or gml),
        ),
    )


def _with_jobs(
    read: Callable[..., tuple[Substrate, list[str]]], draw: Callable[..., SubstrateInstance]
) -> Callable[..., tuple[SubstrateInstance, list[str]]]:
    @passes_on_to(draw, read)
    def import_network(
        files: Sequence[str | Path],
        *,
        seed: Annotated[int, Field(ge=0, le=10**9, description="seed of what is drawn")] = 0,
        **options: Any,
    ) -> tuple[SubstrateInstance, list[str]]:
        of_jobs = {name: options.pop(name) for name in options_of(draw) if name in options}
        made, messages = read(files, seed=seed, **options)
        instance = draw(made, Path(files[0]).stem, seed, **of_jobs)
        return instance, [f"{len(instance.jobs)} jobs are drawn (seed {seed}): the file has none", *messages]

    return import_network
