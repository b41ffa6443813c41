"""The row of hadar: methods, presets."""

from __future__ import annotations

from schedgap.catalogue.common import ENGINE_METHODS
from schedgap.catalogue.problem import Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.heuristics.common.run import Option
from schedgap.heuristics.hadar import options as hadar_options

_GENERATORS = "schedgap.benchmarks.instances.hadar.random"

PRESETS = (
    Preset(
        "tiny",
        "2 to 4 jobs on 2 to 4 devices, brute force is possible",
        f"{_GENERATORS}:tiny",
        options={
            "jobs": Option(int, None, "number of jobs; 2 to 4 where not given", minimum=1, maximum=1000),
            "gpus": Option(int, None, "devices; 2 to 4 where not given", minimum=1, maximum=1000),
            "horizon": Option(int, None, "slots; 3 or 4 where not given", minimum=2, maximum=10_000),
        },
    ),
    Preset(
        "small",
        "three device types, more work than devices; the defaults are proven in a second, 16 x 20 in a minute",
        f"{_GENERATORS}:small",
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
        f"{_GENERATORS}:contended",
        options={
            "jobs": Option(int, 6, "number of jobs", minimum=1, maximum=1000),
            "horizon": Option(int, 8, "slots", minimum=2, maximum=10_000),
            "mixed": Option(bool, True, "gangs of 2 to 4 on 2 + 2 devices, not of 1 and 2"),
        },
    ),
    Preset(
        "trace",
        "480 jobs on 60 devices of 15 nodes, 400 rounds of 6 minutes, as in section IV",
        f"{_GENERATORS}:trace",
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
        f"{_GENERATORS}:rounds",
        options={"jobs": Option(int, 32, "waiting jobs", minimum=1, maximum=100_000)},
    ),
    Preset("motivation", "section II-A's example: three jobs, 2 V100, 3 P100, 1 K80", f"{_GENERATORS}:motivation"),
    Preset(
        "lowhigh",
        "one pool, jobs worth little first and much later",
        f"{_GENERATORS}:lowhigh",
        options={
            "gpus": Option(int, None, "devices; 1 to 4 where not given", minimum=1, maximum=1000),
            "horizon": Option(int, None, "slots; 1 to 4 where not given", minimum=1, maximum=10_000),
        },
    ),
    Preset(
        "nodes",
        "nodes of one device, each of its own type: what HadarE forks",
        f"{_GENERATORS}:nodes",
        options={
            "jobs": Option(int, None, "number of jobs; 1 to 3 where not given", minimum=1, maximum=1000),
            "count": Option(int, None, "nodes; 2 to 5 where not given", minimum=1, maximum=1000),
            "rate": Option(int, 8, "largest speed of a job on a node", minimum=1, maximum=10_000),
        },
    ),
)

_FORMULATION = "schedgap.formulations.hadar"
_HEURISTICS = "schedgap.heuristics.hadar"

PROBLEM = Problem(
    id="hadar",
    title="heterogeneous gangs that pause and move between slots, sum of utilities",
    source="paper 002 (Hadar, HadarE)",
    sense=MAXIMISE,
    objective_name="total worth",
    unit="utility",
    instance=f"{_FORMULATION}.instance:HadarInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound="schedgap.solvers.exact.hadar.bound:upper_bound",
    metrics={
        "jobs_finished": "finished",
        "mean_jct": "mean JCT",
        "median_jct": "median JCT",
        "makespan": "makespan",
        "utilisation": "utilisation",
    },
    warm_up="schedgap.solvers.exact.hadar.bound:warm_up",
    methods=(
        Method(
            "colgen",
            "column generation over whole-horizon schedules, branch and price",
            Kind.EXACT,
            "schedgap.solvers.exact.hadar.colgen:solve_colgen",
            source="paper 002, P2, P3, eqs. (4) and (8)",
        ),
        *ENGINE_METHODS,
        Method(
            "hadar-online",
            "primal-dual admission on arrival, exponential prices",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.online:hadar_online",
            hadar_options.ONLINE,
            "paper 002, eqs. (4) to (8), Theorem 2",
            deadline=True,
        ),
        Method(
            "hadar-rounds",
            "round by round, by payoff",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.rounds:hadar_rounds",
            hadar_options.ROUNDS,
            "paper 002, Algorithms 1 and 2",
            deadline=True,
        ),
        Method(
            "hadare",
            "jobs forked into copies on separate nodes",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.hadare:hadare",
            hadar_options.HADARE,
            "paper 002, section V",
            outside_model=True,
            checker=f"{_FORMULATION}.check_forked:check_forked",
            solution_key="rounds",
            deadline=True,
        ),
        Method(
            "gavel",
            "time fractions from a linear program, rounds by priority",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.gavel:gavel",
            hadar_options.GAVEL,
            "paper 002, section II-A",
            deadline=True,
        ),
        Method(
            "tiresias",
            "two-queue least attained service",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:tiresias",
            hadar_options.TIRESIAS,
            "paper 002, section IV",
            deadline=True,
        ),
        Method(
            "yarn-cs",
            "first in, first out, not preempted",
            Kind.HEURISTIC,
            f"{_HEURISTICS}.baselines:yarn_cs",
            hadar_options.YARN_CS,
            "paper 002, section IV",
            deadline=True,
        ),
    ),
    presets=PRESETS,
    guarantees=f"{_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.hadar:devices",
    suites="schedgap.benchmarks.instances.hadar.suites:ROWS",
    families="schedgap.benchmarks.instances.hadar.adversarial:FAMILIES",
)
