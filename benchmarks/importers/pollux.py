"""The Pollux artifact: measured iteration times (placements, scalability) and workloads as gpu-sharing instances."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gpu_sharing.fit import IterationModel, Measurements, fit_iteration_model

_PLACEMENTS = ("placement", "local_bsz", "step_time", "sync_time")
_SCALABILITY = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
_WORKLOAD = ("name", "time", "application", "num_replicas", "batch_size")


def read_measurements(paths: Sequence[str | Path]) -> Measurements:
    """Iteration times of one application from ``placements.csv`` and ``scalability.csv`` files.

    A placement such as ``211`` is two GPUs on one server and one on each of two others.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    rows: list[tuple[int, int, int, float]] = []
    for path in paths:
        for line, row in _rows(path, (_PLACEMENTS, _SCALABILITY)):
            where = f"{path}: line {line}"
            batch, seconds = _integer(row["local_bsz"], where, "local_bsz"), _number(row["step_time"], where)
            if "placement" in row:
                if not row["placement"].isdigit() or "0" in row["placement"]:
                    raise InputError(f"{where}: placement: must be digits 1 to 9, got {row['placement']!r}")
                counts = [int(digit) for digit in row["placement"]]
                rows.append((len(counts), sum(counts), batch, seconds))
            else:
                nodes, replicas = (
                    _integer(row["num_nodes"], where, "num_nodes"),
                    _integer(row["num_replicas"], where, "num_replicas"),
                )
                if nodes > replicas:
                    raise InputError(f"{where}: {nodes} nodes for {replicas} replicas")
                rows.append((nodes, replicas, batch, seconds))
    table = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    nodes_, replicas_, batch_ = (np.array(column, dtype=np.int64) for column in table[:3])
    return Measurements(nodes_, replicas_, batch_, np.array(table[3], dtype=np.float64))


def fit_application(folder: str | Path) -> IterationModel:
    """The iteration-time model of one application's folder of measurements."""
    return fit_iteration_model(read_measurements(sorted(Path(folder).glob("*.csv"))))


def read_workload(path: str | Path) -> list[dict[str, Json]]:
    """Jobs of a ``workload-*.csv``: name, arrival in seconds, application, GPUs, batch size of the whole job.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    jobs = []
    for line, row in _rows(path, (_WORKLOAD,)):
        where = f"{path}: line {line}"
        jobs.append(
            {
                "name": row["name"],
                "seconds": _number(row["time"], where, least=0.0),
                "application": row["application"],
                "gpus": _integer(row["num_replicas"], where, "num_replicas"),
                "batch": _integer(row["batch_size"], where, "batch_size"),
            }
        )
    if not jobs:
        raise InputError(f"{path}: has no jobs")
    return jobs


def _rows(path: str | Path, headers: Sequence[Sequence[str]]) -> list[tuple[int, Mapping[str, str]]]:
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            found = tuple(reader.fieldnames or ())
            if found not in {tuple(header) for header in headers}:
                wanted = " or ".join(",".join(header) for header in headers)
                raise InputError(f"{path}: line 1: the columns must be {wanted}, got {','.join(found)}")
            result: list[tuple[int, Mapping[str, str]]] = []
            for row in reader:
                if None in row or None in row.values():
                    raise InputError(f"{path}: line {reader.line_num}: {len(found)} columns expected")
                result.append((reader.line_num, row))
            return result
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from None


def _integer(text: str, where: str, name: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise InputError(f"{where}: {name}: must be a whole number, got {text!r}") from None
    if not 1 <= value <= 10**9:
        raise InputError(f"{where}: {name}: must be from 1 to 10^9, got {value}")
    return value


def _number(text: str, where: str, least: float = 1e-9) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: must be a number, got {text!r}") from None
    if not least <= value <= 1e9:
        raise InputError(f"{where}: must be from {least:g} to 1e9, got {text!r}")
    return value
