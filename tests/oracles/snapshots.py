"""Small clusters, what each format lists of them, and by exhaustive search what is true of their gangs.

Shares no code with the readers, the judge, the checker or any model.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PRICE_OF_MOVE, PRICE_OF_END = 1, 10


@dataclass(frozen=True)
class Node:
    """A node with all that it has."""

    name: str
    gpus: int
    cpu: int
    rack: str
    closed: bool = False


@dataclass(frozen=True)
class Runs:
    """A pod that runs."""

    name: str
    node: int
    gpus: int
    cpu: int
    priority: int
    gang: str = ""
    owned: bool = True  # by a controller, so that it may be moved
    leaving: bool = False  # is being deleted: of no gang any more, and gone soon
    listed: str = ""  # gang that a listing names where it is leaving


@dataclass(frozen=True)
class Gang:
    """Equal pods that wait; `least` of all its pods, those that run among them, are needed."""

    name: str
    count: int
    least: int
    gpus: int
    cpu: int
    priority: int = 0
    level: bool = False  # all of its pods in one rack
    apart: bool = False  # on a node each


@dataclass
class World:
    """One cluster."""

    nodes: list[Node]
    runs: list[Runs] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)

    def free(self, seats: Mapping[str, int | None] | None = None) -> list[tuple[int, int]]:
        """(GPUs, processors) that are free of each node; `seats` are of what runs: where it goes, None ended."""
        left = [[node.gpus, node.cpu] for node in self.nodes]
        for one in self.runs:
            at = one.node if seats is None else seats[one.name]
            if at is not None:
                left[at][0] -= one.gpus
                left[at][1] -= one.cpu
        return [(gpus, cpu) for gpus, cpu in left]

    def seated(self, gang: Gang) -> list[Runs]:
        """Pods of a gang that run."""
        return [one for one in self.runs if one.gang == gang.name]

    def needed(self, gang: Gang) -> int:
        """Fewest of its waiting pods that make sense."""
        return max(1, gang.least - len(self.seated(gang)))

    def fits(
        self,
        gang: Gang,
        free: Sequence[tuple[int, int]],
        *,
        racks: set[str] | None = None,  # in which its pods must lie where it asks for one; None: any one
        level: bool = True,
        closed: bool = False,
        cpu: bool = True,
        apart: bool = True,
    ) -> bool:
        """Whether its fewest pods fit, some conditions dropped."""
        room: dict[str, int] = {}
        for node, (gpus, processors) in zip(self.nodes, free, strict=True):
            if node.closed and not closed:
                continue
            most = [gpus // gang.gpus] if gang.gpus else []
            most += [processors // gang.cpu] if gang.cpu and cpu else []
            most += [1] if gang.apart and apart else []
            number = max(0, min(most, default=gang.count))
            key = node.rack if gang.level and level else ""
            if not (gang.level and level and racks is not None and node.rack not in racks):
                room[key] = room.get(key, 0) + number
        return max(room.values(), default=0) >= self.needed(gang)

    def racks_of(self, gang: Gang, seats: Mapping[str, int | None] | None = None) -> set[str] | None:
        """Racks in which its pods run; None where none does."""
        found = {
            self.nodes[at].rack
            for one in self.seated(gang)
            if (at := one.node if seats is None else seats[one.name]) is not None
        }
        return found or None

    def alone(self, gang: Gang, **dropped: bool) -> bool:
        """Whether a gang could be placed if nothing else waited."""
        racks = self.racks_of(gang)
        return not (gang.level and racks and len(racks) > 1) and self.fits(gang, self.free(), racks=racks, **dropped)

    # -- all decisions -------------------------------------------------------------------------------------------

    def decisions(self) -> Iterator[dict[str, int]]:
        """Pods that are placed of each gang, for every decision."""
        yield from self._from(0, self.free(), {})

    def _from(self, g: int, free: Sequence[tuple[int, int]], made: dict[str, int]) -> Iterator[dict[str, int]]:
        if g == len(self.gangs):
            yield made
            return
        yield from self._from(g + 1, free, made)
        gang = self.gangs[g]
        tied = self.racks_of(gang) if gang.level else None
        ranges = []
        for node, (gpus, cpu) in zip(self.nodes, free, strict=True):
            most = min(
                [gang.count, *([gpus // gang.gpus] if gang.gpus else []), *([cpu // gang.cpu] if gang.cpu else [])]
            )
            most = min(most, 1) if gang.apart else most
            shut = node.closed or (tied is not None and node.rack not in tied)
            ranges.append(range(0 if shut else max(0, most) + 1) if not shut else range(1))
        for counts in itertools.product(*ranges):
            total = sum(counts)
            racks = {node.rack for node, count in zip(self.nodes, counts, strict=True) if count}
            if not self.needed(gang) <= total <= gang.count or (gang.level and len(racks) > 1):
                continue
            left = [
                (gpus - count * gang.gpus, cpu - count * gang.cpu)
                for (gpus, cpu), count in zip(free, counts, strict=True)
            ]
            yield from self._from(g + 1, left, {**made, gang.name: total})

    def worth(self, decision: Mapping[str, int]) -> tuple[float, ...]:
        """Weights of placed gangs by priority, then of placed pods."""
        order = sorted({gang.priority for gang in self.gangs}, reverse=True)

        def weight(gang: Gang) -> float:
            return gang.count * gang.gpus or 1

        whole = [sum(weight(g) for g in self.gangs if g.priority == p and g.name in decision) for p in order]
        pods = [
            sum(weight(g) * decision.get(g.name, 0) / g.count for g in self.gangs if g.priority == p) for p in order
        ]
        return (*whole, *(round(one, 9) for one in pods))

    # -- all moves and preemptions -------------------------------------------------------------------------------

    def cures(self, gang: Gang, preempts: bool = True) -> Iterator[tuple[tuple[int, int], dict[str, int | None]]]:
        """((price, leaving pods that must have gone), seats) of all that a scheduler may do with which a gang fits."""
        choices: list[list[int | None]] = []
        for one in self.runs:
            found: list[int | None] = [one.node]
            if one.leaving:
                choices.append([one.node, None])
                continue
            if preempts and one.priority < gang.priority and one.gang != gang.name:
                found.append(None)
            if one.owned:
                found += [n for n, node in enumerate(self.nodes) if n != one.node and not node.closed]
            choices.append(found)
        for seats in itertools.product(*choices):
            made = dict(zip([one.name for one in self.runs], seats, strict=True))
            free = self.free(made)
            if min(min(pair) for pair in free) < 0 or not self._whole(made):
                continue
            racks = self.racks_of(gang, made)
            if gang.level and racks is not None and len(racks) > 1:
                continue
            if self.fits(gang, free, racks=racks):
                price = sum(
                    PRICE_OF_END if made[one.name] is None else PRICE_OF_MOVE * (made[one.name] != one.node)
                    for one in self.runs
                    if not one.leaving
                )
                yield (price, sum(one.leaving and made[one.name] is None for one in self.runs)), made

    def _whole(self, seats: Mapping[str, int | None]) -> bool:
        """Whether every gang that runs keeps its fewest pods, or none, and its rack."""
        for gang in self.gangs:
            mine = self.seated(gang)
            left = [seats[one.name] for one in mine if seats[one.name] is not None]
            if mine and 0 < len(left) < min(gang.least, len(mine)):
                return False
            if gang.level and len({self.nodes[n].rack for n in left if n is not None}) > 1:
                return False
        return True


def drawn(rng: random.Random, form: str) -> World:
    """A cluster of few nodes and gangs that a format can list."""
    kubernetes = form == "kubernetes"
    racks = rng.choice((1, 2))
    nodes = [
        Node(
            f"n{n}", rng.choice((1, 2, 2, 4)), rng.choice((2, 4, 8)), f"r{n % racks}", kubernetes and rng.random() < 0.2
        )
        for n in range(rng.choice((1, 2, 3)))
    ]
    world = World(nodes)
    gangs = []
    for g in range(rng.choice((1, 2, 2, 3)) if form != "own" else 2):
        count = rng.choice((1, 2, 2, 3))
        least = rng.randint(1, count) if form in ("kubernetes", "own") else count
        priority = rng.choice((0, 0, 10)) if form in ("kubernetes", "own") else 0
        apart = form in ("slurm", "ray") and count > 1 and (form == "slurm" or rng.random() < 0.4)
        gpus = rng.choice((0, 1, 1, 2)) if form != "ray" else rng.choice((1, 1, 2))
        level = form in ("kubernetes", "own") and rng.random() < 0.4
        gangs.append(Gang(f"g{g}", count, least, gpus, rng.choice((1, 1, 3)), priority, level, apart))
    world.gangs = gangs
    for k in range(rng.choice((1, 2, 3)) if form != "ray" else 0):
        n = rng.randrange(len(nodes))
        gpus, cpu = rng.choice((0, 1, 1, 2)), rng.choice((1, 2))
        free = world.free()[n]
        if gpus <= free[0] and cpu <= free[1]:
            priority = rng.choice((0, 5, 20)) if kubernetes else 0
            leaving = kubernetes and rng.random() < 0.25
            world.runs.append(Runs(f"x{k}", n, gpus, cpu, priority, "", rng.random() < 0.8, leaving))
    if kubernetes:
        _seat(rng, world)
    return world


def _seat(rng: random.Random, world: World) -> None:
    """Some pods of a gang run already."""
    for gang in world.gangs:
        n = rng.randrange(len(world.nodes))
        gpus, cpu = world.free()[n]
        if rng.random() < 0.35 and gang.gpus <= gpus and gang.cpu <= cpu:
            leaving = rng.random() < 0.25
            of = {"leaving": True, "listed": gang.name} if leaving else {"gang": gang.name}
            world.runs.append(Runs(f"{gang.name}-runs", n, gang.gpus, gang.cpu, gang.priority, **of))


# -- what formats list -------------------------------------------------------------------------------------------------


def kubernetes_listing(world: World) -> Any:
    """``kubectl get nodes,pods,podgroups -o json``."""
    items: list[Any] = []
    for node in world.nodes:
        room = {"cpu": str(node.cpu), "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(node.gpus)}
        spec = {"unschedulable": True} if node.closed else {}
        labels = {"kubernetes.io/hostname": node.name, "rack": node.rack}
        made = {"kind": "Node", "metadata": {"name": node.name, "labels": labels}, "spec": spec}
        items.append(made | {"status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}})
    by_name = {gang.name: gang for gang in world.gangs}
    for one in world.runs:
        items.append(_pod(one.name, one.gpus, one.cpu, one.priority, by_name.get(one.gang or one.listed), one.owned))
        items[-1]["metadata"] |= {"deletionTimestamp": "2026-11-30T00:00:00Z"} if one.leaving else {}
        items[-1]["spec"]["nodeName"] = world.nodes[one.node].name
        items[-1]["status"]["phase"] = "Running"
    for gang in world.gangs:
        items += [_pod(f"{gang.name}-{k}", gang.gpus, gang.cpu, gang.priority, gang, True) for k in range(gang.count)]
        meta = {"name": gang.name, "namespace": "d"}
        group = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": meta}
        items.append(group | {"spec": {"minMember": gang.least}})
    return {"items": items}


def _pod(name: str, gpus: int, cpu: int, priority: int, gang: Gang | None, owned: bool) -> Any:
    notes = {} if gang is None else {"scheduling.k8s.io/group-name": gang.name}
    if gang is not None and gang.level:
        notes["kueue.x-k8s.io/podset-required-topology"] = "rack"
    meta: dict[str, Any] = {"name": name, "namespace": "d", "annotations": notes}
    if owned:
        meta["ownerReferences"] = [{"kind": "Job", "name": "o", "controller": True}]
    requests = {"cpu": str(cpu), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    spec = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": requests}}]}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def own_listing(world: World) -> Any:
    """An instance of gang-placement: what runs is taken off, and may be ended or moved where it has a controller."""
    data: Any = {"problem": "gang-placement", "levels": ["rack"], "nodes": [], "running": [], "gangs": []}
    devices: list[list[int]] = []
    for node in world.nodes:
        devices.append([1000] * node.gpus)
        data["nodes"].append({"id": node.name, "domain": [node.rack], "gpus": devices[-1], "free": {"cpu": node.cpu}})
    for one in world.runs:
        there = [d for d, part in enumerate(devices[one.node]) if part == 1000][: one.gpus]
        for d in there:
            devices[one.node][d] = 0
        data["nodes"][one.node]["free"]["cpu"] -= one.cpu
        prices = {"movable": True, "move_price": PRICE_OF_MOVE} if one.owned else {}
        made = {"id": one.name, "node": world.nodes[one.node].name, "devices": {str(d): 1000 for d in there}}
        data["running"].append(made | {"request": {"cpu": one.cpu}} | prices)
    for gang in world.gangs:
        pods = [{"count": gang.count, "gpu": 1000 * gang.gpus, "request": {"cpu": gang.cpu}}]
        made = {"id": gang.name, "pods": pods, "least": gang.least, "priority": gang.priority}
        made |= {"weight": gang.count * gang.gpus or 1} | ({"required": "rack"} if gang.level else {})
        data["gangs"].append(made)
    return data


def slurm_listing(world: World) -> tuple[Any, str]:
    """(``squeue --json``, ``scontrol show nodes``)."""
    text = "".join(
        f"NodeName={node.name}\n   CPUTot={node.cpu}\n   Gres=gpu:{node.gpus}\n   RealMemory=8000\n   State=IDLE\n\n"
        for node in world.nodes
    )
    jobs = []
    for k, one in enumerate(world.runs):
        tres = f"cpu={one.cpu},node=1" + (f",gres/gpu={one.gpus}" if one.gpus else "")
        jobs.append(_job(100 + k, "RUNNING", 1, one.cpu, tres) | {"nodes": world.nodes[one.node].name})
        jobs[-1]["tres_alloc_str"] = tres
    for k, gang in enumerate(world.gangs):
        gpus = f",gres/gpu={gang.gpus * gang.count}" if gang.gpus else ""
        jobs.append(_job(k, "PENDING", gang.count, gang.cpu * gang.count, f"cpu=1,node={gang.count}{gpus}"))
    return {"jobs": jobs}, text


def _job(number: int, state: str, nodes: int, cpus: int, tres: str) -> dict[str, Any]:
    made = {"job_id": number, "job_state": state, "nodes": "", "node_count": nodes, "cpus": cpus, "tasks": nodes}
    return made | {"priority": 1000 - number, "tres_req_str": tres, "tres_alloc_str": "", "partition": ""}


def ray_listing(world: World) -> tuple[Any, Any]:
    """(placement groups, nodes)."""
    nodes = [
        {"node_id": node.name, "state": "ALIVE", "resources_total": {"CPU": float(node.cpu), "GPU": float(node.gpus)}}
        for node in world.nodes
    ]
    groups = []
    for gang in world.gangs:
        asked = {"GPU": float(gang.gpus), "CPU": float(gang.cpu)}
        bundles = [{"unit_resources": asked, "node_id": None} for _ in range(gang.count)]
        strategy = "STRICT_SPREAD" if gang.apart else "PACK"
        groups.append({"placement_group_id": gang.name, "state": "PENDING", "strategy": strategy, "bundles": bundles})
    return groups, nodes
