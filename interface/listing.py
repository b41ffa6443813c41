"""What there is: problems, methods, forms, guarantees, suites, presets, formats, experiments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from schedgap.catalogue.registry import all_problems, find_problem

if TYPE_CHECKING:
    from schedgap.catalogue.problem import Problem
    from schedgap.formulations.common.options import Option


def listing(problem: str | None = None) -> str:
    """Problems, methods, forms, guarantees, suites, presets, formats and experiments as text.

    Parameters
    ----------
    problem : only this one, with every option explained

    Raises
    ------
    InputError
        There is no such problem.
    """
    from schedgap.benchmarks.suites.plan import SUITES, suites_of
    from schedgap.reproducing import experiments

    if problem is not None:
        return "\n".join([*_describe(find_problem(problem), True), ""])
    lines = []
    for one in all_problems().values():
        lines += [*_describe(one, False), ""]
    filled = {name for one in all_problems().values() for name in suites_of(one)}
    lines += ["suites (schedgap bench)"]
    lines += _pairs(((name, text) for name, text in SUITES.items() if name in filled), "  ")
    lines += ["", "experiments (schedgap reproduce PAPER --item ITEM)"]
    for paper, items in experiments().items():
        lines += [f"  {paper}", *_pairs(items, "    ")]
    return "\n".join([*lines, "", "schedgap list PROBLEM explains the options (--set)"])


def names(part: str, problem: str | None = None) -> list[str]:
    """Ids of the presets, formats, forms, suites or guarantees of a problem; of all where it is not known."""
    from schedgap.benchmarks.instances import workload_of
    from schedgap.benchmarks.suites.plan import suites_of

    there = all_problems()
    found: list[str] = []
    for one in [there[problem]] if problem is not None and problem in there else there.values():
        workload = workload_of(one)
        ids: dict[str, Iterable[str]] = {
            "presets": (preset.id for preset in workload.presets),
            "formats": (importer.id for importer in workload.importers),
            "forms": (form.id for form in one.forms),
            "suites": suites_of(one),
            "guarantees": (claim.id for claim in one.guarantees()),
        }
        found += ids[part]
    return list(dict.fromkeys(found))


def preset_settings(problem: str, preset: str | None = None) -> list[str]:
    """What a preset can be told with ``--set``; the problem's first where none is named.

    Raises
    ------
    InputError
        There is no such problem.
    """
    from schedgap.benchmarks.instances import workload_of

    presets = workload_of(find_problem(problem)).presets
    return list(next((one for one in presets if one.id == preset), presets[0]).options)


def _describe(problem: Problem, whole: bool) -> list[str]:
    """The lines about one problem; `whole` explains every option instead of naming it."""
    from schedgap.benchmarks.instances import workload_of

    workload = workload_of(problem)

    default = problem.default_method().id
    lines = [f"{problem.id}: {problem.title}; {problem.source}", "  methods (--method; * is the default)"]
    for method in problem.methods:
        source = "" if method.source == "ours" else f" ({method.source})"
        lines += _pairs([(method.id, method.title + source)], "  * " if method.id == default else "    ")
        lines += _options(method.options, whole)
        if method.printed:
            shown = " ".join(f"{name}={_shown(value)}" for name, value in method.printed.items())
            lines.append(f"        as its paper prints it (compare --printed): {shown}")
    if problem.forms:
        lines.append("  forms (schedgap model --form; engines solve the first that can be tightened)")
        for form in problem.forms:
            lines += [*_pairs([(form.id, f"{form.title} ({form.source})")], "    "), *_options(form.options, whole)]
    lines.append("  presets (schedgap generate)")
    for preset in workload.presets:
        lines += [*_pairs([(preset.id, preset.title)], "    "), *_options(preset.options, whole)]
    if workload.importers:
        lines.append("  formats (schedgap import)")
    for importer in workload.importers:
        lines += [*_pairs([(importer.id, importer.title)], "    "), *_options(importer.options, whole)]
    lines.append("  guarantees (schedgap verify)")
    lines += _pairs([(g.id, f"{g.kind}: {g.statement}") for g in problem.guarantees()], "    ")
    return lines


def _options(options: Mapping[str, Option], whole: bool) -> list[str]:
    """What ``--set`` accepts: one line each with range and meaning, or the names with their defaults."""
    if not options:
        return []
    if not whole:
        text = " ".join(name if o.default is None else f"{name}={_shown(o.default)}" for name, o in options.items())
        return textwrap.wrap(f"--set {text}", 100, initial_indent=" " * 8, subsequent_indent=" " * 14)
    lines = []
    for name, option in options.items():
        default = "" if option.default is None else f", default {_shown(option.default)}"
        lines.append(f"        {name}: {option.help} [{option.range_text}{default}]")
    return lines


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pairs(pairs: Iterable[tuple[str, str]], indent: str) -> list[str]:
    """Names in a column, then a line of text each."""
    found = list(pairs)
    width = max([14, *(len(name) for name, _ in found)])
    return [f"{indent}{name:<{width}}  {text}" for name, text in found]
