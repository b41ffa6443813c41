"""The row of rar-ddls: methods, presets, importers."""

from __future__ import annotations

from schedgap.catalogue.common import ENGINE_METHODS, HORIZON, SLACK
from schedgap.catalogue.problem import Importer, Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.rar_ddls import options as rar_ddls_options

MEASURED_OPTIONS = {
    "worker": Option(str, "v100", "worker type whose measured rates are taken"),
    "slot_length": Option(float, 60.0, "seconds per slot", minimum=0, exclusive=True, maximum=1e6),
    "inter_bandwidth": Option(float, 1.25, "GB/s between servers (10 Gbit/s)", minimum=0, exclusive=True, maximum=1e6),
    "intra_bandwidth": Option(float, 62.5, "GB/s within a server", minimum=0, exclusive=True, maximum=1e6),
    "reduce_speed": Option(float, 500.0, "GB/s that a GPU adds up", minimum=0, exclusive=True, maximum=1e6),
    "xi_1": Option(
        float, 1.0, "contention_scale; 1: rings transmit all the time", minimum=0, exclusive=True, maximum=1
    ),
    "alpha": Option(float, 0.2, "contention_penalty", minimum=0, maximum=1e6),
    "xi_2": Option(float, 0.0, "server_overhead, seconds per iteration and server used", minimum=0, maximum=1e6),
}
"""What measured rates do not tell: options of every preset and importer of rar-ddls that uses them."""

_GENERATORS = "schedgap.benchmarks.instances.rar_ddls.random"
_PAPER = {
    "jobs": Option(int, 160, "number of jobs, in the paper's proportions", minimum=1, maximum=100_000),
    "servers": Option(int, 20, "number of servers", minimum=1, maximum=100_000),
    "horizon": Option(int, 1200, "slots, raised where needed to be certainly feasible", minimum=1, maximum=10**9),
    "xi_1": Option(float, 0.5, "contention_scale", minimum=0, exclusive=True, maximum=1),
    "alpha": Option(float, 0.2, "contention_penalty", minimum=0, maximum=1e6),
    "xi_2": Option(float, 0.0005, "server_overhead, slots per iteration and server used", minimum=0, maximum=0.005),
    "extra": Option(float, 0.15, "largest share of the exchange in an iteration's time", minimum=0, maximum=0.5),
}

PRESETS = (
    Preset(
        "tiny",
        "3 to 4 jobs, brute force is possible",
        f"{_GENERATORS}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 3 or 4 where not given", minimum=1, maximum=1000),
            "servers": Option(int, None, "number of servers; 2 or 3 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, 3, "most GPUs of a server", minimum=1, maximum=1000),
            "slots": Option(int, 3, "longest duration of a job alone", minimum=1, maximum=10_000),
            "slack": SLACK,
            "horizon": HORIZON,
        },
    ),
    Preset(
        "contended",
        "tiny, and rings are forced to cross and contend",
        f"{_GENERATORS}:contended",
        options={
            "jobs": Option(int, None, "rings that must cross; 2 or 3 where not given", minimum=1, maximum=1000),
            "singles": Option(int, None, "further jobs; 0 to 2 where not given", minimum=0, maximum=1000),
            "servers": Option(int, 3, "number of servers", minimum=2, maximum=1000),
            "gpus": Option(int, 2, "GPUs of a server; rings have one more", minimum=1, maximum=1000),
            "slots": Option(int, 2, "longest duration of a job alone", minimum=1, maximum=10_000),
            "slack": SLACK,
            "horizon": HORIZON,
        },
    ),
    Preset(
        "small",
        "measured job rates, solved to optimality in seconds",
        f"{_GENERATORS}:small",
        options={
            "jobs": Option(int, 8, "number of jobs", minimum=1, maximum=10_000),
            "servers": Option(int, 4, "number of servers", minimum=1, maximum=10_000),
            "gpus": Option(int, 2, "GPUs of a server", minimum=1, maximum=1000),
            "slots": Option(int, 8, "longest duration of a job alone", minimum=1, maximum=10_000),
            **MEASURED_OPTIONS,
            "slack": SLACK,
            "horizon": HORIZON,
        },
    ),
    Preset("paper", "160 jobs on 20 servers, as in section 7", f"{_GENERATORS}:paper", options=_PAPER),
    Preset(
        "large",
        "10,000 jobs on 10,000 GPUs",
        f"{_GENERATORS}:large",
        options={
            **{key: option for key, option in _PAPER.items() if key != "servers"},
            "jobs": Option(int, 10_000, "number of jobs, in the paper's proportions", minimum=1, maximum=100_000),
            "gpus": Option(int, 10_000, "GPUs of the cluster", minimum=32, maximum=1_000_000),
        },
    ),
)

IMPORTERS = (
    Importer(
        "gavel",
        "a job trace of stanford-futuredata/gavel with its measured rates",
        "schedgap.benchmarks.importers.gavel:import_rar_ddls",
        throughputs=True,
        options={
            "jobs": Option(int, None, "how many jobs to keep; all where not given", minimum=1, maximum=10**6),
            "first": Option(
                str, "rings", "kept first: jobs of more than one GPU, or by line", choices=("rings", "trace")
            ),
            "steps_scale": Option(float, 1.0, "factor on the steps, rounded up", minimum=0, exclusive=True, maximum=1),
            "servers": Option(
                int, None, "where not given: enough for half of the GPUs asked for", minimum=1, maximum=10**6
            ),
            "gpus": Option(int, 4, "GPUs of a server", minimum=1, maximum=10**6),
            **MEASURED_OPTIONS,
            "slack": SLACK,
            "horizon": HORIZON,
        },
    ),
)

_FORMULATION = "schedgap.formulations.rar_ddls"
_HEURISTICS = "schedgap.heuristics.rar_ddls"

PROBLEM = Problem(
    id="rar-ddls",
    title="ring-all-reduce jobs under link contention, makespan",
    source="paper 000 (SJF-BCO)",
    sense=MINIMISE,
    objective_name="makespan",
    unit="slots",
    instance=f"{_FORMULATION}.instance:RarDdlsInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    quick=f"{_FORMULATION}.ilp:quick_solution",
    lower_bound=f"{_FORMULATION}.bounds:lower_bound",
    methods=(
        Method(
            "cp",
            "staged CP-SAT: relaxation, avoidance, time-indexed",
            Kind.EXACT,
            "schedgap.solvers.exact.rar_ddls.cp:solve_cp",
        ),
        *ENGINE_METHODS,
        Method(
            "sjf-bco",
            "smallest job first with balanced contention and overhead",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.sjf_bco:sjf_bco",
            rar_ddls_options.SJF_BCO,
            "paper 000, Algorithms 1 to 3",
            deadline=True,
        ),
        Method(
            "ff",
            "first fit within theta",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:ff",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
            deadline=True,
        ),
        Method(
            "ls",
            "list scheduling, least loaded GPUs",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:ls",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
            deadline=True,
        ),
        Method(
            "rand",
            "random servers and GPUs, theta = T",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:rand",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
        ),
        Method(
            "lpt-colocate",
            "longest first, backfilling, best-fit colocation",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.lpt_colocate:lpt_colocate",
            deadline=True,
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.rar_ddls:gantt",
    importers=IMPORTERS,
    suites="schedgap.benchmarks.instances.rar_ddls.suites:ROWS",
    families="schedgap.benchmarks.instances.rar_ddls.adversarial:FAMILIES",
)
