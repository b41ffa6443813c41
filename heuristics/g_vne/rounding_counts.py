"""How often randomized rounding does what Theorem 8 promises: counts with confidence limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_distribution

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.g_vne.lp_rs_mde import Plan
from schedgap.heuristics.g_vne.mixture import Mixture, shares

_SAME = 1e-9


@dataclass(frozen=True)
class Frequency:
    """How often something happened."""

    # hits, trials: counts
    hits: int
    trials: int

    @property
    def value(self) -> float:
        """hits / trials."""
        return self.hits / self.trials

    def limits(self, confidence: float = 0.99) -> tuple[float, float]:
        """Clopper and Pearson's interval: it holds the probability with at least this confidence."""
        tail = (1 - confidence) / 2
        low = float(beta_distribution.ppf(tail, self.hits, self.trials - self.hits + 1)) if self.hits else 0.0
        failures = self.trials - self.hits
        high = float(beta_distribution.ppf(1 - tail, self.hits + 1, failures)) if failures else 1.0
        return low, high

    def plus(self, other: Frequency) -> Frequency:
        """Both counts together."""
        return Frequency(self.hits + other.hits, self.trials + other.trials)


@dataclass(frozen=True)
class Counts:
    """Roundings of one plan."""

    third: Frequency  # utility >= a third of the target
    within: Frequency  # all loads within the factors of the rings at hand
    both: Frequency  # both at once
    # printed_node, printed_link: trials are pairs of a rounding and a server's resource (a link); hits are loads of at
    # least the printed factor times the capacity
    printed_node: Frequency
    printed_link: Frequency
    # own_node, own_link: the same with the factors of the rings at hand
    own_node: Frequency
    own_link: Frequency
    worst: float  # largest load over capacity


def count_roundings(plan: Plan, target: float, trials: int, seed: int) -> Counts:
    """Round many times without looking at capacities.

    Parameters
    ----------
    plan : plan of Algorithm 2
    target : a third of this is wanted: the optimum, or the value of the weighted rings
    trials, seed : how many roundings, and their randomness
    """
    utility, load = plan.mixture.draw_many(np.random.default_rng(seed), trials)
    share = shares(load, plan.mixture.capacity)
    link = plan.factors.of_link
    third: NDArray[np.bool_] = np.asarray(utility >= target / 3 - _SAME)
    within: NDArray[np.bool_] = np.asarray((share <= plan.factors.instance + _SAME).all(axis=1))
    # what Theorem 8 bounds is a load of at least the factor, which counts only where it is above the capacity
    printed: NDArray[np.bool_] = (share >= plan.factors.printed - _SAME) & (share > 1 + _SAME)
    own: NDArray[np.bool_] = (share > plan.factors.instance + _SAME) & (share > 1 + _SAME)

    def count(hits: NDArray[np.bool_]) -> Frequency:
        return Frequency(int(hits.sum()), max(1, hits.size))

    return Counts(
        count(third),
        count(within),
        count(third & within),
        count(printed[:, ~link]),
        count(printed[:, link]),
        count(own[:, ~link]),
        count(own[:, link]),
        float(share.max(initial=0.0)),
    )


MOST_SUMS = 100_000
"""Different sums of utilities up to which a probability is computed exactly."""


def chance_of_third(mixture: Mixture, target: float) -> float | None:
    """The exact probability that a rounding's utility is at least a third of `target`.

    None where there are more than :data:`MOST_SUMS` different sums of utilities. Equal sums are merged, so jobs that
    are worth the same cost little.
    """
    sums: NDArray[np.float64] = np.zeros(1)
    chances: NDArray[np.float64] = np.ones(1)
    for first, last in mixture.groups:
        worth = np.append(mixture.utility[first:last], 0.0)
        weights = mixture.weights[first:last]
        parts = np.append(weights, max(0.0, 1.0 - float(weights.sum())))
        if len(sums) * len(worth) > MOST_SUMS:
            return None
        every = np.round((sums[:, None] + worth[None, :]).ravel(), 12)
        sums, place = np.unique(every, return_inverse=True)
        chances = np.bincount(place.ravel(), weights=(chances[:, None] * parts[None, :]).ravel()).astype(float)
    return float(chances[sums >= target / 3 - _SAME].sum())


A_THIRD = 1.0 - 1.5 / math.e
"""1 - 3/(2e) = 0.448: how often a rounding has a third of W at least; docs/proofs-g-vne.md."""


def promised(instance: GVneInstance) -> float:
    """1 - 3/(2e) - R V^-3 - E^-3: how often at least a rounding has a third and keeps all factors.

    A third: the weighted rings' value W is at least every single ring's utility, so utility / max is a sum of
    independent variables in [0, 1] of mean at least 1 (:data:`A_THIRD`). Loads: each of the R V servers' resources
    (E links) is exceeded with probability at most V^-4 (E^-4).
    """
    nodes, links = len(instance.servers), len(instance.links)
    asked = {name for job in instance.jobs for name, amount in job.demand.items() if amount > 0}
    lost = len(asked) * float(nodes) ** -3 + (float(links) ** -3 if links else 0.0)
    return A_THIRD - lost
