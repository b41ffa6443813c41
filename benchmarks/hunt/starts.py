"""Where a hunt begins: random instances of the problem's presets, or of the families that ``verify`` tries."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.benchmarks.hunt.edits import Data, fitted
from schedgap.benchmarks.hunt.limits import LONGEST, MOST, Limits, Space, observed, widened
from schedgap.benchmarks.hunt.target import Target, entries
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json

SMALL = 11
"""Presets whose instances have at most so many entries in all lists are begun with: many can be tried in a second."""


LARGEST = 40
"""Presets with more jobs than this are not looked at."""


SAMPLES = 12
"""Instances of each kind of start that the ranges of numbers are read from."""


Trial = tuple[Data, Mapping[str, Json]]


@dataclass(frozen=True)
class Starts:
    """Everything a hunt needs to know of where it begins."""

    names: tuple[str, ...]  # presets ("presets:tiny") and families ("families:contended") that are drawn from
    # sets of options of the heuristic that are tried; families of `names` bring their own
    options: tuple[Mapping[str, Any], ...]
    space: Space  # what may be visited
    target: Target
    fixed: Mapping[str, Any]
    sizes: Mapping[str, Any]
    seeds: tuple[Data, ...] = ()  # instances that every other start is one of, where there are any

    def draw(self, rng: np.random.Generator) -> Trial:
        """A random instance within the space, and options."""
        if self.seeds and (not self.names or rng.random() < 0.5):
            data = self.seeds[int(rng.integers(len(self.seeds)))]
            return fitted(data, self.space), {**self.options[int(rng.integers(len(self.options)))], **self.fixed}
        name = self.names[int(rng.integers(len(self.names)))]
        data, given = _make(self.target.problem, name, int(rng.integers(2**31)), self.sizes)
        options = _known(self.target, given)
        if not name.startswith("families:"):
            options = self.options[int(rng.integers(len(self.options)))]
        return fitted(data, self.space), {**options, **self.fixed}


def starts_of(target: Target, limits: Limits, families: bool = False, around: Data | None = None) -> Starts:
    """The starts of a hunt.

    Raises InputError: a start that does not exist, or no start small enough.

    Parameters
    ----------
    families : begin from the families that ``verify`` tries, whatever the limits say
    around : begin from this instance alone; its numbers and lists say what is usual
    """
    problem = target.problem
    wanted = "families" if families else limits.search["start"]
    sizes = dict(limits.lengths)
    names = _named(target, wanted) if wanted not in ("presets", "families") else []
    if wanted == "families":
        names = [f"families:{name}" for name in _families(target)]
    elif wanted == "presets":
        names = _small_presets(problem, sizes)
        # A preset that the claim's hint names too is drawn as often as all the others together.
        hinted = [name for name in names if name.removeprefix("presets:") in _families(target)]
        names += hinted * (len(names) // max(1, len(hinted)) - 1) if target.guarantee is not None else []
    schema = problem.instance_class.model_json_schema()
    if around is not None:
        names = []
    samples = (
        [around]
        if around is not None
        else [_make(problem, name, seed, sizes)[0] for name in names for seed in range(SAMPLES)]
    )
    lengths = {group: min(MOST, max(LONGEST, most)) for group, most in _lengths(samples).items()}
    lengths |= limits.lengths
    positive = frozenset(name for name, (low, _) in limits.numbers.items() if low > 0)
    ranges = widened(observed(schema, samples), limits.search["span"], limits.numbers)
    space = Space(schema, ranges, lengths, positive, limits.words)
    seeds = () if around is None else (around,)
    return Starts(tuple(names), _options(target), space, target, dict(limits.options), sizes, seeds)


def _named(target: Target, wanted: str) -> list[str]:
    presets = {preset.id: f"presets:{preset.id}" for preset in workload_of(target.problem).presets}
    known = {**{name: f"families:{name}" for name in workload_of(target.problem).trials()}, **presets}
    for name in wanted.split("+"):
        if name not in known:
            there = f"one of: presets, families, {', '.join(known)}"
            raise InputError(f"limit start: unknown start {name!r}, {there}{near(name, known)}")
    return [known[name] for name in wanted.split("+")]


def _families(target: Target) -> list[str]:
    """Families that the guarantee's hint names; all of the problem's otherwise."""
    hint = target.guarantee.hint.get("families", ()) if target.guarantee is not None else ()
    return list(hint) or list(workload_of(target.problem).trials())


def _options(target: Target) -> tuple[Mapping[str, Any], ...]:
    """Sets of options: the defaults for a heuristic, for a claim those that its families run with."""
    if target.guarantee is None or not target.guarantee.hint.get("families"):
        return ({},)
    found: dict[str, Mapping[str, Any]] = {}
    for name in _families(target):
        make: Callable[[int], Any] = workload_of(target.problem).trials()[name]
        for seed in range(SAMPLES):
            known = _known(target, make(seed)[1])
            found.setdefault(json.dumps(known, sort_keys=True), known)
    return tuple(found.values())[:SAMPLES] or ({},)


def _known(target: Target, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A family's options that ``--set`` can say, so that ``compare`` can repeat what is found."""
    own = target.method.options if target.method is not None else {}
    return {key: value for key, value in options.items() if key in own}


def _small_presets(problem: Problem, sizes: Mapping[str, Any]) -> list[str]:
    """The first preset and others that make small instances; one with many jobs by its settings is not even made."""
    found: dict[str, int] = {}
    for preset in workload_of(problem).presets:
        jobs = preset.settings.get("jobs") or (preset.options["jobs"].default if "jobs" in preset.options else None)
        if not isinstance(jobs, int) or jobs <= LARGEST:
            name = f"presets:{preset.id}"
            found[name] = entries(_make(problem, name, 0, sizes)[0])
    first = f"presets:{workload_of(problem).presets[0].id}"
    return [first, *(name for name, count in found.items() if count <= SMALL and name != first)]


def _make(problem: Problem, name: str, seed: int, sizes: Mapping[str, Any]) -> Trial:
    kind, _, name = name.partition(":")
    if kind == "families":
        instance, options = workload_of(problem).trials()[name](seed)
        return instance.to_dict(), dict(options)
    preset = next(one for one in workload_of(problem).presets if one.id == name)
    settings = dict(preset.settings)
    for key, most in sizes.items():  # a preset that is asked for no more entries than allowed need not be cut
        option = preset.options.get(key)
        if option is not None and isinstance(option.default, int) and option.default > most:
            settings[key] = max(most, option.least)
    return preset.generator(seed, **settings).to_dict(), {}


def _lengths(samples: list[Data]) -> dict[str, int]:
    found: dict[str, int] = {}
    for data in samples:
        for key, value in data.items():
            if isinstance(value, list):
                found[key] = max(found.get(key, 0), len(value))
    return found
