"""Brute force for gang-placement: every decision of a tiny instance, judged by rules written out anew.

The search uses nothing of the problem's checker, model or scale: feasibility is read off the state while pods are put
down, the objectives are tuples that Python compares, and only the instance's own fields are read.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from oracles import TooManyError
from schedgap.formulations.gang_placement.check import check
from schedgap.formulations.gang_placement.instance import GangPlacementInstance, GangPlacementSolution
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Vector = tuple[Fraction, ...]
Pod = tuple[int, str, tuple[int, ...]]


def F(value: Any) -> Fraction:
    return Fraction(str(value))


class Search:
    """All decisions of one instance, as JSON data.

    Parameters
    ----------
    most : decisions that are looked at before the search gives up
    """

    def __init__(self, data: dict[str, Any], most: int = 200_000) -> None:
        self.data = data
        self.most = most
        self.seen = 0
        self.nodes = {node["id"]: node for node in data["nodes"]}
        self.levels = [*data.get("levels", []), "node"]
        self.objectives = data.get("objectives") or ["weight", "topology"]
        self.running = data.get("running", [])
        self.gangs = data["gangs"]
        self.left = {node["id"]: list(node.get("gpus", [])) for node in data["nodes"]}
        self.free = {node["id"]: dict(node.get("free", {})) for node in data["nodes"]}
        self.placed: dict[str, list[Pod]] = {}
        self.ended: list[str] = []
        self.moved: dict[str, tuple[str, tuple[int, ...]]] = {}

    def decisions(self) -> Iterator[tuple[Vector, dict[str, Any]]]:
        """(vector with all components to be maximised, solution) of each feasible decision."""
        yield from self._leave(0)

    # -- what runs -----------------------------------------------------------------------------------------------

    def _leave(self, position: int) -> Iterator[tuple[Vector, dict[str, Any]]]:
        if "moves" not in self.objectives or position == len(self.running):
            yield from self._move(0)
            return
        pod = self.running[position]
        yield from self._leave(position + 1)
        if not pod.get("movable"):
            return
        options = [kind for kind in ("price", "move_price") if pod.get(kind) is not None]
        for kind in options:
            self._give(pod)
            if kind == "price":
                self.ended.append(pod["id"])
                yield from self._leave(position + 1)
                self.ended.pop()
            else:
                self.moved[pod["id"]] = ("", ())
                yield from self._leave(position + 1)
                del self.moved[pod["id"]]
            self._give(pod, -1)

    def _give(self, pod: dict[str, Any], sign: int = 1) -> None:
        for device, part in pod.get("devices", {}).items():
            self.left[pod["node"]][int(device)] += sign * part
        for resource, amount in pod.get("request", {}).items():
            there = self.free[pod["node"]]
            there[resource] = there.get(resource, 0) + sign * amount

    def _move(self, position: int) -> Iterator[tuple[Vector, dict[str, Any]]]:
        names = sorted(self.moved)
        if position == len(names):
            yield from self._gang(0)
            return
        pod = next(pod for pod in self.running if pod["id"] == names[position])
        parts = list(pod.get("devices", {}).values())
        gpu = sum(parts)
        for node, devices in self._seats(gpu, pod.get("request", {}), pod.get("selector", {})):
            self._take(node, devices, gpu, pod.get("request", {}))
            self.moved[pod["id"]] = (node, devices)
            yield from self._move(position + 1)
            self._take(node, devices, gpu, pod.get("request", {}), -1)
        self.moved[pod["id"]] = ("", ())

    # -- seats ---------------------------------------------------------------------------------------------------

    def _seats(
        self, gpu: int, request: dict[str, int], selector: dict[str, Any], parts: int = 1
    ) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, node in self.nodes.items():
            labels = node.get("labels", {})
            if any(labels.get(key) != value for key, value in selector.get("labels", {}).items()):
                continue
            models = selector.get("models") or []
            if models and node.get("gpu_model") not in models:
                continue
            if any(self.free[name].get(key, 0) < amount for key, amount in request.items()):
                continue
            left = self.left[name]
            if gpu == 0:
                yield name, ()
            elif gpu < 1000:
                holding = [d for d, part in enumerate(left) if part >= gpu]
                yield from ((name, devices) for devices in itertools.combinations(holding, parts))
            else:  # whole devices that are entirely free are alike, but for what may have run on them
                whole = [d for d, part in enumerate(left) if part == 1000]
                if len(whole) >= gpu // 1000:
                    yield name, tuple(whole[: gpu // 1000])

    def _take(self, node: str, devices: tuple[int, ...], gpu: int, request: dict[str, int], sign: int = 1) -> None:
        for device in devices:
            self.left[node][device] -= sign * min(gpu, 1000)
        for resource, amount in request.items():
            self.free[node][resource] = self.free[node].get(resource, 0) - sign * amount

    # -- gangs ---------------------------------------------------------------------------------------------------

    def _gang(self, position: int) -> Iterator[tuple[Vector, dict[str, Any]]]:
        if position == len(self.gangs):
            self.seen += 1
            if self.seen > self.most:
                raise TooManyError
            if self._queues_hold():
                yield self._vector(), self._solution()
            return
        gang = self.gangs[position]
        order = [k for k, group in enumerate(gang["pods"]) for _ in range(group["count"])]
        least = gang.get("least") or len(order)
        for number in (0, *range(least, len(order) + 1)):
            yield from self._pods(position, order[:number], [])

    def _pods(self, position: int, order: list[int], pods: list[Pod]) -> Iterator[tuple[Vector, dict[str, Any]]]:
        gang = self.gangs[position]
        if len(pods) == len(order):
            if self._shape_holds(gang, pods):
                self.placed[gang["id"]] = list(pods)
                yield from self._gang(position + 1)
                del self.placed[gang["id"]]
            return
        k = order[len(pods)]
        group = gang["pods"][k]
        gpu, request = group.get("gpu", 0), group.get("request", {})
        for node, devices in list(self._seats(gpu, request, group.get("selector", {}), group.get("parts") or 1)):
            seat = (k, node, devices)
            if pods and pods[-1][0] == k and gpu < 1000 and seat < pods[-1]:
                continue  # equal pods in order
            if pods and pods[-1][0] == k and gpu >= 1000 and node < pods[-1][1]:
                continue
            self._take(node, devices, gpu, request)
            yield from self._pods(position, order, [*pods, seat])
            self._take(node, devices, gpu, request, -1)

    def _shape_holds(self, gang: dict[str, Any], pods: list[Pod]) -> bool:
        if gang.get("required") and len(self._used(gang["required"], pods)) > 1:
            return False
        for subgroup in gang.get("subgroups") or []:
            mine = [pod for pod in pods if subgroup["id"] in (gang["pods"][pod[0]].get("subgroups") or [])]
            if len(self._used(subgroup["required"], mine)) > 1:
                return False
        counts = [sum(pod[1] == name for pod in pods) for name in self.nodes]
        return gang.get("per_node") is None or max(counts, default=0) <= gang["per_node"]

    def _used(self, level: str, pods: list[Pod]) -> set[tuple[str, ...]]:
        cut = self.levels.index(level) + 1
        return {(*self.nodes[pod[1]].get("domain", []), pod[1])[:cut] for pod in pods}

    def _queues_hold(self) -> bool:
        used: dict[str, dict[str, int]] = {queue["id"]: {} for queue in self.data.get("queues", [])}
        for gang in self.gangs:
            for k, _, _ in self.placed.get(gang["id"], []) if gang.get("queue") else []:
                group = gang["pods"][k]
                gpu = group.get("gpu", 0) * (group.get("parts") or 1)
                for resource, amount in {**group.get("request", {}), "gpu": gpu}.items():
                    mine = used[gang["queue"]]
                    mine[resource] = mine.get(resource, 0) + amount
        groups: dict[str, list[dict[str, Any]]] = {}
        for queue in self.data.get("queues", []):
            if queue.get("flavours") and not self._flavours_hold(queue):
                return False
            if queue.get("cohort"):
                groups.setdefault(queue["cohort"], []).append(queue)
            for resource, quota in queue.get("quota", {}).items():
                if not queue.get("cohort"):
                    limit: float = quota
                else:
                    limit = quota + queue.get("borrow", {}).get(resource, float("inf"))
                if used[queue["id"]].get(resource, 0) > limit:
                    return False
        for members in groups.values():
            for resource in members[0].get("quota", {}):
                if all(resource in member.get("quota", {}) for member in members):
                    total = sum(used[member["id"]].get(resource, 0) for member in members)
                    if total > sum(member["quota"][resource] for member in members):
                        return False
        return True

    def _flavours_hold(self, queue: dict[str, Any]) -> bool:
        quotas = {entry["flavour"]: dict(entry["quota"]) for entry in queue["flavours"]}
        for gang in (gang for gang in self.gangs if gang.get("queue") == queue["id"]):
            chosen: dict[int, str] = {}
            for k, node, _ in self.placed.get(gang["id"], []):
                group = gang["pods"][k]
                pod = {**group.get("request", {}), "gpu": group.get("gpu", 0) * (group.get("parts") or 1)}
                flavour = self.nodes[node].get("flavour")
                if all(not pod.get(resource) for quota in quotas.values() for resource in quota):
                    continue
                if flavour not in quotas or chosen.setdefault(k, flavour) != flavour:
                    return False
                for resource in quotas[flavour]:
                    quotas[flavour][resource] -= pod.get(resource, 0)
        return all(left >= 0 for quota in quotas.values() for left in quota.values())

    # -- objectives ----------------------------------------------------------------------------------------------

    def _vector(self) -> Vector:
        found: list[Fraction] = []
        for objective in self.objectives:
            found += getattr(self, f"_{objective}")()
        return tuple(found)

    def _weight(self) -> list[Fraction]:
        """Without leaving out what is always equal: the tuple orders in the same way."""
        priorities = sorted({gang.get("priority", 0) for gang in self.gangs}, reverse=True)
        groups = [[g for g in self.gangs if g.get("priority", 0) == p] for p in priorities]
        if self.data.get("flat"):
            groups = [self.gangs]
        whole, pods = [], []
        for group in groups:
            whole.append(sum((F(g.get("weight", 1)) for g in group if self.placed.get(g["id"])), Fraction(0)))
            parts = Fraction(0)
            for g in group:
                size = sum(p["count"] for p in g["pods"])
                parts += F(g.get("weight", 1)) * len(self.placed.get(g["id"], [])) / size
            pods.append(parts)
        return [*whole, *pods]

    def _topology(self) -> list[Fraction]:
        split = domains = 0
        for gang in self.gangs:
            pods = self.placed.get(gang["id"])
            if pods:
                split += bool(gang.get("preferred")) and len(self._used(gang["preferred"], pods)) > 1
                domains += sum(len(self._used(level, pods)) - 1 for level in self.levels)
        return [Fraction(-split), Fraction(-domains)]

    def _moves(self) -> list[Fraction]:
        prices = {pod["id"]: pod for pod in self.running}
        ended = sum((F(prices[name]["price"]) for name in self.ended), Fraction(0))
        return [-ended - sum((F(prices[name]["move_price"]) for name in self.moved), Fraction(0))]

    def _fragmentation(self) -> list[Fraction]:
        shapes = self._shapes()
        total = sum(share for _, share in shapes)
        lost = Fraction(0)
        for name, node in self.nodes.items():
            left = self.left[name]
            for (gpu, request, labels, models, parts), share in shapes:
                runs = gpu > 0
                runs &= all(node.get("labels", {}).get(key) == value for key, value in labels)
                runs &= not models or node.get("gpu_model") in models
                runs &= all(self.free[name].get(key, 0) >= amount for key, amount in request)
                least = min(gpu, 1000)
                runs &= sum(part >= least for part in left) >= max(1, gpu // 1000) * parts
                lost += share / total * sum(part for part in left if not runs or part < least)
        return [-lost]

    def _shapes(self) -> list[tuple[Any, Fraction]]:
        if self.data.get("shapes"):
            return [(_shape(shape), F(shape["share"])) for shape in self.data["shapes"]]
        found = [(_shape(group), Fraction(group["count"])) for gang in self.gangs for group in gang["pods"]]
        for pod in self.running:
            parts = list(pod.get("devices", {}).values())
            if len(parts) < 2 or all(part == 1000 for part in parts):
                found.append((_shape({**pod, "gpu": sum(parts)}), Fraction(1)))
        return found

    def _solution(self) -> dict[str, Any]:
        placement = {
            gang: [{"group": k, "node": node, "devices": list(devices)} for k, node, devices in pods]
            for gang, pods in self.placed.items()
            if pods
        }
        moved = {name: {"node": node, "devices": list(devices)} for name, (node, devices) in self.moved.items()}
        return {"placement": placement, "preempted": list(self.ended), "moved": moved}


def _shape(data: dict[str, Any]) -> Any:
    selector = data.get("selector", {})
    labels = tuple(selector.get("labels", {}).items())
    models = tuple(selector.get("models") or ())
    return data.get("gpu", 0), tuple(data.get("request", {}).items()), labels, models, data.get("parts") or 1


def brute_force(instance: Any, most: int = 200_000) -> tuple[Vector, dict[str, Any]]:
    """The best vector, and a decision that has it."""
    return max(Search(instance.to_dict(), most).decisions(), key=lambda pair: pair[0])


def solve_brute_force(instance: GangPlacementInstance, options: SolveOptions) -> Result:
    """The search as an exact method, for the suite ``cross``; limits are not kept. The number is the checker's."""
    del options
    began = time.monotonic()
    solution = brute_force(instance)[1]
    value = check(instance, GangPlacementSolution.parse(solution)).value
    return Result(Status.OPTIMAL, value, value, solution, Termination.PROVEN, solve_seconds=time.monotonic() - began)


