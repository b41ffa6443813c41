"""Where a problem's instances come from and what suites do with them: presets, families, importers, suites, figure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.options import Option, keywords, options_of, parse_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_NAME, MOST_WORDS, LONGEST_WORDS, LONGEST_WORD = 200, 3, 100, 40
"""Letters of an instance's name; settings that it spells out, their letters, and those of one beside digits."""
Generator: TypeAlias = Callable[..., Instance]
"""``f(seed, **settings) -> Instance``"""
Trial: TypeAlias = tuple[Instance, Mapping[str, Json]]
"""An instance on which guarantees are tried, and the options that the heuristic runs with."""
Drawing: TypeAlias = "Callable[..., Figure]"
"""``f(instance, solution) -> Figure``"""


@dataclass(frozen=True)
class Preset:
    """A named family of instances: ``generator(seed, **settings)``.

    Attributes
    ----------
    id, title : its name, and one line for ``schedgap list``
    generator : its annotated keywords are the preset's options
    settings : what differs from the generator's defaults
    """

    id: str
    title: str
    generator: Generator
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> Mapping[str, Option]:
        """What ``--set`` accepts, with this preset's defaults."""
        known = options_of(self.generator)
        return {n: Option(n, o.annotation, self.settings.get(n, o.default), o.help) for n, o in known.items()}

    def make(self, seed: int, settings: Mapping[str, object]) -> Instance:
        """The instance of a seed; its name says which settings are not the preset's: ``small-2-ample``.

        Raises
        ------
        InputError
            An unknown option, a value out of range, or values that do not go together.
        """
        given = parse_settings(self.options, settings, f"preset {self.id}")
        instance = self.generator(seed, **keywords({**self.settings, **given}))
        others = {name: value for name, value in given.items() if value != self.options[name].default}
        words = {name: name if value is True else f"{name}-{value}" for name, value in others.items()}
        told = list(words.values())
        if len(words) > MOST_WORDS or len("-".join(told)) > LONGEST_WORDS:  # the digits tell them apart
            told = [words[name][:LONGEST_WORD] for name in self.options if name in words][:MOST_WORDS]
            told.append(hashlib.sha256(repr(sorted(others.items())).encode()).hexdigest()[:6])
        name = "-".join([instance.name, *told])[:LONGEST_NAME] if instance.name else ""
        return instance.model_copy(update={"name": name}) if words and name.isprintable() else instance


@dataclass(frozen=True)
class Batch:
    """A row of a suite: instances of one preset, and the methods that run on each of them."""

    suite: str  # the suite's name
    preset: str  # a preset's id
    count: int  # how many instances at ``--scale 1``
    exact: tuple[str, ...] = ()  # exact methods to run on each, by id
    # heuristics to run on each; None is all of the problem's, within the model or not
    heuristics: tuple[str, ...] | None = None
    group: str = ""  # what tables call these instances; the preset's id where empty
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the generator
    # of single methods, by id; a list of settings runs the method once with each
    method_settings: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    first: int = 0  # number of the first instance, so that batches of one preset can differ
    work_limit: float | None = None  # repeatable limit of each exact solve (see ``SolveOptions.work_limit``)


@dataclass(frozen=True)
class Importer:
    """A format that instances of one problem can be made from."""

    # id, title: its name after ``schedgap import``, and one line
    id: str
    title: str
    # ``f(files, [throughputs=path,] **options) -> (Instance, messages)``
    function: Callable[..., tuple[Instance, list[str]]]
    throughputs: bool = False  # whether it takes a file of measured rates

    @property
    def options(self) -> Mapping[str, Option]:
        """What ``--set`` accepts."""
        return options_of(self.function)


@dataclass(frozen=True)
class Workload:
    """Instances of one problem, and what is done with them.

    Attributes
    ----------
    presets : in the order of ``schedgap list``; the first is the default
    families : imports, by name, ``f(seed) -> (instance, options)``: where guarantees are tried; presets where None
    suites : its part in every suite
    importers : formats it can be made from
    figure : imports ``f(instance, solution) -> Figure``
    pair_figure : imports ``f(instance) -> Figure``, the curve of an instance of two jobs that meet
    """

    presets: tuple[Preset, ...] = ()
    families: Callable[[], Mapping[str, Callable[[int], Trial]]] | None = None
    suites: tuple[Batch, ...] = ()
    importers: tuple[Importer, ...] = ()
    figure: Callable[[], Drawing] | None = None
    pair_figure: Callable[[], Drawing] | None = None

    def trials(self) -> Mapping[str, Callable[[int], Trial]]:
        """The families, or the presets with their defaults where there are none."""
        return self.families() if self.families else {preset.id: _plain(preset) for preset in self.presets}


def _plain(preset: Preset) -> Callable[[int], Trial]:
    return lambda seed: (preset.generator(seed, **preset.settings), {})
