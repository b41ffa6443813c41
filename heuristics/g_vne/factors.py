"""The factors beta and gamma of Theorem 8: by how much rounding overloads servers and links, at most, mostly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.heuristics.g_vne.mixture import Mixture
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem


@dataclass(frozen=True)
class Factors:
    """Factors on capacities, each row's as an array over the rows of the master."""

    printed: Floats  # (I,) Theorem 8's beta^r and gamma
    instance: Floats  # (I,) from the loads of the rings there are
    of_link: NDArray[np.bool_]  # (I,) whether the row is a link

    @property
    def summary(self) -> dict[str, float | None]:
        """The largest of each kind; None where no server (link) can be filled at all."""
        return {
            "beta_printed": _largest(self.printed[~self.of_link]),
            "gamma_printed": _largest(self.printed[self.of_link]),
            "beta_instance": _largest(self.instance[~self.of_link]),
            "gamma_instance": _largest(self.instance[self.of_link]),
        }


def _largest(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else None


def factors(subproblem: RingSubproblem, mixture: Mixture, sizes: Ints) -> Factors:
    """Both pairs of factors.

    Printed (Theorem 8): beta^r = 1 + epsilon sqrt(2 Delta^r log V) with Delta^r = max_u sum_i (C_i / d_i)^2, where a
    valid mapping of job i may put all kappa_i workers on a server u on which one fits, so C_i / d_i = kappa_i;
    gamma likewise over links with E, all kappa_i edges on one link. epsilon is the largest share of a capacity that
    a single worker (edge) asks for.

    Instance: with R_i the largest load of a row by one of the job's own weighted rings and A the rounding's load,
    Hoeffding's inequality gives P(A >= E A + sqrt(2 log(n) sum_i R_i^2)) <= n^-4, n being V or E. The factor is that
    load over the capacity, and at least 1.

    Parameters
    ----------
    subproblem, mixture : the program with fixed sizes and its weighted rings
    sizes : (J,) kappa
    """
    data = subproblem.data
    row_count = len(mixture.capacity)
    of_link = np.zeros(row_count, dtype=bool)
    of_link[subproblem.link_row[subproblem.link_row >= 0]] = True
    nodes, links = math.log(max(1, data.nodes)), math.log(max(1, len(data.tail)))
    logs = np.where(of_link, links, nodes)
    printed = np.ones(row_count)
    for r in range(data.capacity.shape[1]):
        asked = (data.demand[:, r] > 0) & (sizes > 0)
        takes = data.eligible & asked[:, None]
        spread = float((np.where(takes, sizes[:, None], 0.0) ** 2).sum(axis=0).max(initial=0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(takes, data.demand[:, r][:, None] / data.capacity[None, :, r], 0.0)
        rows = subproblem.node_row[:, r]
        printed[rows[rows >= 0]] = 1 + float(part.max(initial=0.0)) * math.sqrt(2 * spread * nodes)
    edges = (sizes > 1) & (data.job_bandwidth > 0)
    positive = data.bandwidth > 0
    if edges.any() and positive.any():
        usable = subproblem.wide & edges[:, None] & positive[None, :]
        spread = float((np.where(usable, sizes[:, None], 0.0) ** 2).sum(axis=0).max(initial=0.0))
        part = np.where(usable, data.job_bandwidth[:, None] / np.where(positive, data.bandwidth, 1.0)[None, :], 0.0)
        printed[of_link] = 1 + float(part.max(initial=0.0)) * math.sqrt(2 * spread * links)
    squares, mean = np.zeros(row_count), np.zeros(row_count)
    for first, last in mixture.groups:
        squares += mixture.load[first:last].max(axis=0) ** 2
        mean += mixture.weights[first:last] @ mixture.load[first:last]
    top = mean + np.sqrt(2 * logs * squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(top > 0, top / mixture.capacity, 0.0)
    return Factors(printed, np.maximum(1.0, own), of_link)