def random_instance(seed: int) -> GangPlacementInstance:
    """The instance of :func:`random_case`."""
    return GangPlacementInstance.parse(random_case(seed))


def flavoured_case(seed: int) -> dict[str, Any]:
    """A tiny instance whose queues have quotas by flavour of the nodes."""
    rng = random.Random(f"flavours {seed}")
    data = random_case(seed)
    for node in data["nodes"]:
        if rng.random() < 0.9:
            node["flavour"] = rng.choice("ab")
    data["queues"] = []
    limited = rng.choice([["gpu"], ["gpu"], ["cpu"], ["gpu", "cpu"]])
    for q in range(rng.randint(1, 2)):
        flavours = []
        for name in rng.choice(["ab", "ab", "ba", "a", "bc"]):
            amounts = {"gpu": rng.choice([0, 500, 1000, 1000, 2000, 3000]), "cpu": rng.randint(0, 3)}
            flavours.append({"flavour": name, "quota": {resource: amounts[resource] for resource in limited}})
        data["queues"].append({"id": f"q{q}", "flavours": flavours})
        if rng.random() < 0.3:
            data["queues"][-1]["quota"] = {"gpu": rng.choice([1000, 2000])}
    for gang in data["gangs"]:
        gang.pop("queue", None)
        if rng.random() < 0.85:
            gang["queue"] = rng.choice(data["queues"])["id"]
    return data


