"""Suites: which methods run on which instances. A problem's part in each is data, named in its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from schedgap.benchmarks.harness.store import row_key
from schedgap.benchmarks.harness.versions import relevant_versions
from schedgap.benchmarks.instances import find_preset, workload_of
from schedgap.benchmarks.records import Record
from schedgap.catalogue.method import Method
from schedgap.catalogue.methods import find_method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.workload import Batch, Generator, Measurement
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.options import keywords, parse_settings

_T = TypeVar("_T")
SUITES: Mapping[str, str] = {
    "quick": "instances solved to proven optimality, engines cross-checked, every heuristic compared",
    "cross": "random tiny instances on which every exact method and a brute force must agree",
    "scale": "how far each exact method gets, and how much faster than the naive forms the methods are",
    "paper": "the papers' own experiments at their scale",
}
"""Every suite with one line for ``schedgap list``."""
DEFAULT = "quick"
SEED_STRIDE = 100_000
"""Instances of run seed s have the seeds s * SEED_STRIDE + first, + 1, ..."""


@dataclass(frozen=True)
class Item:
    """One piece of work: a method on an instance, or a measurement.

    Attributes
    ----------
    record : what identifies it, without a result yet
    problem, instance : what is solved; no instance for a measurement
    task : the method or the measurement
    """

    record: Record
    problem: Problem
    instance: Instance | None
    task: Method | Measurement

    @property
    def label(self) -> str:
        """One line for progress: suite, problem, group and method."""
        row = self.record
        name = (row.instance_name or row.batch,) if self.instance is not None else ()
        return " ".join((row.suite, row.problem, *name, row.method))


def suites_of(problem: Problem) -> tuple[str, ...]:
    """Names of the suites that a problem takes part in."""
    return tuple(dict.fromkeys(row.suite for row in workload_of(problem).suites))


def check_names(names: Iterable[str], problems: Sequence[Problem] | None = None) -> tuple[str, ...]:
    """The suites to run, each once.

    Raises
    ------
    InputError
        An unknown suite; the line lists those there are.
    """
    there = list(dict.fromkeys([*SUITES, *(s for p in problems or all_problems().values() for s in suites_of(p))]))
    chosen = tuple(dict.fromkeys(names)) or (DEFAULT,)
    for name in chosen:
        if name not in there:
            raise InputError(f"suite: unknown suite {name!r}, one of: {', '.join(there)}{near(name, there)}")
    return chosen


def check_numbers(seed: int | None, scale: float | None) -> None:
    """Raise InputError where the seed or the scale of a run is out of range; None is the default."""
    if scale is not None and not 0 < scale <= 1000:
        raise InputError(f"scale: must be greater than 0 and at most 1000, got {scale:g}")
    if seed is not None and not 0 <= seed <= 10**9:
        raise InputError(f"seed: must be from 0 to 10^9, got {seed}")


def plan(
    names: Iterable[str],
    *,
    seed: int = 0,
    scale: float = 1.0,
    time_limit: float | None = None,
    problems: Sequence[Problem] | None = None,
    methods: Sequence[str] | None = None,
    told: Callable[[str], None] | None = None,
    certify: bool = False,
) -> list[Item]:
    """Everything the named suites consist of, in a fixed order.

    Parameters
    ----------
    names : suites
    seed : the run's seed; instances and methods take theirs from it
    scale : multiplies the number of instances of every batch (at least one is left)
    time_limit : seconds for each solve; None leaves only the batches' repeatable limits
    problems : instead of those in the table
    methods : heuristics that run instead of all; problems that have none of them are left out
    told : told of each problem before its instances are made
    certify : whether exact answers are certified, see :func:`~schedgap.catalogue.agreement.certified`

    Raises
    ------
    InputError
        An unknown suite or method, a scale that is not positive, a negative seed.
    """
    chosen = check_names(names, problems)
    check_numbers(seed, scale)
    own = _chosen_methods(methods, list(problems or all_problems().values()), problems is None)
    sweep = _Sweep(seed, scale, time_limit, relevant_versions(), own, certify)
    items: list[Item] = []
    for suite in chosen:
        for problem in problems or all_problems().values():
            if told is not None:
                told(f"makes the instances of {suite} {problem.id}")
            for row in workload_of(problem).suites:
                if row.suite != suite or (own is not None and (not own[problem.id] or isinstance(row, Measurement))):
                    continue
                items += (
                    _measurement(row, problem, sweep) if isinstance(row, Measurement) else _batch(row, problem, sweep)
                )
        if not any(item.record.suite == suite for item in items):
            raise InputError(f"suite: no problem takes part in {suite!r}")
    return [replace(item, record=replace(item.record, position=k)) for k, item in enumerate(items)]


@dataclass(frozen=True)
class _Sweep:
    """What is common to every item of a run."""

    seed: int
    scale: float
    time_limit: float | None
    versions: Mapping[str, Any]
    methods: Mapping[str, Sequence[Method]] | None = None
    certify: bool = False


def _chosen_methods(
    names: Sequence[str] | None, problems: Sequence[Problem], every: bool
) -> Mapping[str, Sequence[Method]] | None:
    """The heuristics that are named, by problem; None where none are."""
    if names is None:
        return None
    found: dict[str, list[Method]] = {problem.id: [] for problem in problems}
    for name in dict.fromkeys(names):
        if ":" in name and every:
            raise InputError(f"bench: a method of your own, {name}, needs --problem: whose instances it takes")
        having = [p for p in problems if ":" in name or any(m.id == name for m in p.methods)]
        if not having:
            meant = near(name, (method.id for problem in problems for method in problem.methods))
            raise InputError(f"bench: no problem has a method {name!r}, and it is not package.module:function{meant}")
        for problem in having:
            found[problem.id].append(find_method(problem, name))
    return found


def _batch(batch: Batch, problem: Problem, sweep: _Sweep) -> list[Item]:
    """Every method of a batch on each of its instances."""
    generate, settings = _generator(batch, problem)
    runs = _methods(batch, problem, None if sweep.methods is None else sweep.methods[problem.id])
    group = batch.group or (batch.preset if isinstance(batch.preset, str) else "random")
    items: list[Item] = []
    for k in range(max(1, round(batch.count * sweep.scale))):
        seed = sweep.seed * SEED_STRIDE + batch.first + k
        instance: Instance = generate(seed, **settings)
        digest = instance.content_hash()
        for method, own in runs:
            limits = {
                "time": sweep.time_limit,
                "work": batch.work_limit,
                **({"certify": True} if sweep.certify else {}),
            }
            parts = {"series": batch.series, "instance": digest, "method": method.id}
            record = Record(
                problem=problem.id,
                method=method.id,
                settings=own,
                seed=seed,
                instance_name=instance.name,
                instance_hash=digest,
                suite=batch.suite,
                batch=group,
                key=_key(batch.suite, problem, own, seed, limits, sweep, {"batch": group, **parts}),
                limits=limits,
                versions=sweep.versions,
                series=batch.series,
                axis=batch.axis,
                at=own.get(batch.axis, settings.get(batch.axis)) if batch.axis else None,
            )
            items.append(Item(record, problem, instance, method))
    return items


def _key(
    suite: str,
    problem: Problem,
    settings: Mapping[str, Any],
    seed: int,
    limits: Mapping[str, Any],
    sweep: _Sweep,
    more: Mapping[str, str],
) -> str:
    """What identifies the work and everything its result depends on."""
    parts = {"suite": suite, "problem": problem.id, "settings": settings, "seed": seed, **more}
    return row_key({**parts, "limits": list(limits.values()), "versions": dict(sweep.versions)})


def _measurement(row: Measurement, problem: Problem, sweep: _Sweep) -> list[Item]:
    """The single item of a measurement; it is told of a scale only where there is one."""
    settings = {**row.settings, **({"scale": sweep.scale} if sweep.scale != 1 else {})}
    limits = {"time": sweep.time_limit, "work": None}
    record = Record(
        problem=problem.id,
        method=row.id,
        settings=settings,
        seed=sweep.seed,
        suite=row.suite,
        batch=row.title,
        key=_key(row.suite, problem, settings, sweep.seed, limits, sweep, {"measurement": row.id}),
        limits=limits,
        versions=sweep.versions,
    )
    return [Item(record, problem, None, row)]


def _generator(batch: Batch, problem: Problem) -> tuple[Generator, dict[str, Any]]:
    """The generator function of a batch, and its settings: the preset's, then the batch's own."""
    if not isinstance(batch.preset, str):
        return _study(batch.preset, batch.suite), dict(batch.settings)
    preset = find_preset(problem, batch.preset)
    own = parse_settings(preset.options, batch.settings, f"preset {preset.id}")
    return preset.generator, keywords({**preset.settings, **own})


def _study(load: Callable[[], _T], suite: str) -> _T:
    """What `load` imports from benchmarks/studies, which only a source checkout has."""
    try:
        return load()
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("schedgap.benchmarks.studies"):
            raise
        raise InputError(f"suite {suite}: needs benchmarks/studies, which only a source checkout has") from None


def _methods(
    batch: Batch, problem: Problem, own: Sequence[Method] | None = None
) -> list[tuple[Method, dict[str, Any]]]:
    """The methods of a batch, each with the settings it runs with; `own` ones instead of its heuristics."""
    extra = {method.id: method for method in batch.extra}
    chosen = [extra[name] if name in extra else find_method(problem, name) for name in batch.exact]
    if own is not None:
        chosen += [method for method in own if method not in chosen]
    elif batch.heuristics is None:
        chosen += problem.heuristics()
    else:
        chosen += [find_method(problem, name) for name in batch.heuristics]
    runs = []
    for method in chosen:
        for settings in batch.method_settings.get(method.id, ({},)):
            runs.append((method, parse_settings(method.options, settings, f"method {method.id}")))
    return runs
