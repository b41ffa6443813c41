"""The row of ddljs: methods, presets, importers."""

from __future__ import annotations

from schedgap.benchmarks.instances.substrate_presets import CLOS_OPTIONS, GML_OPTIONS
from schedgap.catalogue.common import ENGINE_METHODS
from schedgap.catalogue.problem import Importer, Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.ddljs import options as ddljs_options

_GENERATORS = "schedgap.benchmarks.instances.ddljs.random"
_SHAPES = Option(str, "any", "kinds of utility", choices=("any", "concave", "sigmoid"))


def _count(default: int | None, what: str, most: int) -> Option:
    return Option(int, default, what if default else f"{what}; random where not given", minimum=1, maximum=most)


PAPER = {
    "servers": _count(50, "servers", 10_000),
    "racks": Option(int, None, "racks; 2 to 5 where not given", minimum=1, maximum=10_000),
    "jobs": _count(200, "number of jobs", 100_000),
    "horizon": _count(200, "slots", 100_000),
    "arrivals": Option(str, "diurnal", "how jobs arrive", choices=("diurnal", "uniform", "start")),
    "budget": Option(str, "printed", "F counts worker-slots, or iterations", choices=("printed", "iterations")),
    "utilities": Option(str, "sigmoid", "kind of utility", choices=("sigmoid", "sqrt")),
    "steepness": Option(float, 1.0, "lambda_2 is uniform from 0 to this", minimum=0, exclusive=True, maximum=1000),
    "gpu_factor": Option(float, 1.0, "factor on GPUs of every server", minimum=0, exclusive=True, maximum=1000),
    "bandwidth_factor": Option(
        float, 1.0, "factor on bandwidths of all links", minimum=0, exclusive=True, maximum=1000
    ),
}

PRESETS = (
    Preset(
        "tiny",
        "1 to 3 servers, 2 or 3 jobs, 2 to 4 slots: brute force is possible",
        f"{_GENERATORS}:tiny",
        options={
            "servers": _count(None, "servers; 1 to 3", 1000),
            "jobs": _count(None, "number of jobs; 2 or 3", 1000),
            "horizon": _count(None, "slots; 2 to 4", 1000),
            "utilities": _SHAPES,
            "arrivals": Option(bool, True, "jobs arrive over time, or all in slot 1"),
        },
    ),
    Preset(
        "small",
        "4 servers in two racks, 4 jobs, 5 slots, links that hold few rings",
        f"{_GENERATORS}:small",
        options={
            "servers": _count(4, "servers", 1000),
            "jobs": _count(4, "number of jobs", 1000),
            "horizon": _count(5, "slots", 10_000),
            "workers": _count(3, "workers of the largest ring", 1000),
            "utilities": _SHAPES,
        },
    ),
    Preset(
        "paper",
        "section VI: 50 servers in 2 to 5 racks, 200 slots, sigmoid utilities; `jobs` varies in Figure 4",
        f"{_GENERATORS}:paper",
        options=PAPER,
    ),
    Preset(
        "figure-5",
        "section VI with few GPUs and many jobs: `gpu_factor` varies",
        f"{_GENERATORS}:paper",
        settings={"jobs": 300, "gpu_factor": 0.5, "steepness": 0.01},
        options=PAPER,
    ),
    Preset(
        "figure-6",
        "section VI with narrow links: `bandwidth_factor` varies",
        f"{_GENERATORS}:paper",
        settings={"jobs": 300, "bandwidth_factor": 0.05, "steepness": 0.01},
        options=PAPER,
    ),
    Preset(
        "figure-7",
        "a cluster whose slots are solved exactly: `gadget` with one inner method and another",
        f"{_GENERATORS}:paper",
        settings={"servers": 10, "racks": 2, "jobs": 40, "horizon": 50, "bandwidth_factor": 0.1, "utilities": "sqrt"},
        options=PAPER,
    ),
)

_IMPORTERS = "schedgap.benchmarks.importers.ddljs"
_DRAWN = {
    "jobs": _count(50, "number of jobs", 100_000),
    "horizon": _count(100, "slots", 100_000),
    "seed": Option(int, 0, "of what is drawn", minimum=0, maximum=10**9),
}
IMPORTERS = (
    Importer(
        "gml",
        "a graph in GML, such as those of the Internet Topology Zoo; jobs are drawn",
        f"{_IMPORTERS}:import_gml",
        options={**_DRAWN, **GML_OPTIONS},
    ),
    Importer(
        "clos",
        "hosts below three layers of switches (alibaba-lingjun-dataset-2023, topo.csv); jobs are drawn",
        f"{_IMPORTERS}:import_clos",
        options={**_DRAWN, **CLOS_OPTIONS},
    ),
)

_FORMULATION = "schedgap.formulations.ddljs"
_HEURISTICS = "schedgap.heuristics.ddljs"
_CBC, _HIGHS, _CPSAT = ENGINE_METHODS

PROBLEM = Problem(
    id="ddljs",
    title="rings of workers over a horizon, sum of utilities of accumulated work",
    source="paper 004 (GADGET)",
    sense=MAXIMISE,
    objective_name="total utility",
    unit="utility",
    instance=f"{_FORMULATION}.instance:DdljsInstance",
    checker=f"{_FORMULATION}.check:check",
    metrics={"worker_slots": "worker-slots", "embedded_ratio": "embedded"},
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound="schedgap.solvers.exact.ddljs.bound:upper_bound",
    methods=(
        _HIGHS,
        _CPSAT,
        _CBC,
        Method(
            "gadget",
            "greedy over slots, each slot by a method of g-vne",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.gadget:gadget",
            ddljs_options.GADGET,
            "paper 004, Algorithm 1, Theorem 6",
            deadline=True,
        ),
        Method(
            "fifo",
            "first in, first out, a fixed number of workers, not preempted",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:fifo",
            ddljs_options.FIFO,
            "paper 004, section VI",
        ),
        Method(
            "drf",
            "dominant resource fairness, worker by worker",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:drf",
            {},
            "paper 004, section VI",
        ),
        Method(
            "las",
            "least attained service, a fixed number of workers",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:las",
            ddljs_options.LAS,
            "paper 004, section VI",
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.ddljs:worker_slots",
    importers=IMPORTERS,
    suites="schedgap.benchmarks.instances.ddljs.suites:ROWS",
    families="schedgap.benchmarks.instances.ddljs.adversarial:FAMILIES",
)
