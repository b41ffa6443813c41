"""The listing of a Kubernetes cluster on its way to an instance and a decision."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.formulations.common.instance import LARGEST_COUNT, Json
from schedgap.formulations.gang_placement.instance import NODE, WHOLE
from schedgap.tools.judge.draft import GOES, HAS, INSIDE, TAKES, Counting, Draft, Refusals
from schedgap.tools.judge.kubernetes.gangs import (
    ALONE,
    APART,
    NATIVE,
    PREFERRED,
    SUBGROUP,
    Gang,
    Gangs,
    levels_apart,
    slices_of,
    subgroups_of,
    without_pods,
)
from schedgap.tools.judge.kubernetes.levels import Levels
from schedgap.tools.judge.kubernetes.listing import Kubernetes, key_of, leaves, note, quantity, waits
from schedgap.tools.judge.kubernetes.parts import RESERVING, Ask, Devices
from schedgap.tools.judge.kubernetes.queues import NAMES, UNLISTED, QueueLimits
from schedgap.tools.judge.kubernetes.rules import Rules
from schedgap.tools.judge.kubernetes.taking import HOST, Taking, conditions_of
from schedgap.tools.judge.kubernetes.waiting import Quotas, Waiting, Workloads, loosest, pods_of_group
from schedgap.tools.judge.seating import Runs, seat_parts
from schedgap.tools.judge.table import UNREAD, way_of

MODEL = "nvidia.com/gpu.product"
MOVE, END = 1, 10
"""Prices per pod of moving what runs and of ending it."""
DEVICES = "devices"
MIRROR = "kubernetes.io/config.mirror"  # annotation of a static pod, which its kubelet makes again
WHOLLY = "its PodGroup is not listed, so it is read as all of its pods or none; fewer may do"
QUOTA = "its quota"
GROUP = "runai-gpu-group"
"""Label of pods that share a device under KAI-Scheduler."""

Pod = Mapping[str, Json]
Kind = tuple[tuple[int, int], tuple[tuple[str, int], ...], tuple[int, ...], tuple[str, ...], bool]
"""What pods of a gang are equal in: thousandths of devices, other resources, nodes that take them, groups that they are
in, whether they are beyond what their group needs."""


class Cluster:
    """One reading of a listing.

    Parameters
    ----------
    outward : see :class:`~schedgap.tools.judge.draft.Draft`
    """

    def __init__(self, listing: Kubernetes, gang_label: str | None, outward: bool) -> None:
        self.listing, self.gang_label = listing, gang_label
        self.gangs = Gangs(listing, gang_label)
        self.taking = Taking(listing.nodes)
        self.workloads = Workloads(listing)
        self.quotas = Quotas(listing)
        self.limits = QueueLimits(listing)
        self.every: dict[str, list[Pod]] = defaultdict(list)
        self.place = {id(pod): place for place, pod in listing.pods}
        self.gang: dict[str, Gang] = {}
        self.of: dict[int, str] = {}
        for _, pod in listing.pods:
            if leaves(pod):
                continue  # it is no part of its gang any more
            gang = self.gangs.of(pod)
            key = f"{gang.family} {gang.key}"
            self.gang[key], self.of[id(pod)] = gang, key
            self.every[key].append(pod)
        for key, pods in self.every.items():
            self.gangs.complete(self.gang[key], pods)
        self.bearers = Counter(gang.key for gang in [*self.gang.values(), *(one.gang for one in self.workloads.found)])
        self._prepare(outward)

    def _prepare(self, outward: bool) -> None:
        """Nodes, with all amounts of the listing in common units."""
        listing = self.listing
        named = {level for gang in self.gang.values() for level in gang.levels}
        named |= {level for waiting in self.workloads.found for level in waiting.gang.levels}
        labels = [node["metadata"].get("labels") or {} for _, node in listing.nodes]
        self.levels = Levels(listing.source, listing.kinds["Topology"], labels).ordered(named)
        listing.unread["topologies beside the first"] = max(0, len(listing.kinds["Topology"]) - 1)
        rooms = [listing.room(place, node) for place, node in listing.nodes]
        self.draft = draft = Draft(listing.source, self.levels, outward, unread=Counter(listing.unread))
        draft.facts.preempts = True
        made = {id(pod): (waiting.place, pod) for waiting in self.workloads.found for pod in waiting.pods}
        pods = [*listing.pods, *made.values()]
        asked = [listing.request(place, pod) for place, pod in pods]
        self.devices = Devices([node for _, node in listing.nodes], rooms, asked)
        draft.facts.kinds = frozenset(self.devices.names) if self.devices.several else frozenset()
        self.ask = {id(pod): self.devices.ask(place, pod, one) for (place, pod), one in zip(pods, asked, strict=True)}
        self.rooms = [self.devices.rest(room) for room in rooms]
        queues = [left for waiting in self.workloads.found if (left := self.quotas.left(waiting.queue))]
        quotas = [amounts for left in queues for amounts in (left.quota, *left.flavours.values())]
        self.counting = Counting(
            [*self.rooms, *(ask.rest for ask in self.ask.values()), *map(self.devices.rest, quotas)], outward
        )
        draft.apart |= self.counting.apart
        draft.facts.units = dict(self.counting.units.items())
        self.lacking: list[set[str]] = []  # by node, levels of which it has no label
        for n, ((place, node), given_labels) in enumerate(zip(listing.nodes, labels, strict=True)):
            free = self.counting.room(self.rooms[n])
            number = self.devices.cards[n].number
            draft.node(
                node["metadata"]["name"],
                number,
                given_labels.get(MODEL),
                free,
                f"{place}.status.allocatable",
                self._domain(given_labels, node),
            )
            if any(self.quotas.flavour[n] in left.flavours for left in queues):
                draft.nodes[-1]["flavour"] = self.quotas.flavour[n]
            self.lacking.append({level for level in self.levels if not given_labels.get(level)})
        names = [node["metadata"]["name"] for _, node in listing.nodes]
        for level in self.levels:
            without = frozenset(name for name, lack in zip(names, self.lacking, strict=True) if level in lack)
            draft.facts.unlabelled[level] = without
        draft.unread["nodes without the label of a level"] += sum(map(bool, self.lacking))
        for _, node in self.listing.nodes:
            for name in node.get("spec") or {}:
                if way_of("kubernetes", "node", name, closed=True).way == UNREAD:
                    draft.unread[f"nodes with spec.{name[:80]}, which is not known"] += 1
        draft.unread["nodes that do not tell their cards"] += sum(bool(cards.unread) for cards in self.devices.cards)

    def _domain(self, labels: Mapping[str, str], node: Pod) -> list[str]:
        """The labels of a node's levels; without one, a domain of its own, which it shares with its narrower one."""
        found: list[str] = []
        narrower = str(node["metadata"]["name"])
        for level in reversed(self.levels):
            narrower = str(labels[level]) if labels.get(level) else f"(none) {narrower.removeprefix('(none) ')}"
            found.insert(0, narrower)
        return found

    def drafted(self) -> Draft:
        """Everything in order: what runs takes its room first, then the decision, then what waits.

        Of a gang the pods that run, or have a node that is not listed, are not decided about any more.
        The others wait, and so many fewer of them make sense. A pod that is being deleted holds its room.
        """
        waiting: dict[str, list[Pod]] = defaultdict(list)
        self.seats: dict[str, set[int]] = defaultdict(set)  # nodes on which pods of a gang run
        runs: dict[int, list[Pod]] = defaultdict(list)
        for _, pod in self.listing.pods:
            node = (pod.get("spec") or {}).get("nodeName")
            present = self.draft.index.get(str(node))
            if leaves(pod):
                runs[-1 if present is None else present].append(pod)
                continue
            key = self.of[id(pod)]
            pending = waits(pod)
            if node is None or (pending and present is not None):
                waiting[key].append(pod)
                continue
            self.draft.facts.seated[self._shown(key)] += 1
            if present is None:
                self.draft.unread["pods on nodes that are not listed"] += 1
            else:
                self.seats[key].add(present)
                runs[present].append(pod)
        self.draft.unread["pods on nodes that are not listed"] += len(runs.pop(-1, ()))
        self.rules = Rules([pod for _, pod in self.listing.pods], self.gang_label)
        for n, pods in runs.items():
            self._run_all(n, pods)
        drafts = {
            key: self._gang(self.gang[key], self._shown(key), pods, self.every[key]) for key, pods in waiting.items()
        }
        for key, pods in waiting.items():
            for pod in pods if drafts[key] is None else ():  # what is bound holds its room all the same
                if _is_bound(pod):
                    self._run_all(self._bound(pod), [pod])
        self._keep_room(waiting, [pod for key, pods in waiting.items() if drafts[key] is not None for pod in pods])
        for key, made in drafts.items():
            if made is not None:
                self.draft.wait(self._shown(key), **made)
        self._without_pods()
        self._rank()
        return self.draft

    def _shown(self, key: str) -> str:
        """The name of a gang, without its scheduler where that is clear."""
        gang = self.gang[key]
        return gang.key if self.bearers[gang.key] < 2 else f"{gang.key} ({gang.family})"

    def _rank(self) -> None:
        """Priorities by rank, where one is beyond what an instance may have, as those of the system are."""
        facts = self.draft.facts
        order = sorted({*(gang["priority"] for gang in self.draft.gangs), *facts.priorities.values()})
        if any(abs(priority) > LARGEST_COUNT for priority in order):
            for gang in self.draft.gangs:
                gang["priority"] = order.index(gang["priority"])
            for name, priority in facts.priorities.items():
                facts.priorities[name] = order.index(priority)

    # -- what runs -----------------------------------------------------------------------------------------------

    def _run_all(self, n: int, pods: Sequence[Pod]) -> None:
        """What runs on a node: parts of devices first, so that whole ones are what they leave."""
        parts = []
        shared = {name for pod in pods if pod["metadata"].get("namespace") not in RESERVING for name in _groups(pod)}
        for pod in pods:
            ask = self.ask[id(pod)]
            if ask.high:
                request = self.counting.asked(ask.rest)
                devices = self.devices.parts_of(pod, n)
                parts.append(Runs(key_of(pod), ask.low, ask.high, request, devices, _groups(pod), ask.parts))
            self.draft.unread["pods that run with parts of devices that are not read"] += bool(ask.unread)
        seat_parts(self.draft, n, parts)
        for pod in pods:
            ask = self.ask[id(pod)]
            if not ask.high:
                keeps = pod["metadata"].get("namespace") in RESERVING and note(pod, GROUP) in shared
                self.draft.run(key_of(pod), n, 0 if keeps else ask.whole, self.counting.asked(ask.rest))
        made = {one["id"]: one for one in self.draft.running[-len(pods) :]}
        for pod in pods:
            self._may_leave(pod, made[key_of(pod)], n)

    def _may_leave(self, pod: Pod, made: dict[str, Any], n: int) -> None:
        """What the reasons need: whose it is, its priority, whether it may be moved, and where."""
        facts, name = self.draft.facts, shortened(key_of(pod), self.draft.cut)
        facts.priorities[name] = _priority(pod)
        if leaves(pod):
            facts.leaving.add(name)
            made |= {"movable": True, "price": GOES}
            return
        key = self.of[id(pod)]
        gang = self.gang[key]
        facts.owners[name] = self._shown(key)
        if gang.family != ALONE and gang.least != 1:
            facts.lowest[self._shown(key)] = gang.least or gang.total or len(self.every[key])
        made["selector"] = self.draft.selector(self.taking.allowed(pod.get("spec") or {}))
        if gang.required is not None:
            facts.required[self._shown(key)] = self._level(gang.required) or NODE
            labels = made["selector"].setdefault("labels", {})
            labels |= self.draft.label(INSIDE, sorted(self._domains(gang, {n})))
        owners = pod["metadata"].get("ownerReferences") or []
        owned = any(owner.get("controller") for owner in owners)
        over = not waits(pod) and note(pod, MIRROR) is None
        rules, unread, per_node = self.rules.of([pod]) if owned else ([], [], None)
        if rules or unread or per_node:
            facts.anchored.add(name)
            owned = False
        if owned and over and "DaemonSet" not in {owner.get("kind") for owner in owners}:
            made |= {"movable": True, "price": END, "move_price": MOVE}
        elif over:
            made |= {"movable": True, "price": END}
        if len(made["devices"]) > 1 and any(part < WHOLE for part in made["devices"].values()):
            made.pop("move_price", None)

    def _keep_room(self, waiting: Mapping[str, Sequence[Pod]], judged: Sequence[Pod]) -> None:
        """A stand-in for each pod with a nominated node, in the reading that never allows more, as far as room is free.

        kube-scheduler lets no pod of at most its priority have that room, and may be about to bind the pod there.
        """
        draft = self.draft
        bound: Counter[tuple[int, str]] = Counter()
        for pod in filter(_is_bound, judged):
            bound.update({(self._bound(pod), name): amount for name, amount in self._amounts(pod).items()})
        for key, pod in ((key, pod) for key, pods in waiting.items() for pod in pods):
            n = draft.index.get(str((pod.get("status") or {}).get("nominatedNodeName")))
            if n is None or _is_bound(pod):
                continue
            draft.apart = True
            name = shortened(f"{key_of(pod)} (nominated)", draft.cut)
            draft.facts.nominated[name] = self._shown(key)
            if not draft.outward:
                free = draft.nodes[n]["free"] | {DEVICES: draft.nodes[n]["gpus"].count(WHOLE)}
                room = {what: max(0, amount - bound[n, what]) for what, amount in free.items()}
                taken = {what: min(amount, room.get(what, 0)) for what, amount in self._amounts(pod).items()}
                made = draft.run(name, n, taken.pop(DEVICES), taken)
                made |= {"movable": True, "price": 0}

    def _amounts(self, pod: Pod) -> dict[str, int]:
        """What a pod asks for; of devices in which it has a part, all."""
        ask = self.ask[id(pod)]
        return {**self.counting.asked(ask.rest), DEVICES: ask.whole or (ask.parts if ask.high else 0)}

    # -- levels --------------------------------------------------------------------------------------------------

    def _domains(self, gang: Gang, nodes: set[int]) -> set[int]:
        """Nodes in the domains of the required level of a gang in which some nodes lie."""
        paths = [(*node["domain"], node["id"]) for node in self.draft.nodes]
        names = [*self.levels, HOST]
        depth = names.index(gang.required) + 1 if gang.required in names else 0
        taken = {paths[n][:depth] for n in nodes} or {()}
        return {n for n, path in enumerate(paths) if path[: len(next(iter(taken)))] in taken}

    def _level_labels(self, key: str, gang: Gang, names: Sequence[str]) -> dict[str, str]:
        """Labels of the nodes that have the labels of a gang's levels, and of the domain in which it runs in part.

        Parameters
        ----------
        names : groups with levels of their own that the pods are in
        """
        topologies = self.listing.kinds["Topology"] and gang.family not in (NATIVE, "KAI-Scheduler", "Grove")
        levels = {gang.required, gang.preferred, *(gang.inner[name] for name in names)} - {None}
        needed = set(self.levels) if levels and topologies else levels & set(self.levels)
        found: dict[str, str] = {}
        if needed:
            found |= self.draft.label(HAS, [n for n, lack in enumerate(self.lacking) if not needed & lack])
        if self.seats[key] and gang.required is not None:
            found |= self.draft.label(INSIDE, sorted(self._domains(gang, self.seats[key])))
        return found

    def _level(self, name: str | None) -> str | None:
        return NODE if name == HOST else name

    # -- what waits ----------------------------------------------------------------------------------------------

    def _gang(
        self, gang: Gang, shown: str, pods: list[Pod], every: list[Pod], queue: str | None = None
    ) -> dict[str, Any] | None:
        """What is drafted of a gang: equal pods as one group, its bound pods the decision; None where put aside."""
        rules, unread, per_node = self.rules.of(pods)
        asks = [self.ask[id(pod)] for pod in pods]
        limits, unlisted = self.limits.of(gang, pods)
        if unlisted:
            self.draft.facts.assumed[shortened(shown, self.draft.cut)] = UNLISTED
        rules += [f"the cluster's {kind[:80]} objects" for kind in self.listing.strange]
        rules += [*gang.rules, *limits, *(rule for ask in asks for rule in ask.rules)]
        requests = [self.listing.request(self.place.get(id(pod), ""), pod) for pod in pods]
        asked_for = {what: sum(request.get(what, 0) for request in requests) for what in gang.resources}
        where = f"{self.listing.source}: PodGroup of {shown}: spec.minResources"
        if any(quantity(gang.resources[what], where) > amount for what, amount in asked_for.items() if what != "pods"):
            rules.append("the minResources of its PodGroup")
        if self.workloads.assigned:
            rules.append("the nodes that Kueue has assigned to a Workload whose pods are not there yet")
        sets = self._sets(gang, pods, every, unread)
        unread += [*gang.unread, *(ask.unread for ask in asks if ask.unread)]
        strange = gang.levels - {*self.levels, HOST}
        unread += ["its level is in no topology that is listed"] if strange else []
        barred = self._barred(gang, pods, every, asks)
        placed = any(map(_is_bound, pods))
        if unread or (barred and not placed):
            gpus = None if any(ask.unread for ask in asks) else sum((ask.gpus for ask in asks), Fraction(0))
            reason = "; ".join(dict.fromkeys(unread)) if unread else barred
            self.draft.aside(shown, len(pods), gpus, reason, barred=not unread, placed=placed)
            return None
        level, size = slices_of(pods)
        if level is not None and (any(sets) or not (level == HOST and self._sliced(pods, asks, size))):
            rules.append("its slices")
            size = 1
        return self._groups(gang, shown, pods, asks, sets, rules, per_node, size if level == HOST else 1) | (
            {} if queue is None else {"queue": queue}
        )

    def _sets(
        self, gang: Gang, pods: Sequence[Pod], every: Sequence[Pod], unread: list[str]
    ) -> Sequence[tuple[str, ...]]:
        """The groups with levels of their own that each pod is in; what of them cannot be read is told."""
        apart = levels_apart(every, [self.ask[id(pod)] for pod in every])
        if apart and not gang.inner:
            unread.append(APART)
        sets = subgroups_of(gang, pods) if gang.inner else [()] * len(pods)
        preferring = apart and any(note(pod, PREFERRED) is not None for pod in pods)
        self.draft.unread["levels that groups of a gang prefer"] += preferring
        if len(every) > len(pods) and (any(sets) or gang.spare is not None):
            unread.append("pods of it run, and its groups have rules of their own")
        if any(sets) and gang.spare is None and (gang.least is not None or gang.wholly):
            unread.append("its groups have levels of their own, and fewer pods than all are enough")
        spare = [pod for pod in pods if gang.spare is not None and note(pod, SUBGROUP[gang.family]) == gang.spare]
        kinds = {(str(self.ask[id(pod)]), self._spec(pod)) for pod in spare}
        if len(kinds) > 1:
            unread.append("its groups have fewest pods of their own, of different pods")
        return sets

    def _barred(self, gang: Gang, pods: Sequence[Pod], every: Sequence[Pod], asks: Sequence[Ask]) -> str:
        """Why nobody may place a gang as it is; empty where one may."""
        wanted = max(gang.total or 0, gang.least or 0)
        if len(every) < wanted:
            return f"{len(every)} of the {wanted} pods that it starts with are there"
        level, size = slices_of(pods)
        if level is not None and size > 1 and len(pods) % size:
            return f"{len(pods)} pods are no multiple of its slices of {size}"
        return next((ask.barred for ask in asks if ask.barred), "")

    def _sliced(self, pods: Sequence[Pod], asks: Sequence[Ask], size: int) -> bool:
        """Whether slices on one node each are the same as pods that ask for as much together."""
        kinds = {
            (ask.whole, ask.high, tuple(sorted(ask.rest.items())), self._spec(pod))
            for pod, ask in zip(pods, asks, strict=True)
        }
        return size > 0 and len(kinds) == 1 and not asks[0].high and not any(map(_is_bound, pods))

    def _spec(self, pod: Pod) -> tuple[int, ...]:
        return self.taking.allowed(pod.get("spec") or {})

    def _groups(
        self,
        gang: Gang,
        shown: str,
        pods: Sequence[Pod],
        asks: Sequence[Ask],
        sets: Sequence[tuple[str, ...]],
        rules: list[str],
        per_node: int | None,
        size: int,
    ) -> dict[str, Any]:
        outward, draft = self.draft.outward, self.draft
        late = _beyond(gang, pods)
        kinds: dict[Kind, list[Pod]] = defaultdict(list)
        for pod, ask, names in zip(pods, asks, sets, strict=True):
            draft.apart |= ask.low < ask.high
            request = self.counting.asked(ask.rest)
            nodes = self._spec(pod)
            if ask.nodes is not None:
                nodes = tuple(n for n in nodes if n in ask.nodes)
            kinds[ask.devices(outward), tuple(sorted(request.items())), nodes, names, id(pod) in late].append(pod)
        key = f"{gang.family} {gang.key}"
        least = self._least(gang, shown, len(pods))
        if gang.spare is not None:  # what its groups need first, then what one of them may have beyond
            kinds = dict(sorted(kinds.items(), key=lambda kind: kind[0][-1]))
        elif least is not None:
            kinds = dict(sorted(kinds.items(), key=lambda kind: _size(kind[0])))
            if len(kinds) > 1 and not _exact(kinds):
                rules.append("which of its different pods start first")
                kinds = _loosened(kinds) if outward else kinds
        sliced = size > 1 and self._sliced(pods, asks, size)
        groups = []
        for ((each, pieces), asked, nodes, names, _), members in kinds.items():
            selector = {"labels": {**draft.label(TAKES, nodes), **self._level_labels(key, gang, names)}}
            made: dict[str, Any] = {
                "count": len(members),
                "gpu": each if each < WHOLE else WHOLE * pieces,
                "request": dict(asked),
                "selector": selector if selector["labels"] else {},
            }
            if each < WHOLE and pieces > 1:
                made["parts"] = pieces
            if names:
                made["subgroups"] = list(names)
            if sliced:
                whole = {name: size * amount for name, amount in asked}
                made |= {"count": len(members) // size, "gpu": size * made["gpu"], "request": whole}
            groups.append(made)
        specs = [next(iter(members)).get("spec") or {} for members in kinds.values()]
        scheduler = str((pods[0].get("spec") or {}).get("schedulerName"))
        if scheduler in NAMES:
            draft.facts.gentle[shortened(shown, draft.cut)] = f"whom {scheduler} may end for it is not read"
        if any((pod.get("spec") or {}).get("preemptionPolicy") == "Never" for pod in pods):
            draft.facts.gentle[shortened(shown, draft.cut)] = "its preemptionPolicy is Never"
        draft.facts.closed[shortened(shown, draft.cut)] = [
            Refusals(conditions_of(spec), partial(self.taking.refusal, spec)) for spec in specs
        ]
        seats = [(k, self._bound(pod)) for k, members in enumerate(kinds.values()) for pod in members if _is_bound(pod)]
        if least is not None and len({*gang.levels}) == 0 and sliced:
            least = -(-least // size)
        draft.unread["gangs whose pods prefer different levels, read as the first"] += (
            len({note(pod, "kueue.x-k8s.io/podset-preferred-topology") for pod in pods}) > 1
        )
        result: dict[str, Any] = {"groups": groups, "seats": seats, "priority": _priority(pods[0]), "rules": rules}
        result |= {
            "required": self._level(gang.required),
            "preferred": self._level(gang.preferred),
            "per_node": per_node,
            "subgroups": [{"id": name, "required": self._level(level)} for name, level in gang.inner.items()],
        }
        return result | {"least": least, "gpus": sum((ask.gpus for ask in asks), Fraction(0))}

    def _least(self, gang: Gang, shown: str, waiting: int) -> int | None:
        """Fewest of the waiting pods that make sense; None where these are all."""
        seated = self.draft.facts.seated[shown]
        name = shortened(shown, self.draft.cut)
        if gang.wholly and waiting + seated > 1:
            self.draft.facts.rests[name] = WHOLLY
            self.draft.apart = True
            return 1 if self.draft.outward else None
        if gang.least is None:
            return None
        least = max(1, gang.least - seated)
        return least if least < waiting else None

    def _without_pods(self) -> None:
        """Workloads, PodGroups whose pods are not made, suspended Jobs."""
        for waiting in self.workloads.found:
            self._workload(waiting)
        for family, place, item in without_pods(self.gangs):
            shown, phase = key_of(item), (item.get("status") or {}).get("phase")
            if family != "Volcano" or phase not in ("Pending", "Inqueue"):
                self.draft.unread["PodGroups that no listed pod names"] += 1
                continue
            least, together = pods_of_group(item, place)
            gpus = sum(int(amount) for name, amount in together.items() if name in self.devices.names)
            rule = "how its pods divide what they ask for: they are not made yet"
            groups = [
                {"count": count, "gpu": WHOLE * gpu, "request": {}, "selector": {}}
                for count, gpu in loosest(least, gpus)
            ]
            self.draft.wait(shown, groups, (), rules=[rule], gpus=Fraction(gpus), priority=0)
        for name in self.workloads.suspended():
            self.draft.aside(name, 0, None, "it is suspended, and no Workload that is listed tells its pods")

    def _workload(self, waiting: Waiting) -> None:
        gang, pods = waiting.gang, waiting.pods
        if not pods:
            self.draft.unread["Workloads without pods in their sets"] += 1
            return
        remaining = self.quotas.left(waiting.queue)
        asked = {name for pod in pods for name in self.listing.request(waiting.place, pod)} - {"pods"}
        left_out, unread = self.quotas.rules(waiting.queue, asked)
        gang.rules.extend(left_out)
        if self.quotas.waits_behind(waiting, self.workloads.found):
            gang.rules.append("the StrictFIFO order of its queue")
        gang.unread.extend(unread)
        queue = None
        if remaining is None or (remaining.flavours and waiting.sets > 1):  # equal pods of two sets are one group here
            gang.rules.append(QUOTA)
        else:
            queue = remaining.name
            if all(one["id"] != queue for one in self.draft.queues):
                flavours = [
                    {"flavour": name, "quota": self._quota(amounts)} for name, amounts in remaining.flavours.items()
                ]
                made_queue = {"id": queue, "quota": self._quota(remaining.quota)}
                self.draft.queues.append(made_queue | ({"flavours": flavours} if flavours else {}))
        self.gang[f"{gang.family} {gang.key}"] = gang
        shown = self._shown(f"{gang.family} {gang.key}")
        self.draft.facts.gentle[shortened(shown, self.draft.cut)] = "whom Kueue may end for it is not read"
        made = self._gang(gang, shown, pods, pods, queue)
        if made is not None:
            self.draft.wait(shown, **made)

    def _quota(self, amounts: Mapping[str, Fraction]) -> dict[str, int]:
        """Amounts of a quota in the instance's units, GPUs of all kinds as one."""
        devices = [amount for name, amount in amounts.items() if name in self.devices.names]
        gpu = {"gpu": int(WHOLE * sum(devices))} if devices else {}
        return self.counting.room(self.devices.rest(amounts)) | gpu

    def _bound(self, pod: Pod) -> int:
        return self.draft.index[pod["spec"]["nodeName"]]


def _groups(pod: Pod) -> tuple[str, ...]:
    """KAI-Scheduler's names of the devices that a pod shares: a label for one, a label each where there are several."""
    labels = pod["metadata"].get("labels") or {}
    several = tuple(str(name) for key, name in sorted(labels.items()) if key.startswith(f"{GROUP}/"))
    one = note(pod, GROUP)
    return several or ((one,) if one is not None else ())


def _is_bound(pod: Pod) -> bool:
    return (pod.get("spec") or {}).get("nodeName") is not None


def _priority(pod: Pod) -> int:
    return int((pod.get("spec") or {}).get("priority") or 0)


def _beyond(gang: Gang, pods: Sequence[Pod]) -> set[int]:
    """Pods, by identity, that the one group of a gang with more than it needs has beyond; those that are bound last."""
    if gang.spare is None:
        return set()
    members = [pod for pod in pods if note(pod, SUBGROUP[gang.family]) == gang.spare]
    members.sort(key=_is_bound, reverse=True)
    return set(map(id, members[gang.groups[gang.spare] :]))


def _exact(kinds: Mapping[Kind, list[Pod]]) -> bool:
    """Whether the first pods fit wherever as many others do, and those that are bound are the first."""
    bound = [flag for pods in kinds.values() for flag in sorted(map(_is_bound, pods), reverse=True)]
    chain = all(
        all(amount <= other for amount, other in zip(devices, more, strict=True))
        and all(amount <= dict(asked).get(name, 0) for name, amount in request)
        and set(nodes) >= set(fewer)
        for (devices, request, nodes, *_), (more, asked, fewer, *_) in pairwise(kinds)
    )
    return chain and bound == sorted(bound, reverse=True)


def _loosened(kinds: Mapping[Kind, list[Pod]]) -> dict[Kind, list[Pod]]:
    """One kind that fits wherever any of these does."""
    asks = [dict(request) for _, request, *_ in kinds]
    least = {name: min(asked[name] for asked in asks) for name in asks[0] if all(name in asked for asked in asks)}
    nodes = tuple(sorted({n for _, _, allowed, *_ in kinds for n in allowed}))
    return {
        (
            (min(each for (each, _), *_ in kinds), min(pieces for (_, pieces), *_ in kinds)),
            tuple(sorted(least.items())),
            nodes,
            (),
            False,
        ): [pod for pods in kinds.values() for pod in pods]
    }


def _size(kind: Kind) -> tuple[int, int, int]:
    """Grows with what pods ask for, and where they may go to fewer nodes."""
    (each, pieces), request, nodes, *_ = kind
    return each * pieces, sum(amount for _, amount in request), -len(nodes)
