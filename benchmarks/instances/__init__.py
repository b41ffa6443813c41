"""Generators of instances: every preset is a function of a seed and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.catalogue.problem import Preset, Problem, resolve
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.heuristics.common.run import parse_settings


def find_preset(problem: Problem, preset_id: str) -> Preset:
    """The preset of `problem` with this id.

    Raises
    ------
    InputError
        There is none; the line lists those that there are.
    """
    for preset in problem.presets:
        if preset.id == preset_id:
            return preset
    known = ", ".join(preset.id for preset in problem.presets)
    raise InputError(f"problem {problem.id}: unknown preset {preset_id!r} (presets: {known})")


def make_instance(
    problem: Problem, preset_id: str, seed: int = 0, settings: Mapping[str, Any] | None = None
) -> Instance:
    """A random instance of a preset; the same seed and settings always give the same instance.

    Parameters
    ----------
    problem : its row in the table of problems
    preset_id : one of its presets
    seed : a whole number >= 0
    settings : option values, typed or as text; those not given have the preset's defaults

    Raises
    ------
    InputError
        An unknown preset or option, a value out of range, or values that do not go together.
    """
    preset = find_preset(problem, preset_id)
    if seed < 0:
        raise InputError(f"seed: must be at least 0, got {seed}")
    chosen = {**preset.settings, **parse_settings(preset.options, settings or {}, f"preset {preset_id}")}
    instance: Instance = resolve(preset.function)(seed, **chosen)
    return instance
