"""gang-placement: pods of every group by node and device, what leaves, and the objectives as digits of one number.

Every component of the vector is a whole variable ``digit[k]`` that a row keeps at or below what the decision is worth
there; the score is their sum, each times what all decimals after it can count. So a tree proves a vector component by
component: digits before are fixed by splits, and no decision has one more of the next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.rules.gang_prices import Priced, fewest, pieces
except ImportError:  # run as a file
    from rules.gang_prices import Priced, fewest, pieces  # type: ignore[import-not-found, no-redef]

Terms = list[tuple[str, Any]]
Thing = Mapping[str, Any]
DEVICE = 1000
"""Parts of a device that pods may ask for: thousandths."""


class Decision:
    """What a decision may do, and the rows that it keeps, written into a model.

    Attributes
    ----------
    device : parts that a device has; tests take fewer
    capacity : thousandths of each device of each node, with what may leave gone
    digits : row of each component: (kind, priority, step, most, terms, constant, whether more is better)
    """

    def __init__(self, instance: Thing, model: Any, device: int = DEVICE) -> None:
        self.instance, self.model, self.device = instance, model, device
        self.nodes, self.gangs = instance["nodes"], instance["gangs"]
        self.levels = [*(instance.get("levels") or []), "node"]
        self.objectives = instance.get("objectives") or ["weight", "topology"]
        self.queues = {queue["id"]: queue for queue in instance.get("queues") or []}
        self.place = {node["id"]: n for n, node in enumerate(self.nodes)}
        self.capacity = [list(node.get("gpus") or []) for node in self.nodes]
        self.leaving: dict[int, list[int]] = defaultdict(list)
        self.running = instance.get("running") or []
        for r, pod in enumerate(self.running if "moves" in self.objectives else []):
            if pod.get("movable"):
                self.leaving[self.place[pod["node"]]].append(r)
                for device, part in (pod.get("devices") or {}).items():
                    self.capacity[self.place[pod["node"]]][int(device)] += part
        self.here: dict[int, list[tuple[str, Thing]]] = defaultdict(list)
        self.on_device: dict[tuple[int, int], Terms] = defaultdict(list)
        self.stays: dict[int, Terms] = {r: [] for own in self.leaving.values() for r in own}
        self.hosts: dict[str, dict[int, int]] = {}
        self.digits: list[tuple[Any, ...]] = []

    def write(self) -> None:
        """All rows."""
        for r in self.stays:
            self._leaves(r)
        for g, gang in enumerate(self.gangs):
            for k, group in enumerate(gang["pods"]):
                most = min(group["count"], gang.get("per_node") or group["count"])
                self._pods(f"pods[{g},{k}", group, most, self.listed(gang, group))
        for r, terms in self.stays.items():
            if terms:
                self.model.row(f"leaves[{r}]", [(name, -c) for name, c in terms], "<=", 1)
        for g, gang in enumerate(self.gangs):
            self._gang(g, gang)
        for n in range(len(self.nodes)):
            self._node(n)
        self._queues()
        self.objective()

    # -- who may be where ----------------------------------------------------------------------------------------

    def domain(self, n: int, depth: int) -> tuple[str, ...]:
        """The labels that name the domain of a node, widest first."""
        node = self.nodes[n]
        return (*(node.get("domain") or []), node["id"])[:depth]

    def depth(self, level: str | None) -> int:
        """Labels that name a domain of the level."""
        return 0 if level is None else self.levels.index(level) + 1

    def takes(self, n: int, shape: Thing) -> bool:
        """Labels and models."""
        node, selector = self.nodes[n], shape.get("selector") or {}
        labels, models = node.get("labels") or {}, selector.get("models") or []
        fits = all(labels.get(key) == value for key, value in (selector.get("labels") or {}).items())
        return fits and (not models or node.get("gpu_model") in models)

    def room(self, n: int, shape: Thing, most: int) -> int:
        """Pods of a shape that a node holds when all has left that may."""
        if not self.takes(n, shape):
            return 0
        gpu = shape.get("gpu") or 0
        if gpu >= self.device:
            most = min(most, sum(part == self.device for part in self.capacity[n]) // (gpu // self.device))
        elif gpu:
            rooms, parts = [part // gpu for part in self.capacity[n]], pieces(shape, self.device)
            most = min(most, sum(rooms) // parts)
            while parts > 1 and sum(min(room, most) for room in rooms) < parts * most:  # a pod has one part of a device
                most -= 1
        for name, amount in (shape.get("request") or {}).items():
            if amount:
                most = min(most, self.free(n, name) // amount)
        return most

    def free(self, n: int, name: str) -> int:
        """The free amount of a resource, with what may leave gone."""
        there = (self.nodes[n].get("free") or {}).get(name, 0)
        return int(there + sum((self.running[r].get("request") or {}).get(name, 0) for r in self.leaving[n]))

    def _leaves(self, r: int) -> None:
        """A pod that runs is ended, moved or stays: 1 - ended - moved."""
        pod = self.running[r]
        if pod.get("price") is not None:
            self.stays[r].append((self.model.var(f"ended[{r}]"), -1))
        if pod.get("move_price") is not None:
            gpu = sum((pod.get("devices") or {}).values())
            shape = {"gpu": gpu, "request": pod.get("request"), "selector": pod.get("selector")}
            self.stays[r] += [(name, -1) for name in self._pods(f"moved[{r}", shape, 1)]

    def listed(self, gang: Thing, group: Thing) -> list[str] | None:
        """Flavours whose nodes the group's pods may be on; None where they ask for nothing that flavours limit."""
        flavours = (self.queues.get(gang.get("queue")) or {}).get("flavours") or []
        limited = {resource for entry in flavours for resource in entry["quota"]}
        bound = any(_amount(group, resource) for resource in limited)
        return [entry["flavour"] for entry in flavours] if bound else None

    def _pods(self, name: str, shape: Thing, most: int, listed: list[str] | None = None) -> list[str]:
        """Pods by node, and by device where each takes a part of one; on nodes of listed flavours where there are."""
        gpu, found = shape.get("gpu") or 0, []
        for n in range(len(self.nodes)):
            room = self.room(n, shape, most)
            if not room or (listed is not None and self.nodes[n].get("flavour") not in listed):
                continue
            there = self.model.var(f"{name},{n}]", 0, room)
            found.append(there)
            self.hosts.setdefault(name, {})[n] = room
            self.here[n].append((there, shape))
            if 0 < gpu < self.device:
                split: Terms = [(there, -pieces(shape, self.device))]
                for d, part in enumerate(self.capacity[n]):
                    if part >= gpu:
                        own = self.model.var(f"part_{name},{n},{d}]", 0, min(room, part // gpu))
                        split.append((own, 1))
                        if shape.get("parts"):  # a pod's parts are of different devices
                            self.model.row(f"different_{name},{n},{d}]", [(own, 1), (there, -1)], "<=", 0)
                        self.on_device[n, d].append((own, gpu))
                self.model.row(f"parts_{name},{n}]", split, "=", 0)
        return found

    def _gang(self, g: int, gang: Thing) -> None:
        """(1), (5), (6): whole or not at all, levels, most of its pods on one node."""
        placed, row = self.model.var(f"placed[{g}]"), self.model.row
        every: Terms = []
        for k, group in enumerate(gang["pods"]):
            mine, count = self._of(g, k), group["count"]
            every += mine
            if fewest(gang) == sum(other["count"] for other in gang["pods"]):
                row(f"all[{g},{k}]", [*mine, (placed, -count)], "=", 0)
                continue
            row(f"none[{g},{k}]", [*mine, (placed, -count)], "<=", 0)
            if k:
                row(f"prefix[{g},{k}]", [*mine, (f"filled[{g},{k - 1}]", -count)], "<=", 0)
            if k + 1 < len(gang["pods"]):
                row(f"filled[{g},{k}]", [*mine, (self.model.var(f"filled[{g},{k}]"), -count)], ">=", 0)
        row(f"least[{g}]", [*every, (placed, -fewest(gang))], ">=", 0)
        for n in range(len(self.nodes)) if gang.get("per_node") else ():
            there = [term for k in range(len(gang["pods"])) for term in self._of(g, k, [n])]
            row(f"per_node[{g},{n}]", there, "<=", gang["per_node"])
        for k, group in enumerate(gang["pods"]):
            self._one_flavour(g, k, self.listed(gang, group), group["count"])
        for s in range(len(gang.get("subgroups") or [])):
            self._subgroup(g, s)
        required, preferred = self.depth(gang.get("required")), self.depth(gang.get("preferred"))
        topology = "topology" in self.objectives
        for depth in range(1, len(self.levels) + 1):
            if topology or depth == required:
                used = self._domains(g, depth)
                if depth == required:
                    row(f"one_domain[{g}]", [*((name, 1) for name in used), (placed, -1)], "=", 0)
                if topology and depth == preferred:
                    split = (self.model.var(f"split[{g}]"), -max(0, len(used) - 1))
                    row(f"split[{g}]", [*((name, 1) for name in used), (placed, -1), split], "<=", 0)

    def _one_flavour(self, g: int, k: int, listed: list[str] | None, count: int) -> None:
        """(7): all placed pods of a group on nodes of one flavour."""
        chosen: Terms = []
        for f, flavour in enumerate(listed or []):
            there = self._of(g, k, self.of_flavour(flavour))
            if there:
                chosen.append((self.model.var(f"flavour[{g},{k},{f}]"), 1))
                self.model.row(f"on_flavour[{g},{k},{f}]", [*there, (chosen[-1][0], -count)], "<=", 0)
        if chosen:
            self.model.row(f"one_flavour[{g},{k}]", [*chosen, (f"placed[{g}]", -1)], "<=", 0)

    def members(self, g: int, s: int) -> list[int]:
        """Groups of a subgroup."""
        name = self.gangs[g]["subgroups"][s]["id"]
        return [k for k, group in enumerate(self.gangs[g]["pods"]) if name in (group.get("subgroups") or [])]

    def within(self, g: int, s: int) -> dict[tuple[str, ...], list[int]]:
        """Nodes that may have pods of a subgroup, by their domain at its level."""
        hosts = {n for k in self.members(g, s) for n in self.hosts.get(f"pods[{g},{k}", {})}
        places: dict[tuple[str, ...], list[int]] = {}
        for n in sorted(hosts):
            places.setdefault(self.domain(n, self.depth(self.gangs[g]["subgroups"][s]["required"])), []).append(n)
        return places

    def _subgroup(self, g: int, s: int) -> None:
        """(5): all placed pods of some groups in one domain of their level."""
        chosen: Terms = []
        for i, nodes in enumerate(self.within(g, s).values()):
            chosen.append((self.model.var(f"within[{g},{s},{i}]"), 1))
            for k in self.members(g, s):
                there = self._of(g, k, nodes)
                if there:
                    count = self.gangs[g]["pods"][k]["count"]
                    self.model.row(f"within[{g},{s},{i},{k}]", [*there, (chosen[-1][0], -count)], "<=", 0)
        if chosen:
            self.model.row(f"one_within[{g},{s}]", [*chosen, (f"placed[{g}]", -1)], "<=", 0)

    def of_flavour(self, flavour: str) -> list[int]:
        """Nodes of a flavour."""
        return [n for n, node in enumerate(self.nodes) if node.get("flavour") == flavour]

    def _of(self, g: int, k: int, nodes: Iterable[int] | None = None) -> Terms:
        name = f"pods[{g},{k}"
        hosts = self.hosts.get(name, {})
        return [(f"{name},{n}]", 1) for n in (hosts if nodes is None else nodes) if nodes is None or n in hosts]

    def _domains(self, g: int, depth: int) -> list[str]:
        """Domains of a level, each 1 where pods of the gang lie in it."""
        members: dict[tuple[str, ...], list[int]] = {}
        pods = self.gangs[g]["pods"]
        for n in sorted({n for k in range(len(pods)) for n in self.hosts.get(f"pods[{g},{k}", {})}):
            members.setdefault(self.domain(n, depth), []).append(n)
        found = []
        for i, nodes in enumerate(members.values()):
            found.append(self.model.var(f"domain[{g},{depth},{i}]"))
            for k, group in enumerate(pods):
                mine = self._of(g, k, nodes)
                most = min(group["count"], sum(self.hosts[f"pods[{g},{k}"].get(n, 0) for n in nodes)) if mine else 0
                if mine:
                    self.model.row(f"inside[{g},{k},{depth},{i}]", [*mine, (found[-1], -most)], "<=", 0)
        return found

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, n: int) -> None:
        """(2) and (3)."""
        whole = [(name, (shape.get("gpu") or 0) // self.device) for name, shape in self.here[n]]
        whole = [(name, devices) for name, devices in whole if devices]
        parts = any(0 < (shape.get("gpu") or 0) < self.device for _, shape in self.here[n])
        if parts or self.leaving[n] or "fragmentation" in self.objectives:
            taken: Terms = []
            for d, part in enumerate(self.capacity[n]):
                if part == self.device and whole:
                    taken.append((self.model.var(f"whole[{n},{d}]"), -1))
                    self.on_device[n, d].append((f"whole[{n},{d}]", self.device))
                free, terms = self._left(n, d)
                if terms:
                    self.model.row(f"device[{n},{d}]", terms, ">=", -free)
            if whole:
                self.model.row(f"wholes[{n}]", [*whole, *taken], "=", 0)
        elif whole:
            free = sum(part == self.device for part in self.capacity[n])
            for size in {1, *(devices for _, devices in whole)}:  # divided by a size, and rounded down
                rounded = [(name, devices // size) for name, devices in whole if devices >= size]
                self.model.row(f"devices[{n},{size}]", rounded, "<=", free // size)
        for resource in sorted({name for _, shape in self.here[n] for name in shape.get("request") or {}}):
            free, terms = self._remaining(n, resource)
            self.model.row(f"resource[{n},{resource}]", terms, ">=", -free)

    def _left(self, n: int, d: int) -> tuple[int, Terms]:
        """What is left of a device, as a constant and terms."""
        free, terms = self.capacity[n][d], [(name, -c) for name, c in self.on_device[n, d]]
        for r in self.leaving[n]:
            part = (self.running[r].get("devices") or {}).get(str(d), 0)
            free -= part
            terms += [(name, -c * part) for name, c in self.stays[r] if part]
        return free, terms

    def _remaining(self, n: int, resource: str) -> tuple[int, Terms]:
        """The same of another resource."""
        free = (self.nodes[n].get("free") or {}).get(resource, 0)
        terms: Terms = [(name, -(shape.get("request") or {}).get(resource, 0)) for name, shape in self.here[n]]
        for r in self.leaving[n]:
            amount = (self.running[r].get("request") or {}).get(resource, 0)
            terms += [(name, -c * amount) for name, c in self.stays[r]]
        return free, terms

    # -- queues --------------------------------------------------------------------------------------------------

    def _queues(self) -> None:
        """(7)."""
        cohorts: dict[str, list[Thing]] = defaultdict(list)
        for q, queue in enumerate(self.instance.get("queues") or []):
            if queue.get("cohort"):
                cohorts[queue["cohort"]].append(queue)
            for resource, most in (queue.get("quota") or {}).items():
                beyond = (queue.get("borrow") or {}).get(resource) if queue.get("cohort") else 0
                if beyond is not None:
                    self.model.row(f"queue[{q},{resource}]", self._use(queue["id"], resource), "<=", most + beyond)
            for f, entry in enumerate(queue.get("flavours") or []):
                for resource, most in entry["quota"].items():
                    use = self._use(queue["id"], resource, self.of_flavour(entry["flavour"]))
                    self.model.row(f"flavour[{q},{f},{resource}]", use, "<=", most)
        for c, members in enumerate(cohorts.values()):
            for resource in set.intersection(*(set(queue.get("quota") or {}) for queue in members)):
                terms = [term for queue in members for term in self._use(queue["id"], resource)]
                self.model.row(f"cohort[{c},{resource}]", terms, "<=", sum(q["quota"][resource] for q in members))

    def _use(self, queue: str, resource: str, nodes: Sequence[int] | None = None) -> Terms:
        found: Terms = []
        for g, gang in enumerate(self.gangs):
            for k, group in enumerate(gang["pods"] if gang.get("queue") == queue else ()):
                amount = _amount(group, resource)
                found += [(name, amount) for name, _ in self._of(g, k, nodes)]
        return found

    # -- objectives ----------------------------------------------------------------------------------------------

    def objective(self) -> None:
        """A digit for each component, less wherever it is the same in every decision."""
        parts = {"weight": self._weights, "topology": self._topology}
        parts |= {"fragmentation": self._fragmentation, "moves": self._moves}
        self.digits = [entry for name in self.objectives for entry in parts[name]() if entry[3]]
        factor = 1
        for k, (_, _, step, most, terms, constant, more) in reversed(list(enumerate(self.digits))):
            digit = self.model.var(f"digit[{k}]", 0, most, factor)
            turn = -1 if more else 1
            right = constant if more else step * most - constant
            self.model.row(f"digit[{k}]", [(digit, step), *((name, turn * c) for name, c in terms)], "<=", right)
            factor *= 10 ** len(str(most))

    def _weights(self) -> Iterator[tuple[Any, ...]]:
        priorities = sorted({gang.get("priority") or 0 for gang in self.gangs}, reverse=True)
        alone = self.instance.get("flat") or len(priorities) < 2
        both: list[list[tuple[Any, ...]]] = [[], []]
        for priority in [None] if alone else priorities:
            mine = [
                (g, x) for g, x in enumerate(self.gangs) if priority is None or (x.get("priority") or 0) == priority
            ]
            worth = {g: Fraction(gang.get("weight", 1)) for g, gang in mine}
            size = {g: sum(group["count"] for group in gang["pods"]) for g, gang in mine}
            total = sum(worth.values(), Fraction(0))
            terms: Terms = [(f"placed[{g}]", w) for g, w in worth.items()]
            both[0].append(entry("weight", priority, worth.values(), total, terms, 0, True))
            if any(fewest(gang) < size[g] for g, gang in mine):
                each = {g: w / size[g] for g, w in worth.items()}
                terms = [(v, each[g]) for g, x in mine for k in range(len(x["pods"])) for v, _ in self._of(g, k)]
                both[1].append(entry("pods", priority, each.values(), total, terms, 0, True))
        yield from both[0]
        yield from both[1]

    def _topology(self) -> Iterator[tuple[Any, ...]]:
        split = [g for g, gang in enumerate(self.gangs) if gang.get("preferred") is not None]
        yield "split", None, Fraction(1), len(split), [(f"split[{g}]", 1) for g in split], 0, False
        depths = range(1, len(self.levels) + 1)
        there = [len({self.domain(n, depth) for n in range(len(self.nodes))}) for depth in depths]
        sizes = [sum(group["count"] for group in gang["pods"]) for gang in self.gangs]
        most = sum(min(size, count) - 1 for size in sizes for count in there)
        terms: Terms = [(name, 1) for name in self.model.index if name.startswith("domain[")]
        terms += [(f"placed[{g}]", -len(self.levels)) for g in range(len(self.gangs))]
        yield "domains", None, Fraction(1), most, terms, 0, False

    def _moves(self) -> Iterator[tuple[Any, ...]]:
        prices, most, terms = [], Fraction(0), []
        for r, stays in self.stays.items():
            pod = self.running[r]
            asked = {kind: Fraction(pod[kind]) for kind in ("price", "move_price") if pod.get(kind) is not None}
            prices += list(asked.values())
            most += max(asked.values(), default=Fraction(0))
            terms += [(v, asked["price" if v.startswith("ended") else "move_price"]) for v, _ in stays]
        yield entry("moves", None, prices, most, terms, 0, False)

    def shapes(self) -> list[tuple[Thing, Fraction]]:
        """Shapes of fragmentation with their shares, which add up to 1."""
        found: list[tuple[Thing, Any]] = [(shape, shape["share"]) for shape in self.instance.get("shapes") or []]
        if not found:
            for gang in self.gangs:
                found += [(group, group["count"]) for group in gang["pods"]]
            for pod in self.running:
                parts = list((pod.get("devices") or {}).values())
                if all(part == self.device for part in parts) or len(parts) == 1:
                    found.append(({**pod, "gpu": sum(parts)}, 1))
        merged: dict[str, list[Any]] = {}
        for shape, share in found:
            selector = shape.get("selector") or {}
            text = [sorted((selector.get("labels") or {}).items()), list(selector.get("models") or [])]
            key = repr((shape.get("gpu") or 0, shape.get("parts"), sorted((shape.get("request") or {}).items()), text))
            merged.setdefault(key if not self.instance.get("shapes") else repr(len(merged)), [shape, Fraction(0)])[
                1
            ] += Fraction(share)
        total = sum((share for _, share in merged.values()), Fraction(0))
        return [(shape, share / total) for shape, share in merged.values()]

    def _fragmentation(self) -> Iterator[tuple[Any, ...]]:
        """What is free of the devices and of no use to a shape, over nodes and shapes."""
        shapes, terms, constant = self.shapes(), [], Fraction(0)
        for s, (shape, share) in enumerate(shapes):
            for n in range(len(self.nodes)):
                runs = bool(shape.get("gpu")) and self.takes(n, shape)
                if runs:
                    terms += [(name, share) for name in self._lost(s, shape, n)]
                    continue
                for d in range(len(self.capacity[n])):
                    free, left = self._left(n, d)
                    constant += share * free
                    terms += [(name, share * c) for name, c in left]
        most = sum(sum(node.get("gpus") or []) for node in self.nodes)
        if "moves" in self.objectives:
            most += sum(sum((pod.get("devices") or {}).values()) for pod in self.running)
        yield entry("fragmentation", None, [share for _, share in shapes], most, terms, constant, False)

    def _lost(self, s: int, shape: Thing, n: int) -> list[str]:
        fits, found, useful = self.model.var(f"fits[{s},{n}]"), [], []
        for d in range(len(self.capacity[n])):
            free, left = self._left(n, d)
            key = f"[{s},{n},{d}]"
            useful.append((self.model.var("useful" + key), 1))
            found.append(self.model.var("lost" + key, 0, self.device))
            self.model.row("useful" + key, [("useful" + key, 1), (fits, -1)], "<=", 0)
            self.model.row("enough" + key, [*left, ("useful" + key, -min(shape["gpu"], self.device))], ">=", -free)
            self.model.row(
                "lost" + key, [(found[-1], 1), ("useful" + key, self.device), *((v, -c) for v, c in left)], ">=", free
            )
        self.model.row(f"fits[{s},{n}]", [*useful, (fits, -pieces(shape, self.device))], ">=", 0)
        for resource, amount in (shape.get("request") or {}).items():
            free, left = self._remaining(n, resource)
            self.model.row(f"fits[{s},{n},{resource}]", [*left, (fits, -amount)], ">=", -free)
        return found


def _amount(group: Thing, resource: str) -> int:
    """What a pod asks for of a resource by the name that queues give it."""
    if resource == "gpu":
        return int(group.get("gpu") or 0) * int(group.get("parts") or 1)
    return int((group.get("request") or {}).get(resource) or 0)


def entry(
    kind: str, priority: int | None, values: Iterable[Fraction], most: Any, terms: Terms, constant: Any, more: bool
) -> tuple[Any, ...]:
    """A component whose values are sums of multiples of `values`; its step is 1, 1/10, ... where one of these is."""
    given = [value for value in values if value]
    below = math.lcm(*(value.denominator for value in given))
    step = Fraction(math.gcd(*(int(value * below) for value in given)) or 1, below)
    for decimals in range(16):
        if (step * 10**decimals).denominator == 1:
            step = Fraction(1, 10**decimals)
            break
    return kind, priority, step, int(Fraction(most) / step), terms, constant, more


def rows(instance: Thing, options: Thing, model: Any, device: int = DEVICE) -> None:
    """Form ``rows``."""
    model.sense = -1
    Decision(instance, model, device).write()


def prices(instance: Thing, options: Thing, model: Any, device: int = DEVICE) -> None:
    """Form ``prices``: what nodes hold has a price; a gang is worth what is left of its weight where it is cheapest.

    A leaf has, for each component of weight, a list of (node, size, price). Size 0 is what its devices hold of the
    values of parts and of whole devices (`values`; thousandths where not told): the most that parts of one may have
    together, by dynamic programming. Size s > 0 is the devices that are entirely free, divided by s and rounded down,
    of which a pod takes its devices divided by s and rounded down. A name stands for that other resource. With
    prices >= 0 the gangs of a decision weigh at most

        sum price x what there is + sum over gangs max(0, weight - least price of its fewest pods, in one domain).

    Queues and their flavours are left out: without them a decision may do more, and the bound holds all the more.
    """
    model.sense = -1
    told = Decision(instance, _Written(), device)
    told.objective()
    model.price = lambda content, box: -Priced(told, content).score()


FORMS = {"rows": rows, "prices": prices}


class _Written:
    """Stands for a model where only names and rows of digits are wanted."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.kept: dict[str, tuple[Terms, Any]] = {}

    def var(self, name: str, *_: Any) -> str:
        self.index[name] = 0
        return name

    def row(self, name: str, terms: Sequence[tuple[str, Any]], _: str, right: Any) -> None:
        if name.startswith("digit["):
            self.kept[name] = (list(terms), right)


def point(instance: Thing, solution: Any, options: Thing, device: int = DEVICE) -> dict[str, Any]:
    """The values of a decision."""
    model = _Written()
    told = Decision(instance, model, device)
    told.write()
    found: dict[str, Any] = defaultdict(int)
    left = [list(parts) for parts in told.capacity]
    free = [{**(node.get("free") or {})} for node in told.nodes]

    def put(name: str, shape: Thing, n: int, devices: Sequence[int]) -> None:
        gpu = shape.get("gpu") or 0
        found[f"{name},{n}]"] += 1
        for d in devices:
            found[f"part_{name},{n},{d}]" if gpu < told.device else f"whole[{n},{d}]"] += 1
            left[n][d] -= min(gpu, told.device)
        for resource, amount in (shape.get("request") or {}).items():
            free[n][resource] = free[n].get(resource, 0) - amount

    gone = {*(solution.get("preempted") or []), *(solution.get("moved") or {})}
    for r in told.stays:
        pod = told.running[r]
        n = told.place[pod["node"]]
        if pod["id"] not in gone:
            for device, part in (pod.get("devices") or {}).items():
                left[n][int(device)] -= part
            continue
        for resource, amount in (pod.get("request") or {}).items():
            free[n][resource] = free[n].get(resource, 0) + amount
        seat = (solution.get("moved") or {}).get(pod["id"])
        if seat is None:
            found[f"ended[{r}]"] = 1
        else:
            own = {**pod, "gpu": sum((pod.get("devices") or {}).values())}
            put(f"moved[{r}", own, told.place[seat["node"]], seat.get("devices") or [])
    for g, gang in enumerate(told.gangs):
        pods = solution["placement"].get(gang["id"]) or []
        found[f"placed[{g}]"] = int(bool(pods))
        for pod in pods:
            k = pod["group"]
            n = told.place[pod["node"]]
            put(f"pods[{g},{k}", gang["pods"][k], n, pod.get("devices") or [])
            listed = told.listed(gang, gang["pods"][k]) or []
            if told.nodes[n].get("flavour") in listed:
                found[f"flavour[{g},{k},{listed.index(told.nodes[n]['flavour'])}]"] = 1
        for k, group in enumerate(gang["pods"]):
            found[f"filled[{g},{k}]"] = int(sum(pod["group"] == k for pod in pods) == group["count"])
        _levels(told, g, {told.place[pod["node"]] for pod in pods}, found)
        for s in range(len(gang.get("subgroups") or [])):
            used = {told.place[pod["node"]] for pod in pods if pod["group"] in told.members(g, s)}
            found |= {
                f"within[{g},{s},{i}]": 1 for i, nodes in enumerate(told.within(g, s).values()) if used & {*nodes}
            }
    if "fragmentation" in told.objectives:
        for s, (shape, _) in enumerate(told.shapes()):
            for n in range(len(told.nodes)):
                useful = [part >= min(shape.get("gpu") or 0, told.device) for part in left[n]]
                asked = (shape.get("request") or {}).items()
                fits = sum(useful) >= pieces(shape, told.device)
                fits = fits and all(free[n].get(resource, 0) >= amount for resource, amount in asked)
                found[f"fits[{s},{n}]"] = int(fits)
                for d, part in enumerate(left[n]):
                    found[f"useful[{s},{n},{d}]"] = int(fits and useful[d])
                    found[f"lost[{s},{n},{d}]"] = 0 if fits and useful[d] else part
    for name, (terms, right) in model.kept.items():
        found[name] = (right - sum(c * found[v] for v, c in terms[1:])) / terms[0][1]
    return {name: found[name] for name in model.index} | {name: v for name, v in found.items() if "pods[" in name and v}


def _levels(told: Decision, g: int, nodes: set[int], found: dict[str, Any]) -> None:
    """Domains that a gang uses."""
    pods = told.gangs[g]["pods"]
    hosts = sorted({n for k in range(len(pods)) for n in told.hosts.get(f"pods[{g},{k}", [])})
    for depth in range(1, len(told.levels) + 1):
        names = list(dict.fromkeys(told.domain(n, depth) for n in hosts))
        used = {names.index(told.domain(n, depth)) for n in nodes}
        found |= {f"domain[{g},{depth},{i}]": 1 for i in used}
        if depth == told.depth(told.gangs[g].get("preferred")):
            found[f"split[{g}]"] = int(len(used) > 1)
