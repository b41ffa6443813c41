"""What ``kubectl get nodes,pods -A -o json`` says of a cluster, as an instance of gang-placement and a decision.

docs/judging.md says what is read. Which nodes take a pod (labels, affinity, taints,
cordons) is evaluated here: nodes get a label for each kind of pod, which its selector
asks for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import add
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT, Json

GANG_NAMES = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "volcano.sh/job-name",
)
"""Labels and annotations that name a pod's gang: of Kueue, Volcano (the second and the last) and coscheduling."""
TOPOLOGY = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
ROLE = "kueue.x-k8s.io/role-hash"
JOINED = "kueue.x-k8s.io/podset-group-name"
"""Kueue's sets of pods: those of one role, each with a level of its own but where they are joined."""
UNREAD = ("topologySpreadConstraints", "resourceClaims", "schedulingGates", "resources", "workloadRef")
MODEL = "nvidia.com/gpu.product"
HOST = "kubernetes.io/hostname"
VENDORS = frozenset({"nvidia.com/gpu", "amd.com/gpu"})
"""Whole devices; where none of them is there, all that ends in ``/gpu``."""
WIDTHS = ("region", "zone", "block", "rack")
"""Last words of the usual labels of levels, widest first."""
FACTORS = {"": Fraction(1), "m": Fraction(1, 1000), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}
FACTORS |= {letter: Fraction(1000) ** (n + 1) for n, letter in enumerate(("k", "M", "G", "T", "P", "E"))}
FACTORS |= {f"{letter}i": Fraction(1024) ** (n + 1) for n, letter in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([a-zA-Z]{0,2}))")
_MOST_CHARACTERS = 100
"""Of a quantity."""
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_RESOURCES = {"requests": dict, "limits": dict}
_TERM = {"matchExpressions": [{"values": [str]}], "matchFields": [{"values": [str]}]}
_AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
_TEXTS = {str: str}
READ = ("Node", "Pod", "PodGroup", "Topology")
FORM = {
    "metadata": {
        "name": str,
        "namespace": str,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": [{"kind": str}],
    },
    "spec": {
        **{"nodeName": str, "priority": int, "nodeSelector": _TEXTS, "overhead": dict},
        **{name: [{"resources": _RESOURCES, "ports": [{}]}] for name in ("containers", "initContainers")},
        "volumes": [{}],
        **{"taints": [{}], "tolerations": [{}], "levels": [{"nodeLabel": str}]},
        "minMember": int,
        "affinity": {"nodeAffinity": _AFFINITY},
    },
    "status": {"conditions": [{}], "allocatable": dict, "capacity": dict},
}
"""What is read of nodes, pods and groups, with the type of each part; ``str`` is every key."""
_TYPES = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
MOVE, END = 1, 10
"""Prices per pod of moving what runs and of ending it, where a controller would start it again."""


def quantity(text: object, place: str) -> Fraction:
    """A quantity as Kubernetes writes it: ``500m``, ``16Gi``, ``2``, ``1e3``.

    Raises InputError: it is none; the line names the place and the value.
    """
    found = _QUANTITY.fullmatch(str(text).strip()) if isinstance(text, str | int | float) else None
    if found is None or len(found[1]) > _MOST_CHARACTERS or (found[3] or "") not in FACTORS:
        raise InputError(f"{place}: {str(text)[:40]!r} is no quantity, such as 500m or 16Gi")
    value = Fraction(found[1]) * (Fraction(10) ** int(found[2]) if found[2] else FACTORS[found[3] or ""])
    if not 0 <= value < 2**63:
        raise InputError(f"{place}: {str(text)[:40]} is not from 0 to 2^63 - 1")
    return value


Amounts = Mapping[str, Fraction]
"""Of resources, as Kubernetes counts them."""


def _joined(how: Callable[[Fraction, Fraction], Fraction], one: Amounts, other: Amounts) -> dict[str, Fraction]:
    """Amounts of two, by resource."""
    none = Fraction(0)
    return {name: how(one.get(name, none), other.get(name, none)) for name in {**one, **other}}


