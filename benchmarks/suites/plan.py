"""Suites: which methods run on which instances. A problem's part in each is data, named in its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedgap.benchmarks.instances import find_preset, workload_of
from schedgap.benchmarks.records import FILES, Record
from schedgap.benchmarks.sweep.store import row_key
from schedgap.benchmarks.sweep.versions import relevant_versions
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method, find_problem, parse_instance
from schedgap.catalogue.workload import Batch
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.formulations.common.options import parse_settings

SUITES: Mapping[str, str] = {
    "quick": "instances solved to proven optimality, engines cross-checked, every heuristic compared",
}
"""Every suite with one line for ``schedgap list``."""
DEFAULT = "quick"
WORK_LIMIT = 20.0
"""Repeatable limit of an exact solve of such an instance, where no time limit is given."""
SEED_STRIDE = 100_000
"""Instances of run seed s have the seeds s * SEED_STRIDE + first, + 1, ..."""


@dataclass(frozen=True)
class Item:
    """One piece of work: a method on an instance, and the record that identifies it, without a result yet."""

    record: Record
    problem: Problem
    instance: Instance
    method: Method

    @property
    def label(self) -> str:
        """One line for progress: suite, problem, group and method."""
        row = self.record
        return " ".join((row.suite, row.problem, row.instance_name or row.batch, row.method))


def suites_of(problem: Problem) -> tuple[str, ...]:
    """Names of the suites that a problem takes part in."""
    return tuple(dict.fromkeys(row.suite for row in workload_of(problem).suites))


def check_names(names: Iterable[str], problems: Sequence[Problem] | None = None) -> tuple[str, ...]:
    """The suites to run, each once.

    Raises InputError: an unknown suite; the line lists those there are.
    """
    there = list(dict.fromkeys([*SUITES, *(s for p in problems or all_problems().values() for s in suites_of(p))]))
    chosen = tuple(dict.fromkeys(names)) or (DEFAULT,)
    for name in chosen:
        if is_file(name):
            continue
        if name not in there:
            raise InputError(f"suite: unknown suite {name!r}, one of: {', '.join(there)}{near(name, there)}")
    return chosen


def is_file(name: str) -> bool:
    """Whether a suite is the file of an instance."""
    return name.endswith(".json")


def check_numbers(seed: int | None, scale: float | None) -> None:
    """Raise InputError where the seed or the scale of a run is out of range; None is the default."""
    if scale is not None and not 0 < scale <= 1000:
        raise InputError(f"scale: must be greater than 0 and at most 1000, got {scale:g}")
    if seed is not None and not 0 <= seed <= 10**9:
        raise InputError(f"seed: must be from 0 to 10^9, got {seed}")


def plan(
    names: Iterable[str],  # suites
    *,
    seed: int = 0,  # the run's seed; instances and methods take theirs from it
    scale: float = 1.0,  # multiplies the number of instances of every batch (at least one is left)
    time_limit: float | None = None,  # seconds for each solve; None leaves only the batches' repeatable limits
    problems: Sequence[Problem] | None = None,  # instead of those in the table
    # heuristics that run instead of all; problems that have none of them are left out
    methods: Sequence[str] | None = None,
    told: Callable[[str], None] | None = None,  # told of each problem before its instances are made
    certify: bool = False,  # exact answers, see :func:`~schedgap.catalogue.agreement.with_certificate`
) -> list[Item]:
    """Everything the named suites consist of, in a fixed order.

    Raises InputError: an unknown suite or method, a scale that is not positive, a negative seed.
    """
    chosen = check_names(names, problems)
    check_numbers(seed, scale)
    if problems is None and all(map(is_file, chosen)):  # the files say whose instances they are
        problems = [find_problem(name) for name in dict.fromkeys(parse_instance(read_json(f), f)[0].id for f in chosen)]
    own = _chosen_methods(methods, list(problems or all_problems().values()), problems is None)
    sweep = _Sweep(seed, scale, time_limit, relevant_versions(), own, certify)
    items: list[Item] = []
    for suite in chosen:
        if is_file(suite):
            items += _of_file(suite, problems, sweep)
            continue
        for problem in problems or all_problems().values():
            if told is not None:
                told(f"makes the instances of {suite} {problem.id}")
            for row in workload_of(problem).suites:
                if row.suite == suite and (own is None or own[problem.id]):
                    items += _batch(row, problem, sweep)
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


def _of_file(path: str, problems: Sequence[Problem] | None, sweep: _Sweep) -> list[Item]:
    """The strongest exact method and the heuristics on the instance of a file.

    Raises InputError: no instance, or of a problem that is not asked for.
    """
    found, instance = parse_instance(read_json(path), path)
    problem = next((one for one in problems or all_problems().values() if one.id == found.id), None)
    if problem is None:
        raise InputError(f"{path}: is of {found.id}, which --problem leaves out")
    # A log may be of any size, so only the strongest engine runs, and by work where no time is given: runs repeat.
    exact = (problem.default_method(instance).id,)
    name = instance.name or Path(path).stem
    batch = Batch(FILES, name, 1, exact, work_limit=None if sweep.time_limit else WORK_LIMIT)
    runs = _methods(batch, problem, None if sweep.methods is None else sweep.methods[problem.id])
    return _on_instance(batch, name, problem, instance, sweep.seed, runs, sweep)


def _batch(batch: Batch, problem: Problem, sweep: _Sweep) -> list[Item]:
    """Every method of a batch on each of its instances."""
    preset = find_preset(problem, batch.preset)
    runs = _methods(batch, problem, None if sweep.methods is None else sweep.methods[problem.id])
    group = batch.group or batch.preset
    items: list[Item] = []
    for k in range(max(1, round(batch.count * sweep.scale))):
        seed = sweep.seed * SEED_STRIDE + batch.first + k
        items += _on_instance(batch, group, problem, preset.make(seed, batch.settings), seed, runs, sweep)
    return items


def _on_instance(
    batch: Batch,
    group: str,
    problem: Problem,
    instance: Instance,
    seed: int,
    runs: Sequence[tuple[Method, dict[str, Json]]],
    sweep: _Sweep,
) -> list[Item]:
    """Methods with their settings on one instance."""
    digest = instance.content_hash()
    items = []
    for method, own in runs:
        limits = {
            "time": sweep.time_limit,
            "work": batch.work_limit,
            **({"certify": True} if sweep.certify else {}),
        }
        record = Record(
            problem=problem.id,
            method=method.id,
            settings=own,
            seed=seed,
            instance_name=instance.name,
            instance_hash=digest,
            suite=batch.suite,
            batch=group,
            key=row_key(
                {
                    "suite": batch.suite,
                    "problem": problem.id,
                    "batch": group,
                    "instance": digest,
                    "method": method.id,
                    "settings": own,
                    "seed": seed,
                    "limits": list(limits.values()),
                    "versions": dict(sweep.versions),
                }
            ),
            limits=limits,
            versions=sweep.versions,
        )
        items.append(Item(record, problem, instance, method))
    return items


def _methods(
    batch: Batch, problem: Problem, own: Sequence[Method] | None = None
) -> list[tuple[Method, dict[str, Any]]]:
    """The methods of a batch, each with the settings it runs with; `own` ones instead of its heuristics."""
    chosen = [find_method(problem, name) for name in batch.exact]
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
