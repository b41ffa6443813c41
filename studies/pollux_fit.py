"""Measured iteration times of the Pollux artifact (placements, scalability) and the models fitted to them.

The fits that are used are the table of ``benchmarks/instances/profiles/pollux_tasks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from schedgap.benchmarks.importers.cells import duration, positive
from schedgap.benchmarks.importers.rows import Format, Notes, opened, read_rows
from schedgap.benchmarks.instances.profiles.iterations import IterationModel
from schedgap.formulations.common.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_LARGEST_OVERLAP = 10.0


@dataclass(frozen=True)
class Measurements:
    """Measured iterations: arrays of equal length.

    Attributes
    ----------
    nodes, replicas : servers and GPUs used
    batch : samples per GPU
    seconds : measured time of one iteration
    """

    nodes: Ints
    replicas: Ints
    batch: Ints
    seconds: Floats


def _placement(cell: str) -> tuple[int, int]:
    """(servers, GPUs) of ``211``: two GPUs on one server and one on each of two others."""
    if not cell.isdigit() or "0" in cell:
        raise ValueError("must be digits 1 to 9")
    return len(cell), sum(map(int, cell))


def _spread(nodes: str, replicas: str) -> tuple[int, int]:
    if positive(nodes) > positive(replicas):
        raise ValueError(f"{nodes} nodes for {replicas} replicas")
    return int(nodes), int(replicas)


_REST = {"batch": (positive, "local_bsz"), "seconds": (duration, "step_time")}
_PLACEMENTS = Format("placements", "", {"size": (_placement, "placement"), **_REST}, strict=True)
_SCALABILITY = Format("scalability", "", {"size": (_spread, "num_nodes", "num_replicas"), **_REST}, strict=True)


def read_measurements(paths: Sequence[str | Path]) -> Measurements:
    """Iteration times of one application from ``placements.csv`` and ``scalability.csv`` files.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    rows: list[tuple[int, int, int, float]] = []
    for path in paths:
        with opened(path) as file:
            form = _PLACEMENTS if "placement" in file.readline() else _SCALABILITY
        rows.extend((*row["size"], row["batch"], row["seconds"]) for row in read_rows(form, path, Notes()))
    table = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    nodes, replicas, batch = (np.array(column, dtype=np.int64) for column in table[:3])
    return Measurements(nodes, replicas, batch, np.array(table[3], dtype=np.float64))


def fit_application(folder: str | Path) -> IterationModel:
    """The iteration-time model of one application's folder of measurements."""
    return fit_iteration_model(read_measurements(sorted(Path(folder).glob("*.csv"))))


def fit_iteration_model(data: Measurements) -> IterationModel:
    """Least squares on logarithms, so that every measurement counts by its relative error.

    Started from delta = 1, 2 and 4 with a line through the one-GPU times; the best of the three is kept.
    Deterministic.

    Parameters
    ----------
    data : at least four measurements, of at least one with a single GPU

    Raises
    ------
    InputError
        Too few measurements, or one that is not positive and finite.

    Notes
    -----
    Source: paper 003, eqs. (3), (4), (7), fitted as in its section IV; the split of t_comm into one server and
    several follows Pollux (Qiao et al., OSDI 2021).
    """
    single = data.replicas == 1
    if len(data.seconds) < 4 or not single.any():
        raise InputError(
            f"fit: needs at least 4 measurements with one of a single GPU, got {len(data.seconds)} with {single.sum()}"
        )
    if not (np.isfinite(data.seconds).all() and (data.seconds > 0).all() and (data.batch > 0).all()):
        raise InputError("fit: every measured time and batch size must be positive and finite")
    scale = float(data.seconds.mean())
    design = np.column_stack([np.ones(int(single.sum())), data.batch[single]])
    line, *_ = np.linalg.lstsq(design / data.seconds[single, None], np.ones(int(single.sum())), rcond=None)
    least = 1e-9 * scale
    head = [max(float(line[0]), least), max(float(line[1]), least / float(data.batch.max()))]
    target = np.log(data.seconds)
    best, parameters = np.inf, np.zeros(7)

    def errors(given: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(_predict(given, data), 1e-300)) - target)

    for overlap in (1.0, 2.0, 4.0):
        begin = np.array([*head, 0.2 * scale, 0.01 * scale, 0.5 * scale, 0.01 * scale, overlap])
        low = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        high = np.array([np.inf] * 6 + [_LARGEST_OVERLAP])
        begin = np.clip(begin, low + least * np.array([1, 1e-6, 1, 1, 1, 1, 0]), high)
        unit = np.array([scale, scale / float(data.batch.max()), *[scale] * 4, 1.0])
        found = least_squares(errors, begin, bounds=(low, high), x_scale=unit)
        if found.cost < best:
            best, parameters = float(found.cost), found.x
    ratio = _predict(parameters, data) / data.seconds
    fixed, per_sample, local, local_slope, network, network_slope, overlap = (float(p) for p in parameters)
    return IterationModel(
        fixed,
        per_sample,
        (local, local_slope),
        (network, network_slope),
        overlap,
        float(np.sqrt(np.mean(np.log(ratio) ** 2))),
        float(np.abs(ratio - 1).max()),
        len(data.seconds),
    )


def _predict(parameters: Floats, data: Measurements) -> Floats:
    fixed, per_sample, local, local_slope, network, network_slope, overlap = parameters
    computing = fixed + per_sample * data.batch
    further = np.maximum(data.replicas - 2, 0)
    sending = np.where(data.nodes == 1, local + local_slope * further, network + network_slope * further)
    sending = np.where(data.replicas == 1, 0.0, sending)
    largest = np.maximum(np.maximum(computing, sending), 1e-300)
    result = largest * ((computing / largest) ** overlap + (sending / largest) ** overlap) ** (1 / overlap)
    return np.asarray(result)
