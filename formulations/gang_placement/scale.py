"""The objectives of gang-placement as components, and all of them as one whole number that orders like the vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import common_divisor, exact
from schedgap.formulations.gang_placement.instance import MOST_PODS, WHOLE, Gang, GangPlacementInstance, Shape

MOST_DECIMALS = 16


@dataclass(frozen=True)
class Component:
    """One entry of the vector."""

    kind: str  # weight, pods, split, domains, fragmentation or moves
    maximise: bool  # its sense
    step: Fraction  # every value is a whole multiple of it
    most: int  # the largest value, in steps
    priority: int | None = None  # priority whose weight and pods are counted; None where priorities are added up

    @property
    def name(self) -> str:
        """For tables: ``weight of priority 2``."""
        return self.kind if self.priority is None else f"{self.kind} of priority {self.priority}"

    @property
    def radix(self) -> int:
        """A power of ten above `most`, so that the components are blocks of digits."""
        return int(10 ** len(str(self.most)))

    def digit(self, value: Fraction) -> int:
        """`value` in steps, counted so that more is better."""
        steps = value / self.step
        return int(steps) if self.maximise else self.most - int(steps)

    def value(self, digit: int) -> Fraction:
        """The value of a digit."""
        return self.step * (digit if self.maximise else self.most - digit)


@once_per_instance
def components(instance: GangPlacementInstance) -> tuple[Component, ...]:
    """The vector's entries in the order asked for, without those that are the same in every solution.

    The weight of placed pods is left out where no gang of the priority can be placed in part: it equals the weight.
    """
    parts = {
        "weight": _weights,
        "topology": _topology,
        "fragmentation": _fragmentation,
        "moves": _moves,
    }
    return tuple(entry for name in instance.objectives for entry in parts[name](instance) if entry.most)


def encode(instance: GangPlacementInstance, digits: Sequence[int]) -> int:
    """The digits of the components as one number: it is larger exactly where the vector is better."""
    number = 0
    for entry, digit in zip(components(instance), digits, strict=True):
        number = number * entry.radix + digit
    return number


def score(instance: GangPlacementInstance, values: Sequence[Fraction]) -> int:
    """The number of a vector of values."""
    pairs = zip(components(instance), values, strict=True)
    return encode(instance, [entry.digit(value) for entry, value in pairs])


def decode(instance: GangPlacementInstance, number: int) -> tuple[Fraction, ...]:
    """The vector of values of a number."""
    found = []
    for entry in reversed(components(instance)):
        number, digit = divmod(number, entry.radix)
        found.append(entry.value(digit))
    return tuple(reversed(found))


def _priorities(instance: GangPlacementInstance) -> list[int | None]:
    """From the highest; one entry for all where they are added up, or there is only one."""
    found = sorted({gang.priority for gang in instance.gangs}, reverse=True)
    return [None] if instance.flat or len(found) < 2 else [*found]


def _of(instance: GangPlacementInstance, priority: int | None) -> list[Gang]:
    return [gang for gang in instance.gangs if priority is None or gang.priority == priority]


def _weights(instance: GangPlacementInstance) -> list[Component]:
    weights, pods = [], []
    for priority in _priorities(instance):
        gangs = _of(instance, priority)
        all_of_them = [exact(gang.weight) for gang in gangs]
        weights.append(_entry("weight", all_of_them, sum(all_of_them, Fraction(0)), priority))
        if any(gang.fewest < gang.size for gang in gangs):
            each = [exact(gang.weight) / gang.size for gang in gangs]
            pods.append(_entry("pods", each, sum(all_of_them, Fraction(0)), priority))
    return [*weights, *pods]


def _entry(
    kind: str, values: Iterable[Fraction], most: Fraction, priority: int | None = None, maximise: bool = True
) -> Component:
    """A component whose values are sums of multiples of `values`; its step is 1, 1/10, ... where one of these is."""
    step = common_divisor(values)
    for decimals in range(MOST_DECIMALS):
        if (step * 10**decimals).denominator == 1:
            step = Fraction(1, 10**decimals)
            break
    return Component(kind, maximise, step, int(most / step), priority)


def _topology(instance: GangPlacementInstance) -> list[Component]:
    found = []
    preferring = sum(gang.preferred is not None for gang in instance.gangs)
    if preferring:
        found.append(Component("split", False, Fraction(1), preferring))
    depths = range(1, len(instance.levels) + 2)
    there = [len({instance.domain(n, depth) for n in range(len(instance.nodes))}) for depth in depths]
    most = sum(min(gang.size, count) - 1 for gang in instance.gangs for count in there)
    return [*found, Component("domains", False, Fraction(1), most)]


def _fragmentation(instance: GangPlacementInstance) -> list[Component]:
    total = sum(sum(node.gpus) for node in instance.nodes)
    if instance.with_moves:
        total += sum(sum(pod.devices.values()) for pod in instance.running)
    return [_entry("fragmentation", shares(instance), Fraction(total), maximise=False)]


def shares(instance: GangPlacementInstance) -> tuple[Fraction, ...]:
    """p of each shape: the shares divided by their sum."""
    given = [exact(share) for _, share in instance.weighted_shapes]
    total = sum(given, Fraction(0))
    return tuple(share / total for share in given)


def _moves(instance: GangPlacementInstance) -> list[Component]:
    prices = []
    most = Fraction(0)
    for pod in instance.running:
        given = [pod.price if pod.preemptible else None, pod.move_price if pod.migratable else None]
        asked = [exact(price) for price in given if price is not None]
        prices += asked
        most += max(asked, default=Fraction(0))
    return [_entry("moves", prices, most, maximise=False)]


@once_per_instance
def capacities(instance: GangPlacementInstance) -> tuple[tuple[int, ...], ...]:
    """Thousandths of each device of each node that may be used.

    What is free, and what may be freed.
    """
    found = {node.id: list(node.gpus) for node in instance.nodes}
    for pod in instance.may_leave:
        for device, part in pod.devices.items():
            found[pod.node][int(device)] += part
    assert all(part <= WHOLE for parts in found.values() for part in parts)
    return tuple(tuple(parts) for parts in found.values())


@once_per_instance
def resources(instance: GangPlacementInstance) -> tuple[Counter[str], ...]:
    """Other resources of each node that may be used: what is free, and what may be freed."""
    found = {node.id: Counter(node.free) for node in instance.nodes}
    for pod in instance.may_leave:
        found[pod.node].update(pod.request)
    return tuple(found.values())


def most_pods(instance: GangPlacementInstance, shape: Shape, n: int) -> int:
    """How many pods of a shape alone a node may hold; 0 where its labels or model are not asked for."""
    if not shape.selector.takes(instance.nodes[n]):
        return 0
    free = resources(instance)[n]
    most = [free[name] // amount for name, amount in shape.request.items() if amount]
    return min([held_by(capacities(instance)[n], shape), *most])


def held_by(parts: Sequence[int], shape: Shape) -> int:
    """How many pods of a shape devices hold, by the thousandths that are free of each.

    :data:`MOST_PODS` where it asks for none.
    """
    if shape.gpu >= WHOLE:
        return sum(part == WHOLE for part in parts) // shape.devices
    if not shape.gpu:
        return MOST_PODS
    rooms = [part // shape.gpu for part in parts]
    most = sum(rooms) // shape.pieces
    # A pod has at most one part of a device, so of so many pods no device takes more; what is left is enough, as in the
    # theorem of Gale and Ryser.
    while shape.pieces > 1 and sum(min(room, most) for room in rooms) < shape.pieces * most:
        most -= 1
    return most
