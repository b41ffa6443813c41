"""The iteration-time model of eq. (7) fitted to measured iteration times by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

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


@dataclass(frozen=True)
class IterationModel:
    """t_iter = ((fixed + per_sample b)^delta + t_comm^delta)^(1/delta), eq. (7) without accumulation.

    t_comm is 0 for one GPU, ``local[0] + local[1] (k - 2)`` for k GPUs of one server, and
    ``network[0] + network[1] (k - 2)`` across servers: eq. (4) with the message folded in.

    Attributes
    ----------
    fixed, per_sample : seconds, and seconds per sample (eq. 3)
    local, network : (base, per further GPU) seconds
    overlap : delta, from 1 to 10
    error : root mean square of the logarithmic error over the measurements
    worst : the largest relative error
    count : measurements it was fitted to
    """

    fixed: float
    per_sample: float
    local: tuple[float, float]
    network: tuple[float, float]
    overlap: float
    error: float = 0.0
    worst: float = 0.0
    count: int = 0

    def communication(self, nodes: int, replicas: int) -> float:
        """t_comm in seconds."""
        if replicas == 1:
            return 0.0
        base, slope = self.local if nodes == 1 else self.network
        return base + slope * (replicas - 2)

    def seconds(self, nodes: int, replicas: int, batch: int) -> float:
        """t_iter in seconds."""
        parameters = np.array([self.fixed, self.per_sample, *self.local, *self.network, self.overlap])
        one = Measurements(np.array([nodes]), np.array([replicas]), np.array([batch]), np.array([1.0]))
        return float(_predict(parameters, one)[0])


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
