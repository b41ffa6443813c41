"""The row of ddl-cluster: methods, presets."""

from __future__ import annotations

from schedgap.benchmarks.catalogue.common import ENGINE_METHODS
from schedgap.benchmarks.descriptors import Kind, Method, Preset, Problem
from schedgap.formulations.common.numbers import MINIMISE

_FORMULATION = "schedgap.formulations.ddl_cluster"
_POLICIES = "schedgap.heuristics.ddl_cluster"

PRESETS: tuple[Preset, ...] = ()

PROBLEM = Problem(
    id="ddl-cluster",
    title="training jobs of forward, backward and all-reduce tasks whose all-reduces share the servers' links",
    source="paper 001 (LWF-kappa, Ada-SRSF)",
    sense=MINIMISE,
    objective_name="mean JCT",
    unit="seconds",
    instance=f"{_FORMULATION}.instance:DdlClusterInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.job_shop:build_model",
    model_size=f"{_FORMULATION}.job_shop:model_nonzeros",
    lower_bound=f"{_FORMULATION}.bounds:lower_bound",
    methods=(
        Method(
            "cp",
            "CP-SAT on a fine time grid with a certified bound, schedule exact; placement given",
            Kind.EXACT,
            "schedgap.solvers.exact.ddl_cluster:solve_cp",
        ),
        *ENGINE_METHODS,
    ),
    presets=PRESETS,
    guarantees=f"{_POLICIES}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.ddl_cluster:gantt",
)