def parted_case(seed: int) -> dict[str, Any]:
    """A tiny instance whose pods take parts of several devices each."""
    rng = random.Random(f"parts {seed}")
    data = random_case(seed)
    for group in (group for gang in data["gangs"] for group in gang["pods"]):
        if rng.random() < 0.75:
            group |= {"gpu": rng.choice([300, 400, 500, 500, 600]), "parts": rng.choice([2, 2, 3])}
    return data


def subgroup_case(seed: int) -> dict[str, Any]:
    """A tiny instance in which groups of a gang have levels of their own, apart, nested or crossing."""
    rng = random.Random(f"subgroups {seed}")
    data = random_case(seed)
    data["gangs"] = data["gangs"][:2]
    names = [*data["levels"], "node", "node"]
    for n in range(len(data["nodes"]), 2):
        data["nodes"].append(data["nodes"][0] | {"id": f"n{n}"})
    for node in data["nodes"]:
        node["gpus"] += [1000] * (len(node["gpus"]) < 2)
    for gang in data["gangs"]:
        gang["pods"] = gang["pods"][:1]
        while len(gang["pods"]) < rng.choice([2, 2, 3]):
            gang["pods"].append({"count": rng.randint(1, 2), "gpu": rng.choice([400, 600, 1000, 1000])})
        gang.pop("least", None)
        if rng.random() < 0.3:
            gang["least"] = rng.randint(1, sum(group["count"] for group in gang["pods"]))
        if rng.random() < 0.15:
            continue
        gang["subgroups"] = []
        for s in range(rng.randint(1, 3)):
            members = [group for group in gang["pods"] if rng.random() < 0.6] or [rng.choice(gang["pods"])]
            gang["subgroups"].append({"id": f"s{s}", "required": rng.choice(names)})
            for group in members:
                group.setdefault("subgroups", []).append(f"s{s}")
    return data


