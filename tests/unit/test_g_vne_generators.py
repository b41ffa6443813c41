"""Presets, importers and the figure of g-vne: shapes, exact numbers of parts, bad files."""

import json
from pathlib import Path

import networkx
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from schedgap.benchmarks.figures.g_vne import JOBS, LOAD, OVER, network
from schedgap.benchmarks.figures.node_layout import layout
from schedgap.benchmarks.figures.style import as_svg
from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.instances.g_vne.random import fat, large_tree, racks, random, small, tiny
from schedgap.benchmarks.instances.g_vne.substrates import fat_tree, random_graph
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.g_vne.greedy import greedy

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data"
if not REAL.exists():
    REAL = ROOT.parent.parent / "shared" / "data"


@pytest.mark.parametrize("preset", [preset.id for preset in workload_of(G_VNE).presets])
def test_a_preset_depends_on_the_seed_only(preset: str) -> None:
    first = make_instance(G_VNE, preset, 3)
    assert make_instance(G_VNE, preset, 3).to_dict() == first.to_dict()
    assert make_instance(G_VNE, preset, 4).content_hash() != first.content_hash()
    assert GVneInstance.parse(first.to_dict()).content_hash() == first.content_hash()
    assert networkx.is_strongly_connected(first.to_networkx())  # type: ignore[arg-type]


def test_tiny_has_some_of_everything() -> None:
    made = [tiny(seed) for seed in range(120)]
    kinds = {instance.name.split("-")[1] for instance in made}
    assert kinds == {"tree", "general"}
    assert {len(instance.resources) for instance in made} == {1, 2}
    assert any(worth < 0 for instance in made for job in instance.jobs for worth in job.utility)
    assert any(len(i.to_networkx().edges) % 2 for i in made)  # one-way links
    assert any(amount != int(amount) for i in made for s in i.servers for amount in s.resources.values())
    for instance in made:
        graph = instance.to_networkx().to_undirected()
        assert networkx.is_forest(graph) or "general" in instance.name


def test_more_racks_than_servers_are_refused() -> None:
    for preset in ("racks", "large-tree"):
        with pytest.raises(InputError, match=r"racks: must be at most servers \(2\), got 9"):
            make_instance(G_VNE, preset, 0, {"servers": 2, "racks": 9})
        assert len(make_instance(G_VNE, preset, 0, {"servers": 9, "racks": 9}).servers) == 19


def test_racks_are_the_papers() -> None:
    for seed in range(4):
        instance = racks(seed)
        hosts = [server for server in instance.servers if server.resources]
        assert len(hosts) == 50 and len(instance.jobs) == 100
        assert {server.resources["gpu"] for server in hosts} <= {1, 2, 4, 8}
        count = len([s for s in instance.servers if s.id.startswith("rack")])
        assert 2 <= count <= 5 and len(instance.links) == 2 * (50 + count)
        for link in instance.links:
            low, high = (200, 3200) if "core" in (link.source, link.target) else (10, 100)
            assert low <= link.bandwidth <= high
        assert all(0.1 <= job.bandwidth <= 5 and len(job.utility) <= 5 for job in instance.jobs)
        assert all(np.diff((0.0, *job.utility)).min() >= 0 for job in instance.jobs)
        assert all(job.utility[-1] <= 100 for job in instance.jobs)
    assert racks(0, tightness=10).links[0].bandwidth == pytest.approx(racks(0).links[0].bandwidth / 10, abs=0.01)


def test_fat_tree_and_random_graph_have_their_shape() -> None:
    made = fat_tree(np.random.default_rng(0), ports=4)
    assert len(made.servers) == 16 + 20 and len(made.links) == 2 * 48
    degrees = dict.fromkeys((node["id"] for node in made.servers), 0)
    for link in made.links:
        degrees[link["from"]] += 1
    assert all(count == (1 if name.startswith("s") else 4) for name, count in degrees.items())
    graph = random_graph(np.random.default_rng(0), servers=30, switches=5, degree=4.0)
    assert len(graph.links) == 2 * 70
    lone = random_graph(np.random.default_rng(0), servers=1)
    assert len(lone.servers) == 1 and not lone.links
    tree = large_tree(0, servers=40, racks=5, jobs=3)
    assert networkx.is_tree(tree.to_networkx().to_undirected())


GML = """graph [
  node [ id 0 label "A" ]
  node [ id 1 label "B" ]
  node [ id 7 label "B" ]
  edge [ source 0 target 1 LinkSpeedRaw 2500000000.0 ]
  edge [ source 1 target 7 ]
  edge [ source 0 target 7 capacity_st "1.0E9" capacity_ts "3.0E9" ]
]
"""


def imported(tmp_path: Path, text: str, kind: str = "gml", **settings: object) -> tuple[GVneInstance, list[str]]:
    path = tmp_path / "net.txt"
    path.write_text(text)
    instance, notes = import_instance(G_VNE, kind, [path], settings=settings)
    assert isinstance(instance, GVneInstance)
    return instance, list(notes)


