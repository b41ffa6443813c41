"""The presets of hadar: names, one line each, and the settings that ``--set`` accepts."""

from __future__ import annotations

from schedgap.benchmarks.descriptors import Preset
from schedgap.heuristics.common.run import Option

_HADAR = "schedgap.benchmarks.generators.hadar"

HADAR_PRESETS = (
    Preset(
        "tiny",
        "2 to 4 jobs on 2 to 4 devices, brute force is possible",
        f"{_HADAR}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 2 to 4 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, None, "devices; 2 to 4 where not given", minimum=1, maximum=1000),
            "horizon": Option(int, None, "slots; 3 or 4 where not given", minimum=2, maximum=10_000),
        },
    ),
    Preset(
        "small",
        "three device types, more work than devices; the defaults are proven in a second, 16 x 20 in a minute",
        f"{_HADAR}:small",
        options={
            "jobs": Option(int, 8, "number of jobs", minimum=1, maximum=10_000),
            "horizon": Option(int, 12, "slots", minimum=2, maximum=10_000),
            "gpus": Option(int, 6, "devices of the cluster", minimum=1, maximum=10_000),
            "load": Option(
                float, 1.3, "device-slots wanted over those there are", minimum=0, exclusive=True, maximum=100
            ),
        },
    ),
    Preset(
        "contended",
        "gangs that fit only by mixing device types",
        f"{_HADAR}:contended",
        options={
            "jobs": Option(int, 6, "number of jobs", minimum=1, maximum=1000),
            "horizon": Option(int, 8, "slots", minimum=2, maximum=10_000),
            "mixed": Option(bool, True, "gangs of 2 to 4 on 2 + 2 devices, not of 1 and 2"),
        },
    ),
    Preset(
        "trace",
        "480 jobs on 60 devices of 15 nodes, 400 rounds of 6 minutes, as in section IV",
        f"{_HADAR}:trace",
        options={
            "jobs": Option(int, 480, "number of jobs", minimum=1, maximum=100_000),
            "nodes": Option(int, 15, "nodes of 4 devices", minimum=1, maximum=10_000),
            "horizon": Option(int, 400, "rounds", minimum=2, maximum=100_000),
            "round_minutes": Option(float, 6.0, "length of a round", minimum=0, exclusive=True, maximum=10_000),
            "hours_scale": Option(float, 1.0, "factor on all GPU-hours", minimum=0, exclusive=True, maximum=100),
            "utility": Option(
                str, "effective-throughput", "kind of utility", choices=("effective-throughput", "constant")
            ),
            "arrivals": Option(str, "start", "all at the start, or over the first half", choices=("start", "spread")),
        },
    ),
    Preset(
        "rounds",
        "one round with many waiting jobs; one node of 4 devices for every 32",
        f"{_HADAR}:rounds",
        options={"jobs": Option(int, 32, "waiting jobs", minimum=1, maximum=100_000)},
    ),
    Preset("motivation", "section II-A's example: three jobs, 2 V100, 3 P100, 1 K80", f"{_HADAR}:motivation"),
    Preset(
        "lowhigh",
        "one pool, jobs worth little first and much later",
        f"{_HADAR}:lowhigh",
        options={
            "gpus": Option(int, None, "devices; 1 to 4 where not given", minimum=1, maximum=1000),
            "horizon": Option(int, None, "slots; 1 to 4 where not given", minimum=1, maximum=10_000),
        },
    ),
    Preset(
        "nodes",
        "nodes of one device, each of its own type: what HadarE forks",
        f"{_HADAR}:nodes",
        options={
            "jobs": Option(int, None, "number of jobs; 1 to 3 where not given", minimum=1, maximum=1000),
            "count": Option(int, None, "nodes; 2 to 5 where not given", minimum=1, maximum=1000),
            "rate": Option(int, 8, "largest speed of a job on a node", minimum=1, maximum=10_000),
        },
    ),
)
