"""The instances of a card: given, or drawn from families, which may be drawn themselves."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.workload import Preset, Trial
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.options import Option, parse_settings
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.tools.library.collection import LARGEST, entries

Families: TypeAlias = Mapping[str, Callable[[int], Trial]]
"""Families by name; each makes the instance of a seed."""
PUBLIC = 20
"""Seeds of each family whose instances anybody has at hand, those of ``verify`` among them: none is judged."""
SPARSE = 9 * 10**9
"""A seed below it has a million seeds of instances to itself."""
LARGEST_SEED = 2**53 - 20_000
"""Seeds of instances are below 2^53: numbers that every reader of JSON keeps exactly."""
LARGE = 10_000
"""Letters of an instance after which no other seed makes the same: the first one is enough to tell a fixed one by."""
TRIED = 20
"""Settings of a held-out family, until some make sense."""


def given_instances(problem: Problem, on: Sequence[Instance]) -> tuple[list[tuple[str, int, Instance]], list[str]]:
    """The instances that a user names, each a family of its own."""
    for instance in on:
        problem.cast_instance(instance)
    return [(instance.name or "given", place, instance) for place, instance in enumerate(on)], []


def drawn_instances(
    problem: Problem, seed: int, each: int, families: Families | None = None, *, secret: bool = True
) -> tuple[list[tuple[str, int, Instance]], list[str]]:
    """The judged instances: none of the shipped library, whose optima anybody can read, nor of the first seeds.

    Parameters
    ----------
    families : instead of the problem's own
    secret : their settings are drawn, so that the first seeds are no more public than others

    Returns family, seed and instance of each, and the families that have no other instances. Raises InputError where
    there are no others at all.
    """
    shipped = {entry.known.hash for entry in entries(problem.id)}
    chosen: list[tuple[str, int, Instance]] = []
    fixed = []
    for family, make in (workload_of(problem).trials() if families is None else families).items():
        known = shipped | (set() if families is not None and secret else set(_public(make)))
        first = seed * 1_000_000 if seed < SPARSE else seed
        numbers = range(first, first + each + 2 * PUBLIC)
        drawn = ((family, number, make(number)[0]) for number in numbers)
        fresh = list(itertools.islice((one for one in drawn if one[2].content_hash() not in known), each))
        chosen += fresh
        fixed += [] if fresh else [family]
    if not chosen:
        raise InputError(f"{problem.id}: every instance of its families is known to everybody: nothing to judge")
    return chosen, fixed


def secret_seed() -> int:
    """One of 9 * 10^15, from the system's entropy: too many for a scheduler to try while it is judged."""
    return SPARSE + secrets.randbelow(LARGEST_SEED - SPARSE)


def parsed_settings(problem: Problem, given: Mapping[str, object]) -> Mapping[str, Json]:
    """Settings of generators as values, by the first preset that takes them all.

    Raises InputError: no preset has them, or each refuses a value.
    """
    having = _with_settings(problem, given)
    refused: list[InputError] = []
    for preset in having:
        try:
            found = parse_settings(preset.options, given, f"preset {preset.id}")
        except InputError as error:
            refused.append(error)
        else:
            return {name: found[name] for name in given}
    raise InputError(f"--set: {refused[0]}")


def set_families(problem: Problem, settings: Mapping[str, Json], say: Callable[[str], None]) -> Families:
    """The presets that have all these settings, with them; which are left out, and why, is said.

    Their instances are small, as those of held-out families are: a setting would make any size of a large preset.
    Raises InputError where none is left.
    """
    families: dict[str, Callable[[int], Trial]] = {}
    having = _with_settings(problem, settings)
    lacking = [preset.id for preset in workload_of(problem).presets if preset not in having]
    if lacking:
        say(f"evaluate: not judged, since they have no such setting: {', '.join(lacking)}")
    reason = ""
    for preset in having:
        try:
            instance = preset.make(0, settings)
            reason = "" if len(instance.to_json(None)) <= LARGEST else f"instances of more than {LARGEST:,} letters"
        except InputError as error:
            reason = str(error)
        if reason:
            say(f"evaluate: not judged: preset {preset.id}: {reason}")
        else:
            families[preset.id] = _made(preset, settings)
    if not families:
        raise InputError(f"--set: no preset of {problem.id} is judged with {as_options(settings)}: {reason}")
    return families


def as_options(settings: Mapping[str, Json]) -> str:
    """Settings as a command line has them: ``ample=true jobs=4``."""
    values = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}
    return " ".join(f"{name}={value}" for name, value in values.items())


def _with_settings(problem: Problem, settings: Mapping[str, object]) -> list[Preset]:
    """The presets that have all these settings.

    Raises InputError: there is none.
    """
    presets = workload_of(problem).presets
    every = list(dict.fromkeys(name for preset in presets for name in preset.options))
    for name in settings:
        if name not in every:
            options = ", ".join(every) or "none"
            unknown = f"--set: no preset of {problem.id} has the setting {name!r}"
            raise InputError(f"{unknown} (settings: {options}){near(name, every)}")
    having = [preset for preset in presets if settings.keys() <= preset.options.keys()]
    if not having:
        raise InputError(f"--set: no preset of {problem.id} has all of {', '.join(settings)}")
    return having


def held_out_families(
    problem: Problem, seed: int, say: Callable[[str], None], given: Mapping[str, Json] = MappingProxyType({})
) -> Families:
    """Presets with other settings, drawn now: numbers are halved or doubled at most, choices are free.

    Settings that are given stay as they are, and presets without them are left out; so are presets with large
    instances, and settings with which the first shipped heuristic finds nothing.
    Raises InputError where no preset has settings that can be drawn.
    """
    rng = np.random.default_rng(seed)
    families: dict[str, Callable[[int], Trial]] = {}
    for preset in _with_settings(problem, given):
        for _ in range(TRIED):
            settings = {name: _another(option, rng) for name, option in preset.options.items()}
            if all(value == preset.options[name].default for name, value in settings.items() if name not in given):
                continue
            settings |= given
            with suppress(InputError):
                instance = preset.make(0, settings)
                if len(instance.to_json(None)) > LARGEST:
                    continue
                run = problem.heuristics()[0].call(instance, seed=0)
                if not isinstance(run, HeuristicRun) or run.solution is None:
                    continue
                name = f"held-out-{preset.id}"
                families[name] = _made(preset, settings)
                told = ", ".join(f"{key}={value}" for key, value in settings.items() if value is not None)
                say(f"evaluate: family {name}: {told}")
                break
    if not families:
        raise InputError(f"--held-out: no preset of {problem.id} has settings that can be drawn")
    return families


def _another(option: Option, rng: np.random.Generator) -> Json:
    """Another value of an option, or its default."""
    default = option.default
    if option.choices:
        return option.choices[int(rng.integers(len(option.choices)))]
    if isinstance(default, bool | str | None):
        return default
    value = default * 2.0 ** rng.uniform(-1, 1)
    return max(option.least, round(value)) if isinstance(default, int) else float(f"{value:.3g}")


def _made(preset: Preset, settings: Mapping[str, Json]) -> Callable[[int], Trial]:
    return lambda number: (preset.make(number, settings), {})


def _public(make: Callable[[int], Trial]) -> Iterator[str]:
    """Hashes of the instances of the first seeds."""
    for number in range(PUBLIC):
        instance = make(number)[0]
        yield instance.content_hash()
        if len(instance.to_json(None)) > LARGE:
            return