class Counting:
    """How a listing's amounts become whole units: what is a device, and what one unit is worth.

    A unit is a thousandth of a processor, a MiB of memory, one of all else, and larger by powers of
    1024 where a node or a pod would have more of them than an instance may.
    """

    def __init__(self, listed: Sequence[Amounts]) -> None:
        largest: dict[str, Fraction] = {}
        for amounts in listed:
            for name, amount in amounts.items():
                largest[name] = max(largest.get(name, amount), amount)
        gpus = {name for name, amount in largest.items() if amount and name.endswith("/gpu")}
        self.devices = gpus & VENDORS or gpus
        self.units = {name: _unit(name, amount) for name, amount in largest.items()}

    def whole(self, amounts: Amounts, rounded: Callable[[Fraction], int]) -> tuple[int, dict[str, int]]:
        """(devices, other resources); the devices of several vendors are counted among these by vendor, too."""
        found = {name: rounded(amount / self.units[name]) for name, amount in amounts.items()}
        devices = sum(amount for name, amount in found.items() if name in self.devices)
        several = len(self.devices) > 1
        return devices, {name: amount for name, amount in found.items() if several or name not in self.devices}


def _unit(name: str, most: Fraction) -> Fraction:
    """What one whole unit of a resource is worth, of which a node or a pod has so much at most."""
    if name.endswith("/gpu"):
        return Fraction(1)
    memory = name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")
    unit = Fraction(1, 1000) if name == "cpu" else Fraction(2**20 if memory else 1)
    while most > LARGEST_COUNT * unit:
        unit *= 1024
    return unit


