"""The row of g-vne: methods, presets."""

from __future__ import annotations

from schedgap.benchmarks.catalogue.common import ENGINE_METHODS
from schedgap.benchmarks.descriptors import Problem
from schedgap.formulations.common.numbers import MAXIMISE

_FORMULATION = "schedgap.formulations.g_vne"
_HEURISTICS = "schedgap.heuristics.g_vne"

PROBLEM = Problem(
    id="g-vne",
    title="rings of workers embedded into a network, sum of utilities",
    source="paper 004 (GADGET)",
    sense=MAXIMISE,
    objective_name="total utility",
    unit="utility",
    instance=f"{_FORMULATION}.instance:GVneInstance",
    checker=f"{_FORMULATION}.check:check",
    model=f"{_FORMULATION}.ilp:build_ilp",
    model_size=f"{_FORMULATION}.ilp:ilp_nonzeros",
    lower_bound="schedgap.solvers.exact.g_vne_bound:upper_bound",
    methods=(*ENGINE_METHODS,),
    presets=(),
    guarantees=f"{_HEURISTICS}.guarantees:GUARANTEES",
    figure="schedgap.benchmarks.figures.g_vne:network",
)