def hosted_case(seed: int) -> dict[str, Any]:
    """A tiny instance of gangs that lie on one node each, or begin with one pod: each node is a bin."""
    rng = random.Random(f"hosted {seed}")
    nodes = []
    for n in range(rng.choice([1, 2, 2, 3])):
        node: dict[str, Any] = {"id": f"n{n}", "gpus": [rng.choice([1000, 1000, 1000, 600]) for _ in range(3)]}
        node["free"] = {"cpu": rng.randint(1, 5)}
        if rng.random() < 0.3:
            node["labels"] = {"z": rng.choice("pq")}
        nodes.append(node)
    gangs = []
    for g in range(rng.randint(2, 4)):
        pods = []
        for _ in range(rng.choice([1, 1, 2])):
            pod: dict[str, Any] = {"count": rng.randint(1, 2), "gpu": rng.choice([0, 1000, 1000, 2000])}
            if not pod["gpu"] or rng.random() < 0.4:
                pod["request"] = {"cpu": rng.randint(1, 2)}
            if rng.random() < 0.1:
                pod["selector"] = {"labels": {"z": "p"}}
            pods.append(pod)
        size = sum(pod["count"] for pod in pods)
        gang: dict[str, Any] = {"id": f"g{g}", "weight": rng.choice([1, 2, 2.5]), "arrival": g, "required": "node"}
        gang |= {"priority": rng.choice([0, 0, 1]), "pods": pods}
        if rng.random() < 0.3:
            gang["least"] = rng.randint(1, size)
        if gang.get("least") == 1 and rng.random() < 0.5:
            del gang["required"]
        if rng.random() < 0.15:
            gang["per_node"] = rng.randint(1, 3)
        gangs.append(gang)
    objectives = rng.choice([["weight"], ["weight"], ["weight", "topology"]])
    return {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": objectives}


def single_case(seed: int) -> dict[str, Any]:
    """A tiny instance of single pods on nodes of one device, or without any: each node is a bin."""
    rng = random.Random(f"single {seed}")
    shared = rng.random() < 0.5
    nodes = []
    for n in range(rng.choice([1, 2, 2, 3])):
        node: dict[str, Any] = {"id": f"n{n}", "gpus": [rng.choice([1000, 1000, 600])] if shared else []}
        if not shared or rng.random() < 0.4:
            node["free"] = {"cpu": rng.randint(2, 6), "memory": rng.randint(2, 6)}
        if rng.random() < 0.3:
            node["labels"] = {"z": rng.choice("pq")}
        nodes.append(node)
    gangs = []
    for g in range(rng.randint(3, 5)):
        pod: dict[str, Any] = {"count": 1}
        if shared:
            pod["gpu"] = rng.choice([200, 300, 400, 500, 600, 1000])
        if not shared or rng.random() < 0.2:
            pod["request"] = {"cpu": rng.randint(1, 3), "memory": rng.randint(1, 3)}
        if rng.random() < 0.1:
            pod["selector"] = {"labels": {"z": "p"}}
        gang = {"id": f"g{g}", "weight": rng.choice([1, 1, 2, 2.5]), "priority": rng.choice([0, 0, 1])}
        gangs.append(gang | {"pods": [pod], "arrival": g})
    objectives = rng.choice([["weight"], ["weight"], ["weight", "topology"]])
    return {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": objectives}


def shared_case(seed: int) -> dict[str, Any]:
    """A tiny instance of single pods on nodes whose devices they share, with other resources."""
    rng = random.Random(f"shared {seed}")
    nodes: list[dict[str, Any]] = []
    for n in range(rng.choice([1, 1, 2])):
        gpus = [rng.choice([1000, 1000, 1000, 600]) for _ in range(rng.choice([2, 2, 3]))]
        nodes.append({"id": f"n{n}", "gpus": gpus, "free": {"cpu": rng.randint(3, 8)}})
        if rng.random() < 0.5:
            nodes[-1]["free"]["memory"] = rng.randint(3, 8)
        if rng.random() < 0.3:
            nodes[-1]["labels"] = {"z": rng.choice("pq")}
    gangs = []
    for g in range(rng.randint(3, 6 if len(nodes) == 1 else 5)):
        pod: dict[str, Any] = {"count": 1, "gpu": rng.choice([300, 400, 400, 500, 600, 700, 1000, 2000])}
        if rng.random() < 0.1:
            pod["gpu"] = 0
        if rng.random() < 0.7 or not pod["gpu"]:
            pod["request"] = {"cpu": rng.randint(1, 3), "memory": rng.randint(0, 2)}
        if rng.random() < 0.1:
            pod["selector"] = {"labels": {"z": "p"}}
        gang = {"id": f"g{g}", "weight": rng.choice([1, 1, 2, 2.5]), "priority": rng.choice([0, 0, 0, 1])}
        gangs.append(gang | {"pods": [pod], "arrival": g})
    if rng.random() < 0.2:  # more of the first gang's pods may follow
        gangs[0] |= {"least": 1, "pods": [gangs[0]["pods"][0] | {"count": 2}]}
    objectives = rng.choice([["weight"], ["weight"], ["weight", "topology"]])
    return {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": objectives}


def spread_case(seed: int) -> dict[str, Any]:
    """A tiny instance of gangs of equal pods with whole devices, on nodes in one or two levels of domains."""
    rng = random.Random(f"spread {seed}")
    levels = rng.choice([["rack"], ["block", "rack"]])
    nodes: list[dict[str, Any]] = []
    for n in range(rng.choice([2, 3, 4])):
        gpus = [1000] * rng.choice([0, 1, 1, 2, 2, 3]) + [600] * rng.choice([0, 0, 1])
        nodes.append({"id": f"n{n}", "domain": [rng.choice("ab") for _ in levels], "gpus": gpus, "free": {"cpu": 9}})
    gangs = []
    for g in range(rng.randint(2, 4 if len(nodes) < 4 else 3)):
        pods = {
            "count": rng.choice([1, 1, 2, 2, 3]),
            "gpu": rng.choice([1000, 1000, 1000, 2000]),
            "request": {"cpu": 1},
        }
        gang: dict[str, Any] = {"id": f"g{g}", "weight": rng.choice([1, 1, 2]), "priority": rng.choice([0, 0, 0, 1])}
        if rng.random() < 0.3:
            gang["required"] = rng.choice([*levels, "node"])
        if rng.random() < 0.5:
            gang["preferred"] = rng.choice([*levels, "node"])
        gangs.append(gang | {"pods": [pods], "arrival": g})
    return {"problem": "gang-placement", "levels": levels, "nodes": nodes, "gangs": gangs}


def alike_case(seed: int) -> dict[str, Any]:
    """A tiny instance in which gangs, and nodes, are alike but for their names and arrivals, or in one thing not."""
    rng = random.Random(f"alike {seed}")
    data = random_case(seed)
    data |= {"running": [], "objectives": rng.choice([["weight"], ["weight", "topology"]])}
    data["gangs"] = [gang for gang in data["gangs"] if sum(group["count"] for group in gang["pods"]) < 4][:2]
    for node in data["nodes"]:
        node["gpus"] = node["gpus"][:2]
    for which, most in (("gangs", 3), ("nodes", 3)):
        kept = data[which][: most - 1] or data[which]
        while kept and len(kept) < most and rng.random() < 0.8:
            copy = json.loads(json.dumps(rng.choice(kept)))
            copy |= {"id": f"{which[0]}x{len(kept)}"}
            if which == "gangs" and rng.random() < 0.3:
                copy |= {"weight": 3}
            if which == "nodes" and rng.random() < 0.3:
                copy |= {"domain": kept[0]["domain"]}
            kept.append(copy)
        data[which] = kept
    return data


def random_case(seed: int) -> dict[str, Any]:
    """A tiny instance with everything that the problem knows, chosen to collide."""
    rng = random.Random(seed)
    levels = rng.choice([[], ["rack"], ["block", "rack"]])
    moves = rng.random() < 0.3
    sizes = [1, 2, 3, 3]
    nodes = []
    for n in range(rng.choice([1, 2, 2, 3])):
        domain = [f"{level[0]}{rng.randint(0, 1)}" for level in levels]
        gpus = [rng.choice([1000, 1000, 1000, 1000, 600, 400]) for _ in range(rng.choice(sizes))]
        node = {"id": f"n{n}", "domain": domain, "gpus": gpus}
        if rng.random() < 0.8:
            node["free"] = {"cpu": rng.randint(0, 4)}
        if rng.random() < 0.5:
            node["labels"] = {"z": rng.choice("pq")}
        if rng.random() < 0.6:
            node["gpu_model"] = rng.choice(["A", "B"])
        nodes.append(node)
    running = []
    for r in range(rng.randint(0, 2) if moves else rng.randint(0, 1)):
        node = rng.choice(nodes)
        devices = {}
        for d, part in enumerate(node["gpus"]):
            taken = 1000 - part
            used = sum(pod["devices"].get(str(d), 0) for pod in running if pod["node"] == node["id"])
            if taken - used > 0 and not devices:
                devices[str(d)] = taken - used
        pod = {"id": f"r{r}", "node": node["id"], "devices": devices, "movable": rng.random() < 0.8}
        if rng.random() < 0.4:
            pod["request"] = {"cpu": 1}
        pod["price"] = rng.choice([0, 1, 2.5])
        if rng.random() < 0.6:
            pod["move_price"] = rng.choice([0.5, 1, 2])
        running.append(pod)
    queues = []
    if rng.random() < 0.4:
        for q in range(rng.randint(1, 2)):
            queue: dict[str, Any] = {"id": f"q{q}", "quota": {"gpu": rng.choice([500, 1000, 2000, 3000])}}
            if rng.random() < 0.5:
                queue["cohort"] = "c"
                if rng.random() < 0.6:
                    queue["borrow"] = {"gpu": rng.choice([0, 500, 1000])}
            if rng.random() < 0.3:
                queue["quota"]["cpu"] = rng.randint(0, 2)
            queues.append(queue)
    gangs = []
    for g in range(rng.choice([2, 3, 3])):
        pods = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            group: dict[str, Any] = {
                "count": rng.randint(1, 2),
                "gpu": rng.choice([0, 400, 400, 500, 600, 1000, 1000, 2000]),
            }
            if rng.random() < 0.2:
                group["request"] = {"cpu": rng.randint(1, 2)}
            if rng.random() < 0.12:
                group["selector"] = rng.choice([{"labels": {"z": "p"}}, {"models": ["A"]}, {"models": ["A", "B"]}])
            pods.append(group)
        size = sum(group["count"] for group in pods)
        gang: dict[str, Any] = {"id": f"g{g}", "weight": rng.choice([1, 1, 2, 2.5, 0.1]), "pods": pods}
        gang["priority"] = rng.choice([0, 0, 1])
        for name in ("required", "preferred"):
            if rng.random() < 0.3:
                gang[name] = rng.choice([*levels, *levels, "node"])
        if rng.random() < 0.3:
            gang["per_node"] = rng.randint(1, 3)
        if rng.random() < 0.4:
            gang["least"] = rng.randint(1, size)
        if queues and rng.random() < 0.7:
            gang["queue"] = rng.choice(queues)["id"]
        gangs.append(gang)
    objectives = rng.sample(["weight", "topology", "fragmentation"], rng.randint(1, 3))
    if moves:
        objectives.insert(rng.randint(0, len(objectives)), "moves")
    data = {"problem": "gang-placement", "name": f"case-{seed}", "levels": levels, "nodes": nodes, "running": running}
    data |= {"queues": queues, "gangs": gangs, "flat": rng.random() < 0.3}
    if rng.random() < 0.7:
        data["objectives"] = objectives
    elif moves:
        data["objectives"] = ["weight", "moves", "topology"]
    return data
