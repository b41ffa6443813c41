"""Measured iteration times of the Pollux artifact (placements, scalability) and the models fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from schedgap.benchmarks.importers.cells import duration, positive
from schedgap.benchmarks.importers.rows import Format, Notes, opened, read_rows
from schedgap.formulations.gpu_sharing.fit import IterationModel, Measurements, fit_iteration_model


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
