"""The row of g-vne: methods, presets, importers."""

from __future__ import annotations

from schedgap.benchmarks.instances.substrate_presets import CLOS_OPTIONS, GML_OPTIONS
from schedgap.catalogue.common import ENGINE_METHODS
from schedgap.catalogue.problem import Importer, Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.g_vne import options as g_vne_options

_GENERATORS = "schedgap.benchmarks.instances.g_vne.random"
_SHAPE = Option(str, None, "of the network; either where not given", choices=("tree", "general"))
_MEMORY = Option(bool, False, "a second resource")
_TIGHTNESS = Option(float, 1.0, "how much narrower all links are", minimum=0.001, maximum=1e6)


def _servers(default: int | None, most: int = 100_000) -> Option:
    return Option(int, default, "servers" if default else "servers; random where not given", minimum=1, maximum=most)


def _jobs(default: int | None) -> Option:
    return Option(int, default, "jobs" if default else "jobs; random where not given", minimum=1, maximum=100_000)


def _workers(default: int) -> Option:
    return Option(int, default, "workers of the largest ring", minimum=1, maximum=1000)


PRESETS = (
    Preset(
        "tiny",
        "2 to 4 servers and jobs on tight links, brute force is possible",
        f"{_GENERATORS}:tiny",
        options={
            "shape": _SHAPE,
            "servers": _servers(None, 1000),
            "jobs": _jobs(None),
            "workers": _workers(3),
            "memory": Option(bool, None, "a second resource; in every third instance where not given"),
        },
    ),
    Preset(
        "small",
        "6 servers and 5 jobs, a tree or a graph",
        f"{_GENERATORS}:small",
        options={
            "shape": _SHAPE,
            "servers": _servers(6, 10_000),
            "jobs": _jobs(5),
            "workers": _workers(4),
            "memory": _MEMORY,
            "tightness": _TIGHTNESS,
        },
    ),
    Preset(
        "racks",
        "one slot of section VI: 50 servers in 2 to 5 racks, sigmoid utilities",
        f"{_GENERATORS}:racks",
        options={
            "servers": _servers(50),
            "racks": Option(int, None, "racks; 2 to 5 where not given", minimum=1, maximum=10_000),
            "jobs": _jobs(100),
            "tightness": _TIGHTNESS,
        },
    ),
    Preset(
        "fat-tree",
        "a fat tree of switches with 4 ports: 16 servers",
        f"{_GENERATORS}:fat",
        options={
            "ports": Option(int, 4, "ports of a switch", choices=(2, 4, 6, 8, 10, 12, 14, 16)),
            "jobs": _jobs(12),
            "workers": _workers(5),
            "memory": _MEMORY,
            "tightness": _TIGHTNESS,
        },
    ),
    Preset(
        "random",
        "a random graph of 50 servers that relay",
        f"{_GENERATORS}:random",
        options={
            "servers": _servers(50, 2000),
            "switches": Option(int, 0, "nodes without resources", minimum=0, maximum=2000),
            "jobs": _jobs(20),
            "degree": Option(float, 4.0, "links at a node, on average", minimum=1, maximum=1000),
            "workers": _workers(5),
            "memory": _MEMORY,
            "tightness": _TIGHTNESS,
        },
    ),
    Preset(
        "large-tree",
        "400 servers in 20 racks, 200 jobs",
        f"{_GENERATORS}:large_tree",
        options={
            "servers": _servers(400),
            "racks": Option(int, 20, "racks", minimum=1, maximum=10_000),
            "jobs": _jobs(200),
            "workers": _workers(5),
            "memory": Option(bool, True, "a second resource"),
            "tightness": _TIGHTNESS,
        },
    ),
)

_DRAWN = {"seed": Option(int, 0, "of what is drawn", minimum=0, maximum=10**9)}
_IMPORTERS = "schedgap.benchmarks.importers.g_vne"
IMPORTERS = (
    Importer(
        "gml",
        "a graph in GML, such as those of the Internet Topology Zoo; jobs are drawn",
        f"{_IMPORTERS}:import_gml",
        options={"jobs": _jobs(20), "workers": _workers(5), **_DRAWN, **GML_OPTIONS},
    ),
    Importer(
        "clos",
        "hosts below three layers of switches (alibaba-lingjun-dataset-2023, topo.csv); jobs are drawn",
        f"{_IMPORTERS}:import_clos",
        options={"jobs": _jobs(200), "workers": _workers(16), **_DRAWN, **CLOS_OPTIONS},
    ),
)

_FORMULATION = "schedgap.formulations.g_vne"
_HEURISTICS = "schedgap.heuristics.g_vne"

PROBLEM = Problem(
    id="g-vne",
    title="rings of workers embedded into a network, sum of utilities",
    source="paper 004 (GADGET)",
    sense=MAXIMISE,
    objective_name="total utility",
    unit="utility",
    instance=f"{_FORMULATION}.instance:GVneInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound="schedgap.solvers.exact.g_vne.bound:upper_bound",
    methods=(
        Method(
            "colgen",
            "column generation over rings, integer master, branch and price",
            Kind.EXACT,
            "schedgap.solvers.exact.g_vne.colgen:solve_colgen",
            {
                "root_tolerance": Option(
                    float,
                    1e-9,
                    "relative difference of bound and value at which the root's columns suffice",
                    minimum=0,
                    maximum=0.1,
                ),
            },
        ),
        *ENGINE_METHODS,
        Method(
            "greedy",
            "most valuable rings first, each where a cycle can be closed",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.greedy:greedy",
            g_vne_options.GREEDY,
        ),
        Method(
            "lp-rs-mde",
            "ring sizes and weighted rings from linear programs, randomized rounding",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.lp_rs_mde:lp_rs_mde",
            g_vne_options.LP_RS_MDE,
            "paper 004, Algorithm 2",
            deadline=True,
            checker=f"{_FORMULATION}.check_loads:check_loads",
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.g_vne:network",
    importers=IMPORTERS,
    suites="schedgap.benchmarks.instances.g_vne.suites:ROWS",
    families="schedgap.benchmarks.instances.g_vne.adversarial:FAMILIES",
)
