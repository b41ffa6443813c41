"""Nodes, or single devices, as bins, and gangs whose fewest pods lie in one, as what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gang_placement.instance import NODE, WHOLE, Gang, GangPlacementInstance, Node, Shape
from schedgap.formulations.gang_placement.models.merged import Classes, first_pods
from schedgap.formulations.gang_placement.scale import Component

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Bin(NamedTuple):
    """A node, or one of its devices; `device` is None where pods ask for none."""

    node: int
    device: int | None


@dataclass(frozen=True)
class Bins:
    """Bins that are alike, and kinds of gangs.

    Attributes
    ----------
    bins : members of each class of bins
    kind : kind of each class of gangs: what its fewest pods ask for
    waiting : gangs of each kind that each class of bins may take
    sizes : what a gang of each kind asks for of each resource
    capacity : what a bin of each class has
    """

    classes: Classes
    bins: list[list[Bin]]
    kind: Ints
    waiting: Ints
    sizes: Ints
    capacity: Ints


Item = tuple[tuple[Shape, int], ...]
"""Shapes of pods that go to one bin together, each with its number."""


@once_per_instance
def bins_of(instance: GangPlacementInstance) -> Bins | None:
    """The bins and kinds of an instance; None where it has other rules than those of bins."""
    gangs = _items(instance)
    if gangs is None:
        return None
    _, items = gangs
    shapes = [shape for item in items for shape, _ in item]
    asked = any(amount for shape in shapes for amount in shape.request.values())
    with_devices = any(shape.gpu for shape in shapes)
    by_device = all(shape.gpu <= WHOLE for shape in shapes) and all(_pods(item) == 1 for item in items)
    parts = any(0 < shape.gpu < WHOLE for shape in shapes)
    if by_device and with_devices:
        by_device = parts or not asked
        by_device &= not asked or all(len(node.gpus) < 2 for node in instance.nodes)
        by_device &= asked or all(shape.gpu for shape in shapes)
    else:
        by_device = False
    if parts and (not by_device or any(shape.pieces > 1 for shape in shapes)):
        return None
    split = _by_device if by_device else _by_node
    return _grouped(
        instance, *gangs, lambda n, node: ((place, gpu * with_devices, ()) for place, gpu in split(n, node))
    )


@once_per_instance
def shared_nodes(instance: GangPlacementInstance) -> Bins | None:
    """Nodes as bins where single pods have parts of their devices; None where `bins_of` knows the instance, too.

    What is free of the devices, the most first, tells classes of nodes apart; a kind is one pod.
    """
    gangs = _items(instance)
    if gangs is None or bins_of(instance) is not None:
        return None
    _, items = gangs
    if any(_pods(item) != 1 for item in items) or any(shape.parts for item in items for shape, _ in item):
        return None
    return _grouped(instance, *gangs, lambda n, node: [(Bin(n, None), sum(node.gpus), tuple(sorted(node.gpus)))])


@once_per_instance
def _items(instance: GangPlacementInstance) -> tuple[Classes, list[Item]] | None:
    """Classes of gangs, and what goes to one bin of each; None where a gang has other rules than those of bins."""
    classes = Classes(instance)
    items = [item for members in classes.gangs if (item := _item(instance.gangs[members[0]])) is not None]
    return None if instance.with_moves or not items or len(items) < len(classes.gangs) else (classes, items)


def _grouped(
    instance: GangPlacementInstance,
    classes: Classes,
    items: Sequence[Item],
    bins: Callable[[int, Node], Iterable[tuple[Bin, int, tuple[int, ...]]]],
) -> Bins | None:
    """Bins and kinds that are alike.

    Parameters
    ----------
    bins : bins of a node, each with its thousandths of devices, and with what else tells it apart
    """
    kinds = {item: k for k, item in enumerate(dict.fromkeys(items))}
    kind = np.array([kinds[item] for item in items], dtype=np.int64)
    numbers = np.bincount(kind, weights=[len(members) for members in classes.gangs], minlength=len(kinds)).astype(int)
    names = sorted({name for item in items for shape, _ in item for name, amount in shape.request.items() if amount})
    sizes = np.array([_size(item, names) for item in kinds], dtype=np.int64)
    if not sizes.any(axis=1).all():  # whoever asks for nothing is in every pattern
        return None
    alike: dict[tuple[tuple[bool, ...], tuple[int, ...], tuple[int, ...]], list[Bin]] = {}
    for n, node in enumerate(instance.nodes):
        takes = tuple(all(shape.selector.takes(node) for shape, _ in item) for item in kinds)
        rest = tuple(node.free.get(name, 0) for name in names)
        for place, gpu, apart in bins(n, node):
            alike.setdefault((takes, (gpu, *rest), apart), []).append(place)
    accepted = np.array([which for which, _, _ in alike], dtype=np.int64)
    capacity = np.array([free for _, free, _ in alike], dtype=np.int64)
    return Bins(classes, list(alike.values()), kind, numbers * accepted, sizes, capacity)


def _item(gang: Gang) -> Item | None:
    """The fewest pods of a gang, where these all lie on one node; None where it has other rules than those of bins."""
    pods = tuple((gang.pods[k].shape, count) for k, count in _fewest(gang))
    together = gang.required == NODE or gang.fewest == 1
    if gang.queue is not None or not together or (gang.per_node or gang.fewest) < gang.fewest:
        return None
    return pods


def _fewest(gang: Gang) -> Iterator[tuple[int, int]]:
    """(group, pods) of the fewest pods of a gang."""
    return ((k, count) for k, count in enumerate(first_pods(gang, gang.fewest)) if count)


def _pods(item: Item) -> int:
    return sum(count for _, count in item)


def _size(item: Item, names: Sequence[str]) -> list[int]:
    """What the pods of an item ask for together: thousandths of devices, then other resources."""
    gpu = sum(shape.gpu * count for shape, count in item)
    return [gpu, *(sum(shape.request.get(name, 0) * count for shape, count in item) for name in names)]


def _by_device(n: int, node: Node) -> Iterator[tuple[Bin, int]]:
    """Devices of a node, each with what is free of it; the node where it has none."""
    yield from ((Bin(n, d), part) for d, part in enumerate(node.gpus)) if node.gpus else _by_node(n, node)


def _by_node(n: int, node: Node) -> Iterator[tuple[Bin, int]]:
    """A node, with what is free of devices that are entirely free."""
    yield Bin(n, None), WHOLE * sum(part == WHOLE for part in node.gpus)


def whole_devices(instance: GangPlacementInstance) -> list[list[int]]:
    """Devices of each node that are entirely free."""
    return [[d for d, part in enumerate(node.gpus) if part == WHOLE] for node in instance.nodes]


def seats(instance: GangPlacementInstance, gang: Gang, place: Bin, free: list[int]) -> Iterator[dict[str, object]]:
    """The fewest pods of a gang on a node; its whole devices that are left, in `free`, become fewer."""
    node = instance.nodes[place.node].id
    for k, count in _fewest(gang):
        shape = gang.pods[k]
        for _ in range(count):
            if place.device is not None:
                devices = [place.device] if shape.gpu else []
            else:
                devices = [free.pop() for _ in range(shape.devices)]
            yield {"group": k, "node": node, "devices": devices}


class Task:
    """A component that has to be as good as possible, those before it held; gangs by class, bins by class.

    Attributes
    ----------
    numbers, kind : gangs of each class, and their kind
    worth : weights in steps, by component and class of gangs
    bins : bins of each class
    """

    def __init__(
        self, instance: GangPlacementInstance, places: Bins, entries: Sequence[Component], held: Sequence[int]
    ) -> None:
        self.instance, self.places, self.held = instance, places, held
        gangs = [instance.gangs[members[0]] for members in places.classes.gangs]
        self.numbers = np.array([len(members) for members in places.classes.gangs], dtype=np.int64)
        self.kind, self.kinds = places.kind, len(places.sizes)
        self.shares = (places.sizes / np.maximum(1, places.capacity.max(axis=0)))[:, places.sizes.any(axis=0)]
        self.worth = [
            np.array([steps_of(gang.weight, entry) * (entry.priority in (None, gang.priority)) for gang in gangs])
            for entry in entries
        ]
        self.bins = np.array([len(alike) for alike in places.bins], dtype=np.int64)


def steps_of(weight: float, entry: Component) -> int:
    return int(Fraction(exact(weight)) / entry.step)
