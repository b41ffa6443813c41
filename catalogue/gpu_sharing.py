"""The row of gpu-sharing: methods, presets, importers."""

from __future__ import annotations

from schedgap.catalogue.common import ENGINE_METHODS, HORIZON
from schedgap.catalogue.problem import Importer, Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.gpu_sharing import options as gpu_sharing_options

_GENERATORS = "schedgap.benchmarks.instances.gpu_sharing.random"
_PAPER = "schedgap.benchmarks.instances.gpu_sharing.paper"
_XI = Option(
    float, None, "interference of every pair; a random table over the tasks where not given", minimum=1, maximum=1000
)
_SIMULATED = {
    "jobs": Option(int, 240, "number of jobs", minimum=1, maximum=2000),
    "servers": Option(int, 16, "servers of 4 GPUs", minimum=4, maximum=10_000),
    "hours": Option(float, 12.0, "hours of arrivals", minimum=0, exclusive=True, maximum=1e4),
    "xi": _XI,
    "slot_length": Option(float, 10.0, "seconds per slot", minimum=0, exclusive=True, maximum=1e6),
}

IMPORTERS = (
    Importer(
        "pollux",
        "a workload of the Pollux artifact (petuum/adaptdl, osdi21-artifact) with its measured iteration times",
        "schedgap.benchmarks.importers.pollux_workload:import_gpu_sharing",
        options={
            "jobs": Option(int, None, "how many jobs to keep, the first ones; all where not given", minimum=1),
            "servers": Option(int, 16, "servers of 4 GPUs", minimum=1, maximum=10_000),
            "seed": Option(int, 0, "of the durations, which the file does not have", minimum=0, maximum=10**9),
            "xi": _XI,
            "slot_length": Option(float, 10.0, "seconds per slot", minimum=0, exclusive=True, maximum=1e6),
        },
    ),
)

PRESETS = (
    Preset(
        "tiny",
        "3 or 4 jobs on 2 or 3 GPUs, brute force is possible",
        f"{_GENERATORS}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 3 or 4 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, None, "number of GPUs; 2 or 3 where not given", minimum=1, maximum=1000),
            "slots": Option(int, 4, "longest duration of a job alone", minimum=2, maximum=10_000),
            "arrivals": Option(int, 3, "last arrival slot", minimum=1, maximum=10**6),
            "horizon": HORIZON,
            "cap": Option(int, None, "jobs per GPU; mostly 2 where not given", minimum=1, maximum=2),
            "spread": Option(float, 0.5, "interference is drawn from 1 to 1 + 2 spread", minimum=0, maximum=1000),
        },
    ),
    Preset(
        "contended",
        "gangs of up to the whole cluster, all there at once, strong interference, tight memory",
        f"{_GENERATORS}:contended",
        options={
            "jobs": Option(int, 4, "number of jobs", minimum=1, maximum=1000),
            "gpus": Option(int, 2, "number of GPUs", minimum=1, maximum=1000),
            "slots": Option(int, 4, "longest duration of a job alone", minimum=2, maximum=10_000),
            "horizon": Option(int, 20, "slots", minimum=1, maximum=10**9),
        },
    ),
    Preset(
        "small",
        "16 jobs on 8 GPUs within 48 slots, meant to be proven by cp",
        f"{_GENERATORS}:small",
        options={
            "jobs": Option(int, 16, "number of jobs", minimum=1, maximum=2000),
            "gpus": Option(int, 8, "number of GPUs", minimum=1, maximum=100_000),
            "horizon": Option(int, 48, "slots", minimum=1, maximum=10**9),
            "slots": Option(int, 5, "longest duration of a job alone", minimum=2, maximum=10_000),
            "arrivals": Option(int, 16, "last arrival slot", minimum=1, maximum=10**6),
            "gang": Option(int, 4, "most GPUs of a job", minimum=1, maximum=100_000),
            "spread": Option(float, 0.25, "interference is drawn from 1 to 1 + 2 spread", minimum=0, maximum=1000),
        },
    ),
    Preset(
        "table-ii",
        "30 jobs on 4 x 4 GPUs, after Table II",
        f"{_PAPER}:physical",
        options={
            "jobs": Option(int, 30, "number of jobs", minimum=1, maximum=2000),
            "servers": Option(int, 4, "servers of 4 GPUs", minimum=4, maximum=10_000),
            "minutes": Option(float, 20.0, "minutes of arrivals", minimum=0, exclusive=True, maximum=1e5),
            "xi": _XI,
        },
    ),
    Preset("table-iii", "240 jobs on 16 x 4 GPUs, after Table III", f"{_PAPER}:simulated", options=_SIMULATED),
    Preset(
        "table-iv",
        "480 jobs on 16 x 4 GPUs, after Table IV",
        f"{_PAPER}:simulated",
        {"jobs": 480},
        {**_SIMULATED, "jobs": Option(int, 480, "number of jobs", minimum=1, maximum=2000)},
    ),
)

