"""The certified bound of gang-placement at any size: what each priority could place at most, by prices."""

from __future__ import annotations

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.certificates.checker import model_of
from schedgap.solvers.certificates.make import plain
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
    equal pods merged. The rules of the certificates add it up in exact fractions. One linear program a priority, then
    O(gangs x nodes log nodes).
    """
    model = model_of(plain(instance), "prices", {})
    assert model.price is not None
    value = model.price(node_prices(instance), {})
    assert value is not None
    return int(-value)
