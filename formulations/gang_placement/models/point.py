"""From values of the integer program to a decision, and back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pulp

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Key, Layout
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance, GangPlacementSolution, Shape
from schedgap.formulations.gang_placement.scale import capacities, resources

Value = Callable[[pulp.LpVariable], float]


class _Point:
    """The values of one point, rounded."""

    def __init__(self, instance: GangPlacementInstance, layout: Layout, value: Value) -> None:
        self.instance = instance
        self.values: dict[str, dict[Key, int]] = {
            family: {key: round(value(variable)) for key, variable in members.items()}
            for family, members in layout.variables.items()
        }
        self.pool = {node.id: list(self._wholes(n)) for n, node in enumerate(instance.nodes)}

    def _wholes(self, n: int) -> Iterator[int]:
        """Devices that are taken whole, or may be where the model does not say which."""
        name = self.instance.nodes[n].id
        taken = self.values.get("whole", {})
        said = any(key[0] == name for key in taken if isinstance(key, tuple))
        for device, part in enumerate(capacities(self.instance)[n]):
            if taken.get((name, device), 0) if said else part == WHOLE:
                yield device

    def seats(self, family: str, key: tuple[str | int, ...], shape: Shape) -> Iterator[tuple[str, list[int]]]:
        """(node, devices) of each pod."""
        for node in self.instance.nodes:
            count = self.values.get(family, {}).get((*key, node.id), 0)
            if not 0 < shape.gpu < WHOLE:
                for _ in range(count):
                    taken, self.pool[node.id] = (
                        self.pool[node.id][: shape.devices],
                        self.pool[node.id][shape.devices :],
                    )
                    yield node.id, taken
                continue
            parts = self.values.get("part" if family == "pods" else "moved_part", {})
            rest = Counter({device: parts.get((*key, node.id, device), 0) for device in range(len(node.gpus))})
            for _ in range(count):  # of several devices those with the most parts that are left: so none is left over
                taken = sorted(sorted(rest, key=lambda device: -rest[device])[: shape.pieces])
                rest.subtract(taken)
                yield node.id, taken


def extract(instance: GangPlacementInstance, layout: Layout, value: Value) -> Solution:
    """The decision that the values say."""
    found = _Point(instance, layout, value)
    placement: dict[str, list[dict[str, Any]]] = {}
    for gang in instance.gangs:
        pods = [
            {"group": k, "node": node, "devices": devices}
            for k, group in enumerate(gang.pods)
            for node, devices in found.seats("pods", (gang.id, k), group)
        ]
        if pods:
            placement[gang.id] = pods
    if not instance.with_moves:
        return {"placement": placement}
    ended = found.values.get("ended", {})
    moved = {}
    for pod in instance.running:
        for node, devices in found.seats("moved", (pod.id,), pod.shape) if pod.migratable else ():
            moved[pod.id] = {"node": node, "devices": devices}
    return {
        "placement": placement,
        "preempted": [pod.id for pod in instance.running if ended.get(pod.id)],
        "moved": moved,
    }


def point(instance: GangPlacementInstance, layout: Layout, solution: Solution) -> Mapping[pulp.LpVariable, float]:
    """The values of a decision; empty where the model does not have it."""
    found = _values(instance, GangPlacementSolution.parse(solution))
    _measure(instance, layout, found)
    values: dict[pulp.LpVariable, float] = {}
    for family, members in layout.variables.items():
        given = found[family]
        if any(amount and key not in members for key, amount in given.items()) and family in ("pods", "part", "moved"):
            return {}
        values |= {variable: float(given.get(key, 0)) for key, variable in members.items()}
    return values


def _values(instance: GangPlacementInstance, solution: GangPlacementSolution) -> dict[str, Counter[Key]]:
    """What stands in the decision itself."""
    found: dict[str, Counter[Key]] = defaultdict(Counter)
    for gang in instance.gangs:
        pods = solution.placement.get(gang.id, ())
        found["placed"][gang.id] = int(bool(pods))
        for pod in pods:
            _seat(found, ("pods", "part"), (gang.id, pod.group), gang.pods[pod.group].gpu, pod.node, pod.devices)
            flavour = instance.nodes[instance.node_index[pod.node]].flavour
            found["flavour"][gang.id, pod.group, flavour or ""] = 1
        counted = Counter(pod.group for pod in pods)
        for k, group in enumerate(gang.pods[:-1]):
            found["filled"][gang.id, k] = int(counted[k] == group.count)
        for depth, level in enumerate((*instance.levels, "node"), 1):
            used = {instance.domain(instance.node_index[pod.node], depth) for pod in pods}
            found["domain"].update({(gang.id, level, "/".join(domain)): 1 for domain in used})
            if depth == instance.depth(gang.preferred):
                found["split"][gang.id] = int(len(used) > 1)
        for subgroup in gang.subgroups or ():
            depth = instance.depth(subgroup.required)
            mine = [pod for pod in pods if subgroup.id in (gang.pods[pod.group].subgroups or ())]
            used = {instance.domain(instance.node_index[pod.node], depth) for pod in mine}
            found["within"].update({(gang.id, subgroup.id, "/".join(domain)): 1 for domain in used})
    for name in solution.preempted:
        found["ended"][name] = 1
    running = {pod.id: pod for pod in instance.running}
    for name, seat in solution.moved.items():
        _seat(found, ("moved", "moved_part"), (name,), running[name].shape.gpu, seat.node, seat.devices)
    return found


def _seat(
    found: dict[str, Counter[Key]],
    families: tuple[str, str],
    key: tuple[str | int, ...],
    gpu: int,
    node: str,
    devices: tuple[int, ...],
) -> None:
    found[families[0]][(*key, node)] += 1
    for device in devices:
        if gpu < WHOLE:
            found[families[1]][(*key, node, device)] += 1
            found["used"][node, device] += gpu
        else:
            found["whole"][node, device] = 1
            found["used"][node, device] += WHOLE


def _measure(instance: GangPlacementInstance, layout: Layout, found: dict[str, Counter[Key]]) -> None:
    """The variables of fragmentation, from what is left."""
    if "fits" not in layout.variables:
        return
    leaves = {*found["ended"], *(str(key[0]) for key in found["moved"] if isinstance(key, tuple))}
    for n, node in enumerate(instance.nodes):
        left = list(capacities(instance)[n])
        free = Counter(resources(instance)[n])
        for pod in instance.may_leave:
            if pod.node == node.id and pod.id not in leaves:
                free.subtract(pod.request)
                for device, part in pod.devices.items():
                    left[int(device)] -= part
        left = [part - found["used"][node.id, d] for d, part in enumerate(left)]
        for key, count in [*found["pods"].items(), *found["moved"].items()]:
            if isinstance(key, tuple) and key[-1] == node.id:
                free.subtract({name: amount * count for name, amount in _request(instance, key).items()})
        for s, (shape, _) in enumerate(instance.weighted_shapes):
            useful = [part >= min(shape.gpu, WHOLE) for part in left]
            enough = sum(useful) >= max(1, shape.pieces)
            enough &= all(free[resource] >= amount for resource, amount in shape.request.items())
            found["fits"][s, node.id] = int(enough)
            for d, part in enumerate(left):
                found["useful"][s, node.id, d] = int(enough and useful[d])
                found["lost"][s, node.id, d] = 0 if enough and useful[d] else part


def _request(instance: GangPlacementInstance, key: tuple[str | int, ...]) -> Mapping[str, int]:
    """The request of a pod, from the key of its variable."""
    if len(key) == 2:
        return next(pod.request for pod in instance.running if pod.id == key[0])
    gang = next(gang for gang in instance.gangs if gang.id == key[0])
    return gang.pods[int(key[1])].request
