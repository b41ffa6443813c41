"""Where instances come from, one folder a problem: generators, presets, and its part in every suite."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping

import numpy as np

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.workload import Drawing, Preset, Workload
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance


def workload_of(problem: Problem) -> Workload:
    """The problem's own workload, or that of its folder in ``benchmarks/instances/``; empty without either."""
    own = problem.workload()
    if own is not None:
        return own
    name = f"{__name__}.{problem.id.replace('-', '_')}.workload"
    try:
        found: Workload = importlib.import_module(name).WORKLOAD
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return Workload()
    return found


def figure_of(problem: Problem) -> Drawing:
    """What draws the problem's solutions.

    Raises InputError: nothing does.
    """
    load = workload_of(problem).figure
    if load is None:
        raise InputError(f"problem {problem.id}: has no figure")
    return load()


def find_preset(problem: Problem, preset_id: str | None = None) -> Preset:
    """The preset of `problem` with this id; the first where not given.

    Raises InputError: there is none; the line lists those that there are.
    """
    presets = workload_of(problem).presets
    for preset in presets:
        if preset_id in (None, preset.id):
            return preset
    ids = [preset.id for preset in presets]
    known = f"(presets: {', '.join(ids) or 'none'})"
    raise InputError(f"problem {problem.id}: unknown preset {preset_id!r} {known}{near(preset_id, ids)}")


def make_instance(
    problem: Problem, preset_id: str | None = None, seed: int = 0, settings: Mapping[str, object] | None = None
) -> Instance:
    """A random instance of a preset; the same seed and settings always give the same instance.

    Raises InputError: an unknown preset or option, a value out of range, or values that do not go together.

    Parameters
    ----------
    preset_id : one of its presets; the first where not given
    seed : a whole number >= 0
    settings : option values, typed or as text; those not given have the preset's defaults
    """
    preset = find_preset(problem, preset_id)
    if seed < 0:
        raise InputError(f"seed: must be at least 0, got {seed}")
    return preset.make(seed, settings or {})


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is drawn uniformly between those of `low` and `high`."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


PER_SERVER = 4
"""GPUs of a server where nothing lists them: that of paper 003's testbed."""


SMALL_HOURS, LARGE_HOURS = (0.05, 2.0), (0.3, 4.5)
"""Solo hours of jobs on one server and of larger ones, drawn log-uniformly. Their means, 0.53 and 1.55, are near the
JCT less queuing of Tables III and IV of paper 003 (0.55 and 1.7 under SJF), which does not print its durations; with 12
hours of arrivals the load is near the paper's."""
