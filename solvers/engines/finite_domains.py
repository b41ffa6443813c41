"""Finite domains for integer variables that have none: derived and proven, never assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.engines.integers import (
    IntegerModel,
    Row,
    activity,
)

MAXIMUM_PASSES = 50
"""Passes over the rows; each derives at least one new bound, or ends the search."""


@dataclass(frozen=True)
class Rays:
    """Variables that improve the objective without end, each with its direction.

    A variable is one when its cost improves in that direction, it has no bound there, and every row with it
    becomes easier. Such a row can always be met by going far enough, so the model is unbounded exactly when
    the other rows, without these variables, have a solution.
    """

    directions: dict[int, int]


def _without(row: Row, place: int, model: IntegerModel, least: bool) -> int | None:
    """The smallest (or largest) activity of the row's other terms."""
    others = [(p, c) for p, c in zip(row.places, row.coefficients, strict=True) if p != place]
    rest = Row(row.name, [p for p, _ in others], [c for _, c in others], None, None)
    lowest, highest = activity(rest, model.low, model.high)
    return lowest if least else highest


def _needed(row: Row, place: int, coefficient: int, model: IntegerModel, upwards: bool) -> int | None:
    """The bound on ``x[place]`` that a row implies when its other terms are at their most generous.

    `upwards`: the largest value it can take; otherwise the smallest.
    """
    limit_is_high = (coefficient > 0) == upwards
    limit = row.high if limit_is_high else row.low
    if limit is None:
        return None
    rest = _without(row, place, model, least=limit_is_high)
    if rest is None:
        return None
    room = limit - rest
    return room // coefficient if upwards else -((-room) // coefficient)


def _harmless(row: Row, coefficient: int, direction: int) -> bool:
    """Whether moving a variable with this coefficient in `direction` can only help the row."""
    return row.high is None if coefficient * direction > 0 else row.low is None


def bound_domains(model: IntegerModel, names: Sequence[str]) -> Rays:
    """Give every variable of `model` a finite domain without losing the optimum, or refuse.

    Two arguments are used. A row bounds a variable when its other terms are bounded (no feasible point is
    lost). Where a variable's cost does not improve in a direction in which every row becomes easier, it need
    never go further than the row that asks most of it, all other terms at their worst (every feasible point
    can be moved there without harm, so an optimum remains).

    Where a ray is found, only feasibility is left to decide: `model` loses its cost, the rays' rows, and
    the rays themselves (domain 0..0). Raises ModelRefused: a variable whose bound follows from neither argument.
    """
    if model.contradictory:
        return Rays({})
    places = [
        place
        for place in range(len(names))
        if place not in model.fixed and (model.low[place] is None or model.high[place] is None)
    ]
    directions: dict[int, int] = {}
    by_place = _rows_of(model, places)
    for _ in range(MAXIMUM_PASSES):
        changed = False
        for place in places:
            for direction in (1, -1):
                side = model.high if direction > 0 else model.low
                if side[place] is not None:
                    continue
                entries = by_place[place]
                found = _from_rows(model, place, entries, direction)
                if found is None and all(_harmless(row, c, direction) for row, c in entries):
                    if model.cost.get(place, 0) * direction < 0:
                        directions[place] = direction
                        _drop(model, place)
                        by_place = _rows_of(model, places)
                        changed = True
                        break
                    found = _furthest(model, place, entries, direction)
                if found is not None:
                    side[place] = found
                    changed = True
        if not changed:
            break
    for place in places:
        if model.low[place] is None or model.high[place] is None:
            side_name = "upper" if model.high[place] is None else "lower"
            raise ModelRefused(
                f"engine cpsat: {names[place]} has no {side_name} bound and none follows from the model; "
                "CP-SAT needs finite domains (give it one, or use highs or cbc)"
            )
    return Rays(directions)


def _rows_of(model: IntegerModel, places: list[int]) -> dict[int, list[tuple[Row, int]]]:
    """The rows with each of `places`, and its coefficient there."""
    found: dict[int, list[tuple[Row, int]]] = {place: [] for place in places}
    if found:
        for row in model.rows:
            for place, coefficient in zip(row.places, row.coefficients, strict=True):
                if place in found:
                    found[place].append((row, coefficient))
    return found


def _drop(model: IntegerModel, ray: int) -> None:
    model.cost = {}
    model.rows = [row for row in model.rows if ray not in row.places]
    model.low[ray] = model.high[ray] = 0


def _from_rows(model: IntegerModel, place: int, entries: list[tuple[Row, int]], direction: int) -> int | None:
    bounds = [b for row, c in entries if (b := _needed(row, place, c, model, direction > 0)) is not None]
    if not bounds:
        return None
    return min(bounds) if direction > 0 else max(bounds)


def _furthest(model: IntegerModel, place: int, entries: list[tuple[Row, int]], direction: int) -> int | None:
    """How far `x[place]` need go in `direction` at most; None where a row's other terms are unbounded."""
    start = model.low[place] if direction > 0 else model.high[place]
    reach = 0 if start is None else start
    for row, coefficient in entries:
        towards_low = coefficient * direction > 0
        limit = row.low if towards_low else row.high
        if limit is None:
            continue
        rest = _without(row, place, model, least=towards_low)
        if rest is None:
            return None
        gap = limit - rest
        # smallest (largest) x with coefficient * x on the right side of `gap`
        need = -((-gap) // coefficient) if direction > 0 else gap // coefficient
        reach = max(reach, need) if direction > 0 else min(reach, need)
    return reach
