"""The certified bound of gang-placement at any size: what each priority could place at most, by adding up."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gang_placement.instance import Gang, GangPlacementInstance, Group
from schedgap.formulations.gang_placement.scale import capacities, components, encode, held_by


@once_per_instance
def upper_bound(instance: GangPlacementInstance) -> int:
    """A number that the score of no decision exceeds.

    Each component alone is bounded: the vector of bounds is at least every vector, component by component, so its
    number is at least every number.

    Notes
    -----
    Of the gangs of a priority that could be placed alone, a part of each may be placed: by weight per thousandth of a
    GPU, until the GPUs of the cluster are used up (the linear relaxation of the knapsack, in exact fractions).
    O(nodes x groups + gangs log gangs).
    """
    room = _Room(instance)
    digits = []
    for entry in components(instance):
        if entry.kind not in ("weight", "pods"):
            digits.append(entry.digit(Fraction(0)))
            continue
        mine = [gang for gang in instance.gangs if entry.priority in (None, gang.priority)]
        best = room.fractional(mine) if entry.kind == "weight" else room.fractional(mine, of_pods=True)
        digits.append(min(entry.most, int(best / entry.step)))
    return encode(instance, digits)


class _Room:
    """What the cluster has, devices by node."""

    def __init__(self, instance: GangPlacementInstance) -> None:
        self.instance = instance
        self.capacity = capacities(instance)
        self.total = sum(map(sum, self.capacity))
        self.hosted: dict[Group, list[int]] = {}

    def hosts(self, group: Group) -> list[int]:
        """By node, how many pods of the group would fit there alone, by devices."""
        kind = group.model_copy(update={"count": 1})
        if kind not in self.hosted:
            self.hosted[kind] = [self._pods(group, n) for n in range(len(self.capacity))]
        return self.hosted[kind]

    def _pods(self, group: Group, n: int) -> int:
        if not group.selector.takes(self.instance.nodes[n]):
            return 0
        return held_by(self.capacity[n], group)

    def needs(self, gang: Gang) -> int | None:
        """Thousandths that the fewest pods of the gang take; None where they would not fit alone.

        Where it has a required level, in one of its domains.
        """
        left, needed = gang.fewest, 0
        depth = self.instance.depth(gang.required)
        for group in gang.pods:
            asked = min(left, group.count)
            by_domain: dict[tuple[str, ...], int] = {}
            for n, pods in enumerate(self.hosts(group)):
                domain = self.instance.domain(n, depth)
                by_domain[domain] = by_domain.get(domain, 0) + min(pods, gang.per_node or pods)
            if max(by_domain.values(), default=0) < asked:
                return None
            left, needed = left - asked, needed + asked * group.gpu
        return needed

    def fractional(self, gangs: Iterable[Gang], *, of_pods: bool = False) -> Fraction:
        """The most weight of parts of gangs that the GPUs of the cluster hold.

        Parameters
        ----------
        of_pods : a gang of which so many pods are placed is worth that part of its weight
        """
        worth = Fraction(0)
        offers = []
        for gang in gangs:
            needed = self.needs(gang)
            if needed is None:
                continue
            # The least dense parts of a gang may be left out, so of pods nothing is said about density.
            if needed == 0 or of_pods:
                worth += exact(gang.weight)
            else:
                offers.append((exact(gang.weight) / needed, needed))
        left = self.total
        for density, needed in sorted(offers, reverse=True):
            taken = min(left, needed)
            worth += density * taken
            left -= taken
        return worth
