"""The row of ddl-cluster: methods, presets."""

from __future__ import annotations

from schedgap.catalogue.common import ENGINE_METHODS
from schedgap.catalogue.problem import Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.ddl_cluster import options as ddl_cluster_options

_FORMULATION = "schedgap.formulations.ddl_cluster"
_POLICIES = "schedgap.heuristics.ddl_cluster"

_GENERATORS = "schedgap.benchmarks.instances.ddl_cluster.random"


def _workload(jobs: int, servers: int) -> dict[str, Option]:
    """The options of the paper's workload, with the defaults of one preset."""
    return {
        "jobs": Option(int, jobs, "number of jobs, in the paper's proportions of gang sizes", minimum=1, maximum=5000),
        "servers": Option(int, servers, "number of servers", minimum=1, maximum=10_000),
        "gpus": Option(int, 4, "GPUs per server", minimum=1, maximum=1000),
        "seconds": Option(float, 1200.0, "seconds of arrivals", minimum=1, maximum=1e9),
        "fewest": Option(int, 1000, "fewest iterations of a job", minimum=1, maximum=10**9),
        "most": Option(int, 6000, "most iterations of a job", minimum=1, maximum=10**9),
    }


PRESETS = (
    Preset(
        "tiny",
        "2 or 3 placed jobs of 1 or 2 GPUs, one or two iterations in whole seconds",
        f"{_GENERATORS}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 2 or 3 where not given", minimum=1, maximum=1000),
            "servers": Option(int, 2, "servers of 2 GPUs", minimum=1, maximum=1000),
            "iterations": Option(int, 2, "most iterations of a job", minimum=1, maximum=10**6),
        },
    ),
    Preset(
        "small",
        "12 jobs of 1 to 4 GPUs on 4 x 2 GPUs, the models of Table III, up to 60 iterations",
        f"{_GENERATORS}:small",
        options={
            "jobs": Option(int, 12, "number of jobs", minimum=1, maximum=5000),
            "servers": Option(int, 4, "number of servers", minimum=1, maximum=10_000),
            "gpus": Option(int, 2, "GPUs per server", minimum=1, maximum=1000),
            "iterations": Option(int, 60, "most iterations of a job", minimum=1, maximum=10**9),
            "seconds": Option(float, 4.0, "seconds of arrivals", minimum=0, maximum=1e9),
            "memory": Option(float, 10_000.0, "MB of a GPU", minimum=4527, maximum=1e12),
        },
    ),
    Preset(
        "paper",
        "160 jobs on 16 x 4 V100, arrivals over 1,200 s (paper 001, section V-A)",
        f"{_GENERATORS}:paper",
        options=_workload(160, 16),
    ),
    Preset(
        "large",
        "1,000 jobs in the same proportions on 128 x 4 V100",
        f"{_GENERATORS}:paper",
        {"jobs": 1000, "servers": 128},
        _workload(1000, 128),
    ),
)

PROBLEM = Problem(
    id="ddl-cluster",
    title="training jobs of forward, backward and all-reduce tasks whose all-reduces share the servers' links",
    source="paper 001 (LWF-kappa, Ada-SRSF)",
    sense=MINIMISE,
    objective_name="mean JCT",
    unit="seconds",
    instance=f"{_FORMULATION}.instance:DdlClusterInstance",
    checker=f"{_FORMULATION}.check:check",
    metrics={
        "jct median": "median JCT",
        "jct 95th": "95th percentile JCT",
        "makespan": "makespan",
        "utilisation": "GPU utilisation",
    },
    model=f"{_FORMULATION}.job_shop:build_model",
    model_size=f"{_FORMULATION}.job_shop:model_nonzeros",
    lower_bound=f"{_FORMULATION}.bounds:lower_bound",
    quick=f"{_FORMULATION}.job_shop:quick",
    methods=(
        Method(
            "cp",
            "CP-SAT on a fine time grid with a certified bound, schedule exact; placement given",
            Kind.EXACT,
            "schedgap.solvers.exact.ddl_cluster.methods:solve_cp",
        ),
        Method(
            "job-shop",
            "CP-SAT on the restriction to one all-reduce per server at a time; placement given",
            Kind.EXACT,
            "schedgap.solvers.exact.ddl_cluster.methods:solve_job_shop",
        ),
        *ENGINE_METHODS,
        Method(
            "ada-srsf",
            "SRSF, AdaDUAL decides on a second all-reduce per server",
            Kind.HEURISTIC,
            f"{_POLICIES}.policies:ada_srsf",
            ddl_cluster_options.POLICY,
            "paper 001, Algorithms 1 to 3",
            deadline=True,
        ),
        *(
            Method(
                f"srsf-{n}",
                f"SRSF, up to {n} all-reduce{'s' if n > 1 else ''} per server",
                Kind.HEURISTIC,
                f"{_POLICIES}.policies:srsf_{n}",
                ddl_cluster_options.POLICY,
                "paper 001, section V-A",
                deadline=True,
            )
            for n in (1, 2, 3)
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_POLICIES}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.ddl_cluster:gantt",
    suites="schedgap.benchmarks.instances.ddl_cluster.suites:ROWS",
)