_FORMULATION = "schedgap.formulations.gpu_sharing"
_POLICIES = "schedgap.heuristics.gpu_sharing"

PROBLEM = Problem(
    id="gpu-sharing",
    title="jobs that share GPUs in pairs, mean job completion time",
    source="paper 003 (SJF-BSBF)",
    sense=MINIMISE,
    objective_name="mean JCT",
    unit="slots",
    instance=f"{_FORMULATION}.instance:GpuSharingInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound=f"{_FORMULATION}.bounds:lower_bound",
    metrics={
        "makespan": "makespan",
        "jct large": "JCT large",
        "jct small": "JCT small",
        "queuing all": "queuing",
        "queuing large": "queuing large",
        "queuing small": "queuing small",
    },
    methods=(
        Method(
            "cp",
            "local search, column LP, CP-SAT with overlap integers",
            Kind.EXACT,
            "schedgap.solvers.exact.gpu_sharing.cp:solve_cp",
        ),
        *ENGINE_METHODS,
        Method(
            "sjf-bsbf",
            "shortest job first with best sharing benefit first",
            Kind.HEURISTIC,
            f"{_POLICIES}.sharing:sjf_bsbf",
            source="paper 003, Algorithms 1 and 2",
            deadline=True,
        ),
        Method(
            "sjf-bsbf+",
            "sjf-bsbf whose alternative is the first start on free GPUs",
            Kind.HEURISTIC,
            f"{_POLICIES}.sharing:sjf_bsbf_plus",
            deadline=True,
        ),
        Method(
            "sjf-ffs",
            "shortest job first with first-fit sharing",
            Kind.HEURISTIC,
            f"{_POLICIES}.sharing:sjf_ffs",
            source="paper 003, section VI",
            deadline=True,
        ),
        Method(
            "sjf",
            "shortest job first, one job per GPU",
            Kind.HEURISTIC,
            f"{_POLICIES}.exclusive:sjf",
            gpu_sharing_options.SJF,
            "paper 003, section VI",
            deadline=True,
        ),
        Method(
            "fifo",
            "first in first out, one job per GPU",
            Kind.HEURISTIC,
            f"{_POLICIES}.exclusive:fifo",
            gpu_sharing_options.FIFO,
            "paper 003, section VI",
            deadline=True,
        ),
        Method(
            "tiresias",
            "two queues by attained service, preemptive",
            Kind.HEURISTIC,
            f"{_POLICIES}.preemptive:tiresias",
            gpu_sharing_options.TIRESIAS,
            "paper 003, section VI",
            outside_model=True,
            checker=f"{_FORMULATION}.elastic:check_elastic",
            solution_key="segments",
            deadline=True,
        ),
        Method(
            "pollux",
            "elastic goodput policy after Pollux",
            Kind.HEURISTIC,
            f"{_POLICIES}.preemptive:pollux",
            gpu_sharing_options.POLLUX,
            "paper 003, section VI",
            outside_model=True,
            checker=f"{_FORMULATION}.elastic:check_elastic",
            solution_key="segments",
            deadline=True,
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_POLICIES}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.gpu_sharing:gantt",
    importers=IMPORTERS,
    suites="schedgap.benchmarks.instances.gpu_sharing.suites:ROWS",
)
