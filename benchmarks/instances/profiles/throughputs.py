"""Measured training rates, alone and in pairs: a small cited table that needs no file, and what files are read into.

Source of the numbers: ``simulation_throughputs.json`` of the repository stanford-futuredata/gavel (MIT
licence), published with D. Narayanan, K. Santhanam, F. Kazhamiaka, A. Phanishayee, M. Zaharia,
"Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI 2020. Iterations per
second of one job that runs alone, rounded to four digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from schedgap.formulations.common.errors import InputError

JobType = str
"""A model with its batch size as the source writes it: ``ResNet-50 (batch size 64)``."""


_BATCH = re.compile(r"^(?P<model>.+?) \(batch size (?P<batch>\d+)\)$")


def batch_size(job_type: JobType) -> int | None:
    """The batch size that a job type names, or None where it names none (``CycleGAN``)."""
    match = _BATCH.match(job_type)
    return int(match["batch"]) if match else None


@dataclass(frozen=True)
class Rate:
    """The measured rates of one job type at one scale on one type of worker, iterations per second."""

    consolidated: float | None  # with all workers on one server; None where it was not measured
    unconsolidated: float | None  # with the workers spread over servers; None where it was not measured


@dataclass(frozen=True)
class Throughputs:
    """Measured rates by worker type, job type and scale (number of GPUs)."""

    source: str  # where the numbers come from, for messages
    rates: Mapping[tuple[str, JobType, int], Rate]  # Rate by (worker type, job type, scale)

    @property
    def worker_types(self) -> tuple[str, ...]:
        """Worker types, in the order of the source."""
        return tuple(dict.fromkeys(worker for worker, _, _ in self.rates))

    def job_types(self, worker_type: str) -> tuple[JobType, ...]:
        """Job types measured on this type of worker, in the order of the source."""
        return tuple(dict.fromkeys(job for worker, job, _ in self.rates if worker == worker_type))

    @cached_property
    def _scales(self) -> Mapping[tuple[str, JobType], tuple[int, ...]]:
        found: dict[tuple[str, JobType], tuple[int, ...]] = {}
        for worker, job, scale in sorted(self.rates):
            found[worker, job] = (*found.get((worker, job), ()), scale)
        return found

    def scales(self, worker_type: str, job_type: JobType) -> tuple[int, ...]:
        """Scales at which this job type was measured on this type of worker, increasing."""
        return self._scales.get((worker_type, job_type), ())

    def rate(self, worker_type: str, job_type: JobType, scale: int) -> Rate:
        """The measured rates; both None where this combination was not measured."""
        return self.rates.get((worker_type, job_type, scale), Rate(None, None))

    def usable_scales(self, worker_type: str, job_type: JobType) -> list[int]:
        """Scales with a consolidated rate that is not 0."""
        found = self.scales(worker_type, job_type)
        return [scale for scale in found if self.rate(worker_type, job_type, scale).consolidated]

    def seconds_per_step(self, worker_type: str, job_type: JobType, scale: int) -> tuple[float, int] | None:
        """Seconds per counted step on one server, and the scale it was measured at; None where there is no rate.

        Where this scale has no rate, that of the nearest that has one (of two equally near the smaller) times the
        ratio of the scales is taken: the source counts the steps of all workers.
        """
        usable = self.usable_scales(worker_type, job_type)
        if not usable:
            return None
        nearest = min(usable, key=lambda s: (abs(s - scale), s))
        rate = self.rate(worker_type, job_type, nearest).consolidated
        assert rate
        return nearest / (rate * scale), nearest

    def require_worker(self, worker_type: str) -> None:
        """Refuse a type of worker that was not measured.

        Raises InputError: the line lists the types there are.
        """
        if worker_type not in self.worker_types:
            raise InputError(
                f"{self.source}: no rates of worker type {worker_type!r} (worker types: {', '.join(self.worker_types)})"
            )


# Per worker type and job type: (consolidated, unconsolidated) at 1, 2, 4 and 8 GPUs, where measured. A rate
# of 0.0 is in the source (a model that does not fit the GPU's memory); None is not in the source. One GPU
# has no placement, so both numbers are the same.
_SCALES = (1, 2, 4, 8)


_MEASURED: Mapping[str, Mapping[JobType, tuple[tuple[float, float | None], ...]]] = {
    "v100": {
        "ResNet-18 (batch size 16)": ((32.35, 32.35), (100.1, 35.34), (123.9, 40.59), (382.6, 64.41)),
        "ResNet-18 (batch size 32)": ((29.95, 29.95), (94.25, 32.66), (114.7, 38.12), (340.0, 63.2)),
        "ResNet-18 (batch size 64)": ((24.09, 24.09), (74.14, 31.48), (95.59, 38.31), (255.8, 63.15)),
        "ResNet-18 (batch size 128)": ((17.99, 17.99), (23.99, 24.51), (69.95, 35.36), (162.1, 61.14)),
        "ResNet-18 (batch size 256)": ((10.3, 10.3), (15.88, 19.7), (27.78, 30.23), (81.51, 53.86)),
        "ResNet-50 (batch size 16)": ((11.4, 11.4), (13.86, 10.04), (23.2, 14.9), (27.8, 25.17)),
        "ResNet-50 (batch size 32)": ((7.787, 7.787), (10.83, 8.974), (13.76, 12.85), (24.07, 22.83)),
        "ResNet-50 (batch size 64)": ((4.395, 4.395), (7.922, 6.866), (9.452, 11.14), (17.3, 19.76)),
        "ResNet-50 (batch size 128)": ((2.497, 2.497), (4.223, 4.334), (7.029, 7.506), (10.29, 13.94)),
        "Transformer (batch size 16)": ((11.06, 11.06), (14.15, 8.875), (20.08, 11.63), (71.65, 19.81)),
        "Transformer (batch size 32)": ((10.62, 10.62), (13.33, 8.719), (22.82, 11.96), (63.98, 19.12)),
        "Transformer (batch size 64)": ((8.618, 8.618), (15.88, 7.005), (19.66, 10.57), (49.65, 17.01)),
        "Transformer (batch size 128)": ((5.446, 5.446), (10.07, 5.049), (14.17, 7.784), (30.88, 13.03)),
        "Transformer (batch size 256)": ((1.595, 1.595), (2.885, 2.233), (4.763, 3.664), (9.717, 6.799)),
        "A3C": ((7.176, 7.176),),
        "LM (batch size 5)": ((109.2, 109.2), (185.7, 40.35), (126.7, 44.9), (698.8, 73.12)),
        "LM (batch size 10)": ((81.65, 81.65), (163.1, 35.14), (121.5, 37.82), (615.1, 65.52)),
        "LM (batch size 20)": ((64.74, 64.74), (132.2, 30.44), (111.0, 33.4), (497.3, 58.89)),
        "LM (batch size 40)": ((45.24, 45.24), (91.59, 21.22), (96.03, 29.17), (359.3, 52.04)),
        "LM (batch size 80)": ((28.24, 28.24), (58.09, 17.75), (74.81, 26.65), (231.2, 47.89)),
        "Recommendation (batch size 512)": ((23.32, 23.32),),
        "Recommendation (batch size 1024)": ((13.28, 13.28),),
        "Recommendation (batch size 2048)": ((7.47, 7.47),),
        "Recommendation (batch size 4096)": ((3.906, 3.906),),
        "Recommendation (batch size 8192)": ((2.842, 2.842),),
        "CycleGAN": ((4.426, 4.426),),
    },
    "p100": {
        "ResNet-18 (batch size 16)": ((35.87, 35.87), (60.91, 34.89), (94.32, 55.9), (130.1, 79.61)),
        "ResNet-18 (batch size 32)": ((35.83, 35.83), (57.52, 34.87), (97.04, 53.37), (142.0, 74.43)),
        "ResNet-18 (batch size 64)": ((22.3, 22.3), (41.48, 25.51), (74.99, 40.21), (120.0, 67.77)),
        "ResNet-18 (batch size 128)": ((11.68, 11.68), (24.23, 19.57), (45.35, 32.99), (85.08, 60.46)),
        "ResNet-18 (batch size 256)": ((7.723, 7.723), (14.23, 14.67), (27.73, 24.84), (53.96, 45.77)),
        "ResNet-50 (batch size 16)": ((9.053, 9.053), (16.19, 12.18), (30.8, 18.06), (44.76, 30.62)),
        "ResNet-50 (batch size 32)": ((4.888, 4.888), (9.749, 9.429), (18.55, 14.84), (33.57, 26.34)),
        "ResNet-50 (batch size 64)": ((2.619, 2.619), (5.516, 5.606), (10.36, 10.56), (18.22, 18.9)),
        "ResNet-50 (batch size 128)": ((1.584, 1.584), (2.881, 2.895), (5.191, 5.575), (9.935, 10.73)),
        "Transformer (batch size 16)": ((9.537, 9.537), (14.31, 9.006), (21.23, 14.31), (29.02, 21.11)),
        "Transformer (batch size 32)": ((7.869, 7.869), (11.22, 7.696), (18.16, 11.9), (26.22, 19.99)),
        "Transformer (batch size 64)": ((5.092, 5.092), (7.887, 5.505), (13.31, 9.007), (19.94, 15.18)),
        "Transformer (batch size 128)": ((3.074, 3.074), (5.087, 3.716), (8.774, 5.878), (13.68, 10.27)),
        "Transformer (batch size 256)": ((1.678, 1.678), (2.941, 2.429), (5.243, 3.976), (9.253, 7.314)),
        "A3C": ((5.681, 5.681),),
        "LM (batch size 5)": ((90.78, 90.78), (76.92, 38.75), (110.2, 55.37), (133.5, 94.88)),
        "LM (batch size 10)": ((77.08, 77.08), (72.53, 37.57), (105.2, 49.17), (127.8, 84.5)),
        "LM (batch size 20)": ((58.17, 58.17), (62.33, 32.86), (93.81, 40.94), (116.6, 65.83)),
        "LM (batch size 40)": ((35.77, 35.77), (48.04, 21.28), (76.05, 31.74), (102.2, 58.24)),
        "LM (batch size 80)": ((21.16, 21.16), (31.84, 17.27), (55.0, 26.68), (82.93, 48.89)),
        "Recommendation (batch size 512)": ((48.88, 48.88),),
        "Recommendation (batch size 1024)": ((30.74, 30.74),),
        "Recommendation (batch size 2048)": ((16.6, 16.6),),
        "Recommendation (batch size 4096)": ((8.897, 8.897),),
        "Recommendation (batch size 8192)": ((5.548, 5.548),),
        "CycleGAN": ((2.403, 2.403),),
    },
    "k80": {
        "ResNet-18 (batch size 16)": ((4.795, 4.795), (8.758, 9.264), (16.12, 17.08), (26.92, 32.28)),
        "ResNet-18 (batch size 32)": ((7.176, 7.176), (13.18, 14.51), (22.53, 25.51), (43.92, 46.5)),
        "ResNet-18 (batch size 64)": ((7.052, 7.052), (12.5, 13.99), (21.63, 25.07), (42.64, 45.61)),
        "ResNet-18 (batch size 128)": ((1.807, 1.807), (3.631, 3.948), (6.982, 7.93), (13.66, 15.77)),
        "ResNet-18 (batch size 256)": ((0.8856, 0.8856), (1.674, 1.88), (3.405, 3.771), (6.975, 7.742)),
        "ResNet-50 (batch size 16)": ((2.301, 2.301), (4.301, 4.683), (7.704, 9.316), (15.06, 18.09)),
        "ResNet-50 (batch size 32)": ((1.237, 1.237), (2.353, 2.559), (4.379, 5.04), (8.792, 10.0)),
        "ResNet-50 (batch size 64)": ((0.619, 0.619), (1.264, None), (2.412, None), (4.569, None)),
        "ResNet-50 (batch size 128)": ((0.3472, 0.3472), (0.0, None), (0.0, None), (0.0, None)),
        "Transformer (batch size 16)": ((5.467, 5.467), (7.047, 5.607), (10.27, 9.736), (18.62, 16.12)),
        "Transformer (batch size 32)": ((3.507, 3.507), (5.097, 4.15), (7.985, 6.95), (13.91, 12.3)),
        "Transformer (batch size 64)": ((1.752, 1.752), (3.063, 2.727), (5.031, 4.507), (8.976, 8.234)),
        "Transformer (batch size 128)": ((0.9816, 0.9816), (1.657, 1.566), (2.865, 2.853), (5.257, 5.178)),
        "Transformer (batch size 256)": ((0.4583, 0.4583), (0.8492, 0.8908), (1.513, 1.572), (2.923, 3.036)),
        "A3C": ((3.439, 3.439),),
        "LM (batch size 5)": ((25.49, 25.49), (32.39, 22.13), (44.09, 32.56), (76.86, 63.19)),
        "LM (batch size 10)": ((23.79, 23.79), (29.98, 21.14), (42.96, 32.38), (75.57, 62.65)),
        "LM (batch size 20)": ((17.14, 17.14), (23.77, 16.93), (35.7, 29.99), (61.45, 58.07)),
        "LM (batch size 40)": ((11.5, 11.5), (16.07, 13.41), (22.99, 23.45), (43.15, 46.32)),
        "LM (batch size 80)": ((6.054, 6.054), (10.01, 10.13), (16.39, 17.43), (28.29, 28.98)),
        "Recommendation (batch size 512)": ((32.86, 32.86),),
        "Recommendation (batch size 1024)": ((20.05, 20.05),),
        "Recommendation (batch size 2048)": ((10.44, 10.44),),
        "Recommendation (batch size 4096)": ((5.3, 5.3),),
        "Recommendation (batch size 8192)": ((2.699, 2.699),),
        "CycleGAN": ((0.5048, 0.5048),),
    },
}


BUILT_IN = Throughputs(
    source="built-in rates (stanford-futuredata/gavel)",
    rates={
        (worker, job_type, scale): Rate(*pair)
        for worker, jobs in _MEASURED.items()
        for job_type, pairs in jobs.items()
        for scale, pair in zip(_SCALES, pairs, strict=False)
    },
)
"""The built-in table: worker types v100, p100 and k80."""
