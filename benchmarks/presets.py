"""The presets and importers of every problem: names, one line each, and the settings that ``--set`` accepts."""

from __future__ import annotations

from schedgap.benchmarks.descriptors import Importer, Preset
from schedgap.heuristics.common.run import Option

_SLACK = Option(float, 1.25, "horizon over a certified feasible makespan", minimum=1, maximum=100)
_HORIZON = Option(int, None, "slots; an instance may then be infeasible", minimum=1, maximum=10**9)

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

_RAR = "schedgap.benchmarks.generators.rar_ddls"
_PAPER = {
    "jobs": Option(int, 160, "number of jobs, in the paper's proportions", minimum=1, maximum=100_000),
    "servers": Option(int, 20, "number of servers", minimum=1, maximum=100_000),
    "horizon": Option(int, 1200, "slots, raised where needed to be certainly feasible", minimum=1, maximum=10**9),
    "xi_1": Option(float, 0.5, "contention_scale", minimum=0, exclusive=True, maximum=1),
    "alpha": Option(float, 0.2, "contention_penalty", minimum=0, maximum=1e6),
    "xi_2": Option(float, 0.0005, "server_overhead, slots per iteration and server used", minimum=0, maximum=0.005),
    "extra": Option(float, 0.15, "largest share of the exchange in an iteration's time", minimum=0, maximum=0.5),
}

RAR_DDLS_PRESETS = (
    Preset(
        "tiny",
        "3 to 4 jobs, brute force is possible",
        f"{_RAR}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 3 or 4 where not given", minimum=1, maximum=1000),
            "servers": Option(int, None, "number of servers; 2 or 3 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, 3, "most GPUs of a server", minimum=1, maximum=1000),
            "slots": Option(int, 3, "longest duration of a job alone", minimum=1, maximum=10_000),
            "slack": _SLACK,
            "horizon": _HORIZON,
        },
    ),
    Preset(
        "contended",
        "tiny, and rings are forced to cross and contend",
        f"{_RAR}:contended",
        options={
            "jobs": Option(int, None, "rings that must cross; 2 or 3 where not given", minimum=1, maximum=1000),
            "singles": Option(int, None, "further jobs; 0 to 2 where not given", minimum=0, maximum=1000),
            "servers": Option(int, 3, "number of servers", minimum=2, maximum=1000),
            "gpus": Option(int, 2, "GPUs of a server; rings have one more", minimum=1, maximum=1000),
            "slots": Option(int, 2, "longest duration of a job alone", minimum=1, maximum=10_000),
            "slack": _SLACK,
            "horizon": _HORIZON,
        },
    ),
    Preset(
        "small",
        "measured job rates, solved to optimality in seconds",
        f"{_RAR}:small",
        options={
            "jobs": Option(int, 8, "number of jobs", minimum=1, maximum=10_000),
            "servers": Option(int, 4, "number of servers", minimum=1, maximum=10_000),
            "gpus": Option(int, 2, "GPUs of a server", minimum=1, maximum=1000),
            "slots": Option(int, 8, "longest duration of a job alone", minimum=1, maximum=10_000),
            **MEASURED_OPTIONS,
            "slack": _SLACK,
            "horizon": _HORIZON,
        },
    ),
    Preset("paper", "160 jobs on 20 servers, as in section 7", f"{_RAR}:paper", options=_PAPER),
    Preset(
        "large",
        "10,000 jobs on 10,000 GPUs",
        f"{_RAR}:large",
        options={
            **{key: option for key, option in _PAPER.items() if key != "servers"},
            "jobs": Option(int, 10_000, "number of jobs, in the paper's proportions", minimum=1, maximum=100_000),
            "gpus": Option(int, 10_000, "GPUs of the cluster", minimum=32, maximum=1_000_000),
        },
    ),
)

RAR_DDLS_IMPORTERS = (
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
            "slack": _SLACK,
            "horizon": _HORIZON,
        },
    ),
)

_SHARING = "schedgap.benchmarks.generators.gpu_sharing"
_SHARING_PAPER = "schedgap.benchmarks.generators.gpu_sharing_paper"
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

GPU_SHARING_IMPORTERS = (
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

GPU_SHARING_PRESETS = (
    Preset(
        "tiny",
        "3 or 4 jobs on 2 or 3 GPUs, brute force is possible",
        f"{_SHARING}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 3 or 4 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, None, "number of GPUs; 2 or 3 where not given", minimum=1, maximum=1000),
            "slots": Option(int, 4, "longest duration of a job alone", minimum=2, maximum=10_000),
            "arrivals": Option(int, 3, "last arrival slot", minimum=1, maximum=10**6),
            "horizon": _HORIZON,
            "cap": Option(int, None, "jobs per GPU; mostly 2 where not given", minimum=1, maximum=2),
            "spread": Option(float, 0.5, "interference is drawn from 1 to 1 + 2 spread", minimum=0, maximum=1000),
        },
    ),
    Preset(
        "contended",
        "gangs of up to the whole cluster, all there at once, strong interference, tight memory",
        f"{_SHARING}:contended",
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
        f"{_SHARING}:small",
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
        f"{_SHARING_PAPER}:physical",
        options={
            "jobs": Option(int, 30, "number of jobs", minimum=1, maximum=2000),
            "servers": Option(int, 4, "servers of 4 GPUs", minimum=4, maximum=10_000),
            "minutes": Option(float, 20.0, "minutes of arrivals", minimum=0, exclusive=True, maximum=1e5),
            "xi": _XI,
        },
    ),
    Preset("table-iii", "240 jobs on 16 x 4 GPUs, after Table III", f"{_SHARING_PAPER}:simulated", options=_SIMULATED),
    Preset(
        "table-iv",
        "480 jobs on 16 x 4 GPUs, after Table IV",
        f"{_SHARING_PAPER}:simulated",
        {"jobs": 480},
        {**_SIMULATED, "jobs": Option(int, 480, "number of jobs", minimum=1, maximum=2000)},
    ),
)
