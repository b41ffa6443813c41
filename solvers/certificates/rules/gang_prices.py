"""gang-placement: a bound on the score from prices of nodes.

Capacities are relaxed at prices of at least 0. A gang is worth its part of the objective less the cheapest price of its
pods, if that is positive. The bound is the sum over gangs plus the price of all that may be used: no decision is above
it, since a decision uses no more than there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import denominator, number, reject
except ImportError:  # run as a file
    from linear import denominator, number, reject  # type: ignore[import-not-found, no-redef]

Thing = Mapping[str, Any]


def fewest(gang: Thing) -> int:
    """Pods that a placed gang has at least."""
    return int(gang.get("least") or sum(group["count"] for group in gang["pods"]))


def pieces(shape: Thing, device: int) -> int:
    """Devices that a pod has something of: whole ones, or a part of each; 1 where it asks for none."""
    return max(1, int(shape.get("gpu") or 0) // device) * int(shape.get("parts") or 1)


class Priced:
    """A bound on the score from prices."""

    def __init__(self, told: Any, content: Any) -> None:
        self.told, self.content = told, content
        if not isinstance(content, dict) or not {"weights"} <= set(content) <= {"weights", "values"}:
            reject("prices: must be an object with weights and values")
        self.device: int = told.device
        sizes = {str(gpu): gpu for gpu in range(1, self.device + 1)}  # a pod that asks for none takes nothing
        if not content.get("values", {}).keys() <= sizes.keys():
            reject(f"prices: values must be of sizes from 1 to {self.device}")
        self.values = {sizes[gpu]: number(value, "value") for gpu, value in content.get("values", {}).items()}
        denominator(self.values.values())
        if any(value < 0 for value in self.values.values()):
            reject("prices: values must be 0 or more")
        self.held = self._held({group.get("gpu") or 0 for gang in told.gangs for group in gang["pods"]})
        self.cost: list[dict[Any, Fraction]] = []
        self.rooms: dict[str, list[int]] = {}

    def _held(self, sizes: Iterable[int]) -> list[Fraction]:
        """The most that parts are worth together, by what is free of a device; they may fill it exactly."""
        scale = denominator(self.values.values())  # whole numbers: fractions added so often take a stranger's time
        held, sizes = [0], {*sizes, self.device}
        worth = {gpu: int(self.value(gpu) * scale) for gpu in sizes}
        for free in range(1, self.device + 1):
            fitting = (held[free - gpu] + worth[gpu] for gpu in sizes if 0 < gpu <= free)
            held.append(max(held[-1], *fitting, 0))
        return [Fraction(value, scale) for value in held]

    def score(self) -> Fraction:
        """Every component at its bound or best."""
        weights = [entry for entry in self.told.digits if entry[0] == "weight"]
        if len(self.content["weights"]) != len(weights):
            reject(f"prices: weights must have {len(weights)} lists")
        most = {
            entry[1]: self._weight(entry[1], own) for entry, own in zip(weights, self.content["weights"], strict=True)
        }
        total, factor = Fraction(0), 1
        for kind, priority, step, best, *_ in reversed(self.told.digits):
            digit = best
            if kind in ("weight", "pods"):
                digit = min(best, math.floor(most[priority] / step))
            total += factor * digit
            factor *= 10 ** len(str(best))
        return total

    def _weight(self, priority: int | None, given: Any) -> Fraction:
        total = Fraction(0)
        self.cost = [{} for _ in self.told.nodes]
        prices = [(n, size, number(value, "price")) for n, size, value in given]
        denominator([price for _, _, price in prices])
        for n, size, price in prices:
            named = isinstance(size, str)
            if not 0 <= n < len(self.cost) or (not named and size < 0) or price < 0 or size in self.cost[n]:
                reject("prices: must be 0 or more, on nodes and sizes that there are, each once")
            self.cost[n][size] = price
            parts = self.told.capacity[n]
            if named:
                total += price * self.told.free(n, size)
            else:
                whole = sum(part == self.device for part in parts)
                total += price * (whole // size if size else sum(self.held[part] for part in parts))
        first: dict[Any, int] = {}
        self.alike = [first.setdefault((*cost.items(),), n) for n, cost in enumerate(self.cost)]
        kinds: dict[str, Fraction | None] = {}
        for gang in self.told.gangs:
            if priority is None or (gang.get("priority") or 0) == priority:
                kind = repr([(key, gang.get(key)) for key in ("pods", "least", "per_node", "required", "subgroups")])
                if kind not in kinds:
                    kinds[kind] = self._gang(gang)
                least = kinds[kind]
                total += max(Fraction(0), Fraction(gang.get("weight", 1)) - least) if least is not None else 0
        return total

    def value(self, gpu: int) -> Fraction:
        """The value of a part of a device, or of a whole one."""
        return self.values.get(gpu, Fraction(gpu))

    def asked(self, group: Thing, size: Any) -> Any:
        """What a pod takes of what has a price."""
        gpu = group.get("gpu") or 0
        if isinstance(size, str):
            return (group.get("request") or {}).get(size) or 0
        if size:
            return gpu // self.device // size
        if gpu < self.device:
            return pieces(group, self.device) * self.value(gpu) if gpu else 0
        return gpu // self.device * self.value(self.device)

    def _gang(self, gang: Thing) -> Fraction | None:
        """The least price of its fewest pods in one domain; None where none has room.

        Groups whose deepest subgroup is the same are in one domain of its level inside.
        """
        missing, depth = fewest(gang), self.told.depth(gang.get("required"))
        levels = {one["id"]: self.told.depth(one["required"]) for one in gang.get("subgroups") or []}
        blocks: dict[Any, list[tuple[Thing, int]]] = {}
        for k, group in enumerate(gang["pods"]):
            asked = min(missing, group["count"])
            missing -= asked
            mine = group.get("subgroups")
            blocks.setdefault(max(mine, key=levels.__getitem__) if mine else k, []).append((group, asked))
        total: list[Fraction] = []
        for nodes in self._apart(range(len(self.told.nodes)), depth):
            prices = [
                self._block(gang, block, self._apart(nodes, levels.get(name, 0))) for name, block in blocks.items()
            ]
            given = [price for price in prices if price is not None]
            total += [sum(given, Fraction(0))] if len(given) == len(prices) else []
        return min(total, default=None)

    def _apart(self, nodes: Iterable[int], depth: int) -> Iterable[list[int]]:
        """Nodes by their domain at a depth."""
        places: dict[tuple[str, ...], list[int]] = {}
        for n in nodes:
            places.setdefault(self.told.domain(n, depth), []).append(n)
        return places.values()

    def _block(self, gang: Thing, block: Sequence[tuple[Thing, int]], places: Iterable[list[int]]) -> Fraction | None:
        """The least price of so many pods of groups in one of some places."""
        total: list[Fraction] = []
        for nodes in places:
            price = Fraction(0)
            for group, asked in block:
                more = self._cheapest(group, asked, gang.get("per_node") or asked, nodes)
                if more is None:
                    break
                price += more
            else:
                total.append(price)
        return min(total, default=None)

    def _price(self, group: Thing, n: int) -> Fraction:
        return sum((p * self.asked(group, size) for size, p in self.cost[n].items()), Fraction(0))

    def _cheapest(self, group: Thing, asked: int, per_node: int, nodes: Sequence[int]) -> Fraction | None:
        gpu = group.get("gpu") or 0
        key = repr((gpu, group.get("parts"), group["count"], group.get("request"), group.get("selector")))
        if key not in self.rooms:
            self.rooms[key] = [self.told.room(n, group, group["count"]) for n in range(len(self.told.nodes))]
        rooms: dict[int, int] = {}
        for n in nodes:
            rooms[self.alike[n]] = rooms.get(self.alike[n], 0) + min(self.rooms[key][n], per_node)
        total = Fraction(0)
        for price, room in sorted((self._price(group, n), rooms[n]) for n in rooms):
            taken = min(asked, room)
            total, asked = total + price * taken, asked - taken
        return None if asked else total
