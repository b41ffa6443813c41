"""Importers: traces and measurements of real clusters, read into instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.workload import Importer
from schedgap.formulations.common.errors import InputError, near, printable
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.options import keywords, parse_settings


def find_importer(problem: Problem, name: str) -> Importer:
    """The importer of this format for `problem`.

    Raises InputError: there is none; the line lists those that there are.
    """
    importers = workload_of(problem).importers
    for importer in importers:
        if importer.id == name:
            return importer
    ids = [importer.id for importer in importers]
    problems = all_problems().values()
    others = [p.id for p in problems if any(form.id == name for form in workload_of(p).importers)]
    elsewhere = f"; {name} goes into {', '.join(others)}" if others else ""
    known = f"(formats: {', '.join(ids) or 'none'}{elsewhere})"
    raise InputError(f"problem {problem.id}: cannot import format {name!r} {known}{near(name, ids)}")


def import_instance(
    problem: Problem,  # which problem's instance is wanted
    name: str,  # the format, ``gavel``
    files: Sequence[str | Path],  # the files, in the order that the format wants
    throughputs: str | Path | None = None,  # a file of measured rates, for formats that take one
    settings: Mapping[str, object] | None = None,  # options of the importer, typed or as text
) -> tuple[Instance, list[str]]:
    """An instance made of a file of somebody else's format.

    Returns the instance, and a message for every cell of the input that could not be used as it is. Raises InputError:
    an unknown format or option, or a file that does not fit: names the file, the line and the value.
    """
    importer = find_importer(problem, name)
    chosen = parse_settings(importer.options, settings or {}, f"import {name}")
    if throughputs is not None and not importer.throughputs:
        raise InputError(f"import {name}: takes no --throughputs file")
    extra = {"throughputs": throughputs} if importer.throughputs else {}
    instance, told = importer.function(list(files), **extra, **keywords(chosen))
    return instance, [printable(line) for line in told]
