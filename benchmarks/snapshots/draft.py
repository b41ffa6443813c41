"""An instance of gang-placement in the making, with the decision and what was not read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import MOST_GPUS, Json, Solution
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance

EVEN = "its processors and memory are read as equal shares on its nodes; other shares may fit"
WHOLLY = "its PodGroup is not listed, so it is read as all of its pods or none; fewer may do"
"""What is not told about a gang, of which its being kept out may rest on."""
SHORTENED = "names of more than 200 characters, shortened"


@dataclass
class Draft:
    """An instance in the making."""

    source: str
    levels: Sequence[str] = ()  # of the topology, widest first
    index: dict[str, int] = field(default_factory=dict)  # position of a node by its own name
    nodes: list[dict[str, Any]] = field(default_factory=list)
    running: list[dict[str, Any]] = field(default_factory=list)
    gangs: list[dict[str, Any]] = field(default_factory=list)
    placement: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)  # what was not understood or left out, counted
    seated: Counter[str] = field(default_factory=Counter)  # by gang, pods that are not decided about any more
    rests: dict[str, str] = field(default_factory=dict)  # by gang, EVEN or WHOLLY
    cut: dict[str, str] = field(default_factory=dict)  # long names, as told
    kinds: dict[tuple[int, ...], str] = field(default_factory=dict)
    bound: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def node(
        self,
        name: str,
        devices: int,
        model: str | None,
        free: Mapping[str, int],
        place: str,
        domain: Sequence[str] = (),
    ) -> None:
        """A node with all that it has."""
        if name in self.index:
            raise InputError(f"{place}: node {name!r} is there twice")
        if devices > MOST_GPUS:
            raise InputError(f"{place}: a node with {devices} GPUs, at most {MOST_GPUS} are supported")
        self.index[name] = len(self.nodes)
        made = {"id": name, "domain": list(domain), "gpus": [WHOLE] * devices, "free": dict(free), "labels": {}}
        self.nodes.append(made | ({"gpu_model": model} if model else {}))

    @staticmethod
    def distinct(given: Iterable[tuple[str, str]]) -> None:
        """Refuse a name, told with its place, that is there twice."""
        seen: set[str] = set()
        for name, place in given:
            if name in seen:
                raise InputError(f"{place}: {name[:60]!r} is there twice")
            seen.add(name)

    def run(self, name: str, n: int, devices: int, request: Mapping[str, int]) -> dict[str, Json]:
        """A pod that runs takes the first devices that are free; what is known of it."""
        node = self.nodes[n]
        free = [d for d, part in enumerate(node["gpus"]) if part == WHOLE][:devices]
        self.unread["GPUs that run on a node beyond those it has"] += devices - len(free)
        for d in free:
            node["gpus"][d] = 0
        for resource, amount in request.items():
            left = node["free"].get(resource, 0) - amount
            node["free"][resource] = max(0, left)
            self.unread[f"{resource} that runs on a node beyond what it has"] += max(0, -left)
        made = {"node": node["id"], "devices": {str(d): WHOLE for d in free}, "request": dict(request)}
        self.running.append({"id": name, **made})
        return self.running[-1]

    def selector(self, nodes: Sequence[int]) -> dict[str, Json]:
        """A label on the nodes that take a pod."""
        if len(nodes) == len(self.nodes):
            return {}
        kind = self.kinds.setdefault(tuple(nodes), f"takes-{len(self.kinds)}")
        for n in nodes:
            self.nodes[n]["labels"][kind] = "yes"
        return {"labels": {kind: "yes"}}

    def wait(
        self, name: str, groups: Sequence[dict[str, Json]], seats: Iterable[tuple[int, int]], **more: Json
    ) -> None:
        """A gang; `seats` are (group, node) of the pods that the scheduler placed."""
        total = sum(group["gpu"] * group["count"] for group in groups)
        made: dict[str, Any] = {key: value for key, value in more.items() if value is not None}
        made["id"] = name
        made["pods"] = list(groups)
        made["weight"] = total / WHOLE if total else 1.0
        made["arrival"] = float(len(self.gangs))
        self.gangs.append(made)
        placed = [self._seat(k, groups[k]["gpu"], n) for k, n in seats]
        if placed:
            self.placement[name] = placed

    def _seat(self, k: int, gpu: int, n: int) -> dict[str, Any]:
        """The first devices that hold it beside what was placed before."""
        part = min(gpu, WHOLE)
        there = [d for d, free in enumerate(self.nodes[n]["gpus"]) if part and free - self.bound[n, d] >= part]
        devices = there[: max(1, gpu // WHOLE)]
        for d in devices:
            self.bound[n, d] += part
        return {"group": k, "node": self.nodes[n]["id"], "devices": devices}

    def finished(self) -> tuple[GangPlacementInstance, Solution, Mapping[str, int]]:
        """(instance, decision, what was not read)."""
        data = {"problem": "gang-placement", "levels": list(self.levels), "nodes": self.nodes}
        data |= {"running": self.running, "gangs": self.gangs}
        instance = GangPlacementInstance.parse(shortened(data, self.cut), self.source)
        decision = shortened({"placement": self.placement}, self.cut)
        self.unread[SHORTENED] = len(self.cut)
        return instance, decision, {what: count for what, count in self.unread.items() if count}