def test_gml_capacities_by_the_file_and_by_rule(tmp_path: Path) -> None:
    instance, notes = imported(tmp_path, GML, jobs=2, gpus=4)
    links = {(link.source, link.target): link.bandwidth for link in instance.links}
    assert links == {
        ("A", "B#1"): 2.5,
        ("B#1", "A"): 2.5,
        ("B#1", "B#7"): 10.0,
        ("B#7", "B#1"): 10.0,
        ("A", "B#7"): 1.0,
        ("B#7", "A"): 3.0,
    }
    assert {server.resources["gpu"] for server in instance.servers} == {4} and len(instance.jobs) == 2
    assert "1 of 3 edges say no capacity: 10 Gbit/s assumed" in notes
    instance, _ = imported(tmp_path, GML, capacity="constant", bandwidth=7)
    assert {link.bandwidth for link in instance.links} == {7.0}
    instance, _ = imported(tmp_path, GML, capacity="degree", bandwidth=5)
    assert {link.bandwidth for link in instance.links} == {10.0}
    instance, _ = imported(tmp_path, GML, attribute="LinkSpeedRaw", unit=1e-8)
    assert {link.bandwidth for link in instance.links} == {25.0, 10.0}
    one_way = GML.replace("graph [", "graph [ directed 1", 1)
    instance, _ = imported(tmp_path, one_way)
    assert len(instance.links) == 3


