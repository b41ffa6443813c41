"""What there is: problems, methods, forms, guarantees, suites, presets, formats, experiments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.formulations.common.errors import InputError, near

if TYPE_CHECKING:
    from schedgap.catalogue.problem import Problem
    from schedgap.catalogue.workload import Importer
    from schedgap.formulations.common.options import Option


def listing(subject: str | None = None) -> str:
    """What there is, as text: one screen of all problems, one problem whole, or what belongs to no single problem.

    Parameters
    ----------
    subject : a problem, with every option explained; or ``formats``, ``suites``, ``claims``, ``experiments``

    Raises
    ------
    InputError
        There is no such problem, and it is none of the four words.
    """
    if subject is None:
        return "\n".join(_screen())
    if subject in SUBJECTS:
        return "\n".join(SUBJECTS[subject]())
    if subject not in (ids := list(all_problems())):
        raise InputError(
            f"list: unknown problem {subject!r}, one of: {', '.join(ids)}, or one of: {', '.join(SUBJECTS)}"
            f"{near(subject, [*ids, *SUBJECTS])}"
        )
    return "\n".join(_describe(find_problem(subject)))


def _screen() -> list[str]:
    """A line a problem, and how to see more."""
    heads = ("problem", "paper", "methods", "claims", "what is asked")
    rows: list[tuple[str, ...]] = [heads]
    for one in all_problems().values():
        paper = re.match(r"paper (\w+)", one.source)
        counts = map(str, (len(one.methods), len(one.guarantees())))
        rows.append((one.id, paper[1] if paper else "-", *counts, one.title))
    width = max(16, *(len(row[0]) + 1 for row in rows))
    lines = [f"{row[0]:<{width}}{row[1]:<6}{row[2]:>7}{row[3]:>7}  {row[4]}" for row in rows]
    return [*lines, "", *_pairs(_MORE.items(), "")]


_MORE = {
    "schedgap list PROBLEM": "all of one: methods, models, presets, formats, claims",
    "schedgap list formats": "logs and traces that import and audit read",
    "schedgap list claims": "what the papers promise, in one line each (schedgap verify CLAIM)",
    "schedgap list suites": "what bench runs; schedgap list experiments: what reproduce runs",
}


def _formats() -> list[str]:
    """Every format once: who takes it, and those of its options that the problem does not set."""
    found: dict[str, dict[str, Importer]] = {}
    for one in all_problems().values():
        for importer in workload_of(one).importers:
            found.setdefault(importer.id, {})[one.id] = importer
    lines = ["formats (schedgap import FORMAT FILE --problem PROBLEM); list PROBLEM tells the problem's options, too"]
    told: dict[str, str] = {}
    for name, by_problem in found.items():
        options = _shared(by_problem.values())
        lines += [
            "",
            *_pairs([(name, next(iter(by_problem.values())).title)], "  "),
            f"      of {', '.join(by_problem)}",
        ]
        lines += _once(options, told)
    return lines


def _once(options: Mapping[str, Option], told: dict[str, str]) -> list[str]:
    """Options as lines; by their names alone where `told`, which grows, ends with the same."""
    lines = dict(zip(options, _options(options), strict=True))
    new = {name: line for name, line in lines.items() if told.get(name) != line}
    again = ", ".join(name for name in lines if name not in new)
    told.update(new)
    return [*new.values(), f"        as above: {again}"] if again else [*new.values()]


def _shared(importers: Collection[Importer]) -> dict[str, Option]:
    """Options that all of them have, with the same range, default and meaning."""
    first, *rest = (dict(zip(one.options, _options(one.options), strict=True)) for one in importers)
    options = next(iter(importers)).options
    return {name: options[name] for name, line in first.items() if all(other.get(name) == line for other in rest)}


def _claims() -> list[str]:
    lines = ["claims (schedgap verify CLAIM, schedgap hunt CLAIM)"]
    for one in all_problems().values():
        lines += ["", one.id, *_pairs(((g.id, f"{g.kind}: {g.statement}") for g in one.guarantees()), "  ")]
    return lines


def _suites() -> list[str]:
    from schedgap.benchmarks.suites.plan import SUITES, suites_of

    filled = {name for one in all_problems().values() for name in suites_of(one)}
    return ["suites (schedgap bench)", *_pairs(((n, text) for n, text in SUITES.items() if n in filled), "  ")]


def _experiments() -> list[str]:
    lines = ["experiments (schedgap reproduce PAPER --item ITEM)"]
    for paper, items in experiments().items():
        lines += [f"  {paper}", *_pairs(items, "    ")]
    return lines


SUBJECTS = {"formats": _formats, "suites": _suites, "claims": _claims, "experiments": _experiments}
"""What ``schedgap list`` shows that belongs to no single problem."""


def names(part: str, problem: str | None = None) -> list[str]:
    """Ids of the presets, formats, forms, suites or guarantees of a problem; of all where it is not known."""
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


def papers() -> Mapping[str, str]:
    """The papers by number, each with the name that :func:`reproduce` takes too; none without the laboratory."""
    listed: Mapping[str, str] = _of_laboratory("papers")
    return listed


def experiments() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Every paper, "000 (sjf-bco)", with the id and title of each of its items; none without the laboratory."""
    listed: Mapping[str, Sequence[tuple[str, str]]] = _of_laboratory("experiments")
    return listed


def _of_laboratory(name: str) -> Any:
    """What a function of the laboratory lists; empty where that tool is not installed."""
    from schedgap.reading import of_tools

    try:
        function = of_tools(name)
    except InputError:
        return {}
    return function()


def preset_settings(problem: str, preset: str | None = None) -> list[str]:
    """What a preset can be told with ``--set``; the problem's first where none is named.

    Raises
    ------
    InputError
        There is no such problem.
    """
    presets = workload_of(find_problem(problem)).presets
    return list(next((one for one in presets if one.id == preset), presets[0]).options)


def _describe(problem: Problem) -> list[str]:
    """Everything about one problem, with every option explained; what all its formats take once."""
    workload = workload_of(problem)
    default = problem.default_method().id
    lines = [f"{problem.id}: {problem.title}; {problem.source}", "  methods (--method; * is the default)"]
    for method in problem.methods:
        source = "" if method.source == "ours" else f" ({method.source})"
        lines += _pairs([(method.id, method.title + source)], "  * " if method.id == default else "    ")
        lines += _options(method.options)
        if method.printed:
            shown = " ".join(f"{name}={_shown(value)}" for name, value in method.printed.items())
            lines.append(f"        as its paper prints it (compare --printed): {shown}")
    if problem.forms:
        lines.append("  forms (schedgap model --form; engines solve the first that can be tightened)")
        lines += _entries((form.id, f"{form.title} ({form.source})", form.options) for form in problem.forms)
    lines.append("  presets (schedgap generate)")
    lines += _entries((preset.id, preset.title, preset.options) for preset in workload.presets)
    if workload.importers:
        lines.append("  formats (schedgap import)")
    told: dict[str, str] = {}
    for importer in workload.importers:
        lines += [*_pairs([(importer.id, importer.title)], "    "), *_once(importer.options, told)]
    lines.append("  guarantees (schedgap verify)")
    lines += _pairs([(g.id, f"{g.kind}: {g.statement}") for g in problem.guarantees()], "    ")
    return [*lines, ""]


def _entries(entries: Iterable[tuple[str, str, Mapping[str, Option]]]) -> list[str]:
    return [line for name, title, options in entries for line in (*_pairs([(name, title)], "    "), *_options(options))]


def _options(options: Mapping[str, Option]) -> list[str]:
    """What ``--set`` accepts: one line each with range, default and meaning."""
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
