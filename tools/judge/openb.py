"""-- openb"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.importers.rows import opened
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Draft


def openb(source: Path, nodes: Path, *, outward: bool = False) -> Draft:
    """Pods of the cluster trace openb, each a gang, on its nodes; nobody has placed one yet."""
    draft = Draft(str(source), outward=outward)
    for place, row in _table(nodes, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        free = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        draft.node(row["sn"], _count(row, "gpu", place), row["model"] or None, free, place)
    pods = list(_table(source, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")))
    draft.distinct((row["name"], f"{place}: name") for place, row in pods)
    for place, row in pods:
        gpus, part = _count(row, "num_gpu", place), _count(row, "gpu_milli", place)
        if gpus > 1 and part != WHOLE:
            raise InputError(f"{place}: gpu_milli: {gpus} GPUs of {part} thousandths each; several must be whole")
        request = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        models = [model for model in row["gpu_spec"].split("|") if model]
        group = {"count": 1, "gpu": gpus * part, "request": request}
        draft.wait(row["name"], [group | ({"selector": {"models": models}} if models else {})], ())
    return draft


def _table(path: Path, columns: Sequence[str]) -> Iterable[tuple[str, dict[str, str]]]:
    with opened(path) as file:
        rows = list(csv.DictReader(file.read().splitlines()))
    for name in columns:
        if not rows or name not in rows[0]:
            raise InputError(f"{path}: line 1: there is no column {name!r}, or no line below it")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise InputError(f"{path}: line {line}: has not as many cells as line 1")
        yield f"{path}: line {line}", row


def _count(row: Mapping[str, str], name: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", row[name]):
        raise InputError(f"{place}: {name}: must be a whole number from 0, got {row[name][:40]!r}")
    return int(row[name])