class Kubernetes:
    """One listing, read once.

    Parameters
    ----------
    items : its nodes, pods, and what else is there
    gang_label : a label or annotation that names gangs beside those that are known

    Attributes
    ----------
    unread : what was not understood or left out, counted
    """

    def __init__(self, items: Sequence[Json], source: str, gang_label: str | None = None) -> None:
        self.source = source
        self.names = (*([gang_label] if gang_label else []), *GANG_NAMES)
        self.unread: Counter[str] = Counter()
        kinds: dict[str, list[tuple[str, Json]]] = defaultdict(list)
        first: dict[tuple[str, str], int] = {}
        for position, item in enumerate(items):
            place = f"{source}: items[{position}]"
            if not isinstance(item, Mapping) or not isinstance(item.get("kind"), str):
                raise InputError(f"{place}.kind: is missing")
            _formed(item, FORM if item["kind"] in READ else {"metadata": FORM["metadata"]}, place)
            if not (item.get("metadata") or {}).get("name"):
                raise InputError(f"{place}.metadata.name: is missing")
            name = item["metadata"]["name"] if item["kind"] == "Node" else self._key(item)
            there = first.setdefault((item["kind"], name), position)
            if item["kind"] in READ and there != position:
                raise InputError(f"{place}.metadata.name: {name[:60]!r} is already the name of items[{there}]")
            kinds[item["kind"]].append((place, item))
        self.nodes = kinds.pop("Node", [])
        self.pods = [(place, pod) for place, pod in kinds.pop("Pod", []) if self._lives(pod)]
        self.groups = {self._key(group): (place, group) for place, group in kinds.pop("PodGroup", [])}
        self.topologies = kinds.pop("Topology", [])
        for kind, found in kinds.items():
            self.unread[f"objects of kind {kind}"] += len(found)
        if not self.nodes:
            raise InputError(f"{source}: items: there is no node: kubectl get nodes,pods -A -o json lists both")

    def _lives(self, pod: Mapping[str, Json]) -> bool:
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        self.unread["pods that have ended"] += over
        return not over

    @staticmethod
    def _key(item: Mapping[str, Json]) -> str:
        return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"

    @staticmethod
    def note(item: Mapping[str, Json], name: str) -> str | None:
        """A label or annotation."""
        for part in ("labels", "annotations"):
            value = (item["metadata"].get(part) or {}).get(name)
            if value is not None:
                return str(value)
        return None

    # -- amounts -------------------------------------------------------------------------------------------------

    def request(self, place: str, pod: Mapping[str, Json]) -> Amounts:
        """What a pod asks for: all that runs at a time, with sidecars from their turn among the init containers."""
        spec = pod.get("spec") or {}
        total: Amounts = {"pods": Fraction(1)}
        sidecars: Amounts = {}
        peak: Amounts = {}
        for at, container in enumerate(spec.get("containers") or []):
            total = _joined(add, total, self._requests(container, f"{place}.spec.containers[{at}]"))
        for at, container in enumerate(spec.get("initContainers") or []):
            asked = self._requests(container, f"{place}.spec.initContainers[{at}]")
            if container.get("restartPolicy") == "Always":
                total, sidecars = (_joined(add, before, asked) for before in (total, sidecars))
            else:
                peak = _joined(max, peak, _joined(add, sidecars, asked))
        overhead = spec.get("overhead") or {}
        more = {name: quantity(text, f"{place}.spec.overhead.{name}") for name, text in overhead.items()}
        return {name: amount for name, amount in _joined(add, _joined(max, total, peak), more).items() if amount}

    def _requests(self, container: Mapping[str, Json], place: str) -> dict[str, Fraction]:
        """Requests of a container; a limit counts where there is no request, as Kubernetes has it."""
        resources = container.get("resources") or {}
        both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {name: quantity(text, f"{place}.resources.requests.{name}") for name, text in both.items()}

    def room(self, place: str, node: Mapping[str, Json]) -> Amounts:
        """What a node has for pods."""
        status = node.get("status") or {}
        given = status.get("allocatable") or status.get("capacity")
        if not isinstance(given, Mapping):
            raise InputError(f"{place}.status.allocatable: is missing")
        room = {name: quantity(text, f"{place}.status.allocatable.{name}") for name, text in given.items()}
        self.unread["nodes that do not say how many pods they take"] += "pods" not in room
        return {"pods": Fraction(len(self.pods))} | room

    # -- which nodes take a pod ----------------------------------------------------------------------------------

    def allowed(self, pod: Mapping[str, Json]) -> tuple[int, ...]:
        """Positions of the nodes that the pod's selector, affinity and tolerations allow."""
        spec = pod.get("spec") or {}
        self._count(spec)
        self.unread["pods in topology slices"] += self.note(pod, SLICES) is not None
        return tuple(n for n, (_, node) in enumerate(self.nodes) if self._takes(node, spec))

    def _count(self, spec: Mapping[str, Json]) -> None:
        """What is asked for and not read."""
        for part in UNREAD:
            self.unread[f"pods with {part}"] += bool(spec.get(part))
        affinity = spec.get("affinity") or {}
        for part in ("podAffinity", "podAntiAffinity"):
            self.unread[f"pods with {part}"] += bool(affinity.get(part))
        wishes = affinity.get("nodeAffinity") or {}
        wished = "preferredDuringSchedulingIgnoredDuringExecution" in wishes
        self.unread["pods with preferred node affinity"] += wished
        containers = spec.get("containers") or []
        ports = [port for part in containers for port in part.get("ports") or []]
        volumes = spec.get("volumes") or []
        for name, parts in (("hostPort", ports), ("persistentVolumeClaim", volumes)):
            self.unread[f"pods with {name}"] += any(part.get(name) for part in parts)

    def _takes(self, node: Mapping[str, Json], spec: Mapping[str, Json]) -> bool:
        labels = {HOST: node["metadata"]["name"], **(node["metadata"].get("labels") or {})}
        if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
            return False
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        terms = affinity.get("nodeSelectorTerms") or []
        fields = {"metadata.name": node["metadata"]["name"]}
        if terms and not any(_matched(term, labels, fields) for term in terms):
            return False
        taints = [*((node.get("spec") or {}).get("taints") or [])]
        if (node.get("spec") or {}).get("unschedulable"):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        if any(
            condition.get("type") == "Ready" and condition.get("status") != "True"
            for condition in (node.get("status") or {}).get("conditions") or []
        ):
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
        hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
        tolerations = spec.get("tolerations") or []
        return all(any(_tolerates(one, taint) for one in tolerations) for taint in hard)

    # -- levels --------------------------------------------------------------------------------------------------

    def levels(self) -> list[str]:
        """Node labels that are levels, widest first: of a Topology object, else those that waiting pods name."""
        found: list[str] = []
        for _, topology in self.topologies[:1]:
            found = [str(level.get("nodeLabel")) for level in (topology.get("spec") or {}).get("levels") or []]
        if not found:
            named = {self.note(pod, note) for _, pod in self.pods for note in TOPOLOGY.values()} - {None, HOST}
            found = self._ordered(sorted(map(str, named)))
        if len(set(found)) < len(found):
            raise InputError(f"{self.topologies[0][0]}.spec.levels: a label is there twice")
        self.unread["topologies beside the first"] += max(0, len(self.topologies) - 1)
        return [name for name in found if name != HOST]

    def _ordered(self, names: Sequence[str]) -> list[str]:
        """Levels that no Topology orders, widest first."""
        inside = {name: sum(self._wider(other, name) for other in names if other != name) for name in names}
        if len(set(inside.values())) < len(names):  # each of three is wider than the next one
            raise self._no_order(names)
        return sorted(names, key=lambda name: inside[name])

    def _wider(self, level: str, other: str) -> bool:
        """Whether a level is wider than another: each of the other lies in one of it; as the usual names say."""
        labels = [node["metadata"].get("labels") or {} for _, node in self.nodes]
        pairs = {(one[level], one[other]) for one in labels if one.get(level) and one.get(other)}
        inward, outward = (len({pair[part] for pair in pairs}) == len(pairs) for part in (1, 0))
        words = [re.split(r"\W|_", name)[-1] for name in (level, other)]
        ranks = [WIDTHS.index(word) for word in words if word in WIDTHS]
        answers = {ranks[0] < ranks[1]} if len(set(ranks)) == 2 else set()
        answers |= {inward} if inward != outward else set()
        if inward and outward:  # the same domains
            answers = answers or {level < other}
        if len(answers) != 1:
            raise self._no_order((level, other))
        return answers.pop()

    def _no_order(self, names: Sequence[str]) -> InputError:
        shown = ", ".join(repr(name[:60]) for name in names)
        how = "list their Topology, too: kubectl get nodes,pods,topologies -A -o json"
        return InputError(f"{self.source}: which of the levels {shown} is wider cannot be told; {how}")


