"""A shared link: its latency, its time per unit, and what contention costs (paper 001, eqs. 2 and 5)."""

from __future__ import annotations

from fractions import Fraction

from schedgap.formulations.common.instance import Moment, NonNegative, Part, Positive
from schedgap.formulations.common.numbers import exact


class Link(Part):
    """A link on which k active transfers each move 1 / (k b + (k - 1) eta) units per second.

    Attributes
    ----------
    latency : a of eq. (2), seconds between the admission of a transfer and its first unit
    seconds_per_unit : b of eq. (2), seconds per unit of a transfer that is alone
    contention_penalty : eta of eq. (5), further seconds per unit for every other active transfer
    """

    latency: Moment = 0.0
    seconds_per_unit: Positive
    contention_penalty: NonNegative = 0.0

    def seconds_per_unit_among(self, active: int) -> float:
        """Seconds per unit of each of `active` transfers: k b + (k - 1) eta, for k >= 1."""
        return active * self.seconds_per_unit + (active - 1) * self.contention_penalty

    def exact_parameters(self) -> tuple[Fraction, Fraction, Fraction]:
        """(a, b, eta) as the rational numbers they are written as."""
        return exact(self.latency), exact(self.seconds_per_unit), exact(self.contention_penalty)
