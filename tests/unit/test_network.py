"""Networks as networkx graphs: there and back, and its algorithms beside ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import networkx
import numpy as np
import pytest

import schedgap
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.g_vne.network_tables import tables

JOB = {"id": "j0", "demand": {"gpu": 1}, "bandwidth": 1.0, "utility": [0.0, 1.0]}


@pytest.mark.parametrize("problem", ["g-vne", "ddljs"])
@pytest.mark.parametrize("seed", range(6))
def test_an_instance_comes_back_from_its_graph(problem: str, seed: int) -> None:
    instance = schedgap.generate(problem, "tiny", seed=seed)
    graph = schedgap.to_networkx(instance)
    data = instance.to_dict()
    fields = {key: data[key] for key in data if key not in ("problem", "name", "servers", "links")}
    again = schedgap.from_networkx(graph, problem, name=instance.name, **fields).to_dict()
    assert again["servers"] == data["servers"]
    assert sorted(map(str, again.pop("links"))) == sorted(map(str, data.pop("links")))  # by node in the graph
    assert again == data


def test_an_undirected_graph_with_parallel_edges_and_nodes_of_any_kind() -> None:
    graph = networkx.MultiGraph()
    graph.add_node(0, resources={"gpu": 2})
    graph.add_edge(0, "switch", bandwidth=1.5)
    graph.add_edge("switch", 0, bandwidth=1.0)
    instance = schedgap.from_networkx(graph, "g-vne", jobs=[JOB])
    assert instance.to_dict()["links"] == [
        {"from": "0", "to": "switch", "bandwidth": 2.5},
        {"from": "switch", "to": "0", "bandwidth": 2.5},
    ]
    assert [dict(server.resources) for server in instance.servers] == [{"gpu": 2.0}, {}]


@pytest.mark.parametrize(
    ("graph", "problem", "said"),
    [
        ([("a", "b")], "g-vne", "graph: must be a networkx graph, got list"),
        (networkx.Graph([("a", "b")]), "g-vne", "graph: edge a to b: bandwidth is missing"),
        (networkx.Graph([(1, "1", {"bandwidth": 1.0})]), "g-vne", "graph: two nodes are called '1'"),
        (networkx.Graph([("a", "a", {"bandwidth": 1.0})]), "g-vne", 'joins "a" to itself'),
        (networkx.Graph([("a", "b", {"bandwidth": -1.0})]), "g-vne", "bandwidth"),
        (networkx.Graph(), "hadar", "problem hadar: its instances have no network"),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(graph: Any, problem: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        schedgap.from_networkx(graph, problem, jobs=[JOB])
    assert said in str(error.value) and "\n" not in str(error.value)


def test_an_instance_without_a_network_is_refused() -> None:
    with pytest.raises(InputError, match="problem rar-ddls: its instances have no network"):
        schedgap.to_networkx(schedgap.generate("rar-ddls"))


@pytest.mark.parametrize("seed", range(8))
def test_rings_between_two_ends_are_as_many_as_the_largest_flows_allow(seed: int) -> None:
    """Every job has one worker at either end; there and back go over nodes of their own, in units of a ring edge."""
    rng = np.random.default_rng(seed)
    graph, most = networkx.DiGraph(), 4
    room = {f"slot{j}": 1 for j in range(most)}
    graph.add_nodes_from([("s", {"resources": room}), ("t", {"resources": room})])
    for way, (start, end) in (("to", "st"), ("back", "ts")):
        inner = [f"{way}{i}" for i in range(4)]
        pairs = [(start, u) for u in inner[:2]] + [(u, end) for u in inner[2:]]
        pairs += [(u, v) for u in inner for v in inner if u != v and rng.random() < 0.5]
        graph.add_edges_from((u, v, {"bandwidth": int(rng.integers(1, 4))}) for u, v in pairs)
    flows = [networkx.maximum_flow_value(graph, u, v, capacity="bandwidth") for u, v in ("st", "ts")]
    jobs = [{**JOB, "id": f"j{j}", "demand": {f"slot{j}": 1}} for j in range(most)]
    instance = schedgap.from_networkx(graph, "g-vne", jobs=jobs)
    assert schedgap.solve(instance, "columns-lp").bound == pytest.approx(min(most, *flows), abs=1e-7)
    assert schedgap.solve(instance, "colgen").objective == min(most, *flows)


@pytest.mark.parametrize("seed", range(20))
def test_the_rooted_forest_is_there_where_networkx_sees_one(seed: int) -> None:
    instance = schedgap.generate("g-vne", "tiny", seed=seed)
    graph = networkx.relabel_nodes(schedgap.to_networkx(instance), instance.server_index).to_undirected()
    forest = tables(instance).forest
    assert (forest is not None) == networkx.is_forest(graph)
    for a, b in [(a, b) for a in graph for b in graph if forest is not None and networkx.has_path(graph, a, b)]:
        assert forest.path(a, b) == networkx.shortest_path(graph, a, b)


def test_importing_the_package_and_reading_an_instance_does_not_load_networkx() -> None:
    code = (
        "import sys, schedgap; made = schedgap.generate('g-vne', 'tiny', seed=1);"
        "schedgap.solve(made, 'greedy'); assert 'networkx' not in sys.modules;"
        "schedgap.to_networkx(made); assert 'networkx' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
