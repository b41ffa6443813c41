"""Importers: traces and measurements of real clusters, read into instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgap.catalogue.problem import Importer, Problem, resolve
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.heuristics.common.run import parse_settings


def find_importer(problem: Problem, name: str) -> Importer:
    """The importer of this format for `problem`.

    Raises
    ------
    InputError
        There is none; the line lists those that there are.
    """
    for importer in problem.importers:
        if importer.id == name:
            return importer
    known = ", ".join(importer.id for importer in problem.importers) or "none"
    raise InputError(f"problem {problem.id}: cannot import format {name!r} (formats: {known})")


def import_instance(
    problem: Problem,
    name: str,
    files: Sequence[str | Path],
    throughputs: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Instance, list[str]]:
    """An instance made of a file of somebody else's format.

    Parameters
    ----------
    problem : which problem's instance is wanted
    name : the format, ``gavel``
    files : the files, in the order that the format wants
    throughputs : a file of measured rates, for formats that take one
    settings : options of the importer, typed or as text

    Returns
    -------
    The instance, and a message for every cell of the input that could not be used as it is.

    Raises
    ------
    InputError
        An unknown format or option, or a file that does not fit: names the file, the line and the value.
    """
    importer = find_importer(problem, name)
    chosen = parse_settings(importer.options, settings or {}, f"import {name}")
    if throughputs is not None and not importer.throughputs:
        raise InputError(f"import {name}: takes no --throughputs file")
    extra = {"throughputs": throughputs} if importer.throughputs else {}
    result: tuple[Instance, list[str]] = resolve(importer.function)(list(files), **extra, **chosen)
    return result
