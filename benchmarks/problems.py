"""The one table that ties a problem to its parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap.benchmarks.descriptors import Kind, Method, Problem
from schedgap.benchmarks.presets import GPU_SHARING_IMPORTERS, GPU_SHARING_PRESETS, RAR_DDLS_IMPORTERS, RAR_DDLS_PRESETS
from schedgap.benchmarks.presets_hadar import HADAR_PRESETS
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, read_json
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.heuristics.gpu_sharing import options as gpu_sharing_options
from schedgap.heuristics.hadar import options as hadar_options
from schedgap.heuristics.rar_ddls import options as rar_ddls_options

_ENGINE_METHODS = (
    Method("cbc", "declarative model solved by CBC (PuLP's bundled solver)", Kind.ENGINE, "cbc"),
    Method("highs", "declarative model solved by HiGHS", Kind.ENGINE, "highs"),
    Method("cpsat", "declarative model translated to CP-SAT", Kind.ENGINE, "cpsat"),
)

_RAR = "schedgap.formulations.rar_ddls"
_RAR_HEURISTICS = "schedgap.heuristics.rar_ddls"

RAR_DDLS = Problem(
    id="rar-ddls",
    title="ring-all-reduce jobs under link contention, makespan",
    source="paper 000 (SJF-BCO)",
    sense=MINIMISE,
    objective_name="makespan",
    unit="slots",
    instance=f"{_RAR}.instance:RarDdlsInstance",
    checker=f"{_RAR}.check:check",
    model=f"{_RAR}.ilp:build_ilp",
    model_size=f"{_RAR}.ilp:ilp_nonzeros",
    quick=f"{_RAR}.ilp:quick_solution",
    lower_bound=f"{_RAR}.bounds:lower_bound",
    methods=(
        Method(
            "cp",
            "staged CP-SAT: relaxation, avoidance, time-indexed",
            Kind.EXACT,
            "schedgap.solvers.exact.rar_ddls:solve_cp",
        ),
        *_ENGINE_METHODS,
        Method(
            "sjf-bco",
            "smallest job first with balanced contention and overhead",
            Kind.HEURISTIC,
            f"{_RAR_HEURISTICS}.sjf_bco:sjf_bco",
            rar_ddls_options.SJF_BCO,
            "paper 000, Algorithms 1 to 3",
            deadline=True,
        ),
        Method(
            "ff",
            "first fit within theta",
            Kind.HEURISTIC,
            f"{_RAR_HEURISTICS}.baselines:ff",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
            deadline=True,
        ),
        Method(
            "ls",
            "list scheduling, least loaded GPUs",
            Kind.HEURISTIC,
            f"{_RAR_HEURISTICS}.baselines:ls",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
            deadline=True,
        ),
        Method(
            "rand",
            "random servers and GPUs, theta = T",
            Kind.HEURISTIC,
            f"{_RAR_HEURISTICS}.baselines:rand",
            rar_ddls_options.ESTIMATES,
            "paper 000, section 7",
        ),
        Method(
            "lpt-colocate",
            "longest first, backfilling, best-fit colocation",
            Kind.HEURISTIC,
            f"{_RAR_HEURISTICS}.lpt_colocate:lpt_colocate",
            deadline=True,
        ),
    ),
    presets=RAR_DDLS_PRESETS,
    guarantees=f"{_RAR_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.rar_ddls:gantt",
    importers=RAR_DDLS_IMPORTERS,
    suites="schedgap.benchmarks.suites_rar_ddls:ROWS",
    families="schedgap.benchmarks.generators.rar_ddls_adversarial:FAMILIES",
)

_HADAR = "schedgap.formulations.hadar"
_HADAR_HEURISTICS = "schedgap.heuristics.hadar"

HADAR = Problem(
    id="hadar",
    title="heterogeneous gangs that pause and move between slots, sum of utilities",
    source="paper 002 (Hadar, HadarE)",
    sense=MAXIMISE,
    objective_name="total worth",
    unit="utility",
    instance=f"{_HADAR}.instance:HadarInstance",
    checker=f"{_HADAR}.check:check",
    model=f"{_HADAR}.ilp:build_ilp",
    model_size=f"{_HADAR}.ilp:ilp_nonzeros",
    lower_bound="schedgap.solvers.exact.hadar_bound:upper_bound",
    methods=(
        Method(
            "colgen",
            "column generation over whole-horizon schedules, branch and price",
            Kind.EXACT,
            "schedgap.solvers.exact.hadar:solve_colgen",
            source="paper 002, P2, P3, eqs. (4) and (8)",
        ),
        *_ENGINE_METHODS,
        Method(
            "hadar-online",
            "primal-dual admission on arrival, exponential prices",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.online:hadar_online",
            hadar_options.ONLINE,
            "paper 002, eqs. (4) to (8), Theorem 2",
        ),
        Method(
            "hadar-rounds",
            "round by round, by payoff",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.rounds:hadar_rounds",
            hadar_options.ROUNDS,
            "paper 002, Algorithms 1 and 2",
        ),
        Method(
            "hadare",
            "jobs forked into copies on separate nodes",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.hadare:hadare",
            hadar_options.HADARE,
            "paper 002, section V",
            outside_model=True,
            checker=f"{_HADAR}.check_forked:check_forked",
        ),
        Method(
            "gavel",
            "time fractions from a linear program, rounds by priority",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.gavel:gavel",
            hadar_options.GAVEL,
            "paper 002, section II-A",
        ),
        Method(
            "tiresias",
            "two-queue least attained service",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.baselines:tiresias",
            hadar_options.TIRESIAS,
            "paper 002, section IV",
        ),
        Method(
            "yarn-cs",
            "first in, first out, not preempted",
            Kind.HEURISTIC,
            f"{_HADAR_HEURISTICS}.baselines:yarn_cs",
            hadar_options.YARN_CS,
            "paper 002, section IV",
        ),
    ),
    presets=HADAR_PRESETS,
    guarantees=f"{_HADAR_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.hadar:devices",
    suites="schedgap.benchmarks.suites_hadar:ROWS",
    families="schedgap.benchmarks.generators.hadar_adversarial:FAMILIES",
)

_SHARING = "schedgap.formulations.gpu_sharing"
_SHARING_POLICIES = "schedgap.heuristics.gpu_sharing"

GPU_SHARING = Problem(
    id="gpu-sharing",
    title="jobs that share GPUs in pairs, mean job completion time",
    source="paper 003 (SJF-BSBF)",
    sense=MINIMISE,
    objective_name="mean JCT",
    unit="slots",
    instance=f"{_SHARING}.instance:GpuSharingInstance",
    checker=f"{_SHARING}.check:check",
    model=f"{_SHARING}.ilp:build_ilp",
    model_size=f"{_SHARING}.ilp:ilp_nonzeros",
    lower_bound=f"{_SHARING}.bounds:lower_bound",
    methods=(
        Method(
            "cp",
            "local search, column LP, CP-SAT with overlap integers",
            Kind.EXACT,
            "schedgap.solvers.exact.gpu_sharing:solve_cp",
        ),
        *_ENGINE_METHODS,
        Method(
            "sjf-bsbf",
            "shortest job first with best sharing benefit first",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.sharing:sjf_bsbf",
            source="paper 003, Algorithms 1 and 2",
        ),
        Method(
            "sjf-bsbf+",
            "sjf-bsbf whose alternative is the first start on free GPUs",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.sharing:sjf_bsbf_plus",
        ),
        Method(
            "sjf-ffs",
            "shortest job first with first-fit sharing",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.sharing:sjf_ffs",
            source="paper 003, section VI",
        ),
        Method(
            "sjf",
            "shortest job first, one job per GPU",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.exclusive:sjf",
            gpu_sharing_options.SJF,
            "paper 003, section VI",
        ),
        Method(
            "fifo",
            "first in first out, one job per GPU",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.exclusive:fifo",
            gpu_sharing_options.FIFO,
            "paper 003, section VI",
        ),
        Method(
            "tiresias",
            "two queues by attained service, preemptive",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.preemptive:tiresias",
            gpu_sharing_options.TIRESIAS,
            "paper 003, section VI",
            outside_model=True,
            checker=f"{_SHARING}.elastic:check_elastic",
        ),
        Method(
            "pollux",
            "elastic goodput policy after Pollux",
            Kind.HEURISTIC,
            f"{_SHARING_POLICIES}.preemptive:pollux",
            gpu_sharing_options.POLLUX,
            "paper 003, section VI",
            outside_model=True,
            checker=f"{_SHARING}.elastic:check_elastic",
        ),
    ),
    presets=GPU_SHARING_PRESETS,
    guarantees=f"{_SHARING_POLICIES}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.gpu_sharing:gantt",
    importers=GPU_SHARING_IMPORTERS,
    suites="schedgap.benchmarks.suites_gpu_sharing:ROWS",
)

PROBLEMS: Mapping[str, Problem] = {problem.id: problem for problem in (RAR_DDLS, HADAR, GPU_SHARING)}


def find_problem(problem_id: object, source: str = "problem") -> Problem:
    """The problem with this id.

    Raises
    ------
    InputError
        There is none; the line lists those that there are.
    """
    if isinstance(problem_id, str) and problem_id in PROBLEMS:
        return PROBLEMS[problem_id]
    known = ", ".join(PROBLEMS)
    raise InputError(f"{source}: unknown problem {problem_id!r}, one of: {known}")


def parse_instance(data: Any, source: str = "instance") -> tuple[Problem, Instance]:
    """The problem and the validated instance that a decoded JSON object describes.

    Raises
    ------
    InputError
        One line that names the source, the path in it and the value.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: an instance must be a JSON object, got {type(data).__name__}")
    if "problem" not in data:
        raise InputError(f"{source}: problem: is missing (one of: {', '.join(PROBLEMS)})")
    problem = find_problem(data["problem"], f"{source}: problem")
    return problem, problem.instance_class.parse(data, source)


def load_instance(path: str | Path, text: str | None = None) -> tuple[Problem, Instance]:
    """Read an instance file, or the `text` that was read from it already.

    Raises
    ------
    InputError
        The file cannot be read, is not JSON, or is not a valid instance.
    """
    return parse_instance(read_json(path, text), str(path))
