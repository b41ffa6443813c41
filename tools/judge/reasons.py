"""Why a gang is not placed: one condition dropped at a time, else what is short and where.

An exact method solves the instance without the condition; where its limit ends it, the reason is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from schedgap.benchmarks.text import number
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.instance import WHOLE, Gang, GangPlacementInstance, Group, Node
from schedgap.formulations.gang_placement.scale import Component, components
from schedgap.solvers.result import Result, Status
from schedgap.tools.judge.asking import Asking, first_pods, without_labels, without_request, without_subgroups
from schedgap.tools.judge.draft import HAS, INSIDE, TAKES, Words
from schedgap.tools.judge.reading import Snapshot

UNDECIDED = "could be placed alone; why the best decision does without it is undecided in the time"
REQUEST = "its request for"
PREFERRED = "its preferred level, whose label some nodes lack"
CLOSED = "nodes that do not take it"
SUBGROUPS = "the levels of its groups"
KEPT_ROOM = "room that is kept for pods with a nominated node"
MOST_NODES = 3
"""Nodes that one reason names."""


class Reasons:
    """Reasons of the gangs of one snapshot.

    Parameters
    ----------
    instance : nothing in it is relaxed, with the objectives that were asked for
    best : the best decision about it
    """

    def __init__(self, asking: Asking, snapshot: Snapshot, instance: GangPlacementInstance, best: Result) -> None:
        self.asking, self.snapshot, self.instance, self.best = asking, snapshot, instance, best
        self.facts = snapshot.facts
        self.gangs = {gang.id: gang for gang in instance.gangs}

    # -- the best decision does without it -------------------------------------------------------------------------

    def rival(self, gang: Gang) -> str:
        """Why the best decision does not place a gang that could be placed alone."""
        if not self.asking.ready:
            return UNDECIDED
        proven = self.best.status is Status.OPTIMAL
        best = self.best.solution or {"placement": {}}
        top = max(item.priority for item in self.instance.gangs) + 1
        forced = [
            item.model_copy(update={"priority": top}) if item.id == gang.id else item for item in self.instance.gangs
        ]
        rest = [name for name in self.instance.objectives if name != "weight"]
        weight_first = self.instance.objectives[0] == "weight"
        objectives = self.instance.objectives if weight_first else ["weight", *rest]
        data = self.asking.build(self.instance, forced, objectives, flat=False)
        result = self.asking.solved(data)
        if result is None or result.solution is None or gang.id not in result.solution["placement"]:
            return UNDECIDED
        lost = [name for name in best["placement"] if name not in result.solution["placement"]]
        mine, theirs = (self.asking.values(self.instance, item) for item in (result.solution, best))
        different = next((item for item in components(self.instance) if mine[item.name] != theirs[item.name]), None)
        if different is None:
            return f"another decision of the same worth places it{self._in_place(lost)}"
        if (mine[different.name] > theirs[different.name]) is different.maximise:
            return "a better decision than the best that was found places it; the time was over"
        if not proven or result.status is not Status.OPTIMAL:
            return "could be placed alone; the best decision that was found, not proven, does without it"
        return self._worse(gang, different, mine[different.name], theirs[different.name], weight_first)

    def _worse(self, gang: Gang, entry: Component, mine: Fraction, theirs: Fraction, weight_first: bool) -> str:
        """The component in which each decision with the gang is worse."""
        numbers = f"{number(float(mine))} with it, {number(float(theirs))} without"
        if entry.kind in ("weight", "pods"):
            higher = entry.priority is not None and entry.priority > gang.priority
            return f"{'gangs of higher priority' if higher else 'others'} are worth more ({entry.name}: {numbers})"
        words = {"split": "a gang would be split over domains", "domains": "gangs would lie in more domains"}
        told = words.get(entry.kind, f"{entry.kind} would be worse")
        if weight_first:
            return f"others are worth as much, and {told} ({numbers})"
        return f"{entry.kind if entry.kind not in words else 'topology'} counts before weight, and {told} ({numbers})"

    @staticmethod
    def _in_place(gangs: Sequence[str]) -> str:
        return f", in place of {', '.join(gangs[:MOST_NODES])}" if gangs else ""

    def instead(self, gang: Gang) -> str:
        """What the best decision gives up or changes for a gang that it places."""
        best = self.best.solution or {"placement": {}}
        clauses = []
        pods = len(best["placement"][gang.id])
        if pods < gang.size:
            clauses.append(f"{pods} of its {gang.size} pods")
        if best.get("preempted") or best.get("moved"):
            ended = f"ending {', '.join(best['preempted'][:MOST_NODES])}" if best.get("preempted") else ""
            moved = ", ".join(
                f"{name} to {seat['node']}" for name, seat in [*best.get("moved", {}).items()][:MOST_NODES]
            )
            clauses.append(
                "after " + " and ".join(part for part in (ended, f"moving {moved}" if moved else "") if part)
            )
        decided = {name: pods for name, pods in self.snapshot.decision["placement"].items() if pods}
        lost = [name for name in decided if name not in best["placement"]]
        moved_on = [name for name in decided if name in best["placement"] and decided[name] != best["placement"][name]]
        if (lost or moved_on) and self._beside(gang) is False:
            elsewhere = f", with {', '.join(moved_on[:MOST_NODES])} elsewhere" if moved_on else ""
            clauses.append(f"in place of {', '.join(lost[:MOST_NODES])}" if lost else elsewhere.removeprefix(", "))
        return "".join(f", {part}" for part in clauses)

    def _beside(self, gang: Gang) -> bool | None:
        """Whether it fits beside all that the scheduler placed, where that stays."""
        if not self.asking.ready:
            return None
        left = taken_off(self.instance, self.snapshot.decision)
        return self.asking.placed_alone(left, first_pods(gang, gang.fewest))[0]

    # -- nobody can place it ---------------------------------------------------------------------------------------

    def short(self, gang: Gang) -> list[str]:
        """What a gang would fit without, one thing at a time; else what is short; last, what of these is undecided."""
        inner = {} if self.facts.nominated else self.gangs  # in which room that is kept counts as taken
        instance = self.instance if gang.id in inner else self.snapshot.outward
        gang = first_pods(inner.get(gang.id, gang), inner.get(gang.id, gang).fewest)
        reasons, undecided = [], []
        for what, changed in self._changes(gang).items():
            if changed == gang:
                continue
            fits, solution = self.asking.placed_alone(instance, changed)
            if fits:
                reasons.append(self._told(instance, gang, what, solution))
            elif fits is None:
                undecided.append(f"on {what}" if what == CLOSED else f"without {what}")
        reasons = reasons or self._lacking(instance, gang)
        rules = self.facts.relaxed.get(gang.id, ())
        if self.facts.nominated and gang.id not in self.facts.nominated.values():
            rules = (*rules, KEPT_ROOM)
        told = (
            f" (its further conditions are not read: {', '.join(rules)})"
            if rules and reasons and reasons[0].startswith("would")
            else ""
        )
        reasons = [f"{reason}{told}" for reason in reasons]
        return [*reasons, *([f"undecided in the time: {', '.join(undecided)}"] if undecided else [])]

    def words(self, gang: Gang) -> Words:
        """How its scheduler calls its conditions."""
        return self.facts.words.get(gang.id, Words())

    def _changes(self, gang: Gang) -> dict[str, Gang]:
        """What could be dropped: the level with the domain in which it runs in part, closed nodes, and so on."""
        words = self.words(gang)
        plain_form = self.snapshot.form == "own"
        opened = (lambda group: without_labels(group)) if plain_form else (lambda group: without_labels(group, TAKES))
        plain = _each(gang, opened)
        if not plain_form:
            plain = _each(
                plain,
                lambda group: group.model_copy(update={"selector": group.selector.model_copy(update={"models": ()})}),
            )
        unbound = _each(gang, lambda group: without_labels(group, HAS, INSIDE)) if not plain_form else gang
        result = {
            words.required: unbound.model_copy(update={"required": None, "preferred": None}) if gang.required else gang
        }
        if gang.subgroups is not None:
            result[SUBGROUPS] = without_subgroups(unbound)
        if gang.required is None and gang.preferred is not None:
            result[PREFERRED] = unbound.model_copy(update={"preferred": None})
        result[CLOSED] = plain
        result["its quota"] = gang.model_copy(update={"queue": None})
        result[words.per_node] = gang.model_copy(update={"per_node": None})
        for name in {name: None for group in gang.pods for name in group.request if name not in self.facts.kinds}:
            without = tuple(without_request(group, frozenset([name])) for group in gang.pods)
            result[f"{REQUEST} {name}"] = gang.model_copy(update={"pods": without})
        return result

    def _told(self, instance: GangPlacementInstance, gang: Gang, what: str, solution: Solution) -> str:
        """A condition without which it would fit, in words."""
        words = self.words(gang)
        if what == words.required:
            return self._wider(instance, gang)
        if what == CLOSED:
            return self._opened(instance, gang, solution)
        if what == words.per_node:
            return f"would fit {_but_for(what)}"
        if what == f"{REQUEST} pods":
            return "would fit, but the nodes' own limit of pods is reached"
        if what.startswith(REQUEST):
            name = what.removeprefix(f"{REQUEST} ")
            return f"would fit without {what}: {self._amounts(instance, gang, name)}"
        return f"would fit without {what}"

    def _wider(self, instance: GangPlacementInstance, gang: Gang) -> str:
        """The narrowest wider level in which a gang would fit, on nodes that have its label."""
        what = self.words(gang).required
        depth = instance.depth(gang.required)
        free = _each(gang, lambda group: without_labels(group, HAS, INSIDE)) if self.snapshot.form != "own" else gang
        for level in instance.levels[: depth - 1][::-1]:
            unlabelled = self.facts.unlabelled.get(level, frozenset())
            nodes = frozenset(node.id for node in instance.nodes if node.id not in unlabelled)
            fits: bool | None = False
            if nodes:
                kept = self.asking.build(instance, [], ["weight"], nodes)
                fits, _ = self.asking.placed_alone(kept, free.model_copy(update={"required": level, "preferred": None}))
            if fits:
                return f"would fit in one {level}, but not in one {gang.required}"
            if fits is None:
                return f"would fit without {what}, in one {level} undecided in the time"
        return f"would fit {_but_for(what)}"

    def _opened(self, instance: GangPlacementInstance, gang: Gang, solution: Solution) -> str:
        """The nodes that do not take it on which it would fit, each with the cause."""
        nodes = {node.id: n for n, node in enumerate(instance.nodes)}
        result: dict[str, str] = {}
        for pod in solution["placement"][gang.id]:
            group, node = gang.pods[pod["group"]], instance.nodes[nodes[pod["node"]]]
            if not group.selector.takes(node):
                result.setdefault(node.id, self._cause(gang.id, pod["group"], nodes[pod["node"]], group, node))
        told = "; ".join(f"{name}: {cause}" for name, cause in list(result.items())[:MOST_NODES])
        more = f" and {len(result) - MOST_NODES} more" if len(result) > MOST_NODES else ""
        return f"would fit on {CLOSED} ({told}{more})"

    def _cause(self, gang: str, k: int, n: int, group: Group, node: Node) -> str:
        causes = self.facts.closed.get(gang, ())
        cause = causes[k].cause(n) if k < len(causes) else None
        if cause is not None:
            return cause[1] if self.facts.named else cause[0]
        if group.selector.models and node.gpu_model not in group.selector.models:
            return f"its GPUs are {node.gpu_model}, {' or '.join(group.selector.models)} are asked for"
        wanted = [f"{name}={value}" for name, value in group.selector.labels.items() if node.labels.get(name) != value]
        return f"label {', '.join(wanted)} is asked for"

    # -- what is short ---------------------------------------------------------------------------------------------

    def _lacking(self, instance: GangPlacementInstance, gang: Gang) -> list[str]:
        """GPUs that are too few, or in pieces; else the other things that it lacks."""
        wanted = sum(group.thousandths * group.count for group in gang.pods)
        if not wanted:
            return [self._together(instance, gang, "")]
        for pods in ([*gang.pods], *([group] for group in gang.pods if len(gang.pods) > 1)):
            asked = sum(group.thousandths * group.count for group in pods)
            free = sum(self._free(node, pods) for node in instance.nodes)
            if free < asked:
                where = (
                    " where it may go" if any(group.selector.labels or group.selector.models for group in pods) else ""
                )
                whose = "" if len(pods) == len(gang.pods) else f" for {_pods(pods[0])}"
                return [f"capacity: {_gpus(free)} free{where}, {_are(asked)} wanted{whose}"]
        others = frozenset(name for group in gang.pods for name in group.request if name not in self.facts.kinds)
        bare = _each(gang, lambda group: without_request(group, others))
        bare = without_subgroups(bare.model_copy(update={"required": None, "queue": None, "per_node": None}))
        fits, _ = self.asking.placed_alone(instance, bare)
        free = sum(self._free(node, gang.pods) for node in instance.nodes)
        sums = f"{_gpus(free)} free where it may go"
        if fits is None:
            return [f"{sums}, {_are(wanted)} wanted; what keeps it out is undecided in the time"]
        if not fits:
            pieces = " and ".join(_pods(group) for group in gang.pods if group.gpu)
            return [f"fragmentation: {sums}, but not in pieces for {pieces}"]
        return [self._together(instance, gang, "its GPUs alone would fit, ")]

    def _free(self, node: Node, pods: Sequence[Group]) -> int:
        """Thousandths of the devices of a node that some pods may use: of one vendor no more than are free of that."""
        taking = [group for group in pods if group.gpu and group.selector.takes(node)]
        if not taking:
            return 0
        parts = any(group.gpu < WHOLE for group in taking)
        free = sum(part for part in node.gpus if parts or part == WHOLE)
        kinds = {name for group in taking for name in group.request if name in self.facts.kinds}
        if kinds and not parts:
            free = min(free, sum(self._devices(node, name) for name in kinds))
        return free

    def _devices(self, node: Node, kind: str) -> int:
        """Thousandths of free devices of one vendor or type."""
        return int(node.free.get(kind, 0) * self.facts.units.get(kind, Fraction(1)) * WHOLE)

    def _together(self, instance: GangPlacementInstance, gang: Gang, head: str) -> str:
        """What a gang lacks that fits without none of its conditions alone."""
        names = list({name: None for group in gang.pods for name in group.request if name not in self.facts.kinds})
        for k, group in enumerate(gang.pods):
            if not any(group.selector.takes(node) for node in instance.nodes):
                nodes = list(enumerate(instance.nodes))[:MOST_NODES]
                causes = "; ".join(f"{node.id}: {self._cause(gang.id, k, n, group, node)}" for n, node in nodes)
                head += f"no node takes {_pods(group) if group.gpu else 'it'} ({causes}), and "
        amounts = [f"{name} ({self._amounts(instance, gang, name)})" for name in names if name != "pods"]
        also = [self.words(gang).required] * bool(gang.required) + ["its quota"] * bool(gang.queue)
        also += [self.words(gang).per_node] * bool(gang.per_node) + [SUBGROUPS] * bool(gang.subgroups)
        lacking = [
            text
            for name, text in zip([one for one in names if one != "pods"], amounts, strict=True)
            if self._lacks(instance, gang, name)
        ]
        parts = [*(lacking or amounts), *also]
        lead = "but not with all of " if head.endswith("fit, ") else "it does not fit with all of "
        return f"together: {head}{lead}{', '.join(parts)}" if parts else f"together: {head}not with all else"

    def _most(self, instance: GangPlacementInstance, gang: Gang, name: str) -> tuple[int, int]:
        """(asked by its largest pod, most that is free on a node that takes that pod)."""
        group = max(gang.pods, key=lambda one: one.request.get(name, 0))
        taking = [node for node in instance.nodes if group.selector.takes(node)] or instance.nodes
        free = [node.free.get(name, 0) for node in taking]
        return group.request.get(name, 0), max(free, default=0)

    def _lacks(self, instance: GangPlacementInstance, gang: Gang, name: str) -> bool:
        asked, free = self._most(instance, gang, name)
        return asked > free

    def _amounts(self, instance: GangPlacementInstance, gang: Gang, name: str) -> str:
        unit = self.facts.units.get(name, Fraction(1))
        asked, free = (amount(name, unit * value) for value in self._most(instance, gang, name))
        total = sum(group.count for group in gang.pods)
        return f"{asked} a pod of {total}, at most {free} free on a node"


def amount(name: str, value: Fraction) -> str:
    """An amount of a resource as a person reads it: memory with its unit."""
    if name in ("memory", "ephemeral-storage") and value >= 1024:
        for power, letter in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if value >= 1024**power:
                return f"{number(float(value / 1024**power))} {letter}B"
    return number(float(value))


def taken_off(instance: GangPlacementInstance, decision: Solution) -> GangPlacementInstance:
    """The instance with what a decision placed taken off its nodes, and of queues what it uses."""
    data = instance.to_dict()
    nodes = {node["id"]: node for node in data["nodes"]}
    gangs = {gang.id: gang for gang in instance.gangs}
    queues = {queue["id"]: queue for queue in data.get("queues", ())}
    for name, pods in decision["placement"].items():
        for pod in pods:
            group, node = gangs[name].pods[pod["group"]], nodes[pod["node"]]
            for device in pod.get("devices", ()):
                node["gpus"][device] = max(0, node["gpus"][device] - min(group.gpu, WHOLE))
            for resource, asked in group.request.items():
                node["free"][resource] = max(0, node["free"].get(resource, 0) - asked)
            queue = queues.get(gangs[name].queue, {})
            flavours = [entry for entry in queue.get("flavours", ()) if entry["flavour"] == node.get("flavour")]
            for quota in [entry["quota"] for entry in (queue, *flavours) if entry]:
                for resource in quota:
                    quota[resource] = max(0, quota[resource] - group.amount(resource))
    return GangPlacementInstance.parse({**data, "running": []}, "snapshot")


def _but_for(what: str) -> str:
    """Conditions that a scheduler calls by a word of its own are no "its ..."."""
    return f"without {what}" if what.startswith("its") else f"but for {what}"


def _each(gang: Gang, change: Callable[[Group], Group]) -> Gang:
    """The gang with each of its groups changed."""
    return gang.model_copy(update={"pods": tuple(map(change, gang.pods))})


def _gpus(thousandths: int) -> str:
    """``2 GPUs are``."""
    return f"{thousandths / WHOLE:g} GPU{' is' if thousandths == WHOLE else 's are'}"


def _are(thousandths: int) -> str:
    """``2 are``."""
    return f"{thousandths / WHOLE:g} {'is' if thousandths == WHOLE else 'are'}"


def _pods(group: Group) -> str:
    """``2 pods of 8 GPUs``, ``1 pod of 0.5 of each of 2 GPUs``."""
    gpus = number(group.gpu / WHOLE)
    if group.parts is not None:
        return f"{group.count} pod{'' if group.count == 1 else 's'} of {gpus} of each of {group.parts} GPUs"
    return f"{group.count} pod{'' if group.count == 1 else 's'} of {gpus} GPU{'' if group.gpu == WHOLE else 's'}"
