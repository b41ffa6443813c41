"""The row of comm-contention: methods, presets."""

from __future__ import annotations

from schedgap.catalogue.common import ENGINE_METHODS
from schedgap.catalogue.problem import Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.heuristics.common.run import Option

_GENERATORS = "schedgap.benchmarks.instances.comm_contention.random"
_TASKS = Option(int, 8, "number of tasks", minimum=1, maximum=100_000)

PRESETS = (
    Preset(
        "tiny",
        "2 to 4 tasks, every order of events can be tried",
        f"{_GENERATORS}:tiny",
        options={
            "tasks": Option(int, None, "number of tasks; 2 to 4 where not given", minimum=1, maximum=1000),
            "latency": Option(float, None, "seconds; 0 or 0.5 where not given", minimum=0, maximum=1e6),
        },
    ),
    Preset(
        "small",
        "8 tasks of 1 to 40 units, for proofs",
        f"{_GENERATORS}:small",
        options={
            "tasks": _TASKS,
            "load": Option(float, 0.5, "last release over the time of all, one by one", minimum=0, maximum=1000),
            "eta": Option(float, None, "contention penalty at b = 1; random where not given", minimum=0, maximum=1e6),
        },
    ),
    Preset(
        "bursts",
        "60 messages of Table III in 6 bursts on the paper's link",
        f"{_GENERATORS}:bursts",
        options={
            "tasks": Option(int, 60, "number of messages", minimum=1, maximum=100_000),
            "bursts": Option(int, 6, "number of bursts", minimum=1, maximum=10_000),
            "gap": Option(float, 0.8, "mean time between bursts over that of a burst", minimum=0, maximum=1000),
        },
    ),
    Preset(
        "adadual-trap",
        "one large, one middling and many tiny tasks: AdaDUAL's ratio grows with their number",
        f"{_GENERATORS}:adadual_trap",
        options={"tasks": Option(int, 20, "number of tasks", minimum=3, maximum=10_000)},
    ),
    Preset(
        "newcomer",
        "tasks that are there at 0 and one smaller one that comes later",
        f"{_GENERATORS}:newcomer",
        options={"running": Option(int, 3, "tasks at 0", minimum=1, maximum=1000)},
    ),
)

_FORMULATION = "schedgap.formulations.comm_contention"
_POLICIES = "schedgap.heuristics.comm_contention"


def _policy(name: str, title: str, function: str, source: str) -> Method:
    return Method(name, title, Kind.HEURISTIC, f"{_POLICIES}.policies:{function}", source=source)


PROBLEM = Problem(
    id="comm-contention",
    title="transfers that slow each other down on one link, mean flow time",
    source="paper 001 (AdaDUAL)",
    sense=MINIMISE,
    objective_name="mean flow time",
    unit="seconds",
    instance=f"{_FORMULATION}.instance:CommContentionInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound=f"{_FORMULATION}.bounds:lower_bound",
    quick=f"{_FORMULATION}.quick:one_at_a_time",
    methods=(
        Method(
            "bb",
            "branch and bound over sequences of starts and completions",
            Kind.EXACT,
            "schedgap.solvers.exact.comm_contention.branch_and_bound:solve_bb",
        ),
        *ENGINE_METHODS,
        _policy("adadual-k", "AdaDUAL's decision beside any number of transfers", "adadual_k", "ours"),
        _policy("adadual", "share with one other when Theorem 2 says so", "adadual", "paper 001, Algorithm 2"),
        _policy("srsf-1", "shortest remaining first, one at a time", "srsf_1", "paper 001, section V"),
        _policy("srsf-2", "shortest remaining first, two at a time", "srsf_2", "paper 001, section V"),
        _policy("srsf-3", "shortest remaining first, three at a time", "srsf_3", "paper 001, section V"),
    ),
    presets=PRESETS,
    guarantees=f"{_POLICIES}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.comm_contention:rates",
    suites="schedgap.benchmarks.instances.comm_contention.suites:ROWS",
    families=f"{_GENERATORS}:FAMILIES",
)
