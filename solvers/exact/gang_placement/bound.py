"""The certified bound of gang-placement at any size, by prices, and ratios of scores."""

from __future__ import annotations

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE, ratio
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components, decode
from schedgap.solvers.certificates.checker import model_of
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.exact.gang_placement.merged import node_prices


@once_per_instance
def upper_bound(instance: GangPlacementInstance) -> int:
    """A number that the score of no decision exceeds.

    Each component alone is bounded: the vector of bounds is at least every vector, component by component, so its
    number is at least every number.

    Notes
    -----
    Of a priority the gangs weigh at most sum_n price_n capacity_n + sum_g max(0, weight_g - cheapest_g), whatever the
    prices; these are duals of the linear program by columns, a column being a way to place a gang, with equal nodes and
    equal pods merged. Parts of devices have values from cutting stock: no device holds more than a whole one is worth.
    The rules of the certificates add it up in exact fractions. One linear program a priority, then
    O(gangs x nodes log nodes).
    """
    model = model_of(plain(instance), "prices", {})
    assert model.price is not None
    found = [model.price(leaf, {}) for leaf in node_prices(instance)]
    return min(int(-value) for value in found if value is not None)


def ratio_of(instance: GangPlacementInstance, number: float | None, reference: float | None) -> float | None:
    """How many times worse a score is than a better one, in the first component that differs.

    1 where none does.
    """
    if number is None or reference is None:
        return None
    vectors = (decode(instance, int(one)) for one in (number, reference))
    for entry, value, other in zip(components(instance), *vectors, strict=True):
        if value != other:
            sense = MAXIMISE if entry.maximise else MINIMISE
            return ratio(float(value), float(other), sense)
    return 1.0