def test_gml_merges_parallel_edges_and_leaves_loops_out(tmp_path: Path) -> None:
    more = GML.rstrip()[:-1] + "edge [ source 0 target 1 ]\nedge [ source 7 target 7 ]\n]\n"
    instance, notes = imported(tmp_path, more)
    links = {(link.source, link.target): link.bandwidth for link in instance.links}
    assert links["A", "B#1"] == 12.5 and len(links) == 6
    assert any("parallel edges are merged" in note for note in notes)
    assert any(note.startswith("1 edges left out") for note in notes)


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        (GML.replace("2500000000.0", "-1"), {}, "edge 0 (A to B#1): LinkSpeedRaw: must be a number >= 0, got -1"),
        (GML.replace("1.0E9", "fast"), {}, "edge 1 (A to B#7): capacity_st: must be a number >= 0, got 'fast'"),
        (GML, {"attribute": "speed"}, "no edge has the attribute 'speed'"),
        ("graph [\n]\n", {}, "the graph has no node"),
        ("graph [ node [ id", {}, "not a GML graph: "),
        ("a,b\n1,2\n", {}, "not a GML graph: cannot tokenize"),
        ("graph [ " + "a [ " * 5000, {}, "not a GML graph: "),
        (GML, {"bandwidth": 0}, "option bandwidth: must be greater than 0, got 0"),
        (GML, {"capacity": "guess"}, "option capacity: must be one of file, constant, degree, got 'guess'"),
    ],
)
def test_bad_gml_is_told_in_one_line(tmp_path: Path, text: str, settings: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as error:
        imported(tmp_path, text, **settings)
    assert words in str(error.value) and "\n" not in str(error.value)


CLOS = "ip,DSW,PSW,ASW\nx1,G1,P1,S1\nx2,G1,P1,S2\nx3,G2,P1,S1\n"


def test_clos_table(tmp_path: Path) -> None:
    instance, notes = imported(tmp_path, CLOS, "clos", jobs=3, host_bandwidth=50)
    assert [server.id for server in instance.servers] == [
        *("h0", "h1", "h2"),
        *("G1/P1/S1", "G1/P1", "G1", "G1/P1/S2", "G2/P1/S1", "G2/P1", "G2", "top"),
    ]
    assert networkx.is_tree(instance.to_networkx().to_undirected())
    assert next(link.bandwidth for link in instance.links if link.source == "h0") == 50
    assert any("3 hosts below 8 switches" in note for note in notes)
    for text, words in (
        (CLOS + "x1,G1,P1,S1\n", "line 5: its id is used twice, 'x1' is already that of line 2"),
        (CLOS + "x4,G4,P1,x4\n", "net.txt: line 5: ip: 'x4' names more than one node"),
        (CLOS + "x4,x4,x4,x4\n", "net.txt: line 5: ip: 'x4' names more than one node"),
        (CLOS + "x4,G1,,S1\n", "line 5: has no value where one is needed"),
        ("host,rack\na,b\n", "line 1: there is no column 'ip' (columns: host, rack)"),
        ("ip,DSW,PSW,ASW\n", "has no hosts"),
    ):
        with pytest.raises(InputError) as error:
            imported(tmp_path, text, "clos")
        assert words in str(error.value)


def test_real_networks_where_they_are() -> None:
    """The Topology Zoo's graphs and a real Clos fabric."""
    if not REAL.exists():
        print(f"no networks at {REAL}")
        return
    sizes = {"CSTNet": (27, 72), "Geant": (40, 122), "Brain": (161, 332)}
    for name, (nodes, links) in sizes.items():
        instance, _ = import_instance(G_VNE, "gml", [REAL / "topology" / f"{name}.gml"], settings={})
        assert isinstance(instance, GVneInstance)
        assert len(instance.servers) == nodes and len(instance.links) == links, name
    speeds = {link.bandwidth for link in instance.links}
    assert speeds == {1.0, 10.0}  # Brain's directions differ
    clos, _ = import_instance(G_VNE, "clos", [REAL / "lingjun" / "topo.csv"], settings={"jobs": 5})
    assert isinstance(clos, GVneInstance)
    assert sum(bool(server.resources) for server in clos.servers) == 847
    assert networkx.is_tree(clos.to_networkx().to_undirected())


def test_the_figure_shows_nodes_rings_and_loads() -> None:
    for instance in (small(2), fat(0), random(0, servers=15, jobs=6), large_tree(0, servers=80, racks=4, jobs=10)):
        solution = greedy(instance).solution
        picture = as_svg(network(instance, solution))
        assert f"{len(solution['rings'])} of {len(instance.jobs)} jobs embedded" in picture
        for name in list(solution["rings"])[:5]:
            assert f"{name}: {len(solution['rings'][name]['workers'])} on " in picture
        assert "beyond capacity" not in picture
        assert as_svg(network(instance, solution)) == picture
        assert "0 of " in as_svg(network(instance, {"rings": {}}))


def cielab(colour: object) -> np.ndarray:
    """L, a, b of a colour under D65."""
    given = np.array(to_rgb(colour))
    linear = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(matrix @ linear / np.array([0.9505, 1, 1.089]))  # dark ends of the scale do not matter here
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_colours_of_jobs_differ_from_each_other_and_from_links() -> None:
    jobs = np.array([cielab(colour) for colour in JOBS])
    others = np.array([cielab(LOAD(share)[:3]) for share in np.linspace(0, 1, 21)] + [cielab(c) for c in ("w", OVER)])
    among = np.linalg.norm(jobs[:, None] - jobs[None], axis=2) + 1000 * np.eye(len(jobs))
    assert among.min() > 25 and np.linalg.norm(jobs[:, None] - others[None], axis=2).min() > 25
    assert np.hypot(jobs[:, 1], jobs[:, 2]).min() > 25  # no greys


def test_the_legend_says_what_its_numbers_are() -> None:
    instance = small(2)
    assert "(workers on servers)" in as_svg(network(instance, greedy(instance).solution))
    many = large_tree(0, servers=80, racks=4, jobs=40)
    assert "(workers on servers, the first 24)" in as_svg(network(many, greedy(many).solution))


def test_the_figure_tells_overloads() -> None:
    instance = GVneInstance.parse(
        {
            "problem": "g-vne",
            "servers": [{"id": "a", "resources": {"gpu": 1}}, {"id": "b", "resources": {"gpu": 1}}],
            "links": [{"from": x, "to": y, "bandwidth": 0.5} for x, y in (("a", "b"), ("b", "a"))],
            "jobs": [{"id": "j", "demand": {"gpu": 1}, "bandwidth": 1.0, "utility": [1.0, 2.0]}],
        }
    )
    ring = {"workers": ["a", "b"], "routes": [["a", "b"], ["b", "a"]]}
    assert "beyond capacity" in as_svg(network(instance, {"rings": {"j": ring}}))
    tree = small(0, shape="tree")
    hosts = [server.id for server in tree.servers if server.resources][:2]
    jump = {"workers": hosts, "routes": [hosts, hosts[::-1]]}  # no link joins two servers
    assert "or no link" in as_svg(network(tree, {"rings": {tree.jobs[0].id: jump}}))


def test_layouts_stay_in_the_unit_square_and_keep_layers() -> None:
    for instance in (small(0, shape="tree"), fat(0), random(0), large_tree(0), tiny(0, servers=2), racks(0)):
        points = layout(instance)
        assert points.shape == (len(instance.servers), 2) and np.isfinite(points).all()
        assert points.min() >= -1e-9 and points.max() <= 1 + 1e-9
        assert len({tuple(point) for point in points.round(6)}) == len(points)
    made = fat(0)
    heights = {server.id: y for server, (_, y) in zip(made.servers, layout(made), strict=True)}
    assert {heights[name] for name in heights if name.startswith("s")} == {0.0}
    assert {heights[name] for name in heights if name.startswith("core")} == {1.0}
    alone = GVneInstance.parse(
        {
            "problem": "g-vne",
            "servers": [{"id": "a", "resources": {"gpu": 1}}],
            "links": [],
            "jobs": [{"id": "j", "demand": {"gpu": 1}, "bandwidth": 1.0, "utility": [1.0]}],
        }
    )
    assert layout(alone).tolist() == [[0.5, 0.5]]
    assert json.dumps(greedy(alone).solution) == '{"rings": {"j": {"workers": ["a"], "routes": []}}}'