def _formed(value: Any, form: Any, place: str) -> None:
    """Refuse a part that has another type than that which is read; what is absent or null is read as such."""
    kind = form if isinstance(form, type) else type(form)
    fits = type(value) is kind
    if not fits:
        raise InputError(f"{place}: must be {_TYPES[kind]}, got {str(value)[:40]!r}")
    if isinstance(form, list):
        for at, inner in enumerate(value):
            _formed(inner, form[0], f"{place}[{at}]")
    elif isinstance(form, dict):
        for key, part in form.items():
            for name in value if key is str else (key,):
                if value.get(name) is not None:
                    _formed(value[name], part, f"{place}.{name}")


def _matched(term: Mapping[str, Json], labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Whether a node meets all of one term of a node affinity; an empty term matches no node."""
    parts = ((labels, term.get("matchExpressions") or []), (fields, term.get("matchFields") or []))
    met = [_expressed(there, one) for there, expressions in parts for one in expressions]
    return bool(met) and all(met)


def _expressed(labels: Mapping[str, str], one: Mapping[str, Json]) -> bool:
    """Whether labels meet one expression of a node affinity."""
    value, values = labels.get(str(one.get("key"))), one.get("values") or []
    operator = one.get("operator")
    if operator in ("In", "NotIn"):
        return (value in values) is (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) is (operator == "Exists")
    both = [str(text) for text in (value, *values[:1])]
    numbers = [int(text) for text in both if _NUMBER.fullmatch(text)]
    if operator in ("Gt", "Lt") and len(numbers) == 2:
        left, right = numbers
        return left > right if operator == "Gt" else left < right
    return False


def _tolerates(toleration: Mapping[str, Json], taint: Mapping[str, Json]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
